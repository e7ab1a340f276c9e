//! The compared systems and their programs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A transport to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum System {
    /// Ropewalk.
    Ropewalk,
    /// A ring in shared memory and an eventfd, without any middleware: the limit of this machine.
    Floor,
    /// iceoryx2.
    Iceoryx2,
    /// Zenoh over shared memory.
    ZenohShm,
    /// Zenoh over TCP.
    ZenohTcp,
    /// ROS 1 over TCP.
    Tcpros,
    /// ROS 1 over TCP with TCP_NODELAY.
    Nodelay,
    /// ROS 1 nodelets: all in one process.
    Nodelet,
    /// Cyclone DDS.
    Cyclonedds,
    /// ZeroMQ over ipc.
    Zeromq,
    /// Ropewalk, with the structures of `ropewalk gen rust`: the reference for generated code in other languages.
    RopewalkTyped,
    /// Ropewalk from C++.
    RopewalkCpp,
    /// Ropewalk from Python.
    RopewalkPython,
    /// ROS 1 over TCP from Python.
    Rospy,
    /// ROS 1's image_transport, unmodified.
    ImageRaw,
    /// The same nodes with Ropewalk's transport.
    ImageRopewalk,
    /// Nodes of roscpp with Ropewalk's publisher and views.
    ImageView,
    /// ROS 2 from Python over `rmw_ropewalk`.
    RclpyRopewalk,
    /// ROS 2 from Python over Fast DDS with its defaults: shared memory on one host.
    RclpyFastdds,
    /// ROS 2 from Python over Fast DDS and UDP.
    RclpyFastddsUdp,
    /// ROS 2 from C++ over `rmw_ropewalk`.
    RclRopewalk,
    /// As `rcl-ropewalk`, with loaned messages.
    RclRopewalkLoans,
    /// As `rcl-ropewalk`, published as usual and taken on loan.
    RclRopewalkTakeLoaned,
    /// ROS 2 from C++ over Fast DDS with its defaults.
    RclFastdds,
    /// ROS 2 from C++ over Fast DDS and UDP.
    RclFastddsUdp,
}

/// A language to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Language {
    /// Ropewalk, with control parts encoded beforehand and with generated structures.
    Rust,
    /// Ropewalk, roscpp, and Ropewalk from Rust with generated structures.
    Cpp,
    /// Ropewalk, rospy, and Ropewalk from Rust with generated structures.
    Python,
    /// Nodes of ROS 2 in Python: over `rmw_ropewalk`, and over Fast DDS by shared memory and by UDP.
    Rclpy,
    /// Nodes of ROS 2 in C++, on rcl as rclcpp is: over `rmw_ropewalk`, with and without loans, and over Fast DDS; and
    /// the floor.
    Rcl,
}

impl Language {
    /// Returns the systems that are compared in it, in addition to the floor.
    pub(crate) fn systems(self) -> &'static [System] {
        match self {
            Language::Rust => &[System::Ropewalk, System::RopewalkTyped],
            Language::Cpp => &[System::RopewalkTyped, System::RopewalkCpp, System::Tcpros],
            Language::Python => &[System::RopewalkTyped, System::RopewalkPython, System::Rospy],
            Language::Rclpy => &[
                System::RclpyRopewalk,
                System::RclpyFastdds,
                System::RclpyFastddsUdp,
            ],
            Language::Rcl => &[
                System::RclRopewalk,
                System::RclRopewalkLoans,
                System::RclRopewalkTakeLoaned,
                System::RclFastdds,
                System::RclFastddsUdp,
            ],
        }
    }
}

impl System {
    /// Every system, Ropewalk first.
    pub const ALL: [System; 25] = [
        System::Ropewalk,
        System::Floor,
        System::Iceoryx2,
        System::ZenohShm,
        System::ZenohTcp,
        System::Tcpros,
        System::Nodelay,
        System::Nodelet,
        System::Cyclonedds,
        System::Zeromq,
        System::RopewalkTyped,
        System::RopewalkCpp,
        System::RopewalkPython,
        System::Rospy,
        System::ImageRaw,
        System::ImageRopewalk,
        System::ImageView,
        System::RclpyRopewalk,
        System::RclpyFastdds,
        System::RclpyFastddsUdp,
        System::RclRopewalk,
        System::RclRopewalkLoans,
        System::RclRopewalkTakeLoaned,
        System::RclFastdds,
        System::RclFastddsUdp,
    ];

    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            System::Ropewalk => "ropewalk",
            System::Floor => "floor",
            System::Iceoryx2 => "iceoryx2",
            System::ZenohShm => "zenoh-shm",
            System::ZenohTcp => "zenoh-tcp",
            System::Tcpros => "tcpros",
            System::Nodelay => "nodelay",
            System::Nodelet => "nodelet",
            System::Cyclonedds => "cyclonedds",
            System::Zeromq => "zeromq",
            System::RopewalkTyped => "ropewalk-typed",
            System::RopewalkCpp => "ropewalk-cpp",
            System::RopewalkPython => "ropewalk-python",
            System::Rospy => "rospy",
            System::ImageRaw => "image-raw",
            System::ImageRopewalk => "image-ropewalk",
            System::ImageView => "image-view",
            System::RclpyRopewalk => "rclpy-ropewalk",
            System::RclpyFastdds => "rclpy-fastdds",
            System::RclpyFastddsUdp => "rclpy-fastdds-udp",
            System::RclRopewalk => "rcl-ropewalk",
            System::RclRopewalkLoans => "rcl-ropewalk-loans",
            System::RclRopewalkTakeLoaned => "rcl-ropewalk-take-loaned",
            System::RclFastdds => "rcl-fastdds",
            System::RclFastddsUdp => "rcl-fastdds-udp",
        }
    }

    /// Returns whether it needs a ROS master.
    pub(crate) fn needs_roscore(self) -> bool {
        use System::{ImageRaw, ImageRopewalk, ImageView, Nodelay, Nodelet, Rospy, Tcpros};
        matches!(self, Tcpros | Nodelay | Nodelet | Rospy)
            || matches!(self, ImageRaw | ImageRopewalk | ImageView)
    }

    /// Returns whether it is measured only when it, or its language, is selected.
    pub(crate) fn is_special(self) -> bool {
        self > System::Zeromq
    }

    /// Returns the language of its programs, if that is compared.
    pub(crate) fn language(self) -> Option<Language> {
        Some(match self {
            System::Ropewalk | System::RopewalkTyped => Language::Rust,
            System::RopewalkPython | System::Rospy => Language::Python,
            System::RopewalkCpp | System::Tcpros | System::Nodelay | System::Nodelet => Language::Cpp,
            System::ImageRaw | System::ImageRopewalk | System::ImageView => Language::Cpp,
            System::RclpyRopewalk | System::RclpyFastdds | System::RclpyFastddsUdp => Language::Rclpy,
            System::RclRopewalk
            | System::RclRopewalkLoans
            | System::RclRopewalkTakeLoaned
            | System::RclFastdds
            | System::RclFastddsUdp => Language::Rcl,
            _ => return None,
        })
    }

    /// Returns whether this program itself is its peer.
    pub(crate) fn is_this_program(self) -> bool {
        matches!(self, System::Ropewalk | System::RopewalkTyped)
    }

    /// Returns whether it is another middleware between processes: not Ropewalk, not the floor, and not inside one
    /// process.
    pub(crate) fn is_rival(self) -> bool {
        use System::{
            Floor, ImageRopewalk, ImageView, Nodelet, RclRopewalk, RclRopewalkLoans, RclRopewalkTakeLoaned,
            RclpyRopewalk, RopewalkCpp, RopewalkPython,
        };
        let ours = self.is_this_program()
            || matches!(
                self,
                RopewalkCpp
                    | RopewalkPython
                    | RclRopewalk
                    | RclRopewalkLoans
                    | RclRopewalkTakeLoaned
                    | RclpyRopewalk
                    | ImageRopewalk
                    | ImageView
            );
        !ours && !matches!(self, Floor | Nodelet)
    }

    /// Returns whether its publisher can know how many subscribers are connected.
    pub(crate) fn counts_subscribers(self) -> bool {
        self != System::Zeromq
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_everywhere() {
        for system in System::ALL {
            let json = serde_json::to_string(&system).expect("serializes");
            assert_eq!(json, format!("{:?}", system.name()));
            let value = system.to_possible_value().expect("shown");
            assert_eq!(value.get_name(), system.name());
        }
        assert_eq!(System::ALL.len(), System::value_variants().len());
    }
}
