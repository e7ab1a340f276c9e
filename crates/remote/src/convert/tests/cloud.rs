//! Point clouds, the library's and those of drivers.

use super::*;

pub(super) fn cloud(points: usize) -> PointCloud {
    let number = |n: usize| n as f64 * 0.5;
    PointCloud {
        header: header(Flavour::Ros1),
        origin: None,
        points: (0..points)
            .map(|n| Position {
                x: number(n),
                y: -number(n),
                z: 0.25,
            })
            .collect(),
        channels: ["intensity", "rgb"]
            .map(|name| ChannelFloat {
                name: name.into(),
                // A signalling NaN, which a packed colour may be.
                values: (0..points)
                    .map(|n| f32::from_bits(0x7fa0_0000 + n as u32))
                    .collect(),
            })
            .into(),
    }
}

#[test]
fn point_clouds() {
    for points in [0, 1, 100] {
        let message = cloud(points);
        for flavour in [Flavour::Ros1, Flavour::Ros2] {
            let schema = schema(flavour, "sensor_msgs/PointCloud2");
            let ros = to_ros(&message, &schema).expect("a cloud");
            let back: PointCloud = from_ros(&schema, &ros.control, &ros.slices()).expect("a cloud");
            assert_eq!(back.header, header(flavour));
            // Bit by bit, since NaN is not equal to itself.
            let bytes = |cloud: PointCloud| {
                PointCloud {
                    header: None,
                    ..cloud
                }
                .encode_to_vec()
            };
            assert_eq!(bytes(back), bytes(message.clone()));
            let value = schema.decode(&ros.control, &ros.slices()).expect("is a message");
            let get = |path| value.get(path).expect("a field");
            assert_eq!(get("width").as_integer(), Some(points as i128));
            assert_eq!(get("point_step").as_integer(), Some(20));
            assert_eq!(get("fields[3].name"), Value::String("intensity".into()));
            assert_eq!(get("fields[3].offset"), Value::U32(12));
            assert_eq!(get("is_dense"), Value::Bool(true));
        }
    }
    let pointless = schema(Flavour::Ros1, "sensor_msgs/PointCloud2");
    // A point that is not finite in 32 bits is not one that `is_dense` promises.
    for y in [f64::NAN, f64::INFINITY, 1e300] {
        let mut odd = cloud(2);
        odd.points[1].y = y;
        let dense = value(&odd, &pointless).get("is_dense").expect("a field");
        assert_eq!(dense, Value::Bool(false), "{y}");
    }
    for spoil in [
        (|c: &mut PointCloud| c.channels[0].values.truncate(1)) as fn(&mut PointCloud),
        |c| c.channels[0].name = "x".into(),
        |c| c.channels[0].name = "rgb".into(),
        |c| {
            let one = c.channels[0].clone();
            let many = (0..1001).map(|n| ChannelFloat {
                name: n.to_string(),
                ..one.clone()
            });
            c.channels = many.collect();
        },
    ] {
        let mut bad = cloud(2);
        spoil(&mut bad);
        assert!(matches!(
            to_ros(&bad, &pointless),
            Err(ConvertError::Field {
                field: "channels",
                ..
            })
        ));
    }
}

/// A cloud as a driver may produce it: padded rows, big-endian, with gaps, and fields of every type.
fn driver() -> Value {
    let schema = schema(Flavour::Ros1, "sensor_msgs/PointCloud2");
    let text =
        "{height: 2, width: 2, is_bigendian: true, point_step: 48, row_step: 100, is_dense: false, fields: [
        {name: z, offset: 0, datatype: 8, count: 1}, {name: x, offset: 8, datatype: 7, count: 0},
        {name: y, offset: 12, datatype: 3, count: 1}, {name: ring, offset: 14, datatype: 4, count: 1},
        {name: hist, offset: 16, datatype: 2, count: 3}, {name: t, offset: 20, datatype: 6, count: 1},
        {name: a, offset: 24, datatype: 5, count: 1}, {name: b, offset: 28, datatype: 1, count: 1},
        {name: c, offset: 32, datatype: 8, count: 1}]}";
    let mut value = schema.value_from_yaml(text).expect("a cloud");
    let mut point = vec![0; 48];
    point[0..8].copy_from_slice(&3.5f64.to_be_bytes());
    point[8..12].copy_from_slice(&1.5f32.to_be_bytes());
    point[12..14].copy_from_slice(&(-2i16).to_be_bytes());
    point[14..16].copy_from_slice(&500u16.to_be_bytes());
    point[16..19].copy_from_slice(&[1, 2, 255]);
    point[20..24].copy_from_slice(&70_000u32.to_be_bytes());
    point[24..28].copy_from_slice(&(-70_000i32).to_be_bytes());
    point[28] = 0x80;
    point[32..40].copy_from_slice(&1e300f64.to_be_bytes());
    let mut data = [&point[..], &point, &[9; 4], &point, &point].concat();
    data[8..12].copy_from_slice(&7f32.to_be_bytes());
    value
        .set("data", Value::Numbers(Numbers::U8(data)))
        .expect("fits");
    value
}

#[test]
fn clouds_of_drivers_are_read() {
    let schema = schema(Flavour::Ros1, "sensor_msgs/PointCloud2");
    let read = |value: &Value| {
        let bytes = schema.encode_ros1(value).expect("a message");
        from_ros::<PointCloud>(&schema, &bytes, &[])
    };
    let cloud = read(&driver()).expect("a cloud");
    let point = |x| Position { x, y: -2.0, z: 3.5 };
    assert_eq!(cloud.points, [point(7.0), point(1.5), point(1.5), point(1.5)]);
    let channels: Vec<_> = cloud
        .channels
        .iter()
        .map(|c| (c.name.as_str(), c.values[3]))
        .collect();
    let expected = [
        ("ring", 500.0),
        ("hist_0", 1.0),
        ("hist_1", 2.0),
        ("hist_2", 255.0),
        ("t", 70_000.0),
        ("a", -70_000.0),
        ("b", -128.0),
        ("c", f32::INFINITY),
    ];
    assert_eq!(channels, expected);

    let spoilt = |path: &str, value: Value| {
        let mut cloud = driver();
        cloud.set(path, value).expect("fits");
        read(&cloud).expect_err(path).to_string()
    };
    let text = |s: &str| Value::String(s.into());
    assert_eq!(
        spoilt("fields[0].name", text("w")),
        "fields: x, y or z is missing"
    );
    assert_eq!(
        spoilt("fields[0].datatype", Value::U8(9)),
        "fields: the data type 9 is not one of 1 to 8"
    );
    assert_eq!(
        spoilt("fields[0].datatype", Value::U8(0)),
        "fields: the data type 0 is not one of 1 to 8"
    );
    for (path, n) in [
        ("width", u32::MAX),
        ("height", u32::MAX),
        ("height", 3),
        ("point_step", 0),
        ("point_step", 39),
        ("point_step", u32::MAX),
        ("row_step", 0),
        ("row_step", 95),
        ("row_step", u32::MAX),
        ("fields[0].offset", u32::MAX),
        ("fields[0].count", u32::MAX),
        // It would overlap.
        ("fields[5].count", 7),
    ] {
        let error = spoilt(path, Value::U32(n));
        assert_eq!(error.lines().count(), 1, "{path} {n}: {error}");
    }
    // Without points, only fields that could cost memory have to be valid.
    let mut empty = driver();
    empty.set("width", Value::U32(0)).expect("fits");
    assert!(read(&empty).expect("a cloud").points.is_empty());
    empty.set("point_step", Value::U32(u32::MAX)).expect("fits");
    empty.set("fields[5].count", Value::U32(1 << 20)).expect("fits");
    assert!(read(&empty).is_err());
    assert!(read(&schema.default_value()).expect("a cloud").points.is_empty());
    // Points of 0 B, of which a few bytes can declare any number; and more bytes than a number can count.
    let huge = |mut cloud: Value, fields: &[&str]| {
        for field in fields {
            cloud.set(field, Value::U32(u32::MAX)).expect("fits");
        }
        read(&cloud).expect_err("too large").to_string()
    };
    assert_eq!(
        huge(schema.default_value(), &["height", "width"]),
        "point_step: 0 B, but the cloud has 4294967295 rows of 4294967295 points"
    );
    let error = huge(driver(), &["height", "width", "row_step", "point_step"]);
    assert!(error.starts_with("data: 196 B are too few for"), "{error}");
}
