//! Checks that involve several fields of a configuration.

use super::address;
use super::position::Problem;
use super::{
    CarrierKind, Config, Medium, PeerConfig, Rate, Reliability, TopicConfig, When, namespace, on_bus,
};
use crate::keys::check_name;
use crate::names;
use crate::rules::{Allow, Relayed};
use bridge::plain;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// With less memory, none of a peer's topics would get anything through, in bytes.
const LEAST_MEMORY: u64 = 1 << 20;

impl Config {
    /// Checks that the fields fit each other.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let radio = &self.radio;
        if let Some(name) = &radio.name
            && (name.is_empty() || plain(name) != *name)
        {
            return Err(Problem::at(
                "radio.name",
                format!(
                    "radio.name is '{name}'; write 1 to 64 letters, digits and underscores, such as wifi"
                ),
            ));
        }
        if radio.gain.is_some_and(|g| !(0.5..=4.0).contains(&g)) {
            return Err(Problem::at(
                "radio.gain",
                "radio.gain must be 0.5 to 4.0; leave it out for the default",
            ));
        }
        if radio.least_share < 0.01 {
            return Err(Problem::at(
                "radio.least_share",
                "radio.least_share must be 1% to 100%",
            ));
        }
        let shares = radio.min_share + self.topics.iter().map(|t| t.min_share).sum::<f64>();
        if shares > 0.9 {
            let last = self.topics.iter().rposition(|t| t.min_share > 0.0);
            return Err(Problem::at(
                last.map_or("radio.min_share".into(), |i| format!("topics.{i}.min_share")),
                format!(
                    "the min_share of radio and topics add up to {:.0} %: leave at least 10 % for important messages",
                    shares * 100.0
                ),
            ));
        }
        if self.host.is_empty() || self.peers.is_empty() {
            let missing = if self.host.is_empty() { "host" } else { "peers" };
            return Err(Problem::at(
                missing,
                "a link needs a `host` name and at least one entry under `peers`",
            ));
        }
        self.check_peers()?;
        self.check_relays()?;
        self.check_duty()?;
        match self.carrier() {
            CarrierKind::Serial => self.check_serial()?,
            kind => self.check_addresses(kind)?,
        }
        self.check_topics()?;
        self.check_namespaces()?;
        self.check_services()
    }

    fn check_peers(&self) -> Result<(), Problem> {
        let mut names = BTreeSet::new();
        for (i, peer) in self.peers.iter().enumerate() {
            let wrong = match peer.name.as_str() {
                "" => Some("a peer's `name` is empty: write the `host` of that peer".into()),
                own if own == self.host => Some(format!(
                    "the peer name '{own}' is also this host's own `host`: give each host its own name"
                )),
                name if !names.insert(name) => Some(format!(
                    "the peer name '{name}' is used twice: give each host its own"
                )),
                _ => None,
            };
            if let Some(text) = wrong {
                return Err(Problem::at(format!("peers.{i}.name"), text));
            }
            if peer.memory.is_some_and(|m| m < LEAST_MEMORY) {
                return Err(Problem::at(
                    format!("peers.{i}.memory"),
                    format!("peer '{}': `memory` must be at least 1MiB", peer.name),
                ));
            }
            let carried = peer.relay.as_ref().and_then(Relayed::bad_pattern);
            if let Some(pattern) = peer.allow.as_ref().and_then(Allow::bad_pattern).or(carried) {
                let key = if carried.is_some() { "relay" } else { "allow" };
                return Err(Problem::at(
                    format!("peers.{i}.{key}"),
                    format!(
                        "peer '{}': `{key}` names '{pattern}': write a topic's full name, such as /scan, '/camera/*', or '*'",
                        peer.name
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_topics(&self) -> Result<(), Problem> {
        let mut topics = BTreeSet::new();
        for (i, topic) in self.topics.iter().enumerate() {
            check_topic(topic).map_err(|p| p.below(&format!("topics.{i}")))?;
            if topic.when == When::Watched && self.routes() {
                return Err(Problem::at(
                    format!("topics.{i}.when"),
                    format!(
                        "topic {}: `when: watched` is not for hosts with a `relay`, because a relay does \
                         not report subscribers: leave `when` out, or let another link without `relay` \
                         carry the topic",
                        topic.name
                    ),
                ));
            }
            if !topics.insert(&topic.name) {
                return Err(Problem::at(
                    format!("topics.{i}.name"),
                    format!(
                        "topic {} is listed twice; `direction: both` sends and receives it",
                        topic.name
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_relays(&self) -> Result<(), Problem> {
        if let Some(pattern) = self.relay.as_ref().and_then(Relayed::bad_pattern) {
            return Err(Problem::at(
                "relay",
                format!(
                    "relay names '{pattern}': write `true`, or full names and patterns, such as [/scan, '/camera/*']"
                ),
            ));
        }
        if !self.routes() {
            return Ok(());
        }
        if self.relay.as_ref().is_some_and(Relayed::is_any) && self.neighbours().len() < 2 {
            return Err(Problem::at(
                "relay",
                "`relay` forwards between peers: it needs at least two with an `address`",
            ));
        }
        if self.peers.len() > proto::MAX_DESTINATIONS {
            return Err(Problem::at(
                "peers",
                format!(
                    "there are {} peers, but with relays at most {} are possible",
                    self.peers.len(),
                    proto::MAX_DESTINATIONS
                ),
            ));
        }
        let relays = |p: &PeerConfig| p.relay.as_ref().is_some_and(Relayed::is_any);
        match self.peers.iter().position(|p| relays(p) && p.address.is_none()) {
            Some(i) => Err(Problem::at(
                format!("peers.{i}.relay"),
                format!(
                    "peer '{}' is a relay for this host, so it needs an `address`, such as 192.168.1.7:7400",
                    self.peers[i].name
                ),
            )),
            None => Ok(()),
        }
    }

    /// If two names became one, two topics would merge on this host's bus.
    fn check_namespaces(&self) -> Result<(), Problem> {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        let mut here: BTreeMap<String, &str> = BTreeMap::new();
        for (i, peer) in self.peers.iter().enumerate() {
            let namespace = namespace(peer);
            let at_namespace = |text| Problem::at(format!("peers.{i}.namespace"), text);
            if peer.namespace.is_some() && !names::is_good(&namespace) {
                return Err(at_namespace(format!(
                    "peer '{}': the namespace '{namespace}' must be / and words of letters, digits and _, such as \
                     /robot1 or '/{{peer}}'",
                    peer.name
                )));
            }
            if peer.namespace.is_some()
                && let Some(other) = seen.insert(namespace.clone(), &peer.name)
            {
                return Err(at_namespace(format!(
                    "the peers '{other}' and '{}' have the same namespace {namespace}, where their topics would \
                     merge: give each its own",
                    peer.name
                )));
            }
            for (t, topic) in self.topics.iter().enumerate() {
                let bus = on_bus(peer, &topic.name);
                if bus.len() > bus::MAX_NAME {
                    let text = format!("topic {bus}: use at most {} bytes", bus::MAX_NAME);
                    return Err(Problem::at(format!("topics.{t}.name"), text));
                }
                if !topic.direction.receives() {
                    continue;
                }
                if let Some(other) = here.insert(bus.clone(), &topic.name).filter(|t| *t != topic.name) {
                    return Err(at_namespace(format!(
                        "the topics {other} and {} of peers both become {bus} here: choose another namespace",
                        topic.name
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_duty(&self) -> Result<(), Problem> {
        let (radio, kind) = (&self.radio, self.carrier());
        if radio.lora.is_some() && kind != CarrierKind::Serial {
            return Err(Problem::at(
                "radio.lora",
                "`radio.lora` is for a modem at a serial line: set `carrier: serial`, or leave it out",
            ));
        }
        let is_known = kind == CarrierKind::Serial || matches!(radio.rate, Some(Rate::Set(_)));
        if radio.duty <= 0.0 || (radio.duty < 1.0 && !is_known) {
            return Err(Problem::at(
                "radio.duty",
                "`radio.duty` is a share of the time above 0%, and needs a known rate: give `radio.rate` in bit/s",
            ));
        }
        Ok(())
    }

    fn check_serial(&self) -> Result<(), Problem> {
        let radio = &self.radio;
        if radio.line.is_none() || radio.baud.is_none() {
            let key = if radio.line.is_none() {
                "radio.line"
            } else {
                "radio.baud"
            };
            return Err(Problem::at(
                key,
                "a serial carrier needs `radio.line`, such as /dev/ttyUSB0, and `radio.baud`, at least 300",
            ));
        }
        if radio.medium != Medium::default() {
            return Err(Problem::at(
                "radio.medium",
                "`radio.medium` is not for a serial carrier, whose medium is known: leave it out",
            ));
        }
        let foreign = [
            ("radio.bind", radio.bind.is_some()),
            ("radio.rate", radio.rate.is_some()),
            ("radio.mtu", radio.mtu.is_some()),
            ("keys", self.keys.is_some()),
        ];
        if let Some((key, _)) = foreign.iter().find(|(_, given)| *given) {
            return Err(Problem::at(
                *key,
                "`radio.bind`, `radio.rate`, `radio.mtu` and `keys` are not for a serial carrier: leave them out",
            ));
        }
        match self.peers.as_slice() {
            [PeerConfig { address: None, .. }] => Ok(()),
            [_] => Err(Problem::at(
                "peers.0.address",
                "the peer at the other end of a serial line has no `address`: leave it out",
            )),
            _ => Err(Problem::at(
                "peers.1",
                "a serial line has one peer at its other end: leave the other `peers` out",
            )),
        }
    }

    /// Keys that correct the pacer are meaningless without pacing.
    fn check_wire(&self) -> Result<(), Problem> {
        if self.radio.hops == 1 && self.radio.gain.is_none() {
            return Ok(());
        }
        let key = if self.radio.gain.is_some() {
            "radio.gain"
        } else {
            "radio.hops"
        };
        Err(Problem::at(
            key,
            "`radio.hops` and `radio.gain` adjust the pacing, and `radio.rate: unlimited` has none: leave \
             them out, or give a bit rate",
        ))
    }

    fn check_addresses(&self, kind: CarrierKind) -> Result<(), Problem> {
        let radio = &self.radio;
        let Some(bind) = radio.bind else {
            return Err(Problem::at(
                "radio.bind",
                "`radio.bind` is missing: the local address and port, such as 0.0.0.0:7400",
            ));
        };
        if radio.line.is_some() || radio.baud.is_some() {
            let key = if radio.line.is_some() {
                "radio.line"
            } else {
                "radio.baud"
            };
            return Err(Problem::at(
                key,
                "`radio.line` and `radio.baud` are for `radio.carrier: serial`: leave them out",
            ));
        }
        if radio.rate.is_none() {
            return Err(Problem::at(
                "radio.rate",
                "`radio.rate` is missing: the radio's bit rate, such as 6Mbit/s, auto, or unlimited for a wire",
            ));
        }
        if self.is_wire() {
            self.check_wire()?;
        }
        if address::lacks_device(bind) {
            return Err(Problem::at("radio.bind", no_device(bind)));
        }
        self.check_peer_addresses(bind)?;
        if kind == CarrierKind::Tls && !self.has_wire() {
            return Err(Problem::at(
                "radio.carrier",
                "the carrier tls is for cables: set `rate: unlimited` or `medium: wire`, or leave `carrier` \
                 out for a radio",
            ));
        }
        match kind.has_keys() {
            true => self.check_keys(kind),
            false => self.check_loopback(bind),
        }
    }

    fn check_peer_addresses(&self, bind: SocketAddr) -> Result<(), Problem> {
        let mut addresses = BTreeSet::from([bind]);
        for (i, peer) in self.peers.iter().enumerate() {
            let at_address = |text| Problem::at(format!("peers.{i}.address"), text);
            let Some(address) = peer.address else {
                if self
                    .peers
                    .iter()
                    .any(|p| p.relay.as_ref().is_some_and(Relayed::is_any))
                {
                    continue;
                }
                return Err(at_address(format!(
                    "peer '{}' has no `address`, such as 192.168.1.7:7400, and no other peer is a `relay` to it",
                    peer.name
                )));
            };
            if address == bind {
                return Err(at_address(format!(
                    "the address {address} of peer '{}' is this host's own `radio.bind`: give the peer's \
                     address",
                    peer.name
                )));
            }
            if address::lacks_device(address) {
                return Err(at_address(no_device(address)));
            }
            if address.port() == 0 {
                return Err(at_address(format!(
                    "the `address` {address} of peer '{}' has port 0: give the port of the peer's `radio.bind`",
                    peer.name
                )));
            }
            if !addresses.insert(address) {
                return Err(at_address(format!(
                    "the address {address} of peer '{}' is used twice: give each peer its own",
                    peer.name
                )));
            }
            if address.is_ipv4() != bind.is_ipv4() {
                return Err(at_address(format!(
                    "the `address` of peer '{}' and `radio.bind` must both be IPv4 or both IPv6",
                    peer.name
                )));
            }
        }
        Ok(())
    }

    fn check_keys(&self, kind: CarrierKind) -> Result<(), Problem> {
        if self.keys.is_none() {
            let name = kind.name();
            return Err(Problem::at(
                "radio.carrier",
                format!(
                    "the carrier {name} needs `keys`: give the folder that `ropewalk keys host` \
                         created"
                ),
            ));
        }
        let peers = self.peers.iter().enumerate();
        let peers = peers.map(|(i, p)| (format!("peers.{i}.name"), &p.name));
        for (path, name) in peers.chain([("host".into(), &self.host)]) {
            check_name(name).map_err(|e| Problem::at(path, e.to_string()))?;
        }
        Ok(())
    }

    /// Only hosts with keys may talk beyond this host, unless the user allows it.
    fn check_loopback(&self, bind: SocketAddr) -> Result<(), Problem> {
        let peers = self.peers.iter().enumerate();
        let peers = peers.filter_map(|(i, p)| Some((format!("peers.{i}.address"), p.address?)));
        let mut all = [("radio.bind".into(), bind)].into_iter().chain(peers);
        match all.find(|(_, a)| !a.ip().is_loopback()) {
            Some((path, address)) if !self.radio.insecure_udp => Err(Problem::at(
                path,
                format!(
                    "{address} is not on this host, and plain UDP neither encrypts nor authenticates: give the host \
                 `keys` (`ropewalk keys --help`), or set `radio.insecure_udp: true` if the network is closed"
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// A link-local address says nothing without the device.
fn no_device(address: SocketAddr) -> String {
    format!(
        "{address} needs its network device, such as [fe80::7%wlan0]:7400: `ip address` lists the devices"
    )
}

/// Checks one topic on its own.
fn check_topic(topic: &TopicConfig) -> Result<(), Problem> {
    let name = &topic.name;
    let wrong = |key: &str, text: String| Err(Problem::at(key, format!("topic {name}: {text}")));
    let foreign = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '*');
    let below = name.strip_suffix("/*").unwrap_or(name);
    if !name.starts_with('/') || below.len() < 2 || below.contains(foreign) {
        let text = format!(
            "topic '{name}': write its full name, such as /scan, or '/camera/*' for all below /camera"
        );
        return Err(Problem::at("name", text));
    }
    if name.len() > bus::MAX_NAME {
        return wrong("name", format!("a name has at most {} bytes", bus::MAX_NAME));
    }
    if below != name && topic.min_share > 0.0 {
        return wrong(
            "min_share",
            "`min_share` is for one topic, not for a pattern: list that topic by its name".into(),
        );
    }
    if topic.deadline.is_some_and(|d| d.is_zero()) {
        return wrong(
            "deadline",
            "`deadline` 0 would drop every message: write more than 0, or leave it out".into(),
        );
    }
    if topic.tf.is_some() && !topic.direction.sends() {
        return wrong(
            "tf",
            "`tf` filters sent messages, and `direction: in` only receives: filter on the sender's host"
                .into(),
        );
    }
    if topic.when == When::Watched && !topic.direction.sends() {
        return wrong(
            "when",
            "`when` is for sent messages, and `direction: in` only receives: write it on the sender's host"
                .into(),
        );
    }
    if let Some(most) = topic.max_message {
        if !topic.direction.receives() {
            return wrong(
                "max_message",
                "`max_message` bounds received messages, and `direction: out` only sends: set it on the receiver's host".into(),
            );
        }
        if !(1..=64 << 20).contains(&most) {
            return wrong(
                "max_message",
                format!("`max_message` is {most} bytes; it must be 1B to 64MiB"),
            );
        }
    }
    if let Some(share) = topic.redundancy {
        if topic.reliability != Reliability::Redundant {
            return wrong(
                "redundancy",
                "`redundancy` is for `reliability: redundant`".into(),
            );
        }
        if !(share > 0.0 && share <= 1.0) {
            return wrong(
                "redundancy",
                format!("redundancy is {share}; it must be more than 0 and at most 1"),
            );
        }
    }
    let keeps = matches!(topic.reliability, Reliability::Reliable | Reliability::Bulk) || topic.is_latched();
    if keeps && u32::from(topic.depth()) > proto::MAX_DEPTH {
        return wrong(
            "depth",
            format!(
                "`depth` is at most {} for reliable, bulk and latched topics, which keep messages",
                proto::MAX_DEPTH
            ),
        );
    }
    if let Some(expiry) = topic.expiry {
        if !matches!(topic.reliability, Reliability::Reliable | Reliability::Bulk) {
            return wrong(
                "expiry",
                "`expiry` is for `reliability: reliable` and `bulk`; use `deadline`".into(),
            );
        }
        if expiry.is_zero() {
            return wrong("expiry", "`expiry` must be more than 0".into());
        }
    }
    Ok(())
}
