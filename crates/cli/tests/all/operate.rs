//! Commands of operators while links run.

use crate::support::{Done, Host, Running, address, eventually};
use serde_json::Value;

/// Two hosts whose links share `/chatter`, and its publisher.
struct Pair {
    robot: Host,
    base: Host,
    robot_address: String,
    running: Vec<Running>,
}

fn config(host: &Host, own: (&str, &str), peer: (&str, &str), topics: &str) {
    let text = format!(
        "host: {}\nradio: {{bind: '{}', rate: 54Mbit/s}}\npeers:\n  - {{name: {}, address: '{}'}}\n{topics}",
        own.0, own.1, peer.0, peer.1
    );
    std::fs::write(host.path("link.yaml"), text).expect("writes");
}

impl Pair {
    fn new() -> Pair {
        let (robot, base) = (Host::new(), Host::new());
        let (a, b) = (address(), address());
        config(
            &robot,
            ("robot-1", &a),
            ("base", &b),
            "topics:\n  - {name: /chatter, direction: out}\n  - {name: /silent, direction: out}\n  - {name: /cmd, direction: in}\n",
        );
        config(
            &base,
            ("base", &b),
            ("robot-1", &a),
            "topics:\n  - {name: /chatter, direction: in}\n",
        );
        let publish = [
            "topic",
            "pub",
            "/chatter",
            "std_msgs/String",
            "data: hello",
            "--rate",
            "50",
        ];
        let running = vec![
            robot.start(&publish),
            robot.start(&["link", "link.yaml"]),
            base.start(&["link", "link.yaml"]),
        ];
        let echo = base.run(&["topic", "echo", "/chatter", "-n", "3", "--wait", "60"]);
        assert_eq!(echo.code, 0, "{echo:?}");
        Pair {
            robot,
            base,
            robot_address: a,
            running,
        }
    }
}

fn json(done: &Done) -> Value {
    assert_eq!(done.code, 0, "{done:?}");
    serde_json::from_str(done.stdout.lines().next().expect("a line")).expect("JSON")
}

fn refused(host: &Host, args: &[&str], named: &[&str]) {
    let done = host.run(args);
    assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{done:?}");
    for word in named {
        assert!(done.stderr.contains(word), "{word}: {done:?}");
    }
}

#[test]
fn a_running_link_is_looked_at_and_changed() {
    let pair = Pair::new();
    let (robot, base) = (&pair.robot, &pair.base);
    let sent = |t: &Value| t["sent"][0].clone();
    // The status is updated ten times a second; three messages may arrive before that.
    let before = eventually("the status lists what is sent", || {
        let first = sent(&json(&robot.run(&["link", "status", "--json"])));
        (!first.is_null()).then_some(first)
    });
    assert_eq!(
        (&before["name"], &before["priority"]),
        (&"/chatter".into(), &50.into())
    );

    let set = robot.run(&[
        "link",
        "set",
        "/chatter",
        "priority=120",
        "depth=3",
        "deadline=200ms",
    ]);
    assert_eq!(set.code, 0, "{set:?}");
    assert_eq!(
        set.stdout.trim(),
        "to base: priority=120 depth=3 deadline=200ms rate_limit=none every=1 min_share=0%"
    );
    // The receiver learns of it.
    eventually("the peer learns of the priority", || {
        let state = json(&base.run(&["link", "status", "--json"]));
        (state["received"][0]["priority"] == 120).then_some(())
    });
    // Every fifth message only: the receiver has 10 a second instead of 50.
    assert_eq!(
        robot
            .run(&["link", "set", "chatter", "every=5", "--peer", "base"])
            .code,
        0
    );
    eventually("the topic is decimated", || {
        let state = json(&base.run(&["link", "status", "--json"]));
        let hz = state["received"][0]["recent"]["hz"].as_f64()?;
        (5.0..15.0).contains(&hz).then_some(())
    });
    let after = sent(&json(&robot.run(&["link", "status", "--json"])));
    assert!(after["drops"]["rate_limit"].as_u64() > Some(0), "{after}");

    // A change to a topic without a publisher applies once there is one.
    let kept = robot.run(&["link", "set", "/silent", "priority=7"]);
    assert!(kept.code == 0 && kept.stdout.contains("kept"), "{kept:?}");
    let publish = robot.start(&[
        "topic",
        "pub",
        "/silent",
        "std_msgs/String",
        "data: now",
        "--rate",
        "10",
    ]);
    eventually("the change counts", || {
        let state = json(&robot.run(&["link", "status", "--json"]));
        let topics = state["sent"].as_array()?.clone();
        topics
            .iter()
            .any(|t| t["name"] == "/silent" && t["priority"] == 7)
            .then_some(())
    });
    drop(publish);

    let table = robot.run(&["link", "status"]);
    assert!(
        table.code == 0 && table.stdout.contains("peer base: up"),
        "{table:?}"
    );
    assert!(table.stdout.contains("/chatter  to base"), "{table:?}");
    // The same state, as a topic for every tool.
    let echo = base.run(&["topic", "echo", "/link/base/status", "-n", "1", "--wait", "30"]);
    assert!(
        echo.stdout.contains("topic: \"/chatter\"") || echo.stdout.contains("topic: /chatter"),
        "{echo:?}"
    );
}

#[test]
fn invalid_changes_are_refused_with_the_fix() {
    let pair = Pair::new();
    let (robot, base) = (&pair.robot, &pair.base);
    let set = |host: &Host, rest: &[&str], named: &[&str]| {
        refused(host, &[&["link", "set"], rest].concat(), named);
    };
    set(
        robot,
        &["/scan", "priority=1"],
        &["/scan", "/chatter", "/silent", "configuration"],
    );
    set(robot, &["/cmd", "priority=1"], &["/cmd", "received"]);
    set(
        robot,
        &["/chatter", "priority=200"],
        &["priority=200", "0 to 127"],
    );
    set(robot, &["/chatter", "speed=2"], &["speed=2", "rate_limit"]);
    set(
        robot,
        &["/chatter", "depth=1000"],
        &["depth=1000", "configuration"],
    );
    set(
        robot,
        &["/chatter", "depth=2", "--peer", "bass"],
        &["bass", "(did you mean base?)"],
    );
    set(
        robot,
        &["/chater", "depth=2"],
        &["/chater is not", "(did you mean /chatter?)", "configuration"],
    );
    set(
        robot,
        &["/chatter", "priorty=5"],
        &["priorty=5", "(did you mean priority?)"],
    );
    set(
        robot,
        &["/silent", "depth=2", "--peer", "base"],
        &["leave out the peer"],
    );
    set(base, &["/chatter", "depth=2"], &["/chatter", "received"]);
    set(
        base,
        &["/chatter", "depth=2", "--link", "robot"],
        &["robot", "there is base"],
    );
    let nobody = Host::new();
    refused(
        &nobody,
        &["link", "status"],
        &["no link runs", "ropewalk link FILE"],
    );

    // A link that does not answer is not reported as absent.
    let daemon = &pair.running[1];
    daemon.pause();
    refused(
        robot,
        &["link", "status"],
        &[
            "no link runs",
            "no answer from ropewalk",
            &daemon.pid().to_string(),
        ],
    );
    let listed = robot.run(&["topic", "list"]);
    assert!(listed.stderr.contains("no answer from ropewalk"), "{listed:?}");
    let asking = robot.start(&["link", "status", "--json"]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    daemon.signal(rustix::process::Signal::CONT);
    assert_eq!(asking.wait().code, 0);

    // A second daemon for the same radio.
    refused(
        robot,
        &["link", "link.yaml"],
        &["robot_1", "process", "radio.name"],
    );
    // Another radio of the same host.
    let text = std::fs::read_to_string(robot.path("link.yaml")).expect("reads");
    let other = text.replace("bind:", "name: other, bind:");
    std::fs::write(robot.path("other.yaml"), &other).expect("writes");
    refused(
        robot,
        &["link", "other.yaml"],
        &["other.yaml:2:", "cannot bind", "radio.bind"],
    );
    std::fs::write(
        robot.path("other.yaml"),
        other.replace(&pair.robot_address, &address()),
    )
    .expect("writes");
    let second = robot.start(&["link", "other.yaml"]);
    eventually("both links are distinguished", || {
        let done = robot.run(&["link", "status"]);
        (done.code == 2 && done.stderr.contains("--link") && done.stderr.contains("other, robot_1"))
            .then_some(())
    });
    let state = json(&robot.run(&["link", "status", "--json", "--link", "other"]));
    assert_eq!(state["link"], "other");
    second.interrupt();
    assert_eq!(second.wait().code, 0);
}

/// A terminal with `ropewalk top` in it.
struct Terminal {
    master: std::os::fd::OwnedFd,
    child: std::process::Child,
    before: rustix::termios::Termios,
}

impl Terminal {
    fn top(host: &Host) -> Terminal {
        use rustix::fs::{Mode, OFlags};
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("grants");
        unlockpt(&master).expect("unlocks");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let line = rustix::fs::open(
            name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let line = line.expect("opens");
        let size = rustix::termios::Winsize {
            ws_row: 24,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&line, size).expect("sets");
        let before = rustix::termios::tcgetattr(&line).expect("reads");
        let mut command = host.command(&["top", "--every", "0.2"]);
        let end = || std::process::Stdio::from(line.try_clone().expect("clones"));
        command
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let child = command.spawn().expect("starts");
        Terminal {
            master,
            child,
            before,
        }
    }

    /// Reads until `text` is shown.
    fn until(&self, text: &str) -> String {
        let mut shown = String::new();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut buffer = [0; 4096];
        while !shown.contains(text) {
            assert!(std::time::Instant::now() < deadline, "never: {text:?}");
            let mut fds = [rustix::event::PollFd::new(
                &self.master,
                rustix::event::PollFlags::IN,
            )];
            let patience = rustix::event::Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            if rustix::event::poll(&mut fds, Some(&patience)).expect("waits") > 0 {
                let n = rustix::io::read(&self.master, &mut buffer).expect("reads");
                shown.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        }
        shown
    }

    fn press(&self, keys: &str) {
        rustix::io::write(&self.master, keys.as_bytes()).expect("writes");
    }

    /// Waits for the end, and checks that the terminal is restored.
    fn restored(mut self) {
        // The alternate screen is left.
        self.until("\x1b[?1049l");
        assert_eq!(self.child.wait().expect("ends").code(), Some(0));
        let after = rustix::termios::tcgetattr(&self.master).expect("reads");
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
    }
}

#[test]
fn a_peer_that_does_not_answer_is_named_wherever_operators_look() {
    let host = Host::new();
    let (own, there) = (address(), address());
    config(&host, ("robot", &own), ("base", &there), "");
    let link = host.start(&["link", "link.yaml"]);
    let text = format!("base has not answered at {there} since this link started");
    for args in [&["link", "status"][..], &["top", "-n", "1", "--every", "0.2"]] {
        eventually("the peer that does not answer is named", || {
            host.run(args).stdout.contains(&text).then_some(())
        });
    }
    let doctor = host.run(&["doctor", "--no-measure"]);
    assert!(doctor.stdout.contains(&text), "{doctor:?}");
    assert!(doctor.stdout.contains("check that its link runs"), "{doctor:?}");
    link.interrupt();
    let done = link.wait();
    assert!(done.stderr.contains(&text), "{done:?}");
}

#[test]
fn a_link_that_is_started_again_at_once_waits_for_the_one_before_it() {
    let host = Host::new();
    config(&host, ("robot", &address()), ("base", &address()), "");
    let first = host.start(&["link", "link.yaml"]);
    eventually("the first one runs", || {
        (host.run(&["link", "status"]).code == 0).then_some(())
    });
    let second = host.start(&["link", "link.yaml"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    first.interrupt();
    assert_eq!(first.wait().code, 0);
    eventually("the second one has taken over", || {
        (host.run(&["link", "status"]).code == 0).then_some(())
    });
    second.interrupt();
    let done = second.wait();
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn top_shows_a_link_live_and_changes_priorities_by_key() {
    let pair = Pair::new();
    let robot = &pair.robot;
    // Without a terminal: a plain table, or JSON.
    let plain = robot.run(&["top", "-n", "2", "--every", "0.3"]);
    assert_eq!(plain.code, 0, "{plain:?}");
    assert_eq!(
        plain.stdout.matches("link robot_1 of robot-1: air").count(),
        2,
        "{plain:?}"
    );
    let lines = pair.base.run(&["top", "-n", "2", "--every", "1", "--json"]);
    let last: Value = serde_json::from_str(lines.stdout.lines().last().expect("a line")).expect("JSON");
    let topic = &last["topics"][0];
    assert_eq!(
        (&topic["topic"], &topic["direction"]),
        (&"/chatter".into(), &"in".into())
    );
    let hz = topic["delivered_hz"].as_f64().expect("a rate");
    assert!((25.0..75.0).contains(&hz), "{topic}");
    assert!(topic["delay_mean_ms"].as_f64().is_some(), "{topic}");
    // The share counts both ends from the sender's reports, which takes a second or two; messages published before the
    // links connected are lost.
    eventually("most is delivered, and all adds up", || {
        let all = [&pair.base, robot].map(|h| json(&h.run(&["top", "-n", "1", "--every", "0.3", "--json"])));
        let topics = all.iter().map(|view| view["topics"][0].clone());
        let topics: Vec<Value> = topics.filter(|t| !t["offered"].is_null()).collect();
        for t in &topics {
            let count = |key: &str| t[key].as_u64().expect("a count");
            let lost = t["drops"].as_object().expect("reasons").values();
            let lost: u64 = lost.map(|n| n.as_u64().expect("a count")).sum();
            assert_eq!(
                count("offered"),
                count("delivered") + lost + count("in_flight"),
                "{t}"
            );
            assert!(t["delivery"].as_f64() <= Some(1.0), "{t}");
        }
        let most = |t: &Value| t["delivery"].as_f64() > Some(0.5);
        (topics.len() == 2 && topics.iter().all(most)).then_some(())
    });
    let status = robot.run(&["link", "status"]);
    assert!(status.stdout.contains("in flight"), "{status:?}");

    let terminal = Terminal::top(robot);
    terminal.until("/chatter");
    terminal.press("+>");
    eventually("the keys change the priority", || {
        let state = json(&robot.run(&["link", "status", "--json"]));
        (state["sent"][0]["priority"] == 61).then_some(())
    });
    terminal.press("q");
    terminal.restored();

    let terminal = Terminal::top(robot);
    terminal.until("/chatter");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&terminal.child),
        rustix::process::Signal::TERM,
    )
    .expect("signals");
    terminal.restored();
}
