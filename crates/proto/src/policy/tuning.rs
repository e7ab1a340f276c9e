//! The constants of the policy: what each means, its unit, and the decision that it comes from, which is 359 unless another
//! is named.
//!
//! Airtimes that depend on the rate are given in frames: the airtime of a full datagram. The example `sweep` measures
//! what each does: with its feature, a thread can run radios with other values.

use core::time::Duration;

macro_rules! tuning {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $value:expr,)*) => {
        /// The constants of the policy.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Tuning {
            $($(#[$doc])* pub(crate) $field: $kind,)*
        }

        impl Tuning {
            /// The values that radios use.
            pub const CHOSEN: Tuning = Tuning { $($field: $value,)* };

            /// The names of all constants.
            #[cfg(feature = "sweep")]
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// Returns these values with the constant `name` multiplied by `factor`, rounded up for counts, and what it
            /// is then; `None` if there is no such constant.
            #[cfg(feature = "sweep")]
            pub fn varied(mut self, name: &str, factor: f64) -> Option<(Tuning, String)> {
                match name {
                    $(stringify!($field) => {
                        self.$field = varied::Scaled::scaled(self.$field, factor);
                        Some((self, format!("{:?}", self.$field)))
                    })*
                    _ => None,
                }
            }
        }
    };
}

tuning! {
    // The pacer.
    /// Time; how late a caller may be without losing air. The next frame may then be early by as much and stand in the
    /// device queue: a tenth of a full frame at 6 Mbit/s.
    slot_lateness: Duration = Duration::from_micros(200),
    /// Time; what may stand in the device queue of a cable with a rate. On a fast one, slots are shorter than threads are
    /// punctual: several datagrams leave at one wake-up, and the cable is busy until the next. Where one datagram takes this
    /// long, or its time is unknown, only late datagrams leave at once.
    cable_queue: Duration = Duration::from_millis(1),
    /// Divides a frame; the part by which a round trip varies by chance, which the pacer does not make up for.
    chance: u32 = 4,
    /// The same if the device queue must be empty in time for others.
    chance_deferring: u32 = 30,
    /// Time; most that the pacer makes up for at once: the longest wait in a device queue as long as receipts arrive.
    largest_correction: Duration = Duration::from_millis(200),

    // Datagrams in flight.
    /// Datagrams; if less important ones fill the limit, it may be exceeded by this many.
    urgent: usize = 3,
    /// Bytes; at 6 Mbit/s, `SMALL_PER_FULL` datagrams of at most this length take the air of a full one.
    small: usize = 200,
    /// Small datagrams that count as a full one.
    small_per_full: usize = 4,
    /// Frames from which on a delay of a radio's path counts as the path's own.
    long_path: u32 = 10,
    /// Mean deviations by which the round trips of a cable vary without anything waiting (RFC 6298).
    cable_varies: u32 = 4,
    /// Time; the path's own delay is the least value seen in this span or the one before.
    path_span: Duration = Duration::from_secs(10),
    /// Time; datagrams handed over within this time of each other are in the device queue together.
    together: Duration = Duration::from_micros(100),
    /// Time; what may be in flight on a cable of known rate while receipts clock the sending.
    cable_in_flight: Duration = Duration::from_millis(4),
    /// Bytes of a datagram that fills a packet at an MTU of 1500.
    packet: usize = 1472,
    /// Gain over one hop.
    gain: f64 = 1.01,
    /// Gain over several hops of the medium's own: a relay contends with the sender.
    hops_gain: f64 = 1.05,
    /// Additional share of the airtime by which the pacer slows down for each Ropewalk relay on the path, which sends its
    /// own messages, too.
    relay_gain: f64 = 0.03,
    /// Bytes; a datagram with only control frames, where a host may transmit for a share of the time (decision 355).
    duty_control: usize = 48,
    /// Such datagrams, with the silence after each, between two that are sent again and again, so that most of the share
    /// is left for messages (decision 355).
    duty_rests: u32 = 12,
    /// Intervals of signs of life after which a silent peer is lost, and an incomplete message is given up (decision 355).
    duty_lost: u32 = 4,

    // Receipts.
    /// Bytes; approximate length of a datagram with only a receipt.
    receipt: usize = 24,
    /// Datagrams; while the pacer's estimate holds, one in this many asks for a receipt.
    sparse: usize = 10,
    /// The same where this host defers to others, whose messages need its device queue empty in time.
    sparse_deferring: usize = 7,
    /// The same where the path loses datagrams.
    sparse_lossy: usize = 4,
    /// Time; longest interval between asks while more datagrams wait.
    sparse_interval: Duration = Duration::from_millis(50),
    /// Datagrams; on a cable, this many of those in flight ask while receipts clock the sending.
    asks_in_flight: u32 = 4,
    /// Frames that contention may put ahead of a datagram that asks, or of its receipt, before the receipt is late.
    frames_ahead: u32 = 3,
    /// The same for a receipt that rides with data, which also waits for its turn.
    frames_ahead_of_data: u32 = 8,
    /// Divides a full datagram's length; receipts in longer datagrams ride with data.
    rides: usize = 4,
    /// Time; how long after a receipt that came with data further receipts may come with data.
    rode: Duration = Duration::from_millis(500),
    /// Receipts in a row that have to arrive in time before the pacer's estimate is trusted again.
    penalty: u32 = 12,
    /// Share of lost datagrams from which on the path counts as lossy.
    lossy_path: f64 = 0.03,
    /// Probability; how unlikely it must be that the path lost a whole row of receipts before silence means anything.
    by_chance: f64 = 0.01,
    /// Time; wait for a receipt beyond the variation of its round trip.
    patience: Duration = Duration::from_millis(5),
    /// Time; wait for the first receipt.
    first_patience: Duration = Duration::from_millis(100),
    /// Time; longest wait for a receipt.
    longest_patience: Duration = Duration::from_secs(5),
    /// Divides a frame; after asking for a receipt, the next fragment waits beyond its slot for this part, in case the peer
    /// was late to read the request: otherwise the two collide.
    listening: u32 = 4,
    /// Divides a frame; a datagram that waited longer than this part waited for other traffic.
    met: u32 = 8,

    // The wider limit of a cable without a rate.
    /// Time; as long as a recent receipt came within this, the data on its way delays little: a slower receipt waited for a
    /// busy host, not behind a standing queue. It is also how long an urgent message waits when there was none lately.
    breadth_short: Duration = Duration::from_millis(3),
    /// Time; recent means in this interval, or in the one before.
    breadth_interval: Duration = Duration::from_millis(25),
    /// Datagrams by which a receipt moves the limit.
    breadth_step: usize = 8,
    /// Datagrams above which a cable gains nothing.
    breadth_most: usize = 1024,
    /// Quarters of the limit from which on it counts as used up.
    filled_quarters: usize = 3,
    /// Time; messages sent in this span or the one before count as recent.
    lately: Duration = Duration::from_secs(1),

    // The limit while the rate is unknown.

    /// Receipts that make a round.
    opening_receipts: usize = 8,
    /// Mean deviations by which the shortest round trip of a round may exceed the shortest of all on a long path,
    /// although nothing waits.
    opening_varies: u32 = 2,
    /// Datagrams in a queue below which the limit grows.
    opening_least: f64 = 0.5,
    /// Datagrams in a queue above which it shrinks.
    opening_most: f64 = 2.0,

    // The estimate of a rate.
    /// Samples that are remembered.
    estimate_samples: usize = 16,
    /// Samples that make an estimate.
    estimate_enough: usize = 8,
    /// Datagrams of a train that make a sample.
    train: usize = 8,
    /// Mean deviations of a round trip that a train takes at least.
    train_varies: u32 = 4,
    /// Share of the service time within which the middle half of the samples must lie.
    estimate_spread: f64 = 0.25,
    /// Share of the estimate; a round trip below it contradicts the estimate.
    estimate_faster: f64 = 0.7,
    /// Contradictions in a row that end the estimate; the new guess is the least rate that all of them allow.
    contradictions: u32 = 3,
    /// Factor; the estimated rate grows at most by the inverse of this at once.
    estimate_least: f64 = 0.1,
    /// Gain over an estimate, which is off by a percent or so, where no gain is set.
    estimate_gain: f64 = 1.03,
    /// Gain of the estimate by trains over several hops: they include collisions, which a paced sender has hardly any of.
    trains_gain: f64 = 0.97,

    // Foreseen messages.
    /// Arrivals of a topic that are remembered.
    rhythm_arrivals: usize = 12,
    /// Arrivals; fewer do not make a rhythm.
    rhythm_enough: usize = 6,
    /// Time; a source that strays further from its rhythm than this, or than an eighth of its period, has none worth
    /// waiting for.
    rhythm_spread: Duration = Duration::from_micros(1500),
    /// Time; how much later than its spread a message is still waited for.
    rhythm_grace: Duration = Duration::from_micros(100),
    /// Messages; after this many missing ones the source has stopped.
    rhythm_misses: u32 = 2,

    // Room for foreseen messages.
    /// Time; how long before a foreseen message the air has to be free: the back-off of the frame before it varies by this
    /// much.
    early: Duration = Duration::from_micros(100),
    /// Time; the air is freed earlier by this much for another host's message than for our own: the sender cannot know what
    /// collided here and still waits in this host's device queue.
    earlier: Duration = Duration::from_micros(300),
    /// Time for each hop; if less air is left before a foreseen message, nothing is sent: a frame costs half of this when
    /// empty.
    worth_cutting: Duration = Duration::from_micros(600),
    /// Time; sources with a shorter period are not waited for, nor those with one below a frame.
    least_waited_for: Duration = Duration::from_micros(2400),
    /// Bytes; least part of a message that justifies a frame.
    least_cut: usize = 32,
    /// Bytes; with less room, no message begins behind another, because its header would be sent again with the rest
    /// (decision 022).
    least_begun: usize = 128,
    /// Frames that may go between a receipt and a foreseen message of another host: within this many, the receipt shows
    /// what it met on the air, and the pacer makes up for it.
    settling: u32 = 3,
    /// Frames; control frames do not wait for a foreseen message that takes as long.
    frames_control_waits: u32 = 2,

    // Air that is left to others.
    /// Divides a frame; a host that defers to others leaves this part of the air free after each of its frames. With the
    /// mean back-off before the next frame, that is the longest that another host's first back-off takes at 6 Mbit/s; so
    /// the waiting host goes first, and the device queue drains.
    deference_gap: u32 = 22,
    /// The same where the time is not foreseen: no fragment is cut for that message, and datagrams handed over while it is
    /// in the air wait behind it in the device queue, in the way of its answer.
    deference_gap_at_any_time: u32 = 10,
    /// Quarters of a full datagram; longest fragment while others may send something more important at any time.
    deferring_quarters: usize = 3,
    /// Frames; a host claims nothing if this many can hold what waits.
    soon: u32 = 2,
    /// Time; how late a caller may be without losing its share of the air, as with the pacer's slots.
    share_lateness: Duration = Duration::from_millis(1),
    /// Time; how long after a message of others more like it may follow.
    more_comes: Duration = Duration::from_millis(200),
    /// Time after which use of the air counts less by a factor of e.
    used_span: Duration = Duration::from_millis(200),
    /// Share of the air; the rest above it is receipts, collisions, and unused turns.
    used_full: f64 = 0.92,

    // Claims and rhythms of other hosts.
    /// Time; interval at which claims are sent to a peer while there are any.
    claims_every: Duration = Duration::from_millis(20),
    /// Time; interval at which rhythms are sent to a peer.
    rhythms_every: Duration = Duration::from_millis(100),
    /// Time after which a claim that was not renewed no longer counts.
    claim_expiry: Duration = Duration::from_millis(200),
    /// Time; how much longer than its claimed air a host is expected to take.
    claim_slack: Duration = Duration::from_millis(5),
    /// Time; where the air is full, how long a host's equals expect it to soon have more.
    claim_slack_where_full: Duration = Duration::from_millis(40),
    /// Time; how long a rhythm stays valid, longer than a claim.
    rhythm_expiry: Duration = Duration::from_millis(600),
    /// Time; another host's source with a shorter period is not waited for, nor one that takes more than half of the air.
    reported_period: Duration = Duration::from_millis(5),
    /// Time; nor one that strays further, or by a quarter of its period.
    reported_spread: Duration = Duration::from_micros(2500),
    /// Time; nor where the clocks are less certain.
    reported_doubt: Duration = Duration::from_millis(1),
    /// Time; least that a message takes the air, back-off included.
    begun: Duration = Duration::from_micros(250),
    /// Time over which a host's claims are compared with what is heard from it.
    kept_span: Duration = Duration::from_secs(2),
    /// Share of the air that a host gets at least while it claims it: half of the least share that all leave it by default.
    least_of_claimed: f64 = 0.05,
    /// Part; a host that is heard to send less than this part of its claimed airtime does not keep its word. The part is
    /// below 1 because some datagrams are lost, or addressed to others.
    kept_part: f64 = 0.125,
    /// Share of the air; less counts as nothing.
    least_heard: f64 = 0.0005,
    /// Datagrams in a row without a wait that show that the air is free. Next to one host that fills it, three in four
    /// datagrams and more have to wait.
    found_free: u32 = 16,
    /// Time; how long the claims of hosts that are not heard are then disbelieved; it doubles each time this is found again.
    disbelief: Duration = Duration::from_secs(5),
    /// Time; longest such time.
    longest_disbelief: Duration = Duration::from_secs(20),
}

/// The constants of this radio.
#[cfg(not(feature = "sweep"))]
pub(crate) const fn tuning() -> &'static Tuning {
    &Tuning::CHOSEN
}

#[cfg(feature = "sweep")]
pub(crate) use varied::tuning;

#[cfg(feature = "sweep")]
pub(crate) mod varied {
    //! Other values, for the example `sweep`.

    use super::Tuning;
    use core::cell::Cell;
    use core::time::Duration;

    thread_local! {
        static VALUES: Cell<&'static Tuning> = const { Cell::new(&Tuning::CHOSEN) };
    }

    pub(crate) fn tuning() -> &'static Tuning {
        VALUES.get()
    }

    impl Tuning {
        /// Lets the radios of this thread use these values from now on.
        pub fn apply(&'static self) {
            VALUES.set(self);
        }
    }

    /// A value that a factor changes.
    pub(super) trait Scaled {
        fn scaled(self, factor: f64) -> Self;
    }

    impl Scaled for Duration {
        fn scaled(self, factor: f64) -> Self {
            self.mul_f64(factor)
        }
    }

    impl Scaled for f64 {
        fn scaled(self, factor: f64) -> Self {
            self * factor
        }
    }

    impl Scaled for u32 {
        fn scaled(self, factor: f64) -> Self {
            (f64::from(self) * factor).ceil() as u32
        }
    }

    impl Scaled for usize {
        fn scaled(self, factor: f64) -> Self {
            (self as f64 * factor).ceil() as usize
        }
    }
}
