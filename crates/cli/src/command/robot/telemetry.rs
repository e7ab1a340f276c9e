//! The simulated robot's state as telemetry messages.

use super::camera;
use super::sim::base::{Goal, MAX_SPEED, Place};
use super::sim::{Noise, Rover, room};
use remote::types::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// The rover's own frame: its front is x, its left y.
pub(super) const FRAME: &str = "rover";
const MAP: &str = "map";
const LASER: &str = "laser";
/// Rays of a scan, radians between them, and range of the laser in metres.
const RAYS: u32 = 181;
const RAY_STEP: f64 = 0.026;
const RANGE: (f64, f64) = (0.05, 10.0);
/// Distance of the laser in front of the rover's middle, in metres.
const LASER_X: f64 = 0.2;
/// Size of a map cell in metres.
pub(super) const CELL: f64 = 0.1;
const GRAVITY: f64 = 9.81;

/// One moment: the rover, its time, and the header of all its messages.
pub(super) struct Moment<'a> {
    pub(super) rover: &'a Rover,
    pub(super) seq: u32,
    pub(super) noise: &'a mut Noise,
}

/// A header stamped with the current time in UTC.
pub(super) fn header(frame: &str, seq: u32) -> Option<Header> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = TimeStamp {
        secs: now.as_secs() as u32,
        nsecs: now.subsec_nanos(),
    };
    Some(Header {
        timestamp: Some(timestamp),
        frame: frame.into(),
        seq,
    })
}

pub(super) fn pose_at(frame: &str, seq: u32, place: &Place) -> Pose {
    let half = place.heading / 2.0;
    Pose {
        header: header(frame, seq),
        position: Some(Position {
            x: place.x,
            y: place.y,
            z: 0.0,
        }),
        orientation: Some(Orientation {
            x: 0.0,
            y: 0.0,
            z: half.sin(),
            w: half.cos(),
        }),
        orientation2d: place.heading as f32,
        covariance: Vec::new(),
    }
}

pub(super) fn x_y_z(x: f64, y: f64, z: f64) -> Option<Vector3> {
    Some(Vector3 {
        x: x as f32,
        y: y as f32,
        z: z as f32,
    })
}

impl Moment<'_> {
    fn header(&self, frame: &str) -> Option<Header> {
        header(frame, self.seq)
    }

    pub(super) fn pose(&self) -> Pose {
        pose_at(MAP, self.seq, &self.rover.base.place)
    }

    pub(super) fn twist(&self) -> Twist {
        let base = &self.rover.base;
        Twist {
            header: self.header(FRAME),
            linear: x_y_z(base.speed, 0.0, 0.0),
            angular: x_y_z(0.0, 0.0, base.turn),
        }
    }

    pub(super) fn acceleration(&self) -> Acceleration {
        let (forward, turn) = self.rover.base.acceleration;
        Acceleration {
            linear: x_y_z(forward, 0.0, 0.0),
            angular: x_y_z(0.0, 0.0, turn),
        }
    }

    /// The simulation knows its pose: its odometry does not drift.
    pub(super) fn odometry(&self) -> Odometry {
        Odometry {
            header: self.header(MAP),
            child_frame_id: FRAME.into(),
            pose: Some(PoseWithCovariance {
                pose: Some(self.pose()),
                covariance: Vec::new(),
            }),
            twist: Some(TwistWithCovariance {
                twist: Some(self.twist()),
                covariance: Vec::new(),
            }),
        }
    }

    pub(super) fn joints(&self) -> JointState {
        let joints = &self.rover.arm.joints;
        JointState {
            header: self.header(""),
            name: joints.iter().map(|j| j.name.into()).collect(),
            position: joints.iter().map(|j| j.position).collect(),
            velocity: joints.iter().map(|j| j.velocity).collect(),
            effort: joints.iter().map(|j| j.effort()).collect(),
            acceleration: joints.iter().map(|j| j.acceleration).collect(),
            tics: Vec::new(),
        }
    }

    /// With noise: 0.02 m/s², 0.002 rad/s. The magnetic field points along the map's x axis.
    pub(super) fn imu(&mut self) -> Imu {
        let base = &self.rover.base;
        let (forward, sideways) = (base.acceleration.0, base.speed * base.turn);
        let (turn, heading) = (base.turn, base.place.heading);
        let mut a = || self.noise.normal(0.02);
        let acceleration = x_y_z(forward + a(), sideways + a(), GRAVITY + a());
        let mut g = || self.noise.normal(0.002);
        let gyro = x_y_z(g(), g(), turn + g());
        Imu {
            acceleration,
            gyro,
            mag: x_y_z(heading.cos(), -heading.sin(), 0.0),
            orientation: self.pose().orientation,
            header: self.header(FRAME),
        }
    }

    pub(super) fn transforms(&self) -> Transforms {
        let transform = |from: &str, to: &str, place: Place| Transform {
            header: self.header(from),
            transform: Some(pose_at(from, self.seq, &place)),
            from: from.into(),
            to: to.into(),
            covariance: Vec::new(),
        };
        let laser = Place {
            x: LASER_X,
            ..Place::default()
        };
        let transform = vec![
            transform(MAP, FRAME, self.rover.base.place),
            transform(FRAME, LASER, laser),
            transform(FRAME, "camera", laser),
        ];
        Transforms { transform }
    }

    /// At the wrist: the arm carries only itself.
    pub(super) fn wrench(&self) -> WrenchState {
        let effort = |name| self.rover.arm.joint(name).map_or(0.0, |j| j.effort());
        let wrench = Wrench {
            header: self.header("wrist"),
            force: x_y_z(0.0, 0.0, -effort("arm_elbow")),
            torque: x_y_z(0.0, effort("arm_shoulder"), 0.0),
        };
        WrenchState {
            header: self.header(""),
            wrenches: vec![wrench],
        }
    }

    pub(super) fn contacts(&self) -> ContactPoints {
        let contact = |name: &str, x: f64, y: f64, touches: bool| ContactPoint {
            name: name.into(),
            position: x_y_z(x, y, 0.0),
            contact: f32::from(u8::from(touches)),
            slip: 0.0,
            friction_coefficient: 0.6,
            group_id: 0,
        };
        let contacts = vec![
            contact("left_wheel", 0.0, 0.2, true),
            contact("right_wheel", 0.0, -0.2, true),
            contact("bumper", 0.3, 0.0, self.rover.base.blocked),
        ];
        ContactPoints {
            contacts,
            header: self.header(FRAME),
        }
    }

    /// Distance of each ray in metres, with noise of 0.01 m; the first ray points to the right.
    fn ranges(&mut self) -> Vec<f64> {
        let Place { x, y, heading } = self.rover.base.place;
        let (x, y) = (x + LASER_X * heading.cos(), y + LASER_X * heading.sin());
        let ray = |i: u32| room::distance(x, y, heading + ray_angle(i));
        (0..RAYS)
            .map(|i| (ray(i) + self.noise.normal(0.01)).clamp(RANGE.0, RANGE.1))
            .collect()
    }

    pub(super) fn laser(&mut self) -> LaserScan {
        let ranges = self.ranges();
        LaserScan {
            header: self.header(LASER),
            vertical_size: 1,
            horizontal_size: RAYS,
            vertical_angle_resolution: 0.0,
            start_angle: ray_angle(0) as f32,
            horizontal_angle_resolution: RAY_STEP as f32,
            scan_speed: 0.0,
            range_min: RANGE.0 as f32,
            range_max: RANGE.1 as f32,
            ranges: ranges.iter().map(|r| *r as f32).collect(),
            remissions: Vec::new(),
        }
    }

    pub(super) fn cloud(&mut self) -> PointCloud {
        let ranges = self.ranges();
        let point = |(i, range): (u32, &f64)| {
            let (y, x) = ray_angle(i).sin_cos();
            Position {
                x: range * x,
                y: range * y,
                z: 0.0,
            }
        };
        let values = ranges.iter().map(|r| *r as f32).collect();
        PointCloud {
            header: self.header(LASER),
            origin: None,
            points: (0..).zip(&ranges).map(point).collect(),
            channels: vec![ChannelFloat {
                name: "range".into(),
                values,
            }],
        }
    }

    fn picture(&self, encoding: &str, bytes: usize, data: Vec<u8>) -> Image {
        Image {
            header: self.header("camera"),
            height: camera::HEIGHT as u32,
            width: camera::WIDTH as u32,
            encoding: encoding.into(),
            is_bigendian: 0,
            step: (camera::WIDTH * bytes) as u32,
            data,
        }
    }

    pub(super) fn image(&self) -> Image {
        self.picture(
            "rgb8",
            3,
            camera::colour(&self.rover.base.place, self.rover.headlights),
        )
    }

    pub(super) fn layers(&self) -> ImageLayers {
        let depth = self.picture("32FC1", 4, camera::depth(&self.rover.base.place));
        ImageLayers {
            header: self.header("camera"),
            layers: vec![self.image(), depth],
        }
    }

    fn sensor(&self, name: &str, value: f64, unit: &str) -> SimpleSensor {
        SimpleSensor {
            header: self.header(FRAME),
            name: name.into(),
            size: Some(Vector2 { x: 1.0, y: 1.0 }),
            value: vec![value as f32],
            value_names: vec![unit.into()],
            ..Default::default()
        }
    }

    pub(super) fn battery(&self) -> SimpleSensor {
        self.sensor("battery", self.rover.battery, "percent")
    }

    /// Temperature of the motors, which warm up a little while driving.
    pub(super) fn temperature(&mut self) -> SimpleSensor {
        let celsius = 24.0 + 6.0 * self.rover.base.speed.abs() / MAX_SPEED + self.noise.normal(0.1);
        self.sensor("motor temperature", celsius, "degrees Celsius")
    }

    pub(super) fn state(&self) -> RobotState {
        let rover = self.rover;
        let arm = if rover.arm.is_moving() {
            "moving"
        } else {
            "holding"
        };
        let lights = if rover.headlights { "on" } else { "off" };
        let base = if rover.base.blocked {
            "blocked"
        } else {
            rover.activity
        };
        RobotState {
            header: self.header(""),
            state: [base, arm, lights].map(String::from).into(),
            state_name: ["base", "arm", "headlights"].map(String::from).into(),
        }
    }

    /// The rest of the path.
    pub(super) fn path(&self) -> Poses {
        let points = match &self.rover.base.goal {
            Goal::Path { points, .. } => Some(points),
            _ => None,
        };
        let pose = |p: &super::sim::base::Waypoint| {
            let place = Place {
                x: p.x,
                y: p.y,
                heading: p.heading.unwrap_or_default(),
            };
            pose_at(MAP, self.seq, &place)
        };
        Poses {
            header: self.header(MAP),
            origin: None,
            poses: points.into_iter().flatten().map(pose).collect(),
            r#type: PosesType::PosesPath.into(),
        }
    }
}

/// Angle of a ray in radians, from the front.
fn ray_angle(ray: u32) -> f64 {
    RAY_STEP * (f64::from(ray) - f64::from(RAYS - 1) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_matches_the_rover() {
        let mut rover = Rover::new();
        rover.twist([1.0, 0.0, 0.0], [0.0, 0.0, 0.5]).expect("good");
        rover.step(1.5);
        let mut noise = Noise::new(1);
        let mut moment = Moment {
            rover: &rover,
            seq: 3,
            noise: &mut noise,
        };
        let place = rover.base.place;
        let pose = moment.pose();
        assert_eq!(pose.position.map(|p| (p.x, p.y)), Some((place.x, place.y)));
        assert!((f64::from(pose.orientation2d) - place.heading).abs() < 1e-6);
        assert_eq!(moment.twist().linear.map(|l| l.x), Some(1.0));
        assert!(
            moment
                .imu()
                .acceleration
                .is_some_and(|a| (a.z - 9.81).abs() < 0.1 && (a.y - 0.5).abs() < 0.1)
        );
        let scan = moment.laser();
        assert_eq!((scan.ranges.len() as u32, scan.horizontal_size), (RAYS, RAYS));
        let front = room::distance(
            place.x + LASER_X * place.heading.cos(),
            place.y + LASER_X * place.heading.sin(),
            place.heading,
        );
        assert!((f64::from(scan.ranges[RAYS as usize / 2]) - front).abs() < 0.05);
        let cloud = moment.cloud();
        assert!(cloud.points.iter().all(|p| p.x.hypot(p.y) < 10.01));
        assert_eq!(moment.state().state[0], "driving by twist");
        assert!(moment.path().poses.is_empty());
    }
}
