//! Adding, changing and removing peers and topics.

use super::Radio;
use crate::airtime::AirtimeModel;
use crate::announcement::Reliability;
use crate::body::{Body, Down, Sink};
use crate::config::*;
use crate::peer::Peer;
use crate::policy::tuning::tuning;
use crate::policy::{self, Air, Recent};
use crate::route::Router;
use crate::send::{Rhythm, Scheduler, SendTopic};
use crate::share::Share;
use crate::statistics::RadioStats;
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::BTreeMap;

/// Smallest and largest datagram that a carrier may take.
const DATAGRAM: core::ops::RangeInclusive<usize> = 256..=65507;

impl<B: Body> Radio<B> {
    /// A radio without peers.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn new(mut config: RadioConfig) -> Result<Self, ConfigError> {
        if config.session == 0 {
            return Err(ConfigError::Session);
        }
        if config.name.len() > MAX_HOST_NAME {
            return Err(ConfigError::Name {
                bytes: config.name.len(),
            });
        }
        for (which, interval) in [
            ("hello_interval", config.hello_interval),
            ("keep_alive", config.keep_alive),
            ("lost_after", config.lost_after),
            ("report_interval", config.report_interval),
            ("receive.partial_age", config.receive.partial_age),
        ] {
            if interval.is_zero() {
                return Err(ConfigError::Interval { which });
            }
        }
        if config.in_flight == 0 {
            return Err(ConfigError::InFlight);
        }
        valid_gain(&config.airtime)?;
        valid_part("min_share", config.min_share, 0.0, 0.9)?;
        valid_part("least_share", config.least_share, 0.01, 1.0)?;
        let paced = !config.unrated_cable && !config.auto_rate && config.airtime.rate_bits > 0;
        if !(config.duty > 0.0 && config.duty <= 1.0 && (paced || config.duty == 1.0)) {
            return Err(ConfigError::Duty { duty: config.duty });
        }
        let policy = policy::choose(&config);
        config.yields &= policy.is_shared();
        let least = policy.least_interval();
        for interval in [
            &mut config.hello_interval,
            &mut config.keep_alive,
            &mut config.report_interval,
        ] {
            *interval = (*interval).max(least);
        }
        for patience in [&mut config.lost_after, &mut config.receive.partial_age] {
            *patience = (*patience).max(least * tuning().duty_lost);
        }
        Ok(Radio {
            scheduler: Scheduler::new(config.order, config.min_share),
            lately: Recent::most(tuning().lately),
            air: Air {
                device: policy.pacer(),
                others: Share::new(
                    config.host,
                    config.session,
                    config.yields,
                    config.least_share,
                    &config.denied_air,
                ),
            },
            router: config.route.map(|r| Router::new(r, config.host, config.session)),
            unwanted: Vec::new(),
            config,
            clock: Time::ZERO,
            policy,
            peers: BTreeMap::new(),
            next_peer: 0,
            topics: Vec::new(),
            arrivals: 0,
            jobs: 0,
            stats: RadioStats::default(),
        })
    }

    /// Adds a peer and begins to greet it.
    ///
    /// # Errors
    /// [`PeerError`] if its settings are invalid.
    pub fn add_peer(&mut self, now: Time, config: PeerConfig) -> Result<PeerId, PeerError> {
        let now = self.tick(now);
        if !DATAGRAM.contains(&config.max_datagram) {
            return Err(PeerError::Datagram {
                bytes: config.max_datagram,
            });
        }
        if config.joined == 0 || config.max_joined() > *DATAGRAM.end() {
            return Err(PeerError::Joined {
                joined: config.joined,
                bytes: config.max_datagram,
            });
        }
        if config.hops == 0 {
            return Err(PeerError::Hops);
        }
        let id = PeerId(self.next_peer);
        self.next_peer += 1;
        if !config.air && config.host != 0 {
            self.air.others.table.deny(crate::share::id(config.host, 0));
        }
        self.peers
            .insert(id, Peer::new(now, id, config, &self.config, &*self.policy));
        if let Some(router) = &mut self.router {
            router.add(now, id, config.host);
        }
        Ok(id)
    }

    /// Limits datagrams to `peer` to `bytes` from here on: 256 or more, but at most the size in its settings when it
    /// was added. Messages already begun continue in shorter fragments. Data that is cut only once keeps its size:
    /// symbols of bulk messages that were offered before, and parity over longer fragments.
    pub fn set_max_datagram(&mut self, peer: PeerId, bytes: usize) {
        if let Some(p) = self.peers.get_mut(&peer) {
            p.config.max_datagram = bytes.max(*DATAGRAM.start()).min(p.takes);
        }
    }

    /// Removes a peer. Its partial messages are aborted, and messages that wait for it are dropped as
    /// [`DropReason::PeerLost`]; its topics stay in the statistics and accept nothing more.
    pub fn remove_peer(&mut self, now: Time, peer: PeerId, sink: &mut impl Sink) {
        let now = self.tick(now);
        let Some(mut p) = self.peers.remove(&peer) else {
            return;
        };
        p.receiver.abort_all(sink, DropReason::PeerLost);
        if p.session.is_up() {
            sink.peer_down(peer, Down::Removed);
        }
        self.clear_topics(peer);
        self.route_removed(now, peer);
    }

    /// Adds a topic that this host sends to `peer`. It is announced as soon as the peer is up, and its messages follow
    /// once the peer has accepted it. A withdrawn topic of the same name comes back with these settings and type, under
    /// its number and with its counters.
    ///
    /// # Errors
    /// [`TopicError`] if the peer is unknown or a setting is out of bounds.
    pub fn add_topic(&mut self, now: Time, peer: PeerId, config: TopicConfig) -> Result<TopicId, TopicError> {
        self.tick(now);
        let Some(states_watched) = self.peers.get(&peer).map(|p| p.states_watched) else {
            return Err(TopicError::NoSuchPeer(peer));
        };
        if !(1..=MAX_NAME).contains(&config.name.len()) {
            return Err(TopicError::Name {
                bytes: config.name.len(),
            });
        }
        if config.type_name.len() > MAX_NAME {
            return Err(TopicError::TypeName {
                bytes: config.type_name.len(),
            });
        }
        if config.definition.len() > MAX_DEFINITION {
            return Err(TopicError::Definition {
                bytes: config.definition.len(),
            });
        }
        if config.via.as_ref().is_some_and(|v| !v.is_valid()) {
            return Err(TopicError::Via);
        }
        valid_priority(config.priority)?;
        valid_depth(config.depth, config.reliability)?;
        if let Some(share) = config.redundancy.filter(|s| !(*s > 0.0 && *s <= 1.0)) {
            return Err(TopicError::Redundancy { share });
        }
        if config.expiry.is_some_and(|e| e.is_zero()) {
            return Err(TopicError::Expiry);
        }
        valid_rate(config.max_rate)?;
        valid_share(config.min_share)?;
        valid_every(config.every)?;
        let withdrawn = self
            .topics
            .iter_mut()
            .enumerate()
            .find(|(_, t)| t.withdrawn && t.peer == peer && t.is_same_topic(&config));
        if let Some((i, t)) = withdrawn {
            t.quota.set(config.min_share);
            (t.withdrawn, t.config, t.rhythm) = (false, config, Rhythm::default());
            t.keep_or_not();
            t.renew_demand(states_watched);
            t.announced_order = self.arrivals;
            self.arrivals += 1;
            let bytes = t.encoded();
            t.announcer.restart(bytes);
            self.scheduler.moved(t);
            return Ok(TopicId(i as u32));
        }
        if self.topics.iter().filter(|t| t.peer == peer).count() >= MAX_TOPICS {
            return Err(TopicError::TooMany);
        }
        let id = TopicId(self.topics.len() as u32);
        self.topics
            .push(SendTopic::new(peer, config, self.arrivals, states_watched));
        self.arrivals += 1;
        Ok(id)
    }

    /// Withdraws a topic: its waiting messages are dropped as [`DropReason::Unannounced`], as are messages offered from
    /// here on. The peer is notified, so that it can release what it made for the topic.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic.
    pub fn withdraw_topic(&mut self, now: Time, topic: TopicId) -> Result<(), TopicError> {
        self.tick(now);
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        if t.withdrawn {
            return Ok(());
        }
        (t.withdrawn, t.rhythm) = (true, Rhythm::default());
        t.latch.clear();
        let known = t.announcer.accepted().is_some();
        let bytes = t.clear(DropReason::Unannounced);
        let withdrawal = t.encoded();
        t.announcer.restart(withdrawal);
        if !known && !self.is_up(self.topics[topic.0 as usize].peer) {
            self.topics[topic.0 as usize].announcer.keep_silent();
        }
        self.released(bytes);
        Ok(())
    }

    /// Changes several settings of a topic at once, or none if one of them is out of range.
    ///
    /// # Errors
    /// [`TopicError`] names the first such setting.
    pub fn set_topic(&mut self, now: Time, topic: TopicId, change: TopicChange) -> Result<(), TopicError> {
        let t = self
            .topics
            .get(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        let (priority, depth) = (t.config.priority, t.config.depth);
        let reliability = t.config.reliability;
        valid_priority(change.priority.unwrap_or(priority))?;
        valid_depth(change.depth.unwrap_or(depth), reliability)?;
        valid_rate(change.max_rate.flatten())?;
        valid_every(change.every.unwrap_or(1))?;
        valid_share(change.min_share.unwrap_or_default())?;
        self.set_priority(now, topic, change.priority.unwrap_or(priority))?;
        self.set_depth(now, topic, change.depth.unwrap_or(depth))?;
        if let Some(share) = change.min_share
            && let Some(t) = self.topics.get_mut(topic.0 as usize)
        {
            t.config.min_share = share;
            t.quota.set(share);
        }
        if let Some(deadline) = change.deadline {
            self.set_deadline(topic, deadline)?;
        }
        if let Some(every) = change.every {
            self.set_every(topic, every)?;
        }
        match change.max_rate {
            Some(hz) => self.set_max_rate(topic, hz),
            None => Ok(()),
        }
    }

    /// Changes a topic's priority, 0 (lowest) to 127; it also applies to messages already waiting.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic or priority.
    pub fn set_priority(&mut self, now: Time, topic: TopicId, priority: u8) -> Result<(), TopicError> {
        self.tick(now);
        valid_priority(priority)?;
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        if t.config.priority != priority {
            t.config.priority = priority;
            self.scheduler.moved(t);
            self.announce_again(topic);
        }
        Ok(())
    }

    /// Changes how many of a topic's messages may wait; the oldest above the limit are dropped at once.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic or the depth is 0.
    pub fn set_depth(&mut self, now: Time, topic: TopicId, depth: u32) -> Result<(), TopicError> {
        self.tick(now);
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        valid_depth(depth, t.config.reliability)?;
        if t.config.depth != depth {
            t.config.depth = depth;
            t.latch.keep_last(depth);
            let bytes = t.keep_last();
            self.released(bytes);
            self.announce_again(topic);
        }
        Ok(())
    }

    /// Changes how long after it was offered a message is worth sending; it also applies to messages already waiting.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic.
    pub fn set_deadline(&mut self, topic: TopicId, deadline: Option<Duration>) -> Result<(), TopicError> {
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        t.config.deadline = deadline;
        Ok(())
    }

    /// Changes a topic's rate limit, in messages per second.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic or the limit is not a positive number.
    pub fn set_max_rate(&mut self, topic: TopicId, hz: Option<f64>) -> Result<(), TopicError> {
        valid_rate(hz)?;
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        t.config.max_rate = hz;
        t.rate_next = Time::ZERO;
        Ok(())
    }

    /// Changes the decimation of a topic: keeps one message in `every`, beginning with the next.
    ///
    /// # Errors
    /// [`TopicError`] if there is no such topic or `every` is 0.
    pub fn set_every(&mut self, topic: TopicId, every: u32) -> Result<(), TopicError> {
        valid_every(every)?;
        let t = self
            .topics
            .get_mut(topic.0 as usize)
            .ok_or(TopicError::NoSuchTopic(topic))?;
        t.config.every = every;
        t.skip = 0;
        Ok(())
    }

    /// Changes the pacer's estimate of what a datagram costs, from the next one on. The kind of medium stays what it was
    /// at [`Radio::new`].
    ///
    /// # Errors
    /// [`ConfigError`] if the gain is invalid.
    pub fn set_airtime(&mut self, airtime: AirtimeModel) -> Result<(), ConfigError> {
        valid_gain(&airtime)?;
        self.config.airtime = airtime;
        for p in self.peers.values_mut() {
            p.airtime = airtime;
            p.estimate = self.policy.estimate(&p.config, airtime);
        }
        Ok(())
    }

    fn announce_again(&mut self, topic: TopicId) {
        let Some(t) = self.topics.get_mut(topic.0 as usize) else {
            return;
        };
        let bytes = t.encoded();
        t.announcer.change(bytes);
        t.announced_order = self.arrivals;
        self.arrivals += 1;
    }
}

fn valid_gain(airtime: &AirtimeModel) -> Result<(), ConfigError> {
    if airtime.is_valid() {
        Ok(())
    } else {
        Err(ConfigError::Gain {
            gain: airtime.gain.unwrap_or_default(),
        })
    }
}

fn valid_every(every: u32) -> Result<(), TopicError> {
    if every == 0 {
        return Err(TopicError::Every);
    }
    Ok(())
}

fn valid_part(which: &'static str, share: f64, least: f64, most: f64) -> Result<(), ConfigError> {
    if (least..=most).contains(&share) {
        return Ok(());
    }
    Err(ConfigError::Share {
        which,
        share,
        least,
        most,
    })
}

fn valid_share(share: f64) -> Result<(), TopicError> {
    if (0.0..=0.9).contains(&share) {
        Ok(())
    } else {
        Err(TopicError::Share { share })
    }
}

fn valid_priority(priority: u8) -> Result<(), TopicError> {
    if priority <= MAX_PRIORITY {
        Ok(())
    } else {
        Err(TopicError::Priority { priority })
    }
}

fn valid_depth(depth: u32, reliability: Reliability) -> Result<(), TopicError> {
    match (depth, reliability) {
        (0, _) => Err(TopicError::Depth),
        (MAX_DEPTH.., r) if depth > MAX_DEPTH && r.keeps() => Err(TopicError::DeepReliable { depth }),
        _ => Ok(()),
    }
}

fn valid_rate(hz: Option<f64>) -> Result<(), TopicError> {
    match hz {
        Some(hz) if !(hz.is_finite() && hz > 0.0) => Err(TopicError::Rate { hz }),
        _ => Ok(()),
    }
}
