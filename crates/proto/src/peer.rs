//! All that is kept of one peer.

use crate::body::PeerInfo;
use crate::config::{PeerConfig, PeerId, RadioConfig};
use crate::receive::Receiver;
use crate::session::Session;
use crate::statistics::PeerStats;
use crate::wire::{Frame, Header, Hello, ReportEntry};
use stats::Time;
use std::collections::{BTreeMap, VecDeque};

/// How often an unchanged entry is reported again, in case the first report was lost.
const REPORT_TWICE: u8 = 2;

pub(crate) struct Peer {
    pub(crate) config: PeerConfig,
    pub(crate) session: Session,
    pub(crate) receiver: Receiver,
    pub(crate) info: Option<PeerInfo>,
    pub(crate) stats: PeerStats,
    number: u64,
    numbers_heard: Option<(u64, u64, u64)>,
    reports: Reports,
}

impl Peer {
    pub(crate) fn new(now: Time, id: PeerId, config: PeerConfig, radio: &RadioConfig) -> Self {
        Peer {
            config,
            session: Session::new(now, radio),
            receiver: Receiver::new(id, radio.receive),
            info: None,
            stats: PeerStats::default(),
            number: 0,
            numbers_heard: None,
            reports: Reports {
                at: now + radio.report_interval,
                ..Reports::default()
            },
        }
    }

    /// The peer has a new session.
    pub(crate) fn renew(&mut self) {
        self.numbers_heard = None;
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
    pub(crate) fn heard(&mut self, number: u64, bytes: usize) {
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += bytes as u64;
        let (low, high, count) = self.numbers_heard.get_or_insert((number, number, 0));
        *low = number.min(*low);
        *high = number.max(*high);
        *count += 1;
    }

    pub(crate) fn statistics(&self) -> PeerStats {
        let missing = self.numbers_heard.map_or(0, |(low, high, n)| {
            (high - low).saturating_add(1).saturating_sub(n)
        });
        PeerStats {
            up: self.session.is_up(),
            session: self.session.remote().unwrap_or(0),
            last_heard: self.session.heard_at(),
            datagrams_missing: missing,
            ..self.stats.clone()
        }
    }

    /// Whether any frame of the protocol's own waits.
    pub(crate) fn has_control(&self) -> bool {
        self.session.greet_due()
            || self.session.is_up()
                && (self.session.ping_due() || self.receiver.has_answers() || !self.reports.queue.is_empty())
    }

    /// Appends the protocol's own frames to a datagram that may grow to `config.max_datagram`.
    pub(crate) fn put_control(&mut self, now: Time, radio: &RadioConfig, out: &mut Vec<u8>) {
        let max = self.config.max_datagram;
        if self.session.greet_due() {
            let seen = self.session.remote().unwrap_or(0);
            let hello = Hello {
                host: radio.host,
                seen,
                asks: !self.session.is_up(),
                max_message: radio.receive.max_message,
                name: &radio.name,
            };
            put(out, max, &Frame::Hello(hello));
            self.session.greeted(now);
        }
        if !self.session.is_up() {
            return;
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

    /// If it is time, queues what changed of `entries` since the last report.
    pub(crate) fn report(&mut self, now: Time, radio: &RadioConfig, sent: Vec<ReportEntry>) {
        if !self.session.is_up() || now < self.reports.at {
            return;
        }
        self.reports.at = now + radio.report_interval;
        let received = self.receiver.topics().map(|(t, s)| ReportEntry::Receiver {
            topic: t.0,
            delivered: s.delivered,
            drops: s.drops,
        });
        let entries: Vec<_> = sent.into_iter().chain(received).collect();
        self.reports.queue.clear();
        for entry in entries {
            self.reports.offer(entry);
        }
    }
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
    /// What was told last, and how often it is to be told again.
    last: BTreeMap<(bool, u32), (ReportEntry, u8)>,
}

impl Reports {
    fn offer(&mut self, entry: ReportEntry) {
        let key = match &entry {
            ReportEntry::Sender { topic, .. } => (false, *topic),
            ReportEntry::Receiver { topic, .. } => (true, *topic),
        };
        let (last, again) = self
            .last
            .entry(key)
            .or_insert_with(|| (entry.clone(), REPORT_TWICE));
        if *last != entry {
            (*last, *again) = (entry.clone(), REPORT_TWICE);
        }
        if *again > 0 {
            *again -= 1;
            self.queue.push_back(entry);
        }
    }
}
