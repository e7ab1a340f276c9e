use super::*;
use bus::{Bus, BusConfig, PublisherOptions, TopicType};
use schema::{Flavour, Registry};

struct Desk {
    publisher: bus::Publisher,
    _folder: tempfile::TempDir,
}

fn desk(limit: u64) -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let bus = Bus::open(BusConfig::new(folder.path())).unwrap();
    let topic = TopicType {
        topic: "/t".into(),
        type_name: "t/T".into(),
        type_hash: [0; 16],
        definition: "".into(),
    };
    let publisher = bus
        .publisher(topic, PublisherOptions::default().with_memory_limit(limit))
        .unwrap();
    Desk {
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
fn what_comes_in_any_pieces_is_what_goes_out() {
    let desk = desk(64 << 20);
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
            let loan = |c, p: &[usize]| desk.publisher.loan(c, p);
            let mut loan = read(&mut stream, bytes.len(), &schema, &mut buffer, loan)
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
    let desk = desk(1 << 20);
    let schema = Registry::new(Flavour::Ros1).schema("sensor_msgs/Image").unwrap();
    let loan = |c, p: &[usize]| desk.publisher.loan(c, p);
    let mut large = message(&schema, 0);
    // Its array is its end.
    large.truncate(large.len() - 4);
    large.extend((3u32 << 20).to_le_bytes());
    large.resize(large.len() + (3 << 20), 7);
    let len = large.len();
    large.extend(b"next");
    let mut stream = &large[..];
    let refused = read(&mut stream, len, &schema, &mut Vec::new(), loan)
        .unwrap()
        .unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
    assert_eq!(stream, b"next");

    // One byte too many inside, and one that is missing.
    let mut long = message(&schema, 5000);
    long.extend(b"+next");
    let mut stream = &long[..];
    let refused = read(&mut stream, long.len() - 4, &schema, &mut Vec::new(), loan)
        .unwrap()
        .unwrap_err();
    assert!(refused.to_string().contains("no sensor_msgs/Image"), "{refused}");
    assert_eq!(stream, b"next");
    let short = message(&schema, 5000);
    let mut stream = &short[..];
    let refused = read(&mut stream, short.len() - 1, &schema, &mut Vec::new(), loan)
        .unwrap()
        .unwrap_err();
    assert!(refused.to_string().contains("no sensor_msgs/Image"), "{refused}");
    // Promised and not sent.
    let mut stream = &short[..];
    assert!(read(&mut stream, 60 << 20, &schema, &mut Vec::new(), loan).is_err());
}
