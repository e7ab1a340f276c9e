//! Two link daemons between two buses.

use crate::support::{Host, address, eventually};

fn config(host: &Host, own: (&str, &str), peer: (&str, &str), direction: &str) {
    let text = format!(
        "host: {}\nradio: {{bind: '{}', rate: 54Mbit/s}}\npeers:\n  - {{name: {}, address: '{}'}}\n\
         topics:\n  - {{name: /chatter, priority: 100, direction: {direction}}}\n",
        own.0, own.1, peer.0, peer.1
    );
    std::fs::write(host.path("link.yaml"), text).expect("writes");
}

#[test]
fn a_topic_crosses_and_a_restarted_daemon_is_found_again() {
    let (robot, base) = (Host::new(), Host::new());
    let (a, b) = (address(), address());
    config(&robot, ("robot", &a), ("base", &b), "out");
    config(&base, ("base", &b), ("robot", &a), "in");
    let publish = robot.start(&[
        "topic",
        "pub",
        "/chatter",
        "std_msgs/String",
        "data: hello",
        "--rate",
        "50",
    ]);
    let robot_link = robot.start(&["link", "link.yaml"]);
    for round in 0..2 {
        let base_link = base.start(&["link", "link.yaml"]);
        let echo = base.run(&["topic", "echo", "/chatter", "-n", "3", "--wait", "30"]);
        assert_eq!(
            (echo.code, echo.stdout.matches("hello").count()),
            (0, 3),
            "{round}: {echo:?}"
        );
        if round == 1 {
            base_link.interrupt();
            let done = base_link.wait();
            assert_eq!(done.code, 0, "{done:?}");
            assert!(
                done.stderr.contains("robot sends /chatter (std_msgs/String)"),
                "{done:?}"
            );
        }
        // The first round kills it, like a crash.
    }
    robot_link.interrupt();
    let done = robot_link.wait();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("base has restarted"), "{done:?}");
    publish.interrupt();
    assert_eq!(publish.wait().code, 0);
    assert!(robot.left_behind().is_empty(), "{:?}", robot.left_behind());
    // The next survey removes the killed daemon's socket.
    base.run(&["topic", "list"]);
    assert!(base.left_behind().is_empty(), "{:?}", base.left_behind());
}

#[test]
fn the_state_is_printed_at_the_end_too() {
    let host = Host::new();
    let (a, b) = (address(), address());
    config(&host, ("robot", &a), ("base", &b), "out");
    let link = host.start(&["link", "link.yaml", "--json", "--every", "3600"]);
    eventually("the link is up", || {
        (host.run(&["link", "status"]).code == 0).then_some(())
    });
    link.interrupt();
    let done = link.wait();
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
    let status: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(status["host"], "robot");
}

#[test]
fn status_is_json() {
    let host = Host::new();
    let (a, b) = (address(), address());
    config(&host, ("robot", &a), ("base", &b), "out");
    let link = host.start(&["link", "link.yaml", "--json", "--every", "0.1"]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    link.interrupt();
    let done = link.wait();
    let last = done.stdout.lines().last().expect("a line");
    let status: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(status["host"], "robot");
    assert_eq!(status["unpublished"], serde_json::json!(["/chatter"]));
    assert_eq!(status["peers"][0]["name"], "base");
    assert_eq!(status["peers"][0]["up"], false);
}

#[test]
fn the_log_is_sentences_or_lines_of_json() {
    let host = Host::new();
    let (a, b) = (address(), address());
    config(&host, ("robot", &a), ("base", &b), "out");
    let up = format!("link up: robot, over udp at {a}");
    let log = |words: &[&str]| {
        let link = host.start(&[&["link", "link.yaml"], words].concat());
        eventually("the link is up", || {
            (host.run(&["link", "status"]).code == 0).then_some(())
        });
        link.interrupt();
        link.wait().stderr
    };
    let text = log(&[]);
    assert!(text.lines().any(|l| l.ends_with(&format!("INFO {up}"))), "{text}");
    let lines = log(&["--log", "json"]);
    let all: Vec<serde_json::Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .collect();
    let is_up = |l: &serde_json::Value| l["level"] == "INFO" && l["message"] == *up;
    assert!(all.iter().any(is_up), "{lines}");
}
