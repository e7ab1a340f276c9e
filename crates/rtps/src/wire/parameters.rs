//! Parameter lists (DDSI-RTPS 2.5, sections 9.4.2.11 and 9.6): inline QoS, and announcements of discovery.

use super::bytes::{Reader, put_u16};
use super::error::WireError;

/// Ids of parameters (section 9.6.3 and table 9.18).
pub(crate) mod pid {
    pub(crate) const PAD: u16 = 0x0000;
    pub(crate) const SENTINEL: u16 = 0x0001;
    pub(crate) const LEASE_DURATION: u16 = 0x0002;
    pub(crate) const TOPIC_NAME: u16 = 0x0005;
    pub(crate) const OWNERSHIP_STRENGTH: u16 = 0x0006;
    pub(crate) const TYPE_NAME: u16 = 0x0007;
    pub(crate) const DOMAIN_ID: u16 = 0x000f;
    pub(crate) const PROTOCOL_VERSION: u16 = 0x0015;
    pub(crate) const VENDOR_ID: u16 = 0x0016;
    pub(crate) const RELIABILITY: u16 = 0x001a;
    pub(crate) const LIVELINESS: u16 = 0x001b;
    pub(crate) const DURABILITY: u16 = 0x001d;
    pub(crate) const OWNERSHIP: u16 = 0x001f;
    pub(crate) const PRESENTATION: u16 = 0x0021;
    pub(crate) const DEADLINE: u16 = 0x0023;
    pub(crate) const DESTINATION_ORDER: u16 = 0x0025;
    pub(crate) const LATENCY_BUDGET: u16 = 0x0027;
    pub(crate) const PARTITION: u16 = 0x0029;
    pub(crate) const LIFESPAN: u16 = 0x002b;
    pub(crate) const USER_DATA: u16 = 0x002c;
    pub(crate) const UNICAST_LOCATOR: u16 = 0x002f;
    pub(crate) const DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
    pub(crate) const METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
    pub(crate) const HISTORY: u16 = 0x0040;
    pub(crate) const PARTICIPANT_GUID: u16 = 0x0050;
    pub(crate) const BUILTIN_ENDPOINT_SET: u16 = 0x0058;
    pub(crate) const ENDPOINT_GUID: u16 = 0x005a;
    pub(crate) const ENTITY_NAME: u16 = 0x0062;
    pub(crate) const KEY_HASH: u16 = 0x0070;
    pub(crate) const STATUS_INFO: u16 = 0x0071;
    pub(crate) const DATA_REPRESENTATION: u16 = 0x0073;
    pub(crate) const RELATED_SAMPLE_IDENTITY: u16 = 0x0083;
    pub(crate) const DOMAIN_TAG: u16 = 0x4014;
    /// The related sample's identity under Fast DDS' own ID.
    pub(crate) const FAST_DDS_RELATED_SAMPLE_IDENTITY: u16 = 0x800f;

    /// A receiver that does not know the parameter must refuse the list.
    pub(super) const MUST_UNDERSTAND: u16 = 0x4000;
}

/// Little-endian parameter list, as the encapsulation of a payload.
pub(crate) const PL_CDR_LE: [u8; 4] = [0, 3, 0, 0];

/// Iterates over parameters up to the sentinel. Each takes at least 4 bytes, so the datagram limits their number.
pub(crate) struct Parameters<'r, 'a> {
    from: &'r mut Reader<'a>,
}

impl<'r, 'a> Parameters<'r, 'a> {
    pub(crate) fn new(from: &'r mut Reader<'a>) -> Self {
        Parameters { from }
    }

    /// Returns the next parameter and its value; `None` at the sentinel.
    pub(crate) fn next(&mut self) -> Result<Option<(u16, Reader<'a>)>, WireError> {
        loop {
            let id = self.from.u16()?;
            let length = usize::from(self.from.u16()?);
            match id {
                pid::SENTINEL => return Ok(None),
                pid::PAD => drop(self.from.take(length)?),
                _ => {
                    let value = Reader::new(self.from.take(length)?, self.from.little());
                    return Ok(Some((id, value)));
                }
            }
        }
    }
}

/// Checks an unknown parameter: it is ignored, or makes the list unreadable.
pub(crate) fn unknown(id: u16) -> Result<(), WireError> {
    if id & pid::MUST_UNDERSTAND != 0 {
        return Err(WireError::MustUnderstand { pid: id });
    }
    Ok(())
}

/// Returns a reader for the parameters of a payload, with the byte order of its encapsulation.
pub(crate) fn payload(bytes: &[u8]) -> Result<Reader<'_>, WireError> {
    let mut r = Reader::new(bytes, true);
    match r.array::<4>()? {
        [0, 2, ..] => r.set_little(false),
        [0, 3, ..] => {}
        _ => {
            return Err(WireError::Invalid {
                what: "encapsulation of a parameter list",
                at: 0,
            });
        }
    }
    Ok(r)
}

/// Appends a parameter, whose value `write` appends, padded to a multiple of 4.
pub(crate) fn put(out: &mut Vec<u8>, id: u16, write: impl FnOnce(&mut Vec<u8>)) {
    put_u16(out, id);
    let at = out.len();
    put_u16(out, 0);
    write(out);
    let length = (out.len() - at - 2).next_multiple_of(4);
    out.resize(at + 2 + length, 0);
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&(length as u16).to_le_bytes());
    }
}

pub(crate) fn put_sentinel(out: &mut Vec<u8>) {
    put_u16(out, pid::SENTINEL);
    put_u16(out, 0);
}
