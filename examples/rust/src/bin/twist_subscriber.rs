//! Receives messages in a callback, on a thread of its own, until the fastest speed has arrived.
//!
//!     cargo run -p examples --bin twist_subscriber

use ropewalk::{Flavour, Message, Node, Registry};
use std::sync::mpsc::channel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("base")?;
    let twist = Registry::new(Flavour::Ros1).schema("geometry_msgs/Twist")?;
    let subscriber = node.subscriber("/cmd_vel", &twist)?;
    let (send, speeds) = channel();
    let _callback = subscriber.callback(move |message: Message| {
        let speed = message
            .value()
            .ok()
            .and_then(|v| v.get("linear.x").ok()?.as_f64());
        let _ = send.send(speed.unwrap_or(f64::NAN));
    })?;
    for speed in speeds {
        println!("speed {speed}");
        if speed >= 1.9 {
            break;
        }
    }
    Ok(())
}
