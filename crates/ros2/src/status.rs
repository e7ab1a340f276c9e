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
    /// Domain ID.
    pub domain: u32,
    /// If it stands by: the other bridge that connects this domain to this bus, as that bridge describes itself.
    pub stands_by: Option<String>,
    /// Number of participants in the domain, including other bridges.
    pub participants: usize,
    /// Topics on their way onto the bus, by name in ROS.
    pub to_bus: BTreeMap<String, Flow>,
    /// Topics on their way into ROS, by name in ROS.
    pub to_ros: BTreeMap<String, Flow>,
    /// Services, by name in ROS.
    pub services: BTreeMap<String, ServiceStatus>,
    /// Current problems, by what they concern.
    pub problems: BTreeMap<String, String>,
    /// What was refused, by reason: `malformed` datagrams, `announcements` that cannot be read or speak for others,
    /// `participants` and `endpoints` beyond a limit, malformed names of `nodes`, malformed `requests`, `responses`
    /// whose caller is not found, and endpoints that request a different `qos`; also messages that were `lost` on the
    /// way here.
    pub refused: BTreeMap<&'static str, u64>,
}
