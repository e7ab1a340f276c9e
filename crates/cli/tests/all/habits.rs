//! What users of ROS's commands type, and what a mistyped name gets.

use crate::support::{Done, Host, Running, eventually};
use serde_json::Value;

const STRING: &str = "std_msgs/msg/String";

/// Publishes text on `topic` until it is dropped.
fn talker(host: &Host, topic: &str) -> Running {
    let running = host.start(&[
        "topic", "pub", topic, STRING, "data: hi", "-r", "50", "--wait", "0",
    ]);
    eventually("it is there", || {
        (host.run(&["topic", "type", topic]).code == 0).then_some(())
    });
    running
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

#[test]
fn misspelt_names_get_a_suggestion() {
    let host = Host::new();
    let _talker = talker(&host, "/chatter");
    let suggested = |args: &[&str], name: &str| {
        let done = host.run(args);
        let said = done.stderr.contains(&format!("(did you mean {name}?)"));
        assert!(said && done.code <= 2, "{args:?}: {done:?}");
    };
    for args in [
        &["topic", "type", "/chater"][..],
        &["topic", "info", "chater"],
        &["topic", "echo", "/chater", "--wait", "0"],
        &["topic", "hz", "/chater", "--wait", "0"],
        &["topic", "delay", "/ns/chatter", "--wait", "0"],
    ] {
        suggested(args, "/chatter");
    }
    suggested(&["topic", "find", "std_msgs/msg/Strng"], STRING);
    suggested(&["node", "info", "/topc"], "/topic");
    suggested(&["interface", "show", "std_msg/msg/String"], "std_msgs/String");
    suggested(&["interface", "package", "std_msg"], "std_msgs");
    suggested(&["msg", "show", "LaserScan"], "sensor_msgs/LaserScan");
    let wrong = [
        "topic",
        "pub",
        "/cmd_vel",
        "geometry_msgs/msg/Twist",
        "{liner: {x: 1}}",
    ];
    suggested(&wrong, "linear");
    let plain = host.run(&["topic", "type", "/odom"]);
    assert!(!plain.stderr.contains("did you mean"), "{plain:?}");
}

#[test]
fn unreceived_messages_are_reported_and_exit_with_3() {
    let host = Host::new();
    let alone = host.run(&["topic", "pub", "/chater", STRING, "data: hi", "--wait", "0"]);
    assert_eq!(alone.code, 3, "{alone:?}");
    assert!(
        alone
            .stderr
            .contains("published 1 message, which nobody received: no subscriber to /chater"),
        "{alone:?}"
    );
    let echo = host.start(&["topic", "echo", "/chatter", STRING, "-n", "1"]);
    eventually("it subscribes", || {
        (host.run(&["topic", "type", "/chatter"]).code == 0).then_some(())
    });
    let near = host.run(&["topic", "pub", "/chater", STRING, "data: hi", "--wait", "0"]);
    assert!(
        near.code == 3 && near.stderr.contains("(did you mean /chatter?)"),
        "{near:?}"
    );
    let other = [
        "topic",
        "pub",
        "/chatter",
        "std_msgs/msg/Int8",
        "data: 1",
        "--wait",
        "0",
    ];
    let other = host.run(&other);
    assert!(
        other.code == 3
            && other
                .stderr
                .contains("the subscribers of /chatter take std_msgs/String"),
        "{other:?}"
    );
    let heard = host.run(&["topic", "pub", "/chatter", STRING, "data: hi", "--wait", "60"]);
    assert_eq!((heard.code, heard.stderr.as_str()), (0, ""), "{heard:?}");
    assert_eq!(echo.wait().code, 0);
}

#[test]
fn a_publisher_sums_up_at_ctrl_c() {
    let host = Host::new();
    let talker = talker(&host, "/chatter");
    let echo = host.run(&["topic", "echo", "/chatter", "--once"]);
    assert_eq!(echo.code, 0, "{echo:?}");
    talker.interrupt();
    let done = talker.wait();
    assert!(
        done.code == 0
            && done.stderr.contains("published ")
            && done.stderr.contains(" of them without a subscriber"),
        "{done:?}"
    );
}

#[test]
fn a_recording_takes_topics_after_its_file() {
    let host = Host::new();
    let _talkers = (talker(&host, "/chatter"), talker(&host, "/other"));
    let long = ["--duration", "1", "--json"];
    let record = |args: &[&str]| host.run(&[&["record"], args, &long[..]].concat());
    let info = |path: &str| {
        let all = json(&host.run(&["info", path, "--json"]));
        let topics = all["topics"].as_array().expect("topics").clone();
        let names = topics
            .iter()
            .map(|t| t["topic"].as_str().expect("a name").to_owned());
        let messages = all["messages"].as_u64().expect("a number");
        assert!(messages > 0 && all["start_s"].as_f64() > Some(1.6e9), "{all}");
        names.collect::<Vec<_>>()
    };
    for (args, path, topics) in [
        (&["a.mcap", "/chatter"][..], "a.mcap", &["/chatter"][..]),
        (
            &["b.mcap", "chatter", "--topics", "/other"],
            "b.mcap",
            &["/chatter", "/other"],
        ),
        (&["-o", "c.mcap", "/other"], "c.mcap", &["/other"]),
        (&["-a", "-o", "folder"], "folder", &["/chatter", "/other"]),
    ] {
        let done = record(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        assert_eq!(info(path), topics, "{args:?}");
    }
    assert!(host.path("c.mcap").is_file() && host.path("folder").is_dir());

    let topic = host.run(&["record", "/chatter", "--duration", "1"]);
    assert!(
        topic.code == 2 && topic.stderr.contains("ropewalk record run.mcap /chatter"),
        "{topic:?}"
    );
    let near = host.run(&["record", "d.mcap", "/chater", "--duration", "0.1"]);
    assert!(near.stderr.contains("(did you mean /chatter?)"), "{near:?}");

    let text = host.run(&["bag", "info", "a.mcap"]);
    assert!(
        text.stdout.contains("/chatter") && text.stdout.contains(" UTC\n"),
        "{text:?}"
    );
    let play = host.run(&[
        "bag", "play", "a.mcap", "-r", "20", "--topics", "/chatter", "--json",
    ]);
    assert!(
        play.code == 0 && json(&play)["messages"].as_u64() > Some(0),
        "{play:?}"
    );
}

#[test]
fn lists_are_json_in_every_command() {
    let host = Host::new();
    let _talker = talker(&host, "/chatter");
    let of = |args: &[&str]| json(&host.run(&[args, &["--json"]].concat()));
    assert_eq!(
        of(&["topic", "type", "/chatter"])["types"],
        serde_json::json!([STRING])
    );
    assert_eq!(
        of(&["topic", "find", STRING])["topics"],
        serde_json::json!(["/chatter"])
    );
    assert_eq!(
        of(&["service", "find", "std_srvs/srv/Empty"])["services"],
        serde_json::json!([])
    );
    assert_eq!(
        of(&["action", "find", "a/action/B"])["actions"],
        serde_json::json!([])
    );
    let has = |list: &Value, name: &str| list.as_array().is_some_and(|l| l.iter().any(|n| n == name));
    assert!(has(&of(&["interface", "packages"])["packages"], "std_msgs"));
    assert!(has(&of(&["interface", "package", "std_msgs"])["types"], STRING));
    assert!(has(&of(&["msg", "list"])["messages"], "std_msgs/String"));
}

#[test]
fn commands_of_ros_are_known_or_answered_with_what_to_type() {
    let host = Host::new();
    let _talker = talker(&host, "/chatter");
    let list = host.run(&["rostopic", "list"]);
    assert!(list.code == 0 && list.stdout.contains("/chatter"), "{list:?}");
    let filter = host.run(&["topic", "echo", "/chatter", "--filter", "m.data == 'hi'"]);
    assert!(
        filter.code == 2 && filter.stderr.contains("jq") && !filter.stderr.contains("--field"),
        "{filter:?}"
    );
    let two = host.run(&["topic", "echo", "/chatter", "/other"]);
    assert!(two.code == 2 && two.stderr.contains("a second topic"), "{two:?}");
    let format = host.run(&["topic", "list", "-o", "yaml"]);
    assert!(format.code == 2 && format.stderr.contains("--json"), "{format:?}");
    for words in [&["-o", "json"][..], &["--output", "json"], &["--json"]] {
        let list = json(&host.run(&[&["topic", "list"], words].concat()));
        assert!(list["topics"].is_array(), "{words:?}: {list}");
    }
    let written = host.run(&["topic", "list", "--json=list.json"]);
    assert!(written.code == 0 && written.stdout.is_empty(), "{written:?}");
    let list = std::fs::read_to_string(host.path("list.json")).expect("was written");
    assert!(list.contains("/chatter"), "{list}");
}

#[test]
fn who_waits_for_a_publisher_says_so() {
    let host = Host::new();
    let _talker = talker(&host, "/chatter");
    let none = host.run(&["topic", "echo", "/chater", "--wait", "5.5"]);
    assert!(
        none.code == 2
            && none
                .stderr
                .contains("nobody publishes /chater yet (did you mean /chatter?): waiting"),
        "{none:?}"
    );
    // With a type there is nothing to wait for before subscribing.
    let typed = host.run(&["topic", "echo", "/nothing", STRING, "--timeout", "6"]);
    assert!(
        typed.stderr.contains("still waiting: nobody published /nothing"),
        "{typed:?}"
    );
    let unserved = host.run(&["service", "call", "/brake", "{}", "--timeout", "5.5"]);
    assert!(
        unserved.stderr.contains("still waiting for a server of /brake"),
        "{unserved:?}"
    );
    let heard = host.run(&["topic", "echo", "/chatter", "--timeout", "6"]);
    assert!(!heard.stderr.contains("nobody"), "{heard:?}");
}
