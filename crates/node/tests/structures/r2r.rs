//! Structures as r2r generates them: every array is a `Vec`, every text a `String`, and a keyword is renamed
//! for serde.

pub mod builtin_interfaces {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Time {
        pub sec: i32,
        pub nanosec: u32,
    }

    pub type Duration = Time;
}

pub mod std_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Empty {}

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Header {
        pub stamp: builtin_interfaces::Time,
        pub frame_id: std::string::String,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct String {
        pub data: std::string::String,
    }
}

pub mod sensor_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Image {
        pub header: std_msgs::Header,
        pub height: u32,
        pub width: u32,
        pub encoding: String,
        pub is_bigendian: u8,
        pub step: u32,
        pub data: Vec<u8>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct LaserScan {
        pub header: std_msgs::Header,
        pub angle_min: f32,
        pub angle_max: f32,
        pub angle_increment: f32,
        pub time_increment: f32,
        pub scan_time: f32,
        pub range_min: f32,
        pub range_max: f32,
        pub ranges: Vec<f32>,
        pub intensities: Vec<f32>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct PointField {
        pub name: String,
        pub offset: u32,
        pub datatype: u8,
        pub count: u32,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
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

pub mod diagnostic_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct KeyValue {
        pub key: String,
        pub value: String,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct DiagnosticStatus {
        pub level: u8,
        pub name: String,
        pub message: String,
        pub hardware_id: String,
        pub values: Vec<KeyValue>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct DiagnosticArray {
        pub header: std_msgs::Header,
        pub status: Vec<DiagnosticStatus>,
    }
}

#[expect(non_snake_case, reason = "as r2r names it")]
pub mod SetBool {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Request {
        pub data: bool,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Response {
        pub success: bool,
        pub message: String,
    }
}

pub mod test_msgs {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Inner {
        pub a: u8,
        pub b: f64,
        pub c: i16,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Nested {
        pub name: String,
        pub inner: Inner,
        pub flags: Vec<bool>,
    }

    /// [`EVERYTHING`](crate::everything::EVERYTHING)
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Everything {
        pub bools: Vec<bool>,
        pub flags: Vec<bool>,
        pub a_byte: u8,
        pub a_char: u8,
        pub small: i8,
        pub large: i64,
        pub larger: Vec<u64>,
        pub words: Vec<u16>,
        pub bounded: Vec<f32>,
        pub name: String,
        pub names: Vec<String>,
        pub tags: Vec<String>,
        pub wide: String,
        pub short: String,
        pub wides: Vec<String>,
        pub stamp: builtin_interfaces::Time,
        pub durations: Vec<builtin_interfaces::Duration>,
        pub pair: Vec<Nested>,
        pub some: Vec<Nested>,
        pub inners: Vec<Inner>,
        pub covariance: Vec<f64>,
        pub nothing: std_msgs::Empty,
        pub nothings: Vec<std_msgs::Empty>,
        #[serde(rename = "type")]
        pub type_: i32,
    }
}

use serde::{Deserialize, Serialize};
