//! Both of Ropewalk's ends with each other, over TCP and within a host, in both wires.

use crate::support::{
    Heard, LONG, Later, Robot, STREAM, address, ask, ask_class, echo, publish_until_heard, until,
};
use remote::transport::zmq::{MAX_REQUEST, MAX_TELEMETRY, ZmqController, ZmqRobot};
use remote::transport::{Class, ControllerEnd, Listen, RobotEnd, RobotSink, Stream, TransportError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

struct Pair {
    robot: ZmqRobot,
    controller: ZmqController,
    heard: Arc<Heard>,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Copy, Debug)]
enum Over {
    OwnTcp,
    OwnIpc,
    V6Tcp,
    V6Ipc,
}

const ALL: [Over; 4] = [Over::OwnTcp, Over::OwnIpc, Over::V6Tcp, Over::V6Ipc];

fn pair(over: Over, sink: Arc<dyn RobotSink>) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("ipc://{}", folder.path().join(name).display());
    let robot = match over {
        Over::OwnTcp => ZmqRobot::own("tcp://127.0.0.1:*"),
        Over::OwnIpc => ZmqRobot::own(&at("own")),
        Over::V6Tcp => ZmqRobot::plain_v6().bind_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*"),
        Over::V6Ipc => ZmqRobot::plain_v6().bind_v6(&at("requests"), &at("telemetry")),
    };
    let robot = robot.waiting_bytes(1 << 20).open().unwrap();
    robot.start(sink).unwrap();
    let requests = robot.requests_address().unwrap();
    let controller = match robot.telemetry_address() {
        None => ZmqController::own(requests),
        Some(telemetry) => ZmqController::plain_v6(requests, &telemetry),
    };
    let controller = controller.open().unwrap();
    let heard = Arc::new(Heard::default());
    controller.start(heard.clone()).unwrap();
    Pair {
        robot,
        controller,
        heard,
        _folder: folder,
    }
}

#[test]
fn requests_are_answered_and_telemetry_arrives() {
    for over in ALL {
        let pair = pair(over, echo());
        for len in [0, 1, 255, 256, 100_000, MAX_REQUEST] {
            let frame: Vec<u8> = (0..len).map(|n| n as u8).collect();
            assert_eq!(ask(&pair.controller, &frame, LONG), Ok(frame), "{over:?}");
        }
        let error = ask(&pair.controller, &vec![0; MAX_REQUEST + 1], LONG).unwrap_err();
        assert_eq!(
            error,
            TransportError::TooLong {
                len: MAX_REQUEST + 1,
                most: MAX_REQUEST
            }
        );
        assert!(pair.heard.connected.load(Ordering::SeqCst));

        publish_until_heard(&pair.robot, &pair.heard);
        // Of what is published faster than it is heard, the newest arrives.
        let last = b"\x07\x00last";
        pair.robot.publish(STREAM, last).unwrap();
        until("the last one is heard", || {
            pair.heard
                .frames
                .lock()
                .unwrap()
                .last()
                .is_some_and(|f| f == last)
        });
        let lost = pair.heard.lost.load(Ordering::SeqCst);
        let frame: Vec<u8> = (0..10_000_000).map(|n| n as u8).collect();
        pair.robot.publish(STREAM, &frame).unwrap();
        until("ten megabytes arrive", || {
            pair.heard.frames.lock().unwrap().last() == Some(&frame)
        });
        assert!(pair.robot.publish(STREAM, &vec![0; MAX_TELEMETRY + 1]).is_err());
        assert_eq!(pair.heard.lost.load(Ordering::SeqCst), lost);
    }
}

#[test]
fn many_requests_are_under_way_and_each_ends_once() {
    for over in ALL {
        let sink = Arc::new(Later::default());
        let pair = pair(over, sink.clone());
        let most = if pair.robot.wire() == remote::transport::Wire::Own {
            200
        } else {
            1
        };
        let ended = Arc::new(AtomicUsize::new(0));
        let receivers: Vec<_> = (0..200u8)
            .map(|n| ask_class(&pair.controller, Class::Command, &[n], LONG))
            .collect();
        let in_thread = ended.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for (n, receiver) in receivers.into_iter().enumerate() {
                    assert_eq!(receiver.recv_timeout(LONG).unwrap(), Ok(vec![n as u8, 1]));
                    assert!(receiver.recv().is_err(), "it ended twice");
                    in_thread.fetch_add(1, Ordering::SeqCst);
                }
            });
            let mut answered = 0;
            while answered < 200 {
                until("requests come", || {
                    sink.0.lock().unwrap().len() >= most.min(200 - answered)
                });
                // The last one first.
                while let Some((frame, reply)) = { sink.0.lock().unwrap().pop() } {
                    reply.send(&[frame[0], 1]).unwrap();
                    answered += 1;
                }
            }
        });
        assert_eq!(ended.load(Ordering::SeqCst), 200);
    }
}

#[test]
fn unanswered_requests_time_out_and_do_not_block_the_next() {
    for over in ALL {
        let pair = pair(
            over,
            Arc::new(Robot(|frame: &[u8]| (frame != b"lost").then(|| frame.to_vec()))),
        );
        assert!(ask(&pair.controller, b"x", LONG).is_ok());
        let short = Duration::from_millis(50);
        assert_eq!(
            ask(&pair.controller, b"lost", short),
            Err(TransportError::TimedOut(short)),
            "{over:?}"
        );
        assert_eq!(ask(&pair.controller, b"y", LONG), Ok(b"y".to_vec()));
    }
}

#[test]
fn a_robot_that_is_not_there_is_unreachable_and_found_when_it_comes() {
    let address = address();
    let controller = ZmqController::own(&address).open().unwrap();
    let heard = Arc::new(Heard::default());
    assert!(matches!(
        ask(&controller, b"x", LONG),
        Err(TransportError::Unreachable(_))
    ));
    controller.start(heard.clone()).unwrap();
    let error = ask(&controller, b"x", Duration::from_millis(300))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("nothing was sent") && error.contains("nothing listens"),
        "{error}"
    );

    for _ in 0..2 {
        let robot = ZmqRobot::own(&address).open().unwrap();
        robot.start(echo()).unwrap();
        assert_eq!(ask(&controller, b"y", LONG), Ok(b"y".to_vec()));
        heard.count.store(0, Ordering::SeqCst);
        publish_until_heard(&robot, &heard);
        robot.stop();
        until("the end is noticed", || !heard.connected.load(Ordering::SeqCst));
    }
}

#[test]
fn a_robot_that_dies_ends_what_it_had() {
    let sink = Arc::new(Later::default());
    let pair = pair(Over::OwnTcp, sink.clone());
    let answer = ask_class(&pair.controller, Class::Command, b"x", LONG);
    until("it comes", || !sink.0.lock().unwrap().is_empty());
    pair.robot.stop();
    let error = answer.recv_timeout(LONG).unwrap().unwrap_err().to_string();
    assert!(error.contains("may have executed"), "{error}");
    let (_, reply) = sink.0.lock().unwrap().pop().unwrap();
    assert_eq!(reply.send(b"late"), Err(TransportError::Ended));
}

#[test]
fn only_what_is_listened_to_comes_over_the_own_wire() {
    let pair = pair(Over::OwnTcp, echo());
    publish_until_heard(&pair.robot, &pair.heard);
    let other = Stream {
        kind: "test.Other",
        ..STREAM
    };
    pair.controller.listen(Listen::To(&[other]));
    until("the other alone comes", || {
        pair.heard.frames.lock().unwrap().clear();
        pair.robot.publish(STREAM, b"this").unwrap();
        pair.robot.publish(other, b"other").unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let frames = pair.heard.frames.lock().unwrap();
        !frames.is_empty() && frames.iter().all(|frame| frame == b"other")
    });
}

#[test]
fn a_slow_listener_learns_what_it_lost_and_gets_the_newest() {
    let pair = pair(Over::OwnTcp, echo());
    publish_until_heard(&pair.robot, &pair.heard);
    pair.robot.publish(STREAM, b"begin").unwrap();
    until("all before has come", || {
        pair.heard
            .frames
            .lock()
            .unwrap()
            .last()
            .is_some_and(|f| f == b"begin")
    });
    pair.heard.held.store(true, Ordering::SeqCst);
    pair.heard.frames.lock().unwrap().clear();
    const FRAMES: u32 = 400;
    let mut frame = vec![0; 200_000];
    for n in 1..=FRAMES {
        frame[..4].copy_from_slice(&n.to_le_bytes());
        pair.robot.publish(STREAM, &frame).unwrap();
    }
    pair.heard.held.store(false, Ordering::SeqCst);
    let number = |frame: &Vec<u8>| u32::from_le_bytes(frame[..4].try_into().unwrap());
    until("the newest comes", || {
        pair.heard.frames.lock().unwrap().last().map(number) == Some(FRAMES)
    });
    // The next frame reports the loss of those before it.
    pair.robot.publish(STREAM, &frame).unwrap();
    until("the last comes", || {
        let frames = pair.heard.frames.lock().unwrap();
        frames.iter().filter(|frame| number(frame) == FRAMES).count() == 2
    });
    let numbers: Vec<u32> = pair.heard.frames.lock().unwrap().iter().map(number).collect();
    let heard = numbers.len() as u64 - 1;
    let lost = pair.heard.lost.load(Ordering::SeqCst);
    assert!(lost > 0 && pair.robot.statistics().telemetry_lost == lost);
    assert_eq!(heard + lost, u64::from(FRAMES));
    assert!(numbers.is_sorted());
}

#[test]
fn ends_end() {
    for over in ALL {
        let sink = Arc::new(Later::default());
        let pair = pair(over, sink.clone());
        let answer = ask_class(&pair.controller, Class::Command, b"x", LONG);
        let behind = ask_class(&pair.controller, Class::Command, b"y", LONG);
        until("it comes", || !sink.0.lock().unwrap().is_empty());
        pair.controller.stop();
        pair.controller.stop();
        assert_eq!(answer.recv_timeout(LONG).unwrap(), Err(TransportError::Ended));
        assert_eq!(behind.recv_timeout(LONG).unwrap(), Err(TransportError::Ended));
        assert_eq!(ask(&pair.controller, b"x", LONG), Err(TransportError::Ended));
        assert!(pair.controller.start(pair.heard.clone()).is_err());
        pair.robot.stop();
        pair.robot.stop();
        assert_eq!(pair.robot.publish(STREAM, b""), Err(TransportError::Ended));
        assert!(pair.robot.start(echo()).is_err());
    }
}

#[test]
fn pending_requests_are_answered_before_the_end() {
    for over in ALL {
        // The end waits a tenth of a second, during which a busy machine may not run this test at all.
        until("an answer leaves in time", || {
            let sink = Arc::new(Later::default());
            let pair = pair(over, sink.clone());
            let answer = ask_class(&pair.controller, Class::Command, b"x", LONG);
            until("it comes", || !sink.0.lock().unwrap().is_empty());
            let (_, reply) = sink.0.lock().unwrap().pop().unwrap();
            let sent = std::thread::scope(|scope| {
                scope.spawn(|| pair.robot.stop());
                std::thread::sleep(Duration::from_millis(10));
                reply.send(b"done")
            });
            if sent.is_ok() {
                assert_eq!(
                    answer.recv_timeout(LONG).unwrap(),
                    Ok(b"done".to_vec()),
                    "{over:?}"
                );
            }
            sent.is_ok()
        });
    }
}

#[test]
fn a_sink_that_panics_costs_its_request_alone() {
    let pair = pair(
        Over::OwnTcp,
        Arc::new(Robot(|frame: &[u8]| {
            assert!(frame != b"bad", "panics on purpose");
            Some(frame.to_vec())
        })),
    );
    let short = Duration::from_millis(100);
    assert!(ask(&pair.controller, b"x", LONG).is_ok());
    assert_eq!(
        ask(&pair.controller, b"bad", short),
        Err(TransportError::TimedOut(short))
    );
    assert!(ask(&pair.controller, b"x", LONG).is_ok());
}

#[test]
fn unsafe_or_impossible_settings_are_refused_with_the_fix() {
    let error = |result: Result<ZmqRobot, TransportError>| result.err().unwrap().to_string();
    let open = "tcp://0.0.0.0:*";
    assert!(error(ZmqRobot::own(open).open()).contains("set `insecure`"));
    assert!(error(ZmqRobot::plain_v6().bind_v6(open, "tcp://127.0.0.1:*").open()).contains("set `insecure`"));
    assert!(error(ZmqRobot::plain_v6().bind_v6("tcp://127.0.0.1:*", open).open()).contains("set `insecure`"));
    assert!(ZmqRobot::own(open).insecure().open().is_ok());
    assert!(error(ZmqRobot::own("tcp://robot:1").insecure().open()).contains("IP address"));
    let error = |result: Result<ZmqController, TransportError>| result.err().unwrap().to_string();
    assert!(error(ZmqController::own("tcp://192.0.2.1:7010").open()).contains("set `insecure`"));
    assert!(
        ZmqController::own("tcp://192.0.2.1:7010")
            .insecure()
            .open()
            .is_ok()
    );
    assert!(
        ZmqController::plain_v6("tcp://192.0.2.1:7001", "tcp://192.0.2.1:7002")
            .open()
            .is_ok()
    );
    assert!(error(ZmqController::own("tcp://127.0.0.1:0").open()).contains("port 0"));

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", taken.local_addr().unwrap());
    for robot in [
        ZmqRobot::own(&address),
        ZmqRobot::plain_v6().bind_v6(&address, "tcp://127.0.0.1:*"),
        ZmqRobot::plain_v6().bind_v6("tcp://127.0.0.1:*", &address),
    ] {
        let error = robot.open().unwrap().start(echo()).unwrap_err().to_string();
        let whose = format!("(process {}) uses it", std::process::id());
        assert!(
            error.contains(&whose) && error.contains("choose another port"),
            "{error}"
        );
    }
}

#[test]
fn answers_flow_as_long_as_they_are_read() {
    for over in [Over::OwnTcp, Over::OwnIpc] {
        let pair = pair(over, echo());
        // Many times the limit of unread data in transit.
        for n in 0..80u8 {
            let frame = vec![n; 2 << 20];
            assert_eq!(ask(&pair.controller, &frame, LONG), Ok(frame), "{over:?}");
        }
        assert_eq!(pair.robot.statistics().undelivered, 0);
    }
}
