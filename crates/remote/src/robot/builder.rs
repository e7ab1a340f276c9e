//! How a robot is set up.

use super::core::Core;
use super::{Robot, sink::Sink};
use crate::kind::CommandKind;
use crate::transport::{RobotEnd, TransportError};
use crate::{telemetry, types};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// For how long a twist holds where nothing else is said, as in the controllers of ROS.
const TWIST_HOLD: Duration = Duration::from_millis(500);

/// What an end is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carries {
    /// Commands, requests and telemetry.
    #[default]
    Both,
    /// Commands and requests.
    Commands,
    /// Telemetry that is sent to everyone.
    Telemetry,
}

impl Carries {
    pub(crate) fn telemetry(self) -> bool {
        self != Carries::Commands
    }
}

/// Sets up a [`Robot`].
#[must_use = "nothing is there before `start` or `build`"]
pub struct RobotBuilder {
    pub(super) name: String,
    pub(super) ends: Vec<(Arc<dyn RobotEnd>, Carries)>,
    pub(super) options: Options,
}

pub(crate) struct Options {
    pub(crate) implicit: bool,
    pub(crate) lost_after: Duration,
    pub(crate) twist_hold: Option<Duration>,
    pub(crate) v6_motion: bool,
    /// By the kind's name; `None`: it moves nothing.
    pub(crate) moves: BTreeMap<&'static str, Option<String>>,
}

impl RobotBuilder {
    pub(super) fn new(name: &str) -> Self {
        let options = Options {
            implicit: true,
            lost_after: Duration::from_secs(1),
            twist_hold: Some(TWIST_HOLD),
            v6_motion: true,
            moves: BTreeMap::new(),
        };
        RobotBuilder {
            name: name.to_owned(),
            ends: Vec::new(),
            options,
        }
    }

    /// Takes commands and sends telemetry over `end`, besides all others.
    pub fn end(self, end: Arc<dyn RobotEnd>) -> Self {
        self.end_for(end, Carries::Both)
    }

    /// Uses `end`, besides all others, for a part.
    pub fn end_for(mut self, end: Arc<dyn RobotEnd>, carries: Carries) -> Self {
        self.ends.push((end, carries));
        self
    }

    /// Whether the right to move has to be asked for. By default a free right goes to whoever moves first.
    pub fn require_request(mut self, require: bool) -> Self {
        self.options.implicit = !require;
        self
    }

    /// A controller is taken for lost after so long without a word from it, plus twice its round trip; where the period of its
    /// heartbeats is longer, that counts. Default 1 s.
    pub fn lost_after(mut self, silence: Duration) -> Self {
        self.options.lost_after = silence;
        self
    }

    /// For how long a twist holds: unless something else is commanded meanwhile, the robot then stops, by a twist without velocity
    /// of its own ([`Origin::Robot`](super::Origin::Robot)), as the controllers of ROS do. `None`: until something else is commanded,
    /// or the controller is lost. Only of twists that move a subsystem. Default 0.5 s.
    pub fn hold_twists(mut self, hold: Option<Duration>) -> Self {
        self.options.twist_hold = hold;
        self
    }

    /// Whether controllers that speak version 6 may move it: nobody knows how old their commands are. Default: yes, on the ends
    /// that it was given.
    pub fn allow_v6_motion(mut self, allow: bool) -> Self {
        self.options.v6_motion = allow;
        self
    }

    /// Commands of this kind move `subsystem`, instead of what the kind says itself.
    pub fn moves<K: CommandKind>(mut self, subsystem: &str) -> Self {
        self.options.moves.insert(K::NAME, Some(subsystem.to_owned()));
        self
    }

    /// Commands of this kind move nothing here.
    pub fn moves_nothing<K: CommandKind>(mut self) -> Self {
        self.options.moves.insert(K::NAME, None);
        self
    }

    /// Begins: controllers are answered from now on. What they ask for before it is registered is refused; where that matters,
    /// [build](Self::build) the robot, register, then [start](Robot::start).
    ///
    /// # Errors
    /// As [`RobotBuilder::build`] and [`Robot::start`].
    pub fn start(self) -> Result<Robot, TransportError> {
        let robot = self.build()?;
        robot.start()?;
        Ok(robot)
    }

    /// A robot that answers nobody yet: handlers, telemetry and files are registered in peace, then [`Robot::start`] serves
    /// controllers.
    ///
    /// # Errors
    /// [`TransportError`] of an end whose names are none.
    pub fn build(self) -> Result<Robot, TransportError> {
        let core = Arc::new(Core::new(self.name, self.ends, self.options));
        // From here on dropping it stops what was started.
        let robot = Robot::new(core.clone());
        core.take_permissions();
        let name = types::RobotName {
            value: core.name.clone(),
        };
        core.set::<telemetry::RobotName>(0, &name)?;
        Ok(robot)
    }
}

impl Core {
    /// Serves controllers; nothing is left of it where that fails, or where the robot is stopped meanwhile.
    pub(super) fn start(self: &Arc<Self>) -> Result<(), TransportError> {
        if self.has_ended() {
            return Err(TransportError::Ended);
        }
        if self.started.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let mut ends = self.ends.iter().enumerate();
        let started = ends
            .try_for_each(|(number, end)| end.end.start(Sink::new(self.clone(), number)))
            .and_then(|()| self.begin_watching());
        if started.is_err() {
            self.stop();
        } else if self.has_ended() {
            // Whoever stopped it may have come before an end started.
            self.ends.iter().for_each(|end| end.end.stop());
            return Err(TransportError::Ended);
        }
        started
    }
}

impl std::fmt::Debug for RobotBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RobotBuilder")
            .field("name", &self.name)
            .field("ends", &self.ends.len())
            .finish()
    }
}
