//! Cost of the link to a neighbour, measured by probes and their answers.

use super::LinkState;
use crate::wire::{Entry, Ways};
use core::time::Duration;
use stats::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Probes whose answers are expected.
const AWAITED: usize = 16;
/// Number of samples, of which the median counts.
const SAMPLES: usize = 5;
/// Largest value of a probe that was answered: it waited behind other frames in the device queue.
const SLOW: u64 = 8_000;
/// Stands for a lost probe.
const LOST: u64 = u64::MAX;
/// Least expected round trip: the hosts' own delay.
const LEAST_EXPECTED: Duration = Duration::from_micros(300);
/// A link that lost `FAILS` of the last `OUTCOMES` datagrams fails: a radio retries each frame several times before it
/// gives one up, however many others send.
const OUTCOMES: usize = 8;
const FAILS: usize = 3;
/// How long an outcome is valid.
const RECENT: Duration = Duration::from_millis(500);
/// Probes in a row that have to be answered before a link that failed counts as any other.
const TRUST: u8 = 20;
/// Until then, while several are unanswered, it is probed in one turn of this many: each probe takes the air of many
/// frames.
const SELDOM: u64 = 3;
/// Hosts that a neighbour may advertise.
pub(super) const MAX_HOSTS: usize = 64;

/// A neighbour's last advertisement about a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advert {
    pub(super) entry: Entry,
    pub(super) at: Time,
}

#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) host: u64,
    /// Probes sent: serial, time, expected airtime.
    sent: VecDeque<(u64, Time, Duration)>,
    pub(super) serial: u64,
    /// The newest probe received, when, and how many were received.
    newest: (u64, Time),
    heard: u64,
    /// Its last answer: serial and count.
    echoed: (u64, u64),
    /// When an answer last covered a newer probe.
    pub(super) answered_at: Option<Time>,
    /// Round trips relative to the value that airtimes explain, in thousandths.
    samples: VecDeque<u64>,
    /// Whether the last datagrams were lost, in both directions, and when that was known.
    outcomes: VecDeque<(Time, bool)>,
    /// Number of probes that must still be answered before it is trusted.
    failing: u8,
    pub(super) adverts: BTreeMap<u64, Advert>,
    /// A probe is due.
    pub(super) due: bool,
    /// Whether it currently counts as a route.
    pub(super) alive: bool,
    /// Hosts that were advertised to it as reachable over this host.
    pub(super) advertised: BTreeSet<u64>,
}

impl Neighbour {
    pub(super) fn new(host: u64) -> Self {
        Neighbour {
            host,
            sent: VecDeque::new(),
            serial: 0,
            newest: (0, Time::ZERO),
            heard: 0,
            echoed: (0, 0),
            answered_at: None,
            samples: VecDeque::new(),
            outcomes: VecDeque::new(),
            failing: 0,
            adverts: BTreeMap::new(),
            due: false,
            alive: false,
            advertised: BTreeSet::new(),
        }
    }

    /// The frame's header for a probe that is sent now; `expected` is the airtime of the probe and its answer.
    pub(super) fn probe(&mut self, now: Time, seq: u64, expected: Duration) -> Ways {
        self.serial += 1;
        self.due = false;
        self.sent.push_back((self.serial, now, expected));
        if self.sent.len() > AWAITED {
            self.sent.pop_front();
        }
        let held = u64::try_from(now.since(self.newest.1).as_micros()).unwrap_or(u64::MAX);
        Ways {
            serial: self.serial,
            echo: self.newest.0,
            heard: self.heard,
            held: if self.newest.0 == 0 { 0 } else { held },
            seq,
            entries: Vec::new(),
        }
    }

    /// Takes the header of a received probe.
    pub(super) fn take(&mut self, now: Time, ways: &Ways) {
        self.heard += 1;
        if ways.serial > self.newest.0 {
            self.newest = (ways.serial, now);
        }
        // A wrong answer hurts only its sender: its link looks bad, or good until messages are lost.
        if ways.echo > self.serial || ways.heard > self.serial {
            return;
        }
        let (echo, heard) = self.echoed;
        if ways.echo <= echo {
            // This host's last probes have not arrived.
            let overdue = self
                .sent
                .iter()
                .filter(|(n, at, e)| *n > echo && *at + *e * 8 < now);
            if overdue.count() > 1 {
                self.sample(SLOW);
            }
            return;
        }
        let lost = (ways.echo - echo).saturating_sub(ways.heard.saturating_sub(heard));
        for _ in 0..lost.min(SAMPLES as u64) {
            self.sample(LOST);
        }
        self.echoed = (ways.echo, ways.heard);
        self.answered_at = Some(now);
        if let Some((_, at, expected)) = self.sent.iter().find(|(n, ..)| *n == ways.echo) {
            let held = Duration::from_micros(ways.held);
            let trip = now.since(*at).saturating_sub(held).as_nanos();
            let expected = (*expected).max(LEAST_EXPECTED).as_nanos();
            let ratio = u64::try_from(trip * 1_000 / expected).unwrap_or(SLOW);
            self.sample(ratio.clamp(1_000, SLOW));
        }
        self.sent.retain(|(n, ..)| *n > ways.echo);
    }

    fn sample(&mut self, thousandths: u64) {
        self.failing = match thousandths {
            LOST if self.failing > 0 => TRUST,
            _ => self.failing.saturating_sub(1),
        };
        self.samples.push_back(thousandths);
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Cost of a full datagram whose airtime is `full` where nothing is lost and nobody else sends.
    pub(super) fn cost(&self, full: Duration) -> u64 {
        let micros = u64::try_from(full.as_micros()).unwrap_or(u64::MAX);
        (micros.max(1).saturating_mul(self.ratio()) / 1_000).max(1)
    }

    /// Its cost relative to that, in thousandths. Other frames in the device queue slow down all neighbours alike, and
    /// count up to a bound; so each loss but one, which may have been a collision, counts in addition.
    pub(super) fn ratio(&self) -> u64 {
        let mut sorted: Vec<u64> = self.samples.iter().map(|s| (*s).min(SLOW)).collect();
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(1_000);
        let lost = self.samples.iter().filter(|s| **s == LOST).count() as u64;
        let failing = if self.is_failing() { SAMPLES as u64 } else { 0 };
        middle + SLOW * lost.saturating_sub(1).max(failing)
    }

    /// When it stops being a route unless it answers before.
    pub(super) fn silent_at(&self, silence: Duration, link: LinkState) -> Option<Time> {
        let patient = self.answered_at? + silence;
        // Other requests to it went unanswered, too, and nothing arrived: its answers are not waiting, it is gone.
        let soon = self.answered_at.max(Some(self.newest.1))? + silence * 2 / 3;
        Some(if link.silent { patient.min(soon) } else { patient })
    }

    /// Whether it lost much lately, and has not answered often enough since.
    pub(super) fn is_failing(&self) -> bool {
        self.failing > 0
    }

    /// Whether it is probed in this turn.
    pub(super) fn wants_probe(&self, turn: u64) -> bool {
        !self.is_failing() || self.sent.len() < 2 || turn.is_multiple_of(SELDOM)
    }

    /// Records that `came` more datagrams arrived, and then `lost` did not. Returns true if that makes it fail.
    pub(super) fn traffic(&mut self, now: Time, came: u64, lost: u64) -> bool {
        for (n, is_lost) in [(came, false), (lost, true)] {
            for _ in 0..n.min(OUTCOMES as u64) {
                self.outcomes.push_back((now, is_lost));
            }
        }
        while self.outcomes.len() > OUTCOMES || self.outcomes.front().is_some_and(|(t, _)| *t + RECENT < now)
        {
            self.outcomes.pop_front();
        }
        let fails = self.outcomes.iter().filter(|(_, lost)| *lost).count() >= FAILS;
        // A neighbour that does not seek routes itself answers no probes that could restore trust in it.
        let fails = fails && self.answered_at.is_some();
        let new = fails && !self.is_failing();
        if fails {
            self.failing = TRUST;
        }
        new
    }

    /// A datagram that counted as lost arrived.
    pub(super) fn came_late(&mut self) {
        if let Some((_, lost)) = self.outcomes.iter_mut().rev().find(|(_, lost)| *lost) {
            *lost = false;
        }
    }

    /// It is no longer a route; when it becomes one again, it has to prove that it is a good one.
    pub(super) fn distrust(&mut self) {
        self.alive = false;
        self.failing = TRUST;
        self.samples = VecDeque::from([LOST; SAMPLES]);
    }

    pub(super) fn turn(&mut self) {
        self.answered_at = None;
        self.due = true;
        self.adverts.clear();
    }

    /// This host slept for `slept`, which does not count as silence of the neighbour.
    pub(super) fn slept(&mut self, now: Time, slept: Duration) {
        let heard = self.adverts.values_mut().map(|a| &mut a.at);
        for at in heard.chain(&mut self.answered_at).chain([&mut self.newest.1]) {
            *at = now.min(*at + slept);
        }
    }

    pub(super) fn record_advert(&mut self, now: Time, entry: Entry) {
        if self.adverts.len() < MAX_HOSTS || self.adverts.contains_key(&entry.host) {
            self.adverts.insert(entry.host, Advert { entry, at: now });
        }
    }
}
