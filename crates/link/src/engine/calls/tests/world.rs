//! Hosts that call each other over a simulated radio, in virtual time.

use super::super::header::inner;
use super::super::{Asked, Calls, Event, Failed, Failure, ServiceStatus, Ticket, Times};
use crate::config::Config;
use crate::engine::path::Air;
use crate::engine::received::Received;
use crate::flows::Flows;
use crate::names::{Line, host_id};
use crate::outgoing::Outgoing;
use bus::ServiceType;
use medium::{Event as OfAir, Link, Loss, Medium, MediumConfig, Path, Topology};
use proto::{
    AirtimeModel, Announcement, Down, Geometry, Incoming, PeerConfig, PeerId, PeerInfo, Radio, RadioConfig,
    RemoteTopic, RouteConfig, Sink, Slot, Taken, TopicId, Transmit, Verdict,
};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Bytes of the headers of IP and UDP.
const IP: usize = 28;

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a server of a host does with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Answers with the request's content, after this time.
    Echo(Duration),
    /// Answers with this many bytes.
    Bytes(usize),
    Rejects,
    Silent,
}

/// The content of a request or a reply: a control part and a data part.
type Text = (Vec<u8>, Vec<u8>);

/// A server of a host.
struct Server {
    manner: Manner,
    /// Its endpoints, one for each caller.
    endpoints: Vec<u64>,
    /// Requests without an answer so far.
    open: Vec<Ticket>,
}

/// The end of a call: when, and with what.
#[derive(Debug)]
pub(super) struct End {
    pub(super) at: Time,
    pub(super) with: Result<Text, Failed>,
    /// The service ended with it.
    pub(super) with_service: bool,
}

/// Receives for a host, also what it relays.
struct Ears {
    now: Time,
    calls: Calls<Received, usize>,
    flows: Flows,
    filling: BTreeMap<Slot, (Incoming, Option<Taken>, Content)>,
    next: u64,
    /// Whether each message of a service comes twice, as over two relays.
    hears_double: bool,
}

enum Content {
    Own(Received),
    Carried(Outgoing),
}

impl Ears {
    fn came(&mut self, m: &Incoming, expires: Option<Time>, bytes: &[u8]) -> Result<(), DropReason> {
        let from = (m.peer, m.topic);
        self.calls.taker(from).ok_or(DropReason::Unannounced)?;
        for _ in 0..if self.hears_double { 2 } else { 1 } {
            let received = Received {
                bytes: bytes.to_vec(),
                geometry: m.geometry,
            };
            let head = *received.bytes.first_chunk().ok_or(DropReason::Malformed)?;
            let times = Times {
                at: self.now,
                stamp: m.stamp,
                expires,
            };
            self.calls
                .came(from, &head, (received, bytes.len() as u64), times)?;
        }
        Ok(())
    }
}

impl Sink for Ears {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let taken = match m.route {
            Some(_) => Some(self.flows.relay.begin(m)?),
            None => None,
        };
        if taken.as_ref().is_none_or(|t| t.local) && self.calls.is_route((m.peer, m.topic)) {
            inner(&m.geometry).ok_or(DropReason::Malformed)?;
        }
        let content = match taken.as_ref().filter(|t| t.forward) {
            Some(t) => Content::Carried(Outgoing::carried(m.geometry, t.arriving.clone())),
            None => Content::Own(Received::new(m.geometry)),
        };
        self.next += 1;
        self.filling.insert(Slot(self.next), (*m, taken, content));
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        match &mut self.filling.get_mut(&slot).expect("an open slot").2 {
            Content::Own(received) => received.write(offset, bytes),
            Content::Carried(message) => {
                let mut all = message.carried_bytes().expect("it is carried");
                all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn grown(&mut self, slot: Slot, ready: u32) {
        if let Some((_, Some(taken), Content::Carried(message))) = self.filling.get_mut(&slot) {
            self.flows.relay.grown(taken, ready, || message.clone());
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (m, taken, content) = self.filling.remove(&slot).expect("an open slot");
        let is_local = taken.as_ref().is_none_or(|t| t.local);
        let expires = taken.as_ref().and_then(Taken::expires);
        let bytes = match &content {
            Content::Own(received) => received.bytes.clone(),
            Content::Carried(message) => message.carried_bytes().expect("it is carried").clone(),
        };
        let outcome = match is_local {
            true => self.came(&m, expires, &bytes),
            false => Ok(()),
        };
        if let Some(taken) = taken {
            let body = match content {
                Content::Own(_) => None,
                Content::Carried(message) => Some(message),
            };
            self.flows.relay.finish(taken, body);
        }
        outcome
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        if let Some((_, Some(taken), _)) = self.filling.remove(&slot) {
            self.flows.relay.abort(&taken);
        }
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let (from, mut source) = ((peer, topic), peer);
        if let Some(via) = &a.via {
            let Ok(offer) = self.flows.carrying.judge(peer, &a.name, via) else {
                return Verdict::Refuse;
            };
            if !(self.flows.relay).announced(from, a, true, offer.local, offer.forward) {
                return Verdict::Refuse;
            }
            match offer.source {
                Some(id) if offer.local => source = id,
                _ => return Verdict::Accept,
            }
        }
        let line = Line::parse(&a.name).expect("a service's topic");
        match self.calls.objection(source, line) {
            Some(_) => Verdict::Refuse,
            None => self.calls.announced(from, source, line, a),
        }
    }

    fn topic_unwanted(&mut self, peer: PeerId, topic: TopicId, to: u64) {
        self.flows.declined.push((peer, topic, to));
    }

    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        for route in self.flows.relay.withdrawn(peer, topic) {
            self.calls.withdrawn(route);
        }
    }

    fn peer_up(&mut self, peer: PeerId, _: &PeerInfo) {
        self.calls.peer_up(peer);
    }

    fn peer_down(&mut self, peer: PeerId, why: Down) {
        self.calls.peer_down(self.now, peer, why);
        if why != Down::Lost {
            self.flows.relay.peer_renewed(peer);
        }
    }
}

/// A host: its link, its servers and its callers.
pub(super) struct Host {
    config: Config,
    radio: Radio<Outgoing>,
    ears: Ears,
    peers: Vec<PeerId>,
    /// The services that can be called, by their names here.
    pub(super) offered: BTreeMap<String, u64>,
    servers: BTreeMap<String, Server>,
    /// The control parts of requests to its servers, with the time.
    pub(super) requests: Vec<(Time, Vec<u8>)>,
    /// Answers that are due.
    answers: VecDeque<(Time, Ticket, Text)>,
    /// Why answers were lost at once.
    pub(super) refused: Vec<DropReason>,
    calls: usize,
    /// The ends of its calls, by number.
    pub(super) ends: BTreeMap<usize, End>,
    wait: Option<Time>,
    is_on: bool,
}

impl Host {
    fn new(now: Time, config: &Config, run: u32) -> Host {
        let relay = config.relay.as_ref().is_some_and(crate::rules::Relayed::is_any);
        let mut radio = Radio::new(RadioConfig {
            host: host_id(&config.host),
            name: config.host.clone(),
            route: config.routes().then(|| RouteConfig {
                relay,
                ..RouteConfig::default()
            }),
            max_queued_bytes: config.queue_bytes(),
            ..RadioConfig::new(run, AirtimeModel::wifi(54_000_000))
        })
        .expect("a valid radio");
        let neighbours = config.neighbours().iter();
        let peers = neighbours.map(|p| {
            let host = host_id(&p.name);
            let peer = PeerConfig {
                host,
                ..PeerConfig::default()
            };
            radio.add_peer(now, peer).expect("a peer")
        });
        Host {
            peers: peers.collect(),
            ears: Ears {
                now,
                calls: Calls::new(&config.services, &config.peers, run),
                flows: Flows::new(config, config.routes(), run),
                filling: BTreeMap::new(),
                next: 0,
                hears_double: false,
            },
            config: config.clone(),
            radio,
            offered: BTreeMap::new(),
            servers: BTreeMap::new(),
            requests: Vec::new(),
            answers: VecDeque::new(),
            refused: Vec::new(),
            calls: 0,
            ends: BTreeMap::new(),
            wait: None,
            is_on: true,
        }
    }

    pub(super) fn hears_double(&mut self) {
        self.ears.hears_double = true;
    }

    pub(super) fn radio(&self) -> &Radio<Outgoing> {
        &self.radio
    }

    /// The estimate of a peer's clock, if there is one.
    pub(super) fn clock_of(&self, peer: &str) -> Option<proto::ClockStats> {
        let at = self.config.peers.iter().position(|p| p.name == peer)?;
        self.radio.peer_stats(PeerId(at as u32))?.clock
    }

    pub(super) fn status(&self) -> Vec<ServiceStatus> {
        self.ears.calls.status(&self.radio)
    }

    /// The outcome of a call that has ended.
    pub(super) fn outcome(&self, call: usize) -> &Result<Text, Failed> {
        let end = self.ends.get(&call);
        &end.unwrap_or_else(|| panic!("call {call} has not ended")).with
    }

    /// Why a call failed, and the error text for its caller.
    pub(super) fn failure(&self, call: usize) -> (Failure, &str) {
        match self.outcome(call) {
            Err(failed) => (failed.failure, &failed.text),
            Ok(_) => panic!("call {call} is answered"),
        }
    }

    /// A message of `peer` arrives outside of its radio: a request with this header.
    pub(super) fn inject(&mut self, now: Time, peer: &str, head: [u8; 20]) -> Result<(), DropReason> {
        let peer = self.config.peers.iter().position(|p| p.name == peer);
        let peer = PeerId(peer.expect("a peer") as u32);
        let topics = self.radio.remote_topics(peer);
        let topic = topics.into_iter().find(|(_, t)| t.name.ends_with("?request"));
        let from = (peer, topic.expect("it has announced its requests").0);
        let received = Received {
            bytes: head.to_vec(),
            geometry: Geometry::new(20, &[]).expect("a geometry"),
        };
        let times = Times {
            at: now,
            stamp: now,
            expires: None,
        };
        self.ears.calls.came(from, &head, (received, 20), times)
    }

    fn turn(&mut self, now: Time) {
        self.ears.now = now;
        if self.radio.next_timeout().is_some_and(|t| t <= now) {
            self.radio.handle_timeout(now, &mut self.ears);
        }
        while let Some(job) = self.radio.next_job() {
            self.radio.job_done(now, job.run(), &mut self.ears);
        }
        let Ears { calls, flows, .. } = &mut self.ears;
        flows
            .run_relay(now, &mut self.radio)
            .expect("the radio takes its topics");
        let radio = &mut self.radio;
        calls.hear(&mut Air { now, radio, flows });
        self.pass_on(now);
        let due = self.answers.iter().position(|(at, ..)| *at <= now);
        if let Some((_, ticket, text)) = due.and_then(|i| self.answers.remove(i)) {
            self.answer(now, ticket, &text);
        }
        let Ears { calls, flows, .. } = &mut self.ears;
        let radio = &mut self.radio;
        calls.run(&mut Air { now, radio, flows });
        self.pass_on(now);
    }

    fn answer(&mut self, now: Time, ticket: Ticket, (control, part): &Text) {
        self.servers
            .values_mut()
            .for_each(|s| s.open.retain(|t| *t != ticket));
        let Ears { calls, flows, .. } = &mut self.ears;
        let radio = &mut self.radio;
        let lost = calls.reply(&mut Air { now, radio, flows }, ticket, |header| {
            Outgoing::with_head(&header.encode(), control, &[part])
        });
        self.refused.extend(lost.err());
    }

    /// Passes on what the calls decided, to servers and callers.
    fn pass_on(&mut self, now: Time) {
        while let Some(event) = self.ears.calls.poll_event() {
            match event {
                Event::Up(endpoint) => {
                    let kind = self.ears.calls.kind(endpoint).expect("a service");
                    self.offered.insert(kind.service.clone(), endpoint);
                }
                Event::Down(endpoint, callers) => {
                    self.offered.retain(|_, e| *e != endpoint);
                    for call in callers {
                        let failed = Failed {
                            failure: Failure::ServerDied,
                            text: String::new(),
                            open: None,
                        };
                        self.ended(now, call, Err(failed), true);
                    }
                }
                Event::Request {
                    endpoint,
                    ticket,
                    mut content,
                    ..
                } => {
                    use super::super::Content as _;
                    let control = content.control().to_vec();
                    let part = content.bytes[content.geometry.control_len() as usize..].to_vec();
                    self.requests.push((now, control.clone()));
                    let server = self
                        .servers
                        .values_mut()
                        .find(|s| s.endpoints.contains(&endpoint));
                    let server = server.expect("a request comes only for a server");
                    server.open.push(ticket);
                    match server.manner {
                        Manner::Echo(after) => self.answers.push_back((now + after, ticket, (control, part))),
                        Manner::Bytes(n) => self.answers.push_back((now, ticket, (vec![], vec![1; n]))),
                        Manner::Rejects => {
                            server.open.pop();
                            let why = (Failure::Rejected, "out of reach");
                            let Ears { calls, flows, .. } = &mut self.ears;
                            let radio = &mut self.radio;
                            calls.fail(&mut Air { now, radio, flows }, ticket, why);
                        }
                        Manner::Silent => {}
                    }
                }
                Event::Unused(_) => {}
                Event::Ended(call, with) => {
                    use super::super::Content as _;
                    let with = with.map(|mut received| {
                        let at = received.geometry.control_len() as usize;
                        (received.control().to_vec(), received.bytes[at..].to_vec())
                    });
                    self.ended(now, call, with, false);
                }
            }
        }
    }

    fn ended(&mut self, at: Time, call: usize, with: Result<Text, Failed>, with_service: bool) {
        let end = End {
            at,
            with,
            with_service,
        };
        let before = self.ends.insert(call, end);
        assert!(before.is_none(), "call {call} ends twice");
    }

    fn next(&self) -> Option<Time> {
        let answers = self.answers.iter().map(|(at, ..)| *at).min();
        let times = [
            self.wait,
            self.radio.next_timeout(),
            self.ears.calls.next_timeout(),
            answers,
        ];
        times.into_iter().flatten().min().filter(|_| self.is_on)
    }
}

/// Hosts on one medium.
pub(super) struct World {
    pub(super) now: Time,
    medium: Medium<Vec<u8>>,
    hosts: Vec<Host>,
    runs: u32,
}

impl World {
    /// Hosts with these configurations, which all decode each other.
    pub(super) fn new(configs: &[&str]) -> World {
        let medium = MediumConfig {
            hosts: configs.len(),
            topology: Topology::Mesh,
            rate_bits: 54_000_000,
            queue_frames: 1024,
            ..MediumConfig::chain(1)
        };
        let parsed = configs.iter().map(|text| {
            let text = format!("radio: {{bind: '127.0.0.1:7400', rate: 54Mbit/s}}\n{text}");
            Config::parse(&text).unwrap_or_else(|e| panic!("{e}"))
        });
        let hosts = (1..).zip(parsed);
        let hosts = hosts.map(|(run, config)| Host::new(Time::ZERO, &config, run));
        World {
            now: Time::ZERO,
            medium: Medium::new(medium).expect("a valid medium"),
            hosts: hosts.collect(),
            runs: configs.len() as u32,
        }
    }

    /// From now on, packets meet this behind the air.
    pub(super) fn path(&mut self, path: Path) {
        self.medium.set_path(self.now, path).expect("a valid path");
    }

    /// Whether two hosts decode each other.
    pub(super) fn connect(&mut self, a: &str, b: &str, connected: bool) {
        let (a, b) = (self.index(a), self.index(b));
        let link = Link {
            down: !connected,
            ..Link::default()
        };
        for (from, to) in [(a, b), (b, a)] {
            self.medium
                .set_link(self.now, from, to, link.clone())
                .expect("a link");
        }
    }

    /// From now on, nothing of one host arrives at the other.
    pub(super) fn mute(&mut self, from: &str, to: &str) {
        let link = Link {
            down: true,
            ..Link::default()
        };
        let (from, to) = (self.index(from), self.index(to));
        self.medium.set_link(self.now, from, to, link).expect("a link");
    }

    fn index(&self, name: &str) -> usize {
        let at = self.hosts.iter().position(|h| h.config.host == name);
        at.unwrap_or_else(|| panic!("no host {name}"))
    }

    pub(super) fn host(&mut self, name: &str) -> &mut Host {
        let at = self.index(name);
        &mut self.hosts[at]
    }

    /// A host restarts: nothing of its past is left but what its callers have seen.
    pub(super) fn restart(&mut self, name: &str) {
        let at = self.index(name);
        self.runs += 1;
        let new = Host::new(self.now, &self.hosts[at].config.clone(), self.runs);
        let old = std::mem::replace(&mut self.hosts[at], new);
        (self.hosts[at].calls, self.hosts[at].ends) = (old.calls, old.ends);
        self.hosts[at].requests = old.requests;
    }

    /// A host is switched off, or on again without having lost anything.
    pub(super) fn power(&mut self, name: &str, on: bool) {
        let at = self.index(name);
        self.hosts[at].is_on = on;
        self.medium.set_host_down(self.now, at, !on).expect("a host");
    }

    /// Starts a server of `service`, with a type of this hash.
    pub(super) fn serve_as(&mut self, host: &str, service: &str, manner: Manner, hash: u8) {
        let kind = ServiceType {
            service: service.into(),
            type_name: "test_srvs/Blob".into(),
            type_hash: [hash; 16],
            flavour: Default::default(),
            definition: "uint8[] data\n---\nuint8[] data\n".into(),
        };
        let now = self.now;
        let h = self.host(host);
        let Ears { calls, flows, .. } = &mut h.ears;
        let radio = &mut h.radio;
        let mut air = Air { now, radio, flows };
        let endpoints: Vec<u64> = calls.serve(&mut air, &kind).iter().map(|(e, _)| *e).collect();
        for endpoint in &endpoints {
            calls.serving(&mut air, *endpoint, true).expect("is offered");
        }
        let open = Vec::new();
        let server = Server {
            manner,
            endpoints,
            open,
        };
        h.servers.insert(service.into(), server);
        h.pass_on(now);
    }

    pub(super) fn serve(&mut self, host: &str, service: &str, manner: Manner) {
        self.serve_as(host, service, manner, 9);
    }

    /// The server of `service` dies; its unanswered requests end with it. Its answer to the last one is known
    /// only then, if it has a last word.
    pub(super) fn die(&mut self, host: &str, service: &str, last_word: Option<&[u8]>) {
        let now = self.now;
        let h = self.host(host);
        let mut server = h.servers.remove(service).expect("a server");
        let Ears { calls, flows, .. } = &mut h.ears;
        let radio = &mut h.radio;
        let mut air = Air { now, radio, flows };
        for endpoint in server.endpoints {
            calls.serving(&mut air, endpoint, false).expect("is withdrawn");
        }
        let last_word = last_word.map(|word| (server.open.pop().expect("a request"), word));
        for ticket in server.open {
            calls.fail(&mut air, ticket, (Failure::ServerDied, ""));
        }
        if let Some((ticket, word)) = last_word {
            h.answer(now, ticket, &(word.to_vec(), vec![1; 20_000]));
        }
        h.turn(now);
    }

    /// Calls a service. Returns the number of the call.
    pub(super) fn call(
        &mut self,
        host: &str,
        service: &str,
        control: &[u8],
        part: &[u8],
        timeout: Duration,
    ) -> usize {
        let now = self.now;
        let h = self.host(host);
        let caller = h.calls;
        h.calls += 1;
        let endpoint = *h.offered.get(service).expect("the service is offered");
        let asked = Asked {
            endpoint,
            caller,
            timeout,
        };
        let Ears { calls, flows, .. } = &mut h.ears;
        let radio = &mut h.radio;
        calls.ask(&mut Air { now, radio, flows }, asked, |header| {
            Outgoing::with_head(&header.encode(), control, &[part])
        });
        h.pass_on(now);
        caller
    }

    /// A host does what is due now.
    pub(super) fn turn(&mut self, host: &str) {
        let now = self.now;
        self.host(host).turn(now);
    }

    /// Runs until it is so, for a virtual minute at most.
    pub(super) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut World) -> bool) {
        let begun = self.now;
        while !is_so(self) {
            assert!(self.now.since(begun) < Duration::from_secs(60), "{what}: never");
            self.run(ms(1));
        }
    }

    /// Runs until a service can be called.
    pub(super) fn connected(&mut self, host: &str, service: &str) {
        self.until("the service is offered", |w| {
            w.host(host).offered.contains_key(service)
        });
    }

    /// Calls and waits for the outcome.
    pub(super) fn ask(&mut self, host: &str, service: &str, control: &[u8]) -> usize {
        let call = self.call(host, service, control, b"", Duration::from_secs(30));
        self.until("the call ends", |w| w.host(host).ends.contains_key(&call));
        call
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        loop {
            for i in 0..self.hosts.len() {
                self.transmit(i);
            }
            let hosts = self.hosts.iter().filter_map(Host::next);
            let next = hosts.chain(self.medium.next_event()).min();
            let Some(next) = next.filter(|t| *t <= end) else {
                break;
            };
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(steps < 10_000, "what is due is never done");
            self.step(next.max(self.now));
        }
        self.now = end;
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        while let Some(event) = self.medium.poll(now) {
            let OfAir::Delivered {
                host, from, payload, ..
            } = event
            else {
                continue;
            };
            let from = self.hosts[from].config.host.clone();
            let h = &mut self.hosts[host];
            let peer = h.config.neighbours().iter().position(|p| p.name == from);
            let Some(peer) = peer.filter(|_| h.is_on) else {
                continue;
            };
            h.ears.now = now;
            h.radio
                .handle(now, h.peers[peer], &payload, &mut h.ears)
                .expect("what an honest peer sends is understood");
        }
        for h in self.hosts.iter_mut().filter(|h| h.is_on) {
            h.turn(now);
        }
    }

    fn transmit(&mut self, i: usize) {
        let mut buffer = Vec::new();
        self.hosts[i].wait = None;
        while self.hosts[i].is_on {
            let h = &mut self.hosts[i];
            match h.radio.poll_transmit(self.now, &mut buffer) {
                Transmit::Datagram { peer, .. } => {
                    let to = h.peers.iter().position(|p| *p == peer).expect("a peer");
                    let to = h.config.peers[to].name.clone();
                    let bytes = buffer.len() + IP;
                    let to = self.index(&to);
                    // A full device queue drops it.
                    let _ = self.medium.send(self.now, i, to, bytes, buffer.clone());
                }
                Transmit::Wait(t) => {
                    assert!(t > self.now, "waits for the past");
                    h.wait = Some(t);
                    return;
                }
                Transmit::Idle => return,
            }
        }
    }
}

/// A path that loses some packets and brings others twice.
pub(super) fn bad() -> Path {
    Path {
        duplicate: 0.1,
        ..Path::loss(Loss::Uniform(0.2))
    }
}
