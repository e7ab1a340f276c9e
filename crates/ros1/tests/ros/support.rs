//! A roscore, nodes of rospy and roscpp, and a bridge, for one test.

use ropewalk::{BusConfig, Node};
use ros1::{Bridge, Config, Handle};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A watchdog: whatever takes longer hangs.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Whether ROS is installed. CI must have it.
pub(crate) fn has_ros() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let imports = "import rospy, sensor_msgs, std_srvs, tf2_msgs, rosgraph, roslaunch";
        let python = Command::new("/usr/bin/python3")
            .args(["-c", imports])
            .stderr(Stdio::null())
            .status();
        let found = python.is_ok_and(|s| s.success()) && Path::new("/usr/bin/roscore").exists();
        let missing = "install the Debian packages of tests/ros1/apt.txt";
        assert!(found || std::env::var_os("CI").is_none(), "{missing}");
        if !found {
            eprintln!("skipped: {missing}");
        }
        found
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ros1")
}

/// The roscpp node, built once.
pub(crate) fn cpp() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ros1-peer");
        let flags = Command::new("pkg-config")
            .args([
                "--cflags",
                "--libs",
                "roscpp",
                "sensor_msgs",
                "std_msgs",
                "std_srvs",
            ])
            .output();
        let flags = String::from_utf8(flags.expect("pkg-config").stdout).expect("text");
        let mut command = Command::new("g++");
        command
            .args(["-std=c++17", "-O1", "-o"])
            .arg(&out)
            .arg(folder().join("peer.cpp"));
        let built = command.args(flags.split_whitespace()).output().expect("g++");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        out
    })
}

/// A process that is asked to end with the test, and killed if it does not.
pub(crate) struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::null()).spawn().expect("starts"))
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), signal);
    }

    /// It and what it started, such as rosmaster and rosout.
    fn tree(&self) -> Vec<u32> {
        let (mut left, mut all) = (vec![self.0.id()], Vec::new());
        while let Some(pid) = left.pop() {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
            all.push(pid);
        }
        all
    }
}

/// Kills what is left of these: rosmaster outlives a roscore that was killed because it took long to end.
fn kill(all: &[u32]) {
    let is_ours = |pid: &&u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.contains("ros"))
    };
    let pids = all.iter().filter(is_ours).filter_map(|p| i32::try_from(*p).ok());
    for pid in pids.filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let all = self.tree();
        self.signal(rustix::process::Signal::INT);
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.0.try_wait() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
        kill(&all);
    }
}

/// A roscore on its own port.
pub(crate) struct Roscore {
    process: Option<Process>,
    pub(crate) port: u16,
    home: tempfile::TempDir,
}

impl Roscore {
    pub(crate) fn start() -> Roscore {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("a port").port();
        drop(free);
        let home = tempfile::tempdir().expect("a folder");
        let mut core = Roscore {
            process: None,
            port,
            home,
        };
        core.again();
        core
    }

    /// Ends it without notifying its nodes.
    pub(crate) fn end(&mut self) {
        self.process = None;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        until("nobody answers", || TcpStream::connect(address).is_err());
    }

    /// Kills all of it, like a power cut.
    pub(crate) fn kill(&mut self) {
        kill(&self.process.as_ref().expect("it runs").tree());
        self.end();
    }

    /// Starts it at the same address.
    pub(crate) fn again(&mut self) {
        let mut command = Command::new("roscore");
        command
            .args(["-p", &self.port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.prepare(&mut command);
        self.process = Some(Process::start(&mut command));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        until("roscore answers", || TcpStream::connect(address).is_ok());
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env("ROS_MASTER_URI", self.uri())
            .env("ROS_IP", "127.0.0.1")
            .env("ROS_HOME", self.home.path());
        command.env_remove("ROS_HOSTNAME").env("PYTHONUNBUFFERED", "1");
    }

    /// A node of rospy: `tests/ros1/peer.py`.
    pub(crate) fn py(&self, args: &[&str]) -> Peer {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(folder().join("peer.py")).args(args);
        self.peer(command)
    }

    /// A node of roscpp: `tests/ros1/peer.cpp`.
    pub(crate) fn cpp(&self, args: &[&str]) -> Peer {
        let mut command = Command::new(cpp());
        command.args(args);
        self.peer(command)
    }

    fn peer(&self, mut command: Command) -> Peer {
        self.prepare(&mut command);
        let mut process = Process::start(command.stdout(Stdio::piped()));
        let stdout = process.0.stdout.take().expect("piped");
        let (tx, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines.map_while(Result::ok).try_for_each(|line| tx.send(line))
        });
        Peer {
            lines,
            _process: process,
        }
    }

    /// Returns the output of one of ROS's tools once it contains `words`.
    pub(crate) fn tool(&self, args: &[&str], words: &[&str]) -> String {
        let mut last = String::new();
        until(&format!("{args:?} shows {words:?}"), || {
            let mut command = Command::new(args[0]);
            command.args(&args[1..]);
            self.prepare(&mut command);
            let output = command.output().expect("runs");
            last = String::from_utf8_lossy(&output.stdout).into_owned();
            words.iter().all(|w| last.contains(w))
        });
        last
    }
}

/// A node and what it prints.
pub(crate) struct Peer {
    lines: Receiver<String>,
    _process: Process,
}

impl Peer {
    /// Returns its next line.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(LONG).expect("the node prints a line")
    }

    /// Returns its next line, if one arrives within `patience`.
    pub(crate) fn soon(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }
}

/// A bridge on its own bus.
pub(crate) struct Robot {
    pub(crate) node: Node,
    pub(crate) handle: Handle,
    thread: Option<JoinHandle<()>>,
    folder: Arc<tempfile::TempDir>,
}

impl Robot {
    pub(crate) fn start(core: &Roscore, yaml: &str) -> Robot {
        Robot::start_in(core, yaml, Arc::new(tempfile::tempdir().expect("a folder")))
    }

    /// Another bridge on the same bus.
    pub(crate) fn beside(&self, core: &Roscore, yaml: &str) -> Robot {
        Robot::start_in(core, yaml, self.folder.clone())
    }

    fn start_in(core: &Roscore, yaml: &str, folder: Arc<tempfile::TempDir>) -> Robot {
        let mut config = Config::parse(yaml, "test").expect("a configuration");
        config.master = Some(core.uri());
        config.listen = Some(Ipv4Addr::LOCALHOST.into());
        let bus = BusConfig::new(folder.path());
        let bridge = Bridge::open(config, bus.clone()).expect("a bridge");
        let handle = bridge.handle();
        let thread = std::thread::spawn(move || bridge.run().expect("ends well"));
        Robot {
            node: Node::with_config("test", bus).expect("a node"),
            handle,
            thread: Some(thread),
            folder,
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the bridge: {:#?}", self.handle.status());
        }
        self.handle.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
