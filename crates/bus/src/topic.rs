//! What a topic is, and what is known of those who use it.

use crate::detail::EndpointDetail;
use crate::publisher::CreateError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest topic and type name, in bytes.
pub const MAX_NAME: usize = 255;
/// The longest message definition, in bytes.
pub const MAX_DEFINITION: usize = 128 * 1024;

/// A topic and the type of its messages. Publishers and subscribers connect only if topic, type name and hash
/// are equal; or the hash of ROS 2, where both ends state it; or, where the subscriber converts
/// ([`SubscriberOptions::with_conversion`](crate::SubscriberOptions::with_conversion)), if their types differ only by the ROS that they are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicType {
    /// Such as `/scan`; at most [`MAX_NAME`] bytes, not empty, without characters that a terminal obeys or hides
    /// ([`stats::text::is_plain`]).
    pub topic: String,
    /// Such as `sensor_msgs/LaserScan`; the same holds for it.
    pub type_name: String,
    /// The MD5 of the type, as ROS 1 computes it.
    pub type_hash: [u8; 16],
    /// Which ROS the type is of.
    pub flavour: Flavour,
    /// The full text of the definition, for tools and to say how two types differ; the hash decides whether they
    /// do. At most [`MAX_DEFINITION`] bytes.
    pub definition: Arc<str>,
}

/// Which ROS a type is of, and how it compares with its namesake of the other ROS. The default says nothing, and then hashes
/// alone are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flavour {
    /// The ROS whose definition it has.
    pub ros: Ros,
    /// The type hash of ROS 2 (RIHS01, REP-2011); zeros if it is not stated.
    pub rihs01: [u8; 32],
    /// What it has in common with its namesake of the other ROS: types of different ROS whose sums are equal, and not zero, differ
    /// only in what a subscriber can convert.
    pub common: [u8; 16],
}

/// The two generations of ROS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ros {
    /// It is not said which.
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
            Ros::Unstated => "of no stated ROS",
            Ros::One => "of ROS 1",
            Ros::Two => "of ROS 2",
        })
    }
}

impl Flavour {
    /// Length of [`Flavour::to_bytes`].
    pub const LEN: usize = 49;

    /// As frames carry it: the ROS (0 unstated, 1, 2), the type hash, the common sum.
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

    /// What [`Flavour::to_bytes`] wrote; `None` if there is no such ROS.
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

    /// Whether both have the same fields by ROS 2's hash, whose definitions may still differ in constants and defaults, which MD5 counts.
    fn has_fields_of(&self, other: &Flavour) -> bool {
        self.ros == Ros::Two && self.ros == other.ros && self.rihs01 == other.rihs01 && self.rihs01 != [0; 32]
    }

    /// Whether messages of the one are also messages of the other, once a subscriber has converted them.
    fn converts_to(&self, other: &Flavour) -> bool {
        self.differs_from(other) && self.common == other.common && self.common != [0; 16]
    }

    /// Whether both say which ROS they are of, and not the same.
    fn differs_from(&self, other: &Flavour) -> bool {
        self.ros != other.ros && self.ros != Ros::Unstated && other.ros != Ros::Unstated
    }
}

/// What a publisher says of itself to those that connect: what a recorder, a bridge or a player needs to make its like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The node that publishes, such as `/talker`; empty if it is not said. At most [`MAX_NAME`] bytes; nobody checks
    /// that it is true.
    pub node: String,
    /// How many of its last messages it keeps for subscribers that join later.
    pub history: u32,
    /// Whether it sends lost messages again, where it says so: of use to bridges, since on the bus nothing is lost on
    /// the way.
    pub reliability: Option<Reliability>,
    /// How many messages it keeps for a slow subscriber, where it says so (ROS 2's depth); 0 if not.
    pub depth: u32,
}

/// Whether a publisher sends lost messages again.
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

/// A topic of the bus, as its live endpoints describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// The topic and its type. Endpoints that disagree about the type appear as several entries.
    pub topic: TopicType,
    /// Who publishes it.
    pub publishers: Vec<EndpointInfo>,
    /// Who subscribes to it.
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
    /// How many peers it is connected to.
    pub connected: u32,
    /// Messages published, or taken.
    pub messages: u64,
    /// Bytes of shared memory reserved (publishers only).
    pub memory: u64,
    /// Policies, queues, memory and losses.
    pub detail: EndpointDetail,
    /// Why peers were turned away, the last 8 reasons.
    pub refusals: Vec<String>,
}

/// A peer that was turned away, or that turned us away.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Its process, 0 if unknown.
    pub pid: i32,
    /// Its user, `u32::MAX` if unknown.
    pub uid: u32,
    /// What differed, both values named.
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

    /// What differs between two ends that should match, both values named.
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

    /// A reason may quote what a peer said, and is kept fit to print.
    pub(crate) fn add(&self, mut refusal: Refusal) {
        refusal.reason = stats::text::printable(&refusal.reason).into_owned();
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A peer that comes back and back is named once.
        if log.contains(&refusal) {
            return;
        }
        tracing::warn!(pid = refusal.pid, uid = refusal.uid, reason = %refusal.reason, "not connected");
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
