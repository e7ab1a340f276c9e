//! Two hosts whose sources never end, and that keep no history: for runs of a day.

use super::{IP, ms};
use medium::{Event, Medium, MediumConfig, Rng};
use proto::*;
use stats::{DropReason, Drops, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Number of newest stamps that are remembered, to detect duplicates.
const REMEMBERED: usize = 4_096;

/// A message that is counted while it lives. Its bytes follow from its stamp.
#[derive(Clone)]
pub struct Parcel {
    seed: u64,
    geometry: Geometry,
    _alive: Arc<()>,
}

fn byte(seed: u64, at: u32) -> u8 {
    (seed >> (at % 8 * 8)) as u8 ^ (at >> 3) as u8
}

impl Body for Parcel {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        for (b, at) in to.iter_mut().zip(offset..) {
            *b = byte(self.seed, at);
        }
    }
}

/// What arrived of a topic in this life of the host, and when last.
#[derive(Default)]
pub struct Got {
    pub count: u64,
    pub last: Time,
    stamps: BTreeSet<u64>,
    newest: u64,
}

/// Checks every byte and the order, and counts.
#[derive(Default)]
pub struct Ears {
    now: Time,
    next: u64,
    open: BTreeMap<Slot, (Incoming, Vec<u8>, usize)>,
    names: BTreeMap<RemoteTopic, Announcement>,
    pub got: BTreeMap<String, Got>,
    /// Whether memory is short at present.
    pub short: bool,
    pub ups: u64,
    pub downs: u64,
}

impl Sink for Ears {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        if self.short {
            return Err(DropReason::ReceiverMemory);
        }
        self.next += 1;
        let bytes = vec![0; m.geometry.total_len() as usize];
        self.open.insert(Slot(self.next), (*m, bytes, 0));
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (_, to, written) = self.open.get_mut(&slot).expect("an open slot");
        to[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        *written += bytes.len();
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (m, bytes, written) = self.open.remove(&slot).expect("an open slot");
        assert_eq!(written, bytes.len(), "each byte is written once");
        for (b, at) in bytes.iter().zip(0..) {
            assert_eq!(*b, byte(m.stamp.0, at), "byte {at} of {m:?}");
        }
        let a = &self.names[&m.topic];
        let got = self.got.entry(a.name.clone()).or_default();
        got.count += 1;
        got.last = self.now;
        // A latched message is delivered again to a new peer.
        if !a.latched {
            assert!(got.stamps.insert(m.stamp.0), "{} {m:?} came twice", a.name);
            assert!(
                a.ordering == Ordering::Any || m.stamp.0 > got.newest,
                "{} went backwards",
                a.name
            );
        }
        got.newest = got.newest.max(m.stamp.0);
        if got.stamps.len() > REMEMBERED {
            got.stamps.pop_first();
        }
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.open.remove(&slot).expect("an open slot");
    }

    fn topic_announced(&mut self, _: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        self.names.insert(topic, a.clone());
        Verdict::Accept
    }

    fn peer_up(&mut self, _: PeerId, _: &PeerInfo) {
        self.ups += 1;
    }

    fn peer_down(&mut self, _: PeerId, _: Down) {
        self.downs += 1;
    }
}

/// A topic and its source.
#[derive(Clone)]
pub struct Flow {
    pub config: TopicConfig,
    pub period: Duration,
    pub geometry: Geometry,
}

/// Totals of one topic of a host, over all its lives.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub offered: u64,
    pub sent: u64,
    /// Messages that were in hand when their host died.
    pub died_with_host: u64,
    pub begun: u64,
    pub abandoned: u64,
    pub drops: Drops,
    pub delivered: u64,
    pub drops_there: Drops,
    pub seen: u64,
    pub abandoned_there: u64,
    /// Messages that were partial when their receiver died.
    pub died_with_receiver: u64,
    /// Begun, but not seen by the receiver when a life of either end was over.
    pub unseen: u64,
}

/// A topic in the present life of its host.
pub struct Live {
    pub flow: Flow,
    pub id: TopicId,
    pub next: Time,
    pub withdrawn: bool,
    /// Messages that the source offered.
    pub calls: u64,
    /// Messages refused at once, without an outcome.
    refused: u64,
    /// Outcomes reported.
    outcomes: u64,
    /// Messages of earlier lives of this host that the receiver has seen in its present life.
    pub seen_before: u64,
    /// Messages of this life seen by receivers that have died, or that were alive when this life ended.
    seen: u64,
    /// Messages begun when this life ended.
    begun: u64,
}

pub struct Host {
    pub radio: Radio<Parcel>,
    pub peer: PeerId,
    pub ears: Ears,
    pub topics: Vec<Live>,
    pub ledgers: BTreeMap<String, Ledger>,
    pub on: bool,
    pub since: Time,
    wait: Option<Time>,
    session: u32,
    /// What it had received from a peer that restarted, until that peer announces its topics.
    silent: BTreeMap<String, RemoteTopicStats>,
    /// Bodies of messages that this host holds.
    alive: Arc<()>,
}

/// Faults of the air in addition to the medium's own.
#[derive(Clone, Copy, Default)]
pub struct Disorder {
    pub duplicate: f64,
    pub reorder: f64,
    pub late: Duration,
}

pub struct Day {
    pub now: Time,
    pub medium: Medium<Vec<u8>>,
    pub hosts: Vec<Host>,
    pub rng: Rng,
    pub disorder: Disorder,
    /// Whether sources publish.
    pub speaking: bool,
    pub auto: bool,
    /// What the hosts take the medium for, by its rate.
    pub model: fn(u64) -> AirtimeModel,
    pub believed: u64,
    held: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    order: u64,
    stamp: u64,
    pub restarts: u64,
}

impl Day {
    pub fn new(seed: u64, auto: bool, flows: [Vec<Flow>; 2]) -> Day {
        Day::over(AirtimeModel::wifi, seed, auto, flows)
    }

    /// The same, between hosts that take the medium for another.
    pub fn over(model: fn(u64) -> AirtimeModel, seed: u64, auto: bool, flows: [Vec<Flow>; 2]) -> Day {
        let config = MediumConfig {
            seed,
            ..MediumConfig::chain(1)
        };
        let mut day = Day {
            now: Time::ZERO,
            believed: config.rate_bits,
            medium: Medium::new(config).expect("a valid medium"),
            hosts: Vec::new(),
            rng: Rng::new(seed ^ 0xDA7),
            disorder: Disorder::default(),
            speaking: true,
            auto,
            model,
            held: BTreeMap::new(),
            order: 0,
            stamp: 0,
            restarts: 0,
        };
        for (i, flows) in flows.into_iter().enumerate() {
            let session = 1 + i as u32;
            let (radio, peer) = day.radio(session);
            let mut host = Host {
                radio,
                peer,
                ears: Ears::default(),
                topics: Vec::new(),
                ledgers: BTreeMap::new(),
                on: true,
                since: Time::ZERO,
                wait: None,
                session,
                silent: BTreeMap::new(),
                alive: Arc::new(()),
            };
            host.publish(Time::ZERO, flows, &mut day.rng, |_| 0);
            day.hosts.push(host);
        }
        day
    }

    fn radio(&self, session: u32) -> (Radio<Parcel>, PeerId) {
        let config = RadioConfig {
            auto_rate: self.auto,
            max_queued_bytes: 400_000,
            ..RadioConfig::new(session, (self.model)(self.believed))
        };
        let mut radio = Radio::new(config).expect("a valid radio");
        let peer = radio
            .add_peer(self.now, PeerConfig::default())
            .expect("a valid peer");
        (radio, peer)
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            for i in 0..2 {
                self.transmit(i);
            }
            let on = self.hosts.iter().filter(|h| h.on);
            let hosts = on.flat_map(|h| {
                let sources = h.topics.iter().map(|t| t.next).min();
                [sources.filter(|_| self.speaking), h.wait, h.radio.next_timeout()]
                    .into_iter()
                    .flatten()
            });
            let held = self.held.first_key_value().map(|((t, _), _)| *t);
            let next = hosts.chain(held).chain(self.medium.next_event()).min();
            let Some(next) = next.filter(|t| *t <= end) else {
                break;
            };
            // Sources that were silent for a while are late.
            self.step(next.max(self.now));
        }
        self.now = end;
        self.hosts.iter_mut().for_each(Host::hear_outcomes);
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.medium.poll(now) {
            if let Event::Delivered {
                at, host, payload, ..
            } = event
            {
                let copies = 1 + u64::from(self.rng.chance(self.disorder.duplicate));
                for _ in 0..copies {
                    let late = match self.rng.chance(self.disorder.reorder) {
                        true => self.rng.below(self.disorder.late.as_nanos() as u64 + 1),
                        false => 0,
                    };
                    self.order += 1;
                    let key = (at + Duration::from_nanos(late), self.order);
                    self.held.insert(key, (host, payload.clone()));
                }
            }
        }
        while let Some(entry) = self.held.first_entry().filter(|e| e.key().0 <= now) {
            let (host, bytes) = entry.remove();
            let h = &mut self.hosts[host];
            if h.on {
                h.ears.now = now;
                h.radio
                    .handle(now, h.peer, &bytes, &mut h.ears)
                    .expect("what an honest peer sends is understood");
            }
        }
        for h in self.hosts.iter_mut().filter(|h| h.on) {
            h.ears.now = now;
            if self.speaking {
                h.speak(now, &mut self.stamp);
            }
            if h.radio.next_timeout().is_some_and(|t| t <= now) {
                h.radio.handle_timeout(now, &mut h.ears);
                assert!(
                    h.radio.next_timeout().is_none_or(|t| t > now),
                    "a timeout that does not move"
                );
            }
            h.hear_outcomes();
        }
    }

    fn transmit(&mut self, host: usize) {
        let h = &mut self.hosts[host];
        h.wait = None;
        let mut datagram = Vec::new();
        for _ in 0..if h.on { 10_000 } else { 0 } {
            match h.radio.poll_transmit(self.now, &mut datagram) {
                Transmit::Datagram { .. } => {
                    let (bytes, to) = (datagram.len() + IP, 1 - host);
                    // A full device queue drops it.
                    let _ = self.medium.send(self.now, host, to, bytes, datagram.clone());
                }
                Transmit::Wait(t) => {
                    assert!(t > self.now, "waits for the past");
                    h.wait = Some(t);
                    return;
                }
                Transmit::Idle => return,
            }
        }
        assert!(!h.on, "it sends without end");
    }

    /// Changes the rate; hosts that do not detect it themselves are configured with it.
    pub fn set_rate(&mut self, bits: u64) {
        self.medium.set_rate(self.now, bits).expect("a rate of 802.11");
        if !self.auto {
            self.believed = bits;
            for h in &mut self.hosts {
                h.radio.set_airtime((self.model)(bits)).expect("a valid rate");
            }
        }
    }

    /// A host dies: all that it held is gone, except its device's queue.
    pub fn kill(&mut self, host: usize) {
        self.check();
        self.restarts += 1;
        let heard = self.hosts[host].heard();
        let other = &mut self.hosts[1 - host];
        other.are_heard(&heard);
        for (name, r) in &heard {
            let l = other.ledgers.entry(name.clone()).or_default();
            l.receive(r);
        }
        for t in &mut other.topics {
            t.seen_before = 0;
        }
        let dead = &mut self.hosts[host];
        dead.book();
        dead.on = false;
        dead.ears = Ears::default();
        dead.silent = BTreeMap::new();
        dead.radio = Radio::new(RadioConfig::new(1, AirtimeModel::unlimited())).expect("a valid radio");
        assert_eq!(Arc::strong_count(&dead.alive), 1, "a dead radio held messages");
    }

    /// Whether a host is dead and nothing from it is on the way any more.
    pub fn is_cold(&self, host: usize) -> bool {
        let on_way = self.held.values().any(|(to, _)| *to != host);
        !self.hosts[host].on && self.medium.queue_len(host) == 0 && !on_way
    }

    /// Restarts a host with a new session.
    pub fn start(&mut self, host: usize) {
        let (radio, peer) = self.radio(self.hosts[host].session + 2);
        let heard = self.hosts[1 - host].heard();
        let h = &mut self.hosts[host];
        h.are_heard(&heard);
        h.settle_lives();
        (h.radio, h.peer, h.on, h.since) = (radio, peer, true, self.now);
        h.session += 2;
        let flows = std::mem::take(&mut h.topics).into_iter().map(|t| t.flow);
        let seen = |name: &str| heard.get(name).map_or(0, |r| r.seen);
        h.publish(self.now, flows.collect(), &mut self.rng, seen);
        self.hosts[1 - host].silent = heard;
    }

    /// Totals of all lives, including the present ones. Ends the day.
    pub fn close(&mut self) {
        for host in [0, 1] {
            let heard = self.hosts[1 - host].heard();
            let h = &mut self.hosts[host];
            h.are_heard(&heard);
            h.book();
            h.settle_lives();
            for (name, r) in &heard {
                h.ledgers.entry(name.clone()).or_default().receive(r);
            }
        }
    }

    /// Checks the invariants that hold at any time.
    pub fn check(&self) {
        for h in self.hosts.iter().filter(|h| h.on) {
            let (mut queued, mut latched) = (0, 0);
            for ((_, t), live) in h.radio.topics().zip(&h.topics) {
                assert_eq!(t.offered, t.sent + t.queued + t.drops.total(), "{t:?}");
                let done = t.sent + t.abandoned;
                assert!((done..=done + t.queued).contains(&t.begun), "{t:?}");
                if live.flow.config.latched {
                    assert!(t.offered >= live.calls, "{t:?}");
                    latched += u64::from(t.depth);
                } else {
                    assert_eq!(t.offered, live.calls, "{t:?}");
                }
                if live.flow.config.reliability == Reliability::Reliable {
                    assert_eq!(t.offered, live.refused + live.outcomes + t.queued, "{t:?}");
                }
                queued += t.queued;
                let a = &t.account;
                assert_eq!(a.offered, a.delivered + a.dropped.total() + a.in_flight, "{t:?}");
                assert!(a.delivered <= t.begun, "{t:?}");
                let waits = t.queued - t.queued.min(t.begun - t.begun_before);
                assert!(a.in_flight >= waits, "what waits is in flight: {t:?}");
            }
            let alive = Arc::strong_count(&h.alive) as u64 - 1;
            assert!(
                (queued..=queued + latched).contains(&alive),
                "{alive} messages in memory, {queued} queued"
            );
            let mut partial = 0;
            for (_, r) in h.radio.remote_topics(h.peer) {
                let lost = r.drops.total() - r.drops.count(DropReason::Duplicate);
                assert_eq!(r.seen, r.delivered + lost + r.partial + r.abandoned, "{r:?}");
                let got = h.ears.got.get(&r.name).map_or(0, |g| g.count);
                assert_eq!(r.delivered, got, "{r:?}");
                partial += r.partial;
            }
            assert_eq!(h.ears.open.len() as u64, partial);
        }
    }

    /// Topics of which the other end has not seen everything begun in its session, or of which something is left.
    pub fn unsettled(&self) -> Vec<String> {
        let mut left = Vec::new();
        for (h, other) in [(0, 1), (1, 0)].map(|(a, b)| (&self.hosts[a], &self.hosts[b])) {
            let there = other.heard();
            for ((_, t), live) in h.radio.topics().zip(&h.topics) {
                let seen = there.get(&t.name).map_or(0, |r| r.seen - live.seen_before);
                let partial = there.get(&t.name).map_or(0, |r| r.partial);
                let r = there.get(&t.name);
                // Where neither end has restarted, the account states exactly what arrived.
                let whole = t.begun_before == 0 && live.seen_before == 0;
                let reported = !whole || r.is_some_and(|r| r.delivered == t.account.delivered);
                if t.begun - t.begun_before != seen
                    || t.queued + partial + t.account.in_flight > 0
                    || !reported
                {
                    left.push(format!(
                        "{}: {} of {} seen, {} queued, {partial} partial, {:?}",
                        t.name,
                        seen,
                        t.begun - t.begun_before,
                        t.queued,
                        t.account,
                    ));
                }
            }
        }
        left
    }

    /// State of a host and its radio, for people to read.
    pub fn shown(&self, host: usize) -> String {
        let h = &self.hosts[host];
        let (peer, radio) = (h.radio.peer_stats(h.peer), h.radio.stats());
        let queued = h
            .radio
            .topics()
            .map(|(_, t)| format!("{} {:?} {}", t.name, t.state, t.queued));
        let queued: Vec<_> = queued.collect();
        format!(
            "at {:?}, waits for {:?}, timeout {:?}\n{peer:?}\n{radio:?}\n{queued:?}",
            self.now,
            h.wait,
            h.radio.next_timeout()
        )
    }

    /// Sends one more message of each topic.
    pub fn nudge(&mut self) {
        for h in &mut self.hosts {
            for t in &mut h.topics {
                t.next = self.now;
            }
            h.speak(self.now, &mut self.stamp);
        }
    }
}

impl Ledger {
    fn receive(&mut self, r: &RemoteTopicStats) {
        self.delivered += r.delivered;
        self.drops_there.merge(&r.drops);
        self.seen += r.seen;
        self.abandoned_there += r.abandoned;
        self.died_with_receiver += r.partial;
    }
}

impl Host {
    fn hear_outcomes(&mut self) {
        while let Some(o) = self.radio.next_outcome() {
            let topic = self.topics.iter_mut().find(|t| t.id == o.topic);
            topic.expect("an own topic").outcomes += 1;
        }
    }

    /// Its counters of the other's topics, by name.
    fn heard(&self) -> BTreeMap<String, RemoteTopicStats> {
        let mut all = self.silent.clone();
        all.extend(
            self.radio
                .remote_topics(self.peer)
                .map(|(_, r)| (r.name.clone(), r)),
        );
        all
    }

    /// A life of this host or of the other is over, and this is what the other had seen.
    fn are_heard(&mut self, heard: &BTreeMap<String, RemoteTopicStats>) {
        for t in &mut self.topics {
            let seen = heard.get(&t.flow.config.name).map_or(0, |r| r.seen);
            t.seen += seen - t.seen_before;
            t.seen_before = seen;
        }
    }

    /// Adds up this life.
    fn book(&mut self) {
        for ((_, t), live) in self.radio.topics().zip(&mut self.topics) {
            live.begun = t.begun;
            let l = self.ledgers.entry(t.name).or_default();
            l.offered += t.offered;
            l.sent += t.sent;
            l.died_with_host += t.queued;
            l.begun += t.begun;
            l.abandoned += t.abandoned;
            l.drops.merge(&t.drops);
        }
    }

    /// Adds up what nobody has seen of the life that was added last.
    fn settle_lives(&mut self) {
        for t in &self.topics {
            let l = self.ledgers.entry(t.flow.config.name.clone()).or_default();
            l.unseen += t.begun - t.seen;
        }
    }

    fn publish(&mut self, now: Time, flows: Vec<Flow>, rng: &mut Rng, seen: impl Fn(&str) -> u64) {
        for flow in flows {
            let id = self.radio.add_topic(now, self.peer, flow.config.clone());
            let phase = rng.below(flow.period.as_nanos() as u64);
            self.topics.push(Live {
                id: id.expect("a valid topic"),
                next: now + ms(500) + Duration::from_nanos(phase),
                withdrawn: false,
                calls: 0,
                refused: 0,
                outcomes: 0,
                seen_before: seen(&flow.config.name),
                seen: 0,
                begun: 0,
                flow,
            });
        }
    }

    fn speak(&mut self, now: Time, stamp: &mut u64) {
        for t in self.topics.iter_mut().filter(|t| t.next <= now) {
            while t.next <= now {
                t.next += t.flow.period;
            }
            *stamp = now.0.max(*stamp + 1);
            let body = Parcel {
                seed: *stamp,
                geometry: t.flow.geometry,
                _alive: self.alive.clone(),
            };
            t.calls += 1;
            let offered = self.radio.offer(now, t.id, Message::new(body, Time(*stamp)));
            // A message displaced by the limit had waited, if only for a moment, so it has an outcome.
            let refused = offered.is_err_and(|reason| reason != DropReason::Overflow);
            t.refused += u64::from(refused);
        }
    }
}
