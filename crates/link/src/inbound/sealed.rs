//! Handles topics over relays: opens messages with their source's keys, or refuses them.

use super::{About, Content, Inbound};
use crate::blocks::fill;
use crate::seal::envelope::{Label, is_sealed};
use crate::seal::{GREETING, MAX_GREETING, Opened, context};
use bus::Stamp;
use proto::{Announcement, Incoming, PeerId, RemoteTopic, Verdict, Via};
use stats::DropReason;

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

impl Inbound {
    /// A neighbour brings a topic of the host `source`, one of the peers, for this host. Returns whether the
    /// topic can be taken as the source's without further proof.
    pub(super) fn relays(
        &mut self,
        from: (PeerId, RemoteTopic),
        (source, of_source): (PeerId, bool),
        a: &Announcement,
        via: &Via,
    ) -> bool {
        let Some(seals) = &self.flows.seals else {
            return true;
        };
        let context = context(a, via);
        let is_proven = of_source || seals.knows(via.source, &context);
        let at = via.to.iter().position(|h| *h == self.flows.relay.own());
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
        let Some(seals) = &mut self.flows.seals else {
            return Ok(());
        };
        let Some(key) = self.flows.relay.flow_of(m.peer, m.topic) else {
            return Ok(());
        };
        if key.topic == GREETING {
            let fits = !m.geometry.is_packed() && m.geometry.total_len() as usize <= MAX_GREETING;
            return if fits { Ok(()) } else { Err(DropReason::Malformed) };
        }
        if key.source == self.flows.carrying.host(m.peer) || m.geometry.is_packed() {
            return Ok(());
        }
        Err(seals.refuse(false))
    }

    /// Returns whether a message for this host must be complete before its kind is known.
    pub(super) fn opens(&self, m: &Incoming) -> bool {
        let from = (m.peer, m.topic);
        let greets = || {
            self.flows
                .relay
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
        let (Some(relayed), Some(seals)) = (self.relayed.get(&about.from), &mut self.flows.seals) else {
            return Err(DropReason::Unannounced);
        };
        let is_greeting =
            (self.flows.relay.flow_of(about.from.0, about.from.1)).is_some_and(|k| k.topic == GREETING);
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
        let about = About { geometry, ..about };
        if let Some(service_message) = self.service_message(about, &content) {
            return self.came(about, service_message?).map(|()| false);
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
