//! Settings of a medium.

use crate::delay::Path;
use crate::edca::Access;
use crate::loss::Loss;
use crate::phy::{RateError, Standard};
use crate::topology::{Hearing, Topology};
use core::time::Duration;
use stats::Time;
use std::collections::BTreeMap;

/// The settings of a [`crate::Medium`]; start from [`MediumConfig::chain`].
///
/// All times in schedules count from `start`.
#[derive(Clone, Debug)]
pub struct MediumConfig {
    /// Flavour of 802.11.
    pub standard: Standard,
    /// Rate of every host, in bit/s, unless `host_rates` or a link overrides it.
    pub rate_bits: u64,
    /// Rates that acknowledgements may use, in bit/s; empty for [`Standard::basic_rates`].
    pub basic_rates: Vec<u64>,
    /// Number of hosts, numbered from 0; a chain of `n` hops has `n + 1`.
    pub hosts: usize,
    /// Which hosts can decode each other.
    pub topology: Topology,
    /// Which hosts hear (and disturb) each other.
    pub hearing: Hearing,
    /// One queue per host, or one per access category.
    pub access: Access,
    /// Length of each device queue in frames, including the one in the air.
    pub queue_frames: usize,
    /// Loss of frames on every link, which the MAC repairs by retries.
    pub loss: Loss,
    /// Impairments of packets after the air, on every link; nothing repairs them.
    pub path: Path,
    /// How rate and loss of the whole medium change over time.
    pub quality: Vec<(Duration, Quality)>,
    /// Rates of single hosts, in bit/s.
    pub host_rates: BTreeMap<usize, u64>,
    /// When hosts are switched off; see [`crate::Medium::set_host_down`].
    pub host_outages: Vec<(usize, Outage)>,
    /// Links that differ from the rest, by direction: (sender, receiver).
    pub links: BTreeMap<(usize, usize), Link>,
    /// Retries after the first attempt before a frame is given up.
    pub retries: u8,
    /// Seed of all random draws.
    pub seed: u64,
    /// Start of all schedules, and of the accounting of the air's use.
    pub start: Time,
}

impl MediumConfig {
    /// A chain of `hops` hops of 802.11a at 6 Mbit/s whose hosts all hear each other: queues of 256 frames, 7 retries,
    /// no loss, no added delay.
    pub fn chain(hops: usize) -> Self {
        MediumConfig {
            standard: Standard::A,
            rate_bits: 6_000_000,
            basic_rates: Vec::new(),
            hosts: hops.saturating_add(1),
            topology: Topology::Chain,
            hearing: Hearing::All,
            access: Access::Dcf,
            queue_frames: 256,
            loss: Loss::NONE,
            path: Path::CLEAR,
            quality: Vec::new(),
            host_rates: BTreeMap::new(),
            host_outages: Vec::new(),
            links: BTreeMap::new(),
            retries: 7,
            seed: 1,
            start: Time::ZERO,
        }
    }
}

/// Own settings of one direction of a link; `None` and empty values stand for those of the medium.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Rate in bit/s; it takes precedence over the sender's.
    pub rate_bits: Option<u64>,
    /// Loss of frames.
    pub loss: Option<Loss>,
    /// Impairments after the air.
    pub path: Option<Path>,
    /// Whether nothing at all arrives, from now on.
    pub down: bool,
    /// Times when nothing at all arrives.
    pub outages: Vec<Outage>,
    /// How the link changes over time, as its ends move: each entry holds until the next, and takes precedence over
    /// `rate_bits` and `loss`.
    pub quality: Vec<(Duration, Quality)>,
}

/// State of a link (or a medium) at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Rate in bit/s; `None` leaves it unchanged.
    pub rate_bits: Option<u64>,
    /// Probability that a frame is lost; `None` leaves it unchanged.
    pub loss: Option<f64>,
    /// Whether nothing arrives: out of range.
    pub gone: bool,
}

/// A span of time without service, from the start of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant of it.
    pub from: Duration,
    /// First instant after it.
    pub until: Duration,
}

/// Why settings were refused; each names the setting and the allowed values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// See [`RateError`].
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A wire that carries nothing.
    #[error("the rate of a wire is {bits} bit/s: give 1 or more, or omit it for an unlimited wire")]
    WireRate {
        /// The rate asked for.
        bits: u64,
    },
    /// A medium needs at least two hosts, and the model is meant for at most 1024.
    #[error("the medium has {hosts} hosts: give 2 to 1024")]
    Hosts {
        /// Hosts asked for.
        hosts: usize,
    },
    /// A host without room in its queue cannot send.
    #[error("a queue of 0 frames or bytes can send nothing: give 1 or more")]
    Queue,
    /// A probability outside 0 to 1.
    #[error("{setting} is {value}: give a probability from 0 to 1")]
    Probability {
        /// Which setting.
        setting: String,
        /// The value that it was set to.
        value: f64,
    },
    /// A trace without entries.
    #[error("{setting}: the trace has no entries; give one or more")]
    EmptyTrace {
        /// Which setting.
        setting: String,
    },
    /// Times that do not ascend.
    #[error("{setting}: the entry at {at:?} does not come after the one before it; sort them by time")]
    Order {
        /// Which setting.
        setting: String,
        /// The entry.
        at: Duration,
    },
    /// Bounds of a delay or an outage that contradict each other.
    #[error("{setting}: {low:?} is above {high:?}; swap them")]
    Bounds {
        /// Which setting.
        setting: String,
        /// The bound that should be the lower one.
        low: Duration,
        /// The bound that should be the higher one.
        high: Duration,
    },
    /// A host that does not exist.
    #[error("{setting} names host {host}, but hosts are 0 to {last}")]
    NoSuchHost {
        /// Which setting.
        setting: String,
        /// The host.
        host: usize,
        /// The last existing host.
        last: usize,
    },
    /// Settings of a link that the topology does not have.
    #[error("{setting} names the link {from} to {to}, which the topology does not have")]
    NoSuchLink {
        /// Which setting.
        setting: String,
        /// Its sender.
        from: usize,
        /// Its receiver.
        to: usize,
    },
    /// A topology that is not connected.
    #[error("host {host} has no route from host 0: add a link, or put it on a medium of its own")]
    Unreachable {
        /// A host that host 0 cannot reach.
        host: usize,
    },
}
