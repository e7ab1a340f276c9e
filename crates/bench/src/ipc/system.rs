//! The systems that are compared, and where their programs are.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A transport that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum System {
    /// Ours.
    Ropewalk,
    /// A ring in shared memory and an eventfd, without any middleware: what this machine can do.
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
    /// Ours, by the structures of `ropewalk gen rust`: what generated code of other languages is compared with.
    RopewalkTyped,
    /// Ours from C++.
    RopewalkCpp,
    /// Ours from Python.
    RopewalkPython,
    /// ROS 1 over TCP from Python.
    Rospy,
    /// ROS 1's image_transport as it comes.
    ImageRaw,
    /// The same nodes with our transport.
    ImageRopewalk,
    /// Nodes of roscpp with our publisher and views.
    ImageView,
    /// ROS 2 from Python over `rmw_ropewalk`.
    RclpyRopewalk,
    /// ROS 2 from Python over Fast DDS as it comes: shared memory on one host.
    RclpyFastdds,
    /// ROS 2 from Python over Fast DDS and UDP.
    RclpyFastddsUdp,
    /// ROS 2 from C++ over `rmw_ropewalk`.
    RclRopewalk,
    /// As `rcl-ropewalk`, with messages on loan.
    RclRopewalkLoans,
    /// ROS 2 from C++ over Fast DDS as it comes.
    RclFastdds,
    /// ROS 2 from C++ over Fast DDS and UDP.
    RclFastddsUdp,
}

/// A language whose programs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Language {
    /// Ours, with control parts made beforehand and with generated structures.
    Rust,
    /// Ours, roscpp, and ours from Rust by generated structures.
    Cpp,
    /// Ours, rospy, and ours from Rust by generated structures.
    Python,
    /// Nodes of ROS 2 in Python: over `rmw_ropewalk`, and over Fast DDS by shared memory and by UDP.
    Rclpy,
    /// Nodes of ROS 2 in C++, on rcl as rclcpp is: over `rmw_ropewalk`, with and without loans, and over Fast DDS; and the floor.
    Rcl,
}

impl Language {
    /// What is compared in it, beside the floor.
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
                System::RclFastdds,
                System::RclFastddsUdp,
            ],
        }
    }
}

impl System {
    /// Every system, ours first.
    pub const ALL: [System; 24] = [
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
        System::RclFastdds,
        System::RclFastddsUdp,
    ];

    /// As in results and on the command line.
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
            System::RclFastdds => "rcl-fastdds",
            System::RclFastddsUdp => "rcl-fastdds-udp",
        }
    }

    /// Whether it needs a ROS master.
    pub(crate) fn needs_roscore(self) -> bool {
        use System::{ImageRaw, ImageRopewalk, ImageView, Nodelay, Nodelet, Rospy, Tcpros};
        matches!(self, Tcpros | Nodelay | Nodelet | Rospy)
            || matches!(self, ImageRaw | ImageRopewalk | ImageView)
    }

    /// Whether it is measured only when it, or its language, is named.
    pub(crate) fn is_special(self) -> bool {
        self > System::Zeromq
    }

    /// The language of its programs, where that is compared.
    pub(crate) fn language(self) -> Option<Language> {
        Some(match self {
            System::Ropewalk | System::RopewalkTyped => Language::Rust,
            System::RopewalkPython | System::Rospy => Language::Python,
            System::RopewalkCpp | System::Tcpros | System::Nodelay | System::Nodelet => Language::Cpp,
            System::ImageRaw | System::ImageRopewalk | System::ImageView => Language::Cpp,
            System::RclpyRopewalk | System::RclpyFastdds | System::RclpyFastddsUdp => Language::Rclpy,
            System::RclRopewalk | System::RclRopewalkLoans | System::RclFastdds | System::RclFastddsUdp => {
                Language::Rcl
            }
            _ => return None,
        })
    }

    /// Whether this very program is its peer.
    pub(crate) fn is_this_program(self) -> bool {
        matches!(self, System::Ropewalk | System::RopewalkTyped)
    }

    /// Whether it is another middleware between processes: neither ours, nor the floor, nor inside one process.
    pub(crate) fn is_rival(self) -> bool {
        use System::{
            Floor, ImageRopewalk, ImageView, Nodelet, RclRopewalk, RclRopewalkLoans, RclpyRopewalk,
            RopewalkCpp, RopewalkPython,
        };
        let ours = self.is_this_program()
            || matches!(
                self,
                RopewalkCpp
                    | RopewalkPython
                    | RclRopewalk
                    | RclRopewalkLoans
                    | RclpyRopewalk
                    | ImageRopewalk
                    | ImageView
            );
        !ours && !matches!(self, Floor | Nodelet)
    }

    /// Whether its publisher can know how many subscribers are connected.
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
