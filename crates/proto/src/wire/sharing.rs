//! Frames for sharing a radio: which hosts wait, when periodic messages are due, and clock readings.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;
use crate::config::MAX_PRIORITY;

const CLAIMS: u8 = 0x20;
const CLOCK: u8 = 0x21;
const RHYTHMS: u8 = 0x22;
const TIMING: u8 = 0x23;

/// Most entries in one frame of claims or rhythms.
pub(crate) const MOST_ENTRIES: usize = 8;

/// A host that waits for the air, and the priority and airtime of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Short form of the host's id.
    pub(crate) host: u32,
    /// Highest priority with more waiting than the next datagram takes.
    pub(crate) priority: u8,
    /// Air that this takes, in milliseconds; 255 means that or more.
    pub(crate) demand_ms: u8,
    /// Time since the host itself claimed this, in milliseconds; 255 means that or more.
    pub(crate) age_ms: u8,
}

/// When the next message of a periodic flow is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) host: u32,
    pub(crate) priority: u8,
    /// By the clock of this frame's sender, in microseconds.
    pub(crate) at: u64,
    /// In microseconds, as the two after it.
    pub(crate) period: u32,
    /// Air that a message takes.
    pub(crate) air: u32,
    /// How far messages stray.
    pub(crate) spread: u32,
    /// Time since the host itself announced this, in milliseconds.
    pub(crate) age_ms: u8,
}

/// One frame for sharing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Claims(Vec<Claim>),
    /// The sender's clock in microseconds when this was sent and, if known, how far the receiver's is ahead of it, in
    /// microseconds, with the bound on the error and the likely error.
    Clock {
        time: u64,
        ahead: Option<(i64, u64, u64)>,
    },
    Rhythms(Vec<Beat>),
    /// When a message was offered, by the sender's clock in microseconds, and how many microseconds after that it is
    /// late; 0 for never.
    Timing {
        topic: u32,
        seq: u64,
        offered: u64,
        deadline: u64,
    },
}

impl Sharing {
    /// Whether frames of this kind belong to this family.
    pub(super) fn has(kind: u8) -> bool {
        (CLAIMS..=TIMING).contains(&kind)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Sharing::Claims(claims) => {
                let claims = &claims[..claims.len().min(MOST_ENTRIES)];
                out.extend_from_slice(&[CLAIMS, claims.len() as u8]);
                for c in claims {
                    out.extend_from_slice(&c.host.to_le_bytes());
                    out.extend_from_slice(&[c.priority, c.demand_ms, c.age_ms]);
                }
            }
            Sharing::Clock { time, ahead } => {
                out.push(CLOCK);
                put_varint(out, *time);
                out.push(u8::from(ahead.is_some()));
                if let Some((ahead, uncertainty, likely)) = ahead {
                    // Zigzag, so that small values of either sign are short.
                    put_varint(out, ((ahead << 1) ^ (ahead >> 63)) as u64);
                    put_varint(out, *uncertainty);
                    put_varint(out, *likely);
                }
            }
            Sharing::Rhythms(beats) => {
                let beats = &beats[..beats.len().min(MOST_ENTRIES)];
                out.extend_from_slice(&[RHYTHMS, beats.len() as u8]);
                for b in beats {
                    out.extend_from_slice(&b.host.to_le_bytes());
                    out.extend_from_slice(&[b.priority, b.age_ms]);
                    put_varint(out, b.at);
                    for v in [b.period, b.air, b.spread] {
                        put_varint(out, v.into());
                    }
                }
            }
            Sharing::Timing {
                topic,
                seq,
                offered,
                deadline,
            } => {
                out.push(TIMING);
                for v in [u64::from(*topic), *seq, *offered, *deadline] {
                    put_varint(out, v);
                }
            }
        }
    }

    pub(super) fn decode(kind: u8, r: &mut Reader<'_>) -> Result<Self, PacketError> {
        Ok(match kind {
            CLAIMS => Sharing::Claims(entries(r, |r| {
                Ok(Claim {
                    host: r.u32()?,
                    priority: priority(r)?,
                    demand_ms: r.u8()?,
                    age_ms: r.u8()?,
                })
            })?),
            CLOCK => {
                let time = r.varint()?;
                let ahead = match r.u8()? & 1 {
                    0 => None,
                    _ => {
                        let z = r.varint()?;
                        Some(((z >> 1) as i64 ^ -((z & 1) as i64), r.varint()?, r.varint()?))
                    }
                };
                Sharing::Clock { time, ahead }
            }
            RHYTHMS => Sharing::Rhythms(entries(r, |r| {
                let (host, priority, age_ms) = (r.u32()?, priority(r)?, r.u8()?);
                Ok(Beat {
                    host,
                    priority,
                    age_ms,
                    at: r.varint()?,
                    period: r.varint32("period")?,
                    air: r.varint32("airtime")?,
                    spread: r.varint32("spread")?,
                })
            })?),
            TIMING => Sharing::Timing {
                topic: r.varint32("topic number")?,
                seq: r.varint()?,
                offered: r.varint()?,
                deadline: r.varint()?,
            },
            _ => {
                return Err(PacketError::UnknownFrame {
                    kind,
                    at: r.at().saturating_sub(1),
                });
            }
        })
    }
}

fn priority(r: &mut Reader<'_>) -> Result<u8, PacketError> {
    let at = r.at();
    let priority = r.u8()?;
    if priority > MAX_PRIORITY {
        return Err(PacketError::Invalid { what: "priority", at });
    }
    Ok(priority)
}

fn entries<T>(
    r: &mut Reader<'_>,
    one: impl Fn(&mut Reader<'_>) -> Result<T, PacketError>,
) -> Result<Vec<T>, PacketError> {
    let at = r.at();
    let n = usize::from(r.u8()?);
    if n > MOST_ENTRIES {
        return Err(PacketError::Invalid {
            what: "number of entries",
            at,
        });
    }
    (0..n).map(|_| one(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let decode = |bytes: &[u8]| Sharing::decode(bytes[0], &mut Reader::new(&bytes[1..])).map(drop);
        assert!(decode(&[CLAIMS, 0]).is_ok());
        let many = [&[CLAIMS, MOST_ENTRIES as u8 + 1][..], &[0; 100]].concat();
        assert!(matches!(
            decode(&many),
            Err(PacketError::Invalid {
                what: "number of entries",
                ..
            })
        ));
        assert!(matches!(
            decode(&[CLAIMS, 1, 0, 0, 0, 0, 128, 0, 0]),
            Err(PacketError::Invalid { what: "priority", .. })
        ));
        assert!(matches!(
            decode(&[CLAIMS, 1, 0]),
            Err(PacketError::Truncated { .. })
        ));
        assert!(matches!(decode(&[0x2F]), Err(PacketError::UnknownFrame { .. })));
        let wide = [&[RHYTHMS, 1, 0, 0, 0, 0, 9, 0, 5][..], &[0xFF; 24]].concat();
        assert!(matches!(
            decode(&wide),
            Err(PacketError::Invalid { what: "period", .. })
        ));
    }

    #[test]
    fn offsets_of_either_sign_and_any_size_make_the_round_trip() {
        for ahead in [0, 1, -1, 63, -64, 1 << 60, -(1 << 60)] {
            let clock = Sharing::Clock {
                time: 5,
                ahead: Some((ahead, 7, 2)),
            };
            let mut out = Vec::new();
            clock.encode(&mut out);
            assert_eq!(Sharing::decode(out[0], &mut Reader::new(&out[1..])), Ok(clock));
        }
    }
}
