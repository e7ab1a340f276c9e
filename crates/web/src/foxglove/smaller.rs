//! Smaller images for slow clients, and maps and images that are short enough to wait for a client.

use ropewalk::{Flavour, Message, Schema, Value};
use schema::Numbers;

/// An image or a map with fewer pixels or cells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Smaller {
    /// The message's serialization.
    pub(crate) bytes: Vec<u8>,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Makes a `sensor_msgs/Image` of at most about `most` bytes out of a longer one: every nth pixel of every nth row. `None`
/// for other types, for encodings without independent pixels, and for invalid images.
pub(crate) fn smaller(message: &Message, flavour: Flavour, most: usize) -> Option<Smaller> {
    let schema = message.schema();
    if schema.name() != "sensor_msgs/Image" || message.part_count() != 1 {
        return None;
    }
    let mut image = message.small_value().ok()?;
    let fields = image.as_message()?;
    let number = |name| usize::try_from(fields.field(name)?.as_integer()?).ok();
    let (width, height, step) = (number("width")?, number("height")?, number("step")?);
    let pixel = pixel_bytes(fields.field("encoding")?.as_str()?)?;
    let part = message.part(0);
    let data = part.bytes();
    let row = width.checked_mul(pixel).filter(|row| *row > 0 && *row <= step)?;
    if height == 0 || data.len() < step.checked_mul(height)? {
        return None;
    }
    let len = |n: usize| width.div_ceil(n) * height.div_ceil(n) * pixel;
    let n = (2..=width.max(height)).find(|n| len(*n) <= most)?;
    let mut pixels = Vec::with_capacity(len(n));
    for row in data
        .chunks_exact(step)
        .take(height)
        .step_by(n)
        .map(|line| &line[..row])
    {
        row.chunks_exact(pixel)
            .step_by(n)
            .for_each(|p| pixels.extend_from_slice(p));
    }
    let (width, height) = (width.div_ceil(n), height.div_ceil(n));
    let word = |n: usize| u32::try_from(n).ok().map(Value::U32);
    image.set("width", word(width)?).ok()?;
    image.set("height", word(height)?).ok()?;
    image.set("step", word(width * pixel)?).ok()?;
    image.set("data", Value::Numbers(Numbers::U8(pixels))).ok()?;
    Some(Smaller {
        bytes: encode(schema, flavour, &image)?,
        width,
        height,
    })
}

/// Makes a `nav_msgs/OccupancyGrid` of at most about `most` bytes out of a longer one: each cell has the highest value of n
/// by n cells, so that no wall disappears, and an unknown cell (-1) counts only among unknown ones. `None` for other types
/// and invalid maps.
pub(crate) fn coarser(message: &Message, flavour: Flavour, most: usize) -> Option<Smaller> {
    let schema = message.schema();
    if schema.name() != "nav_msgs/OccupancyGrid" || message.part_count() != 1 {
        return None;
    }
    let mut map = message.small_value().ok()?;
    let number = |name| usize::try_from(map.get(name).ok()?.as_integer()?).ok();
    let (width, height) = (number("info.width")?, number("info.height")?);
    let resolution = map.get("info.resolution").ok()?.as_f64()?;
    let part = message.part(0);
    let data = part.bytes();
    if width == 0 || data.len() != width.checked_mul(height)? {
        return None;
    }
    let n = (2..=width.max(height)).find(|n| width.div_ceil(*n) * height.div_ceil(*n) <= most)?;
    let (columns, rows) = (width.div_ceil(n), height.div_ceil(n));
    let mut cells = vec![i8::MIN; columns * rows];
    for (y, row) in data.chunks_exact(width).enumerate() {
        let merged = &mut cells[y / n * columns..][..columns];
        for (cell, of_it) in merged.iter_mut().zip(row.chunks(n)) {
            *cell = of_it
                .iter()
                .fold(*cell, |most, value| most.max(value.cast_signed()));
        }
    }
    let word = |n: usize| u32::try_from(n).ok().map(Value::U32);
    map.set("info.width", word(columns)?).ok()?;
    map.set("info.height", word(rows)?).ok()?;
    map.set("info.resolution", Value::F32((resolution * n as f64) as f32))
        .ok()?;
    map.set("data", Value::Numbers(Numbers::I8(cells))).ok()?;
    Some(Smaller {
        bytes: encode(schema, flavour, &map)?,
        width: columns,
        height: rows,
    })
}

fn encode(schema: &Schema, flavour: Flavour, value: &Value) -> Option<Vec<u8>> {
    let bytes = match flavour {
        Flavour::Ros1 => schema.encode_ros1(value),
        Flavour::Ros2 => schema.encode_cdr(value),
    };
    bytes.ok()
}

/// Bytes of a pixel, if pixels are independent of each other.
fn pixel_bytes(encoding: &str) -> Option<usize> {
    Some(match encoding {
        "mono8" | "8UC1" | "8SC1" => 1,
        "mono16" | "16UC1" | "16SC1" | "8UC2" => 2,
        "rgb8" | "bgr8" | "8UC3" => 3,
        "rgba8" | "bgra8" | "8UC4" | "32FC1" | "32SC1" | "16UC2" => 4,
        "rgb16" | "bgr16" | "16UC3" => 6,
        "rgba16" | "bgra16" | "16UC4" | "64FC1" | "32FC2" => 8,
        _ => return None,
    })
}
