//! One host's side of the contention: its queues and their back-off.

use crate::edca::Contention;
use crate::rng::Rng;
use crate::topology::EVERYONE;
use crate::transfer::Frame;
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// One queue and its back-off, by the rules of IEEE 802.11-2016, 10.3.4 (DCF) and 10.22.2 (EDCA).
pub(crate) struct Contender<P> {
    pub(crate) queue: VecDeque<Frame<P>>,
    pub(crate) retries: u8,
    rules: Contention,
    window: u32,
    /// Slots still to count down while the channel is idle. `None`: the back-off after the last frame is over, and a
    /// frame that finds the channel idle is sent after the interframe space alone.
    slots: Option<u32>,
    /// When the head of the queue began to listen, if it found the channel idle without a back-off.
    listens_since: Time,
}

impl<P> Contender<P> {
    pub(crate) fn new(rules: Contention) -> Self {
        Contender {
            queue: VecDeque::new(),
            retries: 0,
            rules,
            window: rules.cw_min,
            slots: None,
            listens_since: Time::ZERO,
        }
    }

    /// Appends a frame; `idle_since` is `None` while the channel is busy.
    pub(crate) fn push(&mut self, now: Time, idle_since: Option<Time>, frame: Frame<P>, rng: &mut Rng) {
        if self.queue.is_empty() {
            self.listen(now, idle_since, rng);
        }
        self.queue.push_back(frame);
    }

    /// Starts listening for the head of its queue.
    pub(crate) fn listen(&mut self, now: Time, idle_since: Option<Time>, rng: &mut Rng) {
        match (idle_since, self.slots) {
            (None, None) => self.draw(rng),
            (Some(since), Some(b)) if self.due(since, b) <= now => self.slots = None,
            _ => {}
        }
        self.listens_since = now;
    }

    /// When it transmits if the channel stays idle.
    pub(crate) fn attempt(&self, idle_since: Time) -> Option<Time> {
        self.queue.front()?;
        Some(match self.slots {
            Some(b) => self.due(idle_since, b),
            None => self.listens_since.max(idle_since) + self.rules.space,
        })
    }

    /// The channel was taken at `start`: freezes the countdown.
    pub(crate) fn freeze(&mut self, idle_since: Time, start: Time, rng: &mut Rng) {
        let counted = start.since(idle_since + self.rules.space).as_nanos() / self.rules.slot.as_nanos();
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        match self.slots {
            Some(b) if b <= counted && self.queue.is_empty() => self.slots = None,
            Some(b) => self.slots = Some(b.saturating_sub(counted)),
            None if !self.queue.is_empty() => self.draw(rng),
            None => {}
        }
    }

    /// Its frame was acknowledged or given up.
    pub(crate) fn settle(&mut self, rng: &mut Rng) {
        self.retries = 0;
        self.window = self.rules.cw_min;
        self.draw(rng);
    }

    /// Its frame got no acknowledgement and will be retried.
    pub(crate) fn back_off(&mut self, rng: &mut Rng) {
        self.retries = self.retries.saturating_add(1);
        self.window = (self.window * 2 + 1).min(self.rules.cw_max);
        self.draw(rng);
    }

    fn due(&self, idle_since: Time, slots: u32) -> Time {
        idle_since + self.rules.space + self.rules.slot * slots
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.slots = Some(rng.below(u64::from(self.window) + 1) as u32);
    }
}

/// A host's transmission on the air: a frame and, if it is received, the acknowledgement.
pub(crate) struct Transmission {
    pub(crate) queue: usize,
    /// The neighbour that it is for, or [`EVERYONE`].
    pub(crate) to: usize,
    pub(crate) data_end: Time,
    pub(crate) ack_start: Time,
    pub(crate) end: Time,
    pub(crate) phase: Phase,
    /// Whether something else was on the air at the receiver (of the frame, later of the acknowledgement), or at one of
    /// the receivers.
    pub(crate) spoilt: bool,
    /// For a frame to everyone: the receivers at which it was spoilt.
    pub(crate) deaf: Vec<usize>,
    /// Whether it takes part in a collision that is already counted.
    pub(crate) counted: bool,
    /// Whether the sender gets its acknowledgement.
    pub(crate) acknowledged: bool,
    /// Whether it was lost because the link or the receiver was down.
    pub(crate) outage: bool,
    /// Size of the packet that the receiver has taken from the queue, in case the acknowledgement is lost.
    pub(crate) ip_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The frame itself.
    Data,
    /// Between frame and acknowledgement, where hidden hosts make a difference.
    Gap,
    /// The acknowledgement, where hidden hosts make a difference.
    Ack,
    /// From the end of the frame on, whatever follows.
    Tail,
}

impl Transmission {
    /// Whether it is for everyone: nobody acknowledges it, and it is never repeated.
    pub(crate) fn is_group(&self) -> bool {
        self.to == EVERYONE
    }

    pub(crate) fn next(&self) -> Time {
        match self.phase {
            Phase::Data => self.data_end,
            Phase::Gap => self.ack_start,
            Phase::Ack | Phase::Tail => self.end,
        }
    }
}

/// A host.
pub(crate) struct Station<P> {
    /// One queue, or one for each category in ascending order of urgency.
    pub(crate) queues: Vec<Contender<P>>,
    /// Number of transmissions that it currently hears, including its own.
    pub(crate) heard: u32,
    /// Since when it hears nothing; while it hears something, the last such time.
    pub(crate) idle_since: Time,
    /// When it will transmit although another host has begun: within one slot it cannot have noticed.
    pub(crate) committed: Option<Time>,
    pub(crate) air: Option<Transmission>,
    /// The end of its transmission, until the channel is idle again.
    pub(crate) outcome: Option<Transmission>,
    /// Whether it is switched off: it neither begins to send nor receives.
    pub(crate) down: bool,
}

impl<P> Station<P> {
    pub(crate) fn new(rules: &[Contention]) -> Self {
        Station {
            queues: rules.iter().map(|r| Contender::new(*r)).collect(),
            heard: 0,
            idle_since: Time::ZERO,
            committed: None,
            air: None,
            outcome: None,
            down: false,
        }
    }

    /// Number of frames in all of its queues.
    pub(crate) fn queued(&self) -> usize {
        self.queues.iter().map(|q| q.queue.len()).sum()
    }

    /// Whether more than one of its queues has frames.
    pub(crate) fn is_contested(&self) -> bool {
        self.queues.iter().filter(|q| !q.queue.is_empty()).count() > 1
    }

    /// Since when the channel is idle; `None` while it is busy.
    pub(crate) fn idle(&self) -> Option<Time> {
        (self.heard == 0).then_some(self.idle_since)
    }

    /// When it transmits if the channel stays idle; `None` if it has nothing to send or the channel is busy.
    pub(crate) fn attempt(&self) -> Option<Time> {
        if self.heard > 0 || self.down {
            return None;
        }
        self.queues
            .iter()
            .filter_map(|q| q.attempt(self.idle_since))
            .min()
    }

    /// Another host took the channel at `t`: either it is too late to notice, or the countdown freezes.
    pub(crate) fn notice(&mut self, t: Time, slot: Duration, rng: &mut Rng) {
        if self.heard == 0 {
            match self.attempt().filter(|at| *at < t + slot) {
                Some(at) => self.committed = Some(at),
                None => {
                    for q in &mut self.queues {
                        q.freeze(self.idle_since, t, rng);
                    }
                }
            }
        }
        self.heard += 1;
    }
}
