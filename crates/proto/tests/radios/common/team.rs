//! Any number of hosts on one channel, each with its own clock, in virtual time.

use super::{Blob, IP};
use medium::{Event, Medium, MediumConfig, Rng, Topology};
use proto::*;
use stats::{Drops, FlowMetrics, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A clock that is ahead of the true time by an offset, and fast by a number of parts per million.
#[derive(Clone, Copy, Default)]
pub struct Clock {
    pub ahead: Duration,
    pub ppm: u64,
}

impl Clock {
    pub fn local(&self, t: Time) -> Time {
        Time(t.0 + self.ahead.as_nanos() as u64 + t.0 / 1_000_000 * self.ppm)
    }
    /// The first true time at which it shows `local`.
    fn real(&self, local: Time) -> Time {
        let mut t = local.0.saturating_sub(self.ahead.as_nanos() as u64);
        t -= t / (1_000_000 + self.ppm) * self.ppm;
        while self.local(Time(t)) < local {
            t += 1 + (local.0 - self.local(Time(t)).0) / 2;
        }
        Time(t)
    }
}

/// Received messages, by peer and topic. A message's stamp is its seed.
#[derive(Default)]
pub struct Inbox {
    now: Time,
    next: u64,
    open: BTreeMap<Slot, Incoming>,
    names: BTreeMap<(PeerId, RemoteTopic), String>,
    pub flows: BTreeMap<(PeerId, String), stats::Flow>,
}

impl Sink for Inbox {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, stats::DropReason> {
        self.next += 1;
        self.open.insert(Slot(self.next), *m);
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let m = &self.open[&slot];
        assert!(
            bytes
                .iter()
                .zip(offset..)
                .all(|(b, at)| *b == Blob::byte(m.stamp.0, at)),
            "{m:?}"
        );
    }

    fn finish(&mut self, slot: Slot) -> Result<(), stats::DropReason> {
        let m = self.open.remove(&slot).expect("a slot that is open");
        let key = (m.peer, self.names[&(m.peer, m.topic)].clone());
        let bytes = m.geometry.total_len().into();
        self.flows
            .entry(key)
            .or_default()
            .received(m.stamp, self.now, bytes);
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: stats::DropReason) {
        self.open.remove(&slot).expect("a slot that is open");
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        self.names.insert((peer, topic), a.name.clone());
        Verdict::Accept
    }
}

pub struct Host {
    pub radio: Radio<Blob>,
    pub sink: Inbox,
    pub clock: Clock,
    /// Its peers, and the host that each of them is.
    pub peers: Vec<(PeerId, usize)>,
    wait: Option<Time>,
}

pub struct Stream {
    pub from: usize,
    pub to: usize,
    pub topic: TopicId,
    pub name: String,
    pub events: VecDeque<(Time, Geometry)>,
    pub offered: u64,
}

pub struct Team {
    pub now: Time,
    pub medium: Medium<(usize, Vec<u8>)>,
    pub hosts: Vec<Host>,
    pub streams: Vec<Stream>,
    pub rng: Rng,
    /// When added streams begin, less a random part of their period.
    pub start: Duration,
    stamp: u64,
    pub air_drops: Drops,
    /// Hosts that insert frames of their own before those of each small datagram, by their clocks.
    pub liars: BTreeMap<usize, fn(Time) -> Vec<u8>>,
}

/// Offset of the frames in a datagram.
fn head(datagram: &[u8]) -> usize {
    5 + (1 << (datagram[5] >> 6))
}

/// Size of datagrams that leave room for liars.
const SMALL: usize = 400;

impl Team {
    /// `n` hosts that all hear each other; `pairs` are peers of each other.
    pub fn new(
        n: usize,
        medium: MediumConfig,
        pairs: &[(usize, usize)],
        clocks: &[Clock],
        change: impl Fn(&mut RadioConfig),
    ) -> Team {
        let all = |_, _| PeerConfig::default();
        Team::with_peers(n, medium, pairs, clocks, |_, config| change(config), all)
    }

    /// The same, where each host has its own settings, also for each of its peers.
    pub fn with_peers(
        n: usize,
        medium: MediumConfig,
        pairs: &[(usize, usize)],
        clocks: &[Clock],
        change: impl Fn(usize, &mut RadioConfig),
        peer: impl Fn(usize, usize) -> PeerConfig,
    ) -> Team {
        let rate = medium.rate_bits;
        let seed = medium.seed;
        let host = |i: usize| {
            let clock = clocks.get(i).copied().unwrap_or_default();
            let mut config = RadioConfig {
                host: 1000 + i as u64,
                name: format!("host-{i}"),
                ..RadioConfig::new(i as u32 + 1, AirtimeModel::wifi(rate))
            };
            change(i, &mut config);
            let mut radio = Radio::new(config).expect("a valid radio");
            let others = pairs.iter().filter_map(|(a, b)| match (*a == i, *b == i) {
                (true, _) => Some(*b),
                (_, true) => Some(*a),
                _ => None,
            });
            let peers = others
                .map(|o| {
                    (
                        radio
                            .add_peer(clock.local(Time::ZERO), peer(i, o))
                            .expect("a peer"),
                        o,
                    )
                })
                .collect();
            Host {
                radio,
                sink: Inbox::default(),
                clock,
                peers,
                wait: None,
            }
        };
        let config = MediumConfig {
            hosts: n,
            topology: Topology::Mesh,
            ..medium
        };
        Team {
            now: Time::ZERO,
            medium: Medium::new(config).expect("a valid medium"),
            hosts: (0..n).map(host).collect(),
            streams: Vec::new(),
            rng: Rng::new(seed ^ 0xABCD),
            start: Duration::from_millis(500),
            stamp: 0,
            air_drops: Drops::default(),
            liars: BTreeMap::new(),
        }
    }

    /// Adds a topic of `bytes` from one host to another, every `period` for `run`, from a random phase on, each up to
    /// `jitter` late.
    pub fn stream(
        &mut self,
        (from, to): (usize, usize),
        config: TopicConfig,
        bytes: u32,
        period: Duration,
        jitter: Duration,
        run: Duration,
    ) -> usize {
        let start = Time::ZERO + self.start + Duration::from_nanos(self.rng.below(period.as_nanos() as u64));
        let count = run.as_nanos().div_ceil(period.as_nanos()) as u32;
        let geometry = Geometry::new(50.min(bytes), &[bytes.saturating_sub(50)]).expect("a geometry");
        let late = |rng: &mut Rng| Duration::from_nanos(rng.below(jitter.as_nanos() as u64 + 1));
        let rng = &mut self.rng;
        let events = (0..count)
            .map(|i| (start + period * i + late(rng), geometry))
            .collect();
        let name = config.name.clone();
        let h = &mut self.hosts[from];
        let peer = h.peers.iter().find(|(_, o)| *o == to).expect("a peer").0;
        let topic = h
            .radio
            .add_topic(h.clock.local(self.now), peer, config)
            .expect("a topic");
        self.streams.push(Stream {
            from,
            to,
            topic,
            name,
            events,
            offered: 0,
        });
        self.streams.len() - 1
    }

    pub fn run_until(&mut self, end: Time) {
        loop {
            for i in 0..self.hosts.len() {
                self.transmit(i);
            }
            let stream = self
                .streams
                .iter()
                .filter_map(|s| Some(s.events.front()?.0))
                .min();
            let radio = self.hosts.iter().flat_map(|h| {
                let times = h.wait.into_iter().chain(h.radio.next_timeout());
                times.map(|t| h.clock.real(t)).collect::<Vec<_>>()
            });
            let next = radio.chain(stream).chain(self.medium.next_event()).min();
            let Some(next) = next.filter(|t| *t <= end) else {
                break;
            };
            self.step(next.max(self.now));
        }
        self.now = end;
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.medium.poll(now) {
            match event {
                Event::Delivered { host, payload, .. } => {
                    let (from, bytes) = payload;
                    let h = &mut self.hosts[host];
                    let peer = h.peers.iter().find(|(_, o)| *o == from).expect("a peer").0;
                    h.sink.now = now;
                    let local = h.clock.local(now);
                    h.radio
                        .handle(local, peer, &bytes, &mut h.sink)
                        .expect("understood");
                }
                Event::Dropped { reason, .. } => self.air_drops.add(reason, 1),
            }
        }
        for s in &mut self.streams {
            while s.events.front().is_some_and(|(t, _)| *t <= now)
                && let Some((_, geometry)) = s.events.pop_front()
            {
                self.stamp = now.0.max(self.stamp + 1);
                let stamp = Time(self.stamp);
                let h = &mut self.hosts[s.from];
                s.offered += 1;
                let seed = stamp.0;
                let message = Message::new(Blob { seed, geometry }, stamp);
                let _ = h.radio.offer(h.clock.local(now), s.topic, message);
            }
        }
        for h in &mut self.hosts {
            let local = h.clock.local(now);
            h.sink.now = now;
            if h.radio.next_timeout().is_some_and(|t| t <= local) {
                h.radio.handle_timeout(local, &mut h.sink);
            }
        }
    }

    fn transmit(&mut self, i: usize) {
        let h = &mut self.hosts[i];
        h.wait = None;
        let local = h.clock.local(self.now);
        let mut buffer = Vec::new();
        for _ in 0..1_000 {
            match h.radio.poll_transmit(local, &mut buffer) {
                Transmit::Datagram { peer, priority } => {
                    let to = h.peers.iter().find(|(p, _)| *p == peer).expect("a peer").1;
                    if let Some(lies) = self.liars.get(&i).filter(|_| buffer.len() < SMALL) {
                        let at = head(&buffer);
                        buffer.splice(at..at, lies(local));
                    }
                    let len = buffer.len() + IP;
                    let dscp = [1, 0, 34, 46][usize::from(priority.min(127)) / 32];
                    let sent = self
                        .medium
                        .send_dscp(self.now, i, to, len, dscp, (i, buffer.clone()));
                    if sent.is_err() {
                        self.air_drops.add(stats::DropReason::DeviceQueue, 1);
                    }
                }
                Transmit::Wait(t) => {
                    assert!(t > local, "waits for the past");
                    h.wait = Some(t);
                    return;
                }
                Transmit::Idle => return,
            }
        }
        panic!("it sends without end");
    }

    /// The figures of a stream at its receiver.
    pub fn metrics(&self, stream: usize) -> FlowMetrics {
        let s = &self.streams[stream];
        let mut drops = self.hosts[s.from]
            .radio
            .topic_stats(s.topic)
            .map(|t| t.drops)
            .unwrap_or_default();
        let far = &self.hosts[s.to];
        let peer = far.peers.iter().find(|(_, o)| *o == s.from).expect("a peer").0;
        if let Some((_, t)) = far.radio.remote_topics(peer).find(|(_, t)| t.name == s.name) {
            drops.merge(&t.drops);
        }
        let flows = &far.sink.flows;
        flows
            .get(&(peer, s.name.clone()))
            .cloned()
            .unwrap_or_default()
            .metrics(s.offered, &drops)
    }

    pub fn print(&self, title: &str) {
        println!("-- {title}");
        for (i, s) in self.streams.iter().enumerate() {
            let m = self.metrics(i);
            println!(
                "{} -> {} {:<8} delivery {:.4}  D {:7.2} p99 {:7.2} max {:7.2}  std(J) {:6.2}  {:.2} Mbit/s  {}",
                s.from,
                s.to,
                s.name,
                m.delivery,
                m.delay_ms.mean,
                m.delay_ms.p99,
                m.delay_ms.max,
                m.period_ms.std,
                m.mbit_s,
                m.drops
            );
        }
        let s = self.medium.stats();
        println!(
            "air busy {:.1} %, collisions {}, queues {:?}, yielded {:?}, known rhythms {:?}",
            100.0 * s.busy.as_secs_f64() / self.now.as_secs_f64(),
            s.collisions,
            s.hosts.iter().map(|h| h.queue_high_water).collect::<Vec<_>>(),
            self.hosts
                .iter()
                .map(|h| h.radio.stats().yielded)
                .collect::<Vec<_>>(),
            self.hosts
                .iter()
                .map(|h| h.radio.stats().rhythms)
                .collect::<Vec<_>>(),
        );
    }
}
