//! ROS 1 definitions at the edges of the grammar: accepted exactly as genmsg accepts them, with the same MD5 sums.
//!
//! genmsg 0.6.0 produced the table (`load_msg_from_string`, `load_depends`, `compute_md5`);
//! `tests/schema/crosscheck.py` compares random definitions.

use schema::{Flavour, Registry};

/// Definition, and its sum if genmsg accepts it.
const TABLE: &[(&str, Option<&str>)] = &[
    (
        "uint8 A=1\nuint8 A=2\nuint8 x\n",
        Some("e25a3591d32a47cdb97b4674439d0983"),
    ),
    ("uint8 x\nuint8 x=3\n", Some("1a8f957d6278e6bec904c1895cc6e827")),
    ("int32 a\nint32 a\n", None),
    ("int32\tx\n", None),
    ("int32 \tx\n", Some("19aac5e823802d733295ea3ec20e6350")),
    ("int32\tX=1\n", None),
    ("int32 X\t=\t5\n", Some("acd6fbebdce2152560885f592dd664e0")),
    ("  string X=indented\n", Some("b063e898790977ad5f25dc42026e4830")),
    ("\tstring X=tabbed\n", Some("c3bc41e0c085a4ab96779ddacd0d79b8")),
    ("string X=a # b = c\n", Some("f31eb749495a6d7ff094a9c93049dc27")),
    ("string X=\n", Some("0a2b5f9d0d9338ef96d50efb531f2686")),
    (
        "string  X =  two  words \n",
        Some("263e26be2a0b9aec42e5b5de280b6e03"),
    ),
    ("string X#=1\n", Some("29285ce4b49bc714c552ba45f2551489")),
    ("bool B=True\n", Some("0dc816de291e1cd2165c85424d3ce16b")),
    ("bool B=true\n", None),
    ("bool B=1\n", Some("1395a3e9c8f3ea64d05d15cdd33076d6")),
    ("bool B=0x1\n", Some("60994f9dc8e05014200c6e6b0b42c591")),
    ("bool B=01\n", None),
    ("byte B=200\n", None),
    ("byte B=-128\n", Some("2a7d85f71db53a7811698330a5fb91d0")),
    ("char C=255\n", Some("5872176396a0c4fd4bd1b86ab921a086")),
    ("char C=-1\n", None),
    ("uint16 N=1_000\n", Some("8e1a7e8f40d7c0420dff4c145941f5fa")),
    ("int32 N=0x10\n", None),
    ("int32 N=+5\n", Some("541b2413f4173b6f6cf33cbff9cbdd1c")),
    ("int32 N=007\n", Some("cf3bc4db52530628b805797a0f5e9835")),
    ("int32 N=1=2\n", None),
    ("int32 N=\n", None),
    ("float32 F=1e3\n", Some("ba311942924d8b00dc30f50bde79f42d")),
    ("float64 F=inf\n", Some("f491e4e76096444951f6f2b34138fccc")),
    ("float32 F=1_0.5\n", Some("7979d0dee69c854b8e7cdff85b950771")),
    ("float32 F=abc\n", None),
    ("int32[03] x\n", Some("409f59708e8ab6c781a7ce1e327e74a5")),
    ("int32[3] x\n", Some("54ef8264579f6c94ad00e07335627ad5")),
    ("int32[0] x\n", Some("6ee02a7949c16011867642bbf01dbb77")),
    ("int32[-1] x\n", None),
    ("int32[][] x\n", None),
    ("int32[ 3] x\n", None),
    ("int32 [3] x\n", None),
    ("int32[3]x y\n", None),
    ("_pkg/T x\n", None),
    ("int32 _x\n", None),
    ("int32 9x\n", None),
    ("int32 x y\n", None),
    ("int32\n", None),
    ("int32 x\u{a0}\n", Some("19aac5e823802d733295ea3ec20e6350")),
    ("int32 x\r\n", Some("19aac5e823802d733295ea3ec20e6350")),
    ("int32 x\u{c}\n", Some("19aac5e823802d733295ea3ec20e6350")),
    ("int32 9X=1\n", Some("c71edfaf8869366b546874c4f4e5219c")),
    ("int32 A B=1\n", Some("4ed5ab8fec5f7cfffd8810c8414c47db")),
    ("int32 =1\n", Some("b9fa6146a0767b2f67afc5ac863f449b")),
    ("Header h\n", Some("2fb230b1c292dc29f6aeb6a8ee50c6d0")),
    ("Header[] h\n", None),
    ("Header[2] h\n", None),
    ("time T=1\n", None),
    ("std_msgs/String s\n", Some("9a786cce468f1dfe6613bd1420495ccc")),
    ("std_msgs//String s\n", None),
    ("std_msgs/String/ s\n", None),
    ("/std_msgs/String s\n", None),
    (
        "string[] s # x\nint8 K=-128#y\n",
        Some("d937db4d3f2b0b622a4955cf3d07f34e"),
    ),
    ("int32 x #= 5\n", Some("19aac5e823802d733295ea3ec20e6350")),
    ("# int32 x\n", Some("d41d8cd98f00b204e9800998ecf8427e")),
    ("", Some("d41d8cd98f00b204e9800998ecf8427e")),
    ("\n\n", Some("d41d8cd98f00b204e9800998ecf8427e")),
    ("int32 x = # 5\n", None),
    ("string<=5 s\n", None),
    ("int32 x 5\n", None),
    ("int8 K=128\n", None),
    (
        "uint64 K=18446744073709551615\n",
        Some("ef414dd3f29ecc0098596bb78c07a761"),
    ),
    ("uint64 K=-1\n", None),
    (
        "duration d\ntime[2] t\n",
        Some("132b78d38b6cc0a9d53bc82f7cff1fb3"),
    ),
];

#[test]
fn definitions_are_read_as_genmsg_reads_them() {
    for (text, sum) in TABLE {
        let mut registry = Registry::new(Flavour::Ros1);
        let read = registry
            .add_message("t/T", text)
            .and_then(|()| registry.schema("t/T"));
        let ours = read.as_ref().map(|schema| schema.md5_hex());
        assert_eq!(ours.as_deref().ok(), *sum, "{text:?}: {ours:?}");
    }
}

#[test]
fn of_constants_programs_see_the_last_of_each_name_and_none_without_a_usable_one() {
    let text = "uint8 A=1\nuint8 B=2\nuint8 A=3\nuint8 9X=1\nint32 x\nint32 x=4\nuint16 N=1_000\nbool T=0x2";
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_message("t/T", text).expect("parses");
    let schema = registry.schema("t/T").expect("compiles");
    let constants: Vec<_> = (schema.message_type().constants().iter())
        .map(|c| (c.name.as_str(), c.value.as_str()))
        .collect();
    assert_eq!(constants, [("B", "2"), ("A", "3"), ("N", "1000"), ("T", "True")]);
}

#[test]
fn a_header_in_brackets_is_the_packages_own() {
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_message("t/Header", "int8 own").expect("parses");
    registry
        .add_message("t/T", "Header one\nHeader[] many")
        .expect("parses");
    let shown = registry.schema("t/T").expect("compiles").canonical_text();
    assert!(
        shown.contains("std_msgs/Header one") && shown.contains("t/Header[] many"),
        "{shown}"
    );
}

#[test]
fn a_service_may_lack_its_line_or_have_two() {
    let mut registry = Registry::new(Flavour::Ros1);
    let mut lengths = |text: &str| {
        registry.add_service("t/S", text).expect("parses");
        let service = registry.service("t/S").expect("compiles");
        [service.request(), service.response()].map(|part| part.message_type().fields().len())
    };
    assert_eq!(lengths("int8 a\n"), [1, 0]);
    assert_eq!(lengths("---\nint8 a\n---\nint8 b\n"), [0, 2]);
}

/// rosbag2 records the events of a service with the text of the service itself.
#[test]
fn the_events_of_a_service_are_a_type_made_of_its_text() {
    let text = "int64 a\nt/N n\n---\nint64 sum\n".to_owned() + &"=".repeat(80) + "\nMSG: t/N\nint8 x\n";
    let mut registry = Registry::new(Flavour::Ros2);
    registry.add_embedded("t/srv/Add_Event", &text).expect("parses");
    let schema = registry.schema("t/srv/Add_Event").expect("compiles");
    assert_eq!(schema.ros2_name(), "t/srv/Add_Event");
    let fields: Vec<_> = (schema.message_type().fields().iter())
        .map(|f| format!("{} {}", f.type_text(), f.name()))
        .collect();
    let expected = [
        "service_msgs/ServiceEventInfo info",
        "t/Add_Request[<=1] request",
        "t/Add_Response[<=1] response",
    ];
    assert_eq!(fields, expected);
    // Its embedded definition parses again.
    let mut again = Registry::new(Flavour::Ros2);
    again
        .add_embedded("t/srv/Add_Event", &schema.definition())
        .expect("parses");
    let again = again.schema("t/srv/Add_Event").expect("compiles");
    assert_eq!(again.canonical_text(), schema.canonical_text());
    assert_eq!(again.rihs01(), schema.rihs01());
}

#[test]
fn a_definition_with_sections_that_is_no_services_event_is_refused() {
    let mut registry = Registry::new(Flavour::Ros2);
    let error = registry
        .add_embedded("t/msg/Add", "int8 a\n---\nint8 b\n")
        .expect_err("no message");
    assert!(error.to_string().contains(":2:1: expected a type"), "{error}");
}

/// Hashes from Kilted's `test_msgs`.
#[test]
fn the_types_of_an_action_are_named_by_its_folder() {
    let mut registry = Registry::new(Flavour::Ros2);
    let id = "unique_identifier_msgs/UUID goal_id";
    let goal = format!(
        "{id}\ntest_msgs/action/Fibonacci_Goal goal\n---\nbool accepted\nbuiltin_interfaces/Time stamp\n"
    );
    let feedback = format!("{id}\ntest_msgs/action/Fibonacci_Feedback feedback\n");
    for (name, text) in [
        ("Fibonacci_Goal", "int32 order\n"),
        ("Fibonacci_Feedback", "int32[] sequence\n"),
        ("Fibonacci_FeedbackMessage", &feedback),
    ] {
        let name = format!("test_msgs/action/{name}");
        registry.add_message(&name, text).expect("parses");
    }
    registry
        .add_service("test_msgs/action/Fibonacci_SendGoal", &goal)
        .expect("parses");

    let service = registry
        .service("test_msgs/Fibonacci_SendGoal")
        .expect("compiles");
    assert_eq!(
        service.request().ros2_name(),
        "test_msgs/action/Fibonacci_SendGoal_Request"
    );
    assert_eq!(
        service.rihs01(),
        "RIHS01_d807633803e38e164276573cd97e9fbd71e109c290bbf4cc312a0a1c9da7bbd9"
    );
    assert_eq!(
        service.request().rihs01(),
        "RIHS01_dfe75c73dc2c090cbc8fd8c45039bfa279d16aa6aadd348f812c6adad26e669e"
    );
    let message = registry
        .schema("test_msgs/action/Fibonacci_FeedbackMessage")
        .expect("compiles");
    let hash = "RIHS01_37487bae8cea358366b97003c1ef1ca7ce7c08df36f9e8cca496624226aee64e";
    assert_eq!(message.rihs01(), hash);
    // Its embedded definition parses again, though the separators do not contain folders.
    let mut again = Registry::new(Flavour::Ros2);
    let name = message.ros2_name();
    again.add_embedded(&name, &message.definition()).expect("parses");
    let again = again.schema(&name).expect("compiles");
    assert_eq!((again.ros2_name(), again.rihs01()), (name, hash.to_owned()));
}

/// Hashes from Kilted's `test_msgs`, for the action as one text, and in a folder of definitions.
#[test]
fn shared_action_types_are_among_the_standard_definitions() {
    let registry = Registry::new(Flavour::Ros2);
    // As rosidl computes it.
    let cancel = registry.service("action_msgs/CancelGoal").unwrap();
    let hash = "RIHS01_573d8b0a534451d7bc2ac8c5ffde8ac14b8593b7001175d0cd6516dcbeb8689a";
    assert_eq!(cancel.rihs01(), hash);
    assert!(registry.schema("action_msgs/GoalStatusArray").is_ok());
}

#[test]
fn an_action_makes_its_messages_and_services() {
    let text = "int32 order\n---\nint32[] sequence\n---\nint32[] sequence\n";
    let mut added = Registry::new(Flavour::Ros2);
    added
        .add_action("test_msgs/action/Fibonacci", text)
        .expect("parses");
    let folder = tempfile::tempdir().expect("a folder");
    let actions = folder.path().join("test_msgs/action");
    std::fs::create_dir_all(&actions).expect("a folder");
    std::fs::write(actions.join("Fibonacci.action"), text).expect("a file");
    let mut found = Registry::new(Flavour::Ros2);
    found.add_folder(folder.path());
    for registry in [added, found] {
        let send = registry
            .service("test_msgs/action/Fibonacci_SendGoal")
            .expect("compiles");
        assert_eq!(
            send.rihs01(),
            "RIHS01_d807633803e38e164276573cd97e9fbd71e109c290bbf4cc312a0a1c9da7bbd9"
        );
        let result = registry
            .service("test_msgs/action/Fibonacci_GetResult")
            .expect("compiles");
        assert_eq!(
            result.response().ros2_name(),
            "test_msgs/action/Fibonacci_GetResult_Response"
        );
        let feedback = registry
            .schema("test_msgs/action/Fibonacci_FeedbackMessage")
            .expect("compiles");
        assert_eq!(
            feedback.rihs01(),
            "RIHS01_37487bae8cea358366b97003c1ef1ca7ce7c08df36f9e8cca496624226aee64e"
        );
        let unknown = registry.service("test_msgs/action/Fibonacci_Other");
        assert!(unknown.is_err() && registry.schema("test_msgs/action/Other_Goal").is_err());
    }
}
