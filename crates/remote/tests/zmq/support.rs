//! Sinks that keep what they receive, and a pyzmq process.

use remote::transport::{
    self, Class, ControllerEnd, ControllerSink, Reply, RobotEnd, RobotSink, Stream, TransportError,
};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Far beyond what anything here takes: a watchdog.
pub(crate) const LONG: Duration = Duration::from_secs(120);
pub(crate) const STREAM: Stream<'_> = Stream {
    kind: "test.Kind",
    channel: 3,
    priority: 50,
};

/// Answers each request by `answer`; `None` drops it.
pub(crate) struct Robot<F>(pub(crate) F);

impl<F: Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync> RobotSink for Robot<F> {
    fn request(&self, frame: &[u8], _: &transport::Peer, reply: Reply) {
        if let Some(answer) = (self.0)(frame) {
            let _ = reply.send(&answer);
        }
    }
}

pub(crate) fn echo() -> Arc<dyn RobotSink> {
    Arc::new(Robot(|frame: &[u8]| Some(frame.to_vec())))
}

/// Keeps requests until the test answers.
#[derive(Default)]
pub(crate) struct Later(pub(crate) Mutex<Vec<(Vec<u8>, Reply)>>);

impl RobotSink for Later {
    fn request(&self, frame: &[u8], _: &transport::Peer, reply: Reply) {
        self.0.lock().unwrap().push((frame.to_vec(), reply));
    }
}

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) frames: Mutex<Vec<Vec<u8>>>,
    pub(crate) count: AtomicUsize,
    pub(crate) lost: AtomicU64,
    pub(crate) connected: AtomicBool,
    pub(crate) held: AtomicBool,
}

impl ControllerSink for Heard {
    fn telemetry(&self, frame: &[u8]) {
        while self.held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        self.frames.lock().unwrap().push(frame.to_vec());
    }

    fn lost(&self, frames: u64) {
        self.lost.fetch_add(frames, Ordering::SeqCst);
    }

    fn connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::SeqCst);
    }
}

/// An address that no other test has, now or later: a robot's next run uses the address of the previous one. Each has
/// its own loopback address, because a port that was free a moment ago may be in use by another test.
pub(crate) fn address() -> String {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    let (process, n) = (std::process::id(), GIVEN.fetch_add(1, Ordering::SeqCst));
    let ip = format!(
        "127.{}.{}.{}",
        1 + (process >> 8) % 250,
        process % 250,
        1 + n % 250
    );
    let free = std::net::TcpListener::bind((ip.as_str(), 0))
        .unwrap()
        .local_addr()
        .unwrap();
    format!("tcp://{free}")
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) type Outcome = Result<Vec<u8>, TransportError>;

/// Sends a request; the receiver gets its outcome.
pub(crate) fn ask_class(
    end: &dyn ControllerEnd,
    class: Class,
    frame: &[u8],
    timeout: Duration,
) -> Receiver<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |answer: Result<&[u8], TransportError>| {
        sender.send(answer.map(<[u8]>::to_vec)).unwrap();
    });
    end.request(class, frame, timeout, done);
    receiver
}

pub(crate) fn ask(end: &dyn ControllerEnd, frame: &[u8], timeout: Duration) -> Outcome {
    ask_class(end, Class::Command, frame, timeout)
        .recv_timeout(LONG * 2)
        .expect("the request never ended")
}

/// Publishes until a listener has received a frame, because listeners connect in their own time.
pub(crate) fn publish_until_heard(robot: &dyn RobotEnd, heard: &Heard) {
    until("telemetry is heard", || {
        robot.publish(STREAM, b"\x07\x00first").unwrap();
        heard.count.load(Ordering::SeqCst) > 0
    });
}

/// A process of `tests/remote/zmq_peer.py`.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// The interpreter of `make setup`, or `None` outside CI where it is missing.
pub(crate) fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = std::env::var_os("ROPEWALK_PYTHON").map_or(root.join(".venv/bin/python"), PathBuf::from);
    let works = Command::new(&python)
        .args(["-c", "import zmq"])
        .stderr(Stdio::null())
        .status();
    if works.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let missing = format!("{} has no pyzmq: run `make setup`", python.display());
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    eprintln!("NOT TESTED: {missing}");
    None
}

/// Lines that a process prints.
pub(crate) fn lines(child: &mut Child) -> Receiver<String> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = output.lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line)).ok();
    });
    lines
}

impl Peer {
    pub(crate) fn start(mode: &str, address: &str) -> Option<Peer> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/remote/zmq_peer.py");
        let mut child = Command::new(python()?)
            .arg(script)
            .args([mode, address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(&mut child);
        let input = child.stdin.take().unwrap();
        Some(Peer { child, input, lines })
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    pub(crate) fn hear(&self) -> String {
        self.lines.recv_timeout(LONG).expect("pyzmq said nothing")
    }

    pub(crate) fn hear_within(&self, time: Duration) -> Option<String> {
        match self.lines.recv_timeout(time) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("pyzmq has ended"),
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        ".".into()
    } else {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
}
