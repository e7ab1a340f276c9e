//! Point clouds: ROS's rows of bytes with named fields, and points with channels of numbers.

use super::read::{Reader, bad};
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::{ChannelFloat, PointCloud, Position};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum number of channels of a cloud.
const MAX_CHANNELS: usize = 1000;
/// ROS's number for 32-bit floating-point fields.
const FLOAT32: u8 = 7;
const AXES: [&str; 3] = ["x", "y", "z"];

/// From ROS, `x`, `y` and `z` of any type become the points, and every other field becomes a channel of 32-bit numbers.
/// A field of several numbers becomes as many channels, named `name_0` and so on. A 32-bit number keeps its bits, such
/// as those of a packed colour; whole numbers from 2^24 on are rounded, and a number beyond 32 bits becomes infinite.
/// To ROS, everything becomes 32-bit numbers in one row. Not converted: the division of the points into rows, and
/// `origin`; a cloud whose `origin` is not zero must be moved by it first.
impl Ros for PointCloud {
    const NAME: &'static str = "PointCloud";
    const TYPES: &'static [&'static str] = &["sensor_msgs/PointCloud2"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = Some(from.header()?);
        let (height, width): (u32, u32) = (from.word("height")?, from.word("width")?);
        // Length of its name, offset, type and count.
        let fields = from.count("fields", 13)?;
        let fields = (0..fields)
            .map(|_| Field::read(from))
            .collect::<Result<Vec<_>, _>>()?;
        let big = from.word::<u8>("is_bigendian")? != 0;
        let (step, row): (u32, u32) = (from.word("point_step")?, from.word("row_step")?);
        let data = from.bytes("data", 1)?;
        from.word::<u8>("is_dense")?;

        check(&fields, step)?;
        let rows = rows(data, height, width, step, row)?;
        let none = Field::default();
        let [x, y, z] = AXES.map(|axis| {
            fields
                .iter()
                .find(|f| f.name == axis)
                .or(rows.is_empty().then_some(&none))
        });
        let (Some(x), Some(y), Some(z)) = (x, y, z) else {
            return Err(bad("fields", "x, y or z is missing"));
        };
        let points = || {
            rows.iter()
                .flat_map(|row| row.chunks_exact((step as usize).max(1)))
        };
        let position = |p: &[u8]| Position {
            x: x.number(p, 0, big),
            y: y.number(p, 0, big),
            z: z.number(p, 0, big),
        };
        let mut channels = Vec::new();
        for field in fields.iter().filter(|f| !AXES.contains(&&*f.name)) {
            for n in 0..field.count {
                let values = points().map(|p| field.float(p, n, big)).collect();
                let name = match field.count {
                    1 => field.name.clone(),
                    _ => format!("{}_{n}", field.name),
                };
                channels.push(ChannelFloat { name, values });
            }
        }
        Ok(PointCloud {
            header,
            origin: None,
            points: points().map(position).collect(),
            channels,
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        let (points, fields) = (self.points.len(), AXES.len() + self.channels.len());
        let mut names = BTreeSet::from(AXES);
        for channel in &self.channels {
            if channel.values.len() != points {
                let why = format!(
                    "a channel has {} values for {points} points",
                    channel.values.len()
                );
                to.fail(bad("channels", why));
            }
            if !names.insert(channel.name.as_str()) {
                let why = format!(
                    "{:?} occurs twice",
                    channel.name.chars().take(100).collect::<String>()
                );
                to.fail(bad("channels", why));
            }
        }
        if self.channels.len() > MAX_CHANNELS {
            to.fail(bad("channels", format!("more than {MAX_CHANNELS} channels")));
        }
        let len = points as u64 * fields as u64 * 4;
        let (Ok(row), Ok(width), None) = (u32::try_from(len), u32::try_from(points), to.wrong()) else {
            to.fail(bad(
                "points",
                format!("{len} B exceed what a ROS message can hold"),
            ));
            return;
        };

        to.header(self.header.as_ref());
        to.word(1);
        to.word(width);
        to.count("fields", fields);
        let names = AXES.into_iter().chain(self.channels.iter().map(|c| &*c.name));
        for (name, offset) in names.zip((0..).step_by(4)) {
            to.text("fields", name);
            to.word(offset);
            to.byte(FLOAT32);
            to.word(1);
        }
        to.byte(0);
        to.word(4 * fields as u32);
        to.word(row);
        let mut data = Vec::with_capacity(row as usize);
        let mut dense = true;
        for (n, point) in self.points.iter().enumerate() {
            for x in [point.x, point.y, point.z] {
                let x = x as f32;
                dense &= x.is_finite();
                data.extend_from_slice(&x.to_le_bytes());
            }
            for channel in &self.channels {
                let value = channel.values.get(n).copied().unwrap_or_default();
                data.extend_from_slice(&value.to_le_bytes());
            }
        }
        to.bytes("data", 1, Cow::Owned(data));
        to.byte(dense.into());
    }
}

/// A ROS PointField.
#[derive(Default)]
struct Field {
    name: String,
    offset: u32,
    datatype: u8,
    count: u32,
}

impl Field {
    fn read(from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        Ok(Field {
            name: from.text("fields")?,
            offset: from.word("fields")?,
            datatype: from.word("fields")?,
            // Some drivers leave it at 0 and mean 1.
            count: from.word::<u32>("fields")?.max(1),
        })
    }

    /// Returns the bytes of one number; `None` if the type is invalid.
    fn size(&self) -> Option<u32> {
        Some(match self.datatype {
            1 | 2 => 1,
            3 | 4 => 2,
            5..=7 => 4,
            8 => 8,
            _ => return None,
        })
    }

    /// Returns the bytes of number `n` of a point, little-endian; zeros where there are none.
    fn bytes<const N: usize>(&self, point: &[u8], n: u32, big: bool) -> [u8; N] {
        let at = self.offset as usize + n as usize * N;
        let bytes = at.checked_add(N).and_then(|end| point.get(at..end));
        let mut bytes: [u8; N] = bytes.and_then(|b| b.try_into().ok()).unwrap_or([0; N]);
        if big {
            bytes.reverse();
        }
        bytes
    }

    fn number(&self, point: &[u8], n: u32, big: bool) -> f64 {
        match self.datatype {
            1 => i8::from_le_bytes(self.bytes(point, n, big)).into(),
            2 => u8::from_le_bytes(self.bytes(point, n, big)).into(),
            3 => i16::from_le_bytes(self.bytes(point, n, big)).into(),
            4 => u16::from_le_bytes(self.bytes(point, n, big)).into(),
            5 => i32::from_le_bytes(self.bytes(point, n, big)).into(),
            6 => u32::from_le_bytes(self.bytes(point, n, big)).into(),
            FLOAT32 => self.float(point, n, big).into(),
            _ => f64::from_le_bytes(self.bytes(point, n, big)),
        }
    }

    fn float(&self, point: &[u8], n: u32, big: bool) -> f32 {
        match self.datatype {
            // Without a conversion to 64 bits, which would change some of the bit patterns of NaN.
            FLOAT32 => f32::from_le_bytes(self.bytes(point, n, big)),
            _ => self.number(point, n, big) as f32,
        }
    }
}

/// Checks that the fields lie within a point, and together are not longer than it. So the memory for reading is
/// proportional to the received bytes.
fn check(fields: &[Field], step: u32) -> Result<(), ConvertError> {
    let (mut total, mut channels) = (0u64, 0u64);
    for field in fields {
        let Some(size) = field.size() else {
            return Err(bad(
                "fields",
                format!("the data type {} is not one of 1 to 8", field.datatype),
            ));
        };
        let len = u64::from(size) * u64::from(field.count);
        if u64::from(field.offset) + len > step.into() {
            return Err(bad(
                "fields",
                format!("a field extends beyond the {step} B of a point"),
            ));
        }
        total += len;
        channels += u64::from(field.count);
    }
    if total > step.into() {
        return Err(bad(
            "fields",
            format!("the fields need {total} B, but a point has {step} B"),
        ));
    }
    if channels > MAX_CHANNELS as u64 + 3 {
        return Err(bad("fields", format!("more than {MAX_CHANNELS} channels")));
    }
    Ok(())
}

/// Returns the points' bytes of each row, without its padding.
fn rows(data: &[u8], height: u32, width: u32, step: u32, row: u32) -> Result<Vec<&[u8]>, ConvertError> {
    if height == 0 || width == 0 {
        return Ok(Vec::new());
    }
    // With points of 0 B, the data does not limit their number.
    if step == 0 {
        return Err(bad(
            "point_step",
            format!("0 B, but the cloud has {height} rows of {width} points"),
        ));
    }
    let len = u64::from(width) * u64::from(step);
    let needed = (u64::from(height - 1) * u64::from(row)).saturating_add(len);
    if (height > 1 && u64::from(row) < len) || needed > data.len() as u64 {
        let have = data.len();
        let why = format!("{have} B are too few for {height} rows of {width} points of {step} B");
        return Err(bad("data", why));
    }
    let one = |n: u32| {
        let at = (u64::from(n) * u64::from(row)) as usize;
        data.get(at..at + len as usize).unwrap_or_default()
    };
    Ok((0..height).map(one).collect())
}
