//! What a reader has of a writer that it is matched with (DDSI-RTPS 2.5, section 8.4.10).

use super::Arrived;
use super::asking::{Asking, QUIET, REORDERED};
use super::assembly::Assembly;
use crate::account::{Account, Charge};
use crate::config::Pace;
use crate::qos::Qos;
use crate::send::Target;
use crate::wire::ids::VendorId;
use crate::wire::inline::InlineQos;
use crate::wire::submessage::{DataFrag, Payload};
use crate::wire::time::Timestamp;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Samples of a writer that are kept until an earlier one came, beside their bytes' budget.
pub(crate) const MAX_AHEAD: usize = 1_024;
/// Samples of a reliable writer that are put together at once; of one that gives best effort a quarter.
pub(crate) const MAX_PARTIAL: usize = 16;
/// Ranges of samples that will not come, kept until an earlier one came.
pub(crate) const MAX_GAPS: usize = 64;
/// A sample in fragments is given up after this time without a new one.
pub(crate) const PARTIAL_AGE: Duration = Duration::from_secs(2);
/// What a complete sample costs beside its bytes.
pub(super) const SAMPLE: usize = 192;

/// How a sample came, beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) now: Duration,
    pub(crate) timestamp: Option<Timestamp>,
}

/// Which of a participant's memory a sample takes: what waits for earlier ones has only a part of it, so that those fit.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pub(crate) all: Arc<Account>,
    pub(crate) ahead: Arc<Account>,
}

/// A matched writer.
#[derive(Debug)]
pub(crate) struct WriterProxy {
    pub(crate) reliable: bool,
    pub(crate) target: Target,
    pub(crate) pace: Pace,
    /// What it wrote before the match is wanted.
    pub(super) wants_old: bool,
    /// It keeps what it wrote before the match, wanted or not.
    pub(super) has_old: bool,
    /// The next sample to hand over; 0 until something is known.
    pub(super) next: i64,
    /// The newest sample that is known to have been written.
    pub(super) last: i64,
    /// The newest sample of which the writer said that it was sent as a whole.
    pub(super) told: i64,
    pub(super) ahead: BTreeMap<i64, Arrived>,
    /// From a number up to another, without that one.
    pub(super) gaps: BTreeMap<i64, i64>,
    pub(super) parts: BTreeMap<i64, Assembly>,
    /// Count of its last heartbeat.
    pub(super) heartbeat: Option<u32>,
    pub(super) asking: Asking,
    /// Base of the empty set that asks a writer of which nothing is known for a heartbeat.
    pub(super) greeting: i64,
    accounts: Accounts,
    _charge: Charge,
}

impl WriterProxy {
    /// By the policies of the reader and of the writer.
    pub(crate) fn new(
        now: Duration,
        vendor: VendorId,
        (reader, writer): (&Qos, &Qos),
        (target, pace): (Target, Pace),
        accounts: Accounts,
        charge: Charge,
    ) -> Self {
        let reliable = reader.is_reliable() && writer.is_reliable();
        WriterProxy {
            reliable,
            target,
            pace,
            wants_old: reader.keeps() && writer.keeps(),
            has_old: writer.keeps(),
            next: 0,
            last: 0,
            told: 0,
            ahead: BTreeMap::new(),
            gaps: BTreeMap::new(),
            parts: BTreeMap::new(),
            heartbeat: None,
            asking: Asking::new(reliable.then_some(now)),
            // Fast DDS sends one at once if that is 0; by any other number it puts its next one off for 3 s. Others refuse 0.
            greeting: i64::from(vendor != VendorId::FAST_DDS),
            accounts,
            _charge: charge,
        }
    }

    /// Whether the writer sent something for this reader.
    pub(super) fn is_mutual(&self) -> bool {
        !self.reliable || self.next != 0
    }

    /// Whether a sample is new. What is known of the writer for the first time by it begins with it.
    fn is_new(&mut self, sequence: i64) -> bool {
        if self.next == 0 && !self.reliable {
            self.next = sequence;
        }
        if self.next == 0 && !self.wants_old {
            self.next = sequence;
        }
        sequence >= self.next.max(1) && !self.ahead.contains_key(&sequence) && !self.is_gap(sequence)
    }

    fn is_gap(&self, sequence: i64) -> bool {
        let range = self.gaps.range(..=sequence).next_back();
        range.is_some_and(|(_, end)| *end > sequence)
    }

    /// Whether nothing is before it. Best effort waits for nobody.
    fn is_next(&self, sequence: i64) -> bool {
        !self.reliable || sequence == self.next
    }

    /// A sample in one piece. What came in order is put into `out`; the number of those that were lost before it is returned.
    pub(super) fn data(
        &mut self,
        stamp: Stamp,
        sequence: i64,
        inline: InlineQos,
        payload: Payload<'_>,
        out: &mut Vec<Arrived>,
    ) -> u64 {
        if !self.is_new(sequence) {
            return 0;
        }
        let (bytes, key) = match payload {
            Payload::Data(bytes) => (bytes, false),
            Payload::Key(bytes) => (bytes, true),
            Payload::None => (&[][..], true),
        };
        let account = if self.is_next(sequence) {
            &self.accounts.all
        } else if self.ahead.len() < MAX_AHEAD {
            &self.accounts.ahead
        } else {
            return 0;
        };
        // Without room a reliable sample comes again, any other is lost.
        let Some(charge) = account.take(bytes.len() + SAMPLE) else {
            return 0;
        };
        let arrived = Arrived {
            sequence,
            payload: bytes.to_vec(),
            key,
            inline,
            timestamp: stamp.timestamp,
            charge,
        };
        self.take(stamp.now, arrived, out)
    }

    /// A sample exists, and those before it were sent.
    fn see(&mut self, sequence: i64) {
        self.last = self.last.max(sequence);
        self.told = self.told.max(sequence - 1);
    }

    /// A whole sample that is new.
    fn take(&mut self, now: Duration, arrived: Arrived, out: &mut Vec<Arrived>) -> u64 {
        let sequence = arrived.sequence;
        self.parts.remove(&sequence);
        self.see(sequence);
        if !self.reliable {
            let lost = (sequence - self.next).max(0) as u64;
            self.next = sequence + 1;
            // Older ones come too late now.
            self.parts.retain(|n, _| *n > sequence);
            out.push(arrived);
            return lost;
        }
        self.asking.progress();
        self.ahead.insert(sequence, arrived);
        self.advance(out);
        if self.next != 0 && self.next <= self.last {
            self.asking.at_latest(now + REORDERED);
        }
        0
    }

    /// Fragments of a sample; like [`WriterProxy::data`] when they complete it.
    pub(super) fn data_frag(
        &mut self,
        stamp: Stamp,
        frag: &DataFrag<'_>,
        longest: u32,
        out: &mut Vec<Arrived>,
    ) -> u64 {
        let sequence = frag.sequence;
        if frag.sample_size > longest || !self.is_new(sequence) {
            return 0;
        }
        if !self.parts.contains_key(&sequence) && !self.begin(stamp.now, frag) {
            return 0;
        }
        let Some(assembly) = self.parts.get_mut(&sequence) else {
            return 0;
        };
        if assembly.add(stamp.now, frag) == 0 {
            return 0;
        }
        if assembly.timestamp.is_none() {
            assembly.timestamp = stamp.timestamp;
        }
        let complete = assembly.is_complete();
        self.see(sequence);
        if self.reliable {
            self.asking.progress();
            self.asking.at_latest(stamp.now + QUIET);
        }
        if complete && let Some(assembly) = self.parts.remove(&sequence) {
            let (inline, key, timestamp) = (assembly.inline, assembly.key, assembly.timestamp);
            let (payload, mut charge) = assembly.into_sample();
            charge.shrink_to(payload.len() + SAMPLE);
            let arrived = Arrived {
                sequence,
                payload,
                key,
                inline,
                timestamp,
                charge,
            };
            return self.take(stamp.now, arrived, out);
        }
        0
    }

    /// Makes room for a sample in fragments. Of best effort the oldest gives way, else the one that is furthest ahead.
    fn begin(&mut self, now: Duration, frag: &DataFrag<'_>) -> bool {
        let sequence = frag.sequence;
        let most = if self.reliable {
            MAX_PARTIAL
        } else {
            MAX_PARTIAL / 4
        };
        let account = if self.is_next(sequence) {
            self.accounts.all.clone()
        } else {
            self.accounts.ahead.clone()
        };
        loop {
            if self.parts.len() < most
                && let Some(assembly) = Assembly::new(now, frag, &account)
            {
                self.parts.insert(sequence, assembly);
                return true;
            }
            let worse = if self.reliable {
                self.parts.keys().next_back().filter(|n| **n > sequence)
            } else {
                self.parts.keys().next().filter(|n| **n < sequence)
            };
            match worse.copied() {
                Some(n) => drop(self.parts.remove(&n)),
                None => return false,
            }
        }
    }

    /// A sample whose inline QoS cannot be understood.
    pub(super) fn pass_over(&mut self, sequence: i64, out: &mut Vec<Arrived>) {
        if self.reliable && self.is_new(sequence) {
            self.see(sequence);
            self.add_gap(sequence, sequence + 1);
            self.advance(out);
        }
    }

    pub(super) fn lacks(&self, sequence: i64) -> bool {
        !self.ahead.contains_key(&sequence) && !self.is_gap(sequence)
    }

    /// Gives up samples of which nothing came for long; what is reliable is asked for as a whole.
    pub(super) fn give_up(&mut self, now: Duration) {
        let before = self.parts.len();
        self.parts.retain(|_, a| a.at + PARTIAL_AGE > now);
        if self.reliable && self.parts.len() < before {
            self.asking.at_latest(now);
        }
    }

    /// When samples are to be given up.
    pub(super) fn partial_due(&self) -> Option<Duration> {
        self.parts.values().map(|a| a.at + PARTIAL_AGE).min()
    }
}
