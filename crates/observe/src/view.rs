//! Activity of a link between two states, as numbers.

use crate::text::{delivery, other_end, received_state, shown_name};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Activity of a link between two of its states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// This host's name.
    pub host: String,
    /// The link's name.
    pub link: String,
    /// Time between the two states, in seconds.
    pub interval_s: f64,
    /// Share of the time charged as airtime for what this host sent.
    pub air_share: f64,
    /// What this host sent, or sent to this peer.
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
    /// Services of both ends.
    pub services: Vec<Service>,
}

/// A host behind relays.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Service {
    /// Its name on this host's bus.
    pub service: String,
    /// Whether its callers are on this host, or its server.
    pub role: String,
    /// The peer's name.
    pub peer: String,
    /// Its state, such as `ready`.
    pub state: String,
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
    pub failed: BTreeMap<String, u64>,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    pub rate_source: String,
    /// Share of the time charged as airtime for it.
    pub air_share: f64,
    /// What this host sent, or sent to this peer.
    pub sent_mbit_s: f64,
    /// What this host received from it.
    pub received_mbit_s: f64,
    /// How often the peer was lost since the start of the link.
    pub lost: u64,
    /// Topics that the peer refused.
    pub refused_topics: u64,
    /// If the peer does not answer: its address, for how long, and what to check.
    pub unheard: Option<String>,
}

/// Direction of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// This host sends it.
    #[default]
    Out,
    /// This host receives it.
    In,
}

/// A topic that crosses the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// Its state, such as `ready`.
    pub state: String,
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
    /// Share delivered of the messages whose fate is known.
    pub delivery: Option<f64>,
    /// Mean delay from the publisher's stamp, if it is received.
    pub delay_mean_ms: Option<f64>,
    /// The same, 99th percentile.
    pub delay_p99_ms: Option<f64>,
    /// Jitter that the path added, 99th percentile.
    pub jitter_p99_ms: Option<f64>,
    /// Share of the time charged as airtime for it.
    pub air_share: f64,
    /// Losses in the interval, at both ends.
    pub lost_hz: f64,
    /// Losses since the start of the sender's link, by reason, at both ends.
    pub drops: BTreeMap<String, u64>,
    /// Delivered messages that subscribers of the receiving host lost, counted once per subscriber.
    pub not_taken: u64,
}

/// Keys that identify a topic in a state.
const TOPIC: [&str; 4] = ["peer", "name", "source", "to"];

impl View {
    /// Computes the activity between two states of one link.
    pub fn between(before: &Value, now: &Value) -> View {
        let span = number(&now["uptime_clock_s"]) - number(&before["uptime_clock_s"]);
        let span = if span > 0.0 { span } else { f64::INFINITY };
        let rate = Rate { span };
        View {
            host: word(&now["host"]),
            link: word(&now["link"]),
            interval_s: if span.is_finite() { span } else { 0.0 },
            air_share: rate.share(&before["radio"]["air_s"], &now["radio"]["air_s"]),
            sent_mbit_s: rate.mbit(&before["radio"]["bytes"], &now["radio"]["bytes"]),
            queued_bytes: count(&now["radio"]["queued_bytes"]),
            peers: list(&now["peers"])
                .map(|p| peer(rate, like(&before["peers"], p, &["name"]), p))
                .collect(),
            ways: list(&now["ways"])
                .filter(|w| w["host"] != w["over"])
                .map(|w| Way {
                    host: word(&w["host"]),
                    over: word(&w["over"]),
                    hops: count(&w["hops"]),
                    cost_us: count(&w["cost_us"]),
                })
                .collect(),
            unreachable: list(&now["unreachable"]).map(word).collect(),
            topics: list(&now["sent"])
                .map(|t| (sent(rate, like(&before["sent"], t, &TOPIC), t), t))
                .chain(list(&now["received"]).map(|t| {
                    let old = like(&before["received"], t, &TOPIC);
                    (received(rate, old, t), t)
                }))
                .map(|(topic, t)| Topic {
                    topic: shown_name(t, &now["host"]),
                    peer: word(&t["peer"]),
                    source: word(&t["source"]),
                    to: list(&t["to"]).map(word).collect(),
                    other_end: other_end(t),
                    priority: priority(t),
                    ..topic
                })
                .collect(),
            unpublished: list(&now["unpublished"]).map(word).collect(),
            services: list(&now["services"])
                .map(|s| service(rate, like(&before["services"], s, &["peer", "name", "role"]), s))
                .collect(),
        }
    }
}

fn peer(rate: Rate, old: &Value, p: &Value) -> Peer {
    let measured = |v: &Value, unit: f64| Some(number(v) / unit).filter(|n| *n > 0.0);
    Peer {
        name: word(&p["name"]),
        up: p["up"] == true,
        round_trip_ms: measured(&p["round_trip_us"], 1e3),
        rate_mbit_s: measured(&p["rate_bit_s"], 1e6),
        rate_source: word(&p["rate_source"]),
        air_share: rate.share(&old["air_s"], &p["air_s"]),
        sent_mbit_s: rate.mbit(&old["bytes_sent"], &p["bytes_sent"]),
        received_mbit_s: rate.mbit(&old["bytes_received"], &p["bytes_received"]),
        lost: count(&p["lost"]),
        refused_topics: count(&p["refused_topics"]),
        unheard: p["unheard"]["text"].as_str().map(str::to_owned),
    }
}

fn service(rate: Rate, old: &Value, s: &Value) -> Service {
    Service {
        service: word(&s["here"]),
        role: word(&s["role"]),
        peer: word(&s["peer"]),
        state: word(&s["state"]),
        priority: priority(s),
        calls_hz: rate.hz(&old["calls"], &s["calls"]),
        calls: count(&s["calls"]),
        open: count(&s["open"]),
        answered: count(&s["answered"]),
        failed: drops(&s["failed"]),
    }
}

fn sent(rate: Rate, old: &Value, t: &Value) -> Topic {
    Topic {
        direction: Direction::Out,
        state: word(&t["state"]),
        offered_hz: Some(rate.hz(&old["offered"], &t["offered"])),
        sent_hz: Some(rate.hz(&old["sent"], &t["sent"])),
        delivered_hz: None,
        mbit_s: rate.mbit(&old["sent_bytes"], &t["sent_bytes"]),
        air_share: rate.share(&old["air_s"], &t["air_s"]),
        not_taken: count(&t["at_receiver"]["drops"]["not_taken"]),
        ..accounted(rate, old, t)
    }
}

fn received(rate: Rate, old: &Value, t: &Value) -> Topic {
    let recent = &t["recent"];
    let known = |v: &Value| v.as_f64();
    Topic {
        direction: Direction::In,
        state: received_state(t).into(),
        delivered_hz: Some(rate.hz(&old["delivered"], &t["delivered"])),
        mbit_s: rate.mbit(&old["delivered_bytes"], &t["delivered_bytes"]),
        delay_mean_ms: known(&recent["delay_ms"]["mean"]),
        delay_p99_ms: known(&recent["delay_ms"]["p99"]),
        jitter_p99_ms: known(&recent["added_jitter_ms"]["p99"]),
        not_taken: count(&t["drops"]["not_taken"]),
        ..accounted(rate, old, t)
    }
}

/// Account of a topic at both ends, from one report.
fn accounted(rate: Rate, old: &Value, t: &Value) -> Topic {
    let account = &t["account"];
    let (before, drops) = (&old["account"]["dropped"], drops(&account["dropped"]));
    let lost: u64 = drops.values().sum();
    let before: u64 = self::drops(before).values().sum();
    Topic {
        offered: account["offered"].as_u64(),
        delivered: account["delivered"].as_u64(),
        in_flight: account["in_flight"].as_u64(),
        delivery: delivery(account),
        lost_hz: rate.per_second(lost.saturating_sub(before)),
        drops,
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
    fn hz(self, before: &Value, now: &Value) -> f64 {
        let (before, now) = (count(before), count(now));
        self.per_second(now.checked_sub(before).unwrap_or(now))
    }

    fn mbit(self, before: &Value, now: &Value) -> f64 {
        self.hz(before, now) * 8.0 / 1e6
    }

    /// The counter is in seconds.
    fn share(self, before: &Value, now: &Value) -> f64 {
        ((number(now) - number(before)) / self.span).max(0.0)
    }
}

/// The item of `among` with the same keys as `item`; null if there is none.
fn like<'a>(among: &'a Value, item: &Value, keys: &[&str]) -> &'a Value {
    list(among)
        .find(|other| keys.iter().all(|k| other[*k] == item[*k]))
        .unwrap_or(&Value::Null)
}

fn drops(of: &Value) -> BTreeMap<String, u64> {
    let reasons = of.as_object().into_iter().flatten();
    reasons.map(|(reason, n)| (reason.clone(), count(n))).collect()
}

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn word(v: &Value) -> String {
    v.as_str().unwrap_or_default().to_owned()
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_default()
}

fn count(v: &Value) -> u64 {
    v.as_u64().unwrap_or_default()
}

fn priority(t: &Value) -> u8 {
    u8::try_from(count(&t["priority"])).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!((scan.delivery.expect("told") - 180.0 / 202.0).abs() < 1e-9);
        assert_eq!(
            (scan.offered, scan.delivered, scan.in_flight),
            (Some(225), Some(180), Some(23))
        );
        assert_eq!(
            (scan.drops["air"], scan.not_taken),
            (2, 7),
            "copies are no losses"
        );
        let cmd = &v.topics[1];
        assert_eq!((cmd.direction, cmd.delivered_hz), (Direction::In, Some(45.0)));
        assert_eq!((cmd.delay_mean_ms, cmd.jitter_p99_ms), (Some(2.5), Some(1.5)));
        // Messages that arrived after the sender's report are not compared with what it had offered then.
        assert_eq!((cmd.delivery, cmd.delivered), (Some(1.0), Some(99)));
    }

    #[test]
    fn a_link_that_was_started_anew_and_one_that_says_nothing_give_numbers_all_the_same() {
        let v = View::between(&state(10.0, 100, 90), &state(11.0, 10, 9));
        assert_eq!(v.topics[0].sent_hz, Some(10.0));
        assert_eq!(v.topics[0].lost_hz, 0.0);
        let v = View::between(&Value::Null, &Value::Null);
        assert_eq!((v.interval_s, v.topics.len()), (0.0, 0));
        let one = state(10.0, 100, 90);
        let v = View::between(&one, &one);
        assert_eq!((v.topics[0].sent_hz, v.air_share), (Some(0.0), 0.0));
    }
}
