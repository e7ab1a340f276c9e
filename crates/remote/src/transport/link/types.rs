//! The types of the data on the bus, so that the bus's tools can show it.

use bus::{ServiceType, TopicType};
use ropewalk::{Flavour, Registry, Schema, Service};
use schema::DefinitionError;

/// Requests and responses.
pub(super) fn call() -> Result<Service, DefinitionError> {
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_service("ropewalk_remote/Call", include_str!("../../../msg/Call.srv"))?;
    registry.service("ropewalk_remote/Call")
}

/// Telemetry. Its priority is in the definition, as a comment that is not compared: a link that carries the topic uses
/// this priority unless it is configured otherwise.
pub(super) fn telemetry(priority: u8) -> Result<Schema, DefinitionError> {
    let mut registry = Registry::new(Flavour::Ros1);
    let text = include_str!("../../../msg/Telemetry.msg");
    let text = format!("# priority: {priority}\n{text}");
    registry.add_message("ropewalk_remote/Telemetry", &text)?;
    registry.schema("ropewalk_remote/Telemetry")
}

/// A service of [`call`]'s type, for a link without a bus.
pub(super) fn service_type(name: String) -> Result<ServiceType, DefinitionError> {
    let kind = call()?;
    Ok(ServiceType {
        service: name,
        type_name: kind.name(),
        type_hash: kind.md5(),
        flavour: Default::default(),
        definition: kind.definition().into(),
    })
}

/// A topic of [`telemetry`]'s type, likewise for a link without a bus.
pub(super) fn topic_type(name: String, priority: u8) -> Result<TopicType, DefinitionError> {
    let kind = telemetry(priority)?;
    Ok(TopicType {
        topic: name,
        type_name: kind.name().to_owned(),
        type_hash: kind.md5(),
        flavour: Default::default(),
        definition: kind.definition().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_differ_by_nothing_but_their_text() {
        assert_eq!(call().expect("is read").name(), "ropewalk_remote/Call");
        let (low, high) = (telemetry(1).expect("is read"), telemetry(127).expect("is read"));
        assert_eq!(low.md5(), high.md5());
        assert!(high.definition().starts_with("# priority: 127\n"));
    }
}
