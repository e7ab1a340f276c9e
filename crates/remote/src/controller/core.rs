//! What the parts of a controller share: whom it met, and how they stand.

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

/// Requests that may wait for the robot.
const PARKED: usize = 256;
/// A greeting is waited for so long.
pub(super) const GREETING: Duration = Duration::from_secs(10);
/// Waiting before the robot is greeted again: doubles up to the longest.
const FIRST_GREETING: Duration = Duration::from_millis(50);
const LONGEST_GREETING: Duration = Duration::from_secs(1);

/// Whether the robot is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It is heard (again).
    Found,
    /// Nothing came of it for too long.
    Lost,
}

/// The state is never held while a transport or a user's code is called.
pub(crate) struct Core {
    /// Of its run; only its robot is told.
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) period: Duration,
    /// Carries requests.
    pub(crate) requests: Arc<dyn ControllerEnd>,
    /// Those whose telemetry is heard.
    pub(crate) telemetry: Vec<Arc<dyn ControllerEnd>>,
    pub(crate) state: Mutex<State>,
    /// Rings when there is something to do at another time, and when the robot is found or lost.
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
    /// As of the robot's last welcome; `None`: it has to be greeted.
    pub(crate) known: Option<Arc<Known>>,
    /// When that came.
    pub(crate) met_at: Option<Time>,
    pub(crate) stamps: Stamps,
    /// Smoothed.
    pub(crate) rtt: Option<Duration>,
    pub(crate) heard: Option<Time>,
    pub(crate) found: bool,
    /// A greeting is under way.
    pub(crate) greeting: bool,
    pub(crate) greet_at: Option<Time>,
    /// Why the last greeting was not answered.
    pub(super) unheard: Option<String>,
    greetings: u32,
    /// What waits: for the robot's welcome, or until an instant.
    pub(crate) parked: Vec<(Arc<Call>, Option<Time>)>,
    pub(crate) beat_at: Option<Time>,
    pub(crate) beats_under_way: u32,
}

/// What the robot said of itself.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) run: u64,
    /// As the robot calls this controller.
    pub(crate) controller: u64,
    pub(crate) robot: String,
    pub(crate) commands: BTreeMap<String, u32>,
    pub(crate) telemetry: BTreeMap<String, u32>,
    pub(crate) telemetry_names: BTreeMap<u32, Arc<str>>,
    pub(crate) channels: Vec<own::Channel>,
    pub(crate) subsystems: Vec<String>,
}

/// A robot has at most so many kinds of commands, and of telemetry, and subsystems; each kind has at most 255 channels.
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
    /// Gives it back where too many wait.
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

    /// The silence after which the robot is taken for lost.
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

    /// As the robot calls it; 0: it was not met.
    pub(crate) fn id(&self) -> u64 {
        lock(&self.state)
            .known
            .as_ref()
            .map_or(0, |known| known.controller)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// A request of its own, outside all calls.
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

    /// Says hello, unless that is under way.
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
            let why = result.as_ref().err().map(ToString::to_string);
            let response = match result {
                Ok(frame) => core.heard_response(frame),
                Err(_) => None,
            };
            let Some(response) = response else {
                return core.not_met(why.unwrap_or_else(|| "the answer was malformed".into()));
            };
            let version = crate::robot::OWN_VERSION;
            match response.what {
                Some(response::What::Welcome(welcome)) if is_too_much(&welcome) => {
                    core.not_met("the robot says that it has more kinds, channels or subsystems than may be".into());
                }
                Some(response::What::Welcome(welcome)) if welcome.version == version => {
                    core.met(response.run, response.stamp, welcome, arrived.since(sent), arrived);
                }
                Some(response::What::Welcome(other)) => core.not_met(format!(
                    "the robot speaks version {} of the wire, this controller {version}: update the older one",
                    other.version
                )),
                _ if !response.reason.is_empty() => core.not_met(response.reason),
                _ => core.not_met("the answer was not one to a greeting".into()),
            }
        });
    }

    /// Nobody answered the greeting: later again.
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

    /// The robot has said what it can do; `stamp` is its clock's, where it has one on the wire.
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
            // The robot learns at once how often it will hear of this controller.
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
        self.is_heard(arrived);
        for call in waiting {
            self.dispatch(call);
        }
        self.hear_what_waited();
        self.changed.notify_all();
    }

    /// The transport says that the robot can be reached: it is greeted at once.
    pub(crate) fn reachable(self: &Arc<Self>) {
        lock(&self.state).greet_at = None;
        self.changed.notify_all();
    }

    /// The robot has to be greeted before anything else is asked of it.
    pub(crate) fn forget_meeting(&self) {
        lock(&self.state).known = None;
        self.changed.notify_all();
    }

    /// Reads a response, and what every response tells. `None`: it is none.
    pub(crate) fn heard_response(self: &Arc<Self>, frame: &[u8]) -> Option<own::Response> {
        let arrived = now();
        let Ok(response) = decode::message::<own::Response>("ropewalk.remote.Response", frame) else {
            self.counters.dropped("malformed", 1);
            return None;
        };
        if response.outcome() != Outcome::Stranger {
            lock(&self.state)
                .stamps
                .heard(response.run, response.stamp, arrived);
        }
        self.is_heard(arrived);
        Some(response)
    }

    /// Something came of the robot.
    pub(crate) fn is_heard(&self, at: Time) {
        let found = {
            let mut state = lock(&self.state);
            state.heard = Some(state.heard.map_or(at, |h| h.max(at)));
            !std::mem::replace(&mut state.found, true)
        };
        if found {
            self.changed.notify_all();
            self.tell(Connection::Found);
        }
    }

    pub(crate) fn tell(&self, connection: Connection) {
        match connection {
            Connection::Found => tracing::info!("{}: the robot is heard", self.name),
            Connection::Lost => tracing::warn!("{}: the robot is lost", self.name),
        }
        if let Some(callback) = self.on_connection.get() {
            self.counters
                .guarded("the callback of connections", || callback(connection));
        }
    }

    /// Blocks until the robot is heard and has told what it can do; whether that was within `timeout`.
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

    /// Ends all of it.
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
