//! Several hosts on one medium that relay for each other, in virtual time.

use super::{Blob, IP, ms};
use medium::{Event, Link, Medium, MediumConfig, Rng, Topology};
use proto::*;
use stats::{DropReason, Drops, Flow, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub fn host_id(i: usize) -> u64 {
    1000 + i as u64
}

/// A message that may still be arriving.
#[derive(Clone)]
pub struct Carried {
    blob: Blob,
    arriving: Option<Arriving>,
}

impl Body for Carried {
    fn geometry(&self) -> Geometry {
        self.blob.geometry
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        if let Some(a) = &self.arriving {
            let ready = a.ready().expect("what will not be complete is not sent");
            assert!(offset + to.len() as u32 <= ready, "sent before it came");
        }
        self.blob.copy_at(offset, to);
    }

    fn arriving(&self) -> Option<&Arriving> {
        self.arriving.as_ref()
    }
}

/// A sink that forwards messages for others.
pub struct Member {
    pub relay: Relay<Carried>,
    forwards: bool,
    wants: bool,
    open: BTreeMap<u64, (Incoming, Taken, Vec<Option<u8>>)>,
    next: u64,
    now: Time,
    names: BTreeMap<(PeerId, RemoteTopic), FlowKey>,
    /// By source and topic: stamps delivered, with the time.
    pub delivered: BTreeMap<FlowKey, Vec<(Time, u64)>>,
    pub flows: BTreeMap<FlowKey, Flow>,
    pub refused: Drops,
}

impl Sink for Member {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let taken = self
            .relay
            .begin(m)
            .inspect_err(|reason| self.refused.add(*reason, 1))?;
        self.next += 1;
        let bytes = vec![None; m.geometry.total_len() as usize];
        self.open.insert(self.next, (*m, taken, bytes));
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (_, _, to) = self.open.get_mut(&slot.0).expect("an open slot");
        for (place, b) in to[offset as usize..][..bytes.len()].iter_mut().zip(bytes) {
            assert!(place.replace(*b).is_none(), "written twice");
        }
    }

    fn grown(&mut self, slot: Slot, ready: u32) {
        let (m, taken, bytes) = self.open.get_mut(&slot.0).expect("an open slot");
        assert!(bytes[..ready as usize].iter().all(Option::is_some));
        assert!(bytes.iter().any(Option::is_none));
        let arriving = taken.arriving.clone();
        self.relay.grown(taken, ready, || carried(m, arriving));
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (m, taken, bytes) = self.open.remove(&slot.0).expect("an open slot");
        for (i, b) in bytes.iter().enumerate() {
            assert_eq!(*b, Some(Blob::byte(m.stamp.0, i as u32)));
        }
        if taken.local {
            let key = self.names[&(m.peer, m.topic)].clone();
            self.flows
                .entry(key.clone())
                .or_default()
                .received(m.stamp, self.now, bytes.len() as u64);
            self.delivered.entry(key).or_default().push((self.now, m.stamp.0));
        }
        let body = carried(&m, taken.arriving.clone());
        self.relay.finish(taken, Some(body));
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        let (_, taken, _) = self.open.remove(&slot.0).expect("an open slot");
        self.relay.abort(&taken);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let Some(via) = &a.via else { return Verdict::Refuse };
        let key = FlowKey::new(a, via);
        self.names.insert((peer, topic), key);
        let (from, wants, forwards) = ((peer, topic), self.wants, self.forwards);
        let taken = (wants || forwards) && self.relay.announced(from, a, true, wants, forwards);
        if taken { Verdict::Accept } else { Verdict::Refuse }
    }

    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        self.relay.withdrawn(peer, topic);
    }

    fn topic_unwanted(&mut self, peer: PeerId, topic: TopicId, to: u64) {
        self.relay.declined(self.now, peer, topic, to);
    }

    fn peer_down(&mut self, peer: PeerId, why: Down) {
        if why != Down::Lost {
            self.relay.peer_renewed(peer);
        }
    }
}

pub struct Node {
    pub radio: Radio<Carried>,
    pub sink: Member,
    /// The host at the other end of each peer.
    pub peers: BTreeMap<PeerId, usize>,
    wait: Option<Time>,
    pub on: bool,
}

pub struct Source {
    node: usize,
    pub key: FlowKey,
    events: VecDeque<(Time, Geometry)>,
    pub offered: u64,
}

pub struct Mesh {
    pub now: Time,
    pub medium: Medium<Vec<u8>>,
    pub nodes: Vec<Node>,
    pub sources: Vec<Source>,
    pub rng: Rng,
    /// Longest time until a host reads an arrived datagram.
    pub late: Duration,
    held: BTreeMap<(Time, u64), (usize, usize, Vec<u8>)>,
    order: u64,
    stamp: u64,
    sessions: u32,
    pairs: Vec<(usize, usize)>,
    /// Hosts that forward, and hosts that take topics for themselves.
    forwards: Vec<bool>,
    wants: Vec<bool>,
    change: fn(&mut RadioConfig),
}

impl Mesh {
    /// Hosts that know each other by `pairs`; all decode each other. Those in `relays` forward, those in `wants` take
    /// messages addressed to them.
    pub fn new(hosts: usize, pairs: &[(usize, usize)], relays: &[usize], wants: &[usize], seed: u64) -> Mesh {
        Mesh::with(hosts, pairs, relays, wants, seed, |_| ())
    }

    /// The same with other settings of the radios.
    pub fn with(
        hosts: usize,
        pairs: &[(usize, usize)],
        relays: &[usize],
        wants: &[usize],
        seed: u64,
        change: fn(&mut RadioConfig),
    ) -> Mesh {
        let config = MediumConfig {
            hosts,
            topology: Topology::Mesh,
            seed,
            ..MediumConfig::chain(1)
        };
        let mut mesh = Mesh {
            now: Time::ZERO,
            medium: Medium::new(config).expect("a valid medium"),
            nodes: Vec::new(),
            sources: Vec::new(),
            rng: Rng::new(seed ^ 0xABCD),
            late: Duration::ZERO,
            held: BTreeMap::new(),
            order: 0,
            stamp: 0,
            sessions: 0,
            pairs: pairs.to_vec(),
            forwards: (0..hosts).map(|i| relays.contains(&i)).collect(),
            wants: (0..hosts).map(|i| wants.contains(&i)).collect(),
            change,
        };
        for i in 0..hosts {
            let node = mesh.node(i);
            mesh.nodes.push(node);
        }
        mesh
    }

    fn node(&mut self, i: usize) -> Node {
        self.sessions += 1;
        let mut config = RadioConfig {
            host: host_id(i),
            name: format!("host-{i}"),
            route: Some(RouteConfig {
                relay: self.forwards[i],
                ..RouteConfig::default()
            }),
            // Hosts do not start at the same instant.
            ..RadioConfig::new(self.sessions, AirtimeModel::wifi(6_000_000))
        };
        (self.change)(&mut config);
        let mut radio = Radio::new(config).expect("a valid radio");
        let mut peers = BTreeMap::new();
        for (a, b) in &self.pairs {
            let other = match (*a == i, *b == i) {
                (true, _) => *b,
                (_, true) => *a,
                _ => continue,
            };
            let config = PeerConfig {
                host: host_id(other),
                ..PeerConfig::default()
            };
            peers.insert(radio.add_peer(self.now, config).expect("a valid peer"), other);
        }
        Node {
            radio,
            sink: Member {
                relay: Relay::new(host_id(i)),
                forwards: self.forwards[i],
                wants: self.wants[i],
                open: BTreeMap::new(),
                next: 0,
                now: self.now,
                names: BTreeMap::new(),
                delivered: BTreeMap::new(),
                flows: BTreeMap::new(),
                refused: Drops::default(),
            },
            peers,
            wait: None,
            on: true,
        }
    }

    /// Adds a periodic source at `node` for the hosts `to`, from half a second on.
    pub fn source(
        &mut self,
        node: usize,
        to: &[usize],
        config: TopicConfig,
        period: Duration,
        run: Duration,
        bytes: u32,
    ) {
        let start = self.now + ms(500) + Duration::from_nanos(self.rng.below(period.as_nanos() as u64));
        let count = run.as_nanos().div_ceil(period.as_nanos()) as u32;
        let geometry = Geometry::new(50, &[bytes - 50]).expect("a geometry");
        let config = TopicConfig {
            via: Some(Via {
                source: host_id(node),
                name: format!("host-{node}"),
                run: self.sessions,
                to: to.iter().map(|i| host_id(*i)).collect(),
            }),
            ..config
        };
        let n = &mut self.nodes[node];
        let peers: Vec<_> = n.peers.keys().copied().collect();
        let key = n
            .sink
            .relay
            .open(self.now, &mut n.radio, &config, &peers, |_, _, v| all(v))
            .expect("a valid flow");
        let events = (0..count).map(|i| (start + period * i, geometry)).collect();
        self.sources.push(Source {
            node,
            key,
            events,
            offered: 0,
        });
    }

    /// Sets whether two hosts can decode each other, and the share of frames between them that are lost.
    pub fn link(&mut self, a: usize, b: usize, loss: f64) {
        let link = Link {
            down: loss >= 1.0,
            loss: (loss > 0.0 && loss < 1.0).then_some(medium::Loss::Uniform(loss)),
            ..Link::default()
        };
        for (from, to) in [(a, b), (b, a)] {
            self.medium
                .set_link(self.now, from, to, link.clone())
                .expect("a link");
        }
    }

    /// A host vanishes: it receives and sends nothing, and loses its state.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].on = false;
        self.medium.set_host_down(self.now, node, true).expect("a host");
    }

    /// A host sleeps: it does nothing and arriving datagrams are lost, but it keeps its state.
    pub fn sleep(&mut self, node: usize, span: Duration) {
        self.nodes[node].on = false;
        self.run(span);
        let n = &mut self.nodes[node];
        (n.on, n.sink.now) = (true, self.now);
        n.radio.handle_timeout(self.now, &mut n.sink);
        self.act(node);
    }

    pub fn start(&mut self, node: usize) {
        self.nodes[node] = self.node(node);
        self.medium.set_host_down(self.now, node, false).expect("a host");
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            for i in 0..self.nodes.len() {
                self.transmit(i);
            }
            let source = self.sources.iter().filter_map(|s| Some(s.events.front()?.0));
            let on = self.nodes.iter().filter(|n| n.on);
            let radio = on.flat_map(|n| n.wait.into_iter().chain(n.radio.next_timeout()));
            let held = self.held.first_key_value().map(|((t, _), _)| *t);
            let air = self.medium.next_event().into_iter().chain(held);
            let next = source.chain(radio).chain(air).min();
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
            let Event::Delivered {
                host, from, payload, ..
            } = event
            else {
                continue;
            };
            let late = Duration::from_nanos(self.rng.below(self.late.as_nanos() as u64 + 1));
            self.order += 1;
            self.held.insert((now + late, self.order), (host, from, payload));
        }
        while let Some(entry) = self.held.first_entry().filter(|e| e.key().0 <= now) {
            let (host, from, payload) = entry.remove();
            let n = &mut self.nodes[host];
            let Some((peer, _)) = n.peers.iter().find(|(_, h)| **h == from).filter(|_| n.on) else {
                continue;
            };
            n.sink.now = now;
            let peer = *peer;
            n.radio
                .handle(now, peer, &payload, &mut n.sink)
                .expect("what an honest peer sends is understood");
            self.act(host);
        }
        for i in 0..self.sources.len() {
            let s = &mut self.sources[i];
            while s.events.front().is_some_and(|(t, _)| *t <= now)
                && let Some((_, geometry)) = s.events.pop_front()
            {
                self.stamp = now.0.max(self.stamp + 1);
                s.offered += 1;
                let n = &mut self.nodes[s.node];
                let body = Carried {
                    blob: Blob {
                        seed: self.stamp,
                        geometry,
                    },
                    arriving: None,
                };
                // A message without a route is counted.
                let (all, message) = ((&s.key, u64::MAX), Message::new(body, Time(self.stamp)));
                let _ = (n.sink.relay).offer(now, &mut n.radio, all, message, &mut ());
            }
        }
        for i in 0..self.nodes.len() {
            let n = &mut self.nodes[i];
            if n.on && n.radio.next_timeout().is_some_and(|t| t <= now) {
                n.sink.now = now;
                n.radio.handle_timeout(now, &mut n.sink);
                assert!(
                    n.radio.next_timeout().is_none_or(|t| t > now),
                    "a timeout that does not move"
                );
                self.act(i);
            }
        }
    }

    fn act(&mut self, node: usize) {
        let n = &mut self.nodes[node];
        while let Some(job) = n.radio.next_job() {
            n.radio.job_done(self.now, job.run(), &mut n.sink);
        }
        let peers: Vec<_> = n.peers.keys().copied().collect();
        n.sink
            .relay
            .run(self.now, &mut n.radio, &peers, |_, _, v| all(v), &mut ())
            .expect("the radio takes its topics");
    }

    fn transmit(&mut self, node: usize) {
        let n = &mut self.nodes[node];
        n.wait = None;
        let mut buffer = Vec::new();
        for _ in 0..10_000 {
            if !n.on {
                return;
            }
            match n.radio.poll_transmit(self.now, &mut buffer) {
                Transmit::Datagram { peer, .. } => {
                    assert!(buffer.len() <= 1472, "{} B", buffer.len());
                    // A full device queue loses it.
                    let _ =
                        self.medium
                            .send(self.now, node, n.peers[&peer], buffer.len() + IP, buffer.clone());
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

    /// When messages of a source arrived at a host, in order.
    pub fn arrivals(&self, source: usize, host: usize) -> &[(Time, u64)] {
        let key = &self.sources[source].key;
        self.nodes[host]
            .sink
            .delivered
            .get(key)
            .map_or(&[], Vec::as_slice)
    }

    /// Share of a source's messages that a host has, each counted once.
    pub fn delivery(&self, source: usize, host: usize) -> f64 {
        let all = self.arrivals(source, host);
        let mut stamps: Vec<u64> = all.iter().map(|(_, s)| *s).collect();
        stamps.sort_unstable();
        stamps.dedup();
        assert_eq!(stamps.len(), all.len(), "a message was delivered twice");
        all.len() as f64 / self.sources[source].offered.max(1) as f64
    }

    /// The longest time without a message of a source at a host, from `from` on.
    pub fn longest_gap(&self, source: usize, host: usize, from: Time) -> Duration {
        let times = self.arrivals(source, host).iter().map(|(t, _)| *t);
        let times: Vec<Time> = std::iter::once(from)
            .chain(times.filter(|t| *t >= from))
            .collect();
        let gaps = times.windows(2).map(|w| w[1].since(w[0]));
        let last = times.last().map(|t| self.now.since(*t));
        gaps.chain(last).max().unwrap_or_default()
    }

    /// How long after `from` the last gap of more than 100 ms in a source's messages at a host ended.
    pub fn back(&self, source: usize, host: usize, from: Time) -> Duration {
        let times = self.arrivals(source, host).iter().map(|(t, _)| *t);
        let times: Vec<Time> = std::iter::once(from)
            .chain(times.filter(|t| *t >= from))
            .collect();
        let mut gaps = times.windows(2).filter(|w| w[1].since(w[0]) > ms(100));
        gaps.next_back().map_or(Duration::ZERO, |w| w[1].since(from))
    }

    /// The neighbour over which a host reaches another.
    pub fn next_hop(&self, from: usize, to: usize) -> Option<usize> {
        let n = &self.nodes[from];
        Some(n.peers[&n.radio.way(host_id(to), |_| true)?.next])
    }

    /// Number of datagrams that a host has sent to another.
    pub fn datagrams(&self, from: usize, to: usize) -> u64 {
        let n = &self.nodes[from];
        let peer = n.peers.iter().find(|(_, h)| **h == to).expect("a peer");
        n.radio.peer_stats(*peer.0).expect("a peer").datagrams_sent
    }

    /// Number of messages that a host has in part.
    pub fn partial(&self, host: usize) -> usize {
        self.nodes[host].sink.open.len()
    }

    /// Counters of the topic that a host sends to another.
    pub fn sent(&self, from: usize, to: usize, name: &str) -> TopicStats {
        let n = &self.nodes[from];
        let of_it = |t: &TopicStats| n.peers[&t.peer] == to && t.name == name;
        let mut topics = n.radio.topics().map(|(_, t)| t).filter(of_it);
        topics.next().expect("a topic")
    }

    /// Counters of the same topic at the receiver.
    pub fn received(&self, from: usize, to: usize, name: &str) -> RemoteTopicStats {
        let n = &self.nodes[to];
        let (peer, _) = n.peers.iter().find(|(_, h)| **h == from).expect("a peer");
        let mut topics = n.radio.remote_topics(*peer).map(|(_, t)| t);
        topics.find(|t| t.name == name).expect("a topic")
    }

    pub fn check_books(&self) {
        for n in &self.nodes {
            for (_, t) in n.radio.topics() {
                assert_eq!(t.offered, t.sent + t.queued + t.drops.total(), "{t:?}");
            }
        }
    }
}

fn carried(m: &Incoming, arriving: Option<Arriving>) -> Carried {
    let blob = Blob {
        seed: m.stamp.0,
        geometry: m.geometry,
    };
    Carried { blob, arriving }
}

fn all(via: &Via) -> u64 {
    (1 << via.to.len()) - 1
}
