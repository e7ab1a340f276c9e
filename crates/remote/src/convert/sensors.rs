//! Joints and inertial sensors.

use super::read::Reader;
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::{Imu, JointCommand, JointState, Orientation};

const JOINTS: &[&str] = &["sensor_msgs/JointState"];

macro_rules! joints {
    ($ty:ident) => {
        /// Not converted: accelerations, tics and gains, which ROS's type does not have.
        impl Ros for $ty {
            const NAME: &'static str = stringify!($ty);
            const TYPES: &'static [&'static str] = JOINTS;

            fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
                Ok($ty {
                    header: Some(from.header()?),
                    name: from.texts("name")?,
                    position: from.array("position")?,
                    velocity: from.array("velocity")?,
                    effort: from.array("effort")?,
                    ..Default::default()
                })
            }

            fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
                to.header(self.header.as_ref());
                to.texts("name", &self.name);
                to.double_array("position", &self.position);
                to.double_array("velocity", &self.velocity);
                to.double_array("effort", &self.effort);
            }
        }
    };
}

joints!(JointState);
joints!(JointCommand);

/// Number of elements of a covariance.
const COVARIANCE: usize = 9;

/// A quantity that an IMU does not measure is absent here (an orientation is all zeros), and has -1 as the first number
/// of its covariance in ROS. Not converted: the magnetic field, which is a message of its own in ROS, and ROS's other
/// covariances.
impl Ros for Imu {
    const NAME: &'static str = "IMU";
    const TYPES: &'static [&'static str] = &["sensor_msgs/Imu"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = Some(from.header()?);
        let orientation = from.orientation()?;
        let orientation = known(from)?.then_some(orientation);
        let gyro = from.vector("angular_velocity")?;
        let gyro = known(from)?.then_some(gyro);
        let acceleration = from.vector("linear_acceleration")?;
        let acceleration = known(from)?.then_some(acceleration);
        Ok(Imu {
            header,
            orientation,
            gyro,
            acceleration,
            mag: None,
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        let covariance = |to: &mut Writer<'_>, known: bool| {
            let first = if known { 0.0 } else { -1.0 };
            to.doubles((0..COVARIANCE).map(|n| if n == 0 { first } else { 0.0 }));
        };
        to.header(self.header.as_ref());
        to.orientation(self.orientation.as_ref(), 0.0);
        covariance(to, self.orientation.is_some_and(|q| q != Orientation::default()));
        to.vector(self.gyro.as_ref());
        covariance(to, self.gyro.is_some());
        to.vector(self.acceleration.as_ref());
        covariance(to, self.acceleration.is_some());
    }
}

/// Returns whether the next covariance marks its quantity as measured.
fn known(from: &mut Reader<'_>) -> Result<bool, ConvertError> {
    let covariance = from.covariance(COVARIANCE)?;
    Ok(covariance.first() != Some(&-1.0))
}
