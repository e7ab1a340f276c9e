//! How messages of a service go to one host: over a topic of that peer, or over relays.

use crate::inbound::Inbound;
use crate::outgoing::Outgoing;
use proto::{FlowKey, Message, PeerId, Radio, TopicConfig, TopicError, TopicId};
use stats::{DropReason, Time};

/// What a service's two topics add to its name.
pub(crate) const REQUEST: &str = "?request";
pub(crate) const REPLY: &str = "?reply";

/// The radio's thread's hold of the radio, for one round.
pub(crate) struct Air<'a> {
    pub(crate) now: Time,
    pub(crate) radio: &'a mut Radio<Outgoing>,
    pub(crate) inbound: &'a mut Inbound,
}

/// Towards one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Topic(TopicId),
    /// Over relays, to one host.
    Flow(FlowKey),
}

impl Line {
    /// Opens a line to `peer`.
    ///
    /// # Errors
    /// [`TopicError`] if the radio takes no further topic.
    pub(crate) fn open(air: &mut Air<'_>, peer: PeerId, topic: TopicConfig) -> Result<Line, TopicError> {
        if !air.inbound.routes() {
            return Ok(Line::Topic(air.radio.add_topic(air.now, peer, topic)?));
        }
        let flow = air.inbound.open_flow(air.now, air.radio, topic, &[peer])?;
        Ok(Line::Flow(flow))
    }

    /// Closes it; what waits on it is dropped.
    pub(crate) fn close(&self, air: &mut Air<'_>) {
        let closed = match self {
            Line::Topic(topic) => air.radio.withdraw_topic(air.now, *topic),
            Line::Flow(key) => air.inbound.close_flow(air.now, air.radio, key),
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "a service is not withdrawn");
        }
    }

    /// Offers a message, for which somebody waits until `expires`.
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
            Line::Topic(topic) => air.radio.offer(air.now, *topic, message),
            Line::Flow(key) => air.inbound.offer(air.now, air.radio, (key, u64::MAX), message),
        }
    }

    /// Ends a message, which nobody needs any more; its body is let go.
    pub(crate) fn end(&self, air: &mut Air<'_>, stamp: Time, end: Result<(), DropReason>) {
        match self {
            Line::Topic(topic) => drop(air.radio.end_message(air.now, *topic, stamp, end)),
            Line::Flow(key) => air.inbound.end_message(air.now, air.radio, key, stamp, end),
        }
    }

    /// Whether the host refuses what comes on it, as far as is known.
    pub(crate) fn is_refused(&self, radio: &Radio<Outgoing>) -> bool {
        match self {
            Line::Topic(topic) => radio.is_refused(*topic),
            // Unless a relay says so of each message.
            Line::Flow(..) => false,
        }
    }
}
