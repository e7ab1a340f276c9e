//! Generated Rust: messages written and read in place, the golden messages of `tests/vectors/schema` in both
//! directions, and arbitrary bytes. Every type in the crate `schema` compiles.

#[path = "rust/bounded/ropewalk_msgs/mod.rs"]
mod bounded;
#[path = "rust/laser_scan/ropewalk_msgs/mod.rs"]
mod laser_scan;
#[path = "rust/markers/ropewalk_msgs/mod.rs"]
mod markers;
#[path = "rust/padded/ropewalk_msgs/mod.rs"]
mod padded;
#[path = "rust/ropewalk_msgs/mod.rs"]
mod ropewalk_msgs;
#[path = "rust/tf/ropewalk_msgs/mod.rs"]
mod tf;

use generate::{Language, files};
use ropewalk::typed::{self, Bulk, FieldError, Fields, Typed};
use ropewalk::{BusConfig, Flavour, Node, Publisher, Registry, Schema, Subscriber};
use ropewalk_msgs::geometry_msgs::{Point32, Polygon, Twist, TwistWithCovariance};
use ropewalk_msgs::sensor_msgs::{Image, PointCloud2, PointField};
use ropewalk_msgs::std_msgs::UInt8MultiArray;
use ropewalk_msgs::std_srvs::{SetBool, SetBoolRequest};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Long enough for any machine; it bounds a hang, not speed.
const LONG: Duration = Duration::from_secs(120);

struct Ends {
    publisher: Publisher,
    subscriber: Subscriber,
    _folder: tempfile::TempDir,
}

fn ends(schema: &Schema) -> Ends {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("typed", BusConfig::new(folder.path())).expect("a node");
    let publisher = node.dynamic_publisher("/typed", schema).expect("a publisher");
    let subscriber = node.dynamic_subscriber("/typed", schema).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    Ends {
        publisher,
        subscriber,
        _folder: folder,
    }
}

impl Ends {
    fn loan<'a, T: Fields<'a>>(&self, message: &T) -> typed::Loan {
        typed::loan(message, |control, parts| self.publisher.loan(control, parts)).expect("a block")
    }

    fn pass(&self, loan: typed::Loan) -> ropewalk::Message {
        self.publisher.publish(loan.into_inner()).expect("published");
        let taken = self.subscriber.take_timeout(LONG).expect("no error");
        taken.expect("a message")
    }
}

#[test]
fn a_picture_is_written_and_read_in_place() {
    let schema = typed::schema::<Image<'_>>().expect("its own definition");
    assert_eq!(schema.md5_hex(), Image::MD5);
    let ends = ends(&schema);
    let mut image = Image {
        height: 3,
        width: 100,
        encoding: "mono8".into(),
        data: Bulk::Sized(300),
        ..Image::default()
    };
    image.header.frame_id = "camera".into();
    let mut loan = ends.loan(&image);
    loan.slice_mut::<u8>("data").expect("there").fill(7);
    let wrong = loan.slice_mut::<u8>("pixels").expect_err("not there").to_string();
    assert!(wrong.contains("pixels") && wrong.contains("data"), "{wrong}");
    let message = ends.pass(loan);
    let seen: Image<'_> = typed::read(&message).expect("an Image");
    assert_eq!(
        (seen.width, &*seen.encoding, &*seen.header.frame_id),
        (100, "mono8", "camera")
    );
    assert_eq!(*seen.data, [7; 300]);
    assert_eq!(seen.data.as_ptr(), message.part(0).as_ptr(), "in place");
    // A message that is passed on is copied into the new block.
    let again = ends.pass(ends.loan(&seen));
    assert_eq!(typed::read::<Image<'_>>(&again).expect("an Image"), seen);
}

#[test]
fn a_picture_of_the_other_ros_is_read_as_one_of_its_own() {
    let own = typed::schema::<Image<'_>>().expect("its own definition");
    let theirs = own.in_flavour(Image::FLAVOUR.other()).expect("its namesake");
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("typed", BusConfig::new(folder.path())).expect("a node");
    let publisher = node.dynamic_publisher("/typed", &theirs).expect("a publisher");
    let subscriber = node.dynamic_subscriber("/typed", &own).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    let text = "{header: {frame_id: camera}, width: 3, encoding: mono8, data: [1, 2, 3]}";
    let value = theirs.value_from_yaml(text).expect("a picture");
    publisher.publish_value(&value).expect("published");
    let message = subscriber
        .take_timeout(LONG)
        .expect("no error")
        .expect("a message");
    let seen: Image<'_> = typed::read(&message).expect("an Image");
    let texts = (&*seen.header.frame_id, &*seen.encoding);
    assert_eq!(
        (seen.width, texts, &*seen.data),
        (3, ("camera", "mono8"), &[1, 2, 3][..])
    );
}

#[test]
fn elements_are_numbers_structures_and_small_arrays() {
    let polygon = typed::schema::<Polygon<'_>>().expect("its own definition");
    let ends_of = ends(&polygon);
    let points: Vec<Point32> = (0..50)
        .map(|i| Point32 {
            x: i as f32,
            y: 0.5,
            z: -1.0,
        })
        .collect();
    let mut loan = ends_of.loan(&Polygon {
        points: points.clone().into(),
    });
    let moved = Point32 { x: 9.0, ..points[3] };
    assert_eq!(loan.set("points", 3, &moved), Ok(true));
    assert_eq!(loan.set("points", 50, &moved), Ok(false));
    let message = ends_of.pass(loan);
    let seen: Polygon<'_> = typed::read(&message).expect("a Polygon");
    assert!(matches!(seen.points, Bulk::Part(_)) && seen.points.count() == 50);
    assert_eq!(
        (seen.points.element(3), seen.points.element(4)),
        (Some(moved), Some(points[4]))
    );
    assert_eq!(seen.points.elements().filter(|p| p.y == 0.5).count(), 50);
    let few = ends_of.pass(ends_of.loan(&Polygon {
        points: points[..2].to_vec().into(),
    }));
    let seen: Polygon<'_> = typed::read(&few).expect("a Polygon");
    assert!(few.part_count() == 0 && seen.points == Bulk::Owned(points[..2].to_vec()));

    // Fields of nested messages can be named in both ways.
    let array = typed::schema::<UInt8MultiArray<'_>>().expect("its own definition");
    let ends_of = ends(&array);
    let sized = UInt8MultiArray {
        data: Bulk::Sized(10),
        ..Default::default()
    };
    let mut loan = ends_of.loan(&sized);
    loan.slice_mut::<u8>("data")
        .expect("also short ones")
        .copy_from_slice(b"0123456789");
    let message = ends_of.pass(loan);
    assert_eq!(
        &*typed::read::<UInt8MultiArray<'_>>(&message).expect("one").data,
        b"0123456789"
    );

    let cloud = PointCloud2 {
        fields: vec![PointField {
            name: "x".into(),
            datatype: PointField::FLOAT32,
            ..Default::default()
        }],
        ..Default::default()
    };
    let ends_of = ends(&typed::schema::<PointCloud2<'_>>().expect("its own definition"));
    let message = ends_of.pass(ends_of.loan(&cloud));
    assert_eq!(typed::read::<PointCloud2<'_>>(&message).expect("one"), cloud);

    let twist = TwistWithCovariance {
        covariance: std::array::from_fn(|i| i as f64),
        ..Default::default()
    };
    let ends_of = ends(&typed::schema::<TwistWithCovariance>().expect("its own definition"));
    let message = ends_of.pass(ends_of.loan(&twist));
    assert_eq!(typed::read::<TwistWithCovariance>(&message).expect("one"), twist);
    assert_eq!(Twist::default().linear.x, 0.0);
    let service = typed::service::<SetBool>().expect("its own definition");
    assert_eq!(
        (service.name(), service.md5_hex()),
        ("std_srvs/SetBool".into(), SetBool::MD5.into())
    );
    assert_eq!(SetBoolRequest { data: 1 }, SetBoolRequest { data: 1 });
}

/// A golden message.
struct Vector {
    control: Vec<u8>,
    parts: Vec<Vec<u8>>,
    ros1: Vec<u8>,
    schema: Schema,
}

fn vector(name: &str) -> Vector {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/vectors/schema/{name}.json"));
    let vector: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON");
    let hex = |text: &serde_json::Value| -> Vec<u8> {
        let text = text.as_str().expect("hex");
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex"))
            .collect()
    };
    let text = |name: &str| vector[name].as_str().expect("a text");
    let mut registry = Registry::new(match text("flavour") {
        "ros2" => Flavour::Ros2,
        _ => Flavour::Ros1,
    });
    registry
        .add_embedded(text("type"), text("definition"))
        .expect("parses");
    Vector {
        control: hex(&vector["control"]),
        parts: vector["parts"]
            .as_array()
            .expect("parts")
            .iter()
            .map(hex)
            .collect(),
        ros1: hex(&vector["ros1"]),
        schema: registry.schema(text("type")).expect("compiles"),
    }
}

/// A macro, since a type with a lifetime differs for each.
macro_rules! golden {
    ($name:literal, $ty:ty) => {{
        let golden = vector($name);
        let slices = || golden.parts.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>();
        let message: $ty = typed::from_parts(&golden.control, slices()).expect("a golden message");
        // The ROS 1 bytes equal the vector's, wherever arrays are stored.
        let ends = ends(&golden.schema);
        let taken = ends.pass(ends.loan(&message));
        assert_eq!(taken.ros1().expect("of its type"), golden.ros1, $name);

        // A shortened or extended message is refused; a changed one is read or refused.
        for len in 0..golden.control.len() {
            let cut = typed::from_parts::<$ty>(&golden.control[..len], slices());
            assert!(cut.is_err(), "{} with {len} bytes", $name);
        }
        let longer = [&golden.control[..], &[0]].concat();
        let refused = typed::from_parts::<$ty>(&longer, slices()).map(drop);
        assert_eq!(refused, Err(FieldError::Rest { bytes: 1, parts: 0 }));
        for at in 0..golden.control.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = golden.control.clone();
                changed[at] ^= change;
                let _ = typed::from_parts::<$ty>(&changed, slices());
            }
        }
        if let Some((_, others)) = slices().split_first() {
            assert!(typed::from_parts::<$ty>(&golden.control, others.to_vec()).is_err());
        }
    }};
}

#[test]
fn golden_messages_come_back_byte_for_byte() {
    golden!("bounded", bounded::t::T<'_>);
    golden!("laser_scan", laser_scan::sensor_msgs::LaserScan<'_>);
    golden!("markers", markers::visualization_msgs::MarkerArray<'_>);
    golden!("padded", padded::t::T<'_>);
    golden!("tf", tf::tf2_msgs::TFMessage);
}

/// Compiled against the crate under test.
#[test]
fn every_standard_type_compiles() {
    let deps = std::env::current_exe().expect("this program").with_file_name("");
    let library = |name: &str| {
        let is_it = |file: &str| file.starts_with(name) && file.ends_with(".rlib");
        let files = deps.read_dir().expect("there").filter_map(Result::ok);
        let found = files.filter(|f| is_it(&f.file_name().to_string_lossy()));
        let newest = found.max_by_key(|f| f.metadata().and_then(|m| m.modified()).ok());
        newest.expect("built for this test").path()
    };
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::new(flavour);
        let names: Vec<String> = (registry.names().iter().chain(&registry.service_names()))
            .map(ToString::to_string)
            .collect();
        for file in files(Language::Rust, &registry, &names).expect("generated") {
            let path = folder.path().join(file.path);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("made");
            std::fs::write(path, file.text).expect("written");
        }
        let main = folder.path().join("all.rs");
        std::fs::write(&main, "#![forbid(unsafe_code)]\npub mod ropewalk_msgs;\n").expect("written");
        let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
        rustc.args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "-D",
            "warnings",
        ]);
        rustc.arg("-L").arg(format!("dependency={}", deps.display()));
        rustc
            .arg("--extern")
            .arg(format!("ropewalk={}", library("libropewalk-").display()));
        rustc.arg("-o").arg(folder.path().join("all.rmeta")).arg(&main);
        let done = rustc.output().expect("rustc starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
