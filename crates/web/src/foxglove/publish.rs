//! Topics that a client publishes.

use super::message::ClientChannel;
use super::world::World;
use crate::drive::{Driver, Outcome, SpeedLimits};
use crate::parse_json;
use ropewalk::{Flavour, Node, Publisher, Registry, Schema, Value};
use std::sync::Arc;

/// Types whose messages drive a robot.
const TWIST: &str = "geometry_msgs/Twist";
const STAMPED: &str = "geometry_msgs/TwistStamped";

/// A topic that a client publishes.
pub(crate) struct Outlet {
    schema: Schema,
    encoding: Encoding,
    to: To,
}

enum To {
    Bus(Publisher),
    Robot(Steered),
}

/// A topic whose twists drive a robot.
pub(crate) struct Steered {
    pub(crate) topic: String,
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) limits: SpeedLimits,
    /// Called with each command that the robot does not execute.
    pub(crate) refused: Arc<dyn Fn(String) + Send + Sync>,
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
                    "the encoding {other:?} is not supported: use json, ros1 or cdr"
                ))
            }
        }
    }

    /// The version of ROS whose serialization it is.
    fn flavour(self) -> Option<Flavour> {
        match self {
            Encoding::Ros1 => Some(Flavour::Ros1),
            Encoding::Cdr => Some(Flavour::Ros2),
            Encoding::Json => None,
        }
    }
}

impl Outlet {
    /// Creates the publisher. The type is that of the topic on the bus, otherwise the one that the client names.
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
        let flavour = encoding.flavour().unwrap_or(flavour);
        let schema = match world.schema(&channel.topic) {
            Some(schema) if schema.name() == plain(&channel.type_name) => schema.clone(),
            Some(schema) => {
                let (is, wanted) = (schema.name(), &channel.type_name);
                return Err(format!("its type on the bus is {is}, not {wanted}"));
            }
            None => named(channel, flavour)?,
        };
        let schema = schema.in_flavour(flavour).map_err(|e| e.to_string())?;
        let publisher = node
            .dynamic_publisher(&channel.topic, &schema)
            .map_err(|e| e.to_string())?;
        Ok(Outlet {
            schema,
            encoding,
            to: To::Bus(publisher),
        })
    }

    /// Drives a robot with the twists of a topic, which is not published on the bus.
    ///
    /// # Errors
    /// A line that says why not.
    pub(crate) fn steer(
        flavour: Flavour,
        channel: &ClientChannel,
        steered: impl FnOnce() -> Result<Steered, String>,
    ) -> Result<Self, String> {
        let encoding = Encoding::parse(&channel.encoding)?;
        let flavour = encoding.flavour().unwrap_or(flavour);
        let name = plain(&channel.type_name);
        if ![TWIST, STAMPED].contains(&name.as_str()) {
            return Err(format!(
                "it drives a robot: publish {TWIST} or {STAMPED}, not {name}"
            ));
        }
        Ok(Outlet {
            schema: named(channel, flavour)?
                .in_flavour(flavour)
                .map_err(|e| e.to_string())?,
            encoding,
            to: To::Robot(steered()?),
        })
    }

    /// Publishes a message of the client, or drives with it.
    ///
    /// # Errors
    /// A line that says why not.
    pub(crate) fn publish(&self, payload: &[u8]) -> Result<(), String> {
        let publisher = match &self.to {
            To::Bus(publisher) => publisher,
            To::Robot(steered) => return steered.drive(&self.read(payload)?),
        };
        let published = match self.encoding {
            Encoding::Ros1 => publisher.publish_ros1(payload),
            Encoding::Cdr => publisher.publish_cdr(payload),
            Encoding::Json => publisher.publish_value(&self.read(payload)?),
        };
        published.map(drop).map_err(|e| e.to_string())
    }

    fn read(&self, payload: &[u8]) -> Result<Value, String> {
        match self.encoding {
            Encoding::Ros1 => self.schema.decode_ros1(payload).map_err(|e| e.to_string()),
            Encoding::Cdr => self.schema.decode_cdr(payload).map_err(|e| e.to_string()),
            Encoding::Json => {
                let json = parse_json(payload).map_err(|e| e.to_string())?;
                self.schema.value_from_json(&json).map_err(|e| e.to_string())
            }
        }
    }

    pub(crate) fn topic(&self) -> &str {
        match &self.to {
            To::Bus(publisher) => publisher.topic(),
            To::Robot(steered) => &steered.topic,
        }
    }
}

impl Steered {
    /// The robot stops by its own clock when twists stop.
    fn drive(&self, message: &Value) -> Result<(), String> {
        let number = |path: &str, most: f64| {
            let stamped = || message.get(&format!("twist.{path}"));
            let number = message.get(path).or_else(|_| stamped());
            let number = number.ok().and_then(|v| v.as_f64()).filter(|n| n.is_finite());
            number
                .map(|n| n.clamp(-most, most))
                .ok_or(format!("{path} is not a number"))
        };
        let (forward, turn) = (
            number("linear.x", self.limits.speed)?,
            number("angular.z", self.limits.turn)?,
        );
        let refused = self.refused.clone();
        self.driver.drive(
            forward,
            turn,
            Box::new(move |outcome, text| {
                if outcome != Outcome::Executed {
                    refused(format!("{}: {text}", outcome.name()));
                }
            }),
        );
        Ok(())
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        self.driver.drive(0.0, 0.0, Box::new(|_, _| {}));
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet")
            .field("topic", &self.topic())
            .finish_non_exhaustive()
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
