//! Damaged control parts and data parts: an error as for values, never a panic, and a structure that can be
//! read equals the value.

use crate::everything::{everything_of_r2r, everything_of_ros2_rust};
use crate::{Ends, bytes, r2r, ros2_rust, schema};
use ropewalk::structure::StructureError;
use ropewalk::{Message, Publisher};
use serde::Serialize;
use serde::de::DeserializeOwned;

type Parts = (Vec<u8>, Vec<Vec<u8>>);

/// A small seeded generator (splitmix64), so that a failure can be repeated.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

fn damage((control, parts): &mut Parts, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let at = rng.below(control.len());
        match rng.below(7) {
            0 | 1 if !control.is_empty() => control[at] ^= 1 << rng.below(8),
            2 => control.truncate(at),
            3 => control.insert(at, rng.below(256) as u8),
            4 if control.len() > at + 4 => {
                let word = [0, 1, 4, 255, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX][rng.below(8)];
                control[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            5 if !parts.is_empty() => {
                let i = rng.below(parts.len());
                let part = &mut parts[i];
                part.resize(rng.below(2 * part.len() + 2), 7);
            }
            6 if !parts.is_empty() => {
                let at = rng.below(parts.len());
                parts.remove(at);
            }
            _ => parts.push(vec![rng.below(256) as u8; rng.below(20)]),
        }
    }
}

fn publish(publisher: &Publisher, (control, parts): &Parts) {
    let lens: Vec<usize> = parts.iter().map(Vec::len).collect();
    let mut loan = publisher.loan(control.len(), &lens).expect("a block");
    loan.control_mut().copy_from_slice(control);
    for (i, part) in parts.iter().enumerate() {
        loan.part_mut(i).copy_from_slice(part);
    }
    publisher.publish(loan).expect("published");
}

/// Reads the message as a structure, and returns whether that works.
fn look<T: DeserializeOwned + Serialize>(message: &Message, again: &Ends) -> bool {
    let _ = message.structure::<serde::de::IgnoredAny>();
    match (message.value(), message.structure::<T>()) {
        (Err(expected), Err(StructureError::Codec(error))) => {
            assert_eq!(error, expected);
            false
        }
        (Err(error), _) => panic!("a structure is no value: {error}"),
        (Ok(_), Err(error)) => {
            // Only for texts.
            assert!(
                matches!(
                    error,
                    StructureError::Text { .. } | StructureError::Refused { .. }
                ),
                "{error}"
            );
            false
        }
        // ros2_rust writes malformed text differently.
        (Ok(value), Ok(_)) if format!("{value:?}").contains("Bytes(") => true,
        (Ok(value), Ok(structure)) => {
            again.publisher.publish_structure(&structure).expect("published");
            again.publisher.publish_value(&value).expect("published");
            assert_eq!(bytes(&again.take()), bytes(&again.take()));
            true
        }
    }
}

/// The message cut at each length, and damaged in other ways.
fn damaged<T: DeserializeOwned + Serialize>(name: &str, structure: &T) {
    let schema = schema(name).with_threshold(1);
    let (ends, again) = (Ends::new(&schema), Ends::new(&schema));
    ends.publisher.publish_structure(structure).expect("published");
    let whole = bytes(&ends.take());
    assert!(!whole.1.is_empty(), "it has data parts");
    let read = |parts: &Parts| {
        publish(&ends.publisher, parts);
        look::<T>(&ends.take(), &again)
    };
    assert!(read(&whole));
    for len in 0..whole.0.len() {
        assert!(!read(&(whole.0[..len].to_vec(), whole.1.clone())), "cut at {len}");
    }
    for part in 0..whole.1.len() {
        let mut cut = whole.clone();
        cut.1[part].pop();
        assert!(!read(&cut), "part {part}");
    }
    let mut rng = Rng(whole.0.len() as u64);
    let mut good = 0;
    for _ in 0..3000 {
        let mut parts = whole.clone();
        damage(&mut parts, &mut rng);
        good += usize::from(read(&parts));
    }
    assert!(good > 100, "some are still messages: {good}");
}

#[test]
fn everything_of_either_generator() {
    damaged("test_msgs/Everything", &everything_of_r2r());
    damaged("test_msgs/Everything", &everything_of_ros2_rust());
}

#[test]
fn clouds() {
    let field = r2r::sensor_msgs::PointField {
        name: "x".into(),
        ..Default::default()
    };
    let cloud = r2r::sensor_msgs::PointCloud2 {
        fields: vec![field; 3],
        data: vec![7; 40],
        ..Default::default()
    };
    damaged("sensor_msgs/PointCloud2", &cloud);
    let image = ros2_rust::sensor_msgs::Image {
        data: vec![7; 40],
        ..Default::default()
    };
    damaged("sensor_msgs/Image", &image);
}

/// A count without its elements costs no memory.
#[test]
fn counts_without_bytes() {
    let ends = Ends::new(&schema("sensor_msgs/Image"));
    ends.publisher
        .publish_structure(&r2r::sensor_msgs::Image::default())
        .expect("published");
    let (mut control, _) = bytes(&ends.take());
    let at = control.len() - 4;
    for count in [1u32, 1 << 30, (1 << 31) - 1, 1 << 31, u32::MAX] {
        control[at..].copy_from_slice(&count.to_le_bytes());
        publish(&ends.publisher, &(control.clone(), Vec::new()));
        let error = ends.take().structure::<r2r::sensor_msgs::Image>();
        assert!(matches!(error, Err(StructureError::Codec(_))), "{count}");
    }
}
