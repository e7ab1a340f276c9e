//! The counts of a topic at one end.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;
use super::reasons;
use crate::statistics::{Account, ReceiverReport};
use stats::Drops;

/// Counters of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportEntry {
    /// From the topic's sender: outcomes of all offered messages, at both ends.
    Sender { topic: u32, account: Account },
    /// From the topic's receiver: outcomes of the messages sent.
    Receiver { topic: u32, report: ReceiverReport },
}

impl ReportEntry {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, topic, counts, drops) = match self {
            ReportEntry::Sender { topic, account: a } => (0, topic, [a.offered, a.delivered], &a.dropped),
            ReportEntry::Receiver { topic, report: r } => (1, topic, [r.delivered, r.abandoned], &r.drops),
        };
        put_varint(out, u64::from(*topic) << 1 | kind);
        counts.iter().for_each(|n| put_varint(out, *n));
        put_varint(out, drops.iter().count() as u64);
        for (reason, n) in drops.iter() {
            out.push(reasons::code(reason));
            put_varint(out, n);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let at = r.at();
        let key = r.varint()?;
        let topic = u32::try_from(key >> 1).map_err(|_| PacketError::Invalid {
            what: "topic number",
            at,
        })?;
        let (first, second) = (r.varint()?, r.varint()?);
        let mut drops = Drops::default();
        // Each turn reads at least two bytes, and reasons merge: bounded by the datagram.
        for _ in 0..r.varint()? {
            let reason = reasons::reason(r.u8()?);
            drops.add(reason, r.varint()?);
        }
        if key & 1 == 1 {
            let report = ReceiverReport {
                delivered: first,
                abandoned: second,
                drops,
            };
            return Ok(ReportEntry::Receiver { topic, report });
        }
        let known = second.checked_add(drops.total());
        let in_flight = known.and_then(|known| first.checked_sub(known));
        let account = Account {
            offered: first,
            delivered: second,
            dropped: drops,
            in_flight: in_flight.ok_or(PacketError::Invalid { what: "account", at })?,
        };
        Ok(ReportEntry::Sender { topic, account })
    }
}
