//! The attachment of each message, request and response: 33 bytes, little-endian, as rmw_zenoh writes them.

use crate::wire::Id;

/// Its length in bytes: sequence, time, length of the identity, identity.
pub(super) const LEN: usize = 8 + 8 + 1 + 16;

/// Sender, sequence number and time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    /// Counts a publisher's messages, or a client's requests.
    pub(super) sequence: i64,
    /// In nanoseconds since the Unix epoch.
    pub(super) time: i64,
    /// The endpoint that sent it; for a response, the client that sent the request.
    pub(super) sender: Id,
}

impl Attachment {
    pub(super) fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..8].copy_from_slice(&self.sequence.to_le_bytes());
        out[8..16].copy_from_slice(&self.time.to_le_bytes());
        out[16] = self.sender.len() as u8;
        out[17..].copy_from_slice(&self.sender);
        out
    }

    /// Reads an attachment; `None` if it is malformed. Ignores bytes that a later version may append.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (sequence, rest) = bytes.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let (sender, _) = rest.split_first_chunk()?;
        (usize::from(*len) == sender.len()).then(|| Attachment {
            sequence: i64::from_le_bytes(*sequence),
            time: i64::from_le_bytes(*time),
            sender: *sender,
        })
    }

    /// When it was sent, if the time is valid.
    pub(super) fn time(&self) -> Option<u64> {
        u64::try_from(self.time).ok().filter(|t| *t > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_rmw_zenoh() {
        let one = Attachment {
            sequence: 0x0102,
            time: 1_700_000_000_000_000_000,
            sender: std::array::from_fn(|i| i as u8),
        };
        let bytes = one.encode();
        assert_eq!(bytes.len(), 33);
        assert_eq!(bytes[..8], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16], 0x10);
        assert_eq!(bytes[17..], one.sender);
        assert_eq!(Attachment::decode(&bytes), Some(one));
        assert_eq!(Attachment::decode(&[&bytes[..], b"more"].concat()), Some(one));
        assert_eq!(one.time(), Some(1_700_000_000_000_000_000));
        assert_eq!(Attachment { time: -1, ..one }.time(), None);
    }

    #[test]
    fn truncated_attachments_are_refused_and_changed_ones_read_or_refused() {
        let bytes = Attachment {
            sequence: 1,
            time: 2,
            sender: [3; 16],
        }
        .encode();
        for len in 0..LEN {
            assert_eq!(Attachment::decode(&bytes[..len]), None, "{len}");
        }
        for at in 0..LEN {
            for value in [0, 1, 0x0f, 0x11, 0x7f, 0xff] {
                let mut mutant = bytes;
                mutant[at] = value;
                let read = Attachment::decode(&mutant);
                assert_eq!(read.is_some(), mutant[16] == 0x10);
                assert!(read.is_none_or(|r| r.encode() == mutant));
            }
        }
    }
}
