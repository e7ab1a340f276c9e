//! A simulated robot, commanded line by line.

use crate::support::{Done, Host, eventually, finish, pause};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const WATCHDOG: Duration = Duration::from_secs(120);

/// A running command whose JSON lines are read as they arrive.
struct Dialog {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Lines printed since the last question other than its answer.
    reported: VecDeque<Value>,
}

impl Dialog {
    fn start(mut command: Command) -> Dialog {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Dialog {
            child,
            input,
            lines,
            reported: VecDeque::new(),
        }
    }

    /// The first line since the last question that satisfies `good`: an event may precede an answer.
    fn until(&mut self, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.reported.iter().position(&good) {
            return self.reported.remove(at).expect("found");
        }
        loop {
            let line = self.lines.recv_timeout(WATCHDOG);
            let line = line.unwrap_or_else(|e| panic!("never: {what}: {e}; reported: {:?}", self.reported));
            if good(&line) {
                return line;
            }
            self.reported.push_back(line);
        }
    }

    /// Sends a line and returns its result.
    fn ask(&mut self, line: &str) -> Value {
        self.reported.clear();
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("writes");
        self.until(line, |answer| answer["line"] == line)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signals");
    }

    /// Closes its input and returns its exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        let child = &mut self.child;
        eventually("it ends", || child.try_wait().expect("waits")).code()
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sim(host: &Host, options: &[&str]) -> Dialog {
    let args = [&["robot", "sim", "--json"][..], options].concat();
    let mut sim = Dialog::start(host.command(&args));
    sim.until("the robot is ready", |line| line["event"] == "ready");
    sim
}

fn control(host: &Host, robot: &str, options: &[&str]) -> Dialog {
    let args = [&["control", robot, "--json", "--wait", "60"][..], options].concat();
    Dialog::start(host.command(&args))
}

/// Runs a script to its end.
fn script(host: &Host, options: &[&str], lines: &str) -> Done {
    std::fs::write(host.path("script"), lines).expect("writes");
    let args = [&["control", "rover", "--wait", "60"][..], options].concat();
    let mut shell = Command::new("sh");
    let command = host.command(&args);
    // `finish` gives its commands no input; a shell does.
    shell
        .arg("-c")
        .arg("exec \"$@\" < script")
        .arg("sh")
        .arg(command.get_program())
        .args(command.get_args());
    shell.current_dir(host.path("."));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    finish(shell)
}

fn x(pose: &Value) -> f64 {
    pose["value"]["position"]["x"]
        .as_f64()
        .unwrap_or_else(|| panic!("no pose: {pose}"))
}

#[test]
fn a_robot_is_read_moved_and_stopped_over_the_bus() {
    let host = Host::new();
    let mut robot = sim(&host, &["--rate", "50"]);
    let mut desk = control(&host, "rover", &[]);
    let status = desk.ask("status");
    assert!(status["found"] == true && status["robot"] == "rover", "{status}");
    assert_eq!(desk.ask("get name")["value"]["value"], "rover");
    assert_eq!(x(&desk.ask("request pose")), 0.0);
    writeln!(desk.input.as_mut().expect("open"), "watch pose -n 2").expect("writes");
    let first = desk.until("a pose", |l| l["line"] == "watch pose -n 2");
    let second = desk.until("the next", |l| l["line"] == "watch pose -n 2");
    assert!(
        second["sequence"].as_u64() > first["sequence"].as_u64(),
        "{first} {second}"
    );
    // A named channel, and a name that is no channel.
    let celsius = desk.ask("get sensor temperature");
    assert_eq!(
        (&celsius["channel"], &celsius["value"]["name"]),
        (&1.into(), &"motor temperature".into())
    );
    assert!(
        desk.ask("get sensor pressure")["error"]
            .as_str()
            .is_some_and(|e| e.contains("1 temperature"))
    );

    let set = desk.ask("set twist 0.5 0 0  0 0 0");
    assert!(
        set["outcome"] == "executed" && set["round_trip_ms"].as_f64() > Some(0.0),
        "{set}"
    );
    eventually("it drives", || (x(&desk.ask("get pose")) > 0.1).then_some(()));
    let json = desk.ask("set twist {\"linear\": {\"x\": 0.0}}");
    assert_eq!(json["outcome"], "executed", "{json}");
    eventually("it stops", || {
        (desk.ask("get twist")["value"]["linear"]["x"] == 0.0).then_some(())
    });
    let rejected = desk.ask("set twist 0 0.3 0  0 0 0");
    assert!(
        rejected["ok"] == false && rejected["outcome"] == "rejected",
        "{rejected}"
    );
    assert!(
        rejected["reason"]
            .as_str()
            .is_some_and(|r| r.contains("linear.x")),
        "{rejected}"
    );
    let before = x(&desk.ask("get pose"));
    desk.ask("set go-to 2 0 @1");
    eventually("it is there", || {
        (x(&desk.ask("get pose")) > before.max(1.95)).then_some(())
    });

    // Joints and actions, by name and by the name of a state.
    assert_eq!(desk.ask("set joints arm_pan=0.5")["outcome"], "executed");
    eventually("the arm is there", || {
        let pan = desk.ask("get joints")["value"]["position"][0].as_f64();
        pan.is_some_and(|p| (p - 0.5).abs() < 0.01).then_some(())
    });
    assert_eq!(desk.ask("call headlights on")["outcome"], "executed");
    eventually("the headlights are on", || {
        (desk.ask("get actions")["value"]["actions"][0]["state"] == 1.0).then_some(())
    });
    assert_eq!(desk.ask("call patrol 1,0 0,1 -1,0")["outcome"], "executed");
    let refused = desk.ask("call patrol 100,0");
    assert!(
        refused["reason"].as_str().is_some_and(|r| r.contains("wall")),
        "{refused}"
    );
    assert!(
        desk.ask("call dance")["error"]
            .as_str()
            .is_some_and(|e| e.contains("patrol"))
    );
    let stats = desk.ask("stats");
    let twists = &stats["sent"]["robot_remote_control.Twist"];
    assert!(
        twists["messages"] == 3 && twists["rate_hz"].is_number(),
        "{stats}"
    );

    // The robot notices that the controller is gone, and stops what it moved.
    desk.signal(Signal::KILL);
    let lost = robot.until("the base stops", |l| {
        l["event"] == "link_lost" && l["subsystem"] == "base"
    });
    assert_eq!(lost["controller"], "control");
    drop(desk);
    let mut desk = control(&host, "rover", &[]);
    eventually("it stops", || {
        (desk.ask("get twist")["value"]["linear"]["x"] == 0.0).then_some(())
    });
    assert_eq!(desk.end(), Some(0));
}

#[test]
fn a_robot_that_slept_does_not_drive_what_expired_and_a_dead_one_is_unreachable() {
    let host = Host::new();
    let mut robot = sim(&host, &[]);
    let mut desk = control(&host, "rover", &[]);
    assert_eq!(desk.ask("set twist 0 0.1")["outcome"], "executed");
    assert_eq!(desk.ask("expiry 200")["ok"], true);
    pause(&robot.child);
    let set = desk.ask("set twist 0 0.77");
    assert!(
        ["expired", "unreachable"].contains(&set["outcome"].as_str().unwrap_or("")),
        "{set}"
    );
    robot.signal(Signal::CONT);
    // After it resumes, the robot takes the next command, after the waiting ones.
    desk.ask("expiry 5000");
    eventually("it drives again", || {
        (desk.ask("set twist 0 0.33")["outcome"] == "executed").then_some(())
    });
    let driven = std::cell::RefCell::new(Vec::new());
    robot.until("the last twist", |line| {
        let text = line["text"].as_str().unwrap_or("");
        if line["event"] == "command" {
            driven.borrow_mut().push(text.to_owned());
        }
        text.contains("0.33 rad/s")
    });
    let driven = driven.into_inner();
    assert!(driven.iter().any(|t| t.contains("0.10 rad/s")), "{driven:?}");
    assert!(!driven.iter().any(|t| t.contains("0.77")), "{driven:?}");
    desk.ask("expiry 300");
    robot.signal(Signal::KILL);
    drop(robot);
    let unreachable = desk.ask("set twist 0 0.3");
    assert_eq!(unreachable["outcome"], "unreachable", "{unreachable}");
    desk.until("the robot is lost", |l| {
        l["event"] == "robot" && l["what"] == "lost"
    });
    assert_eq!(desk.end(), Some(1));
}

#[test]
fn one_moves_at_a_time() {
    let host = Host::new();
    let _robot = sim(&host, &["--require-request"]);
    let mut first = control(&host, "rover", &["--name", "first"]);
    let mut second = control(&host, "rover", &["--name", "second"]);
    let refused = first.ask("set twist 0 0.1");
    assert_eq!(refused["outcome"], "rejected", "{refused}");
    assert_eq!(first.ask("take base")["mine"], true);
    assert_eq!(first.ask("set twist 0 0.1")["outcome"], "executed");
    assert_eq!(second.ask("authority base")["holder"], "first");
    assert_eq!(second.ask("set twist 0 0.2")["outcome"], "rejected");
    assert_eq!(second.ask("take base --over")["ok"], false);
    let id = second.ask("status")["controller_id"]
        .as_str()
        .expect("a number")
        .to_owned();
    let given = first.ask(&format!("hand-over base {id}"));
    assert_eq!(
        (&given["mine"], &given["holder"]),
        (&false.into(), &"second".into())
    );
    assert_eq!(second.ask("set twist 0 0.2")["outcome"], "executed");
    assert_eq!(second.ask("release base")["holder"], Value::Null);
    assert_eq!(first.end(), Some(1));
    assert_eq!(second.end(), Some(1));
}

#[test]
fn the_exit_code_says_whether_a_script_succeeded() {
    let host = Host::new();
    let none = host.run(&["control", "rover", "--wait", "0.2"]);
    assert!(none.code == 1 && none.stderr.contains("robot sim"), "{none:?}");
    let bad = host.run(&["control", "tcp://nowhere", "--wait", "0.2"]);
    assert!(bad.code == 2 && bad.stderr.lines().count() == 1, "{bad:?}");

    let _robot = sim(&host, &[]);
    let good = script(
        &host,
        &[],
        "# a comment\n\nget state\nset pose 1 1\nhelp go-to\nrelease base\nquit\nnonsense\n",
    );
    assert_eq!(good.code, 0, "{good:?}");
    assert!(
        good.stdout.contains("executed in ") && good.stdout.contains("max_forward_speed"),
        "{good:?}"
    );
    let failed = script(&host, &[], "set twist 9 0\nget name\n");
    assert!(
        failed.code == 1 && failed.stdout.contains("rejected: too fast"),
        "{failed:?}"
    );
    assert!(failed.stdout.contains("rover"), "goes on: {failed:?}");
    assert!(
        failed.stderr.contains("1 of 2 lines failed, the first is line 1"),
        "{failed:?}"
    );
    let stopped = script(&host, &["--stop-on-failure"], "set twist 9 0\nget name\n");
    assert!(
        stopped.code == 1 && !stopped.stdout.contains("rover"),
        "{stopped:?}"
    );
    for (line, word) in [
        ("fly", "help"),
        ("get", "help kinds"),
        ("get nonsense", "help kinds"),
        ("get pose 300", "255"),
        ("watch pose -n 0", "-n"),
        ("set twist 1 x", "FORWARD TURN"),
        ("set twist {\"linar\": 1}", "linear"),
        ("expiry soon", "MILLISECONDS"),
        ("joystick", "set twist"),
        ("hand-over base me", "status"),
        ("log loud", "debug"),
    ] {
        let done = script(&host, &[], line);
        assert!(
            done.code == 2 && done.stderr.contains("line 1: ") && done.stderr.contains(word),
            "{line}: {done:?}"
        );
    }
}

#[test]
fn zeromq_carries_it_too_and_keys_keep_unknown_controllers_out() {
    let host = Host::new();
    for name in ["robot.key", "desk.key", "thief.key"] {
        assert_eq!(host.run(&["robot", "key", name]).code, 0);
    }
    let key = std::fs::read_to_string(host.path("desk.key.pub")).expect("reads");
    std::fs::write(host.path("allowed"), format!("{} desk\n", key.trim())).expect("writes");
    let open = host.run(&["robot", "sim", "--zmq", "tcp://0.0.0.0:7010", "--for", "1"]);
    assert!(open.code == 2 && open.stderr.contains("insecure"), "{open:?}");

    let address = format!("ipc://{}", host.path("rover").display());
    let _robot = sim(
        &host,
        &["--zmq", &address, "--key", "robot.key", "--allow", "allowed"],
    );
    let keys = |key: &'static str| ["--key", key, "--robot-key", "robot.key.pub"];
    let mut desk = control(&host, &address, &keys("desk.key"));
    assert_eq!(desk.ask("set twist 0.2 0")["outcome"], "executed");
    eventually("it drives", || (x(&desk.ask("get pose")) > 0.0).then_some(()));
    assert_eq!(desk.end(), Some(0));
    let args = [&["control", &address, "--wait", "1"][..], &keys("thief.key")[..]].concat();
    let thief = host.run(&args);
    assert!(
        thief.code == 1 && thief.stderr.contains("did not answer") && thief.stderr.contains("--allow"),
        "{thief:?}"
    );
}

#[test]
fn files_are_fetched_and_questions_answered() {
    let host = Host::new();
    let _robot = sim(&host, &[]);
    let mut desk = control(&host, "rover", &[]);
    assert_eq!(desk.ask("files ls")["shared"][0]["identifier"], "model");
    assert_eq!(desk.ask("files ls model")["files"][0]["path"], "rover.urdf");
    let fetched = desk.ask("files get model rover.urdf got");
    assert_eq!(fetched["fetched"][0], "got/rover.urdf", "{fetched}");
    let urdf = std::fs::read_to_string(host.path("got/rover.urdf")).expect("reads");
    assert!(urdf.contains("<robot name=\"rover\">"), "{urdf}");
    assert_eq!(desk.ask("files get model ../secret")["ok"], false);

    for (line, meant) in [
        ("call hron", "horn"),
        ("set twits 0 0", "twist"),
        ("get poze", "pose"),
        ("joystik", "joystick"),
    ] {
        let said = desk.ask(line);
        let hint = format!("(did you mean {meant}?)");
        assert!(
            said["error"].as_str().is_some_and(|e| e.contains(&hint)),
            "{said}"
        );
    }
    let called = desk.ask("call horn");
    assert_eq!(called["outcome"], "executed", "{called}");
    let asked = desk.until("the question", |l| l["event"] == "permission");
    let uid = asked["request"].as_str().expect("a number").to_owned();
    assert_eq!(
        desk.ask(&format!("set permission {uid} yes"))["outcome"],
        "executed"
    );
    let log = |l: &Value| {
        l["event"] == "log"
            && l["message"]
                .as_str()
                .is_some_and(|m| m.contains("sounds the horn"))
    };
    desk.until("the horn", log);
    assert_eq!(desk.ask("log none")["level"], "none");
    assert_eq!(desk.end(), Some(1));
}

#[test]
fn controllers_and_robots_of_version_6_are_spoken_to() {
    let host = Host::new();
    let [requests, telemetry] = ["a", "b"].map(|name| format!("ipc://{}", host.path(name).display()));
    let _robot = sim(&host, &["--v6", &format!("{requests},{telemetry}")]);
    let mut desk = control(&host, &requests, &["--v6", &telemetry]);
    assert_eq!(desk.ask("get name")["value"]["value"], "rover");
    assert_eq!(desk.ask("set twist 0.2 0")["outcome"], "executed");
    eventually("it drives", || (x(&desk.ask("get pose")) > 0.0).then_some(()));
    assert_eq!(
        desk.ask("watch pose -n 1")["kind"],
        "robot_remote_control.CurrentPose"
    );
    assert_eq!(desk.ask("set twist 0 1 0 0 0 0")["outcome"], "rejected");
    assert_eq!(desk.end(), Some(1));
}
