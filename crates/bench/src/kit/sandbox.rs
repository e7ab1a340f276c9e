//! The files of peers, and their removal.

use super::error::Error;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A temporary folder for everything that peers write, and the memory files of one experiment. Dropping it removes the
/// peers' leftovers.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    shm: PathBuf,
    before: BTreeSet<PathBuf>,
    seen: Mutex<BTreeSet<PathBuf>>,
}

impl Sandbox {
    pub(crate) fn new() -> Result<Self, Error> {
        // Short: paths of unix sockets are limited to 108 bytes.
        let folder = tempfile::Builder::new().prefix("rwb-").tempdir();
        let folder = folder.map_err(|source| Error::File {
            path: std::env::temp_dir(),
            source,
        })?;
        for name in ["bus", "tmp", "ros"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).map_err(|source| Error::File { path, source })?;
        }
        let shm = PathBuf::from("/dev/shm");
        Ok(Sandbox {
            before: files(&shm),
            folder,
            shm,
            seen: Mutex::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the environment of a peer: files go into the folder, it does not contact other hosts, and no variable of
    /// the user changes the measurement.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let inside = |name| self.folder.path().join(name);
        command.current_dir(self.folder.path());
        command
            .env("TMPDIR", inside("tmp"))
            .env("XDG_RUNTIME_DIR", inside("tmp"));
        command
            .env("ROPEWALK_RUNTIME_DIR", inside("bus"))
            .env_remove("ROPEWALK_DOMAIN");
        command
            .env("ROS_HOME", inside("ros"))
            .env("ROS_LOG_DIR", inside("ros"))
            .env("ROS_IP", "127.0.0.1");
        command.env_remove("ROS_HOSTNAME").env_remove("ROS_NAMESPACE");
        command.env_remove("RUST_LOG");
    }

    /// Records which memory files process `pid` has mapped or open.
    pub(crate) fn look(&self, pid: Pid) {
        let mut found = BTreeSet::new();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        // The path is the sixth field and may contain spaces.
        let shm = self.shm.to_string_lossy();
        for line in maps.lines().filter_map(|l| Some(&l[l.find(&*shm)?..])) {
            found.insert(PathBuf::from(line));
        }
        for open in fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            found.extend(
                fs::read_link(open.path())
                    .ok()
                    .filter(|p| p.starts_with(&self.shm)),
            );
        }
        found.retain(|path| path.parent() == Some(&self.shm) && !self.before.contains(path));
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut found);
    }

    /// Removes the memory files that peers used and left. Files of other programs, and files that existed before, stay.
    pub(crate) fn sweep(&self) {
        for path in std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner)) {
            if fs::remove_file(&path).is_ok() {
                tracing::info!(path = %path.display(), "removed what a peer left behind");
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.sweep();
    }
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_in_use_is_removed() {
        let (ours, others) = (
            format!("/dev/shm/rwb-a{}", std::process::id()),
            format!("/dev/shm/rwb-b{}", std::process::id()),
        );
        let sandbox = Sandbox::new().expect("a folder");
        let kept = fs::File::create(&ours).expect("a file");
        fs::write(&others, "x").expect("a file");
        sandbox.look(rustix::process::getpid());
        sandbox.sweep();
        let (ours_left, others_left) = (Path::new(&ours).exists(), Path::new(&others).exists());
        let _ = fs::remove_file(&others);
        drop(kept);
        assert!(!ours_left && others_left);
        let folder = sandbox.path().to_owned();
        drop(sandbox);
        assert!(!folder.exists());
    }
}
