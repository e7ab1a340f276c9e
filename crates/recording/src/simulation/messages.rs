//! The three messages in ROS 1 serialization: packed, little-endian, strings and arrays after a 32-bit count.

use stats::Time;

use super::lidar;
use super::world::Pose;

/// Frames fixed to the robot: name, parent, position.
const FIXED: &[(&str, &str, [f64; 3])] = &[
    ("base_laser", "base_link", [lidar::MOUNT, 0.0, 0.2]),
    ("camera_link", "base_link", [0.08, 0.0, 0.95]),
    ("camera_optical", "camera_link", [0.0, 0.0, 0.0]),
    ("wheel_left", "base_link", [0.0, 0.16, 0.03]),
    ("wheel_right", "base_link", [0.0, -0.16, 0.03]),
    ("caster_front", "base_link", [0.13, 0.0, 0.01]),
    ("caster_back", "base_link", [-0.13, 0.0, 0.01]),
    ("gyro_link", "base_link", [0.0, 0.0, 0.06]),
];

pub(super) fn laser_scan(sequence: u32, time: Time, ranges: &[f32]) -> Vec<u8> {
    let mut out = Out::default();
    out.header(sequence, time, "base_laser");
    let increment = 2.0 * lidar::HALF_ANGLE / (lidar::BEAMS - 1) as f64;
    let scan_time = 1.0 / 30.0;
    for value in [
        -lidar::HALF_ANGLE,
        lidar::HALF_ANGLE,
        increment,
        scan_time * increment / std::f64::consts::TAU,
        scan_time,
        lidar::RANGE_MIN,
        lidar::RANGE_MAX,
    ] {
        out.bytes(&(value as f32).to_le_bytes());
    }
    out.u32(ranges.len() as u32);
    for range in ranges {
        out.bytes(&range.to_le_bytes());
    }
    out.u32(0);
    out.0
}

pub(super) fn compressed_image(sequence: u32, time: Time, jpeg: &[u8]) -> Vec<u8> {
    let mut out = Out::default();
    out.header(sequence, time, "camera_optical");
    out.string(b"jpeg");
    out.string(jpeg);
    out.0
}

/// The odometry; every eighth message also contains its correction and the robot's fixed frames.
pub(super) fn transforms(sequence: u64, time: Time, odometry: Pose, truth: Pose) -> Vec<u8> {
    let mut out = Out::default();
    let full = sequence % 8 == 4;
    out.u32(if full { 2 + FIXED.len() as u32 } else { 1 });
    out.transform(
        sequence,
        time,
        "odom",
        "base_link",
        [odometry.x, odometry.y, 0.0],
        odometry.heading,
    );
    if full {
        let turn = truth.heading - odometry.heading;
        let (sin, cos) = turn.sin_cos();
        let at = [
            truth.x - cos * odometry.x + sin * odometry.y,
            truth.y - sin * odometry.x - cos * odometry.y,
            0.0,
        ];
        out.transform(sequence, time, "map", "odom", at, turn);
        for (child, parent, at) in FIXED {
            out.transform(sequence, time, parent, child, *at, 0.0);
        }
    }
    out.0
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.bytes(bytes);
    }

    fn header(&mut self, sequence: u32, time: Time, frame: &str) {
        self.u32(sequence);
        self.u32((time.0 / 1_000_000_000) as u32);
        self.u32((time.0 % 1_000_000_000) as u32);
        self.string(frame.as_bytes());
    }

    fn transform(&mut self, sequence: u64, time: Time, parent: &str, child: &str, at: [f64; 3], turn: f64) {
        self.header(sequence as u32, time, parent);
        self.string(child.as_bytes());
        let (sin, cos) = (turn / 2.0).sin_cos();
        for value in [at[0], at[1], at[2], 0.0, 0.0, sin, cos] {
            self.bytes(&value.to_le_bytes());
        }
    }
}
