//! A mismatch is an error that names the field and the type's expectation.

use crate::everything::everything_of_r2r;
use crate::{Ends, r2r, runtime, schema};
use ropewalk::{PublishError, Schema};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// The error of publishing.
fn written(schema: &Schema, structure: &impl Serialize) -> String {
    match Ends::new(schema).publisher.publish_structure(structure) {
        Err(PublishError::Structure { type_name, source }) => {
            assert_eq!(type_name, schema.name());
            source.to_string()
        }
        other => panic!("{other:?}"),
    }
}

/// The error of reading the message that `yaml` describes.
fn read<T: DeserializeOwned>(schema: &Schema, yaml: &str) -> String {
    let ends = Ends::new(schema);
    let value = schema.value_from_yaml(yaml).expect("a value");
    ends.publisher.publish_value(&value).expect("published");
    match ends.take().structure::<T>() {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is no such structure"),
    }
}

/// Both errors for a structure of a different shape than a header, whose `yaml` has a frame.
fn both<T: Serialize + DeserializeOwned + Default>(expected: &str) {
    let header = schema("std_msgs/Header");
    assert_eq!(written(&header, &T::default()), expected);
    assert_eq!(read::<T>(&header, "{}"), expected);
}

macro_rules! structures {
    ($($name:ident { $($field:ident: $ty:ty,)* })+) => {$(
        #[derive(Default, Serialize, Deserialize)]
        #[serde(default)]
        struct $name { $($field: $ty,)* }
    )+};
}

use r2r::builtin_interfaces::Time;

structures! {
    OtherName { stamp: Time, frame: String, }
    OtherOrder { frame_id: String, stamp: Time, }
    Fewer { stamp: Time, }
    More { stamp: Time, frame_id: String, seq: u32, }
    OtherKind { stamp: Time, frame_id: u8, }
    NoText { stamp: Time, frame_id: Vec<String>, }
    NoMessage { stamp: f64, frame_id: String, }
    Deeper { stamp: Wider, frame_id: String, }
    Wider { sec: i64, nanosec: u32, }
    Optional { stamp: Time, frame_id: Option<String>, }
    Empty {}
}

#[test]
fn other_fields() {
    both::<OtherName>("message: std_msgs/Header has `frame_id` where the structure has `frame`");
    both::<OtherOrder>("message: std_msgs/Header has `stamp` where the structure has `frame_id`");
    both::<Fewer>("message: std_msgs/Header has `frame_id` where the structure has no further field");
    both::<More>("message: std_msgs/Header has no further field where the structure has `seq`");
    both::<Empty>("message: std_msgs/Header has `stamp` where the structure has no further field");
    let empty = written(&schema("std_msgs/Empty"), &Fewer::default());
    assert_eq!(
        empty,
        "message: std_msgs/Empty has no further field where the structure has `stamp`"
    );
}

#[test]
fn other_kinds() {
    both::<OtherKind>("frame_id: the type says string, the structure has `u8`");
    both::<NoMessage>("stamp: the type says builtin_interfaces/Time, the structure has `f64`");
    both::<Deeper>("stamp.sec: the type says int32, the structure has `i64`");
    both::<Optional>("frame_id: the type says string, the structure has an option");
    assert_eq!(
        read::<NoText>(&schema("std_msgs/Header"), "{frame_id: cam}"),
        "frame_id[0]: the type says uint8, the structure has a text"
    );
    let texts = NoText {
        frame_id: vec!["cam".into()],
        ..Default::default()
    };
    assert_eq!(
        written(&schema("std_msgs/Header"), &texts),
        "frame_id[0]: the type says uint8, the structure has a text"
    );
    assert_eq!(
        written(&schema("std_msgs/String"), &"data"),
        "message: the type says std_msgs/String, the structure has a text"
    );
    assert_eq!(
        read::<String>(&schema("std_msgs/String"), "{}"),
        "message: the type says std_msgs/String, the structure has a text"
    );
    // ROS 1's time matches none of ROS 2's structures.
    let one = ropewalk::Registry::new(ropewalk::Flavour::Ros1);
    let header = one.schema("std_msgs/Header").expect("known");
    structures! { One { seq: u32, stamp: Time, frame_id: String, } }
    let expected = "stamp: the type says time, the structure has a structure Time";
    assert_eq!(written(&header, &One::default()), expected);
    assert_eq!(read::<One>(&header, "{}"), expected);
    assert_eq!(
        read::<IgnoredAny>(&header, "{}"),
        "stamp: the type says time, the structure has nothing for it"
    );
}

#[test]
fn elements_are_named_by_their_place() {
    structures! {
        Cloud { header: r2r::std_msgs::Header, height: u32, width: u32, fields: Vec<Field>, is_bigendian: bool, point_step: u32,
            row_step: u32, data: Vec<u8>, is_dense: bool, }
        Field { name: String, offset: u32, datatype: i8, count: u32, }
    }
    let cloud = Cloud {
        fields: vec![Field::default()],
        ..Default::default()
    };
    let schema = schema("sensor_msgs/PointCloud2");
    let expected = "fields[0].datatype: the type says uint8, the structure has `i8`";
    assert_eq!(written(&schema, &cloud), expected);
    assert_eq!(read::<Cloud>(&schema, "fields: [{}]"), expected);
}

#[test]
fn counts_out_of_bounds() {
    type Everything = r2r::test_msgs::Everything;
    type Change = fn(&mut Everything);
    let cases: [(Change, &str); 6] = [
        (|m| m.bools.push(true), "bools: 4 elements, but bool[3] takes 3"),
        (
            |m| m.bounded.resize(5, 0.0),
            "bounded: 5 elements, but float32[<=4] takes at most 4",
        ),
        (
            |m| m.name.push('f'),
            "name: 6 elements, but string<=5 takes at most 5",
        ),
        (
            |m| m.short = "ab𝄞𝄞".into(),
            "short: 6 elements, but wstring<=4 takes at most 4",
        ),
        (
            |m| m.some.resize(3, Default::default()),
            "some: 3 elements, but test_msgs/Nested[<=2] takes at most 2",
        ),
        (
            |m| m.covariance.truncate(35),
            "covariance: 35 elements, but float64[36] takes 36",
        ),
    ];
    for (change, expected) in cases {
        let mut everything = everything_of_r2r();
        change(&mut everything);
        assert_eq!(written(&schema("test_msgs/Everything"), &everything), expected);
    }
    #[derive(Debug, Deserialize)]
    struct Three {
        #[expect(dead_code, reason = "never read")]
        data: [u8; 3],
    }
    let mut registry = crate::registry();
    registry.add_message("t/Bytes", "uint8[] data").expect("parses");
    let bytes = registry.schema("t/Bytes").expect("compiles");
    assert_eq!(
        read::<Three>(&bytes, "data: [1, 2, 3, 4]"),
        "data: 4 elements, but the structure takes 3"
    );
}

/// Publishes a message with one field as ROS 1 bytes.
fn one(ty: &str, units: &[u8], count: u32) -> ropewalk::Message {
    let mut registry = crate::registry();
    registry.add_message("t/One", ty).expect("parses");
    let ends = Ends::new(&registry.schema("t/One").expect("compiles"));
    let bytes = [&count.to_le_bytes(), units].concat();
    ends.publisher.publish_ros1(&bytes).expect("published");
    ends.take()
}

#[test]
fn texts_that_are_none() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct One<T> {
        data: T,
    }
    let latin = one("string data", b"gr\xFCn", 4);
    assert_eq!(
        latin.structure::<One<String>>().map_err(|e| e.to_string()),
        Err("data: the text is not well-formed UTF-8".into())
    );
    let bytes = latin.structure::<One<runtime::String>>();
    assert_eq!(bytes.expect("whatever bytes").data.0, b"gr\xFCn");

    let half = one("wstring data", b"\x00\xD8a\0", 2);
    assert_eq!(
        half.structure::<One<String>>().map_err(|e| e.to_string()),
        Err("data: the text is not well-formed UTF-16".into())
    );
    let units = half.structure::<One<runtime::WString>>();
    assert_eq!(units.expect("whatever units").data.0, [0xD800, 0x61]);

    // A structure may have its own bound.
    let error = one("string data", b"abcdef", 6).structure::<One<runtime::BoundedString<5>>>();
    assert_eq!(
        error.map_err(|e| e.to_string()),
        Err("data: more than the bound".into())
    );
}

/// Takes as many elements of an array, or fields of a message, as it states, and leaves the others.
#[derive(Debug)]
struct Takes<const N: usize>;

impl<'de, const N: usize> Deserialize<'de> for Takes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Takes)
    }
}

impl<'de, const N: usize> Visitor<'de> for Takes<N> {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self, A::Error> {
        for _ in 0..N {
            elements.next_element::<IgnoredAny>()?;
        }
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        // More than there are, and without reading their names.
        for _ in 0..N {
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(self)
    }
}

#[test]
fn structures_that_read_themselves_take_all_or_nothing() {
    structures! { Data { data: Vec<u8>, } }
    #[derive(Debug, Deserialize)]
    struct Part<const N: usize> {
        #[expect(dead_code, reason = "never read")]
        data: Takes<N>,
    }
    let message = one("uint8[] data", &[1, 2, 3], 3);
    assert_eq!(message.structure::<Data>().expect("bytes").data, [1, 2, 3]);
    message.structure::<Part<3>>().expect("all");
    message.structure::<Part<9>>().expect("all");
    assert_eq!(
        message.structure::<Part<2>>().map_err(|e| e.to_string()).err(),
        Some("data: 3 elements, but the structure takes 2".into())
    );
    message.structure::<Takes<1>>().expect("all fields");
    assert_eq!(
        message.structure::<Takes<0>>().map_err(|e| e.to_string()).err(),
        Some("message: t/One has `data` where the structure has no further field".into())
    );
    assert_eq!(
        message.structure::<Takes<2>>().map_err(|e| e.to_string()).err(),
        Some("message: there is no further field".into())
    );
}
