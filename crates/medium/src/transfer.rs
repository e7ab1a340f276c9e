//! Code that radio and wire share: packets behind the air or wire, events, and counters.

use crate::count::MediumStats;
use crate::event::Event;
use crate::links::Links;
use crate::rng::Rng;
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};

/// Most packets under way behind the air or wire at once: 3 s of full frames at 1 Gbit/s.
const UNDER_WAY_MAX: usize = 250_000;

/// A packet on its way.
#[derive(Clone)]
pub(crate) struct Frame<P> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) ip_bytes: usize,
    /// The queue it waits in, as index into [`crate::Category::ALL`]; 0 without EDCA.
    pub(crate) queue: usize,
    /// `None` once the receiver has it while the sender, having missed the acknowledgement, repeats it.
    pub(crate) payload: Option<P>,
}

pub(crate) struct Transfer<P> {
    pub(crate) links: Links,
    pub(crate) rng: Rng,
    pub(crate) stats: MediumStats,
    pub(crate) out: VecDeque<Event<P>>,
    /// Packets under way, by arrival time and order, with the host that they reach.
    delayed: BTreeMap<(Time, u64), (usize, Frame<P>)>,
    order: u64,
}

impl<P: Clone> Transfer<P> {
    pub(crate) fn new(links: Links, seed: u64, stats: MediumStats) -> Self {
        Transfer {
            links,
            rng: Rng::new(seed),
            stats,
            out: VecDeque::new(),
            delayed: BTreeMap::new(),
            order: 0,
        }
    }

    /// A packet enters the model at its first host.
    pub(crate) fn offered(&mut self, host: usize) {
        self.stats.offered += 1;
        self.stats.hosts[host].offered += 1;
    }

    /// A frame of `from` is done, and will not be repeated.
    pub(crate) fn over(&mut self, from: usize, queue: usize) {
        let h = &mut self.stats.hosts[from];
        h.acknowledged += 1;
        if let Some(c) = h.categories.get_mut(queue) {
            c.acknowledged += 1;
        }
    }

    /// A frame has crossed the air or wire from `from` to its neighbour `to`. Returns it if it arrives at once.
    pub(crate) fn crossed(&mut self, t: Time, from: usize, to: usize, frame: Frame<P>) -> Option<Frame<P>> {
        let Some((first, copy)) = self.links.transit(t, (from, to), &mut self.rng) else {
            self.lose(t, from, DropReason::PathLoss, frame);
            return None;
        };
        if self.delayed.len() >= UNDER_WAY_MAX {
            self.lose(t, from, DropReason::PathLoss, frame);
            return None;
        }
        if let Some(at) = copy {
            self.stats.duplicated += 1;
            self.hold(at, to, frame.clone());
        }
        if first > t {
            self.hold(first, to, frame);
            return None;
        }
        Some(frame)
    }

    fn hold(&mut self, until: Time, host: usize, frame: Frame<P>) {
        self.order += 1;
        self.delayed.insert((until, self.order), (host, frame));
    }

    /// When the next packet under way arrives.
    pub(crate) fn next(&self) -> Option<Time> {
        self.delayed.first_key_value().map(|((t, _), _)| *t)
    }

    /// The next packet under way, and the host that it reaches.
    pub(crate) fn pop(&mut self) -> Option<(usize, Frame<P>)> {
        self.delayed.pop_first().map(|(_, arrival)| arrival)
    }

    /// Number of packets under way.
    pub(crate) fn under_way(&self) -> usize {
        self.delayed.len()
    }

    /// A packet reached its final host.
    pub(crate) fn deliver(&mut self, t: Time, host: usize, frame: Frame<P>) {
        let Some(payload) = frame.payload else { return };
        self.stats.delivered += 1;
        let bytes = frame.ip_bytes as u64;
        self.stats.delivered_bytes = self.stats.delivered_bytes.saturating_add(bytes);
        let h = &mut self.stats.hosts[host];
        h.received += 1;
        h.received_bytes = h.received_bytes.saturating_add(bytes);
        self.out.push_back(Event::Delivered {
            at: t,
            host,
            from: frame.from,
            payload,
        });
    }

    /// A packet is lost: counts and reports it.
    pub(crate) fn lose(&mut self, at: Time, host: usize, reason: DropReason, frame: Frame<P>) {
        // A packet that the receiver already has is not lost.
        if let Some(payload) = frame.payload {
            self.count_loss(host, frame.queue, reason);
            self.out.push_back(Event::Dropped {
                at,
                host,
                reason,
                payload,
            });
        }
    }

    /// Counts a loss; for a packet that is returned to its sender, there is no event.
    pub(crate) fn count_loss(&mut self, host: usize, queue: usize, reason: DropReason) {
        let h = &mut self.stats.hosts[host];
        h.drops.add(reason, 1);
        if let Some(c) = h.categories.get_mut(queue) {
            c.drops.add(reason, 1);
        }
    }

    /// A queue of `host` has grown to `own` frames, all of its queues together to `all`.
    pub(crate) fn grown(&mut self, host: usize, queue: usize, own: usize, all: usize) {
        let h = &mut self.stats.hosts[host];
        h.queue_high_water = h.queue_high_water.max(all);
        if let Some(c) = h.categories.get_mut(queue) {
            c.queue_high_water = c.queue_high_water.max(own);
        }
    }
}
