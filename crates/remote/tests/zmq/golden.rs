//! `Robot` and `Controller` in version 6 with pyzmq as the peer, byte for byte, by the golden vectors.

use crate::support::{LONG, Peer, hex, until};
use remote::transport::zmq::{ZmqController, ZmqRobot};
use remote::{Controller, Expiry, Outcome, Queue, Robot, command, telemetry, types, v6};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Captured from a live robot: request and answer.
const LIVE: [(&str, &str); 9] = [
    ("040d0000803f", "04"),
    ("0b0a06120462617365", "0b"),
    ("0b0a0612046261736512050d0000003f1a051d000080be", "0b"),
    ("050600", "0a0954657374526f626f74"),
    ("050c00", "."),
    ("0805", "08"),
    ("091207746573747569641801", "09"),
    ("0bffffff", "00"),
    ("02", "362e302e30"),
];

/// Requests that crash upstream's robot.
const HOSTILE: [&str; 6] = [".", "c8", "05", "050000", "05c800", "050109"];

/// The vectors of one kind: hexadecimal for the peer, and the meaning.
fn vectors(kind: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/remote/v6.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| {
        let (frame, meaning) = line.strip_prefix(kind)?.strip_prefix(' ')?.split_once(' ')?;
        Some((frame.replace('-', "."), meaning.to_owned()))
    });
    let all: Vec<_> = lines.collect();
    assert!(!all.is_empty());
    all
}

fn robot() -> (Robot, Arc<ZmqRobot>) {
    let end = ZmqRobot::plain_v6().bind_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*");
    let end = Arc::new(end.open().unwrap());
    (Robot::builder("TestRobot").end(end.clone()).start().unwrap(), end)
}

#[test]
fn a_robot_answers_a_raw_req_socket_byte_for_byte() {
    let (robot, end) = robot();
    let twists = robot.queue::<command::Twist>(Queue::Newest);
    for mode in ["req", "req-plain"] {
        let Some(mut peer) = Peer::start(mode, end.requests_address().unwrap()) else {
            return;
        };
        assert_eq!(peer.ask("01"), hex(v6::PROTOCOL_VERSION.as_bytes()));
        for (request, answer) in LIVE {
            assert_eq!(peer.ask(request), answer, "{request}");
        }
        for frame in HOSTILE {
            let answer = peer.ask(frame);
            assert!(answer == "00" || answer == ".", "{frame}: {answer}");
        }
        for (frame, meaning) in vectors("request") {
            let answer = peer.ask(&frame);
            assert_ne!(answer, "timeout", "{frame}");
            if meaning.starts_with("error") {
                assert_eq!(answer, "00", "{frame}: {meaning}");
            }
        }
        assert_eq!(peer.ask(LIVE[2].0), "0b", "the robot lives");
        assert_eq!(twists.try_take().unwrap().0.linear.unwrap().x, 0.5);
    }
}

#[test]
fn a_raw_sub_socket_gets_a_robots_telemetry_byte_for_byte() {
    let (robot, end) = robot();
    let Some(peer) = Peer::start("sub", &end.telemetry_address().unwrap()) else {
        return;
    };
    let state = types::RobotState {
        state: vec!["RUNNING".into()],
        ..Default::default()
    };
    let sensor = types::SimpleSensor {
        value: vec![0.1, 0.2, 0.3],
        ..Default::default()
    };
    let vectors = vectors("telemetry");
    let heard = |set: &dyn Fn(), number: &str| {
        let (frame, _) = vectors
            .iter()
            .find(|(frame, _)| frame.starts_with(number))
            .unwrap();
        until("the frame comes", || {
            set();
            peer.hear_within(Duration::from_millis(20))
                .is_some_and(|line| line == *frame)
        });
    };
    heard(&|| robot.set::<telemetry::RobotState>(0, &state).unwrap(), "07");
    heard(
        &|| robot.set::<telemetry::SimpleSensor>(1, &sensor).unwrap(),
        "0a",
    );
}

/// A robot of another maker: a REP socket that answers as upstream does, and reports its requests.
fn rep() -> Option<(String, Receiver<String>)> {
    let mut peer = Peer::start("rep", "tcp://127.0.0.1:*")?;
    let address = peer.hear();
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let Some(request) = peer.hear_within(LONG * 3) else {
                return;
            };
            let answer = match request.as_str() {
                "01" => hex(v6::PROTOCOL_VERSION.as_bytes()),
                "050600" => "0a0954657374526f626f74".to_owned(),
                "050c00" => ".".to_owned(),
                // Goal outside the map: upstream has only one kind of refusal.
                refused if refused.starts_with("0f") => "00".to_owned(),
                other => other[..2].to_owned(),
            };
            peer.say(&answer);
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    Some((address, asked))
}

#[test]
fn a_controller_drives_raw_rep_and_pub_sockets_byte_for_byte() {
    let (Some((requests, asked)), Some(mut publisher)) = (rep(), Peer::start("pub", "tcp://127.0.0.1:*"))
    else {
        return;
    };
    let end = ZmqController::plain_v6(&requests, &publisher.hear())
        .open()
        .unwrap();
    let controller = Controller::builder("desk").end(Arc::new(end)).start().unwrap();
    assert!(controller.wait_until_found(LONG));
    until("its name", || {
        controller.robot_name().as_deref() == Some("TestRobot")
    });
    let twist = types::Twist {
        header: Some(types::Header {
            frame: "base".into(),
            ..Default::default()
        }),
        linear: Some(types::Vector3 {
            x: 0.5,
            ..Default::default()
        }),
        angular: Some(types::Vector3 {
            z: -0.25,
            ..Default::default()
        }),
    };
    let long = Expiry::After(LONG);
    assert_eq!(
        controller.send_within::<command::Twist>(&twist, long).wait(),
        Outcome::Executed
    );
    let go = controller
        .send_within::<command::GoTo>(&types::GoTo::default(), long)
        .wait();
    assert!(matches!(go, Outcome::Rejected(_)), "{go}");
    assert_eq!(
        controller.fetch::<telemetry::Map>(0),
        Ok(None),
        "an unset value is not a disconnection"
    );
    assert!(controller.is_found());
    controller.set_log_level(5).unwrap();
    let mut wanted = vec!["01", "050600", LIVE[2].0, "0f", "050c00", "0805"];
    while let Ok(request) = asked.recv_timeout(LONG) {
        wanted.retain(|one| *one != request);
        if wanted.is_empty() {
            break;
        }
    }
    assert!(wanted.is_empty(), "never asked: {wanted:?}");

    let states = controller.queue::<telemetry::RobotState>(0, Queue::Newest);
    let sensors = controller.queue::<telemetry::SimpleSensor>(1, Queue::Newest);
    let (mut state, mut sensor) = (None, None);
    // Every vector, and the frames that crash upstream's controllers, again and again.
    let frames = vectors("telemetry");
    until("both kinds come", || {
        for frame in ["1f00", "c800", "01", "."]
            .into_iter()
            .chain(frames.iter().map(|(f, _)| f.as_str()))
        {
            publisher.say(frame);
        }
        state = states.take(Duration::from_millis(20)).or(state.take());
        sensor = sensors.take(Duration::from_millis(20)).or(sensor.take());
        state.is_some() && sensor.is_some()
    });
    assert_eq!(state.unwrap().0.state, ["RUNNING"]);
    assert_eq!(sensor.unwrap().0.value, [0.1, 0.2, 0.3]);
    assert_eq!(
        controller.send_within::<command::Twist>(&twist, long).wait(),
        Outcome::Executed
    );
}
