//! A reader's state for a matched writer (DDSI-RTPS 2.5, section 8.4.10).

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

/// Maximum number of samples of a writer kept until earlier ones arrive, in addition to the limit on their bytes.
pub(crate) const MAX_AHEAD: usize = 1_024;
/// Maximum number of samples of a reliable writer that are assembled at once; a quarter for a best-effort writer.
pub(crate) const MAX_PARTIAL: usize = 16;
/// Maximum number of ranges of samples that will not arrive, kept until earlier ones arrive.
pub(crate) const MAX_GAPS: usize = 64;
/// A fragmented sample is given up after this time without a new fragment.
pub(crate) const PARTIAL_AGE: Duration = Duration::from_secs(2);
/// Overhead of a complete sample, in bytes.
pub(super) const SAMPLE: usize = 192;

/// Reception time and source timestamp of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) now: Duration,
    pub(crate) timestamp: Option<Timestamp>,
}

/// The accounts that a sample is charged to. Samples that wait for earlier ones may use only a part of the memory, so
/// that the earlier ones fit.
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
    /// Samples that it wrote before the match are wanted.
    pub(super) wants_old: bool,
    /// It keeps samples from before the match, wanted or not.
    pub(super) has_old: bool,
    /// Next sample to deliver; 0 until something is known.
    pub(super) next: i64,
    /// Newest sample known to be written.
    pub(super) last: i64,
    /// Newest sample that the writer announced as completely sent.
    pub(super) reported: i64,
    pub(super) ahead: BTreeMap<i64, Arrived>,
    /// Ranges that will not arrive: start to end, end excluded.
    pub(super) gaps: BTreeMap<i64, i64>,
    pub(super) parts: BTreeMap<i64, Assembly>,
    /// Count of its last heartbeat.
    pub(super) heartbeat: Option<u32>,
    pub(super) asking: Asking,
    /// Base of the empty set that requests a heartbeat from a writer about which nothing is known.
    pub(super) greeting: i64,
    accounts: Accounts,
    _charge: Charge,
}

impl WriterProxy {
    /// A proxy with the policies of the reader and of the writer.
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
            reported: 0,
            ahead: BTreeMap::new(),
            gaps: BTreeMap::new(),
            parts: BTreeMap::new(),
            heartbeat: None,
            asking: Asking::new(reliable.then_some(now)),
            // If it is 0, Fast DDS sends a heartbeat at once; otherwise it postpones its next one for 3 s. Others
            // refuse 0.
            greeting: i64::from(vendor != VendorId::FAST_DDS),
            accounts,
            _charge: charge,
        }
    }

    /// Whether the writer sent something to this reader.
    pub(super) fn is_mutual(&self) -> bool {
        !self.reliable || self.next != 0
    }

    /// Whether a sample is new. If nothing is known about the writer yet, its samples begin with this one.
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

    /// Whether no earlier sample is missing. Best effort never waits.
    fn is_next(&self, sequence: i64) -> bool {
        !self.reliable || sequence == self.next
    }

    /// Handles an unfragmented sample. Appends samples that are now in order to `out`, and returns how many were lost
    /// before them.
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
        // Without room, a reliable sample is retransmitted later; any other is lost.
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

    /// Records that a sample exists, and that those before it were sent.
    fn see(&mut self, sequence: i64) {
        self.last = self.last.max(sequence);
        self.reported = self.reported.max(sequence - 1);
    }

    /// Handles a complete new sample.
    fn take(&mut self, now: Duration, arrived: Arrived, out: &mut Vec<Arrived>) -> u64 {
        let sequence = arrived.sequence;
        self.parts.remove(&sequence);
        self.see(sequence);
        if !self.reliable {
            let lost = (sequence - self.next).max(0) as u64;
            self.next = sequence + 1;
            // Older ones are too late now.
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

    /// Handles fragments of a sample; as [`WriterProxy::data`] when they complete it.
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

    /// Makes room for a fragmented sample. For best effort, the oldest is dropped, otherwise the one furthest ahead.
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

    /// Skips a sample whose inline QoS cannot be understood.
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

    /// Gives up samples without new fragments for too long; reliable ones are requested as a whole.
    pub(super) fn give_up(&mut self, now: Duration) {
        let before = self.parts.len();
        self.parts.retain(|_, a| a.at + PARTIAL_AGE > now);
        if self.reliable && self.parts.len() < before {
            self.asking.at_latest(now);
        }
    }

    /// When the next sample is due to be given up.
    pub(super) fn partial_due(&self) -> Option<Duration> {
        self.parts.values().map(|a| a.at + PARTIAL_AGE).min()
    }
}
