//! Publishes a small message as a dynamic value.
//!
//!     cargo run -p examples --bin twist_publisher
//!     cargo run -p examples --bin twist_subscriber

use ropewalk::{Flavour, Node, Registry, Value};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("joystick")?;
    let twist = Registry::new(Flavour::Ros1).schema("geometry_msgs/Twist")?;
    let publisher = node.publisher("/cmd_vel", &twist)?;
    publisher.wait_for_subscribers(1, Duration::from_secs(30));
    let mut value = twist.default_value();
    for i in 0..20 {
        value.set("linear.x", Value::F64(f64::from(i) / 10.0))?;
        publisher.publish_value(&value)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
