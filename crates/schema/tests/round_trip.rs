//! Converts random messages of random types between all encodings.

use proptest::prelude::*;
use schema::{Arity, FieldType, Flavour, MAX_PARTS, MessageType, Registry, Schema, Show};

const PRIMITIVES: [&str; 13] = [
    "bool", "byte", "char", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float32", "float64",
];

/// The type of a field: a primitive, a string, or one of the `known` messages.
fn base(flavour: Flavour, known: usize) -> impl Strategy<Value = String> {
    let times: &[&str] = match flavour {
        Flavour::Ros1 => &["time", "duration"],
        Flavour::Ros2 => &["string<=9", "wstring", "wstring<=3"],
    };
    let words: Vec<String> = PRIMITIVES
        .iter()
        .chain(times)
        .chain(&["string"])
        .map(|s| s.to_string())
        .collect();
    let messages: Vec<String> = (0..known)
        .map(|i| format!("t/M{i}"))
        .chain(["std_msgs/Empty".into()])
        .collect();
    prop_oneof![3 => proptest::sample::select(words), 1 => proptest::sample::select(messages)]
}

fn field(flavour: Flavour, known: usize) -> impl Strategy<Value = String> {
    let arity = match flavour {
        Flavour::Ros1 => {
            prop_oneof![4 => Just(""), 3 => Just("[]"), 1 => Just("[1]"), 1 => Just("[3]")].boxed()
        }
        Flavour::Ros2 => {
            prop_oneof![4 => Just(""), 3 => Just("[]"), 1 => Just("[<=4]"), 1 => Just("[3]")].boxed()
        }
    };
    (base(flavour, known), arity).prop_map(|(base, arity)| format!("{base}{arity}"))
}

/// Four messages, each of which may use the previous ones.
fn definitions(flavour: Flavour) -> impl Strategy<Value = Vec<String>> {
    let message = move |known| {
        proptest::collection::vec(field(flavour, known), 1..7).prop_map(|fields| {
            let lines = fields.iter().enumerate().map(|(i, ty)| format!("{ty} f{i}\n"));
            lines.collect::<String>()
        })
    };
    (message(0), message(1), message(2), message(3)).prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

/// Writes a random message of `ty` in ROS 1 form, from the definition alone.
fn random_message(ty: &MessageType, random: &mut impl FnMut() -> u64, depth: u32, out: &mut Vec<u8>) {
    for f in ty.fields() {
        let most = if depth > 1 { 2 } else { 40 };
        let count = match f.arity() {
            Arity::One => 1,
            Arity::Fixed(n) => n,
            Arity::Bounded(n) => random() as u32 % (n.min(most) + 1),
            Arity::Unbounded => random() as u32 % (most + 1),
        };
        if matches!(f.arity(), Arity::Bounded(_) | Arity::Unbounded) {
            out.extend(count.to_le_bytes());
        }
        for _ in 0..count {
            match f.ty() {
                FieldType::Primitive(p) if p.name() == "bool" => out.push(random() as u8 & 1),
                FieldType::Primitive(p) if p.name() == "float32" => {
                    out.extend((random() as i32 as f32 / 7.0).to_le_bytes());
                }
                FieldType::Primitive(p) if p.name() == "float64" => {
                    out.extend((random() as i64 as f64 / 7.0).to_le_bytes());
                }
                FieldType::Primitive(p) => out.extend((0..p.size()).map(|_| random() as u8)),
                FieldType::String { bound } => {
                    let len = random() as u32 % (bound.unwrap_or(20).min(20) + 1);
                    out.extend(len.to_le_bytes());
                    out.extend((0..len).map(|_| b' ' + random() as u8 % 90));
                }
                FieldType::WString { bound } => {
                    let len = random() as u32 % (bound.unwrap_or(20).min(20) + 1);
                    out.extend(len.to_le_bytes());
                    (0..len).for_each(|_| out.extend((random() as u16 % 0xd000).to_le_bytes()));
                }
                FieldType::Message(m) => random_message(m, random, depth + 1, out),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn check(schema: &Schema, ros1: &[u8]) {
    for threshold in [0, 64, 256, usize::MAX] {
        let schema = schema.clone().with_threshold(threshold);
        let split = schema.split_ros1(ros1).expect("a message of the type");
        assert!(split.part_count() <= MAX_PARTS);
        let parts = split.to_parts();
        assert_eq!(schema.measure_ros1(ros1).expect("the same"), split.sizes());
        assert!(parts.parts.iter().all(|p| p.len() >= threshold && !p.is_empty()));
        assert_eq!(
            schema
                .join_ros1(&parts.control, &parts.slices())
                .expect("own parts"),
            ros1
        );

        let cdr = schema
            .join_cdr(&parts.control, &parts.slices())
            .expect("own parts");
        assert_eq!(schema.split_cdr(&cdr).expect("own CDR").to_parts(), parts);

        // Every byte is written, whatever the buffers contained before.
        let slices = parts.slices();
        let join = schema.join(&parts.control, &slices).expect("own parts");
        let (mut one, mut two) = (vec![0xee; ros1.len()], vec![0xee; cdr.len()]);
        join.write_ros1(&mut one).expect("fits");
        join.write_cdr(&mut two).expect("fits");
        assert_eq!((one.as_slice(), &two), (ros1, &cdr));
        for split in [split, schema.split_cdr(&cdr).expect("own CDR")] {
            let mut control = vec![0xee; split.control_len()];
            split.write_control(&mut control).expect("fits");
            assert_eq!(control, parts.control);
            for (i, expected) in parts.parts.iter().enumerate() {
                let mut part = vec![0xee; split.part_len(i)];
                split.write_part(i, &mut part).expect("fits");
                assert_eq!(&part, expected);
            }
        }

        let value = schema.decode(&parts.control, &parts.slices()).expect("own parts");
        assert_eq!(schema.encode(&value).expect("own value"), parts);
        assert_eq!(schema.decode_cdr(&cdr).expect("own CDR"), value);
        assert_eq!(schema.encode_cdr(&value).expect("own value"), cdr);
    }
    let value = schema.decode_ros1(ros1).expect("a message of the type");
    let again = schema
        .value_from_yaml(&value.to_yaml(Show::ALL))
        .expect("own YAML");
    assert_eq!(schema.encode_ros1(&again).expect("own value"), ros1);
    let again = schema
        .value_from_json(&value.to_json(Show::ALL))
        .expect("own JSON");
    assert_eq!(schema.encode_ros1(&again).expect("own value"), ros1);

    // No proper prefix of a message is a message; each gives an error and no panic.
    for len in (0..ros1.len()).step_by(1 + ros1.len() / 50) {
        assert!(
            schema.split_ros1(&ros1[..len]).is_err(),
            "{len} of {}",
            ros1.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_round(
        (flavour, texts) in prop_oneof![Just(Flavour::Ros1), Just(Flavour::Ros2)]
            .prop_flat_map(|flavour| (Just(flavour), definitions(flavour))),
        seed in any::<u64>(),
    ) {
        let mut registry = Registry::new(flavour);
        for (i, text) in texts.iter().enumerate() {
            registry.add_message(&format!("t/M{i}"), text).expect("parses");
        }
        let mut state = seed | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 8
        };
        let schema = registry.schema("t/M3").expect("compiles");
        let mut ros1 = Vec::new();
        random_message(schema.message_type(), &mut random, 0, &mut ros1);
        prop_assume!(ros1.len() < 1 << 18);
        check(&schema, &ros1);

        // The definition's own text yields the same schema.
        let mut other = Registry::new(flavour);
        other.add_embedded("t/M3", &schema.definition()).expect("own text");
        let same = other.schema("t/M3").expect("own text");
        prop_assert_eq!(same.md5(), schema.md5());
        prop_assert_eq!(same.rihs01(), schema.rihs01());
        prop_assert_eq!(same.definition(), schema.definition());
    }
}

/// Arrays after the first 32 stay in the control part.
#[test]
fn at_most_32_parts() {
    let registry = Registry::new(Flavour::Ros1);
    let schema = registry.schema("visualization_msgs/MarkerArray").expect("known");
    let marker = "{points: [[1, 2, 3], [4, 5, 6]], colors: [[1, 1, 1, 1]]}";
    let yaml = format!("markers: [{}]", [marker; 20].join(", "));
    let value = schema.value_from_yaml(&yaml).expect("fits");
    let ros1 = schema.encode_ros1(&value).expect("fits");
    let schema = schema.with_threshold(0);
    let split = schema.split_ros1(&ros1).expect("valid");
    assert_eq!(split.part_count(), 32);
    assert_eq!(
        (split.part_len(0), split.part_len(1), split.part_len(32)),
        (48, 16, 0)
    );
    check(&schema, &ros1);
}

/// A `bool` that is neither 0 nor 1, a string that is not UTF-8 and a NaN with a payload pass unchanged.
#[test]
fn odd_bytes_are_carried() {
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_message("t/T", "bool[] b\nstring s\nfloat32 f\nfloat64[] d")
        .expect("parses");
    let schema = registry.schema("t/T").expect("compiles").with_threshold(0);
    let mut ros1 = vec![3, 0, 0, 0, 0, 2, 255, 2, 0, 0, 0, 0xc3, 0x28];
    ros1.extend(f32::from_bits(0x7fa0_1234).to_bits().to_le_bytes());
    ros1.extend([1, 0, 0, 0]);
    ros1.extend(0xfff0_dead_beef_0001_u64.to_le_bytes());
    let parts = schema.split_ros1(&ros1).expect("valid").to_parts();
    assert_eq!(parts.parts[0], [0, 2, 255]);
    assert_eq!(
        schema
            .join_ros1(&parts.control, &parts.slices())
            .expect("own parts"),
        ros1
    );
    let cdr = schema
        .join_cdr(&parts.control, &parts.slices())
        .expect("own parts");
    assert_eq!(schema.split_cdr(&cdr).expect("own CDR").to_parts(), parts);
    // As a value, everything is preserved except the two odd bools.
    let value = schema.decode_ros1(&ros1).expect("valid");
    ros1[5] = 1;
    ros1[6] = 1;
    assert_eq!(schema.encode_ros1(&value).expect("own value"), ros1);
}
