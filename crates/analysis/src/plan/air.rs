//! Simulates the hosts of one radio or wire in virtual time: the link's own protocol over a model of the medium.

use medium::{Channel, ChannelConfig, Event, Rng};
use proto::{
    Announcement, Body, Geometry, Incoming, Message, PeerConfig, PeerId, Radio, RadioConfig, RemoteTopic,
    Sink, Slot, TopicConfig, TopicId, Transmit, Verdict,
};
use stats::{DropReason, Drops, Flow, FlowMetrics, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// UDP and IPv4 headers of a datagram.
const IP: usize = 28;
/// More events at one instant indicate an endless loop.
const MOST_AT_ONCE: usize = 100_000;

/// A message of which only the length matters.
#[derive(Clone)]
struct Blank(Geometry);

impl Body for Blank {
    fn geometry(&self) -> Geometry {
        self.0
    }
    fn copy_at(&self, _: u32, to: &mut [u8]) {
        to.fill(0);
    }
}

/// Counts what arrives.
#[derive(Default)]
struct Inbox {
    now: Time,
    next: u64,
    open: BTreeMap<Slot, Incoming>,
    names: BTreeMap<(PeerId, RemoteTopic), String>,
    flows: BTreeMap<(PeerId, String), Flow>,
    /// Messages stamped before this time are not counted.
    from: Time,
}

impl Sink for Inbox {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        self.next += 1;
        self.open.insert(Slot(self.next), *m);
        Ok(Slot(self.next))
    }

    fn write(&mut self, _: Slot, _: u32, _: &[u8]) {}

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let Some(m) = self.open.remove(&slot) else {
            return Ok(());
        };
        if m.stamp < self.from {
            return Ok(());
        }
        if let Some(name) = self.names.get(&(m.peer, m.topic)) {
            let flow = self.flows.entry((m.peer, name.clone())).or_default();
            flow.received(m.stamp, self.now, m.geometry.total_len().into());
        }
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.open.remove(&slot);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        self.names.insert((peer, topic), a.name.clone());
        Verdict::Accept
    }
}

struct Host {
    radio: Radio<Blank>,
    inbox: Inbox,
    peers: Vec<(PeerId, usize)>,
    wait: Option<Time>,
}

/// A topic that one host sends to another.
pub(super) struct Stream {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) config: TopicConfig,
    /// Sizes of its messages, used in turn.
    pub(super) sizes: Vec<u32>,
    /// Times of its messages, one per size, repeated after the last; empty: one message each `period`.
    pub(super) times: Vec<Duration>,
    pub(super) period: Duration,
    /// Start of the first message.
    pub(super) phase: Duration,
    /// Each message is late by up to this duration.
    pub(super) jitter: Duration,
}

struct Running {
    from: usize,
    to: usize,
    topic: TopicId,
    name: String,
    sizes: Vec<u32>,
    times: Vec<Duration>,
    period: Duration,
    start: Time,
    jitter: Duration,
    next: Time,
    count: u64,
    counted: u64,
}

impl Running {
    /// When the next message is due.
    fn due(&self) -> Time {
        let many = |period: Duration, n: u64| {
            let ns = period.as_nanos().saturating_mul(u128::from(n));
            Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX / 4))
        };
        let Some(last) = self.times.last() else {
            return self.start + many(self.period, self.count);
        };
        // A recording restarts one period after its last message.
        let all = self.times.len() as u64;
        let (round, place) = (self.count / all, self.count % all);
        self.start + many(*last + self.period, round) + self.times[place as usize]
    }
}

/// Parameters of a run.
pub(super) struct Setting {
    pub(super) channel: ChannelConfig,
    /// Hosts with their own radio, by their index in the channel.
    pub(super) hosts: Vec<usize>,
    pub(super) radio: RadioConfig,
    pub(super) peer: PeerConfig,
    /// Bytes that the carrier adds to each datagram, in addition to UDP and IP.
    pub(super) around: usize,
    pub(super) streams: Vec<Stream>,
    pub(super) seed: u64,
    /// Time in which the hosts connect, and learn each other's topics and rhythms, before counting starts.
    pub(super) warm_up: Duration,
    /// Duration in which sent messages are counted.
    pub(super) span: Duration,
}

/// Result of a run.
pub(super) struct Ran {
    /// By stream.
    pub(super) flows: Vec<FlowMetrics>,
    /// Share of the time in which the medium was busy.
    pub(super) busy: f64,
}

/// Runs a setting; returns an error if it is invalid.
pub(super) fn run(setting: Setting) -> Result<Ran, String> {
    let mut air = Air::new(setting)?;
    air.run()?;
    Ok(air.ran())
}

struct Air {
    now: Time,
    channel: Channel<(usize, Vec<u8>)>,
    hosts: Vec<Host>,
    places: Vec<usize>,
    streams: Vec<Running>,
    around: usize,
    rng: Rng,
    stamp: u64,
    from: Time,
    until: Time,
    busy_before: Option<Duration>,
    lost: Drops,
}

impl Air {
    fn new(setting: Setting) -> Result<Air, String> {
        let channel = Channel::new(setting.channel).map_err(|e| e.to_string())?;
        let mut rng = Rng::new(setting.seed ^ 0xABCD);
        let from = Time::ZERO + setting.warm_up;
        let pairs: BTreeSet<(usize, usize)> = setting
            .streams
            .iter()
            .map(|s| (s.from.min(s.to), s.from.max(s.to)))
            .collect();
        let mut hosts = Vec::new();
        for i in 0..setting.hosts.len() {
            let config = RadioConfig {
                session: i as u32 + 1,
                host: 1000 + i as u64,
                name: format!("host-{i}"),
                ..setting.radio.clone()
            };
            let mut radio = Radio::new(config).map_err(|e| e.to_string())?;
            let mut peers = Vec::new();
            for (a, b) in &pairs {
                let other = match (*a == i, *b == i) {
                    (true, _) => *b,
                    (_, true) => *a,
                    _ => continue,
                };
                let peer = radio
                    .add_peer(Time::ZERO, setting.peer)
                    .map_err(|e| e.to_string())?;
                peers.push((peer, other));
            }
            let inbox = Inbox {
                from,
                ..Inbox::default()
            };
            hosts.push(Host {
                radio,
                inbox,
                peers,
                wait: None,
            });
        }
        let mut streams = Vec::new();
        for s in setting.streams {
            let host = hosts.get_mut(s.from).ok_or("a stream without a host")?;
            let peer = host.peers.iter().find(|(_, o)| *o == s.to);
            let (peer, _) = *peer.ok_or("a stream without a peer")?;
            let name = s.config.name.clone();
            let topic = host
                .radio
                .add_topic(Time::ZERO, peer, s.config)
                .map_err(|e| e.to_string())?;
            let start = Time::from_millis(500) + s.phase;
            streams.push(Running {
                from: s.from,
                to: s.to,
                topic,
                name,
                next: start + s.times.first().copied().unwrap_or_default() + late(&mut rng, s.jitter),
                sizes: s.sizes,
                times: s.times,
                period: s.period,
                start,
                jitter: s.jitter,
                count: 0,
                counted: 0,
            });
        }
        Ok(Air {
            now: Time::ZERO,
            channel,
            hosts,
            places: setting.hosts,
            streams,
            around: IP + setting.around,
            rng,
            stamp: 0,
            from,
            until: from + setting.span,
            busy_before: None,
            lost: Drops::default(),
        })
    }

    /// Runs to the end of the span, and until messages in flight have arrived.
    fn run(&mut self) -> Result<(), String> {
        let end = self.until + Duration::from_secs(3);
        loop {
            for i in 0..self.hosts.len() {
                self.transmit(i)?;
            }
            let streams = self.streams.iter().map(|s| s.next).filter(|t| *t < self.until);
            let radios = self
                .hosts
                .iter()
                .flat_map(|h| h.wait.into_iter().chain(h.radio.next_timeout()));
            let next = streams.chain(radios).chain(self.channel.next_event()).min();
            let Some(next) = next.filter(|t| *t <= end) else {
                return Ok(());
            };
            if self.busy_before.is_none() && next >= self.from {
                self.busy_before = Some(self.channel.stats().busy);
            }
            self.step(next.max(self.now))?;
        }
    }

    fn step(&mut self, now: Time) -> Result<(), String> {
        self.now = now;
        while let Some(event) = self.channel.poll(now) {
            match event {
                Event::Delivered { host, payload, .. } => self.deliver(host, payload)?,
                Event::Dropped { reason, .. } => self.lost.add(reason, 1),
            }
        }
        for s in &mut self.streams {
            while s.next <= now && s.next < self.until {
                let bytes = s.sizes[s.count as usize % s.sizes.len()];
                // Two messages at one instant need different stamps.
                self.stamp = now.0.max(self.stamp + 1);
                let geometry = Geometry::new(bytes.min(50), &[bytes.saturating_sub(50)]);
                let message = Message::new(Blank(geometry.map_err(|e| e.to_string())?), Time(self.stamp));
                // A refused message counts as not received.
                let _ = self.hosts[s.from].radio.offer(now, s.topic, message);
                s.counted += u64::from(Time(self.stamp) >= self.from);
                s.count += 1;
                s.next = s.due() + late(&mut self.rng, s.jitter);
            }
        }
        for h in &mut self.hosts {
            h.inbox.now = now;
            while let Some(job) = h.radio.next_job() {
                h.radio.job_done(now, job.run(), &mut h.inbox);
            }
            if h.radio.next_timeout().is_some_and(|t| t <= now) {
                h.radio.handle_timeout(now, &mut h.inbox);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, place: usize, (from, bytes): (usize, Vec<u8>)) -> Result<(), String> {
        let Some(i) = self.places.iter().position(|p| *p == place) else {
            return Ok(());
        };
        let h = &mut self.hosts[i];
        let Some((peer, _)) = h.peers.iter().find(|(_, o)| *o == from) else {
            return Ok(());
        };
        h.inbox.now = self.now;
        h.radio
            .handle(self.now, *peer, &bytes, &mut h.inbox)
            .map_err(|e| e.to_string())
    }

    fn transmit(&mut self, i: usize) -> Result<(), String> {
        let h = &mut self.hosts[i];
        h.wait = None;
        let mut buffer = Vec::new();
        for _ in 0..MOST_AT_ONCE {
            match h.radio.poll_transmit(self.now, &mut buffer) {
                Transmit::Datagram { peer, priority } => {
                    let Some((_, to)) = h.peers.iter().find(|(p, _)| *p == peer) else {
                        continue;
                    };
                    let (from, to) = (self.places[i], self.places[*to]);
                    let dscp = [1, 0, 34, 46][usize::from(priority.min(127)) / 32];
                    let bytes = buffer.len() + self.around;
                    let sent = self
                        .channel
                        .send_dscp(self.now, from, to, bytes, dscp, (i, buffer.clone()));
                    if sent.is_err() {
                        self.lost.add(DropReason::DeviceQueue, 1);
                    }
                }
                Transmit::Wait(t) => {
                    h.wait = Some(t);
                    return Ok(());
                }
                Transmit::Idle => return Ok(()),
            }
        }
        Err("the link never stops sending".into())
    }

    fn ran(&self) -> Ran {
        let flows = self.streams.iter().map(|s| {
            let mut drops = (self.hosts[s.from].radio.topic_stats(s.topic))
                .map(|t| t.drops)
                .unwrap_or_default();
            let far = &self.hosts[s.to];
            let peer = far.peers.iter().find(|(_, o)| *o == s.from);
            let Some((peer, _)) = peer else {
                return FlowMetrics::default();
            };
            if let Some((_, t)) = far.radio.remote_topics(*peer).find(|(_, t)| t.name == s.name) {
                drops.merge(&t.drops);
            }
            let flow = far
                .inbox
                .flows
                .get(&(*peer, s.name.clone()))
                .cloned()
                .unwrap_or_default();
            flow.metrics(s.counted, &drops)
        });
        let flows = flows.collect();
        let busy = self
            .channel
            .stats()
            .busy
            .saturating_sub(self.busy_before.unwrap_or_default());
        let span = self.until.since(self.from).as_secs_f64();
        Ran {
            flows,
            busy: (busy.as_secs_f64() / span.max(1e-9)).min(1.0),
        }
    }
}

fn late(rng: &mut Rng, jitter: Duration) -> Duration {
    let most = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX - 1);
    Duration::from_nanos(rng.below(most.saturating_add(1)))
}
