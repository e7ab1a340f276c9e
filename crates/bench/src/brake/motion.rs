//! The simulated robot's motion in closed form, and the time at which it meets the light.
//!
//! The robot keeps its speed until the command to stop arrives, and then brakes with constant deceleration; so its
//! final position depends only on the time of the command. `peers/brake` moves its camera by the same formulas.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The paper's speed, in metres per second.
pub const SPEED: f64 = 0.60;
/// Deceleration of the driving robot, in m/s².
pub const DECELERATION: f64 = 0.5;
/// Speed of a turn on the spot, in degrees per second; the paper does not state it.
pub const TURN: f64 = 90.0;
/// Deceleration of the turning robot, in degrees/s².
pub const TURN_DECELERATION: f64 = 180.0;
/// Focal length of the camera in pixels: 60 degrees over 1920 pixels.
pub const FOCAL: f64 = 1662.8;

/// The paper's two applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Application {
    /// Driving straight on; the red light is switched on when the robot crosses a line (Fig. 1 and 10).
    Straight,
    /// Turning on the spot; the red light comes into view (Fig. 11).
    Turn,
}

impl Application {
    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Application::Straight => "straight",
            Application::Turn => "turn",
        }
    }
}

/// Returns the metres that the driving robot covers in `seconds` at full speed.
pub fn driven(seconds: f64) -> f64 {
    SPEED * seconds
}

/// Returns metres and seconds from the command's arrival until the driving robot stands: v²/2a and v/a.
pub fn braking() -> (f64, f64) {
    (SPEED * SPEED / (2.0 * DECELERATION), SPEED / DECELERATION)
}

/// Returns degrees and seconds from the command's arrival until the turning robot stands.
pub fn turn_braking() -> (f64, f64) {
    (TURN * TURN / (2.0 * TURN_DECELERATION), TURN / TURN_DECELERATION)
}

/// Returns whether a lamp in `column` can be recognized in a region of interest `width` pixels wide in the image's
/// centre: the template must be completely inside.
pub fn in_region(column: i32, width: u32) -> bool {
    (column - super::scene::WIDTH as i32 / 2).abs() <= (width as i32 - super::scene::TEMPLATE as i32) / 2
}

/// Returns the degrees from the light at which that begins and ends; columns are rounded, which adds half a pixel.
pub fn entry_degrees(width: u32) -> f64 {
    let half = (f64::from(width) - super::scene::TEMPLATE as f64) / 2.0 + 0.5;
    (half / FOCAL).atan() * 180.0 / PI
}

/// Returns the column of the light in the image, in pixels from the left, seen `degrees` past it; `None` if it is not
/// in front of the camera.
pub fn column(degrees: f64) -> Option<i32> {
    let degrees = wrap(degrees);
    let center = super::scene::WIDTH as f64 / 2.0;
    (degrees.abs() < 60.0).then(|| (center + FOCAL * (degrees * PI / 180.0).tan()).round() as i32)
}

/// Wraps an angle into -180 up to 180 degrees.
pub fn wrap(degrees: f64) -> f64 {
    (degrees + 180.0).rem_euclid(360.0) - 180.0
}

/// Returns the whole turns between the first view of the light and `degrees` past it.
pub fn missed_revolutions(degrees: f64) -> u32 {
    ((degrees + 180.0) / 360.0).floor().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrates the path of a robot that brakes evenly, in small steps.
    fn integrate(mut speed: f64, deceleration: f64) -> (f64, f64) {
        let (mut way, mut time, step) = (0.0, 0.0, 1e-5);
        while speed > 0.0 {
            way += speed * step;
            speed -= deceleration * step;
            time += step;
        }
        (way, time)
    }

    #[test]
    fn closed_forms_agree_with_small_steps() {
        for (closed, steps) in [
            (braking(), integrate(SPEED, DECELERATION)),
            (turn_braking(), integrate(TURN, TURN_DECELERATION)),
        ] {
            assert!((closed.0 / steps.0 - 1.0).abs() < 1e-3, "{closed:?} {steps:?}");
            assert!((closed.1 / steps.1 - 1.0).abs() < 1e-3, "{closed:?} {steps:?}");
        }
        assert!((driven(0.1) - 0.06).abs() < 1e-12);
    }

    #[test]
    fn the_light_crosses_the_image_once_a_turn() {
        assert_eq!(column(0.0), Some(960));
        assert_eq!(column(360.0), column(0.0));
        assert_eq!(column(90.0), None);
        assert_eq!(column(-30.0), Some(0));
        let fits = |d: f64| column(d).is_some_and(|c| in_region(c, 320));
        let (inside, outside) = (entry_degrees(320) - 1e-6, entry_degrees(320) + 1e-6);
        assert!(fits(-inside) && fits(inside) && !fits(-outside) && !fits(outside));
    }

    #[test]
    fn a_light_missed_costs_a_revolution() {
        assert_eq!(missed_revolutions(-5.0), 0);
        assert_eq!(missed_revolutions(30.0), 0);
        assert_eq!(missed_revolutions(355.0), 1);
        assert_eq!(missed_revolutions(750.0), 2);
        assert_eq!(wrap(355.0), -5.0);
    }
}
