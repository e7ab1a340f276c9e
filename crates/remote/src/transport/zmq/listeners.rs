//! The listeners to a robot's telemetry on Ropewalk's own wire, and the frames that wait for each.
//!
//! ZeroMQ's PUB socket counts frames, not bytes, and drops silently. Here at most a window per listener is inside
//! ZeroMQ ([`Ways`]); the rest waits in a queue bounded in bytes, and lost frames are counted and reported.

use super::backlog::{Backlog, Kinds, Waiting};
use super::envelope::{Filter, ToController};
use super::ways::{TELEMETRY, Ways};
use crate::transport::{self, Stream};
use std::collections::BTreeMap;

/// Maximum listeners of a robot's end.
pub(super) const MAX_LISTENERS: usize = 64;

/// A connection, as ROUTER sockets name it.
pub(super) type Peer = Vec<u8>;

/// All listeners.
pub(super) struct Listeners {
    /// In order, so that all are served alike in every run.
    all: BTreeMap<Peer, Listener>,
    kinds: Kinds,
    most_bytes: usize,
    /// The data in transit, including answers.
    pub(super) ways: Ways,
}

struct Listener {
    /// The listener's identity, as the transport proves it.
    identity: transport::Peer,
    epoch: u32,
    filter: Filter,
    backlog: Backlog,
    lost: u64,
}

impl Listeners {
    /// Together, the frames that wait for all listeners take at most about `most_bytes`.
    pub(super) fn new(most_bytes: usize) -> Self {
        Listeners {
            all: BTreeMap::new(),
            kinds: Kinds::default(),
            most_bytes,
            ways: Ways::default(),
        }
    }

    /// Returns false if the maximum is reached already. A listener whose peer has fewer than others takes a place of
    /// the peer that has the most.
    pub(super) fn listen(
        &mut self,
        peer: &[u8],
        identity: &transport::Peer,
        epoch: u32,
        filter: Filter,
    ) -> bool {
        if self.all.len() >= MAX_LISTENERS && !self.all.contains_key(peer) {
            self.make_room(identity);
        }
        let is_full = self.all.len() >= MAX_LISTENERS;
        match self.all.get_mut(peer) {
            Some(known) if known.epoch == epoch => known.filter = filter,
            None if is_full => return false,
            _ => {
                let new = Listener {
                    identity: identity.clone(),
                    epoch,
                    filter,
                    backlog: Backlog::default(),
                    lost: 0,
                };
                self.all.insert(peer.to_vec(), new);
            }
        }
        true
    }

    fn make_room(&mut self, identity: &transport::Peer) {
        let mut of: BTreeMap<&transport::Peer, (usize, &Peer)> = BTreeMap::new();
        for (peer, listener) in &self.all {
            of.entry(&listener.identity).or_insert((0, peer)).0 += 1;
        }
        let own = of.get(identity).map_or(0, |(n, _)| *n);
        let most = of.values().max_by_key(|(n, _)| *n);
        let leaves = most
            .filter(|(n, _)| *n > own + 1)
            .map(|(_, peer)| (*peer).clone());
        if let Some(peer) = leaves {
            self.all.remove(&peer);
        }
    }

    /// This peer lost its permission to listen.
    pub(super) fn revoke(&mut self, identity: &transport::Peer) {
        self.all.retain(|_, listener| listener.identity != *identity);
    }

    /// The connection is closed.
    pub(super) fn forget(&mut self, peer: &[u8]) {
        self.all.remove(peer);
        self.ways.forget(peer);
    }

    /// Queues a frame for all listeners that want it. Returns how many frames were dropped for it.
    pub(super) fn publish(&mut self, stream: Stream<'_>, frame: &[u8]) -> u64 {
        let share = self.most_bytes / self.all.len().max(1);
        let mut lost = 0;
        let mut waiting: Option<Waiting> = None;
        for listener in self
            .all
            .values_mut()
            .filter(|l| l.filter.wants(stream.kind, stream.channel))
        {
            let waiting = waiting.get_or_insert_with(|| self.kinds.waiting(stream, frame.into()));
            let gone = listener.backlog.push(waiting.clone(), share);
            listener.lost += gone;
            lost += gone;
        }
        lost
    }

    /// Returns whether anything may be sent now.
    pub(super) fn ready(&self) -> bool {
        self.all
            .iter()
            .any(|(peer, listener)| listener.ready(peer, &self.ways))
    }

    /// Returns the next messages that may be sent, and their receivers; each listener gets one in turn. Record them as
    /// [sent](Ways::sent), and [forget](Self::forget) a closed connection.
    pub(super) fn round(&mut self) -> Vec<(Peer, transport::Peer, Vec<u8>)> {
        let Listeners { all, ways, .. } = self;
        let next = |(peer, listener): (&Peer, &mut Listener)| {
            let message = listener.next(peer, ways)?;
            Some((peer.clone(), listener.identity.clone(), message))
        };
        all.iter_mut().filter_map(next).collect()
    }

    /// A message of `round` was not accepted.
    pub(super) fn untaken(&mut self, peer: &[u8]) {
        if let Some(listener) = self.all.get_mut(peer) {
            listener.lost += 1;
        }
    }
}

impl Listener {
    fn ready(&self, peer: &[u8], ways: &Ways) -> bool {
        let front = self.backlog.front();
        front.is_some_and(|frame| ways.fits(peer, &self.identity, frame.len(), TELEMETRY))
    }

    fn next(&mut self, peer: &[u8], ways: &Ways) -> Option<Vec<u8>> {
        let frame = self.ready(peer, ways).then(|| self.backlog.pop()).flatten()?;
        Some(
            ToController::Telemetry {
                epoch: self.epoch,
                lost: self.lost,
                frame: &frame,
            }
            .encode(),
        )
    }
}

/// Frames that a listener lost.
#[derive(Default)]
pub(super) struct Arrivals {
    pub(super) epoch: u32,
    lost: u64,
}

impl Arrivals {
    pub(super) fn begin(&mut self) {
        (self.epoch, self.lost) = (self.epoch.wrapping_add(1), 0);
    }

    /// A frame arrived. Returns how many were lost since the last one.
    pub(super) fn arrived(&mut self, lost: u64) -> u64 {
        let new = lost.saturating_sub(self.lost);
        self.lost = self.lost.max(lost);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream<'_> = Stream {
        kind: "k",
        channel: 0,
        priority: 50,
    };

    const UNPROVEN: transport::Peer = transport::Peer::Unproven;

    /// Sends everything that fits at once. Returns it, with the marks after it.
    fn drain(listeners: &mut Listeners) -> (Vec<Vec<u8>>, Vec<u64>) {
        let (mut messages, mut marks) = (Vec::new(), Vec::new());
        while let Some((peer, identity, message)) = listeners.round().pop() {
            marks.extend(listeners.ways.sent(&peer, &identity, message.len()));
            messages.push(message);
        }
        (messages, marks)
    }

    #[test]
    fn a_listener_that_reads_nothing_gets_a_window_and_learns_what_it_lost() {
        let mut listeners = Listeners::new(1000);
        assert!(listeners.listen(b"a", &UNPROVEN, 1, Filter::All));
        let (mut lost, mut marks) = (0, Vec::new());
        for _ in 0..1000 {
            lost += listeners.publish(STREAM, &[0; 100]);
            marks.extend(drain(&mut listeners).1);
        }
        assert_eq!(lost, 1000 - TELEMETRY.messages - 10);
        listeners.ways.returned(b"a", *marks.last().unwrap());
        let first = drain(&mut listeners).0.remove(0);
        let Some(ToController::Telemetry { lost: counted, .. }) = ToController::parse(&first) else {
            panic!()
        };
        assert_eq!(counted, lost);
    }

    #[test]
    fn large_frames_flow_one_after_another_and_small_ones_that_are_on_the_way_do_not_hold_them_up() {
        let mut listeners = Listeners::new(64 << 20);
        let mut arrivals = Arrivals::default();
        arrivals.begin();
        listeners.listen(b"a", &UNPROVEN, 1, Filter::All);
        let mut got = 0;
        for round in 0..50 {
            let len = if round % 5 == 4 { 10 << 20 } else { 1000 };
            assert_eq!(listeners.publish(STREAM, &vec![0; len]), 0);
            let (messages, marks) = drain(&mut listeners);
            for message in messages {
                let Some(ToController::Telemetry { epoch, lost, .. }) = ToController::parse(&message) else {
                    panic!()
                };
                assert_eq!((epoch, arrivals.arrived(lost)), (1, 0));
                got += 1;
            }
            marks
                .into_iter()
                .for_each(|mark| listeners.ways.returned(b"a", mark));
        }
        assert_eq!(got, 50);
    }

    #[test]
    fn only_wanted_messages_are_kept_and_a_new_epoch_starts_over() {
        let mut listeners = Listeners::new(1000);
        listeners.listen(b"a", &UNPROVEN, 1, Filter::Only(vec![("k".into(), 1)]));
        assert_eq!(listeners.publish(STREAM, &[0; 10]), 0);
        assert!(!listeners.ready());
        listeners.listen(b"a", &UNPROVEN, 1, Filter::Only(vec![("k".into(), 0)]));
        listeners.publish(STREAM, &[0; 10]);
        assert!(listeners.ready());
        listeners.listen(b"a", &UNPROVEN, 2, Filter::All);
        assert!(!listeners.ready());
        listeners.forget(b"a");
        assert_eq!(listeners.all.len(), 0);
        for peer in 0..MAX_LISTENERS {
            assert!(listeners.listen(&[peer as u8], &UNPROVEN, 1, Filter::All));
        }
        assert!(!listeners.listen(b"more", &UNPROVEN, 1, Filter::All));
    }

    #[test]
    fn a_peer_that_fills_all_places_makes_room_for_others_and_loses_them_with_its_right() {
        let mut listeners = Listeners::new(1000);
        let (greedy, other) = (transport::Peer::Local(1), transport::Peer::Local(2));
        for peer in 0..200 {
            let listens = listeners.listen(&[peer], &greedy, 1, Filter::All);
            assert_eq!(listens, usize::from(peer) < MAX_LISTENERS);
        }
        for peer in 200..230 {
            assert!(listeners.listen(&[peer], &other, 1, Filter::All));
        }
        let of =
            |identity: &transport::Peer| listeners.all.values().filter(|l| l.identity == *identity).count();
        assert_eq!((of(&greedy), of(&other)), (MAX_LISTENERS - 30, 30));
        listeners.revoke(&greedy);
        assert_eq!(listeners.all.len(), 30);
    }
}
