//! Every frame is encoded and decoded again, and everything else is refused.

use super::*;

#[test]
fn every_frame_survives_the_way() {
    for frame in samples() {
        let bytes = frame.encode();
        assert_eq!(Frame::decode(&bytes), Ok(frame.clone()));
        for cut in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..cut]).is_err(), "{frame:?} cut to {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Frame::decode(&longer).is_err());
    }
}

#[test]
fn the_longest_info_fits_and_goes_through_a_socket() {
    let long = "é".repeat(MAX_DEFINITION / 2);
    let name = "x".repeat(MAX_NAME);
    let info = Info {
        domain: u32::MAX,
        id: u64::MAX,
        connected: 1000,
        messages: 100,
        memory: 1 << 20,
        topic: TopicType {
            topic: name.clone(),
            type_name: name,
            type_hash: [7; 16],
            flavour: Default::default(),
            definition: long.as_str().into(),
        },
        detail: EndpointDetail::Publisher(detail::sample(1000)),
        refusals: vec![long.clone(); 20],
    };
    let bytes = Frame::Info(info).encode();
    assert!(bytes.len() <= MAX_INFO && bytes.len() > MAX_DEFINITION + 14_000);
    let (a, b) = crate::sys::socket::Socket::pair().unwrap();
    a.send(&bytes, &[]).unwrap();
    let mut buffer = vec![0; MAX_INFO];
    assert!(matches!(
        b.receive(&mut buffer),
        Ok(crate::sys::socket::Received::Message(n, _)) if n == bytes.len()
    ));
    let Ok(Frame::Info(info)) = Frame::decode(&bytes) else {
        panic!("not an info")
    };
    let EndpointDetail::Publisher(publisher) = info.detail else {
        panic!("not a publisher's")
    };
    assert_eq!(publisher.stats.subscribers.len(), detail::MAX_PEERS);
    assert_eq!(
        (info.refusals.len(), info.refusals[0].len()),
        (MAX_REFUSALS, MAX_REFUSAL)
    );
}

#[test]
fn the_fuzz_seeds_are_frames() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/bus_handshake/");
    for (name, sample) in [
        ("hello", 0),
        ("refuse", 1),
        ("attach", 2),
        ("segment", 4),
        ("definition", 9),
        ("info", 10),
        ("info-subscriber", 11),
    ] {
        let path = format!("{dir}{name}");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, samples()[sample].encode()).expect("a writable file");
        }
        let bytes = std::fs::read(path).unwrap();
        assert!(
            Frame::decode(&bytes).is_ok(),
            "{name}: write it again with BLESS=1"
        );
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = Frame::Welcome.encode();
    bytes[4] = 9;
    assert_eq!(Frame::decode(&bytes), Err(FrameError::Version { theirs: 9 }));
}

#[test]
fn the_longest_texts_fit_and_longer_ones_are_refused() {
    let text = "é".repeat(3000);
    let bytes = Frame::Refuse {
        code: RefuseCode::Busy,
        text,
    }
    .encode();
    assert!(bytes.len() <= MAX_FRAME);
    assert!(matches!(Frame::decode(&bytes), Ok(Frame::Refuse { text, .. }) if text.len() == MAX_TEXT));
    let Frame::Hello(mut hello) = samples().remove(0) else {
        unreachable!()
    };
    hello.topic = "x".repeat(MAX_NAME);
    hello.type_name = hello.topic.clone();
    hello.offer.node = hello.topic.clone();
    assert!(Frame::Hello(hello.clone()).encode().len() <= MAX_FRAME);
    hello.topic.push('x');
    assert!(Frame::decode(&Frame::Hello(hello).encode()).is_err());
}

#[test]
fn mutated_frames_give_a_value_or_an_error() {
    let samples: Vec<_> = samples().iter().map(Frame::encode).collect();
    let mut seed = 11u64;
    let mut random = || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    let mut valid = 0;
    for _ in 0..crate::fuzzing::mutants(100_000) {
        let mut bytes = samples[random() % samples.len()].clone();
        for _ in 0..1 + random() % 3 {
            match random() % 3 {
                0 => bytes.truncate(random() % (bytes.len() + 1)),
                1 => bytes.push(random() as u8),
                _ if !bytes.is_empty() => {
                    let i = random() % bytes.len();
                    bytes[i] = random() as u8;
                }
                _ => {}
            }
        }
        if let Ok(frame) = Frame::decode(&bytes) {
            assert_eq!(frame.encode(), bytes, "one frame has one encoding");
            valid += 1;
        }
    }
    assert!(valid > 1000);
}

#[test]
fn names_that_a_terminal_would_obey_are_refused() {
    for evil in ["/a\u{1b}[2J", "/a\n", "/a\u{9b}", "/\u{202e}a", "/a\u{200b}"] {
        for frame in samples() {
            let frames = match frame {
                Frame::Hello(h) => [
                    Frame::Hello(Hello {
                        offer: Offer {
                            node: evil.into(),
                            ..Offer::default()
                        },
                        ..h.clone()
                    }),
                    Frame::Hello(Hello {
                        topic: evil.into(),
                        ..h.clone()
                    }),
                    Frame::Hello(Hello {
                        type_name: evil.into(),
                        ..h
                    }),
                ],
                Frame::Info(i) => {
                    let (mut topic, mut type_name) = (i.clone(), i);
                    topic.topic.topic = evil.into();
                    type_name.topic.type_name = evil.into();
                    let mut node = type_name.clone();
                    if let EndpointDetail::Publisher(p) = &mut node.detail {
                        p.offer.node = evil.into();
                    } else {
                        node = topic.clone();
                    }
                    [Frame::Info(topic), Frame::Info(type_name), Frame::Info(node)]
                }
                _ => continue,
            };
            for frame in frames {
                assert!(Frame::decode(&frame.encode()).is_err(), "{frame:?}");
            }
        }
    }
}
