//! State of one peer.

use crate::airtime::AirtimeModel;
use crate::body::PeerInfo;
use crate::config::{PeerConfig, PeerId, RadioConfig};
use crate::policy::{Breadth, Estimate, Flight, Opening, Policy};
use crate::receive::Receiver;
use crate::send::Way;
use crate::session::Session;
use crate::share::PeerShare;
use crate::statistics::PeerStats;
use crate::wire::{Acknowledgement, Frame, Header, Hello, Receipt, ReportEntry};
use core::time::Duration;
use stats::Time;
use std::collections::{BTreeMap, VecDeque};

/// Most intervals between two reports of an unchanged entry. It is reported again after one interval, then after twice
/// as many each time, because a lost report leaves messages counted as in flight that have arrived.
const MOST_INTERVALS: u32 = 32;
/// Datagrams after which the peer receives a report of how many were lost, and the share from which on they count as
/// lossy.
const ENOUGH_ARRIVALS: u64 = 16;
const LOSSY: f64 = 0.01;
/// Where routes are sought, the peer is notified early if `FEW_LOST` of the last `FEW` datagrams are missing, but no
/// sooner than `REPORT_EVERY` after the last notice.
const FEW: u32 = 8;
const FEW_LOST: u32 = 2;
const REPORT_EVERY: Duration = Duration::from_millis(25);

pub(crate) struct Peer {
    pub(crate) config: PeerConfig,
    /// The largest datagram that the carrier takes; `config.max_datagram` may be smaller at times.
    pub(crate) takes: usize,
    pub(crate) session: Session,
    pub(crate) receiver: Receiver,
    pub(crate) info: Option<PeerInfo>,
    /// Whether it states which topics are watched there.
    pub(crate) states_watched: bool,
    pub(crate) stats: PeerStats,
    pub(crate) flight: Flight,
    /// Datagrams beyond the in-flight limit.
    pub(crate) breadth: Breadth,
    /// The same where the rate is unknown.
    pub(crate) opening: Opening,
    /// Whether the last receipt came with data that the peer had to send.
    pub(crate) receipts_ride: bool,
    /// When a receipt last came with data.
    pub(crate) rode: Option<Time>,
    /// Round trips and loss, for retransmissions.
    pub(crate) way: Way,
    /// Cost of a datagram to this peer.
    pub(crate) airtime: AirtimeModel,
    /// Estimate of the rate, where it is unknown.
    pub(crate) estimate: Option<Estimate>,
    /// Its clock, and the state for sharing the radio with it.
    pub(crate) share: PeerShare,
    number: u64,
    numbers_heard: Option<(u64, u64, u64)>,
    /// Which of the newest numbers were received, the newest first.
    recent: u128,
    /// Places where numbers were missing among those received.
    gaps: u64,
    /// Last report of arrivals sent: newest number and how many arrived; and whether there is more to report.
    reported: (u64, u64),
    arrivals_due: bool,
    /// The peer needs early notice of losses: it may have a better route.
    watched: bool,
    reported_at: Time,
    /// Last report of arrivals received: newest number and how many arrived.
    reported_here: Option<(u64, u64)>,
    newest: Newest,
    /// Whether a receipt is owed.
    owes: bool,
    reports: Reports,
}

/// Place of a received datagram among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The newest; `missing` before it have not arrived, or not yet.
    Newest { missing: u64 },
    /// It was missing before.
    Late,
    /// It had arrived before.
    Again,
}

/// The newest datagram received.
#[derive(Clone, Copy, Default)]
struct Newest {
    number: u64,
    at: Time,
    gap: Duration,
}

impl Peer {
    pub(crate) fn new(
        now: Time,
        id: PeerId,
        config: PeerConfig,
        radio: &RadioConfig,
        policy: &dyn Policy,
    ) -> Self {
        Peer {
            takes: config.max_datagram,
            config,
            session: Session::new(now, radio),
            receiver: Receiver::new(id, radio.receive),
            info: None,
            states_watched: false,
            stats: PeerStats::default(),
            flight: policy.flight(),
            breadth: Breadth::new(),
            opening: Opening::new(),
            receipts_ride: false,
            rode: None,
            way: Way::default(),
            airtime: radio.airtime,
            estimate: policy.estimate(&config, radio.airtime),
            share: PeerShare::default(),
            number: 0,
            numbers_heard: None,
            recent: 0,
            gaps: 0,
            reported: (0, 0),
            arrivals_due: false,
            watched: radio.route.is_some(),
            reported_at: Time::ZERO,
            reported_here: None,
            newest: Newest::default(),
            owes: false,
            reports: Reports {
                at: now + radio.report_interval,
                ..Reports::default()
            },
        }
    }

    /// The peer has a new session.
    pub(crate) fn renew(&mut self) {
        (self.numbers_heard, self.recent) = (None, 0);
        (self.gaps, self.reported) = (0, (0, 0));
        self.reported_here = None;
        (self.owes, self.arrivals_due) = (false, false);
        self.way.renew();
        self.receiver.lossy = true;
        self.flight.clear();
        self.share.renew();
        self.reports.last.clear();
        self.reports.queue.clear();
    }

    /// Begins a datagram to this peer.
    pub(crate) fn header(&mut self, session: u32, out: &mut Vec<u8>) {
        out.clear();
        Header {
            session,
            number: self.number,
        }
        .encode(out);
        self.number += 1;
    }

    /// Counts a datagram of the peer's session.
    pub(crate) fn heard(&mut self, now: Time, number: u64, bytes: usize) -> Arrival {
        let arrival = match self.numbers_heard {
            Some((_, high, _)) if number > high => Arrival::Newest {
                missing: number - high - 1,
            },
            None => Arrival::Newest { missing: 0 },
            Some(_) => Arrival::Late,
        };
        let again = self.heard_before(number);
        if self.numbers_heard.is_none_or(|(_, high, _)| number > high) {
            let next = self.numbers_heard.is_some() && self.newest.number.checked_add(1) == Some(number);
            self.gaps += u64::from(self.numbers_heard.is_some() && !next);
            let gap = if next {
                now.since(self.newest.at)
            } else {
                Duration::ZERO
            };
            self.newest = Newest { number, at: now, gap };
        }
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += bytes as u64;
        let (low, high, count) = self.numbers_heard.get_or_insert((number, number, 0));
        *low = number.min(*low);
        *high = number.max(*high);
        *count += u64::from(!again);
        let (known, few) = (number.saturating_sub(*low), u128::MAX >> (128 - FEW));
        let lost = FEW - (self.recent & few).count_ones();
        if self.watched && known >= FEW.into() && lost >= FEW_LOST && now >= self.reported_at + REPORT_EVERY {
            (self.reported_at, self.arrivals_due) = (now, true);
        }
        if again { Arrival::Again } else { arrival }
    }

    /// The peer reports that `came` datagrams arrived up to number `newest`. Returns how many more are known to have
    /// arrived, and to be lost.
    pub(crate) fn arrivals_reported(&mut self, newest: u64, came: u64) -> (u64, u64) {
        let (before, had) = self
            .reported_here
            .replace((newest, came))
            .unwrap_or((newest, came));
        let (sent, came) = (newest.saturating_sub(before), came.saturating_sub(had));
        (came.min(sent), sent.saturating_sub(came))
    }

    /// Whether a datagram of this number came before, as far as the record goes; records it.
    fn heard_before(&mut self, number: u64) -> bool {
        let high = self.numbers_heard.map_or(number, |(_, high, _)| high);
        if number > high || self.numbers_heard.is_none() {
            let by = u32::try_from(number - high).unwrap_or(u32::MAX);
            self.recent = self.recent.checked_shl(by).unwrap_or(0) | 1;
            return false;
        }
        let bit = u32::try_from(high - number)
            .ok()
            .and_then(|by| 1u128.checked_shl(by));
        let again = bit.is_none_or(|bit| self.recent & bit != 0);
        self.recent |= bit.unwrap_or(0);
        again
    }

    pub(crate) fn statistics(&self, now: Time, policy: &dyn Policy) -> PeerStats {
        let missing = self.numbers_heard.map_or(0, |(low, high, n)| {
            (high - low).saturating_add(1).saturating_sub(n)
        });
        PeerStats {
            up: self.session.is_up(),
            session: self.session.remote().unwrap_or(0),
            last_heard: self.session.heard_at(),
            datagrams_missing: missing,
            rate_bit_s: self.airtime.rate_bits,
            rate_source: policy.rate_source(self),
            rate_lost: self.estimate.as_ref().map_or(0, Estimate::lost),
            round_trip_us: micros(self.flight.round_trip_time()),
            in_flight: self.flight.len() as u64,
            in_flight_most: policy.window(self, true) as u64,
            in_doubt: self.flight.doubts(),
            clock: self.share.clock.offset(now).map(Into::into),
            ..self.stats.clone()
        }
    }

    /// Whether a receipt is owed.
    pub(crate) fn owes(&self) -> bool {
        self.owes
    }

    /// The peer asks which of its datagrams have arrived.
    pub(crate) fn asked(&mut self) {
        self.owes = true;
    }

    /// The number of the datagram whose header was made last.
    pub(crate) fn last_number(&self) -> u64 {
        self.number.saturating_sub(1)
    }

    /// Whether a receipt is owed and no other control frame waits.
    pub(crate) fn owes_only(&self) -> bool {
        let others = self.session.greet_due()
            || self.receiver.has_answers()
            || self.receiver.next_watched().is_some()
            || !self.reports.queue.is_empty();
        (self.owes || self.receiver.owes()) && !others
    }

    /// Appends the receipt that is owed, if any; returns whether it did.
    pub(crate) fn put_receipt(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let receipt = Receipt {
            newest: self.newest.number,
            gap: micros(self.newest.gap),
            held: micros(now.since(self.newest.at)),
        };
        let puts = self.owes && put(out, self.config.max_datagram, &Frame::Receipt(receipt));
        self.owes &= !puts;
        puts
    }

    /// Appends the acknowledgements that are owed to a datagram that may grow to `max` bytes with them. With `soon`,
    /// includes those that could still wait.
    pub(crate) fn put_acknowledgements(&mut self, now: Time, max: usize, out: &mut Vec<u8>, soon: bool) {
        let (newest, held) = (self.newest.number, micros(now.since(self.newest.at)));
        while let Some(a) = self
            .receiver
            .next_acknowledgement(max.saturating_sub(out.len()), soon)
        {
            let (topic, a) = (a.topic, Acknowledgement { newest, held, ..a });
            if !put(out, max, &Frame::Acknowledgement(a)) {
                return;
            }
            self.receiver.acknowledged(topic);
        }
    }

    /// Whether any control frame waits.
    pub(crate) fn has_control(&self) -> bool {
        self.session.greet_due()
            || self.session.is_up()
                && (self.owes
                    || self.receiver.owes()
                    || self.arrivals_due
                    || self.session.ping_due()
                    || self.receiver.has_answers()
                    || self.receiver.next_watched().is_some()
                    || !self.reports.queue.is_empty())
    }

    /// Appends control frames to a datagram that may grow to `config.max_datagram`.
    pub(crate) fn put_control(&mut self, now: Time, radio: &RadioConfig, out: &mut Vec<u8>) {
        let max = self.config.max_datagram;
        if self.session.greet_due() {
            let seen = self.session.remote().unwrap_or(0);
            let hello = Hello {
                host: radio.host,
                seen,
                asks: !self.session.is_up(),
                states_watched: radio.states_watched,
                max_message: radio.receive.max_message,
                holds: radio.holds,
                name: &radio.name,
            };
            put(out, max, &Frame::Hello(hello));
            self.session.greeted(now);
        }
        if !self.session.is_up() {
            return;
        }
        self.put_receipt(now, out);
        self.put_acknowledgements(now, max, out, true);
        if let (true, Some((_, newest, came))) = (self.arrivals_due, self.numbers_heard) {
            let gaps = self.gaps;
            if put(out, max, &Frame::Arrivals { newest, came, gaps }) {
                self.arrivals_due = false;
            }
        }
        while let Some((topic, edition, state)) = self.receiver.next_answer() {
            if !put(
                out,
                max,
                &Frame::AnnounceAck {
                    topic,
                    edition,
                    state,
                },
            ) {
                return;
            }
            self.receiver.answered(topic);
        }
        while let Some((topic, serial, watched)) = self.receiver.next_watched() {
            let frame = Frame::Watched {
                topic,
                serial,
                watched,
            };
            if !put(out, max, &frame) {
                return;
            }
            self.receiver.watched_sent(now, topic);
        }
        while let Some(entry) = self.reports.queue.pop_front() {
            let frame = Frame::Report(entry);
            if !put(out, max, &frame) {
                let Frame::Report(entry) = frame else { return };
                self.reports.queue.push_front(entry);
                return;
            }
        }
        if self.session.ping_due() {
            put(out, max, &Frame::Ping);
        }
    }

    pub(crate) fn next_report(&self) -> Option<Time> {
        self.session.is_up().then_some(self.reports.at)
    }

    /// Queues the changed entries among `sent` and the receiver's own, if a report is due.
    pub(crate) fn report(&mut self, now: Time, radio: &RadioConfig, sent: Vec<ReportEntry>) {
        if !self.session.is_up() || now < self.reports.at {
            return;
        }
        self.reports.at = now + radio.report_interval;
        self.report_arrivals();
        let received = self.receiver.reports();
        let received = received.map(|(topic, report)| ReportEntry::Receiver { topic, report });
        let entries: Vec<_> = sent.into_iter().chain(received).collect();
        self.reports.queue.clear();
        for entry in entries {
            self.reports.offer(entry);
        }
    }
}

impl Peer {
    /// Reports to the peer how much was lost, if enough has arrived.
    fn report_arrivals(&mut self) {
        let Some((_, newest, came)) = self.numbers_heard else {
            return;
        };
        let sent = newest.saturating_sub(self.reported.0);
        if sent < ENOUGH_ARRIVALS {
            return;
        }
        // The first report only sets the starting point.
        if self.reported.0 > 0 {
            let lost = sent.saturating_sub(came.saturating_sub(self.reported.1));
            self.receiver.lossy = lost as f64 > sent as f64 * LOSSY;
        }
        self.reported = (newest, came);
        self.arrivals_due = true;
    }
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// Appends a frame if the datagram stays within `max`.
pub(crate) fn put(out: &mut Vec<u8>, max: usize, frame: &Frame<'_>) -> bool {
    let mark = out.len();
    frame.encode(out);
    let fits = out.len() <= max;
    if !fits {
        out.truncate(mark);
    }
    fits
}

#[derive(Default)]
struct Reports {
    at: Time,
    queue: VecDeque<ReportEntry>,
    /// Last report of each entry.
    last: BTreeMap<(bool, u32), LastReport>,
}

struct LastReport {
    entry: ReportEntry,
    /// Intervals until it is reported again, and how many it waits after that.
    again: u32,
    pause: u32,
}

impl Reports {
    fn offer(&mut self, entry: ReportEntry) {
        let key = match &entry {
            ReportEntry::Sender { topic, .. } => (false, *topic),
            ReportEntry::Receiver { topic, .. } => (true, *topic),
        };
        let reported = self.last.entry(key).or_insert_with(|| LastReport {
            entry: entry.clone(),
            again: 0,
            pause: 1,
        });
        if reported.entry != entry {
            (reported.entry, reported.again, reported.pause) = (entry.clone(), 0, 1);
        }
        match reported.again.checked_sub(1) {
            Some(left) if left > 0 => reported.again = left,
            _ => {
                (reported.again, reported.pause) = (reported.pause, (reported.pause * 2).min(MOST_INTERVALS));
                self.queue.push_back(entry);
            }
        }
    }
}
