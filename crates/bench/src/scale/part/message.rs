//! The messages: a header with a text, a laser scan or an image, with the message's number in the header's stamp.

use crate::kit::part::PeerError;
use ropewalk::{Flavour, Publisher, Registry, Schema};

/// A smaller message is a header whose text has this many bytes.
const LEAST_SCAN: u64 = 128;
/// A message of this size or more is an image.
const LEAST_IMAGE: u64 = 100_000;
/// Bytes of a scan other than its ranges, and of an image other than its data, on ROS 1's wire.
const SCAN_HEAD: u64 = 52;
const IMAGE_HEAD: u64 = 42;

/// Creates a message of a given size in bytes with a number.
type Make = fn(u64, u32) -> Vec<u8>;

/// A message that is sent repeatedly, with a different number each time.
pub(super) struct Template {
    pub(super) schema: Schema,
    control: Vec<u8>,
    parts: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    pub(super) numbers: Numbers,
}

/// Position of a message's number in the control part.
#[derive(Clone, Copy)]
pub(super) struct Numbers(usize);

impl Numbers {
    /// Returns the number of a received message.
    pub(super) fn of(self, control: &[u8]) -> Option<u32> {
        let bytes = control.get(self.0..self.0 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn put(self, control: &mut [u8], number: u32) {
        control[self.0..self.0 + 4].copy_from_slice(&number.to_le_bytes());
    }
}

impl Template {
    /// Creates a message of this many bytes as ROS 1 counts them: of only the text, or of the whole scan or image.
    pub(super) fn new(bytes: u64) -> Result<Template, PeerError> {
        let (name, make): (&str, Make) = match bytes {
            0..LEAST_SCAN => ("std_msgs/Header", text),
            LEAST_SCAN..LEAST_IMAGE => ("sensor_msgs/LaserScan", scan),
            _ => ("sensor_msgs/Image", image),
        };
        let wrong = |e: &dyn std::fmt::Display| PeerError::Type(format!("{name}: {e}"));
        let schema = Registry::new(Flavour::Ros1).schema(name).map_err(|e| wrong(&e))?;
        let split = |number: u32| {
            let bytes = make(bytes, number);
            schema
                .split_ros1(&bytes)
                .map(|split| split.to_parts())
                .map_err(|e| wrong(&e))
        };
        // The number is where two messages with different numbers differ.
        let (one, other) = (split(0)?, split(u32::MAX)?);
        let at = one.control.iter().zip(&other.control).position(|(a, b)| a != b);
        let at = at.filter(|at| at + 4 <= one.control.len());
        Ok(Template {
            numbers: Numbers(at.ok_or_else(|| wrong(&"its control part has no stamp"))?),
            lengths: one.parts.iter().map(Vec::len).collect(),
            schema,
            control: one.control,
            parts: one.parts,
        })
    }

    /// Sends message `number`; returns false if memory is short.
    pub(super) fn send(
        &self,
        publisher: &Publisher,
        number: u32,
        stamp: impl FnOnce(),
    ) -> Result<bool, PeerError> {
        let mut loan = match publisher.loan(self.control.len(), &self.lengths) {
            Ok(loan) => loan,
            Err(bus::LoanError::MemoryShort { .. }) => {
                stamp();
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        let control = loan.control_mut();
        control.copy_from_slice(&self.control);
        self.numbers.put(control, number);
        for (i, part) in self.parts.iter().enumerate() {
            loan.part_mut(i).copy_from_slice(part);
        }
        stamp();
        publisher.publish(loan)?;
        Ok(true)
    }
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend((value as u32).to_le_bytes());
}

/// seq, stamp, frame_id
fn header(number: u32, frame: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, 0);
    put(&mut out, number.into());
    put(&mut out, 0);
    put(&mut out, frame);
    out.extend(b"Hello World".iter().cycle().take(frame as usize));
    out
}

fn text(bytes: u64, number: u32) -> Vec<u8> {
    header(number, bytes)
}

/// Seven numbers, ranges, no intensities.
fn scan(bytes: u64, number: u32) -> Vec<u8> {
    let mut out = header(number, 0);
    let ranges = (bytes - SCAN_HEAD) / 4;
    out.extend([0; 28]);
    put(&mut out, ranges);
    out.extend((0..ranges).flat_map(|i| (1.0 + i as f32 / 1000.0).to_le_bytes()));
    put(&mut out, 0);
    out
}

/// Height, width, encoding, is_bigendian, step, data.
fn image(bytes: u64, number: u32) -> Vec<u8> {
    let mut out = header(number, 0);
    let data = bytes - IMAGE_HEAD;
    put(&mut out, 1);
    put(&mut out, data);
    put(&mut out, 5);
    out.extend(b"mono8");
    out.push(0);
    put(&mut out, data);
    put(&mut out, data);
    out.extend((0..data).map(|i| i as u8));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_bytes_that_they_are_named_for() {
        assert_eq!(text(11, 7).len(), 16 + 11);
        // Whole ranges only.
        assert_eq!(scan(4250, 7).len(), 4248);
        assert_eq!(image(308_000, 7).len(), 308_000);
        for bytes in [1, 11, 127, 128, 4250, 99_999, 100_000, 308_000] {
            let template = Template::new(bytes).expect("a template");
            let numbers = template.numbers;
            assert_eq!(numbers.of(&template.control), Some(0));
            let mut control = template.control.clone();
            numbers.put(&mut control, 513);
            assert_eq!(numbers.of(&control), Some(513));
            assert_eq!(numbers.of(&control[..numbers.0 + 3]), None);
        }
        assert_eq!(Template::new(4250).expect("a scan").lengths, [4196]);
    }
}
