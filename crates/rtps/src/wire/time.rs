//! Timestamps and durations on the wire (DDSI-RTPS 2.5, section 9.3.2): seconds and 2⁻³² seconds.

use super::bytes::{Reader, put_u32};
use super::error::WireError;
use core::time::Duration;

/// When a sample was written, by its writer's clock: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns `None` for `TIME_INVALID`.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Option<Self>, WireError> {
        let (seconds, fraction) = (r.u32()?, r.u32()?);
        if (seconds, fraction) == (u32::MAX, u32::MAX) {
            return Ok(None);
        }
        Ok(Some(Timestamp(
            i64::from(seconds) * 1_000_000_000 + i64::from(nanos(fraction)),
        )))
    }

    /// Times before 1970 become 1970, times after 2106 the last representable one.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        let t = self.0.clamp(0, i64::from(u32::MAX - 1) * 1_000_000_000);
        put_u32(out, (t / 1_000_000_000) as u32);
        put_u32(out, fraction((t % 1_000_000_000) as u32));
    }
}

/// Reads a duration; `None` is infinite, and so are durations longer than 68 years. A negative one is zero.
pub(crate) fn read_duration(r: &mut Reader<'_>) -> Result<Option<Duration>, WireError> {
    let (seconds, fraction) = (r.i32()?, r.u32()?);
    Ok(match seconds {
        i32::MAX => None,
        ..0 => Some(Duration::ZERO),
        _ => Some(Duration::new(seconds as u64, nanos(fraction))),
    })
}

pub(crate) fn put_duration(out: &mut Vec<u8>, duration: Option<Duration>) {
    match duration {
        Some(d) if d.as_secs() < i32::MAX as u64 => {
            put_u32(out, d.as_secs() as u32);
            put_u32(out, fraction(d.subsec_nanos()));
        }
        _ => {
            put_u32(out, i32::MAX as u32);
            put_u32(out, u32::MAX);
        }
    }
}

/// Rounds to the nearest, so that nanoseconds survive a round trip.
fn nanos(fraction: u32) -> u32 {
    let n = (u64::from(fraction) * 1_000_000_000 + (1 << 31)) >> 32;
    (n as u32).min(999_999_999)
}

fn fraction(nanos: u32) -> u32 {
    ((u64::from(nanos) << 32) / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_make_the_round_trip() {
        for n in [0, 1, 999_999_999, 1_764_201_600_123_456_789, 500_000_000] {
            let mut out = Vec::new();
            Timestamp(n).put(&mut out);
            assert_eq!(
                Timestamp::read(&mut Reader::new(&out, true)),
                Ok(Some(Timestamp(n)))
            );
        }
        assert_eq!(Timestamp::read(&mut Reader::new(&[0xff; 8], true)), Ok(None));
        for d in [None, Some(Duration::ZERO), Some(Duration::new(20, 100_000_001))] {
            let mut out = Vec::new();
            put_duration(&mut out, d);
            assert_eq!(read_duration(&mut Reader::new(&out, true)), Ok(d));
        }
        let mut out = Vec::new();
        put_duration(&mut out, Some(Duration::MAX));
        assert_eq!(read_duration(&mut Reader::new(&out, true)), Ok(None));
        let negative = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(
            read_duration(&mut Reader::new(&negative, true)),
            Ok(Some(Duration::ZERO))
        );
    }
}
