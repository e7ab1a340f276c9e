//! The room, its furniture, and the objects that move through it. Metres, radians, seconds; z is up.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::random::Random;

/// The room spans from the origin to here.
pub(super) const ROOM: (f64, f64) = (8.0, 6.0);
/// Height of its ceiling.
pub(super) const CEILING: f64 = 2.6;

/// Position and heading in the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pose {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) heading: f64,
}

/// Look of a surface; the camera has a texture for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skin {
    Wall(usize),
    Books,
    Wood,
    Cardboard,
    Fabric,
    Metal,
    Clay,
}

/// An upright box or cylinder on the floor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solid {
    pub(super) footprint: Footprint,
    pub(super) height: f64,
    pub(super) skin: Skin,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Footprint {
    /// From corner to corner.
    Rect(f64, f64, f64, f64),
    /// Centre and radius.
    Disc(f64, f64, f64),
}

/// Where a ray enters and leaves a footprint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    /// In lengths of the ray's direction.
    pub(super) enter: f64,
    pub(super) leave: f64,
    /// Distance along the face that the ray enters, in metres.
    pub(super) along: f64,
    /// The outward normal of that face.
    pub(super) normal: (f64, f64),
}

impl Footprint {
    pub(super) fn cross(&self, x: f64, y: f64, dx: f64, dy: f64) -> Option<Crossing> {
        match *self {
            Footprint::Rect(x0, y0, x1, y1) => {
                let (ax, bx) = slab(x, dx, x0, x1);
                let (ay, by) = slab(y, dy, y0, y1);
                let (enter, leave) = (ax.max(ay), bx.min(by));
                if enter >= leave || leave <= 0.0 {
                    return None;
                }
                let (along, normal) = if ax > ay {
                    (y + dy * enter, (-dx.signum(), 0.0))
                } else {
                    (x + dx * enter, (0.0, -dy.signum()))
                };
                Some(Crossing {
                    enter,
                    leave,
                    along,
                    normal,
                })
            }
            Footprint::Disc(cx, cy, r) => {
                let (ox, oy) = (x - cx, y - cy);
                let (a, b, c) = (dx * dx + dy * dy, ox * dx + oy * dy, ox * ox + oy * oy - r * r);
                let root = (b * b - a * c).sqrt();
                let (enter, leave) = ((-b - root) / a, (-b + root) / a);
                if root.is_nan() || leave <= 0.0 {
                    return None;
                }
                let normal = ((ox + dx * enter) / r, (oy + dy * enter) / r);
                Some(Crossing {
                    enter,
                    leave,
                    along: normal.1.atan2(normal.0) * r,
                    normal,
                })
            }
        }
    }

    /// Distance of a point from it; zero inside.
    pub(super) fn distance(&self, x: f64, y: f64) -> f64 {
        match *self {
            Footprint::Rect(x0, y0, x1, y1) => {
                (x0 - x).max(x - x1).max(0.0).hypot((y0 - y).max(y - y1).max(0.0))
            }
            Footprint::Disc(cx, cy, r) => ((x - cx).hypot(y - cy) - r).max(0.0),
        }
    }
}

fn slab(origin: f64, direction: f64, low: f64, high: f64) -> (f64, f64) {
    let (a, b) = ((low - origin) / direction, (high - origin) / direction);
    (a.min(b), a.max(b))
}

/// Where a ray from inside leaves the room: distance, wall (0: y = 0, 1: x = max, 2: y = max, 3: x = 0) and distance
/// along that wall.
pub(super) fn leave_room(x: f64, y: f64, dx: f64, dy: f64) -> (f64, usize, f64) {
    let time = |position: f64, direction: f64, end: f64| match direction {
        d if d > 0.0 => (end - position) / d,
        d if d < 0.0 => -position / d,
        _ => f64::INFINITY,
    };
    let (tx, ty) = (time(x, dx, ROOM.0), time(y, dy, ROOM.1));
    if tx < ty {
        (tx, if dx > 0.0 { 1 } else { 3 }, y + dy * tx)
    } else {
        (ty, if dy > 0.0 { 2 } else { 0 }, x + dx * ty)
    }
}

/// The furniture. The robot's loop runs between the island in the middle and the furniture at the walls.
pub(super) const FURNITURE: &[Solid] = &[
    // Kitchen island.
    Solid {
        footprint: Footprint::Rect(3.1, 2.55, 4.9, 3.35),
        height: 0.78,
        skin: Skin::Wood,
    },
    // A carton and a small one on the island's end of the room.
    Solid {
        footprint: Footprint::Rect(2.55, 2.7, 3.0, 3.15),
        height: 0.42,
        skin: Skin::Cardboard,
    },
    // Bookshelves.
    Solid {
        footprint: Footprint::Rect(0.0, 1.9, 0.34, 4.1),
        height: 2.05,
        skin: Skin::Books,
    },
    Solid {
        footprint: Footprint::Rect(2.5, 0.0, 4.1, 0.34),
        height: 1.3,
        skin: Skin::Books,
    },
    // Sofa: base, back and arms.
    Solid {
        footprint: Footprint::Rect(5.0, 0.25, 6.9, 0.85),
        height: 0.44,
        skin: Skin::Fabric,
    },
    Solid {
        footprint: Footprint::Rect(4.95, 0.02, 6.95, 0.25),
        height: 0.86,
        skin: Skin::Fabric,
    },
    Solid {
        footprint: Footprint::Rect(4.78, 0.02, 5.0, 0.85),
        height: 0.62,
        skin: Skin::Fabric,
    },
    Solid {
        footprint: Footprint::Rect(6.9, 0.02, 7.12, 0.85),
        height: 0.62,
        skin: Skin::Fabric,
    },
    // Cabinet, refrigerator, cartons in the corner.
    Solid {
        footprint: Footprint::Rect(7.4, 2.2, 8.0, 3.6),
        height: 0.92,
        skin: Skin::Wood,
    },
    Solid {
        footprint: Footprint::Rect(7.32, 3.65, 8.0, 4.33),
        height: 1.8,
        skin: Skin::Metal,
    },
    Solid {
        footprint: Footprint::Rect(7.2, 5.1, 7.8, 5.7),
        height: 0.55,
        skin: Skin::Cardboard,
    },
    Solid {
        footprint: Footprint::Rect(6.7, 5.35, 7.1, 5.75),
        height: 0.36,
        skin: Skin::Cardboard,
    },
    // Flower pot and umbrella stand.
    Solid {
        footprint: Footprint::Disc(0.55, 5.4, 0.2),
        height: 0.42,
        skin: Skin::Clay,
    },
    Solid {
        footprint: Footprint::Disc(7.55, 1.2, 0.17),
        height: 0.5,
        skin: Skin::Metal,
    },
];

/// Position of the plant: in the pot.
pub(super) const PLANT: (f64, f64) = (0.55, 5.4);

/// Everything that moves, by time.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// Start on the loop of the robot, in metres, and of the person, in radians.
    start: f64,
    phase: f64,
}

/// The robot's loop: a rectangle with round corners, driven anticlockwise at a steady speed.
const LOOP: (f64, f64, f64, f64) = (1.35, 1.45, 6.55, 4.45);
const CORNER: f64 = 0.95;
const SPEED: f64 = 0.55;
/// Radius of a leg, and height of the person.
const LEG: f64 = 0.075;
pub(super) const PERSON_HEIGHT: f64 = 1.76;

impl World {
    pub(super) fn new(random: &mut Random) -> Self {
        World {
            start: random.unit() * 12.0,
            phase: random.unit() * TAU,
        }
    }

    /// The robot's true pose.
    pub(super) fn robot(&self, seconds: f64) -> Pose {
        along_loop(self.start + SPEED * seconds)
    }

    /// Position of the person, who walks to and fro along the window, and the phase of the stride.
    pub(super) fn person(&self, seconds: f64) -> (Pose, f64) {
        let angle = self.phase + seconds * 0.42;
        let x = 3.9 + 2.3 * angle.sin();
        let heading = if angle.cos() >= 0.0 { 0.0 } else { FRAC_PI_2 * 2.0 };
        // One stride per 0.7 m.
        (
            Pose {
                x,
                y: 5.25 + 0.12 * (2.0 * angle).sin(),
                heading,
            },
            x / 0.7 * TAU,
        )
    }

    /// Range of a laser at 0.25 m height along a direction of length 1: hits furniture, walls and the person's two
    /// legs.
    pub(super) fn range(&self, x: f64, y: f64, angle: f64, seconds: f64) -> f64 {
        let (dy, dx) = angle.sin_cos();
        let mut nearest = leave_room(x, y, dx, dy).0;
        let mut try_footprint = |footprint: Footprint| {
            if let Some(crossing) = footprint.cross(x, y, dx, dy)
                && crossing.enter > 0.0
            {
                nearest = nearest.min(crossing.enter);
            }
        };
        for solid in FURNITURE {
            try_footprint(solid.footprint);
        }
        let (person, stride) = self.person(seconds);
        for side in [-1.0, 1.0] {
            let ahead = 0.22 * stride.sin() * side * person.heading.cos();
            try_footprint(Footprint::Disc(person.x + ahead, person.y + 0.1 * side, LEG));
        }
        nearest
    }
}

fn along_loop(way: f64) -> Pose {
    let (x0, y0, x1, y1) = LOOP;
    let (straight_x, straight_y) = (x1 - x0 - 2.0 * CORNER, y1 - y0 - 2.0 * CORNER);
    let arc = CORNER * FRAC_PI_2;
    let mut left = way.rem_euclid(2.0 * (straight_x + straight_y) + 4.0 * arc);
    let mut pose = Pose {
        x: x0 + CORNER,
        y: y0,
        heading: 0.0,
    };
    for side in 0..4 {
        let straight = if side % 2 == 0 { straight_x } else { straight_y };
        let step = left.min(straight);
        pose.x += step * pose.heading.cos();
        pose.y += step * pose.heading.sin();
        left -= step;
        let turn = left.min(arc) / CORNER;
        let (from, to) = (pose.heading, pose.heading + turn);
        pose.x += CORNER * (to.sin() - from.sin());
        pose.y += CORNER * (from.cos() - to.cos());
        pose.heading = to;
        left -= left.min(arc);
        if left <= 0.0 {
            break;
        }
    }
    pose
}

/// The robot's pose estimate: the true motion with small errors that add up.
#[derive(Clone, Debug, Default)]
pub(super) struct Odometry {
    last: Option<Pose>,
    believed: Pose,
}

impl Odometry {
    pub(super) fn advance(&mut self, pose: Pose, random: &mut Random) -> Pose {
        if let Some(last) = self.last.replace(pose) {
            let way = (pose.x - last.x).hypot(pose.y - last.y) * (1.0 + 0.02 * random.normal());
            let turn = wrap(pose.heading - last.heading);
            self.believed.heading = wrap(self.believed.heading + turn + 0.0004 * random.normal());
            self.believed.x += way * self.believed.heading.cos();
            self.believed.y += way * self.believed.heading.sin();
        }
        self.believed
    }
}

fn wrap(angle: f64) -> f64 {
    (angle + TAU / 2.0).rem_euclid(TAU) - TAU / 2.0
}
