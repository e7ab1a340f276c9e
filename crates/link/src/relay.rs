//! Topics over relays: which hosts may carry which topics, and for which hosts.

use crate::config::matching::is_configured;
use crate::config::{Config, PeerConfig};
use crate::names::{self, Line, host_id};
use crate::rules::Relayed;
use crate::rules::{Right, may};
use crate::seal::GREETING;
use proto::{FlowKey, PeerId, Via};

/// The configuration of relays, with hosts by their ids.
#[derive(Clone, Debug)]
pub(crate) struct Carrying {
    own: u64,
    config: Config,
}

/// What this host does with a topic that a peer announces for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The source's index among the peers, if it is one.
    pub(crate) source: Option<PeerId>,
    /// Whether this host publishes it.
    pub(crate) local: bool,
    /// Whether this host forwards it.
    pub(crate) forward: bool,
}

impl Carrying {
    pub(crate) fn new(config: &Config) -> Self {
        Carrying {
            own: host_id(&config.host),
            config: config.clone(),
        }
    }

    /// The index of a host among the peers.
    fn peer(&self, host: u64) -> Option<(PeerId, &PeerConfig)> {
        let at = self.config.peers.iter().position(|p| host_id(&p.name) == host)?;
        Some((PeerId(at as u32), &self.config.peers[at]))
    }

    /// The host id of a peer.
    pub(crate) fn host(&self, peer: PeerId) -> u64 {
        let peer = self.config.peers.get(peer.0 as usize);
        peer.map_or(0, |p| host_id(&p.name))
    }

    /// A host's name, as it is known here.
    pub(crate) fn name(&self, host: u64) -> String {
        if host == self.own {
            return self.config.host.clone();
        }
        self.peer(host)
            .map_or_else(|| format!("{host:016x}"), |(_, p)| p.name.clone())
    }

    /// Decides on a topic that `peer` announces. Returns why it is refused, otherwise.
    pub(crate) fn judge(&self, peer: PeerId, topic: &str, via: &Via) -> Result<Offer, &'static str> {
        let Some(neighbour) = self.config.peers.get(peer.0 as usize) else {
            return Err("but is not a peer");
        };
        let source = self.peer(via.source);
        let publishes = |p: &PeerConfig| may(p.allow.as_ref(), Right::Publish, topic);
        if via.source == self.own {
            return Err("which is this host's own");
        }
        if topic == GREETING {
            return self.judge_greeting(neighbour, via);
        }
        if via.source != host_id(&neighbour.name) && !neighbour.carries(topic) {
            return Err("which is another host's, and the peer's `relay` does not cover it");
        }
        if source.is_some_and(|(_, p)| names::is_of_other_nodes(topic, &p.name, &self.config.host))
            && via.to.contains(&self.own)
        {
            return Err("which describes other hosts' nodes");
        }
        if source.is_some_and(|(_, p)| !publishes(p)) {
            return Err("which `allow` does not permit its source to publish");
        }
        let mut wanted = self.config.topics.iter().filter(|t| t.direction.receives());
        let serves =
            |id: PeerId| Line::parse(topic).is_some_and(|line| is_configured(&self.config, id, line));
        let is_wanted =
            wanted.any(|t| names::covers(&t.name, topic)) || source.is_some_and(|(id, _)| serves(id));
        let offer = Offer {
            source: source.map(|(id, _)| id),
            local: source.is_some() && via.to.contains(&self.own) && is_wanted,
            forward: self.config.relay.as_ref().is_some_and(|r| r.covers(topic)),
        };
        if offer.local || offer.forward {
            Ok(offer)
        } else {
            Err("which is neither configured for reception from a source among the peers, nor for relaying")
        }
    }

    /// Greetings authenticate themselves, so they may use any path that some topic may use.
    fn judge_greeting(&self, neighbour: &PeerConfig, via: &Via) -> Result<Offer, &'static str> {
        let any = |r: &Option<Relayed>| r.as_ref().is_some_and(Relayed::is_any);
        if via.source != host_id(&neighbour.name) && !any(&neighbour.relay) {
            return Err("which is another host's, and the peer has no `relay`");
        }
        let source = self.peer(via.source).map(|(id, _)| id);
        let offer = Offer {
            source,
            local: source.is_some() && via.to.contains(&self.own),
            forward: any(&self.config.relay),
        };
        let taken = (offer.local || offer.forward).then_some(offer);
        taken.ok_or("whose source is not a peer")
    }

    /// The hosts of `via` for which `peer` may receive messages of a topic.
    pub(crate) fn may_carry(&self, peer: PeerId, key: &FlowKey, via: &Via) -> u64 {
        let Some(neighbour) = self.config.peers.get(peer.0 as usize) else {
            return 0;
        };
        let greets = key.topic == GREETING;
        let covers = |r: &Option<Relayed>| {
            let relays = r.as_ref();
            relays.is_some_and(|r| if greets { r.is_any() } else { r.covers(&key.topic) })
        };
        if key.source != self.own && !covers(&self.config.relay) {
            return 0;
        }
        // A reply goes to a caller with permission, so all hosts may know its topic.
        let reply = matches!(Line::parse(&key.topic), Some(Line::Reply(_)));
        let subscribes =
            |p: &PeerConfig| reply || greets || may(p.allow.as_ref(), Right::Subscribe, &key.topic);
        let next = host_id(&neighbour.name);
        let hosts = via.to.iter().enumerate();
        let allowed = hosts.filter(|(_, host)| match self.peer(**host) {
            Some((_, p)) if **host == next => subscribes(p),
            Some((_, p)) => covers(&neighbour.relay) && subscribes(p),
            None => covers(&neighbour.relay),
        });
        allowed.fold(0, |mask, (i, _)| mask | 1 << i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrying(text: &str) -> Carrying {
        Carrying::new(&Config::parse(text).unwrap_or_else(|e| panic!("{e}")))
    }

    fn via(source: &str, to: &[&str]) -> Via {
        Via {
            source: host_id(source),
            name: source.into(),
            run: 1,
            to: to.iter().map(|n| host_id(n)).collect(),
        }
    }

    fn key(source: &str, topic: &str) -> FlowKey {
        let announcement = proto::Announcement {
            name: topic.into(),
            ..proto::Announcement::default()
        };
        FlowKey::new(&announcement, &via(source, &["robot"]))
    }

    const RELAY: &str = "
host: relay
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
relay: [/scan, '/camera/*']
peers:
  - {name: robot, address: '127.0.0.1:7401', allow: {publish: [/scan, /secret]}}
  - {name: base, address: '127.0.0.1:7402', allow: {subscribe: [/scan]}}
  - {name: next, address: '127.0.0.1:7403', relay: [/scan]}
topics: []
";

    #[test]
    fn a_relay_takes_and_gives_only_what_rules_allow() {
        let c = carrying(RELAY);
        let (robot, base, next) = (PeerId(0), PeerId(1), PeerId(2));
        let all = via("robot", &["base", "far", "relay"]);
        let forward = Offer {
            source: Some(robot),
            local: false,
            forward: true,
        };
        assert_eq!(c.judge(robot, "/scan", &all), Ok(forward));
        for (peer, topic, source) in [
            (robot, "/secret", "robot"),
            (robot, "/camera/a", "robot"),
            (robot, "/scan", "base"),
            (robot, "/scan", "relay"),
            (base, "/scan", "robot"),
            (next, "/camera/a", "far"),
        ] {
            assert!(
                c.judge(peer, topic, &via(source, &["base"])).is_err(),
                "{topic} of {source}"
            );
        }
        assert!(
            c.judge(next, "/scan", &via("far", &["base"])).is_ok(),
            "of a host known to others only"
        );
        // Hosts that each peer may receive for: base only for itself, next for all three.
        assert_eq!(c.may_carry(base, &key("robot", "/scan"), &all), 0b001);
        assert_eq!(c.may_carry(next, &key("robot", "/scan"), &all), 0b111);
        assert_eq!(c.may_carry(next, &key("robot", "/camera/a"), &all), 0);
        assert_eq!(c.may_carry(base, &key("robot", "/secret"), &all), 0);
        assert_eq!(c.name(host_id("base")), "base");
    }

    #[test]
    fn an_end_takes_from_a_relay_what_its_source_may_publish() {
        let c = carrying(
            "
host: base
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
peers:
  - {name: robot, allow: {publish: [/scan], subscribe: [/cmd_vel]}, namespace: /r}
  - {name: relay, address: '127.0.0.1:7401', relay: true, allow: {}}
topics:
  - {name: /scan, direction: in}
  - {name: /other, direction: in}
  - {name: /cmd_vel, direction: out}
",
        );
        // Peers without an address are moved behind the others.
        let (relay, robot) = (PeerId(0), PeerId(1));
        let here = via("robot", &["base"]);
        let offer = c.judge(relay, "/scan", &here).expect("is taken");
        assert_eq!(
            (offer.source, offer.local, offer.forward),
            (Some(robot), true, false)
        );
        assert!(c.judge(relay, "/other", &here).is_err(), "its source may not");
        assert!(
            c.judge(relay, "/scan", &via("relay", &["base"])).is_err(),
            "the relay itself may not"
        );
        assert!(c.judge(relay, "/scan", &via("unknown", &["base"])).is_err());
        let out = via("base", &["robot", "relay"]);
        let own = key("base", "/cmd_vel");
        // The relay carries for the robot, but may not receive for itself.
        assert_eq!(c.may_carry(relay, &own, &out), 0b01);
    }
}
