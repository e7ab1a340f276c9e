//! Which messages a recorder keeps, loses and counts, and when it ends.

use crate::support::{Done, Host, Running, eventually};
use bus::{BusConfig, MemoryPolicy};
use recording::Recording;
use ropewalk::{Node, Publisher, PublisherOptions, Registry, Schema};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

fn schema(name: &str) -> Schema {
    let mut registry = Registry::new(ropewalk::Flavour::Ros1);
    let added = registry.add_embedded("t/Bytes", "uint32 number\nuint8[] data");
    added.expect("a definition");
    registry.schema(name).expect("a schema")
}

fn node(host: &Host) -> Node {
    Node::with_config("test", BusConfig::new(host.path("bus"))).expect("a node")
}

fn publisher(node: &Node, topic: &str) -> Publisher {
    // Published messages wait for the recorder: only the recorder can lose one.
    let options = PublisherOptions::default()
        .with_memory_limit(1 << 30)
        .with_memory_policy(MemoryPolicy::WorstEffort);
    let publisher = node.dynamic_publisher_with(topic, &schema("t/Bytes"), options);
    publisher.expect("a publisher")
}

/// A message of `t/Bytes` in ROS 1's serialization.
fn bytes(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((len as u32).to_le_bytes());
    bytes.resize(8 + len, 7);
    bytes
}

fn record(host: &Host, more: &[&str]) -> Running {
    host.start(&[&["record", "out.mcap", "--json"], more].concat())
}

fn awaited(publisher: &Publisher) {
    assert!(publisher.wait_for_subscribers(1, LONG), "nobody records");
}

fn result(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

/// The numbers of a topic's messages, and whether the file is complete.
fn numbers(file: &Path, topic: &str) -> (Vec<u32>, bool) {
    let recording = Recording::open(file).expect("opens");
    let mut whole = recording.damage().is_none();
    let mut numbers = Vec::new();
    for message in recording.messages() {
        match message {
            Ok(m) if recording.channel(m.channel).topic == topic => {
                numbers.push(u32::from_le_bytes(m.data[..4].try_into().expect("4 bytes")));
            }
            Ok(_) => {}
            Err(_) => whole = false,
        }
    }
    (numbers, whole)
}

#[test]
fn a_burst_is_recorded_though_the_recorder_stands_still() {
    let host = Host::new();
    let record = record(&host, &[]);
    let node = node(&host);
    let publisher = publisher(&node, "/burst");
    awaited(&publisher);
    record.pause();
    for number in 0..4000 {
        publisher.publish_ros1(&bytes(number, 100)).expect("publishes");
    }
    record.signal(Signal::CONT);
    record.interrupt();
    let done = record.wait();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        numbers(&host.path("out.mcap"), "/burst"),
        ((0..4000).collect(), true)
    );
}

/// The publisher continues until the recorder has ended.
#[test]
fn a_topic_that_never_pauses_does_not_keep_the_recorder_from_its_end() {
    for by_signal in [false, true] {
        let host = Host::new();
        let record = record(&host, if by_signal { &[] } else { &["--duration", "4"] });
        let node = node(&host);
        let options = PublisherOptions::default();
        let publisher = node
            .dynamic_publisher_with("/fast", &schema("t/Bytes"), options)
            .expect("a publisher");
        let quiet = node
            .dynamic_publisher("/quiet", &schema("t/Bytes"))
            .expect("a publisher");
        awaited(&publisher);
        awaited(&quiet);
        quiet.publish_ros1(&bytes(1, 10)).expect("publishes");
        let over = Arc::<AtomicBool>::default();
        let until = over.clone();
        let fast = std::thread::spawn(move || {
            let message = bytes(0, 1000);
            while !until.load(Ordering::Relaxed) {
                // A message that does not fit does not matter here.
                let _ = publisher.publish_ros1(&message);
            }
        });
        if by_signal {
            std::thread::sleep(Duration::from_millis(500));
            record.interrupt();
        }
        let done = record.wait();
        over.store(true, Ordering::Relaxed);
        fast.join().expect("publishes");
        assert!([0, 3].contains(&done.code), "{done:?}");
        assert_eq!(
            numbers(&host.path("out.mcap"), "/quiet"),
            (vec![1], true),
            "{done:?}"
        );
    }
}

/// A disk that stalls after some bytes: a pipe whose reader stops after a limit.
struct StuckDisk {
    read: Arc<AtomicU64>,
    release: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Vec<u8>>>,
}

impl StuckDisk {
    fn new(path: &Path, most: usize) -> Self {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let (read, release) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, released, path) = (read.clone(), release.clone(), path.to_owned());
        let thread = std::thread::spawn(move || {
            let mut file = std::fs::File::open(path).expect("opens");
            let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                while all.len() >= most && !released.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                match file.read(&mut buffer).expect("reads") {
                    0 => return all,
                    n => all.extend_from_slice(&buffer[..n]),
                }
                count.store(all.len() as u64, Ordering::Relaxed);
            }
        });
        StuckDisk {
            read,
            release,
            thread: Some(thread),
        }
    }

    /// After the writer has ended: everything that it wrote.
    fn content(mut self) -> Vec<u8> {
        self.release.store(true, Ordering::Relaxed);
        self.thread.take().expect("once").join().expect("reads")
    }
}

impl Drop for StuckDisk {
    fn drop(&mut self) {
        self.release.store(true, Ordering::Relaxed);
    }
}

/// Publishes 20 MB, in messages of 10 kB, which a stalled disk cannot take.
fn flood(publisher: &Publisher) {
    for number in 0..2000 {
        publisher.publish_ros1(&bytes(number, 10_000)).expect("publishes");
    }
}

#[test]
fn a_disk_that_stands_still_does_not_keep_the_recorder_from_its_end() {
    let host = Host::new();
    let disk = StuckDisk::new(&host.path("out.mcap"), 3_000_000);
    let record = record(
        &host,
        &[
            "--force",
            "--compression",
            "none",
            "--duration",
            "6",
            "--buffer",
            "8",
        ],
    );
    let node = node(&host);
    let publisher = publisher(&node, "/camera");
    awaited(&publisher);
    flood(&publisher);
    // The disk stalls until the end, and takes the rest of its chunk only afterwards.
    let done = record.wait();
    let result = result(&done);
    assert_eq!(done.code, 3, "{done:?}");
    let (safe, lost) = (
        result["messages"].as_u64().expect("a number"),
        result["drops"]["unwritten"].as_u64().expect("a number"),
    );
    assert_eq!(safe + lost, 2000, "{done:?}");
    assert!(done.stderr.contains("--buffer"), "{done:?}");
    std::fs::write(host.path("read.mcap"), disk.content()).expect("writes");
    let (read, _) = numbers(&host.path("read.mcap"), "/camera");
    assert!(
        read.len() as u64 >= safe && safe > 100,
        "{} read, {done:?}",
        read.len()
    );
    assert_eq!(read, (0..read.len() as u32).collect::<Vec<_>>());
}

#[test]
fn after_ctrl_c_what_waits_is_written_and_a_second_one_ends_at_once() {
    for patient in [true, false] {
        let host = Host::new();
        let disk = StuckDisk::new(&host.path("out.mcap"), 100_000);
        let record = record(&host, &["--force", "--compression", "none"]);
        let node = node(&host);
        let publisher = publisher(&node, "/camera");
        awaited(&publisher);
        flood(&publisher);
        eventually("the disk stands still", || {
            (disk.read.load(Ordering::Relaxed) >= 100_000).then_some(())
        });
        record.interrupt();
        std::thread::sleep(Duration::from_secs(1));
        assert!(
            Path::new(&format!("/proc/{}/fd/0", record.pid())).exists(),
            "it waits for the disk"
        );
        if patient {
            std::fs::write(host.path("read.mcap"), disk.content()).expect("writes");
            let done = record.wait();
            assert_eq!(
                (done.code, result(&done)["messages"].as_u64()),
                (0, Some(2000)),
                "{done:?}"
            );
            let (read, whole) = numbers(&host.path("read.mcap"), "/camera");
            assert!(whole && read.len() == 2000);
        } else {
            record.interrupt();
            assert_eq!(record.wait().code, 1);
        }
    }
}

#[test]
fn a_message_over_the_limit_and_one_that_is_none_cost_themselves_alone() {
    let host = Host::new();
    let record = record(&host, &[]);
    let node = node(&host);
    let publishers = [publisher(&node, "/mixed"), publisher(&node, "/other")];
    publishers.iter().for_each(awaited);
    let [mixed, other] = &publishers;
    for number in 0..30 {
        if number == 10 {
            let mut loan = mixed.loan(4, &[200_000_000]).expect("memory");
            loan.control_mut().fill(0);
            mixed.publish(loan).expect("publishes");
        }
        if number == 20 {
            // A control part that does not match the type.
            let mut loan = mixed.loan(1, &[]).expect("memory");
            loan.control_mut().fill(0xFF);
            mixed.publish(loan).expect("publishes");
        }
        for publisher in [mixed, other] {
            publisher.publish_ros1(&bytes(number, 5000)).expect("publishes");
        }
    }
    record.interrupt();
    let done = record.wait();
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(
        result(&done)["drops"],
        serde_json::json!({ "malformed": 1, "too_large": 1 }),
        "{done:?}"
    );
    for topic in ["/mixed", "/other"] {
        let read = numbers(&host.path("out.mcap"), topic);
        assert_eq!(read, ((0..30).collect(), true), "{topic}: {done:?}");
    }
    assert!(done.stderr.matches("left out a message").count() == 2, "{done:?}");
}

#[test]
fn a_recorder_that_is_killed_leaves_what_came_a_second_before() {
    let host = Host::new();
    let record = record(&host, &["--sync", "1"]);
    let node = node(&host);
    let publisher = publisher(&node, "/a");
    awaited(&publisher);
    for number in 0..500 {
        publisher.publish_ros1(&bytes(number, 1000)).expect("publishes");
    }
    // The open chunk is closed although no further message arrives.
    let file = host.path("out.mcap");
    eventually("the open chunk is closed", || {
        (Recording::open(&file).is_ok() && numbers(&file, "/a").0.len() == 500).then_some(())
    });
    for number in 500..600 {
        publisher.publish_ros1(&bytes(number, 1000)).expect("publishes");
    }
    record.signal(Signal::KILL);
    record.wait();
    let (read, _) = numbers(&file, "/a");
    assert!(read.len() >= 500);
    assert_eq!(read, (0..read.len() as u32).collect::<Vec<_>>());
    assert!(Recording::open(&file).expect("opens").damage().is_none());
}

/// Plays a recording with both kinds of latched topics, joins late, records all of it, and returns the copy's channels.
fn played_and_recorded(file: &str, late: &str) -> (Vec<String>, Vec<recording::Channel>) {
    let host = Host::new();
    let vectors = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/vectors/recording"
    ));
    std::fs::copy(vectors.join(file), host.path(file)).expect("copies");
    let node = node(&host);
    let record = record(&host, &[]);
    let play = host.start(&["play", file, "--speed", "0.3"]);
    let tick = node.discover("/tick", LONG).expect("is played");
    let ticks = node.dynamic_subscriber("/tick", &tick).expect("a subscriber");
    // The second tick is published after the others' only messages.
    for _ in 0..2 {
        assert!(ticks.take_timeout(LONG).expect("takes").is_some());
    }
    let schema = node.discover(late, LONG).expect("is played");
    let subscriber = node.dynamic_subscriber(late, &schema).expect("a subscriber");
    let mut came = Vec::new();
    while let Some(message) = subscriber.take_timeout(Duration::from_secs(2)).expect("takes") {
        assert!(message.is_history());
        let value = message.value().expect("a value");
        came.push(format!("{}: {value:?}", message.bus().offer().node));
    }
    came.sort();
    assert_eq!(play.wait().code, 0);
    record.interrupt();
    let done = record.wait();
    assert_eq!(done.code, 0, "{done:?}");
    let copy = Recording::open(host.path("out.mcap")).expect("opens");
    let mut channels: Vec<_> = copy
        .channels()
        .iter()
        .filter(|c| c.topic == late)
        .cloned()
        .collect();
    channels.sort_by(|a, b| a.callerid.cmp(&b.callerid));
    (came, channels)
}

#[test]
fn latched_messages_reach_late_subscribers_of_a_player_and_stay_latched_when_recorded() {
    let (came, channels) = played_and_recorded("latched.bag", "/static");
    assert!(
        came.len() == 2 && came[0].contains("/p1") && came[1].contains("/p2"),
        "{came:?}"
    );
    let kept: Vec<_> = channels
        .iter()
        .map(|c| (c.latched, c.callerid.as_deref()))
        .collect();
    assert_eq!(kept, [(true, Some("/p1")), (true, Some("/p2"))]);
}

#[test]
fn a_durable_topic_of_ros_2_is_played_and_recorded_as_durable() {
    use recording::qos::{Durability, Reliability};
    let (came, channels) = played_and_recorded("transient.mcap", "/tl");
    assert!(
        came.len() == 1 && came[0].contains("robot_description"),
        "{came:?}"
    );
    let [channel] = &channels[..] else {
        panic!("{channels:?}")
    };
    // Also for a type that both versions of ROS have alike.
    let [profile] = &channel.qos[..] else {
        panic!("{channel:?}")
    };
    assert_eq!(
        (profile.reliability, profile.durability, profile.history),
        (
            Some(Reliability::Reliable),
            Some(Durability::TransientLocal),
            None
        )
    );
}

#[test]
fn a_folder_of_rosbag2_keeps_what_a_recording_of_ros_2_offers() {
    use recording::Set;
    let host = Host::new();
    let vectors = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/vectors/recording"
    ));
    let file = vectors.join("transient.mcap");
    let node = node(&host);
    let record = host.start(&["record", "--rosbag2", "bag", "--json"]);
    // The recorder looks for topics twice a second; transient-local messages still reach it.
    let play = host.run(&[
        "play",
        file.to_str().expect("text"),
        "--speed",
        "0.5",
        "--wait",
        "20",
    ]);
    assert_eq!(play.code, 0, "{play:?}");
    // A topic of ROS 1 is converted.
    let header = Registry::new(ropewalk::Flavour::Ros1)
        .schema("std_msgs/Header")
        .expect("known");
    let ros1 = node.dynamic_publisher("/header", &header).expect("a publisher");
    awaited(&ros1);
    let data = [
        &7u32.to_le_bytes()[..],
        &[1, 0, 0, 0, 2, 0, 0, 0],
        &3u32.to_le_bytes(),
        b"map",
    ]
    .concat();
    ros1.publish_ros1(&data).expect("publishes");
    std::thread::sleep(Duration::from_millis(300));
    record.interrupt();
    let done = record.wait();
    assert_eq!(done.code, 0, "{done:?}");
    let of = |path: std::path::PathBuf| {
        let set = Set::open(&[path]).expect("opens");
        let messages: Vec<_> = set.messages().map(|m| m.expect("sound")).collect();
        let rows = messages.iter().map(|m| {
            let channel = set.channel(m.channel).expect("of the set");
            (
                channel.topic.clone(),
                channel.type_name.clone(),
                channel.qos.clone(),
                m.data.clone(),
            )
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (&a.0, &a.3).cmp(&(&b.0, &b.3)));
        rows
    };
    let (mut copy, source) = (of(host.path("bag")), of(file));
    let header = copy
        .iter()
        .position(|row| row.0 == "/header")
        .expect("is recorded");
    let (_, kind, _, data) = copy.remove(header);
    assert_eq!(kind, "std_msgs/msg/Header");
    assert_eq!(data, b"\0\x01\0\0\x01\0\0\0\x02\0\0\0\x04\0\0\0map\0");
    let durable = |rows: &[(String, String, Vec<recording::qos::Qos>, Vec<u8>)]| -> Vec<_> {
        rows.iter().filter(|row| row.0 == "/tl").cloned().collect()
    };
    assert_eq!(durable(&copy), durable(&source));
    assert!(!durable(&copy).is_empty());
    let metadata = std::fs::read_to_string(host.path("bag/metadata.yaml")).expect("is written");
    assert!(metadata.contains("durability: transient_local"), "{metadata}");
    assert!(metadata.contains("RIHS01_"), "{metadata}");
    // The second time, the recording is kept.
    let again = host.run(&["record", "--rosbag2", "bag", "--duration", "0.1"]);
    assert!(
        again.code == 2 && again.stderr.contains("exists already") && again.stderr.contains("--force"),
        "{again:?}"
    );
}

#[test]
fn publishers_that_keep_messages_and_do_not_say_whose_they_are_have_channels_of_their_own() {
    let host = Host::new();
    let record = record(&host, &[]);
    let node = node(&host);
    let kind = bus::TopicType {
        topic: "/map".into(),
        type_name: "t/Bytes".into(),
        type_hash: schema("t/Bytes").md5(),
        flavour: Default::default(),
        definition: schema("t/Bytes").definition().into(),
    };
    let make = |history| {
        let options = PublisherOptions::default().with_history(history);
        node.bus().publisher(kind.clone(), options).expect("a publisher")
    };
    let publishers = [make(1), make(1), make(0), make(0)];
    for publisher in &publishers {
        assert!(publisher.wait_for_subscribers(1, LONG));
        let mut loan = publisher.loan(8, &[]).expect("memory");
        loan.control_mut().fill(0);
        publisher.publish(loan, bus::Stamp::default()).expect("publishes");
    }
    record.interrupt();
    let done = record.wait();
    let copy = Recording::open(host.path("out.mcap")).expect("opens");
    let mut latched: Vec<_> = copy.channels().iter().map(|c| c.latched).collect();
    latched.sort_unstable();
    assert_eq!(latched, [false, true, true], "{done:?}");
}

#[test]
fn publishers_of_ever_new_names_share_a_channel_in_the_end() {
    const PUBLISHERS: usize = 260;
    let host = Host::new();
    let record = record(&host, &[]);
    let node = node(&host);
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|i| {
            let options = PublisherOptions::default().with_node(format!("/node_{i}"));
            let made = node.dynamic_publisher_with("/log", &schema("t/Bytes"), options);
            made.expect("a publisher")
        })
        .collect();
    for (number, publisher) in (0..).zip(&publishers) {
        awaited(publisher);
        publisher.publish_ros1(&bytes(number, 10)).expect("publishes");
    }
    record.interrupt();
    let done = record.wait();
    let (mut read, whole) = numbers(&host.path("out.mcap"), "/log");
    read.sort_unstable();
    assert_eq!(
        (read, whole),
        ((0..PUBLISHERS as u32).collect(), true),
        "{done:?}"
    );
    let copy = Recording::open(host.path("out.mcap")).expect("opens");
    assert_eq!(copy.channels().len(), 256);
}

/// The disk is full when the file reaches the process's file size limit.
#[test]
fn a_full_disk_ends_the_recording_and_what_was_before_it_can_be_read() {
    let host = Host::new();
    let mut command = std::process::Command::new("sh");
    let recorder = "trap '' XFSZ; ulimit -f 6000; exec \"$0\" record out.mcap --json --compression none";
    command.args(["-c", recorder, env!("CARGO_BIN_EXE_ropewalk")]);
    command
        .current_dir(host.path(""))
        .env("ROPEWALK_RUNTIME_DIR", host.path("bus"));
    command.env_remove("RUST_LOG").env_remove("ROPEWALK_DOMAIN");
    let record = Running::spawn(command);
    let node = node(&host);
    let publisher = publisher(&node, "/camera");
    awaited(&publisher);
    flood(&publisher);
    let done = record.wait();
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("out.mcap"), "{done:?}");
    let safe = result(&done)["messages"].as_u64().expect("a number");
    let (read, _) = numbers(&host.path("out.mcap"), "/camera");
    assert!(
        safe > 50 && read.len() as u64 >= safe,
        "{} read, {done:?}",
        read.len()
    );
    assert_eq!(read, (0..read.len() as u32).collect::<Vec<_>>());
}
