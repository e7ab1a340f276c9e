//! Plays in real time: sleeps until each message is due and passes it to a callback.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use stats::Time;

use crate::error::ReadError;
use crate::model::Message;
use crate::schedule::{Pace, PaceError, Player, Schedule};

/// Plays messages at their pace by CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default)]
pub struct Playback {
    pace: Pace,
    stop: Stop,
}

/// Ends a [`Playback`] from another thread or a signal handler, within 50 ms.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the playback.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// When a message was due and when the callback was called, by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When the schedule wanted it.
    pub due: Time,
    /// When it was passed to the callback; never before `due`.
    pub now: Time,
}

/// Result of playing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Messages passed to the callback.
    pub messages: u64,
    /// The greatest delay of a callback behind its due time.
    pub latest: Duration,
}

/// Why playing ended early.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaybackError {
    /// The pace is invalid for this recording.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// A part of the recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<Infallible> for PlaybackError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Playback {
    /// A playback at `pace`.
    pub fn new(pace: Pace) -> Self {
        Playback {
            pace,
            stop: Stop::default(),
        }
    }

    /// A handle that stops the playback.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// The present instant of the clock that [`Tick`] uses: CLOCK_MONOTONIC.
    pub fn now() -> Time {
        let now = clock_gettime(rustix::time::ClockId::Monotonic);
        let secs = u64::try_from(now.tv_sec).unwrap_or(0);
        Time(
            secs.saturating_mul(1_000_000_000)
                .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0)),
        )
    }

    /// Plays the messages of `rewind` from now on, and blocks until the end, the first damage, the callback's `Break`
    /// or [`Stop::stop`]. `begin` and `end` are the recording's first and last log time.
    ///
    /// A late message is passed on at once; later messages keep their own due times, so delays do not add up. The
    /// callback runs on the calling thread and should be quick.
    pub fn run<F, I, E>(
        &self,
        begin: Time,
        end: Time,
        rewind: F,
        mut callback: impl FnMut(Tick, Message) -> ControlFlow<()>,
    ) -> Result<Played, PlaybackError>
    where
        F: FnMut() -> I,
        I: Iterator<Item = Result<Message, E>>,
        PlaybackError: From<E>,
    {
        let mut played = Played::default();
        let schedule = Schedule::new(&self.pace, begin, end, Self::now())?;
        for item in Player::new(schedule, rewind) {
            let (due, message) = item?;
            let Some(now) = self.sleep_until(due) else { break };
            played.messages += 1;
            played.latest = played.latest.max(now.since(due));
            if callback(Tick { due, now }, message).is_break() {
                break;
            }
        }
        Ok(played)
    }

    /// Sleeps in slices so that a stop is noticed; `None` if stopped.
    fn sleep_until(&self, due: Time) -> Option<Time> {
        const SLICE: Duration = Duration::from_millis(50);
        loop {
            if self.stop.is_stopped() {
                return None;
            }
            let now = Self::now();
            if now >= due {
                return Some(now);
            }
            let wake = due.min(now + SLICE);
            let request = Timespec {
                tv_sec: i64::try_from(wake.0 / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (wake.0 % 1_000_000_000) as _,
            };
            // Interrupted by a signal: the loop sleeps again.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ChannelId;

    fn messages(at_ms: &[u64]) -> Vec<Result<Message, Infallible>> {
        let message = |&ms| {
            let time = Time::from_millis(ms);
            Ok(Message {
                channel: ChannelId(0),
                log_time: time,
                publish_time: time,
                data: vec![],
            })
        };
        at_ms.iter().map(message).collect()
    }

    #[test]
    fn nothing_is_early_and_due_times_keep_their_distances() {
        let recorded = messages(&[0, 10, 20, 40]);
        let mut ticks = Vec::new();
        let played = Playback::new(Pace::default()).run(
            Time::ZERO,
            Time::from_millis(40),
            || recorded.clone().into_iter(),
            |tick, _| {
                ticks.push(tick);
                ControlFlow::Continue(())
            },
        );
        assert_eq!(played.expect("plays").messages, 4);
        assert!(ticks.iter().all(|tick| tick.now >= tick.due));
        let distances: Vec<u64> = ticks
            .windows(2)
            .map(|pair| (pair[1].due.0 - pair[0].due.0) / 1_000_000)
            .collect();
        assert_eq!(distances, [10, 10, 20]);
    }

    #[test]
    fn stops_in_a_long_sleep_and_by_the_callback() {
        let recorded = messages(&[0, 3_600_000]);
        let playback = Playback::new(Pace::default());
        let stop = playback.stopper();
        let played = playback.run(
            Time::ZERO,
            Time::from_millis(3_600_000),
            || recorded.clone().into_iter(),
            |_, _| {
                let stop = stop.clone();
                std::thread::spawn(move || stop.stop());
                ControlFlow::Continue(())
            },
        );
        assert_eq!(played.expect("stopped").messages, 1);

        let played = Playback::new(Pace {
            repeat: true,
            ..Pace::default()
        })
        .run(
            Time::ZERO,
            Time::ZERO,
            || messages(&[0]).into_iter(),
            |_, _| ControlFlow::Break(()),
        );
        assert_eq!(played.expect("broken off").messages, 1);
    }
}
