//! Accepting connections from whoever comes: each has a thread of its own, and those that say nothing make room.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections that have not said who they are. The oldest goes when one more comes.
const MAX_PENDING: usize = 64;
/// Connections altogether. Beyond them new ones are closed.
const MAX_CONNECTIONS: usize = 1024;
/// After accepting failed, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread that accepts. Dropping it closes all connections that it accepted.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By the order in which they came.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    pending: bool,
}

/// One accepted connection, as long as its thread works on it.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    id: u64,
    shared: Arc<Shared>,
}

impl Accepted {
    /// The other end has said who it is.
    pub(crate) fn settle(&self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = open.connections.get_mut(&self.id) {
            connection.pending = false;
        }
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.connections.remove(&self.id);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Listener {
    /// Listens at a port of `bind` that the system chooses; `serve` runs for every connection, in a thread of its own.
    pub(crate) fn start(
        name: &'static str,
        bind: IpAddr,
        serve: impl Fn(Accepted) + Send + Sync + 'static,
    ) -> io::Result<Listener> {
        let listener = TcpListener::bind((bind, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
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
            tracing::warn!(%error, "a connection is closed: no thread for it");
        }
    }
}

fn enter(stream: TcpStream, shared: &Arc<Shared>) -> Option<Accepted> {
    let copy = stream.try_clone().ok()?;
    let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
    if open.connections.len() >= MAX_CONNECTIONS {
        tracing::warn!("a connection is closed: {MAX_CONNECTIONS} are open already");
        return None;
    }
    let pending = open.connections.iter().filter(|(_, c)| c.pending);
    let mut pending: Vec<u64> = pending.map(|(id, _)| *id).take(MAX_PENDING).collect();
    if pending.len() == MAX_PENDING
        && let Some(oldest) = open.connections.remove(&pending.swap_remove(0))
    {
        let _ = oldest.stream.shutdown(Shutdown::Both);
    }
    let id = open.next;
    open.next += 1;
    let connection = Connection {
        stream: copy,
        pending: true,
    };
    open.connections.insert(id, connection);
    drop(open);
    Some(Accepted {
        stream,
        id,
        shared: shared.clone(),
    })
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in open.connections.values() {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        drop(open);
        // Accepting ends with one more connection.
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

    #[test]
    fn silent_connections_make_room_and_everything_ends() {
        let listener = Listener::start("test", Ipv4Addr::LOCALHOST.into(), |accepted| {
            let mut byte = [0];
            if (&accepted.stream).read_exact(&mut byte).is_ok() {
                accepted.settle();
                let _ = (&accepted.stream).write_all(&byte);
                let _ = (&accepted.stream).read_exact(&mut byte);
            }
        })
        .unwrap();
        let connect = || TcpStream::connect(listener.address).unwrap();
        let mut settled = connect();
        let mut byte = [7];
        settled.write_all(&byte).unwrap();
        settled.read_exact(&mut byte).unwrap();
        let silent: Vec<_> = (0..3 * MAX_PENDING).map(|_| connect()).collect();
        let mut late = connect();
        late.write_all(&byte).unwrap();
        late.read_exact(&mut byte).unwrap();
        assert_eq!((&silent[0]).read(&mut byte).unwrap(), 0, "the oldest made room");
        drop(listener);
        assert_eq!(settled.read(&mut byte).unwrap(), 0);
    }
}
