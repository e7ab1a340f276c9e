//! A service of the bus, served in ROS.

use crate::body;
use crate::config::{MaxMessage, ServiceRule};
use crate::header::{BRIDGE, Header};
use crate::hub::Hub;
use crate::listener::Accepted;
use crate::net::{STALL, Timed, patience};
use crate::peers::{Full, Share};
use crate::subscription::prepare;
use bridge::Counts;
use ropewalk::{Client, NodeError, Service};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Timeout for a peer's part of the greeting.
const GREETING: Duration = Duration::from_secs(5);
/// How long a caller that keeps its connection may be silent.
const IDLE: Duration = Duration::from_secs(3600);

/// Answers up to this length are sent in one piece, since a copy costs less than a packet.
const ONE_PIECE: usize = 64 << 10;

/// A service of the bus, served in ROS.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) name: String,
    pub(crate) bus_name: String,
    pub(crate) service: Service,
    timeout: Duration,
    max_message: MaxMessage,
    client: Client,
    closed: AtomicBool,
    pub(crate) counts: Counts,
}

impl Offered {
    pub(crate) fn new(
        hub: &Hub,
        name: String,
        bus_name: String,
        service: Service,
        rule: &ServiceRule,
    ) -> Result<Offered, NodeError> {
        Ok(Offered {
            client: hub.node.dynamic_client(&bus_name, &service)?,
            name,
            bus_name,
            service,
            timeout: rule.timeout(),
            max_message: hub.config.max_message_of(rule.max_message),
            closed: AtomicBool::new(false),
            counts: Counts::default(),
        })
    }

    pub(crate) fn stop(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Serves a caller whose header has been read.
    pub(crate) fn serve(&self, hub: &Hub, accepted: &Accepted, header: &Header) {
        let mut timed = Timed::new(&accepted.stream, GREETING);
        if let Some(error) = self.difference(header) {
            hub.problem(&format!("{} to {}", self.name, header.caller()), &error);
            let _ = Header::new(&[("error", &error)]).write(&mut timed);
            return;
        }
        let (request, response) = (self.service.request(), self.service.response());
        let answer = Header::new(&[
            ("callerid", hub.name()),
            ("service", &self.name),
            ("type", &self.service.name()),
            ("md5sum", &self.service.md5_hex()),
            ("request_type", request.name()),
            ("response_type", response.name()),
            (BRIDGE, "1"),
        ]);
        let greeted = prepare(&accepted.stream).and_then(|()| answer.write(&mut timed));
        if greeted.is_err() || header.is("probe") {
            return;
        }
        accepted.settle();
        let persistent = header.is("persistent");
        loop {
            match self.answer(&accepted.stream, Share::new(&hub.peers, accepted.standing)) {
                Ok(()) if persistent && !self.closed.load(Ordering::Acquire) => {}
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%error, service = self.name, caller = header.caller(), "a caller is gone");
                    return;
                }
            }
        }
    }

    fn difference(&self, header: &Header) -> Option<String> {
        let (caller, name) = (header.caller(), &self.name);
        let Some(sum) = header.get("md5sum") else {
            return Some(format!("{caller} requests {name} without an md5sum"));
        };
        let ours = self.service.md5_hex();
        (sum != "*" && sum != ours).then(|| {
            let kind = self.service.name();
            format!(
                "{caller} calls {name} ({kind}) with md5 {sum}, but its server on the bus has {ours}: build both against \
                 the same {kind}.srv"
            )
        })
    }

    /// Answers one request. An `Err` is an error of the stream.
    fn answer(&self, stream: &TcpStream, mut share: Share) -> io::Result<()> {
        let mut len = [0; 4];
        Timed::new(stream, IDLE).read_exact(&mut len)?;
        let mut timed = Timed::new(stream, STALL);
        let len = match self.max_message.check(u32::from_le_bytes(len)) {
            Ok(len) => len,
            Err(error) => {
                self.counts.failed();
                reply(&mut timed, false, error.to_string().as_bytes())?;
                return Err(io::Error::other(error));
            }
        };
        let mut timed = Timed::new(stream, patience(len));
        let mut request = Vec::new();
        if let Err(full) = body::gather(&mut timed, len, &mut request, &mut share)? {
            self.counts.failed();
            reply(&mut timed, false, full.to_string().as_bytes())?;
            return Err(io::Error::other(full));
        }
        let answer = self.call(&request).map_err(|e| e.to_string());
        drop(request);
        // Answers that a caller does not read stay here.
        let covered = |answer: Vec<u8>| {
            let covered = share.set(answer.len() as u64);
            covered.map(|()| answer).map_err(|e: Full| e.to_string())
        };
        match answer.and_then(covered) {
            Ok(answer) => {
                self.counts.passed(answer.len());
                let mut timed = Timed::new(stream, patience(answer.len()));
                reply(&mut timed, true, &answer)
            }
            Err(error) => {
                self.counts.failed();
                reply(&mut Timed::new(stream, STALL), false, error.as_bytes())
            }
        }
    }

    fn call(&self, request: &[u8]) -> Result<Vec<u8>, ropewalk::CallError> {
        self.client.call_ros1(request, self.timeout)?.ros1()
    }
}

/// Writes the answer of a service: whether it succeeded, and the length of what follows.
fn reply(stream: &mut impl Write, good: bool, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| io::Error::other("longer than ROS can send"))?;
    if bytes.len() > ONE_PIECE {
        stream.write_all(&[[good.into()].as_slice(), &len.to_le_bytes()].concat())?;
        return stream.write_all(bytes);
    }
    let mut whole = Vec::with_capacity(bytes.len() + 5);
    whole.push(good.into());
    whole.extend(len.to_le_bytes());
    whole.extend_from_slice(bytes);
    stream.write_all(&whole)
}
