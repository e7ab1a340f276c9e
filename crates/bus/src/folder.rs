//! The runtime folder: one socket per endpoint, named so that a scan finds those of a topic.
//!
//! A name is `<hash of domain and topic>.<p or s>.<pid>.<identity>`; topics do not fit into a socket's address,
//! so they are hashed, and the handshake compares them in full. A socket appears under its name only when it
//! already accepts connections: one that refuses them belongs to the dead, and whoever sees it removes it.
//!
//! The pid in a name is that of its maker's PID namespace. Another container that shares the folder cannot look it
//! up, so it says at most that somebody seems to be alive, never that somebody is dead.

use crate::bus::OpenError;
use crate::config::BusConfig;
use crate::frame::Role;
use crate::sys::socket::{Listener, MAX_PATH, Socket};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest name: two 16-digit numbers, a letter, a pid, three dots; a dot more while it is bound.
const MAX_FILE_NAME: usize = 16 + 1 + 1 + 1 + 10 + 1 + 16 + 1;

/// The runtime folder of a bus, checked.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    dir: PathBuf,
    /// The folder itself, where its path does not fit into a socket's address.
    handle: Option<Arc<OwnedFd>>,
    domain: u32,
    group: Option<u32>,
}

/// Endpoints by their topics' hashes.
pub(crate) type ByTopic = BTreeMap<u64, Vec<(Name, PathBuf)>>;

/// The name of an endpoint's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) topic_hash: u64,
    pub(crate) role: Role,
    pub(crate) pid: u32,
    pub(crate) id: u64,
}

/// A socket in the folder.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) path: PathBuf,
    /// It has not its name yet: it is being bound.
    pub(crate) hidden: bool,
}

/// The socket file of an endpoint of this process; removed with it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    birth: crate::sys::fork::Birth,
}

impl Folder {
    /// Makes the folder if it is missing, and checks that nobody else can put sockets into it.
    pub(crate) fn open(config: &BusConfig) -> Result<Folder, OpenError> {
        let dir = config.runtime_dir.clone();
        let fail = |source| OpenError::Dir {
            dir: config.runtime_dir.clone(),
            source,
        };
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => {
                if let Some(gid) = config.group {
                    std::os::unix::fs::chown(&dir, None, Some(gid)).map_err(fail)?;
                    fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).map_err(fail)?;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(fail(e)),
        }
        let meta = fs::symlink_metadata(&dir).map_err(fail)?;
        if !meta.is_dir() {
            return Err(OpenError::NotADir { dir });
        }
        let uid = rustix::process::geteuid().as_raw();
        let of_group = config.group == Some(meta.gid());
        if meta.uid() != uid && !of_group {
            return Err(OpenError::Owner {
                dir,
                owner: meta.uid(),
                uid,
                group: meta.gid(),
            });
        }
        let mode = meta.mode() & 0o777;
        if mode & if of_group { 0o002 } else { 0o022 } != 0 {
            return Err(OpenError::Mode { dir, mode });
        }
        let max = MAX_PATH - MAX_FILE_NAME - 1;
        let len = dir.as_os_str().len();
        let handle = if len > max {
            match reachable(&dir, &meta) {
                Ok(Some(handle)) => Some(Arc::new(handle)),
                Ok(None) => return Err(OpenError::PathTooLong { dir, len, max }),
                Err(e) => return Err(fail(e)),
            }
        } else {
            None
        };
        Ok(Folder {
            dir,
            handle,
            domain: config.domain,
            group: config.group,
        })
    }

    /// Binds and listens, and only then shows the socket under its name.
    pub(crate) fn bind(&self, topic: &str, role: Role, id: u64) -> io::Result<(Listener, SocketFile)> {
        let name = Name {
            topic_hash: self.topic_hash(topic),
            role,
            pid: std::process::id(),
            id,
        };
        // A sweep in another PID namespace takes a socket that does not listen yet for a dead one's.
        let attempts = (0..3).map(|_| self.try_bind(&name));
        let mut result = Err(io::ErrorKind::NotFound.into());
        for attempt in attempts {
            result = attempt;
            if !matches!(&result, Err(e) if e.kind() == io::ErrorKind::NotFound) {
                break;
            }
        }
        result
    }

    fn try_bind(&self, name: &Name) -> io::Result<(Listener, SocketFile)> {
        let birth = crate::sys::fork::Birth::here()?;
        let path = self.dir.join(name.to_string());
        let mut hidden = SocketFile {
            path: self.dir.join(format!(".{name}")),
            birth,
        };
        let listener = Listener::bind(&self.address(&hidden.path))?;
        crate::hooks::step("bound");
        fs::set_permissions(
            &hidden.path,
            fs::Permissions::from_mode(if self.group.is_some() { 0o660 } else { 0o600 }),
        )?;
        if let Some(gid) = self.group {
            std::os::unix::fs::chown(&hidden.path, None, Some(gid))?;
        }
        fs::rename(&hidden.path, &path)?;
        // There is nothing to remove under that name any more; its text is freed.
        hidden.path = PathBuf::new();
        std::mem::forget(hidden);
        crate::hooks::step("shown");
        Ok((listener, SocketFile { path, birth }))
    }

    /// All endpoints by their topics' hashes; they may be dead.
    pub(crate) fn by_topic(&self) -> io::Result<ByTopic> {
        let mut topics = ByTopic::new();
        for (name, path) in self.all()? {
            topics.entry(name.topic_hash).or_default().push((name, path));
        }
        Ok(topics)
    }

    /// Of these, the endpoints of `topic` in `role`.
    pub(crate) fn peers<'a>(
        &self,
        all: &'a ByTopic,
        topic: &str,
        role: Role,
    ) -> impl Iterator<Item = &'a (Name, PathBuf)> + use<'a> {
        let of_topic = all.get(&self.topic_hash(topic)).into_iter().flatten();
        of_topic.filter(move |(name, _)| name.role == role)
    }

    /// All endpoints of all domains, by their names; they may be dead.
    pub(crate) fn all(&self) -> io::Result<Vec<(Name, PathBuf)>> {
        let shown = self.entries()?.into_iter().filter(|e| !e.hidden);
        let mut found: Vec<_> = shown.map(|e| (e.name, e.path)).collect();
        found.sort_by_key(|(n, _)| n.id);
        Ok(found)
    }

    /// All sockets, of all domains.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let file = entry.file_name();
            let Some(text) = file.to_str() else { continue };
            let (hidden, text) = text.strip_prefix('.').map_or((false, text), |t| (true, t));
            if let Some(name) = Name::parse(text) {
                let path = entry.path();
                found.push(Entry { name, path, hidden });
            }
        }
        Ok(found)
    }

    /// Removes the sockets of processes that are gone: those that refuse a connection. Leaves those alone that would
    /// only be disturbed.
    pub(crate) fn sweep(&self) {
        for entry in self.entries().into_iter().flatten() {
            if entry.may_be_dead() {
                let _ = self.connect(&entry.path);
            }
        }
    }

    /// Connects to an endpoint; removes its socket if nobody listens there any more ([`is_dead`] of the error).
    pub(crate) fn connect(&self, path: &Path) -> io::Result<Socket> {
        let connect = || -> io::Result<Socket> {
            let socket = Socket::connect(&self.address(path))?;
            // A fork of the dead may keep the socket, and will never answer.
            match socket.peer()?.pid {
                // It lives in another PID namespace.
                0 => Ok(socket),
                pid if crate::sys::process::is_visible(pid) => Ok(socket),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        };
        connect().inspect_err(|e| {
            if is_dead(e) {
                let _ = fs::remove_file(path);
            }
        })
    }

    /// What to call a file of this folder in a socket's address.
    fn address(&self, path: &Path) -> PathBuf {
        match (&self.handle, path.file_name()) {
            (Some(handle), Some(name)) => through(handle).join(name),
            _ => path.to_owned(),
        }
    }

    /// FNV-1a. Two topics with one hash cost a refused handshake, no more.
    fn topic_hash(&self, topic: &str) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let domain = self.domain.to_le_bytes();
        domain
            .into_iter()
            .chain(topic.bytes())
            .fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// Whether [`Folder::connect`] found nobody behind the socket, which it then removed.
pub(crate) fn is_dead(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The folder behind a descriptor, by a path that is short.
fn through(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Opens a folder that was checked, to reach it by a short path; `None` if there is no `/proc` for that.
fn reachable(dir: &Path, checked: &fs::Metadata) -> io::Result<Option<OwnedFd>> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(dir, flags, Mode::empty())?;
    let Ok(seen) = fs::metadata(through(&handle)) else {
        return Ok(None);
    };
    if (seen.dev(), seen.ino()) != (checked.dev(), checked.ino()) {
        return Err(io::Error::other("it was replaced while it was opened"));
    }
    Ok(Some(handle))
}

impl Entry {
    /// Whether its process cannot be seen. That of this process may be of another PID namespace: in a container
    /// everybody is number 1.
    pub(crate) fn may_be_dead(&self) -> bool {
        let pid = self.name.pid;
        let visible = i32::try_from(pid).is_ok_and(crate::sys::process::is_visible);
        if visible && pid != std::process::id() {
            return false;
        }
        // A socket refuses between binding and listening, but not for long.
        let age = || {
            fs::symlink_metadata(&self.path)
                .ok()?
                .modified()
                .ok()?
                .elapsed()
                .ok()
        };
        !self.hidden || !visible || age().is_some_and(|age| age > Duration::from_secs(10))
    }
}

impl Name {
    fn parse(text: &str) -> Option<Name> {
        let mut fields = text.split('.');
        let hex = |t: &str| (t.len() == 16).then(|| u64::from_str_radix(t, 16).ok())?;
        let topic_hash = hex(fields.next()?)?;
        let role = match fields.next()? {
            "p" => Role::Publisher,
            "s" => Role::Subscriber,
            _ => return None,
        };
        let pid = fields.next()?.parse().ok()?;
        let id = hex(fields.next()?)?;
        fields.next().is_none().then_some(Name {
            topic_hash,
            role,
            pid,
            id,
        })
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let role = role_letter(self.role);
        write!(f, "{:016x}.{role}.{}.{:016x}", self.topic_hash, self.pid, self.id)
    }
}

fn role_letter(role: Role) -> char {
    if role == Role::Publisher { 'p' } else { 's' }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.birth.is_foreign() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(dir: &Path) -> Folder {
        Folder::open(&BusConfig::new(dir)).unwrap()
    }

    #[test]
    fn names_survive_and_others_are_ignored() {
        let name = Name {
            topic_hash: 7,
            role: Role::Subscriber,
            pid: 4_000_000_000,
            id: u64::MAX,
        };
        assert_eq!(Name::parse(&name.to_string()), Some(name.clone()));
        assert!(name.to_string().len() < MAX_FILE_NAME);
        for bad in [
            "",
            "x",
            "0.p.1.2",
            &format!("{name}.x"),
            &format!(".{name}"),
            "README",
        ] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_a_folder_of_our_own_is_used() {
        let root = tempfile::tempdir().unwrap();
        let open = |dir: &Path| Folder::open(&BusConfig::new(dir));
        let made = root.path().join("made");
        open(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&made, &link).unwrap();
        assert!(matches!(open(&link), Err(OpenError::NotADir { .. })));

        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(open(&made), Err(OpenError::Mode { mode: 0o777, .. })));

        assert!(
            matches!(open(&root.path().join("a/b")), Err(OpenError::Dir { .. })),
            "its parent is missing"
        );

        if rustix::process::geteuid().is_root() {
            let foreign = root.path().join("foreign");
            open(&foreign).unwrap();
            std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
            assert!(matches!(
                open(&foreign),
                Err(OpenError::Owner { owner: 65534, .. })
            ));
        }
    }

    #[test]
    fn a_socket_of_the_dead_is_removed_and_a_live_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let (listener, file) = folder.bind("/a", Role::Publisher, 1).unwrap();
        let (dead, dead_file) = folder.bind("/a", Role::Publisher, 2).unwrap();
        std::mem::forget(dead_file);
        drop(dead);
        let all = folder.by_topic().unwrap();
        assert_eq!(folder.peers(&all, "/a", Role::Publisher).count(), 2);
        assert_eq!(folder.peers(&all, "/b", Role::Publisher).count(), 0);
        assert_eq!(folder.peers(&all, "/a", Role::Subscriber).count(), 0);
        let (dead_name, dead_path) = folder.all().unwrap().pop().unwrap();
        // Somebody who lives has this pid, in this namespace.
        let parent = Name {
            pid: std::os::unix::process::parent_id(),
            ..dead_name
        };
        let others = dir.path().join(parent.to_string());
        fs::rename(&dead_path, &others).unwrap();
        folder.sweep();
        assert_eq!(folder.all().unwrap().len(), 2, "its process is visible");
        fs::rename(&others, &dead_path).unwrap();
        folder.sweep();
        assert_eq!(folder.all().unwrap().len(), 1);
        drop((listener, file));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn sockets_in_a_folder_with_a_long_path_are_bound_found_and_swept() {
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("x".repeat(200)).join("y".repeat(100));
        assert!(long.as_os_str().len() > 300);
        fs::create_dir(long.parent().unwrap()).unwrap();
        let folder = folder(&long);
        let (_listener, _file) = folder.bind("/a", Role::Publisher, 1).unwrap();
        let (dead, dead_file) = folder.bind("/a", Role::Publisher, u64::MAX).unwrap();
        std::mem::forget(dead_file);
        drop(dead);
        let (name, path) = folder.all().unwrap().swap_remove(0);
        assert_eq!(name.id, 1);
        folder.connect(&path).unwrap();
        folder.sweep();
        assert_eq!(folder.all().unwrap().len(), 1);

        // What was checked is what is used.
        let meta = fs::symlink_metadata(&long).unwrap();
        fs::rename(&long, root.path().join("elsewhere")).unwrap();
        fs::create_dir(&long).unwrap();
        assert!(reachable(&long, &meta).is_err());
    }
}
