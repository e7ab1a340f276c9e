//! Identities: GUIDs and their parts (DDSI-RTPS 2.5, sections 8.2.4 and 9.3.1).

use super::bytes::{Reader, put_u32};
use super::error::WireError;
use core::fmt;

/// First 12 bytes of a GUID, which identify the participant. By convention they begin with its vendor's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

/// Last 4 bytes of a GUID, which identify the endpoint in its participant; the last byte is its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityId(pub [u8; 4]);

/// A participant or an endpoint, unique in a domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid {
    /// Its participant.
    pub prefix: GuidPrefix,
    /// The entity of that participant.
    pub entity: EntityId,
}

/// Number of an implementation, assigned by the OMG.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// eProsima's Fast DDS.
    pub const FAST_DDS: VendorId = VendorId([0x01, 0x0f]);
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: VendorId = VendorId([0x01, 0x10]);
    /// Number that this crate announces; the OMG assigned it to no vendor.
    pub const OURS: VendorId = VendorId([0x01, 0xfe]);
}

impl EntityId {
    /// No particular entity: in a DATA, every reader that is matched with the writer.
    pub const UNKNOWN: EntityId = EntityId([0, 0, 0, 0]);
    /// The participant itself.
    pub const PARTICIPANT: EntityId = EntityId([0, 0, 1, 0xc1]);
    pub(crate) const SPDP_WRITER: EntityId = EntityId([0, 1, 0, 0xc2]);
    pub(crate) const PUBLICATIONS_WRITER: EntityId = EntityId([0, 0, 3, 0xc2]);
    pub(crate) const PUBLICATIONS_READER: EntityId = EntityId([0, 0, 3, 0xc7]);
    pub(crate) const SUBSCRIPTIONS_WRITER: EntityId = EntityId([0, 0, 4, 0xc2]);
    pub(crate) const SUBSCRIPTIONS_READER: EntityId = EntityId([0, 0, 4, 0xc7]);
    pub(crate) const MESSAGE_WRITER: EntityId = EntityId([0, 2, 0, 0xc2]);
    pub(crate) const MESSAGE_READER: EntityId = EntityId([0, 2, 0, 0xc7]);

    /// A writer of a topic without keys.
    pub(crate) fn writer(number: u32) -> EntityId {
        let [_, a, b, c] = number.to_be_bytes();
        EntityId([a, b, c, 0x03])
    }

    /// A reader of a topic without keys.
    pub(crate) fn reader(number: u32) -> EntityId {
        let [_, a, b, c] = number.to_be_bytes();
        EntityId([a, b, c, 0x04])
    }

    /// Whether its kind is a writer (section 9.3.1.2).
    pub fn is_writer(self) -> bool {
        matches!(self.0[3] & 0x3f, 0x02 | 0x03)
    }

    /// Whether its kind is a reader.
    pub fn is_reader(self) -> bool {
        matches!(self.0[3] & 0x3f, 0x04 | 0x07)
    }

    /// Whether it belongs to discovery or liveliness rather than to a user topic.
    pub fn is_builtin(self) -> bool {
        self.0[3] & 0xc0 == 0xc0
    }
}

impl Guid {
    /// The entity of a participant.
    pub const fn new(prefix: GuidPrefix, entity: EntityId) -> Self {
        Guid { prefix, entity }
    }

    /// Creates a GUID from its 16 bytes, as ROS 2 shows them in a `Gid`.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let (prefix, entity) = bytes.split_at(12);
        let mut guid = Guid::default();
        guid.prefix.0.copy_from_slice(prefix);
        guid.entity.0.copy_from_slice(entity);
        guid
    }

    /// Its 16 bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        let (prefix, entity) = out.split_at_mut(12);
        prefix.copy_from_slice(&self.prefix.0);
        entity.copy_from_slice(&self.entity.0);
        out
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Guid::from_bytes(r.array()?))
    }
}

/// A sample: its writer and its sequence number there. A reply refers to its request by this identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleIdentity {
    /// The writer.
    pub writer: Guid,
    /// Sequence number, from 1; [`SampleIdentity::UNKNOWN`] if only the writer is meant.
    pub sequence: i64,
}

impl SampleIdentity {
    /// `SEQUENCENUMBER_UNKNOWN` (section 9.3.2.2).
    pub const UNKNOWN: i64 = -1 << 32;

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(SampleIdentity {
            writer: Guid::read(r)?,
            sequence: read_sequence(r)?,
        })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.writer.to_bytes());
        put_sequence(out, self.sequence);
    }
}

/// Reads any sequence number: high half, low half.
pub(crate) fn read_sequence(r: &mut Reader<'_>) -> Result<i64, WireError> {
    let high = r.i32()?;
    Ok(i64::from(high) << 32 | i64::from(r.u32()?))
}

pub(crate) fn put_sequence(out: &mut Vec<u8>, n: i64) {
    put_u32(out, (n >> 32) as u32);
    put_u32(out, n as u32);
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.prefix, self.entity)
    }
}

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

macro_rules! debug_as_display {
    ($($t:ty)*) => {$(
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(GuidPrefix EntityId Guid VendorId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_gives_the_kind_of_an_entity() {
        assert!(EntityId::writer(7).is_writer() && !EntityId::writer(7).is_builtin());
        assert!(EntityId::reader(7).is_reader() && !EntityId::reader(7).is_writer());
        assert!(EntityId::PUBLICATIONS_WRITER.is_writer() && EntityId::PUBLICATIONS_WRITER.is_builtin());
        assert!(EntityId::MESSAGE_READER.is_reader());
        assert!(!EntityId::PARTICIPANT.is_reader() && !EntityId::PARTICIPANT.is_writer());
        assert_eq!(EntityId::writer(0x12_3456).0, [0x12, 0x34, 0x56, 3]);
    }

    #[test]
    fn sequence_numbers_of_any_value_make_the_round_trip() {
        for n in [
            1,
            SampleIdentity::UNKNOWN,
            -1,
            i64::MAX,
            0x1_0000_0000,
            0xffff_ffff,
        ] {
            let mut out = Vec::new();
            put_sequence(&mut out, n);
            assert_eq!(read_sequence(&mut Reader::new(&out, true)), Ok(n));
        }
        let guid = Guid::from_bytes(*b"0123456789abcdef");
        assert_eq!(guid.to_bytes(), *b"0123456789abcdef");
    }
}
