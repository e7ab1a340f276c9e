//! A host's keys for its team.

use super::{
    ADMISSION_SECRET, HOST_CERTIFICATE, HOST_KEY, KeysError, REVOKED, TEAM_CERTIFICATE, check_name, files,
};
use rustls::CertificateError;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A host's own key and certificate, and the files that authenticate its team's other hosts.
pub struct Bundle {
    folder: PathBuf,
    host: String,
    key: PrivateKeyDer<'static>,
    certificate: CertificateDer<'static>,
    team: CertificateDer<'static>,
    revoked: CertificateRevocationListDer<'static>,
    admission_secret: [u8; 32],
    stamps: Stamps,
}

/// Modification time and length of each file of a bundle, which change when the keys are renewed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamps([Option<(SystemTime, u64)>; 5]);

impl Stamps {
    /// The stamps of the bundle in `folder` at present.
    pub(crate) fn of(folder: &Path) -> Self {
        let look = |name: &str| {
            let data = std::fs::metadata(folder.join(name)).ok()?;
            Some((data.modified().ok()?, data.len()))
        };
        Stamps(
            [
                HOST_KEY,
                HOST_CERTIFICATE,
                TEAM_CERTIFICATE,
                ADMISSION_SECRET,
                REVOKED,
            ]
            .map(look),
        )
    }
}

/// The content of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The name of the team that signed it.
    pub team: String,
    /// Its serial number, as in the team's list.
    pub serial: String,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
}

impl std::fmt::Debug for Bundle {
    /// Leaves out the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("folder", &self.folder)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl Bundle {
    /// Reads the bundle of `host` from `folder` and checks that its certificate is valid now.
    ///
    /// # Errors
    /// [`KeysError`], naming the file: missing, readable by others, malformed, of another host or team,
    /// expired, revoked.
    pub fn load(folder: &Path, host: &str) -> Result<Bundle, KeysError> {
        check_name(host)?;
        let stamps = Stamps::of(folder);
        let path = |name: &str| folder.join(name);
        let key = files::read_secret(&path(HOST_KEY))?;
        let key = parsed(&path(HOST_KEY), PrivateKeyDer::from_pem_slice(key.as_bytes()))?;
        let admission_secret = files::read_secret(&path(ADMISSION_SECRET))?;
        let admission_secret = unhex(admission_secret.trim()).ok_or_else(|| KeysError::Malformed {
            path: path(ADMISSION_SECRET),
            problem: "it is not 64 hexadecimal digits: copy it again from the team's folder".into(),
        })?;
        let bundle = Bundle {
            folder: folder.to_owned(),
            host: host.to_owned(),
            key,
            certificate: certificate(&path(HOST_CERTIFICATE))?,
            team: certificate(&path(TEAM_CERTIFICATE))?,
            revoked: parsed(
                &path(REVOKED),
                CertificateRevocationListDer::from_pem_slice(files::read(&path(REVOKED))?.as_bytes()),
            )?,
            admission_secret,
            stamps,
        };
        bundle.check()?;
        Ok(bundle)
    }

    /// The host that it belongs to.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The folder that holds it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The stamps from before it was read.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// The content of its certificate, for people.
    pub fn about(&self) -> About {
        // The certificate was verified on loading.
        let parsed = x509_parser::parse_x509_certificate(&self.certificate).ok();
        parsed.map_or_else(About::default, |(_, c)| About {
            team: c
                .issuer()
                .iter_common_name()
                .find_map(|n| n.as_str().ok())
                .unwrap_or_default()
                .to_owned(),
            serial: c.raw_serial().iter().map(|b| format!("{b:02x}")).collect(),
            expires: u64::try_from(c.validity().not_after.timestamp()).unwrap_or_default(),
        })
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    pub(crate) fn admission_secret(&self) -> &[u8; 32] {
        &self.admission_secret
    }

    /// Creates the verifier by which servers accept clients' valid certificates of the team.
    pub(crate) fn client_verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, KeysError> {
        WebPkiClientVerifier::builder_with_provider(self.roots()?, provider)
            .with_crls([self.revoked.clone()])
            .build()
            .map_err(|e| self.bad_list(&e))
    }

    /// The same for clients, which verify servers.
    pub(crate) fn server_verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<WebPkiServerVerifier>, KeysError> {
        WebPkiServerVerifier::builder_with_provider(self.roots()?, provider)
            .with_crls([self.revoked.clone()])
            .build()
            .map_err(|e| self.bad_list(&e))
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, KeysError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.team.clone()).map_err(|e| KeysError::Malformed {
            path: self.folder.join(TEAM_CERTIFICATE),
            problem: format!("it is not a team's certificate: {e}"),
        })?;
        Ok(Arc::new(roots))
    }

    fn bad_list(&self, error: &impl std::fmt::Display) -> KeysError {
        KeysError::Malformed {
            path: self.folder.join(REVOKED),
            problem: format!("it is not a list of revoked certificates: {error}"),
        }
    }

    /// Applies to this host's certificate the checks that other hosts will apply to it.
    fn check(&self) -> Result<(), KeysError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let path = self.folder.join(HOST_CERTIFICATE);
        let bad = |problem: String| KeysError::Certificate {
            path: path.clone(),
            problem,
        };
        let verifier = self.client_verifier(provider.clone())?;
        let verdict = verifier.verify_client_cert(&self.certificate, &[], UnixTime::now());
        verdict.map_err(|e| bad(complaint(&e, &self.host)))?;
        if !names(&self.certificate, &self.host) {
            return Err(bad(format!(
                "it is not the certificate of '{}', this host's name under `host:`",
                self.host
            )));
        }
        let key = provider.key_provider.load_private_key(self.key());
        let fits = key.and_then(|key| rustls::sign::CertifiedKey::new(self.chain(), key).keys_match());
        fits.map_err(|_| KeysError::Malformed {
            path: self.folder.join(HOST_KEY),
            problem: format!(
                "it is not the key of {HOST_CERTIFICATE}: copy both from the team's folder again"
            ),
        })
    }
}

/// Returns whether `certificate` names the host called `host`. Does not check its validity.
pub(crate) fn names(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let name = ServerName::try_from(host);
    let parsed = rustls::server::ParsedCertificate::try_from(certificate);
    matches!((name, parsed), (Ok(name), Ok(c)) if rustls::client::verify_server_name(&c, &name).is_ok())
}

/// The host that a certificate names, for people. Does not check its validity.
pub(crate) fn host_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let names = parsed.subject_alternative_name().ok()??;
    names.value.general_names.iter().find_map(|name| match name {
        x509_parser::extensions::GeneralName::DNSName(name) => {
            Some(stats::text::printable(name).into_owned())
        }
        _ => None,
    })
}

/// What is wrong with a certificate, and how to fix it.
fn complaint(error: &rustls::Error, host: &str) -> String {
    let again = format!("create a new one with `ropewalk keys host {host}`");
    match error {
        rustls::Error::InvalidCertificate(e) => match e {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                format!("the certificate has expired (or this host's clock is wrong): {again}")
            }
            CertificateError::Revoked => format!("the certificate was revoked: {again}"),
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                format!("the certificate is not from the team of {TEAM_CERTIFICATE}: {again}")
            }
            other => format!("the certificate is not valid: {other:?}"),
        },
        other => format!("the certificate is not valid: {other}"),
    }
}

fn certificate(path: &Path) -> Result<CertificateDer<'static>, KeysError> {
    parsed(
        path,
        CertificateDer::from_pem_slice(files::read(path)?.as_bytes()),
    )
}

fn parsed<T>(path: &Path, result: Result<T, rustls::pki_types::pem::Error>) -> Result<T, KeysError> {
    result.map_err(|e| KeysError::Malformed {
        path: path.to_owned(),
        problem: format!("its content is not what its name says (PEM): {e}"),
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    for (i, b) in bytes.iter_mut().enumerate() {
        *b = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Team;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn invalid_credentials_are_named_with_the_fix() {
        let folder = tempfile::tempdir().expect("a folder");
        let ours = Team::create(&folder.path().join("ours"), "rovers").expect("makes");
        let theirs = Team::create(&folder.path().join("theirs"), "rovers").expect("makes");
        let good = ours.add_host("robot", DAY).expect("makes");
        let foreign = theirs.add_host("robot", DAY).expect("makes");
        let other = ours.add_host("base", DAY).expect("makes");
        // Times in certificates are whole seconds.
        let expired = ours.add_host("old", Duration::from_secs(1)).expect("makes");
        std::thread::sleep(Duration::from_millis(2100));
        let error = Bundle::load(&expired, "old")
            .expect_err("has expired")
            .to_string();
        assert!(
            error.contains("expired") && error.contains("keys host old"),
            "{error}"
        );

        let bundle = Bundle::load(&good, "robot").expect("counts");
        assert_eq!(bundle.host(), "robot");
        assert!(!format!("{bundle:?}").contains("key:"), "no secrets");
        let swaps = [
            (HOST_CERTIFICATE, &foreign, "not from the team"),
            (HOST_CERTIFICATE, &other, "not the certificate of 'robot'"),
            (HOST_KEY, &other, "not the key of"),
        ];
        for (file, from, complaint) in swaps {
            let keep = std::fs::read(good.join(file)).expect("reads");
            std::fs::copy(from.join(file), good.join(file)).expect("copies");
            let error = Bundle::load(&good, "robot").expect_err(complaint).to_string();
            assert!(error.contains(complaint) && error.contains(file), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            std::fs::write(good.join(file), keep).expect("writes");
        }
        for file in [
            HOST_KEY,
            HOST_CERTIFICATE,
            TEAM_CERTIFICATE,
            ADMISSION_SECRET,
            REVOKED,
        ] {
            let keep = std::fs::read(good.join(file)).expect("reads");
            for content in [
                &b""[..],
                b"garbage",
                b"-----BEGIN CERTIFICATE-----\nAAAA\n",
                &keep[..keep.len() / 2],
            ] {
                std::fs::write(good.join(file), content).expect("writes");
                let error = Bundle::load(&good, "robot").expect_err(file).to_string();
                assert!(error.contains(file), "{file}: {error}");
            }
            std::fs::write(good.join(file), keep).expect("writes");
        }
        Bundle::load(&good, "robot").expect("counts again");
    }
}
