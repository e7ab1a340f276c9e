//! The transports of commands and telemetry between the processes of one run.

use super::{PartError, say};
use crate::kit::part::{Gate, LOOK};
use bus::BusConfig;
use clap::{Args, ValueEnum};
use link::Config;
use remote::Controller;
use remote::transport::link::{DirectController, DirectRobot, LinkController, LinkRobot};
use remote::transport::zmq::{ZmqController, ZmqRobot};
use remote::transport::{ControllerEnd, RobotEnd, TransportError};
use ropewalk::Node;
use std::path::PathBuf;
use std::sync::Arc;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// This host's bus, and the links that join it to others.
    Bus,
    /// A link of the program's own.
    Direct,
    /// ZeroMQ, as version 6 of Robot Remote Control.
    ZmqV6,
    /// ZeroMQ, with Ropewalk's own wire.
    ZmqOwn,
}

/// How a process reaches others.
#[derive(Args, Clone, Debug)]
pub struct Over {
    /// Transport of commands and telemetry.
    #[arg(long, value_enum)]
    over: Way,
    /// Folder of the bus, if not this host's default.
    #[arg(long)]
    bus: Option<PathBuf>,
    /// Configuration of the program's own link.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Addresses of the robot over ZeroMQ: for requests, and for telemetry.
    #[arg(long, value_delimiter = ',')]
    robot_at: Vec<String>,
    /// Addresses of the operator, which sends telemetry like a robot.
    #[arg(long, value_delimiter = ',')]
    operator_at: Vec<String>,
}

/// Both processes send telemetry, so each is a robot to the other (section 3.1 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Robot,
    Operator,
}

impl Name {
    pub(super) fn name(self) -> &'static str {
        match self {
            Name::Robot => "robot",
            Name::Operator => "operator",
        }
    }
}

/// The ends of one process.
pub(super) struct Ends<'a> {
    over: &'a Over,
    node: Option<Node>,
}

impl Over {
    pub(super) fn open(&self) -> Result<Ends<'_>, PartError> {
        let node = match (self.over, &self.bus) {
            (Way::Bus, Some(folder)) => Some(Node::with_config("bench", BusConfig::new(folder))?),
            (Way::Bus, None) => Some(Node::new("bench")?),
            _ => None,
        };
        Ok(Ends { over: self, node })
    }

    fn at(&self, name: Name) -> Result<(&str, &str), PartError> {
        let (at, option) = match name {
            Name::Robot => (&self.robot_at, "--robot-at"),
            Name::Operator => (&self.operator_at, "--operator-at"),
        };
        match &at[..] {
            [requests, telemetry] => Ok((requests, telemetry)),
            _ => Err(PartError::Wrong(format!(
                "{option}: give two addresses, such as tcp://127.0.0.1:7001,tcp://127.0.0.1:7002"
            ))),
        }
    }

    fn config(&self) -> Result<Config, PartError> {
        let none = || PartError::Wrong("--config: give the link's configuration".into());
        Ok(Config::load(self.config.as_ref().ok_or_else(none)?)?)
    }
}

impl Ends<'_> {
    fn node(&self) -> Result<&Node, PartError> {
        let none = || PartError::Wrong("there is no bus".into());
        self.node.as_ref().ok_or_else(none)
    }

    /// Returns the end of the robot with this name.
    pub(super) fn robot(&self, name: Name) -> Result<Arc<dyn RobotEnd>, PartError> {
        let over = self.over;
        Ok(match over.over {
            Way::Bus => Arc::new(LinkRobot::new(self.node()?, name.name())),
            Way::Direct => Arc::new(DirectRobot::new(over.config()?, name.name())),
            Way::ZmqV6 => {
                let (requests, telemetry) = over.at(name)?;
                Arc::new(
                    ZmqRobot::plain_v6()
                        .bind_v6(requests, telemetry)
                        .insecure()
                        .open()?,
                )
            }
            Way::ZmqOwn => Arc::new(ZmqRobot::own(over.at(name)?.0).insecure().open()?),
        })
    }

    /// Returns the end of a controller for the robot with this name.
    pub(super) fn controller(&self, name: Name) -> Result<Arc<dyn ControllerEnd>, PartError> {
        let over = self.over;
        Ok(match over.over {
            Way::Bus => Arc::new(LinkController::new(self.node()?, name.name())),
            Way::Direct => Arc::new(DirectController::new(over.config()?, name.name())),
            Way::ZmqV6 => {
                let (requests, telemetry) = over.at(name)?;
                Arc::new(ZmqController::plain_v6(requests, telemetry).open()?)
            }
            Way::ZmqOwn => Arc::new(ZmqController::own(over.at(name)?.0).insecure().open()?),
        })
    }

    /// Returns a controller that has found its robot; `None` if the run is over before.
    pub(super) fn found(
        &self,
        gate: &Gate,
        me: &str,
        robot: Name,
        prepare: impl FnOnce(&Controller),
    ) -> Result<Option<Controller>, PartError> {
        let controller = controller(me, self.controller(robot)?)?;
        prepare(&controller);
        while !controller.wait_until_found(LOOK) {
            if gate.stopped() {
                return Ok(None);
            }
        }
        Ok(Some(controller))
    }

    /// Returns the robot's controller after `go`; `None` if the run is over before.
    pub(super) fn ready(
        &self,
        gate: &Gate,
        prepare: impl FnOnce(&Controller),
    ) -> Result<Option<Controller>, PartError> {
        let found = self.found(gate, "operator", Name::Robot, prepare)?;
        if found.is_some() {
            say(&"ready")?;
        }
        Ok(found.filter(|_| gate.wait_for_go()))
    }
}

fn controller(name: &str, end: Arc<dyn ControllerEnd>) -> Result<Controller, TransportError> {
    Controller::builder(name).end(end).start()
}
