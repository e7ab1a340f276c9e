//! MCAP files of our own writer.

use std::time::Duration;

use recording::write::{Compression, Options};
use recording::{Channel, ChannelId, Encoding, Recording, WriteError, Writer, simulation};
use stats::Time;

use crate::support::{BAGS, fixture, listing, open};

fn channel(topic: &str) -> Channel {
    Channel::ros1(
        topic,
        "std_msgs/String",
        "992ce8a1687cec8c8bd883ec73ca41d1",
        "string data\n",
    )
}

#[test]
fn bags_are_rewritten_without_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in BAGS {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let bag = open(fixture(name)).expect("opens");
            let path = folder.path().join(format!("{name}.{compression:?}.mcap"));
            let options = Options {
                compression,
                chunk_size: 900,
                ..Options::default()
            };
            let mut writer = Writer::create(&path, &options).expect("created");
            for channel in bag.channels() {
                assert_eq!(writer.add_channel(channel).expect("added"), channel.id);
            }
            let messages: Vec<_> = bag.messages().map(|message| message.expect("sound")).collect();
            for message in &messages {
                writer
                    .write(
                        message.channel,
                        message.log_time,
                        message.publish_time,
                        &message.data,
                    )
                    .expect("written");
            }
            let summary = writer.finish().expect("finished");
            let mcap = Recording::open(&path).expect("opens");
            assert!(mcap.is_indexed() && mcap.damage().is_none());
            assert_eq!(mcap.channels(), bag.channels());
            let reread: Vec<_> = mcap.messages().map(|message| message.expect("sound")).collect();
            assert_eq!(reread, messages);
            assert_eq!(mcap.measure(), summary);
            assert_eq!(listing(&mcap, &reread), listing(&bag, &messages));
        }
    }
}

#[test]
fn log_times_may_go_back_and_are_sorted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("back.mcap");
    let options = Options {
        chunk_size: 100,
        flush_after: Duration::from_nanos(5),
        ..Options::default()
    };
    let mut writer = Writer::create(&path, &options).expect("created");
    let (a, b) = (
        writer.add_channel(&channel("/a")).expect("a"),
        writer.add_channel(&channel("/b")).expect("b"),
    );
    let times = [50, 10, 40, 40, 0, 30, 20, 60, 5, 40];
    for (index, time) in times.into_iter().enumerate() {
        let id = if index % 2 == 0 { a } else { b };
        writer
            .write(id, Time(time), Time(time), &[index as u8; 40])
            .expect("written");
    }
    writer.finish().expect("finished");
    let messages: Vec<_> = Recording::open(&path)
        .expect("opens")
        .messages()
        .map(|message| message.expect("sound"))
        .collect();
    let read: Vec<_> = messages
        .iter()
        .map(|message| (message.log_time.0, message.data[0]))
        .collect();
    let mut sorted: Vec<_> = times.into_iter().zip(0u8..).collect();
    sorted.sort_by_key(|&(time, _)| time);
    assert_eq!(read, sorted);
}

/// Flushed messages are in the file even if the writer is never used again.
#[test]
fn a_recorder_that_is_killed_loses_the_open_chunk_only() {
    let folder = tempfile::tempdir().expect("a folder");
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let path = folder.path().join(format!("{compression:?}.mcap"));
        let options = Options {
            compression,
            chunk_size: 1 << 20,
            flush_after: Duration::from_millis(100),
            ..Options::default()
        };
        let mut writer = Writer::create(&path, &options).expect("created");
        let id = writer.add_channel(&channel("/a")).expect("added");
        for index in 0..100u64 {
            let time = Time::from_millis(index * 9);
            writer
                .write(id, time, time, &index.to_le_bytes())
                .expect("written");
        }
        // Read from the disk while the writer lives.
        let recording = Recording::open(&path).expect("opens");
        let read = recording
            .messages()
            .map(|message| message.expect("whole"))
            .collect::<Vec<_>>();
        assert!(
            (88..100).contains(&read.len()),
            "{compression:?}: {} of 100",
            read.len()
        );
        assert!(!recording.is_indexed() && recording.damage().is_none());
        assert_eq!(read.len() as u64, recording.summary().messages);
        writer.flush().expect("flushed");
        let read = Recording::open(&path)
            .expect("opens")
            .messages()
            .flatten()
            .count();
        assert_eq!(read, 100, "{compression:?}");
        drop(writer);
        assert!(
            Recording::open(&path).expect("opens").is_indexed(),
            "dropping finishes the file"
        );
    }
}

/// The file after a power failure or a killed process.
#[test]
fn a_cut_at_any_byte_leaves_all_whole_chunks() {
    let folder = tempfile::tempdir().expect("a folder");
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let path = folder.path().join(format!("{compression:?}.mcap"));
        let options = Options {
            compression,
            chunk_size: 400,
            ..Options::default()
        };
        let mut writer = Writer::create(&path, &options).expect("created");
        let file = writer.handle().expect("a handle");
        let id = writer.add_channel(&channel("/a")).expect("added");
        // Number of intact messages in a file of each length.
        let mut whole = vec![(0, 0)];
        for index in 0..80u64 {
            let time = Time::from_millis(index);
            writer
                .write(id, time, time, &index.to_le_bytes())
                .expect("written");
            if writer.pending() == 0 {
                whole.push((file.metadata().expect("a length").len(), index + 1));
            }
        }
        writer.finish().expect("finished");
        assert!(whole.len() > 4);
        let bytes = std::fs::read(&path).expect("read");
        for cut in 0..=bytes.len() {
            let (_, expected) = whole
                .iter()
                .rfind(|(len, _)| *len <= cut as u64)
                .expect("the first");
            let Ok(recording) = open(bytes[..cut].to_vec()) else {
                assert_eq!(*expected, 0, "{compression:?} cut to {cut}");
                continue;
            };
            let read: Vec<_> = recording.messages().flatten().collect();
            assert!(
                read.len() as u64 >= *expected,
                "{compression:?} cut to {cut}: {}",
                read.len()
            );
            for (index, message) in (0u64..).zip(&read) {
                assert_eq!(message.data, index.to_le_bytes(), "{compression:?} cut to {cut}");
            }
        }
    }
}

#[test]
fn qos_offered_by_ros_2_publishers_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("qos.mcap");
    let source = open(fixture("transient.mcap")).expect("opens");
    let mut writer = Writer::create(&path, &Options::default()).expect("created");
    for channel in source.channels() {
        writer.add_channel(channel).expect("added");
    }
    writer.finish().expect("finished");
    let copy = Recording::open(&path).expect("opens");
    assert_eq!(copy.channels(), source.channels());
    let [durable, plain] = copy.channels() else {
        panic!("two channels")
    };
    assert_eq!((durable.kept(), plain.kept()), (recording::qos::UNKNOWN_DEPTH, 0));
    let latched = open(fixture("latched.bag")).expect("opens");
    let kept: Vec<_> = latched
        .channels()
        .iter()
        .map(|c| (c.topic.as_str(), c.kept()))
        .collect();
    assert_eq!(kept, [("/static", 1), ("/static", 1), ("/tick", 0)]);
}

#[test]
fn refusals_name_the_file_and_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mcap");
    let mut writer = Writer::create(&path, &Options::default()).expect("created");
    let error = writer
        .write(ChannelId(3), Time(0), Time(0), b"")
        .expect_err("no such channel");
    assert!(
        matches!(error, WriteError::UnknownChannel { channel: 3, .. }),
        "{error}"
    );
    let long = vec![0; recording::write::MAX_MESSAGE as usize + 1];
    let id = writer.add_channel(&channel("/a")).expect("added");
    assert!(matches!(
        writer.write(id, Time(0), Time(0), &long),
        Err(WriteError::TooLarge { .. })
    ));
    writer.finish().expect("finished");
    let error = Writer::create(&path, &Options::default()).expect_err("exists");
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    Writer::create(
        &path,
        &Options {
            overwrite: true,
            ..Options::default()
        },
    )
    .expect("overwrites");
    let error =
        Writer::create(folder.path().join("no/such/folder"), &Options::default()).expect_err("no folder");
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn an_empty_file_and_other_encodings_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("empty.mcap");
    Writer::create(&path, &Options::default())
        .expect("created")
        .finish()
        .expect("finished");
    let recording = Recording::open(&path).expect("opens");
    assert_eq!((recording.channels().len(), recording.messages().count()), (0, 0));
    assert_eq!(recording.summary().duration(), Duration::ZERO);

    let path = folder.path().join("cdr.mcap");
    let mut writer = Writer::create(&path, &Options::default()).expect("created");
    let cdr = Channel {
        encoding: Encoding::Cdr,
        md5: None,
        latched: true,
        ..channel("/a")
    };
    let json = Channel {
        encoding: Encoding::Other("json".to_owned()),
        type_name: String::new(),
        definition: String::new(),
        definition_encoding: String::new(),
        ..channel("/b")
    };
    // Two publishers of one topic stay two channels.
    for each in [&cdr, &json, &cdr] {
        writer.add_channel(each).expect("added");
    }
    writer
        .write(ChannelId(2), Time(7), Time(6), b"x")
        .expect("written");
    writer.finish().expect("finished");
    let recording = Recording::open(&path).expect("opens");
    let [a, b, c] = recording.channels() else {
        panic!("three channels")
    };
    assert_eq!((&a.encoding, a.latched, &a.md5), (&Encoding::Cdr, true, &None));
    assert_eq!(b.encoding, Encoding::Other("json".to_owned()));
    assert_eq!(c.topic, "/a");
    let message = recording.messages().next().expect("one").expect("sound");
    assert_eq!(
        (message.channel, message.log_time, message.publish_time),
        (ChannelId(2), Time(7), Time(6))
    );
}

#[test]
fn the_simulation_is_written_as_it_is_generated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("room.mcap");
    let summary = simulation::write(&path, 0.5, 3, &Options::default()).expect("written");
    let recording = Recording::open(&path).expect("opens");
    let messages: Vec<_> = recording
        .messages()
        .map(|message| message.expect("sound"))
        .collect();
    assert_eq!(messages, simulation::generate(0.5, 3).collect::<Vec<_>>());
    assert_eq!(recording.channels(), simulation::channels());
    assert_eq!(summary.messages, 15 + 40 + 4);
}

#[test]
fn the_profile_is_that_of_the_first_channel() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mcap");
    let mut cdr = channel("/cdr");
    cdr.encoding = Encoding::Cdr;
    for (channels, profile) in [
        (vec![], "ros1"),
        (vec![channel("/a"), cdr.clone()], "ros1"),
        (vec![cdr.clone(), channel("/a")], "ros2"),
    ] {
        let options = Options {
            overwrite: true,
            ..Options::default()
        };
        let mut writer = Writer::create(&path, &options).expect("created");
        for channel in &channels {
            writer.add_channel(channel).expect("added");
            // The recording exists from its first channel on.
            assert!(Recording::open(&path).is_ok());
        }
        writer.finish().expect("finished");
        let bytes = std::fs::read(&path).expect("reads");
        // Magic, opcode and length of the header come before it.
        let header = [&4u32.to_le_bytes()[..], profile.as_bytes()].concat();
        assert!(bytes[17..].starts_with(&header), "{profile}");
        assert_eq!(
            Recording::open(&path).expect("opens").channels().len(),
            channels.len()
        );
    }
}
