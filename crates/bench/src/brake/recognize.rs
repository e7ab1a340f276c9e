//! Finds a lit lamp by template matching with squared differences, over the whole region of interest.
//!
//! Every position is computed completely, so that the work is the same for every image. `peers/brake` does the same
//! work in C++; its result is compared before measuring.

use super::scene::{Color, HEIGHT, STEP, TEMPLATE, WIDTH};
use std::fmt;
use std::str::FromStr;

/// Mean squared difference per byte below which the lamp is recognized; lamps of other colours and unlit ones are far
/// above it.
pub const THRESHOLD: u32 = 900;

const ROW: usize = TEMPLATE * 3;

/// A region of interest in the image's centre, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Default for Region {
    fn default() -> Self {
        Region {
            width: 320,
            height: 240,
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('x');
        let sizes = parts.and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let good = |(w, h): &(u32, u32)| {
            (64..=WIDTH as u32).contains(w)
                && (112..=HEIGHT as u32).contains(h)
                && w.is_multiple_of(2)
                && h.is_multiple_of(2)
        };
        let (width, height) = sizes.filter(good).ok_or_else(|| {
            format!("{text:?}: give even numbers from 64x112, which holds the light, to {WIDTH}x{HEIGHT}")
        })?;
        Ok(Region { width, height })
    }
}

/// The best position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Sum of squared differences of all bytes.
    pub sum: u32,
    /// Left edge, in pixels of the image.
    pub x: u32,
    /// Top edge, in pixels of the image.
    pub y: u32,
}

impl Match {
    /// Returns whether the lamp is there.
    pub fn is_recognized(&self) -> bool {
        self.sum / (TEMPLATE * ROW) as u32 <= THRESHOLD
    }
}

/// Looks for one lamp.
pub struct Recognizer {
    template: Vec<[i16; ROW]>,
    region: Region,
}

impl Recognizer {
    /// Looks for the lit lamp of `color` within `region`.
    pub fn new(color: Color, region: Region) -> Self {
        Recognizer {
            template: super::scene::template(color),
            region,
        }
    }

    /// Returns the position with the smallest difference; `None` if `image` does not have the camera's size.
    pub fn find(&self, image: &[u8]) -> Option<Match> {
        if image.len() != super::scene::BYTES {
            return None;
        }
        let (width, height) = (self.region.width as usize, self.region.height as usize);
        let (left, top) = ((WIDTH - width) / 2, (HEIGHT - height) / 2);
        let mut best: Option<Match> = None;
        for y in top..=top + height - TEMPLATE {
            for x in left..=left + width - TEMPLATE {
                let sum = self.difference(image, x, y);
                if best.is_none_or(|b| sum < b.sum) {
                    let (x, y) = (x as u32, y as u32);
                    best = Some(Match { sum, x, y });
                }
            }
        }
        best
    }

    fn difference(&self, image: &[u8], x: usize, y: usize) -> u32 {
        // In eight lanes, which the compiler vectorizes; a square fits into 16 bits, the sum into 32.
        let mut sums = [0; 8];
        for (i, template) in self.template.iter().enumerate() {
            let row = &image[(y + i) * STEP + x * 3..][..ROW];
            for (a, b) in row.chunks_exact(8).zip(template.chunks_exact(8)) {
                for lane in 0..8 {
                    let d = (i16::from(a[lane]) - b[lane]).unsigned_abs();
                    sums[lane] += u32::from(d * d);
                }
            }
        }
        sums.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::{BYTES, Scene};
    use super::*;

    const SMALL: Region = Region {
        width: 96,
        height: 128,
    };

    fn image(column: Option<i32>, lit: Color) -> Vec<u8> {
        let mut image = vec![0; BYTES];
        Scene::new().draw(&mut image, 77, column, lit);
        image
    }

    #[test]
    fn each_recognizer_knows_its_own_lamp_alone() {
        for lit in Color::ALL {
            let image = image(Some(960), lit);
            for color in Color::ALL {
                let found = Recognizer::new(color, SMALL).find(&image).expect("an image");
                assert_eq!(
                    found.is_recognized(),
                    color == lit,
                    "{color:?} where {lit:?} is lit: {found:?}"
                );
            }
        }
    }

    #[test]
    fn the_lamp_is_found_where_it_is() {
        let found = Recognizer::new(Color::Red, SMALL).find(&image(Some(970), Color::Red));
        // The red lamp's centre is 36 rows above the image's.
        let (x, y) = (970 - 12, 540 - 36 - 12);
        assert_eq!(found, Some(Match { sum: 0, x, y }));
    }

    #[test]
    fn lamps_outside_the_region_are_not_recognized() {
        let red = Recognizer::new(Color::Red, SMALL);
        for column in [None, Some(960 + 48), Some(0), Some(-20), Some(1919)] {
            let found = red.find(&image(column, Color::Red)).expect("an image");
            assert!(!found.is_recognized(), "{column:?}: {found:?}");
        }
        assert_eq!(red.find(&[0; 100]), None);
    }

    #[test]
    fn lamps_are_recognized_exactly_within_the_region() {
        let red = Recognizer::new(Color::Red, SMALL);
        for column in [960 - 37, 960 - 36, 960 + 36, 960 + 37] {
            let found = red.find(&image(Some(column), Color::Red)).expect("an image");
            let fits = super::super::motion::in_region(column, SMALL.width);
            assert_eq!(found.is_recognized(), fits, "{column}: {found:?}");
        }
    }

    #[test]
    fn regions_are_even_and_hold_the_light() {
        assert_eq!("320x240".parse(), Ok(Region::default()));
        assert_eq!(Region::default().to_string(), "320x240");
        for bad in [
            "",
            "320",
            "32x240",
            "321x240",
            "4000x240",
            "-2x240",
            "320x100",
            "320x240x3",
        ] {
            assert!(bad.parse::<Region>().is_err(), "{bad}");
        }
    }
}
