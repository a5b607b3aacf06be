//! TLS, over real sockets.

use super::marks::covers;
use super::shell::{Raw, gateway};
use super::support::{open_settings, request};
use crate::shell::{Counts, Tls};
use crate::{Gateway, Log, Place, Settings, StartError, TlsClients, TlsFiles};
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use troth_zookeeper::jute::Input;
use troth_zookeeper::opcode;

const PATIENCE: Duration = Duration::from_secs(20);

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { issuer: Issuer::new(params, key), certificate }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
        params.distinguished_name.push(DnType::OrganizationName, "Example");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// Writes what a gateway serves with into a directory.
    fn write(&self, directory: &Path, required: Option<bool>) -> TlsFiles {
        let at = |name: &str| directory.join(name);
        let (certificate, key) = self.issue("gateway");
        std::fs::write(at("chain.pem"), certificate.pem()).expect("it is written");
        std::fs::write(at("key.pem"), key.serialize_pem()).expect("it is written");
        std::fs::write(at("authorities.pem"), self.certificate.pem()).expect("it is written");
        let clients = required.map(|required| TlsClients { authorities: at("authorities.pem"), required });
        TlsFiles { certificates: at("chain.pem"), key: at("key.pem"), clients }
    }

    fn connector(&self, shows: Option<&str>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = builder.with_root_certificates(roots);
        let config = match shows {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let (certificate, key) = self.issue(name);
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                builder.with_client_auth_cert(chain, key).expect("a certificate")
            }
        };
        TlsConnector::from(Arc::new(config))
    }

    /// Connects, and says hello; nothing where that does not work.
    async fn open(
        &self,
        address: SocketAddr,
        shows: Option<&str>,
    ) -> Option<Raw<tokio_rustls::client::TlsStream<TcpStream>>> {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        let name = ServerName::try_from("localhost").expect("a name");
        let connecting = self.connector(shows).connect(name, stream);
        let mut client = Raw(timeout(PATIENCE, connecting).await.expect("it answers").ok()?);
        // One that showed no certificate may learn only now that it must.
        client.try_open().await.then_some(client)
    }
}

async fn who<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    client: &mut Raw<S>,
) -> Vec<(String, String)> {
    client.send(&request(1, opcode::WHO_AM_I, &Bytes::new())).await;
    let packet = Bytes::from(client.receive().await);
    let mut input = Input::new(&packet);
    let header = (input.int(), input.long().map(|_| ()), input.int());
    assert_eq!(header, (Ok(1), Ok(()), Ok(0)));
    let text = |input: &mut Input<'_>| Ok(input.text()?.unwrap_or_default());
    input.vector(8, |input| Ok((text(input)?, text(input)?))).expect("a list").expect("a list")
}

fn secure(files: TlsFiles) -> Settings {
    Settings { secure: Some((vec![SocketAddr::from(([127, 0, 0, 1], 0))], files)), ..open_settings() }
}

#[tokio::test]
async fn clients_connect_with_tls_and_their_certificates_say_who_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let (gateway, _) = gateway(secure(authority.write(directory.path(), Some(false)))).await;
    let address = gateway.secure_addresses()[0];
    let local = ("ip".to_owned(), "127.0.0.1".to_owned());
    let mut anybody = authority.open(address, None).await.expect("a connection");
    assert_eq!(who(&mut anybody).await, std::slice::from_ref(&local));
    let mut somebody = authority.open(address, Some("me")).await.expect("a connection");
    assert_eq!(who(&mut somebody).await, [local, ("x509".to_owned(), "O=Example,CN=me".to_owned())]);
    // A certificate of anybody else's is no way in.
    let other = Authority::new();
    let (certificate, key) = other.issue("me");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let config = builder
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.der().clone()], key)
        .expect("a certificate");
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let name = ServerName::try_from("localhost").expect("a name");
    if let Ok(stream) = TlsConnector::from(Arc::new(config)).connect(name, stream).await {
        assert!(!Raw(stream).try_open().await);
    }
    // Who speaks no TLS is not spoken to.
    let mut plain = TcpStream::connect(address).await.expect("somebody listens");
    plain.write_all(b"ruok").await.expect("it is written");
    plain.shutdown().await.expect("it ends");
    assert_ne!(Raw(plain).rest().await, b"imok");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_turned_away_where_it_needs_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let (gateway, _) = gateway(secure(authority.write(directory.path(), Some(true)))).await;
    let address = gateway.secure_addresses()[0];
    assert!(authority.open(address, None).await.is_none());
    assert!(authority.open(address, Some("me")).await.is_some());
}

/// Connections of which no word comes.
async fn silent(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut silent = Vec::new();
    for _ in 0..count {
        silent.push(TcpStream::connect(address).await.expect("somebody listens"));
    }
    silent
}

#[tokio::test]
async fn silent_connections_do_not_shut_the_port() {
    covers!("ZKG-B3");
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    // Longer than anybody here waits.
    let handshake = Duration::from_secs(300);
    let files = authority.write(directory.path(), None);
    let settings = Settings { handshake, connections_per_address: 0, ..secure(files.clone()) };
    let (any_number, _) = gateway(settings).await;
    let address = any_number.secure_addresses()[0];
    let _silent = silent(address, 300).await;
    assert!(authority.open(address, None).await.is_some());
    // Of one address there are no more on the way than it may have connections.
    let settings = Settings { handshake, connections_per_address: 3, ..secure(files) };
    let (few, _) = gateway(settings).await;
    let address = few.secure_addresses()[0];
    let _silent = silent(address, 3).await;
    let more = TcpStream::connect(address).await.expect("somebody listens");
    assert!(Raw(more).rest().await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_served_with_is_found_before_the_group_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = Authority::new().write(directory.path(), Some(true));
    let good = Settings { audit: Some(log(directory.path())), ..secure(files.clone()) };
    Gateway::check(&good).await.expect("all of it is there");
    assert!(directory.path().join("audit.log").exists());

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one");
    for settings in [
        Settings { listen: vec![address], ..good.clone() },
        Settings { admin: Some(address), ..good.clone() },
        Settings { secure: Some((vec![address], files.clone())), ..good.clone() },
    ] {
        let why = Gateway::check(&settings).await;
        assert!(matches!(why, Err(StartError::Listen { address: of, .. }) if of == address), "{why:?}");
    }
    let nowhere = Settings { audit: Some(log(&directory.path().join("nowhere"))), ..good.clone() };
    assert!(matches!(Gateway::check(&nowhere).await, Err(StartError::Log { .. })));

    // The key's name says what to look at, whatever is wrong with it.
    let said = async |files: TlsFiles| match Gateway::check(&secure(files)).await {
        Err(StartError::Tls(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    let no_key = TlsFiles { key: files.certificates.clone(), ..files.clone() };
    assert!(said(no_key).await.ends_with("chain.pem: no private key in PEM form"));
    let no_certificate = TlsFiles { certificates: files.key.clone(), ..files.clone() };
    assert!(said(no_certificate).await.ends_with("key.pem: no certificate in PEM form"));
    let other = KeyPair::generate().expect("a key").serialize_pem();
    std::fs::write(directory.path().join("other.pem"), other).expect("it is written");
    let of_another = TlsFiles { key: directory.path().join("other.pem"), ..files.clone() };
    let said = said(of_another).await;
    assert!(
        said.contains("chain.pem: not the certificate of the key in") && said.ends_with("other.pem"),
        "{said}"
    );
}

fn log(directory: &Path) -> Log {
    Log { place: Place::File(directory.join("audit.log")), file_bytes: 1 << 20, files: 2 }
}

#[test]
fn certificates_are_read_again_when_they_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = Authority::new().write(directory.path(), None);
    let counts = Arc::new(Counts::default());
    let mut tls = Tls::load(files.clone(), Arc::clone(&counts)).expect("certificates");
    let reloads = || (counts.reloads.get(), counts.reloads_failed.get());
    let first = tls.config();
    tls.look();
    assert!(Arc::ptr_eq(&first, &tls.config()), "nothing has changed");
    let touched = |name: &str, seconds: u64| {
        let file = File::options().append(true).open(directory.path().join(name)).expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
    };
    // Half written: the key is not that of the certificate.
    let key = std::fs::read(&files.key).expect("a key");
    std::fs::write(&files.key, &key[..key.len() / 2]).expect("it is written");
    touched("key.pem", 1);
    tls.look();
    assert!(Arc::ptr_eq(&first, &tls.config()), "what cannot be served with leaves what was");
    assert_eq!(reloads(), (0, 1));
    Authority::new().write(directory.path(), None);
    touched("key.pem", 2);
    touched("chain.pem", 2);
    tls.look();
    assert!(!Arc::ptr_eq(&first, &tls.config()));
    assert_eq!(reloads(), (1, 1));
    std::fs::remove_file(&files.key).expect("it goes");
    assert!(Tls::load(files, counts).is_err());
}
