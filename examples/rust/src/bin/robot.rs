//! A robot that follows commands, but not too fast, and stops when its controller is gone.
//!
//!     cargo run -p examples --bin robot & cargo run -p examples --bin controller

use remote::robot::{ControllerEvent, Origin};
use remote::transport::link::LinkRobot;
use remote::types::{Twist, Vector3};
use remote::{Robot, command, telemetry};
use ropewalk::Node;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("rover")?;
    let end = Arc::new(LinkRobot::new(&node, "rover"));
    // Starts once everything is registered: otherwise an early controller would learn that there is no such command.
    let robot = Robot::builder("rover").end(end).build()?;
    let speed = Arc::new(Mutex::new(0.0));

    // Runs on a thread of the library: do slow work on your own.
    let reported = speed.clone();
    robot.on::<command::Twist>(move |twist, context| {
        let says = twist.linear.unwrap_or_default().x;
        if says.abs() > 1.0 {
            // The controller gets this text.
            return Err("faster than 1 m/s".into());
        }
        *reported.lock().unwrap_or_else(PoisonError::into_inner) = says;
        let name = match &context.origin {
            Origin::Controller { name, .. } => name,
            _ => "the robot itself",
        };
        println!("{name} says {says} m/s");
        Ok(())
    });
    // When its controller is lost, the robot stops before it calls this.
    let (send, over) = channel();
    robot.on_controller(move |event| {
        if matches!(event, ControllerEvent::Lost { .. }) {
            let _ = send.send(());
        }
    });
    robot.start()?;

    for _ in 0..1200 {
        let x = *speed.lock().unwrap_or_else(PoisonError::into_inner);
        let moves = Twist {
            linear: Some(Vector3 {
                x,
                ..Vector3::default()
            }),
            ..Twist::default()
        };
        robot.set::<telemetry::CurrentTwist>(0, &moves)?;
        if over.recv_timeout(Duration::from_millis(50)) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
    Err("its controller stayed".into())
}
