//! `ropewalk interface`: types of messages, services and actions.

mod folders;
mod kind;
mod list;
mod lookup;
mod show;

use crate::failure::Outcome;
use clap::{Args, Subcommand};
use ropewalk::{Flavour, Registry};
use std::path::PathBuf;

/// Show and list types of messages, services and actions
///
/// Types are those of ROS 2 or, with --ros1, of ROS 1.
///
///   ropewalk interface show sensor_msgs/msg/LaserScan
///   ropewalk interface show std_srvs/SetBool --ros1
///   ropewalk interface package geometry_msgs
///   ropewalk interface proto geometry_msgs/msg/Twist >twist.yaml
///
/// Types of the standard packages are built in. Others are looked up in --path,
/// AMENT_PREFIX_PATH (with --ros1: ROS_PACKAGE_PATH and /usr/share), and among
/// the types in use on the bus.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    search: Search,
}

#[derive(Subcommand)]
enum What {
    Show(show::Show),
    Proto(show::Proto),
    List(list::List),
    Package(list::Package),
    Packages(list::Packages),
}

/// Where to look up types.
#[derive(Args)]
struct Search {
    /// Use types of ROS 1.
    #[arg(long, global = true)]
    ros1: bool,
    /// Folder with packages, or a package's own folder, in which to look up definitions (may be repeated).
    #[arg(long = "path", value_name = "FOLDER", global = true)]
    folders: Vec<PathBuf>,
}

impl Search {
    fn flavour(&self) -> Flavour {
        if self.ros1 { Flavour::Ros1 } else { Flavour::Ros2 }
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::from_env(self.flavour());
        self.folders.iter().for_each(|folder| registry.add_folder(folder));
        registry
    }
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let search = &options.search;
    match &options.what {
        What::Show(show) => show::run(search, show),
        What::Proto(proto) => show::proto(search, proto),
        What::List(list) => list::list(search, list),
        What::Package(package) => list::package(search, package),
        What::Packages(packages) => list::packages(search, packages),
    }
}
