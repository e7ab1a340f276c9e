//! Faults of upstream, tested on Ropewalk's own wire: a robot that is paused and comes back, in a process of its own.

use crate::support::{LONG, lines, until};
use remote::transport::RobotEnd;
use remote::transport::zmq::{ZmqController, ZmqRobot};
use remote::{Controller, Expiry, Outcome, Robot, command, telemetry, types};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

const ROBOT: &str = "ROPEWALK_TEST_ROBOT";

/// Not a test of its own: the robot's process. It prints its address, and each twist that it carries out.
#[test]
fn robot_process() {
    if std::env::var_os(ROBOT).is_none() {
        return;
    }
    let end = Arc::new(ZmqRobot::own("tcp://127.0.0.1:*").open().unwrap());
    let robot = Robot::builder("rover").end(end.clone()).start().unwrap();
    robot.on::<command::Twist>(|twist, _| {
        println!("\ntwist {}", twist.linear.unwrap_or_default().x);
        Ok(())
    });
    robot.tells::<telemetry::CurrentPose>().unwrap();
    println!("\nat {}", end.requests_address().unwrap());
    let _ = std::io::stdin().read(&mut [0]);
}

struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start() -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "wrongs::robot_process", "--nocapture"])
            .env(ROBOT, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(&mut child);
        Process { child, lines }
    }

    /// Returns the next line with this beginning, without the beginning.
    fn line(&self, beginning: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG).expect("the robot says something");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// All its threads are paused when this returns.
    fn pause(&self) {
        self.signal(Signal::STOP);
        let id = WaitId::Pid(Pid::from_child(&self.child));
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        until("it stands", || waitid(id.clone(), options).unwrap().is_some());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn twist(x: f32) -> types::Twist {
    types::Twist {
        linear: Some(types::Vector3 {
            x,
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[test]
fn a_stopped_robot_carries_out_none_of_the_twists_that_it_missed() {
    let process = Process::start();
    let end = ZmqController::own(&process.line("at ")).open().unwrap();
    let controller = Controller::builder("desk").end(Arc::new(end)).start().unwrap();
    assert!(controller.wait_until_found(LONG));
    let long = Expiry::After(LONG);
    assert_eq!(
        controller.send_within::<command::Twist>(&twist(1.0), long).wait(),
        Outcome::Executed
    );
    assert_eq!(process.line("twist "), "1");

    process.pause();
    let short = Expiry::After(Duration::from_millis(300));
    let missed: Vec<_> = [2.0, 3.0, 4.0]
        .map(|x| controller.send_within::<command::Twist>(&twist(x), short))
        .into_iter()
        .map(|pending| pending.wait())
        .collect();
    process.signal(Signal::CONT);
    for outcome in missed {
        assert!(
            !matches!(outcome, Outcome::Executed | Outcome::Rejected(_)),
            "{outcome}"
        );
    }
    until("the robot takes commands again", || {
        controller.send_within::<command::Twist>(&twist(5.0), long).wait() == Outcome::Executed
    });
    // The robot may have stopped by itself, which is a twist of 0.
    let next = std::iter::repeat_with(|| process.line("twist ")).find(|twist| twist != "0");
    assert_eq!(next.as_deref(), Some("5"), "an expired twist was carried out");
}

#[test]
fn telemetry_that_was_never_set_is_none_and_no_disconnect() {
    let process = Process::start();
    let end = ZmqController::own(&process.line("at ")).open().unwrap();
    let controller = Controller::builder("desk").end(Arc::new(end)).start().unwrap();
    assert!(controller.wait_until_found(LONG));
    assert_eq!(controller.fetch::<telemetry::CurrentPose>(0).unwrap(), None);
    assert!(controller.is_found());
}

/// A robot of version 7 answers requests that it does not understand with an empty frame, which version 6 would read as
/// a value that is not set.
#[test]
fn a_robot_of_version_7_is_named_and_nothing_of_it_is_taken_for_version_6() {
    let end = ZmqRobot::plain_v6()
        .bind_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
        .open()
        .unwrap();
    let answers = crate::support::Robot(|frame: &[u8]| match frame {
        // A robot of version 7 acknowledges what it reads as one of its own requests.
        [8, number] => Some(vec![8, *number]),
        _ => Some(Vec::new()),
    });
    end.start(Arc::new(answers)).unwrap();
    let (requests, telemetry) = (end.requests_address().unwrap(), end.telemetry_address().unwrap());
    let desk = ZmqController::plain_v6(requests, &telemetry).open().unwrap();
    let controller = Controller::builder("desk").end(Arc::new(desk)).start().unwrap();
    let names_it = |error: String| error.contains("version 7");
    until("the greeting is answered", || {
        let fetched = controller.fetch::<telemetry::RobotState>(0);
        fetched.is_err_and(|error| names_it(error.to_string()))
    });
    match controller.send::<command::Twist>(&twist(0.5)).wait() {
        Outcome::Unreachable { reason, .. } => assert!(names_it(reason)),
        other => panic!("{other:?}"),
    }
    let error = controller.set_log_level(5).expect_err("none").to_string();
    assert!(names_it(error.clone()), "{error}");
    assert!(!controller.is_found() && !controller.knows_kinds());
}
