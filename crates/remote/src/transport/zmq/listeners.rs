//! Who listens to a robot's telemetry over the own wire, and how much each may get before it says that it arrived.
//!
//! A publisher of ZeroMQ (PUB) counts frames, not bytes, and drops in silence. Here a listener says what arrived, so at most
//! [`WINDOW`] bytes (or one frame) stand for it in ZeroMQ, the rest waits where it is bounded in bytes, and what is lost is counted and told.

use super::backlog::{Backlog, Kinds, Waiting};
use super::envelope::{Filter, ToController};
use crate::transport::{self, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that may be on the way to a listener.
pub(super) const WINDOW: u64 = 8 << 20;
/// Frames that may be.
pub(super) const WINDOW_FRAMES: u64 = 64;
/// Most listeners of a robot's end.
pub(super) const MAX_LISTENERS: usize = 64;

/// A connection, as ROUTER sockets name it.
pub(super) type Peer = Vec<u8>;

/// Everyone who listens.
pub(super) struct Listeners {
    /// In order, so that all are served alike in every run.
    all: BTreeMap<Peer, Listener>,
    kinds: Kinds,
    most_bytes: usize,
}

struct Listener {
    /// Who listens, as the transport proves.
    who: transport::Peer,
    epoch: u32,
    filter: Filter,
    backlog: Backlog,
    lost: u64,
    sent: (u64, u64),
    arrived: (u64, u64),
}

impl Listeners {
    /// For all of them together at most about `most_bytes` wait here.
    pub(super) fn new(most_bytes: usize) -> Self {
        Listeners {
            all: BTreeMap::new(),
            kinds: Kinds::default(),
            most_bytes,
        }
    }

    /// False: there are as many as may be already. One that has fewer than others takes a place of those who have the most.
    pub(super) fn listen(&mut self, peer: &[u8], who: &transport::Peer, epoch: u32, filter: Filter) -> bool {
        if self.all.len() >= MAX_LISTENERS && !self.all.contains_key(peer) {
            self.make_room(who);
        }
        let is_full = self.all.len() >= MAX_LISTENERS;
        match self.all.get_mut(peer) {
            Some(known) if known.epoch == epoch => known.filter = filter,
            None if is_full => return false,
            _ => {
                let new = Listener {
                    who: who.clone(),
                    epoch,
                    filter,
                    backlog: Backlog::default(),
                    lost: 0,
                    sent: (0, 0),
                    arrived: (0, 0),
                };
                self.all.insert(peer.to_vec(), new);
            }
        }
        true
    }

    fn make_room(&mut self, who: &transport::Peer) {
        let mut of: BTreeMap<&transport::Peer, (usize, &Peer)> = BTreeMap::new();
        for (peer, listener) in &self.all {
            of.entry(&listener.who).or_insert((0, peer)).0 += 1;
        }
        let own = of.get(who).map_or(0, |(n, _)| *n);
        let most = of.values().max_by_key(|(n, _)| *n);
        let leaves = most
            .filter(|(n, _)| *n > own + 1)
            .map(|(_, peer)| (*peer).clone());
        if let Some(peer) = leaves {
            self.all.remove(&peer);
        }
    }

    /// They may not listen any more.
    pub(super) fn revoke(&mut self, who: &transport::Peer) {
        self.all.retain(|_, listener| listener.who != *who);
    }

    pub(super) fn credit(&mut self, peer: &[u8], epoch: u32, frames: u64, bytes: u64) {
        if let Some(listener) = self.all.get_mut(peer).filter(|l| l.epoch == epoch) {
            let (sent, arrived) = (listener.sent, &mut listener.arrived);
            // Never back, and never more than was sent, whatever a listener says.
            *arrived = (frames.clamp(arrived.0, sent.0), bytes.clamp(arrived.1, sent.1));
        }
    }

    pub(super) fn forget(&mut self, peer: &[u8]) {
        self.all.remove(peer);
    }

    /// Leaves a frame for everyone who wants it. Returns how many frames were lost by it.
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

    /// Whether anything may be sent now.
    pub(super) fn ready(&self) -> bool {
        self.all.values().any(Listener::ready)
    }

    /// The next message that may be sent, and to whom; each listener gets one in turn. A peer that is gone is to be [forgotten](Self::forget).
    pub(super) fn round(&mut self) -> Vec<(Peer, Vec<u8>)> {
        self.all
            .iter_mut()
            .filter_map(|(peer, listener)| Some((peer.clone(), listener.next()?)))
            .collect()
    }

    /// A message of `round` was not taken.
    pub(super) fn untaken(&mut self, peer: &[u8]) {
        if let Some(listener) = self.all.get_mut(peer) {
            listener.lost += 1;
        }
    }
}

impl Listener {
    fn ready(&self) -> bool {
        let under_way = (self.sent.0 - self.arrived.0, self.sent.1 - self.arrived.1);
        let fits = |frame: &Arc<[u8]>| {
            // A listener says what arrived by quarters at the latest, so a frame of any size comes to its turn.
            under_way.0 < WINDOW_FRAMES
                && (under_way.1 < WINDOW / 4 || under_way.1 + frame.len() as u64 <= WINDOW)
        };
        self.backlog.front().is_some_and(fits)
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let frame = self.ready().then(|| self.backlog.pop()).flatten()?;
        self.sent = (self.sent.0 + 1, self.sent.1 + frame.len() as u64);
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

/// What arrived at a listener, and when to say so.
#[derive(Default)]
pub(super) struct Arrivals {
    pub(super) epoch: u32,
    frames: u64,
    bytes: u64,
    said: (u64, u64),
    lost: u64,
}

impl Arrivals {
    pub(super) fn begin(&mut self) {
        *self = Arrivals {
            epoch: self.epoch.wrapping_add(1),
            ..Arrivals::default()
        };
    }

    /// Returns how many frames were lost since the last one.
    pub(super) fn arrived(&mut self, lost: u64, len: usize) -> u64 {
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + len as u64);
        let new = lost.saturating_sub(self.lost);
        self.lost = self.lost.max(lost);
        new
    }

    /// Frames and bytes to say, where it is time.
    pub(super) fn due(&mut self) -> Option<(u64, u64)> {
        let unsaid = (self.frames - self.said.0, self.bytes - self.said.1);
        (unsaid.0 >= WINDOW_FRAMES / 4 || unsaid.1 >= WINDOW / 4).then(|| {
            self.said = (self.frames, self.bytes);
            self.said
        })
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

    fn drain(listeners: &mut Listeners) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| listeners.round().pop().map(|(_, message)| message)).collect()
    }

    #[test]
    fn a_listener_that_says_nothing_gets_a_window_and_learns_what_it_lost() {
        let mut listeners = Listeners::new(1000);
        assert!(listeners.listen(b"a", &UNPROVEN, 1, Filter::All));
        let mut lost = 0;
        for _ in 0..1000 {
            lost += listeners.publish(STREAM, &[0; 100]);
            drain(&mut listeners);
        }
        assert_eq!(lost, 1000 - WINDOW_FRAMES - 10);
        listeners.credit(b"a", 1, u64::MAX, u64::MAX);
        let first = drain(&mut listeners).remove(0);
        let Some(ToController::Telemetry { lost: told, .. }) = ToController::parse(&first) else {
            panic!()
        };
        assert_eq!(told, lost);
    }

    #[test]
    fn large_frames_flow_one_after_another_and_small_credits_do_not_hold_them_up() {
        let mut listeners = Listeners::new(64 << 20);
        let mut arrivals = Arrivals::default();
        arrivals.begin();
        listeners.listen(b"a", &UNPROVEN, 1, Filter::All);
        let mut got = 0;
        for round in 0..50 {
            let len = if round % 5 == 4 { 10 << 20 } else { 1000 };
            assert_eq!(listeners.publish(STREAM, &vec![0; len]), 0);
            for message in drain(&mut listeners) {
                let Some(ToController::Telemetry { epoch, lost, frame }) = ToController::parse(&message)
                else {
                    panic!()
                };
                assert_eq!((epoch, arrivals.arrived(lost, frame.len())), (1, 0));
                got += 1;
                if let Some((frames, bytes)) = arrivals.due() {
                    listeners.credit(b"a", 1, frames, bytes);
                }
            }
        }
        drain(&mut listeners);
        assert_eq!(got, 50);
    }

    #[test]
    fn only_what_is_wanted_is_kept_and_a_new_epoch_begins_anew() {
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
    fn who_fills_all_places_makes_room_for_others_and_loses_them_with_the_right_to_listen() {
        let mut listeners = Listeners::new(1000);
        let (greedy, other) = (transport::Peer::Local(1), transport::Peer::Local(2));
        for peer in 0..200 {
            let listens = listeners.listen(&[peer], &greedy, 1, Filter::All);
            assert_eq!(listens, usize::from(peer) < MAX_LISTENERS);
        }
        for peer in 200..230 {
            assert!(listeners.listen(&[peer], &other, 1, Filter::All));
        }
        let of = |who: &transport::Peer| listeners.all.values().filter(|l| l.who == *who).count();
        assert_eq!((of(&greedy), of(&other)), (MAX_LISTENERS - 30, 30));
        listeners.revoke(&greedy);
        assert_eq!(listeners.all.len(), 30);
    }
}
