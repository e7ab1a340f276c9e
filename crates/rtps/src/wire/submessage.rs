//! Content of submessages (DDSI-RTPS 2.5, sections 8.3.8 and 9.4.5).

use super::bytes::Reader;
use super::error::WireError;
use super::ids::{EntityId, GuidPrefix, read_sequence};
use super::inline::InlineQos;
use super::kind;
use super::number::{MAX_SEQUENCE, NumberSet};
use super::time::Timestamp;

/// A submessage that borrows its payload from the datagram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Submessage<'a> {
    Data(Data<'a>),
    DataFrag(DataFrag<'a>),
    Heartbeat(Heartbeat),
    HeartbeatFrag(HeartbeatFrag),
    AckNack(AckNack),
    NackFrag(NackFrag),
    Gap(Gap),
    /// When the following submessages were written.
    InfoTs(Option<Timestamp>),
    /// Destination of the following submessages; all zero for every participant.
    InfoDst(GuidPrefix),
    /// Source of the following submessages.
    InfoSrc(GuidPrefix),
    /// Padding, or a kind that is not needed here.
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    None,
    Data(&'a [u8]),
    /// Only the key of an instance, for example when it is disposed of.
    Key(&'a [u8]),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data<'a> {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence: i64,
    pub(crate) inline: InlineQos,
    pub(crate) payload: Payload<'a>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DataFrag<'a> {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence: i64,
    pub(crate) inline: InlineQos,
    /// Number of the first fragment in this submessage, from 1.
    pub(crate) first: u32,
    pub(crate) count: u16,
    /// Size of every fragment in bytes, except the last of the sample.
    pub(crate) fragment_size: u16,
    pub(crate) sample_size: u32,
    /// Whether the sample is only the key of an instance.
    pub(crate) key: bool,
    /// Exactly the bytes of the fragments.
    pub(crate) bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) count: u32,
    /// No answer is requested if nothing is missing.
    pub(crate) last_word: bool,
    pub(crate) liveliness: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatFrag {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence: i64,
    pub(crate) last: u32,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckNack {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    /// All samples before its base arrived; those in it are missing.
    pub(crate) missing: NumberSet,
    pub(crate) count: u32,
    /// No heartbeat is requested.
    pub(crate) last_word: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NackFrag {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence: i64,
    pub(crate) missing: NumberSet,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    /// The gap covers this sample up to the base of the set, base excluded, and those in the set.
    pub(crate) first: i64,
    pub(crate) set: NumberSet,
}

pub(crate) const LITTLE: u8 = 0x01;
pub(crate) const INLINE: u8 = 0x02;
pub(crate) const FINAL: u8 = 0x02;
pub(crate) const INVALIDATE: u8 = 0x02;
pub(crate) const HAS_DATA: u8 = 0x04;
pub(crate) const LIVELINESS: u8 = 0x04;
pub(crate) const FRAGMENT_OF_KEY: u8 = 0x04;
pub(crate) const HAS_KEY: u8 = 0x08;

impl<'a> Submessage<'a> {
    /// Reads a submessage from its kind, its flags and what follows its header.
    pub(crate) fn read(id: u8, flags: u8, body: &'a [u8]) -> Result<Self, WireError> {
        let r = &mut Reader::new(body, flags & LITTLE != 0);
        Ok(match id {
            kind::DATA => Submessage::Data(data(r, flags)?),
            kind::DATA_FRAG => Submessage::DataFrag(data_frag(r, flags)?),
            kind::HEARTBEAT => Submessage::Heartbeat(Heartbeat {
                reader: entity(r)?,
                writer: entity(r)?,
                first: read_sequence(r)?,
                last: read_sequence(r)?,
                count: r.u32()?,
                last_word: flags & FINAL != 0,
                liveliness: flags & LIVELINESS != 0,
            }),
            kind::HEARTBEAT_FRAG => Submessage::HeartbeatFrag(HeartbeatFrag {
                reader: entity(r)?,
                writer: entity(r)?,
                sequence: sequence(r)?,
                last: r.u32()?,
                count: r.u32()?,
            }),
            kind::ACKNACK => Submessage::AckNack(AckNack {
                reader: entity(r)?,
                writer: entity(r)?,
                missing: NumberSet::read(r)?,
                count: r.u32()?,
                last_word: flags & FINAL != 0,
            }),
            kind::NACK_FRAG => Submessage::NackFrag(NackFrag {
                reader: entity(r)?,
                writer: entity(r)?,
                sequence: sequence(r)?,
                missing: NumberSet::read_fragments(r)?,
                count: r.u32()?,
            }),
            kind::GAP => Submessage::Gap(Gap {
                reader: entity(r)?,
                writer: entity(r)?,
                first: sequence(r)?,
                set: NumberSet::read(r)?,
            }),
            kind::INFO_TS if flags & INVALIDATE != 0 => Submessage::InfoTs(None),
            kind::INFO_TS => Submessage::InfoTs(Timestamp::read(r)?),
            kind::INFO_DST => Submessage::InfoDst(GuidPrefix(r.array()?)),
            kind::INFO_SRC => {
                // Unused bytes, version, vendor.
                r.take(8)?;
                Submessage::InfoSrc(GuidPrefix(r.array()?))
            }
            _ => Submessage::Skipped,
        })
    }
}

fn entity(r: &mut Reader<'_>) -> Result<EntityId, WireError> {
    Ok(EntityId(r.array()?))
}

/// Reads a sample's sequence number, from 1.
fn sequence(r: &mut Reader<'_>) -> Result<i64, WireError> {
    let at = r.at();
    let n = read_sequence(r)?;
    if !(1..=MAX_SEQUENCE).contains(&n) {
        return Err(WireError::Invalid {
            what: "sequence number",
            at,
        });
    }
    Ok(n)
}

/// Reads extra flags and the offset of the parameters, counted from after that field. Skips what a later version puts
/// before them.
fn head(r: &mut Reader<'_>, least: usize) -> Result<usize, WireError> {
    r.u16()?;
    let at = r.at();
    let skip = usize::from(r.u16()?);
    if skip < least {
        return Err(WireError::Invalid {
            what: "offset of the inline QoS",
            at,
        });
    }
    Ok(skip - least)
}

fn data<'a>(r: &mut Reader<'a>, flags: u8) -> Result<Data<'a>, WireError> {
    let more = head(r, 16)?;
    let (reader, writer, sequence) = (entity(r)?, entity(r)?, sequence(r)?);
    r.take(more)?;
    let inline = if flags & INLINE != 0 {
        InlineQos::read(r)?
    } else {
        InlineQos::default()
    };
    let payload = match flags & (HAS_DATA | HAS_KEY) {
        0 => Payload::None,
        HAS_DATA => Payload::Data(r.rest()),
        HAS_KEY => Payload::Key(r.rest()),
        _ => {
            return Err(WireError::Invalid {
                what: "payload of data and key at once",
                at: r.at(),
            });
        }
    };
    Ok(Data {
        reader,
        writer,
        sequence,
        inline,
        payload,
    })
}

fn data_frag<'a>(r: &mut Reader<'a>, flags: u8) -> Result<DataFrag<'a>, WireError> {
    let more = head(r, 28)?;
    let (reader, writer, sequence) = (entity(r)?, entity(r)?, sequence(r)?);
    let at = r.at();
    let (first, count, fragment_size, sample_size) = (r.u32()?, r.u16()?, r.u16()?, r.u32()?);
    r.take(more)?;
    let inline = if flags & INLINE != 0 {
        InlineQos::read(r)?
    } else {
        InlineQos::default()
    };
    let invalid = WireError::Invalid {
        what: "numbers of the fragments",
        at,
    };
    // In 64 bits none of these overflow: 2^32 fragments of 2^16 bytes.
    let from = u64::from(first).checked_sub(1).ok_or(invalid)? * u64::from(fragment_size);
    let to = (from + u64::from(count) * u64::from(fragment_size)).min(u64::from(sample_size));
    let last = from + u64::from(count.saturating_sub(1)) * u64::from(fragment_size);
    if fragment_size == 0 || count == 0 || last >= u64::from(sample_size) {
        return Err(invalid);
    }
    Ok(DataFrag {
        reader,
        writer,
        sequence,
        inline,
        first,
        count,
        fragment_size,
        sample_size,
        key: flags & FRAGMENT_OF_KEY != 0,
        bytes: r.take((to - from) as usize)?,
    })
}

impl DataFrag<'_> {
    /// Number of fragments of the sample.
    pub(crate) fn fragments(&self) -> u32 {
        self.sample_size.div_ceil(u32::from(self.fragment_size.max(1)))
    }
}
