//! Plays, inspects, records and publishes topics.

use crate::support::Host;
use recording::Recording;

#[test]
fn a_played_recording_can_be_recorded_unchanged() {
    let host = Host::new();
    let (original, copy) = (host.path("original.mcap"), host.path("copy.mcap"));
    recording::simulation::write(&original, 1.0, 7, &recording::write::Options::default()).expect("writes");
    let copy_name = copy.display().to_string();
    let record = host.start(&["record", &copy_name, "--duration", "60"]);
    // The recorder finds topics within half a second; `play` waits for it.
    let played = host.run(&["play", "original.mcap", "--wait", "30", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&played.stdout).expect("JSON");
    assert_eq!(
        (played.code, &result["topics"], &result["drops"]),
        (0, &3.into(), &serde_json::json!({}))
    );
    std::thread::sleep(std::time::Duration::from_millis(500));
    record.interrupt();
    let recorded = record.wait();
    assert_eq!(recorded.code, 0, "{recorded:?}");
    assert!(recorded.stdout.contains("on 3 topics"), "{recorded:?}");

    let read = |file: &std::path::Path| {
        let recording = Recording::open(file).expect("opens");
        let mut messages: Vec<_> = (recording.messages())
            .map(|m| m.expect("reads"))
            .map(|m| (recording.channel(m.channel).topic.clone(), m.data))
            .collect();
        // The recorder takes topic by topic, which keeps the order within each.
        messages.sort_by(|a, b| a.0.cmp(&b.0));
        messages
    };
    assert!(read(&original) == read(&copy), "{recorded:?}");
    let channels = |file: &std::path::Path| {
        let recording = Recording::open(file).expect("opens");
        let mut all: Vec<_> = (recording.channels().iter())
            .map(|c| (c.topic.clone(), c.type_name.clone(), c.md5.clone()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(channels(&original), channels(&copy));
    assert!(host.left_behind().is_empty());

    let again = host.run(&["record", &copy_name]);
    assert_eq!(again.code, 2, "an existing file is kept: {again:?}");
}

#[test]
fn echo_shows_what_pub_publishes() {
    let host = Host::new();
    let message = "{linear: {x: 0.5, y: -1}, angular: {z: 0.25}}";
    let publish = host.start(&[
        "topic",
        "pub",
        "/cmd_vel",
        "geometry_msgs/Twist",
        message,
        "--rate",
        "50",
    ]);
    let echo = host.run(&["topic", "echo", "/cmd_vel", "-n", "1"]);
    assert_eq!(echo.code, 0, "{echo:?}");
    assert!(
        echo.stdout.contains("x: 0.5") && echo.stdout.ends_with("---\n"),
        "{echo:?}"
    );
    let json = host.run(&[
        "topic", "echo", "cmd_vel", "-n", "2", "--json", "--field", "linear",
    ]);
    let lines: Vec<serde_json::Value> = json
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    assert_eq!(
        lines,
        vec![serde_json::json!({ "x": 0.5, "y": -1.0, "z": 0.0 }); 2]
    );

    let list = host.run(&["topic", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list["topics"][0]["topic"], "/cmd_vel");
    assert_eq!(list["topics"][0]["type"], "geometry_msgs/Twist");
    assert_eq!(list["topics"][0]["md5"], "9f195f881246fdfa2798d1d3eebca84a");
    assert_eq!(list["topics"][0]["publishers"].as_array().map(Vec::len), Some(1));

    for (command, field) in [("hz", "rate_hz"), ("bw", "mbit_s")] {
        let measured = host.run(&["topic", command, "/cmd_vel", "--duration", "2.5", "--json"]);
        let last = measured.stdout.lines().last().expect("a line");
        let last: serde_json::Value = serde_json::from_str(last).expect("JSON");
        assert!(last[field].as_f64().is_some_and(|v| v > 0.0), "{measured:?}");
        assert_eq!(last["message_bytes"]["max"], 48);
    }
    publish.interrupt();
    let published = publish.wait();
    assert_eq!(published.code, 0, "{published:?}");
    let empty = host.run(&["topic", "list"]);
    assert!(
        empty.stdout.is_empty() && empty.stderr.contains("no topics"),
        "{empty:?}"
    );
    assert!(host.left_behind().is_empty());
}

#[test]
fn pub_takes_what_echo_prints() {
    let host = Host::new();
    let echo = |more: &'static [&'static str]| {
        let options = ["topic", "echo", "/pose", "-n", "2", "--wait", "60"];
        host.start(&[&options[..], more].concat())
    };
    let publish = |more: &[&str]| {
        let options = [
            "topic",
            "pub",
            "/pose",
            "geometry_msgs/PoseStamped",
            "--wait",
            "60",
        ];
        let done = host.run(&[&options[..], more].concat());
        assert_eq!(done.code, 0, "{done:?}");
    };
    let printed = echo(&["--full"]);
    publish(&["{header: {seq: 7, frame_id: map}, pose: {position: {x: 0.5}}}\n---\n{header: {stamp: 1.5}}"]);
    let printed = printed.wait().stdout;
    assert!(
        printed.contains("x: 0.5") && printed.contains("secs: 1"),
        "{printed}"
    );
    std::fs::write(host.path("poses.yaml"), &printed).expect("writes");
    let again = echo(&["--full"]);
    publish(&["--file", "poses.yaml"]);
    assert_eq!(again.wait().stdout, printed);

    // Lines of JSON, from standard input.
    let json = echo(&["--json"]);
    publish(&["-f", "poses.yaml"]);
    let json = json.wait().stdout;
    let again = echo(&["--json"]);
    let mut command = host.command(&[
        "topic",
        "pub",
        "/pose",
        "geometry_msgs/PoseStamped",
        "--wait",
        "60",
        "-f",
        "-",
    ]);
    std::fs::write(host.path("poses.json"), &json).expect("writes");
    command.stdin(std::fs::File::open(host.path("poses.json")).expect("opens"));
    assert_eq!(crate::support::Running::spawn(command).wait().code, 0);
    assert_eq!(again.wait().stdout, json);

    let stamps = host.start(&[
        "topic",
        "echo",
        "/pose",
        "-n",
        "2",
        "--json",
        "--field",
        "header.stamp",
        "--wait",
        "60",
    ]);
    publish(&["{header: auto}", "--rate", "20", "-n", "20"]);
    let stamps = stamps.wait();
    let times: Vec<f64> = (stamps.stdout.lines())
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|stamp| {
            stamp["secs"].as_f64().expect("a number") + stamp["nsecs"].as_f64().expect("a number") * 1e-9
        })
        .collect();
    assert!(
        times[0] > 1.6e9 && times[1] > times[0],
        "a new one for each message: {stamps:?}"
    );
}

#[test]
fn invalid_messages_are_not_published() {
    let host = Host::new();
    let refused = |text: &str, says: &str| {
        std::fs::write(host.path("messages.yaml"), text).expect("writes");
        let done = host.run(&[
            "topic",
            "pub",
            "/x",
            "std_msgs/Float32MultiArray",
            "-f",
            "messages.yaml",
            "--wait",
            "0",
        ]);
        assert!(done.code == 2 && done.stderr.contains(says), "{text}: {done:?}");
    };
    refused("data: [1.0, 2.0, … 98 more]", "echo --full");
    refused("data: [1]\n---\ndata: [now]\n", "data[0]");
    refused("data: [1\n", "messages.yaml: not YAML");
    let both = host.run(&[
        "topic",
        "pub",
        "/x",
        "std_msgs/String",
        "data: a",
        "-f",
        "messages.yaml",
    ]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn msg_shows_sums_and_parts() {
    let host = Host::new();
    let md5 = host.run(&["msg", "md5", "sensor_msgs/LaserScan"]);
    assert_eq!(
        (md5.code, md5.stdout.as_str()),
        (0, "90c7ef2dc6895d81024acba2ac42f369\n")
    );
    let parts = host.run(&["msg", "parts", "sensor_msgs/PointCloud", "--json"]);
    let parts: serde_json::Value = serde_json::from_str(&parts.stdout).expect("JSON");
    let paths: Vec<_> = parts["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|p| &p["path"])
        .collect();
    assert_eq!(paths, ["points[]", "channels[].values[]"]);
    let show = host.run(&["msg", "show", "std_msgs/Header"]);
    assert_eq!(show.stdout, "uint32 seq\ntime stamp\nstring frame_id\n");
    let rihs = host.run(&["msg", "md5", "std_msgs/String", "--ros2"]);
    assert_eq!(
        rihs.stdout,
        "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18\n"
    );
}
