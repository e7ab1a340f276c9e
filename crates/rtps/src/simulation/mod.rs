//! Participants on a network in virtual time, which loses, duplicates and delays datagrams from a seeded source.

mod attacker;
mod bounds;
mod delay;
mod discovery;
mod flood;
mod hostile;
mod samples;

use crate::{Config, EndpointConfig, Event, GuidPrefix, Participant, Qos, Sample};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

/// xorshift64
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.next() % 100 < percent
    }
}

/// What the network does to datagrams, each in percent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) lost: u32,
    pub(crate) doubled: u32,
    pub(crate) late: u32,
}

pub(crate) const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400);

pub(crate) struct Network {
    pub(crate) now: Duration,
    pub(crate) hosts: Vec<Host>,
    pub(crate) faults: Faults,
    random: Random,
    flying: BTreeMap<(Duration, u64), (usize, Vec<u8>, SocketAddrV4)>,
    sent: u64,
    /// Number of bytes sent to each address.
    pub(crate) carried: BTreeMap<SocketAddrV4, usize>,
}

pub(crate) struct Host {
    pub(crate) participant: Participant,
    pub(crate) events: Vec<Event>,
    pub(crate) up: bool,
    /// Whether its program takes events.
    pub(crate) reads: bool,
}

pub(crate) fn address(n: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, n as u8 + 1), 7411)
}

pub(crate) fn config(n: usize) -> Config {
    let mut prefix = GuidPrefix(*b"\x01\xfeSIMULATED0");
    prefix.0[11] = b'0' + n as u8;
    let mut config = Config::new(prefix, 0);
    config.metatraffic = vec![address(n)];
    config.unicast = vec![address(n)];
    config.announce_to = vec![GROUP];
    config.reach.networks = vec![(*address(n).ip(), 24)];
    config
}

pub(crate) fn topic(name: &str, qos: Qos) -> EndpointConfig {
    EndpointConfig::new(name, "test::Type", qos)
}

impl Network {
    pub(crate) fn new(seed: u64, faults: Faults, configs: impl IntoIterator<Item = Config>) -> Self {
        let hosts = configs.into_iter().map(|config| Host {
            participant: Participant::new(config).expect("a participant"),
            events: Vec::new(),
            up: true,
            reads: true,
        });
        Network {
            now: Duration::from_secs(1000),
            hosts: hosts.collect(),
            faults,
            random: Random::new(seed),
            flying: BTreeMap::new(),
            sent: 0,
            carried: BTreeMap::new(),
        }
    }

    pub(crate) fn p(&mut self, n: usize) -> &mut Participant {
        &mut self.hosts[n].participant
    }

    /// Returns the samples that a host received so far, from its events.
    pub(crate) fn samples(&mut self, n: usize) -> Vec<Sample> {
        let events = std::mem::take(&mut self.hosts[n].events);
        let mut out = Vec::new();
        for event in events {
            match event {
                Event::Sample(sample) => out.push(sample),
                other => self.hosts[n].events.push(other),
            }
        }
        out
    }

    fn fly(&mut self, to: usize, bytes: &[u8], from: usize) {
        let mut times = 1;
        if self.random.chance(self.faults.lost) {
            times = 0;
        } else if self.random.chance(self.faults.doubled) {
            times = 2;
        }
        for _ in 0..times {
            let mut delay = Duration::from_micros(100 + u64::from(self.random.next() % 50));
            if self.random.chance(self.faults.late) {
                delay += Duration::from_micros(u64::from(self.random.next() % 20_000));
            }
            self.sent += 1;
            let key = (self.now + delay, self.sent);
            self.flying.insert(key, (to, bytes.to_vec(), address(from)));
        }
    }

    /// Lets each host send and take events until there is nothing more to do now.
    fn settle(&mut self) {
        let mut out = Vec::new();
        for n in 0..self.hosts.len() {
            if !self.hosts[n].up {
                continue;
            }
            while let Some(to) = self.hosts[n].participant.poll_transmit(self.now, &mut out) {
                assert!(out.len() <= 65_507, "a datagram of {}", out.len());
                *self.carried.entry(to).or_default() += out.len();
                for other in 0..self.hosts.len() {
                    if other != n && (to == GROUP || to == address(other)) {
                        self.fly(other, &out, n);
                    }
                }
            }
            while self.hosts[n].reads
                && let Some(event) = self.hosts[n].participant.poll_event()
            {
                self.hosts[n].events.push(event);
            }
        }
    }

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let timeouts = self
                .hosts
                .iter()
                .filter(|h| h.up)
                .filter_map(|h| h.participant.next_timeout());
            let next = timeouts.chain(self.flying.keys().next().map(|(at, _)| *at)).min();
            match next.filter(|at| *at <= end) {
                None => break,
                Some(at) => self.now = self.now.max(at),
            }
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, bytes, from) = entry.remove();
                if self.hosts[to].up {
                    let taken = self.hosts[to].participant.handle(self.now, &bytes, from);
                    taken.expect("what one participant writes another reads");
                }
            }
        }
        self.now = end;
        self.settle();
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        self.run(Duration::from_millis(ms));
    }
}
