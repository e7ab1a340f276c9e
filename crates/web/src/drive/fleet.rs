//! Interface to robots that can be driven; the program that has robots implements it.

use std::time::Duration;

/// The robots that may be driven.
pub trait Fleet: std::fmt::Debug + Send + Sync + 'static {
    /// Names of the robots that are known now. Called twice a second while a page is open; should return within some
    /// milliseconds.
    fn robots(&self) -> Vec<String>;

    /// Starts an operator's own controller of a robot. Does not block; the robot may be found later.
    ///
    /// # Errors
    /// A line for the operator.
    fn join(&self, robot: &str, operator: &str) -> Result<Box<dyn Driver>, String>;
}

/// An operator's controller of a robot. Dropping it ends it.
pub trait Driver: Send + Sync + 'static {
    /// The robot's state, as far as it is known. Does not block.
    fn standing(&self) -> Standing;

    /// Asks for the right to move the robot, or changes it. Blocks until the answer arrives, at most 30 s.
    ///
    /// # Errors
    /// A line for the operator: another operator holds it, or no answer came.
    fn right(&self, wish: Wish) -> Result<Right, String>;

    /// Moves the robot at `forward` m/s and `turn` rad/s. Does not block. `done` is called once, from any thread.
    fn drive(&self, forward: f64, turn: f64, done: Done);
}

/// Called with a command's outcome.
pub type Done = Box<dyn FnOnce(Outcome, String) + Send>;

/// State of a robot, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it answers.
    pub found: bool,
    /// Time from a heartbeat to its answer.
    pub round_trip: Option<Duration>,
    /// The number by which the robot knows this operator; 0 before they have met.
    pub id: u64,
}

/// An operator who may move a robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number by which the robot knows the operator.
    pub id: u64,
    /// The operator's name.
    pub name: String,
}

/// The right to move a robot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Right {
    /// `None`: nobody yet.
    pub holder: Option<Holder>,
    /// Whether this operator holds it.
    pub mine: bool,
}

/// An operator's request about the right to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Report who holds it.
    Know,
    /// Take it if it is free.
    Request,
    /// Give it back.
    Release,
    /// Take it, even from another operator.
    TakeOver,
    /// Give it to the operator with this number.
    HandOver(u64),
}

/// Speed limits for operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedLimits {
    /// In m/s.
    pub speed: f64,
    /// In rad/s.
    pub turn: f64,
}

impl Default for SpeedLimits {
    fn default() -> Self {
        SpeedLimits {
            speed: 0.5,
            turn: 0.8,
        }
    }
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The robot executed it.
    Executed,
    /// The robot refused it.
    Rejected,
    /// It was too old when it arrived.
    Expired,
    /// No answer came in time.
    Unreachable,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Executed => "executed",
            Outcome::Rejected => "rejected",
            Outcome::Expired => "expired",
            Outcome::Unreachable => "unreachable",
        }
    }
}
