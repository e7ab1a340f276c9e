//! What carries the tools for robots: here it is decided over which transport; everything else sees ends only.

use crate::failure::{Failure, OrFail};
use clap::Args;
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::zmq::{KeyPair, PublicKey, ZmqController, ZmqRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use ropewalk::Node;
use std::path::PathBuf;
use std::sync::Arc;

/// Where upstream's examples have requests and telemetry.
const V6_HERE: &str = "tcp://127.0.0.1:7001,tcp://127.0.0.1:7002";

fn two(text: &str) -> Result<(String, String), String> {
    let two = text.split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned()));
    two.ok_or_else(|| format!("give two addresses with a comma between them, such as {V6_HERE}"))
}

/// Where a robot is reached.
#[derive(Args)]
pub(super) struct RobotEnds {
    /// Be on this host's bus; the default where no other way is given.
    #[arg(long)]
    bus: bool,
    /// Be at an address of ZeroMQ: tcp://127.0.0.1:7010, ipc:///tmp/rover. Other hosts reach it with keys (or --insecure) only.
    #[arg(long, value_name = "ADDRESS")]
    zmq: Option<String>,
    /// Speak version 6 of Robot Remote Control over ZeroMQ, for controllers of other makers: requests at the first address, telemetry at the
    /// second; without addresses at ports 7001 and 7002 of this host. Anyone who reaches them commands it.
    #[arg(long, value_name = "ADDRESS,ADDRESS", num_args = 0..=1, default_missing_value = V6_HERE, value_parser = two)]
    v6: Option<(String, String)>,
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
        if self.bus || (self.zmq.is_none() && self.v6.is_none()) {
            let node = Node::new("robot_sim").or_input()?;
            ends.push(Arc::new(LinkRobot::new(&node, name)));
        }
        if let Some(address) = &self.zmq {
            let mut options = ZmqRobot::own(address);
            if let (Some(key), Some(allow)) = (&self.key, &self.allow) {
                let key = KeyPair::read(key).or_input()?;
                options = options.curve_file(key, allow).or_input()?;
            }
            if self.insecure {
                options = options.insecure();
            }
            ends.push(Arc::new(options.open().or_input()?));
        }
        if let Some((requests, telemetry)) = &self.v6 {
            let options = ZmqRobot::plain_v6().bind_v6(requests, telemetry);
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
    /// The robot speaks version 6 of Robot Remote Control, and has its telemetry at this address of ZeroMQ.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "key")]
    v6: Option<String>,
    /// Command whoever answers at the ZeroMQ address.
    #[arg(long)]
    insecure: bool,
}

impl ControllerEnds {
    /// To `robot`: an address of ZeroMQ, or a name on this host's bus.
    pub(super) fn open(&self, robot: &str) -> Result<Arc<dyn ControllerEnd>, Failure> {
        if !robot.contains("://") {
            if self.key.is_some() || self.insecure || self.v6.is_some() {
                return Err(Failure::input(format_args!(
                    "{robot} is a name on the bus: keys, --v6 and --insecure are for addresses such as tcp://127.0.0.1:7010"
                )));
            }
            let node = Node::new("control").or_input()?;
            return Ok(Arc::new(LinkController::new(&node, robot.trim_matches('/'))));
        }
        let mut options = match &self.v6 {
            Some(telemetry) => ZmqController::plain_v6(robot, telemetry),
            None => ZmqController::own(robot),
        };
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
