//! What receipts show about the path to a peer.

use super::Policy;
use super::flight::Lesson;
use super::tuning::tuning;
use crate::peer::Peer;
use crate::share::Exchange;
use crate::wire::Receipt;
use core::time::Duration;
use stats::Time;

impl Peer {
    /// Airtime of a full datagram to it.
    pub(crate) fn full_air(&self) -> Duration {
        self.airtime.airtime(self.config.max_datagram, self.config.hops)
    }

    /// Airtime of a datagram from it with only a receipt.
    pub(crate) fn receipt_air(&self) -> Duration {
        self.airtime.airtime(tuning().receipt, self.config.hops)
    }

    /// Whether the peer recently had data to send, so that its receipts wait for their turn.
    pub(crate) fn receipts_wait(&self, now: Time) -> bool {
        self.rode.is_some_and(|t| now < t + tuning().rode)
    }

    /// Handles a receipt that came in a datagram of `len` bytes. Returns how far the pacer is ahead of the air. Where
    /// this host `defers` to others, whose messages need its device queue empty in time, this includes small amounts.
    pub(crate) fn receipt(
        &mut self,
        now: Time,
        policy: &dyn Policy,
        receipt: &Receipt,
        len: usize,
        defers: bool,
    ) -> Duration {
        let (airtime, hops) = (self.airtime, self.config.hops);
        self.receipts_ride = len > self.config.max_datagram / tuning().rides;
        if self.receipts_ride {
            self.rode = Some(now);
        }
        // It comes with data of the peer, and takes longer than a receipt alone.
        let expected = |n| airtime.airtime(n, hops) + airtime.airtime(len, hops);
        let full = self.full_air();
        let filled = 4 * self.flight.len() >= tuning().filled_quarters * policy.window(self, true);
        let lesson = self.flight.receipt(now, receipt, expected, full);
        if let Some(trip) = lesson.round_trip {
            policy.receipt_came(now, self, trip, lesson.asked, filled);
        }
        if self.share.probe == Some(receipt.newest) && lesson.round_trip.is_some() {
            self.share.met = Some(lesson.waited > full / tuning().met);
        }
        let held = Duration::from_micros(receipt.held);
        self.share.exchange = lesson.round_trip.map(|trip| Exchange {
            sent: now - trip.saturating_add(held),
            back: now,
            theirs: Time::ZERO,
            held,
            there: airtime.with_gain(1.0).airtime(lesson.asked, hops),
            here: Duration::ZERO,
        });
        if let Some(e) = &mut self.estimate {
            // A train shows the rate only if something waited for it.
            let lesson = Lesson {
                train: lesson.train.filter(|_| self.opening.fills_path()),
                ..lesson
            };
            if e.learn(lesson, self.flight.path_delay(full), self.flight.varies(), len) {
                self.flight.trust();
            }
            self.airtime = e.airtime().0;
        }
        let Some(ahead) = policy.ahead(self, full, lesson.queued, defers) else {
            return Duration::ZERO;
        };
        self.flight.corrected(now);
        ahead
    }

    /// Handles receipts that are late or never arrive.
    pub(crate) fn tick_flight(&mut self, now: Time) {
        self.flight.expire(now);
        if self.flight.doubts()
            && let Some(e) = &mut self.estimate
            && e.airtime().1
        {
            e.forget();
            self.airtime = e.airtime().0;
        }
    }
}
