//! Commands that must never be carried out.

use super::rough::Treatment;
use super::*;
use remote::robot::Origin;
use remote::{Expiry, Outcome, command, types};
use std::sync::Mutex;
use std::time::Instant;

type Seen = Arc<Mutex<Vec<f64>>>;

fn setup(fixture: &Fixture) -> (Robot, Seen, Arc<Rough>, Controller) {
    let robot = robot(fixture);
    let seen = Seen::default();
    let handler = seen.clone();
    robot.on::<Drive>(move |body, _| {
        handler.lock().expect("no panic").push(body.forward);
        Ok(())
    });
    let rough = Rough::new((fixture.connect)());
    // Its heartbeats do not mix with the requests that are held here.
    let controller = Controller::builder("c")
        .end(rough.clone())
        .heartbeat(Duration::from_secs(600));
    let controller = controller.start().expect("starts");
    assert!(controller.wait_until_found(WATCHDOG / 2));
    (robot, seen, rough, controller)
}

/// A twist ends by itself, unless another follows.
pub fn twist_holds(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let hold = Duration::from_millis(300);
    let built = Robot::builder("rover")
        .end((fixture.robot)())
        .hold_twists(Some(hold));
    let robot = built.build().expect("built");
    let driven = Arc::new(Mutex::new(Vec::new()));
    let (handler, heard) = (driven.clone(), driven.clone());
    robot.on::<command::Twist>(move |twist, context| {
        let x = twist.linear.unwrap_or_default().x;
        let own = context.origin == Origin::Robot;
        handler.lock().expect("no panic").push((Instant::now(), x, own));
        Ok(())
    });
    robot.start().expect("starts");
    let controller = controller("c", (fixture.connect)());
    let drive = |x: f32| {
        let linear = Some(types::Vector3 {
            x,
            ..Default::default()
        });
        let twist = types::Twist {
            linear,
            ..Default::default()
        };
        let sent = controller.send_within::<command::Twist>(&twist, Expiry::After(WATCHDOG));
        assert_eq!(sent.wait(), Outcome::Executed);
    };
    let stopped = || {
        driven
            .lock()
            .expect("no panic")
            .last()
            .is_some_and(|(_, x, own)| *own && *x == 0.0)
    };
    // A single twist: the robot stops itself, no sooner than its hold time, though the controller is there.
    drive(0.5);
    eventually("the robot stops", stopped);
    {
        let driven = driven.lock().expect("no panic");
        assert_eq!(driven.len(), 2, "{driven:?}");
        assert!(driven[1].0 - driven[0].0 >= hold, "{driven:?}");
    }
    assert!(controller.is_found());
    // Successive twists prolong it: no stop in between. On a machine that stands still there may be one.
    let begin = driven.lock().expect("no panic").len();
    for i in 1..=10 {
        drive(i as f32 / 10.0);
        std::thread::sleep(Duration::from_millis(50));
    }
    eventually("it stops once they end", stopped);
    let driven = driven.lock().expect("no panic");
    for pair in driven[begin..].windows(2) {
        let (before, after) = (pair[0], pair[1]);
        assert!(
            !after.2 || after.0 - before.0 >= hold,
            "a stop comes too early: {driven:?}"
        );
    }
    // A robot that was commanded to stop is not stopped again.
    let count = driven.len();
    drop(driven);
    drive(0.0);
    std::thread::sleep(hold * 2);
    assert_eq!(heard.lock().expect("no panic").len(), count + 1);
}

/// As with a robot that was paused while they were sent.
pub fn late(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (robot, seen, rough, controller) = setup(&fixture);
    rough.treat(Treatment::Hold);
    let expiry = Expiry::After(Duration::from_secs(1));
    let held: Vec<_> = (0..3)
        .map(|i| controller.send_within::<Drive>(&speed(f64::from(i)), expiry))
        .collect();
    std::thread::sleep(Duration::from_millis(1_100));
    rough.treat(Treatment::Pass);
    rough.deliver();
    for pending in held {
        let outcome = pending.wait();
        assert!(matches!(outcome, Outcome::Expired(_)), "{outcome}");
    }
    assert_eq!(
        *seen.lock().expect("no panic"),
        [] as [f64; 0],
        "none was carried out"
    );
    assert_eq!(robot.statistics().dropped["expired"], 3);
    // A command in time is carried out.
    assert!(
        controller
            .send_within::<Drive>(&speed(9.0), Expiry::After(WATCHDOG))
            .wait()
            .is_executed()
    );
    // And so is one without an expiry, however long it took.
    rough.treat(Treatment::Hold);
    let held = controller.send_within::<Drive>(&speed(10.0), Expiry::Never);
    std::thread::sleep(Duration::from_millis(250));
    rough.deliver();
    assert!(held.wait().is_executed());
    assert_eq!(*seen.lock().expect("no panic"), [9.0, 10.0]);
}

pub fn repeated(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (robot, seen, rough, controller) = setup(&fixture);
    rough.treat(Treatment::Twice);
    for i in 0..10 {
        let sent = controller.send_within::<Drive>(&speed(f64::from(i)), Expiry::After(WATCHDOG));
        assert_eq!(sent.wait(), Outcome::Executed);
    }
    eventually("the repetitions came", || {
        robot.statistics().dropped.get("repeated") == Some(&10)
    });
    assert_eq!(seen.lock().expect("no panic").len(), 10);
}

/// The command is sent again, and the first one's answer arrives.
pub fn lost_answer(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (robot, seen, rough, controller) = setup(&fixture);
    rough.treat(Treatment::LoseAnswers);
    let sent = controller.send_within::<Drive>(&speed(1.0), Expiry::After(WATCHDOG / 2));
    eventually("it was sent again", || {
        robot.statistics().dropped.contains_key("repeated")
    });
    rough.treat(Treatment::Pass);
    assert_eq!(sent.wait(), Outcome::Executed);
    assert_eq!(*seen.lock().expect("no panic"), [1.0]);
    // If no answer ever arrives, the outcome is that it may have been carried out.
    rough.treat(Treatment::LoseAnswers);
    let sent = controller.send_within::<Drive>(&speed(2.0), Expiry::After(Duration::from_millis(300)));
    let outcome = sent.wait();
    assert!(
        matches!(
            outcome,
            Outcome::Unreachable {
                maybe_executed: true,
                ..
            }
        ),
        "{outcome}"
    );
    assert_eq!(*seen.lock().expect("no panic"), [1.0, 2.0]);
}

pub fn overtaken(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (_robot, seen, rough, controller) = setup(&fixture);
    rough.treat(Treatment::Hold);
    let slow = controller.send_within::<Drive>(&speed(1.0), Expiry::After(WATCHDOG));
    rough.treat(Treatment::Pass);
    let fast = controller.send_within::<Drive>(&speed(0.0), Expiry::After(WATCHDOG));
    assert_eq!(fast.wait(), Outcome::Executed);
    rough.deliver();
    let outcome = slow.wait();
    assert!(
        matches!(&outcome, Outcome::Expired(reason) if reason.contains("newer")),
        "{outcome}"
    );
    assert_eq!(*seen.lock().expect("no panic"), [0.0]);
}
