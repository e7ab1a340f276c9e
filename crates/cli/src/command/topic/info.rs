//! `ropewalk topic info`: state of a topic's endpoints.

use super::verbose;
use crate::command::endpoints::{self, hex};
use crate::failure::{Failure, OrFail, Outcome};
use crate::graph::Graph;
use bus::{
    EndpointDetail, EndpointInfo, MemoryPolicy, Offer, PublisherInfo, QueuePolicy, Reliability, Ros,
    SubscriberInfo, TopicInfo,
};
use clap::Args;
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use serde_json::{Value, json};
use stats::Drops;
use std::fmt::Write as _;
use std::io::Write as _;
use terminal::table::{Align, Table};

/// Print the counters, memory, queues and losses of every publisher and subscriber of a topic.
///
/// The publisher that drops a message counts the loss by reason: queue full (the subscriber is too slow), hold limit
/// (the subscriber keeps too many messages), memory short (the publisher's limit is reached), peer stalled (the
/// subscriber's process is stopped).
#[derive(Args)]
pub(crate) struct Options {
    /// The topic.
    topic: String,
    /// Also print the node and the quality of service of each endpoint, including those of other hosts.
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    let name = options.topic.trim_start_matches('/');
    let graph = options.verbose.then(|| Graph::look(node)).transpose()?;
    let survey = match &graph {
        Some(graph) => graph.survey.clone(),
        None => node.survey().or_input()?,
    };
    let topics = survey.topics.iter().filter(|t| !t.is_of_service());
    let found: Vec<_> = topics
        .filter(|t| t.topic.topic.trim_start_matches('/') == name)
        .collect();
    let full = format!("/{name}");
    let more = graph
        .as_ref()
        .map(|graph| verbose::text(graph, &full))
        .unwrap_or_default();
    if found.is_empty() && more.is_empty() {
        let topics = survey.topics.iter().filter(|t| !t.is_of_service());
        let near = nearest(&full, topics.map(|t| t.topic.topic.as_str()));
        return Err(Failure::input(format_args!(
            "no program uses {full} in {}{}; `ropewalk topic list` lists the topics{}",
            node.bus().config().runtime_dir.display(),
            did_you_mean(near),
            endpoints::but_silent(&survey)
        )));
    }
    let mut out = crate::screen::stdout();
    if options.json {
        let all: Vec<_> = found.iter().map(|t| to_json(t)).collect();
        let mut all = json!({ "topics": all });
        if let Some(graph) = &graph {
            all["endpoints"] = verbose::to_json(graph, &full).into();
        }
        return writeln!(out, "{all:#}").or_job("writing");
    }
    for topic in found {
        write!(out, "{}", text(topic)).or_job("writing")?;
    }
    write!(out, "{more}").or_job("writing")
}

fn to_json(t: &TopicInfo) -> Value {
    let endpoint = |e: &EndpointInfo| {
        let mut value = match &e.detail {
            EndpointDetail::Publisher(p) => publisher_json(p),
            EndpointDetail::Subscriber(s) => subscriber_json(e, s),
            _ => json!({}),
        };
        let common = json!({
            "id": format!("{:016x}", e.id), "pid": e.pid, "uid": e.uid, "program": e.program,
            "connected": e.connected, "refusals": e.refusals,
        });
        if let (Some(value), Value::Object(common)) = (value.as_object_mut(), common) {
            value.extend(common);
        }
        value
    };
    json!({
        "topic": t.topic.topic, "type": t.topic.type_name, "md5": hex(&t.topic.type_hash),
        "flavour": flavour(t), "rihs01": rihs01(t),
        "publishers": t.publishers.iter().map(endpoint).collect::<Vec<_>>(),
        "subscribers": t.subscribers.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

/// `ros1` or `ros2`, if the topic states it.
fn flavour(t: &TopicInfo) -> Option<&'static str> {
    match t.topic.flavour.ros {
        Ros::One => Some("ros1"),
        Ros::Two => Some("ros2"),
        Ros::Unstated => None,
    }
}

/// The type hash of ROS 2, for types of ROS 2 only.
fn rihs01(t: &TopicInfo) -> Option<String> {
    let digits = || t.topic.flavour.rihs01.iter().map(|b| format!("{b:02x}"));
    (t.topic.flavour.ros == Ros::Two).then(|| format!("RIHS01_{}", digits().collect::<String>()))
}

fn publisher_json(p: &PublisherInfo) -> Value {
    let subscribers: Vec<_> = (p.stats.subscribers.iter())
        .map(|s| {
            json!({
                "id": format!("{:016x}", s.id), "pid": s.pid, "queued": s.queued, "depth": s.depth, "held": s.held,
                "bytes": s.bytes, "quota_bytes": s.quota, "ready": s.ready, "closing": s.closing,
                "drops": drops_json(&s.drops),
            })
        })
        .collect();
    json!({
        "published": p.stats.published, "refused": p.stats.refused, "drops": drops_json(&p.stats.drops),
        "memory_policy": memory_policy(p.memory_policy), "history": p.offer.history,
        "node": p.offer.node, "reliability": p.offer.reliability.map(reliability), "depth": p.offer.depth,
        "memory_limit_bytes": p.memory_limit, "memory_reserved_bytes": p.stats.memory_reserved,
        "memory_used_bytes": p.stats.memory_used, "memory_pinned_bytes": p.stats.memory_pinned,
        "segments": p.stats.segments, "subscribers": subscribers,
    })
}

fn subscriber_json(e: &EndpointInfo, s: &SubscriberInfo) -> Value {
    json!({
        "received": e.messages, "held": s.held, "max_held": s.max_held, "depth": s.depth,
        "queue_policy": queue_policy(s.queue_policy), "history": s.history, "drops": drops_json(&s.drops),
    })
}

fn drops_json(drops: &Drops) -> Value {
    drops
        .iter()
        .map(|(reason, n)| (reason.to_string(), json!(n)))
        .collect()
}

fn text(t: &TopicInfo) -> String {
    let mut out = format!(
        "{}  {}  {}  MD5 {}{}\n",
        t.topic.topic,
        t.topic.type_name,
        flavour(t).unwrap_or("of no stated ROS version"),
        hex(&t.topic.type_hash),
        rihs01(t).map(|hash| format!("  {hash}")).unwrap_or_default(),
    );
    for e in &t.publishers {
        let EndpointDetail::Publisher(p) = &e.detail else {
            continue;
        };
        let s = &p.stats;
        let _ = writeln!(
            out,
            "\npublisher  {}{}  published {}, refused {}, {}",
            endpoints::who(std::slice::from_ref(e)),
            offer(&p.offer),
            s.published,
            s.refused,
            lost(&s.drops),
        );
        let _ = writeln!(
            out,
            "  memory   {} used, {} reserved, {} pinned of {} in {} segments; when short: {}; history {}",
            bytes(s.memory_used),
            bytes(s.memory_reserved),
            bytes(s.memory_pinned),
            bytes(p.memory_limit),
            s.segments,
            memory_policy(p.memory_policy),
            p.offer.history,
        );
        let mut table = Table::new(&[
            ("  subscriber", Align::Left),
            ("queued", Align::Right),
            ("held", Align::Right),
            ("memory", Align::Right),
            ("state", Align::Left),
            ("lost", Align::Left),
        ]);
        for peer in &s.subscribers {
            table.row([
                format!("  {}", name_of(t, peer.id, peer.pid)),
                format!("{}/{}", peer.queued, peer.depth),
                peer.held.to_string(),
                format!("{}/{}", bytes(peer.bytes), bytes(peer.quota)),
                match (peer.ready, peer.closing) {
                    (_, true) => "closing".into(),
                    (true, false) => "ready".into(),
                    (false, false) => "joining".into(),
                },
                lost(&peer.drops),
            ]);
        }
        if !s.subscribers.is_empty() {
            let _ = writeln!(out, "{}", table.lines().join("\n"));
        }
        refusals(&mut out, e);
    }
    for e in &t.subscribers {
        let EndpointDetail::Subscriber(s) = &e.detail else {
            continue;
        };
        let _ = writeln!(
            out,
            "\nsubscriber {}  received {}, holds {} of {}, {}",
            endpoints::who(std::slice::from_ref(e)),
            e.messages,
            s.held,
            s.max_held,
            lost(&s.drops),
        );
        let _ = writeln!(
            out,
            "  queue    {} from each of {} publishers; when full: {}",
            s.depth,
            e.connected,
            queue_policy(s.queue_policy),
        );
        refusals(&mut out, e);
    }
    out
}

fn refusals(out: &mut String, e: &EndpointInfo) {
    for reason in &e.refusals {
        let _ = writeln!(out, "  refused  {reason}");
    }
}

/// The subscriber's description of itself, else its process.
fn name_of(t: &TopicInfo, id: u64, pid: i32) -> String {
    match t.subscribers.iter().find(|s| s.id == id) {
        Some(endpoint) => endpoints::who(std::slice::from_ref(endpoint)),
        None => format!("process {pid}"),
    }
}

fn lost(drops: &Drops) -> String {
    let parts: Vec<_> = drops
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(reason, n)| format!("{n} {reason}"))
        .collect();
    if parts.is_empty() {
        "lost 0".into()
    } else {
        format!("lost {}", parts.join(", "))
    }
}

fn memory_policy(policy: MemoryPolicy) -> String {
    match policy {
        MemoryPolicy::BestEffort => "best effort".into(),
        MemoryPolicy::WorstEffort => "worst effort".into(),
        MemoryPolicy::Medium(n) => format!("medium effort ({n})"),
        MemoryPolicy::Block(timeout) => format!("block ({timeout:?})"),
        other => format!("{other:?}"),
    }
}

fn reliability(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::Reliable => "reliable",
        Reliability::BestEffort => "best effort",
    }
}

/// The publisher's description of itself, with the comma before it.
fn offer(offer: &Offer) -> String {
    let mut out = String::new();
    if !offer.node.is_empty() {
        let _ = write!(out, ", node {}", offer.node);
    }
    if let Some(said) = offer.reliability {
        let _ = write!(out, ", {}", reliability(said));
    }
    if offer.depth > 0 {
        let _ = write!(out, ", depth {}", offer.depth);
    }
    out
}

fn queue_policy(policy: QueuePolicy) -> &'static str {
    match policy {
        QueuePolicy::DropOldest => "drop oldest",
        QueuePolicy::DropNewest => "drop newest",
        _ => "another policy",
    }
}

fn bytes(n: u64) -> String {
    match n {
        0..=1023 => format!("{n} B"),
        1024..=1_048_575 => format!("{:.0} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1_048_576.0),
    }
}
