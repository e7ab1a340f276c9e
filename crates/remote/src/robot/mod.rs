//! The robot's end: takes commands and sends telemetry.

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

/// A robot that controllers command over any number of transports. A cheap handle: clones refer to the same robot,
/// which stops when the last one is dropped, or at [`Robot::stop`]. A handler that owns a clone keeps the robot alive
/// until `stop`.
///
/// Handlers and callbacks run on threads of the transports, as soon as a message arrives. They have to return soon: the
/// next command waits for them. Handlers of commands that move the same subsystem run one at a time; other handlers run
/// one at a time per kind.
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

/// The sender of a command and the command's age.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The sender.
    pub origin: Origin,
    /// Sequence number, which rises with each request of the controller; 0 where the wire has none.
    pub sequence: u64,
    /// Upper bound on the age of the command when it arrived; `None`: unknown, on version 6's wire.
    pub age: Option<Duration>,
    /// On the robot's clock.
    pub(crate) good_until: Option<Time>,
}

/// The sender of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A controller.
    Controller {
        /// The number by which the robot knows it. Each run of the controller gets another; it is not a secret.
        id: u64,
        /// The name that it gives itself, without proof.
        name: Arc<str>,
        /// Its identity, as its transport proves it.
        peer: Peer,
    },
    /// Any controller that speaks version 6 over the end with this number: that wire has no identities.
    V6 {
        /// Index of the end in the order in which the builder received them, from 0.
        end: usize,
    },
    /// The robot itself: it stops a subsystem when its controller is lost, or when a twist expires.
    Robot,
}

/// A controller, as the robot sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerState {
    /// The number by which the robot knows it. Each run of the controller gets another; it is not a secret.
    pub id: u64,
    /// The name that it gives itself, without proof.
    pub name: Arc<str>,
    /// Its identity, as its transport proves it.
    pub peer: Peer,
    /// Whether it is not lost.
    pub alive: bool,
    /// Time since its last message.
    pub silent_for: Duration,
    /// Smoothed round trip of its requests, from the bound on their age.
    pub round_trip: Option<Duration>,
    /// The subsystems that it may move.
    pub holds: Vec<String>,
}

impl Robot {
    /// Returns a builder for a robot with this name, which is for people and logs.
    pub fn builder(name: &str) -> RobotBuilder {
        RobotBuilder::new(name)
    }

    fn new(core: Arc<Core>) -> Self {
        Robot {
            _life: Arc::new(Life(core.clone())),
            core,
        }
    }

    /// Serves controllers, if the robot was only [built](RobotBuilder::build); otherwise it does nothing.
    ///
    /// # Errors
    /// [`TransportError`] of an end that cannot receive: then all ends are stopped, and the robot has ended.
    pub fn start(&self) -> Result<(), TransportError> {
        self.core.start()
    }

    /// Registers `handle` for commands of kind `K`, in place of an earlier handler or queue. The controller receives
    /// `Ok` as executed and `Err` as rejected. Commands that are expired, repeated, out of order or not allowed do not
    /// reach the handler.
    pub fn on<K: CommandKind>(
        &self,
        handle: impl FnMut(K::Body, &Context) -> Result<(), Rejection> + Send + 'static,
    ) {
        self.core.handle::<K>(handle);
    }

    /// Puts commands of kind `K` into a queue, and answers that they are executed as soon as they are in it. When the
    /// queue is dropped, later commands are rejected.
    pub fn queue<K: CommandKind>(&self, queue: Queue) -> CommandQueue<K> {
        CommandQueue::register(&self.core, queue)
    }

    /// Sets the latest value of a telemetry kind and channel (0 where there is only one), and sends it to all
    /// controllers that listen. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`] if an end could not send it: the frame is too long for that end, or the end has ended. The
    /// latest value is set all the same.
    pub fn set<K: TelemetryKind>(&self, channel: u8, body: &K::Body) -> Result<(), TransportError> {
        self.core.set::<K>(channel, body)
    }

    /// As [`Robot::on`], for a kind known by its name. `handle` receives the encoded body, which is valid if the kind
    /// is one of the library's.
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

    /// As [`Robot::set`], for a kind known by its name, with the encoded body.
    ///
    /// # Errors
    /// As [`Robot::set`]; [`TransportError::Malformed`] if the bytes are not a body of the kind. Then nothing is set.
    pub fn set_kind(&self, kind: &TelemetryEntry, channel: u8, body: Vec<u8>) -> Result<(), TransportError> {
        let malformed = |e: prost::DecodeError| TransportError::Malformed {
            kind: kind.name,
            error: e.to_string(),
        };
        (kind.check)(&body).map_err(malformed)?;
        self.core.set_kind(kind, channel, body.into())
    }

    /// Announces a telemetry kind on all transports before its first value. Over a long path, the first value then does
    /// not have to wait until a controller subscribes.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: there are too many kinds, for the robot or for a transport.
    /// [`TransportError::Ended`]: an end has ended.
    pub fn tells<K: TelemetryKind>(&self) -> Result<(), TransportError> {
        self.core.tells::<K>()
    }

    /// Returns the number of a named channel of a telemetry kind, from 1; the same name always has the same number.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: all 255 are taken, or there are too many kinds.
    pub fn channel<K: TelemetryKind>(&self, name: &str) -> Result<u8, TransportError> {
        let full = || TransportError::Setup(format!("all 255 channels of {} are in use", K::NAME));
        self.core.channel::<K>(name)?.ok_or_else(full)
    }

    /// Shares a file, or all files below a folder, with controllers, under an identifier of its own. Symbolic links are
    /// followed only where they stay below the folder. One thread of the robot reads for all controllers.
    ///
    /// # Errors
    /// The path does not exist or may not be read, or the thread cannot be started.
    pub fn share(&self, identifier: &str, path: &Path) -> std::io::Result<()> {
        self.core.share(identifier, path)
    }

    /// Asks the controllers for a permission. The answer can be waited for or awaited. The answer is no when the robot
    /// stops, and when 64 newer questions are open.
    pub fn ask_permission(&self, description: &str) -> Pending<bool> {
        self.core.ask_permission(description)
    }

    /// Sends a message for people, if controllers want its level (1 fatal, 2 error, 3 warn, 4 info, 5 debug): initially
    /// up to 4. Level 20 ([`LogLevel::Custom`]) is always sent.
    ///
    /// # Errors
    /// As [`Robot::set`].
    pub fn log(&self, level: LogLevel, message: &str) -> Result<(), TransportError> {
        self.core.log(level as u32, message)
    }

    /// Sets a callback for when a controller sets the level up to which it wants the robot's log.
    pub fn on_log_level(&self, callback: impl Fn(u32) + Send + Sync + 'static) {
        self.core.events.log_level.set(Some(Arc::new(callback)));
    }

    /// Sets a callback for when controllers are found and lost.
    pub fn on_controller(&self, callback: impl Fn(ControllerEvent) + Send + Sync + 'static) {
        self.core.events.controller.set(Some(Arc::new(callback)));
    }

    /// Sets a callback that runs instead of [`LinkLost::stop`], for each subsystem that a lost controller held.
    pub fn on_link_lost(&self, callback: impl Fn(&LinkLost<'_>) + Send + Sync + 'static) {
        self.core.events.link_lost.set(Some(Arc::new(callback)));
    }

    /// Sets the callback that decides whether one controller may take the right to move from another. Without it:
    /// never.
    pub fn on_take_over(&self, callback: impl Fn(TakeOver) -> bool + Send + Sync + 'static) {
        self.core.events.take_over.set(Some(Arc::new(callback)));
    }

    /// Returns the controllers that the robot knows, at most 64. To make room, the robot forgets one that holds no
    /// right: a lost one, or one of the peer that has the most controllers.
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

    /// Returns the number of the controller that holds the right to move a subsystem.
    pub fn holder(&self, subsystem: &str) -> Option<u64> {
        let state = lock(&self.core.state);
        let holder = state.rights.holder(state.rights.which(subsystem)?);
        (holder != NOBODY).then_some(holder)
    }

    /// Returns the counts of received, sent and dropped messages.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.statistics(now())
    }

    /// Returns the number of this run.
    pub fn run(&self) -> u64 {
        self.core.run
    }

    /// Returns the name that the builder received.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Ends the robot on all transports: no handler starts after this. Waits for running work, at most 100 ms per
    /// transport.
    pub fn stop(&self) {
        self.core.stop();
    }
}

impl std::fmt::Debug for Robot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Robot({}, {:x})", self.core.name, self.core.run)
    }
}
