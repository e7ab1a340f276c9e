//! Messages of the bus as the protocol carries them, written from their blocks.

use super::smaller::smaller;
use super::{Shared, lock, video};
use crate::{Body, KEEP, Push, Queue};
use ropewalk::{CodecError, Flavour, Message};
use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Messages of one publisher that wait on the bus or for the client, such as the history of a latched topic.
pub(crate) const DEPTH: u32 = 256;
/// The operation with which the server sends a message of a topic.
const MESSAGE: u8 = 1;
/// The operation with which the server sends a message with two more times of this host's clock: when it took the
/// message from the bus, and when it began to write it. Only for clients that ask for it (decision 354).
const TIMED: u8 = 0x80;
/// Size of operation, subscription, time of publication, and the two times.
const HEAD: usize = 29;
/// Size without the two times.
const SHORT_HEAD: usize = 13;

/// How a subscription of a client receives its messages.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) subscription: u32,
    pub(crate) topic: String,
    pub(crate) flavour: Flavour,
    /// Whether the client asked for the times of each message.
    pub(crate) timed: bool,
    pub(crate) shared: Arc<Shared>,
    /// The client's queue, which knows how fast the client receives.
    pub(crate) queue: Arc<Queue>,
    /// Width and height of the images after reduction; `None` while they are sent in full size.
    pub(crate) size: Mutex<Option<(usize, usize)>>,
}

impl Delivery {
    /// Queues a message.
    pub(crate) fn push(self: &Arc<Self>, message: Message) {
        let follows = video::follows(&message);
        let keep = match message.is_history() {
            true => DEPTH as usize,
            false => follows.map_or(KEEP, |_| video::KEEP),
        };
        let body = Box::new(BusBody::new(self.clone(), message));
        let priority = self.shared.options.priority(&self.topic, body.len());
        self.queue.push(Push {
            topic: self.subscription,
            priority,
            keep,
            follows: follows == Some(true),
            body,
        });
    }
}

/// A message of the bus for one subscription of a client; holds the message's block until it is sent or replaced.
struct BusBody {
    message: Message,
    len: usize,
    /// When it was taken from the bus.
    taken: u64,
    delivery: Arc<Delivery>,
}

impl BusBody {
    /// In ROS 1's serialization or in CDR.
    fn new(delivery: Arc<Delivery>, message: Message) -> Self {
        let parts: usize = (0..message.part_count()).map(|i| message.part(i).len()).sum();
        BusBody {
            len: HEAD + message.control().len() + parts,
            taken: if delivery.timed { now() } else { 0 },
            message,
            delivery,
        }
    }

    fn head(&self) -> ([u8; HEAD], usize) {
        let mut head = [0; HEAD];
        head[0] = MESSAGE;
        head[1..5].copy_from_slice(&self.delivery.subscription.to_le_bytes());
        head[5..13].copy_from_slice(&self.message.stamp().0.to_le_bytes());
        if !self.delivery.timed {
            return (head, SHORT_HEAD);
        }
        head[0] = TIMED;
        head[13..21].copy_from_slice(&self.taken.to_le_bytes());
        head[21..].copy_from_slice(&now().to_le_bytes());
        (head, HEAD)
    }
}

impl Body for BusBody {
    fn len(&self) -> usize {
        self.len
    }

    fn pieces(&self, write: &mut dyn FnMut(&[&[u8]]) -> io::Result<()>) -> io::Result<()> {
        let Delivery {
            flavour, queue, size, ..
        } = &*self.delivery;
        let (head, len) = self.head();
        let head = &head[..len];
        let room = queue.room();
        // No newer message follows a message that is kept for late joiners.
        if self.len > room
            && !self.message.is_history()
            && let Some(image) = smaller(&self.message, *flavour, room)
        {
            *lock(size) = Some((image.width, image.height));
            return write(&[head, &image.bytes]);
        }
        *lock(size) = None;
        let bad = |error: CodecError| io::Error::new(ErrorKind::InvalidData, error);
        let parts: Vec<_> = (0..self.message.part_count())
            .map(|i| self.message.part(i).bytes())
            .collect();
        let join = self
            .message
            .schema()
            .join(self.message.control(), &parts)
            .map_err(bad)?;
        let pieces = match flavour {
            Flavour::Ros1 => join.ros1_pieces(),
            Flavour::Ros2 => join.cdr_pieces().map_err(bad)?,
        };
        let mut all: Vec<&[u8]> = Vec::with_capacity(pieces.len() + 1);
        all.push(head);
        all.extend(pieces.iter().map(Cow::as_ref));
        write(&all)
    }
}

/// Nanoseconds since 1970, as stamps have them.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
