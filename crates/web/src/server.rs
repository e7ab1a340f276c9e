//! Listens, checks each request, and gives each WebSocket client its two threads.

use crate::access::name_of;
use crate::socket::{self, Client, Handler};
use crate::stream::{Stream, left};
use crate::{
    Access, HeadError, Limits, Page, Queue, Refusal, Request, Response, Role, Status, Tls, upgrade, write,
};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait after a failed accept, such as without descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Content of a server.
pub trait Site: Send + Sync + 'static {
    /// Answers a request that is not WebSocket's.
    fn page(&self, request: &Request) -> Response;

    /// Whether a page needs no token. Host and origin are checked all the same.
    fn is_public(&self, request: &Request) -> bool {
        let _ = request;
        false
    }

    /// Chooses one of the `offered` subprotocols for a WebSocket, or none. By default there are no WebSockets.
    ///
    /// # Errors
    /// The answer that refuses it.
    fn protocol(&self, request: &Request, offered: &[String]) -> Result<Option<String>, Response> {
        let _ = (request, offered);
        let page = Page::Text("there is no WebSocket here".into());
        Err(Response::new(Status::NotFound, page))
    }

    /// Serves a client; `None` disconnects it.
    fn open(&self, client: Arc<Client>) -> Option<Box<dyn Handler>> {
        let _ = client;
        None
    }
}

/// Address, access and limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The address; port 0 is any free one.
    pub address: SocketAddr,
    /// Access of clients.
    pub access: Access,
    /// Limits of what clients can make the server hold.
    pub limits: Limits,
    /// Encrypts all connections; `None`: none.
    pub tls: Option<Tls>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is reachable from other machines, and there is no token.
    #[error("{0} is reachable from other machines: set a token")]
    Open(SocketAddr),
    /// It cannot listen.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// A running server; dropping it disconnects all clients.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    options: ServerOptions,
    site: Arc<dyn Site>,
    stopped: AtomicBool,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, Connection>,
}

struct Connection {
    socket: TcpStream,
    /// Its queue, once it speaks WebSocket.
    queue: Option<Arc<Queue>>,
}

impl ServerOptions {
    /// Options with the default limits.
    pub fn new(address: SocketAddr, access: Access) -> Self {
        let limits = Limits::default();
        ServerOptions {
            address,
            access,
            limits,
            tls: None,
        }
    }

    /// Encrypts all connections: https and wss.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl Server {
    /// Listens and serves in threads of its own.
    ///
    /// # Errors
    /// [`ServerError`]: an address that others reach without a token, or one that is in use.
    pub fn start(options: ServerOptions, site: Arc<dyn Site>) -> Result<Server, ServerError> {
        let address = options.address;
        if !address.ip().to_canonical().is_loopback() && !options.access.has_tokens() {
            return Err(ServerError::Open(address));
        }
        let fail = |source| ServerError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let shared = Arc::new(Shared {
            options,
            site,
            stopped: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("web".into());
        let thread = thread
            .spawn(move || accept(&listener, &of_thread))
            .map_err(fail)?;
        Ok(Server {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.connections().open.len()
    }

    /// Bytes that wait for each WebSocket client.
    pub fn held(&self) -> Vec<usize> {
        let connections = self.shared.connections();
        let queues = connections.open.values().filter_map(|c| c.queue.as_ref());
        queues.map(|queue| queue.held()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let local: IpAddr = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let woken = TcpStream::connect_timeout(&(local, self.address.port()).into(), Duration::from_secs(1));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
        for connection in self.shared.connections().open.values() {
            connection.end();
        }
    }
}

impl Connection {
    fn end(&self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; if there is no room, the oldest one without a request is closed.
    fn enter(&self, socket: TcpStream) -> Option<u64> {
        let mut connections = self.connections();
        if connections.open.len() >= self.options.limits.connections {
            let (oldest, connection) = connections.open.iter().find(|(_, c)| c.queue.is_none())?;
            connection.end();
            let oldest = *oldest;
            connections.open.remove(&oldest);
        }
        let id = connections.next;
        connections.next += 1;
        connections.open.insert(id, Connection { socket, queue: None });
        Some(id)
    }

    /// Gives a connection a queue; `None` if there are too many clients.
    fn promote(&self, id: u64) -> Option<Arc<Queue>> {
        let mut connections = self.connections();
        let clients = connections.open.values().filter(|c| c.queue.is_some()).count();
        if clients >= self.options.limits.clients {
            return None;
        }
        let queue = Arc::new(Queue::new(self.options.limits.queued));
        connections.open.get_mut(&id)?.queue = Some(queue.clone());
        Some(queue)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Leaves the list when its connection's thread ends, however it ends.
struct Entry<'a>(&'a Shared, u64);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0.connections().open.remove(&self.1) {
            connection.end();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept");
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        let Some(id) = socket.try_clone().ok().and_then(|socket| shared.enter(socket)) else {
            continue;
        };
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("web-client".into());
        let started = thread.spawn(move || {
            let entry = Entry(&of_thread, id);
            if let Err(error) = serve(socket, peer, &of_thread, id) {
                tracing::debug!(%peer, %error, "a connection ended");
            }
            drop(entry);
        });
        if started.is_err() {
            drop(Entry(shared, id));
        }
    }
}

fn serve(socket: TcpStream, peer: SocketAddr, shared: &Shared, id: u64) -> io::Result<()> {
    let limits = shared.options.limits;
    let until = Instant::now() + limits.handshake;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(limits.stalled))?;
    let tls = shared.options.tls.as_ref();
    let mut stream = match tls {
        Some(_) if is_plain(&socket, until)? => return refuse_plain(socket, until),
        Some(tls) => Stream::encrypted(socket, tls, until)?,
        None => Stream::plain(socket, until),
    };
    let mut writing = stream.writing();
    let mut refuse = |response: Response| {
        response.write(&mut writing)?;
        writing.finish()
    };
    let text = |status, line: String| Response::new(status, Page::Text(line));
    let (mut request, early) = match read_head(&mut stream, limits) {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(()),
        Err((status, line)) => return refuse(text(status, line)),
    };
    request.peer = Some(peer);
    request.secure = tls.is_some();
    let host = name_of(request.header("host").unwrap_or_default());
    request.certified = tls.is_some_and(|tls| tls.covers(host));
    let role = match shared.options.access.role(&request) {
        Ok(role) => role,
        Err(Refusal::Token) if !upgrade::asked(&request) && shared.site.is_public(&request) => Role::View,
        Err(refusal) => {
            tracing::info!(%peer, %refusal, "a request was refused");
            return refuse(text(Status::Forbidden, refusal.to_string()));
        }
    };
    request.role = Some(role);
    if !upgrade::asked(&request) {
        let response = match request.method() {
            "GET" => shared.site.page(&request),
            _ => text(Status::NotAllowed, "only GET is answered".into()),
        };
        return refuse(response);
    }
    let offered = upgrade::offered(&request);
    let accepted = match shared.site.protocol(&request, &offered) {
        Ok(protocol) => match upgrade::accept(&request, protocol) {
            Ok(accepted) => accepted,
            Err(line) => return refuse(text(Status::BadRequest, line.into())),
        },
        Err(response) => return refuse(response),
    };
    let Some(queue) = shared.promote(id) else {
        let line = format!("{} clients are connected, which is the limit", limits.clients);
        return refuse(text(Status::Busy, line));
    };
    stream.wait_forever()?;
    writing.write_all(accepted.head().as_bytes())?;
    let of_writer = queue.clone();
    let thread = std::thread::Builder::new().name("web-write".into());
    let writer = thread.spawn(move || {
        let written = write::write_all(&of_writer, &mut writing);
        of_writer.end();
        if written.is_ok() {
            let _ = writing.finish();
        }
        // Ends the reader's wait.
        writing.end();
        written
    })?;
    let client = Arc::new(Client::new(role, peer, &request, &accepted, queue.clone()));
    match shared.site.open(client) {
        Some(mut handler) => socket::read(&mut stream, &early, limits.message, &queue, &mut *handler),
        None => queue.close(),
    }
    writer.join().unwrap_or(Ok(()))
}

/// Whether a client of an encrypted server sends a plain request, which begins with a letter; TLS does not.
fn is_plain(socket: &TcpStream, until: Instant) -> io::Result<bool> {
    let mut first = [0];
    socket.set_read_timeout(Some(left(until)?))?;
    let n = socket.peek(&mut first)?;
    Ok(n == 1 && first[0].is_ascii_alphabetic())
}

/// Answers a plain request with advice. Its request is read first: a socket that is closed with unread bytes
/// may lose what was written.
fn refuse_plain(mut socket: TcpStream, until: Instant) -> io::Result<()> {
    socket.set_read_timeout(Some(left(until)?))?;
    let _ = socket.read(&mut [0; 4096])?;
    let line = "this server is encrypted: write https:// or wss:// instead of http:// or ws://";
    Response::new(Status::BadRequest, Page::Text(line.into())).write(&mut socket)?;
    socket.shutdown(Shutdown::Write)
}

type Head = (Request, Vec<u8>);

/// Reads a request's head within its time; `None` if the client left. Also returns the bytes that follow the head.
fn read_head(stream: &mut Stream, limits: Limits) -> Result<Option<Head>, (Status, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let line = format!("no request within {} s", limits.handshake.as_secs_f64());
                return Err((Status::Timeout, line));
            }
            Err(_) => return Ok(None),
        }
        let bad = |error: HeadError| (Status::BadRequest, error.to_string());
        if let Some((request, size)) = Request::parse(&bytes).map_err(bad)? {
            return Ok(Some((request, bytes.split_off(size))));
        }
        if bytes.len() > limits.head {
            let line = format!("a request's head has at most {} bytes", limits.head);
            return Err((Status::HeadTooLarge, line));
        }
    }
}
