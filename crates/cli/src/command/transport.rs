//! What carries the tools for robots: here it is decided over which transport; everything else sees ends only.

use crate::failure::{Failure, OrFail};
use clap::Args;
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::zmq::{AllowedKeys, KeyPair, PublicKey, ZmqController, ZmqRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use ropewalk::Node;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a robot is reached.
#[derive(Args)]
pub(super) struct RobotEnds {
    /// Be on this host's bus; the default where no other way is given.
    #[arg(long)]
    bus: bool,
    /// Be at an address of ZeroMQ: tcp://127.0.0.1:7010, ipc:///tmp/rover. Other hosts reach it with keys (or --insecure) only.
    #[arg(long, value_name = "ADDRESS")]
    zmq: Option<String>,
    /// Encrypt ZeroMQ by this secret key, of `ropewalk robot key`.
    #[arg(long, value_name = "FILE", requires_all = ["zmq", "allow"])]
    key: Option<PathBuf>,
    /// Who may speak to it: a file with a controller a line, its public key and its name.
    #[arg(long, value_name = "FILE", requires = "key")]
    allow: Option<PathBuf>,
    /// Let anyone who reaches the ZeroMQ address command it.
    #[arg(long, requires = "zmq")]
    insecure: bool,
}

impl RobotEnds {
    /// All that were asked for.
    pub(super) fn open(&self, name: &str) -> Result<Vec<Arc<dyn RobotEnd>>, Failure> {
        let mut ends: Vec<Arc<dyn RobotEnd>> = Vec::new();
        if self.bus || self.zmq.is_none() {
            let node = Node::new("robot_sim").or_input()?;
            ends.push(Arc::new(LinkRobot::new(&node, name)));
        }
        if let Some(address) = &self.zmq {
            let mut options = ZmqRobot::own(address);
            if let (Some(key), Some(allow)) = (&self.key, &self.allow) {
                let (key, allowed) = (
                    KeyPair::read(key).or_input()?,
                    AllowedKeys::read(allow).or_input()?,
                );
                options = options.curve(key, allowed);
            }
            if self.insecure {
                options = options.insecure();
            }
            ends.push(Arc::new(options.open().or_input()?));
        }
        Ok(ends)
    }
}

/// How a controller reaches its robot.
#[derive(Args)]
pub(super) struct ControllerEnds {
    /// Encrypt ZeroMQ by this secret key, of `ropewalk robot key`.
    #[arg(long, value_name = "FILE", requires = "robot_key")]
    key: Option<PathBuf>,
    /// The public key of the robot, which nobody else can have (FILE.pub of its secret one).
    #[arg(long, value_name = "FILE", requires = "key")]
    robot_key: Option<PathBuf>,
    /// Command whoever answers at the ZeroMQ address.
    #[arg(long)]
    insecure: bool,
}

impl ControllerEnds {
    /// To `robot`: an address of ZeroMQ, or a name on this host's bus.
    pub(super) fn open(&self, robot: &str) -> Result<Arc<dyn ControllerEnd>, Failure> {
        if !robot.contains("://") {
            if self.key.is_some() || self.insecure {
                return Err(Failure::input(format_args!(
                    "{robot} is a name on the bus: keys and --insecure are for addresses such as tcp://127.0.0.1:7010"
                )));
            }
            let node = Node::new("control").or_input()?;
            return Ok(Arc::new(LinkController::new(&node, robot.trim_matches('/'))));
        }
        let mut options = ZmqController::own(robot);
        if let (Some(key), Some(robot_key)) = (&self.key, &self.robot_key) {
            let (key, robot_key) = (
                KeyPair::read(key).or_input()?,
                PublicKey::read(robot_key).or_input()?,
            );
            options = options.curve(key, robot_key);
        }
        if self.insecure {
            options = options.insecure();
        }
        Ok(Arc::new(options.open().or_input()?))
    }
}
