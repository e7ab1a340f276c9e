//! The library's kinds of commands. Their bodies are in [`types`](crate::types).

use super::{any, check_command, interned};
use crate::kind::{ARM, BASE, CommandKind};
use crate::types;

/// One kind, as an entry of a table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`CommandKind::NAME`].
    pub name: &'static str,
    /// [`CommandKind::V6`].
    pub v6: Option<u8>,
    /// [`CommandKind::MOVES`].
    pub moves: Option<&'static str>,
    /// Checks that the bytes are a body of this kind.
    pub check: fn(&[u8]) -> Result<(), prost::DecodeError>,
}

impl Entry {
    /// Returns the entry of any kind, including a user's own.
    pub const fn of<K: CommandKind>() -> Self {
        Self {
            name: K::NAME,
            v6: K::V6,
            moves: K::MOVES,
            check: check_command::<K>,
        }
    }

    /// Returns the entry of a kind for which this program has no type: one of the library's by its name, or a user's
    /// own with any body. It moves `moves`, or what the library's kind moves. `None`: this process has created too many
    /// names, which is probably a mistake.
    pub fn named(name: &str, moves: Option<&str>) -> Option<Self> {
        let mut kind = match by_name(name) {
            Some(known) => *known,
            None => Self {
                name: interned(name)?,
                v6: None,
                moves: None,
                check: any,
            },
        };
        if let Some(subsystem) = moves {
            kind.moves = Some(interned(subsystem)?);
        }
        Some(kind)
    }
}

macro_rules! commands {
    ($($(#[$doc:meta])* $kind:ident: $body:ident = $number:literal, moves $moves:expr;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $kind;

            impl CommandKind for $kind {
                type Body = types::$body;
                const NAME: &'static str = concat!("robot_remote_control.", stringify!($kind));
                const V6: Option<u8> = Some($number);
                const MOVES: Option<&'static str> = $moves;
            }
        )+

        /// All kinds, by number.
        pub const ALL: &[Entry] = &[$(Entry::of::<$kind>()),+];

        /// The body of each kind: the name of its message in [`DESCRIPTORS`](crate::DESCRIPTORS), in the same order.
        pub const BODIES: &[&str] = &[$(<types::$body as prost::Name>::NAME),+];
    };
}

commands! {
    /// The answer to a [`PermissionRequest`](super::telemetry::PermissionRequest).
    Permission: Permission = 9, moves None;
    /// The pose that the robot, or the frame named in the header, is to take.
    TargetPose: Pose = 10, moves Some(BASE);
    /// The velocity at which the robot is to move until the next twist.
    Twist: Twist = 11, moves Some(BASE);
    /// Targets of joints.
    Joints: JointCommand = 12, moves Some(ARM);
    /// The state that one of the robot's simple actions is to take. The robot defines which of them move it.
    SimpleAction: SimpleAction = 13, moves None;
    /// One of the robot's complex actions, with its poses and twists.
    ComplexAction: ComplexAction = 14, moves Some(BASE);
    /// A waypoint, with velocities.
    GoTo: GoTo = 15, moves Some(BASE);
    /// A path.
    RobotTrajectory: Poses = 16, moves Some(BASE);
}

/// Returns the kind with this number on version 6's wire.
pub fn by_v6(number: u8) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.v6 == Some(number))
}

/// Returns the kind with this name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.name == name)
}
