//! Membership of the team: creates, stores, revokes and reads certificates.
//!
//! A [`Team`] is a folder that its owner keeps, with the key that signs the team's certificates. From it,
//! each host gets a [`Bundle`]: a folder with its own key and certificate, the team's certificate, the list
//! of revoked certificates, and the admission secret (`ADMISSION_SECRET`) that all hosts of the team share, without
//! which a link does not even answer. Certificates are X.509 with Ed25519 keys; a host's name is its only DNS
//! name (decision 072).

mod bundle;
mod files;
mod ledger;
mod team;

pub use bundle::{About, Bundle};
pub(crate) use bundle::{Stamps, host_of, names};
pub use ledger::{Entry, Ledger, LedgerError};
pub use team::{HOSTS_FOLDER, Team};

use std::path::PathBuf;

/// The host's private key in its bundle; mode 0600.
pub const HOST_KEY: &str = "host.key";
/// The host's certificate in its bundle.
pub const HOST_CERTIFICATE: &str = "host.pem";
/// The team's certificate.
pub const TEAM_CERTIFICATE: &str = "team.pem";
/// The team's private key, which stays with the team's owner; mode 0600.
pub const TEAM_KEY: &str = "team.key";
/// The secret that the hosts of the team share to admit each other's connection attempts; mode 0600.
pub const ADMISSION_SECRET: &str = "admission.key";
/// The revoked certificates (an X.509 CRL). Link daemons notice when it changes.
pub const REVOKED: &str = "revoked.pem";
/// All certificates that the team ever made, as text. It stays with the team's owner.
pub const LEDGER: &str = "hosts.list";

/// Why keys cannot be created or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {path}: {source}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Others can read a secret.
    #[error("{path} has mode {mode:04o}, so others can read the secret in it: chmod 600 {path}")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file with unexpected content.
    #[error("{path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        problem: String,
    },
    /// The team exists already.
    #[error("{path} exists already: choose another folder, or keep this team")]
    Exists {
        /// Its folder.
        path: PathBuf,
    },
    /// A name that a certificate cannot contain.
    #[error(
        "a certificate cannot contain the name '{name}': use 1 to 63 lowercase letters, digits, '-' and '_', \
         starting with a letter or digit"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The team has no such host.
    #[error("the team has no valid certificate for a host '{host}': `ropewalk keys list` shows its hosts")]
    Unknown {
        /// The host.
        host: String,
    },
    /// The host has a valid certificate already.
    #[error("'{host}' has a certificate already: if its key is lost, revoke it first")]
    Duplicate {
        /// The host.
        host: String,
    },
    /// A certificate that is not valid, or not for this host.
    #[error("{path}: {problem}")]
    Certificate {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        problem: String,
    },
    /// The cryptography library failed.
    #[error("cannot create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

/// Checks a host's name: it must be a DNS label, since certificates name hosts by DNS names.
///
/// # Errors
/// [`KeysError::Name`] otherwise.
pub fn check_name(name: &str) -> Result<(), KeysError> {
    let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = (1..=63).contains(&name.len())
        && name.bytes().all(|c| alphanumeric(c) || c == b'-' || c == b'_')
        && name.bytes().next().is_some_and(alphanumeric)
        && !name.ends_with('-');
    if good {
        Ok(())
    } else {
        Err(KeysError::Name { name: name.into() })
    }
}
