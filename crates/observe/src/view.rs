//! Activity of a link between two states, as numbers.

use crate::state::{
    AccountState, DelayState, LinkState, PeerState, ReceivedState, SentState, ServiceCounts, total,
};
use crate::{Drops, RateSource, ServiceRole, ServiceState, TopicState};
use serde::{Deserialize, Serialize};
use stats::DropReason;
use std::collections::BTreeMap;

/// Activity of a link between two of its states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// This host's name.
    pub host: String,
    /// The link's name.
    pub link: String,
    /// Time between the two states, in seconds.
    pub interval_s: f64,
    /// Share of the time charged as airtime for this host's transmissions.
    pub air_share: f64,
    /// Rate of the data that this host sent, or sent to this peer.
    pub sent_mbit_s: f64,
    /// Bytes of messages that wait.
    pub queued_bytes: u64,
    /// Hosts that it exchanges datagrams with.
    pub peers: Vec<Peer>,
    /// Hosts reachable only through relays.
    pub ways: Vec<Way>,
    /// Hosts that no relay reaches now.
    pub unreachable: Vec<String>,
    /// Topics that are sent and received.
    pub topics: Vec<Topic>,
    /// Topics to be sent that nobody publishes here.
    pub unpublished: Vec<String>,
    /// Topics with a publisher that the link cannot send, at least not to all of its peers, and why.
    pub unsent: BTreeMap<String, String>,
    /// Services of both ends.
    pub services: Vec<Service>,
}

/// A host behind relays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Way {
    /// The host.
    pub host: String,
    /// The peer through which it is reached.
    pub over: String,
    /// Number of hops.
    pub hops: u64,
    /// Airtime of a full datagram over the whole path.
    pub cost_us: u64,
}

/// A service towards one peer. Every call is open, answered or failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its name on this host's bus.
    pub service: String,
    /// Whether its callers are on this host, or its server.
    pub role: ServiceRole,
    /// The peer's name.
    pub peer: String,
    /// Its state, such as `ready`.
    pub state: ServiceState,
    /// Priority on the air; 127 goes first.
    pub priority: u8,
    /// Calls a second.
    pub calls_hz: f64,
    /// Since the start of the link, like the counts below.
    pub calls: u64,
    /// Calls without an answer yet.
    pub open: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// By reason.
    pub failed: Drops,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// From acknowledgements; none while nothing requests any.
    pub round_trip_ms: Option<f64>,
    /// Rate used to compute airtime; none if sending is not paced.
    pub rate_mbit_s: Option<f64>,
    /// Whether the rate is set, estimated or guessed.
    pub rate_source: RateSource,
    /// Share of the time charged as airtime for it.
    pub air_share: f64,
    /// Rate of the data that this host sent, or sent to this peer.
    pub sent_mbit_s: f64,
    /// Rate of the data that this host received from it.
    pub received_mbit_s: f64,
    /// How often the peer was lost since the start of the link.
    pub lost: u64,
    /// Topics that the peer refused.
    pub refused_topics: u64,
    /// If the peer does not answer: its address, for how long, and what to check.
    pub unheard: Option<String>,
    /// Its clock, if the links compared theirs.
    pub clock: Option<Clock>,
}

/// A peer's clock relative to this host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// How far it is ahead.
    pub ahead_ms: f64,
    /// Likely error of that.
    pub likely_error_ms: f64,
}

/// Direction of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// This host sends it.
    #[default]
    Out,
    /// This host receives it.
    In,
}

/// Settings of a topic that is sent, except its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Newest messages that may wait.
    pub depth: u32,
    /// How long a message is worth sending; none: always.
    pub deadline_ms: Option<f64>,
    /// Messages a second that may pass; none: all.
    pub rate_limit_hz: Option<f64>,
    /// One message in this many passes.
    pub every: u32,
    /// Share of the air guaranteed against higher priorities.
    pub min_share: f64,
}

/// A topic that crosses the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topic {
    /// Its name on this host's bus; its name on the air if it has none there.
    pub topic: String,
    /// Whether it is sent or received.
    pub direction: Direction,
    /// The peer to or from which it is sent over the air.
    pub peer: String,
    /// Host of the topic's publisher; relays may lie in between.
    pub source: String,
    /// Receivers, if it is sent.
    pub to: Vec<String>,
    /// The other end, for people.
    #[serde(skip)]
    pub other_end: String,
    /// Priority on the air; 127 goes first.
    pub priority: u8,
    /// The sender's other settings, if it is sent.
    pub settings: Option<Settings>,
    /// Whether it flows.
    pub state: TopicState,
    /// Rate of the publisher, as far as the sending host knows it.
    pub offered_hz: Option<f64>,
    /// Messages sent a second, if it is sent.
    pub sent_hz: Option<f64>,
    /// Messages delivered a second, if it is received.
    pub delivered_hz: Option<f64>,
    /// Payload sent, or delivered at the receiver.
    pub mbit_s: f64,
    /// Account of its messages since the start of the sender's link, at one moment: offered is the sum of delivered,
    /// `drops`, and in flight. None before the sender's first report.
    pub offered: Option<u64>,
    /// Messages delivered.
    pub delivered: Option<u64>,
    /// Messages on the way.
    pub in_flight: Option<u64>,
    /// Share delivered of the messages whose outcome is known.
    pub delivery: Option<f64>,
    /// Mean delay from the publisher's stamp, if it is received.
    pub delay_mean_ms: Option<f64>,
    /// The same, 99th percentile.
    pub delay_p99_ms: Option<f64>,
    /// Mean time from the peer's link to this one in the interval, for a received topic: the wait at the peer, and the
    /// time on the air. Measured with clocks that both links compare, so unlike `delay_mean_ms` it does not depend on
    /// the time of day of two hosts.
    pub link_delay_ms: Option<f64>,
    /// Uncertainty of `link_delay_ms`.
    pub link_delay_error_ms: Option<f64>,
    /// Jitter that the path added, 99th percentile.
    pub jitter_p99_ms: Option<f64>,
    /// Share of the time charged as airtime for it.
    pub air_share: f64,
    /// Losses in the interval, at both ends.
    pub lost_hz: f64,
    /// Losses since the start of the sender's link, by reason, at both ends.
    pub drops: Drops,
    /// Of these, losses at the sending host, if it reports them.
    pub drops_at_sender: Option<Drops>,
    /// Of these, losses that the receiving host reports, since it learned of the sender's present session.
    pub drops_at_receiver: Option<Drops>,
    /// Delivered messages that subscribers of the receiving host lost, counted once per subscriber.
    pub not_taken: u64,
}

impl View {
    /// Computes the activity between two states of one link.
    pub fn between(before: &LinkState, now: &LinkState) -> View {
        let span = now.uptime_clock_s - before.uptime_clock_s;
        let span = if span > 0.0 { span } else { f64::INFINITY };
        let rate = Rate { span };
        let peers = now.peers.iter().map(|p| {
            let old = before.peers.iter().find(|o| o.name == p.name);
            peer(rate, old, p)
        });
        let sent = now.sent.iter().map(|t| {
            let same =
                |o: &&SentState| (&o.peer, &o.name, &o.source, &o.to) == (&t.peer, &t.name, &t.source, &t.to);
            sent(rate, before.sent.iter().find(same), t, &now.host)
        });
        let received = now.received.iter().map(|t| {
            let same = |o: &&ReceivedState| (&o.peer, &o.name, &o.source) == (&t.peer, &t.name, &t.source);
            received(rate, before.received.iter().find(same), t, &now.host)
        });
        let services = now.services.iter().map(|s| {
            let same = |o: &&ServiceCounts| (&o.peer, &o.name, &o.role) == (&s.peer, &s.name, &s.role);
            service(rate, before.services.iter().find(same), s)
        });
        View {
            host: now.host.clone(),
            link: now.link.clone(),
            interval_s: if span.is_finite() { span } else { 0.0 },
            air_share: rate.share(before.radio.air_s, now.radio.air_s),
            sent_mbit_s: rate.mbit(before.radio.bytes, now.radio.bytes),
            queued_bytes: now.radio.queued_bytes,
            peers: peers.collect(),
            ways: (now.ways.iter().filter(|w| w.host != w.over))
                .map(|w| Way {
                    host: w.host.clone(),
                    over: w.over.clone(),
                    hops: w.hops,
                    cost_us: w.cost_us,
                })
                .collect(),
            unreachable: now.unreachable.clone(),
            topics: sent.chain(received).collect(),
            unpublished: now.unpublished.clone(),
            unsent: now.unsent.clone(),
            services: services.collect(),
        }
    }
}

impl Topic {
    /// An identifier that is unique among the topics of its link.
    pub fn id(&self) -> String {
        let direction = match self.direction {
            Direction::Out => "out",
            Direction::In => "in",
        };
        let to = self.to.join(",");
        format!("{direction} {} {} {} {to}", self.topic, self.source, self.peer)
    }
}

fn peer(rate: Rate, old: Option<&PeerState>, p: &PeerState) -> Peer {
    let before = |of: fn(&PeerState) -> u64| old.map_or(0, of);
    let measured = |n: u64, unit: f64| (n > 0).then(|| n as f64 / unit);
    Peer {
        name: p.name.clone(),
        up: p.up,
        round_trip_ms: measured(p.round_trip_us, 1e3),
        rate_mbit_s: measured(p.rate_bit_s, 1e6),
        rate_source: p.rate_source.clone(),
        air_share: rate.share(old.map_or(0.0, |o| o.air_s), p.air_s),
        sent_mbit_s: rate.mbit(before(|o| o.bytes_sent), p.bytes_sent),
        received_mbit_s: rate.mbit(before(|o| o.bytes_received), p.bytes_received),
        lost: p.lost,
        refused_topics: p.refused_topics,
        unheard: p.unheard.as_ref().map(|u| u.text.clone()),
        clock: p.clock.as_ref().map(|c| Clock {
            ahead_ms: c.ahead_us / 1e3,
            likely_error_ms: c.likely_us / 1e3,
        }),
    }
}

fn service(rate: Rate, old: Option<&ServiceCounts>, s: &ServiceCounts) -> Service {
    Service {
        service: s.here.clone(),
        role: s.role.clone(),
        peer: s.peer.clone(),
        state: s.state.clone(),
        priority: s.priority,
        calls_hz: rate.hz(old.map_or(0, |o| o.calls), s.calls),
        calls: s.calls,
        open: s.open,
        answered: s.answered,
        failed: s.failed.clone(),
    }
}

fn sent(rate: Rate, old: Option<&SentState>, t: &SentState, host: &str) -> Topic {
    let before = |of: fn(&SentState) -> u64| old.map_or(0, of);
    let there = t.at_receiver.as_ref();
    let account = (old.and_then(|o| o.account.as_ref()), t.account.as_ref());
    Topic {
        topic: t.shown_name(host),
        direction: Direction::Out,
        peer: t.peer.clone(),
        source: t.source.clone(),
        to: t.to.clone(),
        other_end: t.other_end(),
        priority: t.priority,
        settings: Some(Settings {
            depth: t.depth,
            deadline_ms: t.deadline_ms,
            rate_limit_hz: t.rate_limit_hz,
            every: t.every,
            min_share: t.min_share,
        }),
        state: t.state.clone(),
        offered_hz: Some(rate.hz(before(|o| o.offered), t.offered)),
        sent_hz: Some(rate.hz(before(|o| o.sent), t.sent)),
        mbit_s: rate.mbit(before(|o| o.sent_bytes), t.sent_bytes),
        air_share: rate.share(old.map_or(0.0, |o| o.air_s), t.air_s),
        drops_at_sender: Some(t.drops.clone()),
        drops_at_receiver: there.map(|r| only_lost(&r.drops)),
        not_taken: there.map_or(0, |r| not_taken(&r.drops)),
        ..accounted(rate, account)
    }
}

fn received(rate: Rate, old: Option<&ReceivedState>, t: &ReceivedState, host: &str) -> Topic {
    let before = |of: fn(&ReceivedState) -> u64| old.map_or(0, of);
    let recent = t.recent.as_ref();
    let account = (old.and_then(|o| o.account.as_ref()), t.account.as_ref());
    Topic {
        topic: t.shown_name(host),
        direction: Direction::In,
        peer: t.peer.clone(),
        source: t.source.clone(),
        other_end: t.other_end(),
        priority: t.priority,
        state: t.state(),
        delivered_hz: Some(rate.hz(before(|o| o.delivered), t.delivered)),
        mbit_s: rate.mbit(before(|o| o.delivered_bytes), t.delivered_bytes),
        delay_mean_ms: recent.and_then(|r| r.delay_ms.mean),
        delay_p99_ms: recent.and_then(|r| r.delay_ms.p99),
        link_delay_ms: link_delay_ms(old.and_then(|o| o.delay.as_ref()), t.delay.as_ref()),
        link_delay_error_ms: t.delay.as_ref().map(|d| d.uncertainty_us / 1e3),
        jitter_p99_ms: recent.and_then(|r| r.added_jitter_ms.p99),
        drops_at_receiver: Some(only_lost(&t.drops)),
        not_taken: not_taken(&t.drops),
        ..accounted(rate, account)
    }
}

/// Mean of the messages measured between two states.
fn link_delay_ms(old: Option<&DelayState>, now: Option<&DelayState>) -> Option<f64> {
    let now = now?;
    // A new session starts from 0.
    let old = old.filter(|old| old.messages <= now.messages);
    let sum = |d: &DelayState| d.mean_us * d.messages as f64;
    let messages = now.messages - old.map_or(0, |old| old.messages);
    (messages > 0).then(|| ((sum(now) - old.map_or(0.0, sum)) / messages as f64 / 1e3).max(0.0))
}

/// Delivered messages that subscribers of the receiving host lost.
fn not_taken(drops: &Drops) -> u64 {
    let name = DropReason::NotTaken.name();
    drops.get(name).copied().unwrap_or(0)
}

/// Leaves out copies and delivered messages.
fn only_lost(drops: &Drops) -> Drops {
    let beside = [DropReason::Duplicate.name(), DropReason::NotTaken.name()];
    let lost = drops
        .iter()
        .filter(|(reason, _)| !beside.contains(&reason.as_str()));
    lost.map(|(reason, n)| (reason.clone(), *n)).collect()
}

/// Account of a topic at both ends, from one report.
fn accounted(rate: Rate, (old, now): (Option<&AccountState>, Option<&AccountState>)) -> Topic {
    let lost = now.map_or(0, |a| total(&a.dropped));
    let before = old.map_or(0, |a| total(&a.dropped));
    Topic {
        offered: now.map(|a| a.offered),
        delivered: now.map(|a| a.delivered),
        in_flight: now.map(|a| a.in_flight),
        delivery: now.and_then(AccountState::delivery),
        lost_hz: rate.per_second(lost.saturating_sub(before)),
        drops: now.map(|a| a.dropped.clone()).unwrap_or_default(),
        ..Topic::default()
    }
}

/// Converts differences into rates.
#[derive(Clone, Copy)]
struct Rate {
    /// Seconds; infinite if there is only one state.
    span: f64,
}

impl Rate {
    fn per_second(self, n: u64) -> f64 {
        n as f64 / self.span
    }

    /// A counter that was reset counts from 0.
    fn hz(self, before: u64, now: u64) -> f64 {
        self.per_second(now.checked_sub(before).unwrap_or(now))
    }

    fn mbit(self, before: u64, now: u64) -> f64 {
        self.hz(before, now) * 8.0 / 1e6
    }

    /// The counter is in seconds.
    fn share(self, before: f64, now: f64) -> f64 {
        ((now - before) / self.span).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkState;
    use crate::sample::{state, view};

    #[test]
    fn rates_are_differences_over_the_time_between() {
        let v = view();
        assert_eq!(v.interval_s, 2.0);
        assert!((v.air_share - 0.05).abs() < 1e-9);
        assert_eq!(v.sent_mbit_s, 0.4);
        assert_eq!(
            (v.peers[0].round_trip_ms, v.peers[0].rate_mbit_s),
            (Some(3.2), Some(6.0))
        );
        let grasp = &v.services[0];
        assert_eq!(
            (grasp.calls_hz, grasp.open, grasp.failed["timed_out"]),
            (50.0, 1, 2)
        );
        assert_eq!((v.ways.len(), v.ways[0].host.as_str()), (1, "far"));
        let scan = &v.topics[0];
        assert_eq!(
            (scan.topic.as_str(), scan.other_end.as_str()),
            ("/far/scan", "far via base")
        );
        assert_eq!(
            (scan.offered_hz, scan.sent_hz, scan.lost_hz),
            (Some(50.0), Some(50.0), 5.0)
        );
        assert_eq!(scan.drops["replaced"], 20);
        assert!((scan.delivery.expect("reported") - 180.0 / 202.0).abs() < 1e-9);
        assert_eq!(
            (scan.offered, scan.delivered, scan.in_flight),
            (Some(225), Some(180), Some(23))
        );
        assert_eq!(
            (scan.drops["air"], scan.not_taken),
            (2, 7),
            "copies are no losses"
        );
        let here = scan.drops_at_sender.as_ref().expect("reported");
        let there = scan.drops_at_receiver.as_ref().expect("reported");
        assert_eq!((here["replaced"], there.len(), there["air"]), (20, 1, 2));
        let cmd = &v.topics[1];
        assert_eq!((cmd.direction, cmd.delivered_hz), (Direction::In, Some(45.0)));
        assert_eq!((cmd.delay_mean_ms, cmd.jitter_p99_ms), (Some(2.5), Some(1.5)));
        assert_eq!(
            (cmd.link_delay_ms, cmd.link_delay_error_ms),
            (Some(3.0), Some(0.4))
        );
        // Messages that arrived after the sender's report are not compared with what it had offered then.
        assert_eq!((cmd.delivery, cmd.delivered), (Some(1.0), Some(99)));
    }

    #[test]
    fn the_delay_of_a_link_is_that_of_the_interval() {
        let delay = |messages, mean_us| DelayState {
            messages,
            mean_us,
            uncertainty_us: 400.0,
        };
        let (old, now) = (delay(10, 1000.0), delay(30, 3000.0));
        assert_eq!(link_delay_ms(Some(&old), Some(&now)), Some(4.0));
        assert_eq!(
            link_delay_ms(Some(&now), Some(&now)),
            None,
            "nothing was measured"
        );
        assert_eq!(link_delay_ms(Some(&now), Some(&old)), Some(1.0), "a new session");
        assert_eq!(link_delay_ms(None, Some(&old)), Some(1.0));
        assert_eq!(link_delay_ms(Some(&old), None), None);
    }

    #[test]
    fn restarted_and_silent_links_still_yield_numbers() {
        let v = View::between(&state(10.0, 100, 90), &state(11.0, 10, 9));
        assert_eq!(v.topics[0].sent_hz, Some(10.0));
        assert_eq!(v.topics[0].lost_hz, 0.0);
        let v = View::between(&LinkState::default(), &LinkState::default());
        assert_eq!((v.interval_s, v.topics.len()), (0.0, 0));
        let one = state(10.0, 100, 90);
        let v = View::between(&one, &one);
        assert_eq!((v.topics[0].sent_hz, v.air_share), (Some(0.0), 0.0));
    }
}
