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
    /// The domain.
    pub domain: u32,
    /// Where it stands by: another bridge, in its own words, that brings this domain onto this bus.
    pub stands_by: Option<String>,
    /// Participants of the domain, other bridges among them.
    pub participants: usize,
    /// Topics on their way onto the bus, by their names in ROS.
    pub to_bus: BTreeMap<String, Flow>,
    /// Topics on their way into ROS, by their names in ROS.
    pub to_ros: BTreeMap<String, Flow>,
    /// Services, by their names in ROS.
    pub services: BTreeMap<String, ServiceStatus>,
    /// What is wrong, by what it concerns.
    pub problems: BTreeMap<String, String>,
    /// What was refused, by reason: `malformed` datagrams, `announcements` that cannot be read or speak for others, `participants` and
    /// `endpoints` beyond a limit, names of `nodes` and `requests` that are none, `responses` whose caller is not found, endpoints that
    /// ask for another `qos`; and messages that were `lost` on the way here.
    pub refused: BTreeMap<&'static str, u64>,
}
