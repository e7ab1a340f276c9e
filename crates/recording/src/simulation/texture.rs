//! Textures of the room's surfaces: small images, computed once.

use super::figures::Plant;
use super::random::mix;
use super::world::{CEILING, FURNITURE, Footprint, ROOM, Skin};

/// An image whose sides are powers of two, repeated in both directions.
#[derive(Clone, Debug)]
pub(super) struct Texture {
    texels: Vec<u32>,
    width_bits: u32,
    width_mask: i32,
    height_mask: i32,
    /// Texels per metre along a row and from row to row.
    pub(super) scale: (f32, f32),
}

impl Texture {
    fn bake(bits: (u32, u32), size: (f64, f64), colour: impl Fn(f64, f64) -> Colour) -> Self {
        let (width, height) = (1usize << bits.0, 1usize << bits.1);
        let mut texels = Vec::with_capacity(width * height);
        for row in 0..height {
            for column in 0..width {
                let u = (column as f64 + 0.5) / width as f64 * size.0;
                let v = (row as f64 + 0.5) / height as f64 * size.1;
                texels.push(colour(u, v).packed());
            }
        }
        Texture {
            texels,
            width_bits: bits.0,
            width_mask: width as i32 - 1,
            height_mask: height as i32 - 1,
            scale: (width as f32 / size.0 as f32, height as f32 / size.1 as f32),
        }
    }

    /// For upright surfaces, which are drawn from top to bottom: stored sideways, so that the texels of a column are
    /// neighbours in memory. `bits` and `size` are across and down.
    fn upright(bits: (u32, u32), size: (f64, f64), colour: impl Fn(f64, f64) -> Colour) -> Self {
        Self::bake((bits.1, bits.0), (size.1, size.0), |v, u| colour(u, v))
    }

    /// The colour of the texel at a position, as 0x00rrggbb.
    #[inline]
    pub(super) fn nearest(&self, u: f32, v: f32) -> u32 {
        let (column, row) = (u as i32, v as i32);
        let index = ((row & self.height_mask) << self.width_bits) | (column & self.width_mask);
        self.texels.get(index as usize).copied().unwrap_or(0)
    }

    /// The colour at a texel position, interpolated, as 0x00rrggbb. Red and blue are blended in one
    /// multiplication.
    #[inline]
    pub(super) fn sample(&self, u: f32, v: f32) -> u32 {
        // Biased so that truncation rounds down for all positions in the room.
        let (u, v) = (
            ((u + 64.0) * 256.0) as i32 - 64 * 256,
            ((v + 64.0) * 256.0) as i32 - 64 * 256,
        );
        let (column, row) = (u >> 8, v >> 8);
        let (fu, fv) = ((u & 0xff) as u32, (v & 0xff) as u32);
        let at = |column: i32, row: i32| {
            let index = ((row & self.height_mask) << self.width_bits) | (column & self.width_mask);
            self.texels.get(index as usize).copied().unwrap_or(0)
        };
        let top = blend(at(column, row), at(column + 1, row), fu);
        let bottom = blend(at(column, row + 1), at(column + 1, row + 1), fu);
        blend(top, bottom, fv)
    }
}

/// `a` and `b` in the proportion `256 - t` to `t`.
#[inline]
fn blend(a: u32, b: u32, t: u32) -> u32 {
    let mix = |mask: u32| (((a & mask) * (256 - t) + (b & mask) * t) >> 8) & mask;
    mix(0x00ff_00ff) | (((a >> 8 & 0xff) * (256 - t) + (b >> 8 & 0xff) * t) & 0xff00)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Colour(pub(super) f64, pub(super) f64, pub(super) f64);

impl Colour {
    pub(super) fn times(self, factor: f64) -> Self {
        Colour(self.0 * factor, self.1 * factor, self.2 * factor)
    }

    fn towards(self, other: Colour, t: f64) -> Self {
        let mix = |a: f64, b: f64| a + (b - a) * t;
        Colour(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    pub(super) fn packed(self) -> u32 {
        let byte = |value: f64| value.clamp(0.0, 255.0) as u32;
        byte(self.0) << 16 | byte(self.1) << 8 | byte(self.2)
    }
}

/// All surfaces.
#[derive(Clone, Debug)]
pub(super) struct Textures {
    pub(super) floor: Texture,
    pub(super) ceiling: Texture,
    walls: [Texture; 4],
    books: Texture,
    wood: Texture,
    cardboard: Texture,
    fabric: Texture,
    metal: Texture,
    clay: Texture,
    pub(super) plant: Plant,
    light: Vec<f32>,
}

/// Points a metre at which light is stored.
const LIGHT_SCALE: f64 = 8.0;
const LIGHT_WIDTH: usize = (ROOM.0 * LIGHT_SCALE) as usize + 1;
const LIGHT_HEIGHT: usize = (ROOM.1 * LIGHT_SCALE) as usize + 1;

impl Textures {
    pub(super) fn new() -> Self {
        let light = (0..LIGHT_WIDTH * LIGHT_HEIGHT).map(|index| {
            let (column, row) = (index % LIGHT_WIDTH, index / LIGHT_WIDTH);
            light_at(column as f64 / LIGHT_SCALE, row as f64 / LIGHT_SCALE) as f32
        });
        Textures {
            floor: Texture::bake((10, 10), (8.0, 8.0), floor),
            ceiling: Texture::bake((8, 8), (8.0, 8.0), ceiling),
            walls: [0, 1, 2, 3].map(|index| {
                let length = if index % 2 == 0 { ROOM.0 } else { ROOM.1 };
                Texture::upright((10, 9), (length, CEILING), move |u, v| wall(index, u, v))
            }),
            books: Texture::upright((9, 9), (2.0, 2.048), books),
            wood: Texture::upright((8, 8), (1.2, 0.8), wood),
            cardboard: Texture::upright((7, 7), (0.6, 0.6), cardboard),
            fabric: Texture::upright((7, 7), (0.4, 0.4), fabric),
            metal: Texture::upright((7, 7), (1.0, 1.8), metal),
            clay: Texture::upright((6, 6), (0.5, 0.5), |u, v| {
                Colour(168.0, 96.0, 66.0).times(0.92 + 0.12 * noise(u * 20.0, v * 50.0, 7))
            }),
            plant: Plant::new(),
            light: light.collect(),
        }
    }

    pub(super) fn skin(&self, skin: Skin) -> &Texture {
        match skin {
            Skin::Wall(index) => &self.walls[index % 4],
            Skin::Books => &self.books,
            Skin::Wood => &self.wood,
            Skin::Cardboard => &self.cardboard,
            Skin::Fabric => &self.fabric,
            Skin::Metal => &self.metal,
            Skin::Clay => &self.clay,
        }
    }

    /// Brightness at a place, about 0.5 to 1.2.
    pub(super) fn light(&self, x: f64, y: f64) -> f32 {
        let column = (x * LIGHT_SCALE).clamp(0.0, (LIGHT_WIDTH - 1) as f64) as usize;
        let row = (y * LIGHT_SCALE).clamp(0.0, (LIGHT_HEIGHT - 1) as f64) as usize;
        self.light.get(row * LIGHT_WIDTH + column).copied().unwrap_or(1.0)
    }
}

/// Two lamps, and daylight from the window in the wall at the greatest y.
const LAMPS: [(f64, f64); 2] = [(2.3, 3.0), (5.8, 3.0)];

fn light_at(x: f64, y: f64) -> f64 {
    let lamps: f64 = LAMPS
        .iter()
        .map(|(lx, ly)| 0.42 / (1.0 + 0.35 * (x - lx).hypot(y - ly).powi(2)))
        .sum();
    let window = 0.34 / (1.0 + 0.25 * ((x - 4.0).powi(2) * 0.4 + (ROOM.1 - y).powi(2)));
    0.6 + lamps + window
}

fn floor(x: f64, y: f64) -> Colour {
    // Planks of 0.14 m, each with its own tone, shifted by a random length.
    let plank = (y / 0.14).floor();
    let shifted = x + 1.7 * hash(plank as i64, 3, 1);
    let board = (shifted / 1.6).floor();
    let tone = 0.84 + 0.3 * hash(plank as i64, board as i64, 2);
    let grain = fractal(x * 4.0, y * 60.0, 11) * 0.3 + noise(x * 40.0, y * 300.0, 12) * 0.08;
    let seam = ((y / 0.14).fract() < 0.035) || ((shifted / 1.6).fract() < 0.003);
    let wood = Colour(158.0, 116.0, 78.0).times(tone * (0.82 + grain));
    let rug = Footprint::Rect(4.9, 1.1, 7.0, 2.2).distance(x, y) == 0.0;
    let surface = if rug {
        let border = !(5.0..6.9).contains(&x) || !(1.2..2.1).contains(&y);
        let lozenge = ((x * 5.0).sin() * (y * 8.0).sin()) > 0.25;
        let weave = 0.85 + 0.3 * noise(x * 90.0, y * 90.0, 13);
        let colour = match (border, lozenge) {
            (true, _) => Colour(92.0, 34.0, 38.0),
            (_, true) => Colour(196.0, 170.0, 128.0),
            _ => Colour(138.0, 52.0, 48.0),
        };
        colour.times(weave)
    } else if seam {
        wood.times(0.55)
    } else {
        wood
    };
    // Soft shadows at the foot of the walls and the furniture.
    let mut clear = x.min(ROOM.0 - x).min(y).min(ROOM.1 - y).max(0.0) * 1.5;
    for solid in FURNITURE {
        clear = clear.min(solid.footprint.distance(x, y));
    }
    let shadow = 0.45 + 0.55 * (clear / 0.3).min(1.0).sqrt();
    surface.times(light_at(x, y.min(ROOM.1)) * shadow)
}

fn ceiling(x: f64, y: f64) -> Colour {
    let glow: f64 = LAMPS
        .iter()
        .map(|(lx, ly)| 1.0 / (1.0 + 14.0 * (x - lx).hypot(y - ly).powi(2)))
        .sum();
    let lamp = LAMPS.iter().any(|(lx, ly)| (x - lx).hypot(y - ly) < 0.26);
    if lamp {
        return Colour(255.0, 250.0, 232.0);
    }
    Colour(214.0, 211.0, 204.0).times(0.8 + 0.35 * glow + 0.04 * noise(x * 12.0, y * 12.0, 21))
}

fn wall(index: usize, u: f64, v: f64) -> Colour {
    let height = CEILING - v;
    let paint = [
        Colour(206.0, 196.0, 176.0),
        Colour(188.0, 198.0, 190.0),
        Colour(212.0, 204.0, 188.0),
        Colour(176.0, 188.0, 200.0),
    ][index % 4];
    let rough =
        0.95 + 0.07 * fractal(u * 6.0, v * 6.0, 31 + index as u64) + 0.03 * noise(u * 90.0, v * 90.0, 35);
    // Darker towards the floor, the ceiling and the corners.
    let length = if index.is_multiple_of(2) { ROOM.0 } else { ROOM.1 };
    let corner = 0.82 + 0.18 * (u.min(length - u).max(0.0) / 0.4).min(1.0);
    let edge = 0.86 + 0.14 * (height.min(v).max(0.0) / 0.35).min(1.0);
    let shade = rough * corner * edge;
    if height < 0.1 {
        return Colour(236.0, 232.0, 224.0).times(shade * if height > 0.09 { 0.7 } else { 0.95 });
    }
    match index % 4 {
        // A door and a blackboard.
        0 if (0.9..1.85).contains(&u) && height < 2.08 => door(u - 0.9, height).times(shade),
        // Pictures.
        1 => picture(u - 0.9, height - 1.35, 1).unwrap_or(paint.times(shade)),
        3 => picture(u - 0.6, height - 1.4, 5)
            .or_else(|| picture(u - 4.6, height - 1.4, 9))
            .unwrap_or(paint.times(shade)),
        2 => window(u, height).unwrap_or(paint.times(shade)),
        _ => picture(u - 2.6, height - 1.5, 17)
            .or_else(|| picture(u - 5.4, height - 1.45, 23))
            .unwrap_or(paint.times(shade)),
    }
}

fn door(u: f64, height: f64) -> Colour {
    if !(0.06..0.89).contains(&u) || height > 2.02 {
        return Colour(232.0, 228.0, 220.0);
    }
    if (u - 0.8).hypot((height - 1.02) * 1.6) < 0.035 {
        return Colour(210.0, 190.0, 120.0);
    }
    let panel = (0.17..0.78).contains(&u) && ((0.2..0.9).contains(&height) || (1.12..1.9).contains(&height));
    let grain = fractal(u * 30.0, height * 2.5, 41) * 0.3;
    Colour(134.0, 92.0, 60.0)
        .times(0.85 + grain)
        .times(if panel { 0.84 } else { 1.0 })
}

/// A framed picture of 0.9 by 0.7 m with a landscape in it; `u` and `v` from its lower left corner.
fn picture(u: f64, v: f64, seed: u64) -> Option<Colour> {
    if !(0.0..0.9).contains(&u) || !(0.0..0.7).contains(&v) {
        return None;
    }
    let frame = u.min(0.9 - u).min(v).min(0.7 - v);
    if frame < 0.04 {
        return Some(Colour(58.0, 42.0, 30.0).times(0.8 + 8.0 * frame));
    }
    if frame < 0.09 {
        return Some(Colour(236.0, 232.0, 222.0));
    }
    let ridge = 0.28 + 0.2 * fractal(u * 3.0, 0.5, seed);
    let hill = 0.14 + 0.16 * fractal(u * 5.0, 7.5, seed + 1);
    let sky = Colour(240.0, 196.0, 150.0).towards(Colour(96.0, 140.0, 196.0), (v / 0.7).min(1.0));
    let ground = fractal(u * 40.0, v * 40.0, seed + 2);
    Some(if v < hill {
        Colour(64.0, 92.0, 48.0).times(0.6 + 0.8 * ground)
    } else if v < ridge {
        Colour(110.0, 112.0, 134.0).times(0.7 + 0.5 * ground)
    } else {
        sky.times(0.95 + 0.1 * fractal(u * 8.0, v * 20.0, seed + 3))
    })
}

fn window(u: f64, height: f64) -> Option<Colour> {
    if !(2.2..5.8).contains(&u) || !(0.85..2.25).contains(&height) {
        return None;
    }
    let pane = (u - 2.2) % 1.2;
    let frame = pane.min(1.2 - pane).min(height - 0.85).min(2.25 - height);
    if frame < 0.06 || (height - 1.75).abs() < 0.025 {
        return Some(Colour(240.0, 238.0, 232.0).times(0.78 + 3.0 * frame.min(0.06)));
    }
    let cloud = fractal(u * 1.4, height * 3.0, 51);
    let sky =
        Colour(148.0, 190.0, 236.0).towards(Colour(252.0, 252.0, 252.0), (cloud * 1.6 - 0.5).clamp(0.0, 1.0));
    let trees = 1.12 + 0.25 * fractal(u * 2.2, 3.0, 52);
    Some(if height < trees {
        Colour(74.0, 104.0, 58.0).times(0.7 + 0.8 * fractal(u * 25.0, height * 25.0, 53))
    } else {
        sky
    })
}

fn books(u: f64, v: f64) -> Colour {
    const SHELF: f64 = 0.341_33;
    let (shelf, up) = ((v / SHELF).floor(), v.rem_euclid(SHELF));
    let frame = Colour(112.0, 78.0, 50.0).times(0.85 + 0.3 * fractal(u * 3.0, v * 40.0, 61));
    if up < 0.03 || u.rem_euclid(1.0) < 0.03 {
        return frame;
    }
    let slot = (u / 0.042 + 0.3 * noise(u * 9.0, shelf * 5.0, 62)).floor();
    let key = (slot as i64, shelf as i64);
    let gap = 0.03 + 0.11 * hash(key.0, key.1, 63);
    let within = (u / 0.042).fract();
    if up < gap || hash(key.0, key.1, 64) < 0.06 {
        return frame.times(0.3);
    }
    let palette = [
        Colour(140.0, 38.0, 36.0),
        Colour(34.0, 62.0, 104.0),
        Colour(44.0, 92.0, 64.0),
        Colour(196.0, 168.0, 96.0),
        Colour(92.0, 60.0, 98.0),
        Colour(206.0, 200.0, 186.0),
        Colour(60.0, 58.0, 56.0),
    ];
    let colour = palette[(hash(key.0, key.1, 65) * 6.999) as usize];
    let round = 0.7 + 0.5 * (within * std::f64::consts::PI).sin();
    let band = ((up - gap) - 0.05).abs() < 0.008 || ((up - gap) - 0.12).abs() < 0.005;
    colour.times(round * if band { 1.6 } else { 1.0 })
}

fn wood(u: f64, v: f64) -> Colour {
    let grain = fractal(u * 3.0, v * 26.0, 71) * 0.35 + noise(u * 20.0, v * 160.0, 72) * 0.08;
    let seam = u.rem_euclid(0.6) < 0.008 || v < 0.02;
    Colour(176.0, 138.0, 96.0).times((0.78 + grain) * if seam { 0.5 } else { 1.0 })
}

fn cardboard(u: f64, v: f64) -> Colour {
    let tape = (u - 0.3).abs() < 0.03;
    let flute = 0.96 + 0.06 * (v * 400.0).sin() + 0.1 * fractal(u * 12.0, v * 12.0, 81);
    let edge = if u < 0.012 || v < 0.012 { 0.75 } else { 1.0 };
    if tape {
        Colour(206.0, 186.0, 142.0)
    } else {
        Colour(176.0, 136.0, 92.0)
    }
    .times(flute * edge)
}

fn fabric(u: f64, v: f64) -> Colour {
    let weave = 0.86 + 0.16 * noise(u * 160.0, v * 160.0, 91) + 0.18 * fractal(u * 10.0, v * 10.0, 92);
    Colour(74.0, 96.0, 112.0).times(weave)
}

fn metal(u: f64, v: f64) -> Colour {
    let brushed = 0.94 + 0.08 * noise(u * 6.0, v * 140.0, 95);
    let seam = (v - 0.62).abs() < 0.008;
    let handle = (0.06..0.09).contains(&u) && ((0.35..0.58).contains(&v) || (0.68..1.0).contains(&v));
    if seam || handle {
        Colour(84.0, 86.0, 88.0)
    } else {
        Colour(196.0, 199.0, 202.0)
    }
    .times(brushed)
}

/// Uniformly distributed in [0, 1) by position.
pub(super) fn hash(x: i64, y: i64, seed: u64) -> f64 {
    let key = (x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (y as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mix(key.wrapping_add(seed.wrapping_mul(0x1656_67b1_9e37_79f9))) >> 40) as f64 / (1u64 << 24) as f64
}

/// Smooth noise in [0, 1) with features of size 1.
pub(super) fn noise(x: f64, y: f64, seed: u64) -> f64 {
    let (column, row) = (x.floor(), y.floor());
    let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
    let (tx, ty) = (smooth(x - column), smooth(y - row));
    let (column, row) = (column as i64, row as i64);
    let at = |dx, dy| hash(column + dx, row + dy, seed);
    let top = at(0, 0) + (at(1, 0) - at(0, 0)) * tx;
    let bottom = at(0, 1) + (at(1, 1) - at(0, 1)) * tx;
    top + (bottom - top) * ty
}

/// Three octaves of noise, in [0, 1).
fn fractal(x: f64, y: f64, seed: u64) -> f64 {
    (noise(x, y, seed) * 4.0
        + noise(x * 2.1, y * 2.1, seed ^ 0x55) * 2.0
        + noise(x * 4.3, y * 4.3, seed ^ 0xaa))
        / 7.0
}
