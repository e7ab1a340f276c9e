//! The robot's end: takes commands, tells its state.

mod authority;
mod builder;
mod carry_out;
mod commands;
mod core;
mod events;
mod files;
pub(crate) mod fuzzing;
mod lost;
mod own;
mod permission;
mod pieces;
mod poll;
mod sink;
mod telemetry;
mod v6;

pub use builder::{Carries, RobotBuilder};
pub use events::{ControllerEvent, LinkLost, TakeOver};
pub use poll::CommandQueue;

pub(crate) use self::own::VERSION as OWN_VERSION;

use self::core::Core;
use crate::clock::now;
use crate::controller::Pending;
use crate::inbox::Queue;
use crate::kind::{CommandKind, TelemetryKind};
use crate::outcome::Rejection;
use crate::safety::{Id, NOBODY};
use crate::statistics::Statistics;
use crate::sync::lock;
use crate::transport::{Peer, TransportError};
use crate::types::LogLevel;
use crate::{command::Entry as CommandEntry, telemetry::Entry as TelemetryEntry};
use stats::Time;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A robot that controllers command over any number of transports. A cheap handle: clones are the same robot, which stops when the last one
/// is dropped, or at [`Robot::stop`]. A handler that owns a clone keeps the robot until `stop`.
///
/// Handlers and callbacks run on threads of the transports, as soon as something comes; they return soon, or the next command waits
/// for them. Those of commands that move one subsystem run one at a time; others one at a time for each kind.
#[derive(Clone)]
pub struct Robot {
    core: Arc<Core>,
    _life: Arc<Life>,
}

/// Ends the robot with its last handle: transports own the core, too.
struct Life(Arc<Core>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Where a command comes from and how old it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// Who sent it.
    pub origin: Origin,
    /// Rises with each request of its controller; 0 where nobody numbers them.
    pub sequence: u64,
    /// It was sent at most so long ago when it came; `None`: nobody can know, on version 6's wire.
    pub age: Option<Duration>,
    /// On the robot's clock.
    pub(crate) good_until: Option<Time>,
}

/// Who sends a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A controller.
    Controller {
        /// As the robot calls it: of its run, and known to all.
        id: u64,
        /// As it calls itself, whoever it is.
        name: Arc<str>,
        /// Who it is, as its transport proves.
        peer: Peer,
    },
    /// Whoever speaks version 6 over the end of this number: that wire has no identities.
    V6 {
        /// In the order in which the builder was given them, from 0.
        end: usize,
    },
    /// The robot itself: what stops it when its controller is lost, or when a twist has held for its time.
    Robot,
}

/// A controller as the robot knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerState {
    /// As the robot calls it: of its run, and known to all.
    pub id: u64,
    /// As it calls itself, whoever it is.
    pub name: Arc<str>,
    /// Who it is, as its transport proves.
    pub peer: Peer,
    /// Whether it is not lost.
    pub alive: bool,
    /// Since something came of it.
    pub silent_for: Duration,
    /// Of its requests, as the bound on their age tells, smoothed.
    pub round_trip: Option<Duration>,
    /// The subsystems that it may move.
    pub holds: Vec<String>,
}

impl Robot {
    /// A robot of this name, for people and logs.
    pub fn builder(name: &str) -> RobotBuilder {
        RobotBuilder::new(name)
    }

    fn new(core: Arc<Core>) -> Self {
        Robot {
            _life: Arc::new(Life(core.clone())),
            core,
        }
    }

    /// Serves controllers from now on, of a robot that was [built](RobotBuilder::build) only; otherwise it does nothing.
    ///
    /// # Errors
    /// [`TransportError`] of an end that cannot receive: then all of them are stopped, and the robot has ended.
    pub fn start(&self) -> Result<(), TransportError> {
        self.core.start()
    }

    /// `handle` carries out commands of kind `K` from now on, instead of who did before. `Ok` is told to the controller as executed, `Err` as rejected. What
    /// is expired, repeated, out of order or not allowed does not come here.
    pub fn on<K: CommandKind>(
        &self,
        handle: impl FnMut(K::Body, &Context) -> Result<(), Rejection> + Send + 'static,
    ) {
        self.core.handle::<K>(handle);
    }

    /// Commands of kind `K` wait in a queue from now on; a controller is told that they were executed when they are in it. When the queue is
    /// dropped they are rejected.
    pub fn queue<K: CommandKind>(&self, queue: Queue) -> CommandQueue<K> {
        CommandQueue::register(&self.core, queue)
    }

    /// Sets the latest value of a telemetry kind and channel (0 where there is only one), and tells all who listen. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`] if an end could not send it: the frame is too long for it, or it has ended. The latest value is set all the same.
    pub fn set<K: TelemetryKind>(&self, channel: u8, body: &K::Body) -> Result<(), TransportError> {
        self.core.set::<K>(channel, body)
    }

    /// As [`Robot::on`], of a kind that is known by its name; `handle` gets the body's encoding, which is one where the kind is the
    /// library's.
    pub fn on_kind(
        &self,
        kind: &CommandEntry,
        mut handle: impl FnMut(&[u8], &Context) -> Result<(), Rejection> + Send + 'static,
    ) {
        let check = kind.check;
        let checked = move |body: &[u8], context: &Context| {
            check(body).map_err(|e| Rejection::from(format!("malformed: {e}")))?;
            handle(body, context)
        };
        self.core.handle_kind(kind, None, Box::new(checked));
    }

    /// As [`Robot::set`], of a kind that is known by its name, with its body's encoding.
    ///
    /// # Errors
    /// As [`Robot::set`]; [`TransportError::Malformed`], and nothing is set, where the bytes are no body of the kind.
    pub fn set_kind(&self, kind: &TelemetryEntry, channel: u8, body: Vec<u8>) -> Result<(), TransportError> {
        let malformed = |e: prost::DecodeError| TransportError::Malformed {
            kind: kind.name,
            error: e.to_string(),
        };
        (kind.check)(&body).map_err(malformed)?;
        self.core.set_kind(kind, channel, body.into())
    }

    /// Makes a telemetry kind known before its first value, on all transports: over a long path the first value then does not wait for
    /// the word that it is wanted.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: there are too many kinds, for the robot or for a transport; it has ended.
    pub fn tells<K: TelemetryKind>(&self) -> Result<(), TransportError> {
        self.core.tells::<K>()
    }

    /// The number of a named channel of a telemetry kind, from 1; the same name has the same number.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: all 255 are taken, or there are too many kinds.
    pub fn channel<K: TelemetryKind>(&self, name: &str) -> Result<u8, TransportError> {
        let full = || TransportError::Setup(format!("all 255 channels of {} have names", K::NAME));
        self.core.channel::<K>(name)?.ok_or_else(full)
    }

    /// Shares a file, or all files below a folder, with controllers, under an identifier of its own. Links are followed only where they stay
    /// below the folder. A thread of the robot's own reads for all controllers.
    ///
    /// # Errors
    /// It is not there or may not be read, or the thread cannot be started.
    pub fn share(&self, identifier: &str, path: &Path) -> std::io::Result<()> {
        self.core.share(identifier, path)
    }

    /// Asks whoever controls it for a permission. The answer can be waited for or awaited; when the robot stops, and when 64 newer
    /// questions are open, it is no.
    pub fn ask_permission(&self, description: &str) -> Pending<bool> {
        self.core.ask_permission(description)
    }

    /// Tells a message for people, where its level (1 fatal, 2 error, 3 warn, 4 info, 5 debug) is wanted: at first up to 4. Level 20
    /// ([`LogLevel::Custom`]) always is.
    ///
    /// # Errors
    /// As [`Robot::set`].
    pub fn log(&self, level: LogLevel, message: &str) -> Result<(), TransportError> {
        self.core.log(level as u32, message)
    }

    /// Called when a controller says up to which level it wants to hear the robot's log.
    pub fn on_log_level(&self, callback: impl Fn(u32) + Send + Sync + 'static) {
        self.core.events.log_level.set(Some(Arc::new(callback)));
    }

    /// Called when controllers come and go.
    pub fn on_controller(&self, callback: impl Fn(ControllerEvent) + Send + Sync + 'static) {
        self.core.events.controller.set(Some(Arc::new(callback)));
    }

    /// Called, for each subsystem that a lost controller held, instead of [`LinkLost::stop`].
    pub fn on_link_lost(&self, callback: impl Fn(&LinkLost<'_>) + Send + Sync + 'static) {
        self.core.events.link_lost.set(Some(Arc::new(callback)));
    }

    /// Decides whether one controller may take the right to move from another. Without it: never.
    pub fn on_take_over(&self, callback: impl Fn(TakeOver) -> bool + Send + Sync + 'static) {
        self.core.events.take_over.set(Some(Arc::new(callback)));
    }

    /// The controllers that it knows: at most 64. Beyond that one goes that holds no right, of those who are lost or of the peer that has the
    /// most.
    pub fn controllers(&self) -> Vec<ControllerState> {
        let (now, state) = (now(), lock(&self.core.state));
        let holds = |id: Id| state.rights.all().filter(move |(_, holder)| *holder == id);
        let known = state.controllers.iter().map(|known| ControllerState {
            id: known.id,
            name: known.name.clone(),
            peer: known.peer.clone(),
            alive: state.controllers.is_alive(known.id),
            silent_for: now.since(known.heard),
            round_trip: known.rtt,
            holds: holds(known.id).map(|(name, _)| name.to_owned()).collect(),
        });
        known.collect()
    }

    /// Who holds the right to move a subsystem, as the robot calls it.
    pub fn holder(&self, subsystem: &str) -> Option<u64> {
        let state = lock(&self.core.state);
        let holder = state.rights.holder(state.rights.which(subsystem)?);
        (holder != NOBODY).then_some(holder)
    }

    /// What came, went and was dropped so far.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.statistics(now())
    }

    /// The number of this run.
    pub fn run(&self) -> u64 {
        self.core.run
    }

    /// As it was called when it was built.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Ends it on all transports: no handler begins after this. Waits for what is under way, at most 100 ms for each transport.
    pub fn stop(&self) {
        self.core.stop();
    }
}

impl std::fmt::Debug for Robot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Robot({}, {:x})", self.core.name, self.core.run)
    }
}
