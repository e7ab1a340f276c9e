//! The folder of running labs, and the detection of labs that are gone.

use crate::LabError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The control socket's name in a lab's folder.
pub(crate) const SOCKET: &str = "control.sock";
/// The scenario's name in a lab's folder.
pub(crate) const SCENARIO: &str = "scenario.yaml";
/// The lab's log file.
pub(crate) const LOG: &str = "log";
/// The session that started a lab in the background.
pub(crate) const OWNER: &str = "owner";
/// The `/etc/hosts` of every host of the lab.
pub(crate) const HOSTS: &str = "hosts";

/// The folder in which each running lab has its own.
///
/// A lab's emulator holds a lock on its folder, which the kernel releases when the emulator dies. A folder without a
/// lock is left over from a lab that was killed, and is removed at the next look.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// `ROPEWALK_LAB_DIR`, otherwise `$XDG_RUNTIME_DIR/ropewalk-lab`, otherwise `/tmp/ropewalk-lab-<uid>`; created if
    /// missing.
    pub(crate) fn from_env() -> Result<Self, LabError> {
        let set = |name| std::env::var_os(name).filter(|v| !v.is_empty());
        let root = match (set("ROPEWALK_LAB_DIR"), set("XDG_RUNTIME_DIR")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(xdg)) => Path::new(&xdg).join("ropewalk-lab"),
            (None, None) => PathBuf::from(format!(
                "/tmp/ropewalk-lab-{}",
                rustix::process::getuid().as_raw()
            )),
        };
        Self::at(root)
    }

    /// The labs in `root`.
    pub(crate) fn at(root: PathBuf) -> Result<Self, LabError> {
        let folder = Folder { root };
        let error = |problem: String| folder.error(problem);
        if !folder.root.is_absolute() {
            return Err(error("give an absolute path in ROPEWALK_LAB_DIR".into()));
        }
        // A socket's address holds 107 bytes.
        if folder.root.as_os_str().len() + 34 + SOCKET.len() > 107 {
            return Err(error(
                "the path is too long for sockets in it: set ROPEWALK_LAB_DIR to a shorter one".into(),
            ));
        }
        match std::fs::DirBuilder::new().mode(0o700).create(&folder.root) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error(format!(
                    "cannot be created ({e}): set ROPEWALK_LAB_DIR to a folder that you own"
                )));
            }
            _ => {}
        }
        let meta = std::fs::symlink_metadata(&folder.root).map_err(|e| error(e.to_string()))?;
        let mine = meta.uid() == rustix::process::getuid().as_raw();
        if !meta.is_dir() || !mine || meta.mode() & 0o022 != 0 {
            return Err(error(
                "not a folder that only you can write to: set ROPEWALK_LAB_DIR to one".into(),
            ));
        }
        Ok(folder)
    }

    /// The folder of the lab `name`.
    pub(crate) fn of(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Creates the folder of a new lab, and locks it: the lab lives as long as the descriptor.
    pub(crate) fn create(&self, name: &str) -> Result<OwnedFd, LabError> {
        check_name(name)?;
        let _all = self.lock()?;
        if self.is_running(name) {
            return Err(LabError::Running { name: name.into() });
        }
        let make = || -> io::Result<OwnedFd> {
            remove(&self.of(name))?;
            std::fs::DirBuilder::new().mode(0o700).create(self.of(name))?;
            let lock = open(&self.of(name))?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(lock)
        };
        make().map_err(|e| self.error(e.to_string()))
    }

    /// Names of the running labs, sorted. Removes leftovers of others.
    pub(crate) fn running(&self) -> Result<Vec<String>, LabError> {
        let _all = self.lock()?;
        let entries = std::fs::read_dir(&self.root).map_err(|e| self.error(e.to_string()))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|n| check_name(n).is_ok())
            .collect();
        names.retain(|name| {
            let running = self.is_running(name);
            if !running && let Err(error) = remove(&self.of(name)) {
                tracing::warn!(lab = name, %error, "cannot remove the folder of an ended lab");
            }
            running
        });
        names.sort();
        Ok(names)
    }

    /// Only one process at a time looks for stale folders or creates one.
    fn lock(&self) -> Result<OwnedFd, LabError> {
        let lock = || -> io::Result<OwnedFd> {
            let fd = open(&self.root)?;
            while let Err(e) = rustix::fs::flock(&fd, FlockOperation::LockExclusive) {
                if e != rustix::io::Errno::INTR {
                    return Err(e.into());
                }
            }
            Ok(fd)
        };
        lock().map_err(|e| self.error(e.to_string()))
    }

    fn is_running(&self, name: &str) -> bool {
        open(&self.of(name)).is_ok_and(|fd| {
            rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)
                .is_err_and(|e| e == rustix::io::Errno::WOULDBLOCK)
        })
    }

    fn error(&self, problem: String) -> LabError {
        LabError::Folder {
            path: self.root.clone(),
            problem,
        }
    }
}

/// Identifies this process's session (a terminal, or the session of a service or a CI job) by its leader's number and
/// start time, since numbers are reused. A leader outside this PID namespace has no number here (`docker exec` and
/// `nsenter` into a container): then the ancestor that entered the namespace stands for it. The start is empty if
/// `/proc` shows none.
pub(crate) fn session() -> String {
    let of = |pid: &str| Stat::read(pid).unwrap_or_default();
    let own = of("self");
    let leader = match own.session {
        0 => entered(own, |pid| of(&pid.to_string())),
        leader => of(&leader.to_string()),
    };
    format!("{} {}", leader.pid, leader.start)
}

/// The ancestor of `own` (or `own` itself) whose parent is outside this PID namespace.
fn entered(own: Stat, of: impl Fn(u32) -> Stat) -> Stat {
    let mut stat = own;
    // A parent is older than its child, so there is no cycle unless numbers are reused between two looks.
    for _ in 0..1024 {
        match stat.parent {
            0 => break,
            parent => stat = of(parent),
        }
    }
    stat
}

/// Contents of `/proc/<pid>/stat` (proc_pid_stat(5)).
#[derive(Clone, Debug, Default)]
struct Stat {
    pid: u32,
    parent: u32,
    session: u32,
    start: String,
}

impl Stat {
    fn read(pid: &str) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // Field 2, the name, may contain spaces and brackets.
        let (pid, rest) = text.split_once(' ')?;
        let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Stat {
            pid: pid.parse().ok()?,
            parent: number(4)?,
            session: number(6)?,
            start: (*fields.get(22 - 3)?).to_owned(),
        })
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), LabError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=32).contains(&name.len()) && name.chars().all(good) {
        Ok(())
    } else {
        Err(LabError::Name { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_as_alive_as_its_lock() {
        let temp = std::env::temp_dir().join(format!("rwlab-{}", std::process::id()));
        let folder = Folder::at(temp.clone()).expect("made");
        let lock = folder.create("a").expect("made");
        assert!(matches!(folder.create("a"), Err(LabError::Running { .. })));
        assert_eq!(folder.running().expect("read"), ["a"]);
        std::fs::write(folder.of("a").join(LOG), "x").expect("written");
        drop(lock);
        assert!(folder.running().expect("read").is_empty());
        assert!(!folder.of("a").exists(), "what is left of a dead lab goes");
        let _again = folder.create("a").expect("the name is free again");
        for name in ["", "..", "a/b", "x".repeat(33).as_str()] {
            assert!(
                matches!(folder.create(name), Err(LabError::Name { .. })),
                "{name}"
            );
        }
        std::fs::remove_dir_all(temp).expect("removed");
    }

    #[test]
    fn a_session_is_its_leader_and_when_that_started() {
        let session = session();
        let (leader, start) = session.split_once(' ').expect("two words");
        assert!(leader.parse::<u32>().is_ok_and(|pid| pid > 0), "{session}");
        assert!(start.parse::<u64>().is_ok(), "{session}");
        assert_eq!(session, super::session());
        // Another session has another leader.
        let other = std::process::Command::new("setsid")
            .args(["-w", "sh", "-c", "ps -o sid= $$"])
            .output();
        if let Some(other) = other.ok().filter(|o| o.status.success()) {
            assert_ne!(String::from_utf8_lossy(&other.stdout).trim(), leader);
        }
    }

    #[test]
    fn a_process_in_a_pid_namespace_is_traced_to_its_leader_outside() {
        let line = |pid, name, parent| {
            let middle = "0 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0";
            Stat::parse(&format!("{pid} ({name}) S {parent} {pid} {middle} {pid}00 1 2 3"))
        };
        let of = |pid| line(pid, "a) (b", if pid == 30 { 0 } else { pid - 10 }).expect("parsed");
        let found = entered(of(50), of);
        assert_eq!((found.pid, &*found.start), (30, "3000"));
        for bad in [
            "",
            "7",
            "7 (x",
            "7 (x) S",
            "x (x) S 1 1 1 1",
            "7 (x) S 1 7 0 0 -1",
        ] {
            assert!(Stat::parse(bad).is_none(), "{bad:?}");
        }
    }
}
