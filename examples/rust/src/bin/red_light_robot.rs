//! A robot with a camera drives towards a traffic light, which turns red. `red_light_brake` has to watch the images.
//!
//!     cargo run -p examples --bin red_light_robot & cargo run -p examples --bin red_light_brake

use ropewalk::Node;
use ropewalk::msgs::geometry_msgs::Twist;
use ropewalk::msgs::sensor_msgs::Image;
use ropewalk::typed::Bulk;
use std::time::{Duration, Instant};

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
const LAMP: usize = 60;
/// Pictures.
const GREEN: u32 = 30;

/// Grey, with a lamp of one colour in the middle.
fn draw(rgb: &mut [u8], red: bool) {
    rgb.fill(90);
    let colour = if red { [250, 20, 20] } else { [20, 250, 20] };
    for row in rgb
        .chunks_exact_mut(3 * WIDTH)
        .skip((HEIGHT - LAMP) / 2)
        .take(LAMP)
    {
        for pixel in row.chunks_exact_mut(3).skip((WIDTH - LAMP) / 2).take(LAMP) {
            pixel.copy_from_slice(&colour);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("red_light_robot")?;
    let pictures = node.publisher::<Image>("/camera/image")?;
    let wheels = node.subscriber::<Twist>("/cmd_vel")?;
    let patience = Duration::from_secs(30);
    if !pictures.wait_for_subscribers(1, patience) || !wheels.wait_for_publishers(1, patience) {
        return Err("nobody looks at the pictures".into());
    }

    let mut turned = None;
    let mut image = Image {
        width: WIDTH as u32,
        height: HEIGHT as u32,
        step: 3 * WIDTH as u32,
        encoding: "rgb8".to_owned(),
        data: Bulk::Sized(3 * WIDTH * HEIGHT),
        ..Image::default()
    };
    for i in 1..=300 {
        let red = i > GREEN;
        image.header.seq = i;
        let mut loan = pictures.loan(&image)?;
        draw(loan.slice_mut("data")?, red);
        if red {
            turned.get_or_insert_with(Instant::now);
        }
        pictures.publish_loan(loan)?;
        // It drives until the next image, unless a command stops it.
        let Some(reported) = wheels.take_timeout(Duration::from_millis(33))? else {
            continue;
        };
        if reported.read()?.linear.x != 0.0 {
            continue;
        }
        let late = turned.ok_or("stopped at green")?.elapsed();
        println!(
            "stopped {:.3} ms after the light turned red",
            late.as_secs_f64() * 1e3
        );
        return Ok(());
    }
    Err("nobody stopped the robot".into())
}
