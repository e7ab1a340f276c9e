//! One setting of one experiment: the options of its peers, and its form in results.

use super::{Experiment, Language, System};
use crate::kit::programs::Ready;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Queue depth of the other subscribers when one is slow: the usual default of systems.
const BESIDE_A_SLOW_ONE: u32 = 16;

/// How subscribers wait, and what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Subscribers sleep until they are woken.
    Block,
    /// Subscribers poll without sleeping.
    Spin,
    /// Round trips between two processes that poll without sleeping.
    PingPong,
    /// Calls of a service; clients and server sleep until they are woken.
    Call,
}

/// The setting, as far as peers are concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) experiment: Experiment,
    pub(super) size: u64,
    pub(super) subscribers: u32,
    /// Messages per second; 0: as fast as publishing allows.
    pub(super) rate: f64,
    pub(super) warmup: u32,
    pub(super) messages: u32,
    pub(super) mode: Mode,
    /// SCHED_FIFO at this priority.
    pub(super) fifo: Option<u8>,
    /// Duration of the first subscriber's callback.
    pub(super) slow_us: Option<u64>,
    /// Limit of the publisher's memory.
    pub(super) limit: Option<u64>,
    /// Queue depth of a subscriber, of only the slow one if there is one; `None`: each system's own.
    pub(super) depth: Option<u32>,
    /// Whether the processors are kept from sleeping.
    pub(super) awake: bool,
    /// Whether to count copied bytes; this slows everything down.
    pub(super) count_copies: bool,
}

/// The setting of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// The experiment that the cell belongs to.
    pub experiment: Experiment,
    /// Bytes of the payload.
    pub size: u64,
    /// Subscribing processes, or clients of a service.
    pub subscribers: u32,
    /// Messages per second; 0: as fast as publishing allows.
    pub rate_hz: f64,
    /// Number of measured messages in each run.
    pub messages: u32,
    /// Number of successful runs, which are pooled.
    pub runs: u32,
    /// How subscribers wait.
    pub mode: Mode,
    /// Priority at SCHED_FIFO; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fifo: Option<u8>,
    /// Microseconds for which the callback of the first subscriber sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_us: Option<u64>,
    /// Maximum bytes of shared memory of the publisher, where the system has such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Queue depth of a subscriber before it loses the oldest message, of only the slow subscriber if there is one;
    /// absent: the system's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Whether the processors were kept from sleeping; absent: each slept when idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awake: bool,
    /// Language of the programs; absent if it is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

impl Params {
    /// Returns whether the settings differ only in the language of the programs, or the number of runs.
    pub(super) fn is_like(&self, other: &Params) -> bool {
        let of = |p: &Params| Params {
            runs: 0,
            language: None,
            ..p.clone()
        };
        of(self) == of(other)
    }
}

impl Setting {
    /// Subscribers that sleep, no work, no special options.
    pub(super) fn plain(experiment: Experiment, size: u64, subscribers: u32) -> Self {
        Setting {
            experiment,
            size,
            subscribers,
            rate: 30.0,
            warmup: 15,
            messages: 150,
            mode: Mode::Block,
            fifo: None,
            slow_us: None,
            limit: None,
            depth: None,
            awake: false,
            count_copies: false,
        }
    }

    pub(super) fn params(&self, system: System, runs: u32) -> Params {
        Params {
            experiment: self.experiment,
            size: self.size,
            subscribers: self.subscribers,
            rate_hz: self.rate,
            messages: self.messages,
            runs,
            mode: self.mode,
            fifo: self.fifo,
            slow_us: self.slow_us,
            limit_bytes: self.limit,
            depth: self.depth,
            awake: self.awake,
            language: system.language(),
        }
    }

    /// Returns the queue depth of subscriber `index`: with a slow one that has a short queue, the others keep room for
    /// a stall.
    pub(super) fn depth_of(&self, index: u32) -> Option<u32> {
        match self.slow_us {
            Some(_) if index > 0 => self.deepest(),
            _ => self.depth,
        }
    }

    /// Returns the maximum queue depth.
    pub(super) fn deepest(&self) -> Option<u32> {
        self.depth.map(|depth| match self.slow_us {
            Some(_) if self.subscribers > 1 => depth.max(BESIDE_A_SLOW_ONE),
            _ => depth,
        })
    }

    /// Returns whether `system` supports it.
    pub(super) fn fits(&self, system: &Ready) -> bool {
        match self.mode {
            Mode::Block => !(system.is_intra() && self.slow_us.is_some()),
            Mode::Spin | Mode::PingPong => system.spins() && !system.is_intra(),
            Mode::Call => system.calls(),
        }
    }

    /// Returns the planned duration of publishing; 1 s if there is no schedule.
    pub(super) fn expected(&self) -> Duration {
        let messages = f64::from(self.warmup) + f64::from(self.messages);
        if self.rate > 0.0 && self.mode != Mode::PingPong {
            Duration::from_secs_f64(0.2 + messages / self.rate)
        } else {
            Duration::from_secs(1)
        }
    }
}
