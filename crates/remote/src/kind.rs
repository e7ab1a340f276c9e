//! What kinds of commands and telemetry there are: named, so that two extensions never collide.

use prost::Message;

/// A kind of command. The library's own stand in `command`; a user's program adds its own by
/// implementing this for an empty type.
pub trait CommandKind: 'static {
    /// What it carries.
    type Body: Message + Default + Clone;
    /// What both ends know it by: the name of its package and its own (`acme.Spray`). Numbers on the wire are agreed on
    /// when controller and robot meet.
    const NAME: &'static str;
    /// Its number on Robot Remote Control's wire, version 6, where numbers are set by hand; extensions of upstream's robots begin at
    /// 17. `None`: it does not exist there.
    const V6: Option<u8> = None;
    /// The subsystem that it moves unless the robot says otherwise ([`BASE`], [`ARM`]). Such commands are for whoever holds the right to move it.
    const MOVES: Option<&'static str> = None;

    /// What stops whatever it moves, where the kind has such a body: its handler gets that when the controller is lost and the robot's user
    /// set nothing else.
    fn stop() -> Option<Self::Body> {
        None
    }
}

/// A kind of telemetry. The library's own stand in `telemetry`.
pub trait TelemetryKind: 'static {
    /// What it carries.
    type Body: Message + Default + Clone;
    /// As [`CommandKind::NAME`].
    const NAME: &'static str;
    /// As [`CommandKind::V6`]; extensions begin at 31.
    const V6: Option<u8> = None;
    /// How urgent it is where a transport knows priorities: 0 to 127, 127 the most urgent.
    const PRIORITY: u8 = 50;
    /// Whether it is only kept to be asked for, as names and models are, instead of sent to everyone.
    const ON_REQUEST: bool = false;
}

/// The subsystem of what drives.
pub const BASE: &str = "base";
/// The subsystem of joints.
pub const ARM: &str = "arm";
