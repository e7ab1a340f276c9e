//! Chooses the transport of the robot tools; the rest of them sees only abstract ends.

use crate::failure::{Failure, OrFail};
use clap::Args;
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::zmq::{KeyPair, PublicKey, ZmqController, ZmqRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use ropewalk::Node;
use std::path::PathBuf;
use std::sync::Arc;

/// Default addresses of upstream's examples: requests, telemetry.
const V6_HERE: &str = "tcp://127.0.0.1:7001,tcp://127.0.0.1:7002";

fn two(text: &str) -> Result<(String, String), String> {
    let two = text.split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned()));
    two.ok_or_else(|| format!("give two addresses with a comma between them, such as {V6_HERE}"))
}

/// Addresses at which a robot is reached.
#[derive(Args)]
pub(super) struct RobotEnds {
    /// Connect to this host's bus (default if no other transport is given).
    #[arg(long)]
    bus: bool,
    /// Listen at a ZeroMQ address: tcp://127.0.0.1:7010, ipc:///tmp/rover. Other hosts need keys (or --insecure).
    #[arg(long, value_name = "ADDRESS")]
    zmq: Option<String>,
    /// Speak version 6 of Robot Remote Control over ZeroMQ, for third-party controllers: requests at the first address,
    /// telemetry at the second (default: ports 7001 and 7002 of this host). Anyone who reaches them can command the
    /// robot.
    #[arg(long, value_name = "ADDRESS,ADDRESS", num_args = 0..=1, default_missing_value = V6_HERE, value_parser = two)]
    v6: Option<(String, String)>,
    /// Encrypt ZeroMQ with this secret key of `ropewalk robot key`.
    #[arg(long, value_name = "FILE", requires_all = ["zmq", "allow"])]
    key: Option<PathBuf>,
    /// File of allowed controllers, one per line: public key and name.
    #[arg(long, value_name = "FILE", requires = "key")]
    allow: Option<PathBuf>,
    /// Let anyone who reaches the ZeroMQ address command the robot.
    #[arg(long, requires = "zmq")]
    insecure: bool,
}

impl RobotEnds {
    /// Opens all transports that the options name.
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
    /// Encrypt ZeroMQ with this secret key of `ropewalk robot key`.
    #[arg(long, value_name = "FILE", requires = "robot_key")]
    key: Option<PathBuf>,
    /// The robot's public key (FILE.pub).
    #[arg(long, value_name = "FILE", requires = "key")]
    robot_key: Option<PathBuf>,
    /// Speak version 6 of Robot Remote Control; the robot publishes its telemetry at this ZeroMQ address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "key")]
    v6: Option<String>,
    /// Command the robot at the ZeroMQ address without authenticating it.
    #[arg(long)]
    insecure: bool,
}

impl ControllerEnds {
    /// Whether both ends prove who they are.
    pub(super) fn has_keys(&self) -> bool {
        self.key.is_some()
    }

    /// Connects to `robot`: a ZeroMQ address, or a name on this host's bus.
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
