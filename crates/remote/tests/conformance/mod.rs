//! Tests that hold for every transport, as functions of a factory for pairs of its ends.
//!
//! A test of a transport has `mod conformance;` (with `#[path]` if it is elsewhere) and calls [`run`].

#![allow(dead_code, unreachable_pub)] // Not every test uses all of it.

mod basics;
mod files;
mod identity;
mod kinds;
mod library;
mod people;
mod rights;
mod rough;
mod safety;
mod telemetry;
mod v6;

use remote::transport::{ControllerEnd, RobotEnd};
use remote::{Controller, Robot};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub use kinds::*;
pub use rough::Rough;

/// Longer than anything here takes on a busy machine.
pub const WATCHDOG: Duration = Duration::from_secs(240);

/// One robot's address on a transport of [`Wire::Own`](remote::transport::Wire::Own), which no other test uses.
pub struct Fixture {
    /// The robot's end. Called again after the previous one was stopped: the robot's next run.
    pub robot: Box<dyn Fn() -> Arc<dyn RobotEnd>>,
    /// An end for one more controller.
    pub connect: Box<dyn Fn() -> Arc<dyn ControllerEnd>>,
    /// An end with the proven identity of another peer than those, if a test of the transport can have one.
    pub other: Option<Box<dyn Fn() -> Arc<dyn ControllerEnd>>>,
    /// Whether the transport proves the sender.
    pub proves: bool,
}

type Case = fn(&dyn Fn() -> Fixture);

const CASES: &[(&str, Case)] = &[
    ("a command's outcome", basics::outcomes),
    ("registered before it is served", basics::registered_first),
    ("fire and forget", basics::fire_and_forget),
    ("many to many", basics::many_to_many),
    ("nobody there", basics::without_a_robot),
    ("the next run of a robot", basics::next_run),
    ("polled commands", basics::polled),
    ("found and lost", basics::found_and_lost),
    ("hostile frames", basics::hostile),
    ("telemetry", telemetry::channels_and_queues),
    ("callbacks that panic", telemetry::panics),
    ("large telemetry", telemetry::large),
    ("the watch list", telemetry::watched),
    ("late kinds", telemetry::late_kinds),
    ("commands here, telemetry there", telemetry::apart),
    ("a twist without a successor", safety::twist_holds),
    ("a late command", safety::late),
    ("a repeated command", safety::repeated),
    ("a lost answer", safety::lost_answer),
    ("overtaken motion", safety::overtaken),
    ("a right for the first to move", rights::implicit),
    ("hand-over and take-over", rights::hand_over),
    ("a right that has to be requested", rights::requested),
    ("a lost holder", rights::lost_holder),
    ("a lost holder's robot stops", rights::stops),
    ("the sender is proven, or stated to be unproven", identity::proven),
    (
        "what others learn of a holder",
        identity::holder_cannot_be_impersonated,
    ),
    (
        "another that sends the holder's number",
        identity::the_number_of_another,
    ),
    ("a stop of the holder", identity::stops_pass),
    ("permissions and the log", people::requests_and_logs),
    ("every kind", library::every_kind),
    ("files", files::fetched),
    ("files that are not available", files::refused),
    ("files that are available", files::only_new_files),
    ("an interrupted file", files::interrupted),
    ("a large file beside a command", files::beside_commands),
];

/// Runs all cases over the transport whose fixtures `fixture` creates, each with a watchdog.
///
/// # Panics
/// If a case fails.
pub fn run(fixture: impl Fn() -> Fixture + Copy + Send + 'static) {
    for (name, case) in CASES {
        watched(name, move || case(&fixture));
    }
}

/// As [`run`], for the cases of a transport of [`Wire::V6`](remote::transport::Wire::V6).
///
/// # Panics
/// If a case fails.
pub fn run_v6(fixture: impl Fn() -> Fixture + Copy + Send + 'static) {
    for (name, case) in v6::CASES {
        watched(name, move || case(&fixture));
    }
}

/// Runs `work`, and panics if it takes longer than the watchdog.
pub fn watched(name: &str, work: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    // A panic drops the sender.
    if ended.recv_timeout(WATCHDOG) != Err(RecvTimeoutError::Timeout) {
        if let Err(panic) = thread.join() {
            eprintln!("case {name:?} failed");
            std::panic::resume_unwind(panic);
        }
        return;
    }
    panic!("case {name:?} hangs");
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + WATCHDOG / 2;
    while !condition() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A controller that has met its robot.
pub fn controller(name: &str, end: Arc<dyn ControllerEnd>) -> Controller {
    let controller = Controller::builder(name).end(end).start().expect("starts");
    assert!(
        controller.wait_until_found(WATCHDOG / 2),
        "the robot was not found"
    );
    controller
}

/// A robot of a fixture, with nothing registered.
pub fn robot(fixture: &Fixture) -> Robot {
    Robot::builder("rover")
        .end((fixture.robot)())
        .start()
        .expect("starts")
}
