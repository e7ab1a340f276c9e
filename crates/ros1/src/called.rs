//! A service of ROS, offered on the bus.

use crate::body;
use crate::config::{MaxMessage, ServiceRule};
use crate::header::{BRIDGE, Header, HeaderError, MAX_HEADER};
use crate::hub::Hub;
use crate::master::{ApiError, TIMEOUT};
use crate::net::{HostPort, Timed};
use crate::peers::{Full, Share};
use crate::subscription::prepare;
use crate::types::{self, TypeError};
use bridge::{Counts, printable};
use ropewalk::{NodeError, Request, Server, Service};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of concurrent calls of one service; others wait.
const WORKERS: usize = 4;

/// Longest reason for a failure from a server, in bytes.
const MAX_REASON: MaxMessage = MaxMessage(64 << 10);

/// A service of ROS, offered on the bus.
#[derive(Debug)]
pub(crate) struct Called {
    /// Its name in ROS.
    pub(crate) name: String,
    pub(crate) bus_name: String,
    pub(crate) service: Service,
    /// Address of its server when it was offered.
    pub(crate) address: HostPort,
    timeout: Duration,
    max_message: MaxMessage,
    server: Server,
    closed: AtomicBool,
    pub(crate) counts: Counts,
}

/// Why a service of ROS cannot be offered or called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalledError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(
        "its server cannot be reached at {address}: {source}; check ROS_IP and ROS_HOSTNAME where it runs"
    )]
    Connect { address: HostPort, source: io::Error },
    #[error("its server: {0}")]
    Header(#[from] HeaderError),
    #[error("its server refuses: {0}")]
    Refused(String),
    #[error("its server {caller} {source}")]
    Type { caller: String, source: Box<TypeError> },
    #[error(transparent)]
    Bus(#[from] NodeError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("its server sends {0}")]
    TooLong(#[from] crate::config::TooLong),
    #[error("its server's answer: {0}")]
    Memory(#[from] Full),
    #[error("its server ended during a call: {0}")]
    Stream(io::Error),
    /// A bridge serves it.
    #[error("a bridge serves it")]
    Bridge,
}

impl Called {
    /// Queries the type of a service of ROS, and offers the service.
    pub(crate) fn start(
        hub: &Arc<Hub>,
        name: &str,
        bus_name: String,
        rule: &ServiceRule,
    ) -> Result<Arc<Called>, CalledError> {
        let address = hub.master.lookup_service(name)?;
        let (_, header) = greet(hub.name(), &address, name, "*", true)?;
        if header.is(BRIDGE) {
            return Err(CalledError::Bridge);
        }
        let wrong = |source: TypeError| CalledError::Type {
            caller: header.caller().to_owned(),
            source: Box::new(source),
        };
        let service = types::of_server(hub, &header, rule).map_err(wrong)?;
        let called = Arc::new(Called {
            name: name.to_owned(),
            server: hub.node.dynamic_server(&bus_name, &service)?,
            bus_name,
            service,
            address,
            timeout: rule.timeout(),
            max_message: hub.config.max_message_of(rule.max_message),
            closed: AtomicBool::new(false),
            counts: Counts::default(),
        });
        for _ in 0..WORKERS {
            let (this, hub) = (called.clone(), hub.clone());
            let thread = std::thread::Builder::new().name("ros-caller".into());
            let started = thread.spawn(move || {
                clock::nice_thread(clock::FORWARDING_NICE);
                this.work(&hub);
            });
            if let Err(error) = started {
                called.stop();
                return Err(CalledError::Thread(error));
            }
        }
        Ok(called)
    }

    pub(crate) fn id(&self) -> &str {
        &self.bus_name
    }

    pub(crate) fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        for _ in 0..WORKERS {
            self.server.bus().interrupt().wake();
        }
    }

    fn work(&self, hub: &Hub) {
        while !self.closed.load(Ordering::Acquire) {
            match self.server.take_timeout(Duration::from_secs(1)) {
                Ok(Some(request)) => self.handle(hub, request),
                Ok(None) => {}
                Err(error) => {
                    hub.problem(&self.name, format_args!("calls from the bus have ended: {error}"));
                    return;
                }
            }
        }
    }

    fn handle(&self, hub: &Hub, request: Request) {
        let timeout = self.timeout.min(request.time_left());
        let bytes = request.ros1().map_err(|e| e.to_string());
        let answer = bytes.and_then(|bytes| self.call(hub, &bytes, timeout).map_err(|e| e.to_string()));
        let answered = match answer {
            Ok((Ok(answer), _share)) => {
                self.counts.passed(answer.len());
                self.server
                    .respond_ros1(request, &answer)
                    .map_err(|e| e.to_string())
            }
            // The server reported an error.
            Ok((Err(text), _)) => {
                self.counts.failed();
                self.server
                    .reject(request, &printable(&text))
                    .map_err(|e| e.to_string())
            }
            Err(text) => {
                self.counts.failed();
                self.server
                    .reject(request, &printable(&text))
                    .map_err(|e| e.to_string())
            }
        };
        if let Err(error) = answered {
            tracing::debug!(error, service = self.name, "cannot deliver an answer to a caller");
        }
    }

    /// Makes one call. The inner `Err` comes from the server. A request that was partly sent is never repeated.
    fn call(&self, hub: &Hub, request: &[u8], timeout: Duration) -> Result<(Answer, Share), CalledError> {
        let sum = self.service.md5_hex();
        let (stream, _) = match greet(hub.name(), &self.address, &self.name, &sum, false) {
            // The server may have moved.
            Err(CalledError::Connect { .. }) => {
                let address = hub.master.lookup_service(&self.name)?;
                greet(hub.name(), &address, &self.name, &sum, false)?
            }
            other => other?,
        };
        let standing = hub.peers.standing(&stream).map_err(CalledError::Stream)?;
        let mut share = Share::new(&hub.peers, standing);
        let answer = exchange(self.max_message, &stream, request, timeout, &mut share)?;
        Ok((answer, share))
    }
}

/// Answer of a server; an `Err` is its reason for a failure.
type Answer = Result<Vec<u8>, String>;

/// Sends a request and reads its answer.
fn exchange(
    most: MaxMessage,
    stream: &TcpStream,
    request: &[u8],
    timeout: Duration,
    share: &mut Share,
) -> Result<Answer, CalledError> {
    let mut timed = Timed::new(stream, timeout);
    let len = u32::try_from(request.len()).map_err(|e| CalledError::Stream(io::Error::other(e)))?;
    let mut whole = len.to_le_bytes().to_vec();
    whole.extend_from_slice(request);
    timed.write_all(&whole).map_err(CalledError::Stream)?;
    let mut head = [0; 5];
    timed.read_exact(&mut head).map_err(CalledError::Stream)?;
    let [good, len @ ..] = head;
    let most = if good == 1 { most } else { MAX_REASON };
    let len = most.check(u32::from_le_bytes(len))?;
    let mut answer = Vec::new();
    body::gather(&mut timed, len, &mut answer, share).map_err(CalledError::Stream)??;
    if good == 1 {
        return Ok(Ok(answer));
    }
    Ok(Err(String::from_utf8_lossy(&answer).into_owned()))
}

/// Connects to a service's server and reads its header.
fn greet(
    caller: &str,
    address: &HostPort,
    name: &str,
    sum: &str,
    probe: bool,
) -> Result<(TcpStream, Header), CalledError> {
    let unreached = |source| CalledError::Connect {
        address: address.clone(),
        source,
    };
    let stream = address.connect(TIMEOUT).map_err(unreached)?;
    prepare(&stream).map_err(unreached)?;
    let mut fields = vec![
        ("callerid", caller),
        ("service", name),
        ("md5sum", sum),
        (BRIDGE, "1"),
    ];
    if probe {
        fields.push(("probe", "1"));
    }
    let mut timed = Timed::new(&stream, TIMEOUT);
    Header::new(&fields).write(&mut timed).map_err(HeaderError::Io)?;
    let header = Header::read(&mut timed, MAX_HEADER)?;
    match header.get("error") {
        Some(error) => Err(CalledError::Refused(stats::text::printable(error).into_owned())),
        None => Ok((stream, header)),
    }
}
