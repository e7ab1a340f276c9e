use super::*;
use crate::simulation::Random;
use crate::wire::encode::{self, Route};
use crate::wire::ids::{EntityId, Guid, SampleIdentity};
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::submessage::*;

const SOURCE: GuidPrefix = GuidPrefix(*b"\x01\xfeTHE-SOURCE");
const DESTINATION: GuidPrefix = GuidPrefix(*b"\x01\x0fTHE-TARGET");

fn route(sequence: i64) -> Route {
    Route {
        reader: EntityId::reader(2),
        writer: EntityId::writer(1),
        sequence,
    }
}

fn set(base: i64) -> NumberSet {
    NumberSet::of(base, [0, 3, 40, 255].map(|n| base + n))
}

fn inline() -> InlineQos {
    InlineQos {
        related: Some(SampleIdentity {
            writer: Guid::new(DESTINATION, EntityId::writer(9)),
            sequence: 77,
        }),
        ..InlineQos::default()
    }
}

/// A message with one submessage of each kind, and what reading it returns.
fn everything() -> (Vec<u8>, Vec<Submessage<'static>>) {
    let (reader, writer) = (EntityId::reader(2), EntityId::writer(1));
    let heartbeat = Heartbeat {
        reader,
        writer,
        first: 1,
        last: 1 << 40,
        count: 3,
        last_word: true,
        liveliness: false,
    };
    let acknack = AckNack {
        reader,
        writer,
        missing: set(5),
        count: 4,
        last_word: false,
    };
    let nack = NackFrag {
        reader,
        writer,
        sequence: 6,
        missing: set(70_000),
        count: 5,
    };
    let gap = Gap {
        reader,
        writer,
        first: 7,
        set: set(90),
    };
    let mut out = Vec::new();
    encode::header(&mut out, crate::VendorId::OURS, SOURCE);
    encode::info_dst(&mut out, DESTINATION);
    encode::info_ts(&mut out, Some(Timestamp(1_764_000_000_123_456_789)));
    encode::data(&mut out, route(1), &inline(), Payload::Data(b"\0\x01\0\0data"));
    encode::data(
        &mut out,
        route(2),
        &InlineQos::default(),
        Payload::Key(b"\0\x03\0\0key."),
    );
    encode::data(&mut out, route(3), &InlineQos::default(), Payload::None);
    let long: &[u8] = &[0x5a; 2500];
    encode::data_frag(&mut out, route(4), &inline(), 3, 1000, Payload::Data(long));
    encode::heartbeat(&mut out, &heartbeat);
    encode::acknack(&mut out, &acknack);
    encode::nack_frag(&mut out, &nack);
    encode::gap(&mut out, &gap);
    let data = |sequence, inline, payload| {
        Submessage::Data(Data {
            reader,
            writer,
            sequence,
            inline,
            payload,
        })
    };
    let read = vec![
        data(1, inline(), Payload::Data(b"\0\x01\0\0data")),
        data(2, InlineQos::default(), Payload::Key(b"\0\x03\0\0key.")),
        data(3, InlineQos::default(), Payload::None),
        Submessage::DataFrag(DataFrag {
            reader,
            writer,
            sequence: 4,
            inline: inline(),
            first: 3,
            count: 1,
            fragment_size: 1000,
            sample_size: 2500,
            key: false,
            bytes: &[0x5a; 500],
        }),
        Submessage::Heartbeat(heartbeat),
        Submessage::AckNack(acknack),
        Submessage::NackFrag(nack),
        Submessage::Gap(gap),
    ];
    (out, read)
}

#[test]
fn every_submessage_makes_the_round_trip() {
    let (bytes, expected) = everything();
    let items: Result<Vec<_>, _> = Message::new(&bytes).expect("a message").collect();
    let items = items.expect("submessages");
    assert!(
        items
            .iter()
            .all(|i| i.source == SOURCE && i.destination == DESTINATION)
    );
    assert_eq!(items[0].timestamp, Some(Timestamp(1_764_000_000_123_456_789)));
    let read: Vec<_> = items.into_iter().map(|i| i.submessage).collect();
    assert_eq!(read, expected);
}

#[test]
fn big_endian_submessages_are_read() {
    let mut bytes = b"RTPS\x02\x01\x01\x0f".to_vec();
    bytes.extend_from_slice(&SOURCE.0);
    // HEARTBEAT, big endian, final and liveliness.
    bytes.extend_from_slice(&[0x07, 0x06, 0, 28]);
    bytes.extend_from_slice(&[0, 0, 2, 4, 0, 0, 1, 3]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 42]);
    // INFO_SRC of another participant, surrounded by unknown kinds and padding, then HEARTBEAT_FRAG up to the end.
    bytes.extend_from_slice(&[0x80, 0, 0, 4, 1, 2, 3, 4, 0x01, 0, 0, 0]);
    bytes.extend_from_slice(&[0x0c, 0, 0, 20, 0, 0, 0, 0, 2, 1, 1, 15]);
    bytes.extend_from_slice(&DESTINATION.0);
    bytes.extend_from_slice(&[0x13, 0, 0, 0, 0, 0, 2, 4, 0, 0, 1, 3]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7]);
    let items: Vec<_> = Message::new(&bytes)
        .expect("a message")
        .map(|i| i.expect("good"))
        .collect();
    let [first, second] = &items[..] else {
        panic!("{items:?}");
    };
    assert!(matches!(first.submessage, Submessage::Heartbeat(h)
        if h.first == 5 && h.last == (1 << 32) + 9 && h.count == 42 && h.last_word && h.liveliness));
    assert_eq!((first.source, second.source), (SOURCE, DESTINATION));
    assert!(matches!(second.submessage, Submessage::HeartbeatFrag(h) if h.last == 6 && h.count == 7));
}

#[test]
fn invalid_messages_are_refused() {
    assert_eq!(Message::new(b"").err(), Some(WireError::Foreign));
    assert_eq!(Message::new(b"RTPX\x02\x03").err(), Some(WireError::Foreign));
    let other = [&b"RTPS\x03\x00\x01\x0f"[..], &[0; 12]].concat();
    assert_eq!(
        Message::new(&other).err(),
        Some(WireError::Version { major: 3, minor: 0 })
    );
}

/// Reads a whole datagram; reading it twice gives the same result.
fn read(bytes: &[u8]) -> usize {
    let Ok(message) = Message::new(bytes) else {
        return 0;
    };
    let mut n = 0;
    for item in message {
        match item {
            Ok(_) => n += 1,
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
    n
}

#[test]
fn a_message_cut_anywhere_gives_what_stands_before() {
    let (bytes, all) = everything();
    let mut last = 0;
    for n in 0..=bytes.len() {
        let now = read(&bytes[..n]);
        assert!(now >= last && now <= all.len(), "cut at {n}");
        last = now;
    }
    assert_eq!(last, all.len());
}

#[test]
fn a_hundred_thousand_mutants_are_read_or_refused() {
    let (bytes, all) = everything();
    let mut random = Random::new(1);
    let mut whole = 0;
    for _ in 0..100_000 {
        let mut mutant = bytes.clone();
        for _ in 0..=random.next() % 4 {
            let at = random.next() as usize % mutant.len();
            match random.next() % 4 {
                0 => mutant[at] = random.next() as u8,
                1 => mutant.iter_mut().skip(at).take(4).for_each(|b| *b = 0xff),
                2 => mutant.iter_mut().skip(at).take(8).for_each(|b| *b = 0),
                _ => drop(mutant.drain(at..(at + 4).min(mutant.len()))),
            }
        }
        whole += usize::from(read(&mutant) == all.len());
    }
    assert!(whole > 100, "{whole} were still whole");
}

#[test]
fn fragments_that_make_no_sense_are_refused() {
    let frag = |first: u32, count: u16, size: u16, sample: u32, len: usize| {
        let mut body = vec![0, 0, 28, 0];
        body.extend_from_slice(&[0, 0, 2, 4, 0, 0, 1, 3, 0, 0, 0, 0, 5, 0, 0, 0]);
        body.extend_from_slice(&first.to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
        body.extend_from_slice(&size.to_le_bytes());
        body.extend_from_slice(&sample.to_le_bytes());
        body.resize(body.len() + len, 7);
        Submessage::read(crate::wire::kind::DATA_FRAG, LITTLE, &body).is_ok()
    };
    assert!(frag(1, 1, 100, 250, 100) && frag(3, 1, 100, 250, 50) && frag(1, 3, 100, 250, 250));
    assert!(frag(1 << 31, 1, 1, u32::MAX, 1), "the last of the longest");
    for (first, count, size, sample, len) in [
        (0, 1, 100, 250, 100),
        (1, 0, 100, 250, 100),
        (1, 1, 0, 250, 100),
        (1, 1, 100, 0, 100),
        (4, 1, 100, 250, 100),
        (3, 2, 100, 250, 200),
        (1, 1, 100, 250, 99),
        (u32::MAX, u16::MAX, u16::MAX, u32::MAX, 65_000),
    ] {
        assert!(
            !frag(first, count, size, sample, len),
            "{first} {count} {size} {sample}"
        );
    }
}
