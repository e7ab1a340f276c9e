//! The services of a bus.

use super::{REPLY, REQUEST, ServiceType};
use crate::bus::{Bus, OpenError};
use crate::survey::Survey;
use crate::topic::{EndpointInfo, TopicInfo};
use std::time::Duration;

/// A service of the bus, as described by its live endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceInfo {
    /// The service and its type. Endpoints that disagree about the type appear as several entries.
    pub service: ServiceType,
    /// Its servers; `messages` counts the requests taken.
    pub servers: Vec<EndpointInfo>,
    /// Its clients; `messages` counts the requests sent.
    pub clients: Vec<EndpointInfo>,
}

impl Bus {
    /// Queries every live endpoint for services, like [`Bus::topics`] and with the same timing.
    pub fn services(&self, timeout: Duration) -> Result<Vec<ServiceInfo>, OpenError> {
        Ok(self.survey(timeout)?.services())
    }
}

impl Survey {
    /// The services of this domain, by name.
    pub fn services(&self) -> Vec<ServiceInfo> {
        self.topics
            .iter()
            .cloned()
            .filter_map(ServiceInfo::from_topic)
            .collect()
    }
}

impl TopicInfo {
    /// Whether it carries the requests or the replies of a service.
    pub fn is_of_service(&self) -> bool {
        let name = &self.topic.topic;
        name.ends_with(REQUEST) || name.ends_with(REPLY)
    }
}

impl ServiceInfo {
    /// Returns the service whose requests `info` carries, if any.
    fn from_topic(info: TopicInfo) -> Option<ServiceInfo> {
        let service = info.topic.topic.strip_suffix(REQUEST)?.to_owned();
        Some(ServiceInfo {
            service: ServiceType {
                service,
                type_name: info.topic.type_name,
                type_hash: info.topic.type_hash,
                flavour: info.topic.flavour,
                definition: info.topic.definition,
            },
            servers: info.subscribers,
            clients: info.publishers,
        })
    }
}
