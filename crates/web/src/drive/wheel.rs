//! Decides when the controls held on a page move the robot (decision 350). No I/O, no clock.
//!
//! A page sends the held controls every 50 ms, and one zero after all are released. The robot stops when no message has
//! arrived for [`SILENCE`], or when messages arrive late, whether the cause is a hidden tab, a stalled connection or a
//! stopped browser. Afterwards the operator has to let go before the page moves the robot again.

use super::request::Moved;
use std::time::Duration;

/// If no message of a page that moves the robot arrives for this long, the robot stops. A page's timers are late by
/// some tens of ms.
pub(super) const SILENCE: Duration = Duration::from_millis(250);
/// A message that is later than the fastest one by this much moves nothing.
pub(super) const LATE: Duration = Duration::from_millis(300);
/// A page whose messages have been late for this long has to connect again.
pub(super) const HOPELESS: Duration = Duration::from_secs(2);
/// A robot that should move but has executed no command for this long and for two round trips is about to stop by its
/// own clock, after 500 ms. The operator has to let go before it moves again.
pub(super) const UNANSWERED: Duration = Duration::from_millis(400);
/// Messages that follow sooner than this are dropped, unless they stop the robot.
const SOONEST: Duration = Duration::from_millis(10);

/// State of one page.
#[derive(Debug, Default)]
pub(super) struct Wheel {
    /// The least difference between this clock and the page's, in ms.
    offset: Option<f64>,
    /// The last message that moved the robot, while it moves.
    moving: Option<Duration>,
    /// When it last moved the robot, and when it last stopped it.
    sent: Option<Duration>,
    stood: Option<Duration>,
    /// When the robot last executed a twist, or should have begun to.
    answered: Duration,
    late_since: Option<Duration>,
    /// Held controls count only after a zero.
    must_let_go: bool,
}

/// What to do with a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// Send this to the robot: shares of the highest speed and turn.
    Send(f64, f64),
    /// Send zero, and tell the page why.
    Halt(String),
    /// Nothing.
    Ignore,
    /// Disconnect the page.
    Hopeless,
}

impl Wheel {
    /// A message came.
    pub(super) fn moved(&mut self, moved: Moved, now: Duration) -> Turn {
        let difference = now.as_secs_f64() * 1e3 - moved.t;
        let offset = self.offset.map_or(difference, |offset| offset.min(difference));
        self.offset = Some(offset);
        let late = difference - offset;
        let is_zero = moved.forward == 0.0 && moved.turn == 0.0;
        if late > LATE.as_secs_f64() * 1e3 {
            let since = *self.late_since.get_or_insert(now);
            if now.saturating_sub(since) > HOPELESS {
                return Turn::Hopeless;
            }
            // Even late, it lets go.
            self.must_let_go |= !is_zero;
            return match self.moving.take() {
                Some(_) => Turn::Halt(format!("messages of this page arrive {late:.0} ms late")),
                None => Turn::Ignore,
            };
        }
        self.late_since = None;
        if is_zero {
            self.must_let_go = false;
            if self.moving.take().is_none() && is_soon(self.stood, now) {
                return Turn::Ignore;
            }
            self.stood = Some(now);
            return Turn::Send(0.0, 0.0);
        }
        if self.must_let_go {
            return Turn::Ignore;
        }
        if self.moving.replace(now).is_none() {
            self.answered = now;
        }
        if is_soon(self.sent, now) {
            return Turn::Ignore;
        }
        self.sent = Some(now);
        Turn::Send(moved.forward, moved.turn)
    }

    /// The robot executed a twist.
    pub(super) fn executed(&mut self, now: Duration) {
        self.answered = now;
    }

    /// Time passed. Returns why the robot has to stop.
    pub(super) fn passed(&mut self, now: Duration, round_trip: Option<Duration>) -> Option<String> {
        let silent = now.saturating_sub(self.moving?);
        let unanswered = now.saturating_sub(self.answered);
        let patience = UNANSWERED.max(round_trip.unwrap_or_default() * 2 + SILENCE);
        let reason = if silent > SILENCE {
            format!(
                "no message has arrived from this page for {} ms",
                silent.as_millis()
            )
        } else if unanswered > patience {
            format!("the robot has not answered for {} ms", unanswered.as_millis())
        } else {
            return None;
        };
        self.halt();
        Some(reason)
    }

    /// Whether it moves the robot.
    pub(super) fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// An operator stops the robot: held controls count only after a zero. Returns whether it moved.
    pub(super) fn halt(&mut self) -> bool {
        self.must_let_go = true;
        self.moving.take().is_some()
    }
}

fn is_soon(last: Option<Duration>, now: Duration) -> bool {
    last.is_some_and(|last| now.saturating_sub(last) < SOONEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// A message sent at `t` of the page's clock.
    fn at(t: u64, forward: f64) -> Moved {
        Moved {
            n: t,
            t: t as f64,
            forward,
            turn: 0.0,
        }
    }

    #[test]
    fn a_pressed_control_moves_until_it_is_released() {
        let mut wheel = Wheel::default();
        for t in (0..1000).step_by(50) {
            assert_eq!(
                wheel.moved(at(t, 1.0), ms(7000 + t + t % 3)),
                Turn::Send(1.0, 0.0)
            );
            wheel.executed(ms(7000 + t + 10));
            assert_eq!(wheel.passed(ms(7000 + t + 49), None), None);
        }
        assert_eq!(wheel.moved(at(1000, 0.0), ms(8000)), Turn::Send(0.0, 0.0));
        assert_eq!(wheel.passed(ms(20_000), None), None, "it stands");
    }

    #[test]
    fn a_silent_page_stops_the_robot_and_has_to_let_go() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.moved(at(0, 1.0), ms(0)), Turn::Send(1.0, 0.0));
        assert_eq!(wheel.passed(ms(250), None), None);
        assert!(wheel.passed(ms(251), None).is_some());
        assert_eq!(wheel.passed(ms(300), None), None, "once");
        assert_eq!(wheel.moved(at(310, 1.0), ms(310)), Turn::Ignore);
        assert_eq!(wheel.moved(at(360, 0.0), ms(360)), Turn::Send(0.0, 0.0));
        assert_eq!(wheel.moved(at(400, 0.5), ms(400)), Turn::Send(0.5, 0.0));
    }

    #[test]
    fn a_robot_that_does_not_answer_moves_again_only_after_letting_go() {
        for (round_trip, until) in [(None, 400), (Some(ms(1000)), 2250)] {
            let mut wheel = Wheel::default();
            for t in (0..=until).step_by(50) {
                assert_eq!(wheel.moved(at(t, 1.0), ms(t)), Turn::Send(1.0, 0.0));
                assert_eq!(wheel.passed(ms(t), round_trip), None, "{t}");
            }
            assert!(wheel.passed(ms(until + 1), round_trip).is_some());
            assert_eq!(wheel.moved(at(until + 50, 1.0), ms(until + 50)), Turn::Ignore);
        }
    }

    #[test]
    fn a_flood_of_old_messages_moves_nothing() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.moved(at(0, 1.0), ms(5)), Turn::Send(1.0, 0.0));
        assert!(wheel.passed(ms(260), None).is_some());
        // The connection stalls, and the page's messages then arrive all at once.
        for t in (50..700).step_by(50) {
            assert_eq!(wheel.moved(at(t, 1.0), ms(1100)), Turn::Ignore, "{t}");
        }
        // Those that are not late any more count only after a zero.
        assert_eq!(wheel.moved(at(1050, 1.0), ms(1101)), Turn::Ignore);
        assert_eq!(wheel.moved(at(1090, 0.0), ms(1102)), Turn::Send(0.0, 0.0));
        assert_eq!(wheel.moved(at(1150, 1.0), ms(1160)), Turn::Send(1.0, 0.0));
    }

    #[test]
    fn a_page_that_stays_late_has_to_reconnect() {
        let mut wheel = Wheel::default();
        assert_eq!(wheel.moved(at(0, 0.0), ms(0)), Turn::Send(0.0, 0.0));
        assert_eq!(wheel.moved(at(1000, 1.0), ms(1000)), Turn::Send(1.0, 0.0));
        assert!(matches!(wheel.moved(at(1050, 1.0), ms(1400)), Turn::Halt(_)));
        assert_eq!(wheel.moved(at(3000, 1.0), ms(3400)), Turn::Ignore);
        assert_eq!(wheel.moved(at(3050, 1.0), ms(3450)), Turn::Hopeless);
    }

    #[test]
    fn a_flood_is_thinned_but_its_zero_counts() {
        let mut wheel = Wheel::default();
        let sent = (0..100).filter(|t| wheel.moved(at(*t, 1.0), ms(*t)) == Turn::Send(1.0, 0.0));
        assert_eq!(sent.count(), 10);
        assert_eq!(wheel.moved(at(100, 0.0), ms(100)), Turn::Send(0.0, 0.0));
        let zeros = (101..200).filter(|t| wheel.moved(at(*t, 0.0), ms(*t)) == Turn::Send(0.0, 0.0));
        assert_eq!(zeros.count(), 9);
    }

    #[test]
    fn stop_holds_until_the_page_lets_go() {
        let mut wheel = Wheel::default();
        assert!(!wheel.halt());
        assert_eq!(wheel.moved(at(0, 1.0), ms(0)), Turn::Ignore);
        assert_eq!(wheel.moved(at(20, 0.0), ms(20)), Turn::Send(0.0, 0.0));
        assert_eq!(wheel.moved(at(40, 1.0), ms(40)), Turn::Send(1.0, 0.0));
        assert!(wheel.halt());
    }
}
