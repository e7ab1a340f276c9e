//! Messages from the radio in memory of their own, for drivers without a bus.

use super::calls::Content;
use super::calls::header::LEN;
use proto::Geometry;

/// A message, of a service with the header in front of its control part.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) geometry: Geometry,
}

impl Received {
    /// Memory for a message of this shape.
    pub(crate) fn new(geometry: Geometry) -> Self {
        Received {
            bytes: vec![0; geometry.total_len() as usize],
            geometry,
        }
    }

    /// Writes bytes at a flat offset.
    pub(crate) fn write(&mut self, offset: u32, bytes: &[u8]) {
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl Content for Received {
    fn control(&mut self) -> &[u8] {
        &self.bytes[LEN..self.geometry.control_len() as usize]
    }
}
