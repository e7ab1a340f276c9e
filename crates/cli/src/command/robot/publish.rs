//! When the simulated robot publishes each kind of telemetry.

use super::describe;
use super::sim::{Noise, Rover};
use super::telemetry::Moment;
use remote::transport::TransportError;
use remote::types::{InterfaceOptions, Poses, RobotState, SimpleActions};
use remote::{Robot, telemetry};

/// Telemetry of the simulated robot.
pub(super) struct Publisher {
    noise: Noise,
    seq: u32,
    /// Channel of the named simple sensor.
    temperature: u8,
    scan: Every,
    image: Every,
    second: Every,
    state: Vec<String>,
    actions: Option<SimpleActions>,
    waypoints: Option<usize>,
}

/// Limits a rate, by the rover's time.
struct Every {
    period: f64,
    next: f64,
}

impl Every {
    fn new(hz: f64) -> Self {
        Every {
            period: 1.0 / hz,
            next: 0.0,
        }
    }

    fn is_due(&mut self, time: f64) -> bool {
        // A delay of half a millisecond does not postpone it by a whole tick.
        let due = time + 5e-4 >= self.next;
        if due {
            self.next = (self.next + self.period).max(time);
        }
        due
    }
}

impl Publisher {
    pub(super) fn new(rate: f64, noise: Noise) -> Self {
        Publisher {
            noise,
            seq: 0,
            temperature: 0,
            scan: Every::new(rate.min(10.0)),
            image: Every::new(rate.min(2.0)),
            second: Every::new(rate.min(1.0)),
            state: Vec::new(),
            actions: None,
            waypoints: None,
        }
    }

    /// Publishes once the values that do not change.
    pub(super) fn describe(&mut self, robot: &Robot) -> Result<(), TransportError> {
        let rover = Rover::new();
        robot.set::<telemetry::ControllableJoints>(0, &describe::controllable_joints(&rover))?;
        robot.set::<telemetry::ComplexActions>(0, &describe::complex_actions())?;
        robot.set::<telemetry::ControllableFrames>(0, &describe::frames())?;
        robot.set::<telemetry::VideoStreams>(0, &describe::video())?;
        robot.set::<telemetry::CameraInformation>(0, &describe::cameras())?;
        robot.set::<telemetry::InterfaceOptions>(0, &InterfaceOptions::default())?;
        let map = describe::map().map_err(|e| TransportError::Setup(e.to_string()))?;
        robot.set::<telemetry::Map>(0, &map)?;
        robot.tells::<telemetry::LogMessage>()?;
        robot.tells::<telemetry::PermissionRequest>()?;
        self.temperature = robot.channel::<telemetry::SimpleSensor>("temperature")?;
        Ok(())
    }

    /// Publishes the values that are due. A value that a transport cannot send now is lost, as telemetry may be.
    pub(super) fn publish(&mut self, robot: &Robot, rover: &Rover) {
        if let Err(error) = self.try_publish(robot, rover) {
            tracing::debug!(%error, "telemetry is lost");
        }
    }

    fn try_publish(&mut self, robot: &Robot, rover: &Rover) -> Result<(), TransportError> {
        self.seq = self.seq.wrapping_add(1);
        let mut moment = Moment {
            rover,
            seq: self.seq,
            noise: &mut self.noise,
        };
        robot.set::<telemetry::CurrentPose>(0, &moment.pose())?;
        robot.set::<telemetry::CurrentTwist>(0, &moment.twist())?;
        robot.set::<telemetry::CurrentAcceleration>(0, &moment.acceleration())?;
        robot.set::<telemetry::Odometry>(0, &moment.odometry())?;
        robot.set::<telemetry::JointState>(0, &moment.joints())?;
        robot.set::<telemetry::ImuValues>(0, &moment.imu())?;
        robot.set::<telemetry::Transforms>(0, &moment.transforms())?;
        if self.scan.is_due(rover.time) {
            robot.set::<telemetry::LaserScan>(0, &moment.laser())?;
            robot.set::<telemetry::WrenchState>(0, &moment.wrench())?;
            robot.set::<telemetry::ContactPoints>(0, &moment.contacts())?;
        }
        if self.image.is_due(rover.time) {
            robot.set::<telemetry::Image>(0, &moment.image())?;
        }
        let second = self.second.is_due(rover.time);
        if second {
            robot.set::<telemetry::ImageLayers>(0, &moment.layers())?;
            robot.set::<telemetry::PointCloud>(0, &moment.cloud())?;
            robot.set::<telemetry::SimpleSensor>(0, &moment.battery())?;
            robot.set::<telemetry::SimpleSensor>(self.temperature, &moment.temperature())?;
        }
        let state: RobotState = moment.state();
        if second || state.state != self.state {
            robot.set::<telemetry::RobotState>(0, &state)?;
            self.state = state.state;
        }
        let path: Poses = moment.path();
        if self.waypoints != Some(path.poses.len()) {
            robot.set::<telemetry::Poses>(0, &path)?;
            self.waypoints = Some(path.poses.len());
        }
        let actions = describe::simple_actions(rover);
        if self.actions.as_ref() != Some(&actions) {
            robot.set::<telemetry::SimpleActions>(0, &actions)?;
            self.actions = Some(actions);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remote::transport::{Wire, local};
    use remote::{Controller, telemetry as kinds};
    use std::time::Duration;

    #[test]
    fn all_kinds_are_announced() {
        let (end, connect) = local::end("rover", Wire::Own);
        let robot = Robot::builder("rover").end(end).start().expect("starts");
        let mut publisher = Publisher::new(20.0, Noise::new(1));
        publisher.describe(&robot).expect("tells");
        let _model = crate::command::robot::model::share(&robot).expect("shares");
        publisher.publish(&robot, &Rover::new());
        let controller = Controller::builder("desk")
            .end(connect.end())
            .start()
            .expect("starts");
        assert!(controller.wait_until_found(Duration::from_secs(60)));
        let reported = controller.robot_telemetry();
        let missing = kinds::ALL
            .iter()
            .map(|k| k.name)
            .filter(|name| !reported.iter().any(|t| t == name));
        let missing: Vec<_> = missing.collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(
            controller.channels::<kinds::SimpleSensor>(),
            [(1, "temperature".to_owned())]
        );
        let map = controller.fetch::<kinds::Map>(0).expect("answers").expect("set");
        let grid: remote::types::GridMap = map.map.expect("one").to_msg().expect("a grid");
        assert_eq!(grid.layers[0].value.len(), 120 * 80);
    }
}
