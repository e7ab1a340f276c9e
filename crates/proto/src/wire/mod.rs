//! The bytes of a datagram: one header, then frames. `docs/wire/link.md` describes them with diagrams.

mod acknowledgement;
mod announcing;
mod bytes;
mod error;
mod fragment;
mod frame;
mod hello;
mod reasons;
mod receipt;
mod report;
mod sharing;
mod ways;

pub(crate) use acknowledgement::Acknowledgement;
pub(crate) use announcing::{AckState, AnnouncePiece};
pub(crate) use bytes::{Reader, put_bytes, put_varint, varint_len};
pub use error::PacketError;
pub(crate) use fragment::{DataHead, MoreHead, SymbolHead};
pub(crate) use frame::Frame;
pub(crate) use hello::{Header, Hello};
pub(crate) use receipt::Receipt;
pub(crate) use report::ReportEntry;
pub(crate) use sharing::{Beat, Claim, MOST_ENTRIES, Sharing};
pub(crate) use ways::{ENTRY_ROOM, Entry, MAX_ENTRIES, ROUTE_ROOM, Ways};

/// Version of the wire format, in the low half of a datagram's first byte.
pub const VERSION: u8 = 7;
const MAGIC: u8 = 0xB0;

/// The frames of a datagram that was checked to parse completely, and the origin of the data read last.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a>(Reader<'a>, Option<u64>);

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.0.is_empty() {
            None
        } else {
            Frame::decode_after(&mut self.0, &mut self.1).ok()
        }
    }
}

/// Parses a whole datagram, so that an error anywhere leaves it without any effect.
pub(crate) fn decode(datagram: &[u8]) -> Result<(Header, Frames<'_>), PacketError> {
    let mut r = Reader::new(datagram);
    let first = r.u8()?;
    if first & 0xF0 != MAGIC {
        return Err(PacketError::Foreign { first });
    }
    if first & 0x0F != VERSION {
        return Err(PacketError::Version {
            theirs: first & 0x0F,
            ours: VERSION,
        });
    }
    let at = r.at();
    let header = Header {
        session: r.u32()?,
        number: r.varint()?,
    };
    if header.session == 0 {
        return Err(PacketError::Invalid { what: "session", at });
    }
    let frames = Frames(r, None);
    let mut origin = None;
    while !r.is_empty() {
        Frame::decode_after(&mut r, &mut origin)?;
    }
    Ok((header, frames))
}

/// The bytes of the frames of a datagram that parses.
pub(crate) fn frames_of(datagram: &[u8]) -> &[u8] {
    let mut r = Reader::new(datagram);
    let header = r.u8().and_then(|_| r.u32()).and_then(|_| r.varint());
    header.map_or(&[], |_| &datagram[r.at()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::route::Route;
    use crate::statistics::{Account, ReceiverReport};
    use stats::{DropReason, Drops, Time};

    const ROUTE: Route = Route {
        number: 20_000,
        hops: 7,
        to: 5,
    };

    fn samples() -> Vec<Frame<'static>> {
        let mut drops = Drops::default();
        drops.add(DropReason::Replaced, 70_000);
        drops.add(DropReason::Air, 3);
        let head = DataHead {
            topic: 3,
            seq: 20_000,
            stamp: Time(1_700_000_000_123_456_789),
            origin: 0,
            offset: 1408,
            geometry: Geometry::new(70, &[64_000, 12]).expect("a geometry"),
            poll: false,
        };
        vec![
            Frame::Hello(Hello {
                host: 0x1122_3344_5566_7788,
                seen: 9,
                asks: true,
                states_watched: false,
                max_message: 64 << 20,
                holds: 700,
                name: "robot-1",
            }),
            Frame::Ping,
            Frame::Announce(AnnouncePiece {
                topic: 300,
                edition: 2,
                total: 5000,
                offset: 1400,
                poll: true,
                bytes: b"abc",
            }),
            Frame::AnnounceAck {
                topic: 3,
                edition: 1,
                state: AckState::Missing(1403),
            },
            Frame::AnnounceAck {
                topic: 3,
                edition: 1,
                state: AckState::Accepted,
            },
            Frame::AnnounceAck {
                topic: 4,
                edition: 1,
                state: AckState::Refused,
            },
            Frame::AnnounceAck {
                topic: 5,
                edition: 0,
                state: AckState::Unknown,
            },
            Frame::Cancel { topic: 3, seq: 77 },
            Frame::Report(ReportEntry::Sender {
                topic: 3,
                account: Account {
                    offered: 71_000,
                    delivered: 900,
                    in_flight: 70_100 - drops.total(),
                    dropped: drops.clone(),
                },
            }),
            Frame::Report(ReportEntry::Receiver {
                topic: 0,
                report: ReceiverReport {
                    delivered: 5,
                    abandoned: 2,
                    drops,
                },
            }),
            Frame::Ask,
            Frame::Receipt(Receipt {
                newest: 70_000,
                gap: 2_177,
                held: 12,
            }),
            Frame::Sharing(Sharing::Claims(vec![
                Claim {
                    host: 0x0403_0201,
                    priority: 100,
                    demand_ms: 107,
                    age_ms: 0,
                },
                Claim {
                    host: 9,
                    priority: 10,
                    demand_ms: 255,
                    age_ms: 21,
                },
            ])),
            Frame::Sharing(Sharing::Clock {
                time: 86_400_000_000,
                ahead: None,
            }),
            Frame::Sharing(Sharing::Clock {
                time: 5_000,
                ahead: Some((-70_000, 1_300, 130)),
            }),
            Frame::Sharing(Sharing::Rhythms(vec![Beat {
                host: 0x0403_0201,
                priority: 100,
                at: 86_400_007_000,
                period: 20_000,
                air: 1_545,
                spread: 60,
                age_ms: 3,
            }])),
            Frame::Sharing(Sharing::Timing {
                topic: 3,
                seq: 20_000,
                offered: 86_399_990_000,
                deadline: 100_000,
            }),
            Frame::Ways(Ways {
                serial: 70,
                echo: 69,
                heard: 60,
                held: 50_123,
                seq: 1 << 33,
                entries: vec![
                    Entry {
                        host: 0x1122_3344_5566_7788,
                        seq: 1 << 34,
                        cost: 4_400,
                        hops: 2,
                    },
                    Entry {
                        host: 9,
                        seq: 0,
                        cost: 0,
                        hops: 0,
                    },
                ],
            }),
            Frame::Unwanted { topic: 3, to: 6 },
            Frame::Route(ROUTE, None),
            Frame::Data(head, b"fragment"),
            Frame::Data(DataHead { origin: 5, ..head }, b"f"),
            Frame::Data(DataHead { poll: true, ..head }, b"the last of a round"),
            Frame::Acknowledgement(Acknowledgement {
                topic: 3,
                newest: 70_000,
                held: 25,
                base: 20_000,
                top: 20_009,
                refused: vec![(19_990, DropReason::TooLarge)],
                runs: vec![(20_001, 20_004), (20_007, 20_008)],
                partial: vec![(20_005, vec![(0, 1_400), (60_000, 64_082)]), (20_006, vec![])],
            }),
            Frame::Settled {
                topic: 3,
                floor: 20_009,
            },
            Frame::Source {
                topic: 5,
                id: 900,
                bytes: b"\x40\x05\x07",
            },
            Frame::Parity {
                topic: 5,
                first: 880,
                count: 21,
                key: 77,
                bytes: b"parity",
            },
            Frame::Arrivals {
                newest: 70_000,
                came: 63_010,
                gaps: 2_300,
            },
            Frame::Data(
                DataHead {
                    geometry: Geometry::packed(5_000),
                    ..head
                },
                b"packed",
            ),
            Frame::Data(
                DataHead {
                    offset: 0,
                    geometry: Geometry::new(0, &[]).expect("empty"),
                    ..head
                },
                b"",
            ),
            Frame::Object(DataHead { offset: 0, ..head }, 1_388),
            Frame::Object(
                DataHead {
                    offset: 0,
                    origin: 5,
                    geometry: Geometry::new(12, &[10_000_000]).expect("large"),
                    ..head
                },
                1_388,
            ),
            Frame::Symbol(
                SymbolHead {
                    topic: 3,
                    seq: 20_000,
                    id: 7_300,
                    poll: false,
                },
                b"symbol",
            ),
            Frame::Symbol(
                SymbolHead {
                    topic: 3,
                    seq: 20_000,
                    id: 9_000,
                    poll: true,
                },
                b"symbol",
            ),
            Frame::Route(ROUTE, Some(2_000)),
            Frame::More(
                MoreHead {
                    topic: 3,
                    seq: 20_000,
                    offset: 1_404,
                },
                b"more",
            ),
            Frame::Hello(Hello {
                host: 7,
                seen: 0,
                asks: false,
                states_watched: true,
                max_message: 100,
                holds: 0,
                name: "base",
            }),
            Frame::Watched {
                topic: 3,
                serial: 300,
                watched: true,
            },
            Frame::Watched {
                topic: 3,
                serial: 301,
                watched: false,
            },
            Frame::WatchedSeen {
                topic: 3,
                serial: 301,
            },
        ]
    }

    #[test]
    fn every_frame_makes_the_round_trip_and_every_cut_is_noticed() {
        let mut all = Vec::new();
        Header {
            session: 7,
            number: 500,
        }
        .encode(&mut all);
        let mut seams = vec![all.len()];
        for f in samples() {
            f.encode(&mut all);
            seams.push(all.len());
        }
        let (header, frames) = decode(&all).expect("valid");
        assert_eq!(
            header,
            Header {
                session: 7,
                number: 500
            }
        );
        assert_eq!(frames.collect::<Vec<_>>(), samples());
        for n in 0..all.len() {
            assert_eq!(decode(&all[..n]).is_ok(), seams.contains(&n), "cut at {n}");
        }
    }

    #[test]
    fn the_origin_of_messages_that_share_a_datagram_is_said_once() {
        let head = |seq, origin, poll| DataHead {
            topic: 3,
            seq,
            stamp: Time(5),
            origin,
            offset: 0,
            geometry: Geometry::new(4, &[]).expect("a geometry"),
            poll,
        };
        // Another origin, none, and the same again are stated; those in between are not.
        let heads = [
            (head(1, 9, false), 8),
            (head(2, 9, true), 0),
            (head(3, 0, false), 0),
            (head(4, 9, false), 8),
            (head(5, 7, false), 8),
            (head(6, 7, false), 0),
        ];
        let (mut all, mut before, mut plain) = (Vec::new(), None, 0);
        Header {
            session: 7,
            number: 1,
        }
        .encode(&mut all);
        for (i, (head, said)) in heads.iter().enumerate() {
            let (mark, last) = (all.len(), i + 1 == heads.len());
            let unasked = DataHead { poll: false, ..*head };
            unasked.encode(&mut all, (!last).then_some(4), before.replace(head.origin));
            if head.poll {
                DataHead::ask(&mut all[mark..]);
            }
            let head_len = all.len() - mark - usize::from(!last) - said;
            plain = if i == 0 { head_len } else { plain };
            assert_eq!(head_len, plain, "{i}");
            all.extend_from_slice(b"abcd");
        }
        let (_, frames) = decode(&all).expect("valid");
        let read: Vec<_> = frames.collect();
        let sent: Vec<_> = heads.iter().map(|(h, _)| Frame::Data(*h, b"abcd")).collect();
        assert_eq!(read, sent);
        // No data before it has an origin.
        let mut alone = Vec::new();
        Header {
            session: 7,
            number: 1,
        }
        .encode(&mut alone);
        Frame::Ping.encode(&mut alone);
        head(1, 9, false).encode(&mut alone, None, Some(9));
        alone.extend_from_slice(b"abcd");
        assert!(decode(&alone).is_err());
    }

    #[test]
    fn a_fragment_costs_little() {
        let mut out = Vec::new();
        Header {
            session: 7,
            number: 5_000,
        }
        .encode(&mut out);
        let geometry = Geometry::new(70, &[76_800]).expect("a geometry");
        let head = DataHead {
            topic: 3,
            seq: 900,
            stamp: Time(u64::MAX),
            origin: 0,
            offset: 30_000,
            geometry,
            poll: false,
        };
        head.encode(&mut out, None, None);
        assert!(out.len() <= 32, "{} B of header", out.len());
        let first = out.len();
        let (topic, seq, offset) = (head.topic, head.seq, head.offset);
        MoreHead { topic, seq, offset }.encode(&mut out, None);
        assert!(out.len() - first <= 8, "{} B of head", out.len() - first);
    }

    #[test]
    fn wrong_versions_and_foreign_bytes_are_distinguished() {
        let err = |d: &[u8]| decode(d).map(|_| ()).expect_err("refused");
        assert_eq!(err(b"GET / HTTP/1.1"), PacketError::Foreign { first: b'G' });
        assert_eq!(
            err(&[0xB1, 1, 0, 0, 0, 0]),
            PacketError::Version {
                theirs: 1,
                ours: VERSION
            }
        );
        assert_eq!(
            err(&[MAGIC | VERSION, 0, 0, 0, 0, 0]),
            PacketError::Invalid {
                what: "session",
                at: 1
            }
        );
        assert_eq!(
            err(&[MAGIC | VERSION, 1, 0, 0, 0, 0, 0x7F]),
            PacketError::UnknownFrame { kind: 0x7F, at: 6 }
        );
        assert_eq!(err(&[]), PacketError::Truncated { at: 0, len: 0 });
        // More of a message: at 0 it would be the first fragment; none is empty or goes beyond 4 GiB.
        for tail in [
            &[0x50, 3, 9, 0, 1][..],
            &[0x50, 3, 9, 5],
            &[0x51, 3, 9, 5, 0],
            &[0x50, 3, 9, 0xC0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1],
        ] {
            let all = [&[MAGIC | VERSION, 1, 0, 0, 0, 0], tail].concat();
            let what = "fragment offset";
            assert_eq!(err(&all), PacketError::Invalid { what, at: 6 }, "{tail:?}");
        }
    }

    #[test]
    fn a_statement_about_watching_is_yes_or_no() {
        let err = |tail: &[u8]| {
            let all = [&[MAGIC | VERSION, 1, 0, 0, 0, 0], tail].concat();
            decode(&all).map(|_| ()).expect_err("refused")
        };
        let what = "watched";
        assert_eq!(err(&[0x09, 3, 9, 2]), PacketError::Invalid { what, at: 6 });
        assert!(matches!(err(&[0x09, 3, 9]), PacketError::Truncated { .. }));
        // Numbers beyond 32 bits.
        let long = [0xC0, 0, 0, 1, 0, 0, 0, 0];
        err(&[&[0x09, 3], &long[..], &[1]].concat());
        err(&[&[0x0A], &long[..], &[1]].concat());
        err(&[&[0x0A, 3], &long[..]].concat());
    }

    /// Each frame in a datagram of its own, as other implementations have to write and read it.
    #[test]
    fn golden_datagrams_stay_as_they_are() {
        let mut lines = String::new();
        for (i, f) in samples().into_iter().enumerate() {
            let mut out = Vec::new();
            Header {
                session: 0x0403_0201,
                number: 500 + i as u64,
            }
            .encode(&mut out);
            f.encode(&mut out);
            let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
            lines += &format!("{hex} {f:?}\n");
        }
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/proto/datagrams.txt"
        );
        let golden = std::fs::read_to_string(path).unwrap_or_default();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).expect("a writable file");
        }
        assert_eq!(
            lines, golden,
            "the wire format changed: raise VERSION, or undo the change"
        );
    }
}
