//! Messages on their way to the radio.

use crate::engine::calls::header::{Header, LEN, copy_control};
use bus::{Message, Reply, Request};
use proto::{Arriving, Body, Geometry, GeometryError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A message on its way to the radio, which several peers share.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<(Content, Geometry)>);

enum Content {
    /// As its publisher wrote it, in the publisher's block.
    Block(Message),
    /// Made on this host (filtered or packed).
    Own(Vec<u8>),
    /// From another host, possibly still arriving. Only the radio thread accesses it, so the lock is never
    /// contended.
    Carried(Mutex<Vec<u8>>, Option<Arriving>),
    /// Sealed for these hosts of its topic.
    Sealed(Vec<u8>, u64),
    /// Without content: sealed to prove that its topic is this host's.
    Notice,
    /// As its caller wrote it, after a header.
    Request([u8; LEN], Arc<Request>),
    /// As its server wrote it, after a header.
    Reply([u8; LEN], Reply),
}

impl Outgoing {
    /// A message of the bus, unchanged.
    pub(crate) fn new(message: Message) -> Result<Self, GeometryError> {
        let geometry = geometry(0, &message)?;
        Ok(Outgoing(Arc::new((Content::Block(message), geometry))))
    }

    /// A call's request. It is released once none of it is being sent any more.
    pub(crate) fn request(header: Header, request: Arc<Request>) -> Result<Self, GeometryError> {
        let geometry = geometry(LEN, request.message())?;
        let content = Content::Request(header.encode(), request);
        Ok(Outgoing(Arc::new((content, geometry))))
    }

    /// A call's reply.
    pub(crate) fn reply(header: Header, reply: Reply) -> Result<Self, GeometryError> {
        let geometry = geometry(LEN, reply.message())?;
        let content = Content::Reply(header.encode(), reply);
        Ok(Outgoing(Arc::new((content, geometry))))
    }

    /// A message with this control part and these data parts.
    pub(crate) fn made(control: &[u8], parts: &[Vec<u8>]) -> Result<Self, GeometryError> {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Self::with_head(&[], control, &parts)
    }

    /// A message with `head` in front of its control part.
    pub(crate) fn with_head(head: &[u8], control: &[u8], parts: &[&[u8]]) -> Result<Self, GeometryError> {
        let lens: Vec<u32> = parts.iter().map(|p| length(p.len())).collect();
        let geometry = Geometry::new(length(head.len() + control.len()), &lens)?;
        let pieces = [head, control].into_iter().chain(parts.iter().copied());
        let mut bytes = Vec::with_capacity(geometry.total_len() as usize);
        pieces.for_each(|piece| bytes.extend_from_slice(piece));
        Ok(Outgoing(Arc::new((Content::Own(bytes), geometry))))
    }

    /// A message of this shape, with its parts in sequence.
    pub(crate) fn flat(bytes: Vec<u8>, geometry: Geometry) -> Self {
        Outgoing(Arc::new((Content::Own(bytes), geometry)))
    }

    /// Memory for a message from the radio that is forwarded, immediately if it is `arriving`.
    pub(crate) fn carried(geometry: Geometry, arriving: Option<Arriving>) -> Self {
        let bytes = Mutex::new(vec![0; geometry.total_len() as usize]);
        Outgoing(Arc::new((Content::Carried(bytes, arriving), geometry)))
    }

    /// The bytes of a message from the radio that is forwarded.
    pub(crate) fn carried_bytes(&self) -> Option<MutexGuard<'_, Vec<u8>>> {
        match &self.0.0 {
            Content::Carried(bytes, _) => Some(bytes.lock().unwrap_or_else(PoisonError::into_inner)),
            _ => None,
        }
    }

    /// A sealed envelope, for these hosts of its topic.
    pub(crate) fn sealed(envelope: Vec<u8>, hosts: u64) -> Self {
        let geometry = Geometry::packed(length(envelope.len()));
        Outgoing(Arc::new((Content::Sealed(envelope, hosts), geometry)))
    }

    /// The hosts for which it is sealed, if it is.
    pub(crate) fn sealed_for(&self) -> Option<u64> {
        match &self.0.0 {
            Content::Sealed(_, hosts) => Some(*hosts),
            _ => None,
        }
    }

    /// A notice, which once sealed proves that a topic is this host's.
    pub(crate) fn notice() -> Self {
        Outgoing(Arc::new((Content::Notice, Geometry::packed(0))))
    }

    pub(crate) fn is_notice(&self) -> bool {
        matches!(self.0.0, Content::Notice)
    }

    /// An envelope that contains a packed message.
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
        let (head, message) = match content {
            Content::Block(message) => (None, message),
            Content::Request(head, request) => (Some(head), request.message()),
            Content::Reply(head, reply) => (Some(head), reply.message()),
            Content::Notice => return,
            Content::Own(bytes) | Content::Sealed(bytes, _) => {
                return to.copy_from_slice(&bytes[offset as usize..][..to.len()]);
            }
            Content::Carried(bytes, _) => {
                let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                return to.copy_from_slice(&bytes[offset as usize..][..to.len()]);
            }
        };
        let mut rest = to;
        for (part, at, len) in geometry.pieces(offset, length(rest.len())) {
            let (piece, tail) = rest.split_at_mut(len as usize);
            match part {
                0 => match head {
                    Some(head) => copy_control(head, message.control(), at as usize, piece),
                    None => piece.copy_from_slice(&message.control()[at as usize..][..len as usize]),
                },
                n => {
                    message.part(n - 1).copy_to(at as usize, piece);
                }
            }
            rest = tail;
        }
    }

    fn arriving(&self) -> Option<&Arriving> {
        match &self.0.0 {
            Content::Carried(_, arriving) => arriving.as_ref(),
            _ => None,
        }
    }
}

/// The shape of a message with this many bytes in front of its control part.
fn geometry(head: usize, message: &Message) -> Result<Geometry, GeometryError> {
    let parts: Vec<u32> = (0..message.part_count())
        .map(|i| length(message.part_len(i)))
        .collect();
    Geometry::new(length(head + message.control().len()), &parts)
}

fn length(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_made_here_are_read_across_their_parts() {
        let body = Outgoing::made(&[1, 2], &[vec![3], vec![], vec![4, 5]]).expect("a message");
        assert_eq!(body.geometry(), Geometry::new(2, &[1, 0, 2]).expect("a geometry"));
        let mut bytes = [0; 3];
        body.copy_at(1, &mut bytes);
        assert_eq!(bytes, [2, 3, 4]);
        assert!(Outgoing::packed(vec![7; 9]).geometry().is_packed());
    }
}
