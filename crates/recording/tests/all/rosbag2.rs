//! Folders and databases of rosbag2, created by `rosbags` (tests/recording/make_rosbag2.py), and faults in them.

use std::path::{Path, PathBuf};

use recording::qos::{Durability, History, Reliability};
use recording::{Encoding, Limits, Message, OpenError, ReadError, Recording, Set, WriteError, Writer};
use rusqlite::Connection;

use crate::support::{fixture, open, read, vectors};

const FOLDERS: [&str; 8] = [
    "sqlite3",
    "sqlite3_file",
    "sqlite3_message",
    "mcap",
    "mcap_file",
    "mcap_message",
    "split",
    "old",
];

fn folder(name: &str) -> PathBuf {
    vectors().join("rosbag2").join(name)
}

/// A copy that a test may damage.
fn copy(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(folder(name)).expect("a vector").flatten() {
        std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("copies");
    }
    copy
}

fn listing(set: &Set, messages: &[Message]) -> String {
    let line = |message: &Message| {
        let topic = &set.channel(message.channel).expect("of this set").topic;
        let crc = crc32fast::hash(&message.data);
        format!(
            "{topic} {} {} {crc:08x}\n",
            message.log_time.0,
            message.data.len()
        )
    };
    messages.iter().map(line).collect()
}

fn expected() -> String {
    std::fs::read_to_string(folder("expected.txt")).expect("text")
}

fn read_set(path: &Path) -> (Set, Vec<Message>, Vec<ReadError>) {
    let set = Set::open(&[path]).expect("opens");
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    for item in set.messages() {
        match item {
            Ok(message) => messages.push(message),
            Err(error) => errors.push(error),
        }
    }
    (set, messages, errors)
}

#[test]
fn every_storage_and_compression_gives_the_same_messages_in_time_order() {
    for name in FOLDERS {
        let (set, messages, errors) = read_set(&folder(name));
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(listing(&set, &messages), expected(), "{name}");
        let summary = set.summary();
        assert_eq!((summary.messages, set.expected()), (30, 30), "{name}");
        let counts: Vec<_> = summary.topics.values().map(|t| t.messages).collect();
        assert_eq!(counts, [9, 1, 20], "{name}");
        assert_eq!(
            summary.start.map(|t| t.0),
            Some(1_699_999_999_998_999_999),
            "{name}"
        );
        assert_eq!(
            summary.end.map(|t| t.0),
            Some(1_700_000_000_627_000_000),
            "{name}"
        );
    }
}

#[test]
fn types_definitions_hashes_and_offered_qos_are_those_that_were_written() {
    for name in FOLDERS {
        let (set, ..) = read_set(&folder(name));
        for topic in ["/chatter", "/scan", "/empty"] {
            let channels: Vec<_> = set
                .channels()
                .map(|(_, c)| c)
                .filter(|c| c.topic == topic)
                .collect();
            // Also with three files.
            assert_eq!(channels.len(), 1, "{name}");
            for channel in channels {
                assert_eq!(channel.encoding, Encoding::Cdr, "{name}");
                assert_eq!(
                    (channel.md5.as_deref(), channel.definition_encoding.as_str()),
                    (None, "ros2msg")
                );
                let said = channel
                    .qos
                    .first()
                    .map(|q| (q.reliability, q.durability, q.history));
                let (kind, offered, defines) = match topic {
                    "/chatter" => (
                        "std_msgs/msg/String",
                        Some((
                            Reliability::Reliable,
                            Durability::TransientLocal,
                            History::KeepLast(3),
                        )),
                        "string data",
                    ),
                    "/scan" => (
                        "sensor_msgs/msg/LaserScan",
                        Some((
                            Reliability::BestEffort,
                            Durability::Volatile,
                            History::KeepLast(5),
                        )),
                        "MSG: std_msgs/Header",
                    ),
                    _ => ("std_msgs/msg/Empty", None, ""),
                };
                assert_eq!(channel.type_name, kind, "{name}");
                let offered = offered.map(|(r, d, h)| (Some(r), Some(d), Some(h)));
                assert_eq!(said, offered, "{name} {topic}");
                if name == "old" {
                    assert_eq!((channel.definition.as_str(), &channel.type_hash), ("", &None));
                } else {
                    assert!(
                        channel.definition.contains(defines),
                        "{name} {}",
                        channel.definition
                    );
                }
                if name.starts_with("sqlite3") {
                    assert!(
                        channel
                            .type_hash
                            .as_ref()
                            .is_some_and(|h| h.starts_with("RIHS01_")),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_file_of_a_folder_is_a_recording_of_its_own() {
    for name in [
        "sqlite3/sqlite3.db3",
        "sqlite3_file/sqlite3_file.db3.zstd",
        "mcap_message/mcap_message.mcap",
    ] {
        let (set, messages, errors) = read_set(&folder(name));
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(listing(&set, &messages), expected(), "{name}");
        let recording = Recording::open(folder(name)).expect("opens");
        assert!(recording.is_indexed() && recording.damage().is_none());
        assert_eq!(recording.measure().messages, 30);
    }
}

#[test]
fn a_database_in_memory_is_read_like_a_file_and_within_the_limits() {
    let bytes = fixture("rosbag2/sqlite3/sqlite3.db3");
    let (messages, errors) = read(&open(bytes.clone()).expect("opens"));
    assert_eq!((messages.len(), errors.len()), (30, 0));
    let limits = |block, index| Limits {
        block,
        memory: 1,
        index,
    };
    let small = |limits| Recording::read(std::io::Cursor::new(bytes.clone()), "memory", limits);
    let error = small(limits(1000, 1 << 20)).expect_err("is longer");
    assert!(
        matches!(error, OpenError::Damaged(ReadError::TooLarge { .. })),
        "{error}"
    );
    // With little room for texts, channels are missing, and the missing ones are counted.
    let recording = small(limits(1 << 20, 500)).expect("opens");
    let (messages, errors) = read(&recording);
    assert!(
        messages.len() == 9 && errors.iter().any(|e| matches!(e, ReadError::TooLarge { .. })),
        "{errors:?}"
    );
    assert!(
        errors
            .iter()
            .any(|e| matches!(e, ReadError::Rows { rows: 21, .. })),
        "{errors:?}"
    );
}

#[test]
fn without_usable_metadata_the_files_of_the_folder_are_read_all_the_same() {
    let whole = std::fs::read_to_string(folder("split").join("metadata.yaml")).expect("text");
    let cut = whole.get(..300).expect("longer").to_owned();
    for spoiled in [
        None,
        Some(String::new()),
        Some(cut),
        Some("a: [".into()),
        Some("\u{1}".into()),
    ] {
        let copy = copy("split");
        let metadata = copy.path().join("metadata.yaml");
        match &spoiled {
            None => std::fs::remove_file(&metadata).expect("removes"),
            Some(text) => std::fs::write(&metadata, text).expect("writes"),
        }
        let (set, messages, errors) = read_set(copy.path());
        assert_eq!(listing(&set, &messages), expected(), "{spoiled:?}");
        assert!(
            matches!(&errors[..], [error @ ReadError::Metadata { .. }] if !error.is_loss()),
            "{errors:?}"
        );
    }
}

#[test]
fn a_file_that_does_not_open_costs_itself_alone_and_its_messages_are_counted() {
    let copy = copy("split");
    for (spoil, kept) in [("missing", 20), ("garbage", 20)] {
        let path = copy.path().join("split_1.mcap");
        match spoil {
            "missing" => std::fs::remove_file(&path).expect("removes"),
            _ => std::fs::write(&path, "garbage").expect("writes"),
        }
        let (set, messages, errors) = read_set(copy.path());
        assert_eq!((messages.len(), set.expected()), (kept, 30), "{spoil}");
        assert!(
            matches!(&errors[..], [ReadError::Unopened { messages: 10, .. }]),
            "{errors:?}"
        );
        assert!(errors[0].is_loss() && errors[0].to_string().contains("split_1.mcap"));
    }
    for part in ["split_0.mcap", "split_2.mcap"] {
        std::fs::remove_file(copy.path().join(part)).expect("removes");
    }
    let error = Set::open(&[copy.path()]).expect_err("nothing is left");
    assert!(error.to_string().contains("split_0.mcap"), "{error}");
}

#[test]
fn a_path_that_leads_out_of_the_folder_is_refused() {
    let secret = tempfile::tempdir().expect("a folder");
    let outside = secret.path().join("out.mcap");
    std::fs::copy(folder("mcap/mcap.mcap"), &outside).expect("copies");
    let copy = copy("split");
    let metadata = copy.path().join("metadata.yaml");
    let whole = std::fs::read_to_string(&metadata).expect("text");
    std::os::unix::fs::symlink(&outside, copy.path().join("link.mcap")).expect("a link");
    let up = format!(
        "../{}/out.mcap",
        secret.path().file_name().expect("a name").to_string_lossy()
    );
    for path in [
        outside.to_str().expect("text"),
        &up,
        "link.mcap",
        "a/../../x.mcap",
        ".",
        "''",
    ] {
        std::fs::write(
            &metadata,
            whole.replacen("- split_1.mcap", &format!("- {path}"), 1),
        )
        .expect("writes");
        let (_, messages, errors) = read_set(copy.path());
        assert_eq!(messages.len(), 20, "{path}");
        assert!(
            matches!(&errors[..], [ReadError::Unopened { .. }]),
            "{path}: {errors:?}"
        );
        let said = errors[0].to_string();
        assert!(said.contains("leads out of the folder") || path == ".", "{said}");
    }
}

#[test]
fn wrong_counts_and_times_of_the_metadata_change_nothing() {
    let copy = copy("split");
    let metadata = copy.path().join("metadata.yaml");
    let whole = std::fs::read_to_string(&metadata).expect("text");
    for (from, to) in [
        ("message_count: 30", "message_count: 3"),
        ("message_count: 30", "message_count: 18446744073709551615"),
        (
            "nanoseconds_since_epoch: 1700000000005000000",
            "nanoseconds_since_epoch: 1",
        ),
        ("nanoseconds: 628000001", "nanoseconds: 0"),
    ] {
        std::fs::write(&metadata, whole.replace(from, to)).expect("writes");
        let (set, messages, errors) = read_set(copy.path());
        assert_eq!(listing(&set, &messages), expected(), "{to}");
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// A copy of the vector's database, changed by `sql`.
fn spoiled(sql: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db3");
    std::fs::write(&path, fixture("rosbag2/sqlite3/sqlite3.db3")).expect("writes");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch(sql).expect(sql);
    drop(connection);
    std::fs::read(&path).expect("reads")
}

#[test]
fn a_database_of_something_else_is_refused_and_what_it_lacks_is_named() {
    for (sql, lacks) in [
        ("DROP TABLE messages", "no table `messages`"),
        ("DROP TABLE topics", "no table `topics`"),
        ("ALTER TABLE messages RENAME COLUMN data TO d", "no column `data`"),
        (
            "DROP TABLE messages; CREATE TABLE messages(topic_id INT, timestamp INT, data BLOB, _rowid_ INT)",
            "column `_rowid_`",
        ),
        (
            "ALTER TABLE messages RENAME TO m; CREATE VIEW messages AS SELECT * FROM m",
            "no table `messages`",
        ),
        (
            "DROP TABLE messages; CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INT, timestamp INT, \
             data BLOB AS (zeroblob(100000000)))",
            "no column `data`",
        ),
    ] {
        let error = open(spoiled(sql)).expect_err(sql);
        assert!(matches!(&error, OpenError::NotRosbag2 { .. }), "{sql}: {error}");
        assert!(error.to_string().contains(lacks), "{error}");
    }
}

#[test]
fn a_bad_row_or_topic_costs_itself_alone_and_is_counted() {
    for (sql, kept, lost) in [
        ("UPDATE messages SET data = 'text' WHERE id = 7", 29, 1),
        ("UPDATE messages SET timestamp = -1 WHERE id IN (2, 3)", 28, 2),
        ("UPDATE messages SET timestamp = 'noon' WHERE id = 5", 29, 1),
        ("UPDATE messages SET topic_id = 99 WHERE id = 30", 29, 1),
        (
            "UPDATE messages SET data = zeroblob(500000000) WHERE id = 4",
            29,
            1,
        ),
        ("UPDATE topics SET name = x'00' WHERE id = 3", 29, 1),
        ("DELETE FROM topics WHERE name = '/scan'", 10, 20),
        ("UPDATE topics SET id = -5 WHERE id = 2", 10, 20),
    ] {
        if sql.contains("zeroblob") {
            // Half a gigabyte is not read into memory: from a file.
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.db3");
            std::fs::write(&path, spoiled(sql)).expect("writes");
            let (_, messages, errors) = read_set(&path);
            assert_eq!(messages.len(), kept, "{sql}");
            assert!(
                matches!(&errors[..], [ReadError::Rows { rows: 1, row: 4, .. }]),
                "{errors:?}"
            );
            continue;
        }
        let (messages, errors) = read(&open(spoiled(sql)).expect(sql));
        assert_eq!(messages.len(), kept, "{sql}: {errors:?}");
        let rows: u64 = errors
            .iter()
            .map(|error| match error {
                ReadError::Rows { rows, .. } => *rows,
                _ => 0,
            })
            .sum();
        assert_eq!(rows, lost, "{sql}: {errors:?}");
    }
    // Without definitions and without an index of times.
    let sql =
        "DROP TABLE message_definitions; DROP INDEX timestamp_idx; DROP TABLE schema; DROP TABLE metadata";
    assert_eq!(read(&open(spoiled(sql)).expect(sql)).0.len(), 30);
}

/// A database of several megabytes with a page overwritten, and one that is cut.
#[test]
fn behind_damaged_pages_reading_goes_on() {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
               INSERT INTO messages(topic_id, timestamp, data)
               SELECT 1, 1700000001000000000 + i, zeroblob(300) FROM n;";
    let whole = spoiled(sql);
    let (messages, errors) = read(&open(whole.clone()).expect("opens"));
    assert_eq!((messages.len(), errors.len()), (5030, 0));
    let damaged = |range: std::ops::Range<usize>| {
        let mut bytes = whole.clone();
        bytes[range].fill(0xff);
        bytes
    };
    let middle = whole.len() / 2 / 4096 * 4096;
    let (messages, errors) = read(&open(damaged(middle..middle + 4096)).expect("opens"));
    assert!(
        (5000..5030).contains(&messages.len()),
        "{} {errors:?}",
        messages.len()
    );
    assert!(matches!(&errors[..], [ReadError::Database { .. }]), "{errors:?}");
    let (messages, errors) = read(&open(damaged(middle..middle + 40960)).expect("opens"));
    assert!(
        (4850..5010).contains(&messages.len()),
        "{} {errors:?}",
        messages.len()
    );
    assert!(!errors.is_empty());
    for part in [4, 2] {
        let cut = whole[..whole.len() / part].to_vec();
        let (messages, errors) = read(&open(cut).expect("opens"));
        assert!(
            !messages.is_empty() && messages.len() < 5030 && !errors.is_empty(),
            "{}",
            messages.len()
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    for length in [0, 10, 16, 100, 600, 5000] {
        let path = folder.path().join("cut.db3");
        std::fs::write(&path, &whole[..length]).expect("writes");
        assert!(
            Recording::open(&path).is_err() || !read_set(&path).2.is_empty(),
            "{length}"
        );
    }
}

#[test]
fn a_log_beside_the_file_is_read_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("with spaces? & #.db3");
    std::fs::write(&path, fixture("rosbag2/sqlite3/sqlite3.db3")).expect("writes");
    assert_eq!(read_set(&path).1.len(), 30);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    let connection = Connection::open(&path).expect("opens");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             INSERT INTO messages(topic_id, timestamp, data) VALUES (3, 1700000002000000000, x'0001000000');",
        )
        .expect("writes");
    // Its writer lives, or was killed.
    assert_eq!(read_set(&path).1.len(), 31);
}

#[test]
fn damaged_compression_costs_a_message_or_what_is_behind_it() {
    // A message.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db3");
    std::fs::copy(self::folder("sqlite3_message/sqlite3_message.db3"), &path).expect("copies");
    let connection = Connection::open(&path).expect("opens");
    connection
        .execute_batch("UPDATE messages SET data = x'28b52ffd0000000000' WHERE id = 3")
        .expect("writes");
    drop(connection);
    let (_, messages, errors) = read_set(&path);
    assert_eq!(messages.len(), 29);
    assert!(
        matches!(&errors[..], [ReadError::Decompress { .. }]),
        "{errors:?}"
    );
    // A truncated file: the intact part is read.
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
               INSERT INTO messages(topic_id, timestamp, data)
               SELECT 1, 1700000001000000000 + i, randomblob(300) FROM n;";
    let whole = zstd::encode_all(&spoiled(sql)[..], 1).expect("packs");
    for (length, opens) in [(whole.len() / 4 * 3, true), (3, false), (9, false)] {
        std::fs::write(&path, &whole[..length]).expect("writes");
        let opened = Recording::open(&path);
        assert_eq!(opened.is_ok(), opens, "{length}: {opened:?}");
        if let Ok(recording) = opened {
            assert!(matches!(recording.damage(), Some(ReadError::Decompress { .. })));
            assert!(recording.messages().flatten().count() > 1000);
        }
    }
    // Packed twice.
    let twice = zstd::encode_all(&whole[..], 1).expect("packs");
    std::fs::write(&path, twice).expect("writes");
    let error = Recording::open(&path).expect_err("is refused");
    assert!(error.to_string().contains("only once"), "{error}");
    let error = open(whole).expect_err("is no file");
    assert!(matches!(error, OpenError::Unpack { .. }), "{error}");
}

/// A message that would unpack to more than a block may hold.
#[test]
fn a_message_that_unpacks_to_more_than_the_limit_costs_itself_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db3");
    std::fs::copy(self::folder("sqlite3_message/sqlite3_message.db3"), &path).expect("copies");
    let connection = Connection::open(&path).expect("opens");
    let bomb = zstd::encode_all(&vec![0u8; 2 << 20][..], 1).expect("packs");
    connection
        .execute("UPDATE messages SET data = ?1 WHERE id = 3", [bomb])
        .expect("writes");
    drop(connection);
    let limits = Limits {
        block: 1 << 20,
        memory: 1 << 20,
        index: 1 << 20,
    };
    let bytes = std::io::Cursor::new(std::fs::read(&path).expect("reads"));
    let (messages, errors) = read(&Recording::read(bytes, "memory", limits).expect("opens"));
    assert_eq!(messages.len(), 29);
    assert!(
        errors[0].to_string().contains("more than 1048576 bytes"),
        "{errors:?}"
    );
}

#[test]
fn folders_without_recordings_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Set::open(&[folder.path()]).expect_err("is empty");
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
    let metadata = "rosbag2_bagfile_information:\n  version: 9\n  relative_file_paths: []\n";
    std::fs::write(folder.path().join("metadata.yaml"), metadata).expect("writes");
    assert!(matches!(
        Set::open(&[folder.path()]),
        Err(OpenError::Directory { .. })
    ));
}

#[test]
fn a_folder_that_is_written_is_read_with_all_that_was_known() {
    let target = tempfile::tempdir().expect("a folder");
    let options = recording::write::Options::default();
    for name in FOLDERS {
        let path = target.path().join(name);
        let (source, messages, _) = read_set(&folder(name));
        let mut writer = Writer::create_rosbag2(&path, &options).expect("creates");
        for (id, channel) in source.channels() {
            assert_eq!(writer.add_channel(channel).expect("adds"), id);
        }
        for m in &messages {
            writer
                .write(m.channel, m.log_time, m.publish_time, &m.data)
                .expect("writes");
        }
        // A recorder that is killed leaves a folder without metadata.
        writer.flush().expect("flushes");
        let (_, again, errors) = read_set(&path);
        assert_eq!(again.len(), 30, "{name}");
        assert!(matches!(&errors[..], [ReadError::Metadata { .. }]), "{errors:?}");
        writer.finish().expect("finishes");
        let (set, again, errors) = read_set(&path);
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(listing(&set, &again), expected(), "{name}");
        let channels = |set: &Set| {
            set.channels()
                .map(|(_, channel)| channel.clone())
                .collect::<Vec<_>>()
        };
        for (one, other) in channels(&set).iter().zip(channels(&source)) {
            assert_eq!(
                (one.id.0, &one.qos, &one.type_hash),
                (one.id.0, &other.qos, &other.type_hash)
            );
            assert_eq!(
                (&one.topic, &one.type_name, &one.definition),
                (&other.topic, &other.type_name, &other.definition)
            );
        }
        let mut files: Vec<_> = std::fs::read_dir(&path)
            .expect("reads")
            .flatten()
            .map(|f| f.file_name())
            .collect();
        files.sort();
        let mut right = ["metadata.yaml".into(), format!("{name}_0.mcap").into()];
        right.sort();
        assert_eq!(files, right as [std::ffi::OsString; 2]);
    }
}

#[test]
fn a_folder_that_exists_is_kept_and_what_rosbag2_cannot_hold_is_refused() {
    let target = tempfile::tempdir().expect("a folder");
    let mut options = recording::write::Options::default();
    let mut writer = Writer::create_rosbag2(target.path(), &options).expect("an empty folder");
    let ros1 = recording::Channel::ros1("/t", "std_msgs/String", "", "string data\n");
    let error = writer.add_channel(&ros1).expect_err("is refused");
    assert!(error.to_string().contains("rosbag2 reads only CDR"), "{error}");
    writer.finish().expect("finishes");
    let (set, messages, errors) = read_set(target.path());
    assert_eq!((set.summary().messages, messages.len(), errors.len()), (0, 0, 0));
    let error = Writer::create_rosbag2(target.path(), &options).expect_err("exists");
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    options.overwrite = true;
    drop(Writer::create_rosbag2(target.path(), &options).expect("is replaced"));
}

/// A database of Eloquent, with updated metadata.
#[test]
fn qos_missing_in_the_database_is_read_from_the_folders_metadata() {
    let copy = copy("old");
    let connection = Connection::open(copy.path().join("old_0.db3")).expect("opens");
    connection
        .execute_batch("ALTER TABLE topics DROP COLUMN offered_qos_profiles")
        .expect("drops");
    drop(connection);
    let (set, messages, _) = read_set(copy.path());
    assert_eq!(messages.len(), 30);
    let qos = |set: &Set| set.channels().map(|(_, c)| c.qos.clone()).collect::<Vec<_>>();
    assert_eq!(qos(&set), qos(&read_set(&folder("old")).0));
    let alone = Recording::open(copy.path().join("old_0.db3")).expect("opens");
    assert!(alone.channels().iter().all(|c| c.qos.is_empty()));
}
