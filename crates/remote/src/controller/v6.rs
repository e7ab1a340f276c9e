//! The wire of version 6, from the controller's side: requests without sender, number and time.

use super::call::{Call, End, What};
use super::core::{Core, Known};
use crate::clock::now;
use crate::own::{self, Outcome, request, response};
use crate::sync::lock;
use crate::transport::{Class, TransportError, Wire};
use crate::v6::{self, Ack, Request};
use crate::{telemetry, types};
use prost::Message;
use prost::bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long to wait for a command while the round trip is unknown.
const UNKNOWN: Duration = Duration::from_secs(5);
/// Maximum wait for a request: this wire has no retries.
const LONGEST: Duration = Duration::from_secs(3600);
/// Maximum number of kinds with numbers of their own.
const MOST_KINDS: usize = 256;
/// Why the controller sends no requests to a robot.
const VERSION_7: &str = "the robot speaks version 7 of Robot Remote Control, and this controller speaks version 6: \
                         start the robot with version 6";

/// Kinds of telemetry by their numbers: the library's, and those that the user's program has named.
#[derive(Default)]
pub(super) struct Names(Mutex<BTreeMap<u8, &'static str>>);

impl Names {
    /// The program uses this kind.
    pub(super) fn learn(&self, kind: &telemetry::Entry) {
        let mut names = lock(&self.0);
        if let Some(number) = kind.v6.filter(|_| names.len() < MOST_KINDS) {
            names.insert(number, kind.name);
        }
    }

    fn get(&self, number: u8) -> Option<&'static str> {
        let learnt = lock(&self.0).get(&number).copied();
        learnt.or_else(|| telemetry::by_v6(number).map(|kind| kind.name))
    }
}

impl Core {
    pub(super) fn speaks_v6(&self) -> bool {
        self.requests.wire() == Wire::V6
    }

    /// Sends a call at once, and never again: a robot of this wire would execute it twice.
    pub(super) fn dispatch_v6(self: &Arc<Self>, call: &Arc<Call>) {
        call.time(lock(&self.state).rtt.or(Some(UNKNOWN / 2)), true);
        if self.is_version_7() {
            return call.finish(End::Unreachable {
                maybe: false,
                reason: VERSION_7.into(),
            });
        }
        let give_up = call.give_up_at();
        let (frame, expects) = match self.frame_v6(&call.what) {
            Ok(frame) => frame,
            Err(reason) => return call.finish(End::Impossible(reason)),
        };
        let (core, call, class) = (Arc::downgrade(self), call.clone(), call.class);
        let done = move |result: Result<&[u8], TransportError>| {
            let answers = result.as_ref().is_ok_and(|reply| expects.shows_version_6(reply));
            if let Some(core) = core.upgrade().filter(|_| answers) {
                core.mark_heard(now());
            }
            call.finish(match result {
                Ok(reply) => expects.read(reply),
                Err(e @ TransportError::TooLong { .. }) => End::Impossible(e.to_string()),
                Err(e) => {
                    let maybe = !matches!(e, TransportError::Busy(_));
                    End::Unreachable {
                        maybe,
                        reason: e.reason(),
                    }
                }
            });
        };
        self.requests
            .request(class, &frame, give_up.since(now()).min(LONGEST), Box::new(done));
    }

    fn frame_v6(&self, what: &What) -> Result<(Vec<u8>, Expects), String> {
        let none = |kind: &str| format!("the wire format of version 6 has no number for {kind}");
        match what {
            What::Command { kind, v6, body } => {
                let number = v6.ok_or_else(|| none(kind))?;
                Ok((Request::Command { number, body }.encode(), Expects::Ack(number)))
            }
            What::Fetch { kind, v6, channel } => {
                let number = v6.ok_or_else(|| none(kind))?;
                Ok((
                    Request::Telemetry {
                        number,
                        channel: *channel,
                    }
                    .encode(),
                    Expects::Latest,
                ))
            }
            What::Other(request::What::LogLevel(own::LogLevel { level })) => {
                let level = u8::try_from(*level).map_err(|_| "the log level exceeds 255".to_owned())?;
                let request = Request::LogLevel(level);
                Ok((request.encode(), Expects::Ack(request.number())))
            }
            What::Other(request::What::File(file)) => {
                let wanted = types::FileRequest {
                    identifier: file.identifier.clone(),
                    compressed: true,
                };
                Ok((Request::File(wanted).encode(), Expects::Files))
            }
            What::Other(_) => Err("the wire format of version 6 has no such request".to_owned()),
        }
    }

    /// Requests the robot's version and name, in place of a greeting.
    pub(super) fn greet_v6(self: &Arc<Self>) {
        let (core, sent) = (Arc::downgrade(self), now());
        let done = move |result: Result<&[u8], TransportError>| {
            let Some(core) = core.upgrade() else { return };
            let reply = match result {
                Ok(reply) => reply,
                Err(error) => return core.not_met(error.reason()),
            };
            if v6::is_version_7_reply(reply) {
                if !core.is_version_7() {
                    tracing::warn!("{}: {VERSION_7}", core.name);
                }
                return core.not_met(VERSION_7.into());
            }
            match v6::version(reply) {
                Ok(v6::PROTOCOL_VERSION) => {}
                Ok(other) => tracing::warn!("{}: the robot speaks another version ({other})", core.name),
                Err(e) => tracing::warn!("{}: cannot read the robot's version: {e}", core.name),
            }
            core.ask_name_v6();
            // This wire does not announce kinds.
            core.met_with(Known::default(), None, now().since(sent), now());
        };
        self.requests.request(
            Class::Request,
            &Request::ProtocolVersion.encode(),
            super::core::GREETING,
            Box::new(done),
        );
    }

    /// Returns whether the last greeting was answered as by version 7. Other replies of such a robot could be mistaken
    /// for version 6's.
    fn is_version_7(&self) -> bool {
        lock(&self.state).unheard.as_deref() == Some(VERSION_7)
    }

    fn ask_name_v6(self: &Arc<Self>) {
        let core = Arc::downgrade(self);
        let number = types::TelemetryMessageType::RobotName as u8;
        let done = move |result: Result<&[u8], TransportError>| {
            let name = result.ok().and_then(|reply| v6::latest(reply).ok().flatten());
            let name = name.and_then(|body| types::RobotName::decode(body).ok());
            if let (Some(core), Some(name)) = (core.upgrade(), name) {
                let known = Known {
                    robot: name.value,
                    ..Known::default()
                };
                lock(&core.state).known = Some(Arc::new(known));
            }
        };
        let request = Request::Telemetry { number, channel: 0 }.encode();
        self.requests
            .request(Class::Request, &request, super::core::GREETING, Box::new(done));
    }

    /// Sends a heartbeat; `done` receives whether the robot acknowledged it.
    pub(super) fn beat_v6(&self, timeout: Duration, done: impl FnOnce(bool) + Send + 'static) {
        // Upstream's robots wait for the period and 0.1 s more.
        let request = Request::Heartbeat { period: self.period };
        let number = request.number();
        let done = Box::new(move |result: Result<&[u8], TransportError>| {
            done(result.is_ok_and(|reply| Ack::parse(number, reply) == Ok(Ack::Taken)));
        });
        self.requests
            .request(Class::Command, &request.encode(), timeout, done);
    }

    /// Handles a telemetry frame.
    pub(super) fn receive_telemetry_v6(&self, frame: &[u8]) {
        let Ok(telemetry) = v6::Telemetry::parse(frame) else {
            return self.counters.dropped("malformed", 1);
        };
        if self.is_version_7() {
            return self.counters.dropped("version_7", 1);
        }
        self.mark_heard(now());
        let Some(name) = self.names.get(telemetry.number) else {
            return self.counters.dropped("unknown_kind", 1);
        };
        let body = Bytes::copy_from_slice(telemetry.body);
        self.deliver_body(name, telemetry.channel, None, body);
    }
}

/// The kind of reply that a request expects.
enum Expects {
    Ack(u8),
    Latest,
    Files,
}

impl Expects {
    /// Returns whether the reply proves a robot of version 6, which may not be known yet. A robot of version 7 answers
    /// with an empty frame, as one of version 6 does for a value that is not set.
    fn shows_version_6(&self, reply: &[u8]) -> bool {
        match *self {
            Expects::Ack(number) => Ack::parse(number, reply).is_ok(),
            Expects::Latest | Expects::Files => !reply.is_empty(),
        }
    }

    /// Reads the reply into the form that Ropewalk's own wire would have answered with.
    fn read(self, reply: &[u8]) -> End {
        let executed = |what| {
            End::Answered(own::Response {
                outcome: Outcome::Executed.into(),
                what,
                ..Default::default()
            })
        };
        let refused = |reason: String| {
            End::Answered(own::Response {
                outcome: Outcome::Rejected.into(),
                reason,
                ..Default::default()
            })
        };
        match self {
            Expects::Ack(number) => match Ack::parse(number, reply) {
                Ok(Ack::Taken) => executed(None),
                Ok(Ack::Refused) => refused("the robot refused the request".into()),
                Err(v6::Malformed::Empty | v6::Malformed::Version7) => End::Unreachable {
                    maybe: true,
                    reason: VERSION_7.into(),
                },
                Err(e) => End::Unreachable {
                    maybe: true,
                    reason: e.to_string(),
                },
            },
            Expects::Latest => match v6::latest(reply) {
                Ok(body) => {
                    let body = body.map(Bytes::copy_from_slice);
                    let fetched = own::Fetched {
                        set: body.is_some(),
                        body: body.unwrap_or_default(),
                    };
                    executed(Some(response::What::Fetched(fetched)))
                }
                Err(e) => refused(e.to_string()),
            },
            // The requester reads its content.
            Expects::Files => {
                let data = Bytes::copy_from_slice(reply);
                executed(Some(response::What::File(own::FileChunk {
                    data,
                    ..Default::default()
                })))
            }
        }
    }
}
