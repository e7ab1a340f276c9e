//! Locks for roles that only one process of a host may have: one daemon owns a radio, one bridge connects a
//! domain to a bus.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most bytes read of a holder's description.
const MAX_HOLDER: u64 = 256;
/// Attempts to take a lock if its last holder removes the file at the same moment.
const ATTEMPTS: usize = 8;

/// Why a lock was not granted.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it; with that process's description.
    Held(String),
    /// The file cannot be used.
    File(PathBuf, std::io::Error),
}

/// A file that only one process can lock. The lock ends with the process, however the process ends.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Locks `what` of a kind in `folder`. Others that try see `holder`. Does not block.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(folder: &Path, kind: &str, what: &str, holder: &str) -> Result<Lock, LockError> {
        let path = folder.join(format!("{kind}-{}.lock", plain(what)));
        let fail = |e| LockError::File(path.clone(), e);
        for _ in 0..ATTEMPTS {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
                .open(&path)
                .map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut text = Vec::new();
                    let _ = file.take(MAX_HOLDER).read_to_end(&mut text);
                    let holder = String::from_utf8_lossy(&text);
                    return Err(LockError::Held(
                        stats::text::printable(holder.trim()).into_owned(),
                    ));
                }
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
            // Its last holder may have removed it between this process's open and lock.
            let named = std::fs::symlink_metadata(&path).map(|m| (m.dev(), m.ino()));
            let ours = file.metadata().map_err(fail)?;
            if named.is_ok_and(|n| n == (ours.dev(), ours.ino())) {
                // If a group may write to the folder, a member could place here a hard link to another file of this
                // user, or a file of the member's own that the member reads.
                if !ours.is_file() || ours.nlink() != 1 || ours.uid() != rustix::process::geteuid().as_raw() {
                    return Err(fail(std::io::Error::other(
                        "this user did not create this lock: remove it",
                    )));
                }
                file.set_len(0).map_err(fail)?;
                file.write_all(holder.as_bytes()).map_err(fail)?;
                return Ok(Lock { path, _file: file });
            }
        }
        Err(LockError::Held("a process that is starting".into()))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Remove it while it is still locked, so that it cannot be another process's.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Converts a name for use in a file name or a topic.
pub fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Lock::take(folder.path(), "link", "robot-1", "pid 7").expect("is free");
        match Lock::take(folder.path(), "link", "robot-1", "pid 8") {
            Err(LockError::Held(holder)) => assert_eq!(holder, "pid 7"),
            other => panic!("{other:?}"),
        }
        let other = Lock::take(folder.path(), "link", "base", "pid 7").expect("is another");
        drop((first, other));
        assert_eq!(std::fs::read_dir(folder.path()).expect("reads").count(), 0);
        // The file of a killed process is not a lock.
        std::fs::write(folder.path().join("link-robot_1.lock"), "pid 9 and more").expect("writes");
        let again = Lock::take(folder.path(), "link", "robot-1", "pid 8").expect("is free");
        let text = std::fs::read_to_string(folder.path().join("link-robot_1.lock")).expect("reads");
        assert_eq!(text, "pid 8");
        drop(again);
    }

    #[test]
    fn another_name_of_a_file_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "keep me").expect("writes");
        std::fs::hard_link(&precious, folder.path().join("link-a.lock")).expect("links");
        assert!(matches!(
            Lock::take(folder.path(), "link", "a", "pid 7"),
            Err(LockError::File(..))
        ));
        assert_eq!(std::fs::read_to_string(precious).expect("reads"), "keep me");
    }

    #[test]
    fn a_folder_or_a_link_in_its_place_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("link-a.lock")).expect("makes");
        std::os::unix::fs::symlink("/dev/null", folder.path().join("link-b.lock")).expect("makes");
        for name in ["a", "b"] {
            match Lock::take(folder.path(), "link", name, "") {
                Err(LockError::File(path, _)) => assert!(path.ends_with(format!("link-{name}.lock"))),
                other => panic!("{other:?}"),
            }
        }
    }
}
