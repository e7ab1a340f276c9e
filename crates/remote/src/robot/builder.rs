//! Setup of a robot.

use super::core::Core;
use super::{Robot, sink::Sink};
use crate::kind::CommandKind;
use crate::transport::{RobotEnd, TransportError};
use crate::{telemetry, types};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Default time for which a twist holds, as in the controllers of ROS.
const TWIST_HOLD: Duration = Duration::from_millis(500);

/// What an end carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carries {
    /// Commands, requests and telemetry.
    #[default]
    Both,
    /// Commands and requests.
    Commands,
    /// Telemetry that the robot sends to all controllers.
    Telemetry,
}

impl Carries {
    pub(crate) fn telemetry(self) -> bool {
        self != Carries::Commands
    }
}

/// Sets up a [`Robot`].
#[must_use = "a builder does nothing before `start` or `build`"]
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
    /// By the kind's name; `None`: the kind moves nothing.
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

    /// Takes commands and sends telemetry over `end`, in addition to the other ends.
    pub fn end(self, end: Arc<dyn RobotEnd>) -> Self {
        self.end_for(end, Carries::Both)
    }

    /// Uses `end` for a part of the traffic, in addition to the other ends.
    pub fn end_for(mut self, end: Arc<dyn RobotEnd>, carries: Carries) -> Self {
        self.ends.push((end, carries));
        self
    }

    /// Whether a controller has to request the right to move. By default, a free right goes to the first controller
    /// that sends a command that moves.
    pub fn require_request(mut self, require: bool) -> Self {
        self.options.implicit = !require;
        self
    }

    /// A controller counts as lost after this long without a message from it, plus twice its round trip. If the period
    /// of its heartbeats is longer, that period counts instead. Default 1 s.
    pub fn lost_after(mut self, silence: Duration) -> Self {
        self.options.lost_after = silence;
        self
    }

    /// How long a twist holds. Unless another command arrives meanwhile, the robot then stops by a zero twist of its
    /// own ([`Origin::Robot`](super::Origin::Robot)), as the controllers of ROS do. `None`: a twist holds until another
    /// command arrives or the controller is lost. This applies only to twists that move a subsystem. Default 0.5 s.
    pub fn hold_twists(mut self, hold: Option<Duration>) -> Self {
        self.options.twist_hold = hold;
        self
    }

    /// Whether controllers that speak version 6 may move the robot: the age of their commands is unknown. Default: yes,
    /// on the ends that speak it.
    pub fn allow_v6_motion(mut self, allow: bool) -> Self {
        self.options.v6_motion = allow;
        self
    }

    /// Commands of this kind move `subsystem`, instead of the kind's own [`CommandKind::MOVES`].
    pub fn moves<K: CommandKind>(mut self, subsystem: &str) -> Self {
        self.options.moves.insert(K::NAME, Some(subsystem.to_owned()));
        self
    }

    /// Commands of this kind move nothing on this robot.
    pub fn moves_nothing<K: CommandKind>(mut self) -> Self {
        self.options.moves.insert(K::NAME, None);
        self
    }

    /// Starts the robot: it answers controllers from here on. It refuses requests for commands, telemetry and files
    /// that are not registered yet; to avoid that, [build](Self::build) the robot, register, then [start](Robot::start)
    /// it.
    ///
    /// # Errors
    /// As [`RobotBuilder::build`] and [`Robot::start`].
    pub fn start(self) -> Result<Robot, TransportError> {
        let robot = self.build()?;
        robot.start()?;
        Ok(robot)
    }

    /// Builds a robot that does not answer yet: register handlers, telemetry and files, then let [`Robot::start`] serve
    /// controllers.
    ///
    /// # Errors
    /// [`TransportError`] of an end with invalid names.
    pub fn build(self) -> Result<Robot, TransportError> {
        let core = Arc::new(Core::new(self.name, self.ends, self.options));
        // From here on, dropping `robot` stops the ends that were started.
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
    /// Serves controllers. If that fails, or if the robot is stopped meanwhile, all ends are stopped.
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
            // `stop` may have run before an end started.
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
