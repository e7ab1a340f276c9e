//! Messages of the bus as the protocol carries them, written from their blocks.

use super::smaller::{Smaller, coarser, smaller};
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
    /// How the last message was sent.
    pub(crate) sent: Mutex<Sent>,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sent {
    #[default]
    Whole,
    /// Fewer pixels, because the client is slow.
    Slow { width: usize, height: usize },
    /// Fewer pixels or cells, because the whole message is too long.
    Shorter { width: usize, height: usize },
    /// Not at all.
    TooLong { bytes: usize },
}

impl Sent {
    /// A line about it, for the client. `longest`: bytes that a message may have.
    pub(crate) fn text(self, topic: &str, longest: usize) -> String {
        let limit = longest.div_ceil(1 << 20);
        match self {
            Sent::Whole => format!("{topic}: messages are sent in full size again"),
            Sent::Slow { width, height } => format!(
                "{topic}: images are reduced to {width} x {height} pixels because this connection is \
                 too slow; subscribe to a compressed topic for better ones"
            ),
            Sent::Shorter { width, height } => format!(
                "{topic}: messages are reduced to {width} x {height} because they are longer than {limit} MiB"
            ),
            Sent::TooLong { bytes } => format!(
                "{topic}: a message of {:.1} MiB is not sent: at most {limit} MiB may wait for a client",
                bytes as f64 / f64::from(1 << 20)
            ),
        }
    }
}

impl Delivery {
    /// Queues a message.
    pub(crate) fn push(self: &Arc<Self>, message: Message) {
        let follows = video::follows(&message);
        let keep = match message.is_history() {
            true => DEPTH as usize,
            false => follows.map_or(KEEP, |_| video::KEEP),
        };
        let mut body = Box::new(BusBody::new(self.clone(), message));
        if body.len > self.queue.longest() && !body.shorten() {
            *lock(&self.sent) = Sent::TooLong { bytes: body.len };
            return;
        }
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

/// A message of the bus for one subscription of a client.
struct BusBody {
    content: Content,
    len: usize,
    stamp: u64,
    /// When it was taken from the bus.
    taken: u64,
    delivery: Arc<Delivery>,
}

enum Content {
    /// Holds the message's block until it is sent or replaced.
    Block(Message),
    Shorter(Smaller),
}

impl BusBody {
    /// In ROS 1's serialization or in CDR.
    fn new(delivery: Arc<Delivery>, message: Message) -> Self {
        let parts: usize = (0..message.part_count()).map(|i| message.part(i).len()).sum();
        BusBody {
            len: HEAD + message.control().len() + parts,
            stamp: message.stamp().0,
            taken: if delivery.timed { now() } else { 0 },
            content: Content::Block(message),
            delivery,
        }
    }

    /// Makes a message that is too long shorter; false if that is not possible.
    fn shorten(&mut self) -> bool {
        let Content::Block(message) = &self.content else {
            return false;
        };
        let Delivery { flavour, queue, .. } = &*self.delivery;
        // Other messages wait, too.
        let most = queue.longest() / 2;
        let shorter = smaller(message, *flavour, queue.room().min(most));
        let Some(shorter) = shorter.or_else(|| coarser(message, *flavour, most)) else {
            return false;
        };
        self.len = HEAD + shorter.bytes.len();
        self.content = Content::Shorter(shorter);
        self.len <= queue.longest()
    }

    fn head(&self) -> ([u8; HEAD], usize) {
        let mut head = [0; HEAD];
        head[0] = MESSAGE;
        head[1..5].copy_from_slice(&self.delivery.subscription.to_le_bytes());
        head[5..13].copy_from_slice(&self.stamp.to_le_bytes());
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
            flavour, queue, sent, ..
        } = &*self.delivery;
        let (head, len) = self.head();
        let head = &head[..len];
        let message = match &self.content {
            Content::Block(message) => message,
            Content::Shorter(Smaller {
                bytes,
                width: w,
                height: h,
            }) => {
                let (width, height) = (*w, *h);
                *lock(sent) = Sent::Shorter { width, height };
                return write(&[head, bytes]);
            }
        };
        let room = queue.room();
        // No newer message follows a message that is kept for late joiners.
        if self.len > room
            && !message.is_history()
            && let Some(image) = smaller(message, *flavour, room)
        {
            *lock(sent) = Sent::Slow {
                width: image.width,
                height: image.height,
            };
            return write(&[head, &image.bytes]);
        }
        *lock(sent) = Sent::Whole;
        let bad = |error: CodecError| io::Error::new(ErrorKind::InvalidData, error);
        let parts: Vec<_> = (0..message.part_count())
            .map(|i| message.part(i).bytes())
            .collect();
        let join = message.schema().join(message.control(), &parts).map_err(bad)?;
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
