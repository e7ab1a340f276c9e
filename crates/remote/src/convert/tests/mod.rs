//! Each type both ways, as ROS's own codec reads it.

mod cloud;
mod motion;
mod sensors;

use super::*;
use crate::types::*;
use proptest::prelude::*;
use prost::Message;
use schema::{Numbers, Value};

fn schema(flavour: Flavour, ty: &str) -> Schema {
    Registry::new(flavour).schema(ty).expect("a standard type")
}

/// Returns the ROS message as the schema's own reader reads it.
fn value<M: Ros>(message: &M, schema: &Schema) -> Value {
    let ros = to_ros(message, schema).expect("has a counterpart");
    schema
        .decode(&ros.control, &ros.slices())
        .expect("is a message of its type")
}

/// Converts there and back, in every corresponding ROS type of both flavours.
fn comes_back<M: Ros + Clone + PartialEq + std::fmt::Debug>(
    message: &M,
    but: impl Fn(&str, Flavour, &mut M),
) {
    let mut types = 0;
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        for ty in M::TYPES {
            assert!(TYPES.contains(ty), "{ty} is not in the table");
            let Ok(schema) = Registry::new(flavour).schema(ty) else {
                continue;
            };
            types += 1;
            let mut expected = message.clone();
            but(ty, flavour, &mut expected);
            for threshold in [0, 256] {
                let schema = schema.clone().with_threshold(threshold);
                let ros = to_ros(message, &schema).expect("has a counterpart");
                let back: M = from_ros(&schema, &ros.control, &ros.slices()).expect("comes back");
                assert_eq!(back, expected, "{ty} {flavour:?}");
                // Also by way of CDR.
                let cdr = schema
                    .join_cdr(&ros.control, &ros.slices())
                    .expect("is a message of its type");
                let split = schema.split_cdr(&cdr).expect("is CDR").to_parts();
                let back: M = from_ros(&schema, &split.control, &split.slices()).expect("comes back");
                assert_eq!(back, expected, "{ty} {flavour:?} by CDR");
            }
        }
    }
    assert!(types >= 2);
}

fn header(flavour: Flavour) -> Option<Header> {
    Some(Header {
        timestamp: Some(TimeStamp {
            secs: 1_700_000_000,
            nsecs: 999_999_999,
        }),
        frame: "base_link".into(),
        seq: if flavour == Flavour::Ros1 { 7 } else { 0 },
    })
}

fn vector(x: f32, y: f32, z: f32) -> Option<Vector3> {
    Some(Vector3 { x, y, z })
}

fn pose() -> Pose {
    Pose {
        position: Some(Position {
            x: 1.5,
            y: -2.0,
            z: 0.1,
        }),
        orientation: Some(Orientation {
            x: 0.0,
            y: 0.6,
            z: 0.0,
            w: 0.8,
        }),
        ..Default::default()
    }
}

fn twist() -> Twist {
    Twist {
        header: None,
        linear: vector(0.5, 0.0, -1.0),
        angular: vector(0.0, 0.0, -0.25),
    }
}

#[test]
fn times_are_carried_or_refused() {
    let stamped = |secs, nsecs| Twist {
        header: Some(Header {
            timestamp: Some(TimeStamp { secs, nsecs }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let ros1 = schema(Flavour::Ros1, "geometry_msgs/TwistStamped");
    let ros2 = schema(Flavour::Ros2, "geometry_msgs/TwistStamped");
    for schema in [&ros1, &ros2] {
        let late = value(&stamped(5, u32::MAX), schema);
        assert_eq!(
            late.get("header.stamp.sec").expect("a field").as_integer(),
            Some(9)
        );
        let nanos = late.get("header.stamp.nanosec").expect("a field").as_integer();
        assert_eq!(nanos, Some(294_967_295));
    }
    let last = stamped(u32::MAX, 999_999_999);
    assert!(to_ros(&last, &ros1).is_ok());
    assert!(to_ros(&stamped(u32::MAX, 1_000_000_000), &ros1).is_err());
    assert!(to_ros(&stamped(i32::MAX as u32, 0), &ros2).is_ok());
    assert!(to_ros(&last, &ros2).is_err());
    let mut early = ros2.default_value();
    early.set("header.stamp.sec", Value::I32(-1)).expect("fits");
    let bytes = ros2.encode(&early).expect("a message");
    let error = from_ros::<Twist>(&ros2, &bytes.control, &[]).expect_err("before 1970");
    assert_eq!(error.to_string(), "stamp: before 1970");
}

#[test]
fn numbers_beyond_32_bits_are_refused() {
    let schema = schema(Flavour::Ros1, "geometry_msgs/Twist");
    let with = |x: f64| {
        let mut ros = schema.default_value();
        ros.set("angular.z", Value::F64(x)).expect("fits");
        let bytes = schema.encode_ros1(&ros).expect("a message");
        from_ros::<Twist>(&schema, &bytes, &[]).map(|t| t.angular.expect("a vector").z)
    };
    assert_eq!(with(0.1), Ok(0.1));
    assert_eq!(with(f64::INFINITY), Ok(f32::INFINITY));
    assert!(with(f64::NAN).is_ok_and(f32::is_nan));
    let error = with(1e39).expect_err("too much");
    assert_eq!(error.to_string(), "angular: 1e39 does not fit into 32 bits");
}

#[test]
fn types_that_do_not_correspond_are_named() {
    let why = |schema: &Schema| {
        let error = to_ros(&LogMessage::default(), schema)
            .expect_err("not a log")
            .to_string();
        assert_eq!(
            from_ros::<LogMessage>(schema, &[], &[])
                .expect_err("not a log")
                .to_string(),
            error
        );
        error
    };
    let expected = "geometry_msgs/Wrench cannot be converted to LogMessage: use rosgraph_msgs/Log";
    assert_eq!(why(&schema(Flavour::Ros1, "geometry_msgs/Wrench")), expected);
    let expected = "geometry_msgs/Twist cannot be converted to LogMessage: use rcl_interfaces/Log";
    assert_eq!(why(&schema(Flavour::Ros2, "geometry_msgs/Twist")), expected);
    // A type of the same name, as in a user's workspace.
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_message("rosgraph_msgs/Log", "string msg\n")
        .expect("a definition");
    let error = why(&registry.schema("rosgraph_msgs/Log").expect("known"));
    assert!(
        error
            .ends_with("the standard type has acffd30cd6b6de30f120938c17c593fb: use the standard definition"),
        "{error}"
    );
}

#[test]
fn messages_that_are_cut_or_go_on_are_refused() {
    let schema = schema(Flavour::Ros1, "sensor_msgs/PointCloud2");
    let cloud = cloud::cloud(20);
    let ros = to_ros(&cloud, &schema).expect("a cloud");
    let (control, part) = (&ros.control, &*ros.parts[0]);
    let read = |control: &[u8], parts: &[&[u8]]| from_ros::<PointCloud>(&schema, control, parts);
    assert!(read(control, &[part]).is_ok());
    for n in 0..control.len() {
        assert!(read(&control[..n], &[part]).is_err(), "cut at {n}");
    }
    assert!(read(&[control, &[0][..]].concat(), &[part]).is_err());
    assert!(read(control, &[]).is_err());
    assert!(read(control, &[part, part]).is_err());
    assert!(read(control, &[&part[1..]]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_converted_or_refused(
        which in any::<u8>(),
        data in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        crate::fuzzing::convert(&[&[which, 0], &data[..]].concat());
        let len = (data.len() as u16).to_le_bytes();
        crate::fuzzing::convert(&[&[which, 1], &len[..], &data].concat());
    }
}
