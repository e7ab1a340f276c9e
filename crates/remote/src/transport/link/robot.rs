//! A robot's end.

use super::gate::{Gate, Pass};
use super::{errors, frame, names, types};
use crate::sync::lock;
use crate::transport::{Class, Peer, Reply, RobotEnd, RobotSink, Stream, TransportError, Wire};
use bus::{Interrupt, TakeError};
use ropewalk::{Loan, Node, Publisher, PublisherOptions, Request, Server, ServerOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum requests of each controller, or of the link with all controllers of other hosts, that wait; and maximum
/// without an answer.
const QUEUE: u32 = 64;
const HELD: u32 = 256;
/// Maximum bytes of telemetry of a kind and channel in use at a time, and maximum that one slow subscriber may hold.
const MEMORY: u64 = 256 << 20;
const LISTENER: u64 = 64 << 20;
/// Maximum number of telemetry topics.
pub(super) const MOST_STREAMS: usize = 1024;
/// How long to wait for answers in progress when the end stops.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(100);

/// The end of a robot on this host's bus. Controllers of other hosts reach it over links.
pub struct LinkRobot {
    node: Node,
    name: String,
    gate: Gate,
    threads: Mutex<Vec<Thread>>,
    streams: Mutex<BTreeMap<String, Arc<Publisher>>>,
}

struct Thread {
    interrupt: Interrupt,
    handle: JoinHandle<()>,
}

impl LinkRobot {
    /// Returns the end of the robot `name`: words of letters, digits and `_`, with `/` between them, as in names of
    /// topics. The name may be empty if one robot has the bus for itself, and other hosts give it a namespace.
    pub fn new(node: &Node, name: &str) -> Self {
        LinkRobot {
            node: node.clone(),
            name: name.to_owned(),
            gate: Gate::default(),
            threads: Mutex::default(),
            streams: Mutex::default(),
        }
    }

    fn publisher(&self, stream: Stream<'_>, large: bool) -> Result<Arc<Publisher>, TransportError> {
        let topic = names::topic(&self.name, stream.kind, stream.channel, large);
        let mut streams = lock(&self.streams);
        if let Some(publisher) = streams.get(&topic) {
            return Ok(publisher.clone());
        }
        if streams.len() >= MOST_STREAMS {
            return Err(TransportError::Setup(format!(
                "{topic}: the robot already publishes telemetry on {MOST_STREAMS} topics, the limit for a bus"
            )));
        }
        // Late joiners also receive the newest value; a link, too, needs a moment to find a new topic.
        let options = PublisherOptions::default()
            .with_memory_limit(MEMORY)
            .with_subscriber_quota(LISTENER)
            .with_history(1);
        let schema = types::telemetry(stream.priority).map_err(setup)?;
        let publisher = self.node.dynamic_publisher_with(&topic, &schema, options);
        let publisher = Arc::new(publisher.map_err(setup)?);
        streams.insert(topic, publisher.clone());
        Ok(publisher)
    }
}

impl RobotEnd for LinkRobot {
    fn wire(&self) -> Wire {
        Wire::Own
    }

    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError> {
        let call = types::call().map_err(setup)?;
        let (late, rest) = channel();
        let options = ServerOptions::default().with_depth(QUEUE).with_max_held(HELD);
        let mut threads = lock(&self.threads);
        for class in [Class::Command, Class::Request, Class::File] {
            let name = names::service(&self.name, class);
            let server = self.node.dynamic_server_with(&name, &call, options.clone());
            let server = Arc::new(server.map_err(setup)?);
            let interrupt = server.bus().interrupt();
            let (gate, sink, late) = (self.gate.clone(), sink.clone(), late.clone());
            let serve = move || serve(&server, &gate, &*sink, &late);
            let handle = std::thread::Builder::new()
                .name("remote-serve".into())
                .spawn(serve)
                .map_err(setup)?;
            threads.push(Thread { interrupt, handle });
        }
        // Ends with the last request and thread that may still send to it.
        let late = move || rest.into_iter().for_each(Late::finish);
        std::thread::Builder::new()
            .name("remote-late".into())
            .spawn(late)
            .map_err(setup)?;
        Ok(())
    }

    fn announce(&self, stream: Stream<'_>) -> Result<(), TransportError> {
        if self.gate.is_closed() {
            return Err(TransportError::Ended);
        }
        for large in [false, true] {
            self.publisher(stream, large)?;
        }
        Ok(())
    }

    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError> {
        if self.gate.is_closed() {
            return Err(TransportError::Ended);
        }
        check_len(frame)?;
        let publisher = self.publisher(stream, names::is_large(frame.len()))?;
        match frame::write(frame, |control, parts| publisher.loan(control, parts)) {
            Ok(loan) => {
                let published = publisher.publish(loan);
                published.map(drop).map_err(|_| TransportError::Ended)
            }
            Err(error) => match errors::loan(frame.len(), error) {
                error @ TransportError::TooLong { .. } => Err(error),
                // Subscribers notice the loss by the sequence in the next frame.
                error => {
                    tracing::debug!(%error, topic = publisher.topic(), "a telemetry frame is lost");
                    Ok(())
                }
            },
        }
    }

    fn stop(&self) {
        self.gate.close();
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.iter().for_each(|t| t.interrupt.wake());
        if !threads.is_empty() {
            self.gate.wait_empty(LAST_WORDS);
        }
        let own = std::thread::current().id();
        for thread in threads {
            // Does not wait for a handler that does not return, nor for one that stops its own end.
            if thread.handle.thread().id() != own && self.gate.is_empty() {
                let _ = thread.handle.join();
            }
        }
        lock(&self.streams).clear();
    }

    fn describe(&self) -> String {
        let folder = self.node.bus().config().runtime_dir.display().to_string();
        format!(
            "link {} on the bus {folder}",
            names::service(&self.name, Class::Command)
        )
    }
}

impl Drop for LinkRobot {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for LinkRobot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkRobot").field(&self.describe()).finish()
    }
}

/// Passes requests of one class to the sink until the end stops.
fn serve(server: &Arc<Server>, gate: &Gate, sink: &dyn RobotSink, late: &Sender<Late>) {
    let mut buffer = Vec::new();
    while !gate.is_closed() {
        match server.take_timeout(Duration::MAX) {
            Ok(Some(request)) => {
                let Some(pass) = gate.enter() else { return };
                let asked = Asked {
                    request: Some(request),
                    server: Arc::downgrade(server),
                    late: late.clone(),
                    _pass: pass,
                };
                asked.hand(sink, &mut buffer);
            }
            Ok(None) => {}
            // The robot holds the maximum of one caller's unanswered requests.
            Err(TakeError::HoldLimit { .. }) if server.bus().wait_takeable(Duration::MAX).is_ok() => {}
            Err(error) => {
                tracing::error!(%error, service = server.service(), "stopped receiving requests");
                return;
            }
        }
    }
}

/// A request without an answer yet. Dropping it notifies its controller that there will be none.
struct Asked {
    request: Option<Request>,
    /// Weak, so that the service ends when the end stops.
    server: Weak<Server>,
    late: Sender<Late>,
    _pass: Pass,
}

/// An answer, or a dropped request, whose caller has not finished its handshake: the bus waits for that.
struct Late(Option<Arc<Server>>, Request, Option<Loan>);

impl Late {
    fn finish(self) {
        let Late(server, request, loan) = self;
        if let (Some(server), Some(loan)) = (server, loan)
            && let Err(error) = server.respond(request, loan)
        {
            tracing::debug!(%error, service = server.service(), "a controller did not receive its answer");
        }
    }
}

impl Asked {
    fn hand(self, sink: &dyn RobotSink, buffer: &mut Vec<u8>) {
        let Some(request) = &self.request else { return };
        match frame::read(request.bus().message(), buffer) {
            Ok(frame) => {
                let (uid, pid) = request.bus().message().sender();
                let host = request.bus().on_behalf_of();
                let from = Peer::Process { uid, pid, host };
                sink.request(frame, &from, Reply::new(move |answer| self.answer(answer)));
            }
            Err(error) => tracing::debug!(%error, "a request without a valid frame is not answered"),
        }
    }

    fn answer(mut self, answer: &[u8]) -> Result<(), TransportError> {
        check_len(answer)?;
        let server = self.server.upgrade().ok_or(TransportError::Ended)?;
        let loan = frame::write(answer, |control, parts| server.loan(control, parts));
        let loan = loan.map_err(|error| errors::loan(answer.len(), error))?;
        let request = self.request.take().ok_or(TransportError::Ended)?;
        if !server.bus().can_answer(request.bus()) {
            let late = Late(Some(server), request, Some(loan));
            return self.late.send(late).map_err(|_| TransportError::Ended);
        }
        let answered = server.respond(request, loan);
        answered.map_err(|error| TransportError::Unreachable(error.to_string()))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        // If the server has ended, its clients notice that themselves.
        if let Some(server) = self.server.upgrade()
            && !server.bus().can_answer(request.bus())
        {
            let _ = self.late.send(Late(Some(server), request, None));
        }
    }
}

pub(super) fn check_len(frame: &[u8]) -> Result<(), TransportError> {
    match frame.len() {
        len if len > frame::MAX => Err(TransportError::TooLong {
            len,
            most: frame::MAX,
        }),
        _ => Ok(()),
    }
}

pub(super) fn setup(error: impl fmt::Display) -> TransportError {
    TransportError::Setup(error.to_string())
}
