//! Kinds of commands and telemetry. Each has a name, so that two extensions never collide.

use prost::Message;

/// A kind of command. The library's own kinds are in `command`; a user's program adds its own by implementing this
/// trait for an empty type.
pub trait CommandKind: 'static {
    /// The message that it carries.
    type Body: Message + Default + Clone;
    /// The name by which both ends know the kind: the name of its package and its own (`acme.Spray`). Controller and
    /// robot agree on numbers on the wire when they meet.
    const NAME: &'static str;
    /// Its number on Robot Remote Control's wire, version 6, where numbers are set by hand; extensions of upstream's
    /// robots begin at 17. `None`: the kind does not exist there.
    const V6: Option<u8> = None;
    /// The subsystem that it moves ([`BASE`], [`ARM`]), unless the robot sets another. Only the controller that holds
    /// the right to move the subsystem may send such a command.
    const MOVES: Option<&'static str> = None;

    /// Returns the body that stops the subsystem, if the kind has such a body. When the controller is lost and the
    /// robot's user has set no callback for that, the kind's handler receives this body.
    fn stop() -> Option<Self::Body> {
        None
    }
}

/// A kind of telemetry. The library's own kinds are in `telemetry`.
pub trait TelemetryKind: 'static {
    /// The message that it carries.
    type Body: Message + Default + Clone;
    /// As [`CommandKind::NAME`].
    const NAME: &'static str;
    /// As [`CommandKind::V6`]; extensions begin at 31.
    const V6: Option<u8> = None;
    /// Its priority on transports that have priorities: 0 to 127, 127 is the most urgent.
    const PRIORITY: u8 = 50;
    /// Whether the robot only keeps it for controllers to fetch, such as names and models, instead of sending it to all
    /// of them.
    const ON_REQUEST: bool = false;
}

/// The subsystem that drives.
pub const BASE: &str = "base";
/// The subsystem of the joints.
pub const ARM: &str = "arm";
