//! Driving of the rover: two driven wheels, bounded speeds and accelerations.

use super::room;
use std::collections::VecDeque;
use std::f64::consts::PI;

/// Metres and radians a second, forwards and about the vertical axis.
pub(crate) const MAX_SPEED: f64 = 1.5;
pub(crate) const MAX_TURN: f64 = 2.0;
/// Metres and radians a second squared.
const ACCELERATION: f64 = 1.0;
const TURN_ACCELERATION: f64 = 4.0;
/// Radius of the rover in metres.
pub(super) const RADIUS: f64 = 0.3;
/// Metres and radians from a waypoint within which it is reached; and the distance if the next one follows without a
/// stop.
const NEAR: f64 = 0.02;
const NEAR_TURN: f64 = 0.01;
const PASSING: f64 = 0.15;

/// A place in the room and where the front points: metres, radians from the x axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Place {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) heading: f64,
}

/// A place to drive to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waypoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Heading to turn to on arrival.
    pub(crate) heading: Option<f64>,
    /// Speed on the way and at the waypoint, metres a second.
    pub(crate) speed: f64,
    pub(crate) end_speed: f64,
}

/// Current goal of the rover.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Goal {
    Stand,
    /// Speed forwards and about the vertical axis, until the next goal.
    Twist(f64, f64),
    /// The next waypoint first. A path that repeats appends each reached waypoint to its end.
    Path {
        points: VecDeque<Waypoint>,
        repeats: bool,
    },
    /// Twists with the seconds left for each.
    Twists(VecDeque<(f64, f64, f64)>),
}

/// Event of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Happened {
    Reached { x: f64, y: f64, left: usize },
    Blocked,
    Done,
}

#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) place: Place,
    /// Metres and radians a second.
    pub(crate) speed: f64,
    pub(crate) turn: f64,
    /// Metres and radians a second squared, over the last step.
    pub(crate) acceleration: (f64, f64),
    pub(crate) goal: Goal,
    pub(crate) blocked: bool,
    /// Distance driven in metres.
    pub(crate) driven: f64,
    /// Whether it is at the waypoint, turning to its heading.
    turning: bool,
}

impl Base {
    pub(super) fn new() -> Self {
        Base {
            place: Place::default(),
            speed: 0.0,
            turn: 0.0,
            acceleration: (0.0, 0.0),
            goal: Goal::Stand,
            blocked: false,
            driven: 0.0,
            turning: false,
        }
    }

    pub(super) fn aim(&mut self, goal: Goal) {
        self.goal = goal;
        self.turning = false;
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.speed != 0.0 || self.turn != 0.0
    }

    /// Drives for `dt` seconds; at most some hundredths at a time.
    pub(super) fn step(&mut self, dt: f64) -> Option<Happened> {
        let mut happened = self.arrive();
        let (speed, turn) = self.wanted(dt);
        let (before, turn_before) = (self.speed, self.turn);
        self.speed = toward(self.speed, speed, ACCELERATION * dt);
        self.turn = toward(self.turn, turn, TURN_ACCELERATION * dt);
        let heading = self.place.heading + self.turn * dt / 2.0;
        let (x, y) = (
            self.place.x + self.speed * heading.cos() * dt,
            self.place.y + self.speed * heading.sin() * dt,
        );
        let hits = room::touches(x, y, RADIUS);
        if hits {
            self.speed = 0.0;
            if !self.blocked {
                happened = Some(Happened::Blocked);
            }
            if matches!(self.goal, Goal::Path { .. } | Goal::Twists(_)) {
                self.aim(Goal::Stand);
            }
        } else {
            self.driven += (self.speed * dt).abs();
            (self.place.x, self.place.y) = (x, y);
        }
        // It stays blocked until it drives away.
        self.blocked = hits || (self.blocked && self.speed == 0.0);
        self.place.heading = wrap(self.place.heading + self.turn * dt);
        self.acceleration = ((self.speed - before) / dt, (self.turn - turn_before) / dt);
        happened
    }

    /// Removes what is done.
    fn arrive(&mut self) -> Option<Happened> {
        let place = self.place;
        match &mut self.goal {
            Goal::Path { points, repeats } => {
                let next = *points.front()?;
                let stops = next.end_speed <= 0.0;
                let near = if stops { NEAR } else { PASSING };
                if !self.turning && (next.x - place.x).hypot(next.y - place.y) > near {
                    return None;
                }
                self.turning = true;
                let turned = |heading: f64| wrap(heading - place.heading).abs() < NEAR_TURN;
                if stops && !next.heading.is_none_or(turned) {
                    return None;
                }
                self.turning = false;
                points.pop_front();
                if *repeats {
                    points.push_back(next);
                }
                let left = points.len();
                if left == 0 {
                    self.goal = Goal::Stand;
                }
                let (x, y) = (next.x, next.y);
                Some(Happened::Reached { x, y, left })
            }
            Goal::Twists(twists) if twists.is_empty() => {
                self.goal = Goal::Stand;
                Some(Happened::Done)
            }
            _ => None,
        }
    }

    fn wanted(&mut self, dt: f64) -> (f64, f64) {
        match &mut self.goal {
            Goal::Stand => (0.0, 0.0),
            Goal::Twist(speed, turn) => (*speed, *turn),
            Goal::Twists(twists) => {
                let Some((speed, turn, left)) = twists.front_mut() else {
                    return (0.0, 0.0);
                };
                let wanted = (*speed, *turn);
                *left -= dt;
                if *left <= 0.0 {
                    twists.pop_front();
                }
                wanted
            }
            Goal::Path { points, .. } => match points.front() {
                Some(point) if self.turning => {
                    let off = point.heading.map_or(0.0, |h| wrap(h - self.place.heading));
                    (0.0, turn_for(off))
                }
                Some(point) => toward_point(&self.place, point),
                None => (0.0, 0.0),
            },
        }
    }
}

/// Turns to the point, and drives as fast as still allows it to stop there.
fn toward_point(place: &Place, point: &Waypoint) -> (f64, f64) {
    let (dx, dy) = (point.x - place.x, point.y - place.y);
    let off = wrap(dy.atan2(dx) - place.heading);
    let slow = (point.end_speed.powi(2) + 1.6 * ACCELERATION * dx.hypot(dy)).sqrt();
    let speed = if off.abs() < 0.6 {
        point.speed.min(slow) * off.cos()
    } else {
        0.0
    };
    (speed, turn_for(off))
}

fn turn_for(off: f64) -> f64 {
    let fastest = (TURN_ACCELERATION * off.abs()).sqrt().min(4.0 * off.abs());
    fastest.min(MAX_TURN).copysign(off)
}

fn toward(now: f64, wanted: f64, most: f64) -> f64 {
    now + (wanted - now).clamp(-most, most)
}

/// The same angle, from -pi to pi.
pub(crate) fn wrap(angle: f64) -> f64 {
    let turned = (angle + PI).rem_euclid(2.0 * PI) - PI;
    if turned.is_finite() { turned } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(base: &mut Base, seconds: f64) -> Vec<Happened> {
        let steps = (seconds / 0.01).round() as usize;
        (0..steps).filter_map(|_| base.step(0.01)).collect()
    }

    fn point(x: f64, y: f64, heading: Option<f64>) -> Waypoint {
        Waypoint {
            x,
            y,
            heading,
            speed: 1.0,
            end_speed: 0.0,
        }
    }

    #[test]
    fn speed_is_reached_by_bounded_acceleration() {
        let mut base = Base::new();
        base.aim(Goal::Twist(0.5, 0.0));
        run(&mut base, 0.25);
        assert!((base.speed - 0.25).abs() < 1e-9, "{base:?}");
        run(&mut base, 1.75);
        // Half a second until it reaches 0.5 m/s: 0.125 m; then 1.5 s at that speed.
        assert!(
            (base.place.x - 0.875).abs() < 0.01 && base.place.y == 0.0,
            "{base:?}"
        );
        base.aim(Goal::Stand);
        run(&mut base, 0.6);
        assert!(!base.is_moving() && (base.place.x - 1.0).abs() < 0.01, "{base:?}");
    }

    #[test]
    fn a_turning_twist_drives_a_circle() {
        let mut base = Base::new();
        base.aim(Goal::Twist(0.5, 1.0));
        run(&mut base, 2.0 * PI + 1.0);
        // Radius 0.5, about (0, 0.5) or near it: it turned before it reached its speed.
        let radius = base.place.x.hypot(base.place.y - 0.5);
        assert!((0.3..0.8).contains(&radius), "{base:?}");
    }

    #[test]
    fn waypoints_are_reached_with_their_heading_one_after_the_other() {
        let mut base = Base::new();
        let points = [point(1.0, 1.0, None), point(-1.0, 1.5, Some(-PI / 2.0))];
        base.aim(Goal::Path {
            points: points.into(),
            repeats: false,
        });
        let happened = run(&mut base, 15.0);
        let expected = [(1.0, 1.0, 1), (-1.0, 1.5, 0)].map(|(x, y, left)| Happened::Reached { x, y, left });
        assert_eq!(happened, expected, "{base:?}");
        assert!(base.goal == Goal::Stand && !base.is_moving(), "{base:?}");
        let Place { x, y, heading } = base.place;
        assert!(
            (x + 1.0).hypot(y - 1.5) < 0.05 && (heading + PI / 2.0).abs() < 0.05,
            "{base:?}"
        );
    }

    #[test]
    fn a_path_that_repeats_goes_on() {
        let mut base = Base::new();
        let passing = |x, y| Waypoint {
            end_speed: 1.0,
            ..point(x, y, None)
        };
        let points = [passing(1.0, 0.0), passing(1.0, 1.0), passing(0.0, 1.0)];
        base.aim(Goal::Path {
            points: points.into(),
            repeats: true,
        });
        assert!(run(&mut base, 30.0).len() > 6);
    }

    #[test]
    fn walls_stop_it_and_it_can_back_off() {
        let mut base = Base::new();
        base.aim(Goal::Path {
            points: [point(20.0, 0.0, None)].into(),
            repeats: false,
        });
        assert_eq!(run(&mut base, 10.0), [Happened::Blocked]);
        assert!(
            base.blocked && base.speed == 0.0 && base.goal == Goal::Stand,
            "{base:?}"
        );
        assert!((5.5..=5.7).contains(&base.place.x), "{base:?}");
        base.aim(Goal::Twist(-0.5, 0.0));
        run(&mut base, 2.0);
        assert!(!base.blocked && base.place.x < 5.0, "{base:?}");
    }

    #[test]
    fn twists_end() {
        let mut base = Base::new();
        base.aim(Goal::Twists([(0.0, 1.0, 0.5), (0.0, -1.0, 0.5)].into()));
        assert_eq!(run(&mut base, 2.0), [Happened::Done]);
        assert!(base.place.heading.abs() < 0.3 && !base.is_moving(), "{base:?}");
    }
}
