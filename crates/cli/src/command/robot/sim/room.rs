//! The room in which the rover drives, with round pillars, seen from above.

/// Distance from the middle to the walls in x and y, in metres.
const HALF: (f64, f64) = (6.0, 4.0);
/// Middle and radius, metres.
const PILLARS: [(f64, f64, f64); 3] = [(2.5, 1.5, 0.5), (-2.0, -1.5, 0.7), (3.5, -2.0, 0.4)];

/// Whether a disc of this radius touches a wall or a pillar.
pub(crate) fn touches(x: f64, y: f64, radius: f64) -> bool {
    let wall = x.abs() + radius > HALF.0 || y.abs() + radius > HALF.1;
    let pillar = |&(px, py, r): &(f64, f64, f64)| (x - px).hypot(y - py) < r + radius;
    wall || PILLARS.iter().any(pillar)
}

/// Distance in metres from a place in the room to the first obstacle in this direction (radians).
pub(crate) fn distance(x: f64, y: f64, angle: f64) -> f64 {
    let (dy, dx) = angle.sin_cos();
    let to_wall = |at: f64, along: f64, half: f64| match along {
        0.0 => f64::INFINITY,
        _ => (half.copysign(along) - at) / along,
    };
    let wall = to_wall(x, dx, HALF.0).min(to_wall(y, dy, HALF.1));
    let pillars = PILLARS.iter().filter_map(|&(px, py, r)| {
        let (cx, cy) = (px - x, py - y);
        let middle = cx * dx + cy * dy;
        let half = (r * r - (cx * dy - cy * dx).powi(2)).max(-1.0);
        (half >= 0.0 && middle > 0.0).then(|| middle - half.sqrt())
    });
    pillars.fold(wall, f64::min).max(0.0)
}

/// Width and height in metres, and the corner with the lowest coordinates.
pub(crate) fn bounds() -> ((f64, f64), (f64, f64)) {
    ((2.0 * HALF.0, 2.0 * HALF.1), (-HALF.0, -HALF.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_PI_2, PI};

    #[test]
    fn rays_meet_walls_and_pillars() {
        for (angle, expected) in [(0.0, 6.0), (FRAC_PI_2, 4.0), (PI, 6.0), (-FRAC_PI_2, 4.0)] {
            assert!((distance(0.0, 0.0, angle) - expected).abs() < 1e-9, "{angle}");
        }
        // Straight at the first pillar, from 2 m before its middle, and away from it.
        assert!((distance(0.5, 1.5, 0.0) - 1.5).abs() < 1e-9);
        assert!((distance(0.5, 1.5, PI) - 6.5).abs() < 1e-9);
        assert!((distance(2.5, 0.0, FRAC_PI_2) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_disc_touches_what_is_within_its_radius() {
        assert!(!touches(0.0, 0.0, 0.3));
        assert!(touches(5.8, 0.0, 0.3) && touches(0.0, -3.8, 0.3));
        assert!(touches(1.75, 1.5, 0.3) && !touches(1.65, 1.5, 0.3));
    }
}
