use super::*;
use bus::{Bus, BusConfig, PublisherOptions, TopicType};
use schema::{Flavour, Registry};

fn share() -> Share {
    Share::test(&std::sync::Arc::new(crate::peers::Peers::new(&[], 1, 1 << 30)))
}

struct Fixture {
    publisher: bus::Publisher,
    _folder: tempfile::TempDir,
}

fn fixture(limit: u64) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let bus = Bus::open(BusConfig::new(folder.path())).unwrap();
    let topic = TopicType {
        topic: "/t".into(),
        type_name: "t/T".into(),
        type_hash: [0; 16],
        flavour: Default::default(),
        definition: "".into(),
    };
    let publisher = bus
        .publisher(topic, PublisherOptions::default().with_memory_limit(limit))
        .unwrap();
    Fixture {
        publisher,
        _folder: folder,
    }
}

fn message(schema: &Schema, elements: usize) -> Vec<u8> {
    let mut value = schema.default_value();
    for part in schema.parts() {
        let name = part.path.trim_end_matches("[]");
        if name.contains('[') {
            continue;
        }
        let list = vec!["7"; elements].join(", ");
        let yaml = schema.value_from_yaml(&format!("{name}: [{list}]"));
        if let Ok(found) = yaml.map(|v| v.get(name).unwrap()) {
            value.set(name, found).unwrap();
        }
    }
    schema.encode_ros1(&value).unwrap()
}

#[test]
fn messages_received_in_any_pieces_are_sent_unchanged() {
    let fixture = fixture(64 << 20);
    let registry = Registry::new(Flavour::Ros1);
    for name in [
        "sensor_msgs/Image",
        "sensor_msgs/PointCloud2",
        "sensor_msgs/LaserScan",
        "std_msgs/String",
        "nav_msgs/OccupancyGrid",
    ] {
        let schema = registry.schema(name).unwrap();
        for elements in [0, 10, 300, 5000, 100_000] {
            let bytes = message(&schema, elements);
            let mut stream = bytes.chain(&b"next"[..]);
            let mut buffer = Vec::new();
            let loan = |c, p: &[usize]| fixture.publisher.loan(c, p);
            let mut loan = read(&mut stream, bytes.len(), &schema, &mut buffer, &mut share(), loan)
                .unwrap()
                .unwrap();
            let (control, parts) = loan.split_mut();
            let parts: Vec<&[u8]> = parts.map(|p| &*p).collect();
            let join = schema.join(control, &parts).unwrap();
            let mut sent = Vec::new();
            assert_eq!(send(&join.ros1_pieces(), &mut sent).unwrap(), bytes.len());
            assert_eq!(sent[..4], (bytes.len() as u32).to_le_bytes());
            assert!(sent[4..] == bytes, "{name} of {elements}");
            assert_eq!(stream.into_inner().1, b"next");
        }
    }
}

#[test]
fn the_stream_stays_in_step_whatever_is_wrong_with_a_message() {
    let fixture = fixture(1 << 20);
    let schema = Registry::new(Flavour::Ros1).schema("sensor_msgs/Image").unwrap();
    let loan = |c, p: &[usize]| fixture.publisher.loan(c, p);
    let mut large = message(&schema, 0);
    // The array is at the end.
    large.truncate(large.len() - 4);
    large.extend((3u32 << 20).to_le_bytes());
    large.resize(large.len() + (3 << 20), 7);
    let len = large.len();
    large.extend(b"next");
    let mut stream = &large[..];
    let refused = read(&mut stream, len, &schema, &mut Vec::new(), &mut share(), loan)
        .unwrap()
        .unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
    assert_eq!(stream, b"next");

    // One byte too many inside, and one missing.
    let mut long = message(&schema, 5000);
    long.extend(b"+next");
    let mut stream = &long[..];
    let refused = read(
        &mut stream,
        long.len() - 4,
        &schema,
        &mut Vec::new(),
        &mut share(),
        loan,
    )
    .unwrap()
    .unwrap_err();
    assert!(
        refused.to_string().contains("not a sensor_msgs/Image"),
        "{refused}"
    );
    assert_eq!(stream, b"next");
    let short = message(&schema, 5000);
    let mut stream = &short[..];
    let refused = read(
        &mut stream,
        short.len() - 1,
        &schema,
        &mut Vec::new(),
        &mut share(),
        loan,
    )
    .unwrap()
    .unwrap_err();
    assert!(
        refused.to_string().contains("not a sensor_msgs/Image"),
        "{refused}"
    );
    // Announced but not sent.
    let mut stream = &short[..];
    assert!(
        read(
            &mut stream,
            60 << 20,
            &schema,
            &mut Vec::new(),
            &mut share(),
            loan
        )
        .is_err()
    );
}

#[test]
fn sizes_a_peer_announces_are_bounded_by_its_share() {
    let fixture = fixture(64 << 20);
    let peers = std::sync::Arc::new(crate::peers::Peers::new(&[], 1, 1 << 20));
    let registry = Registry::new(Flavour::Ros1);
    let next = b"next";
    for name in ["sensor_msgs/Image", "tf2_msgs/TFMessage"] {
        let schema = registry.schema(name).unwrap();
        let mut bytes = message(&schema, 100);
        let len = 2 << 20;
        if name.ends_with("Image") {
            let at = bytes.len() - 100 - 4;
            bytes[at..at + 4].copy_from_slice(&(len as u32 - at as u32 - 4).to_le_bytes());
        }
        bytes.resize(len, 0);
        bytes.extend(next);
        let mut stream = &bytes[..];
        let mut share = Share::test(&peers);
        let mut loaned = false;
        let refused = read(&mut stream, len, &schema, &mut Vec::new(), &mut share, |c, p| {
            loaned = true;
            fixture.publisher.loan(c, p)
        });
        let error = refused.unwrap().unwrap_err();
        assert!(matches!(error, Untaken::Full(_)), "{name}: {error}");
        assert!(
            !loaned && stream == next,
            "{name}: the stream is positioned after it"
        );
    }
}

#[test]
fn memory_is_taken_as_bytes_come() {
    let peers = std::sync::Arc::new(crate::peers::Peers::new(&[], 1, 1 << 30));
    let mut share = Share::test(&peers);
    let mut buffer = Vec::new();
    let cut = vec![7; 100_000];
    let gathered = gather(&mut &cut[..], 60 << 20, &mut buffer, &mut share);
    assert!(gathered.is_err());
    assert!(buffer.capacity() < 4 * cut.len(), "{}", buffer.capacity());
}
