//! Computes when each message of a recording is due, without a clock and without sleeping.

use std::time::Duration;

use stats::Time;

use crate::model::Message;

/// How to play a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Recorded seconds per second: 2.0 is twice as fast. Finite and above zero.
    pub speed: f64,
    /// Start within the recording, in recorded time.
    pub offset: Duration,
    /// Duration to play, in recorded time; `None` plays to the end.
    pub duration: Option<Duration>,
    /// Start again at the end, forever.
    pub repeat: bool,
    /// Longest gap without a message, in recorded time; longer gaps are shortened to it. `None` keeps all gaps.
    pub longest_gap: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            speed: 1.0,
            offset: Duration::ZERO,
            duration: None,
            repeat: false,
            longest_gap: None,
        }
    }
}

/// Why a [`Pace`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PaceError {
    /// Zero, negative, infinite or not a number.
    #[error("a recording cannot be played at {speed} times its speed; give a number above 0")]
    Speed {
        /// The speed given.
        speed: f64,
    },
    /// The offset lies after the last message.
    #[error("the recording lasts {duration:?}; there is nothing to play after {offset:?}")]
    Offset {
        /// The offset given.
        offset: Duration,
        /// The recording's duration.
        duration: Duration,
    },
}

/// When a message is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Never: it lies before the part that is played.
    Before,
    /// At this instant of the player's clock.
    At(Time),
    /// Never: it lies after the part that is played, as do all that follow.
    After,
}

/// Maps recorded instants to instants of the player's clock.
///
/// Every due time is computed from the start, not from the previous message, so errors do not add up.
#[derive(Clone, Debug)]
pub struct Schedule {
    speed: f64,
    repeat: bool,
    /// First recorded instant of the part that is played, and whether older messages are left out.
    first: Time,
    from: bool,
    /// Last recorded instant of the part, or the latest message if it is later than the index states; and the time from
    /// which messages are left out.
    last: Time,
    until: Option<Time>,
    longest_gap: Option<Duration>,
    /// Recorded time skipped in this round, and the latest message.
    skipped: Duration,
    latest: Time,
    /// Start of this round, by the player's clock.
    start: Time,
    round: u64,
}

impl Schedule {
    /// Shortest duration of a repeated part, in the player's time: a recording of a single message is not repeated in a
    /// busy loop.
    pub const SHORTEST_ROUND: Duration = Duration::from_millis(100);

    /// A schedule for a recording from `begin` to `end` (recorded time); the part selected by `pace` starts at `start`
    /// on the player's clock.
    pub fn new(pace: &Pace, begin: Time, end: Time, start: Time) -> Result<Self, PaceError> {
        if !pace.speed.is_finite() || pace.speed <= 0.0 {
            return Err(PaceError::Speed { speed: pace.speed });
        }
        let duration = end.since(begin);
        if pace.offset > duration {
            return Err(PaceError::Offset {
                offset: pace.offset,
                duration,
            });
        }
        let first = begin + pace.offset;
        let until = pace.duration.map(|duration| first + duration);
        Ok(Schedule {
            speed: pace.speed,
            repeat: pace.repeat,
            first,
            from: pace.offset > Duration::ZERO,
            last: until.map_or(end, |until| end.min(until)),
            until,
            longest_gap: pace.longest_gap,
            skipped: Duration::ZERO,
            latest: first,
            start,
            round: 0,
        })
    }

    /// When a message recorded at `log_time` is due in this round.
    ///
    /// Messages that the pace leaves out are not due. A message older or newer than the recording's index states is.
    pub fn due(&self, log_time: Time) -> Due {
        if self.from && log_time < self.first {
            Due::Before
        } else if self.until.is_some_and(|until| log_time > until) {
            Due::After
        } else {
            let played = log_time.since(self.first).saturating_sub(self.skipped);
            Due::At(self.start + scaled(played, self.speed))
        }
    }

    /// Sets the time of the next message to `log_time`, to skip the excess of a long gap before it.
    fn reach(&mut self, log_time: Time) {
        if let Some(longest) = self.longest_gap {
            let gap = log_time.since(self.latest);
            self.skipped = self.skipped.saturating_add(gap.saturating_sub(longest));
        }
        self.latest = self.latest.max(log_time);
        self.last = self.last.max(log_time);
    }

    /// Starts the next round; false if the recording is not repeated.
    pub fn next_round(&mut self) -> bool {
        if self.repeat {
            let played = self.last.since(self.first).saturating_sub(self.skipped);
            self.start += scaled(played, self.speed).max(Self::SHORTEST_ROUND);
            self.round = self.round.saturating_add(1);
            (self.skipped, self.latest) = (Duration::ZERO, self.first);
        }
        self.repeat
    }

    /// Number of rounds played to the end.
    pub fn rounds(&self) -> u64 {
        self.round
    }

    /// Recorded seconds per second.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

/// `duration / speed` in whole nanoseconds, saturating. Exact to the nanosecond up to 52 days.
fn scaled(duration: Duration, speed: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 / speed).round() as u64)
}

/// A recording's messages with the instants at which they are due; ends with the recording unless the pace repeats it.
/// Reads no clock and does not sleep.
#[derive(Debug)]
pub struct Player<F, I> {
    schedule: Schedule,
    rewind: F,
    messages: I,
    /// Whether this round has yielded a message; a round without one would repeat forever.
    yielded: bool,
    done: bool,
}

impl<F, I, E> Player<F, I>
where
    F: FnMut() -> I,
    I: Iterator<Item = Result<Message, E>>,
{
    /// `rewind` returns the messages from the beginning, in time order; it is called once per round.
    pub fn new(schedule: Schedule, mut rewind: F) -> Self {
        let messages = rewind();
        Player {
            schedule,
            rewind,
            messages,
            yielded: false,
            done: false,
        }
    }
}

impl<F, I, E> Iterator for Player<F, I>
where
    F: FnMut() -> I,
    I: Iterator<Item = Result<Message, E>>,
{
    type Item = Result<(Time, Message), E>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let due = match self.messages.next() {
                Some(Ok(message)) => {
                    if let Due::At(_) = self.schedule.due(message.log_time) {
                        self.schedule.reach(message.log_time);
                    }
                    match self.schedule.due(message.log_time) {
                        Due::Before => continue,
                        Due::At(due) => {
                            self.yielded = true;
                            return Some(Ok((due, message)));
                        }
                        Due::After => None,
                    }
                }
                Some(Err(error)) => Some(error),
                None => None,
            };
            if let Some(error) = due {
                return Some(Err(error));
            }
            if !self.yielded || !self.schedule.next_round() {
                self.done = true;
                return None;
            }
            self.messages = (self.rewind)();
            self.yielded = false;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ChannelId;

    const BEGIN: Time = Time(1_000_000_000);
    const START: Time = Time(50);

    fn schedule(pace: Pace) -> Schedule {
        Schedule::new(&pace, BEGIN, BEGIN + Duration::from_secs(10), START).expect("valid pace")
    }

    fn at(ns: u64) -> Time {
        BEGIN + Duration::from_nanos(ns)
    }

    fn messages(ns: &[u64]) -> Vec<Result<Message, ()>> {
        let message = |&ns| {
            Ok(Message {
                channel: ChannelId(0),
                log_time: at(ns),
                publish_time: at(ns),
                data: vec![],
            })
        };
        ns.iter().map(message).collect()
    }

    #[test]
    fn speed_offset_and_duration_choose_and_scale() {
        let pace = Pace {
            speed: 2.0,
            offset: Duration::from_secs(1),
            duration: Some(Duration::from_secs(3)),
            ..Pace::default()
        };
        let schedule = schedule(pace);
        assert_eq!(schedule.due(at(999_999_999)), Due::Before);
        assert_eq!(schedule.due(at(1_000_000_000)), Due::At(START));
        assert_eq!(
            schedule.due(at(2_000_000_001)),
            Due::At(START + Duration::from_nanos(500_000_001))
        );
        assert_eq!(
            schedule.due(at(4_000_000_000)),
            Due::At(START + Duration::from_millis(1500))
        );
        assert_eq!(schedule.due(at(4_000_000_001)), Due::After);
    }

    #[test]
    fn repeated_rounds_follow_one_another_without_drift() {
        let mut schedule = schedule(Pace {
            speed: 3.0,
            repeat: true,
            ..Pace::default()
        });
        for _ in 0..3_000 {
            assert!(schedule.next_round());
        }
        // A round lasts 3,333,333,333 ns: the third of a nanosecond is the only error, once a round.
        assert_eq!(
            schedule.due(BEGIN),
            Due::At(START + Duration::from_nanos(3_000 * 3_333_333_333))
        );
        assert_eq!(schedule.rounds(), 3_000);
    }

    #[test]
    fn nonsense_is_refused() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let pace = Pace {
                speed,
                ..Pace::default()
            };
            assert!(matches!(
                Schedule::new(&pace, BEGIN, BEGIN, START),
                Err(PaceError::Speed { .. })
            ));
        }
        let pace = Pace {
            offset: Duration::from_secs(1),
            ..Pace::default()
        };
        assert!(matches!(
            Schedule::new(&pace, BEGIN, BEGIN, START),
            Err(PaceError::Offset { .. })
        ));
    }

    #[test]
    fn extreme_speeds_saturate() {
        let slow = Schedule::new(
            &Pace {
                speed: 1e-300,
                ..Pace::default()
            },
            Time::ZERO,
            Time::MAX,
            START,
        );
        assert_eq!(slow.expect("valid").due(Time::MAX), Due::At(Time::MAX));
        let fast = Schedule::new(
            &Pace {
                speed: 1e300,
                ..Pace::default()
            },
            Time::ZERO,
            Time::MAX,
            START,
        );
        assert_eq!(fast.expect("valid").due(Time::MAX), Due::At(START));
    }

    #[test]
    fn player_repeats_the_chosen_part() {
        let pace = Pace {
            offset: Duration::from_secs(1),
            duration: Some(Duration::from_secs(1)),
            repeat: true,
            ..Pace::default()
        };
        let s = 1_000_000_000;
        let recorded = messages(&[0, s, s + s / 2, 2 * s, 9 * s]);
        let player = Player::new(schedule(pace), || recorded.clone().into_iter());
        let due: Vec<u64> = player
            .take(7)
            .map(|item| item.expect("no errors").0.0 - START.0)
            .collect();
        assert_eq!(due, [0, s / 2, s, s, s + s / 2, 2 * s, 2 * s]);
    }

    #[test]
    fn player_ends_where_nothing_is_to_repeat() {
        let player = Player::new(
            schedule(Pace {
                repeat: true,
                ..Pace::default()
            }),
            || Vec::<Result<Message, ()>>::new().into_iter(),
        );
        assert_eq!(player.count(), 0);
        let recorded = messages(&[7]);
        let single = Schedule::new(
            &Pace {
                repeat: true,
                ..Pace::default()
            },
            at(7),
            at(7),
            START,
        );
        let player = Player::new(single.expect("valid"), || recorded.clone().into_iter());
        let due: Vec<Time> = player.take(2).map(|item| item.expect("no errors").0).collect();
        assert_eq!(due, [START, START + Schedule::SHORTEST_ROUND], "not a busy loop");
    }

    #[test]
    fn messages_outside_of_what_the_index_says_are_due() {
        let schedule = schedule(Pace::default());
        assert_eq!(schedule.due(Time(5)), Due::At(START), "older: at once");
        let late = at(20_000_000_000);
        assert_eq!(schedule.due(late), Due::At(START + Duration::from_secs(20)));
    }

    #[test]
    fn a_gap_is_played_as_the_longest_that_is_allowed_in_every_round() {
        let pace = Pace {
            longest_gap: Some(Duration::from_secs(1)),
            speed: 2.0,
            repeat: true,
            ..Pace::default()
        };
        let (s, years) = (1_000_000_000, 50 * 365 * 86_400 * 1_000_000_000);
        let recorded = messages(&[0, s / 2, years, years + s]);
        let player = Player::new(schedule(pace), || recorded.clone().into_iter());
        let due: Vec<u64> = (player.take(8))
            .map(|item| (item.expect("no errors").0.0 - START.0) * 2)
            .collect();
        let first = [0, s / 2, s / 2 + s, s / 2 + 2 * s];
        assert_eq!(due[..4], first);
        // The next round starts with the last message of the previous one.
        assert_eq!(due[4..], first.map(|at| at + s / 2 + 2 * s));
    }

    #[test]
    fn player_passes_errors_on_and_continues() {
        let recorded = || vec![Err("damaged"), Ok(messages(&[5]).remove(0).expect("message"))].into_iter();
        let results: Vec<_> = Player::new(schedule(Pace::default()), recorded).collect();
        assert_eq!(results.len(), 2);
        assert_eq!(results[0], Err("damaged"));
        assert!(results[1].is_ok());
    }
}
