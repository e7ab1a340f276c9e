//! Entry points for fuzz targets. They panic only if an invariant is broken.

use crate::announcement::Announcement;
use crate::{
    AirtimeModel, Body, Geometry, Incoming, Job, Message, Ordering, PeerConfig, PeerId, Radio, RadioConfig,
    ReceiveLimits, Reliability, RemoteTopic, Sink, Slot, TopicConfig, TopicId, Transmit, Verdict,
};
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};

const LIMITS: ReceiveLimits = ReceiveLimits {
    max_message: 20_000,
    max_partial: 6,
    max_partial_bytes: 100_000,
    max_partial_per_topic: 3,
    partial_age: Duration::from_secs(1),
    max_topics: 8,
    max_announcing_bytes: 4_096,
    max_announced_bytes: 16_384,
    max_decoding_bytes: 20_000,
    at_once: 2_000,
};

/// Memory that tracks what was loaned, written and handed on. A message's stamp is its content's seed.
#[derive(Default)]
struct Memory {
    next: u64,
    open: BTreeMap<Slot, (Incoming, Vec<Option<u8>>)>,
    topics: BTreeMap<RemoteTopic, u64>,
    /// Whether delivered messages must equal the offered ones.
    honest: bool,
    delivered: u64,
    refuse: bool,
    /// Number of times the sink was asked whether it accepts a message; it does not always.
    asked: u64,
}

impl Sink for Memory {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        if self.refuse {
            return Err(DropReason::ReceiverMemory);
        }
        let slot = Slot(self.next);
        self.next += 1;
        self.open
            .insert(slot, (*m, vec![None; m.geometry.total_len() as usize]));
        assert!(self.open.len() <= LIMITS.max_partial, "too many partial messages");
        let held: u64 = self
            .open
            .values()
            .map(|(m, _)| u64::from(m.geometry.total_len()))
            .sum();
        assert!(held <= LIMITS.max_partial_bytes, "too many partial bytes");
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (_, to) = self.open.get_mut(&slot).expect("an open slot");
        for (place, b) in to[offset as usize..][..bytes.len()].iter_mut().zip(bytes) {
            assert!(place.replace(*b).is_none(), "written twice");
        }
    }

    fn takes(&mut self, slot: Slot) -> bool {
        assert!(self.open.contains_key(&slot), "an open slot");
        self.asked += 1;
        !self.asked.is_multiple_of(3)
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (m, bytes) = self.open.remove(&slot).expect("an open slot");
        for (i, b) in bytes.iter().enumerate() {
            let b = b.expect("a complete message");
            assert!(
                !self.honest || b == byte(m.stamp.0, i as u32),
                "byte {i} of {m:?} differs"
            );
        }
        self.delivered += 1;
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.open.remove(&slot).expect("an open slot");
    }

    fn topic_announced(&mut self, _: PeerId, topic: RemoteTopic, _: &Announcement) -> Verdict {
        *self.topics.entry(topic).or_default() += 1;
        Verdict::Accept
    }
}

/// Content generated from a seed.
#[derive(Clone)]
struct Content(u64, Geometry);

/// A message with such content, from one of two publishers or with no publisher stated.
fn content(stamp: u64, geometry: Geometry) -> Message<Content> {
    let message = Message::new(Content(stamp, geometry), Time(stamp));
    Message {
        origin: stamp / 2 % 3,
        ..message
    }
}

fn byte(seed: u64, at: u32) -> u8 {
    ((seed ^ u64::from(at)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

impl Body for Content {
    fn geometry(&self) -> Geometry {
        self.1
    }
    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        for (i, b) in to.iter_mut().enumerate() {
            *b = byte(self.0, offset + i as u32);
        }
    }
}

struct End {
    radio: Radio<Content>,
    peer: PeerId,
    memory: Memory,
    topics: Vec<TopicId>,
    withdrawn: [bool; TOPICS],
    /// Jobs that were handed out and are not done.
    jobs: VecDeque<Job<Content>>,
    /// Whether it subscribes to the other end's topics.
    watches: bool,
}

const TOPICS: usize = 7;

fn topic(i: usize) -> TopicConfig {
    TopicConfig {
        priority: [0, 25, 50, 75, 100, 125, 10][i],
        ordering: [
            Ordering::Latest,
            Ordering::Any,
            Ordering::Latest,
            Ordering::InOrder,
            Ordering::Any,
            Ordering::Any,
            Ordering::InOrder,
        ][i],
        reliability: match i {
            0..3 => Reliability::BestEffort,
            3..5 => Reliability::Reliable,
            5 => Reliability::Redundant,
            _ => Reliability::Bulk,
        },
        expiry: (i == 3).then_some(Duration::from_millis(300)),
        latched: i == 4,
        when_watched: matches!(i, 1 | 4 | 6),
        deadline: (i == 2).then_some(Duration::from_millis(30)),
        // In several datagrams, and below what the other end takes at a time.
        definition: "d".repeat(300 * i),
        depth: 3,
        ..TopicConfig::new(format!("/{i}"), "t/T")
    }
}

impl End {
    fn new(session: u32, honest: bool, now: Time) -> Self {
        let config = RadioConfig {
            receive: LIMITS,
            max_queued_bytes: 30_000,
            states_watched: true,
            ..RadioConfig::new(session, AirtimeModel::wifi(6_000_000))
        };
        let mut radio = Radio::new(config).expect("a valid configuration");
        let peer = PeerConfig {
            hops: 1,
            max_datagram: 600,
            ..PeerConfig::default()
        };
        let peer = radio.add_peer(now, peer).expect("a valid peer");
        let mut topics = Vec::new();
        for i in 0..TOPICS {
            topics.push(radio.add_topic(now, peer, topic(i)).expect("a valid topic"));
        }
        let memory = Memory {
            honest,
            ..Memory::default()
        };
        End {
            radio,
            peer,
            memory,
            topics,
            withdrawn: [false; TOPICS],
            jobs: VecDeque::new(),
            watches: true,
        }
    }

    /// Takes the available jobs, and runs those that were taken before.
    fn work(&mut self, now: Time) {
        for _ in 0..self.jobs.len() {
            if let Some(job) = self.jobs.pop_front() {
                self.radio.job_done(now, job.run(), &mut self.memory);
            }
        }
        self.jobs.extend(std::iter::from_fn(|| self.radio.next_job()));
        assert!(self.jobs.len() <= 64, "more jobs than messages");
    }

    /// States whether it subscribes to the topics whose sender asks.
    fn state(&mut self) {
        let all = self.radio.remote_topics(self.peer);
        let asks: Vec<_> = all
            .filter(|(_, t)| t.watched.is_some())
            .map(|(id, _)| id)
            .collect();
        for id in asks {
            self.radio.state_watched(self.peer, id, self.watches);
        }
    }

    /// Withdraws a topic, or brings it back.
    fn toggle(&mut self, now: Time, i: usize) {
        if self.withdrawn[i] {
            let again = self.radio.add_topic(now, self.peer, topic(i));
            assert_eq!(again, Ok(self.topics[i]), "it comes back under its number");
        } else {
            let end = self.radio.withdraw_topic(now, self.topics[i]);
            end.expect("there is such a topic");
        }
        self.withdrawn[i] = !self.withdrawn[i];
    }

    fn check(&self) {
        for (_, t) in self.radio.topics() {
            assert_eq!(t.offered, t.sent + t.queued + t.drops.total(), "{t:?}");
            let done = t.sent + t.abandoned;
            assert!((done..=done + t.queued).contains(&t.begun), "{t:?}");
            let a = &t.account;
            assert_eq!(a.offered, a.delivered + a.dropped.total() + a.in_flight, "{t:?}");
            assert!(
                a.in_flight >= t.begun - done.min(t.begun) || t.at_receiver.is_some(),
                "{t:?}"
            );
        }
        for (_, t) in self.radio.remote_topics(self.peer) {
            let lost = t.drops.total() - t.drops.count(DropReason::Duplicate);
            assert_eq!(t.seen, t.delivered + lost + t.partial + t.abandoned, "{t:?}");
        }
        let partial: u64 = self.radio.remote_topics(self.peer).map(|(_, t)| t.partial).sum();
        // For some, too little has arrived for their memory.
        assert!(self.memory.open.len() as u64 <= partial);
        assert!(self.radio.stats().queued_bytes <= 30_000 + 3 * u64::from(LIMITS.max_message));
    }
}

/// Two ends and the datagrams between them.
struct Pair {
    now: Time,
    ends: [End; 2],
    wires: [VecDeque<Vec<u8>>; 2],
}

impl Pair {
    fn new(honest: bool) -> Self {
        let end = |s| End::new(s, honest, Time::ZERO);
        Pair {
            now: Time::ZERO,
            ends: [end(1), end(2)],
            wires: Default::default(),
        }
    }

    /// Takes at most `most` datagrams from an end.
    fn transmit(&mut self, from: usize, most: usize) {
        let mut datagram = Vec::new();
        for _ in 0..most {
            match self.ends[from].radio.poll_transmit(self.now, &mut datagram) {
                Transmit::Datagram { .. } => self.wires[from].push_back(datagram.clone()),
                Transmit::Wait(t) => return assert!(t > self.now, "waits for the past"),
                Transmit::Idle => return,
            }
            // Losing the oldest keeps this program's memory bounded too.
            if self.wires[from].len() > 64 {
                self.wires[from].pop_front();
            }
        }
    }

    fn deliver(&mut self, from: usize, at: usize, keep: bool) {
        let Some(at) = at.checked_rem(self.wires[from].len()) else {
            return;
        };
        let datagram = match keep {
            true => self.wires[from].get(at).cloned(),
            false => self.wires[from].remove(at),
        };
        let to = &mut self.ends[1 - from];
        let known = to
            .radio
            .handle(self.now, to.peer, &datagram.unwrap_or_default(), &mut to.memory);
        assert!(
            known.is_ok() || !to.memory.honest,
            "an honest datagram was refused: {known:?}"
        );
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        for end in &mut self.ends {
            end.work(self.now);
            end.state();
            end.radio.handle_timeout(self.now, &mut end.memory);
            assert!(
                end.radio.next_timeout().is_none_or(|t| t > self.now),
                "a timeout that does not move"
            );
        }
    }

    /// Delivers everything in order for a while.
    fn settle(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for from in [0, 1] {
                self.transmit(from, 4);
                while !self.wires[from].is_empty() {
                    self.deliver(from, 0, false);
                }
            }
            self.advance(Duration::from_millis(5));
        }
    }
}

/// One end that receives foreign bytes, also behind a handshake, many datagrams in a row.
pub struct Victim {
    pair: Pair,
    taken: u64,
}

impl Victim {
    /// An end that knows its peer and the peer's topics, and has announced its own.
    pub fn new() -> Self {
        let mut pair = Pair::new(false);
        pair.settle(30);
        Victim { pair, taken: 0 }
    }

    /// Takes one datagram. The lowest bits of the first byte are flags: 1: the bytes are frames of the known session;
    /// 2: messages are in flight that foreign acknowledgements can refer to; 4: time passes.
    pub fn packet(&mut self, data: &[u8]) {
        let _ = Announcement::decode(data);
        let Some((mode, data)) = data.split_first() else {
            return;
        };
        self.taken += 1;
        if mode & 4 != 0 {
            self.pair.advance(Duration::from_millis(3));
        }
        let (now, end) = (self.pair.now, &mut self.pair.ends[0]);
        if mode & 2 != 0 {
            for (i, topic) in end.topics.iter().enumerate() {
                let geometry = Geometry::new(1_500, &[]).expect("small");
                let stamp = self.taken * 8 + i as u64;
                let message = content(stamp, geometry);
                let _ = end.radio.offer(now, *topic, message);
            }
            self.pair.transmit(0, 64);
        }
        let end = &mut self.pair.ends[0];
        if mode & 1 == 0 {
            let _ = end.radio.handle(now, end.peer, data, &mut end.memory);
        } else {
            let posed = posed(1_000 + self.taken, data);
            let _ = end.radio.handle(now, end.peer, &posed, &mut end.memory);
        }
        end.check();
    }

    /// The real peer continues, and the end with it.
    pub fn aftermath(mut self) {
        self.pair.advance(Duration::from_secs(3));
        self.pair.settle(20);
        self.pair.ends[0].check();
    }
}

impl Default for Victim {
    fn default() -> Self {
        Victim::new()
    }
}

/// A datagram of the known session with these frames.
pub fn posed(number: u64, frames: &[u8]) -> Vec<u8> {
    let mut posed = Vec::new();
    crate::wire::Header { session: 2, number }.encode(&mut posed);
    posed.extend_from_slice(frames);
    posed
}

/// One foreign datagram, as [`Victim::packet`] takes it.
pub fn packet(data: &[u8]) {
    let mut victim = Victim::new();
    victim.packet(data);
    victim.aftermath();
}

/// Inputs of [`packet`], as honest ends exchange them while all kinds of topics flow, some datagrams get lost, and one
/// end withdraws a topic and restarts. Mutations start from them.
pub fn honest_packets() -> Vec<Vec<u8>> {
    let mut pair = Pair::new(true);
    let mut all = Vec::new();
    for round in 0..400u64 {
        for end in &mut pair.ends {
            for (i, topic) in end
                .topics
                .iter()
                .enumerate()
                .filter(|(i, _)| round % (*i as u64 + 2) == 0)
            {
                let geometry = Geometry::new(300 * i as u32, &[40, 900]).expect("small");
                let stamp = round * 8 + i as u64;
                let message = content(stamp, geometry);
                let _ = end.radio.offer(pair.now, *topic, message);
            }
        }
        match round {
            100 | 150 => pair.ends[0].watches = round == 150,
            200 | 250 => pair.ends[1].toggle(pair.now, 4),
            300 => pair.ends[0] = End::new(3, true, pair.now),
            _ => {}
        }
        for from in [0, 1] {
            pair.transmit(from, 6);
            while let Some(datagram) = pair.wires[from].front() {
                if from == 1 {
                    let frames = datagram.len() - crate::wire::frames_of(datagram).len();
                    all.push([&[(round % 8) as u8 & 6], &datagram[..]].concat());
                    all.push([&[(round % 8) as u8 | 1], &datagram[frames..]].concat());
                }
                if all.len() % 7 == 3 {
                    pair.wires[from].pop_front();
                } else {
                    pair.deliver(from, 0, false);
                }
            }
        }
        pair.advance(Duration::from_millis(9));
    }
    all
}

/// Draws random numbers from a seed: the upper half of a linear congruential generator (Knuth's MMIX).
pub struct Chance(pub u64);

impl Chance {
    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }

    /// A mutant of one of `seeds`, which must not be empty: a few bits, bytes and numbers changed, pieces cut out,
    /// inserted, doubled or taken from another.
    pub fn mutant(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        const EDGES: [u8; 9] = [0, 1, 0x3F, 0x40, 0x7F, 0x80, 0xBF, 0xC0, 0xFF];
        let mut d = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(d.len() + 1);
            let place = at.min(d.len().saturating_sub(1));
            match self.below(9) {
                0 | 1 => d
                    .iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|b| *b ^= 1 << self.below(8)),
                2 => d
                    .iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|b| *b = EDGES[self.below(9)]),
                3 => d
                    .iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|b| *b = self.below(256) as u8),
                4 => d.truncate(at),
                5 => d.insert(at, self.below(256) as u8),
                6 => drop(d.drain(at..(at + self.below(16)).min(d.len()))),
                7 => {
                    // Eight bytes at a time, the length of long numbers.
                    let edge = EDGES[self.below(9)];
                    d.iter_mut().skip(at).take(8).for_each(|b| *b = edge);
                }
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    d.truncate(at);
                    d.extend_from_slice(&other[from..]);
                }
            }
        }
        d
    }
}

/// A sequence of operations on two ends: send, drop, double, reorder, corrupt, advance time, restart.
///
/// Unless the sequence corrupts datagrams, delivered messages must equal the offered ones; and once the wires are
/// honest again, messages flow.
pub fn operations(data: &[u8]) {
    let honest = data.first().is_none_or(|b| b & 0x80 == 0);
    let mut pair = Pair::new(honest);
    let (mut session, mut stamp) = (2, 0);
    for op in data.chunks_exact(2).take(2_000) {
        let (kind, arg) = (op[0], usize::from(op[1]));
        let at = usize::from(kind >> 3 & 1);
        match kind & 0x07 {
            0 => {
                stamp += 1;
                let end = &mut pair.ends[at];
                let len = [0, 1, 100, 599, 2_000, 9_000, 20_000, 20_001][arg & 7];
                let geometry = Geometry::new(len / 2, &[len - len / 2]).expect("small");
                let topic = end.topics[arg / 8 % end.topics.len()];
                let _ = end.radio.offer(pair.now, topic, content(stamp, geometry));
            }
            1 => pair.transmit(at, 1 + arg % 8),
            2 => pair.deliver(at, arg, false),
            3 => pair.deliver(at, arg, true),
            4 => {
                if let Some(i) = arg.checked_rem(pair.wires[at].len()) {
                    pair.wires[at].remove(i);
                }
            }
            5 => pair.advance(Duration::from_micros(1 << (arg % 22))),
            6 if !honest => {
                let n = pair.wires[at].len();
                if let Some(d) = pair.wires[at].get_mut(arg.checked_rem(n).unwrap_or(0)) {
                    let i = (arg * 31 + usize::from(kind)) % d.len();
                    d[i] ^= 1 << (arg % 8);
                }
            }
            6 => {
                let end = &mut pair.ends[at];
                let topic = end.topics[arg % end.topics.len()];
                let _ = match arg & 0xC0 {
                    0 => end.radio.set_priority(pair.now, topic, ((arg * 2) & 127) as u8),
                    0x40 => end.radio.set_depth(pair.now, topic, 1 + arg as u32 % 4),
                    0x80 => end
                        .radio
                        .set_deadline(topic, (arg & 1 == 0).then_some(Duration::from_millis(20))),
                    _ => end
                        .radio
                        .set_max_rate(topic, (arg & 1 == 0).then_some(arg as f64)),
                };
                end.memory.refuse = arg == 0xFF;
                end.watches ^= arg & 0x3F == 0x2A;
            }
            _ if arg < 16 => {
                session += 1;
                pair.ends[at] = End::new(session, honest, pair.now);
            }
            _ if (0xE0..0xF0).contains(&arg) => {
                let end = &mut pair.ends[at];
                let (topic, of) = (
                    end.topics[3 + arg % 2],
                    Time(stamp.saturating_sub(arg as u64 >> 1 & 3)),
                );
                let why = match kind & 0x10 {
                    0 => Ok(()),
                    _ => Err(DropReason::Expired),
                };
                end.radio.end_message(pair.now, topic, of, why);
            }
            _ if arg >= 0xF0 => {
                let end = &mut pair.ends[at];
                let i = arg % end.topics.len();
                end.toggle(pair.now, i);
            }
            _ => pair.settle(arg % 16),
        }
        pair.ends.iter().for_each(End::check);
    }
    // Everything on the way is lost. Then the two must find each other again, and messages must flow.
    pair.wires = Default::default();
    for end in &mut pair.ends {
        end.memory.refuse = false;
        end.watches = true;
        for i in 0..end.topics.len() {
            if end.withdrawn[i] {
                end.toggle(pair.now, i);
            }
        }
    }
    pair.settle(1_200);
    for from in [0, 1] {
        pair.ends[from].check();
        if honest {
            for (_, t) in pair.ends[from].radio.topics() {
                assert_eq!(t.state, crate::TopicState::Ready, "after all has settled: {t:#?}");
            }
        }
        let before = pair.ends[1 - from].memory.delivered;
        let end = &mut pair.ends[from];
        let topic = end.topics[0];
        end.radio.set_max_rate(topic, None).expect("a topic");
        end.radio.set_deadline(topic, None).expect("a topic");
        let content = Content(u64::MAX, Geometry::new(3_000, &[]).expect("small"));
        let offered = end
            .radio
            .offer(pair.now, topic, Message::new(content, Time(u64::MAX)));
        if honest {
            let state = || end.radio.topics().map(|(_, t)| t).collect::<Vec<_>>();
            offered
                .unwrap_or_else(|e| panic!("the peer is up and knows the topic, yet {e:?}: {:#?}", state()));
            pair.settle(40);
            assert_eq!(
                pair.ends[1 - from].memory.delivered,
                before + 1,
                "the last message did not arrive"
            );
        }
    }
}
