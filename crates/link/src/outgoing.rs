//! Messages on their way to the radio.

use bus::Message;
use proto::{Body, Geometry, GeometryError};
use std::sync::Arc;

/// A message on its way to the radio; several peers share it.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<(Content, Geometry)>);

enum Content {
    /// As its publisher wrote it, in the publisher's block.
    Block(Message),
    /// Made here (filtered or packed), or of another host.
    Own(Vec<u8>),
}

impl Outgoing {
    /// A message of the bus, as it is.
    pub(crate) fn new(message: Message) -> Result<Self, GeometryError> {
        let parts: Vec<u32> = (0..message.part_count())
            .map(|i| length(message.part_len(i)))
            .collect();
        let geometry = Geometry::new(length(message.control().len()), &parts)?;
        Ok(Outgoing(Arc::new((Content::Block(message), geometry))))
    }

    /// A message of this control part and these data parts.
    pub(crate) fn made(mut control: Vec<u8>, parts: &[Vec<u8>]) -> Result<Self, GeometryError> {
        let lens: Vec<u32> = parts.iter().map(|p| length(p.len())).collect();
        let geometry = Geometry::new(length(control.len()), &lens)?;
        parts.iter().for_each(|p| control.extend_from_slice(p));
        Ok(Outgoing(Arc::new((Content::Own(control), geometry))))
    }

    /// A message that came from the radio and goes on.
    pub(crate) fn relayed(bytes: Vec<u8>, geometry: Geometry) -> Self {
        Outgoing(Arc::new((Content::Own(bytes), geometry)))
    }

    /// An envelope with a packed message in it.
    pub(crate) fn packed(envelope: Vec<u8>) -> Self {
        let geometry = Geometry::packed(length(envelope.len()));
        Outgoing(Arc::new((Content::Own(envelope), geometry)))
    }
}

impl Body for Outgoing {
    fn geometry(&self) -> Geometry {
        self.0.1
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        let (content, geometry) = &*self.0;
        let message = match content {
            Content::Block(message) => message,
            Content::Own(bytes) => return to.copy_from_slice(&bytes[offset as usize..][..to.len()]),
        };
        let mut rest = to;
        for (part, at, len) in geometry.pieces(offset, length(rest.len())) {
            let (piece, tail) = rest.split_at_mut(len as usize);
            match part {
                0 => piece.copy_from_slice(&message.control()[at as usize..][..len as usize]),
                n => {
                    message.part(n - 1).copy_to(at as usize, piece);
                }
            }
            rest = tail;
        }
    }
}

fn length(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_here_is_read_across_its_parts() {
        let body = Outgoing::made(vec![1, 2], &[vec![3], vec![], vec![4, 5]]).expect("a message");
        assert_eq!(body.geometry(), Geometry::new(2, &[1, 0, 2]).expect("a geometry"));
        let mut bytes = [0; 3];
        body.copy_at(1, &mut bytes);
        assert_eq!(bytes, [2, 3, 4]);
        assert!(Outgoing::packed(vec![7; 9]).geometry().is_packed());
    }
}
