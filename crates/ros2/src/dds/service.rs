//! How the implementations of ROS 2's middleware tell which response is to which request. Fast DDS says it beside the payload: a request
//! names the reader of its response, and a response the request (DDS-RPC, `related_sample_identity`). Cyclone DDS says it in front of
//! the payload: eight bytes for the client and eight for its number.

use crate::wire::{Call, Caller};
use rtps::{EntityId, Guid, Sample, SampleIdentity, WriteOptions};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The encapsulation header of CDR.
const ENCAPSULATION: usize = 4;
/// Client and number.
const HEADER: usize = 16;
/// How long a response waits for a reader that is not found yet, how many wait, and their bytes.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_HELD: usize = 256;
const MAX_HELD_BYTES: usize = 64 << 20;

/// What a client that waits at this reader says in its request.
pub(super) fn awaited(reader: Guid) -> SampleIdentity {
    SampleIdentity {
        writer: reader,
        sequence: SampleIdentity::UNKNOWN,
    }
}

/// Puts client and number in front of a payload.
pub(super) fn with_header(client: u64, number: i64, payload: &[u8]) -> Vec<u8> {
    let (encapsulation, body) = payload.split_at(ENCAPSULATION.min(payload.len()));
    let mut out = Vec::with_capacity(payload.len() + HEADER);
    out.extend(encapsulation);
    // The payloads that the bus makes are little-endian.
    out.extend(client.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend(body);
    out
}

/// Takes client and number from the front of a payload.
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

/// A request: who asks, and what. `None` if it is none.
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
    // A response goes to who asked, whatever the request says.
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

/// A response, if it is to a call of this client.
pub(super) fn response(
    sample: &Sample,
    cyclone: bool,
    own: [Guid; 2],
    client: u64,
) -> Option<(Call, Vec<u8>)> {
    if cyclone {
        let (to, number, payload) = without_header(&sample.payload)?;
        return (to == client && number > 0).then_some((-number, payload));
    }
    let related = sample.related?;
    (own.contains(&related.writer) && related.sequence > 0)
        .then(|| (related.sequence, sample.payload.clone()))
}

/// A response that is to be sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) payload: Vec<u8>,
    pub(super) options: WriteOptions,
    to: Guid,
}

/// Makes the response to a request.
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
    /// Whether it arrives, if it is sent to these readers: the one that it is for, or where only the sender is known any of its participant.
    pub(super) fn is_reached(&self, matched: &[Guid]) -> bool {
        let fits = |reader: &Guid| {
            *reader == self.to || !self.to.entity.is_reader() && reader.prefix == self.to.prefix
        };
        matched.iter().any(fits)
    }
}

/// Responses whose readers are not found yet: a client may ask before this end knows where it waits.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: VecDeque<(EntityId, Answer, Instant)>,
    bytes: usize,
}

impl Held {
    /// Keeps one; false if there is no room.
    pub(super) fn hold(&mut self, writer: EntityId, answer: Answer, now: Instant) -> bool {
        while let Some((_, old, _)) = self
            .waiting
            .pop_front_if(|(_, _, since)| now.duration_since(*since) > PATIENCE)
        {
            self.bytes = self.bytes.saturating_sub(old.payload.len());
        }
        let bytes = self.bytes + answer.payload.len();
        if self.waiting.len() >= MAX_HELD || bytes > MAX_HELD_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back((writer, answer, now));
        true
    }

    /// Those of a writer whose readers are found.
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

    /// A writer is no more.
    pub(super) fn forget(&mut self, writer: EntityId) {
        self.waiting.retain(|(of, ..)| *of != writer);
        self.bytes = self.waiting.iter().map(|(_, a, _)| a.payload.len()).sum();
    }
}
