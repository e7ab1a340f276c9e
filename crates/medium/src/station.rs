//! One host's side of the distributed coordination function: its queue and its back-off.

use crate::phy::{CW_MAX, CW_MIN, DIFS, SLOT};
use crate::rng::Rng;
use stats::Time;
use std::collections::VecDeque;

/// A frame somewhere on its way.
pub(crate) struct Frame<P> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) ip_bytes: usize,
    pub(crate) payload: P,
}

pub(crate) struct Station<P> {
    pub(crate) queue: VecDeque<Frame<P>>,
    pub(crate) retries: u8,
    window: u32,
    /// Slots still to count down while the channel is idle. `None`: the back-off after the last frame is
    /// over, and a frame that finds the channel idle goes after DIFS alone.
    slots: Option<u32>,
    /// When the head of the queue began to listen, if it found the channel idle without a back-off.
    listens_since: Time,
}

impl<P> Station<P> {
    pub(crate) fn new() -> Self {
        Station {
            queue: VecDeque::new(),
            retries: 0,
            window: CW_MIN,
            slots: None,
            listens_since: Time::ZERO,
        }
    }

    /// Appends a frame; `idle_since` is `None` while the channel is busy.
    pub(crate) fn push(&mut self, now: Time, idle_since: Option<Time>, frame: Frame<P>, rng: &mut Rng) {
        if self.queue.is_empty() {
            match (idle_since, self.slots) {
                (None, None) => self.draw(rng),
                (Some(since), Some(b)) if since + DIFS + SLOT * b <= now => self.slots = None,
                _ => {}
            }
            self.listens_since = now;
        }
        self.queue.push_back(frame);
    }

    /// When it will transmit if the channel stays idle.
    pub(crate) fn attempt(&self, idle_since: Time) -> Option<Time> {
        self.queue.front()?;
        Some(match self.slots {
            Some(b) => idle_since + DIFS + SLOT * b,
            None => self.listens_since.max(idle_since) + DIFS,
        })
    }

    /// Another host took the channel at `start`: freezes the countdown.
    pub(crate) fn freeze(&mut self, idle_since: Time, start: Time, rng: &mut Rng) {
        let counted = start.since(idle_since + DIFS).as_nanos() / SLOT.as_nanos();
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
        self.window = CW_MIN;
        self.draw(rng);
    }

    /// Its frame found no acknowledgement and will be tried again.
    pub(crate) fn back_off(&mut self, rng: &mut Rng) {
        self.retries = self.retries.saturating_add(1);
        self.window = (self.window * 2 + 1).min(CW_MAX);
        self.draw(rng);
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.slots = Some(rng.below(u64::from(self.window) + 1) as u32);
    }
}
