//! Topics that a client publishes.

use super::message::ClientChannel;
use super::world::World;
use crate::parse_json;
use ropewalk::{Flavour, Node, Publisher, Registry, Schema};

/// A topic that a client publishes.
#[derive(Debug)]
pub(crate) struct Outlet {
    publisher: Publisher,
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Ros1,
    Cdr,
}

impl Encoding {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Encoding::Json),
            "ros1" => Ok(Encoding::Ros1),
            "cdr" => Ok(Encoding::Cdr),
            other => {
                let other: String = other.chars().take(40).collect();
                Err(format!(
                    "the encoding {other:?} is not taken: use json, ros1 or cdr"
                ))
            }
        }
    }
}

impl Outlet {
    /// Creates the publisher. The type is the one that the topic has on the bus, else the one that the client names.
    ///
    /// # Errors
    /// A line that says why not.
    pub(crate) fn open(
        node: &Node,
        world: &World,
        flavour: Flavour,
        channel: &ClientChannel,
    ) -> Result<Self, String> {
        let encoding = Encoding::parse(&channel.encoding)?;
        let flavour = match encoding {
            Encoding::Ros1 => Flavour::Ros1,
            Encoding::Cdr => Flavour::Ros2,
            Encoding::Json => flavour,
        };
        let schema = match world.schema(&channel.topic) {
            Some(schema) if schema.name() == plain(&channel.type_name) => schema.clone(),
            Some(schema) => {
                let (is, wanted) = (schema.name(), &channel.type_name);
                return Err(format!("it has the type {is} on the bus, not {wanted}"));
            }
            None => named(channel, flavour)?,
        };
        let schema = schema.in_flavour(flavour).map_err(|e| e.to_string())?;
        let publisher = node
            .dynamic_publisher(&channel.topic, &schema)
            .map_err(|e| e.to_string())?;
        Ok(Outlet { publisher, encoding })
    }

    /// Publishes a message of the client.
    ///
    /// # Errors
    /// A line that says why not.
    pub(crate) fn publish(&self, payload: &[u8]) -> Result<(), String> {
        let published = match self.encoding {
            Encoding::Ros1 => self.publisher.publish_ros1(payload),
            Encoding::Cdr => self.publisher.publish_cdr(payload),
            Encoding::Json => {
                let json = parse_json(payload).map_err(|e| e.to_string())?;
                let value = self.publisher.schema().value_from_json(&json);
                self.publisher.publish_value(&value.map_err(|e| e.to_string())?)
            }
        };
        published.map(drop).map_err(|e| e.to_string())
    }

    pub(crate) fn topic(&self) -> &str {
        self.publisher.topic()
    }
}

fn named(channel: &ClientChannel, flavour: Flavour) -> Result<Schema, String> {
    let mut registry = Registry::from_env(flavour);
    let known = registry.schema(&channel.type_name);
    match (&known, &channel.definition) {
        (Err(_), Some(text)) => {
            registry
                .add_embedded(&channel.type_name, text)
                .map_err(|e| e.to_string())?;
            registry.schema(&channel.type_name).map_err(|e| e.to_string())
        }
        _ => known.map_err(|e| e.to_string()),
    }
}

/// `package/Type` for `package/msg/Type`.
fn plain(name: &str) -> String {
    name.replacen("/msg/", "/", 1)
}
