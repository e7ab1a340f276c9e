//! Reads images where their publisher drew them, until none has come for a second.
//!
//!     cargo run -p examples --bin camera_subscriber

use ropewalk::Node;
use ropewalk::msgs::sensor_msgs::Image;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("viewer")?;
    let subscriber = node.subscriber::<Image>("/camera/image")?;
    let mut patience = Duration::from_secs(30);
    while let Some(message) = subscriber.take_timeout(patience)? {
        // In place: these are the publisher's bytes.
        let pixels = message.read()?.data;
        let sum: u64 = pixels.iter().map(|p| u64::from(*p)).sum();
        println!(
            "picture {}: {} pixels, mean {}",
            message.sequence(),
            pixels.len(),
            sum / pixels.len() as u64
        );
        patience = Duration::from_secs(1);
    }
    Ok(())
}
