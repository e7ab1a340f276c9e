//! The graph that first published a message, so that a bridge does not return the message there.

/// A graph on the far side of a bridge: the ROS nodes of one master, or of one domain. If two bridges serve
/// the same graph, neither returns messages that the other brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(u32);

impl Graph {
    /// The graph with this identity.
    pub fn new(identity: &str) -> Self {
        // FNV-1a (draft-eastlake-fnv): the hash only has to distinguish a few graphs.
        let hash = identity.bytes().fold(0x811c_9dc5_u32, |h, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        });
        Graph(hash.max(1))
    }

    /// The graph as a number that is never 0.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The graph of such a number; `None` for 0.
    pub fn from_number(number: u32) -> Option<Self> {
        (number != 0).then_some(Graph(number))
    }

    /// The origin of messages that a publisher of the bus brings from this graph.
    pub fn origin(self, publisher: u64) -> u64 {
        u64::from(self.0) << 32 | (publisher & 0xffff_ffff)
    }

    /// Returns whether a message of the bus came from this graph, through any bridge.
    pub fn sent(self, origin: u64) -> bool {
        (origin >> 32) as u32 == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_knows_its_own() {
        let (a, b) = (Graph::new("http://a:11311/"), Graph::new("http://b:11311/"));
        assert!(a.sent(a.origin(u64::MAX)) && !b.sent(a.origin(7)) && !a.sent(7));
        assert_eq!(Graph::from_number(a.number()), Some(a));
    }
}
