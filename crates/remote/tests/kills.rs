//! Kills (kill -9) the robot, the controller and either host's link while commands and a file cross that link: nothing
//! is executed twice, nothing hangs, the outcome of each command is known, and everything continues when the process is
//! back.

mod link_common;

use bus::{Bus, BusConfig};
use link::{Config, Daemon};
use link_common::{LONG, addresses};
use remote::transport::link::{LinkController, LinkRobot};
use remote::{CommandKind, Controller, Outcome, Robot};
use ropewalk::Node;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Which part a process of this test binary plays, and its folder.
const PART: &str = "ROPEWALK_TEST_PART";
const FOLDER: &str = "ROPEWALK_TEST_FOLDER";
const FIRST: &str = "ROPEWALK_TEST_FIRST";

/// A few seconds over the link.
const FILE_BYTES: usize = 8_000_000;

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    number: u64,
}

struct Count;

impl CommandKind for Count {
    type Body = Number;
    const NAME: &'static str = "test.Count";
}

fn file() -> Vec<u8> {
    (0..FILE_BYTES as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Not a test of its own: it is the program of the processes that the tests start.
#[test]
#[ignore = "run by the other tests"]
fn part() {
    let (Ok(part), Ok(folder)) = (std::env::var(PART), std::env::var(FOLDER)) else {
        return;
    };
    let folder = PathBuf::from(folder);
    match part.as_str() {
        "robot-link" => daemon(&folder, "robot"),
        "base-link" => daemon(&folder, "base"),
        "robot" => robot(&folder),
        _ => controller(&folder),
    }
}

fn daemon(folder: &Path, host: &str) {
    let config = Config::load(&folder.join(format!("{host}.yaml"))).expect("a configuration");
    let bus = Bus::open(BusConfig::new(folder.join(host))).expect("opens");
    Daemon::open(config, bus)
        .expect("a daemon")
        .run()
        .expect("no error");
}

fn node(folder: &Path, host: &str) -> Node {
    Node::with_config("test", BusConfig::new(folder.join(host))).expect("a node")
}

/// Records what it executes.
fn robot(folder: &Path) {
    let end = LinkRobot::new(&node(folder, "robot"), "r1");
    let robot = Robot::builder("r1").end(Arc::new(end)).start().expect("starts");
    let path = folder.join("executed");
    let open = OpenOptions::new().create(true).append(true).open(path);
    let mut executed = open.expect("opens");
    robot.on::<Count>(move |body, _| {
        // A single write: complete, or not at all.
        let line = format!("{}\n", body.number);
        executed
            .write_all(line.as_bytes())
            .map_err(|e| e.to_string().into())
    });
    robot.share("bag", &folder.join("bag")).expect("is there");
    std::thread::sleep(Duration::MAX);
}

/// Sends numbers one after another, each as soon as the previous one is decided, and fetches the file meanwhile.
fn controller(folder: &Path) {
    let first: u64 = std::env::var(FIRST).expect("a number").parse().expect("a number");
    let end = LinkController::new(&node(folder, "base"), "r1");
    let controller = Controller::builder("operator").end(Arc::new(end)).start();
    let controller = controller.expect("starts");
    let say = |line: String| println!("# {line}");
    let fetcher = controller.clone();
    let into = folder.join("into");
    std::thread::spawn(move || {
        let mut at = 0;
        let mut seen = |p: remote::controller::Progress<'_>| {
            // Every megabyte.
            if p.done / 1_000_000 != at {
                at = p.done / 1_000_000;
                println!("# part {}", p.done);
            }
        };
        while let Err(error) = fetcher.download("bag", "", &into, &mut seen) {
            println!("# again {error}");
        }
        println!("# file");
    });
    for number in first.. {
        let outcome = controller.command::<Count>(&Number { number });
        match outcome {
            Outcome::Executed => say(format!("executed {number}")),
            other => say(format!("decided {number} {other}")),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Part(Child);

impl Drop for Part {
    /// As kill -9 does.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct World {
    folder: tempfile::TempDir,
    said: Receiver<String>,
    say: std::sync::mpsc::Sender<String>,
    /// Numbers that were sent and executed, as the controllers know.
    decided: BTreeSet<u64>,
    executed: BTreeSet<u64>,
    file: bool,
    part: u64,
}

impl World {
    fn new() -> World {
        let folder = tempfile::Builder::new()
            .prefix("rwk")
            .tempdir_in("/tmp")
            .expect("a folder");
        for host in ["robot", "base"] {
            use std::os::unix::fs::DirBuilderExt;
            let made = std::fs::DirBuilder::new()
                .mode(0o700)
                .create(folder.path().join(host));
            made.expect("a folder");
        }
        std::fs::write(folder.path().join("bag"), file()).expect("writes");
        let at = addresses::<2>();
        for (i, host, peer, role) in [
            (0, "robot", "base", "serve"),
            (1, "base", "robot", "call, from: robot"),
        ] {
            let services = [
                ("command", "priority: 110, depth: 128"),
                ("request", "priority: 60"),
                ("file", "priority: 5, depth: 64"),
            ];
            let services =
                services.map(|(class, more)| format!("{{name: /r1/remote/{class}, role: {role}, {more}}}"));
            let direction = if role == "serve" { "out" } else { "in" };
            let text = format!(
                "host: {host}\nradio: {{bind: '{}', rate: 20Mbit/s, medium: wire}}\npeers: [{{name: {peer}, address: '{}'}}]\nservices: [{}]\n\
                 topics: [{{name: '/r1/remote/telemetry/*', direction: {direction}}}]\n",
                at[i],
                at[1 - i],
                services.join(", ")
            );
            std::fs::write(folder.path().join(format!("{host}.yaml")), text).expect("writes");
        }
        let (say, said) = channel();
        World {
            folder,
            said,
            say,
            decided: BTreeSet::new(),
            executed: BTreeSet::new(),
            file: false,
            part: 0,
        }
    }

    fn start(&self, part: &str) -> Part {
        let first = self.decided.last().map_or(1, |n| n + 1_000);
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--ignored", "--exact", "part", "--nocapture"])
            .env(PART, part)
            .env(FOLDER, self.folder.path())
            .env(FIRST, first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let say = self.say.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix("# ")
                    && say.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Part(child)
    }

    /// Listens until `done`. A process that hangs prints nothing.
    fn listen(&mut self, what: &str, mut done: impl FnMut(&World) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < 4 * LONG, "{what}: never");
            match self.said.recv_timeout(LONG) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Timeout) => panic!("{what}: no output within {LONG:?}"),
                Err(RecvTimeoutError::Disconnected) => unreachable!("this end has one, too"),
            }
        }
    }

    fn hear(&mut self, line: &str) {
        let number = |text: &str| text.split(' ').next().and_then(|n| n.parse().ok());
        match line.split_once(' ') {
            Some(("executed", n)) => {
                let n = number(n).expect("a number");
                self.executed.insert(n);
                assert!(self.decided.insert(n), "{n} is decided twice");
            }
            Some(("decided", n)) => {
                assert!(
                    self.decided.insert(number(n).expect("a number")),
                    "{line}: decided twice"
                );
            }
            Some(("part", n)) => self.part = number(n).expect("a number"),
            None if line == "file" => self.file = true,
            _ => {}
        }
    }

    /// Checks what the robots recorded.
    fn check(&self) {
        let text = std::fs::read_to_string(self.folder.path().join("executed")).expect("is there");
        let mut all = BTreeSet::new();
        for line in text.lines() {
            let number: u64 = line.parse().expect("a number");
            assert!(all.insert(number), "{number} was executed twice");
        }
        let unfounded: Vec<_> = self.executed.difference(&all).collect();
        assert!(unfounded.is_empty(), "not executed: {unfounded:?}");
        let fetched = std::fs::read(self.folder.path().join("into/bag")).expect("is there");
        assert!(fetched == file(), "the file differs");
    }
}

/// Kills a part in the middle of its work, waits for `rests`, and starts it again.
fn survives(victim: &str, rests: Duration) {
    let mut world = World::new();
    let names = ["robot-link", "base-link", "robot", "controller"];
    let mut parts: Vec<_> = names.map(|name| Some(world.start(name))).into();
    world.listen("commands and pieces of the file arrive", |w| {
        w.executed.len() >= 20 && w.part >= 2_000_000
    });
    assert!(!world.file, "too quick to be killed in the middle");
    let at = names.iter().position(|n| *n == victim).expect("a name");
    parts[at] = None;
    std::thread::sleep(rests);
    // Output of the killed process.
    while let Ok(line) = world.said.try_recv() {
        world.hear(&line);
    }
    parts[at] = Some(world.start(victim));
    let before = world.executed.len();
    world.listen("everything continues", |w| {
        w.file && w.executed.len() >= before + 50
    });
    drop(parts);
    world.check();
}

#[test]
fn a_robot_that_is_killed_executes_nothing_twice() {
    survives("robot", Duration::from_millis(300));
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_behind_that_hinders_the_next() {
    survives("controller", Duration::from_millis(100));
}

#[test]
fn the_robots_link_may_be_killed() {
    survives("robot-link", Duration::from_millis(300));
}

#[test]
fn the_controllers_link_may_be_killed() {
    survives("base-link", Duration::from_millis(300));
}

#[test]
fn a_link_that_is_away_for_longer_than_the_peers_patience_is_found_again() {
    survives("robot-link", Duration::from_secs(4));
}
