//! What a bridge tells of itself.

use bridge::{Flow, ServiceStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a bridge does at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The node's name in ROS.
    pub node: String,
    /// Where the master is.
    pub master: String,
    /// Whether the master answered when it was last asked.
    pub master_reached: bool,
    /// Topics on their way onto the bus, by their names in ROS.
    pub to_bus: BTreeMap<String, Flow>,
    /// Topics on their way into ROS, by their names in ROS.
    pub to_ros: BTreeMap<String, Flow>,
    /// Services, by their names in ROS.
    pub services: BTreeMap<String, ServiceStatus>,
    /// What is wrong, by what it concerns.
    pub problems: BTreeMap<String, String>,
    /// What was refused, by reason, of those that were: `connections` and `silent` ones beyond a peer's share, `malformed`
    /// requests and headers, `memory`, `calls` that only the master or a known host may make, `names` that are none, and
    /// publishers that were not `dialled` since there are too many.
    pub refused: BTreeMap<&'static str, u64>,
}
