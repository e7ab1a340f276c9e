//! What a peer is told of a topic, once.

/// What the receiver does with messages that complete after a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// An older message is never delivered after a newer one.
    #[default]
    Latest,
    /// Each message is delivered when it is complete (transforms, logs).
    Any,
}

/// How hard the link tries. Only best effort exists so far; the byte is reserved on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// A lost message stays lost.
    #[default]
    BestEffort,
}

/// A topic as its sender describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Topic name, 1 to 256 B.
    pub name: String,
    /// Message type, such as `sensor_msgs/LaserScan`, at most 256 B.
    pub type_name: String,
    /// Hash of the type (MD5 in ROS 1, or the first half of RIHS01).
    pub type_hash: [u8; 16],
    /// Full text of the type's definition, at most 256 KiB.
    pub definition: String,
    /// 0 to 127; 127 is the most important.
    pub priority: u8,
    /// Newest messages that wait at the sender.
    pub depth: u32,
    /// How hard the link tries.
    pub reliability: Reliability,
    /// What the receiver does with late messages.
    pub ordering: Ordering,
}
