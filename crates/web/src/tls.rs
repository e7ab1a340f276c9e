//! TLS 1.3 with the user's certificate.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::{Error, ServerConfig};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file of a certificate or a key, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A certificate and its key, which authenticate the server and encrypt its connections.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

/// Why a certificate or its key cannot be used; the text names the file and the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}: give a file in PEM that this user may read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is far longer than what it should contain.
    #[error(
        "{path} is longer than {MAX_FILE} bytes: give a file in PEM with only a certificate and its chain, \
         or a key"
    )]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// There is no certificate in a file, or one that does not parse.
    #[error("{path}: {problem}: give a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There is no private key in a file, or one that cannot be used.
    #[error(
        "{path}: {problem}: give the certificate's private key in PEM, without a passphrase, which begins with \
         -----BEGIN PRIVATE KEY-----"
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The key is not the certificate's.
    #[error(
        "{key} is not the key of the first certificate in {certificate}: give the two that belong together"
    )]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

impl Tls {
    /// Reads a certificate, followed by its chain, and its private key, both in PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let bad = |problem: String| TlsError::Certificate {
            path: certificate.to_owned(),
            problem,
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|e| bad(e.to_string()))?;
        let first = chain
            .first()
            .ok_or_else(|| bad("it contains no certificate".into()))?;
        let first = first.clone();
        ParsedCertificate::try_from(&first).map_err(|e| bad(e.to_string()))?;
        let bad_key = |problem: String| TlsError::Key {
            path: key.to_owned(),
            problem,
        };
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| {
            bad_key(
                "it contains no private \
                                                                            key"
                .into(),
            )
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => TlsError::Mismatch {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
            },
            error => bad_key(error.to_string()),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Nothing is kept for clients that left.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls {
            config: Arc::new(config),
            certificate: first,
        })
    }

    /// Whether the certificate is for this host name or address. Does not check its validity.
    pub(crate) fn covers(&self, host: &str) -> bool {
        let name = ServerName::try_from(host);
        let parsed = ParsedCertificate::try_from(&self.certificate);
        matches!((name, parsed), (Ok(name), Ok(c)) if rustls::client::verify_server_name(&c, &name).is_ok())
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let path = path.to_owned();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path);
    match file.and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)) {
        Err(source) => Err(TlsError::Read { path, source }),
        Ok(_) if bytes.len() as u64 > MAX_FILE => Err(TlsError::TooLong { path }),
        Ok(_) => Ok(bytes),
    }
}
