//! Cost of a large array: `cargo test -p ropewalk --test structures -- --ignored --nocapture measure`.

use crate::{Ends, r2r, schema};
use std::time::Instant;

const LEN: usize = 4 << 20;
const ROUNDS: usize = 10;

#[test]
#[ignore = "a measurement"]
fn measure() {
    let ends = Ends::new(&schema("sensor_msgs/Image"));
    let image = r2r::sensor_msgs::Image {
        data: vec![7; LEN],
        ..Default::default()
    };
    let mut value = ends.publisher.schema().default_value();
    let numbers = ::schema::Numbers::U8(image.data.clone());
    value
        .set("data", ropewalk::Value::Numbers(numbers))
        .expect("fits");
    for _ in 0..3 {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            ends.publisher.publish_structure(&image).expect("published");
        }
        let write = started.elapsed();
        let message = ends.take();
        let started = Instant::now();
        for _ in 0..ROUNDS {
            let seen: r2r::sensor_msgs::Image = message.structure().expect("an Image");
            assert_eq!(seen.data.len(), LEN);
        }
        let read = started.elapsed();
        let started = Instant::now();
        for _ in 0..ROUNDS {
            ends.publisher.publish_value(&value).expect("published");
        }
        let by_value = started.elapsed();
        let per_byte = |took: std::time::Duration| took.as_nanos() as f64 / (LEN * ROUNDS) as f64;
        eprintln!(
            "ns/byte: publish_structure {:.2}, structure {:.2}, publish_value {:.2}",
            per_byte(write),
            per_byte(read),
            per_byte(by_value)
        );
        while ends.subscriber.take().expect("takes").is_some() {}
    }
}
