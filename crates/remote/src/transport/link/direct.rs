//! Ends with a link of their own, inside the program.

use super::gate::Gate;
use super::robot::{LAST_WORDS, MOST_STREAMS, check_len, setup};
use super::{errors, frame, names, types};
use crate::sync::{lock, read, write};
use crate::transport::{
    Class, ControllerEnd, ControllerSink, Done, Listen, Peer, Reply, RobotEnd, RobotSink, Stream,
    TransportError, Wire,
};
use ::link::Config;
use ::link::direct::{Asked, Content, Direct, Local};
use bus::TopicType;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

const CLASSES: [Class; 3] = [Class::Command, Class::Request, Class::File];

/// The end of a robot with a link of its own.
pub struct DirectRobot {
    config: Config,
    name: String,
    gate: Gate,
    link: OnceLock<Direct>,
    streams: Mutex<BTreeMap<String, Arc<TopicType>>>,
}

impl DirectRobot {
    /// Returns the end of the robot `name`, as [`LinkRobot::new`](super::LinkRobot::new), with a link configured by
    /// `config`: its `host`, `keys`, `radio`, peers, the services with `role: serve` and the topics of telemetry.
    pub fn new(config: Config, name: &str) -> Self {
        DirectRobot {
            config,
            name: name.to_owned(),
            gate: Gate::default(),
            link: OnceLock::new(),
            streams: Mutex::default(),
        }
    }

    fn stream(&self, stream: Stream<'_>, large: bool) -> Result<Arc<TopicType>, TransportError> {
        let topic = names::topic(&self.name, stream.kind, stream.channel, large);
        let mut streams = lock(&self.streams);
        if let Some(kind) = streams.get(&topic) {
            return Ok(kind.clone());
        }
        if streams.len() >= MOST_STREAMS {
            return Err(TransportError::Setup(format!(
                "{topic}: the robot already publishes telemetry on {MOST_STREAMS} topics, the limit for a link"
            )));
        }
        let kind = Arc::new(types::topic_type(topic.clone(), stream.priority).map_err(setup)?);
        streams.insert(topic, kind.clone());
        Ok(kind)
    }
}

/// Incoming messages for a robot.
struct ForRobot {
    gate: Gate,
    sink: Arc<dyn RobotSink>,
}

impl Local for ForRobot {
    fn request(&self, _: &str, content: Content<'_>, asked: Asked) {
        let Some(pass) = self.gate.enter() else { return };
        match frame::of(&content) {
            Ok(frame) => {
                let from = Peer::Host(asked.from().clone());
                let reply = Reply::new(move |answer| {
                    let _pass = pass;
                    check_len(answer)?;
                    let (control, part) = frame::parts(answer);
                    let answered = asked.respond(&control, part.as_slice());
                    answered.map_err(|reason| {
                        TransportError::Unreachable(format!("the link dropped the answer: {}", reason.name()))
                    })
                });
                self.sink.request(frame, &from, reply);
            }
            Err(error) => tracing::debug!(%error, "a request without a valid frame is not answered"),
        }
    }

    fn message(&self, _: &str, _: Content<'_>) {}

    fn offered(&self, _: &str, _: bool) {}
}

impl RobotEnd for DirectRobot {
    fn wire(&self) -> Wire {
        Wire::Own
    }

    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError> {
        let local = ForRobot {
            gate: self.gate.clone(),
            sink,
        };
        let link = Direct::open(self.config.clone(), Arc::new(local)).map_err(setup)?;
        for class in CLASSES {
            let kind = types::service_type(names::service(&self.name, class)).map_err(setup)?;
            link.serve(kind).map_err(setup)?;
        }
        let _ = self.link.set(link);
        Ok(())
    }

    fn announce(&self, stream: Stream<'_>) -> Result<(), TransportError> {
        if self.gate.is_closed() {
            return Err(TransportError::Ended);
        }
        for large in [false, true] {
            let kind = self.stream(stream, large)?;
            if let Some(link) = self.link.get() {
                link.announce(&kind).map_err(setup)?;
            }
        }
        Ok(())
    }

    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError> {
        if self.gate.is_closed() {
            return Err(TransportError::Ended);
        }
        check_len(frame)?;
        let Some(link) = self.link.get() else {
            return Ok(());
        };
        let kind = self.stream(stream, names::is_large(frame.len()))?;
        let (control, part) = frame::parts(frame);
        link.publish(&kind, &control, part.as_slice()).map_err(setup)
    }

    fn stop(&self) {
        self.gate.close();
        if let Some(link) = self.link.get() {
            self.gate.wait_empty(LAST_WORDS);
            link.stop();
        }
    }

    fn describe(&self) -> String {
        format!("link of its own, {}", names::service(&self.name, Class::Command))
    }
}

impl fmt::Debug for DirectRobot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectRobot").field(&self.describe()).finish()
    }
}

/// The end of a controller with a link of its own.
pub struct DirectController {
    config: Config,
    robot: String,
    gate: Gate,
    link: OnceLock<Direct>,
    wanted: Arc<Wanted>,
}

/// The topics to receive; none: all of the robot's.
type Wanted = RwLock<Option<BTreeSet<String>>>;

impl DirectController {
    /// Returns the end for the robot `name`, as [`LinkController::new`](super::LinkController::new), with a link
    /// configured by `config`: its `host`, `keys`, `radio`, peers, the services with `role: call` and the topics of
    /// telemetry.
    pub fn new(config: Config, name: &str) -> Self {
        DirectController {
            config,
            robot: name.to_owned(),
            gate: Gate::default(),
            link: OnceLock::new(),
            wanted: Arc::default(),
        }
    }
}

/// Incoming messages for a controller.
struct ForController {
    gate: Gate,
    sink: Arc<dyn ControllerSink>,
    wanted: Arc<Wanted>,
    prefix: String,
    commands: String,
}

impl Local for ForController {
    fn request(&self, _: &str, _: Content<'_>, _: Asked) {}

    fn message(&self, topic: &str, content: Content<'_>) {
        let is_wanted = match &*read(&self.wanted) {
            Some(wanted) => wanted.contains(topic),
            None => topic.starts_with(&self.prefix),
        };
        let pass = is_wanted.then(|| self.gate.enter()).flatten();
        if pass.is_none() {
            return;
        }
        match frame::of(&content) {
            Ok(frame) => self.sink.telemetry(frame),
            Err(error) => tracing::debug!(%error, topic, "not telemetry"),
        }
    }

    fn offered(&self, service: &str, offered: bool) {
        if service == self.commands
            && let Some(_pass) = self.gate.enter()
        {
            self.sink.connected(offered);
        }
    }
}

impl ControllerEnd for DirectController {
    fn wire(&self) -> Wire {
        Wire::Own
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        let local = ForController {
            gate: self.gate.clone(),
            sink,
            wanted: self.wanted.clone(),
            prefix: names::telemetry(&self.robot),
            commands: names::service(&self.robot, Class::Command),
        };
        let link = Direct::open(self.config.clone(), Arc::new(local)).map_err(setup)?;
        let _ = self.link.set(link);
        Ok(())
    }

    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done) {
        if self.gate.is_closed() {
            return done(Err(TransportError::Ended));
        }
        if let Err(error) = check_len(frame) {
            return done(Err(error));
        }
        let Some(link) = self.link.get() else {
            return done(Err(TransportError::NotSent(
                "the transport was not started".into(),
            )));
        };
        let (gate, service) = (self.gate.clone(), names::service(&self.robot, class));
        let (control, part) = frame::parts(frame);
        let answered = move |result: Result<Content<'_>, bus::CallError>| {
            done(match result {
                Err(_) if gate.is_closed() => Err(TransportError::Ended),
                Err(error) => Err(errors::call(timeout, error)),
                Ok(content) => frame::of(&content)
                    .map_err(|error| TransportError::Unreachable(format!("malformed answer: {error}"))),
            });
        };
        link.call(&service, &control, part.as_slice(), timeout, Box::new(answered));
    }

    fn receive(&self, _: Class, timeout: Duration, over: &dyn Fn() -> bool) {
        if let Some(link) = self.link.get() {
            link.receive(timeout, over);
        }
    }

    fn wake(&self, _: Class) {
        if let Some(link) = self.link.get() {
            link.wake();
        }
    }

    fn listen(&self, streams: Listen<'_>) {
        *write(&self.wanted) = match streams {
            Listen::All => None,
            Listen::To(streams) => {
                let topics = streams
                    .iter()
                    .flat_map(|s| names::topics(&self.robot, s.kind, s.channel));
                Some(topics.collect())
            }
        };
    }

    fn stop(&self) {
        self.gate.close();
        if let Some(link) = self.link.get() {
            link.stop();
        }
    }

    fn describe(&self) -> String {
        format!("link of its own, {}", names::service(&self.robot, Class::Command))
    }
}

impl fmt::Debug for DirectController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectController").field(&self.describe()).finish()
    }
}
