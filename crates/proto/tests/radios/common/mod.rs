//! Two radios joined through the medium, in virtual time.
#![allow(unreachable_pub, reason = "a module of tests")]

pub mod day;
pub mod mesh;
pub mod stalls;
pub mod team;

use medium::{Channel, ChannelConfig, Event, Loss, MediumConfig, Rng, WireConfig};
use proto::*;
use stalls::{Processor, Stalls};
use stats::{DropReason, Drops, Flow, FlowMetrics, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// UDP and IPv4 around a datagram.
pub const IP: usize = 28;

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A message whose bytes follow from its seed, so that the receiver can check each of them.
#[derive(Clone, Debug)]
pub struct Blob {
    pub seed: u64,
    pub geometry: Geometry,
}

impl Blob {
    pub fn byte(seed: u64, at: u32) -> u8 {
        let x =
            (seed ^ u64::from(at).wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (x >> 40) as u8
    }
}

impl Body for Blob {
    fn geometry(&self) -> Geometry {
        self.geometry
    }
    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        for (i, b) in to.iter_mut().enumerate() {
            *b = Blob::byte(self.seed, offset + i as u32);
        }
    }
}

/// A sink that checks the contract of [`Sink`] and every byte. A message's stamp is its seed.
#[derive(Default)]
pub struct Recorder {
    pub now: Time,
    next: u64,
    open: BTreeMap<u64, (Incoming, Vec<Option<u8>>)>,
    /// Arrivals by topic name.
    pub flows: BTreeMap<String, Flow>,
    pub names: BTreeMap<RemoteTopic, Announcement>,
    /// Stamps delivered, in order, by topic name.
    pub delivered: BTreeMap<String, Vec<u64>>,
    /// When each arrived, by topic name and stamp.
    pub arrived: BTreeMap<String, BTreeMap<u64, Time>>,
    pub aborted: Drops,
    pub ups: Vec<Time>,
    pub downs: Vec<(Time, Down)>,
    pub withdrawn: Vec<RemoteTopic>,
    /// Answer to `begin`: memory for this many bytes in all, and names that are refused.
    pub memory: Option<u64>,
    pub unwanted: BTreeSet<String>,
    pub open_bytes_max: u64,
    pub open_max: usize,
}

impl Recorder {
    pub fn open(&self) -> usize {
        self.open.len()
    }
    fn open_bytes(&self) -> u64 {
        self.open
            .values()
            .map(|(m, _)| u64::from(m.geometry.total_len()))
            .sum()
    }
}

impl Sink for Recorder {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        if self
            .memory
            .is_some_and(|max| self.open_bytes() + u64::from(m.geometry.total_len()) > max)
        {
            return Err(DropReason::ReceiverMemory);
        }
        self.next += 1;
        self.open
            .insert(self.next, (*m, vec![None; m.geometry.total_len() as usize]));
        self.open_max = self.open_max.max(self.open.len());
        self.open_bytes_max = self.open_bytes_max.max(self.open_bytes());
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (_, to) = self.open.get_mut(&slot.0).expect("a slot that is open");
        for (i, b) in bytes.iter().enumerate() {
            let place = &mut to[offset as usize + i];
            assert!(place.is_none(), "byte {} is written twice", offset as usize + i);
            *place = Some(*b);
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (m, bytes) = self.open.remove(&slot.0).expect("a slot that is open");
        for (i, b) in bytes.iter().enumerate() {
            assert_eq!(*b, Some(Blob::byte(m.stamp.0, i as u32)), "byte {i} of {m:?}");
        }
        let name = self.names[&m.topic].name.clone();
        self.flows
            .entry(name.clone())
            .or_default()
            .received(m.stamp, self.now, bytes.len() as u64);
        self.delivered.entry(name.clone()).or_default().push(m.stamp.0);
        let arrived = self.arrived.entry(name).or_default();
        assert_eq!(arrived.insert(m.stamp.0, self.now), None, "delivered twice");
        Ok(())
    }

    fn abort(&mut self, slot: Slot, reason: DropReason) {
        self.open.remove(&slot.0).expect("a slot that is open");
        self.aborted.add(reason, 1);
    }

    fn topic_announced(&mut self, _: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        self.names.insert(topic, a.clone());
        if self.unwanted.contains(&a.name) {
            Verdict::Refuse
        } else {
            Verdict::Accept
        }
    }

    fn topic_withdrawn(&mut self, _: PeerId, topic: RemoteTopic) {
        self.withdrawn.push(topic);
    }

    fn peer_up(&mut self, _: PeerId, _: &PeerInfo) {
        self.ups.push(self.now);
    }

    fn peer_down(&mut self, _: PeerId, why: Down) {
        self.downs.push((self.now, why));
    }
}

/// One end of the link.
pub struct Node {
    pub radio: Radio<Blob>,
    pub peer: PeerId,
    pub sink: Recorder,
    /// Its place in the medium's chain.
    pub host: usize,
    wait: Option<Time>,
    /// Whether it is powered: a node that is off receives and sends nothing.
    pub on: bool,
    processor: Processor,
}

/// A source of messages at given times.
pub struct Source {
    pub node: usize,
    pub topic: TopicId,
    pub name: String,
    events: VecDeque<(Time, Geometry)>,
    last: Option<Geometry>,
    pub offered: u64,
    /// Messages of this name that arrive at its node are answered at once.
    answers: Option<String>,
}

/// Faults of datagrams in addition to the medium's own.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub loss: f64,
    pub duplicate: f64,
    /// Share of datagrams that are held back for up to `late`.
    pub reorder: f64,
    pub late: Duration,
}

pub struct World {
    pub now: Time,
    pub medium: Channel<Vec<u8>>,
    pub nodes: Vec<Node>,
    pub sources: Vec<Source>,
    pub faults: Faults,
    pub rng: Rng,
    held: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    order: u64,
    stamp: u64,
    pub air_drops: Drops,
    /// Bytes around each datagram.
    around: usize,
}

#[derive(Clone)]
pub struct Setup {
    pub medium: MediumConfig,
    /// A cable in place of the radio.
    pub cable: Option<WireConfig>,
    pub order: Order,
    pub receive: ReceiveLimits,
    pub seed: u64,
    pub paced: bool,
    pub auto: bool,
    pub predict: bool,
    /// Bytes that the carrier puts around each datagram, in addition to UDP and IP.
    pub around: usize,
    /// The ends treat the path as a cable of this many bit/s; zero: as the radio that it is.
    pub cable_bits: u64,
    /// Or as a cable of no known rate, where this many datagrams may be in flight; zero: as above.
    pub unrated: u32,
    /// What the ends take a datagram to cost, if not what the fields above say.
    pub airtime: Option<AirtimeModel>,
    /// The longest datagram; zero: what the carrier allows.
    pub longest: usize,
    /// The share of the time for which each end may transmit.
    pub duty: f64,
    /// Processors that are taken from both ends now and then.
    pub stalls: Option<Stalls>,
    /// How late arrived datagrams may be read.
    pub reads_late: Duration,
    /// Whether the ends state which topics are watched there.
    pub states_watched: bool,
}

/// Bytes that QUIC puts around each datagram, and the longest datagram then (`link`'s carrier).
pub const QUIC: usize = 24;
const LONGEST_IN_QUIC: usize = 1438;

impl Setup {
    pub fn hops(hops: usize) -> Self {
        Setup {
            medium: MediumConfig::chain(hops),
            cable: None,
            order: Order::Priority,
            receive: ReceiveLimits::default(),
            seed: 1,
            paced: true,
            auto: false,
            predict: true,
            around: 0,
            cable_bits: 0,
            unrated: 0,
            airtime: None,
            longest: 0,
            duty: 1.0,
            stalls: None,
            reads_late: Duration::ZERO,
            states_watched: false,
        }
    }
    /// A cable of `rate_bits`, known to the ends: the medium below it is faster.
    pub fn rated_cable(rate_bits: u64, delay: impl Into<medium::Delay>) -> Self {
        let mut setup = Setup::path(Duration::ZERO, Loss::NONE);
        setup.medium.path = medium::Path::delay(delay);
        Setup {
            cable_bits: rate_bits,
            ..setup
        }
    }
    /// A cable of `rate_bits` and of the delay that `path` has. The ends know neither.
    pub fn cable(rate_bits: u64, path: medium::Path) -> Self {
        Setup {
            auto: true,
            cable: Some(WireConfig {
                rate_bits: Some(rate_bits),
                frame_bytes: 38,
                queue_frames: 200,
                path,
                ..WireConfig::direct()
            }),
            ..Setup::hops(1)
        }
    }
    /// One hop at 54 Mbit/s, whose path beyond the air takes `delay` in each direction and loses packets.
    pub fn path(delay: Duration, loss: Loss) -> Self {
        let mut setup = Setup::hops(1);
        setup.medium.rate_bits = 54_000_000;
        setup.medium.path = medium::Path {
            loss,
            ..medium::Path::delay(delay)
        };
        setup
    }
    pub fn fifo(self) -> Self {
        Setup {
            order: Order::Fifo,
            ..self
        }
    }
    pub fn seed(mut self, seed: u64) -> Self {
        self.medium.seed = seed;
        self.cable.iter_mut().for_each(|cable| cable.seed = seed);
        Setup { seed, ..self }
    }
    pub fn loss(mut self, loss: Loss, queue_frames: usize) -> Self {
        self.medium.loss = loss;
        self.medium.queue_frames = queue_frames;
        self
    }

    pub fn radio(&self, session: u32) -> (Radio<Blob>, PeerConfig) {
        let hops = self.medium.hosts as u32 - 1;
        let airtime = match self.cable_bits {
            _ if !self.paced => AirtimeModel::unlimited(),
            0 => AirtimeModel::wifi(self.medium.rate_bits),
            rate => AirtimeModel::bytes(rate, IP as u32),
        };
        let airtime = self.airtime.unwrap_or(airtime);
        let airtime = AirtimeModel {
            extra_bytes: airtime.extra_bytes + self.around as u32,
            ..airtime
        };
        let config = RadioConfig {
            order: self.order,
            auto_rate: self.auto,
            unrated_cable: self.unrated > 0,
            in_flight: if self.unrated > 0 { self.unrated } else { 2 },
            holds: 3 * self.unrated,
            predict: self.predict,
            duty: self.duty,
            receive: self.receive,
            host: u64::from(session) + 1000,
            name: format!("host-{session}"),
            states_watched: self.states_watched,
            ..RadioConfig::new(session, airtime)
        };
        (
            Radio::new(config).expect("a valid radio"),
            PeerConfig {
                hops,
                max_datagram: match self.around {
                    _ if self.longest > 0 => self.longest,
                    0 => PeerConfig::default().max_datagram,
                    _ => LONGEST_IN_QUIC,
                },
                ..PeerConfig::default()
            },
        )
    }

    /// Two ends, at both ends of the chain, that have not met yet.
    pub fn build(&self) -> World {
        let far = self.medium.hosts - 1;
        let node = |session, host| {
            let (mut radio, peer) = self.radio(session);
            let peer = radio.add_peer(Time::ZERO, peer).expect("a valid peer");
            Node {
                radio,
                peer,
                sink: Recorder::default(),
                host,
                wait: None,
                on: true,
                processor: Processor::new(self.stalls, self.seed ^ u64::from(session) << 32),
            }
        };
        let channel = match &self.cable {
            Some(cable) => ChannelConfig::Wire(cable.clone()),
            None => ChannelConfig::Radio(self.medium.clone()),
        };
        World {
            now: Time::ZERO,
            medium: Channel::new(channel).expect("a valid medium"),
            nodes: vec![node(1, 0), node(2, far)],
            sources: Vec::new(),
            faults: Faults {
                late: self.reads_late,
                reorder: f64::from(u8::from(!self.reads_late.is_zero())),
                ..Faults::default()
            },
            rng: Rng::new(self.seed ^ 0xABCD),
            held: BTreeMap::new(),
            order: 0,
            stamp: 0,
            air_drops: Drops::default(),
            around: IP + self.around,
        }
    }
}

impl World {
    /// Adds a periodic source at `node` that begins at a random phase after 500 ms and runs for `run`.
    pub fn source(
        &mut self,
        node: usize,
        config: TopicConfig,
        period: Duration,
        run: Duration,
        mut size: impl FnMut(u64, &mut Rng) -> Geometry,
    ) -> TopicId {
        let start = self.now + ms(500) + Duration::from_nanos(self.rng.below(period.as_nanos() as u64));
        let count = run.as_nanos().div_ceil(period.as_nanos()) as u64;
        let at = |i: u64| start + period * u32::try_from(i).expect("a short run");
        let events = (0..count).map(|i| (at(i), size(i, &mut self.rng))).collect();
        self.source_of(node, config, events)
    }

    /// Adds a periodic source that begins after `start`, when the ends have met and know the topic.
    pub fn later(
        &mut self,
        node: usize,
        config: TopicConfig,
        (start, period, count): (Duration, Duration, u32),
        geometry: Geometry,
    ) -> TopicId {
        let at = |i| self.now + start + period * i;
        let events = (0..count).map(|i| (at(i), geometry)).collect();
        self.source_of(node, config, events)
    }

    /// Continues a source with `count` messages like its last one.
    pub fn again(&mut self, source: usize, count: u32, period: Duration) {
        let s = &mut self.sources[source];
        let geometry = s.last.expect("it has sent");
        s.events = (1..=count).map(|i| (self.now + period * i, geometry)).collect();
    }

    /// Adds a source of messages at these times, which must ascend.
    pub fn source_of(
        &mut self,
        node: usize,
        config: TopicConfig,
        events: VecDeque<(Time, Geometry)>,
    ) -> TopicId {
        let name = config.name.clone();
        let n = &mut self.nodes[node];
        let topic = n
            .radio
            .add_topic(self.now, n.peer, config)
            .expect("a valid topic");
        self.sources.push(Source {
            node,
            topic,
            name,
            events,
            last: None,
            offered: 0,
            answers: None,
        });
        topic
    }

    /// Adds a source that answers each message of the topic `to`, in order, as soon as it arrives.
    pub fn answer(&mut self, node: usize, config: TopicConfig, to: &str, geometry: Geometry) -> TopicId {
        let topic = self.source_of(node, config, VecDeque::new());
        if let Some(s) = self.sources.last_mut() {
            (s.answers, s.last) = (Some(to.to_owned()), Some(geometry));
        }
        topic
    }

    pub fn run(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub fn run_until(&mut self, end: Time) {
        loop {
            for i in 0..self.nodes.len() {
                self.transmit(i);
            }
            let now = self.now;
            let awake: Vec<Time> = self.nodes.iter_mut().map(|n| n.processor.runs(now)).collect();
            let source = self
                .sources
                .iter()
                .filter_map(|s| Some(s.events.front()?.0.max(awake[s.node])))
                .min();
            let held = self
                .held
                .iter()
                .map(|((t, _), (node, _))| (*t).max(awake[*node]))
                .min();
            let on = self.nodes.iter().zip(&awake).filter(|(n, _)| n.on);
            let radio = on
                .flat_map(|(n, a)| {
                    n.wait
                        .into_iter()
                        .chain(n.radio.next_timeout())
                        .map(|t| t.max(*a))
                })
                .min();
            let next = [source, held, radio, self.medium.next_event()]
                .into_iter()
                .flatten()
                .min();
            let Some(next) = next.filter(|t| *t <= end) else {
                break;
            };
            assert!(next >= self.now, "time runs backwards");
            self.step(next);
        }
        self.now = end;
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.medium.poll(now) {
            match event {
                Event::Delivered {
                    at, host, payload, ..
                } => self.carry(at, host, payload),
                Event::Dropped { reason, .. } => self.air_drops.add(reason, 1),
            }
        }
        let runs = |n: &mut Node| n.processor.runs(now) <= now;
        let awake: Vec<bool> = self.nodes.iter_mut().map(runs).collect();
        let ready = |((t, o), (node, _)): (&(Time, u64), &(usize, Vec<u8>))| {
            (*t <= now && awake[*node]).then_some((*t, *o))
        };
        while let Some(key) = self.held.iter().find_map(ready) {
            if let Some((node, bytes)) = self.held.remove(&key) {
                self.receive(node, &bytes);
            }
        }
        for s in self.sources.iter_mut().filter(|s| awake[s.node]) {
            while s.events.front().is_some_and(|(t, _)| *t <= now)
                && let Some((at, geometry)) = s.events.pop_front()
            {
                // Two messages of a topic at one instant must have different content.
                self.stamp = at.0.max(self.stamp + 1);
                let (stamp, n) = (Time(self.stamp), &mut self.nodes[s.node]);
                s.offered += 1;
                s.last = Some(geometry);
                if n.on {
                    let _ = n.radio.offer(
                        now,
                        s.topic,
                        Message::new(
                            Blob {
                                seed: stamp.0,
                                geometry,
                            },
                            stamp,
                        ),
                    );
                }
            }
        }
        for (n, _) in self
            .nodes
            .iter_mut()
            .zip(awake)
            .filter(|(n, awake)| n.on && *awake)
        {
            n.sink.now = now;
            while let Some(job) = n.radio.next_job() {
                n.radio.job_done(now, job.run(), &mut n.sink);
            }
            if n.radio.next_timeout().is_some_and(|t| t <= now) {
                n.radio.handle_timeout(now, &mut n.sink);
                assert!(
                    n.radio.next_timeout().is_none_or(|t| t > now),
                    "a timeout that does not move"
                );
            }
        }
    }

    fn carry(&mut self, at: Time, host: usize, bytes: Vec<u8>) {
        let node = self
            .nodes
            .iter()
            .position(|n| n.host == host)
            .expect("a node at the final host");
        let f = self.faults;
        if self.rng.chance(f.loss) {
            return self.air_drops.add(DropReason::Air, 1);
        }
        let copies = 1 + u64::from(self.rng.chance(f.duplicate));
        for _ in 0..copies {
            let late = if self.rng.chance(f.reorder) {
                self.rng.below(f.late.as_nanos() as u64 + 1)
            } else {
                0
            };
            self.order += 1;
            self.held.insert(
                (at + Duration::from_nanos(late), self.order),
                (node, bytes.clone()),
            );
        }
    }

    fn receive(&mut self, node: usize, bytes: &[u8]) {
        let now = self.now;
        let n = &mut self.nodes[node];
        if n.on {
            n.sink.now = now;
            n.radio
                .handle(now, n.peer, bytes, &mut n.sink)
                .expect("what an honest peer sends is understood");
        }
        for s in self.sources.iter_mut().filter(|s| s.node == node) {
            let came = s.answers.as_ref().and_then(|name| n.sink.delivered.get(name));
            let reported = s.offered as usize + s.events.len();
            for _ in reported..came.map_or(0, Vec::len) {
                s.events.extend(s.last.map(|g| (now, g)));
            }
        }
    }

    fn transmit(&mut self, node: usize) {
        let far = self.nodes.iter().map(|n| n.host).max().unwrap_or(1);
        let n = &mut self.nodes[node];
        n.wait = None;
        let mut buffer = Vec::new();
        let awake = n.processor.runs(self.now);
        if awake > self.now {
            n.wait = Some(awake);
            return;
        }
        for _ in 0..10_000 {
            if !n.on {
                return;
            }
            match n.radio.poll_transmit(self.now, &mut buffer) {
                Transmit::Datagram { .. } => {
                    assert!(buffer.len() <= 1472, "{} B", buffer.len());
                    let to = if n.host == 0 { far } else { 0 };
                    if self
                        .medium
                        .send_dscp(
                            self.now,
                            n.host,
                            to,
                            buffer.len() + self.around,
                            0,
                            buffer.clone(),
                        )
                        .is_err()
                    {
                        self.air_drops.add(DropReason::DeviceQueue, 1);
                    }
                }
                Transmit::Wait(t) => {
                    assert!(t > self.now, "waits for the past");
                    n.wait = Some(t);
                    return;
                }
                Transmit::Idle => return,
            }
        }
        panic!("it sends without end");
    }

    /// Kills a node: all its state is gone, and its sources stop.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].on = false;
        self.sources.retain(|s| s.node != node);
    }

    /// Restarts a node with a new session; its sink's records stay.
    pub fn start(&mut self, node: usize, setup: &Setup, session: u32) {
        let (mut radio, peer) = setup.radio(session);
        let n = &mut self.nodes[node];
        n.peer = radio.add_peer(self.now, peer).expect("a valid peer");
        n.radio = radio;
        n.sink.open.clear();
        n.on = true;
    }

    /// The figures of a source's topic at the other end.
    pub fn metrics(&self, source: usize) -> FlowMetrics {
        let s = &self.sources[source];
        let mut drops = self.nodes[s.node]
            .radio
            .topic_stats(s.topic)
            .map(|t| t.drops)
            .unwrap_or_default();
        let far = &self.nodes[1 - s.node];
        if let Some((_, t)) = far.radio.remote_topics(far.peer).find(|(_, t)| t.name == s.name) {
            drops.merge(&t.drops);
        }
        far.sink
            .flows
            .get(&s.name)
            .cloned()
            .unwrap_or_default()
            .metrics(s.offered, &drops)
    }

    pub fn print(&self, title: &str) {
        println!("-- {title}");
        for i in 0..self.sources.len() {
            let m = self.metrics(i);
            println!(
                "{:<10} sent {:5} delivery {:.4}  D {:7.2} std {:6.2} p50 {:7.2} p99 {:7.2} max {:7.2}  std(J) {:6.2}  {:.2} Mbit/s  {}",
                self.sources[i].name,
                m.sent,
                m.delivery,
                m.delay_ms.mean,
                m.delay_ms.std,
                m.delay_ms.p50,
                m.delay_ms.p99,
                m.delay_ms.max,
                m.period_ms.std,
                m.mbit_s,
                m.drops
            );
        }
        let s = self.medium.stats();
        println!(
            "air busy {:.1} %, collisions {}, queue high water {:?}, urgent {}",
            100.0 * s.busy.as_secs_f64() / self.now.as_secs_f64(),
            s.collisions,
            s.hosts.iter().map(|h| h.queue_high_water).collect::<Vec<_>>(),
            self.nodes[0].radio.stats().urgent
        );
    }

    /// Checks that every offered message is sent, dropped or queued, and that every sent one is delivered, dropped or
    /// partial.
    pub fn check_books(&self) {
        for n in &self.nodes {
            for (_, t) in n.radio.topics() {
                assert_eq!(t.offered, t.sent + t.queued + t.drops.total(), "{t:?}");
                let a = &t.account;
                assert_eq!(a.offered, a.delivered + a.dropped.total() + a.in_flight, "{t:?}");
            }
            assert_eq!(
                n.sink.open() as u64,
                n.radio.remote_topics(n.peer).map(|(_, t)| t.partial).sum::<u64>()
            );
        }
    }
}

/// Pound's laser and image for `seconds`.
pub fn pound(setup: Setup, image_period: u64, seconds: u64) -> World {
    beside_images(
        setup,
        topic("/laser", 100, 5),
        (20, 50, 950),
        image_period,
        seconds,
    )
}

/// A topic every `period` ms beside images, in the same direction.
pub fn beside_images(
    setup: Setup,
    config: TopicConfig,
    (period, control, data): (u64, u32, u32),
    image_period: u64,
    seconds: u64,
) -> World {
    let mut w = setup.build();
    let run = Duration::from_secs(seconds);
    w.source(0, config, ms(period), run, fixed(control, data));
    let image = topic("/image", 10, 2);
    w.source(0, image, ms(image_period), run, fixed(50, 63_950));
    w.run(run + Duration::from_secs(3));
    w.check_books();
    w
}

/// A topic of this priority.
pub fn topic(name: &str, priority: u8, depth: u32) -> TopicConfig {
    TopicConfig {
        priority,
        depth,
        definition: "float32[] ranges\n".repeat(20),
        ..TopicConfig::new(name, "pkg/Type")
    }
}

/// `hz` messages per second for `run` from 500 ms on, each up to `jitter` late.
pub fn times(rng: &mut Rng, hz: f64, run: Duration, jitter: Duration) -> Vec<Time> {
    let start = Time::from_millis(500 + rng.below(200));
    let count = (run.as_secs_f64() * hz) as u64;
    let late = |rng: &mut Rng| Duration::from_nanos(rng.below(jitter.as_nanos() as u64 + 1));
    (0..count)
        .map(|i| start + Duration::from_secs_f64(i as f64 / hz) + late(rng))
        .collect()
}

/// Always `control` bytes and one data part of `data`.
pub fn fixed(control: u32, data: u32) -> impl FnMut(u64, &mut Rng) -> Geometry {
    let g = Geometry::new(control, &[data]).expect("a geometry");
    move |_, _| g
}
