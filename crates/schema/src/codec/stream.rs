//! Reads and writes ROS 1 bytes piece by piece, through sockets, without a copy of the whole message.

use super::join::Join;
use super::write::{CdrSink, Out, write_packed};
use super::{Elements, LIFTED, MAX_COUNT, Sink, Text, natural_len, packed};
use crate::plan::{Lift, Step};
use crate::{CodecError, Schema};
use std::borrow::Cow;

/// Position of the data part of a message whose first bytes have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    count: u32,
    at: usize,
    part_len: usize,
    control_len: usize,
}

impl Schema {
    /// Finds the data part of a ROS 1 message of `total` bytes from its first bytes, so that the rest can be written
    /// directly to its destination as it arrives. `None` if that is not possible: the type has several arrays that may
    /// become data parts, or one inside another array, or its elements are converted; or the array is shorter than the
    /// threshold or does not start in `head`. The caller collects and splits such a message
    /// ([`split_ros1`](Self::split_ros1)).
    ///
    /// The bytes that follow may still not be a message of this type: [`join`](Self::join) checks that.
    pub fn bulk_ros1(&self, head: &[u8], total: usize) -> Option<Bulk> {
        let plan = &self.inner.plan;
        let place = plan.packed.iter().position(|s| matches!(s, Step::Lift(_)))?;
        let Some(Step::Lift(lift)) = plan.packed.get(place) else {
            return None;
        };
        if plan.lifts().len() != 1 || lift.element.padded() {
            return None;
        }
        let before = packed::length(plan.packed.get(..place)?, head).ok()?;
        let at = before.checked_add(4)?;
        let count = u32::from_le_bytes(head.get(before..at)?.try_into().ok()?);
        if count > lift.bound.min(MAX_COUNT) {
            return None;
        }
        let part_len = natural_len(lift, count);
        if part_len < self.threshold.max(1) || at.checked_add(part_len)? > total {
            return None;
        }
        Some(Bulk {
            count,
            at,
            part_len,
            control_len: total - part_len,
        })
    }
}

impl Bulk {
    /// Bytes of the message before the data part.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Length of the data part in bytes.
    pub fn part_len(&self) -> usize {
        self.part_len
    }

    /// Length of the control part in bytes. [`write_head`](Self::write_head) writes its first [`at`](Self::at) bytes;
    /// the others are the message's bytes after the data part.
    pub fn control_len(&self) -> usize {
        self.control_len
    }

    /// Writes the first [`at`](Self::at) bytes of the control part, from the same `head`. Leaves buffers that are too
    /// short unchanged.
    pub fn write_head(&self, head: &[u8], control: &mut [u8]) {
        let before = self.at - 4;
        if let (Some(head), Some(control)) = (head.get(..before), control.get_mut(..self.at)) {
            let (front, word) = control.split_at_mut(before);
            front.copy_from_slice(head);
            word.copy_from_slice(&(self.count | LIFTED).to_le_bytes());
        }
    }
}

impl Join<'_> {
    /// The ROS 1 bytes in pieces, in order, to be written one after another: data parts in place, unless their elements
    /// are converted.
    pub fn ros1_pieces(&self) -> Vec<Cow<'_, [u8]>> {
        let mut pieces = Vec::with_capacity(3 * self.lifted.len() + 1);
        let mut from = 0;
        for found in &self.lifted {
            pieces.push(Cow::Borrowed(self.control.get(from..found.at).unwrap_or(&[])));
            pieces.push(Cow::Owned(found.count.to_le_bytes().to_vec()));
            pieces.push(match found.elements {
                Elements::Natural(bytes) if !found.lift.element.padded() => Cow::Borrowed(bytes),
                _ => {
                    let mut packed = vec![0; found.packed_len()];
                    write_packed(found, &mut packed);
                    Cow::Owned(packed)
                }
            });
            from = found.at + 4;
        }
        pieces.push(Cow::Borrowed(self.control.get(from..).unwrap_or(&[])));
        pieces
    }

    /// The CDR bytes with their header in pieces, in order, to be written one after another: large data parts of numbers
    /// in place, the rest in between copied.
    ///
    /// # Errors
    /// None for a message that was accepted.
    pub fn cdr_pieces(&self) -> Result<Vec<Cow<'_, [u8]>>, CodecError> {
        let mut sink = CdrPieces {
            sink: CdrSink { out: Grow::default() },
            pieces: vec![Cow::Borrowed(&[0, 1, 0, 0])],
        };
        self.walk(&mut sink)?;
        sink.flush();
        Ok(sink.pieces)
    }
}

/// A data part below this length in bytes is copied: a piece of its own costs more.
const MIN_PIECE: usize = 1024;

/// Bytes since the last piece.
#[derive(Default)]
struct Grow {
    /// Length of all pieces before.
    before: usize,
    bytes: Vec<u8>,
}

impl Out for Grow {
    fn fill(&mut self, len: usize, f: impl FnOnce(&mut [u8])) {
        let from = self.bytes.len();
        self.bytes.resize(from + len, 0);
        f(self.bytes.get_mut(from..).unwrap_or_default());
    }

    fn len(&self) -> usize {
        self.before + self.bytes.len()
    }
}

/// Writes CDR, but refers to large data parts.
struct CdrPieces<'a> {
    sink: CdrSink<Grow>,
    pieces: Vec<Cow<'a, [u8]>>,
}

impl CdrPieces<'_> {
    fn flush(&mut self) {
        let out = &mut self.sink.out;
        out.before += out.bytes.len();
        self.pieces.push(Cow::Owned(std::mem::take(&mut out.bytes)));
    }
}

impl<'a> Sink<'a> for CdrPieces<'a> {
    fn run(&mut self, word: u8, bytes: &'a [u8], swap: bool) {
        self.sink.run(word, bytes, swap);
    }

    fn dummy(&mut self, count: u32) {
        Sink::dummy(&mut self.sink, count);
    }

    fn text(&mut self, text: Text<'a>) {
        self.sink.text(text);
    }

    fn count(&mut self, count: u32) {
        self.sink.count(count);
    }

    fn array(&mut self, lift: &'a Lift, count: u32, at: usize, elements: Elements<'a>) {
        match (elements, lift.uniform) {
            (Elements::Natural(bytes), Some(word)) if bytes.len() >= MIN_PIECE => {
                self.sink.count(count);
                self.sink.align(word);
                self.flush();
                self.sink.out.before += bytes.len();
                self.pieces.push(Cow::Borrowed(bytes));
            }
            _ => self.sink.array(lift, count, at, elements),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Flavour, Registry};

    fn image(data: usize) -> Vec<u8> {
        let mut bytes = vec![7; 12];
        for text in [&b"camera"[..], b"jpeg"] {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text);
        }
        bytes.extend((data as u32).to_le_bytes());
        bytes.extend((0..data).map(|i| i as u8));
        bytes
    }

    #[test]
    fn a_message_that_comes_in_pieces_is_the_same_as_one_that_is_split() {
        let schema = Registry::new(Flavour::Ros1)
            .schema("sensor_msgs/CompressedImage")
            .unwrap();
        let bytes = image(1000);
        for seen in 0..bytes.len() {
            let bulk = schema.bulk_ros1(&bytes[..seen], bytes.len());
            assert_eq!(bulk.is_some(), seen >= 34, "{seen}");
            let Some(bulk) = bulk else { continue };
            let mut control = vec![0; bulk.control_len()];
            bulk.write_head(&bytes[..seen], &mut control);
            let (part, rest) = bytes[bulk.at()..].split_at(bulk.part_len());
            control[bulk.at()..].copy_from_slice(rest);
            assert_eq!(schema.join_ros1(&control, &[part]).unwrap(), bytes);
        }
        assert_eq!(schema.bulk_ros1(&bytes, 1033), None, "longer than the message");
        assert_eq!(
            schema.bulk_ros1(&image(255), image(255).len()),
            None,
            "below the threshold"
        );
    }

    #[test]
    fn types_with_several_arrays_or_padded_elements_are_gathered() {
        let registry = Registry::new(Flavour::Ros1);
        for name in ["sensor_msgs/LaserScan", "std_msgs/String", "tf2_msgs/TFMessage"] {
            let schema = registry.schema(name).unwrap().with_threshold(0);
            assert_eq!(schema.bulk_ros1(&[0; 4096], 4096), None, "{name}");
        }
    }

    #[test]
    fn pieces_are_the_message() {
        let registry = Registry::new(Flavour::Ros1);
        for name in [
            "sensor_msgs/LaserScan",
            "sensor_msgs/PointCloud2",
            "sensor_msgs/JointState",
        ] {
            let schema = registry.schema(name).unwrap().with_threshold(0);
            let bytes = schema.encode_ros1(&schema.default_value()).unwrap();
            let split = schema.split_ros1(&bytes).unwrap();
            let mut control = vec![0; split.control_len()];
            split.write_control(&mut control).unwrap();
            let parts = vec![&[][..]; split.part_count()];
            let join = schema.join(&control, &parts).unwrap();
            let pieces = join.ros1_pieces();
            assert_eq!(pieces.concat(), bytes, "{name}");
        }
    }

    #[test]
    fn pieces_of_cdr_are_the_message_and_large_parts_stand_in_place() {
        let registry = Registry::new(Flavour::Ros2);
        let text = "{header: {frame_id: abc}, intensities: [1], ranges: ";
        for (n, borrowed) in [(0, 1), (3, 1), (1000, 2)] {
            let schema = registry
                .schema("sensor_msgs/LaserScan")
                .unwrap()
                .with_threshold(0);
            let yaml = format!("{text}[{}]}}", vec!["1.5"; n].join(", "));
            let parts = schema.encode(&schema.value_from_yaml(&yaml).unwrap()).unwrap();
            let slices = parts.slices();
            let join = schema.join(&parts.control, &slices).unwrap();
            let pieces = join.cdr_pieces().unwrap();
            assert_eq!(
                pieces.concat(),
                schema.join_cdr(&parts.control, &slices).unwrap(),
                "{n}"
            );
            let in_place = pieces
                .iter()
                .filter(|p| matches!(p, std::borrow::Cow::Borrowed(_)));
            assert_eq!(in_place.count(), borrowed, "{n}");
        }
    }
}
