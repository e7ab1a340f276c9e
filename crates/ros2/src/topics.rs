//! Decides which topics cross: those of the domain onto the bus, and those of the bus into the domain. Each topic's
//! problems affect only that topic.

use crate::hub::{GRACE, Hub};
use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use crate::routes::RouteTable;
use crate::types::{self, OnBus};
use crate::wire::{Id, Picture, Seen};
use bridge::nodes::policy::{BEST_EFFORT, KEEP_LAST, RELIABLE, TRANSIENT_LOCAL, VOLATILE};
use bridge::nodes::{Kind, Qos};
use bus::{EndpointDetail, EndpointInfo, TopicInfo};
use schema::Flavour;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of topics per direction; onto the bus, also the maximum per participant.
const MAX_TOPICS: usize = 1024;
const MAX_TOPICS_EACH: usize = 512;

/// The quality of service of a publisher of the bus, as its ROS 2 node states it, else as the bus describes it.
fn offer(publisher: &EndpointInfo, rule: &bridge::TopicRule, offered: Option<&Qos>) -> Qos {
    let mut qos = offered.copied().unwrap_or_else(|| {
        let EndpointDetail::Publisher(info) = &publisher.detail else {
            return Qos::default();
        };
        let offer = &info.offer;
        Qos {
            history: KEEP_LAST,
            reliability: match offer.reliability {
                Some(bus::Reliability::BestEffort) => BEST_EFFORT,
                _ => RELIABLE,
            },
            durability: kept(offer.history > 0),
            depth: u64::from(offer.depth.max(offer.history)),
            ..Qos::default()
        }
    });
    if let Some(latched) = rule.latched {
        qos.durability = kept(latched);
    }
    if qos.durability != TRANSIENT_LOCAL {
        qos.depth = qos.depth.max(rule.depth().into());
    }
    qos
}

/// Durability, depending on whether messages are kept for later subscribers.
fn kept(is_kept: bool) -> u8 {
    if is_kept { TRANSIENT_LOCAL } else { VOLATILE }
}

fn begin(
    hub: &Arc<Hub>,
    info: &TopicInfo,
    topic: &str,
    rule: &bridge::TopicRule,
) -> Result<Arc<Outgoing>, String> {
    let name = &info.topic.type_name;
    let schema = hub.node.schema_of(info).map_err(|e| e.to_string())?;
    if let Some(wanted) = rule
        .kind
        .as_ref()
        .filter(|k| *k != name && **k != schema.ros2_name())
    {
        return Err(format!(
            "its type on the bus is {name}, but the rule requires {wanted}: correct `type`"
        ));
    }
    // Messages of ROS 1 are converted on the way.
    let schema = schema.in_flavour(Flavour::Ros2).map_err(|error| {
        format!("on the bus it has a ROS 1 definition of {name} that cannot be converted to ROS 2: {error}")
    })?;
    let made = Outgoing::new(topic.to_owned(), info.topic.topic.clone(), schema, rule);
    made.map_err(|e| e.to_string())
}

/// Updates topics of the domain that go onto the bus.
pub(crate) fn to_bus(hub: &Hub, routes: &mut RouteTable, picture: &Picture, bus: &OnBus) {
    let nodes = node_names(picture);
    let mut topics: BTreeMap<&str, Vec<(&Seen, String)>> = BTreeMap::new();
    for seen in picture.endpoints.values().filter(|s| s.kind == Kind::Publisher) {
        if picture.counts(seen, hub.config.from_bridges) {
            let node = nodes.get(&seen.id).cloned().unwrap_or_default();
            topics.entry(&seen.what.name).or_default().push((seen, node));
        }
    }
    let mut brought: BTreeMap<Id, usize> = BTreeMap::new();
    for incoming in routes.incoming.values() {
        *brought.entry(incoming.by).or_default() += 1;
    }
    for (topic, publishers) in &topics {
        let Some((rule, bus_topic)) = hub.rules().topic_to_bus(topic) else {
            continue;
        };
        if !routes.incoming.contains_key(*topic) {
            if routes.incoming.len() >= MAX_TOPICS {
                let problem = format_args!("more than {MAX_TOPICS} topics: ignoring the others");
                routes.troubles.incoming.report(hub, topic, problem);
                continue;
            }
            // A publisher with an unusable type does not affect the others.
            let made = publishers.iter().map(|(seen, _)| {
                if brought
                    .get(&seen.participant)
                    .is_some_and(|n| *n >= MAX_TOPICS_EACH)
                {
                    return Err(format!(
                        "more than {MAX_TOPICS_EACH} topics of one process: ignoring the others"
                    ));
                }
                let schema = types::of_topic(hub, bus, seen, rule).map_err(|e| e.to_string())?;
                Incoming::new(topic, bus_topic.clone(), schema, rule, seen.participant)
                    .map_err(|e| e.to_string())
            });
            let mut problem = None;
            let made = made.filter_map(|m| m.map_err(|e| problem = Some(e)).ok()).next();
            match (made, problem) {
                (Some(incoming), _) => {
                    hub.solved(topic);
                    *brought.entry(incoming.by).or_default() += 1;
                    routes.incoming.insert((*topic).to_owned(), Arc::new(incoming));
                }
                (None, problem) => {
                    routes
                        .troubles
                        .incoming
                        .report(hub, topic, problem.unwrap_or_default());
                    continue;
                }
            }
        }
        let Some(incoming) = routes.incoming.get(*topic).cloned() else {
            continue;
        };
        let named = types::named_topic(topic, &incoming.schema);
        let fits = |seen: &Seen| {
            let hash = seen.what.hashes[0];
            seen.what.type_name == named.type_name && (hash.is_none() || hash == named.hashes[0])
        };
        let (fitting, others): (Vec<_>, Vec<_>) =
            publishers.iter().cloned().partition(|(seen, _)| fits(seen));
        if let Some((other, node)) = others.first() {
            hub.problem(
                topic,
                format_args!(
                    "ignoring the publisher of {node}, which has a different {}: build all its nodes against one definition",
                    other.what.type_name
                ),
            );
        }
        let on_bus = bus
            .survey
            .topics
            .iter()
            .filter(|t| t.topic.topic == incoming.bus_topic);
        let is_subscribed = on_bus.flat_map(|t| &t.subscribers).any(|s| !hub.is_own(s.id));
        incoming.update(hub, &fitting, is_subscribed);
        if fitting.is_empty() {
            // All its publishers were restarted with another type, so the next round starts over too.
            incoming.end(hub);
            routes.incoming.remove(*topic);
        }
    }
    routes.incoming.retain(|topic, incoming| {
        let stays = topics.contains_key(topic.as_str());
        if !stays {
            incoming.end(hub);
        }
        stays
    });
    routes.troubles.incoming.settle(hub);
}

/// Returns the full names of the nodes that these endpoints belong to.
fn node_names(picture: &Picture) -> BTreeMap<Id, String> {
    let nodes = picture.participants.values().flat_map(|p| &p.nodes);
    let named = nodes.flat_map(|node| {
        let full = format!("{}/{}", node.namespace.trim_end_matches('/'), node.name);
        let full = if full.len() <= bus::MAX_NAME {
            full
        } else {
            String::new()
        };
        node.endpoints.iter().map(move |id| (*id, full.clone()))
    });
    named.collect()
}

/// Updates topics of the bus that go into the domain. `offered` is the quality of service of publishers of the bus that
/// belong to ROS 2 nodes.
pub(crate) fn to_ros(
    hub: &Arc<Hub>,
    routes: &mut RouteTable,
    picture: &Picture,
    bus: &OnBus,
    offered: &BTreeMap<u64, Qos>,
) {
    let awaited: BTreeSet<&str> = picture
        .endpoints
        .values()
        .filter(|s| s.kind == Kind::Subscription && picture.counts(s, hub.config.from_bridges))
        .map(|s| s.what.name.as_str())
        .collect();
    // Publishers that disagree about the type of a topic are in several entries.
    let mut topics: BTreeMap<String, Vec<(&TopicInfo, &bridge::TopicRule)>> = BTreeMap::new();
    for info in bus.survey.topics.iter().filter(|t| !t.is_of_service()) {
        let crosses = hub.rules().topic_to_ros(&info.topic.topic);
        let published = info.publishers.iter().any(|p| !hub.is_own(p.id));
        if let Some((rule, topic)) = crosses.filter(|_| published) {
            topics.entry(topic).or_default().push((info, rule));
        }
    }
    let now = Instant::now();
    for (topic, infos) in &topics {
        let Some((first, rule)) = infos.first() else {
            continue;
        };
        if !routes.outgoing.contains_key(topic) {
            if routes.outgoing.len() >= MAX_TOPICS {
                let problem = format_args!("more than {MAX_TOPICS} topics: ignoring the others");
                routes.troubles.outgoing.report(hub, topic, problem);
                continue;
            }
            match begin(hub, first, topic, rule) {
                Ok(outgoing) => {
                    hub.solved(topic);
                    routes.outgoing.insert(topic.clone(), outgoing);
                }
                Err(error) => {
                    routes.troubles.outgoing.report(hub, topic, error);
                    continue;
                }
            }
        }
        let Some(outgoing) = routes.outgoing.get(topic).cloned() else {
            continue;
        };
        // The ROS 1 and ROS 2 versions of a type are the same if their messages are.
        let (name, sum) = (outgoing.schema.name(), outgoing.schema.common_sum());
        let fits = |info: &TopicInfo| {
            let common = match info.topic.flavour.ros {
                bus::Ros::Unstated => hub.node.schema_of(info).ok().map(|schema| schema.common_sum()),
                _ => Some(info.topic.flavour.common),
            };
            info.topic.type_name == name && common == Some(sum)
        };
        let (fitting, others): (Vec<&TopicInfo>, Vec<&TopicInfo>) =
            infos.iter().map(|(info, _)| *info).partition(|info| fits(info));
        if fitting.is_empty() {
            // All its publishers were restarted with another type, so the next round starts over too.
            outgoing.end(hub);
            routes.outgoing.remove(topic);
            continue;
        }
        if let Some(other) = others.first() {
            hub.problem(
                topic,
                format_args!(
                    "ignoring publishers on the bus with a different {}: build all of them against one definition",
                    other.topic.type_name
                ),
            );
        }
        let publishers = fitting.iter().flat_map(|info| &info.publishers);
        let publishers: BTreeMap<u64, Qos> = publishers
            .filter(|p| !hub.is_own(p.id))
            .map(|p| (p.id, offer(p, rule, offered.get(&p.id))))
            .collect();
        outgoing.update(hub, &publishers, awaited.contains(topic.as_str()));
        outgoing.seen(now);
    }
    routes.outgoing.retain(|_, outgoing| {
        let stays = outgoing.unseen(now) < GRACE;
        if !stays {
            outgoing.end(hub);
        }
        stays
    });
    routes.troubles.outgoing.settle(hub);
}
