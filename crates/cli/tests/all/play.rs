//! Odd recordings lose only their odd parts, and the options of `play` take effect.

use crate::support::{Done, Host, eventually};
use crate::terminal::Terminal;
use recording::{Channel, Writer};
use schema::{Flavour, Registry};
use serde_json::{Value, json};
use stats::Time;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/recording/odd")
}

/// Plays fast, and returns what it prints as JSON.
fn played(host: &Host, file: &Path, more: &[&str]) -> (Done, Value) {
    let file = file.display().to_string();
    let fast = ["play", &file, "--speed", "1000", "--json", "--skip-gaps", "1"];
    let done = host.run(&[&fast[..], more].concat());
    let result = serde_json::from_str(&done.stdout).unwrap_or(Value::Null);
    (done, result)
}

/// A recording of strings on a topic, each with its time in seconds.
fn strings(file: &Path, topic: &str, rows: &[(f64, &str)]) {
    let schema = Registry::new(Flavour::Ros1)
        .schema("std_msgs/String")
        .expect("known");
    let mut writer = Writer::create(file, &recording::write::Options::default()).expect("creates");
    let channel = Channel::ros1(topic, "std_msgs/String", &schema.md5_hex(), &schema.definition());
    let channel = writer.add_channel(&channel).expect("adds");
    for (at, text) in rows {
        let data = [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let at = Time(1_600_000_000_000_000_000) + Duration::from_secs_f64(*at);
        writer.write(channel, at, at, &data).expect("writes");
    }
    writer.finish().expect("finishes");
}

/// A player that starts in the middle publishes the map from the beginning.
#[test]
fn messages_latched_before_the_start_are_published_at_the_start() {
    let host = Host::new();
    let file = host.path("map.mcap");
    let schema = Registry::new(Flavour::Ros1)
        .schema("std_msgs/String")
        .expect("known");
    let mut writer = Writer::create(&file, &recording::write::Options::default()).expect("creates");
    let mut add = |topic: &str, latched| {
        let mut channel = Channel::ros1(topic, "std_msgs/String", &schema.md5_hex(), &schema.definition());
        channel.latched = latched;
        writer.add_channel(&channel).expect("adds")
    };
    let (map, chatter) = (add("/map", true), add("/chatter", false));
    for (channel, second, text) in [
        (map, 0, "old"),
        (chatter, 1, "no"),
        (map, 2, "new"),
        (chatter, 6, "yes"),
        (map, 7, "next"),
    ] {
        let data = [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let at = Time(1_600_000_000_000_000_000) + Duration::from_secs(second);
        writer.write(channel, at, at, &data).expect("writes");
    }
    writer.finish().expect("finishes");
    let echo = |topic: &str, count| host.start(&["topic", "echo", topic, "-n", count, "--wait", "60"]);
    let (maps, chatters) = (echo("/map", "2"), echo("/chatter", "1"));
    let (done, result) = played(&host, &file, &["--start", "5", "--wait", "60"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        (&result["messages"], &result["latched_before"]),
        (&json!(2), &json!(1))
    );
    let (maps, chatters) = (maps.wait(), chatters.wait());
    assert!(
        maps.stdout.contains("new") && maps.stdout.contains("next") && !maps.stdout.contains("old"),
        "{maps:?}"
    );
    assert!(chatters.stdout.contains("yes"), "{chatters:?}");
    // From the beginning, no message is published twice.
    let (done, result) = played(&host, &file, &[]);
    assert_eq!(
        (&result["messages"], &result["latched_before"]),
        (&json!(5), &json!(0)),
        "{done:?}"
    );
}

/// tests/recording/make_fixtures.py describes the recordings, and tests/recording/odd.py compares them with other
/// readers.
#[test]
fn each_odd_recording_costs_what_is_odd_in_it_alone() {
    let expected = std::fs::read(vectors().join("expected.json")).expect("reads");
    let expected: serde_json::Map<String, Value> = serde_json::from_slice(&expected).expect("JSON");
    assert!(expected.len() > 15);
    let host = Host::new();
    for (name, right) in &expected {
        let (done, result) = played(&host, &vectors().join(name), &[]);
        let lies = right["index_lies"] == true;
        assert_eq!(
            done.code,
            right["exit"].as_i64().expect("a number") as i32,
            "{name}: {done:?}"
        );
        assert_eq!(result["messages"], right["played"], "{name}: {done:?}");
        assert_eq!(result["left_out"], right["left_out"], "{name}: {done:?}");
        assert_eq!(
            result["damaged_parts"], right["damaged_parts"],
            "{name}: {done:?}"
        );
        // The player prints what it leaves out, and nothing else.
        assert_eq!(
            done.stderr.is_empty(),
            right["exit"] == 0 && !lies,
            "{name}: {done:?}"
        );
        if right["exit"] == 3 {
            assert!(done.stderr.contains("left out"), "{name}: {done:?}");
        }
        assert!(
            !lies || done.stderr.contains("the index is not used"),
            "{name}: {done:?}"
        );
    }
    assert!(host.left_behind().is_empty());
}

#[test]
fn topics_that_are_left_out_are_reported_with_the_true_reason() {
    let host = Host::new();
    for (name, says) in [
        (
            "unknown_type.bag",
            "/odd: my_msgs/Odd: unknown type other_msgs/Gone",
        ),
        ("name.bag", "--remap /my-topic:=/NAME"),
        ("idl.mcap", "in `ros2idl`, which is not supported"),
        ("schemaless.mcap", "/none: its channel has no schema"),
        ("xcdr2.mcap", "encapsulation 0x0007"),
        ("lz4_block.mcap", "its lz4 data is damaged"),
        ("unknown_sum.bag", "the recording states md5 1111"),
    ] {
        let (done, _) = played(&host, &vectors().join(name), &[]);
        assert!(done.stderr.contains(says), "{name}: {done:?}");
    }
}

#[test]
fn topics_are_chosen_excluded_and_renamed() {
    let host = Host::new();
    let file = vectors().join("name.bag");
    let count = |more: &[&str]| {
        let (done, result) = played(&host, &file, more);
        (done.code, result["messages"].clone(), result["topics"].clone())
    };
    assert_eq!(
        count(&["--remap", "/my-topic:=/my_topic"]),
        (0, json!(3), json!(2))
    );
    assert_eq!(
        count(&["--remap", "my-topic:=/still-wrong"]),
        (3, json!(2), json!(1))
    );
    assert_eq!(count(&["--exclude", "/my-topic"]), (0, json!(2), json!(1)));
    assert_eq!(count(&["--topic", "good"]), (0, json!(2), json!(1)));
    for wrong in [
        ["--exclude", "/gone"],
        ["--remap", "/gone:=/b"],
        ["--topic", "/gone"],
    ] {
        let (done, _) = played(&host, &file, &wrong);
        assert!(
            done.code == 2 && done.stderr.contains("/gone is not in the recording"),
            "{done:?}"
        );
    }
    let (done, _) = played(&host, &file, &["--remap", "/a=/b"]);
    assert!(done.code == 2 && done.stderr.contains("FROM:=TO"), "{done:?}");
}

#[test]
fn types_that_the_recording_lacks_come_from_a_folder() {
    let host = Host::new();
    std::fs::create_dir_all(host.path("other_msgs/msg")).expect("makes");
    std::fs::write(host.path("other_msgs/msg/Gone.msg"), "int8 x\n").expect("writes");
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_message("other_msgs/Gone", "int8 x\n")
        .expect("parses");
    registry
        .add_message("my_msgs/Odd", "other_msgs/Gone x\n")
        .expect("parses");
    let md5 = registry.schema("my_msgs/Odd").expect("compiles").md5_hex();
    let file = host.path("odd.mcap");
    let mut writer = Writer::create(&file, &recording::write::Options::default()).expect("creates");
    let channel = Channel::ros1("/odd", "my_msgs/Odd", &md5, "other_msgs/Gone x\n");
    let channel = writer.add_channel(&channel).expect("adds");
    writer.write(channel, Time(1), Time(1), &[5]).expect("writes");
    writer.finish().expect("finishes");
    let (without, _) = played(&host, &file, &[]);
    assert_eq!(without.code, 3, "{without:?}");
    let (with, result) = played(&host, &file, &["--path", "."]);
    assert_eq!((with.code, &result["messages"]), (0, &json!(1)), "{with:?}");
}

#[test]
fn a_gap_of_years_is_announced_and_on_request_skipped() {
    let host = Host::new();
    let file = vectors().join("gap.bag").display().to_string();
    let waits = host.start(&["play", &file]);
    // It prints this at once, long before the signal.
    std::thread::sleep(Duration::from_secs(3));
    waits.interrupt();
    let waited = waits.wait();
    assert!(
        waited.stderr.contains("no message was recorded for 53.9 years"),
        "{waited:?}"
    );
    assert!(
        waited.stderr.contains("--skip-gaps") && waited.stdout.contains("played 1 messages"),
        "{waited:?}"
    );
    for options in [
        vec!["play", "--skip-gaps", &file],
        vec!["play", &file, "--skip-gaps"],
        vec!["play", "--skip-gaps", "0.1", &file],
    ] {
        let done = host.run(&options);
        assert!(
            done.code == 0 && done.stdout.contains("played 2 messages"),
            "{options:?}: {done:?}"
        );
        assert!(done.stderr.is_empty(), "{done:?}");
    }
}

#[test]
fn several_recordings_are_played_as_one() {
    let host = Host::new();
    let (one, two) = (host.path("one.mcap"), host.path("two.mcap"));
    strings(&one, "/chatter", &[(0.0, "a"), (0.2, "c"), (0.4, "e")]);
    strings(&two, "/chatter", &[(0.1, "b"), (0.3, "d")]);
    let echo = host.start(&["topic", "echo", "/chatter", "-n", "5", "--json", "--wait", "60"]);
    let played = host.run(&["play", "one.mcap", "two.mcap", "--wait", "60"]);
    assert_eq!(played.code, 0, "{played:?}");
    let echoed = echo.wait();
    let texts: Vec<Value> = (echoed.stdout.lines())
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["data"].clone())
        .collect();
    assert_eq!(texts, ["a", "b", "c", "d", "e"], "{echoed:?}");
}

#[test]
fn the_recordings_time_is_on_clock() {
    let host = Host::new();
    strings(
        &host.path("one.mcap"),
        "/chatter",
        &[(0.0, "a"), (1.0, "b"), (2.0, "c")],
    );
    let play = host.start(&["play", "one.mcap", "--loop", "--clock", "200"]);
    let echo = host.run(&["topic", "echo", "/clock", "-n", "20", "--json", "--wait", "60"]);
    play.interrupt();
    let play = play.wait();
    assert_eq!(play.code, 0, "{play:?}");
    let times: Vec<f64> = (echo.stdout.lines())
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|clock| {
            let part = |name: &str| clock["clock"][name].as_f64().expect("a number");
            part("secs") - 1_600_000_000.0 + part("nsecs") * 1e-9
        })
        .collect();
    assert_eq!(times.len(), 20, "{echo:?}");
    assert!(times.iter().all(|t| (-0.1..=2.0).contains(t)), "{times:?}");
    let steps = times.windows(2).filter(|pair| pair[1] > pair[0]).count();
    assert!(
        steps >= 18,
        "it goes on, but where the recording begins again: {times:?}"
    );
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let host = Host::new();
    strings(&host.path("x.mcap"), "/x", &[(0.0, "a")]);
    let bad = ["nan", "inf", "-inf", "-1", "0", "1e300", "one", ""];
    let options: [&[&str]; 9] = [
        &["play", "x.mcap", "--speed"],
        &["play", "x.mcap", "--duration"],
        &["play", "x.mcap", "--clock"],
        &["topic", "pub", "/x", "std_msgs/String", "--rate"],
        &["topic", "pub", "/x", "std_msgs/String", "--count"],
        &["topic", "echo", "/x", "--count"],
        &["topic", "hz", "/x", "--window"],
        &["topic", "hz", "/x", "--duration"],
        &["robot", "sim", "--for"],
    ];
    let zero_is_good: [&[&str]; 4] = [
        &["play", "x.mcap", "--start"],
        &["play", "x.mcap", "--wait"],
        &["play", "x.mcap", "--skip-gaps"],
        &["topic", "echo", "/x", "--wait"],
    ];
    for option in options.iter().chain(&zero_is_good) {
        for number in bad {
            if number == "0" && zero_is_good.contains(option) {
                continue;
            }
            // As one word: otherwise a negative number looks like an option.
            let (name, before) = option.split_last().expect("words");
            let last = format!("{name}={number}");
            let done = host.run(&[before, &[last.as_str()]].concat());
            assert_eq!(done.code, 2, "{option:?} {number}: {done:?}");
        }
    }
    assert!(host.left_behind().is_empty());
}

#[test]
fn keys_pause_and_step() {
    let host = Host::new();
    strings(
        &host.path("one.mcap"),
        "/chatter",
        &[(0.0, "a"), (3600.0, "b"), (7200.0, "c"), (7200.1, "d")],
    );
    let file = host.path("one.mcap").display().to_string();
    let mut play = Terminal::open(&host.command(&["play", &file, "--pause"]));
    play.until("space: pause or continue");
    // Each step plays one message, however long the gap.
    play.press("s");
    play.until("1 of 4 messages paused");
    play.press("s");
    play.until("2 of 4 messages paused");
    play.press("s");
    play.until("3 of 4 messages paused");
    // After the pause ends, the distance to the next message is unchanged.
    play.press(" ");
    play.until("played 4 messages");
    let child = &mut play.child;
    let ended = eventually("it ends", || child.try_wait().expect("waits"));
    assert!(ended.success(), "{ended}");
}

#[test]
fn pausing_needs_a_terminal() {
    let host = Host::new();
    strings(&host.path("one.mcap"), "/x", &[(0.0, "a")]);
    let done = host.run(&["play", "one.mcap", "--pause"]);
    assert!(
        done.code == 2 && done.stderr.contains("--pause needs a terminal"),
        "{done:?}"
    );
    let done = host.run(&["play"]);
    assert!(
        done.code == 2 && done.stderr.contains("name a recording"),
        "{done:?}"
    );
}

/// Made by tests/recording/make_rosbag2.py.
#[test]
fn folders_and_databases_of_rosbag2_are_played_and_what_is_wrong_with_one_file_costs_it_alone() {
    let host = Host::new();
    let vectors = vectors().join("../rosbag2");
    for name in [
        "sqlite3",
        "sqlite3_file",
        "sqlite3_message",
        "mcap",
        "mcap_file",
        "split",
        "old",
    ] {
        let (done, result) = played(&host, &vectors.join(name), &[]);
        assert_eq!(
            (done.code, &result["messages"]),
            (0, &json!(30)),
            "{name}: {done:?}"
        );
        assert_eq!(result["topics"], 3, "{name}");
    }
    let (done, result) = played(&host, &vectors.join("old/old_0.db3"), &["--topic", "/scan"]);
    assert_eq!((done.code, &result["messages"]), (0, &json!(20)), "{done:?}");
    let copy = host.path("copy");
    std::fs::create_dir(&copy).expect("a folder");
    for file in std::fs::read_dir(vectors.join("split")).expect("reads").flatten() {
        std::fs::copy(file.path(), copy.join(file.file_name())).expect("copies");
    }
    std::fs::write(copy.join("split_2.mcap"), "no recording").expect("writes");
    let (done, result) = played(&host, &copy, &[]);
    assert_eq!((done.code, &result["messages"]), (3, &json!(20)), "{done:?}");
    assert_eq!(result["left_out"], json!({ "damage": 10 }), "{done:?}");
    assert!(done.stderr.contains("split_2.mcap is neither"), "{done:?}");
    // Without metadata the files are played all the same, and only the file is known to be missing.
    std::fs::remove_file(copy.join("metadata.yaml")).expect("removes");
    let (done, result) = played(&host, &copy, &[]);
    assert_eq!(
        (done.code, &result["messages"], &result["damaged_parts"]),
        (3, &json!(20), &json!(1)),
        "{done:?}"
    );
    std::fs::remove_file(copy.join("split_2.mcap")).expect("removes");
    let (done, result) = played(&host, &copy, &[]);
    assert_eq!((done.code, &result["messages"]), (0, &json!(20)), "{done:?}");
    assert!(done.stderr.contains("metadata.yaml"), "{done:?}");
}
