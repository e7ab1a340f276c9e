//! `bench ipc`: our own peer in a real run, and peers that misbehave.

use crate::support::{Done, Host};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A peer that follows the protocol, with made-up numbers.
const GOOD: &str = r#"#!/bin/sh
role=$1; shift
while [ $# -gt 0 ]; do case $1 in --messages) m=$2;; --warmup) w=$2;; esac; shift; done
numbers() { i=0; while [ $i -lt $m ]; do printf '%s%d' "$sep" $(($1 + i * $2)); sep=,; i=$((i + 1)); done; sep=; }
case $role in
version) echo '{"system": "zeromq", "version": "fake", "modes": ["block"]}';;
publish) echo ready; read go
    printf '{"published": %d, "refused": 0, "publish_ns": [' $m; numbers 1000 0; echo ']}'; read stop;;
subscribe) echo ready; echo done; read stop
    printf '{"received": %d, "latency_ns": [' $m; numbers 5000 0; printf '], "sequence": ['; numbers $w 1; echo ']}';;
esac
"#;

/// Installs a program in place of ZeroMQ's peer and measures it.
fn measure(host: &Host, program: &str, more: &[&str]) -> Done {
    install(host, program);
    let mut args = vec![
        "bench",
        "ipc",
        "--json",
        "--quick",
        "--peers",
        "peers",
        "--systems",
        "zeromq",
    ];
    args.extend(["--sizes", "4K", "--subscribers", "1", "--messages", "20"]);
    args.extend(more);
    host.run(&args)
}

fn install(host: &Host, program: &str) {
    std::fs::create_dir_all(host.path("peers/bin")).expect("a folder");
    let path = host.path("peers/bin/zeromq");
    std::fs::write(&path, program).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

/// The good peer with one of its lines replaced.
fn with(line: &str, other: &str) -> String {
    assert!(GOOD.contains(line));
    GOOD.replace(line, other)
}

#[test]
fn our_own_peer_is_measured_and_leaves_nothing() {
    let host = Host::new();
    let mut args = vec![
        "bench",
        "ipc",
        "--systems",
        "ropewalk",
        "--quick",
        "--messages",
        "20",
        "--sizes",
        "4K",
    ];
    args.extend(["--json", "--csv", "out.csv", "--figure", "out.svg"]);
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let json = json(&done);
    assert_eq!(json["experiment"], "fig7");
    assert_eq!(json["complete"], true);
    assert!(
        json["machine"]["cores"].is_number() && json["versions"]["ropewalk"].is_string(),
        "{json}"
    );
    let cells = json["cells"].as_array().expect("cells");
    let subscribers: Vec<_> = cells
        .iter()
        .map(|c| c["params"]["subscribers"].as_u64())
        .collect();
    assert_eq!(subscribers, [Some(1), Some(8)]);
    for cell in cells {
        assert_eq!(
            (cell["system"].as_str(), cell["params"]["size"].as_u64()),
            (Some("ropewalk"), Some(4096))
        );
        let m = &cell["metrics"];
        assert_eq!(m["received_ratio"], 1.0, "{cell}");
        let of = |name: &str| m["latency_us"][name].as_f64().expect(name);
        let steps = [of("min"), of("p25"), of("p50"), of("p75"), of("p99"), of("max")];
        assert!(steps[0] > 0.0 && steps.is_sorted(), "{cell}");
        assert!(m["publish_us"]["p50"].as_f64() > Some(0.0), "{cell}");
        assert!(m["cpu_us_per_message"].as_f64() > Some(0.0), "{cell}");
        assert!(
            m["voluntary_switches_per_message"].as_f64() >= Some(1.0),
            "a sleeping subscriber: {cell}"
        );
        assert!(m["max_rss_mb"].as_f64() > Some(0.5), "{cell}");
    }
    let csv = std::fs::read_to_string(host.path("out.csv")).expect("was written");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let svg = std::fs::read_to_string(host.path("out.svg")).expect("was written");
    assert_eq!(svg.matches("class=\"box\"").count(), 2, "{svg}");
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

#[test]
fn our_own_peers_spin() {
    let host = Host::new();
    let args = [
        "bench",
        "ipc",
        "--experiment",
        "spin",
        "--systems",
        "ropewalk",
        "--messages",
        "50",
        "--runs",
        "1",
        "--json",
    ];
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let json = json(&done);
    assert!(
        json["cells"][0]["metrics"]["half_round_trip_us"]["p50"].as_f64() > Some(0.0),
        "{json}"
    );
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

#[test]
fn a_peer_that_keeps_the_contract_is_believed() {
    let host = Host::new();
    let done = measure(&host, GOOD, &["--runs", "2"]);
    assert_eq!(done.code, 0, "{done:?}");
    let cell = &json(&done)["cells"][0];
    assert_eq!(cell["params"]["runs"], 2);
    assert_eq!(cell["metrics"]["latency_us"]["mean"], 5.0);
    assert_eq!(cell["metrics"]["p50_by_run"].as_array().map(Vec::len), Some(2));
    assert_eq!(json(&done)["versions"]["zeromq"], "fake");
}

#[test]
fn a_peer_that_breaks_the_contract_is_a_failed_run_with_its_reason() {
    let host = Host::new();
    let cases = [
        (with("echo done; read stop", "echo hello; read stop"), "hello"),
        (
            with("echo done; read stop", "printf '\\377\\n'; read stop"),
            "not text",
        ),
        (with("echo done; read stop", "yes x | tr -d '\\n'"), "more than"),
        (
            with("echo done; read stop", "echo no license >&2; exit 3"),
            "code 3",
        ),
        (
            with("echo done; read stop", "echo no license >&2; exit 3"),
            "no license",
        ),
        (
            with("numbers 1000 0; echo ']}'", "numbers 1000 0; echo ',7]}'"),
            "21 numbers",
        ),
        (with("numbers $w 1", "numbers $w 0"), "twice"),
        (with("numbers $w 1", "numbers 0 1"), "never sent"),
        (
            with("echo ready; read go", "echo ready; read go; kill -9 $$"),
            "signal 9",
        ),
    ];
    for (program, reason) in cases {
        let done = measure(&host, &program, &[]);
        assert_eq!(done.code, 1, "{reason}: {done:?}");
        let json = json(&done);
        let why = json["failed"][0]["why"].as_str().unwrap_or_default();
        assert!(why.contains(reason), "{reason}: {why}");
        assert_eq!(json["cells"], serde_json::json!([]), "{reason}");
        assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
    }
}

#[test]
fn a_peer_that_does_not_stop_is_killed_with_its_children() {
    let host = Host::new();
    let pid = host.path("pid");
    let hang = format!("echo ']}}'; sleep 1000 & echo $! > {}; wait;;", pid.display());
    let done = measure(&host, &with("echo ']}';;", &hang), &[]);
    assert_eq!(done.code, 1, "{done:?}");
    let why = json(&done)["failed"][0]["why"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(why.contains("did not end"), "{why}");
    assert!(!alive(&pid), "the peer's child lives on");
}

#[test]
fn ctrl_c_ends_all_peers() {
    let host = Host::new();
    let pid = host.path("pid");
    let silent = format!("echo $$ > {}; sleep 1000;", pid.display());
    install(&host, &with("echo ready; echo done; read stop", &silent));
    let args = [
        "bench",
        "ipc",
        "--quick",
        "--peers",
        "peers",
        "--systems",
        "zeromq",
        "--sizes",
        "4K",
        "--subscribers",
        "1",
    ];
    let bench = host.start(&args);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !std::fs::read_to_string(&pid).is_ok_and(|p| p.ends_with('\n')) {
        assert!(std::time::Instant::now() < deadline, "the peer does not start");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    bench.interrupt();
    let done = bench.wait();
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("stopped before the end"), "{done:?}");
    assert!(!alive(&pid), "the peer lives on");
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

/// Whether the process whose pid is in the file lives; a zombie does not count.
fn alive(pid: &Path) -> bool {
    let pid = std::fs::read_to_string(pid).expect("was written");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|s| !s.contains(") Z "))
}

#[test]
fn a_missing_system_is_an_error_only_if_it_was_named() {
    let host = Host::new();
    std::fs::create_dir_all(host.path("peers")).expect("a folder");
    std::fs::write(
        host.path("peers/Makefile"),
        "zeromq:\n\t@echo install libzmq3-dev >&2; false\n",
    )
    .expect("a file");
    let common = [
        "bench",
        "ipc",
        "--json",
        "--quick",
        "--peers",
        "peers",
        "--sizes",
        "4K",
        "--subscribers",
        "1",
    ];
    let run = |more: &[&str]| host.run(&[&common[..], &["--messages", "5"], more].concat());

    let named = run(&["--systems", "ropewalk,zeromq"]);
    assert_eq!(named.code, 1, "{named:?}");
    assert!(named.stderr.contains("zeromq cannot be measured"), "{named:?}");
    let missing = &json(&named)["missing"][0];
    assert_eq!(missing["system"], "zeromq");
    assert!(
        missing["why"]
            .as_str()
            .is_some_and(|w| w.contains("install libzmq3-dev")),
        "{missing}"
    );
    assert_eq!(
        json(&named)["cells"][0]["system"],
        "ropewalk",
        "what can be measured is"
    );

    let unnamed = run(&[]);
    assert_eq!(unnamed.code, 0, "{unnamed:?}");
    assert_eq!(json(&unnamed)["missing"].as_array().map(Vec::len), Some(9));
    assert!(unnamed.stderr.contains("zeromq is left out"), "{unnamed:?}");

    install(
        &host,
        "#!/bin/sh\necho '{\"system\": \"other\", \"version\": \"1\", \"modes\": []}'\n",
    );
    let other = run(&["--systems", "zeromq"]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(
        other.stderr.contains("nothing was measured") && other.stderr.contains("\"other\""),
        "{other:?}"
    );
}

#[test]
fn bad_options_are_refused() {
    let host = Host::new();
    for bad in [
        ["--sizes", "10"],
        ["--subscribers", "0"],
        ["--systems", "dds"],
        ["--runs", "0"],
        ["--rate", "-1"],
    ] {
        let done = host.run(&["bench", "ipc", bad[0], bad[1]]);
        assert_eq!(done.code, 2, "{bad:?}: {done:?}");
    }
    let done = host.run(&[
        "bench",
        "ipc",
        "--systems",
        "ropewalk",
        "--csv",
        "no/such/folder.csv",
    ]);
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn the_robot_stops_at_the_red_light_on_our_own_bus() {
    let host = Host::new();
    let mut args = vec![
        "bench",
        "brake",
        "--systems",
        "ropewalk",
        "--quick",
        "--runs",
        "1",
    ];
    // A small region of interest, so that slow machines process enough images.
    args.extend(["--roi", "160x128", "--json", "--figure", "brake.svg"]);
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let json = json(&done);
    assert_eq!(json["experiment"], "brake");
    assert_eq!(json["complete"], true);
    let cells = json["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2, "{json}");
    for cell in cells {
        let (params, m) = (&cell["params"], &cell["metrics"]);
        assert_eq!(
            (&cell["system"], &params["trials"]),
            (&"ropewalk".into(), &1.into())
        );
        assert_eq!(m["wrong"], 0, "{cell}");
        // The light is in view for 50 ms a turn; an overloaded machine may get no processor time in it.
        if params["application"] == "turn" && m["never_stopped"] == 1 {
            assert!(m["angle_deg"].is_null(), "{cell}");
            continue;
        }
        assert_eq!(m["never_stopped"], 0, "{cell}");
        let median = |name: &str| {
            m[name]["median"]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {cell}"))
        };
        let reaction = median("t1_ms") + median("t2_ms") + median("t3_ms") + median("command_ms");
        if params["application"] == "straight" {
            let expected = 36.0 + 0.06 * reaction;
            assert!((median("distance_cm") - expected).abs() < 1e-6, "{cell}");
        } else {
            // Without turns in which the vehicle never stopped.
            let expected = 22.5 + 0.09 * reaction - params["entry_deg"].as_f64().expect("a number");
            let turns = (expected - median("angle_deg")) / 360.0;
            assert!((turns - turns.round()).abs() < 1e-6, "{cell}");
        }
        assert!(
            m["received_ratio"].as_f64().is_some_and(|r| r > 0.0 && r <= 1.0),
            "{cell}"
        );
    }
    assert!(json["paper"]["ros_distance_cm"].is_number());
    let svg = std::fs::read_to_string(host.path("brake.svg")).expect("a figure");
    assert_eq!(svg.matches("class=\"part\"").count(), 4);
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn brake_names_what_it_cannot_measure() {
    let host = Host::new();
    let done = host.run(&["bench", "brake", "--systems", "zeromq,ropewalk"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.stderr.contains("zeromq") && done.stderr.contains("ropewalk, tcpros, nodelay"),
        "{done:?}"
    );
    let done = host.run(&["bench", "brake", "--roi", "10x10"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("64x112"), "{done:?}");
}
