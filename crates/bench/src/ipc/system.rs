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
}

impl System {
    /// Every system, ours first.
    pub const ALL: [System; 10] = [
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
        }
    }

    /// Whether it needs a ROS master.
    pub(crate) fn needs_roscore(self) -> bool {
        matches!(self, System::Tcpros | System::Nodelay | System::Nodelet)
    }

    /// Whether it is another middleware between processes: neither ours, nor the floor, nor inside one process.
    pub(crate) fn is_rival(self) -> bool {
        !matches!(self, System::Ropewalk | System::Floor | System::Nodelet)
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
