//! Robots and controllers on one bus, or on two that links join, and what they receive.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "a part of each test")]

#[path = "../../../link/tests/hosts/common/ports.rs"]
mod ports;

use bus::BusConfig;
use link::{Config, Daemon, Handle, LinkError, Status};
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::{
    Class, ControllerEnd, ControllerSink, Peer, Reply, RobotEnd, RobotSink, TransportError,
};
use ropewalk::Node;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for any machine; a test that waits this long has failed.
pub const LONG: Duration = Duration::from_secs(120);

type Running = (Handle, JoinHandle<Result<(), LinkError>>);

/// The places of robot and controllers.
pub struct Places {
    folder: tempfile::TempDir,
    links: Option<[String; 2]>,
    robots: Option<Running>,
    controllers: Option<Running>,
}

/// Addresses on this host that no other test gets.
pub fn addresses<const N: usize>() -> [SocketAddr; N] {
    ports::ports().map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
}

impl Places {
    fn folder() -> tempfile::TempDir {
        // A socket's path has at most 108 bytes.
        let folder = tempfile::Builder::new()
            .prefix("rwr")
            .tempdir_in("/tmp")
            .expect("a folder");
        for name in ["robot", "base"] {
            use std::os::unix::fs::DirBuilderExt;
            let folder = folder.path().join(name);
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(folder)
                .expect("a folder");
        }
        folder
    }

    /// On one bus.
    pub fn one() -> Places {
        Places {
            folder: Self::folder(),
            links: None,
            robots: None,
            controllers: None,
        }
    }

    /// On two hosts with a link each, configured as the guide says.
    pub fn two() -> Places {
        let [robot, base] = addresses();
        let robots = format!(
            "
host: robot
radio: {{bind: '{robot}', rate: 600Mbit/s, queue_bytes: 64MiB}}
peers: [{{name: base, address: '{base}'}}]
services:
  - {{name: /r1/remote/command, role: serve, priority: 110, depth: 128}}
  - {{name: /r1/remote/request, role: serve, priority: 60, reliability: bulk}}
  - {{name: /r1/remote/file, role: serve, priority: 5}}
topics:
  - {{name: '/r1/remote/telemetry/*', direction: out, publisher_priority: true, latched: true}}
  - {{name: '/r1/remote/telemetry/large/*', direction: out, latched: true, reliability: bulk, priority: 5, depth: 2}}
"
        );
        let controllers = format!(
            "
host: base
radio: {{bind: '{base}', rate: 600Mbit/s, queue_bytes: 64MiB}}
peers: [{{name: robot, address: '{robot}'}}]
services:
  - {{name: /r1/remote/command, role: call, from: robot, priority: 110, depth: 128}}
  - {{name: /r1/remote/request, role: call, from: robot, priority: 60}}
  - {{name: /r1/remote/file, role: call, from: robot, priority: 5}}
topics:
  - {{name: '/r1/remote/telemetry/*', direction: in}}
"
        );
        let mut fixtures = Self::one();
        fixtures.links = Some([robots, controllers]);
        fixtures.start_robots_link();
        let [_, text] = fixtures.links.as_ref().expect("links");
        fixtures.controllers = Some(start(text, &fixtures.bus("base")));
        fixtures
    }

    pub fn are_two(&self) -> bool {
        self.links.is_some()
    }

    fn bus(&self, of: &str) -> std::path::PathBuf {
        self.folder.path().join(match self.links {
            Some(_) => of,
            None => "robot",
        })
    }

    pub fn robots_node(&self) -> Node {
        Node::with_config("robot", BusConfig::new(self.bus("robot"))).expect("a node")
    }

    pub fn controllers_node(&self) -> Node {
        Node::with_config("operator", BusConfig::new(self.bus("base"))).expect("a node")
    }

    pub fn start_robots_link(&mut self) {
        let [text, _] = self.links.as_ref().expect("links");
        self.robots = Some(start(text, &self.bus("robot")));
    }

    pub fn stop_robots_link(&mut self) {
        stop(&mut self.robots);
    }

    pub fn stop_controllers_link(&mut self) {
        stop(&mut self.controllers);
    }

    /// Returns the links' configurations, the robot's first.
    pub fn configs(&self) -> [Config; 2] {
        let texts = self.links.as_ref().expect("links");
        [&texts[0], &texts[1]].map(|text| Config::parse(text).unwrap_or_else(|e| panic!("{e}")))
    }

    pub fn robots_status(&self) -> Status {
        self.robots.as_ref().expect("a link").0.status()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        stop(&mut self.robots);
        stop(&mut self.controllers);
    }
}

fn start(text: &str, folder: &Path) -> Running {
    let config = Config::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let bus = bus::Bus::open(BusConfig::new(folder)).expect("opens");
    let daemon = Daemon::open(config, bus).expect("a daemon");
    (daemon.handle(), std::thread::spawn(move || daemon.run()))
}

fn stop(link: &mut Option<Running>) {
    if let Some((handle, thread)) = link.take() {
        handle.stop();
        thread.join().expect("no panic").expect("no error");
    }
}

type OnRequest = Box<dyn Fn(&[u8], Reply) + Send + Sync>;

/// How a robot handles requests.
pub struct RobotSide(OnRequest);

impl RobotSide {
    pub fn new(on: impl Fn(&[u8], Reply) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(RobotSide(Box::new(on)))
    }
}

impl RobotSink for RobotSide {
    fn request(&self, frame: &[u8], _: &Peer, reply: Reply) {
        (self.0)(frame, reply);
    }
}

pub fn robot(
    fixtures: &Places,
    on: impl Fn(&[u8], Reply) + Send + Sync + 'static,
) -> (LinkRobot, Arc<RobotSide>) {
    let robot = LinkRobot::new(&fixtures.robots_node(), "r1");
    let sink = RobotSide::new(on);
    robot.start(sink.clone()).expect("starts");
    (robot, sink)
}

/// A robot that echoes its requests.
pub fn echo(fixtures: &Places) -> (LinkRobot, Arc<RobotSide>) {
    robot(fixtures, |frame, reply| {
        // The requester may be gone.
        let _ = reply.send(frame);
    })
}

/// What a controller received.
#[derive(Default)]
pub struct Heard {
    state: Mutex<State>,
    changed: Condvar,
    /// Held if the controller is to be slow.
    gate: Mutex<()>,
}

#[derive(Default)]
struct State {
    frames: Vec<Vec<u8>>,
    lost: u64,
    connected: bool,
}

impl Heard {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn wait(&self, what: &str, done: impl Fn(&State) -> bool) {
        let state = self.state.lock().expect("no panic");
        let waited = self.changed.wait_timeout_while(state, LONG, |s| !done(s));
        let (state, waited) = waited.expect("no panic");
        let got: Vec<usize> = state.frames.iter().map(Vec::len).collect();
        assert!(
            !waited.timed_out(),
            "{what}: never; received frames of {got:?} B, {} lost",
            state.lost
        );
    }

    pub fn wait_connected(&self, connected: bool) {
        self.wait(&format!("connected {connected}"), |s| s.connected == connected);
    }

    pub fn wait_frame(&self, frame: &[u8]) {
        self.wait(&format!("a frame of {} B", frame.len()), |s| {
            s.frames.iter().any(|f| f == frame)
        });
    }

    pub fn has(&self, frame: &[u8]) -> bool {
        self.count(frame) > 0
    }

    pub fn count(&self, frame: &[u8]) -> usize {
        let state = self.state.lock().expect("no panic");
        state.frames.iter().filter(|f| *f == frame).count()
    }

    pub fn lost(&self) -> u64 {
        self.state.lock().expect("no panic").lost
    }

    /// Makes the next frame wait until the guard is dropped.
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().expect("no panic")
    }
}

impl ControllerSink for Heard {
    fn telemetry(&self, frame: &[u8]) {
        drop(self.gate.lock());
        self.state.lock().expect("no panic").frames.push(frame.to_vec());
        self.changed.notify_all();
    }

    fn lost(&self, frames: u64) {
        self.state.lock().expect("no panic").lost += frames;
        self.changed.notify_all();
    }

    fn connected(&self, connected: bool) {
        self.state.lock().expect("no panic").connected = connected;
        self.changed.notify_all();
    }
}

pub fn controller(fixtures: &Places) -> (LinkController, Arc<Heard>) {
    let controller = LinkController::new(&fixtures.controllers_node(), "r1");
    let heard = Heard::new();
    controller.start(heard.clone()).expect("starts");
    (controller, heard)
}

pub type Answer = Result<Vec<u8>, TransportError>;

pub fn ask_later(
    controller: &dyn ControllerEnd,
    class: Class,
    frame: &[u8],
    timeout: Duration,
) -> Receiver<Answer> {
    let (done, answer) = channel();
    let done = move |result: Result<&[u8], _>| {
        let _ = done.send(result.map(<[u8]>::to_vec));
    };
    controller.request(class, frame, timeout, Box::new(done));
    answer
}

pub fn ask(controller: &dyn ControllerEnd, class: Class, frame: &[u8], timeout: Duration) -> Answer {
    let answer = ask_later(controller, class, frame, timeout);
    answer.recv_timeout(2 * LONG).expect("done is called")
}

/// Waits until a class has a server: each class is found separately.
pub fn reached(controller: &dyn ControllerEnd, class: Class) {
    until("it is reached", || {
        !matches!(
            ask(controller, class, b"?", LONG),
            Err(TransportError::NotSent(_))
        )
    });
}

pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
