//! Flows: topics of this host and of others that may use relays, and the seals of their messages.

use crate::config::{Config, PeerConfig};
use crate::names::host_id;
use crate::outgoing::Outgoing;
use crate::relay::Carrying;
use crate::seal::{GREETING, Seals};
use proto::{
    FlowKey, Geometry, Message, Ordering, PeerId, Radio, Relay, Reliability, Sealer, TopicConfig, TopicError,
    TopicId, Via,
};
use stats::{DropReason, Time};
use std::time::Duration;

/// A greeting that has not arrived within this time is made again.
const EXPIRY: Duration = Duration::from_secs(2);
/// Most greetings that may wait at a host, over all its peers.
const DEPTH: u32 = 64;

/// The flows of a host.
pub(crate) struct Flows {
    pub(crate) relay: Relay<Outgoing>,
    /// Seals and opens messages over relays. Present if there are keys.
    pub(crate) seals: Option<Box<Seals>>,
    /// The configuration of relays.
    pub(crate) carrying: Carrying,
    /// Whether messages may travel over relays.
    pub(crate) routes: bool,
    /// Flows that peers declined since the last [`Flows::run_relay`].
    pub(crate) declined: Vec<(PeerId, TopicId, u64)>,
    /// The peers in direct reach.
    near: Vec<PeerId>,
    /// Number of peers.
    peers: u32,
    run: u32,
}

impl Flows {
    /// Without any flow yet. `routes` says whether messages may travel over relays; `run` distinguishes this run
    /// of the host from others.
    pub(crate) fn new(config: &Config, routes: bool, run: u32) -> Self {
        Flows {
            relay: Relay::new(host_id(&config.host)),
            seals: None,
            carrying: Carrying::new(config),
            routes,
            declined: Vec::new(),
            near: near(&config.peers),
            peers: config.peers.len() as u32,
            run,
        }
    }

    /// Opens a topic of this host for `to`, over any peers that may carry it.
    pub(crate) fn open_flow(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        config: proto::TopicConfig,
        to: &[PeerId],
    ) -> Result<FlowKey, TopicError> {
        let host = self.carrying.name(self.relay.own());
        let via = Via {
            source: self.relay.own(),
            name: host,
            run: self.run,
            to: to.iter().map(|p| self.carrying.host(*p)).collect(),
        };
        let config = proto::TopicConfig {
            via: Some(via),
            ..config
        };
        let carrying = &self.carrying;
        let key = (self.relay).open(now, radio, &config, &self.near, |p, k, v| {
            carrying.may_carry(p, k, v)
        })?;
        self.seal_flow(now, &key);
        Ok(key)
    }

    /// Handles the effects of the latest datagrams.
    pub(crate) fn run_relay(&mut self, now: Time, radio: &mut Radio<Outgoing>) -> Result<(), TopicError> {
        for (peer, topic, to) in std::mem::take(&mut self.declined) {
            let hosts = self.relay.declined(now, peer, topic, to);
            if let (Some(seals), Some((key, hosts))) = (&mut self.seals, hosts) {
                hosts.iter().for_each(|host| seals.declined(&key, *host));
            }
        }
        let carrying = &self.carrying;
        if !self.relay.is_due(radio) {
            return Ok(());
        }
        let may = |p, k: &_, v: &_| carrying.may_carry(p, k, v);
        (self.relay).run(now, radio, &self.near, may, sealer(&mut self.seals, &mut ()))
    }

    /// Offers a message of this host to those of a flow's hosts that are bits of `to`.
    ///
    /// # Errors
    /// As [`proto::Relay::offer`].
    pub(crate) fn offer(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        (key, to): (&FlowKey, u64),
        message: Message<Outgoing>,
    ) -> Result<(), DropReason> {
        let none = &mut ();
        let sealer = sealer(&mut self.seals, none);
        self.relay.offer(now, radio, (key, to), message, sealer)
    }

    /// Withdraws a flow of this host everywhere.
    ///
    /// # Errors
    /// [`TopicError`] if the radio does not know its topics.
    pub(crate) fn close_flow(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        key: &FlowKey,
    ) -> Result<(), TopicError> {
        if let Some(seals) = &mut self.seals {
            seals.closed(key);
        }
        self.relay.close(now, radio, key)
    }

    /// Ends a message of this host wherever it waits.
    pub(crate) fn end_message(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        key: &FlowKey,
        stamp: Time,
        end: Result<(), DropReason>,
    ) {
        if let Some(seals) = &mut self.seals {
            seals.end(key, stamp);
        }
        self.relay.end_message(now, radio, key, stamp, end);
    }

    /// A flow of this host was opened.
    fn seal_flow(&mut self, now: Time, key: &FlowKey) {
        if let (Some(seals), Some((announcement, via))) = (&mut self.seals, self.relay.announcement(key)) {
            seals.opened(now, key, announcement, via);
        }
    }

    /// Sends due greetings, and offers the messages that waited for keys. Returns when to run again.
    ///
    /// # Errors
    /// [`TopicError`] if the radio accepts no further topic.
    pub(crate) fn run_seals(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
    ) -> Result<Option<Time>, TopicError> {
        let Some(seals) = &mut self.seals else {
            return Ok(None);
        };
        let greetings = seals.tick(now, |host| radio.way(host, |_| true).is_some());
        let due = seals.due(now);
        for host in seals.lost(now) {
            let way = radio.way(host, |_| true);
            // A direct neighbour's own carrier reports what arrives there.
            if let Some(way) = way.filter(|w| self.carrying.host(w.next) != host) {
                let (name, over) = (self.carrying.name(host), self.carrying.host(way.next));
                let until = seals.doubts(now, &name, &self.carrying.name(over));
                radio.doubt_way(now, host, way.next, until);
            }
        }
        if seals.flows.is_empty() {
            self.open_greetings(now, radio)?;
        }
        for (host, bytes) in greetings {
            let flows = self.seals.as_ref().map_or(&[][..], |s| &s.flows);
            let of_it = flows.iter().find_map(|key| {
                let (_, via) = self.relay.announcement(key)?;
                let at = via.to.iter().position(|h| *h == host)?;
                Some((key.clone(), 1u64 << at))
            });
            let geometry = Geometry::new(u32::try_from(bytes.len()).unwrap_or(u32::MAX), &[]);
            if let (Some((key, bit)), Ok(geometry)) = (of_it, geometry) {
                let message = Message {
                    expires: Some(now + EXPIRY),
                    ..Message::new(Outgoing::flat(bytes, geometry), clock::realtime())
                };
                // A failure is counted, and the greeting is tried again.
                let _ = self.offer(now, radio, (&key, bit), message);
            }
        }
        for (key, bit, message) in due {
            let message = match message {
                Some(message) => message,
                // A host in direct reach needs no notice.
                None if self.is_near(radio, &key, bit) => continue,
                None if self.seals.as_ref().is_some_and(|s| s.has_sealed(&key, bit)) => continue,
                None => Message::new(Outgoing::notice(), clock::realtime()),
            };
            if let Some(seals) = &mut self.seals {
                seals.offers_again(true);
            }
            let _ = self.offer(now, radio, (&key, bit), message);
            if let Some(seals) = &mut self.seals {
                seals.offers_again(false);
            }
        }
        Ok(self.seals.as_ref().map(|s| s.next_timeout()))
    }

    fn is_near(&self, radio: &Radio<Outgoing>, key: &FlowKey, bit: u64) -> bool {
        let host = (self.relay.announcement(key)).and_then(|(_, via)| {
            let at = bit.trailing_zeros() as usize;
            via.to.get(at).copied()
        });
        let way = host.and_then(|h| radio.way(h, |_| true));
        way.is_some_and(|w| Some(self.carrying.host(w.next)) == host)
    }

    /// Opens the topics for this host's greetings.
    fn open_greetings(&mut self, now: Time, radio: &mut Radio<Outgoing>) -> Result<(), TopicError> {
        let all: Vec<PeerId> = (0..self.peers).map(PeerId).collect();
        for to in all.chunks(proto::MAX_DESTINATIONS) {
            let topic = TopicConfig {
                priority: proto::MAX_PRIORITY,
                depth: DEPTH,
                expiry: Some(EXPIRY),
                reliability: Reliability::Reliable,
                ordering: Ordering::Any,
                ..TopicConfig::new(GREETING, "")
            };
            let key = self.open_flow(now, radio, topic, to)?;
            if let Some(seals) = &mut self.seals {
                seals.flows.push(key);
            }
        }
        Ok(())
    }
}

/// The peers in direct reach: those before the first without an address, or the only one of a carrier without addresses.
fn near(peers: &[PeerConfig]) -> Vec<PeerId> {
    let near = peers.iter().take_while(|p| p.address.is_some()).count();
    (0..near.max(1) as u32).map(PeerId).collect()
}

/// The sealer, if there is one.
fn sealer<'a>(seals: &'a mut Option<Box<Seals>>, none: &'a mut ()) -> &'a mut dyn Sealer<Outgoing> {
    match seals {
        Some(seals) => &mut **seals,
        None => none,
    }
}
