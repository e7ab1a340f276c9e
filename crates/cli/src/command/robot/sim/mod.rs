//! A rover with an arm in a room: its motion, without clock, input or output. Time advances by [`Rover::step`],
//! randomness comes from a seed.

pub(super) mod arm;
pub(super) mod base;
mod noise;
pub(super) mod room;

use arm::{Arm, JointGoal};
use base::{Base, Goal, Happened, MAX_SPEED, MAX_TURN, Waypoint};
pub(super) use noise::Noise;

/// Longest integration step in seconds.
const STEP: f64 = 0.01;
/// Battery drain in percent a second while standing, and in addition per metre.
const IDLE_DRAIN: f64 = 0.001;
const DRIVE_DRAIN: f64 = 0.01;
/// Most waypoints of a path.
const MOST_POINTS: usize = 10_000;
/// Duration of each twist of a list, in seconds.
const EACH_TWIST: f64 = 1.0;

/// The rover.
#[derive(Clone, Debug)]
pub(super) struct Rover {
    pub(super) base: Base,
    pub(super) arm: Arm,
    pub(super) headlights: bool,
    /// Battery in percent.
    pub(super) battery: f64,
    /// Simulated time in seconds.
    pub(super) time: f64,
    /// Name of the goal, for people: `standing`, `going to a pose`.
    pub(super) activity: &'static str,
    happened: Vec<Happened>,
}

impl Rover {
    pub(super) fn new() -> Self {
        Rover {
            base: Base::new(),
            arm: Arm::new(),
            headlights: false,
            battery: 100.0,
            time: 0.0,
            activity: "standing",
            happened: Vec::new(),
        }
    }

    /// Advances the simulation by this time.
    pub(super) fn step(&mut self, seconds: f64) {
        let steps = (seconds / STEP).ceil().max(1.0);
        let dt = seconds / steps;
        if dt <= 0.0 {
            return;
        }
        for _ in 0..steps as usize {
            self.arm.step(dt);
            self.happened.extend(self.base.step(dt));
            let drain = IDLE_DRAIN + DRIVE_DRAIN * self.base.speed.abs();
            self.battery = (self.battery - drain * dt).max(0.0);
            self.time += dt;
        }
        if self.base.goal == Goal::Stand {
            self.activity = "standing";
        }
    }

    /// Events since the last call.
    pub(super) fn take_happened(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.happened)
    }

    /// Linear and angular velocity: x, y, z in metres a second, and about them in radians a second.
    pub(super) fn twist(&mut self, linear: [f64; 3], angular: [f64; 3]) -> Result<(), String> {
        let (speed, turn) = planar(linear, angular)?;
        if speed == 0.0 && turn == 0.0 {
            self.stop();
        } else {
            self.aim(Goal::Twist(speed, turn), "driving by twist");
        }
        Ok(())
    }

    pub(super) fn twists(&mut self, twists: &[([f64; 3], [f64; 3])]) -> Result<(), String> {
        let twists = some("twists", twists)?.iter().map(|(linear, angular)| {
            let (speed, turn) = planar(*linear, *angular)?;
            Ok((speed, turn, EACH_TWIST))
        });
        let twists = twists.collect::<Result<_, String>>()?;
        self.aim(Goal::Twists(twists), "driving a list of twists");
        Ok(())
    }

    /// Drives to the waypoints in order, again and again if it `repeats`.
    pub(super) fn path(
        &mut self,
        points: &[Waypoint],
        repeats: bool,
        activity: &'static str,
    ) -> Result<(), String> {
        for point in some("waypoints", points)? {
            let Waypoint {
                x,
                y,
                heading,
                speed,
                end_speed,
            } = *point;
            if !(x.is_finite() && y.is_finite() && heading.is_none_or(f64::is_finite)) {
                return Err("a waypoint is not a finite place".into());
            }
            if room::touches(x, y, base::RADIUS) {
                return Err(format!(
                    "({x}, {y}) is in a wall or a pillar, or so near that the rover touches it"
                ));
            }
            if !(speed > 0.0 && speed <= MAX_SPEED && (0.0..=MAX_SPEED).contains(&end_speed)) {
                return Err(format!(
                    "drives at most {MAX_SPEED} m/s, forwards, not {speed} and {end_speed}"
                ));
            }
        }
        let points = points.iter().copied().collect();
        self.aim(Goal::Path { points, repeats }, activity);
        Ok(())
    }

    pub(super) fn joints(&mut self, goals: &[(&str, JointGoal)]) -> Result<(), String> {
        self.arm.aim(some("joints", goals)?)
    }

    pub(super) fn home(&mut self) {
        self.arm.home();
    }

    /// Slows the base down.
    pub(super) fn stop(&mut self) {
        self.aim(Goal::Stand, "standing");
    }

    /// Slows the joints down.
    pub(super) fn hold(&mut self) {
        self.arm.hold();
    }

    fn aim(&mut self, goal: Goal, activity: &'static str) {
        self.activity = activity;
        self.base.aim(goal);
    }
}

/// The rover has two driven wheels: a motion that it cannot perform is refused, not approximated.
fn planar(linear: [f64; 3], angular: [f64; 3]) -> Result<(f64, f64), String> {
    if linear.iter().chain(&angular).any(|v| !v.is_finite()) {
        return Err("the twist has values that are not finite numbers".into());
    }
    let ([speed, sideways, up], [roll, pitch, turn]) = (linear, angular);
    if [sideways, up, roll, pitch].iter().any(|v| *v != 0.0) {
        return Err(
            "the rover drives forwards and turns: only linear.x and angular.z may differ from 0".into(),
        );
    }
    if speed.abs() > MAX_SPEED || turn.abs() > MAX_TURN {
        return Err(format!("too fast: at most {MAX_SPEED} m/s and {MAX_TURN} rad/s"));
    }
    Ok((speed, turn))
}

fn some<'a, T>(what: &str, items: &'a [T]) -> Result<&'a [T], String> {
    match items.len() {
        0 => Err(format!("there are no {what}")),
        n if n > MOST_POINTS => Err(format!("{n} {what}, but at most {MOST_POINTS} are allowed")),
        _ => Ok(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: [f64; 3] = [0.0; 3];

    #[test]
    fn twists_that_two_wheels_cannot_do_are_refused() {
        let mut rover = Rover::new();
        for (linear, angular, word) in [
            ([0.0, 0.5, 0.0], ZERO, "linear.x"),
            (ZERO, [0.1, 0.0, 0.0], "angular.z"),
            ([9.0, 0.0, 0.0], ZERO, "too fast"),
            ([f64::NAN, 0.0, 0.0], ZERO, "finite"),
        ] {
            let refused = rover.twist(linear, angular);
            assert!(refused.as_ref().is_err_and(|e| e.contains(word)), "{refused:?}");
        }
        rover.step(1.0);
        assert!(rover.base.driven == 0.0 && rover.activity == "standing");
    }

    #[test]
    fn a_twist_moves_it_and_a_zero_one_stops_it() {
        let mut rover = Rover::new();
        rover.twist([0.5, 0.0, 0.0], ZERO).expect("good");
        rover.step(2.0);
        assert!(
            rover.base.place.x > 0.8 && rover.activity == "driving by twist",
            "{rover:?}"
        );
        rover.twist(ZERO, ZERO).expect("good");
        rover.step(1.0);
        assert!(!rover.base.is_moving() && rover.battery < 100.0, "{rover:?}");
    }

    #[test]
    fn paths_into_walls_and_without_end_are_refused() {
        let mut rover = Rover::new();
        let point = |x, speed| Waypoint {
            x,
            y: 0.0,
            heading: None,
            speed,
            end_speed: 0.0,
        };
        assert!(rover.path(&[], false, "x").is_err());
        for bad in [
            point(7.0, 1.0),
            point(f64::INFINITY, 1.0),
            point(1.0, 0.0),
            point(1.0, 3.0),
            point(1.0, f64::NAN),
        ] {
            assert!(
                rover.path(&[point(1.0, 1.0), bad], false, "x").is_err(),
                "{bad:?}"
            );
        }
        assert!(
            rover
                .path(&vec![point(1.0, 1.0); MOST_POINTS + 1], false, "x")
                .is_err()
        );
        rover.path(&[point(1.0, 1.0)], false, "going").expect("good");
        rover.step(6.0);
        assert_eq!(
            rover.take_happened(),
            [Happened::Reached {
                x: 1.0,
                y: 0.0,
                left: 0
            }]
        );
        assert_eq!((rover.activity, rover.take_happened().len()), ("standing", 0));
    }

    #[test]
    fn the_same_seed_gives_the_same_noise() {
        let draw = |seed| {
            let mut noise = Noise::new(seed);
            [(); 8].map(|()| noise.normal(1.0))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let mut noise = Noise::new(1);
        let mean = (0..10_000).map(|_| noise.normal(1.0)).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05, "{mean}");
    }
}
