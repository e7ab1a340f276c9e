//! Recognizes peers of version 7, to name them in errors. In version 7 each message is a protobuf envelope:
//!
//! | frame | fields |
//! |---|---|
//! | request | 1: its number; 2: its body, or 3: its body as JSON |
//! | acknowledgement | 1: the request's number |
//!
//! or the same as JSON. A robot of version 7 answers every frame that it does not understand, which includes all of
//! version 6, with an empty frame.

/// Returns whether a request is an envelope of version 7. One without a body looks like version 6's selection of a log
/// level.
pub fn is_version_7_frame(frame: &[u8]) -> bool {
    let is_json = frame.first() == Some(&b'{') && frame.last() == Some(&b'}') && contains(frame, b"\"type\"");
    is_json || is_envelope(frame).unwrap_or(false)
}

/// Returns whether a reply to a request of version 6 is one of version 7.
pub fn is_version_7_reply(reply: &[u8]) -> bool {
    reply.is_empty() || (reply.len() >= 2 && (reply.first() == Some(&0x08) || reply.first() == Some(&b'{')))
}

fn is_envelope(frame: &[u8]) -> Option<bool> {
    let rest = frame.strip_prefix(&[0x08])?;
    let (number, rest) = rest.split_first()?;
    let (tag, rest) = rest.split_first()?;
    // Numbers end at 127 in both versions: one byte.
    let (len, rest) = varint(rest)?;
    Some(*number < 0x80 && matches!(tag, 0x12 | 0x1a) && len == rest.len() as u64)
}

/// Reads a number of at most five bytes. Returns it with the rest.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(i + 1..)?));
        }
    }
    None
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|w| w == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v6::{Ack, Malformed, Request};

    #[test]
    fn messages_of_version_7_are_named_and_those_of_version_6_are_not() {
        // A heartbeat of 1 s, captured from version 7.
        let heartbeat = [0x08, 0x04, 0x12, 0x05, 0x0d, 0x00, 0x00, 0x80, 0x3f];
        assert_eq!(Request::parse(&heartbeat), Err(Malformed::Version7));
        let json = br#"{"type":"HEARTBEAT","json":"{}"}"#;
        assert_eq!(Request::parse(json), Err(Malformed::Version7));
        assert_eq!(Request::parse(&[8, 4]), Ok(Request::LogLevel(4)));
        for cut in 3..heartbeat.len() {
            let error = Request::parse(&heartbeat[..cut]).expect_err("no request");
            assert!(matches!(error, Malformed::Length { .. }), "{cut}: {error}");
        }
        assert_eq!(Ack::parse(11, &[8, 11]), Err(Malformed::Version7));
        assert_eq!(Ack::parse(8, &[8]), Ok(Ack::Taken));
        assert!(is_version_7_reply(&[]) && is_version_7_reply(&[8, 0]) && !is_version_7_reply(&[8]));
        assert!(!is_version_7_reply(crate::v6::PROTOCOL_VERSION.as_bytes()));
    }
}
