//! The golden messages of `tests/vectors/schema`, which other languages read as well.
//!
//! `UPDATE_VECTORS=1 cargo test -p ropewalk-schema --test vectors` rewrites them; the test then fails, so that unchecked bytes
//! are not mistaken for checked ones.

use schema::{Flavour, Registry, Show};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

struct Case {
    name: &'static str,
    about: &'static str,
    flavour: Flavour,
    ty: &'static str,
    /// Definitions in addition to the standard ones.
    definitions: &'static [(&'static str, &'static str)],
    threshold: usize,
    yaml: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "laser_scan",
        about: "one array lifted, one below the threshold",
        flavour: Flavour::Ros1,
        ty: "sensor_msgs/LaserScan",
        definitions: &[],
        threshold: 12,
        yaml: "{header: {seq: 7, stamp: [1, 2], frame_id: laser}, angle_min: -1, range_max: 30, \
               ranges: [1, 2.5, .inf], intensities: [9, 8]}",
    },
    Case {
        name: "tf",
        about: "no data parts: elements vary in size",
        flavour: Flavour::Ros1,
        ty: "tf2_msgs/TFMessage",
        definitions: &[],
        threshold: 0,
        yaml: "transforms: [{header: {frame_id: map}, child_frame_id: odom, transform: {rotation: {w: 1}}}, \
               {child_frame_id: base}]",
    },
    Case {
        name: "markers",
        about: "data parts below an array: numbered in the order of their counts",
        flavour: Flavour::Ros1,
        ty: "visualization_msgs/MarkerArray",
        definitions: &[],
        threshold: 16,
        yaml: "markers: [{ns: a, points: [[1, 2, 3]], colors: [[1, 0, 0, 1]]}, \
               {ns: b, colors: [[0, 1, 0, 1], [0, 0, 1, 1]]}]",
    },
    Case {
        name: "padded",
        about: "elements with padding: 11 bytes in ROS 1, 24 in C",
        flavour: Flavour::Ros1,
        ty: "t/T",
        definitions: &[
            ("t/In", "uint8 a\nfloat64 b\nuint16 c"),
            ("t/T", "bool f\nIn[] x\nIn[1] y\nstd_msgs/Empty e\ntime[] t"),
        ],
        threshold: 0,
        yaml: "{f: true, x: [[1, 2.5, 3], [4, -5.5, 6]], y: [[7, 8, 9]], t: [[1, 2], [3, 4]]}",
    },
    Case {
        name: "bounded",
        about: "what ROS 2 adds",
        flavour: Flavour::Ros2,
        ty: "t/T",
        definitions: &[(
            "t/T",
            "string<=5 a\nint32[<=4] b\nwstring w\nfloat64 d\nstring[] s\nstd_msgs/Header h",
        )],
        threshold: 0,
        yaml: "{a: abc, b: [1, -2, 3], w: 'é𝄞', d: 1.5, s: [x, ''], h: {stamp: {sec: 5}, frame_id: f}}",
    },
];

fn make(case: &Case) -> Json {
    let mut registry = Registry::new(case.flavour);
    for (name, text) in case.definitions {
        registry.add_message(name, text).expect("parses");
    }
    let schema = registry
        .schema(case.ty)
        .expect("compiles")
        .with_threshold(case.threshold);
    let value = schema.value_from_yaml(case.yaml).expect("fits");
    let parts = schema.encode(&value).expect("fits");
    let ros1 = schema
        .join_ros1(&parts.control, &parts.slices())
        .expect("own parts");
    let cdr = schema
        .join_cdr(&parts.control, &parts.slices())
        .expect("own parts");
    json!({
        "about": case.about,
        "flavour": case.flavour.name(),
        "type": case.ty,
        "definition": schema.definition(),
        "md5": schema.md5_hex(),
        "rihs01": schema.rihs01(),
        "threshold": case.threshold,
        "value": value.to_json(Show::ALL),
        "ros1": hex(&ros1),
        "cdr": hex(&cdr),
        "control": hex(&parts.control),
        "parts": parts.parts.iter().map(|p| hex(p)).collect::<Vec<_>>(),
        "layouts": schema.parts().iter().map(|p| json!({
            "path": p.path, "element": p.element_type, "size": p.element_size, "align": p.element_align,
        })).collect::<Vec<_>>(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn golden_messages() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/schema");
    let update = std::env::var_os("UPDATE_VECTORS").is_some();
    for case in CASES {
        let path = folder.join(format!("{}.json", case.name));
        let made = make(case);
        if update {
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(&path, format!("{made:#}\n")).expect("writable");
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let golden: Json = serde_json::from_str(&text).expect("JSON");
        assert_eq!(made, golden, "{}", case.name);
    }
    assert!(!update, "the vectors were rewritten: check them, then run again");
}
