//! The simulated robot's camera: an image drawn by casting rays.

use super::sim::base::Place;
use super::sim::room;

/// Width and height in pixels.
pub(super) const WIDTH: usize = 64;
pub(super) const HEIGHT: usize = 48;
/// Field of view in radians, from the left edge to the right.
pub(super) const VIEW: f64 = 1.05;
/// Height of the walls above and below the camera, in metres.
const WALL: f64 = 0.6;

/// Distance of the wall in each column, in metres along the camera's axis.
fn columns(place: &Place) -> [f64; WIDTH] {
    std::array::from_fn(|column| {
        let off = VIEW * (0.5 - (column as f64 + 0.5) / WIDTH as f64);
        room::distance(place.x, place.y, place.heading + off) * off.cos()
    })
}

/// Rows that a wall at this distance covers.
fn rows(distance: f64) -> std::ops::Range<usize> {
    let half = WALL / distance.max(0.05) * focal();
    let middle = HEIGHT as f64 / 2.0;
    let clamp = |row: f64| row.clamp(0.0, HEIGHT as f64) as usize;
    clamp(middle - half)..clamp(middle + half)
}

/// Focal length in pixels.
pub(super) fn focal() -> f64 {
    WIDTH as f64 / 2.0 / (VIEW / 2.0).tan()
}

/// RGB, by rows from the top.
pub(super) fn colour(place: &Place, headlights: bool) -> Vec<u8> {
    let light = if headlights { 1.0 } else { 0.6 };
    let columns = columns(place);
    let mut data = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for row in 0..HEIGHT {
        for distance in columns {
            let covered = rows(distance);
            let colour = if covered.contains(&row) {
                let shade = light * 230.0 / (1.0 + 0.25 * distance);
                [shade, shade * 0.8, shade * 0.6]
            } else if row < covered.start {
                [60.0 * light, 70.0 * light, 90.0 * light]
            } else {
                [80.0 * light, 75.0 * light, 65.0 * light]
            };
            data.extend(colour.map(|c| c as u8));
        }
    }
    data
}

/// Metres as 32-bit floats, least significant byte first, by rows from the top; not a number where there is no wall.
pub(super) fn depth(place: &Place) -> Vec<u8> {
    let columns = columns(place);
    let pixels = (0..HEIGHT).flat_map(|row| {
        columns.map(|d| {
            if rows(d).contains(&row) {
                d as f32
            } else {
                f32::NAN
            }
        })
    });
    pixels.flat_map(f32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_walls_are_large_and_headlights_make_it_brighter() {
        let far = Place::default();
        let near = Place { x: 5.0, ..far };
        assert!(rows(1.0).len() > rows(6.0).len());
        let sum = |data: &[u8]| data.iter().map(|b| u64::from(*b)).sum::<u64>();
        assert!(sum(&colour(&far, true)) > sum(&colour(&far, false)));
        assert_eq!(colour(&near, true).len(), WIDTH * HEIGHT * 3);
        assert_eq!(depth(&near).len(), WIDTH * HEIGHT * 4);
    }
}
