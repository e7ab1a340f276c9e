//! Messages as structures that derive serde's `Serialize` and `Deserialize` (feature `serde`): structures
//! that the Rust generators of ROS 2 generate, ros2_rust (its feature `serde`) and r2r, or your own. Nothing
//! of ROS is linked.
//!
//! The [`Schema`] of the topic or service defines the message, and the structure must match it: the
//! definition's fields in their order, each with the corresponding Rust type. A mismatch is an error that
//! names the field.
//!
//! | field | in Rust |
//! |---|---|
//! | `bool`, number | the same, at the same width; `byte` and `char` are a `u8` (ROS 1's `byte` an `i8`) |
//! | `string` | `String`, or anything that is a text or bytes to serde |
//! | `wstring` | `String`, or UTF-16 code units: `Vec<u16>` |
//! | `T[n]`, `T[]`, `T[<=n]` | any sequence or tuple: `Vec<T>`, `[T; n]`; of bytes also what serde takes as bytes |
//! | message | a structure |
//!
//! A field with the name of a Rust keyword may have an underscore appended (`type_`), and a message without
//! fields may have the member `structure_needs_at_least_one_member`, as in ros2_rust. ROS 1's `time` and
//! `duration` have no structure here: use the type of ROS 2, to which a subscriber converts messages of ROS
//! 1.
//!
//! ```
//! use ropewalk::{Flavour, Node, Registry};
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//!
//! // With ROS 2: use sensor_msgs::msg::CompressedImage (ros2_rust), or r2r::sensor_msgs::msg::CompressedImage.
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct CompressedImage {
//!     header: Header,
//!     format: String,
//!     data: Vec<u8>,
//! }
//! # #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! # struct Header {
//! #     stamp: Time,
//! #     frame_id: String,
//! # }
//! # #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
//! # struct Time {
//! #     sec: i32,
//! #     nanosec: u32,
//! # }
//! # let folder = tempfile::tempdir()?;
//! # let config = bus::BusConfig::new(folder.path());
//!
//! let node = Node::with_config("camera", config)?; // or Node::new("camera")?
//! // Also finds what is installed below AMENT_PREFIX_PATH.
//! let image_type = Registry::from_env(Flavour::Ros2).schema("sensor_msgs/CompressedImage")?;
//! let publisher = node.dynamic_publisher("/image", &image_type)?;
//! let subscriber = node.dynamic_subscriber("/image", &image_type)?;
//! assert!(publisher.wait_for_subscribers(1, Duration::from_secs(10)));
//!
//! let image = CompressedImage { header: Header::default(), format: "jpeg".into(), data: vec![7; 1000] };
//! publisher.publish_structure(&image)?;
//! let message = subscriber.take_timeout(Duration::from_secs(10))?.expect("a message");
//! assert_eq!(message.structure::<CompressedImage>()?, image);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Arrays pass through serde element by element, which costs nanoseconds for each, and tens of nanoseconds in
//! a debug build. Structures of `ropewalk gen rust` ([`typed`](crate::typed)) keep large arrays in shared
//! memory.
//!
//! [`Schema`]: crate::Schema

mod error;
mod fault;
mod read;
mod shape;
mod write;

pub use error::StructureError;

use fault::Fault;
use read::{Pieces, Reader};
use schema::{FieldType, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shape::FieldShape;
use write::Writer;

/// Serializes the structure as ROS 1 bytes of the type.
pub(crate) fn to_ros1(
    schema: &Schema,
    structure: &(impl Serialize + ?Sized),
) -> Result<Vec<u8>, StructureError> {
    let root = FieldType::Message(schema.message_type().clone());
    let mut out = Vec::new();
    let writer = Writer {
        shape: &FieldShape::root(&root, schema.flavour()),
        out: &mut out,
    };
    structure.serialize(writer).map_err(Fault::into_error)?;
    Ok(out)
}

/// Deserializes a control part and data parts of the type into a structure.
pub(crate) fn from_parts<T: DeserializeOwned>(
    schema: &Schema,
    control: &[u8],
    parts: &[&[u8]],
) -> Result<T, StructureError> {
    // Everything is checked here, with the names of the fields, so the code below meets no wrong count or
    // length.
    let join = schema.join(control, parts)?;
    let pieces = join.ros1_pieces();
    let root = FieldType::Message(schema.message_type().clone());
    let reader = Reader {
        shape: &FieldShape::root(&root, schema.flavour()),
        from: &mut Pieces::new(&pieces),
    };
    T::deserialize(reader).map_err(Fault::into_error)
}
