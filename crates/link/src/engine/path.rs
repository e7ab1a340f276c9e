//! The path of a service's messages to one host: a topic of that peer, or a flow over relays.

use crate::flows::Flows;
use crate::outgoing::Outgoing;
use proto::{FlowKey, Message, PeerId, Radio, TopicConfig, TopicError, TopicId};
use stats::{DropReason, Time};
use std::time::Duration;

/// The access to the radio at one instant.
pub(crate) struct Air<'a> {
    pub(crate) now: Time,
    pub(crate) radio: &'a mut Radio<Outgoing>,
    pub(crate) flows: &'a mut Flows,
}

impl Air<'_> {
    /// Upper bound on the age of a message that arrived at `at`, or zero if the peer's clock is unknown.
    pub(crate) fn age(&self, peer: PeerId, at: Time, stamp: Time) -> Duration {
        let clock = self.radio.peer_stats(peer).and_then(|p| p.clock);
        clock.map_or(Duration::ZERO, |c| {
            let there = at.0 as f64 + c.ahead_us * 1e3;
            let ns = (there - stamp.0 as f64).max(0.0) + c.uncertainty_us * 1e3;
            Duration::from_nanos(ns.max(0.0) as u64)
        })
    }

    /// Returns whether there is any path to a peer at present, over relays or without.
    pub(crate) fn reaches(&self, peer: PeerId) -> bool {
        let host = self.flows.carrying.host(peer);
        self.radio.way(host, |_| true).is_some()
    }
}

/// The path of a service's requests or replies to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServicePath {
    Topic(TopicId),
    /// Over relays.
    Flow(FlowKey),
}

impl ServicePath {
    /// Opens the path to `peer`.
    ///
    /// # Errors
    /// [`TopicError`] if the radio accepts no further topic.
    pub(crate) fn open(
        air: &mut Air<'_>,
        peer: PeerId,
        topic: TopicConfig,
    ) -> Result<ServicePath, TopicError> {
        if !air.flows.routes {
            return Ok(ServicePath::Topic(air.radio.add_topic(air.now, peer, topic)?));
        }
        let flow = air.flows.open_flow(air.now, air.radio, topic, &[peer])?;
        Ok(ServicePath::Flow(flow))
    }

    /// Closes the path and drops the waiting messages.
    pub(crate) fn close(&self, air: &mut Air<'_>) {
        let closed = match self {
            ServicePath::Topic(topic) => air.radio.withdraw_topic(air.now, *topic),
            ServicePath::Flow(key) => air.flows.close_flow(air.now, air.radio, key),
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "cannot withdraw a service");
        }
    }

    /// Offers a message, for which its receiver waits until `expires`.
    ///
    /// # Errors
    /// Why it was dropped at once.
    pub(crate) fn offer(
        &self,
        air: &mut Air<'_>,
        body: Outgoing,
        stamp: Time,
        expires: Time,
    ) -> Result<(), DropReason> {
        let message = Message {
            expires: Some(expires),
            ..Message::new(body, stamp)
        };
        match self {
            ServicePath::Topic(topic) => air.radio.offer(air.now, *topic, message),
            ServicePath::Flow(key) => air.flows.offer(air.now, air.radio, (key, u64::MAX), message),
        }
    }

    /// Ends a message that is no longer needed, and releases its body.
    pub(crate) fn end(&self, air: &mut Air<'_>, stamp: Time, end: Result<(), DropReason>) {
        match self {
            ServicePath::Topic(topic) => drop(air.radio.end_message(air.now, *topic, stamp, end)),
            ServicePath::Flow(key) => air.flows.end_message(air.now, air.radio, key, stamp, end),
        }
    }

    /// Returns whether the host is known to refuse the messages.
    pub(crate) fn is_refused(&self, radio: &Radio<Outgoing>) -> bool {
        match self {
            ServicePath::Topic(topic) => radio.is_refused(*topic),
            // A relay may still report a refusal of each message.
            ServicePath::Flow(..) => false,
        }
    }
}
