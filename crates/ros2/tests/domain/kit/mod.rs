//! A domain and a bus for one test, a bridge between them, and peers.

mod calls;
mod peer;

pub(crate) use calls::{Client, Framing, Server};
pub(crate) use peer::{Peer, best_effort, guids, info, kept, reliable};

use bus::BusConfig;
use ropewalk::Node;
use ros2::{Bridge, BridgeError, Config, Handle, Range, Status};
use schema::{Flavour, Registry, Schema, Service, Value};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A watchdog, not a limit to test.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// How long to wait for what must not arrive.
pub(crate) const A_WHILE: Duration = Duration::from_millis(800);

/// A domain that no other test on this host uses meanwhile.
pub(crate) struct Domain {
    pub(crate) number: u32,
    _lock: File,
}

impl Domain {
    pub(crate) fn new() -> Self {
        let first = std::process::id();
        (0..)
            .map(|n| 100 + (first + n) % 100)
            .find_map(|number| {
                let path = std::env::temp_dir().join(format!("ropewalk-test-domain-{number}"));
                let lock = File::create(path).expect("a lock");
                let _lock = lock.try_lock().is_ok().then_some(lock)?;
                Some(Domain { number, _lock })
            })
            .expect("a free domain")
    }
}

/// A bus, and a bridge between it and a domain. It shuts down in order at the end of the test.
pub(crate) struct Robot {
    pub(crate) handle: Handle,
    thread: Option<JoinHandle<Result<(), BridgeError>>>,
    pub(crate) node: Node,
    pub(crate) folder: Arc<TempDir>,
}

impl Robot {
    pub(crate) fn new(domain: &Domain, config: Config) -> Self {
        Robot::on(domain, config, Arc::new(tempfile::tempdir().expect("a folder")))
    }

    pub(crate) fn on(domain: &Domain, mut config: Config, folder: Arc<TempDir>) -> Self {
        config.domain = Some(domain.number);
        config.range = Some(Range::Localhost);
        config.static_peers = Some(Vec::new());
        let bridge = Bridge::open(config, BusConfig::new(folder.path())).expect("a bridge");
        let handle = bridge.handle();
        Robot {
            handle,
            thread: Some(std::thread::spawn(move || bridge.run())),
            node: node(folder.path(), "test"),
            folder,
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.handle.status()
    }

    /// Waits until a problem of `what` that contains these words is reported.
    pub(crate) fn problem(&self, what: &str, words: &[&str]) {
        let reported = || self.status().problems.get(what).cloned().unwrap_or_default();
        until(&format!("a problem of {what} with {words:?}"), || {
            let reported = reported();
            words.iter().all(|w| reported.contains(w)).then_some(())
        });
    }

    /// Ends the bridge; the bus stays.
    pub(crate) fn stop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join().expect("no panic");
            assert!(std::thread::panicking() || ended.is_ok(), "{ended:?}");
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn node(folder: &Path, name: &str) -> Node {
    Node::with_config(name, BusConfig::new(folder)).expect("a node")
}

/// Waits until `is` returns something.
pub(crate) fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(Instant::now() < end, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn schema(name: &str) -> Schema {
    Registry::new(Flavour::Ros2).schema(name).expect("a definition")
}

pub(crate) fn service(name: &str) -> Service {
    Registry::new(Flavour::Ros2).service(name).expect("a definition")
}

pub(crate) fn value(schema: &Schema, yaml: &str) -> Value {
    schema.value_from_yaml(yaml).expect("a value")
}

pub(crate) fn cdr(schema: &Schema, yaml: &str) -> Vec<u8> {
    schema.encode_cdr(&value(schema, yaml)).expect("CDR")
}

pub(crate) fn string() -> Schema {
    schema("std_msgs/String")
}

/// `std_msgs/String` in CDR.
pub(crate) fn text(text: &str) -> Vec<u8> {
    cdr(&string(), &format!("data: {text:?}"))
}

/// The text of a message from the bus.
pub(crate) fn said(message: &ropewalk::Message) -> String {
    said_in(&message.cdr().expect("CDR"))
}

/// The text of a `std_msgs/String` in CDR.
pub(crate) fn said_in(bytes: &[u8]) -> String {
    let value = string().decode_cdr(bytes).expect("a string");
    let data = value.get("data").expect("its text");
    data.as_str().expect("a text").to_owned()
}

/// Receives strings from a subscriber until none arrives for a while.
pub(crate) fn all_said(subscriber: &ropewalk::Subscriber) -> Vec<String> {
    let mut out = Vec::new();
    while let Some(message) = subscriber.take_timeout(A_WHILE).expect("a bus") {
        out.push(said(&message));
    }
    out
}
