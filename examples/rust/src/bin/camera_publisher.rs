//! Publishes images without copying them: draws each one where its subscribers read it.
//!
//!     cargo run -p examples --bin camera_publisher
//!     cargo run -p examples --bin camera_subscriber

use ropewalk::{Flavour, Node, Registry};
use serde_json::json;
use std::time::Duration;

const WIDTH: usize = 1920;
const HEIGHT: usize = 1080;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("camera")?;
    let image = Registry::new(Flavour::Ros1).schema("sensor_msgs/Image")?;
    let publisher = node.publisher("/camera/image", &image)?;

    // The control part is the same for every image: the whole message except the pixels.
    let first = json!({
        "header": { "frame_id": "camera" },
        "width": WIDTH, "height": HEIGHT, "encoding": "mono8", "step": WIDTH,
        "data": vec![0; WIDTH * HEIGHT],
    });
    let parts = image.encode(&image.value_from_json(&first)?)?;

    publisher.wait_for_subscribers(1, Duration::from_secs(30));
    for picture in 0..90u32 {
        let mut loan = publisher.loan(parts.control.len(), &[WIDTH * HEIGHT])?;
        loan.control_mut().copy_from_slice(&parts.control);
        for (i, pixel) in loan.part_mut(0).iter_mut().enumerate() {
            *pixel = ((i % WIDTH) as u32 + picture) as u8;
        }
        let published = publisher.publish(loan)?;
        println!(
            "picture {} to {} subscribers",
            published.sequence, published.queued_to
        );
        std::thread::sleep(Duration::from_millis(33));
    }
    Ok(())
}
