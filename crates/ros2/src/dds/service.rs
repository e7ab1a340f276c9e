//! How ROS 2's middleware implementations match responses to requests. Fast DDS does it outside the payload: a request
//! names the reader of its response, and a response names the request (DDS-RPC, `related_sample_identity`). Cyclone DDS
//! does it in front of the payload: eight bytes for the client and eight for its number.

use crate::wire::{Call, Caller};
use rtps::{EntityId, Guid, Sample, SampleIdentity, WriteOptions};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The encapsulation header of CDR.
const ENCAPSULATION: usize = 4;
/// Client and number.
const HEADER: usize = 16;
/// How long a response waits for a reader that is not discovered yet, how many may wait, and their bytes; one
/// participant may have a quarter of both.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_HELD: usize = 256;
const MAX_HELD_BYTES: usize = 64 << 20;
const HELD_PARTS: usize = 4;

/// The identity that a client with this response reader puts into its request.
pub(super) fn awaited(reader: Guid) -> SampleIdentity {
    SampleIdentity {
        writer: reader,
        sequence: SampleIdentity::UNKNOWN,
    }
}

/// Prepends client and number to a payload.
pub(super) fn with_header(client: u64, number: i64, payload: &[u8]) -> Vec<u8> {
    let (encapsulation, body) = payload.split_at(ENCAPSULATION.min(payload.len()));
    let mut out = Vec::with_capacity(payload.len() + HEADER);
    out.extend(encapsulation);
    // Payloads from the bus are little-endian.
    out.extend(client.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend(body);
    out
}

/// Removes client and number from the front of a payload.
fn without_header(payload: &[u8]) -> Option<(u64, i64, Vec<u8>)> {
    let (encapsulation, rest) = payload.split_first_chunk::<ENCAPSULATION>()?;
    let (client, rest) = rest.split_first_chunk::<8>()?;
    let (number, body) = rest.split_first_chunk::<8>()?;
    let is_little = encapsulation[1] & 1 == 1;
    let (client, number) = match is_little {
        true => (u64::from_le_bytes(*client), i64::from_le_bytes(*number)),
        false => (u64::from_be_bytes(*client), i64::from_be_bytes(*number)),
    };
    Some((client, number, [encapsulation, body].concat()))
}

/// Reads a request: the caller and the payload. Returns `None` if it is malformed.
pub(super) fn request(sample: &Sample, cyclone: bool) -> Option<(Caller, Vec<u8>)> {
    let sender = super::id(sample.writer);
    if cyclone {
        let (client, number, payload) = without_header(&sample.payload)?;
        let mut reader = [0; 16];
        reader[..8].copy_from_slice(&client.to_le_bytes());
        let caller = Caller {
            sender,
            reader,
            number,
        };
        return Some((caller, payload));
    }
    let reader = sample.related.map_or(sample.writer, |r| r.writer);
    // A response goes to the participant that sent the request, whatever the request says.
    let reader = if reader.prefix == sample.writer.prefix {
        reader
    } else {
        sample.writer
    };
    let caller = Caller {
        sender,
        reader: super::id(reader),
        number: sample.sequence,
    };
    Some((caller, sample.payload.clone()))
}

/// Reads a response, if it answers a call of this client.
pub(super) fn response(
    sample: &Sample,
    cyclone: bool,
    own: [Guid; 2],
    client: u64,
) -> Option<(Call, Vec<u8>)> {
    if cyclone {
        let (to, number, payload) = without_header(&sample.payload)?;
        return (to == client && number > 0).then(|| (-number, payload));
    }
    let related = sample.related?;
    (own.contains(&related.writer) && related.sequence > 0)
        .then(|| (related.sequence, sample.payload.clone()))
}

/// A response to send.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) payload: Vec<u8>,
    pub(super) options: WriteOptions,
    to: Guid,
}

/// Builds the response to a request.
pub(super) fn answer(to: Caller, cyclone: bool, payload: Vec<u8>) -> Answer {
    let sender = super::guid(to.sender);
    if cyclone {
        let mut client = [0; 8];
        client.copy_from_slice(&to.reader[..8]);
        return Answer {
            payload: with_header(u64::from_le_bytes(client), to.number, &payload),
            options: WriteOptions::default(),
            to: sender,
        };
    }
    let reader = super::guid(to.reader);
    Answer {
        payload,
        options: WriteOptions {
            related: Some(SampleIdentity {
                writer: reader,
                sequence: to.number,
            }),
            ..WriteOptions::default()
        },
        to: reader,
    }
}

impl Answer {
    /// Whether the response arrives if it is sent to these readers: the one that it is for, or, if only the sender is
    /// known, any reader of its participant.
    pub(super) fn is_reached(&self, matched: &[Guid]) -> bool {
        let fits = |reader: &Guid| {
            *reader == self.to || !self.to.entity.is_reader() && reader.prefix == self.to.prefix
        };
        matched.iter().any(fits)
    }
}

/// Responses whose readers are not discovered yet: a request may arrive before the bridge knows where its client waits.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: VecDeque<(EntityId, Answer, Instant)>,
    bytes: usize,
}

impl Held {
    /// Keeps a response. Returns `false` if there is no room.
    pub(super) fn hold(&mut self, writer: EntityId, answer: Answer, now: Instant) -> bool {
        let is_old = |since: &Instant| now.saturating_duration_since(*since) > PATIENCE;
        while self.waiting.front().is_some_and(|(_, _, since)| is_old(since)) {
            let old = self.waiting.pop_front().map_or(0, |(_, a, _)| a.payload.len());
            self.bytes = self.bytes.saturating_sub(old);
        }
        let bytes = self.bytes + answer.payload.len();
        let same = self.waiting.iter().map(|(_, a, _)| a);
        let same = same.filter(|a| a.to.prefix == answer.to.prefix);
        let (count, own) = same.fold((0, answer.payload.len()), |(n, b), a| {
            (n + 1, b + a.payload.len())
        });
        let room = |count: usize, bytes: usize, parts: usize| {
            count < MAX_HELD / parts && bytes <= MAX_HELD_BYTES / parts
        };
        if !room(self.waiting.len(), bytes, 1) || !room(count, own, HELD_PARTS) {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back((writer, answer, now));
        true
    }

    /// Removes and returns a writer's responses whose readers are discovered.
    pub(super) fn ready(
        &mut self,
        writer: EntityId,
        matched: impl FnOnce(EntityId) -> Vec<Guid>,
    ) -> Vec<(Vec<u8>, WriteOptions)> {
        if self.waiting.iter().all(|(w, ..)| *w != writer) {
            return Vec::new();
        }
        let matched = matched(writer);
        let mut out = Vec::new();
        let mut left = VecDeque::new();
        for (of, answer, since) in self.waiting.drain(..) {
            if of == writer && answer.is_reached(&matched) {
                self.bytes = self.bytes.saturating_sub(answer.payload.len());
                out.push((answer.payload, answer.options));
            } else {
                left.push_back((of, answer, since));
            }
        }
        self.waiting = left;
        out
    }

    /// Forgets a writer.
    pub(super) fn forget(&mut self, writer: EntityId) {
        self.waiting.retain(|(of, ..)| *of != writer);
        self.bytes = self.waiting.iter().map(|(_, a, _)| a.payload.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtps::GuidPrefix;

    fn to(participant: u8, number: i64, len: usize) -> Answer {
        let sender = Guid::new(GuidPrefix([participant; 12]), EntityId([0, 0, 1, 3]));
        let caller = Caller {
            sender: super::super::id(sender),
            reader: super::super::id(sender),
            number,
        };
        answer(caller, false, vec![0; len])
    }

    #[test]
    fn responses_that_wait_for_readers_are_bounded_and_leave_room_for_others() {
        let (now, writer) = (Instant::now(), EntityId([0, 0, 2, 3]));
        let mut held = Held::default();
        let kept = (0..300).filter(|n| held.hold(writer, to(1, *n, 8), now)).count();
        assert_eq!(kept, MAX_HELD / HELD_PARTS);
        let kept = (0..3_000).filter(|n| held.hold(writer, to(2 + (n % 100) as u8, *n, 8), now));
        assert_eq!(kept.count(), MAX_HELD - MAX_HELD / HELD_PARTS);
        // Responses to the participant whose reader is discovered.
        let reader = Guid::new(GuidPrefix([1; 12]), EntityId([0, 0, 9, 4]));
        let ready = held.ready(writer, |_| vec![reader]);
        assert_eq!(ready.len(), MAX_HELD / HELD_PARTS);
        assert!(held.hold(writer, to(200, 0, MAX_HELD_BYTES / HELD_PARTS), now));
        assert!(!held.hold(writer, to(200, 0, 1), now));
        held.forget(writer);
        assert_eq!((held.bytes, held.waiting.len()), (0, 0));
        for n in 0..4 {
            assert!(held.hold(writer, to(n, 0, MAX_HELD_BYTES / HELD_PARTS), now));
        }
        assert!(!held.hold(writer, to(9, 0, 1), now));
        assert!(
            held.hold(writer, to(9, 0, 1), now + 2 * PATIENCE),
            "the old are gone"
        );
    }

    #[test]
    fn a_response_goes_to_the_asking_client_whatever_the_request_says() {
        let asks = Guid::new(GuidPrefix([1; 12]), EntityId([0, 0, 1, 3]));
        let other = Guid::new(GuidPrefix([2; 12]), EntityId([0, 0, 1, 4]));
        let sample = |related, payload: &[u8]| Sample {
            reader: EntityId([0, 0, 3, 4]),
            payload: payload.to_vec(),
            writer: asks,
            sequence: 7,
            related,
            source_timestamp: None,
        };
        let (caller, _) = request(&sample(Some(awaited(other)), &[0, 1, 0, 0]), false).expect("a request");
        assert_eq!((caller.reader, caller.number), (super::super::id(asks), 7));
        let answer = answer(caller, false, Vec::new());
        assert!(!answer.is_reached(&[other]));
        // A truncated header is malformed.
        for len in 0..ENCAPSULATION + HEADER {
            assert!(request(&sample(None, &vec![1; len]), true).is_none(), "{len}");
        }
        let framed = with_header(3, -9, &[0, 1, 0, 0, 5]);
        let (caller, payload) = request(&sample(None, &framed), true).expect("a request");
        assert_eq!((caller.number, payload), (-9, vec![0, 1, 0, 0, 5]));
        for number in [-9, 0, i64::MIN] {
            let framed = with_header(3, number, &[0, 1, 0, 0, 5]);
            assert_eq!(
                response(&sample(None, &framed), true, [asks; 2], 3),
                None,
                "no call has this number"
            );
        }
    }
}
