//! Commands. What each carries stands in [`types`](crate::types).

use super::{any, check_command, interned};
use crate::kind::{ARM, BASE, CommandKind};
use crate::types;

/// What a table says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`CommandKind::NAME`].
    pub name: &'static str,
    /// [`CommandKind::V6`].
    pub v6: Option<u8>,
    /// [`CommandKind::MOVES`].
    pub moves: Option<&'static str>,
    /// Whether bytes are a body of it.
    pub check: fn(&[u8]) -> Result<(), prost::DecodeError>,
}

impl Entry {
    /// Of any kind, also of a user's own.
    pub const fn of<K: CommandKind>() -> Self {
        Self {
            name: K::NAME,
            v6: K::V6,
            moves: K::MOVES,
            check: check_command::<K>,
        }
    }

    /// Of a kind of which this program has no type: one of the library's by its name, or a user's own, of any body; it moves `moves`, or
    /// what the library's kind does. `None`: so many names were made up in this process that it seems to be a mistake.
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

        /// All of them, by number.
        pub const ALL: &[Entry] = &[$(Entry::of::<$kind>()),+];

        /// What each of them carries: the name of its message in [`DESCRIPTORS`](crate::DESCRIPTORS), in the same order.
        pub const BODIES: &[&str] = &[$(<types::$body as prost::Name>::NAME),+];
    };
}

commands! {
    /// The answer to a [`PermissionRequest`](super::telemetry::PermissionRequest).
    Permission: Permission = 9, moves None;
    /// The pose that the robot, or the frame named in the header, shall take.
    TargetPose: Pose = 10, moves Some(BASE);
    /// The velocity at which the robot shall move until the next one.
    Twist: Twist = 11, moves Some(BASE);
    /// What joints shall do.
    Joints: JointCommand = 12, moves Some(ARM);
    /// The state that one of the robot's simple actions shall take. A robot says itself which of them move it.
    SimpleAction: SimpleAction = 13, moves None;
    /// One of the robot's complex actions, with its poses and twists.
    ComplexAction: ComplexAction = 14, moves Some(BASE);
    /// A waypoint, with velocities.
    GoTo: GoTo = 15, moves Some(BASE);
    /// A path.
    RobotTrajectory: Poses = 16, moves Some(BASE);
}

/// The kind with this number on version 6's wire.
pub fn by_v6(number: u8) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.v6 == Some(number))
}

/// The kind of this name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.name == name)
}
