//! The messages that endpoints exchange through their sockets; `docs/wire/bus.md` specifies them byte by
//! byte.
//!
//! Integers are little-endian. Every frame begins with a magic number and the protocol's version, so an error
//! can at least name a later version. A frame has no bytes after its last field.

mod bytes;

pub(crate) use bytes::{Reader, Writer, cut};

use crate::definition::{MAX_SHOWN, shown};
use crate::detail::{self, EndpointDetail, MAX_REFUSAL, MAX_REFUSALS};
use crate::subscriber::QueuePolicy;
use crate::topic::{Flavour, MAX_DEFINITION, MAX_NAME, Offer, TopicType};

/// Version of the protocol. Any change of a frame, of the ring or of the rules for dead processes changes it.
pub(crate) const PROTOCOL_VERSION: u16 = 3;
/// The longest frame except [`Info`] and [`Frame::Definition`].
pub(crate) const MAX_FRAME: usize = 2048;
/// The longest frame of a handshake.
pub(crate) const MAX_HANDSHAKE: usize = MAX_SHOWN + 64;
/// The longest frame.
pub(crate) const MAX_INFO: usize = MAX_DEFINITION + (16 << 10);

const MAGIC: [u8; 4] = *b"RWLK";
const MAX_TEXT: usize = 1024;

/// What an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Publisher,
    Subscriber,
    /// Asks for an [`Info`] and disconnects.
    Observer,
}

impl Role {
    fn code(self) -> u8 {
        match self {
            Role::Publisher => 1,
            Role::Subscriber => 2,
            Role::Observer => 3,
        }
    }

    fn from_code(code: u8) -> Option<Role> {
        [Role::Publisher, Role::Subscriber, Role::Observer]
            .into_iter()
            .find(|r| r.code() == code)
    }
}

/// Identity and topic of the sender. The connecting end sends it first; the other end answers with its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Version of the ring's and the block's layout.
    pub(crate) layout: u16,
    pub(crate) role: Role,
    pub(crate) domain: u32,
    pub(crate) id: u64,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: [u8; 16],
    /// A subscriber that does not convert leaves out the common sum.
    pub(crate) flavour: Flavour,
    /// What a publisher announces about itself; empty for other roles.
    pub(crate) offer: Offer,
}

/// What a subscriber requests from a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) depth: u32,
    pub(crate) max_held: u32,
    pub(crate) max_bytes: u64,
    pub(crate) queue: QueuePolicy,
    /// Maximum number of kept messages to send, and the number of the last message that the subscriber already has.
    pub(crate) history: u32,
    pub(crate) after: u64,
}

/// Why an endpoint refuses a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefuseCode {
    /// The two do not match and never will.
    Mismatch,
    /// The two are already connected.
    Duplicate,
    /// Try again later.
    Busy,
}

/// What an endpoint reports about itself to an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) domain: u32,
    pub(crate) id: u64,
    pub(crate) connected: u32,
    pub(crate) messages: u64,
    pub(crate) memory: u64,
    pub(crate) topic: TopicType,
    /// Also states the role.
    pub(crate) detail: EndpointDetail,
    /// Why recent peers were refused.
    pub(crate) refusals: Vec<String>,
}

/// A message on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Hello(Hello),
    Refuse {
        code: RefuseCode,
        text: String,
    },
    /// Comes with the descriptors of the subscriber's ring and doorbell.
    Attach(Wishes),
    /// A publisher's acceptance: from now on it queues messages.
    Welcome,
    /// A new segment; comes with its descriptor.
    Segment {
        id: u64,
        len: u64,
    },
    /// A segment without blocks that the subscriber must unmap.
    Retire {
        id: u64,
    },
    /// The answer to `Retire`.
    Unmapped {
        id: u64,
    },
    /// The answer to `Welcome`: from now on the subscriber takes messages.
    Ready,
    /// The subscriber takes no further messages, but still reads those that it holds.
    Closing,
    Info(Info),
    /// The sum and the definition of a sender whose type differs only in these, so that both ends can report
    /// the difference.
    Definition {
        hash: [u8; 16],
        /// At most [`MAX_SHOWN`] bytes.
        text: String,
    },
}

/// Why bytes are not a valid frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the peer does not speak this protocol")]
    Magic,
    #[error("the peer speaks version {theirs} of the bus protocol, this program version {PROTOCOL_VERSION}")]
    Version { theirs: u16 },
    #[error("the peer sent a malformed frame ({0})")]
    Malformed(&'static str),
}

impl Frame {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer(Vec::with_capacity(128));
        w.0.extend(MAGIC);
        w.u16(PROTOCOL_VERSION);
        match self {
            Frame::Hello(h) => {
                w.u16(1);
                w.u16(h.layout);
                w.u8(h.role.code());
                w.u32(h.domain);
                w.u64(h.id);
                w.text(&h.topic);
                w.text(&h.type_name);
                w.0.extend(h.type_hash);
                w.flavour(&h.flavour);
                w.offer(&h.offer);
            }
            Frame::Refuse { code, text } => {
                w.u16(2);
                w.u8(match code {
                    RefuseCode::Mismatch => 1,
                    RefuseCode::Duplicate => 2,
                    RefuseCode::Busy => 3,
                });
                w.text(cut(text, MAX_TEXT));
            }
            Frame::Attach(wishes) => {
                w.u16(3);
                w.u32(wishes.depth);
                w.u32(wishes.max_held);
                w.u64(wishes.max_bytes);
                w.queue(wishes.queue);
                w.u32(wishes.history);
                w.u64(wishes.after);
            }
            Frame::Welcome => w.u16(4),
            Frame::Segment { id, len } => {
                w.u16(5);
                w.u64(*id);
                w.u64(*len);
            }
            Frame::Retire { id } => {
                w.u16(6);
                w.u64(*id);
            }
            Frame::Unmapped { id } => {
                w.u16(7);
                w.u64(*id);
            }
            Frame::Ready => w.u16(8),
            Frame::Closing => w.u16(9),
            Frame::Definition { hash, text } => {
                w.u16(11);
                w.0.extend(hash);
                let text = shown(text);
                w.u32(text.len() as u32);
                w.0.extend(text.as_bytes());
            }
            Frame::Info(i) => {
                w.u16(10);
                let role = match i.detail {
                    EndpointDetail::Publisher(_) => Role::Publisher,
                    EndpointDetail::Subscriber(_) => Role::Subscriber,
                };
                w.u8(role.code());
                w.u32(i.domain);
                w.u64(i.id);
                w.u32(i.connected);
                w.u64(i.messages);
                w.u64(i.memory);
                w.text(&i.topic.topic);
                w.text(&i.topic.type_name);
                w.0.extend(i.topic.type_hash);
                w.flavour(&i.topic.flavour);
                w.u32(i.topic.definition.len() as u32);
                w.0.extend(i.topic.definition.as_bytes());
                detail::write(&mut w, &i.detail);
                let first = i.refusals.len().saturating_sub(MAX_REFUSALS);
                w.u8((i.refusals.len() - first) as u8);
                for text in &i.refusals[first..] {
                    w.text(cut(text, MAX_REFUSAL));
                }
            }
        }
        w.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
        let mut r = Reader(bytes);
        if r.bytes(4) != Some(&MAGIC) {
            return Err(FrameError::Magic);
        }
        match r.u16() {
            Some(PROTOCOL_VERSION) => {}
            Some(theirs) => return Err(FrameError::Version { theirs }),
            None => return Err(FrameError::Magic),
        }
        let kind = r.u16().ok_or(FrameError::Malformed("no kind"))?;
        let frame = match kind {
            1 => r.hello().ok_or(FrameError::Malformed("hello"))?,
            2 => r.refuse().ok_or(FrameError::Malformed("refuse"))?,
            3 => r.attach().ok_or(FrameError::Malformed("attach"))?,
            4 => Frame::Welcome,
            5 => r.segment().ok_or(FrameError::Malformed("segment"))?,
            6 => Frame::Retire {
                id: r.u64().ok_or(FrameError::Malformed("retire"))?,
            },
            7 => Frame::Unmapped {
                id: r.u64().ok_or(FrameError::Malformed("unmapped"))?,
            },
            8 => Frame::Ready,
            9 => Frame::Closing,
            10 => r.info().ok_or(FrameError::Malformed("info"))?,
            11 => r.definition().ok_or(FrameError::Malformed("definition"))?,
            _ => return Err(FrameError::Malformed("unknown kind")),
        };
        if r.0.is_empty() {
            Ok(frame)
        } else {
            Err(FrameError::Malformed("bytes after the end"))
        }
    }
}

impl Reader<'_> {
    fn hello(&mut self) -> Option<Frame> {
        Some(Frame::Hello(Hello {
            layout: self.u16()?,
            role: Role::from_code(self.u8()?)?,
            domain: self.u32()?,
            id: self.u64()?,
            topic: self.name(MAX_NAME)?,
            type_name: self.name(MAX_NAME)?,
            type_hash: self.array()?,
            flavour: self.flavour()?,
            offer: self.offer()?,
        }))
    }

    fn refuse(&mut self) -> Option<Frame> {
        let code = match self.u8()? {
            1 => RefuseCode::Mismatch,
            2 => RefuseCode::Duplicate,
            3 => RefuseCode::Busy,
            _ => return None,
        };
        Some(Frame::Refuse {
            code,
            text: self.text(MAX_TEXT)?,
        })
    }

    fn attach(&mut self) -> Option<Frame> {
        Some(Frame::Attach(Wishes {
            depth: self.u32()?,
            max_held: self.u32()?,
            max_bytes: self.u64()?,
            queue: self.queue()?,
            history: self.u32()?,
            after: self.u64()?,
        }))
    }

    fn definition(&mut self) -> Option<Frame> {
        let hash = self.array()?;
        let text = self.long_text(MAX_SHOWN)?.to_owned();
        Some(Frame::Definition { hash, text })
    }

    fn segment(&mut self) -> Option<Frame> {
        Some(Frame::Segment {
            id: self.u64()?,
            len: self.u64()?,
        })
    }

    fn info(&mut self) -> Option<Frame> {
        let role = Role::from_code(self.u8()?)?;
        let (domain, id, connected) = (self.u32()?, self.u64()?, self.u32()?);
        let (messages, memory) = (self.u64()?, self.u64()?);
        let (topic, type_name, type_hash) = (self.name(MAX_NAME)?, self.name(MAX_NAME)?, self.array()?);
        let flavour = self.flavour()?;
        let definition = self.long_text(MAX_DEFINITION)?.into();
        let topic = TopicType {
            topic,
            type_name,
            type_hash,
            flavour,
            definition,
        };
        let detail = match role {
            Role::Publisher => detail::read_publisher(self, messages, memory)?,
            Role::Subscriber => detail::read_subscriber(self)?,
            Role::Observer => return None,
        };
        let count = usize::from(self.u8()?);
        if count > MAX_REFUSALS {
            return None;
        }
        let mut refusals = Vec::new();
        for _ in 0..count {
            refusals.push(self.text(MAX_REFUSAL)?);
        }
        Some(Frame::Info(Info {
            domain,
            id,
            connected,
            messages,
            memory,
            topic,
            detail,
            refusals,
        }))
    }
}

#[cfg(test)]
fn flavour_sample() -> Flavour {
    Flavour {
        ros: crate::topic::Ros::Two,
        rihs01: [8; 32],
        common: [9; 16],
    }
}

/// One valid frame of each kind: seeds for tests and fuzzing.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Frame> {
    let hello = Hello {
        layout: 1,
        role: Role::Subscriber,
        domain: 3,
        id: 0x0123_4567_89AB_CDEF,
        topic: "/scan".into(),
        type_name: "sensor_msgs/LaserScan".into(),
        type_hash: [7; 16],
        flavour: flavour_sample(),
        offer: detail::offer_sample(),
    };
    let topic = TopicType {
        topic: "/scan".into(),
        type_name: "sensor_msgs/LaserScan".into(),
        type_hash: [7; 16],
        flavour: flavour_sample(),
        definition: "float32[] ranges\n".into(),
    };
    vec![
        Frame::Hello(hello),
        Frame::Refuse {
            code: RefuseCode::Mismatch,
            text: "the type differs".into(),
        },
        Frame::Attach(Wishes {
            depth: 16,
            max_held: 4,
            max_bytes: u64::MAX,
            queue: QueuePolicy::DropNewest,
            history: 1,
            after: 7,
        }),
        Frame::Welcome,
        Frame::Segment { id: 1, len: 4096 },
        Frame::Retire { id: 1 },
        Frame::Unmapped { id: 1 },
        Frame::Ready,
        Frame::Closing,
        Frame::Definition {
            hash: [7; 16],
            text: "float32[] ranges\n".into(),
        },
        Frame::Info(Info {
            domain: 0,
            id: 5,
            connected: 2,
            messages: 100,
            memory: 1 << 20,
            topic: topic.clone(),
            detail: EndpointDetail::Publisher(detail::sample(2)),
            refusals: vec!["the type differs".into()],
        }),
        Frame::Info(Info {
            domain: 0,
            id: 6,
            connected: 1,
            messages: 90,
            memory: 0,
            topic,
            detail: EndpointDetail::Subscriber(detail::SubscriberInfo::default()),
            refusals: vec![],
        }),
    ]
}

#[cfg(test)]
mod tests;
