//! Instants and their arithmetic.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// An instant: nanoseconds since an epoch that the caller chooses.
///
/// The logic crates never read a clock; their caller supplies every instant. Instants of different epochs must not be
/// mixed; the type cannot detect it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The epoch itself.
    pub const ZERO: Time = Time(0);
    /// Later than every other instant; arithmetic saturates here.
    pub const MAX: Time = Time(u64::MAX);

    /// `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Time(ns)
    }

    /// `us` microseconds after the epoch, saturating.
    pub const fn from_micros(us: u64) -> Self {
        Time(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds after the epoch, saturating.
    pub const fn from_millis(ms: u64) -> Self {
        Time(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Signed distance `self - other` in nanoseconds, saturating at the ends of `i64`.
    pub fn signed_since(self, other: Time) -> i64 {
        let d = i128::from(self.0) - i128::from(other.0);
        d.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(d)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
        assert_eq!(Time(5).signed_since(Time(9)), -4);
        assert_eq!(Time::ZERO.signed_since(Time::MAX), i64::MIN);
        assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
    }
}
