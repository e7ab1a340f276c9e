//! Radio or wire, behind one interface.

use crate::config::{ConfigError, Link, MediumConfig, Quality};
use crate::count::MediumStats;
use crate::delay::Path;
use crate::event::{Event, SendError};
use crate::loss::Loss;
use crate::medium::Medium;
use crate::wire::{Wire, WireConfig};
use core::time::Duration;
use stats::Time;

/// The settings of a [`Channel`].
#[derive(Clone, Debug)]
pub enum ChannelConfig {
    /// A shared radio.
    Radio(MediumConfig),
    /// A line between two hosts.
    Wire(WireConfig),
}

/// A radio or a wire behind the same interface; each call is that of [`Medium`] or [`Wire`].
pub enum Channel<P> {
    /// A shared radio.
    Radio(Box<Medium<P>>),
    /// A line between two hosts.
    Wire(Box<Wire<P>>),
}

macro_rules! either {
    ($channel:expr, $c:ident => $call:expr) => {
        match $channel {
            Channel::Radio($c) => $call,
            Channel::Wire($c) => $call,
        }
    };
}

impl<P: Clone> Channel<P> {
    /// An idle channel.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn new(config: ChannelConfig) -> Result<Self, ConfigError> {
        Ok(match config {
            ChannelConfig::Radio(config) => Channel::Radio(Box::new(Medium::new(config)?)),
            ChannelConfig::Wire(config) => Channel::Wire(Box::new(Wire::new(config)?)),
        })
    }

    /// Sends an IP packet; see [`Medium::send_dscp`]. A wire ignores `dscp`.
    ///
    /// # Errors
    /// [`SendError`], with the payload.
    pub fn send_dscp(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        ip_bytes: usize,
        dscp: u8,
        payload: P,
    ) -> Result<(), SendError<P>> {
        match self {
            Channel::Radio(radio) => radio.send_dscp(now, from, to, ip_bytes, dscp, payload),
            Channel::Wire(wire) => wire.send(now, from, to, ip_bytes, payload),
        }
    }

    /// Sends an IP packet to everyone; see [`Medium::broadcast`]. On a wire that is the other end.
    ///
    /// # Errors
    /// [`SendError`], with the payload.
    pub fn broadcast(
        &mut self,
        now: Time,
        from: usize,
        ip_bytes: usize,
        dscp: u8,
        payload: P,
    ) -> Result<(), SendError<P>> {
        match self {
            Channel::Radio(radio) => radio.broadcast(now, from, ip_bytes, dscp, payload),
            Channel::Wire(wire) => wire.send(now, from, 1usize.saturating_sub(from), ip_bytes, payload),
        }
    }

    /// When [`Channel::poll`] should be called next; `None` while nothing is under way.
    pub fn next_event(&self) -> Option<Time> {
        either!(self, c => c.next_event())
    }

    /// The next event up to `now`, in order of time; call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        either!(self, c => c.poll(now))
    }

    /// Counters since the start.
    pub fn stats(&self) -> &MediumStats {
        either!(self, c => c.stats())
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.stats().hosts.len()
    }

    /// Number of frames in the queues of `host`.
    pub fn queue_len(&self, host: usize) -> usize {
        either!(self, c => c.queue_len(host))
    }

    /// Packets accepted and neither delivered nor dropped yet, including copies.
    pub fn in_flight(&self) -> u64 {
        either!(self, c => c.in_flight())
    }

    /// Changes the rate; `None` is only for wires.
    ///
    /// # Errors
    /// [`ConfigError`] if the rate is invalid; the old one stays.
    pub fn set_rate(&mut self, now: Time, rate_bits: Option<u64>) -> Result<(), ConfigError> {
        match self {
            Channel::Radio(radio) => Ok(radio.set_rate(now, rate_bits.unwrap_or(0))?),
            Channel::Wire(wire) => wire.set_rate(now, rate_bits),
        }
    }

    /// See [`Medium::set_loss`].
    pub fn set_loss(&mut self, now: Time, loss: Loss) {
        either!(self, c => c.set_loss(now, loss));
    }

    /// See [`Medium::set_path`].
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_path(&mut self, now: Time, path: Path) -> Result<(), ConfigError> {
        either!(self, c => c.set_path(now, path))
    }

    /// The path of packets after the air or wire, on links without their own.
    pub fn path(&self) -> &Path {
        either!(self, c => c.path())
    }

    /// See [`Medium::set_quality`].
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_quality(&mut self, now: Time, quality: Vec<(Duration, Quality)>) -> Result<(), ConfigError> {
        either!(self, c => c.set_quality(now, quality))
    }

    /// The own settings of the link from `from` to `to`.
    pub fn link(&self, from: usize, to: usize) -> Link {
        either!(self, c => c.link(from, to))
    }

    /// See [`Medium::own_links`].
    pub fn own_links(&self) -> Vec<(usize, usize)> {
        either!(self, c => c.own_links())
    }

    /// Whether a host is switched off.
    pub fn is_host_down(&self, host: usize) -> bool {
        either!(self, c => c.is_host_down(host))
    }

    /// See [`Medium::set_link`].
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such link or a setting is invalid; the old ones stay.
    pub fn set_link(&mut self, now: Time, from: usize, to: usize, link: Link) -> Result<(), ConfigError> {
        either!(self, c => c.set_link(now, from, to, link))
    }

    /// See [`Medium::set_host_down`].
    ///
    /// # Errors
    /// [`ConfigError::NoSuchHost`].
    pub fn set_host_down(&mut self, now: Time, host: usize, down: bool) -> Result<(), ConfigError> {
        either!(self, c => c.set_host_down(now, host, down))
    }
}
