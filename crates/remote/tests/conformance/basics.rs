//! Commands and their outcomes; connections.

use super::*;
use remote::robot::ControllerEvent;
use remote::transport::{Class, ControllerSink, TransportError};
use remote::{Connection, Expiry, Outcome, Queue};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn outcomes(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = seen.clone();
    robot.on::<Lamp>(move |body, context| {
        handler
            .lock()
            .expect("no panic")
            .push((body.forward, context.age));
        match body.forward {
            f if f < 0.0 => Err("no such lamp".into()),
            f if f > 100.0 => panic!("on purpose"),
            _ => Ok(()),
        }
    });
    let controller = controller("c", (fixture.connect)());
    assert_eq!(controller.command::<Lamp>(&speed(1.0)), Outcome::Executed);
    assert_eq!(
        controller.command::<Lamp>(&speed(-1.0)),
        Outcome::Rejected("no such lamp".into())
    );
    // On a busy machine, reporting a panic takes longer than a command's usual time.
    let sent = controller.send_within::<Lamp>(&speed(101.0), Expiry::After(WATCHDOG));
    let Outcome::Rejected(reason) = sent.wait() else {
        panic!("rejected")
    };
    assert!(reason.contains("panicked"), "{reason}");
    assert_eq!(controller.command::<Lamp>(&speed(2.0)), Outcome::Executed);
    // A kind that the robot does not have, and one that it registered after they met.
    let Outcome::Rejected(reason) = controller.command::<Drive>(&speed(1.0)) else {
        panic!("rejected")
    };
    assert!(reason.contains("conformance.Drive"), "{reason}");
    robot.on::<Drive>(|_, _| Ok(()));
    assert_eq!(controller.command::<Drive>(&speed(1.0)), Outcome::Executed);
    let seen = seen.lock().expect("no panic");
    assert_eq!(
        seen.iter().map(|s| s.0).collect::<Vec<_>>(),
        [1.0, -1.0, 101.0, 2.0]
    );
    assert!(seen.iter().all(|s| s.1.is_some_and(|age| age < WATCHDOG)));
    assert_eq!(controller.robot_name().as_deref(), Some("rover"));
    let commands = controller.robot_commands();
    assert!(
        commands.starts_with(&["conformance.Drive".into(), "conformance.Lamp".into()]),
        "{commands:?}"
    );
    let received = robot.statistics().received["conformance.Lamp"];
    assert_eq!((received.messages, received.bytes), (4, 36));
    assert_eq!(controller.statistics().sent["conformance.Lamp"].messages, 4);
}

pub fn registered_first(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .build()
        .expect("built");
    let controller = Controller::builder("c")
        .end((fixture.connect)())
        .start()
        .expect("starts");
    let early = controller.clone();
    // The controller never gets the answer that there is no such command, however early it asks.
    let early = std::thread::spawn(move || {
        loop {
            let sent = early.send_within::<Lamp>(&speed(1.0), Expiry::After(Duration::from_secs(1)));
            match sent.wait() {
                Outcome::Executed => return,
                Outcome::Rejected(reason) => panic!("{reason}"),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    });
    assert!(!controller.wait_until_found(Duration::from_millis(100)));
    robot.on::<Lamp>(|_, _| Ok(()));
    robot.set::<Odometer>(0, &speed(7.0)).expect("set");
    assert!(!controller.is_found() && !early.is_finished());
    robot.start().expect("starts");
    robot.start().expect("has started already");
    early.join().expect("executed");
    assert!(controller.wait_until_found(WATCHDOG / 2));
    assert_eq!(controller.fetch::<Odometer>(0), Ok(Some(speed(7.0))));
    robot.stop();
    assert_eq!(robot.start(), Err(TransportError::Ended));
}

pub fn fire_and_forget(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let sum = Arc::new(AtomicU64::new(0));
    let handler = sum.clone();
    robot.on::<Lamp>(move |body, _| {
        handler.fetch_add(body.forward as u64, Ordering::Relaxed);
        Ok(())
    });
    let controller = controller("c", (fixture.connect)());
    for i in 1..=100 {
        drop(controller.send_within::<Lamp>(&speed(f64::from(i)), Expiry::After(WATCHDOG)));
    }
    eventually("all of them", || sum.load(Ordering::Relaxed) == 5050);
    // Or awaited, with many in progress.
    let pending: Vec<_> = (0..50)
        .map(|_| controller.send_within::<Lamp>(&speed(0.0), Expiry::After(WATCHDOG)))
        .collect();
    assert!(pending.into_iter().all(|p| p.wait().is_executed()));
}

pub fn many_to_many(fixture: &dyn Fn() -> Fixture) {
    let fixtures = [fixture(), fixture()];
    let robots: Vec<_> = fixtures.iter().map(robot).collect();
    let sums: Vec<_> = (0..2).map(|_| Arc::new(AtomicU64::new(0))).collect();
    for (robot, sum) in robots.iter().zip(&sums) {
        let sum = sum.clone();
        robot.on::<Lamp>(move |body, _| {
            sum.fetch_add(body.forward as u64, Ordering::Relaxed);
            Ok(())
        });
    }
    let controllers: Vec<_> = (0..6)
        .map(|i| controller(&format!("c{i}"), (fixtures[i % 2].connect)()))
        .collect();
    let threads: Vec<_> = controllers
        .into_iter()
        .enumerate()
        .map(|(i, controller)| {
            std::thread::spawn(move || {
                let value = 1 + (i % 2) as u64;
                for _ in 0..20 {
                    let sent = controller.send_within::<Lamp>(&speed(value as f64), Expiry::After(WATCHDOG));
                    assert_eq!(sent.wait(), Outcome::Executed);
                }
            })
        })
        .collect();
    assert!(threads.into_iter().all(|t| t.join().is_ok()));
    assert_eq!(
        sums.iter().map(|s| s.load(Ordering::Relaxed)).collect::<Vec<_>>(),
        [60, 120]
    );
    assert_eq!(robots[0].controllers().len(), 3);
}

pub fn without_a_robot(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let alone = Controller::builder("c")
        .end((fixture.connect)())
        .start()
        .expect("starts");
    assert!(!alone.wait_until_found(Duration::from_millis(50)));
    let sent = alone.send_within::<Lamp>(&speed(1.0), Expiry::After(Duration::from_millis(100)));
    let Outcome::Unreachable { maybe_executed, .. } = sent.wait() else {
        panic!("unreachable")
    };
    assert!(!maybe_executed, "no robot was there to execute it");
    let fetched = alone
        .fetch_within::<Odometer>(0, Duration::from_millis(100))
        .wait();
    assert!(
        matches!(fetched, Err(remote::controller::RequestError::Unreachable(_))),
        "{fetched:?}"
    );
    // It comes later, and is found.
    let robot = robot(&fixture);
    robot.on::<Lamp>(|_, _| Ok(()));
    assert!(alone.wait_until_found(WATCHDOG / 2));
    assert_eq!(alone.command::<Lamp>(&speed(1.0)), Outcome::Executed);
}

pub fn next_run(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let first = robot(&fixture);
    first.on::<Drive>(|_, _| Ok(()));
    first.on::<Lamp>(|_, _| Ok(()));
    first.set::<Odometer>(0, &speed(1.0)).expect("sent");
    let controller = controller("c", (fixture.connect)());
    assert_eq!(controller.command::<Lamp>(&speed(1.0)), Outcome::Executed);
    first.stop();
    drop(first);
    // The next robot numbers its kinds differently: none may be confused.
    let second = robot(&fixture);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = seen.clone();
    second.on::<Lamp>(move |body, _| {
        handler.lock().expect("no panic").push(body.forward);
        Ok(())
    });
    second.on::<Drive>(|_, _| Err("not this one".into()));
    // A command in transit when the first robot ended may have been executed, as far as the controller knows; later
    // ones are executed by the second.
    eventually("a command is executed by the second", || {
        let sent = controller.send_within::<Lamp>(&speed(2.0), Expiry::After(WATCHDOG / 2));
        let outcome = sent.wait();
        let unknown = matches!(&outcome, Outcome::Unreachable { maybe_executed, .. } if *maybe_executed);
        assert!(outcome.is_executed() || unknown, "{outcome}");
        outcome.is_executed()
    });
    assert_eq!(*seen.lock().expect("no panic"), [2.0]);
    assert_eq!(second.controllers().len(), 1);
    let latest = controller.queue::<Odometer>(0, Queue::Newest);
    second.set::<Picture>(0, &Blob::default()).expect("sent");
    eventually("telemetry of the second", || {
        second.set::<Odometer>(0, &speed(7.0)).expect("sent");
        latest
            .take(Duration::from_millis(20))
            .is_some_and(|(body, _)| body.forward == 7.0)
    });
}

pub fn polled(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let lamps = robot.queue::<Lamp>(Queue::Fifo(2));
    let drives = robot.queue::<Drive>(Queue::Newest);
    let controller = controller("c", (fixture.connect)());
    let send = |forward| {
        controller
            .send_within::<Lamp>(&speed(forward), Expiry::After(WATCHDOG))
            .wait()
    };
    assert_eq!((send(1.0), send(2.0)), (Outcome::Executed, Outcome::Executed));
    let Outcome::Rejected(reason) = send(3.0) else {
        panic!("the queue is full")
    };
    assert!(reason.contains("is full"), "{reason}");
    assert_eq!(lamps.try_take().map(|l| l.0.forward), Some(1.0));
    assert_eq!(lamps.take(WATCHDOG).map(|l| l.0.forward), Some(2.0));
    assert!(lamps.try_take().is_none());
    // For motion the newest command counts, and one that expired in the queue is not returned.
    for forward in [1.0, 2.0] {
        let sent = controller.send_within::<Drive>(&speed(forward), Expiry::After(WATCHDOG));
        assert_eq!(sent.wait(), Outcome::Executed);
    }
    assert_eq!(drives.try_take().map(|d| d.0.forward), Some(2.0));
    let sent = controller.send_within::<Drive>(&speed(3.0), Expiry::After(Duration::from_millis(400)));
    assert_eq!(sent.wait(), Outcome::Executed);
    std::thread::sleep(Duration::from_millis(410));
    assert!(drives.try_take().is_none(), "it is expired");
    assert_eq!(robot.statistics().dropped["expired_in_queue"], 1);
}

pub fn found_and_lost(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .lost_after(Duration::from_millis(300));
    let robot = robot.start().expect("starts");
    let events = Arc::new(Mutex::new(Vec::new()));
    let reported = events.clone();
    robot.on_controller(move |event| {
        reported.lock().expect("no panic").push(match event {
            ControllerEvent::Found { name, .. } => format!("found {name}"),
            ControllerEvent::Lost { name, .. } => format!("lost {name}"),
        });
    });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let reported = heard.clone();
    let end = Rough::new((fixture.connect)());
    let controller = Controller::builder("c")
        .end(end.clone())
        .heartbeat(Duration::from_millis(50));
    let controller = controller.start().expect("starts");
    controller.on_connection(move |connection| reported.lock().expect("no panic").push(connection));
    assert!(controller.wait_until_found(WATCHDOG / 2));
    eventually("a round trip", || controller.round_trip().is_some());
    assert!(controller.is_found());
    // Nothing passes any more: both notice.
    end.treat(rough::Treatment::Hold);
    eventually("lost here", || {
        heard.lock().expect("no panic").contains(&Connection::Lost)
    });
    eventually("lost there", || {
        events.lock().expect("no panic").contains(&"lost c".to_owned())
    });
    assert!(!controller.is_found() && !robot.controllers()[0].alive);
    end.treat(rough::Treatment::Pass);
    end.deliver();
    eventually("found again", || {
        controller.is_found() && robot.controllers()[0].alive
    });
    eventually("reported so", || {
        events
            .lock()
            .expect("no panic")
            .ends_with(&["lost c".into(), "found c".into()])
    });
}

/// Sinks that ignore everything: for frames that no controller would send.
pub struct Deaf;
impl ControllerSink for Deaf {
    fn telemetry(&self, _: &[u8]) {}
    fn lost(&self, _: u64) {}
    fn connected(&self, _: bool) {}
}

pub fn hostile(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.on::<Lamp>(|_, _| Ok(()));
    let good = controller("good", (fixture.connect)());
    let end = (fixture.connect)();
    end.start(Arc::new(Deaf)).expect("starts");
    // Some transports need a moment until they reach their peer.
    eventually("the robot is reached", || {
        let (done, ended) = channel();
        let done = Box::new(move |answer: Result<&[u8], TransportError>| {
            let _ = done.send(matches!(answer, Err(TransportError::NotSent(_))));
        });
        end.request(Class::Command, b"", Duration::from_millis(50), done);
        ended.recv_timeout(WATCHDOG) == Ok(false)
    });
    let mut frames: Vec<Vec<u8>> = ["", "c8", "05", "050000", "05c800", "050109", "1f00", "01", "ff"]
        .iter()
        .map(|h| unhex(h))
        .collect();
    // Complete requests of no controller, of nothing, of things that do not exist, and one that claims to be four
    // gigabytes long.
    let mut request = remote::own::Request {
        controller: 1,
        sequence: 1,
        ..Default::default()
    };
    let mut push = |r: &remote::own::Request| frames.push(prost::Message::encode_to_vec(r));
    push(&request);
    request.controller = u64::MAX;
    request.what = Some(remote::own::request::What::Hello(remote::own::Hello::default()));
    push(&request);
    request.controller = 77;
    push(&request);
    for number in [0, 1, 2, u32::MAX] {
        request.sequence += 1;
        let command = remote::own::Command {
            number,
            body: vec![0xFF; 3].into(),
        };
        request.what = Some(remote::own::request::What::Command(command));
        push(&request);
        let fetch = remote::own::Fetch {
            number,
            channel: u32::MAX,
        };
        request.what = Some(remote::own::request::What::Fetch(fetch));
        push(&request);
    }
    frames.push(unhex("5aff ffff ff0f 0000"));
    frames.push(vec![0xFF; 100_000]);
    let answered = Arc::new(AtomicU64::new(0));
    let sent = frames.len() as u64;
    for frame in frames {
        let answered = answered.clone();
        let done = Box::new(move |_: Result<&[u8], _>| {
            answered.fetch_add(1, Ordering::Relaxed);
        });
        end.request(Class::Command, &frame, Duration::from_secs(2), done);
    }
    eventually("every one is answered or given up", || {
        answered.load(Ordering::Relaxed) == sent
    });
    assert_eq!(
        good.command::<Lamp>(&speed(1.0)),
        Outcome::Executed,
        "the robot lives"
    );
    assert!(robot.statistics().dropped["malformed"] > 0);
    end.stop();
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}
