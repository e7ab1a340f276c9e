//! Files that are odd in one place: the rest is read.

use recording::{ReadError, Set};
use stats::Time;

use crate::support::{InMemory, fixture, open, read};

/// Hand-written MCAP, which can contain what no writer produces.
#[derive(Default)]
struct Mcap(Vec<u8>);

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn record(op: u8, body: &[u8]) -> Vec<u8> {
    [&[op][..], &(body.len() as u64).to_le_bytes(), body].concat()
}

fn schema(id: u16) -> Vec<u8> {
    record(
        3,
        &[
            &id.to_le_bytes()[..],
            &text("std_msgs/Empty"),
            &text("ros1msg"),
            &text(""),
        ]
        .concat(),
    )
}

fn channel(number: u16, schema: u16) -> Vec<u8> {
    let topic = text(&format!("/c{number}"));
    record(
        4,
        &[
            &number.to_le_bytes()[..],
            &schema.to_le_bytes(),
            &topic,
            &text("ros1"),
            &text(""),
        ]
        .concat(),
    )
}

fn message(channel: u16, at: u64) -> Vec<u8> {
    let body = [
        &channel.to_le_bytes()[..],
        &[0; 4],
        &at.to_le_bytes(),
        &at.to_le_bytes(),
    ]
    .concat();
    record(5, &body)
}

/// A chunk without compression and checksum.
fn chunk(span: (u64, u64), records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    let length = (data.len() as u64).to_le_bytes();
    record(
        6,
        &[
            &span.0.to_le_bytes()[..],
            &span.1.to_le_bytes(),
            &length,
            &[0; 4],
            &text(""),
            &length,
            &data,
        ]
        .concat(),
    )
}

impl Mcap {
    fn new() -> Self {
        Mcap(
            [
                b"\x89MCAP0\r\n".to_vec(),
                record(1, &[text("ros1"), text("by hand")].concat()),
            ]
            .concat(),
        )
    }

    fn add(&mut self, record: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend_from_slice(record);
        at
    }

    /// Ends without a summary.
    fn end(self) -> Vec<u8> {
        self.summary(&[])
    }

    fn summary(mut self, records: &[Vec<u8>]) -> Vec<u8> {
        self.add(&record(15, &[0; 4]));
        let start = if records.is_empty() {
            0
        } else {
            self.0.len() as u64
        };
        self.add(&records.concat());
        self.add(&record(2, &[&start.to_le_bytes()[..], &[0; 12]].concat()));
        self.add(b"\x89MCAP0\r\n");
        self.0
    }
}

fn chunk_index(at: u64, length: usize, span: (u64, u64)) -> Vec<u8> {
    record(
        8,
        &[
            &span.0.to_le_bytes()[..],
            &span.1.to_le_bytes(),
            &at.to_le_bytes(),
            &(length as u64).to_le_bytes(),
            &text(""),
            &[0; 8],
            &text(""),
            &[0; 16],
        ]
        .concat(),
    )
}

fn statistics(messages: u64, chunks: u32, span: (u64, u64), counts: &[(u16, u64)]) -> Vec<u8> {
    let counts: Vec<u8> = (counts.iter())
        .flat_map(|(channel, n)| [&channel.to_le_bytes()[..], &n.to_le_bytes()].concat())
        .collect();
    record(
        11,
        &[
            &messages.to_le_bytes()[..],
            &[0; 14],
            &chunks.to_le_bytes(),
            &span.0.to_le_bytes(),
            &span.1.to_le_bytes(),
            &(counts.len() as u32).to_le_bytes(),
            &counts,
        ]
        .concat(),
    )
}

fn times(recording: &InMemory) -> (Vec<u64>, Vec<ReadError>) {
    let (messages, errors) = read(recording);
    (messages.iter().map(|m| m.log_time.0).collect(), errors)
}

/// Two chunks; the index states `span` for the second.
fn two_chunks(span: (u64, u64), repeats_schemas: bool) -> Vec<u8> {
    let mut file = Mcap::new();
    let first = chunk(
        (10, 30),
        &[schema(1), channel(1, 1), message(1, 10), message(1, 30)],
    );
    let second = chunk((20, 40), &[message(1, 20), message(1, 40)]);
    let places = (file.add(&first), file.add(&second));
    let mut summary = vec![
        channel(1, 1),
        statistics(4, 2, (10, 40), &[(1, 4)]),
        chunk_index(places.0, first.len(), (10, 30)),
        chunk_index(places.1, second.len(), span),
    ];
    if repeats_schemas {
        summary.insert(1, schema(1));
    }
    file.summary(&summary)
}

#[test]
fn a_chunk_index_with_the_wrong_span_is_not_believed() {
    for span in [(35, 40), (20, 25), (0, 0), (u64::MAX, 0)] {
        let recording = open(two_chunks(span, true)).expect("opens");
        let (times, errors) = times(&recording);
        assert_eq!(times, [10, 20, 30, 40], "{span:?}");
        assert!(
            matches!(&errors[..], [error @ ReadError::Index { .. }] if !error.is_loss()),
            "{errors:?}"
        );
        assert!(!recording.is_indexed());
    }
}

#[test]
fn schemas_after_channels_or_in_the_data_alone_are_no_damage() {
    for repeated in [true, false] {
        let recording = open(two_chunks((20, 40), repeated)).expect("opens");
        let (times, errors) = times(&recording);
        assert_eq!(
            (times, errors.len()),
            (vec![10, 20, 30, 40], 0),
            "repeated: {repeated}"
        );
        assert_eq!(recording.is_indexed(), repeated);
        assert_eq!(recording.channels()[0].type_name, "std_msgs/Empty");
    }
}

#[test]
fn a_channel_whose_schema_is_nowhere_costs_its_type_alone() {
    let mut file = Mcap::new();
    let records = [
        channel(1, 9),
        schema(1),
        channel(2, 1),
        message(1, 1),
        message(2, 2),
    ];
    file.add(&chunk((1, 2), &records));
    let recording = open(file.end()).expect("opens");
    let (times, errors) = times(&recording);
    assert_eq!((times, errors.len()), (vec![1, 2], 0));
    let types: Vec<_> = recording
        .channels()
        .iter()
        .map(|c| c.type_name.as_str())
        .collect();
    assert_eq!(types, ["", "std_msgs/Empty"]);
}

#[test]
fn messages_of_unknown_channels_and_short_records_cost_themselves() {
    let mut file = Mcap::new();
    let short = record(5, &[0; 5]);
    let records = [
        schema(1),
        channel(1, 1),
        message(7, 1),
        message(1, 2),
        short,
        message(8, 3),
        message(1, 4),
    ];
    file.add(&chunk((1, 4), &records));
    file.add(&chunk((5, 5), &[message(1, 5)]));
    let recording = open(file.end()).expect("opens");
    let (times, errors) = times(&recording);
    assert_eq!(times, [2, 4, 5]);
    let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(
        matches!(
            &errors[..],
            [
                ReadError::UnknownChannel {
                    channel: 7,
                    messages: 2,
                    ..
                },
                ReadError::Malformed { .. }
            ]
        ),
        "{reported:?}"
    );
    assert!(
        reported[0].contains("2 messages of channels that the file does not define"),
        "{reported:?}"
    );
}

/// A chunk with a wrong length hides the start of the next one.
#[test]
fn behind_a_record_without_a_sound_length_reading_goes_on_with_the_next_chunk() {
    let one = |at| chunk((at, at), &[schema(1), channel(1, 1), message(1, at)]);
    for wrong in [
        &[0xff; 8][..],
        &[0x30, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let mut file = Mcap::new();
        file.add(&one(1));
        let second = file.add(&one(2)) as usize;
        file.add(&one(3));
        file.add(&one(4));
        let mut bytes = file.end();
        bytes[second + 1..second + 9].copy_from_slice(wrong);
        let (times, errors) = times(&open(bytes).expect("opens"));
        assert!(
            times.starts_with(&[1]) && times.ends_with(&[3, 4]),
            "{wrong:?}: {times:?}"
        );
        assert!(
            !errors.is_empty() && errors.iter().all(ReadError::is_loss),
            "{errors:?}"
        );
    }
    let mut bytes = fixture("none.bag");
    // The file of a killed recorder.
    let index = bytes
        .windows(10)
        .position(|w| w == b"index_pos=")
        .expect("index_pos")
        + 10;
    bytes[index..index + 8].fill(0);
    let marks: Vec<usize> = (0..bytes.len() - 8)
        .filter(|&at| &bytes[at..at + 8] == b"\x04\0\0\0op=\x05")
        .collect();
    assert!(marks.len() > 3);
    let whole = read(&open(bytes.clone()).expect("opens")).0.len();
    // The second chunk's header loses its `op`, or its record's length.
    for damage in [b"\x04\0\0\0op=\x99", b"\xff\xff\xff\xffop=\x05"] {
        let mut bytes = bytes.clone();
        bytes[marks[1]..marks[1] + 8].copy_from_slice(damage);
        let (messages, errors) = read(&open(bytes).expect("opens"));
        assert!(
            messages.len() >= whole - 10 && messages.len() < whole,
            "{}",
            messages.len()
        );
        assert!(errors.iter().any(ReadError::is_loss), "{errors:?}");
    }
}

#[test]
fn several_recordings_are_one_by_their_times() {
    let file = |times: &[u64], channel_number: u16| {
        let mut file = Mcap::new();
        let mut records = vec![schema(1), channel(channel_number, 1)];
        records.extend(times.iter().map(|&at| message(channel_number, at)));
        file.add(&chunk((times[0], times[times.len() - 1]), &records));
        open(file.end()).expect("opens")
    };
    let mut cut = fixture("none.mcap");
    cut.truncate(cut.len() / 2);
    let set = Set::new(vec![
        file(&[1, 4, 5], 1),
        file(&[2, 4, 9], 1),
        open(cut).expect("opens"),
    ]);
    assert_eq!(set.first(), Some(Time(1)));
    let (mut seen, mut errors) = (Vec::new(), 0);
    for item in set.messages() {
        match item {
            Ok(message) if message.log_time.0 < 100 => {
                assert_eq!(set.channel(message.channel).expect("known").topic, "/c1");
                seen.push((message.log_time.0, message.channel.0));
            }
            Ok(message) => assert!(set.channel(message.channel).expect("known").topic.len() > 3),
            Err(_) => errors += 1,
        }
    }
    assert_eq!(seen, [(1, 0), (2, 1), (4, 0), (4, 1), (5, 0), (9, 1)]);
    assert_eq!(errors, 1, "what is wrong with one file is said once");
    let ids: Vec<_> = set.channels().map(|(id, channel)| (id.0, channel.id.0)).collect();
    assert_eq!(ids[..3], [(0, 0), (1, 0), (2, 0)]);
    assert!(set.channel(recording::ChannelId(99)).is_none());
    assert_eq!(set.summary().topics["/c1"].messages, 6);
    assert_eq!(set.summary().start, Some(Time(1)));
}

#[test]
fn a_recording_without_messages_is_no_error() {
    let recording = open(Mcap::new().end()).expect("opens");
    let (times, errors) = times(&recording);
    assert!(times.is_empty() && errors.is_empty());
    assert_eq!(Set::new(vec![recording]).first(), None);
}
