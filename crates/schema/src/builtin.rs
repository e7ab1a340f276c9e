//! Definitions of the standard packages, as plain field lists.
//!
//! One file per package; `[Name]` starts a message, `[srv Name]` a service. ROS 1 is Noetic's, ROS 2 is Jazzy's.

use crate::{Flavour, TypeName};

type Package = (&'static str, &'static str);

macro_rules! packages {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../definitions/", $folder, "/", $name, ".txt")))),+]
    };
}

const ROS1: &[Package] = packages![
    "ros1":
    "actionlib_msgs",
    "diagnostic_msgs",
    "geometry_msgs",
    "map_msgs",
    "move_base_msgs",
    "nav_msgs",
    "pcl_msgs",
    "rosgraph_msgs",
    "sensor_msgs",
    "shape_msgs",
    "std_msgs",
    "std_srvs",
    "stereo_msgs",
    "tf",
    "tf2_msgs",
    "trajectory_msgs",
    "visualization_msgs",
];

const ROS2: &[Package] = packages![
    "ros2":
    "action_msgs",
    "actionlib_msgs",
    "builtin_interfaces",
    "diagnostic_msgs",
    "geometry_msgs",
    "lifecycle_msgs",
    "map_msgs",
    "nav_msgs",
    "rcl_interfaces",
    "rosgraph_msgs",
    "sensor_msgs",
    "service_msgs",
    "shape_msgs",
    "statistics_msgs",
    "std_msgs",
    "std_srvs",
    "stereo_msgs",
    "tf2_msgs",
    "trajectory_msgs",
    "type_description_interfaces",
    "unique_identifier_msgs",
    "visualization_msgs",
];

fn packages(flavour: Flavour) -> &'static [Package] {
    match flavour {
        Flavour::Ros1 => ROS1,
        Flavour::Ros2 => ROS2,
    }
}

/// The text of a message or service, if the crate contains it.
pub(crate) fn find(flavour: Flavour, name: &TypeName, service: bool) -> Option<&'static str> {
    let (_, text) = packages(flavour).iter().find(|(p, _)| *p == name.package())?;
    entries(text)
        .find(|e| e.service == service && e.name == name.name())
        .map(|e| e.text)
}

/// All messages or services that the crate contains.
pub(crate) fn names(flavour: Flavour, service: bool) -> impl Iterator<Item = TypeName> {
    packages(flavour).iter().flat_map(move |(package, text)| {
        entries(text)
            .filter(move |e| e.service == service)
            .map(|e| TypeName::join(package, e.name))
    })
}

struct Entry {
    name: &'static str,
    service: bool,
    text: &'static str,
}

fn entries(text: &'static str) -> impl Iterator<Item = Entry> {
    // A definition never contains `[` at the start of a line.
    text.split("\n[").filter_map(|part| {
        let (head, body) = part.strip_prefix('[').unwrap_or(part).split_once(']')?;
        let body = body.strip_prefix('\n').unwrap_or(body);
        let service = head.strip_prefix("srv ");
        Some(Entry {
            name: service.unwrap_or(head),
            service: service.is_some(),
            text: body,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    #[test]
    fn every_definition_compiles() {
        for (flavour, messages, services) in [(Flavour::Ros1, 154, 18), (Flavour::Ros2, 161, 4)] {
            let registry = Registry::new(flavour);
            assert_eq!(registry.names().len(), messages);
            for name in registry.names() {
                registry.schema(&name.to_string()).expect("compiles");
            }
            assert_eq!(registry.service_names().len(), services);
            for name in registry.service_names() {
                registry.service(&name.to_string()).expect("compiles");
            }
        }
    }
}
