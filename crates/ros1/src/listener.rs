//! Accepts connections from anyone. Each has a thread of its own, and silent ones make room for others.
//!
//! Limits apply per peer. Unknown and known peers have separate limits, so that no number of unknown peers locks out
//! the nodes of this host or the master.

use crate::hub::lock;
use crate::peers::{Peer, Peers, Reason, Standing};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of connections that have not identified themselves, of one peer and of all unknown or all known
/// peers. Beyond it, the oldest is closed: of the peer itself, or of the peer with the most.
const MAX_PENDING_EACH: usize = 32;
const MAX_PENDING: usize = 64;
/// Maximum number of connections of an unknown peer, of a known one, and of all unknown or all known peers. Beyond it,
/// new ones are closed.
const MAX_OF_UNKNOWN: usize = 128;
const MAX_OF_KNOWN: usize = 512;
const MAX_CONNECTIONS: usize = 512;
/// All unknown peers together, and all known ones, may each use 1/`DESCRIPTORS` of the process's descriptors.
const DESCRIPTORS: u64 = 8;
/// Pause after accepting failed for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread that accepts connections. Dropping this closes all of them.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    peers: Arc<Peers>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// In order of arrival.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: Arc<TcpStream>,
    standing: Standing,
    pending: bool,
}

/// An accepted connection, while its thread works on it.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) standing: Standing,
    id: u64,
    shared: Arc<Shared>,
}

impl Accepted {
    /// Records that the other end has identified itself.
    pub(crate) fn settle(&self) {
        if let Some(connection) = lock(&self.shared.open).connections.get_mut(&self.id) {
            connection.pending = false;
        }
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        lock(&self.shared.open).connections.remove(&self.id);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Listener {
    /// Listens at a port of `bind` that the system chooses. `serve` runs for every connection, in a thread of its own.
    pub(crate) fn start(
        name: &'static str,
        bind: IpAddr,
        peers: &Arc<Peers>,
        serve: impl Fn(Accepted) + Send + Sync + 'static,
    ) -> io::Result<Listener> {
        let listener = TcpListener::bind((bind, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            peers: peers.clone(),
            open: Mutex::default(),
        });
        let inside = shared.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            accept(name, &listener, &inside, Arc::new(serve));
        })?;
        Ok(Listener {
            address,
            shared,
            thread: Some(thread),
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

fn accept(
    name: &str,
    listener: &TcpListener,
    shared: &Arc<Shared>,
    serve: Arc<impl Fn(Accepted) + Send + Sync + 'static>,
) {
    // The threads of connections inherit it.
    clock::nice_thread(clock::FORWARDING_NICE);
    while !shared.stop.load(Ordering::Acquire) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let Some(accepted) = enter(stream, shared) else {
            continue;
        };
        let serve = serve.clone();
        let spawned = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || serve(accepted));
        if let Err(error) = spawned {
            let why = format_args!("cannot start a thread for a connection: {error}");
            shared.peers.refuse(Reason::Connection, why);
        }
    }
}

/// Maximum number of connections of all unknown, or all known peers. The bus raises the descriptor limit when it is
/// opened.
fn most_in_all() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let part = descriptors.unwrap_or(u64::MAX) / DESCRIPTORS;
    usize::try_from(part).unwrap_or(usize::MAX).min(MAX_CONNECTIONS)
}

fn enter(stream: TcpStream, shared: &Arc<Shared>) -> Option<Accepted> {
    let standing = shared.peers.standing(&stream).ok()?;
    let mut open = lock(&shared.open);
    let (all, each) = open.count(standing, |_| true);
    let most = if standing.known {
        MAX_OF_KNOWN
    } else {
        MAX_OF_UNKNOWN
    };
    if each >= most || all >= most_in_all() {
        drop(open);
        let why = format_args!(
            "a connection of {}, which already has {each} of {all}",
            standing.peer
        );
        shared.peers.refuse(Reason::Connection, why);
        return None;
    }
    let (all, each) = open.count(standing, |c| c.pending);
    let busiest = match (each >= MAX_PENDING_EACH, all >= MAX_PENDING) {
        (true, _) => Some(standing.peer),
        (false, true) => open.most_pending(standing.known),
        (false, false) => None,
    };
    let oldest = busiest.and_then(|peer| open.turn_out(peer, standing.known));
    let id = open.next;
    open.next += 1;
    let stream = Arc::new(stream);
    let connection = Connection {
        stream: stream.clone(),
        standing,
        pending: true,
    };
    open.connections.insert(id, connection);
    drop(open);
    if let Some(peer) = oldest {
        let why = format_args!(
            "closed a connection of {peer} that did not identify itself, to make room for another"
        );
        shared.peers.refuse(Reason::Silent, why);
    }
    Some(Accepted {
        stream,
        standing,
        id,
        shared: shared.clone(),
    })
}

impl Open {
    /// Counts the connections for which `counts` holds: of all known or all unknown peers, and of this peer.
    fn count(&self, standing: Standing, counts: impl Fn(&Connection) -> bool) -> (usize, usize) {
        let alike = self
            .connections
            .values()
            .filter(|c| c.standing.known == standing.known && counts(c));
        alike.fold((0, 0), |(all, each), c| {
            (all + 1, each + usize::from(c.standing.peer == standing.peer))
        })
    }

    fn most_pending(&self, known: bool) -> Option<Peer> {
        let mut counts = BTreeMap::<Peer, usize>::new();
        let pending = self
            .connections
            .values()
            .filter(|c| c.pending && c.standing.known == known);
        pending.for_each(|c| *counts.entry(c.standing.peer).or_default() += 1);
        // Of several peers with the same number, take the one with the oldest connection.
        let most = counts.values().max().copied()?;
        let mut pending = self
            .connections
            .values()
            .filter(|c| c.pending && c.standing.known == known);
        pending
            .find(|c| counts.get(&c.standing.peer) == Some(&most))
            .map(|c| c.standing.peer)
    }

    /// Closes the oldest connection of a peer that has not identified itself.
    fn turn_out(&mut self, peer: Peer, known: bool) -> Option<Peer> {
        let mut all = self.connections.iter();
        let (id, _) = all.find(|(_, c)| c.pending && c.standing.peer == peer && c.standing.known == known)?;
        let id = *id;
        let oldest = self.connections.remove(&id)?;
        let _ = oldest.stream.shutdown(Shutdown::Both);
        Some(peer)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for connection in lock(&self.shared.open).connections.values() {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        // One more connection ends the accept loop.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&own, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// A listener that echoes one byte and keeps the connection.
    fn echo() -> (Listener, Arc<Peers>) {
        let peers = Arc::new(Peers::new(&[], 1 << 20, 1 << 20));
        let listener = Listener::start("test", Ipv4Addr::LOCALHOST.into(), &peers, |accepted| {
            let mut byte = [0];
            if (&*accepted.stream).read_exact(&mut byte).is_ok() {
                accepted.settle();
                let _ = (&*accepted.stream).write_all(&byte);
                let _ = (&*accepted.stream).read_exact(&mut byte);
            }
        });
        (listener.unwrap(), peers)
    }

    /// Connects from an address in 127.0.0.0/8; each address is a different peer.
    fn connect(to: &Listener, from: u8) -> TcpStream {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, from], 0))).unwrap();
        connect(&socket, &to.address).unwrap();
        socket.into()
    }

    fn settle(mut stream: &TcpStream) {
        let mut byte = [7];
        stream.write_all(&byte).unwrap();
        stream.read_exact(&mut byte).unwrap();
    }

    #[test]
    fn silent_connections_make_room_and_everything_ends() {
        let (listener, peers) = echo();
        let settled = connect(&listener, 1);
        settle(&settled);
        let silent: Vec<_> = (0..3 * MAX_PENDING).map(|_| connect(&listener, 1)).collect();
        settle(&connect(&listener, 1));
        let mut byte = [0];
        assert_eq!((&silent[0]).read(&mut byte).unwrap(), 0, "the oldest made room");
        assert!(peers.refused()["silent"] > 0);
        drop(listener);
        assert_eq!((&settled).read(&mut byte).unwrap(), 0);
    }

    #[test]
    fn unknown_hosts_displace_only_unknown_hosts_and_first_those_with_the_most() {
        let (listener, _peers) = echo();
        let slow = connect(&listener, 1);
        let modest = connect(&listener, 2);
        let silent: Vec<_> = (0..4 * MAX_PENDING)
            .map(|n| connect(&listener, 3 + (n % 2) as u8))
            .collect();
        // A connection accepted after them all: its answer shows that all were handled.
        settle(&connect(&listener, 1));
        settle(&slow);
        settle(&modest);
        drop(silent);
    }

    #[test]
    fn an_unknown_host_is_limited_to_its_share_of_connections() {
        let (listener, peers) = echo();
        let held: Vec<_> = (0..MAX_OF_UNKNOWN)
            .map(|_| {
                let stream = connect(&listener, 2);
                settle(&stream);
                stream
            })
            .collect();
        let mut byte = [0];
        assert_eq!(
            connect(&listener, 2).read(&mut byte).unwrap_or(0),
            0,
            "one too many"
        );
        settle(&connect(&listener, 3));
        settle(&connect(&listener, 1));
        assert!(peers.refused()["connections"] > 0);
        drop(held);
    }
}
