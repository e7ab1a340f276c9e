//! A structure becomes the same bytes as its value, and is read back.

use crate::everything::{everything_of_r2r, everything_of_ros2_rust, yaml};
use crate::r2r::diagnostic_msgs::{DiagnosticArray, DiagnosticStatus, KeyValue};
use crate::{Ends, bytes, r2r, ros2_rust, schema};
use ropewalk::{Flavour, Registry, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Publishes a structure, the value that `yaml` describes, and that value's CDR: the same message three
/// times, equal to the structure.
fn there_and_back<T>(schema: &Schema, structure: &T, yaml: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let value = schema.value_from_yaml(yaml).expect("a value");
    let cdr = schema.encode_cdr(&value).expect("CDR");
    for threshold in [0, schema.threshold()] {
        let ends = Ends::new(&schema.clone().with_threshold(threshold));
        ends.publisher.publish_structure(structure).expect("published");
        ends.publisher.publish_value(&value).expect("published");
        ends.publisher.publish_cdr(&cdr).expect("published");
        let first = ends.take();
        assert_eq!(first.value().expect("a value"), value);
        for message in [&first, &ends.take(), &ends.take()] {
            assert_eq!(bytes(message), bytes(&first), "threshold {threshold}");
            assert_eq!(&message.structure::<T>().expect("a structure"), structure);
        }
    }
}

#[test]
fn texts() {
    let schema = schema("std_msgs/String");
    for text in ["", "hello", "Grüße, 世界"] {
        let yaml = format!("data: \"{text}\"");
        there_and_back(&schema, &r2r::std_msgs::String { data: text.into() }, &yaml);
        there_and_back(&schema, &ros2_rust::std_msgs::String { data: text.into() }, &yaml);
        there_and_back(
            &schema,
            &ros2_rust::std_msgs::rmw::String { data: text.into() },
            &yaml,
        );
    }
}

#[test]
fn empty_messages_with_and_without_the_member_that_idl_demands() {
    let schema = schema("std_msgs/Empty");
    there_and_back(&schema, &r2r::std_msgs::Empty {}, "{}");
    there_and_back(&schema, &ros2_rust::std_msgs::Empty::default(), "{}");
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Unit;
    there_and_back(&schema, &Unit, "{}");
}

#[test]
fn images() {
    let schema = schema("sensor_msgs/Image");
    for len in [0, 1, 255, 256, 100_000] {
        let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let yaml = format!(
            "{{header: {{stamp: {{sec: -5, nanosec: 6}}, frame_id: cam}}, height: 2, width: 3, encoding: rgb8, is_bigendian: 1, step: 9, data: {data:?}}}"
        );
        let header = r2r::std_msgs::Header {
            stamp: r2r::builtin_interfaces::Time { sec: -5, nanosec: 6 },
            frame_id: "cam".into(),
        };
        let image = r2r::sensor_msgs::Image {
            header,
            height: 2,
            width: 3,
            encoding: "rgb8".into(),
            is_bigendian: 1,
            step: 9,
            data: data.clone(),
        };
        there_and_back(&schema, &image, &yaml);
        let header = ros2_rust::std_msgs::Header {
            stamp: ros2_rust::builtin_interfaces::Time { sec: -5, nanosec: 6 },
            frame_id: "cam".into(),
        };
        let image = ros2_rust::sensor_msgs::Image {
            header,
            height: 2,
            width: 3,
            encoding: "rgb8".into(),
            is_bigendian: 1,
            step: 9,
            data,
        };
        there_and_back(&schema, &image, &yaml);
    }
}

#[test]
fn scans() {
    let ranges: Vec<f32> = (0..360).map(|i| i as f32 / 8.0).collect();
    let yaml = format!("{{angle_max: 3.5, ranges: {ranges:?}, intensities: [1, 2.5]}}");
    let scan = r2r::sensor_msgs::LaserScan {
        angle_max: 3.5,
        ranges,
        intensities: vec![1.0, 2.5],
        ..Default::default()
    };
    there_and_back(&schema("sensor_msgs/LaserScan"), &scan, &yaml);
}

#[test]
fn clouds() {
    let schema = schema("sensor_msgs/PointCloud2");
    let yaml = format!(
        "{{width: 50, fields: [{{name: x, datatype: 7, count: 1}}, {{name: y, offset: 4, datatype: 7, count: 1}}], point_step: 8, row_step: 400, data: {:?}, is_dense: true}}",
        [9; 400]
    );
    let of_r2r = r2r::sensor_msgs::PointCloud2 {
        width: 50,
        fields: [("x", 0), ("y", 4)]
            .map(|(name, offset)| r2r::sensor_msgs::PointField {
                name: name.into(),
                offset,
                datatype: 7,
                count: 1,
            })
            .into(),
        point_step: 8,
        row_step: 400,
        data: vec![9; 400],
        is_dense: true,
        ..Default::default()
    };
    there_and_back(&schema, &of_r2r, &yaml);
    let of_ros2_rust = ros2_rust::sensor_msgs::PointCloud2 {
        width: 50,
        fields: [("x", 0), ("y", 4)]
            .map(|(name, offset)| ros2_rust::sensor_msgs::PointField {
                name: name.into(),
                offset,
                datatype: 7,
                count: 1,
            })
            .into(),
        point_step: 8,
        row_step: 400,
        data: vec![9; 400],
        is_dense: true,
        ..Default::default()
    };
    there_and_back(&schema, &of_ros2_rust, &yaml);
}

#[test]
fn diagnostics() {
    let yaml = "{status: [{level: 2, name: motor, message: hot, values: [{key: t, value: '99'}, {key: u, value: ''}]}, {name: battery}]}";
    let pair = |key: &str, value: &str| KeyValue {
        key: key.into(),
        value: value.into(),
    };
    let motor = DiagnosticStatus {
        level: 2,
        name: "motor".into(),
        message: "hot".into(),
        values: vec![pair("t", "99"), pair("u", "")],
        ..Default::default()
    };
    let battery = DiagnosticStatus {
        name: "battery".into(),
        ..Default::default()
    };
    let array = DiagnosticArray {
        status: vec![motor, battery],
        ..Default::default()
    };
    there_and_back(&schema("diagnostic_msgs/DiagnosticArray"), &array, yaml);
}

#[test]
fn every_kind_of_field() {
    let schema = schema("test_msgs/Everything");
    there_and_back(&schema, &everything_of_r2r(), &yaml());
    there_and_back(&schema, &everything_of_ros2_rust(), &yaml());
}

#[test]
fn whatever_describes_itself_takes_any_message() {
    let ends = Ends::new(&schema("test_msgs/Everything").with_threshold(0));
    ends.publisher
        .publish_structure(&everything_of_r2r())
        .expect("published");
    let seen: serde_json::Value = ends.take().structure().expect("JSON");
    assert_eq!(seen, serde_json::to_value(everything_of_r2r()).expect("JSON"));
}

#[test]
fn bytes_and_units_are_texts_and_arrays_too() {
    /// serde sees it as bytes.
    #[derive(Debug, PartialEq)]
    struct Bytes(Vec<u8>);

    impl Serialize for Bytes {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }

    impl<'de> serde::Deserialize<'de> for Bytes {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Bytes;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }

                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                    Ok(Bytes(bytes.to_vec()))
                }
            }
            deserializer.deserialize_byte_buf(Visitor)
        }
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Mixed {
        text: Bytes,
        letters: Vec<u8>,
        wide: Vec<u16>,
        array: Bytes,
        id: Bytes,
    }

    let mut registry = Registry::new(Flavour::Ros2);
    let definition = "string text\nstring<=2 letters\nwstring wide\nuint8[] array\nuint8[4] id";
    registry.add_message("t/Mixed", definition).expect("parses");
    let mixed = Mixed {
        text: Bytes(b"abc".to_vec()),
        letters: b"de".to_vec(),
        wide: "fg".encode_utf16().collect(),
        array: Bytes(vec![7; 300]),
        id: Bytes(vec![1, 2, 3, 4]),
    };
    let yaml = format!(
        "{{text: abc, letters: de, wide: fg, array: {:?}, id: [1, 2, 3, 4]}}",
        [7; 300]
    );
    there_and_back(&registry.schema("t/Mixed").expect("compiles"), &mixed, &yaml);
}

#[test]
fn messages_of_ros_1_become_structures_of_ros_2() {
    let one = Registry::new(Flavour::Ros1)
        .schema("sensor_msgs/Image")
        .expect("known");
    let ends = Ends::of(&one, &schema("sensor_msgs/Image"));
    let yaml = format!(
        "{{header: {{seq: 3, stamp: {{secs: 5, nsecs: 6}}, frame_id: cam}}, width: 300, data: {:?}}}",
        [7; 300]
    );
    let value = one.value_from_yaml(&yaml).expect("a value");
    ends.publisher.publish_value(&value).expect("published");
    let image: r2r::sensor_msgs::Image = ends.take().structure().expect("an Image");
    assert_eq!((image.header.stamp.sec, image.header.stamp.nanosec), (5, 6));
    assert_eq!((image.width, image.data), (300, vec![7; 300]));
}
