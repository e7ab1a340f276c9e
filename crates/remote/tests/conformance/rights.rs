//! One controller at a time moves a subsystem.

use super::*;
use remote::{Expiry, Outcome};
use std::collections::BTreeSet;
use std::sync::Mutex;

fn drive(controller: &Controller) -> Outcome {
    controller
        .send_within::<Drive>(&speed(1.0), Expiry::After(WATCHDOG))
        .wait()
}

fn two(fixture: &Fixture) -> [Controller; 2] {
    [
        controller("ann", (fixture.connect)()),
        controller("bob", (fixture.connect)()),
    ]
}

fn is_anns(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected(reason) if reason.contains("ann holds"))
}

pub fn implicit(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.on::<Drive>(|_, _| Ok(()));
    robot.on::<Lamp>(|_, _| Ok(()));
    let [ann, bob] = two(&fixture);
    assert_eq!(ann.subsystems(), ["base"]);
    assert_eq!(ann.right("base").map(|r| r.holder), Ok(None));
    assert_eq!(drive(&ann), Outcome::Executed);
    let refused = drive(&bob);
    assert!(is_anns(&refused), "{refused}");
    // Any controller may send a command that moves nothing.
    assert_eq!(bob.command::<Lamp>(&speed(1.0)), Outcome::Executed);
    assert_eq!(
        bob.right("base").map(|r| r.holder),
        Ok(Some((ann.id(), "ann".to_owned())))
    );
    assert!(bob.right("tail").is_err());
    assert_eq!(robot.holder("base"), Some(ann.id()));
    ann.release_right("base").expect("released");
    assert_eq!(drive(&bob), Outcome::Executed);
    assert!(!is_anns(&drive(&ann)) && !drive(&ann).is_executed());
}

pub fn hand_over(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.on::<Drive>(|_, _| Ok(()));
    let [ann, bob] = two(&fixture);
    let mine = ann.request_right("").expect("free");
    assert!(mine.mine);
    assert!(bob.request_right("base").is_err());
    assert!(
        bob.hand_right_over("base", bob.id()).is_err(),
        "bob cannot give it away"
    );
    assert!(
        ann.hand_right_over("base", 12345).is_err(),
        "no controller has that number"
    );
    assert!(
        bob.take_right_over("base").is_err(),
        "not permitted unless the robot says so"
    );
    ann.hand_right_over("base", bob.id()).expect("handed over");
    assert!(!drive(&ann).is_executed());
    assert_eq!(drive(&bob), Outcome::Executed);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let reported = asked.clone();
    robot.on_take_over(move |wanted| {
        reported
            .lock()
            .expect("no panic")
            .push(format!("{} {} {}", wanted.by.0, wanted.subsystem, wanted.from.0));
        true
    });
    assert!(ann.take_right_over("base").is_ok_and(|r| r.mine));
    assert_eq!(*asked.lock().expect("no panic"), ["ann base bob"]);
    assert!(is_anns(&drive(&bob)));
}

pub fn requested(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .require_request(true)
        .start()
        .expect("starts");
    robot.on::<Drive>(|_, _| Ok(()));
    let ann = controller("ann", (fixture.connect)());
    let refused = drive(&ann);
    assert!(
        matches!(&refused, Outcome::Rejected(reason) if reason.contains("request it first")),
        "{refused}"
    );
    ann.request_right("base").expect("free");
    assert_eq!(drive(&ann), Outcome::Executed);
}

pub fn lost_holder(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .lost_after(Duration::from_millis(400));
    let robot = robot.start().expect("starts");
    robot.on::<Drive>(|_, _| Ok(()));
    let lost = Arc::new(Mutex::new(Vec::new()));
    let reported = lost.clone();
    robot.on_link_lost(move |link| {
        reported
            .lock()
            .expect("no panic")
            .push(format!("{} {}", link.subsystem(), link.controller()));
        link.stop();
    });
    let [ann, bob] = two(&fixture);
    assert_eq!(drive(&ann), Outcome::Executed);
    assert!(is_anns(&drive(&bob)));
    drop(ann);
    eventually("the loss is noticed", || {
        *lost.lock().expect("no panic") == ["base ann"]
    });
    assert_eq!(robot.holder("base"), None);
    assert_eq!(drive(&bob), Outcome::Executed);
}

/// If the robot's user set no callback: twists stop, joints hold, and a program's own kinds stop, too.
pub fn stops(fixture: &dyn Fn() -> Fixture) {
    use remote::robot::Origin;
    use remote::{command, telemetry, types};
    let fixture = fixture();
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .lost_after(Duration::from_millis(400));
    let robot = robot.start().expect("starts");
    // A host without processor time may lose the link, and stop, more than once.
    let stopped = Arc::new(Mutex::new(BTreeSet::new()));
    let reported = stopped.clone();
    robot.on::<command::Twist>(move |twist, context| {
        if context.origin == Origin::Robot {
            reported
                .lock()
                .expect("no panic")
                .insert(format!("{:?}", twist.linear.expect("zero")));
        }
        Ok(())
    });
    let reported = stopped.clone();
    robot.on::<command::Joints>(move |joints, context| {
        if context.origin == Origin::Robot {
            reported.lock().expect("no panic").insert(format!(
                "{:?} {:?} {:?}",
                joints.name, joints.position, joints.velocity
            ));
        }
        Ok(())
    });
    let joints = types::JointState {
        name: vec!["elbow".into()],
        position: vec![0.5],
        ..Default::default()
    };
    robot.set::<telemetry::JointState>(0, &joints).expect("sent");
    let ann = controller("ann", (fixture.connect)());
    let twist = types::Twist {
        linear: Some(types::Vector3 {
            x: 1.0,
            ..Default::default()
        }),
        ..Default::default()
    };
    assert!(
        ann.send_within::<command::Twist>(&twist, Expiry::After(WATCHDOG))
            .wait()
            .is_executed()
    );
    let bend = types::JointCommand {
        name: vec!["elbow".into()],
        position: vec![1.5],
        ..Default::default()
    };
    assert!(
        ann.send_within::<command::Joints>(&bend, Expiry::After(WATCHDOG))
            .wait()
            .is_executed()
    );
    drop(ann);
    eventually("both stop", || stopped.lock().expect("no panic").len() == 2);
    let stopped = stopped.lock().expect("no panic");
    assert_eq!(
        stopped.iter().collect::<Vec<_>>(),
        ["Vector3 { x: 0.0, y: 0.0, z: 0.0 }", "[\"elbow\"] [0.5] [0.0]"]
    );
}
