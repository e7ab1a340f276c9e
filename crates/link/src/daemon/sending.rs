//! Topics that begin, end, or cannot be sent.

use super::{Daemon, asked_priority};
use crate::carrier::Carrier;
use crate::config::{self, Rate};
use crate::discovery::{Found, Offers};
use crate::error::LinkError;
use crate::names::Line;
use crate::outbound::{OutboundTopic, TRY_AGAIN};
use crate::rules::{Right, may};
use proto::PeerId;
use stats::Time;

/// A topic that should be sent and cannot be.
pub(super) struct Unsent {
    kind: bus::TopicType,
    offers: Offers,
    pub(super) why: String,
    next_try: Time,
}

impl<C: Carrier> Daemon<C> {
    /// Starts to send a topic, restarts it with another type, or ends it.
    pub(super) fn found(&mut self, found: Found, offers: Offers, now: Time) -> Result<(), LinkError> {
        if let (Some(services), Some(Line::Request(service))) =
            (&mut self.inbound.services, Line::parse(found.topic()))
        {
            let kind = match &found {
                Found::Type(kind) => Some(kind),
                Found::Gone(_) => None,
            };
            services.found(now, &mut self.pump.radio, &mut self.inbound.flows, service, kind);
            return Ok(());
        }
        let name = found.topic().to_owned();
        self.count_lost_before();
        if let Some(old) = self.outbound.remove(&name) {
            old.close(now, &mut self.pump.radio, &mut self.inbound)?;
        }
        match found {
            Found::Type(kind) => self.begin(kind, offers, now),
            Found::Gone(_) => {
                self.unsent.remove(&name);
                tracing::info!(topic = name, "no publisher left: withdrawn");
            }
        }
        Ok(())
    }

    /// Tries to send topics that failed before: topics and descriptors may have become free.
    pub(super) fn try_unsent(&mut self, now: Time) {
        let due = self.unsent.values().filter(|u| u.next_try <= now);
        let due: Vec<_> = due.map(|u| (u.kind.clone(), u.offers)).collect();
        for (kind, offers) in due {
            self.begin(kind, offers, now);
        }
    }

    /// Starts to send a topic with what its publishers offer. One that fails is left out, and tried again later.
    fn begin(&mut self, kind: bus::TopicType, offers: Offers, now: Time) {
        let name = kind.topic.clone();
        let mut peers = Vec::with_capacity(self.pump.peers.len());
        for (i, _, mut topic) in config::sent_as(&self.config, &name) {
            if let Some(priority) = asked_priority(&kind.definition).filter(|_| topic.publisher_priority) {
                topic.priority = priority;
            }
            topic.settle(offers);
            // The number is the peer's position: peers that only relays reach have no number at the radio.
            let (peer, id) = (&self.config.peers[i], PeerId(i as u32));
            if may(peer.allow.as_ref(), Right::Subscribe, &topic.name) {
                tracing::info!(
                    topic = name,
                    r#type = kind.type_name,
                    priority = topic.priority,
                    peer = peer.name,
                    "sending"
                );
                peers.push((id, topic));
            } else {
                tracing::info!(
                    topic = name,
                    peer = peer.name,
                    "not sent: `allow` does not permit the peer to subscribe"
                );
                self.inbound.refuse(id);
            }
        }
        let rate = self.config.radio.rate.map_or(0, Rate::first);
        let peers: Vec<_> = peers.iter().map(|(id, topic)| (*id, topic)).collect();
        let opened = OutboundTopic::open(
            (&self.bus, &self.wait_set),
            (kind.clone(), offers.reliable),
            (&mut self.pump.radio, &mut self.inbound),
            &peers,
            (rate, now),
        );
        let known = self.unsent.remove(&name).map(|u| u.why);
        match opened {
            Ok(topic) => {
                if let Some(error) = topic.why_unsent() {
                    tracing::error!(topic = name, error, "not sent to all peers");
                }
                self.outbound.insert(name, topic);
            }
            Err(error) => {
                let why = error.to_string();
                if known.as_ref() != Some(&why) {
                    tracing::error!(topic = name, error = why, "not sent, trying again each second");
                }
                let next_try = now + TRY_AGAIN;
                self.unsent.insert(
                    name,
                    Unsent {
                        kind,
                        offers,
                        why,
                        next_try,
                    },
                );
            }
        }
    }
}
