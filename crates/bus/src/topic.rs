//! Topics, and what is known about their endpoints.

use crate::detail::EndpointDetail;
use crate::publisher::CreateError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of topic and type names, in bytes.
pub const MAX_NAME: usize = 255;
/// Maximum length of a message definition, in bytes.
pub const MAX_DEFINITION: usize = 128 * 1024;

/// A topic and the type of its messages. Publishers and subscribers connect only if topic, type name and hash
/// are equal; or the ROS 2 hash, if both ends state it; or, if the subscriber converts
/// ([`SubscriberOptions::with_conversion`](crate::SubscriberOptions::with_conversion)), if their types differ
/// only in the ROS version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicType {
    /// For example `/scan`; at most [`MAX_NAME`] bytes, not empty, without characters that a terminal
    /// interprets or hides ([`stats::text::is_plain`]).
    pub topic: String,
    /// For example `sensor_msgs/LaserScan`, with the same restrictions.
    pub type_name: String,
    /// The MD5 sum of the type, as ROS 1 computes it.
    pub type_hash: [u8; 16],
    /// The ROS version of the type.
    pub flavour: Flavour,
    /// The full text of the definition, for tools and to report how two types differ; only the hash decides
    /// whether they do. At most [`MAX_DEFINITION`] bytes.
    pub definition: Arc<str>,
}

/// The ROS version of a type, and how it compares with the type of the same name in the other version. With
/// the default, only hashes are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flavour {
    /// The ROS version of its definition.
    pub ros: Ros,
    /// The ROS 2 type hash (RIHS01, REP-2011); zeros if it is not stated.
    pub rihs01: [u8; 32],
    /// Sum of what it has in common with the type of the same name in the other ROS version. Types of
    /// different versions whose sums are equal, and not zero, differ only in what a subscriber can convert.
    pub common: [u8; 16],
}

/// The two generations of ROS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ros {
    /// The version is not stated.
    #[default]
    Unstated,
    /// ROS 1.
    One,
    /// ROS 2.
    Two,
}

impl std::fmt::Display for Ros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Ros::Unstated => "of no stated ROS version",
            Ros::One => "of ROS 1",
            Ros::Two => "of ROS 2",
        })
    }
}

impl Flavour {
    /// Length of [`Flavour::to_bytes`].
    pub const LEN: usize = 49;

    /// The encoding in frames: the ROS version (0 unstated, 1, 2), the type hash, the common sum.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0] = match self.ros {
            Ros::Unstated => 0,
            Ros::One => 1,
            Ros::Two => 2,
        };
        out[1..33].copy_from_slice(&self.rihs01);
        out[33..].copy_from_slice(&self.common);
        out
    }

    /// Decodes what [`Flavour::to_bytes`] wrote; `None` if the ROS version is unknown.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let (head, common) = bytes.split_last_chunk::<16>()?;
        let rihs01 = head.split_last_chunk::<32>()?.1;
        Some(Flavour {
            ros: match bytes[0] {
                0 => Ros::Unstated,
                1 => Ros::One,
                2 => Ros::Two,
                _ => return None,
            },
            rihs01: *rihs01,
            common: *common,
        })
    }

    /// Whether both have the same fields by the ROS 2 hash. Their definitions may still differ in constants
    /// and defaults, which MD5 covers.
    fn has_fields_of(&self, other: &Flavour) -> bool {
        self.ros == Ros::Two && self.ros == other.ros && self.rihs01 == other.rihs01 && self.rihs01 != [0; 32]
    }

    /// Whether a subscriber can convert messages of one to messages of the other.
    fn converts_to(&self, other: &Flavour) -> bool {
        self.differs_from(other) && self.common == other.common && self.common != [0; 16]
    }

    /// Whether both state a ROS version, and not the same.
    fn differs_from(&self, other: &Flavour) -> bool {
        self.ros != other.ros && self.ros != Ros::Unstated && other.ros != Ros::Unstated
    }
}

/// What a publisher announces about itself to peers: what a recorder, a bridge or a player needs to recreate
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The node that publishes, such as `/talker`; empty if not announced. At most [`MAX_NAME`] bytes; not
    /// verified.
    pub node: String,
    /// How many of its last messages it keeps for late joiners.
    pub history: u32,
    /// Whether it retransmits lost messages, if announced. For bridges, since the bus itself loses nothing in
    /// transit.
    pub reliability: Option<Reliability>,
    /// How many messages it keeps for a slow subscriber (ROS 2's depth); 0 if not announced.
    pub depth: u32,
}

/// Whether a publisher retransmits lost messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// It does.
    Reliable,
    /// It does not.
    BestEffort,
}

impl Offer {
    pub(crate) fn check(&self) -> Result<(), CreateError> {
        let (what, node) = ("node", &self.node);
        if node.len() > MAX_NAME {
            let (len, max) = (node.len(), MAX_NAME);
            return Err(CreateError::Name { what, len, max });
        }
        if !stats::text::is_plain(node) {
            let name = stats::text::printable(node).into_owned();
            return Err(CreateError::Characters { what, name });
        }
        Ok(())
    }
}

/// A topic of the bus, as described by its live endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// The topic and its type. Endpoints that disagree about the type appear as several entries.
    pub topic: TopicType,
    /// Its publishers.
    pub publishers: Vec<EndpointInfo>,
    /// Its subscribers.
    pub subscribers: Vec<EndpointInfo>,
}

/// One publisher or subscriber of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointInfo {
    /// Unique among all endpoints of the bus.
    pub id: u64,
    /// Its process, as this process sees it (0 if it lives in another PID namespace).
    pub pid: i32,
    /// The user it runs as.
    pub uid: u32,
    /// The program, if `/proc` shows it.
    pub program: Option<String>,
    /// Number of connected peers.
    pub connected: u32,
    /// Messages published or taken.
    pub messages: u64,
    /// Bytes of shared memory reserved (publishers only).
    pub memory: u64,
    /// Policies, queues, memory and losses.
    pub detail: EndpointDetail,
    /// Why peers were refused, the last 8 reasons.
    pub refusals: Vec<String>,
}

/// A peer that was refused, or that refused this endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Its process, 0 if unknown.
    pub pid: i32,
    /// Its user, `u32::MAX` if unknown.
    pub uid: u32,
    /// What differed, naming both values.
    pub reason: String,
}

impl TopicType {
    pub(crate) fn check(&self) -> Result<(), CreateError> {
        for (what, text, min, max) in [
            ("topic", &*self.topic, 1, MAX_NAME),
            ("type name", &self.type_name, 1, MAX_NAME),
            ("definition", &self.definition, 0, MAX_DEFINITION),
        ] {
            if !(min..=max).contains(&text.len()) {
                return Err(CreateError::Name {
                    what,
                    len: text.len(),
                    max,
                });
            }
        }
        for (what, text) in [("topic", &self.topic), ("type name", &self.type_name)] {
            if !stats::text::is_plain(text) {
                let name = stats::text::printable(text).into_owned();
                return Err(CreateError::Characters { what, name });
            }
        }
        Ok(())
    }

    /// Returns what differs between two ends that should match, naming both values.
    pub(crate) fn difference(&self, theirs: &TopicType) -> Option<String> {
        let hex = |hash: &[u8; 16]| hash.iter().map(|b| format!("{b:02x}")).collect::<String>();
        if self.topic != theirs.topic {
            return Some(format!(
                "the topic is {:?} here and {:?} there",
                self.topic, theirs.topic
            ));
        }
        if self.type_name != theirs.type_name {
            return Some(format!(
                "the type of {} is {} here and {} there",
                self.topic, self.type_name, theirs.type_name
            ));
        }
        if self.flavour.converts_to(&theirs.flavour) || self.flavour.has_fields_of(&theirs.flavour) {
            return None;
        }
        if self.type_hash == theirs.type_hash && self.flavour.differs_from(&theirs.flavour) {
            return Some(format!(
                "the type {} of {} is {} here and {} there, and is not converted",
                self.type_name, self.topic, self.flavour.ros, theirs.flavour.ros
            ));
        }
        (self.type_hash != theirs.type_hash).then(|| {
            format!(
                "the MD5 of {} ({}) is {} here and {} there{}",
                self.topic,
                self.type_name,
                hex(&self.type_hash),
                hex(&theirs.type_hash),
                match self.flavour.differs_from(&theirs.flavour) {
                    true => format!(" ({} here and {} there)", self.flavour.ros, theirs.flavour.ros),
                    false => String::new(),
                }
            )
        })
    }
}

/// The last few refusals of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<VecDeque<Refusal>>);

impl RefusalLog {
    const KEPT: usize = 16;

    /// A reason may quote a peer's text, so it is made safe to print.
    pub(crate) fn add(&self, mut refusal: Refusal) {
        refusal.reason = stats::text::printable(&refusal.reason).into_owned();
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A peer that reconnects repeatedly is listed once.
        if log.contains(&refusal) {
            return;
        }
        tracing::warn!(
            "process {} of user {} is not connected: {}",
            refusal.pid,
            refusal.uid,
            refusal.reason
        );
        if log.len() == Self::KEPT {
            log.pop_front();
        }
        log.push_back(refusal);
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.list().into_iter().map(|r| r.reason).collect()
    }

    pub(crate) fn list(&self) -> Vec<Refusal> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }
}
