//! Telemetry of version 6: a PUB socket that is bounded in bytes and knows what each subscriber lost.
//!
//! ZeroMQ's own PUB socket bounds frames and not bytes, keeps the oldest of them, and drops silently; so this module
//! implements that side of the protocol itself ([`super::zmtp`]). Subscribers share frames. The publishing thread
//! writes as much as the kernel accepts at once; the end's thread writes the rest.

use super::address::Address;
use super::backlog::{Backlog, Kinds};
use super::wake::Wake;
use super::zmtp::{self, Subscriber};
use crate::sync::lock;
use crate::transport::{Stream as Kind, TransportError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum subscribers at a time.
pub(super) const MAX_SUBSCRIBERS: usize = 64;
/// Maximum time for a connection's handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How long data in transit may take when the end stops.
const LINGER: Duration = Duration::from_millis(100);
/// Maximum answers to pings that wait for one subscriber.
const MAX_CONTROL: usize = 16;

pub(super) struct Publisher {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    address: Address,
}

struct Shared {
    wake: Wake,
    table: Mutex<Table>,
    stopping: AtomicBool,
    lost: Arc<AtomicU64>,
    most_bytes: usize,
}

#[derive(Default)]
struct Table {
    all: Vec<Connection>,
    kinds: Kinds,
}

struct Connection {
    stream: Arc<Stream>,
    /// `None` for another process of this host.
    host: Option<IpAddr>,
    name: String,
    since: Instant,
    handshake: Subscriber,
    /// The frame that is being written, and how much of it has been.
    current: Option<(Arc<[u8]>, usize)>,
    control: VecDeque<Arc<[u8]>>,
    backlog: Backlog,
    lost: u64,
    over: bool,
}

impl Publisher {
    /// Binds. Together, the frames that wait for all subscribers take at most about `most_bytes`, in addition to the
    /// kernel's buffers. Lost frames are added to `lost`.
    pub(super) fn open(
        address: &Address,
        most_bytes: usize,
        lost: Arc<AtomicU64>,
    ) -> Result<Self, TransportError> {
        let failed =
            |error: io::Error| address.failed("publish at", &error, error.kind() == io::ErrorKind::AddrInUse);
        let listener = Listener::bind(address)?;
        let address = listener.address(address).map_err(failed)?;
        let shared = Arc::new(Shared {
            wake: Wake::new().map_err(failed)?,
            table: Mutex::default(),
            stopping: AtomicBool::new(false),
            lost,
            most_bytes,
        });
        let in_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("zmq-publisher".into())
            .spawn(move || run(&listener, &in_thread))
            .map_err(failed)?;
        Ok(Publisher {
            shared,
            thread: Mutex::new(Some(thread)),
            address,
        })
    }

    /// Returns where it is bound.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn publish(&self, kind: Kind<'_>, frame: &[u8]) {
        let mut table = self.shared.table();
        let Table { all, kinds } = &mut *table;
        let share = self.shared.most_bytes / all.len().max(1);
        let mut waiting = None;
        let mut left = false;
        for connection in all
            .iter_mut()
            .filter(|c| c.handshake.is_ready() && c.handshake.wants(frame))
        {
            let waiting = waiting.get_or_insert_with(|| kinds.waiting(kind, zmtp::message(frame).into()));
            let was_idle = connection.is_idle();
            let lost = connection.backlog.push(waiting.clone(), share);
            connection.count_lost(lost);
            self.shared.lost.fetch_add(lost, Ordering::Relaxed);
            if was_idle {
                connection.write();
                left |= !connection.is_idle() || connection.over;
            }
        }
        drop(table);
        if left {
            self.shared.wake.ring();
        }
    }

    /// Stops, after at most 100 ms.
    pub(super) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake.ring();
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that publishes telemetry panicked");
        }
        if let Address::Ipc(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

fn run(listener: &Listener, shared: &Shared) {
    let mut end = None;
    loop {
        let stopping = shared.stopping.load(Ordering::SeqCst);
        let end = stopping.then(|| *end.get_or_insert_with(|| Instant::now() + LINGER));
        shared.wake.lie_down();
        let (streams, in_handshake) = {
            let mut table = shared.table();
            table.all.retain(|c| !c.over);
            let streams: Vec<_> = table
                .all
                .iter()
                .map(|c| (c.stream.clone(), !c.is_idle()))
                .collect();
            (streams, table.all.iter().any(|c| !c.handshake.is_ready()))
        };
        let timeout = match end {
            Some(_) if streams.iter().all(|(_, busy)| !busy) => return,
            Some(end) => match end.checked_duration_since(Instant::now()) {
                Some(left) => Some(left),
                None => return,
            },
            None => in_handshake.then_some(Duration::from_secs(1)),
        };
        let mut fds = vec![PollFd::new(&shared.wake, PollFlags::IN)];
        if end.is_none() {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        let first = fds.len();
        for (stream, busy) in &streams {
            let flags = if *busy {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            fds.push(PollFd::new(&**stream, flags));
        }
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        let _ = poll(&mut fds, timeout.as_ref());
        shared.wake.rise();
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        if first == 2 && !ready[1].is_empty() {
            accept(listener, shared);
        }
        let mut table = shared.table();
        for ((stream, _), ready) in streams.iter().zip(&ready[first..]) {
            if let Some(connection) = table.all.iter_mut().find(|c| Arc::ptr_eq(&c.stream, stream)) {
                connection.turn(*ready);
            }
        }
    }
}

fn accept(listener: &Listener, shared: &Shared) {
    loop {
        let (stream, name) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a subscriber");
                // Probably out of descriptors: the listener would be ready again at once.
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        let mut table = shared.table();
        let host = stream.host();
        if table.all.len() >= MAX_SUBSCRIBERS && !table.make_room(host) {
            tracing::warn!(
                subscriber = name,
                "refused: at most {MAX_SUBSCRIBERS} subscribers are allowed"
            );
            continue;
        }
        let mut connection = Connection {
            stream: Arc::new(stream),
            host,
            name,
            since: Instant::now(),
            handshake: Subscriber::default(),
            current: None,
            control: VecDeque::from([zmtp::greeting().into()]),
            backlog: Backlog::default(),
            lost: 0,
            over: false,
        };
        connection.write();
        table.all.push(connection);
    }
}

impl Table {
    /// Closes one connection to make room for a subscriber of `host`: the oldest that has not finished its handshake;
    /// else the newest of the address that has the most, if that address then still has no fewer than `host`. Returns
    /// whether there was one.
    fn make_room(&mut self, host: Option<IpAddr>) -> bool {
        let mut silent = self
            .all
            .iter()
            .enumerate()
            .filter(|(_, c)| !c.handshake.is_ready());
        let leaves = silent.next().map(|(at, _)| at).or_else(|| {
            let of = |host| self.all.iter().filter(|c| c.host == host).count();
            let most = self.all.iter().map(|c| c.host).max_by_key(|host| of(*host))?;
            let newest = self.all.iter().rposition(|c| c.host == most);
            newest.filter(|_| of(most) > of(host) + 1)
        });
        let Some(at) = leaves else { return false };
        let mut gone = self.all.remove(at);
        gone.refuse("a subscriber from another host took its place");
        true
    }
}

impl Connection {
    fn is_idle(&self) -> bool {
        self.current.is_none() && self.control.is_empty() && self.backlog.is_empty()
    }

    fn turn(&mut self, ready: PollFlags) {
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read();
        }
        if !self.handshake.is_ready() && self.since.elapsed() > HANDSHAKE {
            self.refuse("the handshake took longer than 30 s");
        }
        self.write();
    }

    fn read(&mut self) {
        let mut buffer = [0; 4096];
        // A few at most, so that a peer that floods gets only its turn.
        for _ in 0..4 {
            match self.stream.read(&mut buffer) {
                Ok(0) => return self.over = true,
                Ok(len) => match self.handshake.take(&buffer[..len]) {
                    Ok(answers) if answers.is_empty() => {}
                    Ok(answers) if self.control.len() < MAX_CONTROL => self.control.push_back(answers.into()),
                    // Its pings are answered when it reads again.
                    Ok(_) => {}
                    Err(refusal) => return self.refuse(&refusal.to_string()),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.over = true,
            }
        }
    }

    fn refuse(&mut self, why: &str) {
        tracing::warn!(
            subscriber = self.name,
            "closed the connection of a subscriber: {why}"
        );
        if self.current.is_none() {
            let _ = self.stream.write(&zmtp::error(why));
        }
        self.over = true;
    }

    /// Writes as much as the kernel accepts.
    fn write(&mut self) {
        while !self.over {
            let (frame, done) = match self.current.take() {
                Some(current) => current,
                None => match self.control.pop_front().or_else(|| self.backlog.pop()) {
                    Some(frame) => (frame, 0),
                    None => return,
                },
            };
            match self.stream.write(&frame[done..]) {
                Ok(more) if done + more == frame.len() => {}
                Ok(more) => self.current = Some((frame, done + more)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    self.current = Some((frame, done))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.current = Some((frame, done));
                }
                Err(_) => self.over = true,
            }
        }
    }

    /// Version 6 cannot report losses to a subscriber: its operator finds the number in the log, each time it has
    /// doubled.
    fn count_lost(&mut self, lost: u64) {
        let before = self.lost;
        self.lost += lost;
        if before.checked_ilog2() != self.lost.checked_ilog2() {
            tracing::warn!(
                subscriber = self.name,
                lost = self.lost,
                "a subscriber is slower than the telemetry: dropped frames for it"
            );
        }
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    fn bind(address: &Address) -> Result<Self, TransportError> {
        let failed =
            |error: io::Error| address.failed("publish at", &error, error.kind() == io::ErrorKind::AddrInUse);
        let listener = match (address, address.bind_ip()?) {
            (_, Some(to)) => Listener::Tcp(TcpListener::bind(to).map_err(failed)?),
            (Address::Ipc(path), None) => {
                remove_stale(path);
                Listener::Unix(UnixListener::bind(path).map_err(failed)?)
            }
            (Address::Tcp { .. }, None) => {
                return Err(TransportError::Setup(format!("cannot bind {address}")));
            }
        };
        match &listener {
            Listener::Tcp(tcp) => tcp.set_nonblocking(true),
            Listener::Unix(unix) => unix.set_nonblocking(true),
        }
        .map_err(failed)?;
        Ok(listener)
    }

    fn address(&self, asked: &Address) -> io::Result<Address> {
        Ok(match self {
            Listener::Tcp(tcp) => {
                let local = tcp.local_addr()?;
                Address::Tcp {
                    host: local.ip().to_string(),
                    port: local.port(),
                }
            }
            Listener::Unix(_) => asked.clone(),
        })
    }

    fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(tcp) => {
                let (stream, from) = tcp.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                // A subscriber whose host vanished keeps its place for at most a minute.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, Duration::from_secs(30))?;
                sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(10))?;
                sockopt::set_tcp_keepcnt(&stream, 3)?;
                Ok((Stream::Tcp(stream), from.to_string()))
            }
            Listener::Unix(unix) => {
                let (stream, _) = unix.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Stream::Unix(stream), "a process of this host".into()))
            }
        }
    }
}

/// Removes the socket file of a process that has died. A socket that answers stays, and binding fails.
fn remove_stale(path: &Path) {
    if UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(path);
    }
}

impl Stream {
    fn host(&self) -> Option<IpAddr> {
        match self {
            Stream::Tcp(tcp) => tcp.peer_addr().ok().map(|from| from.ip()),
            Stream::Unix(_) => None,
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(tcp) => (&mut &*tcp).read(buffer),
            Stream::Unix(unix) => (&mut &*unix).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(tcp) => (&mut &*tcp).write(bytes),
            Stream::Unix(unix) => (&mut &*unix).write(bytes),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(tcp) => tcp.as_fd(),
            Listener::Unix(unix) => unix.as_fd(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(tcp) => tcp.as_fd(),
            Stream::Unix(unix) => unix.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_connections_make_room_oldest_first() {
        let at = Address::parse("tcp://127.0.0.1:0").unwrap();
        let publisher = Publisher::open(&at, 1 << 20, Arc::default()).unwrap();
        let Address::Tcp { port, .. } = publisher.address() else {
            panic!()
        };
        let mut all: Vec<TcpStream> = (0..MAX_SUBSCRIBERS + 3)
            .map(|_| {
                let mut silent = TcpStream::connect(("127.0.0.1", *port)).unwrap();
                silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                // It has its place once it is greeted.
                silent.read_exact(&mut vec![0; zmtp::greeting().len()]).unwrap();
                silent
            })
            .collect();
        for gone in &mut all[..3] {
            gone.read_to_end(&mut Vec::new()).unwrap();
        }
        assert_eq!(publisher.shared.table().all.len(), MAX_SUBSCRIBERS);
        all[3].set_nonblocking(true).unwrap();
        let kind = all[3].read(&mut [0]).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::WouldBlock, "it still has its place");
        publisher.stop();
    }
}
