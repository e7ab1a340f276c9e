//! A host of the team with permission to relay, which handles the messages as it likes.
#![allow(unreachable_pub, reason = "a module of tests")]

use link::keys::Bundle;
use link::{Carrier, QuicCarrier, QuicConfig, TeamPeer};
use proto::{
    AirtimeModel, Announcement, Down, Geometry, Incoming, Message, PeerConfig, PeerId, PeerInfo, Radio,
    RadioConfig, RemoteTopic, Route, RouteConfig, Sink, Slot, TopicConfig, TopicId, Transmit, Verdict, Via,
};
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A passing message, and what the spy makes of it.
#[derive(Clone, Debug)]
pub struct Passing {
    pub announcement: Announcement,
    pub stamp: Time,
    pub origin: u64,
    pub number: u64,
    pub to: u64,
    pub bytes: Vec<u8>,
    pub packed: bool,
    pub parts: Vec<u32>,
}

/// The bytes to forward in place of a message.
pub type Deed = Box<dyn FnMut(&Passing) -> Vec<Passing> + Send>;

#[derive(Clone)]
struct Carried(Arc<Vec<u8>>, Geometry);

impl proto::Body for Carried {
    fn geometry(&self) -> Geometry {
        self.1
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        to.copy_from_slice(&self.0[offset as usize..][..to.len()]);
    }
}

/// The observed messages.
#[derive(Default)]
pub struct Saw {
    pub passed: Vec<Passing>,
}

struct Inner {
    announced: BTreeMap<(PeerId, RemoteTopic), Announcement>,
    fresh: Vec<(PeerId, Announcement)>,
    open: BTreeMap<Slot, (Passing, PeerId)>,
    done: Vec<(Passing, PeerId)>,
    next: u64,
}

impl Sink for Inner {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let announcement = self.announced.get(&(m.peer, m.topic)).cloned();
        let announcement = announcement.ok_or(DropReason::Unannounced)?;
        let route = m.route.ok_or(DropReason::Malformed)?;
        self.next += 1;
        let passing = Passing {
            announcement,
            stamp: m.stamp,
            origin: m.origin,
            number: route.number,
            to: route.to,
            bytes: vec![0; m.geometry.total_len() as usize],
            packed: m.geometry.is_packed(),
            parts: m.geometry.part_lens().to_vec(),
        };
        self.open.insert(Slot(self.next), (passing, m.peer));
        Ok(Slot(self.next))
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (passing, _) = self.open.get_mut(&slot).expect("an open slot");
        passing.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        self.done.push(self.open.remove(&slot).expect("an open slot"));
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.open.remove(&slot);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        if a.via.is_none() {
            return Verdict::Refuse;
        }
        self.announced.insert((peer, topic), a.clone());
        self.fresh.push((peer, a.clone()));
        Verdict::Accept
    }

    fn topic_withdrawn(&mut self, _: PeerId, _: RemoteTopic) {}
    fn topic_unwanted(&mut self, _: PeerId, _: TopicId, _: u64) {}
    fn peer_up(&mut self, _: PeerId, _: &PeerInfo) {}
    fn peer_down(&mut self, _: PeerId, _: Down) {}
}

/// The spy, until it is dropped.
pub struct Spy {
    stop: Arc<AtomicBool>,
    pub saw: Arc<Mutex<Saw>>,
    deed: Arc<Mutex<Deed>>,
    extra: Arc<Mutex<Vec<(usize, Passing)>>>,
    thread: Option<JoinHandle<()>>,
}

/// A host's id, as in the wire format: FNV-1a of its name.
pub fn id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Announces a topic of `source` for `to`.
pub fn said(source: &str, run: u32, to: &[&str], topic: &str) -> Announcement {
    Announcement {
        name: topic.into(),
        type_name: "test_msgs/Blob".into(),
        type_hash: [14; 16],
        definition: "uint8[] data\n".into(),
        priority: 120,
        depth: 8,
        via: Some(Via {
            source: id(source),
            name: source.into(),
            run,
            to: to.iter().map(|n| id(n)).collect(),
        }),
        ..Announcement::default()
    }
}

pub fn honest() -> Deed {
    Box::new(|p| vec![p.clone()])
}

impl Spy {
    /// Joins the team as `name` with the keys in `bundle`, at 127.0.0.1:`own`.
    pub fn start(bundle: &Path, name: &str, own: u16, peers: &[(&str, u16)], deed: Deed) -> Spy {
        let address = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let team = peers.iter().map(|(name, port)| TeamPeer {
            name: (*name).into(),
            address: address(*port),
        });
        let bundle = Bundle::load(bundle, name).expect("keys");
        let carrier =
            QuicCarrier::bind(QuicConfig::new(address(own), team.collect()), bundle).expect("binds");
        let names: Vec<u64> = peers.iter().map(|(n, _)| id(n)).collect();
        let (stop, saw) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(Mutex::new(Saw::default())),
        );
        let (deed, extra) = (Arc::new(Mutex::new(deed)), Arc::new(Mutex::new(Vec::new())));
        let shared = (stop.clone(), saw.clone(), deed.clone(), extra.clone());
        let own = (name.to_owned(), clock::realtime().0 as u32 | 1);
        let thread = std::thread::spawn(move || run(carrier, &own, &names, &shared));
        Spy {
            stop,
            saw,
            deed,
            extra,
            thread: Some(thread),
        }
    }

    pub fn does(&self, deed: Deed) {
        *self.deed.lock().expect("no panic") = deed;
    }

    /// Sends a message of its own making to its peer with this index.
    pub fn send(&self, peer: usize, passing: Passing) {
        self.extra.lock().expect("no panic").push((peer, passing));
    }

    /// The messages of a topic that passed.
    pub fn passed(&self, topic: &str) -> Vec<Passing> {
        let saw = self.saw.lock().expect("no panic");
        let of_it = saw.passed.iter().filter(|p| p.announcement.name == topic);
        of_it.cloned().collect()
    }
}

impl Drop for Spy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Shared = (
    Arc<AtomicBool>,
    Arc<Mutex<Saw>>,
    Arc<Mutex<Deed>>,
    Arc<Mutex<Vec<(usize, Passing)>>>,
);

/// For each announcement to each peer: the topic there.
type Topics = BTreeMap<(PeerId, u64, u32, String, u64), TopicId>;

fn run(mut carrier: QuicCarrier, (name, session): &(String, u32), names: &[u64], shared: &Shared) {
    let (stop, saw, deed, extra) = shared;
    let now = clock::monotonic();
    let mut radio: Radio<Carried> = Radio::new(RadioConfig {
        host: id(name),
        name: name.clone(),
        route: Some(RouteConfig {
            relay: true,
            ..RouteConfig::default()
        }),
        ..RadioConfig::new(*session, AirtimeModel::wifi(1_000_000_000))
    })
    // It claims to be near every host that it leads to.
    .expect("a radio");
    let peers: Vec<PeerId> = (names.iter())
        .map(|host| {
            let config = PeerConfig {
                host: *host,
                max_datagram: carrier.max_datagram(),
                ..PeerConfig::default()
            };
            radio.add_peer(now, config).expect("a peer")
        })
        .collect();
    let mut inner = Inner {
        announced: BTreeMap::new(),
        fresh: Vec::new(),
        open: BTreeMap::new(),
        done: Vec::new(),
        next: 0,
    };
    let mut topics = Topics::new();
    let (mut buffer, mut datagram) = (vec![0; 1 << 16], Vec::new());
    while !stop.load(Ordering::Acquire) {
        let now = clock::monotonic();
        while let Some(got) = carrier.receive(&mut buffer).expect("goes on") {
            let _ = radio.handle(clock::monotonic(), peers[got.peer], got.datagram, &mut inner);
        }
        radio.handle_timeout(now, &mut inner);
        for (from, a) in std::mem::take(&mut inner.fresh) {
            for peer in peers.iter().filter(|p| **p != from) {
                topic(&mut radio, &mut topics, now, *peer, &a);
            }
        }
        for (passing, from) in std::mem::take(&mut inner.done) {
            saw.lock().expect("no panic").passed.push(passing.clone());
            let out = deed.lock().expect("no panic")(&passing);
            for p in out {
                for peer in peers.iter().filter(|p| **p != from) {
                    offer(&mut radio, &mut topics, now, *peer, &p);
                }
            }
        }
        for (peer, p) in std::mem::take(&mut *extra.lock().expect("no panic")) {
            offer(&mut radio, &mut topics, now, peers[peer], &p);
        }
        while carrier.ready() {
            let Transmit::Datagram { peer, priority } =
                radio.poll_transmit(clock::monotonic(), &mut datagram)
            else {
                break;
            };
            let at = peers.iter().position(|p| *p == peer).expect("a peer");
            let _ = carrier.send(at, priority, &datagram).expect("goes on");
        }
        let _ = carrier.service().expect("goes on");
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn topic(
    radio: &mut Radio<Carried>,
    topics: &mut Topics,
    now: Time,
    peer: PeerId,
    a: &Announcement,
) -> TopicId {
    let via = a.via.clone().expect("a flow");
    let first = via.to.iter().min().copied().unwrap_or(0);
    let key = (peer, via.source, via.run, a.name.clone(), first);
    *topics.entry(key).or_insert_with(|| {
        let config = TopicConfig {
            type_hash: a.type_hash,
            definition: a.definition.clone(),
            priority: a.priority,
            depth: a.depth,
            reliability: a.reliability,
            ordering: a.ordering,
            latched: a.latched,
            via: Some(via),
            ..TopicConfig::new(a.name.clone(), a.type_name.clone())
        };
        radio.add_topic(now, peer, config).expect("a topic")
    })
}

fn offer(radio: &mut Radio<Carried>, topics: &mut Topics, now: Time, peer: PeerId, p: &Passing) {
    let topic = topic(radio, topics, now, peer, &p.announcement);
    let len = p.bytes.len() as u32;
    let geometry = match p.packed {
        true => Geometry::packed(len),
        false => Geometry::new(len - p.parts.iter().sum::<u32>(), &p.parts).expect("a shape"),
    };
    let message = Message {
        body: Carried(Arc::new(p.bytes.clone()), geometry),
        stamp: p.stamp,
        origin: p.origin,
        route: Some(Route {
            number: p.number,
            hops: 4,
            to: p.to,
        }),
        expires: None,
    };
    let _ = radio.offer(now, topic, message);
}
