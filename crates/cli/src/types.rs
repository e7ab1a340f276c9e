//! Message types, from names and from recordings.

use crate::command::play::{Reason, Refusal};
use crate::failure::{Failure, OrFail};
use recording::{Channel, Encoding};
use schema::{Flavour, Registry, Schema};
use std::path::PathBuf;

/// The schema of a recording's channel, from the definition in the recording; `folders` and this machine supply types
/// that it lacks. If the recording has no readable definition: the type of that name, if its hash is the stated one.
pub(crate) fn of_channel(channel: &Channel, folders: &[PathBuf]) -> Result<Schema, Refusal> {
    let flavour = match &channel.encoding {
        Encoding::Cdr => Flavour::Ros2,
        Encoding::Ros1 => Flavour::Ros1,
        other => {
            let why = format!("its messages are in `{}`, which is not supported", other.name());
            return Err(Refusal::new(Reason::Encoding, why));
        }
    };
    let name = &channel.type_name;
    if name.is_empty() {
        return Err(Refusal::new(Reason::Schemaless, "its channel has no schema"));
    }
    let known = || {
        let mut registry = Registry::from_env(flavour);
        folders.iter().for_each(|folder| registry.add_folder(folder));
        registry
    };
    let is_stated = |schema: &Schema| channel.md5.as_ref().is_none_or(|md5| *md5 == schema.md5_hex());
    let blank = channel.definition.trim().is_empty();
    let own = match channel.definition_encoding.as_str() {
        // Without a hash, an empty text may mean a type without fields, or no definition.
        _ if blank && (channel.md5.is_none() || channel.encoding == Encoding::Cdr) => {
            Err(format!("the recording has no definition of {name}"))
        }
        "ros1msg" | "ros2msg" | "" => {
            let mut registry = known();
            let added = registry.add_embedded(name, &channel.definition);
            let own = added
                .and_then(|()| registry.schema(name))
                .map_err(|e| format!("{name}: {e}"));
            own.and_then(|own| match &channel.md5 {
                Some(stated) if !is_stated(&own) => Err(format!(
                    "{name}: the recording states md5 {stated}, but its definition has {}",
                    own.md5_hex()
                )),
                _ => Ok(own),
            })
        }
        language => Err(format!(
            "the definition of {name} is in `{language}`, which is not supported"
        )),
    };
    own.or_else(|why| match known().schema(name) {
        Ok(known) if channel.md5.is_some() && is_stated(&known) => Ok(known),
        // Nothing indicates that it differs from the type of that name.
        Ok(known) if channel.md5.is_none() && blank => Ok(known),
        _ => Err(Refusal::new(Reason::Type, why)),
    })
}

/// The same, as a failure of the command.
pub(crate) fn needed(channel: &Channel) -> Result<Schema, Failure> {
    of_channel(channel, &[])
        .map_err(|refusal| Failure::input(format_args!("{}: {}", channel.topic, refusal.why)))
}

/// Where message definitions are looked up.
#[derive(clap::Args)]
pub(crate) struct SearchPath {
    /// Folder with packages, or a package's own folder, in which to look up definitions (may be repeated).
    #[arg(long = "path", value_name = "FOLDER", global = true)]
    folders: Vec<PathBuf>,
    /// Use definitions of ROS 2 instead of ROS 1.
    #[arg(long, global = true)]
    ros2: bool,
}

impl SearchPath {
    /// The registry for these options.
    pub(crate) fn registry(&self) -> Registry {
        self.registry_of(if self.ros2 { Flavour::Ros2 } else { Flavour::Ros1 })
    }

    fn registry_of(&self, flavour: Flavour) -> Registry {
        let mut registry = Registry::from_env(flavour);
        for folder in &self.folders {
            registry.add_folder(folder);
        }
        registry
    }

    /// The schema of a type by its name.
    pub(crate) fn schema(&self, name: &str) -> Result<Schema, Failure> {
        self.registry().schema(name).or_input()
    }

    /// The same; a name as ROS 2 writes it, `package/msg/Type`, is of ROS 2. A type not found otherwise may be in use
    /// by a topic on the bus, whose endpoints state its definition.
    pub(crate) fn schema_as_written(&self, name: &str, node: &ropewalk::Node) -> Result<Schema, Failure> {
        let is_ros2 = self.ros2 || name.split('/').count() == 3;
        let flavour = if is_ros2 { Flavour::Ros2 } else { Flavour::Ros1 };
        self.registry_of(flavour).schema(name).or_else(|unknown| {
            let topics = node.topics().or_input()?;
            let of = |t: &&bus::TopicInfo| {
                crate::graph::is_same_type(&t.topic.type_name, name) && !t.topic.definition.is_empty()
            };
            match topics.iter().find(of) {
                Some(topic) => node.schema_of(topic).or_input(),
                None => Err(Failure::input(unknown)),
            }
        })
    }
}
