//! What no single field of a configuration shows.

use super::{CarrierKind, Config, PeerConfig, Reliability};
use crate::control::MAX_EVERY;
use crate::keys::check_name;
use crate::lock::plain;
use crate::names;
use crate::rules::{Allow, Relayed};
use std::collections::{BTreeMap, BTreeSet};

impl Config {
    /// Checks what no single field shows.
    pub(super) fn check(&self) -> Result<(), String> {
        let radio = &self.radio;
        if !(1..=16).contains(&radio.hops) {
            return Err(format!("radio.hops is {}; it must be 1 to 16", radio.hops));
        }
        if let Some(name) = &radio.name
            && (name.is_empty() || plain(name) != *name)
        {
            return Err(format!(
                "radio.name is '{name}'; write 1 to 64 letters, digits and underscores, such as wifi"
            ));
        }
        if radio.gain.is_some_and(|g| !(0.5..=4.0).contains(&g)) {
            return Err("radio.gain must be 0.5 to 4.0; leave it out for the default".into());
        }
        if radio.least_share < 0.01 {
            return Err("radio.least_share must be 1% to 100%".into());
        }
        let shares = radio.min_share + self.topics.iter().map(|t| t.min_share).sum::<f64>();
        if shares > 0.9 {
            return Err(format!(
                "the min_share of radio and topics are {:.0} % together; leave what is important at least 10 %",
                shares * 100.0
            ));
        }
        if self.host.is_empty() || self.peers.is_empty() {
            return Err("a link needs a `host` name and at least one entry under `peers`".into());
        }
        let mut names = BTreeSet::from([self.host.as_str()]);
        for peer in &self.peers {
            if peer.name.is_empty() || !names.insert(&peer.name) {
                return Err(format!("the peer name '{}' is empty or used twice", peer.name));
            }
            let carried = peer.relay.as_ref().and_then(Relayed::bad_pattern);
            if let Some(pattern) = peer.allow.as_ref().and_then(Allow::bad_pattern).or(carried) {
                return Err(format!(
                    "peer '{}': `allow` or `relay` names '{pattern}': write a topic's full name, such as /scan, '/camera/*', or '*'",
                    peer.name
                ));
            }
        }
        self.check_relays()?;
        match self.carrier() {
            CarrierKind::Serial => self.check_serial()?,
            kind => self.check_addresses(kind)?,
        }
        let mut topics = BTreeSet::new();
        for topic in &self.topics {
            if !topic.name.starts_with('/') || topic.name.len() < 2 || topic.name.len() > bus::MAX_NAME {
                return Err(format!(
                    "topic '{}': write its full name, such as /scan",
                    topic.name
                ));
            }
            if !topics.insert(&topic.name) {
                return Err(format!("topic {} is listed twice", topic.name));
            }
            if !(1..=1024).contains(&topic.depth()) {
                return Err(format!(
                    "topic {}: depth is {}; it must be 1 to 1024",
                    topic.name,
                    topic.depth()
                ));
            }
            if !(1..=MAX_EVERY).contains(&topic.every) {
                return Err(format!(
                    "topic {}: every is {}; it must be 1 (all) to {MAX_EVERY}",
                    topic.name, topic.every
                ));
            }
            if let Some(share) = topic.redundancy {
                if topic.reliability != Reliability::Redundant {
                    return Err(format!(
                        "topic {}: `redundancy` is for `reliability: redundant`",
                        topic.name
                    ));
                }
                if !(share > 0.0 && share <= 1.0) {
                    return Err(format!(
                        "topic {}: redundancy is {share}; it must be more than 0 and at most 1",
                        topic.name
                    ));
                }
            }
            if let Some(expiry) = topic.expiry {
                if topic.reliability != Reliability::Reliable {
                    return Err(format!(
                        "topic {}: `expiry` is for `reliability: reliable`; use `deadline`",
                        topic.name
                    ));
                }
                if expiry.is_zero() {
                    return Err(format!("topic {}: `expiry` must be more than 0", topic.name));
                }
            }
        }
        self.check_namespaces()?;
        self.check_services()
    }

    fn check_relays(&self) -> Result<(), String> {
        if let Some(pattern) = self.relay.as_ref().and_then(Relayed::bad_pattern) {
            return Err(format!(
                "relay names '{pattern}': write `true`, or full names and patterns, such as [/scan, '/camera/*']"
            ));
        }
        if !self.routes() {
            return Ok(());
        }
        if self.relay.as_ref().is_some_and(Relayed::is_any) && self.neighbours().len() < 2 {
            return Err("`relay` forwards between peers: it needs at least two with an `address`".into());
        }
        if self.peers.len() > proto::MAX_DESTINATIONS {
            return Err(format!(
                "{} peers: with relays there may be at most {}",
                self.peers.len(),
                proto::MAX_DESTINATIONS
            ));
        }
        let relays = |p: &PeerConfig| p.relay.as_ref().is_some_and(Relayed::is_any);
        match self.peers.iter().find(|p| relays(p) && p.address.is_none()) {
            Some(peer) => Err(format!(
                "peer '{}' is a relay for this host, so it needs an `address`",
                peer.name
            )),
            None => Ok(()),
        }
    }

    /// Two names that become one would let two topics merge on this host's bus.
    fn check_namespaces(&self) -> Result<(), String> {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        let mut here: BTreeMap<String, &str> = BTreeMap::new();
        for peer in &self.peers {
            let namespace = names::namespace(peer);
            if peer.namespace.is_some() && !names::is_good(&namespace) {
                return Err(format!(
                    "peer '{}': the namespace '{namespace}' must be / and words of letters, digits and _, such as \
                     /robot1 or '/{{peer}}'",
                    peer.name
                ));
            }
            if peer.namespace.is_some()
                && let Some(other) = seen.insert(namespace.clone(), &peer.name)
            {
                return Err(format!(
                    "the peers '{other}' and '{}' have the same namespace {namespace}, where their topics would \
                     merge: give each its own",
                    peer.name
                ));
            }
            for topic in &self.topics {
                let bus = names::on_bus(peer, &topic.name);
                if bus.len() > bus::MAX_NAME {
                    return Err(format!("topic {bus}: at most {} bytes", bus::MAX_NAME));
                }
                if !topic.direction.receives() {
                    continue;
                }
                if let Some(other) = here.insert(bus.clone(), &topic.name).filter(|t| *t != topic.name) {
                    return Err(format!(
                        "the topics {other} and {} of peers both become {bus} here: choose another namespace",
                        topic.name
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_serial(&self) -> Result<(), String> {
        let radio = &self.radio;
        if radio.line.is_none() || radio.baud.is_none_or(|b| b < 300) {
            return Err(
                "a serial carrier needs `radio.line`, such as /dev/ttyUSB0, and `radio.baud`, at least 300"
                    .into(),
            );
        }
        if radio.bind.is_some() || self.keys.is_some() || radio.rate.is_some() {
            return Err(
                "`radio.bind`, `radio.rate` and `keys` are not for a serial carrier: leave them out".into(),
            );
        }
        match self.peers.as_slice() {
            [PeerConfig { address: None, .. }] => Ok(()),
            [_] => Err("the peer at the other end of a serial line has no `address`: leave it out".into()),
            _ => Err("a serial line has one peer at its other end".into()),
        }
    }

    /// What corrects the pacer has no meaning without one.
    fn check_wire(&self) -> Result<(), String> {
        if self.radio.hops == 1 && self.radio.gain.is_none() {
            return Ok(());
        }
        Err(
            "`radio.hops` and `radio.gain` say how a radio is paced, and with `radio.rate: unlimited` nothing is: leave \
             them out, or give a bit rate"
                .into(),
        )
    }

    fn check_addresses(&self, kind: CarrierKind) -> Result<(), String> {
        let radio = &self.radio;
        let Some(bind) = radio.bind else {
            return Err("`radio.bind` is missing: the local address and port, such as 0.0.0.0:7400".into());
        };
        if radio.line.is_some() || radio.baud.is_some() {
            return Err("`radio.line` and `radio.baud` are for `radio.carrier: serial`".into());
        }
        if radio.rate.is_none() {
            return Err(
                "`radio.rate` is missing: the radio's bit rate, such as 6Mbit/s, auto, or unlimited for a wire".into(),
            );
        }
        if self.is_wire() {
            self.check_wire()?;
        }
        let mut addresses = BTreeSet::from([bind]);
        for peer in &self.peers {
            let Some(address) = peer.address else {
                if self
                    .peers
                    .iter()
                    .any(|p| p.relay.as_ref().is_some_and(Relayed::is_any))
                {
                    continue;
                }
                return Err(format!(
                    "peer '{}' has no `address`, such as 192.168.1.7:7400, and no other peer is a `relay` to it",
                    peer.name
                ));
            };
            if !addresses.insert(address) {
                return Err(format!(
                    "the address {address} of peer '{}' is used twice",
                    peer.name
                ));
            }
            if address.is_ipv4() != bind.is_ipv4() {
                return Err(format!(
                    "peer '{}' and radio.bind must both be IPv4 or both IPv6",
                    peer.name
                ));
            }
        }
        if kind == CarrierKind::Quic {
            if self.keys.is_none() {
                return Err(
                    "the carrier quic needs `keys`: the folder that `ropewalk keys host` made".into(),
                );
            }
            for name in self.peers.iter().map(|p| &p.name).chain([&self.host]) {
                check_name(name).map_err(|e| e.to_string())?;
            }
            return Ok(());
        }
        match addresses.iter().find(|a| !a.ip().is_loopback()) {
            Some(address) if !radio.insecure_udp => Err(format!(
                "{address} is not on this host, and plain UDP neither encrypts nor checks who sends: give the host \
                 `keys` (`ropewalk keys --help`), or set `radio.insecure_udp: true` if the network is closed"
            )),
            _ => Ok(()),
        }
    }
}
