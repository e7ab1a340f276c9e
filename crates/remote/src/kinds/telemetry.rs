//! Telemetry. What each kind carries stands in [`types`](crate::types).

use super::{any, check_telemetry, interned};
use crate::kind::TelemetryKind;
use crate::types;

/// What a table says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`TelemetryKind::NAME`].
    pub name: &'static str,
    /// [`TelemetryKind::V6`].
    pub v6: Option<u8>,
    /// [`TelemetryKind::PRIORITY`].
    pub priority: u8,
    /// [`TelemetryKind::ON_REQUEST`].
    pub on_request: bool,
    /// Whether bytes are a body of it.
    pub check: fn(&[u8]) -> Result<(), prost::DecodeError>,
}

impl Entry {
    /// Of any kind, also of a user's own.
    pub const fn of<K: TelemetryKind>() -> Self {
        Self {
            name: K::NAME,
            v6: K::V6,
            priority: K::PRIORITY,
            on_request: K::ON_REQUEST,
            check: check_telemetry::<K>,
        }
    }

    /// Of a kind of which this program has no type: one of the library's by its name, or a user's own, of any body. `None`: so many
    /// names were made up in this process that it seems to be a mistake.
    pub fn named(name: &str) -> Option<Self> {
        if let Some(known) = by_name(name) {
            return Some(*known);
        }
        Some(Self {
            name: interned(name)?,
            v6: None,
            priority: 50,
            on_request: false,
            check: any,
        })
    }
}

macro_rules! telemetry {
    ($($(#[$doc:meta])* $kind:ident: $body:ident = $number:literal, priority $priority:literal $(, $on_request:ident)?;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $kind;

            impl TelemetryKind for $kind {
                type Body = types::$body;
                const NAME: &'static str = concat!("robot_remote_control.", stringify!($kind));
                const V6: Option<u8> = Some($number);
                const PRIORITY: u8 = $priority;
                $(const ON_REQUEST: bool = telemetry!(@$on_request);)?
            }
        )+

        /// All of them, by number.
        pub const ALL: &[Entry] = &[$(Entry::of::<$kind>()),+];

        /// What each of them carries: the name of its message in [`DESCRIPTORS`](crate::DESCRIPTORS), in the same order.
        pub const BODIES: &[&str] = &[$(<types::$body as prost::Name>::NAME),+];
    };
    (@on_request) => { true };
}

// What people wait for comes first, then what says where the robot is and how it moves, then what it senses, by size.
telemetry! {
    /// Where the robot is.
    CurrentPose: Pose = 1, priority 80;
    /// What the joints do.
    JointState: JointState = 2, priority 80;
    /// Which joints take commands.
    ControllableJoints: JointState = 3, priority 60, on_request;
    /// Which simple actions there are, and their states.
    SimpleActions: SimpleActions = 4, priority 60, on_request;
    /// Which complex actions there are.
    ComplexActions: ComplexActions = 5, priority 60, on_request;
    /// What the robot is called.
    RobotName: RobotName = 6, priority 60, on_request;
    /// What state the robot is in, in its own words.
    RobotState: RobotState = 7, priority 90;
    /// A message for people.
    LogMessage: LogMessage = 8, priority 100;
    /// Where video can be had.
    VideoStreams: VideoStreams = 9, priority 60, on_request;
    /// Values of a sensor that is no more than that.
    SimpleSensor: SimpleSensor = 10, priority 60;
    /// Forces and torques.
    WrenchState: WrenchState = 11, priority 70;
    /// A map, of whatever form.
    Map: Map = 12, priority 10, on_request;
    /// A path, or a region.
    Poses: Poses = 13, priority 60;
    /// Where frames are in others.
    Transforms: Transforms = 14, priority 75;
    /// The robot asks whether it may. The controller answers with [`Permission`](super::command::Permission).
    PermissionRequest: PermissionRequest = 15, priority 110;
    /// Points.
    PointCloud: PointCloud = 16, priority 20;
    /// Acceleration, rotation, orientation, and the magnetic field.
    ImuValues: Imu = 17, priority 75;
    /// What the robot touches.
    ContactPoints: ContactPoints = 18, priority 70;
    /// How fast the robot moves.
    CurrentTwist: Twist = 19, priority 80;
    /// How the robot accelerates.
    CurrentAcceleration: Acceleration = 20, priority 75;
    /// How cameras see.
    CameraInformation: CameraInformation = 21, priority 60, on_request;
    /// A picture.
    Image: Image = 22, priority 30;
    /// Pictures of the same place: colour and depth, say.
    ImageLayers: ImageLayers = 23, priority 20;
    /// Where the robot is and how fast it moves, and how sure that is.
    Odometry: Odometry = 24, priority 80;
    /// Which frames commands may name, and which commands.
    ControllableFrames: ControllableFrames = 25, priority 60, on_request;
    /// Which files can be had.
    FileDefinition: FileDefinition = 26, priority 60, on_request;
    /// Which files are the robot's model.
    RobotModelInformation: RobotModelInformation = 27, priority 60, on_request;
    /// What the robot may change while it runs.
    InterfaceOptions: InterfaceOptions = 28, priority 60, on_request;
    /// Which channels there are besides those of number 0.
    ChannelsDefinition: ChannelsDefinition = 29, priority 60, on_request;
    /// Ranges of a laser.
    LaserScan: LaserScan = 30, priority 50;
}

/// The kind with this number on version 6's wire.
pub fn by_v6(number: u8) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.v6 == Some(number))
}

/// The kind of this name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.name == name)
}
