//! Messages of the bus as the protocol carries them, written from their blocks.

use super::lock;
use super::smaller::smaller;
use crate::{Body, Queue};
use ropewalk::{CodecError, Flavour, Message};
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

/// The operation with which the server sends a message of a topic.
const MESSAGE: u8 = 1;
/// Operation, subscription, time.
const HEAD: usize = 13;

/// Width and height in which a subscription's images are sent; none while they are sent as they are.
pub(crate) type SentSize = Mutex<Option<(usize, usize)>>;

/// A message of the bus for one subscription of a client; holds the message's block until it is sent or replaced.
pub(crate) struct BusBody {
    head: [u8; HEAD],
    message: Message,
    flavour: Flavour,
    len: usize,
    /// The client's queue, which knows how fast the client receives.
    queue: Arc<Queue>,
    sent: Arc<SentSize>,
}

impl BusBody {
    /// In ROS 1's serialization or in CDR.
    pub(crate) fn new(
        subscription: u32,
        message: Message,
        flavour: Flavour,
        queue: Arc<Queue>,
        sent: Arc<SentSize>,
    ) -> Self {
        let mut head = [0; HEAD];
        head[0] = MESSAGE;
        head[1..5].copy_from_slice(&subscription.to_le_bytes());
        head[5..].copy_from_slice(&message.stamp().0.to_le_bytes());
        let parts: usize = (0..message.part_count()).map(|i| message.part(i).len()).sum();
        BusBody {
            head,
            len: HEAD + message.control().len() + parts,
            message,
            flavour,
            queue,
            sent,
        }
    }
}

impl Body for BusBody {
    fn len(&self) -> usize {
        self.len
    }

    fn pieces(&self, write: &mut dyn FnMut(&[&[u8]]) -> io::Result<()>) -> io::Result<()> {
        let room = self.queue.room();
        // No other follows what is kept for late joiners.
        if self.len > room
            && !self.message.is_history()
            && let Some(image) = smaller(&self.message, self.flavour, room)
        {
            *lock(&self.sent) = Some((image.width, image.height));
            return write(&[&self.head, &image.bytes]);
        }
        *lock(&self.sent) = None;
        let bad = |error: CodecError| io::Error::new(ErrorKind::InvalidData, error);
        let parts: Vec<_> = (0..self.message.part_count())
            .map(|i| self.message.part(i).bytes())
            .collect();
        let join = self
            .message
            .schema()
            .join(self.message.control(), &parts)
            .map_err(bad)?;
        let pieces = match self.flavour {
            Flavour::Ros1 => join.ros1_pieces(),
            Flavour::Ros2 => join.cdr_pieces().map_err(bad)?,
        };
        let mut all: Vec<&[u8]> = Vec::with_capacity(pieces.len() + 1);
        all.push(&self.head);
        all.extend(pieces.iter().map(Cow::as_ref));
        write(&all)
    }
}
