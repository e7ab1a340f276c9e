//! The list of ROS 2 nodes, as contexts of `rmw_ropewalk` and links exchange it on a bus: one message with all that one
//! of them knows, sent again at each change.
//!
//! All content comes from another process or host: reading is bounded and never panics.

/// Version of the format.
const VERSION: u8 = 2;
/// The longest record, in bytes.
pub const MAX_RECORD: usize = 4 << 20;
/// Limits of a record: participants, nodes, and endpoints.
pub const MAX_PARTICIPANTS: usize = 1024;
/// See [`MAX_PARTICIPANTS`].
pub const MAX_NODES: usize = 4096;
/// See [`MAX_PARTICIPANTS`].
pub const MAX_ENDPOINTS: usize = 32768;
/// Most hosts that a participant may have passed through.
pub const MAX_HOSTS: usize = 8;
/// Longest name or type, in bytes.
pub const MAX_TEXT: usize = 512;

/// The topic of records on a bus. It is hidden, since its name begins with an underscore.
pub const TOPIC: &str = "/_rmw_ropewalk/graph";
/// Its type.
pub const TYPE: &str = "rmw_ropewalk/Graph";
/// Takes the place of the definition's MD5: the format has no definition that a schema could read.
pub const HASH: [u8; 16] = *b"rmw graph v2\0\0\0\0";
/// Shown to people in place of a definition.
pub const DEFINITION: &str = "# Nodes and endpoints of ROS 2.\n";

/// The knowledge of one publisher of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The context's own participant, or those of a peer.
    pub participants: Vec<Participant>,
}

/// All nodes and endpoints of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Participant {
    /// Its enclave.
    pub enclave: String,
    /// The hosts that it passed through, the farthest first; empty for a participant of this host.
    pub hosts: Vec<u64>,
    /// Its nodes.
    pub nodes: Vec<Node>,
}

/// A node and its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its namespace, `/` if it has none.
    pub namespace: String,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// The kind of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sends messages of a topic.
    Publisher,
    /// Receives messages of a topic.
    Subscription,
    /// Calls a service.
    Client,
    /// Answers calls of a service.
    Service,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its kind.
    pub kind: Kind,
    /// The full name of its topic or service.
    pub name: String,
    /// Its type in ROS 2's notation.
    pub type_name: String,
    /// The type's hash: its version, and the hash itself.
    pub type_hash: (u8, [u8; 32]),
    /// Its identity on its host's bus. Links assign another on theirs.
    pub id: u64,
    /// Its quality of service.
    pub qos: Qos,
}

/// A quality of service, with the policy numbers of `rmw/types.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qos {
    /// `rmw_qos_history_policy_t`.
    pub history: u8,
    /// `rmw_qos_reliability_policy_t`.
    pub reliability: u8,
    /// `rmw_qos_durability_policy_t`.
    pub durability: u8,
    /// `rmw_qos_liveliness_policy_t`.
    pub liveliness: u8,
    /// Whether the endpoint avoids ROS name mangling.
    pub avoids_ros_names: bool,
    /// Number of messages that it keeps.
    pub depth: u64,
    /// Seconds and nanoseconds.
    pub deadline: (u64, u64),
    /// Seconds and nanoseconds.
    pub lifespan: (u64, u64),
    /// Seconds and nanoseconds.
    pub lease: (u64, u64),
}

/// Numbers of policies in `rmw/types.h`.
pub mod policy {
    /// `RMW_QOS_POLICY_HISTORY_KEEP_LAST`.
    pub const KEEP_LAST: u8 = 1;
    /// `RMW_QOS_POLICY_HISTORY_KEEP_ALL`.
    pub const KEEP_ALL: u8 = 2;
    /// `RMW_QOS_POLICY_HISTORY_UNKNOWN`.
    pub const UNKNOWN_HISTORY: u8 = 3;
    /// `RMW_QOS_POLICY_RELIABILITY_RELIABLE`.
    pub const RELIABLE: u8 = 1;
    /// `RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT`.
    pub const BEST_EFFORT: u8 = 2;
    /// `RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL`.
    pub const TRANSIENT_LOCAL: u8 = 1;
    /// `RMW_QOS_POLICY_DURABILITY_VOLATILE`.
    pub const VOLATILE: u8 = 2;
    /// `RMW_QOS_POLICY_LIVELINESS_AUTOMATIC`.
    pub const AUTOMATIC: u8 = 1;
    /// `RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC`.
    pub const MANUAL_BY_TOPIC: u8 = 3;
    /// `RMW_DURATION_INFINITE`, in seconds and nanoseconds.
    pub const INFINITE: (u64, u64) = (9_223_372_036, 854_775_807);
}

impl Participant {
    /// The endpoints of all its nodes.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.nodes.iter().flat_map(|n| &n.endpoints)
    }
}

impl Record {
    /// The endpoints of all nodes.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.participants.iter().flat_map(Participant::endpoints)
    }

    /// The record's bytes. A record that exceeds the limits is unreadable.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        count(&mut out, self.participants.len());
        for participant in &self.participants {
            text(&mut out, &participant.enclave);
            count(&mut out, participant.hosts.len());
            for host in &participant.hosts {
                out.extend(host.to_le_bytes());
            }
            count(&mut out, participant.nodes.len());
            for node in &participant.nodes {
                text(&mut out, &node.name);
                text(&mut out, &node.namespace);
                count(&mut out, node.endpoints.len());
                node.endpoints.iter().for_each(|e| e.encode(&mut out));
            }
        }
        out
    }

    /// Reads the output of [`Record::encode`]. Returns `None` if it is malformed or exceeds a limit.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_RECORD {
            return None;
        }
        let mut r = Reader(bytes);
        if r.u8()? != VERSION {
            return None;
        }
        let mut out = Record::default();
        let (mut nodes, mut endpoints) = (MAX_NODES, MAX_ENDPOINTS);
        for _ in 0..r.count(MAX_PARTICIPANTS)? {
            let mut participant = Participant {
                enclave: r.text()?,
                ..Participant::default()
            };
            for _ in 0..r.count(MAX_HOSTS)? {
                participant.hosts.push(r.u64()?);
            }
            let here = r.count(nodes)?;
            nodes -= here;
            for _ in 0..here {
                let mut node = Node {
                    name: r.text()?,
                    namespace: r.text()?,
                    endpoints: Vec::new(),
                };
                let here = r.count(endpoints)?;
                endpoints -= here;
                for _ in 0..here {
                    node.endpoints.push(r.endpoint()?);
                }
                participant.nodes.push(node);
            }
            out.participants.push(participant);
        }
        r.0.is_empty().then_some(out)
    }
}

impl Endpoint {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            Kind::Publisher => 0,
            Kind::Subscription => 1,
            Kind::Client => 2,
            Kind::Service => 3,
        });
        text(out, &self.name);
        text(out, &self.type_name);
        out.push(self.type_hash.0);
        out.extend(self.type_hash.1);
        out.extend(self.id.to_le_bytes());
        let qos = &self.qos;
        out.extend([qos.history, qos.reliability, qos.durability, qos.liveliness]);
        out.push(u8::from(qos.avoids_ros_names));
        out.extend(qos.depth.to_le_bytes());
        for (seconds, nanoseconds) in [qos.deadline, qos.lifespan, qos.lease] {
            out.extend(seconds.to_le_bytes());
            out.extend(nanoseconds.to_le_bytes());
        }
    }
}

fn count(out: &mut Vec<u8>, n: usize) {
    out.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Names were checked on input, far below 64 KiB.
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

    fn endpoint(&mut self) -> Option<Endpoint> {
        let kind = match self.u8()? {
            0 => Kind::Publisher,
            1 => Kind::Subscription,
            2 => Kind::Client,
            3 => Kind::Service,
            _ => return None,
        };
        let (name, type_name) = (self.text()?, self.text()?);
        let type_hash = (self.u8()?, self.array()?);
        let id = self.u64()?;
        let [history, reliability, durability, liveliness, avoids] = self.array()?;
        let depth = self.u64()?;
        let mut time = || Some((self.u64()?, self.u64()?));
        let (deadline, lifespan, lease) = (time()?, time()?, time()?);
        Some(Endpoint {
            kind,
            name,
            type_name,
            type_hash,
            id,
            qos: Qos {
                history,
                reliability,
                durability,
                liveliness,
                avoids_ros_names: avoids != 0,
                depth,
                deadline,
                lifespan,
                lease,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(kind: Kind, name: &str) -> Endpoint {
        Endpoint {
            kind,
            name: name.into(),
            type_name: "std_msgs/msg/String".into(),
            type_hash: (1, [7; 32]),
            id: 9,
            qos: Qos {
                depth: 10,
                deadline: (1, 2),
                ..Qos::default()
            },
        }
    }

    fn record() -> Record {
        let node = |name: &str, endpoints| Node {
            name: name.into(),
            namespace: "/ns".into(),
            endpoints,
        };
        let of = |hosts: &[u64], nodes| Participant {
            enclave: "/".into(),
            hosts: hosts.to_vec(),
            nodes,
        };
        let both = vec![
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
        ];
        Record {
            participants: vec![of(&[], both), of(&[7, 8], vec![node("far", Vec::new())])],
        }
    }

    #[test]
    fn records_over_their_limits_are_none() {
        let nodes = |n: usize| Record {
            participants: vec![Participant {
                nodes: vec![Node::default(); n],
                ..Participant::default()
            }],
        };
        assert!(Record::decode(&nodes(MAX_NODES).encode()).is_some());
        assert_eq!(Record::decode(&nodes(MAX_NODES + 1).encode()), None);
        let apart = |n: usize| Record {
            participants: vec![nodes(n).participants.remove(0); 2],
        };
        assert!(Record::decode(&apart(MAX_NODES / 2).encode()).is_some());
        assert_eq!(
            Record::decode(&apart(MAX_NODES / 2 + 1).encode()),
            None,
            "of all participants together"
        );
        let endpoints = |n: usize| {
            let mut one = record();
            let short = Endpoint {
                type_name: "a".into(),
                ..endpoint(Kind::Publisher, "/t")
            };
            one.participants[0].nodes[0].endpoints = vec![short; n];
            one.participants[0].nodes.truncate(1);
            one
        };
        let most = endpoints(MAX_ENDPOINTS).encode();
        assert!(most.len() <= MAX_RECORD && Record::decode(&most).is_some());
        assert_eq!(Record::decode(&endpoints(MAX_ENDPOINTS + 1).encode()), None);
        let mut long = record();
        long.participants[0].nodes[0].name = "n".repeat(MAX_TEXT + 1);
        assert_eq!(Record::decode(&long.encode()), None);
        let mut far = record();
        far.participants[0].hosts = vec![1; MAX_HOSTS + 1];
        assert_eq!(Record::decode(&far.encode()), None);
        let many = Record {
            participants: vec![Participant::default(); MAX_PARTICIPANTS + 1],
        };
        assert_eq!(Record::decode(&many.encode()), None);
        assert_eq!(Record::decode(&vec![VERSION; MAX_RECORD + 1]), None);
    }

    #[test]
    fn records_make_the_round_trip_and_every_cut_and_flip_is_survived() {
        let bytes = record().encode();
        assert_eq!(Record::decode(&bytes), Some(record()));
        for cut in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..cut]), None, "{cut}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = Record::decode(&bad);
            }
        }
        assert_eq!(Record::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
