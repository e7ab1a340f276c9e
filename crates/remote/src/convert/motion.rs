//! Twists, poses, odometry and transforms.

use super::read::Reader;
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::{Odometry, Pose, PoseWithCovariance, Transform, Transforms, Twist, TwistWithCovariance};

/// Number of elements of a covariance.
const COVARIANCE: usize = 36;

/// Without a header, it is a `geometry_msgs/Twist`.
impl Ros for Twist {
    const NAME: &'static str = "Twist";
    const TYPES: &'static [&'static str] = &["geometry_msgs/TwistStamped", "geometry_msgs/Twist"];

    fn read(ty: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = match ty {
            "geometry_msgs/TwistStamped" => Some(from.header()?),
            _ => None,
        };
        Ok(Twist {
            header,
            ..read_twist(from)?
        })
    }

    fn write<'a>(&'a self, ty: &str, to: &mut Writer<'a>) {
        if ty == "geometry_msgs/TwistStamped" {
            to.header(self.header.as_ref());
        }
        write_twist(Some(self), to);
    }
}

/// Not converted: fields that the ROS type does not have. `orientation2d` is used if there is no other orientation.
impl Ros for Pose {
    const NAME: &'static str = "Pose";
    const TYPES: &'static [&'static str] = &[
        "geometry_msgs/PoseStamped",
        "geometry_msgs/Pose",
        "geometry_msgs/PoseWithCovarianceStamped",
    ];

    fn read(ty: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = match ty {
            "geometry_msgs/Pose" => None,
            _ => Some(from.header()?),
        };
        let pose = read_pose(from)?;
        let covariance = match ty {
            "geometry_msgs/PoseWithCovarianceStamped" => from.covariance(COVARIANCE)?,
            _ => Vec::new(),
        };
        Ok(Pose {
            header,
            covariance,
            ..pose
        })
    }

    fn write<'a>(&'a self, ty: &str, to: &mut Writer<'a>) {
        if ty != "geometry_msgs/Pose" {
            to.header(self.header.as_ref());
        }
        write_pose(Some(self), to);
        if ty == "geometry_msgs/PoseWithCovarianceStamped" {
            to.covariance(&self.covariance, COVARIANCE);
        }
    }
}

/// Not converted: the headers and covariances of the pose and twist inside. Exception: the pose's own covariance is
/// used if the pose with covariance has none.
impl Ros for Odometry {
    const NAME: &'static str = "Odometry";
    const TYPES: &'static [&'static str] = &["nav_msgs/Odometry"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        Ok(Odometry {
            header: Some(from.header()?),
            child_frame_id: from.text("child_frame_id")?,
            pose: Some(PoseWithCovariance {
                pose: Some(read_pose(from)?),
                covariance: from.covariance(COVARIANCE)?,
            }),
            twist: Some(TwistWithCovariance {
                twist: Some(read_twist(from)?),
                covariance: from.covariance(COVARIANCE)?,
            }),
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        to.header(self.header.as_ref());
        to.text("child_frame_id", &self.child_frame_id);
        let pose = self.pose.as_ref().and_then(|p| p.pose.as_ref());
        write_pose(pose, to);
        let whole = self.pose.as_ref().map(|p| &*p.covariance);
        let own = pose.map(|p| &*p.covariance);
        let covariance = whole.filter(|c| !c.is_empty()).or(own);
        to.covariance(covariance.unwrap_or_default(), COVARIANCE);
        write_twist(self.twist.as_ref().and_then(|t| t.twist.as_ref()), to);
        let covariance = self.twist.as_ref().map(|t| &*t.covariance);
        to.covariance(covariance.unwrap_or_default(), COVARIANCE);
    }
}

/// The frame `from` of a transform is ROS's `frame_id`, as in upstream's frameworks, and `to` is `child_frame_id`.
/// Without `from`, the header's frame is used. Not converted: covariances.
impl Ros for Transforms {
    const NAME: &'static str = "Transforms";
    const TYPES: &'static [&'static str] = &["tf2_msgs/TFMessage", "tf/tfMessage"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        // Header, two texts and seven numbers.
        let count = from.count("transforms", 72)?;
        let one = |_| {
            let header = from.header()?;
            let to = from.text("child_frame_id")?;
            Ok(Transform {
                from: header.frame.clone(),
                header: Some(header),
                to,
                transform: Some(read_pose(from)?),
                covariance: Vec::new(),
            })
        };
        let transform = (0..count).map(one).collect::<Result<_, ConvertError>>()?;
        Ok(Transforms { transform })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        to.count("transforms", self.transform.len());
        for transform in &self.transform {
            match (&transform.header, &*transform.from) {
                (header, "") => to.header(header.as_ref()),
                (header, from) => {
                    let mut header = header.clone().unwrap_or_default();
                    header.frame = from.into();
                    to.header(Some(&header));
                }
            }
            to.text("child_frame_id", &transform.to);
            write_pose(transform.transform.as_ref(), to);
        }
    }
}

fn read_twist(from: &mut Reader<'_>) -> Result<Twist, ConvertError> {
    Ok(Twist {
        header: None,
        linear: Some(from.vector("linear")?),
        angular: Some(from.vector("angular")?),
    })
}

fn write_twist(twist: Option<&Twist>, to: &mut Writer<'_>) {
    to.vector(twist.and_then(|t| t.linear.as_ref()));
    to.vector(twist.and_then(|t| t.angular.as_ref()));
}

fn read_pose(from: &mut Reader<'_>) -> Result<Pose, ConvertError> {
    Ok(Pose {
        position: Some(from.position()?),
        orientation: Some(from.orientation()?),
        ..Default::default()
    })
}

fn write_pose(pose: Option<&Pose>, to: &mut Writer<'_>) {
    to.position(pose.and_then(|p| p.position.as_ref()));
    let yaw = pose.map_or(0.0, |p| p.orientation2d);
    to.orientation(pose.and_then(|p| p.orientation.as_ref()), yaw);
}
