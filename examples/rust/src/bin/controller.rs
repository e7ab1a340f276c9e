//! Commands a robot and prints the outcome of each command.
//!
//!     cargo run -p examples --bin robot & cargo run -p examples --bin controller

use remote::transport::link::LinkController;
use remote::types::{Twist, Vector3};
use remote::{BASE, Controller, Expiry, command, telemetry};
use ropewalk::Node;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

fn twist(x: f32) -> Twist {
    Twist {
        linear: Some(Vector3 {
            x,
            ..Vector3::default()
        }),
        ..Twist::default()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("desk")?;
    let end = Arc::new(LinkController::new(&node, "rover"));
    let desk = Controller::builder("desk").end(end).start()?;
    desk.on::<telemetry::CurrentTwist>(0, |moves, info| {
        if info.sequence % 20 == 0 {
            println!("it moves at {} m/s", moves.linear.unwrap_or_default().x);
        }
    });
    if !desk.wait_until_found(Duration::from_secs(30)) {
        return Err("there is no robot".into());
    }

    // Valid for a second: the robot does not execute a command that arrives later.
    let second = Expiry::After(Duration::from_secs(1));
    for speed in [0.5, 2.0] {
        let outcome = desk.send_within::<command::Twist>(&twist(speed), second).wait();
        println!("{speed} m/s: {outcome}");
    }
    // The first controller that moves the robot holds the right to, until it releases the right or is lost.
    let holder = desk
        .right(BASE)?
        .holder
        .map_or_else(|| "nobody".to_owned(), |(_, name)| name);
    println!("it is moved by {holder}");

    // Without blocking: sends a command, and polls for its outcome.
    let mut sent = desk.send_within::<command::Twist>(&twist(0.25), second);
    let outcome = loop {
        match sent.wait_for(Duration::from_millis(1)) {
            Ok(outcome) => break outcome,
            Err(pending) => sent = pending,
        }
    };
    println!("0.25 m/s: {outcome}");
    sleep(Duration::from_secs(1));
    Ok(())
}
