//! What a medium is made of.

use crate::loss::Loss;
use crate::phy::RateError;
use core::time::Duration;

/// The settings of a [`crate::Medium`]; start from [`MediumConfig::chain`].
#[derive(Clone, Debug)]
pub struct MediumConfig {
    /// Rate of every host, in bit/s.
    pub rate_bits: u64,
    /// Number of hosts, numbered along the chain from 0; `hops + 1`.
    pub hosts: usize,
    /// Device queue of each host, in frames, the one in the air included.
    pub queue_frames: usize,
    /// Loss of frames on every link.
    pub loss: Loss,
    /// Delay added to each hop after the air.
    pub delay: Duration,
    /// Retries after the first attempt before a frame is given up.
    pub retries: u8,
    /// Seed of all chance.
    pub seed: u64,
}

impl MediumConfig {
    /// A chain of `hops` hops at 6 Mbit/s: queues of 256 frames, 7 retries, no loss, no added delay.
    pub fn chain(hops: usize) -> Self {
        MediumConfig {
            rate_bits: 6_000_000,
            hosts: hops.saturating_add(1),
            queue_frames: 256,
            loss: Loss::NONE,
            delay: Duration::ZERO,
            retries: 7,
            seed: 1,
        }
    }
}

/// Why a [`MediumConfig`] was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// See [`RateError`].
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A chain needs two hosts at least, and the model is meant for no more than 1024.
    #[error("{hosts} hosts: give 2 to 1024")]
    Hosts {
        /// Hosts asked for.
        hosts: usize,
    },
    /// A host that can queue nothing can send nothing.
    #[error("a queue of 0 frames can send nothing: give 1 or more")]
    Queue,
    /// A probability outside 0 to 1.
    #[error("{loss:?}: probabilities go from 0 to 1")]
    Loss {
        /// The loss asked for.
        loss: Loss,
    },
}
