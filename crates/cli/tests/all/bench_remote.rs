//! `bench remote`: short real runs on loopback from end to end, and refused input. No test here limits how long
//! anything takes.

use crate::bench_lab::complete;
use crate::support::{Done, Host};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// A robot's peer that follows the protocol of `peers/remote`, with made-up numbers.
const PEER: &str = r#"#!/bin/sh
case $1 in
version) echo '{"system": "tcpros", "version": "fake", "modes": ["block"]}';;
call) echo ready; read go; echo '{"values": [4.0, -3.0, 2.0, 3.0]}'; read stop;;
*) echo ready; read stop;;
esac
"#;

fn measure(host: &Host, words: &[&str]) -> Done {
    host.run(
        &[
            &["bench", "remote", "--quick", "--networks", "loopback", "--json"],
            words,
        ]
        .concat(),
    )
}

fn cells(json: &Value) -> &[Value] {
    json["cells"].as_array().map_or(&[], Vec::as_slice)
}

/// Checks that a cell has all the numbers that programs read.
fn check(cell: &Value, runs: u64) {
    assert_eq!(cell["params"]["runs"], runs, "{cell}");
    let m = &cell["metrics"];
    let of = |name: &str| {
        m["latency_ms"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {cell}"))
    };
    let steps = [of("min"), of("p25"), of("p50"), of("p75"), of("p99"), of("max")];
    assert!(steps[0] > 0.0 && steps.is_sorted() && of("mean") > 0.0, "{cell}");
    // A command that a busy machine delays beyond its lifetime expires, which is an outcome too.
    let executed = m["delivery"].as_f64().unwrap_or_default();
    assert!(m["decided"] == 1.0 && executed > 0.0 && executed <= 1.0, "{cell}");
    assert!(
        m["verdict"].is_string() && m["targets"].is_array() && m.get("lab").is_none(),
        "{cell}"
    );
}

#[test]
fn robots_obey_over_links_and_zeromq() {
    let host = Host::new();
    let words = [
        "--what",
        "twist",
        "--systems",
        "ropewalk-link,ropewalk-zmq",
        "--runs",
        "20",
    ];
    let done = measure(
        &host,
        &[
            &words[..],
            &["--csv", "rows.csv", "--figure", "rows.svg", "--keep", "kept"],
        ]
        .concat(),
    );
    let json = complete(&done, "remote");
    let cells = cells(&json);
    let how: Vec<_> = cells
        .iter()
        .map(|c| {
            let text = |name: &str| c["params"][name].as_str().unwrap_or_default();
            (
                text("processors"),
                c["system"].as_str().unwrap_or_default(),
                [text("path"), text("wire")].concat(),
            )
        })
        .collect();
    let ways = [
        ("bare-sockets", "tcp"),
        ("ropewalk-link", "direct"),
        ("ropewalk-link", "daemons"),
        ("ropewalk-zmq", "v6"),
        ("ropewalk-zmq", "own"),
    ];
    let each = |processors| ways.map(|(system, way)| (processors, system, way.to_owned()));
    assert_eq!(how, ["awake", "asleep"].map(each).concat());
    for cell in cells {
        check(cell, 20);
        let floor = cell["metrics"]["floor_ms"].is_number();
        assert_eq!(floor, cell["system"] != "bare-sockets", "{cell}");
    }
    // Upstream's numbers are listed separately and are not cells.
    assert!(json["given"].as_array().is_some_and(|g| g.len() == 3), "{json}");
    let csv = std::fs::read_to_string(host.path("rows.csv")).expect("was written");
    assert!(
        csv.contains("loopback,\"twist\",ropewalk-zmq,latency_ms.p99,"),
        "{csv}"
    );
    let svg = std::fs::read_to_string(host.path("rows.svg")).expect("was written");
    assert_eq!(svg.matches("class=\"box\"").count(), 10, "{svg}");
    let kept = std::fs::read_to_string(host.path("kept/002.json")).expect("was kept");
    let kept: Value = serde_json::from_str(&kept).expect("is JSON");
    assert_eq!(kept["reported"][0].as_array().map(Vec::len), Some(20), "{kept}");
    assert!(
        kept["links"]["robot"].is_object() && kept["links"]["controller"].is_object(),
        "{kept}"
    );
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

#[test]
fn telemetry_comes_back_over_links_and_zeromq() {
    let host = Host::new();
    let words = [
        "--what",
        "telemetry-1mb",
        "--systems",
        "ropewalk-link,ropewalk-zmq",
        "--runs",
        "3",
    ];
    let done = measure(&host, &words);
    let json = complete(&done, "remote");
    let cells = cells(&json);
    assert_eq!(cells.len(), 3, "{json}");
    for cell in cells {
        check(cell, 3);
        assert_eq!(cell["params"]["message_bytes"], 1_000_000, "{cell}");
    }
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

#[test]
fn installed_peers_are_measured_and_missing_ones_reported() {
    // The bench needs a free ROS master on loopback.
    let has_ros = std::process::Command::new("sh")
        .args(["-c", "command -v roscore"])
        .output()
        .is_ok_and(|o| o.status.success());
    let host = Host::new();
    let words = [
        "--what",
        "twist",
        "--systems",
        "ros1",
        "--runs",
        "4",
        "--peers",
        "peers",
    ];
    let done = measure(&host, &words);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("peers"), "{done:?}");
    if !has_ros {
        return;
    }
    std::fs::create_dir_all(host.path("peers/bin")).expect("a folder");
    std::fs::write(host.path("peers/Makefile"), "").expect("a file");
    let path = host.path("peers/bin/remote");
    std::fs::write(&path, PEER).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let done = measure(&host, &words);
    let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    assert_eq!(json["versions"]["roscpp"], "fake");
    let of = |via: &str| cells(&json).iter().find(|c| c["params"]["via"] == via);
    let service = of("service").unwrap_or_else(|| panic!("{done:?}"));
    let m = &service["metrics"];
    assert_eq!(
        (&m["decided"], &m["delivery"]),
        (&0.75.into(), &0.75.into()),
        "{service}"
    );
    assert_eq!(
        (&m["latency_ms"]["p50"], &m["latency_ms"]["max"]),
        (&3.0.into(), &4.0.into()),
        "{service}"
    );
    // The peer prints nothing by topics, and ends.
    let why = json["failed"][0]["why"].as_str().unwrap_or_default();
    assert!(
        of("topic").is_none() && why.contains("ended with code 0"),
        "{done:?}"
    );
    assert_eq!(done.code, 1);
}

#[test]
fn unknown_names_are_refused() {
    let host = Host::new();
    for (words, name) in [
        (&["--networks", "moon"][..], "moon"),
        (&["--systems", "udt"], "udt"),
        (&["--what", "dance"], "dance"),
        (&["--runs", "0"], "0"),
        (&["--networks", "wifi-6", "--what", "twist"], "--networks"),
    ] {
        let done = host.run(&[&["bench", "remote"], words].concat());
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains(name) && done.stdout.is_empty(), "{done:?}");
    }
    let done = host.run(&["bench", "remote", "--networks", "wifi-6", "--what", "twist"]);
    assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    // Its processes as well.
    for words in [
        &["robot"][..],
        &["twist", "--over", "bus"],
        &[
            "throw",
            "--over",
            "bus",
            "--count",
            "1",
            "--bytes",
            "0",
            "--patience-ms",
            "1",
        ],
    ] {
        let done = host.run(&[&["bench", "remote-part"], words].concat());
        assert_eq!(done.code, 2, "{done:?}");
    }
    let done = host.run(&["bench", "remote-part", "robot", "--over", "zmq-own"]);
    assert!(done.code == 1 && done.stderr.contains("--robot-at"), "{done:?}");
    let done = host.run(&[
        "bench",
        "remote-part",
        "robot",
        "--over",
        "direct",
        "--config",
        "none.yaml",
    ]);
    assert!(done.code == 1 && done.stderr.contains("none.yaml"), "{done:?}");
}
