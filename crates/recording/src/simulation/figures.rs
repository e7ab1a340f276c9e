//! Figures that the camera draws as flat cut-outs: a plant and a walking person.

use super::texture::{Colour, hash};

/// Half the plant's width, and its height above the floor.
pub(super) const PLANT_RADIUS: f64 = 0.5;
pub(super) const PLANT_HEIGHT: f64 = 1.5;
const PLANT_SCALE: f64 = 320.0;
const PLANT_WIDTH: usize = (2.0 * PLANT_RADIUS * PLANT_SCALE) as usize;

/// The plant, computed once.
#[derive(Clone, Debug)]
pub(super) struct Plant(Vec<Option<u32>>);

impl Plant {
    pub(super) fn new() -> Self {
        let cell = |index: usize| {
            let (row, column) = (index / PLANT_WIDTH, index % PLANT_WIDTH);
            leaf(
                (column as f64 + 0.5) / PLANT_SCALE - PLANT_RADIUS,
                (row as f64 + 0.5) / PLANT_SCALE,
            )
        };
        let cells = PLANT_WIDTH * (PLANT_HEIGHT * PLANT_SCALE) as usize;
        Plant((0..cells).map(|index| cell(index).map(Colour::packed)).collect())
    }

    /// The colour at a distance from the middle and a height, if the plant is there.
    pub(super) fn at(&self, across: f64, z: f64) -> Option<u32> {
        let column = (((across + PLANT_RADIUS) * PLANT_SCALE) as usize).min(PLANT_WIDTH - 1);
        let row = (z * PLANT_SCALE) as usize;
        self.0.get(row * PLANT_WIDTH + column).copied().flatten()
    }
}

/// Leaves: a cloud of overlapping discs, each with its own green.
fn leaf(across: f64, z: f64) -> Option<Colour> {
    let mut found = None;
    for leaf in 0..40 {
        let (turn, size) = (
            hash(leaf, 1, 5) * std::f64::consts::TAU,
            0.035 + 0.05 * hash(leaf, 2, 5),
        );
        let out = hash(leaf, 3, 5).sqrt() * 0.36;
        let (cx, cz) = (turn.cos() * out, 0.98 + turn.sin() * out * 1.2);
        let (ox, oz) = (across - cx, z - cz);
        // Ellipses that point outwards.
        let (along, aside) = (
            ox * turn.cos() + oz * turn.sin(),
            oz * turn.cos() - ox * turn.sin(),
        );
        let vein = aside.abs() < 0.004;
        if (along / (size * 1.7)).powi(2) + (aside / (size * 0.7)).powi(2) < 1.0 {
            let tone = (0.6 + 0.6 * hash(leaf, 4, 5)) * if vein { 1.3 } else { 1.0 };
            found = Some(Colour(52.0, 110.0, 48.0).times(tone));
        }
    }
    let stem = across.abs() < 0.012 + 0.01 * (1.0 - z) && z < 1.0;
    found.or(stem.then_some(Colour(88.0, 74.0, 46.0)))
}

/// A person seen from the side, along one upright line.
pub(super) struct Person {
    across: f64,
    swing: f64,
}

impl Person {
    /// A person at a distance from the middle, forwards; `stride` is the phase of the step.
    pub(super) fn new(across: f64, stride: f64) -> Self {
        Person {
            across,
            swing: stride.sin(),
        }
    }

    /// The colour at a height, if the person is there.
    pub(super) fn at(&self, z: f64) -> Option<u32> {
        body(self.across, z, self.swing).map(Colour::packed)
    }
}

/// Shoes, trousers, pullover, arms, head and hair.
fn body(across: f64, z: f64, swing: f64) -> Option<Colour> {
    let leg = |side: f64| {
        let lean = 0.2 * swing * side * (0.86 - z) / 0.86;
        (across - lean).abs() < 0.062 + 0.03 * z
    };
    let arm = |side: f64| {
        let down = (1.42 - z) / 0.62;
        (0.0..1.0).contains(&down) && (across + 0.2 * swing * side * down).abs() < 0.045
    };
    let colour = if (across / 0.095).powi(2) + ((z - 1.62) / 0.135).powi(2) < 1.0 {
        if z > 1.68 || across < -0.05 {
            Colour(66.0, 44.0, 30.0)
        } else {
            Colour(206.0, 158.0, 130.0)
        }
    } else if across.abs() < 0.045 && (1.4..1.55).contains(&z) {
        Colour(190.0, 142.0, 116.0)
    } else if (0.0..1.45).contains(&z) && arm(1.0) {
        if z < 0.88 {
            Colour(206.0, 158.0, 130.0)
        } else {
            Colour(150.0, 52.0, 44.0)
        }
    } else if (0.84..1.46).contains(&z) && across.abs() < 0.15 - 0.25 * (z - 1.36).max(0.0) {
        let stripe = (z * 14.0).fract() < 0.35;
        if stripe {
            Colour(214.0, 206.0, 190.0)
        } else {
            Colour(178.0, 64.0, 52.0)
        }
    } else if z < 0.86 && (leg(1.0) || leg(-1.0)) {
        let front = leg(1.0);
        if z < 0.09 {
            Colour(40.0, 38.0, 38.0)
        } else {
            Colour(52.0, 66.0, 98.0).times(if front { 1.0 } else { 0.72 })
        }
    } else {
        return None;
    };
    let round = 1.0 - 1.8 * across.abs();
    Some(colour.times(0.72 + 0.36 * round))
}
