//! What a context tells the others of its nodes and endpoints: one message with all of it, sent anew at each change.
//!
//! Everything in it comes from another process: reading is bounded and total.

use crate::abi::introspection::TypeHash;
use crate::abi::{QosProfile, RmwTime};

/// Version of the form.
const VERSION: u8 = 1;
/// The longest record.
pub(crate) const MAX_RECORD: usize = 4 << 20;
/// Most nodes of one context, and most endpoints.
pub(crate) const MAX_NODES: usize = 4096;
pub(crate) const MAX_ENDPOINTS: usize = 32768;
/// Longest name or type.
const MAX_TEXT: usize = 512;

/// All nodes and endpoints of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Participant {
    pub(crate) enclave: String,
    pub(crate) nodes: Vec<NodeRecord>,
}

/// A node and its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRecord {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) endpoints: Vec<Endpoint>,
}

/// What an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Publisher,
    Subscription,
    Client,
    Service,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) kind: Kind,
    /// Of the topic or service.
    pub(crate) name: String,
    /// As ROS 2 writes it.
    pub(crate) type_name: String,
    pub(crate) type_hash: TypeHash,
    /// On the bus.
    pub(crate) id: u64,
    pub(crate) qos: QosProfile,
}

impl Participant {
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.nodes.iter().flat_map(|n| &n.endpoints)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        text(&mut out, &self.enclave);
        out.extend((self.nodes.len() as u32).to_le_bytes());
        for node in &self.nodes {
            text(&mut out, &node.name);
            text(&mut out, &node.namespace);
            out.extend((node.endpoints.len() as u32).to_le_bytes());
            for e in &node.endpoints {
                out.push(match e.kind {
                    Kind::Publisher => 0,
                    Kind::Subscription => 1,
                    Kind::Client => 2,
                    Kind::Service => 3,
                });
                text(&mut out, &e.name);
                text(&mut out, &e.type_name);
                out.push(e.type_hash.version);
                out.extend(e.type_hash.value);
                out.extend(e.id.to_le_bytes());
                out.extend([
                    e.qos.history as u8,
                    e.qos.reliability as u8,
                    e.qos.durability as u8,
                    e.qos.liveliness as u8,
                    u8::from(e.qos.avoid_ros_namespace_conventions),
                ]);
                out.extend((e.qos.depth as u64).to_le_bytes());
                for time in [e.qos.deadline, e.qos.lifespan, e.qos.lease] {
                    out.extend(time.sec.to_le_bytes());
                    out.extend(time.nsec.to_le_bytes());
                }
            }
        }
        out
    }

    /// Reads what [`Participant::encode`] wrote; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_RECORD {
            return None;
        }
        let mut r = Reader(bytes);
        if r.u8()? != VERSION {
            return None;
        }
        let mut out = Participant {
            enclave: r.text()?,
            nodes: Vec::new(),
        };
        let nodes = r.count(MAX_NODES)?;
        let mut left = MAX_ENDPOINTS;
        for _ in 0..nodes {
            let mut node = NodeRecord {
                name: r.text()?,
                namespace: r.text()?,
                endpoints: Vec::new(),
            };
            let endpoints = r.count(left)?;
            left -= endpoints;
            for _ in 0..endpoints {
                node.endpoints.push(r.endpoint()?);
            }
            out.nodes.push(node);
        }
        r.0.is_empty().then_some(out)
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Names were checked where they came in, far below 64 KiB.
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self, most: usize) -> Option<usize> {
        let n = self.array().map(u32::from_le_bytes)? as usize;
        (n <= most).then_some(n)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.array().map(u16::from_le_bytes)?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).ok()?;
        (len <= MAX_TEXT && stats::text::is_plain(text)).then(|| text.to_owned())
    }

    fn time(&mut self) -> Option<RmwTime> {
        Some(RmwTime {
            sec: self.u64()?,
            nsec: self.u64()?,
        })
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let kind = match self.u8()? {
            0 => Kind::Publisher,
            1 => Kind::Subscription,
            2 => Kind::Client,
            3 => Kind::Service,
            _ => return None,
        };
        let (name, type_name) = (self.text()?, self.text()?);
        let type_hash = TypeHash {
            version: self.u8()?,
            value: self.array()?,
        };
        let id = self.u64()?;
        let [history, reliability, durability, liveliness, avoid] = self.array()?;
        Some(Endpoint {
            kind,
            name,
            type_name,
            type_hash,
            id,
            qos: QosProfile {
                history: history.into(),
                reliability: reliability.into(),
                durability: durability.into(),
                liveliness: liveliness.into(),
                avoid_ros_namespace_conventions: avoid != 0,
                depth: usize::try_from(self.u64()?).ok()?,
                deadline: self.time()?,
                lifespan: self.time()?,
                lease: self.time()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant() -> Participant {
        let endpoint = |kind, name: &str| Endpoint {
            kind,
            name: name.into(),
            type_name: "std_msgs/msg/String".into(),
            type_hash: TypeHash {
                version: 1,
                value: [7; 32],
            },
            id: 9,
            qos: crate::qos::sample(),
        };
        let node = |name: &str, endpoints| NodeRecord {
            name: name.into(),
            namespace: "/ns".into(),
            endpoints,
        };
        Participant {
            enclave: "/".into(),
            nodes: vec![
                node(
                    "a",
                    vec![
                        endpoint(Kind::Publisher, "/chatter"),
                        endpoint(Kind::Client, "/add"),
                    ],
                ),
                node(
                    "b",
                    vec![
                        endpoint(Kind::Subscription, "/chatter"),
                        endpoint(Kind::Service, "/add"),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn records_over_their_limits_are_none() {
        let nodes = |n: usize| Participant {
            nodes: vec![NodeRecord::default(); n],
            ..Participant::default()
        };
        assert!(Participant::decode(&nodes(MAX_NODES).encode()).is_some());
        assert_eq!(Participant::decode(&nodes(MAX_NODES + 1).encode()), None);
        let endpoints = |n: usize| {
            let mut one = participant();
            let endpoint = Endpoint {
                name: "/t".into(),
                type_name: "a".into(),
                ..one.nodes[0].endpoints[0].clone()
            };
            one.nodes[0].endpoints = vec![endpoint; n];
            one.nodes.truncate(1);
            one
        };
        let most = endpoints(MAX_ENDPOINTS).encode();
        assert!(most.len() <= MAX_RECORD && Participant::decode(&most).is_some());
        assert_eq!(Participant::decode(&endpoints(MAX_ENDPOINTS + 1).encode()), None);
        let mut long = participant();
        long.nodes[0].name = "n".repeat(MAX_TEXT + 1);
        assert_eq!(Participant::decode(&long.encode()), None);
        assert_eq!(Participant::decode(&vec![VERSION; MAX_RECORD + 1]), None);
    }

    #[test]
    fn records_make_the_round_trip_and_every_cut_and_flip_is_survived() {
        let bytes = participant().encode();
        assert_eq!(Participant::decode(&bytes), Some(participant()));
        for cut in 0..bytes.len() {
            assert_eq!(Participant::decode(&bytes[..cut]), None, "{cut}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = Participant::decode(&bad);
            }
        }
        assert_eq!(Participant::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
