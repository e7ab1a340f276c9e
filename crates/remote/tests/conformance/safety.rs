//! What must never be carried out.

use super::rough::Treatment;
use super::*;
use remote::{Expiry, Outcome};
use std::sync::Mutex;

type Seen = Arc<Mutex<Vec<f64>>>;

fn setup(place: &Place) -> (Robot, Seen, Arc<Rough>, Controller) {
    let robot = robot(place);
    let seen = Seen::default();
    let handler = seen.clone();
    robot.on::<Drive>(move |body, _| {
        handler.lock().expect("no panic").push(body.forward);
        Ok(())
    });
    let rough = Rough::new((place.connect)());
    // Its heartbeats do not come between what is held here.
    let controller = Controller::builder("c")
        .end(rough.clone())
        .heartbeat(Duration::from_secs(600));
    let controller = controller.start().expect("starts");
    assert!(controller.wait_until_found(WATCHDOG / 2));
    (robot, seen, rough, controller)
}

/// As with a robot that was stopped while they were sent.
pub fn late(place: &dyn Fn() -> Place) {
    let place = place();
    let (robot, seen, rough, controller) = setup(&place);
    rough.treat(Treatment::Hold);
    let expiry = Expiry::After(Duration::from_millis(200));
    let held: Vec<_> = (0..3)
        .map(|i| controller.send_within::<Drive>(&speed(f64::from(i)), expiry))
        .collect();
    std::thread::sleep(Duration::from_millis(250));
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
    // One that is in time is.
    assert!(
        controller
            .send_within::<Drive>(&speed(9.0), Expiry::After(WATCHDOG))
            .wait()
            .is_executed()
    );
    // And one that is good for ever, however long it took.
    rough.treat(Treatment::Hold);
    let held = controller.send_within::<Drive>(&speed(10.0), Expiry::Never);
    std::thread::sleep(Duration::from_millis(250));
    rough.deliver();
    assert!(held.wait().is_executed());
    assert_eq!(*seen.lock().expect("no panic"), [9.0, 10.0]);
}

pub fn repeated(place: &dyn Fn() -> Place) {
    let place = place();
    let (robot, seen, rough, controller) = setup(&place);
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

/// The command is sent again, and the first one's answer comes.
pub fn lost_answer(place: &dyn Fn() -> Place) {
    let place = place();
    let (robot, seen, rough, controller) = setup(&place);
    rough.treat(Treatment::LoseAnswers);
    let sent = controller.send_within::<Drive>(&speed(1.0), Expiry::After(WATCHDOG / 2));
    eventually("it was sent again", || {
        robot.statistics().dropped.contains_key("repeated")
    });
    rough.treat(Treatment::Pass);
    assert_eq!(sent.wait(), Outcome::Executed);
    assert_eq!(*seen.lock().expect("no panic"), [1.0]);
    // Where no answer ever comes, it says that it may have been carried out.
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

pub fn overtaken(place: &dyn Fn() -> Place) {
    let place = place();
    let (_robot, seen, rough, controller) = setup(&place);
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
