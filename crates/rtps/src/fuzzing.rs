//! Entry points of the fuzz targets. Not part of the interface.

use crate::wire::endpoint::EndpointData;
use crate::wire::message::Message;
use crate::wire::participant::ParticipantData;
use crate::wire::submessage::{Payload, Submessage};
use crate::wire::{encode, inline::InlineQos};
use crate::{
    Config, Durability, EndpointConfig, EntityId, GuidPrefix, History, Participant, Qos, VendorId,
    WriteOptions,
};
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Reads a datagram and the announcements in it. An announcement that can be read must survive a round trip.
pub fn message(data: &[u8]) {
    let Ok(message) = Message::new(data) else {
        return;
    };
    for item in message.flatten() {
        if let Submessage::Data(data) = item.submessage
            && let Payload::Data(bytes) | Payload::Key(bytes) = data.payload
        {
            announcement(bytes);
        }
    }
}

fn announcement(bytes: &[u8]) {
    if let Ok(data) = ParticipantData::read(bytes) {
        assert_eq!(ParticipantData::read(&data.write()), Ok(data));
    }
    for writer in [true, false] {
        if let Ok(mut data) = EndpointData::read(bytes, writer) {
            // A reader's announcement has neither of these.
            if !writer {
                (data.qos.strength, data.qos.lifespan) = (0, None);
            }
            // Durations longer than 68 years are infinite.
            let again = EndpointData::read(&data.write(), writer);
            assert_eq!(again.map(|d| d.topic), Ok(data.topic));
        }
    }
}

/// Memory that others may make the participant hold.
const MEMORY: usize = 4 << 20;

struct Pair {
    now: Duration,
    victim: Participant,
    peer: Participant,
    writer: EntityId,
}

const VICTIM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 1), 7411);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 1), 7413);

fn participant(name: &[u8; 12], own: SocketAddrV4, other: SocketAddrV4) -> Option<Participant> {
    let mut config = Config::new(GuidPrefix(*name), 0);
    (config.metatraffic, config.unicast) = (vec![own], vec![own]);
    config.announce_to = vec![other];
    config.limits.memory = MEMORY;
    config.limits.address_memory = MEMORY;
    config.limits.participant_memory = MEMORY / 2;
    config.limits.sample = 1 << 20;
    Participant::new(config).ok()
}

impl Pair {
    /// Two participants that know each other and have matched endpoints.
    fn new() -> Option<Self> {
        let mut victim = participant(b"\x01\xfeTHE-VICTIM", VICTIM, PEER)?;
        let mut peer = participant(b"\x01\xfeTHE-PEER-0", PEER, VICTIM)?;
        let qos = Qos {
            durability: Durability::TransientLocal,
            history: History::KeepLast(4),
            ..Qos::writer()
        };
        let topic = || EndpointConfig::new("t", "T", qos.clone());
        let now = Duration::from_secs(1);
        let writer = victim.add_writer(now, topic()).ok()?;
        victim.add_reader(now, topic()).ok()?;
        peer.add_writer(now, topic()).ok()?;
        peer.add_reader(now, topic()).ok()?;
        let mut out = Pair {
            now,
            victim,
            peer,
            writer,
        };
        (0..40).for_each(|_| out.pass(Duration::from_millis(20), true));
        Some(out)
    }

    /// Lets time and datagrams pass; only datagrams to the peer unless `both`.
    fn pass(&mut self, time: Duration, both: bool) {
        self.now += time;
        let mut out = Vec::new();
        for _ in 0..64 {
            let mut idle = true;
            while self.peer.poll_transmit(self.now, &mut out).is_some() {
                idle = false;
                if both {
                    let _ = self.victim.handle(self.now, &out, PEER);
                }
            }
            while self.victim.poll_transmit(self.now, &mut out).is_some() {
                idle = false;
                assert!(out.len() <= 65_507, "no datagram is as long");
                let _ = self.peer.handle(self.now, &out, VICTIM);
            }
            if idle {
                break;
            }
        }
        assert!(self.victim.held() <= MEMORY);
    }
}

/// A participant with a peer, in whose name arbitrary data is sent. Each operation is a byte, a two-byte length, and
/// that many bytes.
pub fn participant_operations(mut data: &[u8]) {
    let Some(mut pair) = Pair::new() else { return };
    while let [operation, length, high, rest @ ..] = data {
        let announced = usize::from(u16::from_le_bytes([*length, *high]));
        let (bytes, after) = rest.split_at(announced.min(rest.len()));
        data = after;
        match operation % 8 {
            // A datagram as it is.
            0 => drop(pair.victim.handle(pair.now, bytes, PEER)),
            // Submessages of the peer.
            1 | 2 => {
                let mut datagram = Vec::new();
                encode::header(&mut datagram, VendorId::OURS, GuidPrefix(*b"\x01\xfeTHE-PEER-0"));
                if operation % 8 == 1 {
                    encode::info_dst(&mut datagram, GuidPrefix(*b"\x01\xfeTHE-VICTIM"));
                }
                datagram.extend_from_slice(bytes);
                let _ = pair.victim.handle(pair.now, &datagram, PEER);
            }
            // An announcement of the peer, or of one of its endpoints.
            3 => {
                let mut datagram = Vec::new();
                encode::header(&mut datagram, VendorId::OURS, GuidPrefix(*b"\x01\xfeTHE-PEER-0"));
                let (writer, sequence) = match length % 3 {
                    0 => ([0, 1, 0, 0xc2], 1),
                    1 => ([0, 0, 3, 0xc2], i64::from(*length)),
                    _ => ([0, 0, 4, 0xc2], i64::from(*length)),
                };
                let route = encode::Route {
                    reader: EntityId::UNKNOWN,
                    writer: EntityId(writer),
                    sequence,
                };
                encode::data(&mut datagram, route, &InlineQos::default(), Payload::Data(bytes));
                let _ = pair.victim.handle(pair.now, &datagram, PEER);
            }
            4 => pair.pass(Duration::from_millis(u64::from(*length)), length % 2 == 0),
            5 => {
                let payload = vec![*length; usize::from(*length) * 300];
                let written = pair
                    .victim
                    .write(pair.now, pair.writer, payload, WriteOptions::default());
                assert!(written.is_ok(), "it keeps the newest");
            }
            6 => while pair.victim.poll_event().is_some() {},
            _ => pair.pass(Duration::from_secs(u64::from(*length)), false),
        }
        assert!(pair.victim.held() <= MEMORY);
    }
    while pair.victim.poll_event().is_some() {}
    pair.victim.leave(pair.now);
    while pair.victim.poll_event().is_some() {}
    assert_eq!(pair.victim.held(), 0, "all memory is released");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Random;
    use std::path::Path;

    /// Runs each seed as it is, cut at every position, and with random changes: `rounds` times, or `PACKETS` mutants of
    /// all seeds together.
    fn replay(target: &str, rounds: usize, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus is there").collect();
        assert!(files.len() > 2, "{target} has no corpus");
        let rounds = std::env::var("PACKETS").map_or(rounds, |n| {
            n.parse::<usize>().expect("PACKETS is a number") / files.len()
        });
        let mut random = Random::new(7);
        for entry in files {
            let seed = std::fs::read(entry.expect("a seed").path()).expect("a seed");
            check(&seed);
            for n in (0..seed.len()).step_by((seed.len() / 100).max(1)) {
                check(&seed[..n]);
            }
            for _ in 0..rounds {
                let mut mutant = seed.clone();
                for _ in 0..=random.next() % 3 {
                    let at = random.next() as usize % mutant.len();
                    match random.next() % 4 {
                        0 => mutant[at] = random.next() as u8,
                        1 => mutant.iter_mut().skip(at).take(4).for_each(|b| *b = 0xff),
                        2 => drop(mutant.splice(at..at, seed.iter().copied().skip(at / 2).take(9))),
                        _ => drop(mutant.splice(at..(at + 5).min(mutant.len()), [1])),
                    }
                }
                check(&mutant);
            }
        }
    }

    #[test]
    fn datagrams_and_a_hundred_thousand_mutants_are_read_or_refused() {
        replay("rtps_message", 12_000, message);
    }

    #[test]
    fn operations_and_their_mutants_stay_within_the_budget_and_give_all_back() {
        replay("rtps_participant", 100, participant_operations);
    }
}
