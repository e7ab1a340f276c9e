//! Policies of an endpoint, as parameters of its announcement (DDSI-RTPS 2.5, section 9.6.3.3).

use super::bytes::{Reader, put_string, put_u16, put_u32};
use super::endpoint::MAX_TEXT;
use super::error::WireError;
use super::parameters::{pid, put};
use super::time::{put_duration, read_duration};
use crate::qos::{
    DestinationOrder, Durability, History, Liveliness, Ownership, Presentation, Qos, Reliability,
};
use core::time::Duration;

/// Maximum number of partitions of an endpoint.
pub(crate) const MAX_PARTITIONS: usize = 64;
/// Maximum number of data representations of an endpoint.
pub(crate) const MAX_REPRESENTATIONS: usize = 16;

/// Reads a policy. Returns `false` if the parameter is not a policy.
pub(super) fn read(qos: &mut Qos, id: u16, v: &mut Reader<'_>) -> Result<bool, WireError> {
    let invalid = |what| WireError::Invalid { what, at: 0 };
    match id {
        pid::RELIABILITY => {
            qos.reliability = match v.u32()? {
                1 => Reliability::BestEffort,
                2 => Reliability::Reliable,
                _ => return Err(invalid("reliability")),
            }
        }
        pid::DURABILITY => {
            qos.durability = match v.u32()? {
                0 => Durability::Volatile,
                1 => Durability::TransientLocal,
                2 => Durability::Transient,
                3 => Durability::Persistent,
                _ => return Err(invalid("durability")),
            }
        }
        pid::HISTORY => {
            qos.history = match (v.u32()?, v.u32()?) {
                (0, depth) => History::KeepLast(depth),
                (1, _) => History::KeepAll,
                _ => return Err(invalid("history")),
            }
        }
        pid::DEADLINE => qos.deadline = read_duration(v)?,
        pid::LATENCY_BUDGET => qos.latency_budget = read_duration(v)?.unwrap_or(Duration::MAX),
        pid::LIFESPAN => qos.lifespan = read_duration(v)?,
        pid::LIVELINESS => {
            qos.liveliness = match v.u32()? {
                0 => Liveliness::Automatic,
                1 => Liveliness::ManualByParticipant,
                2 => Liveliness::ManualByTopic,
                _ => return Err(invalid("liveliness")),
            };
            qos.lease = read_duration(v)?;
        }
        pid::OWNERSHIP => {
            qos.ownership = match v.u32()? {
                0 => Ownership::Shared,
                1 => Ownership::Exclusive,
                _ => return Err(invalid("ownership")),
            }
        }
        pid::OWNERSHIP_STRENGTH => qos.strength = v.i32()?,
        pid::DESTINATION_ORDER => {
            qos.destination_order = match v.u32()? {
                0 => DestinationOrder::ByReception,
                1 => DestinationOrder::BySource,
                _ => return Err(invalid("destination order")),
            }
        }
        pid::PRESENTATION => {
            qos.presentation = Presentation {
                scope: u8::try_from(v.u32()?).unwrap_or(u8::MAX),
                coherent: v.u8()? != 0,
                ordered: v.u8()? != 0,
            }
        }
        pid::PARTITION => {
            let n = count(v, MAX_PARTITIONS, "list of partitions")?;
            qos.partitions.clear();
            for _ in 0..n {
                v.align4();
                qos.partitions.push(v.string(MAX_TEXT, "name of a partition")?);
            }
        }
        pid::DATA_REPRESENTATION => {
            let n = count(v, MAX_REPRESENTATIONS, "list of data representations")?;
            qos.representations = (0..n).map(|_| Ok(v.u16()? as i16)).collect::<Result<_, _>>()?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn count(v: &mut Reader<'_>, most: usize, what: &'static str) -> Result<usize, WireError> {
    let n = v.u32()? as usize;
    if n > most {
        return Err(WireError::TooLong { what, most });
    }
    Ok(n)
}

/// Writes all policies; for a reader, without those of writers.
pub(super) fn write(out: &mut Vec<u8>, qos: &Qos, writer: bool) {
    put(out, pid::RELIABILITY, |out| {
        put_u32(out, if qos.is_reliable() { 2 } else { 1 });
        put_duration(out, Some(Duration::from_millis(100)));
    });
    put(out, pid::DURABILITY, |out| put_u32(out, qos.durability as u32));
    put(out, pid::HISTORY, |out| match qos.history {
        History::KeepLast(depth) => {
            put_u32(out, 0);
            put_u32(out, depth);
        }
        History::KeepAll => {
            put_u32(out, 1);
            put_u32(out, 0);
        }
    });
    put(out, pid::DEADLINE, |out| put_duration(out, qos.deadline));
    put(out, pid::LATENCY_BUDGET, |out| {
        put_duration(out, Some(qos.latency_budget))
    });
    put(out, pid::LIVELINESS, |out| {
        put_u32(out, qos.liveliness as u32);
        put_duration(out, qos.lease);
    });
    put(out, pid::OWNERSHIP, |out| put_u32(out, qos.ownership as u32));
    put(out, pid::DESTINATION_ORDER, |out| {
        put_u32(out, qos.destination_order as u32)
    });
    put(out, pid::PRESENTATION, |out| {
        put_u32(out, u32::from(qos.presentation.scope));
        out.extend_from_slice(&[
            u8::from(qos.presentation.coherent),
            u8::from(qos.presentation.ordered),
        ]);
    });
    if writer {
        put(out, pid::LIFESPAN, |out| put_duration(out, qos.lifespan));
        put(out, pid::OWNERSHIP_STRENGTH, |out| {
            put_u32(out, qos.strength as u32)
        });
    }
    if !qos.partitions.is_empty() {
        put(out, pid::PARTITION, |out| {
            put_u32(out, qos.partitions.len() as u32);
            qos.partitions.iter().for_each(|name| put_string(out, name));
        });
    }
    if !qos.representations.is_empty() {
        put(out, pid::DATA_REPRESENTATION, |out| {
            put_u32(out, qos.representations.len() as u32);
            qos.representations.iter().for_each(|r| put_u16(out, *r as u16));
        });
    }
}
