//! This host's own key, and the check of other hosts' certificates.

use crate::keys::{Bundle, HOST_KEY, KeysError, names};
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;

/// The parts of a host's bundle that greetings need.
pub(crate) struct Identity {
    pub(super) key: Ed25519KeyPair,
    pub(super) certificate: CertificateDer<'static>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Identity {
    /// # Errors
    /// [`KeysError`] if the host's key is of another kind than `ropewalk keys` makes.
    pub(crate) fn new(bundle: &Bundle) -> Result<Self, KeysError> {
        let other = || KeysError::Malformed {
            path: bundle.folder().join(HOST_KEY),
            problem: "relays require Ed25519 keys: create one with `ropewalk keys host`".into(),
        };
        let PrivateKeyDer::Pkcs8(key) = bundle.key() else {
            return Err(other());
        };
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Ok(Identity {
            key: key.map_err(|_| other())?,
            certificate: bundle.chain().swap_remove(0),
            verifier: bundle.client_verifier(provider)?,
        })
    }

    /// Returns whether `certificate` belongs to the team's host `name` and is valid now.
    pub(super) fn counts(&self, certificate: &CertificateDer<'_>, name: &str) -> bool {
        let counts = self
            .verifier
            .verify_client_cert(certificate, &[], UnixTime::now());
        counts.is_ok() && names(certificate, name)
    }
}
