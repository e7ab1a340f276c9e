//! Handles topics over relays: opens messages with their source's keys, or refuses them.

use super::{About, Content, Inbound};
use crate::blocks::fill;
use crate::outgoing::Outgoing;
use crate::seal::envelope::{Label, is_sealed};
use crate::seal::{GREETING, MAX_GREETING, Opened, Seals, context};
use crate::services::message::ServiceMessage;
use bus::Stamp;
use proto::{
    Announcement, FlowKey, Geometry, Incoming, Message, Ordering, PeerId, Radio, Reliability, RemoteTopic,
    Sealer, TopicConfig, TopicError, Verdict, Via,
};
use stats::{DropReason, Time};
use std::time::Duration;

/// A greeting that has not arrived within this time is made again.
const EXPIRY: Duration = Duration::from_secs(2);
/// Most greetings that may wait at a host, over all its peers.
const DEPTH: u32 = 64;

/// A topic of another host that this one takes.
pub(super) struct Relayed {
    /// Its index among the peers.
    source: PeerId,
    host: u64,
    /// Whether the source brings the topic itself, so that its carrier authenticates the messages.
    of_source: bool,
    /// The announcement, until a message proves that it is the source's.
    unproven: Option<Announcement>,
    context: [u8; 32],
    /// This host's bit.
    own: u64,
}

/// The sealer, if there is one.
pub(super) fn sealer<'a>(
    seals: &'a mut Option<Box<Seals>>,
    none: &'a mut (),
) -> &'a mut dyn Sealer<Outgoing> {
    match seals {
        Some(seals) => &mut **seals,
        None => none,
    }
}

impl Inbound {
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
    pub(super) fn seal_flow(&mut self, now: Time, key: &FlowKey) {
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
        let all: Vec<PeerId> = (0..self.peers.len() as u32).map(PeerId).collect();
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

    /// A neighbour brings a topic of the host `source`, one of the peers, for this host. Returns whether the
    /// topic can be taken as the source's without further proof.
    pub(super) fn relays(
        &mut self,
        from: (PeerId, RemoteTopic),
        (source, of_source): (PeerId, bool),
        a: &Announcement,
        via: &Via,
    ) -> bool {
        let Some(seals) = &self.seals else {
            return true;
        };
        let context = context(a, via);
        let is_proven = of_source || seals.knows(via.source, &context);
        let at = via.to.iter().position(|h| *h == self.relay.own());
        let relayed = Relayed {
            source,
            host: via.source,
            of_source,
            unproven: (!is_proven).then(|| a.clone()),
            context,
            own: at.map_or(0, |i| 1 << i),
        };
        self.relayed.insert(from, relayed);
        // Greetings are not a topic on the bus.
        is_proven && a.name != GREETING
    }

    /// Checks whether to accept a message.
    ///
    /// # Errors
    /// The reason for the loss: a neighbour brings another host's message unsealed.
    pub(super) fn admits(&mut self, m: &Incoming) -> Result<(), DropReason> {
        let Some(seals) = &mut self.seals else {
            return Ok(());
        };
        let Some(key) = self.relay.flow_of(m.peer, m.topic) else {
            return Ok(());
        };
        if key.topic == GREETING {
            let fits = !m.geometry.is_packed() && m.geometry.total_len() as usize <= MAX_GREETING;
            return if fits { Ok(()) } else { Err(DropReason::Malformed) };
        }
        if key.source == self.carrying.host(m.peer) || m.geometry.is_packed() {
            return Ok(());
        }
        Err(seals.refuse(false))
    }

    /// Returns whether a message for this host must be complete before its kind is known.
    pub(super) fn opens(&self, m: &Incoming) -> bool {
        let from = (m.peer, m.topic);
        let greets = || {
            self.relay
                .flow_of(m.peer, m.topic)
                .is_some_and(|k| k.topic == GREETING)
        };
        self.relayed.contains_key(&from) && (m.geometry.is_packed() || greets())
    }

    /// A message for this host is complete, of a topic that may use relays. Returns whether it was published
    /// at once.
    ///
    /// # Errors
    /// The reason for the loss.
    pub(super) fn opened(
        &mut self,
        about: About,
        stamp: Stamp,
        number: Option<u64>,
        bytes: Vec<u8>,
    ) -> Result<bool, DropReason> {
        let (Some(relayed), Some(seals)) = (self.relayed.get(&about.from), &mut self.seals) else {
            return Err(DropReason::Unannounced);
        };
        let is_greeting =
            (self.relay.flow_of(about.from.0, about.from.1)).is_some_and(|k| k.topic == GREETING);
        if is_greeting {
            seals.hear(clock::monotonic(), about.from.0, relayed.host, &bytes);
            return Ok(false);
        }
        let (geometry, content) = if about.geometry.is_packed() && is_sealed(&bytes) {
            let label = Label {
                context: relayed.context,
                number: number.ok_or(DropReason::Malformed)?,
                stamp: about.stamp.0,
                origin: stamp.origin.unwrap_or(0),
            };
            match seals.open(relayed.host, relayed.own, &label, bytes)? {
                Opened::Message(geometry, content) => (Some(geometry), content),
                Opened::Notice => (None, Vec::new()),
            }
        } else if relayed.of_source {
            (Some(about.geometry), bytes)
        } else {
            return Err(seals.refuse(false));
        };
        self.prove(about.from)?;
        let Some(geometry) = geometry else {
            return Ok(false);
        };
        if let Some(services) = self.services.as_ref().filter(|s| s.is_route(about.from)) {
            let taker = services.taker(about.from).ok_or(DropReason::Unannounced)?;
            let mut service_message = ServiceMessage::new(&taker, &geometry)?;
            service_message.write(0, &content);
            let about = About { geometry, ..about };
            return self.came(about, service_message).map(|()| false);
        }
        let route = self.routes.get(&about.from).cloned();
        let route = route.ok_or(DropReason::Unannounced)?;
        if geometry.is_packed() {
            return self.publish(&route, Content::Envelope(content), stamp);
        }
        if geometry.total_len() > route.max_message {
            return Err(DropReason::TooLarge);
        }
        let mut loan = self.memory.loan(route.owner, &route.publisher, &geometry)?;
        fill(&mut loan, &geometry, 0, &content);
        self.publish(&route, Content::Loan(loan), stamp)
    }

    /// A message of the topic was its source's, so the source announced the topic.
    fn prove(&mut self, from: (PeerId, RemoteTopic)) -> Result<(), DropReason> {
        let Some(relayed) = self.relayed.get_mut(&from) else {
            return Ok(());
        };
        let source = relayed.source;
        let Some(announcement) = relayed.unproven.take() else {
            return Ok(());
        };
        match self.takes_topic(from.0, from.1, source, &announcement) {
            Verdict::Accept => Ok(()),
            Verdict::Refuse => Err(DropReason::Unannounced),
        }
    }
}
