//! Files that are truncated, were never closed, or are damaged in the middle.

use recording::{OpenError, ReadError};

use crate::support::{BAGS, MCAPS, expected, fixture, listing, open, read, replace};

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize
}

/// End of each message of an uncompressed bag, and of its header record: an oracle that shares no code with the reader.
fn bag_ends(bytes: &[u8]) -> (Vec<usize>, usize) {
    let mut ends = Vec::new();
    let mut at = 13;
    let mut first = 0;
    while at < bytes.len() {
        let header = &bytes[at + 4..at + 4 + u32_at(bytes, at)];
        let data = at + 8 + header.len();
        let is = |op: u8| header.windows(4).any(|field| field == [b'o', b'p', b'=', op]);
        if is(2) {
            ends.push(data + u32_at(bytes, data - 4));
        }
        // Descends into chunks, skips everything else.
        at = if is(5) {
            data
        } else {
            data + u32_at(bytes, data - 4)
        };
        if first == 0 {
            first = at;
        }
    }
    (ends, first)
}

/// The same for an MCAP file without compression, and the end of its data.
fn mcap_ends(bytes: &[u8]) -> (Vec<usize>, usize, usize) {
    let mut ends = Vec::new();
    let (mut at, mut first, mut data_end) = (8, 0, 0);
    while at + 9 < bytes.len() && data_end == 0 {
        let (op, len) = (bytes[at], u64_at(bytes, at + 1));
        match op {
            5 => ends.push(at + 9 + len),
            15 => data_end = at + 9 + len,
            _ => {}
        }
        at += if op == 6 { 9 + 40 } else { 9 + len };
        if first == 0 {
            first = at;
        }
    }
    (ends, first, data_end)
}

/// Checks the errors of a truncated file, and returns the number of its messages.
fn check_cut(name: &str, bytes: &[u8], cut: usize, whole: &[String], head: usize) -> (usize, Vec<ReadError>) {
    let recording = match open(bytes[..cut].to_vec()) {
        Ok(recording) => recording,
        Err(OpenError::Empty { .. }) => {
            assert_eq!(cut, 0);
            return (0, Vec::new());
        }
        Err(OpenError::Damaged(ReadError::Truncated {
            end, missing, offset, ..
        })) => {
            assert!(
                cut < head,
                "{name}: cut at {cut} behind the header ({head}) must open"
            );
            assert!(end == cut as u64 && missing > 0 && offset <= end);
            return (0, Vec::new());
        }
        Err(other) => panic!("{name} cut at {cut}: {other}"),
    };
    assert!(!recording.is_indexed(), "{name} cut at {cut}");
    let (messages, errors) = read(&recording);
    let listing = listing(&recording, &messages);
    let mut rest = whole.iter();
    for line in listing.lines() {
        assert!(
            rest.any(|expected| expected == line),
            "{name} cut at {cut}: {line}"
        );
    }
    let items: Vec<_> = recording.messages().collect();
    assert_eq!(items.len(), messages.len() + errors.len());
    if let Some(error) = recording.damage() {
        assert!(
            items.last().is_some_and(|item| item.is_err()),
            "{name} cut at {cut}: damage comes last"
        );
        if let ReadError::Truncated {
            end, missing, offset, ..
        } = error
        {
            assert!(*missing > 0 && *end == cut as u64, "{name} cut at {cut}: {error}");
            assert!(*offset <= *end, "{name} cut at {cut}: {error}");
        }
    }
    (messages.len(), errors)
}

fn lines() -> Vec<String> {
    expected().lines().map(str::to_owned).collect()
}

#[test]
fn a_bag_cut_at_any_byte_gives_all_messages_before_the_cut_and_then_an_error() {
    let bytes = fixture("none.bag");
    let (ends, head) = bag_ends(&bytes);
    assert_eq!(ends.len(), 30);
    for cut in 0..bytes.len() {
        let (messages, errors) = check_cut("none.bag", &bytes, cut, &lines(), head);
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(messages, whole, "cut at {cut}");
        assert!(cut < head || errors.len() == 1, "cut at {cut}: {errors:?}");
    }
}

#[test]
fn an_mcap_file_cut_at_any_byte_gives_all_messages_before_the_cut_and_then_an_error() {
    for name in ["none.mcap", "unchunked.mcap"] {
        let bytes = fixture(name);
        let (ends, head, data_end) = mcap_ends(&bytes);
        assert_eq!(ends.len(), 30, "{name}");
        let mut silent = 0;
        for cut in 0..bytes.len() {
            let (messages, errors) = check_cut(name, &bytes, cut, &lines(), head);
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(messages, whole, "{name} cut at {cut}");
            assert!(errors.len() <= 1, "{name} cut at {cut}: {errors:?}");
            if errors.is_empty() && cut >= head {
                // Truncated between records, a file looks like that of a killed recorder.
                assert!(cut < data_end, "{name} cut at {cut}");
                silent += 1;
            }
        }
        assert!(silent < 200, "{name}: {silent} cuts without an error");
    }
}

#[test]
fn compressed_files_that_are_cut_give_no_less_than_the_whole_chunks() {
    for name in ["bz2.bag", "lz4.bag", "lz4.mcap", "zstd.mcap", "no_summary.mcap"] {
        let bytes = fixture(name);
        let mut most = 0;
        let head = if name.ends_with("bag") {
            13 + 4096
        } else {
            mcap_ends(&bytes).1
        };
        // Unoptimized decompressors are slow; every truncation is tested only for uncompressed files.
        for cut in (0..bytes.len()).step_by(if name == "bz2.bag" { 97 } else { 13 }) {
            let (messages, errors) = check_cut(name, &bytes, cut, &lines(), head);
            assert!(messages >= most, "{name} cut at {cut}: {messages} after {most}");
            assert!(errors.len() <= 1, "{name} cut at {cut}: {errors:?}");
            assert!(
                cut < head || !name.ends_with("bag") || errors.len() == 1,
                "{name} cut at {cut}"
            );
            most = messages;
        }
        let (messages, _) = check_cut(name, &bytes, bytes.len() - 1, &lines(), head);
        assert_eq!(messages, 30, "{name}");
    }
}

#[test]
fn a_bag_that_was_not_closed_is_read_and_said_to_have_no_index() {
    for name in BAGS {
        let mut bytes = fixture(name);
        let at = bytes
            .windows(10)
            .position(|window| window == b"index_pos=")
            .expect("index_pos")
            + 10;
        let index = u64_at(&bytes, at);
        bytes[at..at + 8].fill(0);
        bytes.truncate(index);
        let recording = open(bytes).expect("opens");
        let (messages, errors) = read(&recording);
        assert_eq!(listing(&recording, &messages), expected(), "{name}");
        assert!(errors.is_empty() && !recording.is_indexed(), "{name}");
        assert_eq!(recording.summary().messages, 30);
    }
}

/// A killed recorder leaves the header of its last chunk with length 0, followed by the records.
#[test]
fn records_behind_an_unfinished_chunk_header_are_read() {
    let mut bytes = fixture("none.bag");
    let (ends, first) = bag_ends(&bytes);
    let at = bytes
        .windows(10)
        .position(|window| window == b"index_pos=")
        .expect("index_pos")
        + 10;
    bytes[at..at + 8].fill(0);
    let size = bytes[first..]
        .windows(5)
        .position(|window| window == b"size=")
        .expect("size")
        + first
        + 5;
    let length = first + 4 + u32_at(&bytes, first);
    let end = length + 4 + u32_at(&bytes, length);
    bytes[size..size + 4].fill(0);
    bytes[length..length + 4].fill(0);
    bytes.truncate(end);
    let recording = open(bytes).expect("opens");
    let (messages, errors) = read(&recording);
    assert_eq!(messages.len(), ends.iter().filter(|&&at| at <= end).count());
    assert!(!messages.is_empty() && errors.is_empty(), "{errors:?}");
}

#[test]
fn one_damaged_chunk_costs_its_own_messages_only() {
    for name in [
        "bz2.bag",
        "lz4.bag",
        "lz4.mcap",
        "zstd.mcap",
        "none.mcap",
        "no_summary.mcap",
    ] {
        let mut bytes = fixture(name);
        let magic: &[u8] = match name {
            "bz2.bag" => b"BZh",
            "none.mcap" => b"late 3",
            _ if name.contains("lz4") => b"\x04\x22\x4d\x18",
            _ => b"\x28\xb5\x2f\xfd",
        };
        let chunks: Vec<usize> = (0..bytes.len() - 4)
            .filter(|&at| bytes[at..].starts_with(magic))
            .collect();
        let hit = chunks[chunks.len() / 2];
        // After the frame's head and the chunk's first bytes.
        for byte in &mut bytes[hit + 4..hit + 60] {
            *byte ^= 0x5a;
        }
        let recording = open(bytes).expect("opens");
        let (messages, errors) = read(&recording);
        assert!(
            (15..30).contains(&messages.len()),
            "{name}: {} messages",
            messages.len()
        );
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        assert!(
            errors[0].offset() <= hit as u64 && hit as u64 - errors[0].offset() < 2_000,
            "{name}: {}",
            errors[0]
        );
        let last = recording.messages().last().expect("items");
        assert!(last.is_ok(), "{name}: the chunks after the damage are read");
    }
}

#[test]
fn declared_sizes_are_checked_against_limits_and_the_real_ones() {
    let size = |bytes: &mut Vec<u8>, size: u32| {
        let (_, first) = (0, 13 + 4096);
        let at = bytes[first..]
            .windows(5)
            .position(|window| window == b"size=")
            .expect("size")
            + first
            + 5;
        bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
    };
    for name in BAGS {
        let mut bytes = fixture(name);
        size(&mut bytes, u32::MAX);
        let (_, errors) = read(&open(bytes).expect("opens"));
        assert!(
            matches!(errors[..], [ReadError::TooLarge { .. }]),
            "{name}: {errors:?}"
        );
        for wrong in [17, 100_000] {
            let mut bytes = fixture(name);
            size(&mut bytes, wrong);
            let (_, errors) = read(&open(bytes).expect("opens"));
            assert!(
                matches!(errors[..], [ReadError::Malformed { .. }]),
                "{name}: {errors:?}"
            );
            assert!(
                errors[0].to_string().contains(&format!("instead of {wrong}")),
                "{}",
                errors[0]
            );
        }
    }
}

#[test]
fn a_wrong_checksum_is_found() {
    for name in MCAPS {
        let mut bytes = fixture(name);
        if name == "unchunked.mcap" {
            continue;
        }
        // The chunk header's CRC: opcode, length, two times, uncompressed size before it.
        let chunk = (0..bytes.len()).scan(8usize, |at, _| {
            let here = *at;
            *at += 9 + u64_at(&bytes, here + 1);
            Some(here)
        });
        let chunk = chunk.take(20).find(|&at| bytes[at] == 6).expect("a chunk");
        bytes[chunk + 33] ^= 1;
        let (messages, errors) = read(&open(bytes).expect("opens"));
        assert!(messages.len() < 30, "{name}: nothing of the chunk is trusted");
        assert!(
            errors.iter().any(|error| error.to_string().contains("CRC-32")),
            "{name}: {errors:?}"
        );
    }
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let mut bytes = fixture("none.bag");
    let at = bytes
        .windows(12)
        .position(|window| window == b"chunk_count=")
        .expect("chunk_count")
        + 12;
    bytes[at] += 1;
    let recording = open(bytes).expect("opens");
    let (messages, errors) = read(&recording);
    assert_eq!(
        (messages.len(), errors.len(), recording.is_indexed()),
        (30, 1, false)
    );
    assert!(
        errors[0].to_string().contains("as many connections and chunks"),
        "{}",
        errors[0]
    );

    let mut bytes = fixture("none.bag");
    replace(&mut bytes, b"chunk_pos=", b"chunk_pas=");
    let (messages, errors) = read(&open(bytes).expect("opens"));
    assert_eq!((messages.len(), errors.len()), (30, 1));
}

/// A record of a bag.
fn record(op: u8, fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let field = |name: &str, value: &[u8]| {
        let len = (name.len() + 1 + value.len()) as u32;
        [&len.to_le_bytes(), name.as_bytes(), b"=", value].concat()
    };
    let mut header = field("op", &[op]);
    fields.iter().for_each(|(n, v)| header.extend(field(n, v)));
    let len = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
    [&len(&header), &header[..], &len(data), data].concat()
}

fn bag_header(index: u64, connections: u32, chunks: u32) -> Vec<u8> {
    let (index, connections, chunks) = (
        index.to_le_bytes(),
        connections.to_le_bytes(),
        chunks.to_le_bytes(),
    );
    let fields: [(&str, &[u8]); 3] = [
        ("index_pos", &index),
        ("conn_count", &connections),
        ("chunk_count", &chunks),
    ];
    [&b"#ROSBAG V2.0\n"[..], &record(3, &fields, b"")].concat()
}

fn connection(number: u32, caller: &[u8]) -> Vec<u8> {
    let field = |text: &[u8]| [&(text.len() as u32).to_le_bytes(), text].concat();
    let data = [
        field(b"type=std_msgs/Empty"),
        field(b"md5sum=*"),
        field(&[b"callerid=", caller].concat()),
    ]
    .concat();
    record(7, &[("conn", &number.to_le_bytes()), ("topic", b"/a")], &data)
}

fn message(number: u32, at: u32) -> Vec<u8> {
    let time = [at.to_le_bytes(), [0; 4]].concat();
    record(2, &[("conn", &number.to_le_bytes()), ("time", &time)], b"")
}

const SMALL: recording::Limits = recording::Limits {
    block: 1 << 20,
    memory: 1 << 20,
    index: 100_000,
};

fn complaint(bytes: Vec<u8>) -> String {
    let recording = recording::Recording::read(std::io::Cursor::new(bytes), "hostile", SMALL).expect("opens");
    let (_, errors) = read(&recording);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn names_of_nodes_count_towards_what_a_file_may_say_of_itself() {
    let mut bytes = bag_header(0, 0, 0);
    for n in 0..20 {
        bytes.extend(connection(n, &[b'n'; 10_000]));
        bytes.extend(message(n, n));
    }
    let reported = complaint(bytes);
    assert!(
        reported.contains("all channels' texts") && reported.contains("100000"),
        "{reported}"
    );
}

#[test]
fn an_index_of_a_bag_is_bounded() {
    let first = bag_header(0, 0, 0).len() as u64;
    let mut bytes = bag_header(first, 1, 20);
    bytes.extend(connection(0, b"/n"));
    for _ in 0..20 {
        let (at, time) = (first.to_le_bytes(), [0; 8]);
        let fields: [(&str, &[u8]); 4] = [
            ("ver", &[1, 0, 0, 0]),
            ("chunk_pos", &at),
            ("start_time", &time),
            ("end_time", &time),
        ];
        bytes.extend(record(6, &fields, &[0; 8000]));
    }
    let reported = complaint(bytes);
    assert!(
        reported.contains("the list of chunks") && reported.contains("100000"),
        "{reported}"
    );
}

#[test]
fn notes_about_a_chunks_messages_are_bounded() {
    let mut data = connection(0, b"/n");
    // No record is smaller than its entry in memory; so the limit applies to the entries.
    (0..19_000).for_each(|_| data.extend(message(0, 1)));
    data.truncate(1 << 20);
    let mut bytes = bag_header(0, 0, 0);
    bytes.extend(record(
        5,
        &[
            ("compression", b"none"),
            ("size", &(data.len() as u32).to_le_bytes()),
        ],
        &data,
    ));
    let recording = recording::Recording::read(
        std::io::Cursor::new(bytes),
        "hostile",
        recording::Limits {
            block: 1 << 20,
            ..SMALL
        },
    );
    let (messages, _) = read(&recording.expect("opens"));
    assert!(messages.len() * 40 <= 1 << 20, "{}", messages.len());
}
