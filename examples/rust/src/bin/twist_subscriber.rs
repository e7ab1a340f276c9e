//! Receives messages in a callback, on a thread of its own, until the fastest speed has arrived.
//!
//!     cargo run -p examples --bin twist_subscriber

use ropewalk::Node;
use ropewalk::msgs::geometry_msgs::Twist;
use std::sync::mpsc::channel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("base")?;
    let subscriber = node.subscriber::<Twist>("/cmd_vel")?;
    let (send, speeds) = channel();
    let _callback = subscriber.callback(move |message| {
        let speed = message.read().map_or(f64::NAN, |twist| twist.linear.x);
        let _ = send.send(speed);
    })?;
    for speed in speeds {
        println!("speed {speed}");
        if speed >= 1.9 {
            break;
        }
    }
    Ok(())
}
