//! Tests for every transport with the wire of version 6.

use super::basics::unhex;
use super::*;
use remote::transport::{Class, ControllerSink, TransportError};
use remote::{Expiry, Outcome, Queue, command, telemetry, types};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

pub const CASES: &[(&str, Case)] = &[
    ("byte for byte", bytes),
    ("hostile frames of version 6", hostile),
    ("commands of version 6", commands),
    ("telemetry of version 6", channels_and_images),
    ("the right to move in version 6", rights),
    ("heartbeats of version 6", heartbeats),
    ("files of version 6", files),
    ("nobody there in version 6", without_a_robot),
];

/// Records telemetry frames as they arrive.
struct Ear(Mutex<std::sync::mpsc::Sender<Vec<u8>>>);

impl ControllerSink for Ear {
    fn telemetry(&self, frame: &[u8]) {
        let _ = self.0.lock().expect("no panic").send(frame.to_vec());
    }
    fn lost(&self, _: u64) {}
    fn connected(&self, _: bool) {}
}

/// A peer that sends bytes: a controller of another maker.
struct Raw(Arc<dyn ControllerEnd>, Receiver<Vec<u8>>);

impl Raw {
    fn new(fixture: &Fixture) -> Self {
        let end = (fixture.connect)();
        let (send, heard) = channel();
        end.start(Arc::new(Ear(Mutex::new(send)))).expect("starts");
        Raw(end, heard)
    }

    fn try_ask(&self, frame: &[u8]) -> Result<Vec<u8>, TransportError> {
        let (send, answer) = channel();
        let done = Box::new(move |result: Result<&[u8], TransportError>| {
            let _ = send.send(result.map(<[u8]>::to_vec));
        });
        self.0
            .request(Class::Command, frame, Duration::from_secs(10), done);
        answer.recv_timeout(WATCHDOG).expect("ends")
    }

    fn ask(&self, frame: &str) -> Vec<u8> {
        self.try_ask(&unhex(frame)).expect("answered")
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.0.stop();
    }
}

const TWIST: &str = "0b 0a 06 12 04 62 61 73 65 12 05 0d 00 00 00 3f 1a 05 1d 00 00 80 be";

/// The examples that were captured from a live robot.
fn bytes(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = Robot::builder("TestRobot")
        .end((fixture.robot)())
        .start()
        .expect("starts");
    let twists = robot.queue::<command::Twist>(Queue::Newest);
    let raw = Raw::new(&fixture);
    eventually("it answers", || raw.try_ask(&[1]).is_ok());
    assert_eq!(raw.ask("01").len(), 64);
    assert_eq!(raw.ask("01"), remote::v6::PROTOCOL_VERSION.as_bytes());
    assert_eq!(raw.ask("02"), b"6.0.0");
    assert_eq!(raw.ask("04 0d 00 00 80 3f"), unhex("04"));
    assert_eq!(raw.ask(TWIST), unhex("0b"));
    assert_eq!(raw.ask("05 06 00"), [&[0x0a, 9][..], b"TestRobot"].concat());
    assert_eq!(raw.ask("05 0c 00"), [] as [u8; 0]);
    assert_eq!(raw.ask("06"), [] as [u8; 0]);
    assert_eq!(raw.ask("08 05"), unhex("08"));
    assert_eq!(raw.ask("09 12 07 74 65 73 74 75 69 64 18 01"), unhex("09"));
    assert_eq!(raw.ask("0b ff ff ff"), unhex("00"));
    let (twist, context) = twists.try_take().expect("one");
    assert_eq!(
        (twist.linear.expect("set").x, twist.angular.expect("set").z),
        (0.5, -0.25)
    );
    assert_eq!(
        (twist.header.expect("set").frame.as_str(), context.age),
        ("base", None)
    );
    let state = types::RobotState {
        state: vec!["RUNNING".into()],
        ..Default::default()
    };
    let sensor = types::SimpleSensor {
        value: vec![0.1, 0.2, 0.3],
        ..Default::default()
    };
    let heard = |wanted: &[u8], set: &dyn Fn()| {
        eventually("the telemetry frame", || {
            set();
            raw.1
                .recv_timeout(Duration::from_millis(50))
                .is_ok_and(|frame| frame == wanted)
        });
    };
    heard(&[&[7, 0, 0x12, 7][..], b"RUNNING"].concat(), &|| {
        robot.set::<telemetry::RobotState>(0, &state).expect("sent");
    });
    heard(&unhex("0a 01 2a 0c cd cc cc 3d cd cc 4c 3e 9a 99 99 3e"), &|| {
        robot.set::<telemetry::SimpleSensor>(1, &sensor).expect("sent");
    });
}

fn hostile(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.on::<command::Twist>(|_, _| Ok(()));
    let raw = Raw::new(&fixture);
    eventually("it answers", || raw.try_ask(&[1]).is_ok());
    for frame in [
        "", "c8", "05", "050000", "05c800", "050109", "00", "0b", "0bffffff", "07", "04ff", "08", "1f00",
        "01ff",
    ] {
        let answer = raw.try_ask(&unhex(frame));
        assert!(answer.is_ok(), "{frame}: {answer:?}");
    }
    let _ = raw.try_ask(&vec![0xFF; 1_000_000]);
    let _ = raw.try_ask(&[&[11][..], &vec![0x0A; 1_000_000]].concat());
    assert_eq!(raw.ask(TWIST), unhex("0b"), "the robot lives");
    assert!(robot.statistics().dropped["malformed"] >= 5);
}

fn commands(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reported = seen.clone();
    robot.on::<command::GoTo>(move |goto, _| {
        reported.lock().expect("no panic").push(goto.max_forward_speed);
        if goto.max_forward_speed > 1.0 {
            Err("too fast".into())
        } else {
            Ok(())
        }
    });
    let controller = controller("c", (fixture.connect)());
    eventually("its name", || controller.robot_name().as_deref() == Some("rover"));
    let go = |max_forward_speed| {
        let body = types::GoTo {
            max_forward_speed,
            ..Default::default()
        };
        controller
            .send_within::<command::GoTo>(&body, Expiry::After(WATCHDOG))
            .wait()
    };
    assert_eq!(go(0.5), Outcome::Executed);
    assert!(matches!(go(1.5), Outcome::Rejected(_)));
    let twist = controller.command::<command::Twist>(&types::Twist::default());
    assert!(matches!(twist, Outcome::Rejected(_)), "{twist}");
    let lamp = controller.command::<Lamp>(&speed(1.0));
    assert!(
        matches!(&lamp, Outcome::Rejected(reason) if reason.contains("no number")),
        "{lamp}"
    );
    assert_eq!(*seen.lock().expect("no panic"), [0.5, 1.5]);
    controller.set_log_level(5).expect("answered");
    assert!(controller.right("base").is_err(), "not in version 6");
    eventually("a round trip", || controller.round_trip().is_some());
}

fn channels_and_images(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let left = robot.channel::<telemetry::Image>("left").expect("room");
    let controller = controller("c", (fixture.connect)());
    assert_eq!(
        controller.fetch::<telemetry::CurrentPose>(0),
        Ok(None),
        "an unset value is not a lost connection"
    );
    assert_eq!(controller.fetch::<telemetry::CurrentPose>(9), Ok(None));
    let channels = controller
        .fetch::<telemetry::ChannelsDefinition>(0)
        .expect("answered")
        .expect("set");
    let definition = types::ChannelDefinition {
        name: "left".into(),
        messagetype: 22,
        channelno: left.into(),
    };
    assert_eq!(channels.channel, [definition]);
    let images = controller.queue::<telemetry::Image>(left, Queue::Newest);
    let image = types::Image {
        width: 1000,
        data: vec![3; 1_000_000],
        ..Default::default()
    };
    eventually("an image", || {
        robot.set::<telemetry::Image>(left, &image).expect("sent");
        images
            .take(Duration::from_millis(100))
            .is_some_and(|(got, info)| got == image && info.channel == left)
    });
    assert_eq!(controller.latest::<telemetry::Image>(left), Some(image.clone()));
    assert_eq!(controller.fetch::<telemetry::Image>(left), Ok(Some(image)));
    // Kinds without a number in version 6 are not sent.
    robot.set::<Odometer>(0, &speed(1.0)).expect("nothing to send");
    assert!(controller.fetch::<Odometer>(0).is_err());
}

fn rights(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let refusing = Robot::builder("rover")
        .end((fixture.robot)())
        .allow_v6_motion(false)
        .start()
        .expect("starts");
    refusing.on::<command::Twist>(|_, _| Ok(()));
    refusing.on::<command::SimpleAction>(|_, _| Ok(()));
    let raw = Raw::new(&fixture);
    eventually("it answers", || raw.try_ask(&[1]).is_ok());
    assert_eq!(
        raw.ask(TWIST),
        unhex("00"),
        "it does not accept moving commands of unknown age"
    );
    assert_eq!(
        raw.ask("0d"),
        unhex("0d"),
        "a command that moves nothing is accepted"
    );
    refusing.stop();
    let robot = robot(&fixture);
    robot.on::<command::Twist>(|_, _| Ok(()));
    eventually("the next one moves", || {
        raw.try_ask(&unhex(TWIST)) == Ok(vec![0x0b])
    });
    assert!(robot.holder("base").is_some());
}

fn heartbeats(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let stopped = Arc::new(Mutex::new(0));
    let reported = stopped.clone();
    robot.on::<command::Twist>(|_, _| Ok(()));
    robot.on_link_lost(move |lost| {
        assert_eq!(lost.subsystem(), "base");
        *reported.lock().expect("no panic") += 1;
    });
    let raw = Raw::new(&fixture);
    eventually("it answers", || raw.try_ask(&[1]).is_ok());
    assert_eq!(raw.ask(TWIST), unhex("0b"));
    // A controller that announced no heartbeats is never lost; then 0.2 s, and silence.
    assert_eq!(raw.ask("04 0d cd cc 4c 3e"), unhex("04"));
    eventually("it is lost", || *stopped.lock().expect("no panic") == 1);
    assert_eq!(robot.holder("base"), None);
    assert_eq!(raw.ask(TWIST), unhex("0b"), "it may come back");
}

fn files(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let disk = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(disk.path().join("model/sub")).expect("made");
    std::fs::write(disk.path().join("model/sub/a"), vec![7; 3_000_000]).expect("written");
    std::fs::write(disk.path().join("model/b"), b"b").expect("written");
    robot.share("model", &disk.path().join("model")).expect("there");
    let controller = controller("c", (fixture.connect)());
    let into = disk.path().join("into");
    let written = controller.download_all("model", &into, |_| {}).expect("fetched");
    assert_eq!(written, [into.join("model/b"), into.join("model/sub/a")]);
    assert_eq!(
        std::fs::read(into.join("model/sub/a")).expect("there"),
        vec![7; 3_000_000]
    );
    // One file alone, under the requested name.
    let get = |path: &str| controller.download("model", path, &into, |_| {});
    assert_eq!(get("sub/a").expect("fetched"), into.join("sub/a"));
    assert!(get("a").is_err(), "not by its end");
    assert!(get("").is_err(), "two files came");
    assert!(get("sub/a").is_ok(), "it is there");
    std::fs::write(into.join("sub/a"), b"mine").expect("written");
    assert!(get("sub/a").is_err(), "another file is there");
    std::fs::write(disk.path().join("model/.bashrc"), b"x").expect("written");
    let other = disk.path().join("other");
    assert!(
        controller.download_all("model", &other, |_| {}).is_err(),
        "hidden"
    );
    assert!(!other.exists());
    let refused = controller.download_all("nothing", &into, |_| {});
    assert!(
        refused
            .as_ref()
            .is_err_and(|e| e.to_string().contains("shares no file")),
        "{refused:?}"
    );
}

fn without_a_robot(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let alone = Controller::builder("c")
        .end((fixture.connect)())
        .start()
        .expect("starts");
    let twist = types::Twist::default();
    let sent = alone.send_within::<command::Twist>(&twist, Expiry::After(Duration::from_millis(200)));
    assert!(matches!(sent.wait(), Outcome::Unreachable { .. }));
    assert!(!alone.is_found());
}
