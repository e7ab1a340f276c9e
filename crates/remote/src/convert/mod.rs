//! Conversions to and from the corresponding ROS types, of ROS 1 and ROS 2.
//!
//! A ROS message is passed as its control part and data parts, the form that it has in a block of the bus
//! (`docs/wire/control-part.md`). A ROS 1 message is a control part without data parts. To convert CDR, or messages as
//! values, use a [`Schema`]: [`Schema::split_cdr`], [`Schema::join_cdr`], [`Schema::encode`], [`Schema::decode`].
//!
//! | type here | ROS types |
//! |---|---|
//! | [`Twist`](crate::types::Twist) | `geometry_msgs/Twist`, `geometry_msgs/TwistStamped` |
//! | [`Pose`](crate::types::Pose) | `geometry_msgs/Pose`, `geometry_msgs/PoseStamped`, `geometry_msgs/PoseWithCovarianceStamped` |
//! | [`Odometry`](crate::types::Odometry) | `nav_msgs/Odometry` |
//! | [`Transforms`](crate::types::Transforms) | `tf2_msgs/TFMessage`, `tf/tfMessage` |
//! | [`JointState`](crate::types::JointState), [`JointCommand`](crate::types::JointCommand) | `sensor_msgs/JointState` |
//! | [`Imu`](crate::types::Imu) | `sensor_msgs/Imu` |
//! | [`LaserScan`](crate::types::LaserScan) | `sensor_msgs/LaserScan` |
//! | [`Image`](crate::types::Image) | `sensor_msgs/Image` |
//! | [`PointCloud`](crate::types::PointCloud) | `sensor_msgs/PointCloud2` |
//! | [`LogMessage`](crate::types::LogMessage) | `rosgraph_msgs/Log` (ROS 1), `rcl_interfaces/Log` (ROS 2) |
//!
//! Data without a counterpart is dropped and comes back as its default; the implementations of [`Ros`] list it. For all
//! of them:
//!
//! - **Time.** Nanoseconds from 1e9 on are carried into the seconds. A time that the other side cannot hold (ROS 2 has
//!   signed seconds) is an error. Only ROS 1 has `seq`. A message without a header becomes one with an empty header,
//!   and comes back with that.
//! - **Numbers.** NaN and infinities are kept. A velocity, acceleration or magnetic field that is finite in 64 bits but
//!   not in the 32 bits of the type here is an error; a covariance becomes the largest finite number.
//! - **Covariances** of zeros only, which ROS calls unknown, are empty here, and the other way round.
//! - **Orientations** from ROS are kept as they are. To ROS, an orientation that is missing or all zero becomes the
//!   rotation `orientation2d` about z, and one whose norm is off by more than a thousandth is normalized, because ROS's
//!   tools refuse both.
//! - **Text** from ROS that is not UTF-8 has replacement characters in place of the invalid bytes.
//!
//! ```
//! use remote::{convert, types};
//! use schema::{Flavour, Registry};
//!
//! let schema = Registry::new(Flavour::Ros1).schema("geometry_msgs/Twist")?;
//! let value = schema.value_from_yaml("{linear: {x: 0.5}}")?;
//! let message = schema.encode(&value)?;
//! let twist: types::Twist = convert::from_ros(&schema, &message.control, &message.slices())?;
//! assert_eq!(twist.linear.map(|v| v.x), Some(0.5));
//!
//! let again = convert::to_ros(&twist, &schema)?;
//! assert_eq!(schema.decode(&again.control, &again.slices())?, value);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cloud;
mod image;
mod laser;
mod log;
mod motion;
mod read;
mod sensors;
mod write;

use read::Reader;
use schema::{Flavour, Registry, Schema};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use write::Writer;

/// A message that corresponds to a ROS type. The [table](self) lists which.
pub trait Ros: Sized {
    /// Its name here.
    const NAME: &'static str;
    /// The ROS types that it converts to and from.
    const TYPES: &'static [&'static str];

    #[doc(hidden)]
    fn read(ty: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError>;
    #[doc(hidden)]
    fn write<'a>(&'a self, ty: &str, to: &mut Writer<'a>);
}

/// A ROS message. Bulk data that has the same form in the original is borrowed from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosMessage<'a> {
    /// The control part.
    pub control: Vec<u8>,
    /// The data parts, in order.
    pub parts: Vec<Cow<'a, [u8]>>,
}

impl RosMessage<'_> {
    /// Returns the data parts in the form that [`Schema::join`] and [`Schema::decode`] take.
    pub fn slices(&self) -> Vec<&[u8]> {
        self.parts.iter().map(|part| &**part).collect()
    }
}

/// Why a message has no counterpart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The types do not correspond.
    #[error("{ty} cannot be converted to {name}: use {known}")]
    Type {
        /// The ROS type.
        ty: String,
        /// The type here.
        name: &'static str,
        /// The type that corresponds to it.
        known: String,
    },
    /// The ROS type has the name of a standard one, but other fields.
    #[error(
        "{ty} has the MD5 sum {found}, but the standard type has {standard}: use the standard definition"
    )]
    Definition {
        /// The ROS type.
        ty: String,
        /// Its MD5 sum.
        found: String,
        /// The MD5 sum of the standard type.
        standard: String,
    },
    /// A field that cannot be converted.
    #[error("{field}: {why}")]
    Field {
        /// Its name, in ROS or here.
        field: &'static str,
        /// The reason.
        why: String,
    },
}

/// Reads a ROS message of the schema's type.
///
/// # Errors
/// [`ConvertError`]: the type does not correspond, the parts are not a message of it, or a field cannot be converted.
pub fn from_ros<M: Ros>(schema: &Schema, control: &[u8], parts: &[&[u8]]) -> Result<M, ConvertError> {
    correspond::<M>(schema)?;
    let mut reader = Reader::new(control, parts, schema.flavour());
    let message = M::read(schema.name(), &mut reader)?;
    reader.end()?;
    Ok(message)
}

/// Writes a ROS message of the schema's type. Arrays become data parts from the schema's threshold on.
///
/// # Errors
/// [`ConvertError`]: the type does not correspond, or a field cannot be converted.
pub fn to_ros<'a, M: Ros>(message: &'a M, schema: &Schema) -> Result<RosMessage<'a>, ConvertError> {
    correspond::<M>(schema)?;
    let mut writer = Writer::new(schema.flavour(), schema.threshold());
    message.write(schema.name(), &mut writer);
    writer.finish()
}

/// Every ROS type that has a counterpart.
const TYPES: &[&str] = &[
    "geometry_msgs/Pose",
    "geometry_msgs/PoseStamped",
    "geometry_msgs/PoseWithCovarianceStamped",
    "geometry_msgs/Twist",
    "geometry_msgs/TwistStamped",
    "nav_msgs/Odometry",
    "rcl_interfaces/Log",
    "rosgraph_msgs/Log",
    "sensor_msgs/Image",
    "sensor_msgs/Imu",
    "sensor_msgs/JointState",
    "sensor_msgs/LaserScan",
    "sensor_msgs/PointCloud2",
    "tf/tfMessage",
    "tf2_msgs/TFMessage",
];

/// The MD5 sums of the standard types, of ROS 1 and ROS 2.
static STANDARD: LazyLock<[BTreeMap<&str, String>; 2]> = LazyLock::new(|| {
    [Flavour::Ros1, Flavour::Ros2].map(|flavour| {
        let registry = Registry::new(flavour);
        let known = TYPES
            .iter()
            .filter_map(|ty| Some((*ty, registry.schema(ty).ok()?.md5_hex())));
        known.collect()
    })
});

fn correspond<M: Ros>(schema: &Schema) -> Result<(), ConvertError> {
    let standard = &STANDARD[usize::from(schema.flavour() == Flavour::Ros2)];
    let (ty, found) = (schema.name(), schema.md5_hex());
    let known = |ty: &&&str| standard.contains_key(**ty);
    match standard.get(ty) {
        Some(standard) if M::TYPES.contains(&ty) => {
            if *standard == found {
                return Ok(());
            }
            Err(ConvertError::Definition {
                ty: ty.into(),
                found,
                standard: standard.clone(),
            })
        }
        _ => Err(ConvertError::Type {
            ty: ty.into(),
            name: M::NAME,
            known: M::TYPES
                .iter()
                .filter(known)
                .copied()
                .collect::<Vec<_>>()
                .join(" or "),
        }),
    }
}

#[cfg(test)]
mod tests;
