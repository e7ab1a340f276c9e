//! The compared systems and their programs.

use crate::kit::systems::System;
use serde::{Deserialize, Deserializer, de};

/// The systems whose nodes send and echo.
pub(crate) const SYSTEMS: [(System, &str); 6] = [
    (System::Ropewalk, "Ropewalk, from Rust"),
    (System::RopewalkPython, "Ropewalk, from Python"),
    (System::Roscpp, "ROS 1 from C++"),
    (System::Rospy, "ROS 1 from Python, the system of the thesis"),
    (System::Zenoh, "Zenoh"),
    (System::Cyclonedds, "Cyclone DDS"),
];

/// Returns them without their descriptions.
pub(super) fn all() -> impl Iterator<Item = System> {
    SYSTEMS.into_iter().map(|(system, _)| system)
}

/// Reads one of them; a line of another machine may name anything.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<System, D::Error> {
    let system = System::deserialize(from)?;
    let is_ours = all().any(|ours| ours == system);
    let wrong = || de::Error::custom(format_args!("{system} has no nodes for `bench scale`"));
    is_ours.then_some(system).ok_or_else(wrong)
}

impl System {
    /// Returns whether it uses Ropewalk's bus and link.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, System::Ropewalk | System::RopewalkPython)
    }

    /// Returns its target of `make` in `peers/`, which is also its file in `peers/bin`; `None` if this program itself
    /// is the node.
    pub(super) fn target(self) -> Option<&'static str> {
        match self {
            System::RopewalkPython => Some("scale-ropewalk-python"),
            System::Roscpp => Some("scale-roscpp"),
            System::Rospy => Some("scale-rospy"),
            System::Zenoh => Some("scale-zenoh"),
            System::Cyclonedds => Some("scale-cyclonedds"),
            _ => None,
        }
    }
}
