//! Message types, from names and from recordings.

use crate::failure::{Failure, OrFail};
use recording::Channel;
use schema::{Flavour, Registry, Schema};
use std::path::PathBuf;

/// The schema of a recording's channel, from the definition in the recording.
pub(crate) fn of_channel(channel: &Channel) -> Result<Schema, Failure> {
    let flavour = if channel.encoding == recording::Encoding::Cdr {
        Flavour::Ros2
    } else {
        Flavour::Ros1
    };
    let mut registry = Registry::new(flavour);
    let name = &channel.type_name;
    let place = |e: schema::DefinitionError| Failure::input(format_args!("{} ({name}): {e}", channel.topic));
    registry.add_embedded(name, &channel.definition).map_err(place)?;
    let schema = registry.schema(name).map_err(place)?;
    match &channel.md5 {
        Some(stated) if *stated != schema.md5_hex() => Err(Failure::input(format_args!(
            "{} ({name}): the recording states md5 {stated}, but its definition has {}",
            channel.topic,
            schema.md5_hex()
        ))),
        _ => Ok(schema),
    }
}

/// Where message definitions are looked for.
#[derive(clap::Args)]
pub(crate) struct SearchPath {
    /// A folder with packages, or a package's own folder, to look for definitions in (may be repeated).
    #[arg(long = "path", value_name = "FOLDER", global = true)]
    folders: Vec<PathBuf>,
    /// Take definitions of ROS 2 instead of ROS 1.
    #[arg(long, global = true)]
    ros2: bool,
}

impl SearchPath {
    /// The registry that these options ask for.
    pub(crate) fn registry(&self) -> Registry {
        let flavour = if self.ros2 { Flavour::Ros2 } else { Flavour::Ros1 };
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
}
