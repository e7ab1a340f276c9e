//! Every kind of the library passes through.

use super::*;
use remote::types::*;
use remote::{CommandKind, Expiry, Queue, TelemetryKind, command, telemetry};

/// A value in each field that all bodies of a type share.
fn header() -> Option<Header> {
    Some(Header {
        timestamp: Some(TimeStamp { secs: 1, nsecs: 2 }),
        frame: "base".into(),
        seq: 3,
    })
}

fn commanded<K: CommandKind>(fixture: &Fixture, sent: K::Body) -> &'static str
where
    K::Body: PartialEq,
{
    let robot = robot(fixture);
    let queue = robot.queue::<K>(Queue::Newest);
    let controller = controller("c", (fixture.connect)());
    let outcome = controller.send_within::<K>(&sent, Expiry::After(WATCHDOG)).wait();
    assert!(outcome.is_executed(), "{}: {outcome}", K::NAME);
    let (got, _) = queue.try_take().expect("queued before it was answered");
    assert!(got == sent, "{}", K::NAME);
    controller.stop();
    robot.stop();
    K::NAME
}

fn telemetry_arrives<K: TelemetryKind>(robot: &Robot, controller: &Controller, sent: K::Body) -> &'static str
where
    K::Body: PartialEq,
{
    let queue = controller.queue::<K>(0, Queue::Newest);
    robot.set::<K>(0, &sent).expect("sent");
    eventually(K::NAME, || {
        let got = match K::ON_REQUEST {
            true => controller.fetch::<K>(0).expect("answered"),
            false => {
                robot.set::<K>(0, &sent).expect("sent");
                queue.take(Duration::from_millis(50)).map(|q| q.0)
            }
        };
        got.is_some_and(|got| got == sent)
    });
    K::NAME
}

pub fn every_kind(fixture: &dyn Fn() -> Fixture) {
    let pose = || Pose {
        header: header(),
        position: Some(Position {
            x: 1.0,
            y: 2.0,
            z: 3.0,
        }),
        ..Default::default()
    };
    let fixture = fixture();
    let simple = || SimpleAction {
        header: header(),
        name: "wave".into(),
        state: 1.0,
        ..Default::default()
    };
    let poses = || Poses {
        header: header(),
        poses: vec![pose(), pose()],
        ..Default::default()
    };
    let twist = || Twist {
        header: header(),
        linear: Some(Vector3 {
            x: 0.5,
            y: 0.0,
            z: 0.0,
        }),
        angular: None,
    };
    let joint_command = JointCommand {
        header: header(),
        name: vec!["a".into()],
        tics: vec![7],
        ..Default::default()
    };
    let complex = || ComplexAction {
        name: "dance".into(),
        poses: vec![pose()],
        ..Default::default()
    };
    let robot_ = &fixture;
    // `Permission` is handled by the robot itself: see the tests in `people`.
    let commands = [
        command::Permission::NAME,
        commanded::<command::TargetPose>(robot_, pose()),
        commanded::<command::Twist>(robot_, twist()),
        commanded::<command::Joints>(robot_, joint_command),
        commanded::<command::SimpleAction>(robot_, simple()),
        commanded::<command::ComplexAction>(robot_, complex()),
        commanded::<command::GoTo>(
            robot_,
            GoTo {
                header: header(),
                max_forward_speed: 1.0,
                ..Default::default()
            },
        ),
        commanded::<command::RobotTrajectory>(robot_, poses()),
    ];
    assert_eq!(
        commands.to_vec(),
        command::ALL.iter().map(|k| k.name).collect::<Vec<_>>()
    );

    let robot = robot(&fixture);
    let c = &controller("c", (fixture.connect)());
    let r = &robot;
    let joints = || JointState {
        header: header(),
        name: vec!["a".into()],
        position: vec![0.1],
        ..Default::default()
    };
    let image = |size| Image {
        header: header(),
        height: 1,
        width: size,
        data: vec![7; size as usize],
        ..Default::default()
    };
    let file = FileDefinition {
        file: vec![File {
            path: "a".into(),
            ..Default::default()
        }],
        is_folder: vec![false],
    };
    let vector = Some(Vector3 {
        x: 1.0,
        y: 2.0,
        z: 3.0,
    });
    let received = [
        telemetry_arrives::<telemetry::CurrentPose>(r, c, pose()),
        telemetry_arrives::<telemetry::JointState>(r, c, joints()),
        telemetry_arrives::<telemetry::ControllableJoints>(r, c, joints()),
        telemetry_arrives::<telemetry::SimpleActions>(
            r,
            c,
            SimpleActions {
                actions: vec![simple()],
            },
        ),
        telemetry_arrives::<telemetry::ComplexActions>(
            r,
            c,
            ComplexActions {
                actions: vec![complex()],
            },
        ),
        telemetry_arrives::<telemetry::RobotName>(
            r,
            c,
            RobotName {
                value: "other".into(),
            },
        ),
        telemetry_arrives::<telemetry::RobotState>(
            r,
            c,
            RobotState {
                header: header(),
                state: vec!["RUNNING".into()],
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::LogMessage>(
            r,
            c,
            LogMessage {
                header: header(),
                level: 2,
                message: "m".into(),
            },
        ),
        telemetry_arrives::<telemetry::VideoStreams>(
            r,
            c,
            VideoStreams {
                stream: vec![VideoStream {
                    url: "rtsp://r".into(),
                    camerapose: Some(pose()),
                }],
            },
        ),
        telemetry_arrives::<telemetry::SimpleSensor>(
            r,
            c,
            SimpleSensor {
                value: vec![0.1, 0.2],
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::WrenchState>(
            r,
            c,
            WrenchState {
                header: header(),
                wrenches: vec![Wrench {
                    force: vector,
                    ..Default::default()
                }],
            },
        ),
        telemetry_arrives::<telemetry::Map>(
            r,
            c,
            Map {
                map: Some(prost_types::Any {
                    type_url: "t/BinaryMap".into(),
                    value: vec![1, 2],
                }),
            },
        ),
        telemetry_arrives::<telemetry::Poses>(r, c, poses()),
        telemetry_arrives::<telemetry::Transforms>(
            r,
            c,
            Transforms {
                transform: vec![Transform {
                    from: "a".into(),
                    to: "b".into(),
                    ..Default::default()
                }],
            },
        ),
        telemetry_arrives::<telemetry::PermissionRequest>(
            r,
            c,
            PermissionRequest {
                requestuid: "u".into(),
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::PointCloud>(
            r,
            c,
            PointCloud {
                points: vec![
                    Position {
                        x: 1.0,
                        y: 2.0,
                        z: 3.0
                    };
                    1000
                ],
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::ImuValues>(
            r,
            c,
            Imu {
                header: header(),
                gyro: vector,
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::ContactPoints>(
            r,
            c,
            ContactPoints {
                header: header(),
                contacts: vec![ContactPoint {
                    slip: 0.5,
                    ..Default::default()
                }],
            },
        ),
        telemetry_arrives::<telemetry::CurrentTwist>(r, c, twist()),
        telemetry_arrives::<telemetry::CurrentAcceleration>(
            r,
            c,
            Acceleration {
                linear: vector,
                angular: vector,
            },
        ),
        telemetry_arrives::<telemetry::CameraInformation>(
            r,
            c,
            CameraInformation {
                camerainfo: vec![CameraInfo {
                    width: 640,
                    ..Default::default()
                }],
            },
        ),
        telemetry_arrives::<telemetry::Image>(r, c, image(100_000)),
        telemetry_arrives::<telemetry::ImageLayers>(
            r,
            c,
            ImageLayers {
                header: header(),
                layers: vec![image(10), image(20)],
            },
        ),
        telemetry_arrives::<telemetry::Odometry>(
            r,
            c,
            Odometry {
                header: header(),
                child_frame_id: "c".into(),
                ..Default::default()
            },
        ),
        telemetry_arrives::<telemetry::ControllableFrames>(
            r,
            c,
            ControllableFrames {
                controllable_frames: vec![ControllableFrame {
                    frame: "f".into(),
                    ..Default::default()
                }],
            },
        ),
        telemetry_arrives::<telemetry::FileDefinition>(r, c, file.clone()),
        telemetry_arrives::<telemetry::RobotModelInformation>(
            r,
            c,
            RobotModelInformation {
                filedef: Some(file),
                modelfilename: "a".into(),
            },
        ),
        telemetry_arrives::<telemetry::InterfaceOptions>(
            r,
            c,
            InterfaceOptions {
                dynamic_simple_actions: true,
                dynamic_complex_actions: false,
            },
        ),
        telemetry_arrives::<telemetry::ChannelsDefinition>(
            r,
            c,
            ChannelsDefinition {
                channel: vec![ChannelDefinition {
                    name: "left".into(),
                    messagetype: 22,
                    channelno: 1,
                }],
            },
        ),
        telemetry_arrives::<telemetry::LaserScan>(
            r,
            c,
            LaserScan {
                header: header(),
                ranges: vec![1.0; 720],
                ..Default::default()
            },
        ),
    ];
    assert_eq!(
        received.to_vec(),
        telemetry::ALL.iter().map(|k| k.name).collect::<Vec<_>>()
    );
}
