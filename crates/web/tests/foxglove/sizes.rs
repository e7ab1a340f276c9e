//! Messages that are too long for a client.

use super::{Host, SDK, V1, WATCHDOG, type_of};
use ropewalk::{Flavour, PublisherOptions, Schema};
use schema::{Numbers, Value};
use serde_json::{Value as Json, json};

/// An image of 1000 x 600 pixels, each of which holds its place.
fn image(schema: &Schema) -> Value {
    let (width, height) = (1000_u32, 600_u32);
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, (x >> 8) as u8, y as u8]));
    let text = format!(
        "{{width: {width}, height: {height}, step: {}, encoding: rgb8}}",
        width * 3
    );
    let mut image = schema.value_from_yaml(&text).unwrap();
    let pixels = Numbers::U8(pixels.collect());
    image.set("data", Value::Numbers(pixels)).unwrap();
    image
}

#[test]
fn a_slow_client_gets_smaller_images_and_a_fast_one_whole_ones() {
    let host = Host::new();
    for (topic, protocol, flavour, rate) in [
        ("/slow", V1, Flavour::Ros1, 2e5),
        ("/slow2", SDK, Flavour::Ros2, 2e5),
        ("/fast", V1, Flavour::Ros1, 1e12),
    ] {
        let schema = type_of(flavour, "sensor_msgs/Image");
        let whole = image(&schema);
        let publisher = host
            .node
            .dynamic_publisher_with(topic, &schema, PublisherOptions::default())
            .unwrap();
        let steps = [
            json!(["rate", rate]),
            json!(["channel", topic]),
            json!(["subscribe", topic]),
        ];
        // A client that gets no processor for a moment is slow for a moment, and then reads what waits at once.
        // One that is busy when it answers the first ping seems faster than it is until the next one.
        let (most, is_slow) = (100, rate < 1e9);
        let data = |n| std::iter::repeat_n(json!(["data", topic]), n);
        let reported = is_slow.then(|| json!(["until", "status", { "id": format!("size {topic}") }]));
        let steps = steps.into_iter().chain(data(5)).chain(reported);
        let steps: Vec<Json> = steps.chain(data(most - 5)).collect();
        // 25 ms are 5 kB, so the image has the least size, 16 kB.
        let wanted = if is_slow { (91, 55) } else { (1000, 600) };
        let mut client = host.client("", &[protocol], json!({}), &steps);
        client.skip(4);
        assert!(publisher.wait_for_subscribers(1, WATCHDOG));
        let mut last = (0, 0);
        for n in 0..most {
            if n == 5 && is_slow {
                let text = client.next()["message"].as_str().unwrap().to_owned();
                let reduced = format!("{topic}: images are reduced to");
                assert!(text.contains(&reduced), "{text}");
            }
            if n >= 5 && last == wanted {
                break;
            }
            publisher.publish_value(&whole).unwrap();
            let got = read(&schema, flavour, &client.next());
            let number = |name| got.get(name).unwrap().as_integer().unwrap() as usize;
            last = (number("width"), number("height"));
            assert_eq!(number("step"), 3 * last.0);
            let Value::Numbers(Numbers::U8(pixels)) = got.get("data").unwrap() else {
                panic!("no pixels");
            };
            assert_eq!(pixels.len(), last.0 * last.1 * 3);
            let n = 1000_usize.div_ceil(last.0);
            let (x, y) = ((last.0 - 1) * n, (last.1 - 1) * n);
            assert_eq!(pixels[pixels.len() - 3..], [x as u8, (x >> 8) as u8, y as u8]);
        }
        assert_eq!(last, wanted);
    }
}

/// A message of which the client printed the bytes.
fn read(schema: &Schema, flavour: Flavour, digits: &Json) -> Value {
    let byte = |hex: &[u8]| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = digits.as_str().unwrap().as_bytes().chunks(2).map(byte).collect();
    let read = match flavour {
        Flavour::Ros1 => schema.decode_ros1(&bytes),
        Flavour::Ros2 => schema.decode_cdr(&bytes),
    };
    read.unwrap()
}

#[test]
fn a_map_that_is_too_long_comes_with_larger_cells_and_other_messages_are_reported() {
    let host = Host::new();
    let (width, height) = (4097, 4096);
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        let schema = type_of(flavour, "nav_msgs/OccupancyGrid");
        let text = format!(
            "{{info: {{width: {width}, height: {height}, resolution: 0.05, origin: {{position: {{x: -3}}}}}}}}"
        );
        let mut map = schema.value_from_yaml(&text).unwrap();
        let mut cells = vec![-1; width * height];
        // A wall of one cell, a free cell among unknown ones, and one in the last column.
        (cells[width + 1], cells[0], cells[2]) = (100, 0, 0);
        cells[width - 1] = 0;
        map.set("data", Value::Numbers(Numbers::I8(cells))).unwrap();
        let (topic, protocol) = match flavour {
            Flavour::Ros1 => ("/map", V1),
            Flavour::Ros2 => ("/map2", SDK),
        };
        let options = PublisherOptions::default().with_history(1);
        let publisher = host.node.dynamic_publisher_with(topic, &schema, options).unwrap();
        publisher.publish_value(&map).unwrap();
        let steps = [
            json!(["channel", topic]),
            json!(["subscribe", topic]),
            json!(["data", topic]),
            json!(["until", "status", { "id": format!("size {topic}") }]),
        ];
        let mut client = host.client("", &[protocol], json!({}), &steps);
        let got = read(&schema, flavour, &client.skip(4));
        let number = |name| got.get(name).unwrap().as_f64().unwrap();
        assert_eq!((number("info.width"), number("info.height")), (2049.0, 2048.0));
        assert!((number("info.resolution") - 0.1).abs() < 1e-6, "{got:?}");
        assert_eq!(number("info.origin.position.x"), -3.0);
        let Value::Numbers(Numbers::I8(cells)) = got.get("data").unwrap() else {
            panic!("no cells");
        };
        assert_eq!(cells.len(), 2049 * 2048);
        assert_eq!(
            [cells[0], cells[1], cells[2], cells[2048], cells[2049]],
            [100, 0, -1, 0, -1]
        );
        let text = client.next()["message"].as_str().unwrap().to_owned();
        assert!(text.contains("reduced to 2049 x 2048"), "{text}");
    }

    let bytes_type = type_of(Flavour::Ros1, "std_msgs/UInt8MultiArray");
    let mut long = bytes_type.value_from_yaml("{}").unwrap();
    long.set("data", Value::Numbers(Numbers::U8(vec![7; 17 << 20])))
        .unwrap();
    let options = PublisherOptions::default().with_history(1);
    let publisher = host
        .node
        .dynamic_publisher_with("/long", &bytes_type, options)
        .unwrap();
    publisher.publish_value(&long).unwrap();
    let steps = [
        json!(["channel", "/long"]),
        json!(["subscribe", "/long"]),
        json!(["until", "status", { "id": "size /long" }]),
    ];
    let mut client = host.client("", &[V1], json!({}), &steps);
    let text = client.skip(4)["message"].as_str().unwrap().to_owned();
    assert!(text.contains("17.0 MiB is not sent: at most 16 MiB"), "{text}");
}
