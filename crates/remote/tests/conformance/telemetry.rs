//! Telemetry of robots.

use super::*;
use remote::Queue;
use std::sync::Mutex;

pub fn channels_and_queues(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.tells::<Odometer>().expect("room");
    robot.tells::<Serial>().expect("room");
    let left = robot.channel::<Odometer>("left").expect("room");
    let right = robot.channel::<Odometer>("right").expect("room");
    assert_eq!(
        (left, right, robot.channel::<Odometer>("left").expect("room")),
        (1, 2, 1)
    );
    let controller = controller("c", (fixture.connect)());
    assert_eq!(
        controller.channels::<Odometer>(),
        [(1, "left".to_owned()), (2, "right".to_owned())]
    );
    // An unset value is not a lost one.
    assert_eq!(controller.fetch::<Odometer>(left), Ok(None));
    assert_eq!(controller.latest::<Odometer>(left), None);
    assert!(controller.is_found());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let callback = heard.clone();
    controller.on::<Odometer>(left, move |body, info| {
        callback
            .lock()
            .expect("no panic")
            .push((body.forward, info.sequence));
    });
    let queue = controller.queue::<Odometer>(right, Queue::Newest);
    // A transport may need a moment before a new listener receives everything.
    eventually("telemetry is heard", || {
        robot.set::<Odometer>(left, &speed(0.0)).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
        !heard.lock().expect("no panic").is_empty()
    });
    for i in 1..=20 {
        robot.set::<Odometer>(left, &speed(f64::from(i))).expect("sent");
        robot.set::<Odometer>(right, &speed(-f64::from(i))).expect("sent");
    }
    robot.set::<Serial>(0, &speed(42.0)).expect("set");
    eventually("the last one", || {
        heard
            .lock()
            .expect("no panic")
            .last()
            .is_some_and(|h| h.0 == 20.0)
    });
    let heard = heard.lock().expect("no panic");
    assert!(heard.windows(2).all(|w| w[0].1 < w[1].1), "in order: {heard:?}");
    eventually("the newest in the queue", || {
        queue
            .take(WATCHDOG)
            .is_some_and(|(body, info)| body.forward == -20.0 && info.channel == right)
    });
    assert_eq!(controller.latest::<Odometer>(left), Some(speed(20.0)));
    assert_eq!(controller.fetch::<Odometer>(right), Ok(Some(speed(-20.0))));
    // Telemetry on request is not sent by itself.
    assert_eq!(controller.latest::<Serial>(0), None);
    assert_eq!(controller.fetch::<Serial>(0), Ok(Some(speed(42.0))));
    assert!(
        controller.fetch::<Picture>(0).is_err(),
        "the robot has no pictures"
    );
}

pub fn panics(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.tells::<Odometer>().expect("room");
    let controller = controller("c", (fixture.connect)());
    let (first, second) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let calls = first.clone();
    controller.on::<Odometer>(0, move |_, _| {
        *calls.lock().expect("no panic holds it") += 1;
        panic!("on purpose");
    });
    let calls = second.clone();
    controller.on::<Odometer>(0, move |_, _| *calls.lock().expect("no panic") += 1);
    eventually("telemetry after a panic", || {
        robot.set::<Odometer>(0, &speed(1.0)).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
        *second.lock().expect("no panic") >= 3
    });
    let count = || controller.statistics().dropped.get("callback_panicked").copied();
    eventually("each panic is counted", || count() >= Some(3));
    // Fetching continues, too.
    assert!(controller.fetch::<Odometer>(0).is_ok());
}

pub fn large(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.tells::<Picture>().expect("room");
    let controller = controller("c", (fixture.connect)());
    let pictures = controller.queue::<Picture>(0, Queue::Newest);
    let data: Vec<u8> = (0..10_000_000u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    let picture = Blob { data };
    eventually("10 MB are heard", || {
        robot.set::<Picture>(0, &picture).expect("sent");
        // A newer frame may end one in transit.
        pictures
            .take(Duration::from_secs(15))
            .is_some_and(|(body, _)| body == picture)
    });
    assert!(controller.fetch::<Picture>(0).expect("answered") == Some(picture));
}

pub fn watched(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.tells::<Odometer>().expect("room");
    robot.tells::<Picture>().expect("room");
    let controller = controller("c", (fixture.connect)());
    assert_eq!(controller.watched(), None);
    controller.watch::<Odometer>(0);
    assert_eq!(
        controller.watched(),
        Some(vec![("conformance.Odometer".to_owned(), 0)])
    );
    eventually("what is watched is heard", || {
        robot.set::<Picture>(0, &Blob::default()).expect("sent");
        robot.set::<Odometer>(0, &speed(1.0)).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
        controller.latest::<Odometer>(0).is_some()
    });
    // Frames in transit when the watch list began may still have arrived.
    robot.set::<Picture>(0, &Blob { data: vec![1] }).expect("sent");
    robot.set::<Odometer>(0, &speed(2.0)).expect("sent");
    eventually("the second", || {
        controller.latest::<Odometer>(0) == Some(speed(2.0))
    });
    assert_ne!(controller.latest::<Picture>(0), Some(Blob { data: vec![1] }));
    let pictures = controller.queue::<Picture>(0, Queue::Newest);
    eventually("a picture", || {
        robot.set::<Picture>(0, &Blob { data: vec![2] }).expect("sent");
        pictures
            .take(Duration::from_millis(20))
            .is_some_and(|(body, _)| body.data == [2])
    });
    controller.unwatch::<Odometer>(0);
    controller.watch_all();
    eventually("everything again", || {
        robot.set::<Odometer>(0, &speed(3.0)).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
        controller.latest::<Odometer>(0) == Some(speed(3.0))
    });
}

/// A robot that registers new telemetry after a controller met it.
pub fn late_kinds(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let controller = controller("c", (fixture.connect)());
    let queue = controller.queue::<Odometer>(0, Queue::Fifo(1000));
    eventually("it is heard", || {
        robot.set::<Odometer>(0, &speed(1.0)).expect("sent");
        queue.take(Duration::from_millis(50)).is_some()
    });
    assert_eq!(controller.fetch::<Odometer>(0), Ok(Some(speed(1.0))));
}

pub fn apart(fixture: &dyn Fn() -> Fixture) {
    use remote::robot::Carries;
    let (commands, telemetry) = (fixture(), fixture());
    let robot = Robot::builder("rover")
        .end_for((commands.robot)(), Carries::Commands)
        .end_for((telemetry.robot)(), Carries::Telemetry)
        .start()
        .expect("starts");
    let handle = robot.clone();
    robot.on::<Drive>(move |body, _| handle.set::<Odometer>(0, &body).map_err(|e| e.to_string().into()));
    robot.tells::<Odometer>().expect("room");
    let controller = Controller::builder("c")
        .commands((commands.connect)())
        .telemetry((telemetry.connect)())
        .start()
        .expect("starts");
    assert!(controller.wait_until_found(WATCHDOG / 2));
    let odometer = controller.queue::<Odometer>(0, Queue::Fifo(100));
    eventually("a command's trace on the other transport", || {
        assert!(controller.command::<Drive>(&speed(3.0)).is_executed());
        odometer
            .take(Duration::from_millis(50))
            .is_some_and(|(body, _)| body.forward == 3.0)
    });
    // The robot's handler owns the robot: this ends both.
    robot.stop();
}
