//! Takes the records that nodes of ROS 2 and links publish.

use crate::failure::{Failure, OrFail};
use bridge::nodes::{DEFINITION, HASH, Record, TOPIC, TYPE};
use bus::{SubscriberOptions, Survey, TopicType};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a record may take to arrive.
const PATIENCE: Duration = Duration::from_secs(1);
/// Queue depth; each publisher keeps one record.
const QUEUE: u32 = 4;

/// The newest record of each publisher.
pub(super) fn take(node: &ropewalk::Node, survey: &Survey) -> Result<BTreeMap<u64, Record>, Failure> {
    let of_graph = survey.topics.iter().filter(|t| t.topic.topic == TOPIC);
    let publishers = of_graph.flat_map(|t| &t.publishers);
    // A process without a node has published nothing.
    let wanted: BTreeSet<u64> = publishers.filter(|p| p.messages > 0).map(|p| p.id).collect();
    let mut records = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(records);
    }
    let topic = TopicType {
        topic: TOPIC.into(),
        type_name: TYPE.into(),
        type_hash: HASH,
        flavour: bus::Flavour::default(),
        definition: DEFINITION.into(),
    };
    let options = SubscriberOptions::default().with_depth(QUEUE).with_history(1);
    let subscriber = node
        .bus()
        .subscriber(topic, options)
        .or_job("reading the nodes")?;
    let end = Instant::now() + PATIENCE;
    while !wanted.iter().all(|id| records.contains_key(id)) {
        let left = end.saturating_duration_since(Instant::now());
        let Some(message) = subscriber.take_timeout(left).or_job("reading the nodes")? else {
            break;
        };
        match Record::decode(message.control()) {
            Some(record) => drop(records.insert(message.publisher(), record)),
            None => crate::screen::tell!(
                "process of publisher {:016x}: its nodes cannot be read; it may run another version",
                message.publisher()
            ),
        }
    }
    Ok(records)
}
