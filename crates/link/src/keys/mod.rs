//! Who belongs to the team: certificates made, kept, revoked and read.
//!
//! A [`Team`] is a folder that its owner keeps, with the key that signs the team's certificates. Each host
//! gets a [`Bundle`] from it, a folder with its own key and certificate, the team's certificate, the list of
//! revoked certificates, and the knock: a secret that all hosts of the team share, without which a link does
//! not even answer. Certificates are X.509 with Ed25519 keys; a host's name is its one DNS name.

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
/// What all hosts of the team share and nobody else knows; mode 0600.
pub const KNOCK: &str = "knock.key";
/// The certificates that count no longer (an X.509 CRL); link daemons notice when it changes.
pub const REVOKED: &str = "revoked.pem";
/// All certificates that the team ever made, as text; stays with the team's owner.
pub const LEDGER: &str = "hosts.list";

/// Why keys cannot be made or used.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// A secret that others may read.
    #[error("{path} has mode {mode:04o}, so others may read the secret in it: chmod 600 {path}")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file that is not what it should be.
    #[error("{path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and its mend.
        problem: String,
    },
    /// A team that is there already.
    #[error("{path} is there already: choose another folder, or keep this team")]
    Exists {
        /// Its folder.
        path: PathBuf,
    },
    /// A name that cannot stand in a certificate.
    #[error(
        "the name '{name}' cannot stand in a certificate: use 1 to 63 lowercase letters, digits, '-' and '_', \
         starting with a letter or digit"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A host that the team does not have.
    #[error("the team has no valid certificate for a host '{host}'; `ropewalk keys list` shows those it has")]
    Unknown {
        /// The host.
        host: String,
    },
    /// A host that has a valid certificate.
    #[error("'{host}' has a certificate already; revoke it first if its key is lost")]
    Duplicate {
        /// The host.
        host: String,
    },
    /// A certificate that does not count, or not for this host.
    #[error("{path}: {problem}")]
    Certificate {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong, and its mend.
        problem: String,
    },
    /// The cryptography's library failed.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// Whether a host may be called so: a DNS label, since certificates name hosts by DNS names.
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
