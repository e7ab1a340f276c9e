//! State that the parts of a controller share, and its connection to the robot.

use super::call::Call;
use super::telemetry::Streams;
use crate::clock::{now, random_id};
use crate::decode;
use crate::own::{self, Outcome, request, response};
use crate::safety::Stamps;
use crate::statistics::Counters;
use crate::sync::lock;
use crate::transport::{Class, ControllerEnd, TransportError};
use prost::Message;
use stats::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of requests that wait for the robot.
const PARKED: usize = 256;
/// How long to wait for the answer to a greeting.
pub(super) const GREETING: Duration = Duration::from_secs(10);
/// Delay before the robot is greeted again: it doubles up to the maximum.
const FIRST_GREETING: Duration = Duration::from_millis(50);
const LONGEST_GREETING: Duration = Duration::from_secs(1);

/// Whether the robot is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The robot was heard for the first time, or again.
    Found,
    /// No message came from the robot for too long.
    Lost,
}

/// The lock of the state is never held while a transport or a user's code is called.
pub(crate) struct Core {
    /// The number of this run; only its robot learns it.
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) period: Duration,
    /// Carries requests.
    pub(crate) requests: Arc<dyn ControllerEnd>,
    /// Ends that receive telemetry.
    pub(crate) telemetry: Vec<Arc<dyn ControllerEnd>>,
    pub(crate) state: Mutex<State>,
    /// Notified when the next action moves to another time, and when the robot is found or lost.
    pub(crate) changed: Condvar,
    pub(crate) streams: Streams,
    pub(super) names: super::v6::Names,
    pub(crate) counters: Counters,
    pub(crate) on_connection: crate::callback::Slot<Arc<dyn Fn(Connection) + Send + Sync>>,
    sequence: AtomicU64,
    ended: AtomicBool,
}

#[derive(Default)]
pub(crate) struct State {
    /// From the robot's last welcome; `None`: the robot has to be greeted.
    pub(crate) known: Option<Arc<Known>>,
    /// When the last welcome arrived.
    pub(crate) met_at: Option<Time>,
    pub(crate) stamps: Stamps,
    /// Smoothed.
    pub(crate) rtt: Option<Duration>,
    pub(crate) heard: Option<Time>,
    pub(crate) found: bool,
    /// Whether a greeting is in progress.
    pub(crate) greeting: bool,
    pub(crate) greet_at: Option<Time>,
    /// Why the last greeting was not answered.
    pub(super) unheard: Option<String>,
    greetings: u32,
    /// Calls that wait for the robot's welcome, or until a point in time.
    pub(crate) parked: Vec<(Arc<Call>, Option<Time>)>,
    pub(crate) beat_at: Option<Time>,
    pub(crate) beats_under_way: u32,
}

/// The robot's description of itself.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) run: u64,
    /// The number by which the robot knows this controller.
    pub(crate) controller: u64,
    pub(crate) robot: String,
    pub(crate) commands: BTreeMap<String, u32>,
    pub(crate) telemetry: BTreeMap<String, u32>,
    pub(crate) telemetry_names: BTreeMap<u32, Arc<str>>,
    pub(crate) channels: Vec<own::Channel>,
    pub(crate) subsystems: Vec<String>,
}

/// A robot has at most this many kinds of commands, kinds of telemetry, and subsystems; each kind has at most 255
/// channels.
const MOST_KINDS: usize = 512;

fn is_too_much(welcome: &own::Welcome) -> bool {
    let kinds = [
        welcome.commands.len(),
        welcome.telemetry.len(),
        welcome.subsystems.len(),
    ];
    kinds.iter().any(|n| *n > MOST_KINDS) || welcome.channels.len() > MOST_KINDS * 255
}

impl State {
    /// Returns the call as `Err` if too many wait.
    pub(crate) fn park(&mut self, call: Arc<Call>, retry: Option<Time>) -> Result<(), Arc<Call>> {
        if self.parked.len() >= PARKED {
            return Err(call);
        }
        self.parked.push((call, retry));
        Ok(())
    }

    pub(crate) fn round_trip(&mut self, sample: Duration) {
        self.rtt = Some(self.rtt.map_or(sample, |old| old - old / 8 + sample / 8));
    }

    /// Returns the silence after which the robot counts as lost.
    pub(crate) fn patience(&self, period: Duration) -> Duration {
        (period * 3).max(Duration::from_secs(1)) + self.rtt.unwrap_or_default() * 2
    }
}

impl Core {
    pub(crate) fn new(
        name: String,
        period: Duration,
        requests: Arc<dyn ControllerEnd>,
        telemetry: Vec<Arc<dyn ControllerEnd>>,
    ) -> Self {
        Core {
            number: random_id(),
            name,
            period,
            requests,
            telemetry,
            state: Mutex::default(),
            changed: Condvar::new(),
            streams: Streams::default(),
            names: super::v6::Names::default(),
            counters: Counters::default(),
            on_connection: crate::callback::Slot::default(),
            sequence: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number by which the robot knows this controller; 0 before they meet.
    pub(crate) fn id(&self) -> u64 {
        lock(&self.state)
            .known
            .as_ref()
            .map_or(0, |known| known.controller)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Sends a request that is not part of any call.
    pub(crate) fn ask(
        &self,
        what: request::What,
        timeout: Duration,
        done: impl FnOnce(Result<&[u8], TransportError>) + Send + 'static,
    ) {
        let echo = lock(&self.state).stamps.echo(now());
        let request = own::Request {
            controller: self.number,
            sequence: self.next_sequence(),
            echo,
            expiry_ms: 0,
            what: Some(what),
        };
        self.requests
            .request(Class::Command, &request.encode_to_vec(), timeout, Box::new(done));
    }

    /// Says hello, unless a greeting is in progress.
    pub(crate) fn greet(self: &Arc<Self>) {
        {
            let mut state = lock(&self.state);
            let early = state.greet_at.is_some_and(|at| now() < at);
            if state.greeting || state.known.is_some() || early || self.has_ended() {
                return;
            }
            state.greeting = true;
            state.greet_at = None;
        }
        if self.speaks_v6() {
            return self.greet_v6();
        }
        let hello = own::Hello {
            name: self.name.clone(),
            version: crate::robot::OWN_VERSION,
        };
        let (core, sent) = (Arc::downgrade(self), now());
        self.ask(request::What::Hello(hello), GREETING, move |result| {
            let Some(core) = core.upgrade() else { return };
            let arrived = now();
            let why = result.as_ref().err().map(TransportError::reason);
            let response = match result {
                Ok(frame) => core.heard_response(frame),
                Err(_) => None,
            };
            let Some(response) = response else {
                return core.not_met(why.unwrap_or_else(|| "malformed answer".into()));
            };
            let version = crate::robot::OWN_VERSION;
            match response.what {
                Some(response::What::Welcome(welcome)) if is_too_much(&welcome) => {
                    core.not_met(
                        "the robot announces more kinds, channels or subsystems than allowed".into(),
                    );
                }
                Some(response::What::Welcome(welcome)) if welcome.version == version => {
                    core.met(
                        response.run,
                        response.stamp,
                        welcome,
                        arrived.since(sent),
                        arrived,
                    );
                }
                Some(response::What::Welcome(other)) => core.not_met(format!(
                    "the robot speaks wire version {}, this controller {version}: update the older one",
                    other.version
                )),
                _ if !response.reason.is_empty() => core.not_met(response.reason),
                _ => core.not_met("the robot's answer is not a greeting".into()),
            }
        });
    }

    /// The greeting was not answered: it is repeated later.
    pub(super) fn not_met(&self, why: String) {
        {
            let mut state = lock(&self.state);
            let waiting = state.parked.iter().filter(|(_, retry)| retry.is_none());
            waiting.for_each(|(call, _)| call.was_not_heard(&why));
            state.unheard = Some(why);
            state.greeting = false;
            let wait = FIRST_GREETING * (1 << state.greetings.min(8));
            state.greetings += 1;
            state.greet_at = Some(now() + wait.min(LONGEST_GREETING));
        }
        self.changed.notify_all();
    }

    fn met(self: &Arc<Self>, run: u64, stamp: u64, welcome: own::Welcome, rtt: Duration, arrived: Time) {
        let names = |kinds: &[own::Kind]| kinds.iter().map(|k| (k.name.clone(), k.number)).collect();
        let known = Known {
            run,
            controller: welcome.controller,
            robot: welcome.robot,
            commands: names(&welcome.commands),
            telemetry: names(&welcome.telemetry),
            telemetry_names: welcome
                .telemetry
                .into_iter()
                .map(|k| (k.number, k.name.into()))
                .collect(),
            channels: welcome.channels,
            subsystems: welcome.subsystems.into_iter().map(|s| s.name).collect(),
        };
        self.met_with(known, Some(stamp), rtt, arrived);
    }

    /// The robot has described itself. `stamp` is the time of its clock, if its wire has one.
    pub(super) fn met_with(self: &Arc<Self>, known: Known, stamp: Option<u64>, rtt: Duration, arrived: Time) {
        let run = known.run;
        let waiting = {
            let mut state = lock(&self.state);
            state.known = Some(Arc::new(known));
            state.met_at = Some(now());
            state.unheard = None;
            if let Some(stamp) = stamp {
                state.stamps.begin(run);
                state.stamps.heard(run, stamp, arrived);
            }
            state.round_trip(rtt);
            state.greeting = false;
            state.greetings = 0;
            // Sends a heartbeat at once, so that the robot learns the period.
            state.beat_at = Some(Time::ZERO);
            let mut waiting = Vec::new();
            state.parked.retain(|(call, retry)| {
                if retry.is_none() {
                    waiting.push(call.clone());
                }
                retry.is_some()
            });
            waiting
        };
        self.mark_heard(arrived);
        for call in waiting {
            self.dispatch(call);
        }
        self.deliver_waiting();
        self.changed.notify_all();
    }

    /// The transport reports that the robot is reachable: greet it at once.
    pub(crate) fn reachable(self: &Arc<Self>) {
        lock(&self.state).greet_at = None;
        self.changed.notify_all();
    }

    /// Forgets the welcome: the robot has to be greeted before any other request.
    pub(crate) fn forget_meeting(&self) {
        lock(&self.state).known = None;
        self.changed.notify_all();
    }

    /// Reads a response and the data that every response has. `None`: it is not a response.
    pub(crate) fn heard_response(self: &Arc<Self>, frame: &[u8]) -> Option<own::Response> {
        let arrived = now();
        let Ok(response) = decode::message::<own::Response>("ropewalk.remote.Response", frame) else {
            self.counters.dropped("malformed", 1);
            return None;
        };
        if response.outcome() != Outcome::UnknownController {
            lock(&self.state)
                .stamps
                .heard(response.run, response.stamp, arrived);
        }
        self.mark_heard(arrived);
        Some(response)
    }

    /// A message of the robot arrived.
    pub(crate) fn mark_heard(&self, at: Time) {
        let found = {
            let mut state = lock(&self.state);
            state.heard = Some(state.heard.map_or(at, |h| h.max(at)));
            !std::mem::replace(&mut state.found, true)
        };
        if found {
            self.changed.notify_all();
            self.notify(Connection::Found);
        }
    }

    pub(crate) fn notify(&self, connection: Connection) {
        match connection {
            Connection::Found => tracing::info!("{}: the robot was found", self.name),
            Connection::Lost => tracing::warn!("{}: the robot was lost", self.name),
        }
        if let Some(callback) = self.on_connection.get() {
            self.counters
                .guarded("the callback for connections", || callback(connection));
        }
    }

    /// Blocks until the robot has answered and described itself. Returns whether that was within `timeout`.
    pub(crate) fn wait_until_met(&self, timeout: Duration) -> bool {
        let until = now() + timeout;
        let mut state = lock(&self.state);
        loop {
            if state.found && state.known.is_some() {
                return true;
            }
            let left = until.since(now());
            if left.is_zero() || self.has_ended() {
                return false;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Ends the controller.
    pub(crate) fn stop(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let parked = std::mem::take(&mut lock(&self.state).parked);
        self.changed.notify_all();
        self.requests.stop();
        for end in &self.telemetry {
            end.stop();
        }
        for (call, _) in parked {
            call.give_up();
        }
        self.streams.clear();
        self.on_connection.set(None);
    }
}
