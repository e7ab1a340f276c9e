//! The compared systems and their programs.

use crate::kit::systems::System;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The transports that can be measured, Ropewalk first.
pub(crate) const SYSTEMS: [(System, &str); 25] = [
    (System::Ropewalk, "Ropewalk"),
    (
        System::Floor,
        "A ring in shared memory and an eventfd, without any middleware: the limit of this machine",
    ),
    (System::Iceoryx2, "iceoryx2"),
    (System::ZenohShm, "Zenoh over shared memory"),
    (System::ZenohTcp, "Zenoh over TCP"),
    (System::Tcpros, "ROS 1 over TCP"),
    (System::Nodelay, "ROS 1 over TCP with TCP_NODELAY"),
    (System::Nodelet, "ROS 1 nodelets: all in one process"),
    (System::Cyclonedds, "Cyclone DDS"),
    (System::Zeromq, "ZeroMQ over ipc"),
    (
        System::RopewalkTyped,
        "Ropewalk, with the structures of `ropewalk gen rust`: the reference for generated code in other languages",
    ),
    (System::RopewalkCpp, "Ropewalk from C++"),
    (System::RopewalkPython, "Ropewalk from Python"),
    (System::Rospy, "ROS 1 over TCP from Python"),
    (System::ImageRaw, "ROS 1's image_transport, unmodified"),
    (System::ImageRopewalk, "The same nodes with Ropewalk's transport"),
    (
        System::ImageView,
        "Nodes of roscpp with Ropewalk's publisher and views",
    ),
    (System::RclpyRopewalk, "ROS 2 from Python over `rmw_ropewalk`"),
    (
        System::RclpyFastdds,
        "ROS 2 from Python over Fast DDS with its defaults: shared memory on one host",
    ),
    (System::RclpyFastddsUdp, "ROS 2 from Python over Fast DDS and UDP"),
    (System::RclRopewalk, "ROS 2 from C++ over `rmw_ropewalk`"),
    (
        System::RclRopewalkLoans,
        "As `rcl-ropewalk`, with loaned messages",
    ),
    (
        System::RclRopewalkTakeLoaned,
        "As `rcl-ropewalk`, published as usual and taken on loan",
    ),
    (
        System::RclFastdds,
        "ROS 2 from C++ over Fast DDS with its defaults",
    ),
    (System::RclFastddsUdp, "ROS 2 from C++ over Fast DDS and UDP"),
];

/// Returns them without their descriptions.
pub(crate) fn all() -> impl Iterator<Item = System> {
    SYSTEMS.into_iter().map(|(system, _)| system)
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
    /// Returns whether it is measured only when it, or its language, is selected.
    pub(crate) fn is_special(self) -> bool {
        use System::{
            Cyclonedds, Floor, Iceoryx2, Nodelay, Nodelet, Ropewalk, Tcpros, ZenohShm, ZenohTcp, Zeromq,
        };
        let usual = matches!(self, Ropewalk | Floor | Iceoryx2 | ZenohShm | ZenohTcp | Tcpros)
            || matches!(self, Nodelay | Nodelet | Cyclonedds | Zeromq);
        !usual
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
