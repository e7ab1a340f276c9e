//! How the simulated robot executes commands.

use super::run::{Horn, Shared, log};
use super::sim::arm::JointGoal;
use super::sim::base::Waypoint;
use super::telemetry::FRAME;
use super::tell::Teller;
use remote::robot::{Context, Origin};
use remote::types::{ComplexActionType, JointCommand, LogLevel, Orientation, Pose, Twist, Vector3};
use remote::{CommandKind, Rejection, Robot, command};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The frame in which poses may be given, in addition to none.
const MAP: &str = "map";
/// Time for which a refusal is not reported again, and the most different refusals remembered.
const QUIET: Duration = Duration::from_secs(10);
const MOST_REFUSALS: usize = 16;
/// Default speed in metres a second.
const SPEED: f64 = 0.8;

/// Its complex actions, with the argument of each.
pub(super) const COMPLEX: [(&str, ComplexActionType); 2] = [
    ("patrol", ComplexActionType::PoseList),
    ("twists", ComplexActionType::TwistList),
];

/// Registers handlers for all kinds of commands.
pub(super) fn register(robot: &Robot, rover: &Shared, horn: &Horn, tell: &Arc<Teller>) {
    on::<command::Twist>(robot, rover, tell, |rover, twist| {
        framed(&twist.header, FRAME)?;
        let (linear, angular) = components(twist);
        rover.lock().twist(linear, angular)?;
        let (v, w) = (linear[0], angular[2]);
        Ok(format!("drives at {v:.2} m/s, {w:.2} rad/s"))
    });
    on::<command::TargetPose>(robot, rover, tell, |rover, pose| {
        framed(&pose.header, MAP)?;
        let point = waypoint(pose, SPEED, 0.0)?;
        rover.lock().path(&[point], false, "going to a pose")?;
        Ok(format!("goes to ({:.2}, {:.2})", point.x, point.y))
    });
    on::<command::GoTo>(robot, rover, tell, |rover, goal| {
        framed(&goal.header, MAP)?;
        let pose = goal
            .waypoint_pose
            .as_ref()
            .ok_or("the goal has no waypoint_pose")?;
        let speed = if goal.max_forward_speed == 0.0 {
            SPEED
        } else {
            goal.max_forward_speed
        };
        let point = waypoint(pose, speed, goal.waypoint_max_forward_speed)?;
        rover.lock().path(&[point], false, "going to a waypoint")?;
        Ok(format!(
            "goes to ({:.2}, {:.2}) at {speed:.2} m/s",
            point.x, point.y
        ))
    });
    on::<command::RobotTrajectory>(robot, rover, tell, |rover, path| {
        framed(&path.header, MAP)?;
        let points = waypoints(&path.poses, false)?;
        rover.lock().path(&points, false, "following a trajectory")?;
        Ok(format!("follows a trajectory of {} poses", points.len()))
    });
    on::<command::Joints>(robot, rover, tell, |rover, joints| {
        let goals = joint_goals(joints)?;
        rover.lock().joints(&goals)?;
        let names: Vec<_> = goals.iter().map(|(name, _)| *name).collect();
        Ok(format!("moves {}", names.join(", ")))
    });
    let (horn, asking) = (horn.clone(), robot.clone());
    on::<command::SimpleAction>(robot, rover, tell, move |rover, action| {
        let state = f64::from(action.state);
        match action.name.as_str() {
            "headlights" if state == 0.0 || state == 1.0 => rover.lock().headlights = state == 1.0,
            "headlights" => return Err(format!("headlights take 0 or 1, not {state}").into()),
            "gripper" if (0.0..=1.0).contains(&state) => {
                let goal = JointGoal {
                    position: Some(0.08 * state),
                    velocity: None,
                };
                rover.lock().joints(&[("gripper", goal)])?;
            }
            "gripper" => return Err(format!("the gripper takes 0 to 1, not {state}").into()),
            "home" => rover.lock().home(),
            "horn" => horn.ask(&asking)?,
            other => return Err(no_action(other, "headlights, gripper, home, horn").into()),
        }
        Ok(format!("does {} {state}", action.name))
    });
    on::<command::ComplexAction>(robot, rover, tell, |rover, action| {
        match action.name.as_str() {
            "patrol" => {
                let points = waypoints(&action.poses, true)?;
                rover.lock().path(&points, true, "patrolling")?;
            }
            "twists" => {
                let twists: Vec<_> = action.twists.iter().map(components).collect();
                rover.lock().twists(&twists)?;
            }
            other => return Err(no_action(other, &COMPLEX.map(|(name, _)| name).join(", ")).into()),
        }
        Ok(format!("begins the action {}", action.name))
    });
}

/// Registers a handler that reports what it did; refusals are reported as well.
fn on<K: CommandKind>(
    robot: &Robot,
    rover: &Shared,
    tell: &Arc<Teller>,
    carry_out: impl Fn(&Shared, &K::Body) -> Result<String, Rejection> + Send + 'static,
) {
    // `Robot::stop` drops the handler with this clone.
    let (teller, rover, tell) = (robot.clone(), rover.clone(), tell.clone());
    let kind = K::NAME.rsplit('.').next().unwrap_or(K::NAME);
    // A joystick repeats the same command many times a second, and a refused controller retries.
    let mut before: Option<String> = None;
    let mut refused = Refused::default();
    robot.on::<K>(move |body, context| {
        let by = who(context);
        let done = carry_out(&rover, &body);
        let (executed, text) = match &done {
            Ok(text) => (true, format!("{text} ({kind} of {by})")),
            Err(rejection) => (false, format!("refuses {kind} of {by}: {rejection}")),
        };
        let tells = match executed {
            true => before.as_ref() != Some(&text),
            false => refused.is_news(&text),
        };
        if tells {
            if !executed {
                log(&teller, LogLevel::Warn, &text);
            }
            let event = if executed { "command" } else { "rejected" };
            let age = context.age.map(|age| (age.as_secs_f64() * 1e6).round() / 1e3);
            tell.tell(
                event,
                &text,
                json!({ "kind": kind, "by": by, "sequence": context.sequence, "age_at_most_ms": age }),
            );
        }
        if executed {
            before = Some(text);
        }
        done.map(drop)
    });
}

/// Recent refusals. A refusal is reported again only after some time.
#[derive(Default)]
struct Refused(VecDeque<(String, Instant)>);

impl Refused {
    fn is_news(&mut self, text: &str) -> bool {
        let now = Instant::now();
        self.0.retain(|(_, at)| now - *at < QUIET);
        let known = self.0.iter().any(|(reported, _)| reported == text);
        if !known {
            self.0.truncate(MOST_REFUSALS - 1);
            self.0.push_front((text.to_owned(), now));
        }
        !known
    }
}

fn who(context: &Context) -> String {
    match &context.origin {
        Origin::Controller { name, .. } => name.to_string(),
        Origin::V6 { .. } => "a peer of version 6".into(),
        Origin::Robot => "itself".into(),
    }
}

fn no_action(name: &str, known: &str) -> String {
    format!("there is no action {name:?} of this kind; use one of {known}")
}

/// A command may name only the frame in which it is understood.
fn framed(header: &Option<remote::types::Header>, frame: &str) -> Result<(), String> {
    match header.as_ref().map(|h| h.frame.as_str()) {
        Some(other) if !other.is_empty() && other != frame => {
            Err(format!("only the frame {frame:?} is supported, not {other:?}"))
        }
        _ => Ok(()),
    }
}

fn components(twist: &Twist) -> ([f64; 3], [f64; 3]) {
    // Through the shortest decimal, so that 0.1 stays 0.1.
    let three = |v: &Option<Vector3>| {
        let v = v.unwrap_or_default();
        [v.x, v.y, v.z].map(|f| f.to_string().parse().unwrap_or(f64::from(f)))
    };
    (three(&twist.linear), three(&twist.angular))
}

fn waypoints(poses: &[Pose], repeats: bool) -> Result<Vec<Waypoint>, Rejection> {
    let last = poses.len().saturating_sub(1);
    let each = poses.iter().enumerate().map(|(i, pose)| {
        // The rover passes all waypoints but the last without a stop.
        let stops = i == last && !repeats;
        waypoint(pose, SPEED, if stops { 0.0 } else { SPEED })
    });
    Ok(each.collect::<Result<_, _>>()?)
}

fn waypoint(pose: &Pose, speed: f64, end_speed: f64) -> Result<Waypoint, String> {
    let at = pose.position.as_ref().ok_or("a pose has no position")?;
    Ok(Waypoint {
        x: at.x,
        y: at.y,
        heading: heading(pose),
        speed,
        end_speed,
    })
}

/// Rotation about z, from whichever of the two fields is set.
fn heading(pose: &Pose) -> Option<f64> {
    match pose.orientation {
        Some(Orientation { x, y, z, w }) if [x, y, z, w] != [0.0; 4] => {
            Some((2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z)))
        }
        _ if pose.orientation2d != 0.0 => Some(f64::from(pose.orientation2d)),
        _ => None,
    }
}

fn joint_goals(joints: &JointCommand) -> Result<Vec<(&str, JointGoal)>, String> {
    let JointCommand {
        name,
        position,
        velocity,
        effort,
        acceleration,
        tics,
        ..
    } = joints;
    for (what, len) in [("position", position.len()), ("velocity", velocity.len())] {
        if len != 0 && len != name.len() {
            return Err(format!(
                "{} names, but {len} elements of {what}: give none, or one for each name",
                name.len()
            ));
        }
    }
    if !(effort.is_empty() && acceleration.is_empty() && tics.is_empty()) {
        return Err("joints take only positions and velocities".into());
    }
    let goal = |i: usize| JointGoal {
        position: position.get(i).copied(),
        velocity: velocity.get(i).copied(),
    };
    Ok(name
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), goal(i)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use remote::types::{Header, Position};

    #[test]
    fn headings_come_from_either_orientation() {
        let mut pose = Pose {
            position: Some(Position {
                x: 1.0,
                y: 2.0,
                z: 0.0,
            }),
            ..Default::default()
        };
        assert_eq!(heading(&pose), None);
        pose.orientation2d = 0.5;
        assert_eq!(heading(&pose), Some(0.5));
        let half = std::f64::consts::FRAC_PI_4;
        pose.orientation = Some(Orientation {
            z: half.sin(),
            w: half.cos(),
            ..Default::default()
        });
        assert!(heading(&pose).is_some_and(|h| (h - 2.0 * half).abs() < 1e-9));
    }

    #[test]
    fn malformed_joints_and_foreign_frames_are_refused() {
        let joints = |name: &[&str], position: &[f64]| JointCommand {
            name: name.iter().map(|n| n.to_string()).collect(),
            position: position.to_vec(),
            ..Default::default()
        };
        assert!(joint_goals(&joints(&["a", "b"], &[1.0])).is_err());
        assert!(
            joint_goals(&JointCommand {
                effort: vec![1.0],
                ..joints(&["a"], &[1.0])
            })
            .is_err()
        );
        assert_eq!(joint_goals(&joints(&["a"], &[1.0])).map(|g| g.len()), Ok(1));
        let header = |frame: &str| {
            Some(Header {
                frame: frame.into(),
                ..Default::default()
            })
        };
        assert!(framed(&header("moon"), MAP).is_err() && framed(&header(MAP), MAP).is_ok());
        assert!(framed(&header(""), MAP).is_ok() && framed(&None, MAP).is_ok());
    }
}
