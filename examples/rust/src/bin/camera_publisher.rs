//! Publishes images without copying them: draws each one where its subscribers read it.
//!
//!     cargo run -p examples --bin camera_publisher
//!     cargo run -p examples --bin camera_subscriber

use ropewalk::Node;
use ropewalk::msgs::sensor_msgs::Image;
use ropewalk::typed::Bulk;
use std::time::Duration;

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("camera")?;
    let publisher = node.publisher::<Image>("/camera/image")?;

    let mut image = Image {
        width: WIDTH,
        height: HEIGHT,
        encoding: "mono8".into(),
        step: WIDTH,
        data: Bulk::Sized((WIDTH * HEIGHT) as usize),
        ..Image::default()
    };
    image.header.frame_id = "camera".into();

    publisher.wait_for_subscribers(1, Duration::from_secs(30));
    for picture in 0..90 {
        let mut loan = publisher.loan(&image)?;
        for (i, pixel) in (0..).zip(loan.slice_mut::<u8>("data")?) {
            *pixel = (i % WIDTH + picture) as u8;
        }
        let published = publisher.publish_loan(loan)?;
        println!(
            "picture {} to {} subscribers",
            published.sequence, published.queued_to
        );
        std::thread::sleep(Duration::from_millis(33));
    }
    Ok(())
}
