//! What carries the tools for robots: here is decided over which transport, everything else sees ends only.

use crate::failure::{Failure, OrFail};
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use ropewalk::Node;
use std::sync::Arc;

/// The end of a robot of this name on this host's bus, and so over its links.
pub(super) fn robot(name: &str) -> Result<Arc<dyn RobotEnd>, Failure> {
    let node = Node::new("robot_sim").or_input()?;
    Ok(Arc::new(LinkRobot::new(&node, name)))
}

/// The end of a controller of the robot that this host's bus knows by this name.
pub(super) fn controller(robot: &str) -> Result<Arc<dyn ControllerEnd>, Failure> {
    let node = Node::new("control").or_input()?;
    Ok(Arc::new(LinkController::new(&node, robot.trim_matches('/'))))
}
