//! Version 6 with pyzmq as the peer: frames byte for byte.

use crate::support::{Heard, LONG, Later, Peer, Robot, STREAM, ask, ask_class, echo, hex, until};
use remote::transport::zmq::{ZmqController, ZmqRobot};
use remote::transport::{Class, ControllerEnd, RobotEnd, RobotSink, TransportError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn robot(sink: Arc<dyn RobotSink>) -> ZmqRobot {
    let robot = ZmqRobot::plain_v6().bind_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*");
    let robot = robot.waiting_bytes(4 << 20).open().unwrap();
    robot.start(sink).unwrap();
    robot
}

#[test]
fn req_sockets_are_answered() {
    let robot = robot(Arc::new(Robot(|frame: &[u8]| {
        (frame != b"lost").then(|| frame.to_vec())
    })));
    for mode in ["req", "req-plain"] {
        let Some(mut peer) = Peer::start(mode, robot.requests_address().unwrap()) else {
            return;
        };
        for frame in ["01", ".", "0b0a06120462617365", "c8", "05"] {
            assert_eq!(peer.ask(frame), frame, "{mode}");
        }
        if mode == "req" {
            assert_eq!(peer.ask(&format!("silent {}", hex(b"lost"))), "timeout");
            assert_eq!(peer.ask("0102"), "0102");
        }
    }
}

#[test]
fn answers_leave_in_the_order_of_asking_for_one_and_in_any_for_others() {
    let sink = Arc::new(Later::default());
    let robot = robot(sink.clone());
    let at = robot.requests_address().unwrap();
    let (Some(mut first), Some(mut other)) = (Peer::start("dealer", at), Peer::start("req", at)) else {
        return;
    };
    first.say("silent aaaaaaaa,.,01");
    assert_eq!(first.hear(), "timeout");
    first.say("bbbbbbbb,.,02");
    other.say("03");
    until("all come", || sink.0.lock().unwrap().len() == 3);
    let mut asked = std::mem::take(&mut *sink.0.lock().unwrap());
    asked.sort_by_key(|(frame, _)| std::cmp::Reverse(frame[0]));
    for (frame, reply) in asked {
        reply.send(&frame).unwrap();
        if frame == [3] {
            assert_eq!(other.hear(), "03");
        }
    }
    assert_eq!(first.hear(), "aaaaaaaa,.,01");
}

#[test]
fn messages_that_no_req_sends_hurt_nobody() {
    let robot = robot(echo());
    let at = robot.requests_address().unwrap();
    let Some(mut hostile) = Peer::start("dealer", at) else {
        return;
    };
    let many = vec!["01"; 500].join(",");
    for parts in ["01", "01,02", ".", ".,01,02", "aaaaaaaa,.", &many] {
        hostile.say(&format!("silent {parts}"));
        assert_eq!(hostile.hear(), "timeout", "{parts}");
    }
    assert_eq!(robot.statistics().malformed, 6);
    assert_eq!(hostile.ask("aa,bb,.,07"), "aa,bb,.,07");
    // ZeroMQ closes the connection on a request beyond the maximum.
    hostile.say(&format!("silent .,{}", "00".repeat(5 << 20)));
    assert_eq!(hostile.hear(), "timeout");
    let mut peer = Peer::start("req", at).unwrap();
    assert_eq!(peer.ask("01"), "01");
}

#[test]
fn sub_sockets_get_telemetry() {
    let robot = robot(echo());
    let Some(peer) = Peer::start("sub", &robot.telemetry_address().unwrap()) else {
        return;
    };
    let state = b"\x07\x00\x12\x07RUNNING";
    until("telemetry is heard", || {
        robot.publish(STREAM, state).unwrap();
        peer.hear_within(Duration::from_millis(20))
            .is_some_and(|line| line == hex(state))
    });
    let large: Vec<u8> = (0..3_000_000).map(|n| n as u8).collect();
    robot.publish(STREAM, &large).unwrap();
    robot.publish(STREAM, b"").unwrap();
    let large = hex(&large);
    while peer.hear() != large {}
    assert_eq!(peer.hear(), ".");
    assert_eq!(robot.statistics().telemetry_lost, 0);
}

#[test]
fn a_slow_sub_socket_costs_a_bounded_amount_and_is_counted() {
    let robot = robot(echo());
    let at = robot.telemetry_address().unwrap();
    let (Some(mut slow), Some(quick)) = (Peer::start("sub-stalled", &at), Peer::start("sub", &at)) else {
        return;
    };
    slow.hear();
    let frame = vec![7; 1 << 20];
    let mut shown = hex(&frame);
    until("the quick one receives", || {
        robot.publish(STREAM, b"\x07").unwrap();
        quick.hear_within(Duration::from_millis(20)).is_some()
    });
    // The quick subscriber misses nothing.
    for _ in 0..20 {
        robot.publish(STREAM, &frame).unwrap();
        while quick.hear() != shown {}
    }
    drop(quick);
    let before = resident();
    for _ in 0..1000 {
        robot.publish(STREAM, &frame).unwrap();
    }
    let grown = resident().saturating_sub(before);
    let lost = robot.statistics().telemetry_lost;
    assert!(lost > 900, "{lost}");
    // 4 MiB wait and a frame is in transit; the rest is the memory of this process's other tests.
    assert!(grown < 500 << 20, "grew by {grown} B of 1000 MiB");
    // When it reads again, it receives the newest.
    robot.publish(STREAM, b"\x08last").unwrap();
    slow.say("");
    shown = hex(b"\x08last");
    while slow.hear() != shown {}
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn rep_sockets_are_asked_one_at_a_time() {
    let (Some(mut rep), Some(mut publisher)) = (
        Peer::start("rep", "tcp://127.0.0.1:*"),
        Peer::start("pub", "tcp://127.0.0.1:*"),
    ) else {
        return;
    };
    let controller = ZmqController::plain_v6(&rep.hear(), &publisher.hear())
        .open()
        .unwrap();
    let heard = Arc::new(Heard::default());
    controller.start(heard.clone()).unwrap();
    let answers: Vec<_> = (0..5u8)
        .map(|n| ask_class(&controller, Class::Command, &[11, n], LONG))
        .collect();
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(rep.hear(), format!("0b{n:02x}"));
        rep.say("0b");
        assert_eq!(answer.recv_timeout(LONG).unwrap(), Ok(vec![11]));
    }
    until("telemetry comes", || {
        publisher.say("070012075255");
        std::thread::sleep(Duration::from_millis(5));
        heard.count.load(Ordering::SeqCst) > 0
    });
    assert_eq!(heard.frames.lock().unwrap()[0], b"\x07\x00\x12\x07RU");
}

#[test]
fn a_lost_answer_blocks_nothing_and_a_late_one_is_nobodys() {
    let (Some(mut router), Some(publisher)) = (
        Peer::start("router", "tcp://127.0.0.1:*"),
        Peer::start("pub", "tcp://127.0.0.1:*"),
    ) else {
        return;
    };
    let controller = ZmqController::plain_v6(&router.hear(), &publisher.hear())
        .open()
        .unwrap();
    controller.start(Arc::new(Heard::default())).unwrap();
    let short = Duration::from_millis(500);
    let lost = ask_class(&controller, Class::Command, &[11], short);
    let first = router.hear();
    assert!(first.ends_with(",.,0b"), "{first}");
    // The request waits behind the first and is given up before its turn: it is never sent.
    let behind = ask(&controller, &[99], Duration::from_millis(100))
        .unwrap_err()
        .to_string();
    assert!(
        behind.contains("nothing was sent") && behind.contains("still unanswered"),
        "{behind}"
    );
    assert_eq!(
        lost.recv_timeout(LONG).unwrap(),
        Err(TransportError::TimedOut(short))
    );
    router.say("-");
    let next = ask_class(&controller, Class::Command, &[12], LONG);
    let second = router.hear();
    assert!(second.ends_with(",.,0c"), "{second}");
    // The late answer to the first arrives in place of the second's; then the second's arrives while a further request
    // is in progress.
    router.say(&first);
    assert!(next.recv_timeout(Duration::from_millis(200)).is_err());
    let other = ask_class(&controller, Class::Request, &[13], LONG);
    assert!(router.hear().ends_with(",.,0d"));
    router.say("-");
    drop((next, other));
}
