//! Tracks a reader's progress with a writer: which sample is next, which are lost, and which will not arrive.

use super::Arrived;
use super::proxy::{MAX_GAPS, WriterProxy};
use crate::context::is_newer;
use crate::wire::number::MAX_SEQUENCE;
use crate::wire::submessage::{Gap, Heartbeat};
use core::time::Duration;

impl WriterProxy {
    /// Delivers the samples that are next, and skips those that will not arrive.
    pub(super) fn advance(&mut self, out: &mut Vec<Arrived>) {
        while self.next != 0 {
            if let Some(arrived) = self.ahead.remove(&self.next) {
                out.push(arrived);
                self.next += 1;
                continue;
            }
            let range = self.gaps.range(..=self.next).next_back().map(|(k, v)| (*k, *v));
            let Some((begin, end)) = range else { break };
            self.gaps.remove(&begin);
            self.next = self.next.max(end);
        }
        // Samples that the writer retracts are not delivered, even if they arrived.
        while self.ahead.first_key_value().is_some_and(|(n, _)| *n < self.next) {
            self.ahead.pop_first();
        }
        while self.parts.first_key_value().is_some_and(|(n, _)| *n < self.next) {
            self.parts.pop_first();
        }
    }

    /// Handles the range of samples that the writer has. Returns how many samples were lost.
    pub(super) fn heartbeat(&mut self, now: Duration, h: &Heartbeat, out: &mut Vec<Arrived>) -> u64 {
        // Older versions of Fast DDS announce 0 and 0 if they have nothing.
        let first = h.first.max(1);
        let sane = h.last >= first - 1 && first <= MAX_SEQUENCE && h.last <= MAX_SEQUENCE;
        if !self.reliable || !sane || !is_newer(h.count, self.heartbeat) {
            return 0;
        }
        self.heartbeat = Some(h.count);
        if self.next == 0 {
            // A reader that does not want samples from before the match starts after them, if the writer still has
            // them.
            let skip = !self.wants_old && self.has_old;
            let known = self.ahead.keys().next().copied().unwrap_or(first);
            self.next = if skip { h.last + 1 } else { first.min(known) };
        }
        self.last = self.last.max(h.last);
        self.reported = self.reported.max(h.last);
        let lost = self.skip_to(first, out);
        self.advance(out);
        if self.next <= self.last {
            self.asking.at_latest(now);
        }
        if !h.last_word {
            self.asking.answer(now);
        }
        lost
    }

    /// Skips to `first`: the writer has nothing before it. Returns how many samples were lost.
    fn skip_to(&mut self, first: i64, out: &mut Vec<Arrived>) -> u64 {
        let mut lost = 0u64;
        while self.next < first {
            self.advance(out);
            // Up to the next sample that is there or will not arrive anyway, or to the first that the writer has.
            let ahead = self.ahead.keys().next().copied().unwrap_or(first);
            let gap = self.gaps.keys().next().copied().unwrap_or(first);
            let to = ahead.min(gap).min(first);
            lost = lost.saturating_add((to - self.next).max(0) as u64);
            self.next = self.next.max(to);
        }
        lost
    }

    /// Handles samples that will not arrive and do not count as lost.
    pub(super) fn gap(&mut self, gap: &Gap, out: &mut Vec<Arrived>) {
        if !self.reliable || self.next == 0 && !self.wants_old {
            return;
        }
        if gap.first < gap.set.base {
            self.add_gap(gap.first, gap.set.base);
        }
        let mut run: Option<(i64, i64)> = None;
        for n in gap.set.iter() {
            match run {
                Some((from, to)) if to == n => run = Some((from, n + 1)),
                _ => {
                    if let Some((from, to)) = run {
                        self.add_gap(from, to);
                    }
                    run = Some((n, n + 1));
                }
            }
        }
        if let Some((from, to)) = run {
            self.add_gap(from, to);
        }
        self.asking.progress();
        self.advance(out);
    }

    /// Adds a gap. Gaps beyond the maximum are dropped; the writer repeats them on request.
    pub(super) fn add_gap(&mut self, from: i64, to: i64) {
        if self.next != 0 && from <= self.next {
            self.next = self.next.max(to);
            return;
        }
        let (mut from, mut to) = (from, to);
        // Merge with the gaps that it touches.
        while let Some((begin, end)) = self.gaps.range(..=to).next_back().map(|(k, v)| (*k, *v))
            && end >= from
        {
            self.gaps.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        if from < to && self.gaps.len() < MAX_GAPS {
            self.gaps.insert(from, to);
        }
    }
}
