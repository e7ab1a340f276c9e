//! What a medium is made of.

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
/// All times of schedules count from `start`.
#[derive(Clone, Debug)]
pub struct MediumConfig {
    /// Flavour of 802.11.
    pub standard: Standard,
    /// Rate of every host, in bit/s, unless `host_rates` or a link says otherwise.
    pub rate_bits: u64,
    /// What acknowledgements may use, in bit/s; empty for [`Standard::basic_rates`].
    pub basic_rates: Vec<u64>,
    /// Number of hosts, numbered from 0; in a chain of `n` hops `n + 1`.
    pub hosts: usize,
    /// Who can decode whom.
    pub topology: Topology,
    /// Who hears (and disturbs) whom.
    pub hearing: Hearing,
    /// One queue a host, or one for each access category.
    pub access: Access,
    /// Length of each device queue, in frames, the one in the air included.
    pub queue_frames: usize,
    /// Loss of frames on every link, which the MAC repairs by retries.
    pub loss: Loss,
    /// What happens to packets after the air, on every link; nothing repairs it.
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
    /// Seed of all chance.
    pub seed: u64,
    /// When schedules begin, and from when the use of the air counts.
    pub start: Time,
}

impl MediumConfig {
    /// A chain of `hops` hops of 802.11a at 6 Mbit/s whose hosts all hear each other: queues of 256 frames,
    /// 7 retries, no loss, no added delay.
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

/// What one direction of a link has of its own; `None` and empty stand for what the medium has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Rate in bit/s; it goes before the sender's.
    pub rate_bits: Option<u64>,
    /// Loss of frames.
    pub loss: Option<Loss>,
    /// What happens after the air.
    pub path: Option<Path>,
    /// Whether nothing at all arrives, from now on.
    pub down: bool,
    /// When nothing at all arrives.
    pub outages: Vec<Outage>,
    /// How the link changes over time, as its ends move: each entry holds until the next, and goes before
    /// `rate_bits` and `loss`.
    pub quality: Vec<(Duration, Quality)>,
}

/// What a link (or a medium) is like at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Rate in bit/s; `None` leaves it.
    pub rate_bits: Option<u64>,
    /// Probability that a frame is lost; `None` leaves it.
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

/// Why settings were refused; each names the setting and what it takes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// See [`RateError`].
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A wire that carries nothing.
    #[error("rate {bits} bit/s of a wire: give 1 or more, or none if it is unlimited")]
    WireRate {
        /// The rate asked for.
        bits: u64,
    },
    /// A medium needs two hosts at least, and the model is meant for no more than 1024.
    #[error("{hosts} hosts: give 2 to 1024")]
    Hosts {
        /// Hosts asked for.
        hosts: usize,
    },
    /// A host that can queue nothing can send nothing.
    #[error("a queue of 0 frames or bytes can send nothing: give 1 or more")]
    Queue,
    /// A probability outside 0 to 1.
    #[error("{setting} {value}: probabilities go from 0 to 1")]
    Probability {
        /// Which setting.
        setting: String,
        /// What it was set to.
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
    #[error("{setting}: {low:?} is above {high:?}; exchange them")]
    Bounds {
        /// Which setting.
        setting: String,
        /// What should be the lower.
        low: Duration,
        /// What should be the higher.
        high: Duration,
    },
    /// A host that is not there.
    #[error("{setting} names host {host}, but hosts are 0 to {last}")]
    NoSuchHost {
        /// Which setting.
        setting: String,
        /// The host.
        host: usize,
        /// The last host there is.
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
    /// A topology in parts.
    #[error("no way leads from host 0 to host {host}: add a link, or make it a medium of its own")]
    Unreachable {
        /// A host that host 0 cannot reach.
        host: usize,
    },
}
