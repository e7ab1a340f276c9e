//! Sources of definitions, refused definitions, and the sums and texts that follow from them.

use schema::{DefinitionError, Flavour, Registry};
use std::fs;

fn registry() -> Registry {
    Registry::new(Flavour::Ros1)
}

#[test]
fn both_spellings_and_both_flavours() {
    let (one, two) = (registry(), Registry::new(Flavour::Ros2));
    let header = one.schema("std_msgs/Header").expect("known");
    assert_eq!(header.md5_hex(), "2176decaecbce78abc3b96ef049fabed");
    assert_eq!(
        one.schema("std_msgs/msg/Header").expect("known").md5(),
        header.md5()
    );
    assert_eq!(
        (header.name(), header.ros2_name().as_str()),
        ("std_msgs/Header", "std_msgs/msg/Header")
    );
    let names = |r: &Registry| -> Vec<String> {
        let schema = r.schema("std_msgs/Header").expect("known");
        schema
            .message_type()
            .fields()
            .iter()
            .map(|f| f.name().to_owned())
            .collect()
    };
    assert_eq!(names(&one), ["seq", "stamp", "frame_id"]);
    assert_eq!(names(&two), ["stamp", "frame_id"]);
    let service = one.service("std_srvs/Trigger").expect("known");
    assert_eq!(service.md5_hex(), "937c9679a518e3a18d831e57125ea522");
    assert_eq!(service.request().name(), "std_srvs/TriggerRequest");
    assert_eq!(service.response().name(), "std_srvs/TriggerResponse");
}

#[test]
fn full_text_is_that_of_gendeps() {
    let mut r = registry();
    r.add_message("t/A", "B b # note\nB[] c\nstring s")
        .expect("parses");
    r.add_message("t/B", "# a comment\n\nC c\n").expect("parses");
    r.add_message("t/C", "int8 x").expect("parses");
    let text = r.schema("t/A").expect("compiles").definition();
    let line = "=".repeat(80);
    let expected = format!(
        "B b # note\nB[] c\nstring s\n{line}\nMSG: t/B\n# a comment\n\nC c\n\n{line}\nMSG: t/C\nint8 x"
    );
    assert_eq!(text, expected);
    let mut embedded = registry();
    embedded.add_embedded("t/A", &text).expect("parses");
    let again = embedded.schema("t/A").expect("compiles");
    assert_eq!(again.definition(), text);
    assert_eq!(again.md5(), r.schema("t/A").expect("compiles").md5());
    assert_eq!(
        again.canonical_text(),
        "t/B b\n  t/C c\n    int8 x\nt/B[] c\n  t/C c\n    int8 x\nstring s\n"
    );
}

#[test]
fn a_service_carries_its_types_along() {
    let mut r = registry();
    r.add_service("t/S", "A[] a\n---\nA b\n").expect("parses");
    r.add_message("t/A", "B b").expect("parses");
    r.add_message("t/B", "int8 x").expect("parses");
    let service = r.service("t/S").expect("compiles");
    let mut embedded = registry();
    let text = service.definition();
    embedded.add_embedded_service("t/S", &text).expect("parses");
    let again = embedded.service("t/S").expect("compiles");
    assert_eq!((again.definition(), again.md5()), (text, service.md5()));
    let text = format!("int8 x\n{}\nMSG: t/B\nint8 x", "=".repeat(80));
    let error = Registry::new(Flavour::Ros2)
        .add_embedded_service("t/S", &text)
        .expect_err("no service");
    assert!(error.to_string().contains("---"), "{error}");
}

#[test]
fn embedded_texts_in_other_dress() {
    // In the form of MCAP's ros2msg: names with `msg`, Windows line ends, missing standard types.
    let mut r = Registry::new(Flavour::Ros2);
    let line = "=".repeat(80);
    let text = format!("In in\r\nstd_msgs/Header h\r\n{line}\r\nMSG: t/msg/In\r\nint8 x\r\n");
    r.add_embedded("t/msg/A", &text).expect("parses");
    assert_eq!(
        r.schema("t/A").expect("compiles").canonical_text().lines().next(),
        Some("t/In in")
    );

    let mut fail = |text: String| r.add_embedded("t/A", &text).expect_err("malformed").to_string();
    assert_eq!(
        fail(format!("int8 a\n{line}\nMSG t/B\n")),
        "definition of t/A:3:1: expected `MSG: package/Type` after the separator, found `MSG t/B`"
    );
    assert_eq!(
        fail(format!("int8 a\n{line}\nMSG: t/B\nint8 x\nint 8 y\n")),
        "definition of t/A:5:5: expected a name, found `8 y`"
    );
    assert_eq!(
        fail(format!("int8 a\n{line}\n")),
        "definition of t/A:3:1: expected `MSG: package/Type` after the separator"
    );
}

#[test]
fn folders_come_before_what_ships_and_after_what_was_added() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("writable");
        fs::write(path, text).expect("writable");
    };
    write("ws/src/group/mine/msg/Deep.msg", "std_msgs/String s");
    write("ws/std_msgs/msg/String.msg", "int8 not_the_usual");
    write("ws/mine/srv/Ask.srv", "int8 a\n---\nint8 b\n");
    write("ws/.hidden/other/msg/T.msg", "int8 a");
    write("alone/msg/Own.msg", "int8 a");
    write("ws/mine/msg/Bad.msg", "int8 a\n\nint8 b c\n");

    let mut r = registry();
    r.add_folder(dir.path().join("ws"));
    r.add_folder(dir.path().join("alone"));
    let deep = r.schema("mine/Deep").expect("found three levels down");
    assert_eq!(deep.canonical_text(), "std_msgs/String s\n  int8 not_the_usual\n");
    r.schema("alone/Own").expect("the folder is the package");
    r.service("mine/Ask").expect("found");
    r.add_message("std_msgs/String", "bool added").expect("parses");
    assert!(
        r.schema("mine/Deep")
            .expect("found")
            .canonical_text()
            .contains("bool added")
    );

    match r.schema("other/T") {
        Err(DefinitionError::Unknown { name, hint, .. }) => {
            assert_eq!(name, "other/T");
            assert!(hint.contains("ws"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
    match r.schema("mine/Bad") {
        Err(DefinitionError::Syntax {
            file,
            line: 3,
            column: 8,
            ..
        }) => {
            assert!(file.ends_with("mine/msg/Bad.msg"), "{file}");
        }
        other => panic!("{other:?}"),
    }
    // A folder of that name is not a definition.
    fs::create_dir_all(dir.path().join("ws/mine/msg/Dir.msg")).expect("writable");
    assert!(matches!(
        r.schema("mine/Dir"),
        Err(DefinitionError::Unknown { .. })
    ));
}

#[test]
fn missing_types_say_who_needs_them() {
    let mut r = registry();
    r.add_message("t/A", "other/B b").expect("parses");
    assert_eq!(
        r.schema("t/A").expect_err("missing").to_string(),
        "unknown type other/B (needed by t/A): it is not one of the standard ros1 definitions, and no folder was given"
    );
    assert_eq!(
        r.schema("nonsense").expect_err("no name").to_string(),
        "`nonsense` is not a type name: write package/Type or package/msg/Type"
    );
}

#[test]
fn misspelt_types_get_a_suggestion() {
    let r = registry();
    let says = |name: &str| r.schema(name).expect_err("no such type").to_string();
    assert!(
        says("std_msgs/Strng").starts_with("unknown type std_msgs/Strng (did you mean std_msgs/String?): ")
    );
    assert!(says("laserscan").contains("(did you mean sensor_msgs/LaserScan?)"));
    let mut mine = registry();
    mine.add_message("my_msgs/Level", "int8 a").expect("parses");
    let error = mine.schema("my_msgs/Levle").expect_err("no such type");
    assert!(error.to_string().contains("my_msgs/Level?"), "{error}");
}

#[test]
fn circles_are_found() {
    let mut r = registry();
    r.add_message("t/A", "B[] b").expect("parses");
    r.add_message("t/B", "C c").expect("parses");
    r.add_message("t/C", "t/A a").expect("parses");
    r.add_message("t/Self", "Self s").expect("parses");
    assert_eq!(
        r.schema("t/B").expect_err("circle").to_string(),
        "type t/B contains itself: t/B > t/C > t/A > t/B"
    );
    assert!(matches!(
        r.schema("t/Self"),
        Err(DefinitionError::Recursive { .. })
    ));
}

#[test]
fn sizes_are_bounded() {
    let mut r = registry();
    let too_large = |r: &Registry, name: &str, wanted: &str| match r.schema(name) {
        Err(DefinitionError::TooLarge {
            what, value, limit, ..
        }) => {
            assert_eq!(what, wanted);
            assert!(value > limit);
        }
        other => panic!("{name}: {other:?}"),
    };
    // Ten times ten times ten … fields, of which each type declares only ten.
    r.add_message("t/L0", "string s").expect("parses");
    for level in 1..12 {
        let text: String = (0..10).map(|i| format!("L{} f{i}\n", level - 1)).collect();
        r.add_message(&format!("t/L{level}"), &text).expect("parses");
    }
    assert!(r.schema("t/L3").is_ok());
    too_large(&r, "t/L11", "number of fields with all nested ones");
    // Many empty elements take no bytes; they are counted all the same.
    r.add_message("t/E", "std_msgs/Empty[16777216] e")
        .expect("parses");
    too_large(&r, "t/E", "number of fields with all nested ones");
    r.add_message("t/F", "float64[16777216] e").expect("parses");
    too_large(&r, "t/F", "fixed size in bytes");
    r.add_message("t/N0", "int8 x").expect("parses");
    for level in 1..40 {
        r.add_message(&format!("t/N{level}"), &format!("N{} x", level - 1))
            .expect("parses");
    }
    assert!(r.schema("t/N31").is_ok());
    too_large(&r, "t/N39", "nesting");

    let long = "# x\n".repeat(1 << 18);
    assert!(r.add_message("t/T", &long).is_ok());
    let longer = format!("{long}#");
    assert!(matches!(
        r.add_message("t/T", &longer),
        Err(DefinitionError::TooLarge { .. })
    ));
    let wide: String = (0..5000).map(|i| format!("int8 f{i}\n")).collect();
    assert!(matches!(
        r.add_message("t/T", &wide),
        Err(DefinitionError::TooLarge { value: 4097, .. })
    ));
}

#[test]
fn services_and_actions() {
    let mut r = registry();
    let error = |e: Result<(), DefinitionError>| e.expect_err("malformed").to_string();
    let mut ros2 = Registry::new(Flavour::Ros2);
    assert_eq!(
        error(ros2.add_service("t/S", "int8 a\n")),
        "t/S:2:1: expected 1 lines `---`, found 0"
    );
    assert_eq!(
        error(ros2.add_service("t/S", "---\n---\n")),
        "t/S:2:1: more than 1 lines `---`"
    );
    assert_eq!(
        error(r.add_service("t/S", "int8 a\n---\nint8 b\nint8\n")),
        "t/S:4:5: expected a name after the type"
    );
    r.add_service("t/S", "uint8 K=1\nint8 a\n---\nstd_msgs/String b\n")
        .expect("parses");
    let s = r.service("t/srv/S").expect("compiles");
    assert!(s.definition().contains("---\nstd_msgs/String b\n"));
    assert!(s.definition().ends_with("MSG: std_msgs/String\nstring data"));
    assert_eq!(s.request().message_type().constants()[0].value, "1");

    // The messages of an action equal those that ROS 1's generator wrote for move_base_msgs.
    let mut own = registry();
    let text = "geometry_msgs/PoseStamped target_pose\n---\n---\ngeometry_msgs/PoseStamped base_position\n";
    own.add_action("move_base_msgs/MoveBase", text).expect("parses");
    for name in [
        "Action",
        "ActionGoal",
        "ActionResult",
        "ActionFeedback",
        "Goal",
        "Result",
        "Feedback",
    ] {
        let name = format!("move_base_msgs/MoveBase{name}");
        let (own, shipped) = (own.schema(&name).expect("made"), r.schema(&name).expect("ships"));
        assert_eq!(own.md5_hex(), shipped.md5_hex(), "{name}");
    }
}

#[test]
fn parts_of_well_known_types() {
    let r = registry();
    let parts = |name: &str| -> Vec<String> {
        r.schema(name)
            .expect("known")
            .parts()
            .iter()
            .map(|p| p.to_string())
            .collect()
    };
    assert_eq!(parts("sensor_msgs/Image"), ["data[]: uint8 of 1 bytes"]);
    assert_eq!(
        parts("sensor_msgs/LaserScan"),
        [
            "ranges[]: float32 of 4 bytes",
            "intensities[]: float32 of 4 bytes"
        ]
    );
    assert_eq!(
        parts("visualization_msgs/MarkerArray"),
        [
            "markers[].points[]: geometry_msgs/Point of 24 bytes",
            "markers[].colors[]: std_msgs/ColorRGBA of 16 bytes"
        ]
    );
    assert!(parts("tf2_msgs/TFMessage").is_empty());
}
