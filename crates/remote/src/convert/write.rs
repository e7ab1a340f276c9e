//! Writes control parts and data parts field by field (`docs/wire/control-part.md`), and the parts that ROS messages
//! have in common.

use super::read::{LIFTED, bad, carried};
use super::{ConvertError, RosMessage};
use crate::types::{Header, Orientation, Position, TimeStamp, Vector3};
use schema::{Flavour, MAX_PARTS};
use std::borrow::Cow;

/// Writes a message's parts from front to back, and keeps the first error.
pub struct Writer<'a> {
    control: Vec<u8>,
    parts: Vec<Cow<'a, [u8]>>,
    wrong: Option<ConvertError>,
    threshold: usize,
    pub(super) flavour: Flavour,
}

impl<'a> Writer<'a> {
    pub(super) fn new(flavour: Flavour, threshold: usize) -> Self {
        Self {
            control: Vec::with_capacity(128),
            parts: Vec::new(),
            wrong: None,
            threshold,
            flavour,
        }
    }

    pub(super) fn finish(self) -> Result<RosMessage<'a>, ConvertError> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(RosMessage {
                control: self.control,
                parts: self.parts,
            }),
        }
    }

    pub(super) fn fail(&mut self, wrong: ConvertError) {
        self.wrong.get_or_insert(wrong);
    }

    /// Returns the first error so far.
    pub(super) fn wrong(&self) -> Option<&ConvertError> {
        self.wrong.as_ref()
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.control.push(byte);
    }

    pub(super) fn word(&mut self, n: u32) {
        self.control.extend_from_slice(&n.to_le_bytes());
    }

    pub(super) fn float(&mut self, x: f32) {
        self.control.extend_from_slice(&x.to_le_bytes());
    }

    pub(super) fn doubles(&mut self, numbers: impl IntoIterator<Item = f64>) {
        for x in numbers {
            self.control.extend_from_slice(&x.to_le_bytes());
        }
    }

    pub(super) fn count(&mut self, field: &'static str, n: usize) {
        match u32::try_from(n) {
            Ok(n) if n < LIFTED => self.word(n),
            _ => self.fail(bad(
                field,
                format!("{n} elements exceed what a ROS message can hold"),
            )),
        }
    }

    pub(super) fn text(&mut self, field: &'static str, text: &str) {
        self.count(field, text.len());
        self.control.extend_from_slice(text.as_bytes());
    }

    pub(super) fn texts(&mut self, field: &'static str, texts: &[String]) {
        self.count(field, texts.len());
        texts.iter().for_each(|text| self.text(field, text));
    }

    /// Writes an array, as a data part if it is long.
    pub(super) fn bytes(&mut self, field: &'static str, element: usize, bytes: Cow<'a, [u8]>) {
        let at = self.control.len();
        self.count(field, bytes.len() / element);
        if bytes.is_empty() || bytes.len() < self.threshold || self.parts.len() >= MAX_PARTS {
            self.control.extend_from_slice(&bytes);
            return;
        }
        // The flag is the top bit of the last of the count's bytes.
        if let Some(byte) = self.control.get_mut(at + 3) {
            *byte |= 0x80;
        }
        self.parts.push(bytes);
    }

    pub(super) fn float_array(&mut self, field: &'static str, numbers: &[f32]) {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.bytes(field, 4, Cow::Owned(bytes));
    }

    pub(super) fn double_array(&mut self, field: &'static str, numbers: &[f64]) {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.bytes(field, 8, Cow::Owned(bytes));
    }

    pub(super) fn stamp(&mut self, stamp: Option<&TimeStamp>) {
        let stamp = stamp.copied().unwrap_or_default();
        match carried(stamp.secs, stamp.nsecs) {
            Ok(stamp) if self.flavour == Flavour::Ros2 && stamp.secs > i32::MAX as u32 => {
                self.fail(bad(
                    "stamp",
                    format!("{} s is after 2038, the end of ROS 2's time", stamp.secs),
                ));
            }
            Ok(stamp) => {
                self.word(stamp.secs);
                self.word(stamp.nsecs);
            }
            Err(wrong) => self.fail(wrong),
        }
    }

    pub(super) fn header(&mut self, header: Option<&Header>) {
        if self.flavour == Flavour::Ros1 {
            self.word(header.map_or(0, |h| h.seq));
        }
        self.stamp(header.and_then(|h| h.timestamp.as_ref()));
        self.text("frame_id", header.map_or("", |h| &h.frame));
    }

    pub(super) fn vector(&mut self, vector: Option<&Vector3>) {
        let Vector3 { x, y, z } = vector.copied().unwrap_or_default();
        self.doubles([x, y, z].map(f64::from));
    }

    pub(super) fn position(&mut self, position: Option<&Position>) {
        let Position { x, y, z } = position.copied().unwrap_or_default();
        self.doubles([x, y, z]);
    }

    /// Writes an orientation of norm 1; without one, the rotation about z.
    pub(super) fn orientation(&mut self, orientation: Option<&Orientation>, yaw: f32) {
        let Orientation { x, y, z, w } = orientation.copied().unwrap_or_default();
        let q = [x, y, z, w];
        let largest = q.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if q.iter().any(|x| !x.is_finite()) {
            self.doubles(q);
        } else if largest == 0.0 {
            let (sin, cos) = (f64::from(yaw) / 2.0).sin_cos();
            self.doubles([0.0, 0.0, sin, cos]);
        } else {
            // Divided by its largest element first, so that no square overflows or vanishes.
            let scaled = q.map(|x| x / largest);
            let norm = scaled.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (largest * norm - 1.0).abs() > 1e-3 {
                self.doubles(scaled.map(|x| x / norm));
            } else {
                self.doubles(q);
            }
        }
    }

    pub(super) fn covariance(&mut self, numbers: &[f32], n: usize) {
        match numbers.len() {
            0 => self.doubles((0..n).map(|_| 0.0)),
            len if len == n => self.doubles(numbers.iter().copied().map(f64::from)),
            len => self.fail(bad("covariance", format!("{len} numbers, expected {n} or none"))),
        }
    }
}
