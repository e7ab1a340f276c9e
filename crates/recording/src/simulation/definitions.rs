//! Types of the simulated messages: definitions without comments, and their MD5s.

use crate::model::{Channel, ChannelId};

pub(super) const SCAN: u32 = 0;
pub(super) const TF: u32 = 1;
pub(super) const IMAGE: u32 = 2;

const LINE: &str = "================================================================================\n";

const HEADER: &str = "MSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";

const LASER_SCAN: &str = "Header header
float32 angle_min
float32 angle_max
float32 angle_increment
float32 time_increment
float32 scan_time
float32 range_min
float32 range_max
float32[] ranges
float32[] intensities
";

const COMPRESSED_IMAGE: &str = "Header header
string format
uint8[] data
";

const TF_MESSAGE: &str = "geometry_msgs/TransformStamped[] transforms
";

const TRANSFORM_STAMPED: &str = "MSG: geometry_msgs/TransformStamped
Header header
string child_frame_id
Transform transform
";

const TRANSFORM: &str = "MSG: geometry_msgs/Transform
Vector3 translation
Quaternion rotation
";

const VECTOR3: &str = "MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
";

const QUATERNION: &str = "MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
";

pub(super) fn channels() -> Vec<Channel> {
    let channel = |id, topic, type_name, md5, parts: &[&str]| Channel {
        id: ChannelId(id),
        callerid: Some("/simulation".to_owned()),
        ..Channel::ros1(topic, type_name, md5, &parts.join(LINE))
    };
    vec![
        channel(
            SCAN,
            "/scan",
            "sensor_msgs/LaserScan",
            "90c7ef2dc6895d81024acba2ac42f369",
            &[LASER_SCAN, HEADER],
        ),
        channel(
            TF,
            "/tf",
            "tf2_msgs/TFMessage",
            "94810edda583a504dfda3829e70d7eec",
            &[
                TF_MESSAGE,
                TRANSFORM_STAMPED,
                HEADER,
                TRANSFORM,
                VECTOR3,
                QUATERNION,
            ],
        ),
        channel(
            IMAGE,
            "/camera/image/compressed",
            "sensor_msgs/CompressedImage",
            "8f7a12909da2c9d3332d540a0977563f",
            &[COMPRESSED_IMAGE, HEADER],
        ),
    ]
}
