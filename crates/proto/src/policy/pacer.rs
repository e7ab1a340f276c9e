//! When the next datagram may be sent.

use super::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Spaces datagrams by their airtime, so that the device queue stays about empty.
///
/// Unused time earns no credit: after a pause one datagram goes at once, and the next one an airtime later. But where
/// something waited for its slot and the caller came a little late, as any thread does, the slots after it stay where
/// they were: otherwise every late wake-up would waste air. Alongside it, the in-flight limit bounds the data on its
/// way, and its receipts correct the pacer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    next: Time,
    /// Whether something waited for `next`.
    awaited: bool,
    /// Importance of the datagram handed over last.
    in_air: u8,
    /// Whether a relay forwards it.
    forwarded: bool,
    lateness: Duration,
    /// How long before its slot a datagram may be sent.
    early: Duration,
}

/// Importance of control frames: above every topic.
pub(crate) const CONTROL: u8 = 128;

impl Pacer {
    /// Creates a pacer for a radio.
    pub(crate) fn new() -> Self {
        Pacer {
            lateness: tuning().slot_lateness,
            early: Duration::ZERO,
            next: Time::ZERO,
            awaited: false,
            in_air: 0,
            forwarded: false,
        }
    }

    /// Creates a pacer that makes up for no lateness.
    pub(crate) fn strict() -> Self {
        Pacer {
            lateness: Duration::ZERO,
            ..Self::new()
        }
    }

    /// Creates a pacer for a cable; `full` is how long its longest datagram takes, if known.
    pub(crate) fn of_cable(full: Option<Duration>) -> Self {
        let early = full.map_or(Duration::ZERO, |f| tuning().cable_queue.saturating_sub(f));
        Pacer {
            lateness: (tuning().cable_queue - early).max(tuning().slot_lateness),
            early,
            ..Self::new()
        }
    }

    /// When the air becomes free, by the pacer's accounting.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Whether a datagram may be handed over: the air is free, or will be soon enough.
    pub(crate) fn is_free(&self, now: Time) -> bool {
        now + self.early >= self.next
    }

    /// Whether a datagram of this priority may skip the pacer. It is charged afterwards, so at most one datagram of
    /// each priority waits in the device queue behind the frame being sent.
    ///
    /// Not while a relay still forwards the last datagram: the two would contend, and their collisions cost more than
    /// waiting (at two hops a fifth of them remain, `docs/decisions/359-the-air.md`).
    pub(crate) fn is_urgent(&self, importance: u8) -> bool {
        importance > self.in_air && !self.forwarded
    }

    /// When the medium starts on a datagram that is handed over now.
    pub(crate) fn starts(&self, now: Time) -> Time {
        match self.early.is_zero() {
            true => now,
            false => self.next.max(now),
        }
    }

    /// Something waits for the air: returns when its turn comes, or the turn of several on a cable.
    pub(crate) fn await_turn(&mut self) -> Time {
        self.awaited = true;
        self.next - self.early / 2
    }

    /// A datagram handed over late still leaves the next one its pause.
    pub(crate) fn forfeit(&mut self) {
        self.awaited = false;
    }

    /// The datagrams handed over leave this much later than computed.
    pub(crate) fn delay(&mut self, by: Duration) {
        self.next += by;
    }

    /// Another host had the air for `air`, until now.
    pub(crate) fn taken(&mut self, now: Time, air: Duration) {
        if !self.is_free(now) {
            self.next += air;
        }
    }

    /// Charges a datagram that was handed over.
    pub(crate) fn charge(&mut self, now: Time, importance: u8, hops: u32, airtime: Duration) {
        let due = if self.awaited { now - self.lateness } else { now };
        self.next = self.next.max(due) + airtime;
        self.awaited = false;
        self.in_air = importance;
        self.forwarded = hops > 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_earns_no_burst_and_urgency_is_charged() {
        let ms = Duration::from_millis;
        let mut p = Pacer::new();
        let t = Time::from_millis(100);
        assert!(p.is_free(t));
        p.charge(t, 10, 1, ms(2));
        assert!(!p.is_free(t + ms(1)) && p.is_free(t + ms(2)));
        assert!(!p.is_urgent(10) && p.is_urgent(11));
        p.charge(t + ms(1), 90, 1, ms(3));
        assert_eq!(p.next(), t + ms(5), "the urgent one goes ahead, not for free");
        assert!(!p.is_urgent(90) && p.is_urgent(CONTROL));
        p.charge(t + ms(5), 90, 2, ms(3));
        assert!(!p.is_urgent(CONTROL), "a relay forwards it still");
    }

    #[test]
    fn a_little_lateness_costs_no_air_and_much_is_not_made_up_for() {
        let ms = Duration::from_millis;
        let mut p = Pacer::new();
        let t = Time::from_millis(100);
        p.charge(t, 10, 1, ms(2));
        assert_eq!(p.await_turn(), t + ms(2));
        p.charge(t + ms(2) + tuning().slot_lateness / 2, 10, 1, ms(2));
        assert_eq!(p.next(), t + ms(4));
        p.await_turn();
        p.charge(t + ms(50), 10, 1, ms(2));
        assert_eq!(p.next(), t + ms(52) - tuning().slot_lateness);
        p.charge(t + ms(60), 10, 1, ms(2));
        assert_eq!(p.next(), t + ms(62), "nothing waited");
        let mut cable = Pacer::of_cable(None);
        cable.charge(t, 10, 1, ms(2) / 20);
        cable.await_turn();
        cable.charge(t + ms(1), 10, 1, ms(2) / 20);
        assert_eq!(
            cable.next(),
            t + ms(4) / 20,
            "a cable's slots stay where they were"
        );
    }

    #[test]
    fn a_quick_cable_takes_several_at_one_wake_up() {
        let us = Duration::from_micros;
        let start = Time::from_millis(100);
        let mut cable = Pacer::of_cable(Some(us(120)));
        let burst = |cable: &mut Pacer, now| {
            let mut sent = 0;
            while cable.is_free(now) {
                cable.charge(now, 10, 1, us(120));
                sent += 1;
            }
            sent
        };
        // A millisecond of the cable, plus the one datagram that starts it.
        assert_eq!(burst(&mut cable, start), 8);
        assert_eq!(cable.next(), start + us(960));
        let wake = cable.await_turn();
        assert_eq!(wake, start + us(520), "while the cable is busy");
        assert_eq!(burst(&mut cable, wake), 4);
        let long = us(1_300);
        let mut slow = Pacer::of_cable(Some(long));
        slow.charge(start, 10, 1, long);
        assert!(!slow.is_free(start + us(1_299)) && slow.is_free(start + long));
        assert_eq!(slow.await_turn(), start + long);
    }
}
