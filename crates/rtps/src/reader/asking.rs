//! When a reader answers a writer, and what it requests (DDSI-RTPS 2.5, section 8.4.12).

use super::proxy::WriterProxy;
use crate::context::Context;
use crate::wire::encode;
use crate::wire::ids::{EntityId, Guid};
use crate::wire::number::{NumberSet, SPAN};
use crate::wire::submessage::{AckNack, NackFrag};
use core::time::Duration;

/// How long a sample that arrived out of order may wait for the one before it, until that is requested.
pub(super) const REORDERED: Duration = Duration::from_millis(1);
/// How long after the last fragment of a sample the missing ones are requested.
pub(super) const QUIET: Duration = Duration::from_millis(5);
/// The same for fragments after the last that arrived, if the writer has not announced yet that it sent them.
const UNREPORTED: Duration = Duration::from_millis(50);
/// Minimum time between two requests.
const AGAIN: Duration = Duration::from_millis(10);
/// First interval at which a request is repeated; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(40);
const SLOWEST_RETRY: Duration = Duration::from_secs(1);
/// How often a writer about which nothing is known is asked which samples it has.
const GREETINGS: u32 = 6;
/// Maximum number of fragment sets per request, with 256 fragments each.
const MOST_SETS: usize = 4;

/// Whether and when to answer a writer.
#[derive(Debug)]
pub(crate) struct Asking {
    at: Option<Duration>,
    /// The writer requested an answer.
    wanted: bool,
    asked: Option<Duration>,
    retry: Duration,
    count: u32,
    greetings: u32,
}

impl Asking {
    pub(super) fn new(at: Option<Duration>) -> Self {
        Asking {
            at,
            wanted: false,
            asked: None,
            retry: FIRST_RETRY,
            count: 0,
            greetings: 0,
        }
    }

    pub(super) fn due(&self) -> Option<Duration> {
        self.at
    }

    pub(super) fn at_latest(&mut self, at: Duration) {
        self.at = Some(self.at.map_or(at, |old| old.min(at)));
    }

    pub(super) fn answer(&mut self, now: Duration) {
        self.wanted = true;
        self.at_latest(now);
    }

    /// Something arrived: request what is missing soon.
    pub(super) fn progress(&mut self) {
        self.retry = FIRST_RETRY;
    }

    fn next_count(&mut self) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }
}

/// Samples and fragments of a writer that a reader lacks.
struct Missing {
    set: NumberSet,
    fragments: Vec<(i64, NumberSet)>,
    /// Time until which some of what is missing may still be on the way.
    recheck: Option<Duration>,
}

impl WriterProxy {
    /// Answers the writer if that is due, and requests what is missing.
    pub(super) fn ask(&mut self, cx: &mut Context<'_>, reader: EntityId, writer: Guid) {
        let now = cx.now;
        if self.asking.at.is_none_or(|at| at > now) {
            return;
        }
        self.asking.at = None;
        if self.next == 0 {
            // Nothing is known: send an empty set, which requests a heartbeat (section 8.4.2.3.4).
            if self.asking.greetings < GREETINGS {
                self.asking.greetings += 1;
                self.asking.at_latest(now + self.asking.retry);
                self.asking.retry = (self.asking.retry * 2).min(SLOWEST_RETRY);
                self.send(cx, reader, writer, NumberSet::new(self.greeting), &[], false);
            }
            return;
        }
        let missing = self.missing(now);
        let asks = !missing.set.is_empty() || !missing.fragments.is_empty();
        if let Some(asked) = self.asking.asked.filter(|_| asks)
            && now < asked + AGAIN
        {
            self.asking.at_latest(asked + AGAIN);
            return;
        }
        if let Some(at) = missing.recheck {
            self.asking.at_latest(at.max(now + REORDERED));
        }
        if asks {
            self.asking.asked = Some(now);
            self.asking.at_latest(now + self.asking.retry);
            self.asking.retry = (self.asking.retry * 2).min(SLOWEST_RETRY);
        }
        if asks || self.asking.wanted {
            self.asking.wanted = false;
            self.send(cx, reader, writer, missing.set, &missing.fragments, true);
        }
    }

    fn missing(&self, now: Duration) -> Missing {
        let mut out = Missing {
            set: NumberSet::new(self.next),
            fragments: Vec::new(),
            recheck: None,
        };
        for sequence in self.next..=self.last.min(self.next + SPAN - 1) {
            let Some(assembly) = self.parts.get(&sequence) else {
                if self.lacks(sequence) {
                    out.set.insert(sequence);
                }
                continue;
            };
            let (quiet, unreported) = (assembly.at + QUIET, assembly.at + UNREPORTED);
            let all = sequence <= self.reported || unreported <= now;
            if let Some(at) = [quiet, unreported].into_iter().find(|at| *at > now)
                && !(all && quiet <= now)
            {
                out.recheck = Some(out.recheck.map_or(at, |old| old.min(at)));
            }
            if quiet > now {
                continue;
            }
            let mut missing = assembly.missing(all).map(i64::from).peekable();
            while let Some(base) = missing.peek().copied()
                && out.fragments.len() < MOST_SETS
            {
                let mut set = NumberSet::new(base);
                while missing.next_if(|n| set.insert(*n)).is_some() {}
                out.fragments.push((sequence, set));
            }
        }
        out
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        reader: EntityId,
        writer: Guid,
        missing: NumberSet,
        fragments: &[(i64, NumberSet)],
        last_word: bool,
    ) {
        let mut bytes = Vec::new();
        let ack = AckNack {
            reader,
            writer: writer.entity,
            missing,
            count: self.asking.next_count(),
            last_word,
        };
        encode::acknack(&mut bytes, &ack);
        for (sequence, set) in fragments {
            let nack = NackFrag {
                reader,
                writer: writer.entity,
                sequence: *sequence,
                missing: *set,
                count: self.asking.next_count(),
            };
            encode::nack_frag(&mut bytes, &nack);
        }
        cx.outbox.control(cx.now, self.target, self.pace, bytes);
    }
}
