//! TLS towards a server.

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file of certificates or keys, in bytes.
const MOST: u64 = 4 << 20;

/// What a client shows of itself, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its certificate, and those between it and an authority.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How a server's certificate is judged: it must be of one of these authorities, and name the host that was connected to.
#[derive(Clone, Debug)]
pub struct Tls(pub(crate) Arc<ClientConfig>);

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
    if all.is_empty() { Err(invalid(path, "no certificate")) } else { Ok(all) }
}

impl Tls {
    /// Reads the authorities' certificates (PEM), and what the client shows of itself.
    ///
    /// # Errors
    /// Where a file cannot be read or holds something else.
    pub fn load(authorities: &Path, identity: Option<&Identity>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(|error| invalid(authorities, error))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let builder = builder.with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificates: path, key }) => {
                let private = PrivateKeyDer::from_pem_slice(&contents(key)?);
                let private = private.map_err(|error| invalid(key, error))?;
                let chain = certificates(path)?;
                builder.with_client_auth_cert(chain, private).map_err(|error| invalid(path, error))?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}
