//! The laser scanner: 640 rays over 240 degrees, at 0.25 m above the floor.

use super::random::Random;
use super::world::{Pose, World};

pub(super) const BEAMS: usize = 640;
/// First and last angle, to the right and left of straight ahead.
pub(super) const HALF_ANGLE: f64 = 2.094_395_102_393_195;
pub(super) const RANGE_MIN: f64 = 0.06;
pub(super) const RANGE_MAX: f64 = 7.5;
/// Distance of the scanner in front of the robot's centre.
pub(super) const MOUNT: f64 = 0.12;

/// Ranges in metres; a range beyond the maximum is infinite (REP 117).
pub(super) fn scan(world: &World, pose: Pose, seconds: f64, random: &mut Random) -> Vec<f32> {
    let (sin, cos) = pose.heading.sin_cos();
    let (x, y) = (pose.x + MOUNT * cos, pose.y + MOUNT * sin);
    let beam = |index: usize| {
        let angle = pose.heading - HALF_ANGLE + 2.0 * HALF_ANGLE * index as f64 / (BEAMS - 1) as f64;
        let range = world.range(x, y, angle, seconds);
        // Noise grows with the distance; some rays do not return.
        let measured = range + random.normal() * (0.006 + 0.003 * range);
        let lost = random.bits() & 0x1ff == 0;
        if lost || measured > RANGE_MAX {
            f32::INFINITY
        } else {
            measured.max(RANGE_MIN) as f32
        }
    };
    (0..BEAMS).map(beam).collect()
}
