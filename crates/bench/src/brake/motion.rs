//! The simulated robot's motion in closed form, and when it meets the light.
//!
//! The robot holds its speed until the command to stop arrives and then slows down evenly, so that where it comes to
//! stand follows from the instant of the command alone. `peers/brake` moves its camera by the same formulas.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The paper's speed, in metres a second.
pub const SPEED: f64 = 0.60;
/// How the driving robot slows down, in m/s².
pub const DECELERATION: f64 = 0.5;
/// How fast the robot turns on the spot, in degrees a second; the paper does not say.
pub const TURN: f64 = 90.0;
/// How the turning robot slows down, in degrees/s².
pub const TURN_DECELERATION: f64 = 180.0;
/// Focal length of the camera in pixels: 60 degrees over 1920 pixels.
pub const FOCAL: f64 = 1662.8;

/// The paper's two applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Application {
    /// Driving on; the red light is switched on when the robot crosses a line (Fig. 1 and 10).
    Straight,
    /// Turning on the spot; the red light comes into view (Fig. 11).
    Turn,
}

impl Application {
    /// As in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Application::Straight => "straight",
            Application::Turn => "turn",
        }
    }
}

/// Metres that the driving robot covers in `seconds` at full speed.
pub fn driven(seconds: f64) -> f64 {
    SPEED * seconds
}

/// Metres and seconds from the command's arrival until the driving robot stands: v²/2a and v/a.
pub fn braking() -> (f64, f64) {
    (SPEED * SPEED / (2.0 * DECELERATION), SPEED / DECELERATION)
}

/// Degrees and seconds from the command's arrival until the turning robot stands.
pub fn turn_braking() -> (f64, f64) {
    (TURN * TURN / (2.0 * TURN_DECELERATION), TURN / TURN_DECELERATION)
}

/// Whether a lamp that stands in `column` can be recognized in a region of interest `width` pixels wide in the image's
/// centre: what is looked for lies wholly inside.
pub fn in_region(column: i32, width: u32) -> bool {
    (column - super::scene::WIDTH as i32 / 2).abs() <= (width as i32 - super::scene::TEMPLATE as i32) / 2
}

/// Degrees from the light at which that begins and ends; columns are rounded, which gives half a pixel more.
pub fn entry_degrees(width: u32) -> f64 {
    let half = (f64::from(width) - super::scene::TEMPLATE as f64) / 2.0 + 0.5;
    (half / FOCAL).atan() * 180.0 / PI
}

/// Where the light stands in the image, in pixels from the left, seen `degrees` past it; `None` if it is not before
/// the camera.
pub fn column(degrees: f64) -> Option<i32> {
    let degrees = wrap(degrees);
    let center = super::scene::WIDTH as f64 / 2.0;
    (degrees.abs() < 60.0).then(|| (center + FOCAL * (degrees * PI / 180.0).tan()).round() as i32)
}

/// From -180 up to 180 degrees.
pub fn wrap(degrees: f64) -> f64 {
    (degrees + 180.0).rem_euclid(360.0) - 180.0
}

/// Whole turns between the first view of the light and `degrees` past it.
pub fn missed_revolutions(degrees: f64) -> u32 {
    ((degrees + 180.0) / 360.0).floor().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a robot that brakes evenly stands, by small steps.
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
