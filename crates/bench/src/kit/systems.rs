//! The compared systems. Each experiment has a table of those that it can run.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A system that an experiment measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum System {
    /// Ropewalk, from Rust.
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
    /// ROS 1 from Python.
    Rospy,
    /// ROS 1's image_transport, unmodified.
    ImageRaw,
    /// The same nodes with Ropewalk's transport.
    ImageRopewalk,
    /// Nodes of roscpp with Ropewalk's publisher and views.
    ImageView,
    /// ROS 2 from Python over `rmw_ropewalk`.
    RclpyRopewalk,
    /// ROS 2 from Python over Fast DDS with its defaults: shared memory on one host, UDP between hosts.
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
    /// ROS 1 over UDP.
    Udpros,
    /// ROS 1: one flow by UDPROS, the others by TCPROS with TCP_NODELAY.
    Mixed,
    /// A plain TCP connection.
    Tcp,
    /// Zenoh over UDP.
    ZenohUdp,
    /// Zenoh over QUIC.
    ZenohQuic,
    /// Nodes of rclpy over Fast DDS, with a bridge to Zenoh on each host.
    DdsZenoh,
    /// ROS 1 from C++.
    Roscpp,
    /// Zenoh.
    Zenoh,
    /// Plain TCP sockets, on loopback: the floor.
    BareSockets,
    /// Ropewalk's `Robot` and `Controller` over links.
    RopewalkLink,
    /// Ropewalk's `Robot` and `Controller` over ZeroMQ.
    RopewalkZmq,
    /// Services and topics of roscpp.
    Ros1,
}

/// What an experiment can run, and how its help describes each.
pub(crate) type Table<T> = [(T, &'static str)];

impl System {
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
            System::Udpros => "udpros",
            System::Mixed => "mixed",
            System::Tcp => "tcp",
            System::ZenohUdp => "zenoh-udp",
            System::ZenohQuic => "zenoh-quic",
            System::DdsZenoh => "dds-zenoh",
            System::Roscpp => "roscpp",
            System::Zenoh => "zenoh",
            System::BareSockets => "bare-sockets",
            System::RopewalkLink => "ropewalk-link",
            System::RopewalkZmq => "ropewalk-zmq",
            System::Ros1 => "ros1",
        }
    }

    /// Returns whether it needs a ROS master.
    pub(crate) fn needs_roscore(self) -> bool {
        use System::{ImageRaw, ImageRopewalk, ImageView, Nodelay, Nodelet, Roscpp, Rospy, Tcpros};
        matches!(self, Tcpros | Nodelay | Nodelet | Roscpp | Rospy)
            || matches!(self, ImageRaw | ImageRopewalk | ImageView)
    }

    /// Parses one of the systems of a table.
    pub(crate) fn parser(table: &'static Table<System>) -> impl TypedValueParser<Value = System> {
        choice(table, System::name)
    }
}

/// Parses the name of an entry of a table.
pub(crate) fn choice<T: Copy + Send + Sync + 'static>(
    table: &'static Table<T>,
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let shown = |(of, help): &(T, &'static str)| PossibleValue::new(name(*of)).help(*help);
    PossibleValuesParser::new(table.iter().map(shown)).try_map(move |typed| {
        let mut all = table.iter().map(|(of, _)| *of);
        all.find(|of| name(*of) == typed)
            .ok_or_else(|| format!("{typed} is not in the table"))
    })
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: [&Table<System>; 5] = [
        &crate::brake::SYSTEMS,
        &crate::ipc::SYSTEMS,
        &crate::link::SYSTEMS,
        &crate::remote::SYSTEMS,
        &crate::scale::SYSTEMS,
    ];

    #[test]
    fn one_name_everywhere() {
        for (system, help) in TABLES.into_iter().flatten() {
            let json = serde_json::to_string(system).expect("serializes");
            assert_eq!(json, format!("{:?}", system.name()));
            assert!(!help.is_empty() && !help.ends_with('.'), "{system}: {help:?}");
        }
    }

    #[test]
    fn an_experiment_takes_only_its_systems() {
        let parse = |table, name: &str| {
            let command =
                clap::Command::new("x").arg(clap::Arg::new("system").value_parser(System::parser(table)));
            let matches = command.try_get_matches_from(["x", name]).ok()?;
            matches.get_one::<System>("system").copied()
        };
        for table in TABLES {
            for (system, _) in table {
                assert_eq!(parse(table, system.name()), Some(*system));
            }
        }
        assert_eq!(parse(&crate::brake::SYSTEMS, "zeromq"), None);
    }
}
