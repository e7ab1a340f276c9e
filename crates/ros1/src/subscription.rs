//! One topic of ROS on its way onto the bus: a connection to each of its publishers, each with a thread of its own.

use crate::body;
use crate::config::TopicRule;
use crate::header::{BRIDGE, Header, HeaderError, MAX_HEADER};
use crate::hub::{Hub, lock};
use crate::master::{self, ApiError, TIMEOUT};
use crate::net::{HostPort, Paced, STALL, Timed};
use crate::peers::{Dialled, Full, Share, Standing};
use crate::types::{self, TypeError};
use bridge::{Counts, Filter};
use bus::{PublisherOptions, Stamp};
use schema::Schema;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of publishers of one topic.
const MAX_PUBLISHERS: usize = 256;
/// First and longest interval between two attempts to reach a publisher.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Longest message whose content is inspected (`tf`, `level`): decoded values take many times its bytes.
const MAX_LOOKED_AT: usize = 4 << 20;
/// Buffers up to this size are reused for the next message.
const MAX_KEPT: usize = 256 << 10;
/// After each message of at least this length, and after every `LOOK_AGAIN` shorter ones, the bus publisher's reserved
/// memory is checked.
const LARGE: usize = 64 << 10;
const LOOK_AGAIN: u64 = 256;
/// A topic of an unknown peer may reserve 1/`PARTS` of the peer's memory on the bus.
const PARTS: u64 = 2;

/// One topic of ROS on its way onto the bus.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) topic: String,
    pub(crate) bus_topic: String,
    /// Type, as the master knows it.
    pub(crate) kind: String,
    rule: TopicRule,
    pub(crate) counts: Counts,
    /// The nodes that published it when the master last named their addresses. `None`: ask the master.
    asked_for: Mutex<Option<Vec<String>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    /// The publishers that the master named last.
    listed: BTreeSet<HostPort>,
    /// Publishers with a thread, each with its socket while there is one.
    connections: BTreeMap<HostPort, Option<Arc<TcpStream>>>,
    /// The filter, created with the first publisher's type.
    filter: Option<Filter>,
    /// The single publisher on the bus for all publishers in ROS, if they are merged.
    gathered: Option<Arc<Bound>>,
}

/// A publisher on the bus.
#[derive(Debug)]
struct Bound {
    publisher: ropewalk::Publisher,
    hub: Arc<Hub>,
    /// Memory that it reserves on the bus.
    reserved: Mutex<Share>,
}

impl Bound {
    fn id(&self) -> u64 {
        self.publisher.bus().id()
    }

    /// Charges the peer for what its publisher has reserved so far.
    fn charge(&self) -> Result<(), Full> {
        let reserved = self.publisher.bus().stats().memory_reserved;
        lock(&self.reserved).set(reserved)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.hub.ends(self.id());
    }
}

/// Why a connection to a publisher ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("its answer to requestTopic is empty: it does not support TCPROS, or no longer publishes this")]
    NoTcpros,
    #[error("cannot be reached at {address}: {source}; check ROS_IP and ROS_HOSTNAME where it runs")]
    Connect { address: HostPort, source: io::Error },
    #[error("{0}")]
    Header(#[from] HeaderError),
    #[error("it refuses: {0}")]
    Refused(String),
    #[error("{caller} {source}")]
    Type { caller: String, source: Box<TypeError> },
    #[error("{caller}: {source}")]
    Filter { caller: String, source: bridge::Unfit },
    #[error("{0}")]
    Bus(#[from] ropewalk::NodeError),
    #[error("{caller} sends {source}")]
    TooLong {
        caller: String,
        source: crate::config::TooLong,
    },
    #[error("{caller}: its topic on the bus takes too much: {source}")]
    Memory { caller: String, source: Full },
    #[error("{caller}: {source}")]
    Stream { caller: String, source: io::Error },
    /// The publisher is a bridge too.
    #[error("it is a bridge")]
    Bridge,
    /// The publisher closed the connection between two messages.
    #[error("the connection ended")]
    Closed,
}

impl Subscription {
    pub(crate) fn new(topic: String, bus_topic: String, kind: String, rule: TopicRule) -> Arc<Self> {
        Arc::new(Subscription {
            topic,
            bus_topic,
            kind,
            rule,
            counts: Counts::default(),
            asked_for: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Records that the addresses of publishers may have changed.
    pub(crate) fn doubt(&self) {
        *lock(&self.asked_for) = None;
    }

    /// Whether to ask the master for the addresses of these publishers. Its answer, or its call after a change, may
    /// have been lost.
    pub(crate) fn is_doubted(&self, nodes: &[String]) -> bool {
        lock(&self.asked_for).as_deref() != Some(nodes)
    }

    /// Records that the master is answering for these publishers.
    pub(crate) fn asked(&self, nodes: &[String]) {
        *lock(&self.asked_for) = Some(nodes.to_vec());
    }

    /// Updates the publishers that the master named. Connections to others go on until those close them: a restarted
    /// master does not know them.
    pub(crate) fn update(self: &Arc<Self>, hub: &Arc<Hub>, uris: &[String]) {
        let mut state = lock(&self.state);
        if state.stop {
            return;
        }
        let own = HostPort::parse(&hub.master.api, "http");
        let addresses = uris.iter().filter_map(|uri| HostPort::parse(uri, "http"));
        state.listed = addresses
            .filter(|p| Some(p) != own.as_ref())
            .take(MAX_PUBLISHERS)
            .collect();
        let new: Vec<HostPort> = state
            .listed
            .iter()
            .filter(|p| !state.connections.contains_key(p))
            .cloned()
            .collect();
        for address in new {
            if state.connections.len() >= MAX_PUBLISHERS {
                hub.problem(
                    &self.topic,
                    format_args!("more than {MAX_PUBLISHERS} publishers: ignoring the others"),
                );
                break;
            }
            let Some(dialled) = hub.peers.dial(&address.host) else {
                // Tried again with the next answer of the master.
                self.doubt();
                continue;
            };
            let (this, with, at) = (self.clone(), hub.clone(), address.clone());
            let thread = std::thread::Builder::new().name("ros-subscriber".into());
            match thread.spawn(move || this.follow(&with, &at, dialled)) {
                Ok(_) => drop(state.connections.insert(address, None)),
                Err(error) => hub.problem(
                    &self.topic,
                    format_args!("cannot start a thread for {address}: {error}"),
                ),
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether the topic has a publisher, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        let state = lock(&self.state);
        !state.listed.is_empty() || state.connections.values().any(Option::is_some)
    }

    /// Number of publishers that it receives from.
    pub(crate) fn connected(&self) -> usize {
        lock(&self.state).connections.values().flatten().count()
    }

    /// The publishers that it receives from.
    pub(crate) fn publishers(&self) -> Vec<HostPort> {
        let state = lock(&self.state);
        let heard = state.connections.iter().filter(|(_, stream)| stream.is_some());
        heard.map(|(address, _)| address.clone()).collect()
    }

    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stop = true;
        for stream in state.connections.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        state.gathered = None;
        drop(state);
        self.changed.notify_all();
    }

    /// Receives from one publisher while the master names it.
    fn follow(&self, hub: &Arc<Hub>, address: &HostPort, _dialled: Dialled) {
        clock::nice_thread(clock::FORWARDING_NICE);
        let what = format!("{} from {address}", self.topic);
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.counts.messages();
            let end = self.hear(hub, address, &what);
            if self.counts.messages() > before {
                pause = FIRST_PAUSE;
            }
            let mut state = lock(&self.state);
            state.connections.insert(address.clone(), None);
            let bridge = matches!(end, Err(End::Bridge));
            match end {
                Ok(()) | Err(End::Bridge | End::Closed) => {}
                Err(_) if state.stop || !state.listed.contains(address) => {}
                Err(error) => {
                    // It may have another address by now.
                    self.doubt();
                    hub.problem(&what, error);
                }
            }
            let deadline = Instant::now() + pause;
            pause = (pause * 2).min(LAST_PAUSE);
            loop {
                if state.stop || hub.stopped() || !state.listed.contains(address) {
                    state.connections.remove(address);
                    hub.forget(&what);
                    return;
                }
                let left = deadline.saturating_duration_since(Instant::now());
                // A bridge remains one until it is gone.
                let left = if bridge { LAST_PAUSE } else { left };
                if left.is_zero() {
                    break;
                }
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
        }
    }

    /// Runs one connection, from the request for it to its end.
    fn hear(&self, hub: &Arc<Hub>, address: &HostPort, what: &str) -> Result<(), End> {
        let ask = [
            hub.name().into(),
            self.topic.as_str().into(),
            [["TCPROS".into()].into()].into(),
        ];
        let answer = master::call(address, "requestTopic", &ask)?;
        let tcpros = match answer.as_array() {
            Some([protocol, host, port]) if protocol.as_str() == Some("TCPROS") => {
                let port = port.as_int().and_then(|p| u16::try_from(p).ok());
                let uri = host.as_str().zip(port).map(|(h, p)| format!("rosrpc://{h}:{p}"));
                uri.and_then(|uri| HostPort::parse(&uri, "rosrpc"))
            }
            _ => None,
        };
        let tcpros = tcpros.ok_or(End::NoTcpros)?;
        let unreached = |source| End::Connect {
            address: tcpros.clone(),
            source,
        };
        let stream = Arc::new(tcpros.connect(TIMEOUT).map_err(unreached)?);
        let standing = hub.peers.standing(&stream).map_err(unreached)?;
        {
            let mut state = lock(&self.state);
            if state.stop {
                return Ok(());
            }
            state.connections.insert(address.clone(), Some(stream.clone()));
        }
        prepare(&stream).map_err(unreached)?;
        // Request any type, so that a difference is known and can be reported here.
        let header = Header::new(&[
            ("callerid", hub.name()),
            ("topic", &self.topic),
            ("type", "*"),
            ("md5sum", "*"),
            ("tcp_nodelay", "1"),
            (BRIDGE, "1"),
        ]);
        let mut timed = Timed::new(&stream, TIMEOUT);
        header.write(&mut timed).map_err(HeaderError::Io)?;
        let header = Header::read(&mut timed, MAX_HEADER)?;
        if let Some(error) = header.get("error") {
            return Err(End::Refused(stats::text::printable(error).into_owned()));
        }
        if header.is(BRIDGE) {
            return Err(End::Bridge);
        }
        let bound = self.bind(hub, &header, standing)?;
        hub.solved(what);
        let caller = header.caller();
        let paced = Paced::new(stream).map_err(unreached)?;
        self.pump(hub, &bound, paced, standing, caller, what)
    }

    /// Returns the publisher on the bus for a publisher in ROS.
    fn bind(&self, hub: &Arc<Hub>, header: &Header, standing: Standing) -> Result<Arc<Bound>, End> {
        let caller = || header.caller().to_owned();
        let wrong = |source: TypeError| End::Type {
            caller: caller(),
            source: Box::new(source),
        };
        let schema = types::of_publisher(hub, header, &self.rule).map_err(wrong)?;
        let mut state = lock(&self.state);
        if state.filter.is_none() {
            let filter = Filter::new(&self.rule, &schema);
            let unfit = |source| End::Filter {
                caller: caller(),
                source,
            };
            state.filter = Some(filter.map_err(unfit)?);
        }
        // The log of all nodes is one topic of one publisher, as `rosout` publishes it.
        let gathers = self.topic == "/rosout";
        if let Some(bound) = state.gathered.as_ref().filter(|_| gathers) {
            types::same(bound.publisher.schema(), &schema).map_err(wrong)?;
            return Ok(bound.clone());
        }
        let latched = self.rule.latched.unwrap_or(header.is("latching"));
        let mut options = PublisherOptions::default().with_history(latched.into());
        options.node = node_of(header);
        let most = if standing.known {
            hub.config.known_memory()
        } else {
            hub.config.peer_memory()
        };
        options.memory_limit = options.memory_limit.min(most / PARTS);
        let publisher = hub.publish(&self.bus_topic, &schema, options)?;
        let bound = Arc::new(Bound {
            publisher,
            hub: hub.clone(),
            reserved: Mutex::new(Share::new(&hub.peers, standing)),
        });
        if gathers {
            state.gathered = Some(bound.clone());
        }
        Ok(bound)
    }

    fn pump(
        &self,
        hub: &Hub,
        bound: &Bound,
        stream: Paced,
        standing: Standing,
        caller: &str,
        what: &str,
    ) -> Result<(), End> {
        let broken = |source: io::Error| End::Stream {
            caller: caller.to_owned(),
            source: match source.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => io::Error::other(format!(
                    "silent for {} s in the middle of a message",
                    STALL.as_secs()
                )),
                _ => source,
            },
        };
        let mut stream = BufReader::new(stream);
        let mut buffer = Vec::new();
        let mut share = Share::new(&hub.peers, standing);
        let mut small = 0;
        let full = |source| End::Memory {
            caller: caller.to_owned(),
            source,
        };
        let publisher = bound.publisher.bus();
        let schema = bound.publisher.schema();
        let stamp = Stamp {
            time: None,
            origin: Some(hub.origin(bound.id())),
        };
        while let Some(len) = next(&mut stream).map_err(broken)? {
            let len = hub.config.max_message_of(self.rule.max_message).check(len);
            let len = len.map_err(|source| End::TooLong {
                caller: caller.to_owned(),
                source,
            })?;
            stream.get_mut().expect(Some(len));
            let reads = {
                let mut state = lock(&self.state);
                let filter = state.filter.as_mut();
                let reads = filter.as_ref().is_some_and(|f| f.reads());
                if !reads && !filter.is_none_or(|f| f.due(clock::monotonic())) {
                    drop(state);
                    self.counts.filtered();
                    body::skip(&mut stream, len).map_err(broken)?;
                    continue;
                }
                reads
            };
            let loan = |control, parts: &[usize]| publisher.loan(control, parts);
            let loan = if reads {
                buffer.clear();
                let gathered = if len > MAX_LOOKED_AT {
                    Err(format!(
                        "a message of {len} bytes, more than the limit of {MAX_LOOKED_AT} for a topic with `tf` or `level`"
                    ))
                } else {
                    let gathered = body::gather(&mut stream, len, &mut buffer, &mut share);
                    gathered.map_err(broken)?.map_err(|full| full.to_string())
                };
                if let Err(error) = gathered {
                    body::skip(&mut stream, len - buffer.len()).map_err(broken)?;
                    Err(error)
                } else {
                    match self.filtered(schema, &buffer) {
                        Some(bytes) => body::split(schema, &bytes, loan).map_err(|e| e.to_string()),
                        None => {
                            self.counts.filtered();
                            continue;
                        }
                    }
                }
            } else {
                let read = body::read(&mut stream, len, schema, &mut buffer, &mut share, loan);
                read.map_err(broken)?.map_err(|e| e.to_string())
            };
            let published = loan;
            let published = published.and_then(|l| publisher.publish(l, stamp).map_err(|e| e.to_string()));
            match published {
                Ok(_) => self.counts.passed(len),
                Err(error) => {
                    self.counts.failed();
                    hub.problem(what, format_args!("{caller}: {error}"));
                }
            }
            if buffer.capacity() > MAX_KEPT {
                buffer = Vec::new();
            }
            share.set(buffer.capacity() as u64).map_err(full)?;
            small += 1;
            if len >= LARGE || small == LOOK_AGAIN {
                small = 0;
                bound.charge().map_err(full)?;
            }
        }
        Err(End::Closed)
    }

    /// Returns the part of a message that crosses. A message that does not have the topic's type passes, so that
    /// [`body::split`] refuses it.
    fn filtered(&self, schema: &Schema, bytes: &[u8]) -> Option<Vec<u8>> {
        let Ok(value) = schema.decode_ros1(bytes) else {
            return Some(bytes.to_vec());
        };
        let mut state = lock(&self.state);
        let value = state.filter.as_mut()?.apply(clock::monotonic(), value)?;
        schema.encode_ros1(&value).ok()
    }
}

/// Settings of every TCPROS connection: nothing is delayed before sending, and dead peers are noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(stream, 9)?;
    Ok(())
}

/// Waits for the next message's length without a time limit; `None` if the stream ends here.
fn next(stream: &mut BufReader<Paced>) -> io::Result<Option<u32>> {
    stream.get_mut().expect(None);
    loop {
        match stream.fill_buf() {
            Ok([]) => return Ok(None),
            Ok(_) => break,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // With keepalive, a dead peer's socket returns ETIMEDOUT once; a silent one's returns EAGAIN again and
                // again.
                if e.raw_os_error() == Some(rustix::io::Errno::TIMEDOUT.raw_os_error()) {
                    return Err(io::Error::other("its host is gone"));
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let mut len = [0; 4];
    io::Read::read_exact(stream, &mut len)?;
    Ok(Some(u32::from_le_bytes(len)))
}

/// Returns the node name for the publisher on the bus; empty if the bus does not allow the name.
fn node_of(header: &Header) -> String {
    let named = header.get("callerid").unwrap_or_default();
    let good = named.len() <= bus::MAX_NAME && stats::text::is_plain(named);
    if good { named.to_owned() } else { String::new() }
}
