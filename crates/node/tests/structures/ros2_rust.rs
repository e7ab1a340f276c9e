//! Structures as ros2_rust generates them with its feature `serde`: arrays of fixed size are Rust arrays,
//! bounded ones are types of its runtime library, and a keyword has an underscore.

use crate::runtime::{self, BoundedSequence, BoundedString, BoundedWString, big_array};
use serde::{Deserialize, Serialize};

pub mod builtin_interfaces {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Time {
        pub sec: i32,
        pub nanosec: u32,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Duration {
        pub sec: i32,
        pub nanosec: u32,
    }
}

pub mod std_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Empty {
        pub structure_needs_at_least_one_member: u8,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Header {
        pub stamp: builtin_interfaces::Time,
        pub frame_id: std::string::String,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct String {
        pub data: std::string::String,
    }

    /// As in the C code of the ROS middleware.
    pub mod rmw {
        use super::*;

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct String {
            pub data: runtime::String,
        }
    }
}

pub mod sensor_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Image {
        pub header: std_msgs::Header,
        pub height: u32,
        pub width: u32,
        pub encoding: std::string::String,
        pub is_bigendian: u8,
        pub step: u32,
        pub data: Vec<u8>,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct PointField {
        pub name: std::string::String,
        pub offset: u32,
        pub datatype: u8,
        pub count: u32,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct PointCloud2 {
        pub header: std_msgs::Header,
        pub height: u32,
        pub width: u32,
        pub fields: Vec<PointField>,
        pub is_bigendian: bool,
        pub point_step: u32,
        pub row_step: u32,
        pub data: Vec<u8>,
        pub is_dense: bool,
    }
}

pub mod test_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Inner {
        pub a: u8,
        pub b: f64,
        pub c: i16,
    }

    #[derive(Clone, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
    pub struct Nested {
        pub name: std::string::String,
        pub inner: Inner,
        pub flags: Vec<bool>,
    }

    /// Element types of bounded sequences.
    pub mod rmw {
        use super::*;

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Nested {
            pub name: runtime::String,
            pub inner: Inner,
            pub flags: runtime::Sequence<bool>,
        }
    }

    /// [`EVERYTHING`](crate::everything::EVERYTHING)
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Everything {
        pub bools: [bool; 3],
        pub flags: Vec<bool>,
        pub a_byte: u8,
        pub a_char: u8,
        pub small: i8,
        pub large: i64,
        pub larger: Vec<u64>,
        pub words: [u16; 4],
        pub bounded: BoundedSequence<f32, 4>,
        pub name: BoundedString<5>,
        pub names: [std::string::String; 2],
        pub tags: BoundedSequence<runtime::String, 3>,
        pub wide: std::string::String,
        pub short: BoundedWString<4>,
        pub wides: Vec<std::string::String>,
        pub stamp: builtin_interfaces::Time,
        pub durations: Vec<builtin_interfaces::Duration>,
        pub pair: [Nested; 2],
        pub some: BoundedSequence<rmw::Nested, 2>,
        pub inners: Vec<Inner>,
        #[serde(with = "big_array")]
        pub covariance: [f64; 36],
        pub nothing: std_msgs::Empty,
        pub nothings: Vec<std_msgs::Empty>,
        pub type_: i32,
    }
}
