//! `ParticipantMessageData`: a participant asserts that its writers are alive (DDSI-RTPS 2.5, sections 8.4.13.5 and
//! 9.6.3.1).

use super::bytes::put_u32;
use super::ids::GuidPrefix;

/// Little-endian CDR, as the encapsulation of a payload.
const CDR_LE: [u8; 4] = [0, 1, 0, 0];

/// `PARTICIPANT_MESSAGE_DATA_KIND_AUTOMATIC_LIVELINESS_UPDATE`.
pub(crate) const AUTOMATIC: [u8; 4] = [0, 0, 0, 1];

/// The payload that keeps writers with automatic liveliness alive.
pub(crate) fn automatic(prefix: GuidPrefix) -> Vec<u8> {
    let mut out = CDR_LE.to_vec();
    out.extend_from_slice(&prefix.0);
    out.extend_from_slice(&AUTOMATIC);
    put_u32(&mut out, 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_participant_and_its_kind() {
        let message = automatic(GuidPrefix(*b"participant1"));
        assert_eq!(message, b"\0\x01\0\0participant1\0\0\0\x01\0\0\0\0");
    }
}
