//! C messages with hand-made tables, which have every kind of field and need no ROS.

mod message;

use super::MessageError;
use crate::abi::introspection::{MessageMember, type_id};
use crate::typesupport::Type;
use message::*;
use schema::Parts;
use std::ptr::{from_mut, from_ref, null};

#[test]
fn every_kind_of_field_is_read_and_written_as_the_codecs_do() {
    for threshold in [0, 256, usize::MAX] {
        let ty = of_threshold(threshold);
        let parts = parts_of(&ty, YAML);
        assert_eq!(parts.parts.len(), if threshold == 0 { 6 } else { 0 });
        let mut all = blank();
        read(&ty, &parts, &mut all).expect("a message");

        assert!(all.flag && all.small == -3 && all.word == 60000 && all.real == 2.5);
        assert_eq!(slice(&all.text), "wörter".as_bytes());
        // SAFETY: the NUL byte after a string's content.
        assert_eq!(unsafe { *all.text.data.add(all.text.size) }, 0);
        assert_eq!(all.text.capacity, all.text.size + 1);
        assert_eq!(slice(&all.wide), "wïde".encode_utf16().collect::<Vec<_>>());
        assert_eq!(slice(&all.short), b"12345");
        assert_eq!((all.inner.small, all.inner.real, all.inner.flag), (1, 1.5, true));
        assert_eq!((all.inners[1].small, all.inners[1].flag), (3, true));
        assert_eq!(
            (slice(&all.names[0]), slice(&all.names[1])),
            (&b"one"[..], &b""[..])
        );
        assert_eq!(slice(&all.bytes), [1, 2, 3]);
        assert_eq!(slice(&all.flags), [true, false, true]);
        assert_eq!(slice(&all.reals), [0.5, 0.25]);
        let elements = slice(&all.elements);
        assert_eq!(
            (elements[1].small, elements[1].real, elements[0].flag),
            (8, 8.5, true)
        );
        assert_eq!(slice(&all.odd)[1].word, 600);
        assert_eq!(slice(&slice(&all.texts)[2]), b"ccc");
        let children = slice(&all.children);
        assert_eq!(
            (slice(&children[0].flags), slice(&children[1].name)),
            (&[true][..], &b"second"[..])
        );
        assert_eq!(all.empties.size, 2);

        assert_eq!(write(&ty, &all).expect("writes"), parts);
        // Reads over another message, whose sequences have other lengths.
        let other = parts_of(&ty, "{texts: [x], reals: [1, 2, 3], bytes: [9], short: abc}");
        read(&ty, &other, &mut all).expect("a message");
        assert_eq!(write(&ty, &all).expect("writes"), other);
    }
}

#[test]
fn arrays_lie_in_data_parts_until_they_are_given_back() {
    let ty = of_threshold(0);
    // Aligned for all elements, each in memory of its own.
    let parts = parts_of(&ty, YAML);
    let aligned: Vec<Vec<f64>> = parts
        .parts
        .iter()
        .map(|p| vec![0.0; p.len().div_ceil(8)])
        .collect();
    let slices: Vec<&[u8]> = aligned
        .iter()
        .zip(&parts.parts)
        .map(|(room, part)| {
            // SAFETY: there is room for the part, which is not shared.
            unsafe {
                let room = room.as_ptr().cast_mut().cast::<u8>();
                room.copy_from_nonoverlapping(part.as_ptr(), part.len());
                std::slice::from_raw_parts(room, part.len())
            }
        })
        .collect();
    let mut all = blank();
    read(&ty, &parts_of(&ty, "{bytes: [9, 9]}"), &mut all).expect("a message");
    let own = (all.bytes.data, all.bytes.size, all.bytes.capacity);
    let message: *mut All = &mut *all;
    // SAFETY: a message of the type, and parts that live to the end of this function.
    let borrowed = unsafe { ty.borrow(&parts.control, &slices, message.cast()) }.expect("a message");
    // `bytes`, `reals` and the like stay. Each byte of `flags` must be made 0 or 1, so they are copied.
    assert_eq!(all.bytes.data.cast_const(), slices[0].as_ptr());
    assert_eq!(slice(&all.bytes), [1, 2, 3]);
    assert!(
        !slices
            .iter()
            .any(|s| std::ptr::eq(s.as_ptr(), all.flags.data.cast()))
    );
    assert!(borrowed.len() >= 2 && borrowed.len() < slices.len());
    assert_eq!(write(&ty, &all).expect("writes"), parts);
    drop(borrowed);
    assert_eq!((all.bytes.data, all.bytes.size, all.bytes.capacity), own);

    // A failed read leaves nothing borrowed.
    let message: *mut All = &mut *all;
    // SAFETY: likewise.
    let error = unsafe { ty.borrow(&parts.control, &slices[..1], message.cast()) };
    assert!(error.is_err());
    assert_eq!((all.bytes.data, all.bytes.size, all.bytes.capacity), own);
}

#[test]
fn empty_arrays_get_room_elsewhere() {
    let ty = of_threshold(8);
    let mut all = blank();
    let message: *mut All = &mut *all;
    // SAFETY: a message of the type.
    assert_eq!(unsafe { ty.shape(message.cast()) }, None);
    read(
        &ty,
        &parts_of(&ty, "{bytes: [1, 2, 3, 4, 5, 6, 7, 8, 9], reals: [0.5, 1.5]}"),
        &mut all,
    )
    .expect("a message");
    // SAFETY: likewise.
    let long = unsafe { ty.shape(message.cast()) }.expect("two").long;
    assert_eq!(long.iter().map(|l| l.bytes).collect::<Vec<_>>(), [9, 16]);

    let mut room = [0_u64; 4];
    let (mut next, start) = (blank(), room.as_mut_ptr().cast::<u8>());
    let message: *mut All = &mut *next;
    // SAFETY: likewise; the room is as long as both, and lives longer.
    let placed = unsafe {
        // An array that already holds something stays as it is.
        assert!(ty.place(from_mut(&mut *all).cast(), long[0], start).is_none());
        let second = start.add(16);
        [
            ty.place(message.cast(), long[0], start),
            ty.place(message.cast(), long[1], second),
        ]
        .map(|p| p.expect("was empty"))
    };
    assert_eq!(
        (next.bytes.size, next.bytes.capacity, next.reals.capacity),
        (0, 9, 2)
    );
    // Filled as a node in C does it.
    next.bytes.size = 8;
    next.reals.size = 1;
    // SAFETY: the room of the arrays, and the message.
    unsafe {
        next.bytes.data.write_bytes(7, 8);
        next.reals.data.write(2.5);
        assert!(placed.iter().all(|p| p.is_in_place()));
        let long = ty.shape(message.cast()).expect("two").long;
        assert_eq!(long.iter().map(|l| l.bytes).collect::<Vec<_>>(), [8, 8]);
        let sizes = ty.sizes(message.cast()).expect("a message");
        let mut control = vec![0; sizes.control];
        let parts = [0, 16].map(|at| std::slice::from_raw_parts_mut(start.add(at), 8));
        ty.write(message.cast(), &mut control, parts).expect("in place");
        placed[0].take_back();
        assert!(next.bytes.data.is_null() && !placed[0].is_in_place());
        // An array that has other room by now keeps it.
        next.reals.data = std::ptr::null_mut();
        next.reals.size = 0;
        next.reals.capacity = 3;
        placed[1].take_back();
        assert_eq!(next.reals.capacity, 3);
    }
    assert_eq!(room[0].to_ne_bytes(), [7; 8]);
    assert_eq!(f64::from_bits(room[2]), 2.5);
}

#[test]
fn messages_go_through_cdr() {
    let ty = of_threshold(256);
    let parts = parts_of(&ty, YAML);
    let mut all = blank();
    read(&ty, &parts, &mut all).expect("a message");
    // SAFETY: messages of the type.
    unsafe {
        let cdr = ty.serialize(from_ref(&*all).cast()).expect("serializes");
        assert_eq!(cdr, ty.schema().join_cdr(&parts.control, &[]).expect("own parts"));
        let mut again = blank();
        ty.deserialize(&cdr, from_mut(&mut *again).cast())
            .expect("own CDR");
        assert_eq!(write(&ty, &again).expect("writes"), parts);
        let error = ty
            .deserialize(&cdr[..7], from_mut(&mut *again).cast())
            .expect_err("cut");
        assert!(error.to_string().starts_with("word at byte 6"), "{error}");
    }
}

#[test]
fn at_most_32_arrays_are_lifted() {
    let ty = of_threshold(0);
    let children: Vec<_> = (0..40)
        .map(|i| format!("{{name: c{i}, flags: [true]}}"))
        .collect();
    let parts = parts_of(&ty, &format!("{{children: [{}]}}", children.join(", ")));
    let mut all = blank();
    read(&ty, &parts, &mut all).expect("a message");
    assert_eq!(parts.parts.len(), 32);
    assert_eq!(write(&ty, &all).expect("writes"), parts);
}

#[test]
fn fields_over_their_bound_are_refused_by_name() {
    let ty = of_threshold(256);
    let mut all = blank();
    read(&ty, &parts_of(&ty, YAML), &mut all).expect("a message");
    let refused = |all: &All| write(&ty, all).expect_err("over its bound").to_string();

    all.short.size = 6;
    all.short.capacity = 7;
    assert_eq!(refused(&all), "short has 6 elements, more than the limit of 5");
    all.short.size = 1;
    all.reals.size = 41;
    assert_eq!(refused(&all), "reals has 41 elements, more than the limit of 40");
    all.reals.size = 0;
    all.empties.size = 4097;
    assert_eq!(
        refused(&all),
        "empties has 4097 elements, more than the limit of 4096"
    );
    all.empties.size = 0;
    // SAFETY: the second of two children.
    let name = unsafe { &mut (*all.children.data.add(1)).name };
    name.capacity = 6;
    assert_eq!(
        refused(&all),
        "children[1].name has size 6 and capacity 6 but no memory for that and a NUL: was the message initialized?"
    );
    all.children.size = 0;
    let data = std::mem::replace(&mut all.bytes.data, std::ptr::null_mut());
    assert!(refused(&all).starts_with("bytes has size 3 and capacity 3 but no memory"));
    all.bytes.data = data;
    all.bytes.size = 1 << 31;
    assert!(refused(&all).starts_with("bytes has 2147483648 elements, more than"));
    all.bytes.size = 3;
    write(&ty, &all).expect("as it was");
}

#[test]
fn buffers_of_other_sizes_are_not_overrun() {
    let ty = of_threshold(0);
    let mut all = blank();
    let parts = parts_of(&ty, YAML);
    read(&ty, &parts, &mut all).expect("a message");
    let message = from_ref(&*all).cast();
    let lens: Vec<_> = parts.parts.iter().map(Vec::len).collect();
    let attempt = |control: usize, lens: &[usize]| {
        let mut control = vec![0; control];
        let mut parts: Vec<_> = lens.iter().map(|n| vec![0; *n]).collect();
        // SAFETY: a message of the type.
        unsafe { ty.write(message, &mut control, parts.iter_mut().map(Vec::as_mut_slice)) }
    };
    let n = parts.control.len();
    attempt(n, &lens).expect("of its sizes");
    for len in (0..n).chain([n + 1]) {
        assert!(
            matches!(attempt(len, &lens), Err(MessageError::Changed { .. })),
            "{len}"
        );
    }
    assert!(attempt(n, &lens[1..]).is_err());
    assert!(attempt(n, &[&lens[..], &[1]].concat()).is_err());
    for i in 0..lens.len() {
        let mut other = lens.clone();
        other[i] -= 1;
        assert!(attempt(n, &other).is_err());
    }
}

#[test]
fn null_messages_are_refused() {
    let ty = of_threshold(256);
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(ty.sizes(null()), Err(MessageError::Null));
        assert_eq!(ty.write(null(), &mut [], []), Err(MessageError::Null));
        assert_eq!(ty.read(&[], &[], std::ptr::null_mut()), Err(MessageError::Null));
        assert_eq!(ty.serialize(null()), Err(MessageError::Null));
    }
}

#[test]
fn a_bool_that_is_neither_0_nor_1_is_read_as_true() {
    for threshold in [0, 256] {
        let ty = of_threshold(threshold);
        let of = |b| {
            format!(
                "{{flag: {b}, flags: [{b}, {b}], elements: [{{flag: {b}}}], inners: [{{flag: {b}}}, {{}}]}}"
            )
        };
        let (good, mut parts) = (parts_of(&ty, &of("true")), parts_of(&ty, &of("false")));
        let pairs = [(&good.control, &mut parts.control)].into_iter();
        let mut bools = 0;
        for (good, other) in pairs.chain(good.parts.iter().zip(&mut parts.parts)) {
            for (_, byte) in good.iter().zip(other).filter(|(good, byte)| good != byte) {
                *byte = 0xc0;
                bools += 1;
            }
        }
        assert_eq!(bools, 5);
        let mut all = blank();
        read(&ty, &parts, &mut all).expect("a message");
        assert_eq!(write(&ty, &all).expect("writes"), good);
    }
}

#[test]
fn tables_that_contradict_the_definition_are_refused() {
    try_type(members()).expect("fits");
    let refused = |change: &dyn Fn(&mut Vec<MessageMember>)| {
        let mut members = members();
        change(&mut members);
        try_type(members).expect_err("does not fit").to_string()
    };
    let error = refused(&|m| m[2].type_id = type_id::UINT32);
    assert!(
        error.starts_with("t/msg/All.word: the introspection tables say type 12"),
        "{error}"
    );
    for (i, change) in [
        (0, (|m| m.name = c"other".as_ptr()) as fn(&mut MessageMember)),
        (0, |m| m.name = null()),
        (3, |m| m.offset = 12),
        (4, |m| m.offset = u32::MAX - 7),
        (6, |m| m.string_upper_bound = 6),
        (7, |m| m.members = null()),
        (8, |m| m.array_size = 3),
        (11, |m| m.is_array = false),
        (12, |m| m.resize = None),
        (13, |m| m.is_upper_bound = false),
        (13, |m| m.array_size = 41),
        (18, |m| m.offset = size_of::<All>() as u32 - 16),
    ] {
        let error = refused(&|m| change(&mut m[i]));
        assert!(error.starts_with("t/msg/All."), "{error}");
    }
    assert!(refused(&|m| m.truncate(18)).contains("18 fields"));
    // SAFETY: null is allowed.
    assert!(unsafe { Type::of_tables(schema(), null()) }.is_err());
}

/// A small seeded generator (splitmix64), so that a failure can be repeated.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

pub(super) fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(bytes.len());
    match rng.below(6) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
        2 => bytes.truncate(at),
        3 => bytes.insert(at, rng.below(256) as u8),
        4 if bytes.len() > at + 4 => {
            let word = [0, 1, 4096, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX][rng.below(7)];
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        _ => {
            let piece: Vec<u8> = bytes
                .iter()
                .skip(rng.below(bytes.len()))
                .take(8)
                .copied()
                .collect();
            bytes.splice(at..at, piece);
        }
    }
}

#[test]
fn damaged_messages_are_refused_as_the_codecs_refuse_them_and_leave_a_valid_message() {
    let mut accepted = 0;
    for threshold in [0, 256] {
        let ty = of_threshold(threshold);
        let seed = parts_of(&ty, YAML);
        let mut rng = Rng(threshold as u64);
        // One message for all rounds, as a node takes into the same message again and again.
        let mut all = blank();
        for _ in 0..20_000 {
            let mut parts = seed.clone();
            for _ in 0..=rng.below(3) {
                match rng.below(4 + parts.parts.len()) {
                    0 if !parts.parts.is_empty() => drop(parts.parts.pop()),
                    1 if rng.below(8) == 0 => parts.parts.push(vec![0; rng.below(64)]),
                    n => match parts.parts.get_mut(n.wrapping_sub(4)) {
                        Some(part) => mutate(part, &mut rng),
                        None => mutate(&mut parts.control, &mut rng),
                    },
                }
            }
            let expected = ty.schema().join(&parts.control, &parts.slices()).map(drop);
            let found = read(&ty, &parts, &mut all);
            assert_eq!(
                found.is_ok(),
                expected.is_ok(),
                "{found:?} instead of {expected:?}"
            );
            // Whatever happened, it is still a message.
            let again = write(&ty, &all).expect("valid");
            if found.is_ok() {
                let show = |parts: &Parts| {
                    let value = ty.schema().decode(&parts.control, &parts.slices());
                    value.expect("accepted").to_string()
                };
                assert_eq!(show(&again), show(&parts));
                accepted += 1;
            }
        }
        read(&ty, &seed, &mut all).expect("a message");
        assert_eq!(write(&ty, &all).expect("writes"), seed);
    }
    assert!(accepted > 1000, "{accepted}");
}
