//! Hosts with a bus and a link daemon each, joined by UDP on this machine.
#![allow(unreachable_pub, reason = "a module of tests")]

mod ports;

use bus::{Bus, BusConfig, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions, TopicType};
use link::{Config, Daemon, Handle, LinkError, Status};
pub use ports::ports;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for any machine. A test that waits this long has failed.
pub const LONG: Duration = Duration::from_secs(120);

pub fn kind(topic: &str, type_name: &str) -> TopicType {
    TopicType {
        topic: topic.into(),
        type_name: type_name.into(),
        type_hash: [type_name.len() as u8; 16],
        flavour: Default::default(),
        definition: "uint8[] data\n".into(),
    }
}

/// A host: its bus, and its link while that runs.
pub struct Host {
    _folder: tempfile::TempDir,
    pub bus: Bus,
    text: String,
    link: Option<(Handle, JoinHandle<Result<(), LinkError>>)>,
}

impl Host {
    /// Opens a bus and starts a link with this configuration.
    pub fn start(text: &str) -> Host {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix("rwl")
            .tempdir()
            .expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("sets");
        let bus = Bus::open(BusConfig::new(folder.path())).expect("opens");
        let mut host = Host {
            _folder: folder,
            bus,
            text: text.into(),
            link: None,
        };
        host.start_link();
        host
    }

    pub fn start_link(&mut self) {
        let config = Config::parse(&self.text).unwrap_or_else(|e| panic!("{e}"));
        let carrier = link::open_carrier(&config).expect("a carrier");
        let daemon = Daemon::new(config, self.bus.clone(), carrier).expect("a daemon");
        self.link = Some((daemon.handle(), std::thread::spawn(move || daemon.run())));
    }

    pub fn stop_link(&mut self) {
        if let Some((handle, thread)) = self.link.take() {
            handle.stop();
            thread.join().expect("no panic").expect("no error");
        }
    }

    pub fn status(&self) -> Status {
        self.link.as_ref().expect("a link").0.status()
    }

    pub fn publisher(&self, topic: &str) -> Publisher {
        self.publisher_of(kind(topic, "test_msgs/Blob"))
    }

    pub fn publisher_of(&self, kind: TopicType) -> Publisher {
        self.bus
            .publisher(kind, PublisherOptions::default())
            .expect("a publisher")
    }

    pub fn subscriber(&self, topic: &str) -> Subscriber {
        self.subscriber_of(kind(topic, "test_msgs/Blob"))
    }

    pub fn subscriber_of(&self, kind: TopicType) -> Subscriber {
        let options = SubscriberOptions::default().with_depth(64);
        self.bus.subscriber(kind, options).expect("a subscriber")
    }

    /// The types of a topic's publishers on this bus.
    pub fn published(&self, topic: &str) -> Vec<String> {
        let all = self.bus.topics(Duration::from_secs(1)).expect("a survey");
        let live = all
            .into_iter()
            .filter(|i| i.topic.topic == topic && !i.publishers.is_empty());
        live.map(|i| i.topic.type_name).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.link.take() {
            if std::thread::panicking() {
                eprintln!("{:#?}", handle.status());
            }
            handle.stop();
            let _ = thread.join();
        }
    }
}

/// Publishes `text` as one message.
pub fn publish(p: &Publisher, text: &str) {
    let mut loan = p.loan(text.len(), &[]).expect("a loan");
    loan.control_mut().copy_from_slice(text.as_bytes());
    p.publish(loan, Stamp::default()).expect("publishes");
}

/// The texts that have arrived.
pub fn texts(s: &Subscriber) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(Some(m)) = s.take() {
        all.push(String::from_utf8_lossy(m.control()).into_owned());
    }
    all
}

/// Publishes `text` from time to time until `done`.
pub fn publish_until(p: &Publisher, text: &str, mut done: impl FnMut() -> bool) {
    until(text, || {
        publish(p, text);
        std::thread::sleep(Duration::from_millis(20));
        done()
    });
}

pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
