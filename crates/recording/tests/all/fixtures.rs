//! Files written by `rosbags` and `mcap` for Python: see tests/recording/make_fixtures.py.

use recording::{Encoding, Limits, Recording};
use stats::Time;

use crate::support::{BAGS, InMemory, MCAPS, expected, fixture, listing, open, read, vectors};

#[test]
fn every_format_and_compression_gives_the_same_messages_in_time_order() {
    let expected = expected();
    assert_eq!(expected.lines().count(), 30);
    for name in BAGS.iter().chain(&MCAPS) {
        let recording = Recording::open(vectors().join(name)).expect("opens");
        let messages: Vec<_> = recording.messages().collect::<Result<_, _>>().expect("sound");
        assert_eq!(listing(&recording, &messages), expected, "{name}");
        assert!(messages.is_sorted_by_key(|message| message.log_time), "{name}");
        assert!(recording.damage().is_none());
        let indexed = !matches!(*name, "unchunked.mcap" | "no_summary.mcap");
        assert_eq!(recording.is_indexed(), indexed, "{name}");
    }
}

#[test]
fn summaries_agree_with_the_messages() {
    for name in BAGS.iter().chain(&MCAPS) {
        let recording = open(fixture(name)).expect("opens");
        let (summary, measured) = (recording.summary(), recording.measure());
        assert_eq!(summary.messages, 30, "{name}");
        assert_eq!(summary.start, Some(Time(1_699_999_999_999_000_000)), "{name}");
        assert_eq!(summary.end, Some(Time(1_700_000_000_627_000_000)), "{name}");
        assert_eq!(
            (measured.start, measured.end),
            (summary.start, summary.end),
            "{name}"
        );
        let counts = |s: &recording::Summary| s.topics.values().map(|t| t.messages).collect::<Vec<_>>();
        assert_eq!(counts(summary), [9, 1, 20], "{name}");
        assert_eq!(counts(&measured), [9, 1, 20], "{name}");
        assert_eq!(measured.topics["/scan"].bytes, Some(20 * 153), "{name}");
        assert_eq!(measured.topics["/empty"].bytes, Some(0), "{name}");
        assert_eq!(
            summary.topics["/scan"].bytes.is_some(),
            !recording.is_indexed(),
            "{name}"
        );
    }
}

#[test]
fn channels_have_types_checksums_and_definitions() {
    for name in BAGS.iter().chain(&MCAPS) {
        let recording = open(fixture(name)).expect("opens");
        assert_eq!(recording.channels().len(), 3, "{name}");
        for (index, channel) in recording.channels().iter().enumerate() {
            assert_eq!(channel.id.0 as usize, index, "{name}");
            assert_eq!(
                (&channel.encoding, channel.definition_encoding.as_str()),
                (&Encoding::Ros1, "ros1msg")
            );
        }
        let of = |topic| {
            recording
                .channels()
                .iter()
                .find(|channel| channel.topic == topic)
                .expect("channel")
        };
        let scan = of("/scan");
        assert_eq!(scan.type_name, "sensor_msgs/LaserScan", "{name}");
        assert_eq!(
            scan.md5.as_deref(),
            Some("90c7ef2dc6895d81024acba2ac42f369"),
            "{name}"
        );
        assert!(scan.definition.contains("MSG: std_msgs/Header"), "{name}");
        assert_eq!(
            (scan.latched, scan.callerid.as_deref()),
            (false, Some("/laser")),
            "{name}"
        );
        let chatter = of("/chatter");
        assert_eq!(
            (chatter.latched, chatter.callerid.as_deref()),
            (true, Some("/talker")),
            "{name}"
        );
    }
}

#[test]
fn ros2_and_unknown_encodings_are_exposed() {
    let recording = open(fixture("cdr.mcap")).expect("opens");
    let [chatter, json] = recording.channels() else {
        panic!("two channels")
    };
    assert_eq!(chatter.encoding, Encoding::Cdr);
    assert_eq!(
        (chatter.type_name.as_str(), chatter.md5.as_deref()),
        ("std_msgs/msg/String", None)
    );
    assert_eq!(
        (chatter.definition.as_str(), chatter.definition_encoding.as_str()),
        ("string data\n", "ros2msg")
    );
    assert_eq!(json.encoding, Encoding::Other("json".to_owned()));
    assert_eq!(json.type_name, "");
    let (messages, errors) = read(&recording);
    assert_eq!((messages.len(), errors.len()), (2, 0));
    assert_eq!(messages[0].data, b"\0\x01\0\0\x04\0\0\0cdr\0");
}

#[test]
fn mcap_keeps_publish_times_and_bags_have_none_of_their_own() {
    let (messages, _) = read(&open(fixture("zstd.mcap")).expect("opens"));
    assert!(
        messages
            .iter()
            .all(|message| message.publish_time.0 + 1000 == message.log_time.0)
    );
    let (messages, _) = read(&open(fixture("lz4.bag")).expect("opens"));
    assert!(
        messages
            .iter()
            .all(|message| message.publish_time == message.log_time)
    );
}

/// With little memory, chunks that overlap in time are dropped and decoded again.
#[test]
fn little_memory_gives_the_same_messages() {
    for name in BAGS.iter().chain(&MCAPS) {
        let limits = Limits {
            block: 1 << 20,
            memory: 1,
            index: 1 << 20,
        };
        let recording: InMemory =
            Recording::read(std::io::Cursor::new(fixture(name)), name, limits).expect("opens");
        let (messages, errors) = read(&recording);
        assert!(errors.is_empty());
        assert_eq!(listing(&recording, &messages), expected(), "{name}");
    }
}

#[test]
fn messages_can_be_read_by_several_iterators_and_threads_at_once() {
    let recording = open(fixture("lz4.bag")).expect("opens");
    let other = recording.messages();
    let thread = std::thread::spawn(move || other.flatten().count());
    let interleaved = recording
        .messages()
        .zip(recording.messages())
        .filter(|(a, b)| matches!((a, b), (Ok(a), Ok(b)) if a == b));
    assert_eq!(interleaved.count(), 30);
    assert_eq!(thread.join().expect("no panic"), 30);
}
