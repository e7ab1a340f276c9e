//! The view of the simulated camera: a noisy wall, and a traffic light in front of it.
//!
//! Integers only: `peers/brake` draws the same bytes, which is checked before measuring.

use clap::ValueEnum;

/// Pixels in a row.
pub const WIDTH: usize = 1920;
/// Rows.
pub const HEIGHT: usize = 1080;
/// Bytes in a row.
pub const STEP: usize = WIDTH * 3;
/// Bytes of an image.
pub const BYTES: usize = STEP * HEIGHT;
/// Side of the template, in pixels.
pub const TEMPLATE: usize = 24;

/// Maximum shift of the wall, in pixels.
const SHIFTS: usize = 256;
/// Half of the traffic light's width and height.
const HALF: (i32, i32) = (24, 60);
/// Rows between the centres of two adjacent lamps.
const APART: i32 = 36;
const RADIUS: i32 = 11;
const HOUSING: [u8; 3] = [24, 24, 24];

/// A lamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Color {
    Red,
    Yellow,
    Green,
}

impl Color {
    /// From top to bottom.
    pub const ALL: [Color; 3] = [Color::Red, Color::Yellow, Color::Green];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Color::Red => "red",
            Color::Yellow => "yellow",
            Color::Green => "green",
        }
    }

    fn place(self) -> i32 {
        match self {
            Color::Red => -APART,
            Color::Yellow => 0,
            Color::Green => APART,
        }
    }

    fn pixel(self, lit: bool) -> [u8; 3] {
        match (self, lit) {
            (Color::Red, true) => [250, 40, 30],
            (Color::Red, false) => [60, 14, 12],
            (Color::Yellow, true) => [250, 200, 40],
            (Color::Yellow, false) => [60, 50, 12],
            (Color::Green, true) => [40, 240, 80],
            (Color::Green, false) => [12, 60, 20],
        }
    }
}

/// The wall, which is the background of the images.
pub struct Scene {
    strip: Vec<u8>,
}

impl Scene {
    /// Prepares the wall.
    pub fn new() -> Self {
        let mut state = 1u32;
        let strip = (0..3 * (WIDTH + SHIFTS)).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            96 + (state >> 24) as u8 % 64
        });
        Scene {
            strip: strip.collect(),
        }
    }

    /// Draws the whole image: the wall shifted by `shift`, and the traffic light in `column`, if it is in view, with
    /// one lamp lit. `image` must be [`BYTES`] long.
    pub fn draw(&self, image: &mut [u8], shift: u32, column: Option<i32>, lit: Color) {
        for (y, row) in image.chunks_exact_mut(STEP).enumerate() {
            let from = 3 * ((y * 7 + shift as usize) % SHIFTS);
            row.copy_from_slice(&self.strip[from..from + STEP]);
        }
        let Some(column) = column else { return };
        for dy in -HALF.1..HALF.1 {
            let y = (HEIGHT as i32 / 2 + dy) as usize;
            for dx in -HALF.0..HALF.0 {
                if let Some(x) = usize::try_from(column + dx).ok().filter(|x| *x < WIDTH) {
                    image[y * STEP + x * 3..][..3].copy_from_slice(&light(dx, dy, lit));
                }
            }
        }
    }
}

impl Default for Scene {
    fn default() -> Self {
        Scene::new()
    }
}

/// Returns the pixel of the traffic light at this offset from its centre.
fn light(dx: i32, dy: i32, lit: Color) -> [u8; 3] {
    let lamp = Color::ALL
        .into_iter()
        .find(|c| dx * dx + (dy - c.place()).pow(2) <= RADIUS * RADIUS);
    lamp.map_or(HOUSING, |c| c.pixel(c == lit))
}

/// Returns the template of a recognizer: its lamp, lit, with the housing around it; row by row. The bytes are widened
/// beforehand, so that the compiler finds the fastest comparison.
pub(super) fn template(color: Color) -> Vec<[i16; TEMPLATE * 3]> {
    let half = TEMPLATE as i32 / 2;
    let row = |dy: i32| {
        let mut row = [0; TEMPLATE * 3];
        for (dx, place) in (-half..half).zip(row.chunks_exact_mut(3)) {
            let pixel = light(dx, color.place() + dy, color);
            place.copy_from_slice(&pixel.map(i16::from));
        }
        row
    };
    (-half..half).map(row).collect()
}
