//! The ends over the bus, on one host and over two that links join.

mod link_common;

use link_common::*;
use remote::transport::link::{DirectController, DirectRobot, LinkController, LinkRobot};
use remote::transport::{Class, ControllerEnd, Listen, RobotEnd, Stream, TransportError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const CLASSES: [Class; 3] = [Class::Command, Class::Request, Class::File];

fn pose() -> Stream<'static> {
    Stream {
        kind: "test.Pose",
        channel: 0,
        priority: 70,
    }
}

/// Requests of every class and length come back as the robot answers them.
fn echoes(fixtures: &Places) {
    let (_robot, _sink) = echo(fixtures);
    let (controller, heard) = controller(fixtures);
    heard.wait_connected(true);
    for class in CLASSES {
        reached(&controller, class);
        for len in [0, 1, 255, 256, 100_000] {
            let frame: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            assert_eq!(
                ask(&controller, class, &frame, LONG),
                Ok(frame),
                "{class:?} {len}"
            );
        }
    }
    let long = vec![0; 64 << 20];
    let error = ask(&controller, Class::File, &long, LONG).expect_err("too long");
    assert!(
        matches!(error, TransportError::TooLong { len, .. } if len == long.len()),
        "{error}"
    );
}

#[test]
fn requests_are_answered_on_one_bus() {
    echoes(&Places::one());
}

#[test]
fn requests_are_answered_over_two_links() {
    echoes(&Places::two());
}

/// Answers are given late, out of order, by another thread; each reaches its request.
fn many_at_a_time(fixtures: &Places, most: usize) {
    let (asked, requests) = channel();
    let (_robot, _sink) = robot(fixtures, move |frame, reply| {
        asked.send((frame.to_vec(), reply)).expect("the test listens");
    });
    let controllers: Vec<_> = (0..3).map(|_| controller(fixtures)).collect();
    let (done, answers) = channel();
    let ask = |c: usize, frame: Vec<u8>| {
        let (done, sent) = (done.clone(), frame.clone());
        let tell = move |answer: Result<&[u8], TransportError>| {
            let answer = answer.map(<[u8]>::to_vec);
            done.send((c, sent, answer)).expect("the test listens");
        };
        controllers[c]
            .0
            .request(Class::Command, &frame, LONG, Box::new(tell));
    };
    for (c, (_, heard)) in controllers.iter().enumerate() {
        heard.wait_connected(true);
        for n in 0..most / 3 {
            ask(c, format!("{c} {n}").into_bytes());
        }
    }
    let mut waiting = Vec::new();
    until("all requests are there", || {
        waiting.extend(requests.try_iter());
        // A controller that calls faster than the others accept gets an error and calls again.
        for (c, frame, answer) in answers.try_iter() {
            match answer {
                Err(TransportError::NotSent(_)) => ask(c, frame),
                other => panic!("{other:?} before it was answered"),
            }
        }
        waiting.len() == most / 3 * 3
    });
    waiting.sort_by_key(|(frame, _)| std::cmp::Reverse(frame.clone()));
    for (frame, reply) in waiting {
        reply
            .send(&[&frame[..], b"!"].concat())
            .expect("its controller waits");
    }
    for _ in 0..most / 3 * 3 {
        let (_, frame, answer) = answers.recv_timeout(LONG).expect("an answer");
        assert_eq!(answer, Ok([&frame[..], b"!"].concat()));
    }
}

#[test]
fn many_requests_are_under_way_on_one_bus() {
    many_at_a_time(&Places::one(), 180);
}

#[test]
fn many_requests_are_under_way_over_two_links() {
    many_at_a_time(&Places::two(), 120);
}

/// A request without an answer ends with the reason: no robot is there, the robot does not answer in time, dropped the
/// request, or has ended.
fn failures(fixtures: &Places) {
    let (controller, heard) = controller(fixtures);
    let none = ask(&controller, Class::Command, b"x", LONG).expect_err("nobody");
    assert!(
        matches!(&none, TransportError::NotSent(t) if t.contains("/r1/remote/command")),
        "{none}"
    );
    let (asked, requests) = channel();
    let (robot, _sink) = robot(fixtures, move |frame, reply| {
        if frame != b"drop" {
            asked.send(reply).expect("the test listens");
        }
    });
    heard.wait_connected(true);
    let short = Duration::from_millis(300);
    assert_eq!(
        ask(&controller, Class::Command, b"late", short),
        Err(TransportError::TimedOut(short))
    );
    let late = requests.recv_timeout(LONG).expect("a request");
    assert!(late.send(b"too late").is_err() || fixtures.are_two());
    let dropped = ask(&controller, Class::Command, b"drop", LONG).expect_err("dropped");
    assert!(matches!(dropped, TransportError::Unreachable(_)), "{dropped}");
    // The robot ends while it has a request.
    let answer = ask_later(&controller, Class::Command, b"x", LONG);
    let kept = requests.recv_timeout(LONG).expect("a request");
    drop(robot);
    let died = answer.recv_timeout(LONG).expect("an end").expect_err("no answer");
    assert!(
        matches!(&died, TransportError::Unreachable(t) if t.contains("died")),
        "{died}"
    );
    assert_eq!(kept.send(b"y"), Err(TransportError::Ended));
    heard.wait_connected(false);
    // The controller ends while a restarted robot has a request.
    let (asked, requests) = channel();
    let (_robot, _sink) = self::robot(fixtures, move |_, reply| {
        asked.send(reply).expect("the test listens");
    });
    heard.wait_connected(true);
    let answer = ask_later(&controller, Class::Command, b"x", LONG);
    let _kept = requests.recv_timeout(LONG).expect("a request");
    controller.stop();
    assert_eq!(
        answer.recv_timeout(LONG).expect("an end"),
        Err(TransportError::Ended)
    );
    assert_eq!(
        ask(&controller, Class::Command, b"x", LONG),
        Err(TransportError::Ended)
    );
    controller.stop();
}

#[test]
fn failures_are_reported_on_one_bus() {
    failures(&Places::one());
}

#[test]
fn failures_are_reported_over_two_links() {
    failures(&Places::two());
}

#[test]
fn a_lost_link_makes_the_robot_unreachable_until_it_is_back() {
    let mut fixtures = Places::two();
    let (_robot, _sink) = echo(&fixtures);
    let (controller, heard) = controller(&fixtures);
    heard.wait_connected(true);
    assert_eq!(ask(&controller, Class::Command, b"x", LONG), Ok(b"x".to_vec()));
    fixtures.stop_robots_link();
    let lost = ask(&controller, Class::Command, b"x", LONG).expect_err("lost");
    assert!(matches!(lost, TransportError::Unreachable(_)), "{lost}");
    heard.wait_connected(false);
    fixtures.start_robots_link();
    heard.wait_connected(true);
    assert_eq!(ask(&controller, Class::Command, b"y", LONG), Ok(b"y".to_vec()));
}

/// Telemetry of several kinds and channels, small and large, requested by name or not.
fn telemetry(fixtures: &Places) {
    let (robot, _sink) = echo(fixtures);
    let (all, heard_all) = controller(fixtures);
    let (some, heard_some) = controller(fixtures);
    let image = Stream {
        kind: "test.Image",
        channel: 3,
        priority: 5,
    };
    some.listen(Listen::To(&[pose()]));
    let large: Vec<u8> = (0..10_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    robot.publish(pose(), b"first").expect("publishes");
    robot.publish(image, &large).expect("publishes");
    // Both are found and received although they were set before any listener was there.
    heard_all.wait_frame(b"first");
    heard_all.wait_frame(&large);
    heard_some.wait_frame(b"first");
    robot.publish(pose(), b"second").expect("publishes");
    heard_all.wait_frame(b"second");
    heard_some.wait_frame(b"second");
    robot.publish(image, b"small").expect("publishes");
    heard_all.wait_frame(b"small");
    assert!(
        !heard_some.has(&large) && !heard_some.has(b"small"),
        "it was not asked for"
    );
    // Small and large frames have topics of their own.
    some.listen(Listen::To(&[image]));
    heard_some.wait_frame(b"small");
    heard_some.wait_frame(&large);
    drop((all, some));
    let most = robot.publish(pose(), &vec![0; 64 << 20]);
    assert!(matches!(most, Err(TransportError::TooLong { .. })), "{most:?}");
    robot.stop();
    assert_eq!(robot.publish(pose(), b"third"), Err(TransportError::Ended));
    robot.stop();
}

#[test]
fn telemetry_is_heard_on_one_bus() {
    telemetry(&Places::one());
}

#[test]
fn telemetry_is_heard_over_two_links() {
    telemetry(&Places::two());
}

#[test]
fn a_link_takes_the_priority_that_telemetry_asks_for() {
    let fixtures = Places::two();
    let (robot, _sink) = echo(&fixtures);
    let (_controller, heard) = controller(&fixtures);
    robot.publish(pose(), b"x").expect("publishes");
    heard.wait_frame(b"x");
    until("the link's status shows it", || {
        let sent = fixtures.robots_status().sent;
        sent.iter()
            .any(|t| t.stats.name == "/r1/remote/telemetry/test/Pose/c0" && t.stats.priority == 70)
    });
}

#[test]
fn a_slow_listener_learns_what_it_lost_and_delays_nobody() {
    let fixtures = Places::one();
    let (robot, _sink) = echo(&fixtures);
    let (controller, heard) = controller(&fixtures);
    controller.listen(Listen::To(&[pose()]));
    // All on the topic for large ones.
    let [begin, frame, end] = [0, 1, 2].map(|n| vec![n; 1 << 20]);
    until("it listens", || {
        robot.publish(pose(), &begin).expect("publishes");
        heard.has(&begin)
    });
    let hold = heard.hold();
    // More than its queue and what it may keep: 40 MB per second for a slow listener.
    for _ in 0..400 {
        robot.publish(pose(), &frame).expect("never blocks");
    }
    drop(hold);
    robot.publish(pose(), &end).expect("publishes");
    heard.wait_frame(&end);
    let (came, lost) = (heard.count(&frame), heard.lost());
    assert!(lost >= 300, "{lost}");
    assert!(came + lost as usize >= 400, "{came} + {lost}");
}

#[test]
fn a_sink_may_stop_its_own_end() {
    let fixtures = Places::one();
    let (ended, end) = channel();
    let slot: std::sync::Arc<std::sync::Mutex<Option<LinkRobot>>> = std::sync::Arc::default();
    let own = slot.clone();
    let robot = LinkRobot::new(&fixtures.robots_node(), "r1");
    let sink = RobotSide::new(move |_, reply| {
        drop(own.lock().expect("no panic").take());
        ended.send(reply.send(b"x").is_err()).expect("the test listens");
    });
    robot.start(sink).expect("starts");
    *slot.lock().expect("no panic") = Some(robot);
    let (controller, heard) = controller(&fixtures);
    heard.wait_connected(true);
    let answer = ask_later(&controller, Class::Command, b"stop", LONG);
    end.recv_timeout(LONG).expect("it returns");
    answer.recv_timeout(LONG).expect("an end").ok();
    heard.wait_connected(false);
}

#[test]
fn a_bad_name_is_said_at_the_start() {
    let fixtures = Places::one();
    let robot = LinkRobot::new(&fixtures.robots_node(), "r 1");
    let error = robot.start(RobotSide::new(|_, _| {})).expect_err("a bad name");
    assert!(
        matches!(&error, TransportError::Setup(text) if text.contains("r 1")),
        "{error}"
    );
    let controller = LinkController::new(&fixtures.controllers_node(), "1");
    assert!(controller.start(Heard::new()).is_err());
    let error = ask(&controller, Class::Request, b"x", LONG).expect_err("a bad name");
    assert!(matches!(&error, TransportError::Setup(_)), "{error}");
}

/// Requests and telemetry pass between these ends, and the end of the robot is noticed.
fn understand(robot: &dyn RobotEnd, controller: &dyn ControllerEnd) {
    let sink = RobotSide::new(|frame, reply| {
        if frame != b"drop" {
            let _ = reply.send(frame);
        }
    });
    robot.start(sink).expect("starts");
    let heard = Heard::new();
    controller.start(heard.clone()).expect("starts");
    heard.wait_connected(true);
    for class in CLASSES {
        reached(controller, class);
        for len in [0, 255, 256, 500_000] {
            let frame: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            assert_eq!(ask(controller, class, &frame, LONG), Ok(frame), "{class:?} {len}");
        }
    }
    let dropped = ask(controller, Class::Command, b"drop", LONG).expect_err("dropped");
    assert!(matches!(dropped, TransportError::Unreachable(_)), "{dropped}");
    until("it is heard", || {
        robot.publish(pose(), b"small").expect("publishes");
        std::thread::sleep(Duration::from_millis(50));
        heard.has(b"small")
    });
    // Once: a newer frame would end it.
    let large = vec![7; 10_000_000];
    robot.publish(pose(), &large).expect("publishes");
    heard.wait_frame(&large);
    robot.stop();
    heard.wait_connected(false);
    let gone = ask(controller, Class::Command, b"x", LONG).expect_err("it is gone");
    assert!(matches!(gone, TransportError::NotSent(_)), "{gone}");
    controller.stop();
    assert_eq!(
        ask(controller, Class::Command, b"x", LONG),
        Err(TransportError::Ended)
    );
}

/// A thread that waits for an answer receives it itself, also after others received theirs; and is woken by one that
/// another thread receives.
fn receives_itself(robot: &dyn RobotEnd, controller: &(dyn ControllerEnd + 'static)) {
    let kept = Mutex::new(Vec::new());
    let kept = std::sync::Arc::new(kept);
    let keep = kept.clone();
    let sink = RobotSide::new(move |frame, reply| match frame {
        b"keep" => keep.lock().expect("no panic").push(reply),
        _ => drop(reply.send(frame)),
    });
    robot.start(sink).expect("starts");
    let heard = Heard::new();
    controller.start(heard.clone()).expect("starts");
    heard.wait_connected(true);
    reached(controller, Class::Command);
    let own = std::thread::current().id();
    // Another thread may have received it first if this one was not in time; it reports that by waking this one.
    let mut by_itself = 0;
    for _ in 0..50 {
        let (done, answer) = channel();
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let tell = move |result: Result<&[u8], TransportError>| {
            is_over.store(true, Ordering::Release);
            let who = (std::thread::current().id(), result.map(<[u8]>::to_vec));
            done.send(who).expect("the test listens");
        };
        controller.request(Class::Command, b"x", LONG, Box::new(tell));
        controller.receive(Class::Command, LONG, &|| over.load(Ordering::Acquire));
        let (thread, result) = answer.recv_timeout(LONG).expect("an end");
        assert_eq!(result, Ok(b"x".to_vec()));
        by_itself += usize::from(thread == own);
        // And the end's own thread continues when no thread waits.
        assert_eq!(ask(controller, Class::Command, b"y", LONG), Ok(b"y".to_vec()));
    }
    assert!(by_itself > 0, "never");
    // One request is in progress, and the awaited result comes another way.
    let answer = ask_later(controller, Class::Command, b"keep", LONG);
    until("it is kept", || !kept.lock().expect("no panic").is_empty());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            over.store(true, Ordering::Release);
            controller.wake(Class::Command);
        });
        controller.receive(Class::Command, 4 * LONG, &|| over.load(Ordering::Acquire));
        assert!(over.load(Ordering::Acquire), "it was in progress all the time");
    });
    // The timeout ends it; and so does the end of the transport.
    controller.receive(Class::Command, Duration::from_millis(20), &|| false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            controller.stop();
        });
        controller.receive(Class::Command, 4 * LONG, &|| false);
    });
    assert_eq!(
        answer.recv_timeout(LONG).expect("an end"),
        Err(TransportError::Ended)
    );
    robot.stop();
}

#[test]
fn waiting_threads_receive_their_own_answers_over_links_and_on_one_bus() {
    for fixtures in [Places::one(), Places::two()] {
        receives_itself(
            &LinkRobot::new(&fixtures.robots_node(), "r1"),
            &LinkController::new(&fixtures.controllers_node(), "r1"),
        );
    }
    let mut fixtures = Places::two();
    let [robots, controllers] = fixtures.configs();
    fixtures.stop_robots_link();
    fixtures.stop_controllers_link();
    receives_itself(
        &DirectRobot::new(robots, "r1"),
        &DirectController::new(controllers, "r1"),
    );
}

#[test]
fn links_of_programs_and_daemons_understand_each_other() {
    let mut fixtures = Places::two();
    let [robots, controllers] = fixtures.configs();
    fixtures.stop_robots_link();
    understand(
        &DirectRobot::new(robots.clone(), "r1"),
        &LinkController::new(&fixtures.controllers_node(), "r1"),
    );
    fixtures.stop_controllers_link();
    understand(
        &DirectRobot::new(robots, "r1"),
        &DirectController::new(controllers.clone(), "r1"),
    );
    fixtures.start_robots_link();
    understand(
        &LinkRobot::new(&fixtures.robots_node(), "r1"),
        &DirectController::new(controllers, "r1"),
    );
}
