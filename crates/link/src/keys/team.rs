//! The team's own folder: the signing key, and the certificates that it signed.

use super::ledger::SERIAL;
use super::{
    ADMISSION_SECRET, Bundle, Entry, HOST_CERTIFICATE, HOST_KEY, KeysError, LEDGER, Ledger, REVOKED,
    TEAM_CERTIFICATE, TEAM_KEY, check_name, files,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ED25519, RevocationReason, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Subfolder of a team's folder that holds the hosts' bundles.
pub const HOSTS_FOLDER: &str = "hosts";
/// Lifetime of a team's certificate: longer than its robots last.
const TEAM_LIFE: Duration = Duration::from_secs(40 * 365 * 86_400);

/// `seconds` since 1970, in the type that certificates use (inferred, since its crate is a dependency of
/// `rcgen`).
macro_rules! time {
    ($seconds:expr) => {
        date_time_ymd(1970, 1, 1) + Duration::from_secs($seconds)
    };
}
/// A team, by its folder.
#[derive(Debug)]
pub struct Team {
    folder: PathBuf,
}

impl Team {
    /// Creates a team called `name` in the new folder `folder`.
    ///
    /// # Errors
    /// [`KeysError::Exists`], [`KeysError::Name`], or an error of the file system.
    pub fn create(folder: &Path, name: &str) -> Result<Team, KeysError> {
        check_name(name)?;
        let team = Team {
            folder: folder.to_owned(),
        };
        if folder.exists() {
            return Err(KeysError::Exists { path: folder.into() });
        }
        files::make_folder(folder)?;
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = params(name, now().saturating_add(TEAM_LIFE.as_secs()))?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        let admission_secret = hex(&random::<32>()?);
        files::write(&team.file(TEAM_KEY), 0o600, key.serialize_pem().as_bytes())?;
        files::write(&team.file(ADMISSION_SECRET), 0o600, admission_secret.as_bytes())?;
        files::write(&team.file(TEAM_CERTIFICATE), 0o644, certificate.pem().as_bytes())?;
        team.store(&Ledger::default())?;
        Ok(team)
    }

    /// Opens the team in `folder`.
    ///
    /// # Errors
    /// If the folder does not belong to a team, or others can read its key.
    pub fn open(folder: &Path) -> Result<Team, KeysError> {
        let team = Team {
            folder: folder.to_owned(),
        };
        team.issuer()?;
        Ok(team)
    }

    /// Creates a certificate for `host` that is valid for `life`, and returns the folder to copy to the host.
    ///
    /// # Errors
    /// [`KeysError::Duplicate`] if it has one, [`KeysError::Name`], or an error of the file system.
    pub fn add_host(&self, host: &str, life: Duration) -> Result<PathBuf, KeysError> {
        check_name(host)?;
        let mut ledger = self.ledger()?;
        if ledger.valid(host, now()).is_some() {
            return Err(KeysError::Duplicate { host: host.into() });
        }
        let issuer = self.issuer()?;
        let mut serial = random::<SERIAL>()?;
        // A serial number is positive and has no leading zero bytes (RFC 5280, section 4.1.2.2).
        serial[0] = serial[0] & 0x7f | 0x40;
        let expires = now().saturating_add(life.as_secs());
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = params(host, expires)?;
        params.subject_alt_names = vec![rcgen::SanType::DnsName(host.try_into()?)];
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &issuer)?;
        ledger.entries.push(Entry {
            serial,
            host: host.into(),
            expires,
            revoked: None,
        });
        // Store the ledger before the certificate, so that every certificate can be revoked.
        self.store(&ledger)?;
        let bundle = self.folder.join(HOSTS_FOLDER).join(host);
        files::make_folder(&bundle)?;
        files::write(&bundle.join(HOST_KEY), 0o600, key.serialize_pem().as_bytes())?;
        files::write(
            &bundle.join(HOST_CERTIFICATE),
            0o644,
            certificate.pem().as_bytes(),
        )?;
        for (file, mode) in [
            (ADMISSION_SECRET, 0o600),
            (TEAM_CERTIFICATE, 0o644),
            (REVOKED, 0o644),
        ] {
            files::write(
                &bundle.join(file),
                mode,
                files::read(&self.file(file))?.as_bytes(),
            )?;
        }
        // Loading it detects an unusable bundle here rather than on the robot.
        Bundle::load(&bundle, host)?;
        Ok(bundle)
    }

    /// Revokes every certificate of `host`, and updates the list of revoked certificates here and in the
    /// hosts' bundles. Returns the list's path, for copying it to every host.
    ///
    /// # Errors
    /// [`KeysError::Unknown`] if the host has no certificate to revoke, or an error of the file system.
    pub fn revoke(&self, host: &str) -> Result<PathBuf, KeysError> {
        let mut ledger = self.ledger()?;
        let mut any = false;
        for e in ledger
            .entries
            .iter_mut()
            .filter(|e| e.host == host && e.revoked.is_none())
        {
            e.revoked = Some(now());
            any = true;
        }
        if !any {
            return Err(KeysError::Unknown { host: host.into() });
        }
        self.store(&ledger)?;
        let list = files::read(&self.file(REVOKED))?;
        for e in &ledger.entries {
            let bundle = self.folder.join(HOSTS_FOLDER).join(&e.host);
            if bundle.is_dir() {
                files::write(&bundle.join(REVOKED), 0o644, list.as_bytes())?;
            }
        }
        Ok(self.file(REVOKED))
    }

    /// All certificates that the team ever made.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn ledger(&self) -> Result<Ledger, KeysError> {
        let path = self.file(LEDGER);
        Ledger::parse(&files::read(&path)?).map_err(|e| KeysError::Malformed {
            problem: e.to_string(),
            path,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, KeysError> {
        let key = KeyPair::from_pem(&files::read_secret(&self.file(TEAM_KEY))?)?;
        let path = self.file(TEAM_CERTIFICATE);
        Issuer::from_ca_cert_pem(&files::read(&path)?, key).map_err(|e| KeysError::Malformed {
            problem: format!("it is not a team's certificate: {e}"),
            path,
        })
    }

    /// Writes the ledger and the resulting list of revoked certificates.
    fn store(&self, ledger: &Ledger) -> Result<(), KeysError> {
        let revoked = ledger.entries.iter().filter_map(|e| {
            Some(RevokedCertParams {
                serial_number: SerialNumber::from_slice(&e.serial),
                revocation_time: time!(e.revoked?),
                reason_code: Some(RevocationReason::KeyCompromise),
                invalidity_date: None,
            })
        });
        let list = CertificateRevocationListParams {
            this_update: time!(0),
            // People carry lists to hosts by hand; an old one is better than none.
            next_update: time!(now().saturating_add(TEAM_LIFE.as_secs())),
            crl_number: SerialNumber::from(now()),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer()?)?.pem()?;
        files::write(&self.file(LEDGER), 0o644, ledger.to_string().as_bytes())?;
        files::write(&self.file(REVOKED), 0o644, list.as_bytes())
    }
}

/// Parameters of a certificate that is valid from 1970 on, since a robot without a battery for its clock
/// starts then.
fn params(name: &str, expires: u64) -> Result<CertificateParams, KeysError> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.not_before = time!(0);
    params.not_after = time!(expires);
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

fn random<const N: usize>() -> Result<[u8; N], KeysError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeysError::Random)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn secrets_are_their_owner_s_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("team");
        let team = Team::create(&path, "rovers").expect("makes");
        let bundle = team.add_host("robot", DAY).expect("makes");
        for secret in [
            path.join(TEAM_KEY),
            path.join(ADMISSION_SECRET),
            bundle.join(HOST_KEY),
            bundle.join(ADMISSION_SECRET),
        ] {
            let mode = std::fs::metadata(&secret).expect("is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", secret.display());
        }
        std::fs::set_permissions(path.join(TEAM_KEY), PermissionsExt::from_mode(0o640)).expect("changes");
        let error = Team::open(&path).expect_err("others may read").to_string();
        assert!(
            error.contains("mode 0640") && error.contains("chmod 600") && error.contains(TEAM_KEY),
            "{error}"
        );
    }

    #[test]
    fn hosts_come_and_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("team");
        let team = Team::create(&path, "rovers").expect("makes");
        assert!(matches!(
            Team::create(&path, "rovers"),
            Err(KeysError::Exists { .. })
        ));
        assert!(matches!(
            team.add_host("Robot One", DAY),
            Err(KeysError::Name { .. })
        ));
        assert!(matches!(team.add_host("../x", DAY), Err(KeysError::Name { .. })));
        let bundle = team.add_host("robot_1", DAY).expect("makes");
        assert!(matches!(
            team.add_host("robot_1", DAY),
            Err(KeysError::Duplicate { .. })
        ));
        team.add_host("base", DAY).expect("makes");
        assert!(matches!(team.revoke("nobody"), Err(KeysError::Unknown { .. })));
        team.revoke("robot_1").expect("revokes");
        let error = Bundle::load(&bundle, "robot_1")
            .expect_err("is revoked")
            .to_string();
        assert!(error.contains("revoked"), "{error}");
        // The new certificate is valid, the old one stays revoked.
        let bundle = team.add_host("robot_1", DAY).expect("makes again");
        Bundle::load(&bundle, "robot_1").expect("counts");
        let ledger = Team::open(&path).expect("opens").ledger().expect("reads");
        let states: Vec<_> = ledger
            .entries
            .iter()
            .map(|e| (e.host.as_str(), e.revoked.is_some()))
            .collect();
        assert_eq!(states, [("robot_1", true), ("base", false), ("robot_1", false)]);
    }
}
