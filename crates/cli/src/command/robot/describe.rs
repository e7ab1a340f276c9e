//! Static descriptions of the simulated robot: abilities, hardware, and the map of its room.

use super::camera;
use super::commands::COMPLEX;
use super::sim::Rover;
use super::sim::room;
use super::telemetry::{CELL, FRAME, header, pose_at};
use remote::types::*;

pub(super) fn simple_actions(rover: &Rover) -> SimpleActions {
    let action = |name: &str, kind: SimpleActionType, max: f32, step: f32, state: f64| SimpleAction {
        header: None,
        name: name.into(),
        r#type: Some(SimpleActionDef {
            r#type: kind.into(),
            min_state: 0.0,
            max_state: max,
            step_size: step,
            ..Default::default()
        }),
        state: state as f32,
    };
    let open = rover.arm.joint("gripper").map_or(0.0, |j| j.position / j.max);
    let lights = f64::from(u8::from(rover.headlights));
    let mut headlights = action("headlights", SimpleActionType::ValueInt, 1.0, 1.0, lights);
    if let Some(definition) = &mut headlights.r#type {
        let named = |(name, value): (&str, f32)| NamedValue {
            name: name.into(),
            value,
        };
        definition.value_names = [("off", 0.0), ("on", 1.0)].map(named).into();
    }
    // In hundredths, so that it is published again only when it differs visibly.
    let gripper = action(
        "gripper",
        SimpleActionType::ValueFloat,
        1.0,
        0.01,
        (open * 100.0).round() / 100.0,
    );
    let home = action("home", SimpleActionType::Trigger, 1.0, 1.0, 0.0);
    let horn = action("horn", SimpleActionType::Trigger, 1.0, 1.0, 0.0);
    SimpleActions {
        actions: vec![headlights, gripper, home, horn],
    }
}

pub(super) fn complex_actions() -> ComplexActions {
    let action = |(name, kind): (&str, ComplexActionType)| ComplexAction {
        name: name.into(),
        r#type: kind.into(),
        ..Default::default()
    };
    ComplexActions {
        actions: COMPLEX.map(action).into(),
    }
}

/// Joints that take commands, with the maximum of each value.
pub(super) fn controllable_joints(rover: &Rover) -> JointState {
    let joints = &rover.arm.joints;
    JointState {
        name: joints.iter().map(|j| j.name.into()).collect(),
        position: joints.iter().map(|j| j.max).collect(),
        velocity: joints.iter().map(|j| j.max_velocity).collect(),
        acceleration: joints.iter().map(|j| j.max_acceleration).collect(),
        ..Default::default()
    }
}

pub(super) fn frames() -> ControllableFrames {
    use ControllableFrameTypes::{GotoControl, PoseControl, TwistControl};
    let frame = ControllableFrame {
        frame: FRAME.into(),
        r#type: [TwistControl, PoseControl, GotoControl].map(i32::from).into(),
        movement_type: ControllableFrameMovementType::MovementControl.into(),
    };
    ControllableFrames {
        controllable_frames: vec![frame],
    }
}

/// The robot streams no video: the address only has the form of one.
pub(super) fn video() -> VideoStreams {
    let stream = VideoStream {
        url: "rtsp://127.0.0.1:8554/rover".into(),
        camerapose: Some(pose_at(FRAME, 0, &Default::default())),
    };
    VideoStreams { stream: vec![stream] }
}

pub(super) fn cameras() -> CameraInformation {
    let (width, height) = (camera::WIDTH as u32, camera::HEIGHT as u32);
    let (f, x, y) = (camera::focal() as f32, width as f32 / 2.0, height as f32 / 2.0);
    let info = CameraInfo {
        header: header("camera", 0),
        width,
        height,
        distortion_model: "plumb_bob".into(),
        d: vec![0.0; 5],
        k: vec![f, 0.0, x, 0.0, f, y, 0.0, 0.0, 1.0],
        r: vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p: vec![f, 0.0, x, 0.0, 0.0, f, y, 0.0, 0.0, 0.0, 1.0, 0.0],
        ..Default::default()
    };
    CameraInformation {
        camerainfo: vec![info],
    }
}

/// A grid: 1 where a wall or a pillar is, 0 where none is.
pub(super) fn map() -> Result<Map, prost::EncodeError> {
    let ((width, height), (left, bottom)) = room::bounds();
    let (columns, rows) = ((width / CELL).round() as u32, (height / CELL).round() as u32);
    let middle = |i: u32| CELL * (f64::from(i) + 0.5);
    let cells = (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y)));
    let taken = |(x, y): (u32, u32)| room::touches(left + middle(x), bottom + middle(y), CELL / 2.0);
    let layer = SimpleSensor {
        name: "obstacles".into(),
        size: Some(Vector2 {
            x: columns as f32,
            y: rows as f32,
        }),
        value: cells.map(|cell| f32::from(u8::from(taken(cell)))).collect(),
        scale: Some(Vector2 {
            x: CELL as f32,
            y: CELL as f32,
        }),
        ..Default::default()
    };
    let origin = super::sim::base::Place {
        x: left,
        y: bottom,
        heading: 0.0,
    };
    let grid = GridMap {
        header: header("map", 0),
        frame: "map".into(),
        origin: Some(pose_at("map", 0, &origin)),
        layers: vec![layer],
    };
    Ok(Map {
        map: Some(prost_types::Any::from_msg(&grid)?),
    })
}
