//! Quality of service in the terms of ROS 2, and options of `topic echo`, `delay` and `pub`.

use crate::support::Host;
use ropewalk::{BusConfig, Flavour, Node, Registry, SubscriberOptions};
use std::time::Duration;

#[test]
fn transient_local_messages_reach_late_subscribers() {
    let host = Host::new();
    let publish = host.start(&[
        "topic",
        "pub",
        "/map",
        "std_msgs/msg/String",
        "data: kept",
        "-1",
        "--wait",
        "0",
        "--keep-alive",
        "100",
        "--qos-durability",
        "transient_local",
        "--qos-reliability",
        "best_effort",
        "--qos-depth",
        "3",
    ]);
    let echo = host.run(&[
        "topic",
        "echo",
        "/map",
        "--once",
        "--qos-durability",
        "transient_local",
        "--wait",
        "60",
    ]);
    assert_eq!(
        (echo.code, &*echo.stdout),
        (0, "data: \"kept\"\n---\n"),
        "{echo:?}"
    );
    // A subscriber that asks for no history gets none, and prints what ROS 2 would not match.
    let late = host.run(&[
        "topic",
        "echo",
        "/map",
        "--once",
        "--qos-profile",
        "default",
        "--timeout",
        "1",
        "--wait",
        "60",
    ]);
    assert_eq!(late.stdout, "", "{late:?}");
    assert!(late.stderr.contains("offers best_effort"), "{late:?}");
    let info = host.run(&["topic", "info", "/map", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info.stdout).expect("JSON");
    let publisher = &info["topics"][0]["publishers"][0];
    assert_eq!(
        (
            &publisher["history"],
            &publisher["depth"],
            &publisher["reliability"]
        ),
        (&3.into(), &3.into(), &"best effort".into())
    );
    publish.interrupt();
    assert_eq!(publish.wait().code, 0);
}

#[test]
fn qos_beyond_the_bus_is_refused_with_an_explanation() {
    let host = Host::new();
    for (option, value, says) in [
        ("--qos-liveliness", "manual_by_topic", "rmw_ropewalk"),
        ("--qos-depth", "5000", "4096"),
        ("--qos-durability", "persistent", "transient_local"),
        ("--qos-profile", "sensors", "sensor_data"),
    ] {
        let refused = host.run(&[
            "topic",
            "pub",
            "/x",
            "std_msgs/msg/String",
            option,
            value,
            "--wait",
            "0",
        ]);
        assert!(refused.code == 2 && refused.stderr.contains(says), "{refused:?}");
        let refused = host.run(&["topic", "echo", "/x", option, value, "--wait", "0"]);
        assert!(refused.code == 2 && refused.stderr.contains(says), "{refused:?}");
    }
}

#[test]
fn echo_waits_for_a_publisher_and_shortens_long_values() {
    let host = Host::new();
    let echo = |more: &[&str]| {
        let args = ["topic", "echo", "/scan", "sensor_msgs/msg/LaserScan", "--once"];
        host.start(&[&args[..], more].concat())
    };
    let publish = |rate: &str| {
        let scan = "{header: {stamp: now, frame_id: 'a,b'}, ranges: [1, 2.5], range_max: 9}";
        let args = [
            "topic",
            "pub",
            "/scan",
            "sensor_msgs/msg/LaserScan",
            scan,
            "-r",
            rate,
            "-t",
            "400",
            "-w",
            "1",
        ];
        host.start(&args)
    };
    let waiting = [
        echo(&["--no-arr", "--no-str"]),
        echo(&["--csv", "--field", "header.frame_id"]),
        echo(&["--csv"]),
        echo(&["--json", "--no-arr"]),
    ];
    let publishing = publish("50");
    let [yaml, field, csv, json] = waiting.map(|echo| echo.wait().stdout);
    assert!(
        yaml.contains("frame_id: '<string length: 3>'")
            && yaml.contains("ranges: '<array type: float32[2]>'"),
        "{yaml}"
    );
    assert_eq!(field, "\"a,b\"\n");
    assert!(
        csv.contains(",\"a,b\",") && csv.trim_end().ends_with(",9.0,1.0,2.5"),
        "{csv}"
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["ranges"], "<array type: float32[2]>");
    let delay = host.run(&[
        "topic",
        "delay",
        "/scan",
        "--duration",
        "2.5",
        "--json",
        "--wait",
        "60",
    ]);
    let last: serde_json::Value =
        serde_json::from_str(delay.stdout.lines().last().expect("a line")).expect("JSON");
    assert!(
        last["delay_ms"]["mean"]
            .as_f64()
            .is_some_and(|ms| ms > 0.0 && ms < 60_000.0),
        "{delay:?}"
    );
    publishing.interrupt();
    assert_eq!(publishing.wait().code, 0);
}

#[test]
fn pub_waits_for_as_many_subscribers_as_are_asked_for() {
    let host = Host::new();
    let node = Node::with_config("tester", BusConfig::new(host.path("bus"))).expect("a node");
    let string = Registry::new(Flavour::Ros2)
        .schema("std_msgs/String")
        .expect("a type");
    let subscriber = || {
        node.dynamic_subscriber_with("/chatter", &string, SubscriberOptions::default().with_depth(64))
            .expect("subscribes")
    };
    let first = subscriber();
    let publish = host.start(&[
        "topic",
        "pub",
        "/chatter",
        "std_msgs/msg/String",
        "data: a",
        "-t",
        "3",
        "-r",
        "100",
        "-w",
        "2",
    ]);
    first.wait_for_publishers(1, Duration::from_secs(60));
    assert!(
        first
            .take_timeout(Duration::from_millis(300))
            .expect("takes")
            .is_none(),
        "it waits for another"
    );
    let second = subscriber();
    assert_eq!(publish.wait().code, 0);
    for subscriber in [&first, &second] {
        let count = std::iter::from_fn(|| subscriber.take().expect("takes")).count();
        assert_eq!(count, 3);
    }
}
