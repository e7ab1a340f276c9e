//! `bench scale` on this machine's bus: real nodes, stopped, killed and resumed.

use crate::support::{Done, Host};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Two points of two and four nodes.
const TINY: [&str; 17] = [
    "bench",
    "scale",
    "--experiment",
    "7",
    "--quick",
    "--systems",
    "ropewalk",
    "--media",
    "host",
    "--nodes",
    "2,4",
    "--messages",
    "40",
    "--no-knees",
    "--json",
    "--out",
    "kept",
];

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

fn with(words: &[&'static str]) -> Vec<&'static str> {
    [&TINY[..], words].concat()
}

/// Nodes that write below a folder.
fn nodes_of(folder: &Path) -> Vec<i32> {
    let folder = folder.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").expect("reads").flatten();
    let pids = processes.filter_map(|p| p.file_name().to_str()?.parse().ok());
    let ours = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("scale-part") && words.contains(&folder)
    };
    pids.filter(ours).collect()
}

fn wait_for_a_node(folder: &Path) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(pid) = nodes_of(folder).first() {
            return *pid;
        }
        assert!(Instant::now() < deadline, "no node came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Both points are measured by now, and nothing is left.
fn both_points(host: &Host, again: &Done) {
    assert_eq!(
        (again.code, json(again)["cells"].as_array().map(Vec::len)),
        (0, Some(2)),
        "{again:?}"
    );
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_small_experiment_is_measured_kept_and_not_measured_again() {
    let host = Host::new();
    let args = with(&[
        "--hz", "100", "--runs", "2", "--csv", "out.csv", "--figure", "out.svg",
    ]);
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let first = json(&done);
    let cells = first["cells"].as_array().expect("cells");
    assert_eq!(
        (cells.len(), &first["complete"]),
        (2, &Value::Bool(true)),
        "{done:?}"
    );
    for (cell, nodes) in cells.iter().zip([2, 4]) {
        let (p, m) = (&cell["params"], &cell["metrics"]);
        assert_eq!(
            (&p["nodes"], &p["what"], &p["medium"]),
            (&nodes.into(), &"cell".into(), &"bus".into())
        );
        assert_eq!(
            (&p["runs"], &m["delivery"], &m["censored"]),
            (&2.into(), &1.0.into(), &0.into()),
            "{cell}"
        );
        assert!(m["rtt_ms"]["p50"].as_f64() > Some(0.0), "{cell}");
        assert!(m["rtt_ms"]["ci95"]["mean"][1].is_number(), "{cell}");
        for name in ["cpu_us_per_message", "memory_kib", "context_switches_per_message"] {
            assert!(m[name].as_f64() > Some(0.0), "{name}: {cell}");
        }
    }
    let set = host.path("kept/ropewalk-e7-bus-1hosts-4250B-40rows");
    let about = std::fs::read_to_string(set.join("layout.yaml")).expect("a description");
    assert!(
        about.contains("system: ropewalk") && about.contains("messages: 40\n"),
        "{about}"
    );
    let rows = std::fs::read_to_string(set.join("100hz/4nodes/run1/sender1.csv")).expect("rows");
    assert_eq!(
        (rows.lines().count(), rows.lines().next()),
        (41, Some("id,sent_ns,recv_ns"))
    );
    assert!(std::fs::read_to_string(host.path("out.svg")).is_ok_and(|svg| svg.contains("ropewalk 4 nodes")));
    assert!(std::fs::read_to_string(host.path("out.csv")).is_ok_and(|csv| csv.lines().count() == 3));

    let again = host.run(&args);
    assert_eq!(
        (again.code, &json(&again)["cells"]),
        (0, &first["cells"]),
        "{again:?}"
    );
    assert!(again.stderr.contains("4 results were there already"), "{again:?}");
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_highest_load_is_found_with_its_cause() {
    let host = Host::new();
    let mut args = TINY.to_vec();
    args.retain(|w| !["--no-knees", "2,4", "--nodes", "--messages", "40"].contains(w));
    args.extend(["--knees-only", "--nodes", "2", "--hz", "50"]);
    let done = host.run(&args);
    let result = json(&done);
    let knee = &result["cells"][0];
    assert_eq!(knee["params"]["what"], "knee", "{done:?}");
    let (load, cause) = (
        &knee["metrics"]["messages_per_s"],
        knee["metrics"]["cause"].as_str(),
    );
    let cause = cause.expect("a cause");
    assert!(
        *load == 50.0 && cause.contains("no higher") || cause.contains("seen as"),
        "{knee}"
    );
    assert_eq!(knee["metrics"]["by_nodes"][0]["nodes"], 2);
    let left = std::fs::read_dir(host.path("kept")).expect("a folder").count();
    assert_eq!(left, 1, "the tries' raw data are not kept");
}

#[test]
fn a_killed_node_fails_its_point_alone() {
    let host = Host::new();
    let running = host.start(&with(&["--hz", "10", "--runs", "1"]));
    let node = wait_for_a_node(&host.path("kept"));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(node).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("is there");
    let done = running.wait();
    assert_eq!(done.code, 1, "{done:?}");
    let result = json(&done);
    let why = result["failed"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("was killed by signal 9"), "{why}");
    assert_eq!(
        result["cells"].as_array().map(Vec::len),
        Some(1),
        "the other point is measured"
    );
    assert!(nodes_of(&host.path("kept")).is_empty());
    // The same command measures the missing points.
    let again = host.run(&with(&["--hz", "10", "--runs", "1"]));
    both_points(&host, &again);
}

#[test]
fn a_stopped_experiment_goes_on_where_it_was() {
    let host = Host::new();
    let args = with(&["--hz", "10", "--runs", "1"]);
    let running = host.start(&args);
    wait_for_a_node(&host.path("kept"));
    running.interrupt();
    let done = running.wait();
    assert_eq!(
        (done.code, &json(&done)["complete"]),
        (1, &Value::Bool(false)),
        "{done:?}"
    );
    assert!(
        done.stderr.contains("stopped before the end") && done.stderr.contains("goes on from here"),
        "{done:?}"
    );
    assert!(nodes_of(&host.path("kept")).is_empty());
    let again = host.run(&args);
    both_points(&host, &again);
}

#[test]
fn impossible_options_are_refused_before_anything_runs() {
    let host = Host::new();
    for (words, why) in [
        (&["--experiment", "10"][..], "10"),
        (&["--experiment", "7", "--nodes", "3"], "even numbers"),
        (&["--experiment", "7", "--hz", "0"], "0.1 to 1000000"),
        (&["--experiment", "7", "--cpu", "0"], "0"),
        (&["--experiment", "8", "--quick"], "real machines"),
        (
            &["--experiment", "7", "--no-knees", "--knees-only"],
            "cannot be used with",
        ),
    ] {
        let done = host.run(&[&["bench", "scale", "--systems", "ropewalk"], words].concat());
        assert!(done.code == 2 && done.stderr.contains(why), "{words:?}: {done:?}");
    }
    std::fs::create_dir_all(host.path("other")).expect("a folder");
    std::fs::write(host.path("other/runs.jsonl"), "no results\n").expect("a file");
    let mut args = with(&[]);
    args[TINY.len() - 1] = "other";
    let done = host.run(&args);
    assert!(
        done.code == 2 && done.stderr.contains("runs.jsonl:1:"),
        "{done:?}"
    );
}
