//! The types of a link's services and topic, and their values for a state.

use crate::engine::calls::ServiceStatus;
use crate::status::{ReceivedTopic, SentTopic, Status};
use proto::Account;
use schema::{Flavour, Registry, Schema, Service};
use serde::Serialize;
use serde_json::{Value, json};
use stats::Drops;

/// The types of a link's services and its topic.
pub(super) struct Types {
    pub(super) set: Service,
    pub(super) state: Service,
    pub(super) status: Schema,
}

const MESSAGES: [(&str, &str); 8] = [
    (
        "ropewalk_link/LinkAccount",
        include_str!("../../msg/LinkAccount.msg"),
    ),
    ("ropewalk_link/LinkDrop", include_str!("../../msg/LinkDrop.msg")),
    ("ropewalk_link/LinkPeer", include_str!("../../msg/LinkPeer.msg")),
    ("ropewalk_link/LinkSent", include_str!("../../msg/LinkSent.msg")),
    (
        "ropewalk_link/LinkReceived",
        include_str!("../../msg/LinkReceived.msg"),
    ),
    (
        "ropewalk_link/LinkService",
        include_str!("../../msg/LinkService.msg"),
    ),
    ("ropewalk_link/LinkWay", include_str!("../../msg/LinkWay.msg")),
    (
        "ropewalk_link/LinkStatus",
        include_str!("../../msg/LinkStatus.msg"),
    ),
];
const SERVICES: [(&str, &str); 2] = [
    ("ropewalk_link/SetTopic", include_str!("../../msg/SetTopic.srv")),
    ("ropewalk_link/State", include_str!("../../msg/State.srv")),
];

impl Types {
    pub(super) fn new() -> Self {
        Self::read().unwrap_or_else(|e| unreachable!("a test parses the same definitions: {e}"))
    }

    fn read() -> Result<Self, schema::DefinitionError> {
        let mut registry = Registry::new(Flavour::Ros1);
        for (name, text) in MESSAGES {
            registry.add_message(name, text)?;
        }
        for (name, text) in SERVICES {
            registry.add_service(name, text)?;
        }
        Ok(Types {
            set: registry.service("ropewalk_link/SetTopic")?,
            state: registry.service("ropewalk_link/State")?,
            status: registry.schema("ropewalk_link/LinkStatus")?,
        })
    }
}

/// A `ropewalk_link/LinkStatus`.
pub(super) fn status_json(link: &str, s: &Status) -> Value {
    let now = clock::realtime().0;
    json!({
        "stamp": { "secs": now / 1_000_000_000, "nsecs": now % 1_000_000_000 },
        "host": s.host,
        "link": link,
        "scheduling": s.scheduling,
        "air_s": s.radio.air.as_secs_f64(),
        "datagrams": s.radio.datagrams,
        "bytes": s.radio.bytes,
        "urgent": s.radio.urgent,
        "queued_bytes": s.radio.queued_bytes,
        "refused_datagrams": s.refused_datagrams,
        "peers": s.peers.iter().map(|p| json!({
            "name": p.name,
            "up": p.stats.up,
            "unheard": p.unheard.as_ref().map(|u| u.text.as_str()).unwrap_or_default(),
            "session": p.stats.session,
            "restarts": p.stats.restarts,
            "lost": p.stats.lost,
            "datagrams_sent": p.stats.datagrams_sent,
            "bytes_sent": p.stats.bytes_sent,
            "datagrams_received": p.stats.datagrams_received,
            "bytes_received": p.stats.bytes_received,
            "datagrams_missing": p.stats.datagrams_missing,
            "refused_topics": p.refused_topics,
            "path_mtu": p.path_mtu.unwrap_or_default(),
            "round_trip_ms": positive(p.stats.round_trip_us, 1e3),
            "rate_mbit_s": positive(p.stats.rate_bit_s, 1e6),
            "rate_source": word(p.stats.rate_source),
            "air_s": p.stats.air.as_secs_f64(),
            "drops": drops([&p.stats.drops]),
        })).collect::<Vec<_>>(),
        "sent": s.sent.iter().map(sent).collect::<Vec<_>>(),
        "received": s.received.iter().map(received).collect::<Vec<_>>(),
        "unpublished": s.unpublished,
        "unsent": s.unsent.iter().map(|(topic, why)| format!("{topic}: {why}")).collect::<Vec<_>>(),
        "services": s.services.iter().map(service).collect::<Vec<_>>(),
        "ways": s.ways.iter().map(|w| json!({
            "host": w.host,
            "over": w.over,
            "hops": w.hops,
            "cost_us": w.cost_us,
        })).collect::<Vec<_>>(),
        "unreachable": s.unreachable,
        "way_changes": s.way_changes,
        "forwarded": s.relay.forwarded,
        "forward_drops": drops([&s.relay.drops]),
        "forward_unopened": s.relay.unopened,
    })
}

fn sent(t: &SentTopic) -> Value {
    let there = t.stats.at_receiver.clone().unwrap_or_default();
    json!({
        "account": account(Some(&t.stats.account)),
        "peer": t.peer,
        "topic": t.stats.name,
        "here": t.here.as_deref().unwrap_or_default(),
        "source": t.source,
        "to": t.to,
        "priority": t.stats.priority,
        "depth": t.stats.depth,
        "deadline_ms": number(t.stats.deadline.map(|d| d.as_secs_f64() * 1e3)),
        "rate_limit_hz": number(t.stats.max_rate),
        "every": t.stats.every,
        "min_share": t.stats.min_share,
        "state": word(t.stats.state),
        "arrived": number(t.stats.bulk.map(|b| b.arrived)),
        "offered": t.stats.offered,
        "offered_bytes": t.stats.offered_bytes,
        "sent": t.stats.sent,
        "sent_bytes": t.stats.sent_bytes,
        "fragments": t.stats.fragments,
        "queued": t.stats.queued,
        "air_s": t.stats.air.as_secs_f64(),
        "drops": drops([&t.stats.drops]),
        "drops_at_peer": drops([&there.drops]),
    })
}

fn received(t: &ReceivedTopic) -> Value {
    let recent = t.recent.as_ref();
    json!({
        "account": account(t.stats.account.as_ref()),
        "peer": t.peer,
        "topic": t.stats.name,
        "here": t.here.as_deref().unwrap_or_default(),
        "source": t.source,
        "accepted": t.stats.accepted,
        "priority": t.stats.priority,
        "delivered": t.stats.delivered,
        "delivered_bytes": t.stats.delivered_bytes,
        "partial": t.stats.partial,
        "arrived": number(t.stats.arrived),
        "hz": number(recent.map(|r| r.hz)),
        "delay_mean_ms": number(recent.map(|r| r.delay_ms.mean)),
        "delay_p99_ms": number(recent.map(|r| r.delay_ms.p99)),
        "period_std_ms": number(recent.map(|r| r.period_ms.std)),
        "added_jitter_p99_ms": number(recent.map(|r| r.added_jitter_ms.p99)),
        "drops": drops([&t.stats.drops, &t.bus_drops]),
    })
}

fn account(a: Option<&Account>) -> Value {
    let a = a.cloned().unwrap_or_default();
    json!({
        "offered": a.offered,
        "delivered": a.delivered,
        "dropped": drops([&a.dropped]),
        "in_flight": a.in_flight,
    })
}

fn service(s: &ServiceStatus) -> Value {
    let failed = s.failed.iter();
    json!({
        "service": s.here,
        "peer": s.peer,
        "role": word(s.role),
        "type": s.type_name.as_deref().unwrap_or_default(),
        "state": word(s.state),
        "priority": s.priority,
        "calls": s.calls,
        "open": s.open,
        "answered": s.answered,
        "request_bytes": s.request_bytes,
        "reply_bytes": s.reply_bytes,
        "repeated": s.repeated,
        "late": s.late,
        "failed": failed.map(|(why, n)| json!({ "reason": word(why), "count": n })).collect::<Vec<_>>(),
    })
}

/// A state or a reason as in JSON.
fn word(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// A message represents an unknown number as NaN.
fn number(n: Option<f64>) -> Value {
    n.map_or(json!("nan"), |n| json!(n))
}

fn positive(n: u64, unit: f64) -> Value {
    number((n > 0).then(|| n as f64 / unit))
}

fn drops<const N: usize>(from: [&Drops; N]) -> Vec<Value> {
    let mut all = Drops::default();
    from.iter().for_each(|d| all.merge(d));
    all.iter()
        .map(|(reason, count)| json!({ "reason": reason.name(), "count": count }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServiceRole;
    use crate::engine::calls::Failure;
    use crate::engine::calls::ServiceState;
    use crate::status::PeerStatus;
    use proto::{PeerId, PeerStats, RemoteTopicStats, TopicState, TopicStats};
    use schema::Show;
    use std::time::Duration;

    #[test]
    fn a_state_becomes_a_message() {
        let types = Types::read().expect("the definitions are good");
        let mut lost = Drops::default();
        lost.add(stats::DropReason::Replaced, 3);
        let status = Status {
            host: "robot".into(),
            peers: vec![PeerStatus {
                name: "base".into(),
                path_mtu: Some(1280),
                refused_topics: 1,
                unheard: None,
                stats: PeerStats::default(),
            }],
            sent: vec![SentTopic {
                peer: "base".into(),
                source: "robot".into(),
                to: vec!["base".into()],
                here: Some("/base/scan".into()),
                packing: None,
                tf: None,
                stats: TopicStats {
                    peer: PeerId(0),
                    name: "/scan".into(),
                    via: None,
                    min_share: 0.05,
                    priority: 100,
                    depth: 1,
                    deadline: Some(Duration::from_micros(1500)),
                    max_rate: None,
                    every: 1,
                    state: TopicState::Ready,
                    rested: None,
                    offered: 9,
                    offered_bytes: 900,
                    sent: 6,
                    sent_bytes: 600,
                    fragments: 6,
                    repeated_bytes: 0,
                    parity_bytes: 0,
                    bulk: None,
                    air: Duration::from_millis(5),
                    queued: 0,
                    account: Account {
                        offered: 9,
                        delivered: 5,
                        dropped: lost.clone(),
                        in_flight: 1,
                    },
                    drops: lost,
                    begun: 6,
                    begun_before: 0,
                    abandoned: 0,
                    at_receiver: None,
                },
            }],
            received: vec![ReceivedTopic {
                peer: "base".into(),
                source: "base".into(),
                here: None,
                bus_drops: Drops::default(),
                recent: None,
                unpacking: None,
                stats: RemoteTopicStats {
                    peer: PeerId(0),
                    name: "/cmd_vel".into(),
                    priority: 120,
                    accepted: true,
                    watched: None,
                    delivered: 5,
                    delivered_bytes: 50,
                    fragments: 5,
                    duplicate_fragments: 0,
                    repaired_fragments: 0,
                    staged_bytes: 0,
                    partial: 0,
                    arrived: None,
                    drops: Drops::default(),
                    seen: 5,
                    abandoned: 0,
                    delay: None,
                    account: None,
                },
            }],
            services: vec![ServiceStatus {
                peer: "base".into(),
                name: "/grasp".into(),
                here: "/base/grasp".into(),
                role: ServiceRole::Call,
                type_name: None,
                state: ServiceState::NotOffered,
                priority: 60,
                open: 1,
                calls: 4,
                answered: 1,
                failed: [(Failure::TimedOut, 2)].into(),
                request_bytes: 80,
                reply_bytes: 20,
                repeated: 0,
                late: 0,
            }],
            ..Status::default()
        };
        let json = status_json("robot", &status);
        let value = types.status.value_from_json(&json).expect("fits the type");
        let parts = types.status.encode(&value).expect("encodes");
        let back = types
            .status
            .decode(&parts.control, &parts.slices())
            .expect("decodes")
            .to_json(Show::ALL);
        assert_eq!(back["sent"][0]["state"], "ready");
        assert_eq!(
            back["sent"][0]["drops"],
            json!([{ "reason": "replaced", "count": 3 }])
        );
        let account = &back["sent"][0]["account"];
        assert_eq!(
            (&account["offered"], &account["in_flight"]),
            (&json!(9), &json!(1))
        );
        assert_eq!(account["dropped"], back["sent"][0]["drops"]);
        assert_eq!(back["received"][0]["topic"], "/cmd_vel");
        assert!(back["received"][0]["hz"].as_f64().is_none(), "{back}");
        assert_eq!(
            (&back["sent"][0]["here"], &back["sent"][0]["deadline_ms"]),
            (&json!("/base/scan"), &json!(1.5))
        );
        let service = &back["services"][0];
        assert_eq!(
            (&service["service"], &service["role"], &service["state"]),
            (&json!("/base/grasp"), &json!("call"), &json!("not_offered"))
        );
        assert_eq!(service["failed"], json!([{ "reason": "timed_out", "count": 2 }]));
        // In JSON, a topic's settings have their units in their names.
        let sent = serde_json::to_value(&status.sent[0]).expect("is JSON");
        assert_eq!(
            (&sent["deadline_ms"], &sent["air_s"]),
            (&json!(1.5), &json!(0.005))
        );
        assert!(sent["rate_limit_hz"].is_null() && sent["air"].is_null());
    }
}
