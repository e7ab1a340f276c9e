//! The acknowledgement of a reliable topic: what is settled, and which bytes are missing.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;
use super::reasons;
use stats::DropReason;

/// The complete state of one reliable topic at its receiver, so that a later one makes up for a lost one.
///
/// A message is settled once it was delivered, refused for good, or given up by its sender. Of messages that are listed
/// nowhere, up to `top`, nothing has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    pub(crate) topic: u32,
    /// Highest number of a datagram received: all before it have left the air.
    pub(crate) newest: u64,
    /// Microseconds for which the receiver has held it.
    pub(crate) held: u64,
    /// All messages below this number are settled.
    pub(crate) base: u64,
    /// Messages from this number on are not covered, for lack of room; 0: all are covered.
    pub(crate) top: u64,
    /// Settled but not delivered: all that the sender has not yet shown to know.
    pub(crate) refused: Vec<(u64, DropReason)>,
    /// Settled messages above `base`: the first, and one past the last.
    pub(crate) runs: Vec<(u64, u64)>,
    /// Messages that have arrived in part, with their missing bytes. A message that misses nothing waits for those
    /// before it.
    pub(crate) partial: Vec<(u64, Vec<(u32, u32)>)>,
}

impl Acknowledgement {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for v in [u64::from(self.topic), self.newest, self.held, self.base, self.top] {
            put_varint(out, v);
        }
        put_varint(out, self.refused.len() as u64);
        for (seq, reason) in &self.refused {
            put_varint(out, *seq);
            out.push(reasons::code(*reason));
        }
        put_varint(out, self.runs.len() as u64);
        let mut at = self.base;
        for (from, to) in &self.runs {
            put_varint(out, from - at);
            put_varint(out, to - from);
            at = *to;
        }
        put_varint(out, self.partial.len() as u64);
        for (seq, missing) in &self.partial {
            put_varint(out, seq - self.base);
            put_varint(out, missing.len() as u64);
            let mut at = 0;
            for (from, to) in missing {
                put_varint(out, u64::from(from - at));
                put_varint(out, u64::from(to - from));
                at = *to;
            }
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let mut a = Acknowledgement {
            topic: r.varint32("topic number")?,
            newest: r.varint()?,
            held: r.varint()?,
            base: r.varint()?,
            top: r.varint()?,
            ..Acknowledgement::default()
        };
        // Each turn of each loop reads at least two bytes, so all lists are bounded by the datagram.
        for _ in 0..r.varint()? {
            a.refused.push((r.varint()?, reasons::reason(r.u8()?)));
        }
        let mut at = a.base;
        for _ in 0..r.varint()? {
            let run = run(r, at)?;
            a.runs.push(run);
            at = run.1;
        }
        for _ in 0..r.varint()? {
            // Neither may exceed 62 bits.
            let seq = a.base + r.varint()?;
            let (mut missing, mut end) = (Vec::new(), 0);
            for _ in 0..r.varint()? {
                let place = r.at();
                let (from, to) = run(r, end)?;
                let invalid = |_| PacketError::Invalid {
                    what: "missing bytes",
                    at: place,
                };
                missing.push((
                    u32::try_from(from).map_err(invalid)?,
                    u32::try_from(to).map_err(invalid)?,
                ));
                end = to;
            }
            a.partial.push((seq, missing));
        }
        Ok(a)
    }
}

/// A gap and a length, counted from `at`. Ends never exceed 63 bits.
fn run(r: &mut Reader<'_>, at: u64) -> Result<(u64, u64), PacketError> {
    let place = r.at();
    let (gap, length) = (r.varint()?, r.varint()?);
    let from = at.checked_add(gap);
    let to = from.and_then(|f| f.checked_add(length));
    match (from, to) {
        (Some(from), Some(to)) if length > 0 && to < 1 << 63 => Ok((from, to)),
        _ => Err(PacketError::Invalid {
            what: "run",
            at: place,
        }),
    }
}
