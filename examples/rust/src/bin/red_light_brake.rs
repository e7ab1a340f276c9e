//! Searches images for a red light, where the camera drew them, and stops the robot that took them.
//!
//!     cargo run -p examples --bin red_light_robot & cargo run -p examples --bin red_light_brake

use ropewalk::msgs::geometry_msgs::Twist;
use ropewalk::msgs::sensor_msgs::Image;
use ropewalk::{Node, SubscriberOptions};
use std::time::Duration;

/// Share of the pixels in the middle that are red.
fn redness(image: &Image<'_>) -> f64 {
    let (width, height, step) = (image.width as usize, image.height as usize, image.step as usize);
    let (mut red, mut all) = (0.0, 0.0);
    for row in image
        .data
        .chunks_exact(step.max(1))
        .take(height * 5 / 8)
        .skip(height * 3 / 8)
    {
        for pixel in row.chunks_exact(3).take(width * 5 / 8).skip(width * 3 / 8) {
            let is_red = pixel[0] > 200 && pixel[1] < 80 && pixel[2] < 80;
            red += f64::from(u8::from(is_red));
            all += 1.0;
        }
    }
    if all > 0.0 { red / all } else { 0.0 }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("red_light_brake")?;
    // An old image is useless: only the newest waits.
    let newest = SubscriberOptions::default().with_depth(1);
    let pictures = node.subscriber_with::<Image>("/camera/image", newest)?;
    let wheels = node.publisher::<Twist>("/cmd_vel")?;
    while let Some(taken) = pictures.take_timeout(Duration::from_secs(30))? {
        let image = taken.read()?;
        if redness(&image) < 0.05 {
            continue;
        }
        wheels.publish(&Twist::default())?;
        println!("red in picture {}", image.header.seq);
        // Leaves the robot time to take the command.
        std::thread::sleep(Duration::from_millis(500));
        return Ok(());
    }
    Err("no picture came".into())
}
