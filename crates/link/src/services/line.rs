//! How messages of a service go to one host: over a topic of that peer, or over relays.

use crate::inbound::Inbound;
use crate::outgoing::Outgoing;
use proto::{FlowKey, Message, PeerId, Radio, TopicConfig, TopicError, TopicId};
use stats::{DropReason, Time};
use std::collections::BTreeMap;

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
    /// Which flow, and the host's id.
    Flow(FlowKey, u64),
}

/// Flows, which several hosts share.
#[derive(Debug, Default)]
pub(crate) struct Flows(BTreeMap<FlowKey, Flow>);

#[derive(Debug)]
struct Flow {
    type_hash: [u8; 16],
    lines: usize,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error(transparent)]
    Topic(#[from] TopicError),
    #[error("another peer's service of this name is of another type, and relays carry one")]
    Type,
}

impl Flows {
    /// Opens a line to `peer`; `all` are those that it may ever be for.
    pub(crate) fn open(
        &mut self,
        air: &mut Air<'_>,
        peer: PeerId,
        all: &[PeerId],
        topic: TopicConfig,
    ) -> Result<Line, LineError> {
        if !air.inbound.routes() {
            return Ok(Line::Topic(air.radio.add_topic(air.now, peer, topic)?));
        }
        let host = air.inbound.carrying().host(peer);
        let key = FlowKey {
            source: air.inbound.relay.own(),
            topic: topic.name.clone(),
        };
        let type_hash = topic.type_hash;
        match self.0.get_mut(&key) {
            Some(flow) if flow.type_hash != type_hash => return Err(LineError::Type),
            Some(flow) => flow.lines += 1,
            None => {
                let key = air.inbound.open_flow(air.now, air.radio, topic, all)?;
                self.0.insert(key, Flow { type_hash, lines: 1 });
            }
        }
        Ok(Line::Flow(key, host))
    }

    /// Closes a line; what waits on it is dropped.
    pub(crate) fn close(&mut self, air: &mut Air<'_>, line: &Line) {
        let closed = match line {
            Line::Topic(topic) => air.radio.withdraw_topic(air.now, *topic),
            Line::Flow(key, _) => {
                let Some(flow) = self.0.get_mut(key) else { return };
                flow.lines -= 1;
                if flow.lines > 0 {
                    return;
                }
                self.0.remove(key);
                air.inbound.relay.close(air.now, air.radio, key)
            }
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "a service is not withdrawn");
        }
    }
}

impl Line {
    /// Offers a message.
    ///
    /// # Errors
    /// Why it was dropped at once.
    pub(crate) fn offer(&self, air: &mut Air<'_>, body: Outgoing, stamp: Time) -> Result<(), DropReason> {
        let message = Message::new(body, stamp);
        match self {
            Line::Topic(topic) => air.radio.offer(air.now, *topic, message),
            Line::Flow(key, host) => air
                .inbound
                .relay
                .offer_to(air.now, air.radio, key, message, *host),
        }
    }

    /// Ends a message, which nobody needs any more; its body is let go.
    pub(crate) fn end(&self, air: &mut Air<'_>, stamp: Time, end: Result<(), DropReason>) {
        match self {
            Line::Topic(topic) => drop(air.radio.end_message(air.now, *topic, stamp, end)),
            Line::Flow(key, _) => air.inbound.relay.end_message(air.now, air.radio, key, stamp, end),
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
