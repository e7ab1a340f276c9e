//! Messages as values: paths, text in and out, defaults.

use schema::{Flavour, Numbers, Registry, Schema, Show, Template, Value, ValueError};
use std::time::Duration;

fn ros1(name: &str) -> Schema {
    Registry::new(Flavour::Ros1).schema(name).expect("known")
}

fn of(flavour: Flavour, text: &str) -> Schema {
    let mut registry = Registry::new(flavour);
    registry.add_message("t/T", text).expect("parses");
    registry.schema("t/T").expect("compiles")
}

#[test]
fn a_small_value_lacks_what_lies_in_data_parts_alone() {
    let text = "uint8[] pixels\nstring name\nPoint[] points\nint32 last";
    let mut registry = Registry::new(Flavour::Ros2);
    registry
        .add_message("t/Point", "float32 x\nfloat64 y")
        .expect("parses");
    registry.add_message("t/T", text).expect("parses");
    let schema = registry.schema("t/T").expect("compiles").with_threshold(16);
    let yaml = "{pixels: [1, 2], name: a, points: [{x: 1, y: 2}, {x: 3, y: 4}], last: 7}";
    let value = schema.value_from_yaml(yaml).expect("fits");
    let parts = schema.encode(&value).expect("fits");
    assert_eq!(parts.parts.len(), 1);
    let small = schema
        .decode_small(&parts.control, &parts.slices())
        .expect("a message");
    let expected = schema
        .value_from_yaml("{pixels: [1, 2], name: a, last: 7}")
        .expect("fits");
    assert_eq!(small, expected);
    assert!(schema.decode_small(&parts.control, &[]).is_err());
}

#[test]
fn get_and_set_by_path() {
    let tf = ros1("tf2_msgs/TFMessage");
    let mut v = tf
        .value_from_yaml("transforms: [{header: {frame_id: map}}, {}]")
        .expect("fits");
    assert_eq!(
        v.get("transforms[0].header.frame_id"),
        Ok(Value::String("map".into()))
    );
    v.set("transforms[1].header.stamp.secs", Value::I64(7))
        .expect("fits");
    v.set("transforms[1].transform.rotation.w", Value::U8(1))
        .expect("fits");
    assert_eq!(
        v.get("transforms[1].header.stamp"),
        Ok(Value::Time { secs: 7, nsecs: 0 })
    );
    assert_eq!(v.get("transforms[1].header.stamp.secs"), Ok(Value::U32(7)));
    assert_eq!(v.get("transforms[1].transform.rotation.w"), Ok(Value::F64(1.0)));

    let error = |v: &mut Value, path: &str, value| v.set(path, value).expect_err("does not fit").to_string();
    assert_eq!(
        error(&mut v, "transforms[1].header.frame", Value::U8(1)),
        "std_msgs/Header has no field `frame` (did you mean frame_id?); it has seq, stamp, frame_id"
    );
    assert_eq!(
        error(&mut v, "transforms[0].header.seq", Value::I8(-1)),
        "transforms[0].header.seq: -1 does not fit uint32"
    );
    assert_eq!(
        error(&mut v, "transforms[0].header.frame_id", Value::U8(1)),
        "transforms[0].header.frame_id: expected string, found a whole number"
    );
    assert!(
        v.set("transforms[2].child_frame_id", Value::String(String::new()))
            .is_err()
    );
    for bad in ["a..b", ".a", "a[", "a[x]", "a]", "[0].", "a b", ""] {
        assert!(v.set(bad, Value::U8(0)).is_err(), "{bad}");
    }
    assert_eq!(
        v.get("transforms[9]").expect_err("short").to_string(),
        "the array has no field `[9]`; it has 2 elements"
    );

    let mut scan = ros1("sensor_msgs/LaserScan")
        .value_from_yaml("ranges: [1, 2.5, .inf]")
        .expect("fits");
    assert_eq!(scan.get("ranges[1]"), Ok(Value::F32(2.5)));
    assert_eq!(scan.get("ranges[2]"), Ok(Value::F32(f32::INFINITY)));
    scan.set("ranges[2]", Value::U8(3)).expect("fits");
    assert_eq!(
        scan.get("ranges"),
        Ok(Value::Numbers(Numbers::F32(vec![1.0, 2.5, 3.0])))
    );
    assert!(scan.set("ranges[3]", Value::U8(3)).is_err());
    assert!(scan.get("ranges[0].x").is_err());
}

#[test]
fn sixty_four_bits_are_exact() {
    let schema = of(Flavour::Ros1, "int64 a\nuint64 b\nint64[] c\nfloat32 f");
    let yaml = "a: -9223372036854775808\nb: 18446744073709551615\nc: [9007199254740993]\nf: 0.1";
    let v = schema.value_from_yaml(yaml).expect("fits");
    assert_eq!(v.get("a"), Ok(Value::I64(i64::MIN)));
    assert_eq!(v.get("b"), Ok(Value::U64(u64::MAX)));
    assert_eq!(v.to_string(), yaml);
    let json = v.to_json(Show::ALL).to_string();
    assert_eq!(
        json,
        r#"{"a":-9223372036854775808,"b":18446744073709551615,"c":[9007199254740993],"f":0.1}"#
    );
    let error = schema
        .value_from_yaml("b: 18446744073709551616")
        .expect_err("too large");
    assert!(
        matches!(error, ValueError::Range { .. } | ValueError::Kind { .. }),
        "{error}"
    );
    assert!(matches!(
        schema.value_from_yaml("a: 1.5"),
        Err(ValueError::Kind { .. })
    ));
    assert_eq!(
        schema.value_from_yaml("a: 2.0").expect("whole").get("a"),
        Ok(Value::I64(2))
    );
}

#[test]
fn texts_that_rostopic_pub_accepts_are_read() {
    let string = ros1("std_msgs/String");
    for text in ["hello", "data: hello", "{data: hello}", "['hello']", "\"hello\""] {
        let v = string.value_from_yaml(text).expect("fits");
        assert_eq!(v.get("data").expect("there").as_str(), Some("hello"), "{text}");
    }
    assert_eq!(
        string.value_from_yaml("").expect("default").get("data"),
        Ok(Value::String(String::new()))
    );
    let twist = ros1("geometry_msgs/Twist");
    let v = twist
        .value_from_yaml("{linear: {x: 1}, angular: [0, 0, 0.5]}")
        .expect("fits");
    assert_eq!(
        v,
        twist.value_from_yaml("[[1, 0, 0], [0, 0, 0.5]]").expect("fits")
    );
    let time = ros1("std_msgs/Time");
    for text in [
        "{data: {secs: 1, nsecs: 500000000}}",
        "data: [1, 500000000]",
        "1500000000",
        "data: 1.5",
    ] {
        let v = time.value_from_yaml(text).expect("fits");
        assert_eq!(
            v.get("data"),
            Ok(Value::Time {
                secs: 1,
                nsecs: 500_000_000
            }),
            "{text}"
        );
    }
    let image = ros1("sensor_msgs/CompressedImage")
        .value_from_yaml("data: abc")
        .expect("fits");
    assert_eq!(
        image.get("data"),
        Ok(Value::Numbers(Numbers::U8(b"abc".to_vec())))
    );

    let error = |schema: &Schema, text: &str| schema.value_from_yaml(text).expect_err("wrong").to_string();
    assert_eq!(error(&string, "5"), "data: expected string, found 5");
    assert_eq!(
        error(&string, "dat: 5"),
        "std_msgs/String has no field `dat`; it has data"
    );
    assert_eq!(
        error(&twist, "[1, 2]"),
        "linear: expected geometry_msgs/Vector3, found 1"
    );
    assert_eq!(
        error(&twist, "[[1]]"),
        "message: 1 elements, but geometry_msgs/Twist takes 2"
    );
    assert_eq!(
        error(&twist, "linear: {y: fast}"),
        "linear.y: expected float64, found \"fast\""
    );
    assert!(error(&twist, "linear: [1").starts_with("not YAML: "));
    assert_eq!(
        error(&time, "data: {secs: -1}"),
        "data: -1 s 0 ns does not fit time"
    );
    let fixed = ros1("sensor_msgs/Imu");
    assert_eq!(
        error(&fixed, "orientation_covariance: [1]"),
        "orientation_covariance: 1 elements, but float64[9] takes 9"
    );
}

#[test]
fn defaults_of_ros2() {
    let schema = of(
        Flavour::Ros2,
        "float64 w 1\nstring s \"a\\\"b#\"\nint32[] n [1, -2]\nstring[2] t [x, 'y z']\nbool b true\nbool c\nbyte d 200",
    );
    let v = schema.default_value();
    assert_eq!(
        v.to_string(),
        "w: 1.0\ns: \"a\\\"b#\"\nn: [1, -2]\nt: [\"x\", \"y z\"]\nb: true\nc: false\nd: 200"
    );
    assert_eq!(schema.decode_ros1(&schema.encode_ros1(&v).expect("fits")), Ok(v));
    let pose = Registry::new(Flavour::Ros2)
        .schema("geometry_msgs/Pose")
        .expect("known")
        .default_value();
    assert_eq!(pose.get("orientation.w"), Ok(Value::F64(1.0)));
    // Bounds apply to values as well as to bytes.
    let bounded = of(Flavour::Ros2, "string<=3 s\nint8[<=2] n");
    assert!(bounded.value_from_yaml("s: abcd").is_err());
    assert!(bounded.value_from_yaml("n: [1, 2, 3]").is_err());
    let mut v = bounded.default_value();
    assert!(v.set("n", Value::Numbers(Numbers::I8(vec![1, 2, 3]))).is_err());
    v.set("n", Value::Numbers(Numbers::U8(vec![1, 2]))).expect("fits");
}

#[test]
fn echo_is_readable() {
    let schema = of(
        Flavour::Ros1,
        "Header h\nuint8[] d\nfloat32[] f\ngeometry_msgs/Point[] p\nstd_msgs/Empty e\nduration u\nstring s",
    );
    let yaml = "{h: {seq: 1, frame_id: a}, f: [.nan, -.inf, 1], p: [{x: 1}, {y: 2}], u: {secs: -1}}";
    let mut v = schema.value_from_yaml(yaml).expect("fits");
    v.set("d", Value::Numbers(Numbers::U8((0..100).collect())))
        .expect("fits");
    // A message cannot control the terminal.
    v.set("s", Value::String("\u{1b}[2J\u{9b}\u{202e}\"".into()))
        .expect("fits");
    let expected = "\
h:
  seq: 1
  stamp:
    secs: 0
    nsecs: 0
  frame_id: \"a\"
d: <100 bytes 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f …>
f: [.nan, -.inf, 1.0]
p:
  - x: 1.0
    y: 0.0
    z: 0.0
  - x: 0.0
    y: 2.0
    z: 0.0
e: {}
u:
  secs: -1
  nsecs: 0
s: \"\\u001b[2J\\u009b\\u202e\\\"\"";
    assert_eq!(v.to_string(), expected);
    let cut = v.to_yaml(Show { max_array: 1 });
    assert!(cut.contains("f: [.nan, … 2 more]\n"), "{cut}");
    assert!(cut.contains("    z: 0.0\n  - … 1 more\n"), "{cut}");
    let json = v.to_json(Show { max_array: 2 });
    assert_eq!(json["f"].to_string(), r#"["nan","-inf","… 1 more"]"#);
    assert_eq!(json["d"][2], "… 98 more");
    // The text describes the message completely, including NaN.
    let again = schema.value_from_yaml(&v.to_yaml(Show::ALL)).expect("own text");
    assert_eq!(schema.encode_ros1(&again), schema.encode_ros1(&v));
}

#[test]
fn values_of_another_type_are_refused() {
    let (point, pose) = (ros1("geometry_msgs/Point"), ros1("geometry_msgs/Pose"));
    let error = pose
        .encode_ros1(&point.default_value())
        .expect_err("another type");
    assert!(
        error
            .to_string()
            .contains("expected geometry_msgs/Pose, found a message geometry_msgs/Point")
    );
    assert!(pose.encode_ros1(&Value::U8(1)).is_err());
    let mut v = pose.default_value();
    v.set("position", point.value_from_yaml("[1, 2, 3]").expect("fits"))
        .expect("fits");
    assert_eq!(v.get("position.z"), Ok(Value::F64(3.0)));
}

#[test]
fn hostile_text_is_refused_in_bounds() {
    let schema = ros1("visualization_msgs/MarkerArray");
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(schema.value_from_yaml(&deep).is_err());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nmarkers: [*g,*g,*g,*g,*g,*g,*g]";
    assert!(schema.value_from_yaml(bomb).is_err());
}

#[test]
fn output_of_echo_is_read_back_unless_it_was_cut() {
    let schema = of(
        Flavour::Ros1,
        "time t\nuint8[] b\nfloat32[] f\nstring[] s\nstd_msgs/String[] m\nint8 x",
    );
    let text = "{t: [1, 2], b: [1, 2], f: [1.5, .nan], s: [a, '---'], m: [{data: x}, {}], x: -1}";
    let value = schema.value_from_yaml(text).expect("fits");
    let now = Duration::from_secs(1);
    let printed = format!(
        "{}---\n{}---\n",
        value.to_yaml(Show::ALL),
        value.to_yaml(Show::ALL)
    );
    let json = format!("{0}\n{0}\n", value.to_json(Show::ALL));
    for printed in [printed, json] {
        let read = Template::all(&printed).expect("YAML");
        assert_eq!(read.len(), 2, "{printed}");
        for template in read {
            let again = schema.value_from_template(&template, now).expect("fits");
            // NaN is not equal to itself.
            assert_eq!(again.to_yaml(Show::ALL), value.to_yaml(Show::ALL));
        }
    }
    assert_eq!(
        Template::all(" \n---\n").expect("empty"),
        Template::all("").expect("empty")
    );

    let long = "{b: [1, 2, 3], f: [1, 2, 3], s: [a, b, c], m: [{}, {}, {}]}";
    let long = schema.value_from_yaml(long).expect("fits");
    let show = Show { max_array: 2 };
    for field in ["b", "f", "s", "m"] {
        let cut = long.to_yaml(show);
        // Only this field, to see the error of each.
        let lines: Vec<&str> = cut.lines().collect();
        let start = lines
            .iter()
            .position(|l| l.starts_with(&format!("{field}:")))
            .expect("there");
        let end = lines[start + 1..]
            .iter()
            .position(|l| !l.starts_with([' ', '-']))
            .map_or(lines.len(), |n| start + 1 + n);
        let error = schema.value_from_yaml(&lines[start..end].join("\n"));
        assert!(
            matches!(error, Err(ValueError::Cut { .. })),
            "{field}: {error:?}: {cut}"
        );
    }
}

#[test]
fn now_and_auto_are_the_time_of_publishing() {
    let now = Duration::new(7, 8);
    let read = |schema: &Schema, text: &str| {
        let template = Template::parse(text).expect("YAML");
        assert!(template.is_timed());
        schema.value_from_template(&template, now).map(|v| v.to_string())
    };
    let ros2 = |name: &str| Registry::new(Flavour::Ros2).schema(name).expect("known");
    for text in [
        "header: auto",
        "header: {stamp: now}",
        "{header: {stamp: now, frame_id: ''}}",
    ] {
        let one = read(&ros1("geometry_msgs/PointStamped"), text).expect("fits");
        assert!(one.contains("secs: 7\n    nsecs: 8"), "{one}");
        let two = read(&ros2("geometry_msgs/PointStamped"), text).expect("fits");
        assert!(two.contains("sec: 7\n    nanosec: 8"), "{two}");
    }
    assert_eq!(
        read(&ros1("std_msgs/String"), "data: now").expect("fits"),
        "data: \"now\""
    );
    assert!(read(&ros1("std_msgs/Duration"), "data: now").is_err());
    assert!(
        ros1("std_msgs/Time").value_from_yaml("now").is_err(),
        "without a time there is no now"
    );
    assert!(!Template::parse("header: {stamp: 1}").expect("YAML").is_timed());
}
