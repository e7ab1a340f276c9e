//! The announcement of a topic, which a sender makes once.

use crate::config::{MAX_DEFINITION, MAX_HOST_NAME, MAX_NAME, MAX_PRIORITY};
use crate::route::MAX_DESTINATIONS;
use crate::wire::{PacketError, Reader, put_bytes, put_varint};

/// What the receiver does with messages that complete after a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// An older message is never delivered after a newer one.
    #[default]
    Latest,
    /// Each message is delivered as soon as it is complete (transforms, logs).
    Any,
    /// Messages are delivered in order: a complete message waits for those before it, until their sender gives them up.
    /// For reliable topics; on others it works as [`Ordering::Latest`].
    InOrder,
}

/// Effort of the link to deliver messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// A lost message stays lost.
    #[default]
    BestEffort,
    /// The sender keeps a message until the receiver has acknowledged it, and retransmits missing parts.
    Reliable,
    /// The sender adds parity, from which the receiver computes lost fragments; nothing is retransmitted.
    Redundant,
    /// As [`Reliability::Reliable`], but a large message is sent as a fountain: the sender sends symbols until enough
    /// have arrived, and any symbols count. For long or lossy paths, where asking for missing parts costs round
    /// trips.
    Bulk,
}

impl Reliability {
    /// Whether messages are kept until the receiver has reported their outcome.
    pub(crate) fn keeps(self) -> bool {
        matches!(self, Reliability::Reliable | Reliability::Bulk)
    }
}

/// The ROS version that a type belongs to, and how it compares with the type of the same name in the other version, in
/// the bus's format. Carried without being interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavour(pub [u8; 49]);

impl Default for Flavour {
    fn default() -> Self {
        Flavour([0; 49])
    }
}

/// A topic as its sender describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Topic name, 1 to 256 B.
    pub name: String,
    /// Message type, such as `sensor_msgs/LaserScan`, at most 256 B.
    pub type_name: String,
    /// Hash of the type (MD5 in ROS 1, or the first half of RIHS01).
    pub type_hash: [u8; 16],
    /// The ROS version that the type belongs to.
    pub flavour: Flavour,
    /// Full text of the type's definition, at most 256 KiB.
    pub definition: String,
    /// 0 to 127; 127 is the most important.
    pub priority: u8,
    /// Number of newest messages that wait at the sender.
    pub depth: u32,
    /// Effort of the link to deliver messages.
    pub reliability: Reliability,
    /// Whether the topic's publishers retransmit lost messages, if all of them agree.
    pub offers_reliable: Option<bool>,
    /// What the receiver does with late messages.
    pub ordering: Ordering,
    /// Late joiners receive its newest messages.
    pub latched: bool,
    /// Messages are sent only while the receiver states that the topic has a subscriber there. Not with `via`.
    pub when_watched: bool,
    /// Source and destinations, where messages may go over relays.
    pub via: Option<Via>,
}

/// Source and destinations of a topic whose messages may go over relays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// Host id of the source.
    pub source: u64,
    /// Its name, at most 64 B.
    pub name: String,
    /// Distinguishes the source's runs, since each starts numbering from scratch.
    pub run: u32,
    /// Host ids of the possible destinations, 1 to 62; [`crate::Route::to`] selects among them.
    pub to: Vec<u64>,
}

impl Via {
    /// The lowest host id of the possible destinations, which distinguishes the topic from others of the same name and
    /// source.
    pub(crate) fn first(&self) -> u64 {
        self.to.iter().copied().min().unwrap_or_default()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.name.len() <= MAX_HOST_NAME && (1..=MAX_DESTINATIONS).contains(&self.to.len())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.source.to_le_bytes());
        out.extend_from_slice(&self.run.to_le_bytes());
        put_bytes(out, self.name.as_bytes());
        put_varint(out, self.to.len() as u64);
        self.to
            .iter()
            .for_each(|h| out.extend_from_slice(&h.to_le_bytes()));
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let (source, run) = (r.u64()?, r.u32()?);
        let name = r.name(MAX_HOST_NAME, "host name")?.to_owned();
        let at = r.at();
        let count = r.varint()?;
        if !(1..=MAX_DESTINATIONS as u64).contains(&count) {
            return Err(PacketError::Invalid {
                what: "destinations",
                at,
            });
        }
        let to = (0..count).map(|_| r.u64()).collect::<Result<_, _>>()?;
        Ok(Via {
            source,
            name,
            run,
            to,
        })
    }
}

/// Flag in the byte of the reliability.
const LATCHED: u8 = 0x80;
/// Likewise: the flavour follows the type's hash.
const STATED: u8 = 0x40;
/// Likewise: what the publishers offer, if they state it.
const OFFERS_BEST_EFFORT: u8 = 0x10;
const OFFERS_RELIABLE: u8 = 0x20;
/// Likewise: messages are sent only while the topic is watched.
const WHEN_WATCHED: u8 = 0x08;
/// Longest encoded announcement: the texts, plus room for the scalars.
pub(crate) const MAX_ENCODED: usize =
    MAX_DEFINITION + 2 * MAX_NAME + 128 + MAX_HOST_NAME + 8 * MAX_DESTINATIONS + 16;

/// Announcement that withdraws a topic; every other announcement is longer.
pub(crate) const WITHDRAWN: &[u8] = &[0];

impl Announcement {
    /// Its bytes on the wire; `next_seq` is the number that the topic's next message will have.
    pub(crate) fn encode(&self, next_seq: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, next_seq);
        out.push(self.priority);
        put_varint(&mut out, self.depth.into());
        let latched = if self.latched { LATCHED } else { 0 };
        let reliability = match self.reliability {
            Reliability::BestEffort => 0,
            Reliability::Reliable => 1,
            Reliability::Redundant => 2,
            Reliability::Bulk => 3,
        };
        let stated = if self.flavour == Flavour::default() {
            0
        } else {
            STATED
        };
        let offered = match self.offers_reliable {
            None => 0,
            Some(false) => OFFERS_BEST_EFFORT,
            Some(true) => OFFERS_RELIABLE,
        };
        let when = if self.when_watched { WHEN_WATCHED } else { 0 };
        out.push(latched | stated | offered | when | reliability);
        out.push(match self.ordering {
            Ordering::Latest => 0,
            Ordering::Any => 1,
            Ordering::InOrder => 2,
        });
        out.extend_from_slice(&self.type_hash);
        if stated != 0 {
            out.extend_from_slice(&self.flavour.0);
        }
        put_bytes(&mut out, self.name.as_bytes());
        put_bytes(&mut out, self.type_name.as_bytes());
        put_bytes(&mut out, self.definition.as_bytes());
        if let Some(via) = &self.via {
            via.encode(&mut out);
        }
        out
    }

    /// Reads what [`Announcement::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, u64), PacketError> {
        let mut r = Reader::new(bytes);
        let next_seq = r.varint()?;
        let invalid = |what, at| PacketError::Invalid { what, at };
        let at = r.at();
        let priority = Some(r.u8()?)
            .filter(|p| *p <= MAX_PRIORITY)
            .ok_or(invalid("priority", at))?;
        let depth = r.varint32("depth")?;
        let at = r.at();
        let byte = r.u8()?;
        let latched = byte & LATCHED != 0;
        let offers_reliable = match byte & (OFFERS_BEST_EFFORT | OFFERS_RELIABLE) {
            0 => None,
            OFFERS_BEST_EFFORT => Some(false),
            OFFERS_RELIABLE => Some(true),
            _ => return Err(invalid("offer", at)),
        };
        let when_watched = byte & WHEN_WATCHED != 0;
        let flags = LATCHED | STATED | OFFERS_BEST_EFFORT | OFFERS_RELIABLE | WHEN_WATCHED;
        let reliability = match byte & !flags {
            0 => Reliability::BestEffort,
            1 => Reliability::Reliable,
            2 => Reliability::Redundant,
            3 => Reliability::Bulk,
            _ => return Err(invalid("reliability", at)),
        };
        let ordering = match r.u8()? {
            0 => Ordering::Latest,
            1 => Ordering::Any,
            2 => Ordering::InOrder,
            _ => return Err(invalid("ordering", at + 1)),
        };
        let type_hash = r.array()?;
        let flavour = match byte & STATED {
            0 => Flavour::default(),
            _ => Flavour(r.array()?),
        };
        let at = r.at();
        let name = Some(r.name(MAX_NAME, "topic name")?)
            .filter(|n| !n.is_empty())
            .ok_or(invalid("topic name", at))?;
        let type_name = r.name(MAX_NAME, "type name")?;
        let definition = r.text(MAX_DEFINITION, "definition")?;
        let via = if r.is_empty() {
            None
        } else {
            Some(Via::decode(&mut r)?)
        };
        if !r.is_empty() {
            return Err(invalid("announcement length", r.at()));
        }
        // A relay cannot report subscribers beyond it.
        if when_watched && via.is_some() {
            return Err(invalid("destinations", r.at()));
        }
        let (name, type_name, definition) = (name.to_owned(), type_name.to_owned(), definition.to_owned());
        Ok((
            Announcement {
                name,
                type_name,
                type_hash,
                flavour,
                definition,
                priority,
                depth,
                reliability,
                offers_reliable,
                ordering,
                latched,
                when_watched,
                via,
            },
            next_seq,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_make_the_round_trip_and_have_bounds() {
        let a = Announcement {
            name: "/camera/image".into(),
            type_name: "sensor_msgs/Image".into(),
            type_hash: *b"0123456789abcdef",
            flavour: Flavour([7; 49]),
            definition: "x".repeat(MAX_DEFINITION),
            priority: 127,
            depth: 3,
            reliability: Reliability::Reliable,
            offers_reliable: Some(false),
            ordering: Ordering::InOrder,
            latched: true,
            when_watched: false,
            via: Some(Via {
                source: 7,
                name: "h".repeat(64),
                run: 9,
                to: (0..62).collect(),
            }),
        };
        let bytes = a.encode(1 << 40);
        assert!(bytes.len() <= MAX_ENCODED);
        assert_eq!(Announcement::decode(&bytes), Ok((a.clone(), 1 << 40)));
        let without = Announcement {
            via: None,
            ..a.clone()
        };
        let seam = without.encode(1 << 40).len();
        assert_eq!(Announcement::decode(&bytes[..seam]), Ok((without, 1 << 40)));
        for cut in (0..seam).step_by(997).chain(seam + 1..bytes.len()) {
            assert!(Announcement::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for to in [Vec::new(), vec![1; 63]] {
            let via = a.via.clone().map(|v| Via { to, ..v });
            let a = Announcement { via, ..a.clone() };
            assert!(Announcement::decode(&a.encode(0)).is_err());
        }
        for offers_reliable in [None, Some(true)] {
            let a = Announcement {
                offers_reliable,
                ..a.clone()
            };
            assert_eq!(Announcement::decode(&a.encode(0)), Ok((a, 0)));
        }
        let watched = Announcement {
            when_watched: true,
            ..a.clone()
        };
        assert!(Announcement::decode(&watched.encode(0)).is_err(), "over relays");
        let watched = Announcement { via: None, ..watched };
        assert_eq!(Announcement::decode(&watched.encode(0)), Ok((watched, 0)));
        let mut both = a.encode(0);
        both[3] |= OFFERS_BEST_EFFORT | OFFERS_RELIABLE;
        assert!(Announcement::decode(&both).is_err());
        let refused = |a: Announcement| Announcement::decode(&a.encode(0)).is_err();
        assert!(refused(Announcement {
            priority: 128,
            ..a.clone()
        }));
        assert!(refused(Announcement {
            name: String::new(),
            ..a.clone()
        }));
        assert!(refused(Announcement {
            name: "n".repeat(257),
            ..a.clone()
        }));
        assert!(refused(Announcement {
            definition: "x".repeat(MAX_DEFINITION + 1),
            ..a.clone()
        }));
        assert!(
            Announcement::decode(&[a.encode(0), vec![0]].concat()).is_err(),
            "trailing bytes"
        );
    }
}
