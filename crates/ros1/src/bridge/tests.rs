use super::fake::{FakeMaster, FakeNode, Graph, Table};
use super::*;
use crate::config::{ServiceRule, TopicRule};
use crate::header::{Header, MAX_HEADER};
use crate::net::Timed;
use bus::Stamp;
use schema::Schema;
use schema::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

mod hostile;
mod services;
mod several;
mod topics;

/// A watchdog: a test that takes longer hangs.
const LONG: Duration = Duration::from_secs(120);
const HELLO: &[u8] = b"\x05\0\0\0hello";

fn string() -> Schema {
    Registry::new(Flavour::Ros1).schema("std_msgs/String").unwrap()
}

/// A bus with a bridge on it, which end with the test.
struct Robot {
    handle: Handle,
    thread: Option<JoinHandle<Result<(), BridgeError>>>,
    node: Node,
    folder: Arc<tempfile::TempDir>,
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().map(|t| t.join().unwrap());
        assert!(
            std::thread::panicking() || matches!(ended, Some(Ok(()) | Err(BridgeError::Dismissed { .. })))
        );
    }
}

fn robot(master: &FakeMaster, config: Config) -> Robot {
    robot_on(master, config, Arc::new(tempfile::tempdir().unwrap()))
}

fn robot_on(master: &FakeMaster, mut config: Config, folder: Arc<tempfile::TempDir>) -> Robot {
    config.master = Some(master.uri());
    config.listen = Some([127, 0, 0, 1].into());
    let bus = BusConfig::new(folder.path());
    let bridge = Bridge::open(config, bus.clone()).unwrap();
    let handle = bridge.handle();
    let thread = Some(std::thread::spawn(move || bridge.run()));
    Robot {
        handle,
        thread,
        node: Node::with_config("test", bus).unwrap(),
        folder,
    }
}

fn topic(name: &str, direction: Direction) -> Config {
    Config::default().with_topic(TopicRule::new(name, direction))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Greets as a publisher of strings, then sends `hello` every 50 ms.
fn talk(accepted: &crate::listener::Accepted, fields: &[(&str, &str)]) {
    let mut stream = &*accepted.stream;
    if Header::read(&mut Timed::new(stream, LONG), MAX_HEADER).is_err() {
        return;
    }
    let schema = string();
    let (sum, definition) = (schema.md5_hex(), schema.definition());
    let mut all = vec![
        ("callerid", "/talker"),
        ("type", "std_msgs/String"),
        ("md5sum", &sum),
        ("message_definition", &definition),
    ];
    all.retain(|(k, _)| !fields.iter().any(|(f, _)| f == k));
    all.extend(fields);
    let mut sent = Header::new(&all).write(&mut stream);
    while sent.is_ok() {
        sent = stream.write_all(&[&(HELLO.len() as u32).to_le_bytes(), HELLO].concat());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Subscribes at the bridge like a node, and returns the header of the answer.
fn ask(robot: &Robot, fields: &[(&str, &str)]) -> (TcpStream, Header) {
    let stream = robot.handle.hub.tcpros.connect(LONG).unwrap();
    let mut timed = Timed::new(&stream, LONG);
    Header::new(fields).write(&mut timed).unwrap();
    let header = Header::read(&mut timed, MAX_HEADER).unwrap();
    (stream, header)
}

fn listen(robot: &Robot, topic: &str) -> TcpStream {
    let published = |t: &str| robot.handle.status().to_ros.contains_key(t);
    until("the topic is published in ROS", || published(topic));
    let (stream, header) = ask(
        robot,
        &[
            ("callerid", "/ear"),
            ("topic", topic),
            ("type", "*"),
            ("md5sum", "*"),
        ],
    );
    assert_eq!(header.get("error"), None);
    stream
}

fn next(stream: &TcpStream, patience: Duration) -> Option<Vec<u8>> {
    let mut timed = Timed::new(stream, patience);
    let mut len = [0; 4];
    timed.read_exact(&mut len).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    timed.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
