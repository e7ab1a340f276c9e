//! Publishes a small message.
//!
//!     cargo run -p examples --bin twist_publisher
//!     cargo run -p examples --bin twist_subscriber

use ropewalk::Node;
use ropewalk::msgs::geometry_msgs::Twist;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("joystick")?;
    let publisher = node.publisher::<Twist>("/cmd_vel")?;
    publisher.wait_for_subscribers(1, Duration::from_secs(30));
    let mut twist = Twist::default();
    for i in 0..20 {
        twist.linear.x = f64::from(i) / 10.0;
        publisher.publish(&twist)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
