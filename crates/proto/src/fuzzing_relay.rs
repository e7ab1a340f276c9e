//! Entry point for the fuzz target of relays. It panics only if an invariant is broken.

use crate::{
    AirtimeModel, Announcement, Arriving, Body, Down, Geometry, Incoming, PeerConfig, PeerId, Radio,
    RadioConfig, ReceiveLimits, Relay, RemoteTopic, RouteConfig, Sink, Slot, Taken, TopicConfig, TopicId,
    Transmit, Verdict, Via,
};
use core::cell::RefCell;
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes that have arrived, or are still arriving.
#[derive(Clone)]
struct Bytes(Rc<RefCell<Vec<u8>>>, Geometry, Option<Arriving>);

impl Bytes {
    fn new(geometry: Geometry, arriving: Option<Arriving>) -> Self {
        let bytes = vec![0; geometry.total_len() as usize];
        Bytes(Rc::new(RefCell::new(bytes)), geometry, arriving)
    }
}

impl Body for Bytes {
    fn geometry(&self) -> Geometry {
        self.1
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        if let Some(a) = &self.2 {
            let ready = a.ready().expect("what will not be complete is not sent");
            assert!(
                offset as usize + to.len() <= ready as usize,
                "sent before it came"
            );
        }
        to.copy_from_slice(&self.0.borrow()[offset as usize..][..to.len()]);
    }

    fn arriving(&self) -> Option<&Arriving> {
        self.2.as_ref()
    }
}

struct Host {
    relay: Relay<Bytes>,
    open: BTreeMap<Slot, (Taken, Bytes)>,
    next: u64,
    now: Time,
}

impl Sink for Host {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let taken = self.relay.begin(m)?;
        assert!(taken.local || taken.forward || m.route.is_some());
        let slot = Slot(self.next);
        self.next += 1;
        let bytes = Bytes::new(m.geometry, taken.arriving.clone());
        self.open.insert(slot, (taken, bytes));
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let (_, to) = self.open.get_mut(&slot).expect("an open slot");
        to.0.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn grown(&mut self, slot: Slot, ready: u32) {
        let (taken, bytes) = self.open.get_mut(&slot).expect("an open slot");
        self.relay.grown(taken, ready, || bytes.clone());
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (taken, bytes) = self.open.remove(&slot).expect("an open slot");
        self.relay.finish(taken, Some(bytes));
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        let (taken, _) = self.open.remove(&slot).expect("an open slot");
        self.relay.abort(&taken);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let hosts = [100, 200];
        let of_source = a
            .via
            .as_ref()
            .is_some_and(|v| hosts.get(peer.0 as usize) == Some(&v.source));
        if self.relay.announced((peer, topic), a, of_source, true, true) {
            Verdict::Accept
        } else {
            Verdict::Refuse
        }
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

/// Frames behind a handshake, from two peers of a host that relays for both. Whatever the frames contain, tables stay
/// bounded, the counters balance, and the host carries on. Each piece of the input is a length byte, whose lowest bit
/// selects the peer, and that many bytes of frames.
pub fn relay(data: &[u8]) {
    let config = RadioConfig {
        host: 1,
        route: Some(RouteConfig {
            relay: true,
            ..RouteConfig::default()
        }),
        max_queued_bytes: 30_000,
        receive: ReceiveLimits {
            max_message: 20_000,
            max_partial: 6,
            max_partial_bytes: 40_000,
            max_topics: 8,
            ..ReceiveLimits::default()
        },
        ..RadioConfig::new(1, AirtimeModel::wifi(6_000_000))
    };
    let mut radio: Radio<Bytes> = Radio::new(config).expect("a valid configuration");
    let peers = [100, 200].map(|host| {
        let config = PeerConfig {
            host,
            ..PeerConfig::default()
        };
        radio.add_peer(Time::ZERO, config).expect("a valid peer")
    });
    let mut host = Host {
        relay: Relay::new(1),
        open: BTreeMap::new(),
        next: 0,
        now: Time::ZERO,
    };
    let all = |_: PeerId, _: &crate::FlowKey, v: &Via| (1 << v.to.len()) - 1;
    let own = TopicConfig {
        via: Some(Via {
            source: 1,
            name: "own".into(),
            run: 1,
            to: vec![100, 200, 300],
        }),
        ..TopicConfig::new("/own", "t/T")
    };
    let key = host
        .relay
        .open(Time::ZERO, &mut radio, &own, &peers, all)
        .expect("a valid flow");
    let mut now = Time::ZERO;
    let (mut numbers, mut datagram) = ([0; 2], Vec::new());
    let mut step = |radio: &mut Radio<Bytes>, host: &mut Host, by: Duration| {
        now += by;
        host.now = now;
        radio.handle_timeout(now, host);
        host.relay.sweep(now);
        host.relay
            .run(now, radio, &peers, all, &mut ())
            .expect("topics are bounded");
        let mut send = |radio: &mut Radio<Bytes>| {
            for _ in 0..20 {
                match radio.poll_transmit(now, &mut datagram) {
                    Transmit::Datagram { .. } => assert!(datagram.len() <= 1472),
                    Transmit::Wait(t) => {
                        assert!(t > now, "waits for the past");
                        break;
                    }
                    Transmit::Idle => break,
                }
            }
        };
        send(radio);
        // A peer whose last timeout expired while this was sent is due at once, but only once.
        if radio.next_timeout().is_some_and(|t| t <= now) {
            radio.handle_timeout(now, host);
            send(radio);
        }
        assert!(
            radio.next_timeout().is_none_or(|t| t > now),
            "a timeout that does not move"
        );
        now
    };
    let hello = |session: u32| {
        let mut out = Vec::new();
        crate::wire::Header { session, number: 0 }.encode(&mut out);
        crate::wire::Frame::Hello(crate::wire::Hello {
            host: u64::from(session),
            seen: 1,
            asks: false,
            states_watched: true,
            max_message: 20_000,
            holds: 700,
            name: "peer",
        })
        .encode(&mut out);
        out
    };
    for (i, peer) in peers.iter().enumerate() {
        let known = radio.handle(Time::ZERO, *peer, &hello(10 + i as u32), &mut host);
        known.expect("a greeting");
    }
    let mut rest = data;
    while let Some((head, tail)) = rest.split_first() {
        let (i, n) = (usize::from(head & 1), usize::from(head >> 1).min(tail.len()));
        let (frames, tail) = tail.split_at(n);
        rest = tail;
        numbers[i] += 1;
        let mut posed = Vec::new();
        crate::wire::Header {
            session: 10 + i as u32,
            number: numbers[i],
        }
        .encode(&mut posed);
        posed.extend_from_slice(frames);
        let at = step(&mut radio, &mut host, Duration::from_millis(7));
        let _ = radio.handle(at, peers[i], &posed, &mut host);
        let g = Geometry::new(100, &[]).expect("small");
        let message = crate::Message::new(Bytes::new(g, None), at);
        let all = (&key, u64::MAX);
        let _ = host.relay.offer(at, &mut radio, all, message, &mut ());
        step(&mut radio, &mut host, Duration::from_micros(300));
        assert!(radio.ways().count() <= 200);
        for (_, t) in radio.topics() {
            assert_eq!(t.offered, t.sent + t.queued + t.drops.total(), "{t:?}");
        }
    }
    for _ in 0..30 {
        step(&mut radio, &mut host, Duration::from_secs(1));
    }
    assert!(host.open.is_empty(), "what is never complete is given up");
}
