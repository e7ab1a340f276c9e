//! Twists, poses, odometry and transforms.

use super::*;

#[test]
fn twists() {
    let message = Twist {
        header: header(Flavour::Ros1),
        ..twist()
    };
    comes_back(&message, |ty, flavour, expected| {
        expected.header = if ty.ends_with("Stamped") {
            header(flavour)
        } else {
            None
        };
    });
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        let ros = value(&message, &schema(flavour, "geometry_msgs/TwistStamped"));
        let get = |path| ros.get(path).expect("a field");
        assert_eq!(get("twist.linear.x"), Value::F64(0.5));
        assert_eq!(get("twist.angular.z"), Value::F64(-0.25));
        assert_eq!(get("header.frame_id"), Value::String("base_link".into()));
        assert_eq!(get("header.stamp.sec").as_integer(), Some(1_700_000_000));
        assert_eq!(get("header.stamp.nanosec").as_integer(), Some(999_999_999));
    }
    // An empty message.
    let none = value(&Twist::default(), &schema(Flavour::Ros1, "geometry_msgs/Twist"));
    assert_eq!(none, schema(Flavour::Ros1, "geometry_msgs/Twist").default_value());
}

#[test]
fn poses() {
    let message = Pose {
        header: header(Flavour::Ros1),
        orientation2d: 0.5,
        covariance: (0..36).map(|n| n as f32).collect(),
        ..pose()
    };
    comes_back(&message, |ty, flavour, expected| {
        // The robot sends this if it has no orientation.
        expected.orientation2d = 0.0;
        expected.header = if ty.ends_with("Stamped") {
            header(flavour)
        } else {
            None
        };
        if !ty.contains("Covariance") {
            expected.covariance.clear();
        }
    });
    let wrong = Pose {
        covariance: vec![1.0; 9],
        ..pose()
    };
    let stamped = schema(Flavour::Ros1, "geometry_msgs/PoseWithCovarianceStamped");
    let error = to_ros(&wrong, &stamped).expect_err("9 numbers");
    assert_eq!(error.to_string(), "covariance: 9 numbers, expected 36 or none");
    // Where it is not converted, it does not matter.
    assert!(to_ros(&wrong, &schema(Flavour::Ros1, "geometry_msgs/Pose")).is_ok());
}

#[test]
fn orientations_are_rotations() {
    let schema = schema(Flavour::Ros1, "geometry_msgs/Pose");
    let of = |orientation: Option<[f64; 4]>, orientation2d| {
        let message = Pose {
            orientation: orientation.map(|[x, y, z, w]| Orientation { x, y, z, w }),
            orientation2d,
            ..Default::default()
        };
        let value = value(&message, &schema);
        ["x", "y", "z", "w"].map(|c| {
            let path = format!("orientation.{c}");
            value.get(&path).expect("a field").as_f64().expect("a number")
        })
    };
    let close = |a: [f64; 4], b: [f64; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    assert_eq!(of(None, 0.0), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(of(Some([0.0; 4]), 0.0), [0.0, 0.0, 0.0, 1.0]);
    let half = std::f32::consts::PI;
    let turned = of(None, half);
    assert!(
        (turned[2] - 1.0).abs() < 1e-6 && turned[3].abs() < 1e-6,
        "{turned:?}"
    );
    // An existing orientation takes precedence.
    assert_eq!(of(Some([1.0, 0.0, 0.0, 0.0]), half), [1.0, 0.0, 0.0, 0.0]);
    // Close enough to norm 1: unchanged.
    let good = [0.0, 0.6003, 0.0, 0.8];
    assert_eq!(of(Some(good), 0.0), good);
    for scale in [2.0, 1e-200, 1e200] {
        let q = of(Some([0.0, 0.6 * scale, 0.0, -0.8 * scale]), 0.0);
        assert!(close(q, [0.0, 0.6, 0.0, -0.8]), "{q:?}");
    }
    let nan = of(Some([f64::NAN, 0.0, 0.0, 1.0]), 0.0);
    assert!(nan[0].is_nan() && nan[1..] == [0.0, 0.0, 1.0]);
    assert!(of(Some([f64::INFINITY, 0.0, 0.0, 1.0]), 0.0)[0].is_infinite());
}

#[test]
fn odometry() {
    let message = Odometry {
        header: header(Flavour::Ros1),
        child_frame_id: "base".into(),
        pose: Some(PoseWithCovariance {
            pose: Some(pose()),
            covariance: (0..36).map(|n| n as f32).collect(),
        }),
        twist: Some(TwistWithCovariance {
            twist: Some(twist()),
            covariance: Vec::new(),
        }),
    };
    comes_back(&message, |_, flavour, expected| expected.header = header(flavour));
    let schema = schema(Flavour::Ros1, "nav_msgs/Odometry");
    let ros = value(&message, &schema);
    assert_eq!(ros.get("pose.covariance[35]").expect("a field"), Value::F64(35.0));
    assert_eq!(ros.get("twist.covariance[0]").expect("a field"), Value::F64(0.0));
    // The pose's own covariance, if there is no other.
    let mut own = message;
    let pose = own.pose.as_mut().expect("a pose");
    pose.pose.as_mut().expect("a pose").covariance = std::mem::take(&mut pose.covariance);
    assert_eq!(value(&own, &schema), ros);
    // Empty covariances are unknown, and rotations are valid.
    let empty = value(&Odometry::default(), &schema);
    assert_eq!(
        empty.get("pose.pose.orientation.w").expect("a field"),
        Value::F64(1.0)
    );
}

#[test]
fn covariances_beyond_32_bits_are_the_largest() {
    let schema = schema(Flavour::Ros1, "geometry_msgs/PoseWithCovarianceStamped");
    let mut ros = schema.default_value();
    ros.set("pose.covariance[0]", Value::F64(f64::MAX)).expect("fits");
    ros.set("pose.covariance[7]", Value::F64(f64::NAN)).expect("fits");
    let bytes = schema.encode_ros1(&ros).expect("a message");
    let pose: Pose = from_ros(&schema, &bytes, &[]).expect("a pose");
    assert_eq!(pose.covariance[0], f32::MAX);
    assert!(pose.covariance[7].is_nan());
}

#[test]
fn transforms() {
    let one = |from: &str, to: &str| Transform {
        header: header(Flavour::Ros1),
        transform: Some(pose()),
        from: from.into(),
        to: to.into(),
        covariance: Vec::new(),
    };
    let message = Transforms {
        transform: vec![one("map", "odom"), one("odom", "base_link"), one("", "camera")],
    };
    comes_back(&message, |_, flavour, expected| {
        for transform in &mut expected.transform {
            transform.header = header(flavour);
            if transform.from.is_empty() {
                transform.from = "base_link".into();
            }
            transform.header.as_mut().expect("a header").frame = transform.from.clone();
        }
    });
    let ros = value(&message, &schema(Flavour::Ros2, "tf2_msgs/TFMessage"));
    let get = |path| ros.get(path).expect("a field");
    assert_eq!(get("transforms[0].header.frame_id"), Value::String("map".into()));
    assert_eq!(get("transforms[0].child_frame_id"), Value::String("odom".into()));
    assert_eq!(get("transforms[0].transform.rotation.y"), Value::F64(0.6));
    assert_eq!(
        get("transforms[2].header.frame_id"),
        Value::String("base_link".into())
    );
}
