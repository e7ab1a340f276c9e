//! The Rust in `tests/rust`, with which the test `rust` is compiled, and in `examples/rust` equals the generator's output.
//! UPDATE=1 rewrites it.

use generate::{Language, files};
use schema::{Flavour, Registry};
use std::path::Path;

/// Types of standard packages.
const TYPES: &[&str] = &[
    "sensor_msgs/Image",
    "sensor_msgs/LaserScan",
    "sensor_msgs/PointCloud2",
    "geometry_msgs/Polygon",
    "geometry_msgs/TwistWithCovariance",
    "std_msgs/String",
    "std_msgs/UInt8MultiArray",
    "std_srvs/SetBool",
];

fn same(folder: &Path, registry: &Registry, names: &[String]) {
    let made = files(Language::Rust, registry, names).expect("generated");
    for file in made {
        let path = folder.join(file.path);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().expect("inside")).expect("made");
            std::fs::write(&path, &file.text).expect("written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == file.text,
            "{} differs from what is generated: run UPDATE=1 cargo test -p ropewalk-generate --test rust_files",
            path.display()
        );
    }
}

#[test]
fn committed_files_match_the_generated_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The examples' own type.
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_folder(root.join("../../examples/services"));
    let names = ["rospy_tutorials/AddTwoInts".to_owned()];
    same(&root.join("../../examples/rust/src"), &registry, &names);
    let names: Vec<String> = TYPES.iter().map(ToString::to_string).collect();
    same(&root.join("tests/rust"), &Registry::new(Flavour::Ros1), &names);
    // Also the types of the golden messages.
    for entry in root.join("../../tests/vectors/schema").read_dir().expect("there") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let vector: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let field = |name: &str| vector[name].as_str().expect("a text").to_owned();
        let mut registry = Registry::new(match field("flavour").as_str() {
            "ros2" => Flavour::Ros2,
            _ => Flavour::Ros1,
        });
        registry
            .add_embedded(&field("type"), &field("definition"))
            .expect("parses");
        let folder = root.join("tests/rust").join(path.file_stem().expect("a name"));
        same(&folder, &registry, &[field("type")]);
    }
}
