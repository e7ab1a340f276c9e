//! The runtime folder: one socket per endpoint, named so that a scan finds the endpoints of a topic.
//!
//! A name is `<hash of domain and topic>.<p or s>.<pid>.<identity>`. Topics do not fit into a socket's
//! address, so the name contains a hash, and the handshake compares the full topic. A socket appears under
//! its name only once it accepts connections. A socket that refuses them belongs to a dead process, and any
//! process that finds it removes it.
//!
//! The pid in a name belongs to the PID namespace of the process that created it. Another container that
//! shares the folder cannot look the pid up, so from there a process can at most appear alive, never dead.
//!
//! If a group may write to the folder, any member can replace a file that another has just created with a
//! symbolic link. So nothing in the folder is changed or followed by its path. A socket is bound and given
//! its mode and its group in a [`StagingDir`], and then renamed. A peer's socket is opened without following links
//! before connecting to it (decision 038).

mod staging;

use crate::bus::OpenError;
use crate::config::BusConfig;
use crate::frame::Role;
use crate::sys::socket::{Listener, MAX_PATH, Socket};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use staging::StagingDir;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The longest name: two 16-digit numbers, one character for the role, a pid and three dots; one more dot
/// while it is being bound.
const MAX_FILE_NAME: usize = 16 + 1 + 1 + 1 + 10 + 1 + 16 + 1;
/// The mode of a folder that a group shares: new sockets get its group (setgid), and members cannot remove or
/// rename each other's sockets (sticky).
pub(crate) const GROUP_MODE: u32 = 0o3770;
/// The maximum number of sockets to look at. A member of the group could fill the folder without end.
const MAX_ENTRIES: usize = 65_536;
/// Beyond this number, owners are checked: another user's processes together get at most half.
const MANY: usize = 4096;
/// How long a socket may take between binding and listening. It refuses connections in that time.
const BINDING: Duration = Duration::from_secs(10);

/// The runtime folder of a bus. It is checked on every use.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    dir: PathBuf,
    /// Whether sockets are reached through descriptors, because a group may write to the folder or its path
    /// does not fit into a socket's address.
    by_descriptor: bool,
    domain: u32,
    group: Option<u32>,
}

/// Endpoints by the hash of their topic.
pub(crate) type ByTopic = BTreeMap<u64, Vec<Name>>;

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
    /// Whether it does not have its final name yet because it is being bound.
    pub(crate) hidden: bool,
    /// When it was bound.
    made: Option<SystemTime>,
}

/// The socket file of an endpoint of this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    folder: Folder,
    name: Name,
    birth: crate::sys::fork::Birth,
}

/// Why no connection was made.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Nobody listens there any more. Its socket was removed, unless only its user and the folder's owner may
    /// do that.
    Dead {
        removed: bool,
    },
    Io(io::Error),
}

impl Folder {
    /// Creates the folder if it is missing, and checks that nobody else can put sockets into it.
    pub(crate) fn open(config: &BusConfig) -> Result<Folder, OpenError> {
        let dir = config.runtime_dir.clone();
        let len = dir.as_os_str().len();
        let max = MAX_PATH - MAX_FILE_NAME - 1;
        let folder = Folder {
            by_descriptor: config.group.is_some() || len > max,
            dir,
            domain: config.domain,
            group: config.group,
        };
        let fail = |source| OpenError::Dir {
            dir: config.runtime_dir.clone(),
            source,
        };
        match fs::DirBuilder::new().mode(0o700).create(&folder.dir) {
            Ok(()) => {
                if let Some(gid) = config.group {
                    share(&folder.open_dir().map_err(fail)?, gid).map_err(fail)?;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(fail(e)),
        }
        let inside = folder.enter()?;
        if folder.by_descriptor && fs::metadata(through(&inside)).is_err() {
            return Err(match config.group {
                Some(_) => OpenError::NoProc { dir: folder.dir },
                None => OpenError::PathTooLong {
                    dir: folder.dir,
                    len,
                    max,
                },
            });
        }
        let mode = rustix::fs::fstat(&inside).map_err(|e| fail(e.into()))?.st_mode & 0o7777;
        if config.group.is_some() && mode & 0o020 != 0 && mode & 0o3000 != 0o3000 {
            tracing::warn!(
                dir = %folder.dir.display(),
                "members of the group can remove each other's sockets (mode {mode:04o}): run chmod {GROUP_MODE:o} on the folder"
            );
        }
        Ok(folder)
    }

    /// Opens the folder and checks it again, since it may have been replaced.
    fn enter(&self) -> Result<OwnedFd, OpenError> {
        let dir = || self.dir.clone();
        let fail = |source| OpenError::Dir { dir: dir(), source };
        let uid = rustix::process::geteuid().as_raw();
        let foreign = |meta: &Stat| {
            let is_ours = meta.st_uid == uid || self.group == Some(meta.st_gid);
            (!is_ours).then(|| OpenError::Owner {
                dir: dir(),
                owner: meta.st_uid,
                uid,
                group: meta.st_gid,
            })
        };
        let inside = self.open_dir().map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP | libc::ENOTDIR) => OpenError::NotADir { dir: dir() },
            // A wrong owner explains more than the failure to open the folder.
            _ => {
                let meta = rustix::fs::statat(rustix::fs::CWD, &self.dir, AtFlags::SYMLINK_NOFOLLOW);
                meta.ok().and_then(|m| foreign(&m)).unwrap_or_else(|| fail(e))
            }
        })?;
        let meta = rustix::fs::fstat(&inside).map_err(|e| fail(e.into()))?;
        if let Some(error) = foreign(&meta) {
            return Err(error);
        }
        let of_group = self.group == Some(meta.st_gid);
        let mode = meta.st_mode & 0o777;
        if mode & if of_group { 0o002 } else { 0o022 } != 0 {
            return Err(OpenError::Mode { dir: dir(), mode });
        }
        Ok(inside)
    }

    fn open_dir(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(&self.dir, DIRECTORY, Mode::empty())?)
    }

    /// [`Folder::enter`] for callers that can only try again later.
    fn inside(&self) -> io::Result<OwnedFd> {
        self.enter().map_err(|e| match e {
            OpenError::Dir { source, .. } => source,
            other => io::Error::other(other),
        })
    }

    /// Binds and listens, and only then makes the socket visible under its name.
    pub(crate) fn bind(&self, topic: &str, role: Role, id: u64) -> io::Result<(Listener, SocketFile)> {
        let name = Name {
            topic_hash: self.topic_hash(topic),
            role,
            pid: std::process::id(),
            id,
        };
        // A sweep in another PID namespace mistakes a socket that does not listen yet for a dead one.
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
        let inside = self.inside()?;
        let staging = StagingDir::new(inside.as_fd(), self.group, format!(".{name}"))?;
        let listener = Listener::bind(&self.address(staging.fd(), staging.file()))?;
        crate::hooks::step("bound");
        staging.show(&name.to_string())?;
        crate::hooks::step("shown");
        let file = SocketFile {
            folder: self.clone(),
            name: name.clone(),
            birth,
        };
        Ok((listener, file))
    }

    /// Returns all endpoints by the hash of their topic. They may be dead.
    pub(crate) fn by_topic(&self) -> io::Result<ByTopic> {
        let mut topics = ByTopic::new();
        for name in self.all()? {
            topics.entry(name.topic_hash).or_default().push(name);
        }
        Ok(topics)
    }

    /// Returns those of `names` that are endpoints of `topic` in `role`.
    pub(crate) fn peers<'a>(
        &self,
        all: &'a ByTopic,
        topic: &str,
        role: Role,
    ) -> impl Iterator<Item = &'a Name> + use<'a> {
        let of_topic = all.get(&self.topic_hash(topic)).into_iter().flatten();
        of_topic.filter(move |name| name.role == role)
    }

    /// Returns all endpoints of all domains by name. They may be dead.
    pub(crate) fn all(&self) -> io::Result<Vec<Name>> {
        let shown = self.entries()?.into_iter().filter(|e| !e.hidden);
        let mut found: Vec<_> = shown.map(|e| e.name).collect();
        found.sort_by_key(|n| n.id);
        Ok(found)
    }

    /// Returns all sockets of all domains, at most [`MAX_ENTRIES`].
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let inside = self.inside()?;
        let (mut found, own) = (Vec::new(), rustix::process::geteuid().as_raw());
        let mut of_others: BTreeMap<u32, usize> = BTreeMap::new();
        for file in files(inside.as_fd())? {
            let (hidden, text) = file.strip_prefix('.').map_or((false, &*file), |t| (true, t));
            let Some(name) = Name::parse(text) else { continue };
            if found.len() == MAX_ENTRIES {
                tracing::warn!(dir = %self.dir.display(), "more than {MAX_ENTRIES} sockets: the rest is left out");
                break;
            }
            if found.len() >= MANY
                && let Some(user) = owner(inside.as_fd(), &file).filter(|user| *user != own)
            {
                let has = of_others.entry(user).or_default();
                if *has >= MAX_ENTRIES / 2 {
                    continue;
                }
                *has += 1;
            }
            // The age matters only for hidden ones, and those are few.
            let made = hidden.then(|| made(inside.as_fd(), &file)).flatten();
            found.push(Entry { name, hidden, made });
        }
        Ok(found)
    }

    /// Removes the sockets of dead processes, which refuse connections. Skips sockets that a connection
    /// attempt would only disturb.
    pub(crate) fn sweep(&self) {
        for entry in self.entries().into_iter().flatten() {
            if entry.may_be_dead() {
                let _ = self.connect(&entry.file());
            }
        }
        if let Ok(inside) = self.inside() {
            staging::sweep(inside.as_fd());
        }
    }

    /// Connects to the endpoint whose socket has the name `file`. Removes the socket if nobody listens there
    /// any more.
    pub(crate) fn connect(&self, file: &str) -> Result<Socket, ConnectError> {
        let inside = self.inside().map_err(ConnectError::Io)?;
        let connect = || -> io::Result<Socket> {
            let socket = if self.by_descriptor {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = rustix::fs::openat(&inside, file, flags, Mode::empty())?;
                if kind(&rustix::fs::fstat(&found)?) != FileType::Socket {
                    return Err(io::ErrorKind::NotFound.into());
                }
                Socket::connect(&through(&found))?
            } else {
                Socket::connect(&self.dir.join(file))?
            };
            // A fork of a dead process may keep the socket, and will never answer.
            match socket.peer()?.pid {
                // It lives in another PID namespace.
                0 => Ok(socket),
                pid if crate::sys::process::is_visible(pid) => Ok(socket),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        };
        connect().map_err(|e| match e.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Dead {
                removed: rustix::fs::unlinkat(&inside, file, AtFlags::empty()).is_ok(),
            },
            _ => ConnectError::Io(e),
        })
    }

    /// Returns the path to use in a socket's address for `file` in `inside`, which is this folder or one in
    /// it.
    fn address(&self, inside: BorrowedFd<'_>, file: &str) -> PathBuf {
        if self.by_descriptor {
            through(inside).join(file)
        } else {
            self.dir.join(file)
        }
    }

    /// FNV-1a. A collision of two topics costs only a refused handshake.
    fn topic_hash(&self, topic: &str) -> u64 {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let domain = self.domain.to_le_bytes();
        domain
            .into_iter()
            .chain(topic.bytes())
            .fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// Opens a folder itself, never the target of a symbolic link.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes a new folder accessible to a group.
fn share(inside: &OwnedFd, gid: u32) -> io::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    if rustix::fs::fstat(inside)?.st_uid != uid {
        return Err(io::Error::other("it was replaced while it was created"));
    }
    rustix::fs::fchown(inside, None, Some(rustix::fs::Gid::from_raw(gid)))?;
    Ok(rustix::fs::fchmod(inside, Mode::from_raw_mode(GROUP_MODE))?)
}

/// Returns a short path to the file behind a descriptor. Nobody can redirect it.
fn through(fd: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()))
}

fn kind(meta: &Stat) -> FileType {
    FileType::from_raw_mode(meta.st_mode)
}

/// Returns the names in a folder that are valid UTF-8.
fn files(inside: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = String>> {
    let entries = Dir::read_from(inside)?;
    let names = entries.map_while(Result::ok);
    Ok(names.filter_map(|e| Some(e.file_name().to_str().ok()?.to_owned())))
}

/// Returns the owner of a file in a folder.
fn owner(inside: BorrowedFd<'_>, file: &str) -> Option<u32> {
    let meta = rustix::fs::statat(inside, file, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(meta.st_uid)
}

/// Returns when a file in a folder was last changed.
fn made(inside: BorrowedFd<'_>, file: &str) -> Option<SystemTime> {
    let meta = rustix::fs::statat(inside, file, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(meta.st_mtime).ok()?))
}

/// Whether the file is so old that nobody can still be binding it.
fn is_old(made: Option<SystemTime>) -> bool {
    made.and_then(|m| m.elapsed().ok())
        .is_some_and(|age| age > BINDING)
}

impl Entry {
    /// Returns its file name in the folder.
    pub(crate) fn file(&self) -> String {
        let dot = if self.hidden { "." } else { "" };
        format!("{dot}{}", self.name)
    }

    /// Whether its process is not visible from here. This process's own pid may belong to another PID
    /// namespace: in a container every first process is number 1.
    pub(crate) fn may_be_dead(&self) -> bool {
        let pid = self.name.pid;
        let visible = i32::try_from(pid).is_ok_and(crate::sys::process::is_visible);
        if visible && pid != std::process::id() {
            return false;
        }
        !self.hidden || !visible || is_old(self.made)
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
        fields.next().is_none().then_some(())?;
        let name = Name {
            topic_hash,
            role,
            pid,
            id,
        };
        // A name stands for its file, so each file has exactly one name.
        (name.to_string() == text).then_some(name)
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
        if !self.birth.is_foreign()
            && let Ok(inside) = self.folder.inside()
        {
            let _ = rustix::fs::unlinkat(inside, self.name.to_string(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

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
        let dead_name = folder.all().unwrap().pop().unwrap();
        let dead_path = dir.path().join(dead_name.to_string());
        // A living process has this pid in this namespace.
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
        let name = folder.all().unwrap().swap_remove(0);
        assert_eq!(name.id, 1);
        folder.connect(&name.to_string()).unwrap();
        folder.sweep();
        assert_eq!(folder.all().unwrap().len(), 1);
    }

    #[test]
    fn a_folder_that_is_replaced_is_checked_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("bus");
        let folder = folder(&dir);
        let (_listener, file) = folder.bind("/a", Role::Publisher, 1).unwrap();
        fs::rename(&dir, root.path().join("elsewhere")).unwrap();
        let again = || folder.bind("/a", Role::Publisher, 2).map(drop);
        assert_eq!(again().unwrap_err().kind(), io::ErrorKind::NotFound);
        std::os::unix::fs::symlink(root.path().join("elsewhere"), &dir).unwrap();
        assert!(again().is_err() && folder.all().is_err(), "it is a link now");
        drop(file);
        assert_eq!(fs::read_dir(root.path().join("elsewhere")).unwrap().count(), 1);
        fs::remove_file(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(again().is_err(), "others may write it now");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        again().unwrap();
    }

    fn of_group(dir: &Path) -> Folder {
        let gid = rustix::process::getegid().as_raw();
        Folder::open(&BusConfig::new(dir).with_group(gid)).unwrap()
    }

    #[test]
    fn sockets_of_a_group_get_their_mode_and_group_before_they_are_shown() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("bus");
        let folder = of_group(&dir);
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, GROUP_MODE);
        let (_listener, _file) = folder.bind("/a", Role::Publisher, 1).unwrap();
        let entries: Vec<_> = fs::read_dir(&dir).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1, "nothing else is left: {entries:?}");
        let meta = entries[0].metadata().unwrap();
        assert_eq!(meta.mode() & 0o7777, 0o660);
        assert_eq!(meta.gid(), rustix::process::getegid().as_raw());
        let name = folder.all().unwrap().remove(0);
        folder.connect(&name.to_string()).unwrap();
    }

    #[test]
    fn a_link_in_a_groups_folder_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (dir, other) = (root.path().join("bus"), root.path().join("other"));
        let folder = of_group(&dir);
        let (_listener, _file) = of_group(&other).bind("/a", Role::Publisher, 1).unwrap();
        let name = of_group(&other).all().unwrap().remove(0).to_string();
        std::os::unix::fs::symlink(other.join(&name), dir.join(&name)).unwrap();
        assert_eq!(folder.all().unwrap().len(), 1);
        assert!(
            matches!(folder.connect(&name), Err(ConnectError::Io(e)) if e.kind() == io::ErrorKind::NotFound)
        );
        folder.sweep();
        assert_eq!(folder.all().unwrap().len(), 1, "and not taken for a dead one's");
    }

    #[test]
    fn a_stage_that_a_killed_process_left_goes_when_it_is_old() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("bus");
        let folder = of_group(&dir);
        let inside = folder.inside().unwrap();
        let left = StagingDir::new(inside.as_fd(), folder.group, ".x".into()).unwrap();
        rustix::fs::mknodat(left.fd(), ".x", FileType::Fifo, Mode::RUSR, 0).unwrap();
        let old = rustix::fs::Timespec {
            tv_sec: 1_000_000_000,
            tv_nsec: 0,
        };
        let times = rustix::fs::Timestamps {
            last_access: old,
            last_modification: old,
        };
        let fd = left.fd().try_clone_to_owned().unwrap();
        std::mem::forget(left);
        folder.sweep();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "it may be in use");
        rustix::fs::futimens(fd, &times).unwrap();
        folder.sweep();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    /// Needs root to act as another user.
    #[test]
    fn another_user_who_fills_the_folder_leaves_room_for_others() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = folder(dir.path());
        let name = |pid: u32, id: usize| Name {
            topic_hash: 7,
            role: Role::Publisher,
            pid,
            id: id as u64,
        };
        let is_root = rustix::process::geteuid().is_root();
        for id in 0..MAX_ENTRIES + MANY {
            let path = dir.path().join(name(1, id).to_string());
            std::fs::File::create(&path).unwrap();
            if is_root {
                std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            }
        }
        let ours = dir.path().join(name(2, 0).to_string());
        std::fs::File::create(ours).unwrap();
        let found = folder.entries().unwrap();
        if is_root {
            assert!(found.len() <= MAX_ENTRIES / 2 + MANY + 1, "{}", found.len());
            assert!(found.iter().any(|entry| entry.name.pid == 2));
        } else {
            assert_eq!(found.len(), MAX_ENTRIES);
        }
    }
}
