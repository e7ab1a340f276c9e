//! The simulated robot's model, as a file to download.

use remote::types::{File, FileDefinition, RobotModelInformation};
use remote::{Robot, telemetry};
use std::io;
use tempfile::TempDir;

/// Identifier of the shared folder; the model lies in it.
const SHARED: &str = "model";
const FILE: &str = "rover.urdf";
/// Metres, kilograms and radians, as in URDF; the limits are those of the simulation.
const URDF: &str = include_str!("rover.urdf");

/// Shares a folder with the model until the returned folder is dropped.
pub(super) fn share(robot: &Robot) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("ropewalk-robot-").tempdir()?;
    std::fs::write(folder.path().join(FILE), URDF)?;
    robot.share(SHARED, folder.path())?;
    let file = File {
        identifier: SHARED.into(),
        path: FILE.into(),
        remote_path: String::new(),
    };
    let information = RobotModelInformation {
        filedef: Some(FileDefinition {
            file: vec![file],
            is_folder: vec![true],
        }),
        modelfilename: FILE.into(),
    };
    robot
        .set::<telemetry::RobotModelInformation>(0, &information)
        .map_err(io::Error::other)?;
    Ok(folder)
}
