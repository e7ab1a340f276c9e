//! Joints, inertial sensors, lasers, images and log messages.

use super::*;

#[test]
fn joints() {
    let names: Vec<String> = (0..40).map(|n| format!("joint_{n}")).collect();
    let message = JointState {
        header: header(Flavour::Ros1),
        position: (0..40).map(f64::from).collect(),
        velocity: vec![f64::NAN.copysign(1.0), f64::INFINITY],
        effort: Vec::new(),
        name: names.clone(),
        acceleration: vec![1.0],
        tics: vec![5],
    };
    let ros = value(&message, &schema(Flavour::Ros1, "sensor_msgs/JointState"));
    assert_eq!(
        ros.get("name[39]").expect("a field"),
        Value::String("joint_39".into())
    );
    assert_eq!(ros.get("position[39]").expect("a field"), Value::F64(39.0));
    let velocity = ros.get("velocity").expect("a field");
    assert!(matches!(&velocity, Value::Numbers(Numbers::F64(v)) if v[0].is_nan() && v[1].is_infinite()));

    let message = JointState {
        velocity: vec![0.5; 40],
        ..message
    };
    comes_back(&message, |_, flavour, expected| {
        expected.header = header(flavour);
        expected.acceleration.clear();
        expected.tics.clear();
    });
    let command = JointCommand {
        header: header(Flavour::Ros1),
        name: names,
        effort: vec![2.0],
        kp_gain: vec![1.0],
        ..Default::default()
    };
    comes_back(&command, |_, flavour, expected| {
        expected.header = header(flavour);
        expected.kp_gain.clear();
    });
}

#[test]
fn imus() {
    let message = Imu {
        header: header(Flavour::Ros1),
        acceleration: vector(0.0, 0.0, 9.81),
        gyro: vector(0.1, 0.2, 0.3),
        mag: vector(1.0, 2.0, 3.0),
        orientation: pose().orientation,
    };
    comes_back(&message, |_, flavour, expected| {
        expected.header = header(flavour);
        expected.mag = None;
    });
    // Quantities that it does not measure.
    let gyro = Imu {
        gyro: vector(0.1, 0.2, 0.3),
        orientation: Some(Orientation::default()),
        ..Default::default()
    };
    comes_back(&gyro, |_, _, expected| {
        expected.header = Some(Header {
            timestamp: Some(TimeStamp::default()),
            ..Default::default()
        });
        expected.orientation = None;
    });
    let ros = value(&gyro, &schema(Flavour::Ros1, "sensor_msgs/Imu"));
    let first = |name: &str| ros.get(&format!("{name}_covariance[0]")).expect("a field");
    assert_eq!(first("orientation"), Value::F64(-1.0));
    assert_eq!(first("angular_velocity"), Value::F64(0.0));
    assert_eq!(first("linear_acceleration"), Value::F64(-1.0));
}

#[test]
fn laser_scans() {
    let message = LaserScan {
        header: header(Flavour::Ros1),
        vertical_size: 1,
        horizontal_size: 181,
        start_angle: -1.5,
        horizontal_angle_resolution: 0.015625,
        scan_speed: 4.0,
        range_min: 0.1,
        range_max: 30.0,
        ranges: (0..181).map(|n| n as f32 * 0.1).chain([]).collect(),
        remissions: vec![0.5; 181],
        ..Default::default()
    };
    comes_back(&message, |_, flavour, expected| expected.header = header(flavour));
    let laser = schema(Flavour::Ros1, "sensor_msgs/LaserScan");
    let ros = value(&message, &laser);
    let get = |path| ros.get(path).expect("a field");
    assert_eq!(get("angle_min"), Value::F32(-1.5));
    assert_eq!(get("angle_max"), Value::F32(-1.5 + 180.0 * 0.015625));
    assert_eq!(get("time_increment"), Value::F32(0.015625 / 4.0));
    assert_eq!(get("scan_time"), Value::F32(180.0 * 0.015625 / 4.0));
    assert_eq!(get("ranges[180]"), Value::F32(18.0));
    assert_eq!(get("intensities[0]"), Value::F32(0.5));
    // Only the total time is known.
    let mut ros = ros;
    ros.set("time_increment", Value::F32(0.0)).expect("fits");
    let parts = laser.encode(&ros).expect("a message");
    let scan: LaserScan = from_ros(&laser, &parts.control, &parts.slices()).expect("a scan");
    assert_eq!(scan.scan_speed, 4.0);

    let none = value(&LaserScan::default(), &laser);
    assert_eq!(none, laser.default_value());
    let lines = LaserScan {
        vertical_size: 16,
        ..message.clone()
    };
    let error = to_ros(&lines, &laser).expect_err("16 lines");
    assert_eq!(
        error.to_string(),
        "vertical_size: 16 lines, but a ROS scan has one"
    );
    let odd = LaserScan {
        horizontal_size: 180,
        ..message
    };
    assert!(to_ros(&odd, &laser).is_err());
}

#[test]
fn images() {
    let message = Image {
        header: header(Flavour::Ros1),
        height: 20,
        width: 30,
        encoding: "rgb8".into(),
        is_bigendian: 1,
        step: 90,
        data: (0..1800).map(|n| n as u8).collect(),
    };
    comes_back(&message, |_, flavour, expected| expected.header = header(flavour));
    // The pixels are borrowed from the original.
    let image = schema(Flavour::Ros1, "sensor_msgs/Image");
    let ros = to_ros(&message, &image).expect("an image");
    assert!(matches!(&ros.parts[..], [Cow::Borrowed(data)] if std::ptr::eq(*data, &message.data[..])));
    let odd = Image {
        is_bigendian: 256,
        ..message
    };
    assert!(to_ros(&odd, &image).is_err());
}

#[test]
fn log_messages() {
    for (level, ros1, ros2) in [
        (LogLevel::Fatal as u32, 16, 50),
        (LogLevel::Error as u32, 8, 40),
        (LogLevel::Warn as u32, 4, 30),
        (LogLevel::Info as u32, 2, 20),
        (LogLevel::Debug as u32, 1, 10),
        (LogLevel::None as u32, 2, 20),
        (LogLevel::Custom as u32, 2, 20),
        (77, 2, 20),
    ] {
        let message = LogMessage {
            header: header(Flavour::Ros1),
            level,
            message: "überhitzt".into(),
        };
        comes_back(&message, |_, flavour, expected| {
            expected.header = header(flavour);
            if flavour == Flavour::Ros2 {
                expected.header.as_mut().expect("a header").frame.clear();
            }
            if !(1..=5).contains(&level) {
                expected.level = LogLevel::Info as u32;
            }
        });
        let value = |flavour, ty| {
            value(&message, &schema(flavour, ty))
                .get("level")
                .expect("a field")
        };
        assert_eq!(value(Flavour::Ros1, "rosgraph_msgs/Log").as_integer(), Some(ros1));
        assert_eq!(
            value(Flavour::Ros2, "rcl_interfaces/Log").as_integer(),
            Some(ros2)
        );
    }
    // A level between two, and invalid text.
    let log = schema(Flavour::Ros2, "rcl_interfaces/Log");
    let mut ros = log.default_value();
    ros.set("level", Value::U8(35)).expect("fits");
    ros.set("msg", Value::Bytes(b"\xffx".to_vec())).expect("fits");
    let parts = log.encode(&ros).expect("a message");
    let message: LogMessage = from_ros(&log, &parts.control, &[]).expect("a message");
    assert_eq!(message.level, LogLevel::Warn as u32);
    assert_eq!(message.message, "\u{fffd}x");
}
