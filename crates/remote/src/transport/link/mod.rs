//! The ends over this host's bus, and so over links: a link daemon carries the bus's data to other hosts.
//!
//! Requests are calls of services, one for each class, so that each class has its own priority on the air:
//! `/ROBOT/remote/command`, `/ROBOT/remote/request` and `/ROBOT/remote/file`, all of the type `ropewalk_remote/Call`.
//! Telemetry uses a topic for each kind and channel, `/ROBOT/remote/telemetry/PACKAGE/KIND/cCHANNEL`, and from 64 KiB
//! on below `telemetry/large/`, of the type `ropewalk_remote/Telemetry`. Robot and controller may be on one bus, or on
//! two that links join; `docs/guide/remote-link.md` has the configuration. The only difference to them is delay.
//!
//! Where every tenth of a millisecond counts, a program can have a link of its own instead ([`DirectRobot`],
//! [`DirectController`]): the same configuration, no bus, no daemon, and an address of its own. Daemons and such
//! programs interoperate (decision 178).
//!
//! ```no_run
//! use remote::transport::link::{LinkController, LinkRobot};
//! use ropewalk::Node;
//!
//! let robot = LinkRobot::new(&Node::new("robot")?, "r1");
//! let controller = LinkController::new(&Node::new("operator")?, "r1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod caller;
mod controller;
mod direct;
mod errors;
mod frame;
mod gate;
mod listener;
mod names;
mod robot;
mod types;

pub use controller::LinkController;
pub use direct::{DirectController, DirectRobot};
pub(crate) use frame::fuzz;
pub use names::robot_of_service;
pub use robot::LinkRobot;
