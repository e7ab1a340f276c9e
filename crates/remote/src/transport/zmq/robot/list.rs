//! The file with the list of allowed keys, which is read again when it changes.

use super::super::keys::AllowedKeys;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the file is checked for changes.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// A file's identity and content, as far as its metadata show: device, inode, bytes, and time of change.
type Version = (u64, u64, u64, (i64, i64));

pub(super) struct List {
    path: PathBuf,
    version: Option<Version>,
    looked: Option<Instant>,
}

impl List {
    pub(super) fn new(path: PathBuf) -> Self {
        // The file may have changed since it was read: the first check reads it.
        List {
            path,
            version: None,
            looked: None,
        }
    }

    /// Returns the list if a check is due and the file has changed.
    pub(super) fn look(&mut self) -> Option<AllowedKeys> {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        let version = std::fs::metadata(&self.path).ok().map(|m| {
            let changed = (m.ctime(), m.ctime_nsec());
            (m.dev(), m.ino(), m.size(), changed)
        });
        if version == self.version {
            return None;
        }
        self.version = version;
        match AllowedKeys::read(&self.path) {
            Ok(keys) => Some(keys),
            Err(error) => {
                tracing::error!(%error, "cannot read the list of allowed keys: the previous one still applies");
                None
            }
        }
    }
}
