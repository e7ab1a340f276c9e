//! Sends packets that are too long for the path in parts, each in its own UDP datagram.
//!
//! QUIC requires a path of 1,200 bytes, and its handshake needs them (RFC 9000, section 14). IP fragmentation
//! helps neither with IPv6 nor with an unreported hole, and firewalls drop fragments. A part is not a QUIC
//! packet, as it lacks the fixed bit (RFC 9000, section 17.2). The part itself is not authenticated, but the
//! joined packet is.

use crate::carrier::socket::MAX_PAYLOAD;
use bytes::BytesMut;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The first byte of a part.
const MARK: u8 = 0x15;
/// The bit that all QUIC packets have set.
const FIXED: u8 = 0x40;
/// Length of a part's head: the mark, the packet's number as two bytes (little-endian), and the part's index
/// and the number of parts in four bits each.
pub(super) const HEAD: usize = 4;
/// Most parts of a packet.
const MOST_PARTS: usize = 4;
/// Most incomplete packets that are kept, separately for addresses where peers are expected and for others.
const KEPT: usize = 16;

/// Returns whether it may be a part and cannot be a packet.
pub(super) fn is_part(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|b| b & FIXED == 0)
}

/// The parts of a `packet`, each of at most `most` bytes.
pub(super) fn split(packet: &[u8], most: usize, number: u16) -> impl Iterator<Item = Vec<u8>> + '_ {
    // Parts of equal length, as far as possible.
    let count = packet
        .len()
        .div_ceil(most.saturating_sub(HEAD).max(1))
        .clamp(1, MOST_PARTS);
    let chunks = packet.chunks(packet.len().div_ceil(count).max(1)).enumerate();
    chunks.map(move |(i, chunk)| {
        let [lower, upper] = number.to_le_bytes();
        let mut part = vec![MARK, lower, upper, (i << 4 | count) as u8];
        part.extend_from_slice(chunk);
        part
    })
}

struct Kept {
    from: SocketAddr,
    number: u16,
    parts: [Option<Vec<u8>>; MOST_PARTS],
    count: usize,
}

/// Joins parts, which may arrive in any order.
#[derive(Default)]
pub(super) struct Parts {
    /// Incomplete packets from expected addresses, and from others, the newest last.
    kept: [VecDeque<Kept>; 2],
}

/// The bytes are not a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Parts {
    /// Takes a part. Returns the packet once it is complete. Parts from addresses where a peer is `expected`
    /// are kept apart from others.
    ///
    /// # Errors
    /// [`Malformed`]
    pub(super) fn take(
        &mut self,
        from: SocketAddr,
        expected: bool,
        datagram: &[u8],
    ) -> Result<Option<BytesMut>, Malformed> {
        let Some(([MARK, lower, upper, place], bytes)) = datagram.split_first_chunk::<HEAD>() else {
            return Err(Malformed);
        };
        let number = u16::from_le_bytes([*lower, *upper]);
        let (index, count) = (usize::from(place >> 4), usize::from(place & 15));
        if index >= count || !(2..=MOST_PARTS).contains(&count) || bytes.is_empty() {
            return Err(Malformed);
        }
        let all = &mut self.kept[usize::from(!expected)];
        let is_it = |k: &Kept| (k.from, k.number, k.count) == (from, number, count);
        let at = all.iter().position(is_it).unwrap_or_else(|| {
            if all.len() >= KEPT {
                all.remove(of_the_busiest(all));
            }
            all.push_back(Kept {
                from,
                number,
                parts: Default::default(),
                count,
            });
            all.len() - 1
        });
        let kept = &mut all[at];
        kept.parts[index] = Some(bytes.to_vec());
        let there = || kept.parts.iter().flatten();
        let len: usize = there().map(Vec::len).sum();
        if len > MAX_PAYLOAD {
            all.remove(at);
            return Err(Malformed);
        }
        if there().count() < count {
            return Ok(None);
        }
        let mut whole = BytesMut::with_capacity(len);
        there().for_each(|part| whole.extend_from_slice(part));
        all.remove(at);
        Ok(Some(whole))
    }
}

/// The oldest packet of the address with the most: a sender of many displaces its own.
fn of_the_busiest(all: &VecDeque<Kept>) -> usize {
    let share = |i: &usize| all.iter().filter(|k| k.from.ip() == all[*i].from.ip()).count();
    (0..all.len()).rev().max_by_key(share).unwrap_or(0)
}

/// Fuzz target for parts of packets, each after its length and its source port. For any input, the joined
/// packet consists of the parts' bytes and is not too long, and the memory is bounded.
pub(crate) fn fuzz(data: &[u8]) {
    let mut parts = Parts::default();
    let mut rest = data;
    while let Some(([len, port], behind)) = rest.split_first_chunk() {
        let (part, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        let from = SocketAddr::from(([127, 0, 0, 1], u16::from(port & 7)));
        if let Ok(Some(whole)) = parts.take(from, *port < 128, part) {
            assert!((1..=MAX_PAYLOAD).contains(&whole.len()));
            assert!(whole.windows(part.len() - HEAD).any(|w| *w == part[HEAD..]));
        }
        assert!(parts.kept.iter().all(|k| k.len() <= KEPT));
    }
    let sent = [FIXED; 900];
    let joined: Vec<_> = split(&sent, 508, 7)
        .map(|p| parts.take(SocketAddr::from(([127, 0, 0, 2], 1)), true, &p))
        .collect();
    assert_eq!(joined, [Ok(None), Ok(Some(BytesMut::from(&sent[..])))]);
}

/// Returns whether an attempt to reach a peer uses parts, by its number: one in four, starting with the
/// second, and alternately for the last seen and the configured address.
pub(super) fn is_for_attempt(number: u64) -> bool {
    matches!(number % 8, 1 | 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn packet(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 3) as u8 | FIXED).collect()
    }

    #[test]
    fn split_packets_are_joined_in_any_order() {
        for (len, most, count) in [
            (1200, 508, 3),
            (1472, 508, 3),
            (1472, 1200, 2),
            (1472, 1468, 2),
            (1500, 400, 4),
        ] {
            let sent = packet(len.min(MAX_PAYLOAD));
            let parts: Vec<_> = split(&sent, most, 0x1234).collect();
            assert_eq!(parts.len(), count);
            assert!(
                parts.iter().all(|p| p.len() <= most && is_part(p)),
                "{len} {most}"
            );
            for turn in 0..count {
                let mut joiner = Parts::default();
                for i in 0..count {
                    let part = &parts[(turn + i) % count];
                    let whole = joiner.take(from(1), true, part).expect("is one");
                    let other = joiner.take(from(2), true, part).expect("is one");
                    assert_eq!(other.is_some(), whole.is_some());
                    let done = (i + 1 == count).then(|| sent.clone());
                    assert_eq!(whole.map(|w| w.to_vec()), done);
                }
            }
        }
        assert_eq!(
            split(&packet(1000), 508, 0x1234).next().map(|p| p[..4].to_vec()),
            Some(vec![0x15, 0x34, 0x12, 2])
        );
    }

    #[test]
    fn invalid_parts_are_refused_and_kept_ones_are_bounded() {
        let mut parts = Parts::default();
        let part = |mark, place, len| [vec![mark, 0, 0, place], vec![7; len]].concat();
        for (bad, why) in [
            (vec![], "empty"),
            (part(MARK, 2, 0), "nothing in it"),
            (part(MARK, 1, 5), "one of one"),
            (part(MARK, 0x22, 5), "third of two"),
            (part(MARK, 5, 5), "of five"),
            (part(MARK + 1, 2, 5), "another mark"),
            (vec![MARK, 0, 0], "short"),
        ] {
            assert_eq!(parts.take(from(1), false, &bad), Err(Malformed), "{why}");
        }
        assert_eq!(parts.take(from(1), false, &part(MARK, 2, 1472)), Ok(None));
        assert_eq!(
            parts.take(from(1), false, &part(MARK, 0x12, 1)),
            Err(Malformed),
            "too long"
        );
        let first: Vec<_> = split(&packet(1200), 800, 1).collect();
        assert_eq!(parts.take(from(1), true, &first[0]), Ok(None));
        for port in 0..1000 {
            assert_eq!(parts.take(from(port), false, &part(MARK, 2, 100)), Ok(None));
        }
        assert_eq!(
            parts.kept.iter().map(VecDeque::len).collect::<Vec<_>>(),
            [1, KEPT]
        );
        let whole = parts.take(from(1), true, &first[1]).expect("is one");
        assert_eq!(
            whole.map(|w| w.len()),
            Some(1200),
            "unknown senders did not displace it"
        );
        assert_eq!(parts.take(from(1), true, &first[0]), Ok(None));
        for number in 0..1000_u16 {
            let [lower, upper] = number.to_le_bytes();
            let other = SocketAddr::from(([10, 0, 0, 2], 1));
            assert_eq!(parts.take(other, true, &[MARK, lower, upper, 2, 0]), Ok(None));
        }
        let whole = parts.take(from(1), true, &first[1]).expect("is one");
        assert!(whole.is_some(), "another peer did not either");
    }
}
