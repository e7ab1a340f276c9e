//! Hand-written encodings: layouts, byte orders, and every kind of malformed input with its error.

use schema::{CodecError, Flavour, Registry, Schema};

fn ros1(text: &str) -> Schema {
    schema(Flavour::Ros1, text)
}

fn ros2(text: &str) -> Schema {
    schema(Flavour::Ros2, text)
}

fn schema(flavour: Flavour, text: &str) -> Schema {
    let mut registry = Registry::new(flavour);
    registry
        .add_message("t/In", "uint8 a\nfloat64 b\nuint16 c")
        .expect("parses");
    registry.add_message("t/T", text).expect("parses");
    registry.schema("t/T").expect("compiles")
}

fn le(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// `struct { uint8_t a; double b; uint16_t c; }` is 24 bytes in C: a at 0, b at 8, c at 16.
#[test]
fn padded_elements_lie_as_in_c() {
    let schema = ros1("In[] x").with_threshold(0);
    let mut bytes = le(&[2]);
    for (a, b, c) in [(1u8, 2.5f64, 3u16), (4, -5.5, 6)] {
        bytes.push(a);
        bytes.extend(b.to_le_bytes());
        bytes.extend(c.to_le_bytes());
    }
    let split = schema.split_ros1(&bytes).expect("valid");
    assert_eq!((split.control_len(), split.part_len(0)), (4, 48));
    // The previous content of the buffer must not be visible in the padding.
    let mut part = [0xee; 48];
    split.write_part(0, &mut part).expect("fits");
    let mut expected = [0; 48];
    for (i, (a, b, c)) in [(1u8, 2.5f64, 3u16), (4, -5.5, 6)].into_iter().enumerate() {
        let element = &mut expected[24 * i..24 * (i + 1)];
        element[0] = a;
        element[8..16].copy_from_slice(&b.to_le_bytes());
        element[16..18].copy_from_slice(&c.to_le_bytes());
    }
    assert_eq!(part, expected);
    // Padding other than zero is ignored.
    part[1] = 9;
    part[23] = 9;
    let mut control = [0; 4];
    split.write_control(&mut control).expect("fits");
    assert_eq!(control, (2u32 | 1 << 31).to_le_bytes());
    assert_eq!(schema.join_ros1(&control, &[&part]).expect("valid"), bytes);
    // CDR aligns words, not elements: after the count a at 4, b at 8, c at 16, then a at 18, b at 24, c at 32.
    let cdr = schema.join_cdr(&control, &[&part]).expect("valid");
    assert_eq!(cdr.len(), 4 + 34);
    assert_eq!((cdr[4 + 4], cdr[4 + 16], cdr[4 + 18], cdr[4 + 32]), (1, 3, 4, 6));

    let parts = schema.parts();
    assert_eq!(
        parts[0].to_string(),
        "x[]: t/In of 24 bytes (padded, 11 in ROS 1 form)"
    );
    assert_eq!((parts[0].element_align, parts[0].bound), (8, None));
}

#[test]
fn buffers_must_fit() {
    let schema = ros1("uint8[] x").with_threshold(0);
    let bytes = [3, 0, 0, 0, 1, 2, 3];
    let split = schema.split_ros1(&bytes).expect("valid");
    let wrong = |needed, given| CodecError::Buffer { needed, given };
    assert_eq!(split.write_control(&mut [0; 3]), Err(wrong(4, 3)));
    assert_eq!(split.write_part(0, &mut [0; 4]), Err(wrong(3, 4)));
    assert_eq!(
        split.write_part(1, &mut [0; 3]),
        Err(CodecError::PartCount { named: 1, given: 2 })
    );
    let parts = split.to_parts();
    let slices = parts.slices();
    let join = schema.join(&parts.control, &slices).expect("valid");
    assert_eq!(join.write_ros1(&mut [0; 8]), Err(wrong(7, 8)));
    assert_eq!(join.cdr_len(), Ok(11));
    assert_eq!(join.write_cdr(&mut [0; 12]), Err(wrong(11, 12)));
    assert_eq!(join.write_cdr(&mut [0; 2]), Err(wrong(11, 2)));
}

/// The same message in both byte orders, written out by hand.
#[test]
fn cdr_of_both_byte_orders() {
    let schema = ros2("uint8 a\nstring s\nfloat64 d\nint16[] n\nwstring w").with_threshold(0);
    let little = [
        &[0, 1, 0, 0][..],
        &[7, 0, 0, 0],
        &[3, 0, 0, 0, b'h', b'i', 0, 0],
        &[0; 4],
        &1.5f64.to_le_bytes(),
        &[2, 0, 0, 0, 0xfe, 0xff, 2, 1],
        &[1, 0, 0, 0, 0xe9, 0, 0, 0],
    ]
    .concat();
    let big = [
        &[0, 0, 0, 0][..],
        &[7, 0, 0, 0],
        &[0, 0, 0, 3, b'h', b'i', 0, 0],
        &[0; 4],
        &1.5f64.to_be_bytes(),
        &[0, 0, 0, 2, 0xff, 0xfe, 1, 2],
        &[0, 0, 0, 1, 0, 0, 0, 0xe9],
    ]
    .concat();
    let from_little = schema.split_cdr(&little).expect("valid").to_parts();
    // The gap before the float64 is 4 bytes: the string ends at 11.
    assert_eq!(from_little, schema.split_cdr(&big).expect("valid").to_parts());
    assert_eq!(from_little.parts, [vec![0xfe, 0xff, 2, 1]]);
    assert_eq!(
        schema
            .join_cdr(&from_little.control, &from_little.slices())
            .expect("own parts"),
        little
    );
    let value = schema.decode_cdr(&big).expect("valid");
    assert_eq!(
        value.to_string(),
        "a: 7\ns: \"hi\"\nd: 1.5\nn: [-2, 258]\nw: \"é\""
    );
}

#[test]
fn cdr_oddities() {
    let schema = ros2("string s");
    let empty = schema
        .split_cdr(&[0, 1, 0, 0, 0, 0, 0, 0])
        .expect("length 0 is empty")
        .to_parts();
    assert_eq!(empty.control, [0; 4]);
    let padded = [0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0];
    assert_eq!(
        schema.split_cdr(&padded).expect("padded").to_parts().control,
        [1, 0, 0, 0, b'a']
    );

    let error = |bytes: &[u8]| schema.split_cdr(bytes).expect_err("malformed");
    let field = || "s".to_owned();
    assert!(matches!(
        error(&[0, 1, 0]),
        CodecError::Truncated {
            needed: 4,
            left: 3,
            ..
        }
    ));
    assert_eq!(
        error(&[0, 3, 0, 0, 1, 0, 0, 0, 0]),
        CodecError::Encapsulation { id: 3 }
    );
    assert_eq!(
        error(&[0, 1, 0, 0, 2, 0, 0, 0, b'a', b'b']),
        CodecError::Unterminated {
            field: field(),
            offset: 4
        }
    );
    assert_eq!(
        error(&[0, 1, 0, 0, 9, 0, 0, 0, b'a', 0]),
        CodecError::Truncated {
            field: field(),
            offset: 8,
            needed: 9,
            left: 2
        }
    );
    assert_eq!(
        error(&[&[0, 1, 0, 0, 2, 0, 0, 0, b'a', 0][..], &[0; 8]].concat()),
        CodecError::Trailing { offset: 10, extra: 8 }
    );
    let wide = ros2("wstring w");
    assert_eq!(
        wide.split_cdr(&[0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0])
            .expect_err("no UTF-16"),
        CodecError::WideUnit {
            field: "w".into(),
            offset: 4,
            unit: 0x10000
        }
    );
}

/// `rmw_serialize` of rmw_fastrtps returns 8 bytes too many for a `JointState` with only positions.
#[test]
fn padding_is_read_as_rmw_fastrtps_overestimates_it() {
    let joints = ros2("float64[] a\nfloat64[] b\nfloat64[] c");
    let padded = |mut bytes: Vec<u8>, n: usize| {
        bytes.resize(bytes.len() + n, 0);
        bytes
    };
    let control = [&le(&[1])[..], &2.5f64.to_le_bytes(), &le(&[0, 0])].concat();
    let cdr = joints.join_cdr(&control, &[]).expect("a message");
    for n in [0, 7, 8, 23] {
        joints.split_cdr(&padded(cdr.clone(), n)).expect("padding");
    }
    joints.split_cdr(&padded(cdr, 24)).expect_err("too much");
    let wide = ros2("wstring w\nuint8[] x\nfloat64[2] y");
    let cdr = wide.join_cdr(&[0; 24], &[]).expect("a message");
    wide.split_cdr(&padded(cdr.clone(), 15)).expect("padding");
    wide.split_cdr(&padded(cdr, 16)).expect_err("too much");
}

#[test]
fn errors_name_the_field_and_the_byte() {
    let tf = Registry::new(Flavour::Ros1)
        .schema("tf2_msgs/TFMessage")
        .expect("known");
    let value = tf
        .value_from_yaml("transforms: [{child_frame_id: a}, {child_frame_id: b}]")
        .expect("fits");
    let bytes = tf.encode_ros1(&value).expect("fits");
    let element = 12 + 4 + 5 + 56;
    let cut = |len: usize| tf.split_ros1(&bytes[..len]).expect_err("cut").to_string();
    assert_eq!(cut(2), "transforms[] at byte 0: needs 4 bytes, 2 are left");
    assert_eq!(
        cut(4 + 6),
        "transforms[0].header.stamp at byte 8: needs 8 bytes, 2 are left"
    );
    assert_eq!(
        cut(4 + element + 14),
        format!(
            "transforms[1].header.frame_id at byte {}: needs 4 bytes, 2 are left",
            4 + element + 12
        )
    );
    assert_eq!(
        cut(bytes.len() - 3),
        format!(
            "transforms[1].transform.rotation.w at byte {}: needs 8 bytes, 5 are left",
            bytes.len() - 8
        )
    );
    let long = [&bytes[..], &[0]].concat();
    let trailing = CodecError::Trailing {
        offset: bytes.len(),
        extra: 1,
    };
    assert_eq!(tf.split_ros1(&long).expect_err("long"), trailing);
}

#[test]
fn counts_are_held_to_their_limits() {
    let scan = ros1("float32[] x\nstring s");
    let message = |text: &str, count: u32| (ros2(text), le(&[count, 0, 0, 0, 0, 0]));
    // The flag bit has no meaning in ROS 1 bytes.
    assert_eq!(
        scan.split_ros1(&le(&[1 << 31, 0])).expect_err("flag"),
        CodecError::Count {
            field: "x[]".into(),
            offset: 0,
            count: 1 << 31,
            limit: 0x7fff_ffff
        }
    );
    assert!(matches!(
        scan.split_ros1(&le(&[0x7fff_ffff, 0])),
        Err(CodecError::Truncated { .. })
    ));
    for text in ["string<=3 x", "wstring<=3 x", "uint8[<=3] x", "string[<=3] x"] {
        let (schema, bytes) = message(text, 4);
        let error = schema.split_ros1(&bytes).expect_err("too many");
        assert!(
            matches!(
                error,
                CodecError::Count {
                    count: 4,
                    limit: 3,
                    ..
                }
            ),
            "{text}: {error}"
        );
        let cdr = [&[0, 1, 0, 0][..], &le(&[5, 0, 0, 0, 0, 0])].concat();
        let error = schema.split_cdr(&cdr).expect_err("too many");
        assert!(
            matches!(error, CodecError::Count { limit: 3, .. }),
            "{text}: {error}"
        );
    }
}

#[test]
fn parts_must_match_the_control_part() {
    let schema = ros1("uint16[] x\nuint16[] y");
    let lifted = |n: u32| n | 1 << 31;
    let control = le(&[lifted(2), lifted(1)]);
    assert!(schema.join_ros1(&control, &[&[1, 2, 3, 4], &[5, 6]]).is_ok());
    let error = |control: &[u8], parts: &[&[u8]]| schema.join_ros1(control, parts).expect_err("mismatch");
    assert_eq!(
        error(&control, &[&[1, 2, 3, 4]]),
        CodecError::PartCount { named: 2, given: 1 }
    );
    assert_eq!(
        error(&control, &[&[1, 2, 3, 4], &[5, 6], &[]]),
        CodecError::PartCount { named: 2, given: 3 }
    );
    let error = error(&control, &[&[1, 2, 3], &[5, 6]]);
    assert_eq!(
        error,
        CodecError::PartLength {
            field: "x[]".into(),
            part: 0,
            named: 4,
            given: 3
        }
    );
    // A part that claims 4 GiB is refused by its length, not allocated.
    let error = schema.join_ros1(&le(&[u32::MAX, 0]), &[&[0]]).expect_err("short");
    assert!(
        matches!(
            error,
            CodecError::PartLength {
                named: 0xffff_fffe,
                ..
            }
        ),
        "{error}"
    );
    // More parts than the limit.
    assert!(matches!(
        schema.join_ros1(&control, &[&[][..]; 33]),
        Err(CodecError::PartCount { given: 33, .. })
    ));
}
