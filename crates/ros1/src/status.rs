//! Status of a bridge.

use bridge::{Flow, ServiceStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Current status of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// Name of its node in ROS.
    pub node: String,
    /// Address of the master.
    pub master: String,
    /// Whether the master answered the last query.
    pub master_reached: bool,
    /// Topics on their way onto the bus, by name in ROS.
    pub to_bus: BTreeMap<String, Flow>,
    /// Topics on their way into ROS, by name in ROS.
    pub to_ros: BTreeMap<String, Flow>,
    /// Services, by name in ROS.
    pub services: BTreeMap<String, ServiceStatus>,
    /// Current problems, by what they concern.
    pub problems: BTreeMap<String, String>,
    /// Nonzero counts of what was refused, by reason: `connections` and `silent` ones beyond a peer's share,
    /// `malformed` requests and headers, `memory`, `calls` that only the master or a known host may make, invalid
    /// `names`, and publishers that were not `dialled` since there are too many.
    pub refused: BTreeMap<&'static str, u64>,
}
