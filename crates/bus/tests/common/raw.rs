//! The protocol by hand, as `docs/wire/bus.md` describes it, for subscribers that violate it.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

pub const HELLO: u16 = 1;
pub const REFUSE: u16 = 2;
pub const ATTACH: u16 = 3;
pub const WELCOME: u16 = 4;
pub const SEGMENT: u16 = 5;
pub const READY: u16 = 8;

/// Version 1 of the layout; the highest bit means POSIX shared memory.
pub const LAYOUT: u16 = if cfg!(feature = "posix") { 0x8001 } else { 1 };

pub fn frame(kind: u16, body: &[u8]) -> Vec<u8> {
    [&b"RWLK"[..], &3u16.to_le_bytes(), &kind.to_le_bytes(), body].concat()
}

/// A subscriber's hello for the topic of [`super::topic`].
pub fn hello(topic: &str, id: u64) -> Vec<u8> {
    let t = super::topic(topic);
    let text = |t: &str| [&(t.len() as u16).to_le_bytes()[..], t.as_bytes()].concat();
    let body = [
        &LAYOUT.to_le_bytes()[..],
        &[2],
        &0u32.to_le_bytes(),
        &id.to_le_bytes(),
        &text(&t.topic),
        &text(&t.type_name),
        &t.type_hash,
        // No ROS version stated.
        &[0; 49],
        // A subscriber's offer is empty: no node, no history, nothing announced.
        &[0; 11],
    ]
    .concat();
    frame(HELLO, &body)
}

/// The content of an attach.
pub struct Wishes {
    pub depth: u32,
    pub max_held: u32,
    pub max_bytes: u64,
    /// 0: a full queue drops its oldest; 1: its newest.
    pub queue: u8,
    pub history: u32,
    pub after: u64,
}

impl Default for Wishes {
    fn default() -> Self {
        Wishes {
            depth: 1,
            max_held: 1,
            max_bytes: u64::MAX,
            queue: 0,
            history: 0,
            after: 0,
        }
    }
}

pub fn attach(depth: u32, max_held: u32) -> Vec<u8> {
    attach_with(&Wishes {
        depth,
        max_held,
        ..Wishes::default()
    })
}

pub fn attach_with(wishes: &Wishes) -> Vec<u8> {
    frame(
        ATTACH,
        &[
            &wishes.depth.to_le_bytes()[..],
            &wishes.max_held.to_le_bytes(),
            &wishes.max_bytes.to_le_bytes(),
            &[wishes.queue],
            &wishes.history.to_le_bytes(),
            &wishes.after.to_le_bytes(),
        ]
        .concat(),
    )
}

/// The sockets of publishers in a runtime folder.
pub fn publishers(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries
        .map(|e| e.path())
        .filter(|p| p.to_string_lossy().contains(".p."))
        .collect()
}

pub fn connect(path: &Path) -> OwnedFd {
    let fd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    let fd = fd.unwrap();
    super::eventually("the publisher accepts", || {
        rustix::net::connect(&fd, &SocketAddrUnix::new(path).unwrap()).is_ok()
    });
    fd
}

/// Listens at `path` like an endpoint of this process.
pub fn listen(path: &Path) -> OwnedFd {
    let fd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    let fd = fd.unwrap();
    rustix::net::bind(&fd, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&fd, 8).unwrap();
    fd
}

pub fn accept(listener: &OwnedFd) -> OwnedFd {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC).unwrap()
}

pub fn send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).is_ok()
}

/// Returns the next frame: its kind, its body, its descriptors. `None` at the end.
pub fn receive(socket: &OwnedFd) -> Option<(u16, Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = vec![0; 4096];
    let got = loop {
        let iov = &mut [IoSliceMut::new(&mut buffer)];
        match rustix::net::recvmsg(socket, iov, &mut control, RecvFlags::CMSG_CLOEXEC) {
            // The other end left something unread; what it sent can still be read.
            Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::INTR) => {}
            other => break other.unwrap().bytes,
        }
    };
    let mut fds = vec![];
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    let frame = &buffer[..got];
    (got >= 8).then(|| (u16::from_le_bytes([frame[6], frame[7]]), frame[8..].to_vec(), fds))
}

/// The text of a refusal.
pub fn refusal(socket: &OwnedFd) -> Option<String> {
    while let Some((kind, body, _)) = receive(socket) {
        if kind == REFUSE {
            return Some(String::from_utf8_lossy(&body[3..]).into_owned());
        }
    }
    None
}

/// A memfd; the variant `posix` has no sealed memory.
pub fn memfd(len: u64, seals: SealFlags) -> OwnedFd {
    let fd = rustix::fs::memfd_create("attack", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&fd, len).unwrap();
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

pub fn ring_seals() -> SealFlags {
    SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL
}

pub fn payload_seals() -> SealFlags {
    ring_seals() | SealFlags::FUTURE_WRITE
}

pub fn ring_words(depth: u32, max_held: u32) -> usize {
    state_word(depth, depth + max_held)
}

pub fn ring_bytes(depth: u32, max_held: u32) -> u64 {
    (ring_words(depth, max_held) as u64 * 8).next_multiple_of(rustix::param::page_size() as u64)
}

/// Shared memory without a name, by the rules of the built-in variant: the descriptor for the peer, and the
/// creator's permanent mapping.
#[cfg(not(feature = "posix"))]
fn shared(len: u64, seals: SealFlags) -> (OwnedFd, &'static [AtomicU64]) {
    let fd = memfd(len, SealFlags::empty());
    let words = map_words(&fd, len);
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    (fd, words)
}

/// As created by `shm_open`: the peer's descriptor of payload is read-only.
#[cfg(feature = "posix")]
fn shared(len: u64, seals: SealFlags) -> (OwnedFd, &'static [AtomicU64]) {
    let (write, read) = shm(len);
    let words = map_words(&write, len);
    let is_payload = seals.contains(SealFlags::FUTURE_WRITE);
    (if is_payload { read } else { write }, words)
}

/// One object of `shm_open`, opened both for writing and read-only.
#[cfg(feature = "posix")]
pub fn shm(len: u64) -> (OwnedFd, OwnedFd) {
    use rustix::fs::Mode;
    use rustix::shm::{OFlags, open, unlink};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("/attack.{}.{number}", std::process::id());
    let write = open(
        name.as_str(),
        OFlags::CREATE | OFlags::EXCL | OFlags::RDWR,
        Mode::RUSR | Mode::WUSR,
    );
    let read = open(name.as_str(), OFlags::RDONLY, Mode::empty());
    unlink(name.as_str()).unwrap();
    let write = write.unwrap();
    rustix::fs::ftruncate(&write, len).unwrap();
    (write, read.unwrap())
}

/// A ring's memory, like [`shared`].
pub fn ring_memory(len: u64) -> (OwnedFd, &'static [AtomicU64]) {
    shared(len, ring_seals())
}

/// A segment's memory, like [`shared`].
pub fn payload_memory(len: u64) -> (OwnedFd, &'static [AtomicU64]) {
    shared(len, payload_seals())
}

/// What a publisher needs for a doorbell: the reading end, to reopen it, or both ends.
pub fn bell_for_peer<'a>(read: &'a OwnedFd, write: &'a OwnedFd) -> Vec<BorrowedFd<'a>> {
    if cfg!(feature = "posix") {
        vec![read.as_fd(), write.as_fd()]
    } else {
        vec![read.as_fd()]
    }
}

/// Maps a ring writable, permanently.
pub fn map_words(fd: &OwnedFd, bytes: u64) -> &'static [AtomicU64] {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping of the memfd's whole length, never unmapped, of zero-initialized words.
    unsafe {
        let start = mmap(
            std::ptr::null_mut(),
            bytes as usize,
            prot,
            MapFlags::SHARED,
            fd,
            0,
        )
        .unwrap();
        std::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes as usize / 8)
    }
}

/// A subscriber that was accepted and follows no rules.
pub struct Intruder {
    pub socket: OwnedFd,
    pub ring: &'static [AtomicU64],
    pub depth: u32,
    pub max_held: u32,
    pub bell_read: OwnedFd,
    pub bell_write: OwnedFd,
}

/// The index of the first word of the entry of push `n`.
pub fn entry_word(depth: u32, n: u64) -> usize {
    16 + (n % u64::from(depth)) as usize * 8
}

/// The index of a cell's state word.
pub fn state_word(depth: u32, cell: u32) -> usize {
    16 + depth as usize * 8 + cell as usize * 8
}

/// Performs the handshake with the first publisher in the folder, by the rules.
pub fn intrude(dir: &Path, topic: &str, id: u64, depth: u32, max_held: u32) -> Intruder {
    let wishes = Wishes {
        depth,
        max_held,
        ..Wishes::default()
    };
    intrude_with(dir, topic, id, &wishes)
}

/// Like [`intrude`], with all wishes given.
pub fn intrude_with(dir: &Path, topic: &str, id: u64, wishes: &Wishes) -> Intruder {
    let (depth, max_held) = (wishes.depth, wishes.max_held);
    let mut path = None;
    super::eventually("a publisher appears", || {
        path = publishers(dir).pop();
        path.is_some()
    });
    let socket = connect(&path.unwrap());
    assert!(send(&socket, &hello(topic, id), &[]));
    let (kind, body, _) = receive(&socket).unwrap();
    assert_eq!(kind, HELLO, "{}", String::from_utf8_lossy(&body));
    let bytes = ring_bytes(depth, max_held);
    let (fd, ring) = ring_memory(bytes);
    let (bell_read, bell_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut fds = vec![fd.as_fd()];
    fds.extend(bell_for_peer(&bell_read, &bell_write));
    assert!(send(&socket, &attach_with(wishes), &fds));
    let (kind, body, _) = receive(&socket).unwrap();
    assert_eq!(kind, WELCOME, "{}", String::from_utf8_lossy(&body));
    assert!(send(&socket, &frame(READY, &[]), &[]));
    Intruder {
        socket,
        ring,
        depth,
        max_held,
        bell_read,
        bell_write,
    }
}
