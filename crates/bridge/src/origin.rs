//! The graph in which a message was first published, so that a bridge does not return it there.

/// A graph on the far side of a bridge: the ROS nodes of one master, or of one domain. Of two bridges to the same graph neither brings
/// back what the other brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(u32);

impl Graph {
    /// The graph with this identity.
    pub fn new(identity: &str) -> Self {
        // FNV-1a (draft-eastlake-fnv): it need only tell a few graphs apart.
        let hash = identity.bytes().fold(0x811c_9dc5_u32, |h, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        });
        Graph(hash.max(1))
    }

    /// As a number that is never 0.
    pub fn number(self) -> u32 {
        self.0
    }

    /// From such a number; `None` of 0.
    pub fn from_number(number: u32) -> Option<Self> {
        (number != 0).then_some(Graph(number))
    }

    /// The origin of what a publisher of the bus brings from this graph.
    pub fn origin(self, publisher: u64) -> u64 {
        u64::from(self.0) << 32 | (publisher & 0xffff_ffff)
    }

    /// Whether a message of the bus came from this graph, through whatever bridge.
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
