//! Data in transit to a connection: sent, and not known to have arrived.
//!
//! ZeroMQ accepts what is sent and reports nothing afterwards; data that a peer does not read stays in this process. So
//! marks are sent among the messages: random numbers that the peer sends back as they arrive. The peer cannot know a
//! mark before it has read everything before it; a count from the peer would prove nothing.

use super::listeners::Peer;
use crate::clock::random_id;
use crate::transport;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Maximum data in transit to one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) bytes: u64,
    pub(super) messages: u64,
}

/// Unread answers of one connection: pieces of files are requested ahead, up to 64 of 256 KiB.
pub(super) const ANSWERS: Window = Window {
    bytes: 32 << 20,
    messages: 1024,
};
/// Telemetry: more would only be older on arrival.
pub(super) const TELEMETRY: Window = Window {
    bytes: 8 << 20,
    messages: 64,
};
/// Maximum bytes in transit to all connections of one peer.
const MAX_OF_PEER: u64 = 128 << 20;
/// The same for all connections of unproven peers together.
const MAX_OF_UNPROVEN: u64 = 512 << 20;
/// A mark follows after this many bytes or messages.
const MARK_BYTES: u64 = TELEMETRY.bytes / 4;
const MARK_MESSAGES: u64 = TELEMETRY.messages / 4;
/// Above this many connections with data in transit, the end checks which of them still exist; and how often at most.
const MANY: usize = 64;
pub(super) const ASK: Duration = Duration::from_secs(1);

/// Connections with data in transit.
#[derive(Default)]
pub(super) struct Ways {
    all: BTreeMap<Peer, Way>,
    /// Bytes in transit to each peer.
    of_peer: BTreeMap<transport::Peer, u64>,
    asked: Option<Instant>,
}

struct Way {
    identity: transport::Peer,
    on_the_way: (u64, u64),
    /// Of these, since the last mark.
    unmarked: (u64, u64),
    /// Marks in transit, and the data between each mark and the previous one.
    marks: VecDeque<(u64, (u64, u64))>,
}

impl Ways {
    /// Returns whether `len` more bytes may be sent. A message of any length is sent eventually, because a peer that
    /// reads returns marks at every quarter of the smallest window at the latest.
    pub(super) fn fits(&self, to: &[u8], identity: &transport::Peer, len: usize, window: Window) -> bool {
        let len = len as u64;
        let (bytes, messages) = self.all.get(to).map_or((0, 0), |way| way.on_the_way);
        let of_peer = self.of_peer.get(identity).copied().unwrap_or(0);
        let most = match identity {
            transport::Peer::Unproven => MAX_OF_UNPROVEN,
            _ => MAX_OF_PEER,
        };
        messages < window.messages
            && (bytes < window.bytes / 4 || bytes + len <= window.bytes)
            && (of_peer < most / 4 || of_peer + len <= most)
    }

    /// Records that `len` bytes were sent. Returns a mark to send after them, if one is due.
    pub(super) fn sent(&mut self, to: &[u8], identity: &transport::Peer, len: usize) -> Option<u64> {
        let len = len as u64;
        if !self.all.contains_key(to) {
            let way = Way {
                identity: identity.clone(),
                on_the_way: (0, 0),
                unmarked: (0, 0),
                marks: VecDeque::new(),
            };
            self.all.insert(to.to_vec(), way);
        }
        let way = self.all.get_mut(to)?;
        for (bytes, messages) in [&mut way.on_the_way, &mut way.unmarked] {
            (*bytes, *messages) = (*bytes + len, *messages + 1);
        }
        *self.of_peer.entry(way.identity.clone()).or_default() += len;
        (way.unmarked.0 >= MARK_BYTES || way.unmarked.1 >= MARK_MESSAGES).then(|| way.mark())
    }

    /// A mark came back: everything sent before it has arrived.
    pub(super) fn returned(&mut self, from: &[u8], mark: u64) {
        let Some(way) = self.all.get_mut(from) else { return };
        let Some(at) = way.marks.iter().position(|(known, _)| *known == mark) else {
            return;
        };
        let arrived = way
            .marks
            .drain(..=at)
            .fold((0, 0), |(bytes, messages), (_, more)| {
                (bytes + more.0, messages + more.1)
            });
        way.on_the_way = (way.on_the_way.0 - arrived.0, way.on_the_way.1 - arrived.1);
        let (identity, is_over) = (way.identity.clone(), way.on_the_way == (0, 0));
        self.give_back(&identity, arrived.0);
        if is_over {
            self.all.remove(from);
        }
    }

    /// The connection is closed.
    pub(super) fn forget(&mut self, to: &[u8]) {
        if let Some(way) = self.all.remove(to) {
            self.give_back(&way.identity, way.on_the_way.0);
        }
    }

    fn give_back(&mut self, identity: &transport::Peer, bytes: u64) {
        if let Some(of_peer) = self.of_peer.get_mut(identity) {
            *of_peer -= bytes;
            if *of_peer == 0 {
                self.of_peer.remove(identity);
            }
        }
    }

    /// Returns whether it matters which connections still exist.
    pub(super) fn is_much(&self) -> bool {
        self.all.len() > MANY || self.of_peer.values().any(|bytes| *bytes >= MAX_OF_PEER / 4)
    }

    /// Returns marks to send to all connections, if there are many or one peer has much in transit: closed connections
    /// are not reported in any other way.
    pub(super) fn ask(&mut self, now: Instant) -> Vec<(Peer, u64)> {
        let due = self.asked.is_none_or(|at| now.duration_since(at) >= ASK);
        if !due || !self.is_much() {
            return Vec::new();
        }
        self.asked = Some(now);
        let all = self.all.iter_mut();
        all.map(|(to, way)| (to.clone(), way.mark())).collect()
    }
}

impl Way {
    /// Returns a mark for the data sent since the previous one; the previous mark again if there was none.
    fn mark(&mut self) -> u64 {
        match self.marks.back() {
            Some((mark, _)) if self.unmarked == (0, 0) => *mark,
            _ => {
                let mark = random_id();
                self.marks.push_back((mark, std::mem::take(&mut self.unmarked)));
                mark
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Peer::{Local, Unproven};

    /// Sends as much as fits. Returns the bytes, and the marks.
    fn fill(
        ways: &mut Ways,
        to: &[u8],
        identity: &transport::Peer,
        len: usize,
        window: Window,
    ) -> (u64, Vec<u64>) {
        let (mut bytes, mut marks) = (0, Vec::new());
        while ways.fits(to, identity, len, window) {
            marks.extend(ways.sent(to, identity, len));
            bytes += len as u64;
        }
        (bytes, marks)
    }

    #[test]
    fn a_peer_that_reads_nothing_gets_one_window_and_a_mark_proves_what_precedes_it() {
        let mut ways = Ways::default();
        let len = 1 << 20;
        let (bytes, marks) = fill(&mut ways, b"a", &Local(1), len, ANSWERS);
        assert_eq!((bytes, marks.len()), (ANSWERS.bytes, 16));
        for guess in 0..1000 {
            ways.returned(b"a", guess);
            ways.returned(b"b", marks[0]);
        }
        assert!(!ways.fits(b"a", &Local(1), len, ANSWERS));
        ways.returned(b"a", marks[3]);
        ways.returned(b"a", marks[3]);
        ways.returned(b"a", marks[0]);
        assert_eq!(fill(&mut ways, b"a", &Local(1), len, ANSWERS).0, 4 * MARK_BYTES);
        let (_, marks) = (ways.returned(b"a", marks[15]), &ways.all[&b"a"[..]].marks);
        let newest = marks.back().unwrap().0;
        ways.returned(b"a", newest);
        assert!(ways.all.is_empty() && ways.of_peer.is_empty());
    }

    #[test]
    fn messages_are_bounded_too_and_one_of_any_length_fits() {
        let mut ways = Ways::default();
        let (bytes, _) = fill(&mut ways, b"a", &Unproven, 10, TELEMETRY);
        assert_eq!(bytes, 10 * TELEMETRY.messages);
        assert!(ways.fits(b"b", &Unproven, 1 << 30, TELEMETRY));
        ways.sent(b"b", &Unproven, 1 << 30);
        assert!(!ways.fits(b"b", &Unproven, 1, TELEMETRY));
    }

    #[test]
    fn connections_of_one_peer_share_and_cost_no_other_its_own() {
        let mut ways = Ways::default();
        let connections: Vec<Vec<u8>> = (0..20).map(|n| vec![n]).collect();
        let all = |ways: &mut Ways, identity: &transport::Peer| {
            let each = connections
                .iter()
                .map(|to| fill(ways, to, identity, 1 << 20, ANSWERS).0);
            each.sum::<u64>()
        };
        assert_eq!(all(&mut ways, &Local(1)), MAX_OF_PEER);
        assert!(ways.fits(b"other", &Local(2), 1 << 20, ANSWERS));
        // Closed connections are found by asking, and free all their data.
        let now = Instant::now();
        let asked = ways.ask(now);
        assert_eq!(asked.len(), 4);
        assert!(ways.ask(now).is_empty());
        asked.iter().for_each(|(to, _)| ways.forget(to));
        assert!(ways.all.is_empty() && ways.of_peer.is_empty());
    }
}
