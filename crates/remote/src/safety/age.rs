//! How old a request is at most, in terms of the robot's clock alone.
//!
//! A request carries the robot's own stamp as its controller last had it, and how long the controller had had it. The robot knows when it
//! gave that stamp; what has passed since, less the time it was held, is the way of the answer and the way of the
//! request together: never less than the request's age. No clock of another host enters but as a length of time.

use crate::own::Echo;
use stats::Time;
use std::time::Duration;

/// Clocks of two hosts may go apart by so much: 1/2000 (500 ppm) of what passed is added to every bound.
const DRIFT: u32 = 2_000;

/// A stamp that was held for longer gives way to any newer one.
const STALE: Duration = Duration::from_secs(10);

/// The age of a request at most, as the robot of this `run` sees it at `now`; `None` if the echo says nothing: another
/// run's, or a stamp that this run has not given yet.
pub(crate) fn bound(run: u64, now: Time, echo: &Echo) -> Option<Duration> {
    if echo.run != run || echo.stamp > now.as_nanos() {
        return None;
    }
    let passed = now.since(Time(echo.stamp));
    Some(passed.saturating_sub(Duration::from_micros(echo.held_us)) + passed / DRIFT)
}

/// The controller's side: which of the robot's stamps bounds its requests best.
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
    /// The way of the stamp plus the distance of the clocks: comparable between stamps of one run.
    fn way(&self) -> i128 {
        i128::from(self.at.as_nanos()) - i128::from(self.stamp)
    }
}

impl Stamps {
    /// From now on the robot is the one of this run.
    pub(crate) fn begin(&mut self, run: u64) {
        if self.run != run {
            *self = Stamps { run, best: None };
        }
    }

    /// A stamp came at `at`, of this host's clock. It is kept if it was on its way for no longer than the one before: behind
    /// a long queue of telemetry, a stamp that is newer bounds worse.
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

    /// What a request sent at `now` carries.
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
        // But what is too old to trust the clocks' rates is replaced.
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
        /// Whatever the clocks show, the delays are and which stamps came: the bound is never below the age.
        #[test]
        fn never_younger_than_it_is(
            offset in 0u64..1 << 50,
            stamps in proptest::collection::vec((0u64..5_000_000_000, 0u64..3_000_000_000), 1..20),
            waited in 0u64..20_000_000_000,
            way in 0u64..10_000_000_000,
            ppm in -200i64..200,
        ) {
            // The controller's clock goes `ppm` faster than the robot's, and shows something else.
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
            // A microsecond, for what is lost in rounding.
            prop_assert!(age + Duration::from_micros(1) >= Duration::from_nanos(way), "{age:?} of {way}");
        }

        #[test]
        fn any_echo_gives_a_verdict(run: u64, stamp: u64, held_us: u64, now: u64) {
            let _ = bound(RUN, Time(now), &Echo { run, stamp, held_us });
        }
    }
}
