//! Settings that change while a daemon runs.

use super::Daemon;
use super::showing::is_for;
use crate::carrier::Carrier;
use crate::config::{self, PeerConfig, ServiceConfig, ServiceRole, TopicConfig};
use crate::control::{Answer, Command};
use crate::names::Line;
use proto::{PeerId, TopicChange, TopicId, TopicStats};
use stats::Time;

impl<C: Carrier> Daemon<C> {
    /// Executes a command and answers it.
    pub(super) fn obey(&mut self, now: Time, command: &Command) {
        let answer = self.set(now, command);
        match &answer {
            Ok(lines) => {
                tracing::info!(topic = command.topic, "changed: {}", lines.join("; "));
                // An operator who now asks for the state sees the change.
                self.renew_status();
            }
            Err(why) => tracing::info!(topic = command.topic, why, "not changed"),
        }
        command.answer(answer);
    }

    fn set(&mut self, now: Time, command: &Command) -> Answer {
        let change = command.change.0;
        if let Some((service, within)) = self.service(&command.topic) {
            let named = command.peer.as_ref();
            let named = named.map(|name| self.peer_named(name)).transpose()?;
            return self.set_service(now, service, (within, named), change);
        }
        let (topic, name, within) = self.sent_topic(&command.topic)?;
        let named = command.peer.as_ref();
        let named = named.map(|name| self.peer_named(name)).transpose()?;
        let is_for_all = within.is_none() && named.is_none();
        if let Some(depth) = change.depth {
            let reserved = |p: &PeerConfig| Some(self.outbound.get(&config::on_bus(p, &name))?.max_depth());
            let most = self.config.peers.iter().filter_map(reserved).min();
            if let Some(most) = most.filter(|m| depth > *m) {
                return Err(format!(
                    "depth={depth}: at most {most} while the link runs, since it reserved memory for that many when the \
                     topic began: change the configuration and restart the link"
                ));
            }
        }
        let ids: Vec<TopicId> = (self.pump.radio.topics())
            .filter(|(_, t)| self.counts_for(topic, &name, &t.name) && self.is_meant(t, within, named))
            .map(|(id, _)| id)
            .collect();
        let mut lines = Vec::new();
        for id in ids {
            self.pump
                .radio
                .set_topic(now, id, change)
                .map_err(|e| e.to_string())?;
            if let Some(now) = self.pump.radio.topic_stats(id) {
                lines.push(format!("to {}: {}", self.receivers(&now), in_force(&now)));
            }
        }
        let is_listed = self.config.topics[topic].name == name;
        if is_for_all && (is_listed || !lines.is_empty()) {
            // Kept for the next time the topic is opened.
            if is_listed {
                apply(&mut self.config.topics[topic], change);
            } else {
                // A topic that matches a pattern gets an entry of its own.
                let mut own = TopicConfig {
                    name,
                    ..self.config.topics[topic].clone()
                };
                apply(&mut own, change);
                self.config.topics.push(own);
            }
            if lines.is_empty() {
                lines.push("kept until the topic is published here".into());
            }
        } else if lines.is_empty() {
            return Err(format!(
                "{name} is not sent to that peer, or not published here yet: leave out the peer to keep the change \
                 until it is"
            ));
        }
        Ok(lines)
    }

    /// Returns whether a topic of the radio is this host's own and matches: `within` is the host in whose
    /// namespace the topic was named, `named` the given peer, as receiver or relay.
    fn is_meant(&self, t: &TopicStats, within: Option<PeerId>, named: Option<PeerId>) -> bool {
        let carrying = &self.inbound.flows.carrying;
        let own = self.inbound.flows.relay.own();
        t.via.as_ref().is_none_or(|v| v.source == own)
            && within.is_none_or(|p| is_for(carrying, t, p))
            && named.is_none_or(|p| t.peer == p || is_for(carrying, t, p))
    }

    /// The receivers of a topic, for people.
    fn receivers(&self, t: &TopicStats) -> String {
        let peer = self.peer_name(t.peer);
        let hosts = t.via.iter().flat_map(|v| &v.to);
        let hosts: Vec<String> = hosts.map(|h| self.inbound.flows.carrying.name(*h)).collect();
        match hosts.as_slice() {
            [] => peer,
            [one] if *one == peer => peer,
            hosts => format!("{} over {peer}", hosts.join(", ")),
        }
    }

    /// The index of a service, by its name on the air, the name of one of its topics there, or its name on
    /// this bus. The latter may belong to one peer only.
    fn service(&self, name: &str) -> Option<(usize, Option<PeerId>)> {
        let name = Line::parse(name).map_or(name, Line::name);
        let full = format!("/{}", name.trim_start_matches('/'));
        let services = &self.config.services;
        if let Some(i) = services.iter().position(|s| s.name == full) {
            return Some((i, None));
        }
        let mut peers = self.config.peers.iter().enumerate();
        peers.find_map(|(peer, p)| {
            let is_it = |s: &ServiceConfig| {
                s.is_for(ServiceRole::Call, p)
                    && config::service_on_bus(p, ServiceRole::Call, &s.name) == full
            };
            Some((services.iter().position(is_it)?, Some(PeerId(peer as u32))))
        })
    }

    /// Changes the priority of this host's messages for a service.
    fn set_service(
        &mut self,
        now: Time,
        service: usize,
        (within, named): (Option<PeerId>, Option<PeerId>),
        change: TopicChange,
    ) -> Answer {
        let only = |p: &u8| {
            change
                == TopicChange {
                    priority: Some(*p),
                    ..TopicChange::default()
                }
        };
        let priority = change.priority.filter(only).ok_or(
            "only the priority of a service can change while the link runs: give priority=0…127 alone",
        )?;
        let name = self.config.services[service].name.clone();
        let is_part = |topic: &str| {
            let of = Line::parse(topic).and_then(Line::service);
            of.is_some_and(|of| bridge::covers(&name, of))
        };
        let ids: Vec<(TopicId, String)> = (self.pump.radio.topics())
            .filter(|(_, t)| is_part(&t.name) && self.is_meant(t, within, named))
            .map(|(id, t)| (id, self.receivers(&t)))
            .collect();
        let mut lines = Vec::new();
        for (id, to) in ids {
            self.pump
                .radio
                .set_topic(now, id, change)
                .map_err(|e| e.to_string())?;
            lines.push(format!("to {to}: priority={priority}"));
        }
        let is_for_all = within.is_none() && named.is_none();
        if is_for_all {
            // Kept for the next time the service is offered.
            self.config.services[service].priority = priority;
            if let Some(services) = &mut self.inbound.services {
                services.calls.set_priority(&name, priority);
            }
        }
        if lines.is_empty() && !is_for_all {
            return Err(format!(
                "{name} is not offered by or to that peer now: leave out the peer to keep the change until it is"
            ));
        }
        if lines.is_empty() {
            lines.push("kept until the service is offered".into());
        }
        Ok(lines)
    }

    /// Returns whether a change to `name`, which configuration entry `entry` covers, applies to a topic: the
    /// one named, or for a pattern any topic that this entry covers.
    fn counts_for(&self, entry: usize, name: &str, topic: &str) -> bool {
        match bridge::is_pattern(name) {
            true => config::sent_by(&self.config, topic) == Some(entry),
            false => topic == name,
        }
    }

    /// A topic that this host sends, or a pattern, by its name on the air or on this bus. Returns the index
    /// of the entry that covers it, its name on the air, and the peer if the name belongs to one peer only.
    fn sent_topic(&self, name: &str) -> Result<(usize, String, Option<PeerId>), String> {
        let full = format!("/{}", name.trim_start_matches('/'));
        let topics = &self.config.topics;
        if let Some(i) = topics.iter().position(|t| t.name == full) {
            return if topics[i].direction.sends() {
                Ok((i, full, None))
            } else {
                Err(format!(
                    "{full} is only received here: set it on the sender's host"
                ))
            };
        }
        if let Some(i) = config::sent_by(&self.config, &full) {
            return Ok((i, full, None));
        }
        if let Some((peer, i, topic)) = config::sent_as(&self.config, &full).next() {
            return Ok((i, topic.name, Some(PeerId(peer as u32))));
        }
        let sent: Vec<&str> = (topics.iter())
            .filter(|t| t.direction.sends())
            .map(|t| t.name.as_str())
            .collect();
        let near = schema::did_you_mean(schema::nearest(&full, sent.iter().copied()));
        let there = match sent.as_slice() {
            [] => "it sends none".to_owned(),
            names => format!("it sends {}", names.join(", ")),
        };
        Err(format!(
            "{full} is not among this link's topics{near} ({there}): add new ones to the configuration"
        ))
    }

    fn peer_named(&self, name: &str) -> Result<PeerId, String> {
        let found = self.config.peers.iter().position(|p| p.name == name);
        // Peers behind relays have a position, too.
        found.map(|i| PeerId(i as u32)).ok_or_else(|| {
            let names: Vec<_> = self.config.peers.iter().map(|p| p.name.as_str()).collect();
            let near = schema::did_you_mean(schema::nearest(name, names.iter().copied()));
            format!(
                "there is no peer '{name}'{near}: the peers are {}",
                names.join(", ")
            )
        })
    }
}

/// The settings of a topic, in the syntax of a change.
fn in_force(t: &TopicStats) -> String {
    let deadline = t.deadline.map_or("none".into(), |d| format!("{d:?}"));
    let rate = t.max_rate.map_or("none".into(), |r| format!("{r}Hz"));
    let share = format!("{}%", (t.min_share * 1e6).round() / 1e4);
    format!(
        "priority={} depth={} deadline={deadline} rate_limit={rate} every={} min_share={share}",
        t.priority, t.depth, t.every
    )
}

fn apply(config: &mut TopicConfig, change: TopicChange) {
    if let Some(priority) = change.priority {
        config.priority = priority;
        config.publisher_priority = false;
    }
    if let Some(depth) = change.depth {
        config.depth = Some(u16::try_from(depth).unwrap_or(u16::MAX));
    }
    if let Some(deadline) = change.deadline {
        config.deadline = deadline;
    }
    if let Some(rate) = change.max_rate {
        config.rate_limit = rate;
    }
    if let Some(share) = change.min_share {
        config.min_share = share;
    }
    if let Some(every) = change.every {
        config.every = every;
    }
}
