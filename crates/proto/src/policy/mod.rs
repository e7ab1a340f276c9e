//! When the next datagram goes, how large it is, to whom, and when its receipt is due (decision 359).
//!
//! The radio asks one [`Policy`], which [`choose`] selects once for its kind of medium. No other module knows kinds of
//! media. The policies share these tools: the [`Pacer`] spaces datagrams, [`Flight`] and [`Breadth`] limit how many are
//! on their way, and [`Estimate`] learns a rate that nobody set.

mod air;
mod breadth;
mod cable;
mod duty;
mod estimate;
mod flight;
mod known;
mod opening;
mod pacer;
mod path;
mod receipts;
mod recent;
pub(crate) mod tuning;

pub(crate) use air::{Air, Whose};
pub(crate) use breadth::Breadth;
pub(crate) use estimate::Estimate;
pub(crate) use flight::{Entry, Flight, is_within};
pub(crate) use opening::Opening;
pub(crate) use pacer::{CONTROL, Pacer};
pub(crate) use recent::Recent;

use crate::airtime::AirtimeModel;
use crate::config::{PeerConfig, RadioConfig};
use crate::peer::Peer;
use crate::send::Foreseen;
use crate::statistics::RateSource;
use cable::{Rated, Unrated};
use core::fmt::Debug;
use core::time::Duration;
use duty::Duty;
use known::Known;
use receipts::Receipts;
use stats::Time;
use tuning::tuning;

/// The policy for the medium that `config` describes.
pub(crate) fn choose(config: &RadioConfig) -> Box<dyn Policy> {
    if config.unrated_cable {
        return Box::new(Unrated::new(config));
    }
    if config.duty < 1.0 {
        return Box::new(Duty::new(config));
    }
    let rated: Box<dyn Policy> = match config.airtime.is_cable() {
        true => Box::new(Rated::new(config)),
        false => Box::new(Known::new(config)),
    };
    match config.auto_rate {
        true => Box::new(Receipts::new(rated, config.in_flight)),
        false => rated,
    }
}

/// What a radio asks before it sends. The answers given here are those for a medium of known rate on which nobody
/// contends.
pub(crate) trait Policy: Debug + Send + Sync {
    /// The pacer of a radio.
    fn pacer(&self) -> Pacer;

    /// The limit of datagrams in flight to a new peer.
    fn flight(&self) -> Flight;

    /// The estimate of the rate to a new peer, where it has to be learned; `guess` is used until then.
    fn estimate(&self, _peer: &PeerConfig, _guess: AirtimeModel) -> Option<Estimate> {
        None
    }

    /// Whether hosts contend for the medium, so that they announce what they wait for and yield to each other.
    fn is_shared(&self) -> bool {
        false
    }

    /// Where the rate to a peer comes from.
    fn rate_source(&self, _peer: &Peer) -> RateSource {
        RateSource::Set
    }

    /// Whether receipts alone say when the next datagram to a peer goes, because the rate is unknown.
    fn is_clocked(&self, _peer: &Peer) -> bool {
        false
    }

    /// How long to wait after a datagram to a peer that takes `air`, if other hosts also get `pause`.
    fn slot(&self, peer: &Peer, air: Duration, pause: Duration) -> Duration {
        match self.is_clocked(peer) {
            true => Duration::ZERO,
            false => air + pause,
        }
    }

    /// How long beyond its slot a fragment to a peer waits for the receipt that is due, if it does. `alone`: nobody
    /// relays here.
    fn listens(&self, _peer: &Peer, _alone: bool) -> Option<Duration> {
        None
    }

    /// How many datagrams may be in flight to a peer. `alone`: nothing more important than what follows was sent
    /// lately.
    fn window(&self, peer: &Peer, alone: bool) -> usize {
        let limit = peer.flight.window(self.is_clocked(peer), self.service(peer));
        limit + self.opened(peer, alone)
    }

    /// Datagrams of these beyond what the limit itself allows.
    fn opened(&self, _peer: &Peer, _alone: bool) -> usize {
        0
    }

    /// How long a full datagram to a peer takes, where its delay shows how many the path holds; otherwise zero.
    fn service(&self, peer: &Peer) -> Duration {
        peer.full_air()
    }

    /// Whether the limit holds for all such peers together, because their datagrams stand in one device queue.
    fn is_queue_common(&self, peer: &Peer) -> bool {
        self.is_clocked(peer)
    }

    /// Whether fragments to a peer make room for foreseen messages.
    fn makes_room(&self, peer: &Peer) -> bool {
        !self.is_clocked(peer)
    }

    /// How a fragment to a peer makes room for a foreseen message: if it would still be in the air, it is cut to end
    /// before, or waits until the message has come if little would fit.
    fn make_room(&self, now: Time, peer: &Peer, fragment: &Fragment, foreseen: Foreseen) -> Room {
        // Ropewalk relays make room themselves.
        let hops = peer.config.hops;
        let budget = foreseen.from.since(now);
        let air = peer.airtime.airtime(fragment.max.min(fragment.whole), hops);
        let full = peer.full_air();
        // So fast a source would leave hardly any air between its messages.
        let quick = full.max(tuning().least_waited_for);
        if air <= budget || foreseen.period < quick {
            return Room::Within(fragment.max);
        }
        // A message of one datagram would wait longer than it makes the foreseen one wait at worst.
        let is_short = fragment.whole < fragment.max && fragment.begins;
        if is_short && foreseen.until.since(foreseen.from) > air {
            return Room::Within(fragment.max);
        }
        match peer.airtime.longest(budget, hops, fragment.max) {
            Some(n) if n >= fragment.least && budget >= tuning().worth_cutting * hops => Room::Within(n),
            _ => Room::Wait(foreseen.until),
        }
    }

    /// Longest datagram, where `max` is allowed, while others may send something more important at any time.
    fn longest(&self, max: usize) -> usize {
        max
    }

    /// Air that is left free after a datagram to a peer, for what others have.
    fn gap(&self, _peer: &Peer, _others: Others) -> Duration {
        Duration::ZERO
    }

    /// How long others have to leave the air free from now on, so that a datagram of `max` bytes over `hops` can ask a
    /// peer for a receipt.
    fn exchange(&self, peer: &Peer, max: usize, hops: u32) -> Duration {
        let air = |bytes| peer.airtime.airtime(bytes, hops);
        let settling = match peer.flight.is_overdue() {
            true => Duration::ZERO,
            false => air(peer.config.max_datagram) * tuning().settling,
        };
        air(max) + air(tuning().receipt) + settling
    }

    /// Whether control frames to a peer wait for a foreseen message of another host that they would delay: they do not
    /// wait for long messages.
    fn control_waits(&self, peer: &Peer, foreseen: &Foreseen) -> bool {
        foreseen.until.since(foreseen.from) < peer.full_air() * tuning().frames_control_waits
    }

    /// Whether all datagrams should be full, not only those of short messages.
    fn fills_all(&self) -> bool {
        false
    }

    /// Whether the next datagram to a peer may ask for a receipt. `calm`: there is time for one.
    fn may_ask(&self, peer: &Peer, calm: bool) -> bool {
        calm || self.is_clocked(peer) || peer.flight.doubts()
    }

    /// Whether it should ask, if it may and `window` datagrams may be in flight. `defers`: this host defers to more
    /// important hosts.
    fn should_ask(&self, now: Time, peer: &Peer, defers: bool, window: usize) -> bool {
        peer.flight.should_ask(now, self.is_clocked(peer), defers, window)
    }

    /// Air that a receipt of a peer takes in addition to the datagram that asks for it.
    fn receipt_air(&self, _peer: &Peer) -> Duration {
        Duration::ZERO
    }

    /// When the receipt for a datagram over `hops` is late, if the air is free for it from `start` on.
    fn late_at(&self, now: Time, peer: &Peer, start: Time, hops: u32) -> Time {
        let model = peer.airtime;
        if self.is_clocked(peer) || model.rate_bits == 0 {
            return Time::MAX;
        }
        let ahead = match peer.receipts_wait(now) {
            true => tuning().frames_ahead_of_data,
            false => tuning().frames_ahead,
        };
        let full = model.airtime(peer.config.max_datagram, hops);
        start + full * ahead + model.airtime(tuning().receipt, peer.config.hops) * 2
    }

    /// How far the pacer is ahead of the air, after a receipt has shown that a datagram waited for `queued`. `full`:
    /// airtime of a full one. `defers`: this host's device queue has to be empty in time for others.
    fn ahead(&self, peer: &Peer, full: Duration, queued: Duration, defers: bool) -> Option<Duration> {
        // Part of a frame's airtime may be contention, and over relays that part is larger. A pacer without an estimate
        // has nothing to correct.
        let chance = match defers {
            true => full / tuning().chance_deferring,
            false => full / tuning().chance,
        };
        let corrects = !self.is_clocked(peer) && !full.is_zero() && queued >= chance;
        corrects.then(|| ((queued - chance) / peer.config.hops).min(tuning().largest_correction))
    }

    /// Least interval of what a host sends again and again: greetings, signs of life, reports. It takes a peer for lost
    /// after several of them.
    fn least_interval(&self) -> Duration {
        Duration::ZERO
    }

    /// A receipt of a peer came after `round_trip`; `filled`: the limit was about used up.
    fn receipt_came(
        &self,
        _now: Time,
        _peer: &mut Peer,
        _round_trip: Duration,
        _asked: usize,
        _filled: bool,
    ) {
    }
}

/// What other hosts have that is more important than a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// A claim, or a message that is foreseen.
    Foreseen,
    /// Messages that may come at any time.
    AtAnyTime,
}

/// The next fragment of a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    /// Most bytes that its datagram may have.
    pub(crate) max: usize,
    /// Bytes of a datagram with all that is left of the message.
    pub(crate) whole: usize,
    /// Fewest bytes of a datagram that is worth sending.
    pub(crate) least: usize,
    /// Whether its message begins with it.
    pub(crate) begins: bool,
}

/// How a fragment makes room for a foreseen message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// In a datagram of at most this many bytes.
    Within(usize),
    /// By waiting until then.
    Wait(Time),
}

#[cfg(test)]
mod tests;
