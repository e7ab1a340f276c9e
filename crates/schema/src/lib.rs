#![forbid(unsafe_code)]
//! ROS message definitions (`.msg`, `.srv`) turned into schemas: partial serialization, the ROS 1 and CDR
//! codecs, and messages as values, all without generated types.
//!
//! A [`Registry`] finds definitions by name and makes a [`Schema`] of one. The schema knows the type's MD5 sum
//! (ROS 1), its RIHS01 hash (ROS 2) and its full definition text. It splits a message into a small *control
//! part* and bulk *data parts* ([`Schema::split_ros1`], [`Schema::split_cdr`]), and joins them again
//! ([`Schema::join_ros1`], [`Schema::join_cdr`]). ROS 1 bytes → parts → ROS 1 bytes gives the same bytes, for
//! every valid message of every type.
//!
//! The split follows TZC (section III-A): a variable-length array of fixed-length elements is a data part, at any
//! nesting, and everything else stays in the control part. Arrays shorter than a threshold stay there too, as do those
//! after the first [`MAX_PARTS`]. `docs/wire/control-part.md` specifies the control part's encoding.
//!
//! This crate does not transport, store or share anything, has no runtime and reads no clock. Its codecs convert
//! encodings, not types: a ROS 1 `Header` keeps its `seq` in CDR. [`Conversion`] converts a type to the type of the
//! same name in the other ROS. The only input of the crate is that a registry with folders reads definition files.
//! Every parser is total: for untrusted bytes it returns a value or an error that names field and byte, never panics,
//! and uses memory in proportion to the input.
//!
//! ```
//! use schema::{Flavour, Registry};
//!
//! let image = Registry::new(Flavour::Ros1).schema("sensor_msgs/CompressedImage")?;
//! assert_eq!(image.md5_hex(), "8f7a12909da2c9d3332d540a0977563f");
//!
//! // seq, stamp, frame_id "cam", format "jpeg", 1000 bytes of data.
//! let mut bytes = vec![0; 12];
//! for (len, text) in [(3u32, &b"cam"[..]), (4, b"jpeg"), (1000, &[7; 1000])] {
//!     bytes.extend(len.to_le_bytes());
//!     bytes.extend(text);
//! }
//! let split = image.split_ros1(&bytes)?;
//! assert_eq!((split.control_len(), split.part_count(), split.part_len(0)), (31, 1, 1000));
//!
//! // Each part is written once, directly to its destination.
//! let (mut control, mut data) = ([0; 31], [0; 1000]);
//! split.write_control(&mut control)?;
//! split.write_part(0, &mut data)?;
//! assert_eq!(image.join_ros1(&control, &[&data])?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod codec;
mod definition;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod layout;
pub mod limits;
mod md5;
mod name;
mod namesake;
mod nearest;
mod parse;
mod parts;
mod plan;
mod registry;
mod rihs;
mod schema;
mod types;
mod value;

pub use codec::{Bulk, Join, LIFTED, MAX_COUNT, PartSizes, Parts, Split};
pub use definition::{Arity, Constant, Flavour, Primitive};
pub use error::{CodecError, DefinitionError, ValueError};
pub use limits::{DEFAULT_THRESHOLD, MAX_EMPTY_ELEMENTS, MAX_PARTS};
pub use name::TypeName;
pub use namesake::Conversion;
pub use nearest::{did_you_mean, nearest, with_suggestion};
pub use parts::PartLayout;
pub use registry::Registry;
pub use schema::{Schema, Service};
pub use types::{Field, FieldType, MessageType};
pub use value::{Message, Numbers, Show, Template, Value};
