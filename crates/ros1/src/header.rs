//! Connection headers (wiki.ros.org/ROS/Connection Header), which both ends of a TCPROS connection send first.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Longest header of a peer that the bridge connected to, in bytes. It contains the message definition.
pub(crate) const MAX_HEADER: usize = 1 << 20;
/// Longest header of a peer that connects, in bytes: the longest definitions of Debian's packages have about 60 KiB.
pub(crate) const MAX_GREETING: usize = 256 << 10;
/// Maximum number of fields.
const MAX_FIELDS: usize = 64;
/// Fields that are names: they appear in logs, in the status and on the bus.
const NAMES: [&str; 7] = [
    "callerid",
    "topic",
    "service",
    "type",
    "md5sum",
    "request_type",
    "response_type",
];
/// The field by which bridges recognize each other. A bridge ignores what another one publishes in ROS, so nothing goes
/// in circles.
pub(crate) const BRIDGE: &str = "ropewalk_bridge";

/// A connection header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header(BTreeMap<String, String>);

/// Why a header cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a connection header of {len} bytes, more than the limit of {most}: this is not TCPROS")]
    TooLong { len: u32, most: usize },
    #[error("more than {MAX_FIELDS} fields in the connection header")]
    TooMany,
    #[error("a connection header that is truncated at byte {at}")]
    Cut { at: usize },
    #[error("a field without `=` at byte {at} of the connection header")]
    NoEquals { at: usize },
    #[error(
        "`{key}` of the connection header is not a name: at most {} printable characters",
        bus::MAX_NAME
    )]
    Name { key: &'static str },
}

impl Header {
    pub(crate) fn new(fields: &[(&str, &str)]) -> Header {
        Header(
            fields
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether a flag is set.
    pub(crate) fn is(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    /// Name of the other end, for people.
    pub(crate) fn caller(&self) -> &str {
        self.get("callerid").unwrap_or("a node without a name")
    }

    /// Encodes it, preceded by its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        for (key, value) in &self.0 {
            out.extend(((key.len() + value.len() + 1) as u32).to_le_bytes());
            out.extend(key.bytes());
            out.push(b'=');
            out.extend(value.bytes());
        }
        let len = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&len.to_le_bytes());
        out
    }

    /// Reads the fields, without the preceding length. If a name is repeated, the last field counts.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, HeaderError> {
        let mut fields = BTreeMap::new();
        let mut at = 0;
        while at < bytes.len() {
            let cut = HeaderError::Cut { at };
            let Some(len) = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()) else {
                return Err(cut);
            };
            let start = at + 4;
            let end = start.checked_add(u32::from_le_bytes(len) as usize);
            let Some(field) = end.and_then(|end| bytes.get(start..end)) else {
                return Err(cut);
            };
            let Some(equals) = field.iter().position(|b| *b == b'=') else {
                return Err(HeaderError::NoEquals { at });
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            fields.insert(text(&field[..equals]), text(&field[equals + 1..]));
            if fields.len() > MAX_FIELDS {
                return Err(HeaderError::TooMany);
            }
            at = start + field.len();
        }
        let bad = |key: &&str| fields.get(*key).is_some_and(|v| !v.is_empty() && !is_name(v));
        match NAMES.into_iter().find(bad) {
            Some(key) => Err(HeaderError::Name { key }),
            None => Ok(Header(fields)),
        }
    }

    /// Reads a header of at most `most` bytes from a stream. Memory grows with what has arrived.
    pub(crate) fn read(stream: &mut impl Read, most: usize) -> Result<Header, HeaderError> {
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len);
        if len as usize > most {
            return Err(HeaderError::TooLong { len, most });
        }
        let mut bytes = Vec::new();
        stream.take(len.into()).read_to_end(&mut bytes)?;
        if bytes.len() < len as usize {
            return Err(HeaderError::Cut { at: bytes.len() });
        }
        Header::decode(&bytes)
    }

    /// Writes it to a stream.
    pub(crate) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        stream.write_all(&self.encode())
    }
}

/// Whether a text from another node may be a name: not longer than the bus allows, and only ASCII without blanks and
/// control characters. (ROS requires more, but its nodes do not comply.)
pub(crate) fn is_name(text: &str) -> bool {
    (1..=bus::MAX_NAME).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        let header = Header::new(&[
            ("topic", "/chatter"),
            ("md5sum", "*"),
            ("message_definition", "a=b\nc"),
        ]);
        let mut bytes = &header.encode()[..];
        assert_eq!(Header::read(&mut bytes, MAX_HEADER).unwrap(), header);
        assert!(bytes.is_empty());
        assert_eq!(header.get("message_definition"), Some("a=b\nc"));
    }

    #[test]
    fn hostile_lengths_are_refused() {
        let text = |bytes: &[u8]| {
            Header::read(&mut &bytes[..], MAX_GREETING)
                .unwrap_err()
                .to_string()
        };
        assert!(text(&[0xff; 8]).contains("4294967295 bytes"));
        assert!(text(b"GET / HT").contains("not TCPROS"));
        assert!(text(&[8, 0, 0, 0, 200, 0, 0, 0, 1, 2, 3, 4]).contains("truncated at byte 0"));
        assert!(text(&[8, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]).contains("truncated"));
        assert!(text(&[8, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]).contains("without `=`"));
        assert!(text(&[8, 0, 0, 0, 4]).contains("truncated at byte 1"));
        let many = (0..100).map(|i| (format!("k{i}"), "v".to_owned())).collect();
        assert!(text(&Header(many).encode()).contains("more than 64"));
        assert!(text(&(MAX_GREETING as u32 + 1).to_le_bytes()).contains("limit of 262144"));
    }

    #[test]
    fn names_that_would_write_to_a_terminal_are_refused() {
        let long = "a".repeat(bus::MAX_NAME + 1);
        for bad in ["/a\x1b[2J", "/a b", "/\u{202e}a", "/a\n", long.as_str()] {
            for key in NAMES {
                let header = Header::new(&[(key, bad)]).encode();
                let error = Header::read(&mut &header[..], MAX_HEADER)
                    .unwrap_err()
                    .to_string();
                assert!(error.contains(key) && error.contains("255 printable"), "{error}");
            }
        }
        let good = Header::new(&[
            ("callerid", "/a_1"),
            ("md5sum", "*"),
            ("type", ""),
            ("error", "a b\n"),
        ])
        .encode();
        assert!(Header::read(&mut &good[..], MAX_HEADER).is_ok());
    }
}
