//! TLS: certificates out of PEM files, read again when the files change, and the names in those of clients.

use super::counts::Counts;
use crate::TlsFiles;
use core::time::Duration;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// How often it is looked whether a file has changed, at most.
const LOOK: Duration = Duration::from_secs(1);
/// The longest file of certificates or keys, in bytes.
const MOST: u64 = 4 << 20;

/// When a file was written, and how long it was.
type Mark = Option<(SystemTime, u64)>;

/// What is served with now.
pub(crate) struct Tls {
    files: TlsFiles,
    config: Arc<ServerConfig>,
    marks: Vec<Mark>,
    /// What could not be used, as it was said last.
    refused: Option<Vec<Mark>>,
    looked: Instant,
    counts: Arc<Counts>,
}

fn invalid(path: &Path, why: impl core::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if std::fs::metadata(path).map_err(named)?.len() > MOST {
        return Err(invalid(path, "too long for certificates or a key"));
    }
    std::fs::read(path).map_err(named)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents(path)?).collect();
    let all = all.map_err(|error| invalid(path, error))?;
    if all.is_empty() { Err(invalid(path, "no certificate in PEM form")) } else { Ok(all) }
}

fn configure(files: &TlsFiles) -> io::Result<ServerConfig> {
    let provider = Arc::new(default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = versions.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let builder = match &files.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&clients.authorities)? {
                roots.add(certificate).map_err(|error| invalid(&clients.authorities, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if clients.required { verifier } else { verifier.allow_unauthenticated() };
            let verifier = verifier.build().map_err(|error| invalid(&clients.authorities, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&contents(&files.key)?);
    let key = key.map_err(|error| match error {
        pem::Error::NoItemsFound => invalid(&files.key, "no private key in PEM form"),
        error => invalid(&files.key, error),
    })?;
    let chain = certificates(&files.certificates)?;
    builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => invalid(
            &files.certificates,
            format_args!("not the certificate of the key in {}", files.key.display()),
        ),
        error => invalid(&files.certificates, error),
    })
}

fn marks(files: &TlsFiles) -> Vec<Mark> {
    let mark = |path: &Path| {
        let data = std::fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    let clients = files.clients.as_ref().map(|clients| clients.authorities.as_path());
    [Some(files.certificates.as_path()), Some(&files.key), clients].into_iter().flatten().map(mark).collect()
}

impl Tls {
    /// Reads the files.
    pub(crate) fn load(files: TlsFiles, counts: Arc<Counts>) -> io::Result<Self> {
        let marks = marks(&files);
        let config = Arc::new(configure(&files)?);
        Ok(Self { files, config, marks, refused: None, looked: Instant::now(), counts })
    }

    /// What a new connection is served with. Files that have changed and cannot be read leave it as it was: they may be half
    /// written.
    pub(super) fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= LOOK {
            self.look();
        }
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// What is served with now.
    #[cfg(test)]
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Reads the files again if they have changed.
    pub(crate) fn look(&mut self) {
        self.looked = Instant::now();
        let marks = marks(&self.files);
        if marks == self.marks {
            return;
        }
        match configure(&self.files) {
            Ok(config) => {
                self.config = Arc::new(config);
                self.marks = marks;
                self.counts.reloads.add(1);
            }
            Err(why) => {
                self.counts.reloads_failed.add(1);
                // A file that stays so is looked at with each connection.
                if self.refused.as_ref() != Some(&marks) {
                    tracing::warn!(
                        "the new certificates cannot be used, the gateway goes on with those before: {why}"
                    );
                    self.refused = Some(marks);
                }
            }
        }
    }
}

/// The subject of the certificate that a client showed. One that was verified and cannot be read is none.
pub(super) fn subject(stream: &TlsStream<TcpStream>) -> Option<String> {
    read_subject(stream.get_ref().1.peer_certificates()?.first()?)
}

/// The subject of a certificate, as RFC 4514 writes it.
pub(crate) fn read_subject(certificate: &[u8]) -> Option<String> {
    // The decoder makes room for what an element says that it holds, before it looks whether it does.
    let whole = lengths_fit(certificate, MOST_DEPTH).then(|| Certificate::from_der(certificate));
    Some(whole?.ok()?.tbs_certificate.subject.to_string())
}

/// Elements of a certificate within each other.
const MOST_DEPTH: usize = 16;

/// Whether each element of these (X.690: tag, length, content) is whole, and those within it.
fn lengths_fit(mut elements: &[u8], depth: usize) -> bool {
    const CONSTRUCTED: u8 = 0x20;
    const GOES_ON: u8 = 0x1f;
    while let Some((tag, rest)) = elements.split_first() {
        if tag & GOES_ON == GOES_ON {
            return false;
        }
        let Some((first, rest)) = rest.split_first() else { return false };
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let Some((digits, rest)) = rest.split_at_checked(usize::from(first & 0x7f)) else {
                    return false;
                };
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return false,
        };
        let Some((content, rest)) = rest.split_at_checked(length) else { return false };
        if tag & CONSTRUCTED != 0 && !(depth > 0 && lengths_fit(content, depth - 1)) {
            return false;
        }
        elements = rest;
    }
    true
}
