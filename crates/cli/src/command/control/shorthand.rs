//! Short forms of command bodies.

use super::kinds::own;
use prost::Message;
use remote::types::{
    ComplexAction, ComplexActionType, GoTo, JointCommand, Orientation, Permission, Pose, Poses, PosesType,
    Position, SimpleAction, Twist, Vector3,
};

/// Short form of each kind, with an example.
pub(super) const FORMS: &[(&str, &str, &str)] = &[
    ("Twist", "FORWARD TURN | X Y Z  ROLL PITCH YAW", "0.5 0.2"),
    ("TargetPose", "X Y [HEADING]", "2 1 1.57"),
    ("GoTo", "X Y [HEADING] [@SPEED]", "2 1 @0.5"),
    (
        "Joints",
        "NAME=POSITION[@VELOCITY] ...",
        "arm_pan=0.5 arm_elbow=-0.3",
    ),
    ("RobotTrajectory", "X,Y[,HEADING] ...", "1,0 1,1 0,0,3.14"),
    ("SimpleAction", "NAME STATE", "headlights 1"),
    ("ComplexAction", "NAME X,Y[,HEADING] ...", "patrol 1,0 1,1 0,0"),
    ("Permission", "REQUEST yes|no", "42 yes"),
];

/// Short form of a kind.
pub(super) fn form(kind: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    FORMS.iter().find(|(name, _, _)| *name == own(kind))
}

/// Encodes the body of a command of this kind from its short form.
pub(super) fn body(kind: &str, words: &[&str]) -> Result<Vec<u8>, String> {
    let body = match own(kind) {
        "Twist" => twist(words)?.encode_to_vec(),
        "TargetPose" => pose(words)?.encode_to_vec(),
        "GoTo" => go_to(words)?.encode_to_vec(),
        "Joints" => joints(words)?.encode_to_vec(),
        "RobotTrajectory" => Poses {
            poses: poses(words)?,
            r#type: PosesType::PosesPath.into(),
            ..Default::default()
        }
        .encode_to_vec(),
        "SimpleAction" => match words {
            [name, state] => simple(name, number(state)?).encode_to_vec(),
            _ => return Err("NAME STATE".into()),
        },
        "ComplexAction" => match words {
            [name, points @ ..] => complex(name, ComplexActionType::PoseList, points)?.encode_to_vec(),
            [] => return Err("NAME X,Y[,HEADING] ...".into()),
        },
        "Permission" => match words {
            [request, word @ ("yes" | "no")] => Permission {
                header: None,
                requestuid: (*request).into(),
                granted: *word == "yes",
            }
            .encode_to_vec(),
            _ => return Err("REQUEST yes|no".into()),
        },
        other => return Err(format!("{other} has no short form: give JSON")),
    };
    Ok(body)
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

fn numbers(words: &[&str]) -> Result<Vec<f64>, String> {
    let finite = |word: &&str| {
        let good = number(word)
            .ok()
            .filter(|number| crate::numbers::is_moderate(*number));
        good.ok_or_else(|| format!("{word:?} is not a number that fits the message"))
    };
    words.iter().map(finite).collect()
}

fn twist(words: &[&str]) -> Result<Twist, String> {
    let all = numbers(words)?;
    let six = match *all.as_slice() {
        [forward, turn] => [forward, 0.0, 0.0, 0.0, 0.0, turn],
        [x, y, z, roll, pitch, yaw] => [x, y, z, roll, pitch, yaw],
        _ => return Err(format!("two numbers, or six; these are {}", all.len())),
    };
    let [x, y, z, roll, pitch, yaw] = six.map(|v| v as f32);
    Ok(Twist {
        header: None,
        linear: Some(Vector3 { x, y, z }),
        angular: Some(Vector3 {
            x: roll,
            y: pitch,
            z: yaw,
        }),
    })
}

fn pose(words: &[&str]) -> Result<Pose, String> {
    let all = numbers(words)?;
    let (x, y, heading) = match *all.as_slice() {
        [x, y] => (x, y, None),
        [x, y, heading] => (x, y, Some(heading)),
        _ => return Err("x and y, and the heading in radians if it matters".into()),
    };
    let orientation = heading.map(|h: f64| Orientation {
        x: 0.0,
        y: 0.0,
        z: (h / 2.0).sin(),
        w: (h / 2.0).cos(),
    });
    Ok(Pose {
        position: Some(Position { x, y, z: 0.0 }),
        orientation,
        orientation2d: heading.unwrap_or_default() as f32,
        ..Default::default()
    })
}

fn poses(words: &[&str]) -> Result<Vec<Pose>, String> {
    words
        .iter()
        .map(|word| pose(&word.split(',').collect::<Vec<_>>()))
        .collect()
}

fn go_to(words: &[&str]) -> Result<GoTo, String> {
    let (words, speed) = match words {
        [words @ .., last] if last.starts_with('@') => (words, number(&last[1..])?),
        words => (words, 0.0),
    };
    Ok(GoTo {
        max_forward_speed: speed,
        waypoint_pose: Some(pose(words)?),
        ..Default::default()
    })
}

fn joints(words: &[&str]) -> Result<JointCommand, String> {
    let mut command = JointCommand::default();
    for word in words {
        let (name, goal) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is not of the form NAME=POSITION"))?;
        let (position, velocity) = match goal.split_once('@') {
            Some((position, velocity)) => (position, Some(number::<f64>(velocity)?)),
            None => (goal, None),
        };
        command.name.push(name.into());
        command.position.push(number(position)?);
        command.velocity.extend(velocity);
    }
    match (command.name.len(), command.velocity.len()) {
        (0, _) => Err("NAME=POSITION[@VELOCITY] ...".into()),
        (names, velocities) if velocities != 0 && velocities != names => {
            Err("a velocity for each joint, or for none".into())
        }
        _ => Ok(command),
    }
}

pub(super) fn simple(name: &str, state: f32) -> SimpleAction {
    SimpleAction {
        name: name.into(),
        state,
        ..Default::default()
    }
}

/// With poses or twists, whichever the action's type takes.
pub(super) fn complex(name: &str, kind: ComplexActionType, words: &[&str]) -> Result<ComplexAction, String> {
    let takes_twists = matches!(kind, ComplexActionType::Twist | ComplexActionType::TwistList);
    let twists = words
        .iter()
        .map(|word| twist(&word.split(',').collect::<Vec<_>>()));
    let (poses, twists) = match takes_twists {
        true => (Vec::new(), twists.collect::<Result<_, _>>()?),
        false => (poses(words)?, Vec::new()),
    };
    Ok(ComplexAction {
        name: name.into(),
        r#type: kind.into(),
        poses,
        twists,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::control::kinds::COMMANDS;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn every_kind_has_a_form_whose_example_is_good() {
        for kind in COMMANDS {
            let (_, _, example) = form(kind.name).unwrap_or_else(|| panic!("{}", kind.name));
            let body = body(kind.name, &words(example)).expect(example);
            assert!(!body.is_empty(), "{example}");
        }
    }

    #[test]
    fn words_mean_what_they_say() {
        let same = twist(&words("0.5 0 0 0 0 -0.25"));
        assert_eq!(twist(&words("0.5 -0.25")), same);
        let go = go_to(&words("1 2 0 @0.7")).expect("good");
        assert_eq!(go.max_forward_speed, 0.7);
        assert_eq!(
            go.waypoint_pose.and_then(|p| p.orientation).map(|o| o.w),
            Some(1.0),
            "heading 0 is one"
        );
        let joints = joints(&words("a=1@0.1 b=-2@0.2")).expect("good");
        assert_eq!(
            (joints.position, joints.velocity),
            (vec![1.0, -2.0], vec![0.1, 0.2])
        );
        let twists = complex("t", ComplexActionType::TwistList, &["1,0", "0,1"]).expect("good");
        assert_eq!((twists.twists.len(), twists.poses.len()), (2, 0));
    }

    #[test]
    fn malformed_shorthands_are_refused() {
        for (kind, text) in [
            ("Twist", "1"),
            ("Twist", "1 2 3"),
            ("Twist", "1 x"),
            ("TargetPose", "1"),
            ("GoTo", "1 2 @fast"),
            ("GoTo", "@1"),
            ("Joints", ""),
            ("Joints", "a"),
            ("Joints", "a=1@1 b=2"),
            ("RobotTrajectory", "1"),
            ("SimpleAction", "a"),
            ("ComplexAction", ""),
            ("Permission", "1 maybe"),
            ("Else", ""),
        ] {
            assert!(body(kind, &words(text)).is_err(), "{kind} {text}");
        }
    }
}
