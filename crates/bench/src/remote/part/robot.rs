//! The robot's process.

use super::block::{Block, Tell, Thrown};
use super::over::{Name, Over};
use super::{PartError, say};
use crate::kit::part::Gate;
use remote::{Robot, command};
use std::path::Path;

/// Identifier of the shared file.
pub(super) const FILE: &str = "bag";

/// Takes twists, and sends large telemetry on request.
pub(super) fn obey(gate: &Gate, over: &Over, share: Option<&Path>, unordered: bool) -> Result<(), PartError> {
    let ends = over.open()?;
    let mut builder = Robot::builder(Name::Robot.name()).end(ends.robot(Name::Robot)?);
    if unordered {
        builder = builder.moves_nothing::<command::Twist>();
    }
    let robot = builder.start()?;
    robot.tells::<Thrown>()?;
    robot.on::<command::Twist>(|_, _| Ok(()));
    // The handler's own handle keeps the robot until `stop`.
    let teller = robot.clone();
    robot.on::<Tell>(move |asked, _| {
        let block = Block::new(asked.number, asked.bytes as usize);
        teller.set::<Thrown>(0, &block).map_err(|e| e.to_string().into())
    });
    if let Some(path) = share {
        robot.share(FILE, path)?;
    }
    say(&"ready")?;
    gate.wait_for_stop();
    robot.stop();
    Ok(())
}

/// Echoes telemetry.
pub(super) fn repeat(gate: &Gate, over: &Over) -> Result<(), PartError> {
    let ends = over.open()?;
    let robot = Robot::builder(Name::Robot.name())
        .end(ends.robot(Name::Robot)?)
        .start()?;
    robot.tells::<Thrown>()?;
    let teller = robot.clone();
    let hear = |controller: &remote::Controller| {
        controller.on::<Thrown>(0, move |block, _| {
            // The operator misses a block that could not be sent, and reports it.
            let _ = teller.set::<Thrown>(0, &block);
        });
    };
    let Some(controller) = ends.found(gate, "repeater", Name::Operator, hear)? else {
        return Ok(());
    };
    say(&"ready")?;
    gate.wait_for_stop();
    controller.stop();
    robot.stop();
    Ok(())
}
