//! `ropewalk ros1` without ROS; tests with ROS are in `crates/ros1/tests/ros`.

use crate::support::{Host, Running};

/// A port without a listener.
const NOBODY: &str = "http://127.0.0.1:1";

#[test]
fn bridges_that_cannot_run_are_refused_with_the_fix() {
    let host = Host::new();
    let file = |text: &str| {
        let path = host.path("bridge.yaml");
        std::fs::write(&path, text).expect("writes");
        path.to_str().expect("text").to_owned()
    };
    let good = file("topics: [{name: /scan, direction: to_bus}]");
    assert_eq!(host.run(&["ros1", "--check", &good]).code, 0);
    for (args, words) in [
        (vec!["ros1"], "--topic"),
        (vec!["ros1", "--topic", "/scan=out"], "to_bus, to_ros or both"),
        (vec!["ros1", "--topic", "scan"], "not a full name"),
        (vec!["ros1", "--service", "/grasp"], "to_bus or to_ros"),
        (
            vec!["ros1", "--topic", "/scan", "--master", "robot"],
            "http://localhost:11311",
        ),
        (vec!["ros1", "missing.yaml"], "missing.yaml"),
    ] {
        let done = host.run(&args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(done.stderr.contains(words), "{args:?}: {done:?}");
    }
    let bad = file("topics:\n  - {name: /scan, direction: to_bus, priority: 200}\n");
    let done = host.run(&["ros1", &bad]);
    assert!(
        done.code == 2 && done.stderr.contains("bridge.yaml:2:5: priority 200"),
        "{done:?}"
    );
}

#[test]
fn a_master_that_is_not_there_is_waited_for() {
    let host = Host::new();
    let mut command = host.command(&[
        "ros1", "--topic", "/scan", "--master", NOBODY, "--json", "--every", "0.1",
    ]);
    for name in ["ROS_IP", "ROS_HOSTNAME", "ROS_MASTER_URI"] {
        command.env_remove(name);
    }
    let running = Running::spawn(command);
    std::thread::sleep(std::time::Duration::from_secs(3));
    running.interrupt();
    let done = running.wait();
    assert_eq!(done.code, 0, "{done:?}");
    let last = done.stdout.lines().last().expect("a line");
    let status: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(status["master_reached"], false);
    assert!(
        status["problems"]["the ROS master"]
            .as_str()
            .expect("a problem")
            .contains("roscore"),
        "{status}"
    );
    // Logged once, as is the fact that only this host is served.
    assert_eq!(done.stderr.matches("retrying").count(), 1, "{done:?}");
    assert!(done.stderr.contains("ROS_IP"), "{done:?}");
}
