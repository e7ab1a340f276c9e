//! The identity of a controller: what its connection proves, never what a frame claims.

use super::basics::Deaf;
use super::*;
use prost::Message;
use remote::own::{self, Outcome, request, response};
use remote::transport::{Class, TransportError};
use remote::{command, types};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A controller's end that sends what it is given, and checks nothing.
struct Raw {
    end: Arc<dyn ControllerEnd>,
    number: u64,
    echo: Option<own::Echo>,
    twist: u32,
    /// The number by which the robot knows it.
    id: u64,
}

impl Raw {
    /// Says hello under a number.
    fn new(end: Arc<dyn ControllerEnd>, number: u64) -> Self {
        end.start(Arc::new(Deaf)).expect("starts");
        let mut raw = Raw {
            end,
            number,
            echo: None,
            twist: 0,
            id: 0,
        };
        let hello = own::Hello {
            name: "raw".into(),
            version: 2,
        };
        let response = raw.ask(request::What::Hello(hello), 1);
        let Some(response::What::Welcome(welcome)) = response.what else {
            panic!("no welcome: {}", response.reason);
        };
        let twist = welcome.commands.iter().find(|k| k.name.ends_with(".Twist"));
        (raw.twist, raw.id) = (twist.expect("the kind").number, welcome.controller);
        raw
    }

    /// Repeats the request until the robot answers.
    fn ask(&mut self, what: request::What, sequence: u64) -> own::Response {
        let request = own::Request {
            controller: self.number,
            sequence,
            echo: self.echo,
            expiry_ms: 0,
            what: Some(what),
        };
        let answer: Arc<Mutex<Option<own::Response>>> = Arc::default();
        eventually("the robot answers", || {
            let (sent, ended) = std::sync::mpsc::channel();
            let done = move |result: Result<&[u8], TransportError>| {
                let _ = sent.send(result.ok().map(|f| own::Response::decode(f).expect("an answer")));
            };
            let frame = request.encode_to_vec();
            self.end
                .request(Class::Command, &frame, WATCHDOG / 8, Box::new(done));
            *answer.lock().expect("no panic") = ended.recv_timeout(WATCHDOG).expect("it ends");
            answer.lock().expect("no panic").is_some()
        });
        let response = answer.lock().expect("no panic").take().expect("an answer");
        self.echo = Some(own::Echo {
            run: response.run,
            stamp: response.stamp,
            held_us: 0,
        });
        response
    }

    fn drive(&mut self, speed: f32, sequence: u64) -> Outcome {
        let command = own::Command {
            number: self.twist,
            body: twist(speed).encode_to_vec().into(),
        };
        self.ask(request::What::Command(command), sequence).outcome()
    }

    fn beat(&mut self, sequence: u64) {
        let heartbeat = own::Heartbeat { period_ms: 60_000 };
        self.ask(request::What::Heartbeat(heartbeat), sequence);
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

fn rover(fixture: &Fixture) -> (Robot, Arc<Mutex<Vec<f32>>>) {
    let robot = Robot::builder("rover")
        .end((fixture.robot)())
        .lost_after(Duration::from_millis(400));
    let robot = robot.build().expect("builds");
    let driven: Arc<Mutex<Vec<f32>>> = Arc::default();
    let reported = driven.clone();
    robot.on::<command::Twist>(move |twist, _| {
        reported
            .lock()
            .expect("no panic")
            .push(twist.linear.unwrap_or_default().x);
        Ok(())
    });
    robot.start().expect("starts");
    (robot, driven)
}

fn go(controller: &Controller, speed: f32) -> remote::Outcome {
    let expiry = remote::Expiry::After(WATCHDOG);
    controller
        .send_within::<command::Twist>(&twist(speed), expiry)
        .wait()
}

/// Each transport proves the sender, or states that it does not.
pub fn proven(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (robot, _) = rover(&fixture);
    let _ann = controller("ann", (fixture.connect)());
    let peer = robot.controllers()[0].peer.clone();
    assert_eq!(peer.is_proven(), fixture.proves, "{peer}");
}

/// Nothing that the robot sends to others about a controller allows them to act as that controller.
pub fn holder_cannot_be_impersonated(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let (robot, driven) = rover(&fixture);
    let ann = controller("ann", (fixture.connect)());
    assert!(go(&ann, 0.5).is_executed());
    let mut bob = Raw::new((fixture.connect)(), 4711);
    let wish = own::AuthorityRequest {
        subsystem: "base".into(),
        wish: own::Wish::Ask.into(),
        to: 0,
    };
    let Some(response::What::Authority(reported)) = bob.ask(request::What::Authority(wish), 2).what else {
        panic!("no state of the right");
    };
    assert_eq!(
        (reported.holder, reported.holder_name.as_str()),
        (ann.id(), "ann")
    );
    let mut thief = Raw::new((fixture.connect)(), reported.holder);
    assert_eq!(thief.drive(9.0, 2), Outcome::Rejected);
    assert_ne!(thief.id, ann.id());
    assert_eq!(robot.holder("base"), Some(ann.id()));
    assert_eq!(*driven.lock().expect("no panic"), [0.5]);
}

/// The number of the holder itself, sent over another controller's connection.
pub fn the_number_of_another(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let Some(other) = &fixture.other else { return };
    let (robot, driven) = rover(&fixture);
    let losses = Arc::new(AtomicU64::new(0));
    let count = losses.clone();
    robot.on_link_lost(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let rough = Rough::new((fixture.connect)());
    let ann = controller("ann", rough.clone());
    assert!(go(&ann, 0.5).is_executed());
    let number = own::Request::decode(&*rough.last())
        .expect("a request")
        .controller;
    let mut thief = Raw::new(other(), number);
    assert_ne!(thief.id, ann.id());
    for i in 0..20 {
        let sequence = if i % 2 == 0 { 1 << 62 } else { 1_000 + i };
        assert_eq!(thief.drive(9.0, sequence), Outcome::Rejected);
        let stopped = go(&ann, 0.0);
        assert!(stopped.is_executed(), "{stopped}");
    }
    assert_eq!(robot.holder("base"), Some(ann.id()));
    assert!(driven.lock().expect("no panic").iter().all(|v| *v < 1.0));
    // The holder ends, and the other continues under its number.
    ann.stop();
    let sequence = AtomicU64::new(5_000);
    let thief = Mutex::new(thief);
    eventually("the loss is noticed", || {
        let sequence = sequence.fetch_add(1, Ordering::Relaxed);
        thief.lock().expect("no panic").beat(sequence);
        losses.load(Ordering::Relaxed) == 1
    });
    assert_eq!(robot.holder("base"), None);
}

/// A stop of the holder is carried out whatever came before it; any other command that jumps or was overtaken is not.
pub fn stops_pass(fixture: &dyn Fn() -> Fixture) {
    const JUMP: u64 = 1 << 40;
    let fixture = fixture();
    let (robot, driven) = rover(&fixture);
    let mut ann = Raw::new((fixture.connect)(), 4711);
    // It sends no heartbeats, and must not be lost meanwhile.
    ann.beat(2);
    assert_eq!(ann.drive(0.5, 10), Outcome::Executed);
    assert_eq!(ann.drive(0.6, 10 + JUMP), Outcome::Rejected, "it jumps");
    assert_eq!(ann.drive(0.7, 9), Outcome::Expired, "it was overtaken");
    assert_eq!(ann.drive(0.0, 8), Outcome::Executed, "an overtaken stop");
    assert_eq!(ann.drive(0.0, 11 + JUMP), Outcome::Executed, "a stop that jumps");
    for sequence in 12..200 {
        assert_eq!(ann.drive(0.5, sequence), Outcome::Executed);
    }
    assert_eq!(ann.drive(0.0, 7), Outcome::Executed, "a stop that was forgotten");
    let driven = driven.lock().expect("no panic");
    assert_eq!(
        (driven[..3].to_vec(), driven.last()),
        (vec![0.5, 0.0, 0.0], Some(&0.0))
    );
    assert_eq!(robot.statistics().dropped["sequence_jumped"], 1);
}
