//! An upper bound on the age of a request, by the robot's clock alone.
//!
//! A request carries the robot's stamp that its controller last received, and for how long the controller has held it.
//! The robot knows when it sent that stamp. The time since then, minus the time for which the stamp was held, is the
//! travel time of the answer and of the request together: never less than the request's age. Another host's clock only
//! ever measures a duration (decision 170).

use crate::own::Echo;
use stats::Time;
use std::time::Duration;

/// The clocks of two hosts may drift apart by 1/2000 (500 ppm): that part of the elapsed time is added to every bound.
const DRIFT: u32 = 2_000;

/// A stamp that was held for longer is replaced by any newer one.
const STALE: Duration = Duration::from_secs(10);

/// Returns the maximum age of a request at `now`, for the robot of this `run`. `None` if the echo gives no bound: it is
/// of another run, or its stamp is later than `now`.
pub(crate) fn bound(run: u64, now: Time, echo: &Echo) -> Option<Duration> {
    if echo.run != run || echo.stamp > now.as_nanos() {
        return None;
    }
    let passed = now.since(Time(echo.stamp));
    Some(passed.saturating_sub(Duration::from_micros(echo.held_us)) + passed / DRIFT)
}

/// The controller's side: keeps the stamp of the robot that bounds its requests best.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    run: u64,
    best: Option<Heard>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    stamp: u64,
    at: Time,
}

impl Heard {
    /// The travel time of the stamp plus the offset of the clocks: comparable between stamps of one run.
    fn way(&self) -> i128 {
        i128::from(self.at.as_nanos()) - i128::from(self.stamp)
    }
}

impl Stamps {
    /// Starts over if the robot's run is a different one.
    pub(crate) fn begin(&mut self, run: u64) {
        if self.run != run {
            *self = Stamps { run, best: None };
        }
    }

    /// A stamp arrived at `at`, by this host's clock. It is kept if it travelled no longer than the previous one: a
    /// newer stamp that waited behind a long queue of telemetry gives a worse bound.
    pub(crate) fn heard(&mut self, run: u64, stamp: u64, at: Time) {
        if run != self.run {
            return;
        }
        let new = Heard { stamp, at };
        let keeps = self.best.is_some_and(|old| {
            let held = at.since(old.at);
            held < STALE && old.way() + i128::from((held / DRIFT).as_nanos() as u64) < new.way()
        });
        if !keeps {
            self.best = Some(new);
        }
    }

    /// Returns the echo for a request sent at `now`.
    pub(crate) fn echo(&self, now: Time) -> Option<Echo> {
        self.best.map(|heard| Echo {
            run: self.run,
            stamp: heard.stamp,
            held_us: u64::try_from(now.since(heard.at).as_micros()).unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RUN: u64 = 7;

    #[test]
    fn another_run_and_a_stamp_of_the_future_say_nothing() {
        let echo = Echo {
            run: RUN,
            stamp: 1_000,
            held_us: 0,
        };
        assert!(bound(RUN, Time(1_000), &echo).is_some());
        assert!(bound(RUN + 1, Time(1_000), &echo).is_none());
        assert!(bound(RUN, Time(999), &echo).is_none());
    }

    #[test]
    fn a_stamp_that_waited_behind_others_does_not_replace_a_better_one() {
        let mut stamps = Stamps::default();
        stamps.begin(RUN);
        stamps.heard(RUN, 1_000_000_000, Time::from_millis(1_010));
        stamps.heard(RUN, 1_100_000_000, Time::from_millis(1_900));
        let echo = stamps.echo(Time::from_millis(2_000)).expect("heard");
        assert_eq!((echo.stamp, echo.held_us), (1_000_000_000, 990_000));
        // But a stamp that is too old to rely on the clocks' rates is replaced.
        stamps.heard(RUN, 11_000_000_000, Time::from_millis(11_800));
        assert_eq!(
            stamps.echo(Time::from_millis(11_800)).expect("heard").stamp,
            11_000_000_000
        );
        stamps.begin(RUN + 1);
        assert!(stamps.echo(Time::from_millis(12_000)).is_none());
        stamps.heard(RUN, 12_000_000_000, Time::from_millis(12_000));
        assert!(
            stamps.echo(Time::from_millis(12_000)).is_none(),
            "of the run before"
        );
    }

    proptest! {
        /// For any clocks, delays and received stamps, the bound is never below the age.
        #[test]
        fn never_younger_than_it_is(
            offset in 0u64..1 << 50,
            stamps in proptest::collection::vec((0u64..5_000_000_000, 0u64..3_000_000_000), 1..20),
            waited in 0u64..20_000_000_000,
            way in 0u64..10_000_000_000,
            ppm in -200i64..200,
        ) {
            // The controller's clock runs `ppm` faster than the robot's, and shows another time.
            let controller = |robot: u64| {
                Time((i128::from(robot) + i128::from(robot) * i128::from(ppm) / 1_000_000 + i128::from(offset)) as u64)
            };
            let mut sent: Vec<(u64, u64)> = stamps.iter().map(|(at, way)| (at + way, *at)).collect();
            sent.sort_unstable();
            let mut known = Stamps::default();
            known.begin(RUN);
            for (arrives, stamp) in &sent {
                known.heard(RUN, *stamp, controller(*arrives));
            }
            let sends = sent.last().expect("one").0 + waited;
            let echo = known.echo(controller(sends)).expect("heard");
            let age = bound(RUN, Time(sends + way), &echo).expect("of this run");
            // A microsecond for rounding.
            prop_assert!(age + Duration::from_micros(1) >= Duration::from_nanos(way), "{age:?} of {way}");
        }

        #[test]
        fn any_echo_gives_a_verdict(run: u64, stamp: u64, held_us: u64, now: u64) {
            let _ = bound(RUN, Time(now), &Echo { run, stamp, held_us });
        }
    }
}
