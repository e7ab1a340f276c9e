//! `ros_discovery_info`: the nodes of a DDS participant, and the endpoints of each node
//! (`rmw_dds_common/msg/ParticipantEntitiesInfo`, in CDR).

/// Topic name in DDS.
pub(super) const TOPIC: &str = "ros_discovery_info";
/// Type name in DDS.
pub(super) const TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
/// Type hash in ROS 2.
pub(super) const HASH: [u8; 32] = [
    0x91, 0xa0, 0x59, 0x3b, 0xac, 0xdc, 0xc5, 0x0e, 0xa9, 0xbd, 0xcf, 0x84, 0x9a, 0x93, 0x8b, 0x12, 0x84,
    0x12, 0xcc, 0x1e, 0xa8, 0x21, 0x24, 0x5c, 0x66, 0x3b, 0xcd, 0x26, 0xf8, 0x3c, 0x29, 0x5e,
];
/// Maximum number of nodes of a participant, of endpoints of a node, and longest name in bytes.
const MAX_NODES: usize = 1024;
const MAX_ENDPOINTS: usize = 4096;
const MAX_NAME: usize = 512;
/// Little endian CDR.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// A DDS endpoint or participant.
pub(super) type Gid = [u8; 16];

/// The nodes of a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entities {
    /// The participant.
    pub(super) gid: Gid,
    /// Its nodes.
    pub(super) nodes: Vec<Node>,
}

/// A node and its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Its namespace, `/` if it has none.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// What it subscribes to.
    pub(super) readers: Vec<Gid>,
    /// What it publishes.
    pub(super) writers: Vec<Gid>,
}

/// Why bytes are not a message of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub(super) struct EntitiesError {
    /// Position.
    pub(super) at: usize,
    /// What is wrong.
    pub(super) what: &'static str,
}

impl Entities {
    /// Encodes it as CDR, with its header of 4 bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = HEADER.to_vec();
        out.extend(self.gid);
        count(&mut out, self.nodes.len());
        for node in &self.nodes {
            text(&mut out, &node.namespace);
            text(&mut out, &node.name);
            for gids in [&node.readers, &node.writers] {
                count(&mut out, gids.len());
                gids.iter().for_each(|gid| out.extend(gid));
            }
        }
        out
    }

    /// Reads CDR of either byte order. Takes time and memory in proportion to its length.
    ///
    /// # Errors
    /// [`EntitiesError`]
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, EntitiesError> {
        let is_little = match bytes {
            [0, 0, ..] => false,
            [0, 1, ..] => true,
            _ => {
                return Err(EntitiesError {
                    at: 0,
                    what: "not plain CDR",
                });
            }
        };
        let mut from = Reader {
            bytes,
            at: 4,
            is_little,
        };
        let gid = from.gid()?;
        let nodes = from.list(MAX_NODES, |from| {
            Ok(Node {
                namespace: from.text()?,
                name: from.text()?,
                readers: from.list(MAX_ENDPOINTS, Reader::gid)?,
                writers: from.list(MAX_ENDPOINTS, Reader::gid)?,
            })
        })?;
        Ok(Entities { gid, nodes })
    }
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn count(out: &mut Vec<u8>, n: usize) {
    pad(out);
    // Longer sequences are never written.
    out.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    count(out, text.len() + 1);
    out.extend(text.bytes());
    out.push(0);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    is_little: bool,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, what: &'static str) -> Result<T, EntitiesError> {
        Err(EntitiesError { at: self.at, what })
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], EntitiesError> {
        let end = self.at.checked_add(n);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return self.wrong("unexpected end");
        };
        self.at += n;
        Ok(taken)
    }

    fn gid(&mut self) -> Result<Gid, EntitiesError> {
        let mut gid = Gid::default();
        gid.copy_from_slice(self.take(16)?);
        Ok(gid)
    }

    fn count(&mut self, most: usize) -> Result<usize, EntitiesError> {
        // The header has 4 bytes, so alignment counts from its start.
        self.at = self.at.next_multiple_of(4);
        let mut word = [0; 4];
        word.copy_from_slice(self.take(4)?);
        let n = match self.is_little {
            true => u32::from_le_bytes(word),
            false => u32::from_be_bytes(word),
        };
        match usize::try_from(n) {
            Ok(n) if n <= most => Ok(n),
            _ => self.wrong("too many elements"),
        }
    }

    fn text(&mut self) -> Result<String, EntitiesError> {
        let len = self.count(MAX_NAME)?;
        let bytes = self.take(len)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) if stats::text::is_plain(text) => Ok(text.to_owned()),
            _ => self.wrong("a name is not plain text"),
        }
    }

    fn list<T>(
        &mut self,
        most: usize,
        mut one: impl FnMut(&mut Self) -> Result<T, EntitiesError>,
    ) -> Result<Vec<T>, EntitiesError> {
        // Reserve no memory for elements that may not exist.
        (0..self.count(most)?).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Entities {
        let node = |name: &str, readers: u8, writers: u8| Node {
            namespace: "/robot".into(),
            name: name.into(),
            readers: (0..readers).map(|n| [n; 16]).collect(),
            writers: (0..writers).map(|n| [100 + n; 16]).collect(),
        };
        Entities {
            gid: [7; 16],
            nodes: vec![node("talker", 2, 3), node("a", 0, 1), node("listener_2", 1, 0)],
        }
    }

    #[test]
    fn written_entities_are_read_back_and_truncated_ones_are_errors() {
        let bytes = some().encode();
        assert_eq!(Entities::decode(&bytes), Ok(some()));
        for len in 0..bytes.len() {
            assert!(Entities::decode(&bytes[..len]).is_err(), "{len}");
        }
        let swapped: Vec<u8> = vec![0, 0, 0, 0];
        assert!(Entities::decode(&swapped).is_err());
    }

    #[test]
    fn mutants_are_read_or_refused_and_take_little() {
        let bytes = some().encode();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut mutant = bytes.clone();
                mutant[at] = value;
                if let Ok(read) = Entities::decode(&mutant) {
                    assert_eq!(Entities::decode(&read.encode()), Ok(read));
                }
            }
        }
        let mut many = HEADER.to_vec();
        many.extend([0; 16]);
        many.extend(u32::MAX.to_le_bytes());
        assert_eq!(Entities::decode(&many).unwrap_err().what, "too many elements");
    }

    #[test]
    fn names_that_a_terminal_obeys_are_refused() {
        let mut odd = some();
        odd.nodes[0].name = "a\u{1b}[2J".into();
        assert!(Entities::decode(&odd.encode()).is_err());
    }
}
