//! The library's kinds of telemetry. Their bodies are in [`types`](crate::types).

use super::{any, check_telemetry, interned};
use crate::kind::TelemetryKind;
use crate::types;

/// One kind, as an entry of a table.
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
    /// Checks that the bytes are a body of this kind.
    pub check: fn(&[u8]) -> Result<(), prost::DecodeError>,
}

impl Entry {
    /// Returns the entry of any kind, including a user's own.
    pub const fn of<K: TelemetryKind>() -> Self {
        Self {
            name: K::NAME,
            v6: K::V6,
            priority: K::PRIORITY,
            on_request: K::ON_REQUEST,
            check: check_telemetry::<K>,
        }
    }

    /// Returns the entry of a kind for which this program has no type: one of the library's by its name, or a user's
    /// own with any body. `None`: this process has created too many names, which is probably a mistake.
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

        /// All kinds, by number.
        pub const ALL: &[Entry] = &[$(Entry::of::<$kind>()),+];

        /// The body of each kind: the name of its message in [`DESCRIPTORS`](crate::DESCRIPTORS), in the same order.
        pub const BODIES: &[&str] = &[$(<types::$body as prost::Name>::NAME),+];
    };
    (@on_request) => { true };
}

// Highest priority: data that people wait for; then the robot's position and motion; then sensor data, by size.
telemetry! {
    /// Pose of the robot.
    CurrentPose: Pose = 1, priority 80;
    /// State of the joints.
    JointState: JointState = 2, priority 80;
    /// Joints that take commands.
    ControllableJoints: JointState = 3, priority 60, on_request;
    /// Simple actions that the robot has, and their states.
    SimpleActions: SimpleActions = 4, priority 60, on_request;
    /// Complex actions that the robot has.
    ComplexActions: ComplexActions = 5, priority 60, on_request;
    /// Name of the robot.
    RobotName: RobotName = 6, priority 60, on_request;
    /// State of the robot, in its own words.
    RobotState: RobotState = 7, priority 90;
    /// A message for people.
    LogMessage: LogMessage = 8, priority 100;
    /// Where to get video.
    VideoStreams: VideoStreams = 9, priority 60, on_request;
    /// Values of a simple sensor, without further structure.
    SimpleSensor: SimpleSensor = 10, priority 60;
    /// Forces and torques.
    WrenchState: WrenchState = 11, priority 70;
    /// A map, in any form.
    Map: Map = 12, priority 10, on_request;
    /// A path, or a region.
    Poses: Poses = 13, priority 60;
    /// Poses of frames in other frames.
    Transforms: Transforms = 14, priority 75;
    /// The robot's request for a permission. The controller answers with [`Permission`](super::command::Permission).
    PermissionRequest: PermissionRequest = 15, priority 110;
    /// Points.
    PointCloud: PointCloud = 16, priority 20;
    /// Acceleration, rotation, orientation, and the magnetic field.
    ImuValues: Imu = 17, priority 75;
    /// Contacts of the robot with its environment.
    ContactPoints: ContactPoints = 18, priority 70;
    /// Velocity of the robot.
    CurrentTwist: Twist = 19, priority 80;
    /// Acceleration of the robot.
    CurrentAcceleration: Acceleration = 20, priority 75;
    /// Parameters of the cameras.
    CameraInformation: CameraInformation = 21, priority 60, on_request;
    /// An image.
    Image: Image = 22, priority 30;
    /// Images of the same scene: colour and depth, for example.
    ImageLayers: ImageLayers = 23, priority 20;
    /// Pose and velocity of the robot, and their uncertainty.
    Odometry: Odometry = 24, priority 80;
    /// Frames and commands that a controller may use.
    ControllableFrames: ControllableFrames = 25, priority 60, on_request;
    /// Files that the robot offers.
    FileDefinition: FileDefinition = 26, priority 60, on_request;
    /// Files of the robot's model.
    RobotModelInformation: RobotModelInformation = 27, priority 60, on_request;
    /// Options that can be changed while the robot runs.
    InterfaceOptions: InterfaceOptions = 28, priority 60, on_request;
    /// Channels other than number 0.
    ChannelsDefinition: ChannelsDefinition = 29, priority 60, on_request;
    /// Ranges of a laser scanner.
    LaserScan: LaserScan = 30, priority 50;
}

/// Returns the kind with this number on version 6's wire.
pub fn by_v6(number: u8) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.v6 == Some(number))
}

/// Returns the kind with this name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|k| k.name == name)
}
