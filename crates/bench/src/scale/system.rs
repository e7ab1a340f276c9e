//! The compared systems and their programs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A system whose nodes send and echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum System {
    /// Ropewalk, from Rust.
    Ropewalk,
    /// Ropewalk, from Python.
    RopewalkPython,
    /// ROS 1 from C++.
    Roscpp,
    /// ROS 1 from Python, the system of the thesis.
    Rospy,
    /// Zenoh.
    Zenoh,
    /// Cyclone DDS.
    Cyclonedds,
}

impl System {
    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            System::Ropewalk => "ropewalk",
            System::RopewalkPython => "ropewalk-python",
            System::Roscpp => "roscpp",
            System::Rospy => "rospy",
            System::Zenoh => "zenoh",
            System::Cyclonedds => "cyclonedds",
        }
    }

    /// Returns whether it uses Ropewalk's bus and link.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, System::Ropewalk | System::RopewalkPython)
    }

    /// Returns whether it needs a ROS master.
    pub(super) fn needs_roscore(self) -> bool {
        matches!(self, System::Roscpp | System::Rospy)
    }

    /// Returns its target of `make` in `peers/`, which is also its file in `peers/bin`; `None` if this program itself
    /// is the node.
    pub(super) fn target(self) -> Option<&'static str> {
        match self {
            System::Ropewalk => None,
            System::RopewalkPython => Some("scale-ropewalk-python"),
            System::Roscpp => Some("scale-roscpp"),
            System::Rospy => Some("scale-rospy"),
            System::Zenoh => Some("scale-zenoh"),
            System::Cyclonedds => Some("scale-cyclonedds"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_everywhere() {
        for system in System::value_variants() {
            let json = serde_json::to_string(system).expect("serializes");
            assert_eq!(json, format!("{:?}", system.name()));
            let value = system.to_possible_value().expect("shown");
            assert_eq!(value.get_name(), system.name());
        }
    }
}
