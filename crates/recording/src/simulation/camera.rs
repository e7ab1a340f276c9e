//! The camera: draws the room as the robot sees it and compresses the image.
//!
//! Each image column is one ray in the plane; the objects that it hits are drawn from far to near.

use std::sync::{Arc, OnceLock};

use jpeg_encoder::{ColorType, Encoder};

use super::figures::{PLANT_HEIGHT, PLANT_RADIUS, Person};
use super::random::Random;
use super::texture::{Texture, Textures};
use super::world::{CEILING, FURNITURE, PERSON_HEIGHT, PLANT, Pose, Skin, Solid, World, leave_room};

pub(super) const WIDTH: usize = 768;
pub(super) const HEIGHT: usize = 576;
const QUALITY: u8 = 80;
/// Focal length in pixels: 67 degrees across.
const FOCAL: f32 = 580.0;
/// The row at the camera's own height. Above the middle, since the floor matters more.
const HORIZON: f32 = 236.0;
/// The camera's height.
const EYE: f32 = 1.0;
/// Nearer objects are not drawn.
const NEAR: f32 = 0.12;

pub(super) struct Camera {
    textures: Arc<Textures>,
    /// 0x00rrggbb, column by column: most of the image is drawn that way.
    columns: Vec<u32>,
    pixels: Vec<u8>,
    grain: Vec<i8>,
}

impl Camera {
    pub(super) fn new() -> Self {
        static TEXTURES: OnceLock<Arc<Textures>> = OnceLock::new();
        let mut random = Random::new(1);
        Camera {
            textures: TEXTURES.get_or_init(|| Arc::new(Textures::new())).clone(),
            columns: vec![0; WIDTH * HEIGHT],
            pixels: vec![0; WIDTH * HEIGHT * 3],
            grain: (0..1 << 14)
                .map(|_| (random.normal() * GRAIN).round() as i8)
                .collect(),
        }
    }

    /// The image as JPEG.
    pub(super) fn picture(
        &mut self,
        world: &World,
        pose: Pose,
        seconds: f64,
        random: &mut Random,
    ) -> Vec<u8> {
        self.draw(world, pose, seconds);
        self.develop(random);
        let mut jpeg = Vec::with_capacity(100_000);
        let encoder = Encoder::new(&mut jpeg, QUALITY);
        // Fails only for invalid dimensions or a failing writer, neither of which occurs.
        let encoded = encoder.encode(&self.pixels, WIDTH as u16, HEIGHT as u16, ColorType::Rgb);
        debug_assert!(encoded.is_ok());
        jpeg
    }

    fn draw(&mut self, world: &World, pose: Pose, seconds: f64) {
        let view = View::new(pose);
        let (person, stride) = world.person(seconds);
        let mut hits = Vec::with_capacity(FURNITURE.len() + 3);
        for (column, pixels) in self.columns.chunks_exact_mut(HEIGHT).enumerate() {
            view.hits(column, &person, &mut hits);
            let ray = view.ray(column as f32 + 0.5);
            let mut strip = Strip {
                view: &view,
                ray,
                textures: &self.textures,
                pixels,
            };
            if let Some(wall) = hits.first() {
                strip.draw_planes(wall.depth);
            }
            for hit in &hits {
                strip.draw(hit, stride);
            }
        }
    }

    /// Turns columns into rows and adds the sensor's noise, without which the image would compress better than a real
    /// one.
    fn develop(&mut self, random: &mut Random) {
        // In small squares, so that both sides stay in the cache.
        const SQUARE: usize = 16;
        for top in (0..HEIGHT).step_by(SQUARE) {
            for left in (0..WIDTH).step_by(SQUARE) {
                let mut square = [[0; SQUARE]; SQUARE];
                for (column, cells) in square.iter_mut().enumerate() {
                    let start = (left + column) * HEIGHT + top;
                    cells.copy_from_slice(&self.columns[start..start + SQUARE]);
                }
                for row in 0..SQUARE {
                    let start = ((top + row) * WIDTH + left) * 3;
                    let offset = random.bits() as usize % (self.grain.len() - SQUARE);
                    let grains = &self.grain[offset..offset + SQUARE];
                    let pixels = self.pixels[start..start + 3 * SQUARE].chunks_exact_mut(3);
                    for ((pixel, &grain), cells) in pixels.zip(grains).zip(&square) {
                        let [_, red, green, blue] = cells[row].to_be_bytes();
                        pixel[0] = red.saturating_add_signed(grain);
                        pixel[1] = green.saturating_add_signed(grain);
                        pixel[2] = blue.saturating_add_signed(grain);
                    }
                }
            }
        }
    }
}

/// One column of the image.
struct Strip<'a> {
    view: &'a View,
    ray: (f32, f32),
    textures: &'a Textures,
    pixels: &'a mut [u32],
}

impl Strip<'_> {
    /// Draws floor and ceiling up to the wall.
    fn draw_planes(&mut self, wall: f32) {
        let floor = HORIZON + EYE * FOCAL / wall;
        let ceiling = HORIZON - (CEILING as f32 - EYE) * FOCAL / wall;
        let textures = self.textures;
        self.draw_level(0.0, floor, HEIGHT as f32, &textures.floor, 256);
        self.draw_level(CEILING as f32, 0.0, ceiling + 1.0, &textures.ceiling, 256);
    }

    /// Draws a level surface at a height, from one row to another.
    fn draw_level(&mut self, height: f32, top: f32, bottom: f32, texture: &Texture, light: u32) {
        let (x, y) = (self.view.x * texture.scale.0, self.view.y * texture.scale.1);
        let (dx, dy) = (self.ray.0 * texture.scale.0, self.ray.1 * texture.scale.1);
        for (row, pixel) in rows(self.pixels, top, bottom) {
            let depth = FOCAL * (EYE - height) / (row + 0.5 - HORIZON);
            *pixel = lit(texture.sample(x + dx * depth, y + dy * depth), light);
        }
    }

    fn draw(&mut self, hit: &Hit, stride: f64) {
        let textures = self.textures;
        let light = textures.light(hit.place.0, hit.place.1);
        match hit.kind {
            Kind::Upright {
                skin,
                height,
                along,
                shade,
                leave,
            } => {
                let texture = textures.skin(skin);
                let light = (light * shade * 256.0) as u32;
                self.draw_upright(hit.depth, height, texture, along, light);
                if height < EYE && leave > hit.depth {
                    let row = |depth: f32| HORIZON + (EYE - height) * FOCAL / depth;
                    self.draw_level(height, row(leave), row(hit.depth), texture, light + light / 5);
                }
            }
            Kind::Plant { across } => {
                self.draw_figure(
                    hit.depth,
                    PLANT_HEIGHT as f32,
                    |z| textures.plant.at(across, z),
                    light,
                );
            }
            Kind::Person { across, facing } => {
                let person = Person::new(across * facing, stride);
                self.draw_figure(hit.depth, PERSON_HEIGHT as f32, |z| person.at(z), light);
            }
        }
    }

    /// Draws an upright surface from the floor up.
    fn draw_upright(&mut self, depth: f32, height: f32, texture: &Texture, along: f32, light: u32) {
        let scale = FOCAL / depth;
        let (top, bottom) = (HORIZON - (height - EYE) * scale, HORIZON + EYE * scale);
        let u = along * texture.scale.1;
        let step = texture.scale.0 / scale;
        let rows = rows(self.pixels, top, bottom);
        if step > 1.0 {
            // When scaled down, interpolation would not show.
            rows.for_each(|(row, pixel)| *pixel = lit(texture.nearest((row + 0.5 - top) * step, u), light));
        } else {
            rows.for_each(|(row, pixel)| *pixel = lit(texture.sample((row + 0.5 - top) * step, u), light));
        }
    }

    /// Draws an upright figure with holes: `colour` returns the colour at a height, if there is one.
    fn draw_figure(&mut self, depth: f32, height: f32, colour: impl Fn(f64) -> Option<u32>, light: f32) {
        let scale = FOCAL / depth;
        let light = (light * 256.0) as u32;
        for (row, pixel) in rows(
            self.pixels,
            HORIZON - (height - EYE) * scale,
            HORIZON + EYE * scale,
        ) {
            if let Some(colour) = colour(f64::from(EYE - (row + 0.5 - HORIZON) / scale)) {
                *pixel = lit(colour, light);
            }
        }
    }
}

/// The pixels of a column from row `top` to row `bottom`, clipped to the image.
fn rows(pixels: &mut [u32], top: f32, bottom: f32) -> impl Iterator<Item = (f32, &mut u32)> {
    let first = top.clamp(0.0, HEIGHT as f32) as usize;
    let end = (bottom.clamp(0.0, HEIGHT as f32) as usize).max(first);
    pixels[first..end]
        .iter_mut()
        .zip(first..)
        .map(|(pixel, row)| (row as f32, pixel))
}

/// Standard deviation of the grain, in steps of 255.
const GRAIN: f64 = 4.9;

/// Position and direction of the camera.
struct View {
    x: f32,
    y: f32,
    ahead: (f32, f32),
    right: (f32, f32),
}

/// An object that a column's ray hits.
struct Hit {
    /// Distance along the viewing direction.
    depth: f32,
    place: (f64, f64),
    kind: Kind,
}

enum Kind {
    Upright {
        skin: Skin,
        height: f32,
        along: f32,
        shade: f32,
        leave: f32,
    },
    Plant {
        across: f64,
    },
    Person {
        across: f64,
        facing: f64,
    },
}

impl View {
    fn new(pose: Pose) -> Self {
        let (sin, cos) = pose.heading.sin_cos();
        View {
            x: (pose.x + 0.08 * cos) as f32,
            y: (pose.y + 0.08 * sin) as f32,
            ahead: (cos as f32, sin as f32),
            right: (sin as f32, -cos as f32),
        }
    }

    fn ray(&self, column: f32) -> (f32, f32) {
        let aside = (column - WIDTH as f32 / 2.0) / FOCAL;
        (
            self.ahead.0 + self.right.0 * aside,
            self.ahead.1 + self.right.1 * aside,
        )
    }

    /// All objects that the column's ray hits, the farthest first.
    fn hits(&self, column: usize, person: &Pose, hits: &mut Vec<Hit>) {
        let (dx, dy) = self.ray(column as f32 + 0.5);
        let (x, y, dx, dy) = (f64::from(self.x), f64::from(self.y), f64::from(dx), f64::from(dy));
        hits.clear();
        let (depth, wall, along) = leave_room(x, y, dx, dy);
        let kind = Kind::Upright {
            skin: Skin::Wall(wall),
            height: CEILING as f32,
            along: along as f32,
            shade: [0.95, 0.86, 0.8, 0.9][wall],
            leave: 0.0,
        };
        hits.push(Hit {
            depth: depth as f32,
            place: (x + dx * depth, y + dy * depth),
            kind,
        });
        for solid in FURNITURE {
            hits.extend(self.solid(solid, x, y, dx, dy));
        }
        let (plant_depth, across) = self.sprite(PLANT.0, PLANT.1, column);
        if plant_depth > NEAR && across.abs() < PLANT_RADIUS {
            let kind = Kind::Plant { across };
            hits.push(Hit {
                depth: plant_depth,
                place: (PLANT.0, PLANT.1),
                kind,
            });
        }
        let (depth, across) = self.sprite(person.x, person.y, column);
        if depth > NEAR && across.abs() < 0.4 {
            let facing = if f64::from(self.right.0) * person.heading.cos() >= 0.0 {
                1.0
            } else {
                -1.0
            };
            hits.push(Hit {
                depth,
                place: (person.x, person.y),
                kind: Kind::Person { across, facing },
            });
        }
        hits.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    }

    fn solid(&self, solid: &Solid, x: f64, y: f64, dx: f64, dy: f64) -> Option<Hit> {
        let crossing = solid.footprint.cross(x, y, dx, dy)?;
        if crossing.enter < f64::from(NEAR) {
            return None;
        }
        // Light from the upper left of the plan.
        let shade = 0.86 + 0.12 * (crossing.normal.1 * 0.8 - crossing.normal.0 * 0.6);
        let place = (x + dx * crossing.enter, y + dy * crossing.enter);
        let kind = Kind::Upright {
            skin: solid.skin,
            height: solid.height as f32,
            along: crossing.along as f32,
            shade: shade as f32,
            leave: crossing.leave as f32,
        };
        Some(Hit {
            depth: crossing.enter as f32,
            place,
            kind,
        })
    }

    /// Depth of an upright figure that faces the camera, and the distance from its middle at which the column hits it.
    fn sprite(&self, x: f64, y: f64, column: usize) -> (f32, f64) {
        let (ox, oy) = (x as f32 - self.x, y as f32 - self.y);
        let depth = ox * self.ahead.0 + oy * self.ahead.1;
        let aside = ox * self.right.0 + oy * self.right.1;
        (
            depth,
            f64::from((column as f32 + 0.5 - WIDTH as f32 / 2.0) / FOCAL * depth - aside),
        )
    }
}

/// A colour, darkened or brightened by `light` / 256.
#[inline]
fn lit(colour: u32, light: u32) -> u32 {
    let channel = |shift: u32| ((((colour >> shift) & 0xff) * light) >> 8).min(255) << shift;
    channel(16) | channel(8) | channel(0)
}
