//! Selects the topic whose fragment is sent next.
//!
//! The order is: by priority, then earliest deadline, then short messages (a begun one first, then the one with the
//! fewest bytes left, which gives the least mean delay), then the topic that had the least service, by start-time fair
//! queueing. A small flow among equals does not wait behind a large one, a flow that paused earns no credit, and one
//! that runs ahead of the others in service loses the advantage of being short. The choice is made again for every
//! fragment; that is the pre-emption. Ahead of all this go topics that are owed their minimum share (decision 022).

use super::quota::Quota;
use super::topic::{Pending, SendTopic};
use crate::body::Body;
use crate::config::{MAX_PRIORITY, Order};
use core::time::Duration;
use stats::Time;

/// Service (airtime in ns) that a topic of short messages may have had more than the least served of its equals and
/// still go first.
const HEAD_START: u64 = 50_000_000;

/// What a topic sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Announce,
    Data,
}

/// The service at which each priority's most recent fragment began.
#[derive(Debug)]
pub(crate) struct Scheduler {
    order: Order,
    /// The minimum share of everything less important than the most important topic waiting.
    pub(crate) below: Quota,
    virtual_time: [u64; MAX_PRIORITY as usize + 1],
}

impl Scheduler {
    pub(crate) fn new(order: Order, min_share: f64) -> Self {
        Scheduler {
            order,
            below: Quota::new(min_share),
            virtual_time: [0; MAX_PRIORITY as usize + 1],
        }
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// What this topic has to send, if its peer is up.
    fn work<B: Body>(t: &SendTopic<B>) -> Option<Work> {
        if t.announcer.is_due() {
            Some(Work::Announce)
        } else if t.announcer.accepted() == Some(true) && t.is_backlogged() {
            Some(Work::Data)
        } else {
            None
        }
    }

    /// The index of the topic to serve, among those for which `up` returns true, and what it sends.
    pub(crate) fn pick<B: Body>(
        &self,
        topics: &[SendTopic<B>],
        up: impl Fn(&SendTopic<B>) -> bool,
    ) -> Option<(usize, Work)> {
        let candidates = topics.iter().enumerate().filter(|(_, t)| up(t));
        let candidates = candidates.filter_map(|(i, t)| Some((i, t, Self::work(t)?)));
        let owed = candidates.clone().find(|(_, t, _)| t.quota.is_due());
        if let Some((i, _, work)) = owed.filter(|_| self.order == Order::Priority) {
            return Some((i, work));
        }
        let mut top = candidates.clone().map(|(_, t, _)| t.config.priority).max()?;
        let below = candidates
            .clone()
            .map(|(_, t, _)| t.config.priority)
            .filter(|p| *p < top)
            .max();
        if self.below.is_due() {
            top = below.unwrap_or(top);
        }
        let candidates = candidates.filter(|(_, t, _)| self.order == Order::Fifo || t.config.priority <= top);
        let equals = candidates.clone().filter(|(_, t, _)| t.config.priority == top);
        let least = equals.map(|(_, t, _)| t.served).min()?;
        let key = |i: usize, t: &SendTopic<B>, w: Work| {
            let head = t.head();
            match (self.order, w) {
                (Order::Fifo, Work::Announce) => (0, t.announced_order, 0, 0, i),
                (Order::Fifo, Work::Data) => (0, head.map_or(u64::MAX, |p| p.arrival), 0, 0, i),
                // Its messages wait for the announcement, so it goes first among equals.
                (Order::Priority, Work::Announce) => (MAX_PRIORITY - t.config.priority, 0, 0, 0, i),
                (Order::Priority, Work::Data) => {
                    let deadline = head.map_or(Time::MAX, |p| t.deadline_of(p));
                    let length = Self::length(t, least);
                    (
                        MAX_PRIORITY - t.config.priority,
                        deadline.as_nanos(),
                        length,
                        t.served,
                        i,
                    )
                }
            }
        };
        candidates
            .min_by_key(|(i, t, w)| key(*i, t, *w))
            .map(|(i, _, w)| (i, w))
    }

    /// Rank of short messages among equals, the least served of which had `least` (interleaved they would all be late).
    fn length<B: Body>(t: &SendTopic<B>, least: u64) -> u64 {
        let bytes = t.head().map_or(u64::MAX, Pending::bytes);
        let short = t.head().is_some_and(Pending::is_short);
        match (!short || t.served.saturating_sub(least) > HEAD_START, &t.sending) {
            (true, _) => u64::MAX,
            (false, Some(_)) => 0,
            (false, None) => bytes,
        }
    }

    /// The index of the topic with a message that rides along in a datagram with room, among those for which `fits`
    /// returns true. Under first in, first out nothing overtakes, so there the very next message has to fit.
    pub(crate) fn pick_along<B: Body>(
        &self,
        topics: &[SendTopic<B>],
        fits: impl Fn(&SendTopic<B>) -> bool,
    ) -> Option<usize> {
        let data = |t: &SendTopic<B>| Self::work(t) == Some(Work::Data) && fits(t);
        match self.order {
            Order::Priority => self.pick(topics, data).map(|(i, _)| i),
            Order::Fifo => self
                .pick(topics, |_| true)
                .map(|(i, _)| i)
                .filter(|i| data(&topics[*i])),
        }
    }

    /// A topic that had nothing to send has something again, or changed its priority: it starts level with the others.
    pub(crate) fn wake<B: Body>(&self, t: &mut SendTopic<B>) {
        t.served = t.served.max(self.virtual_time[usize::from(t.config.priority)]);
    }

    /// A topic changed its priority: its service so far was among others.
    pub(crate) fn moved<B: Body>(&self, t: &mut SendTopic<B>) {
        t.served = self.virtual_time[usize::from(t.config.priority)];
    }

    /// A fragment of the topic was sent.
    pub(crate) fn charge<B: Body>(&mut self, t: &mut SendTopic<B>, airtime: Duration) {
        let v = &mut self.virtual_time[usize::from(t.config.priority)];
        *v = (*v).max(t.served);
        let ns = u64::try_from(airtime.as_nanos()).unwrap_or(u64::MAX);
        // Where nothing is paced, all fragments count the same.
        t.served = t.served.saturating_add(ns.max(1));
    }
}
