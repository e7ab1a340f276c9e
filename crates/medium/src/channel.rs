//! The channel: who transmits when, who collides, what arrives.

use crate::config::{ConfigError, MediumConfig};
use crate::loss::Loss;
use crate::phy::{Phy, RateError, SLOT};
use crate::rng::Rng;
use crate::station::{Frame, Station};
use core::time::Duration;
use stats::{DropReason, Drops, Time};
use std::collections::{BTreeMap, VecDeque};

/// What became of a frame. `at` is the ideal time, whenever the driver asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// The frame reached its final host.
    Delivered {
        /// When its last symbol (and the added delay) had passed.
        at: Time,
        /// The host that has it now.
        host: usize,
        /// The host that sent it first.
        from: usize,
        /// What was sent.
        payload: P,
    },
    /// The frame was lost for good.
    Dropped {
        /// When it was given up.
        at: Time,
        /// The host at which it was lost.
        host: usize,
        /// [`DropReason::Air`] after the last retry, [`DropReason::DeviceQueue`] at a full relay.
        reason: DropReason,
        /// What was sent.
        payload: P,
    },
}

impl<P> Event<P> {
    /// The ideal time of the event.
    pub fn at(&self) -> Time {
        match self {
            Event::Delivered { at, .. } | Event::Dropped { at, .. } => *at,
        }
    }
}

/// Why a frame was not taken; it carries the payload back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<P> {
    /// The device queue is full ([`DropReason::DeviceQueue`]); counted in the statistics.
    #[error("the device queue of host {host} is full ({frames} frames)")]
    QueueFull {
        /// The sending host.
        host: usize,
        /// Frames in its queue.
        frames: usize,
        /// What should have been sent.
        payload: P,
    },
    /// One end is not in the chain, or both are the same host.
    #[error("no way from host {from} to host {to} in a chain of {hosts}")]
    NoRoute {
        /// The sending host.
        from: usize,
        /// The host it should go to.
        to: usize,
        /// Hosts in the chain.
        hosts: usize,
        /// What should have been sent.
        payload: P,
    },
}

/// Counts of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Frames that it transmitted, retries included.
    pub attempts: u64,
    /// Attempts after the first of their frame.
    pub retries: u64,
    /// Frames that were delivered over this host's hop.
    pub acknowledged: u64,
    /// Longest its queue ever was, in frames.
    pub queue_high_water: usize,
    /// Frames lost at this host, by reason.
    pub drops: Drops,
    /// Air that its transmissions occupied, acknowledgements included; a collision counts for each.
    pub air: Duration,
}

/// Counts of the whole channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumStats {
    /// Time during which the channel was busy. DIFS and back-off are idle time.
    pub busy: Duration,
    /// Transmissions in which more than one host spoke.
    pub collisions: u64,
    /// Attempts lost by [`Loss`].
    pub lost: u64,
    /// Frames delivered to their final host.
    pub delivered: u64,
    /// IP bytes delivered to their final host.
    pub delivered_bytes: u64,
    /// One entry per host, in chain order.
    pub hosts: Vec<HostStats>,
}

/// What is on the air now.
struct Air {
    start: Time,
    /// Hosts that transmit; more than one is a collision.
    senders: Vec<usize>,
    data_end: Time,
    end: Time,
    /// `None` until the data has ended, then whether it was received.
    received: Option<bool>,
}

/// One shared half-duplex channel with its hosts; see the crate's page.
///
/// `P` is whatever the driver wants to carry: bytes, or a number that stands for them.
pub struct Medium<P> {
    phy: Phy,
    config: MediumConfig,
    stations: Vec<Station<P>>,
    /// Gilbert–Elliott state of each direction of each hop, by `2 · sender + (towards higher numbers)`.
    bad: Vec<bool>,
    air: Option<Air>,
    idle_since: Time,
    clock: Time,
    /// Frames in their added delay, by arrival time and order.
    delayed: BTreeMap<(Time, u64), (usize, Frame<P>)>,
    order: u64,
    out: VecDeque<Event<P>>,
    rng: Rng,
    stats: MediumStats,
}

impl<P> Medium<P> {
    /// An idle channel.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting that has no meaning.
    pub fn new(config: MediumConfig) -> Result<Self, ConfigError> {
        let phy = Phy::new(config.rate_bits)?;
        if !(2..=1024).contains(&config.hosts) {
            return Err(ConfigError::Hosts { hosts: config.hosts });
        }
        if config.queue_frames == 0 {
            return Err(ConfigError::Queue);
        }
        if !config.loss.is_valid() {
            return Err(ConfigError::Loss { loss: config.loss });
        }
        Ok(Medium {
            phy,
            stations: (0..config.hosts).map(|_| Station::new()).collect(),
            bad: vec![false; 2 * config.hosts],
            air: None,
            idle_since: Time::ZERO,
            clock: Time::ZERO,
            delayed: BTreeMap::new(),
            order: 0,
            out: VecDeque::new(),
            rng: Rng::new(config.seed),
            stats: MediumStats {
                hosts: vec![HostStats::default(); config.hosts],
                ..MediumStats::default()
            },
            config,
        })
    }

    /// Puts an IP packet of `ip_bytes` into the queue of host `from`, bound for host `to`.
    ///
    /// `now` earlier than what was already simulated counts as that instant: the past stays as it was.
    ///
    /// # Errors
    /// [`SendError`], with the payload.
    pub fn send(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        ip_bytes: usize,
        payload: P,
    ) -> Result<(), SendError<P>> {
        self.advance(now);
        let hosts = self.config.hosts;
        if from == to || from >= hosts || to >= hosts {
            return Err(SendError::NoRoute {
                from,
                to,
                hosts,
                payload,
            });
        }
        self.enqueue(
            self.clock,
            from,
            Frame {
                from,
                to,
                ip_bytes,
                payload,
            },
        )
        .map_err(|frame| SendError::QueueFull {
            host: from,
            frames: self.stations[from].queue.len(),
            payload: frame.payload,
        })
    }

    /// When [`Medium::poll`] should be called next; `None` while nothing is under way.
    ///
    /// There may be nothing to report then: the channel has its own steps in between.
    pub fn next_event(&self) -> Option<Time> {
        self.out
            .front()
            .map(Event::at)
            .into_iter()
            .chain(self.next_step())
            .min()
    }

    /// The next thing that happened up to `now`, in order of time; call until it gives `None`.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        self.advance(now);
        self.out.pop_front()
    }

    /// Counts since the start.
    pub fn stats(&self) -> &MediumStats {
        &self.stats
    }

    /// Frames now in the device queue of `host`, the one in the air included.
    pub fn queue_len(&self, host: usize) -> usize {
        self.stations.get(host).map_or(0, |s| s.queue.len())
    }

    /// Changes the rate of the frames that start after `now`.
    ///
    /// # Errors
    /// [`RateError`] if the rate has no meaning; the old one stays.
    pub fn set_rate(&mut self, now: Time, rate_bits: u64) -> Result<(), RateError> {
        self.advance(now);
        self.phy = Phy::new(rate_bits)?;
        Ok(())
    }

    /// Changes the loss of the frames that end after `now`; probabilities outside 0 to 1 are clamped by
    /// their meaning (never, always). `Loss::Uniform(1.0)` is an outage.
    pub fn set_loss(&mut self, now: Time, loss: Loss) {
        self.advance(now);
        self.config.loss = loss;
    }

    fn advance(&mut self, now: Time) {
        while let Some(t) = self.next_step().filter(|t| *t <= now) {
            self.clock = t;
            self.step(t);
        }
        self.clock = self.clock.max(now);
    }

    fn next_step(&self) -> Option<Time> {
        let air = match &self.air {
            Some(a) if a.received.is_none() => Some(a.data_end),
            Some(a) => Some(a.end),
            None => self
                .stations
                .iter()
                .filter_map(|s| s.attempt(self.idle_since))
                .min(),
        };
        let delayed = self.delayed.first_key_value().map(|((t, _), _)| *t);
        air.into_iter().chain(delayed).min()
    }

    fn step(&mut self, t: Time) {
        if self
            .delayed
            .first_key_value()
            .is_some_and(|((due, _), _)| *due <= t)
            && let Some((_, (host, frame))) = self.delayed.pop_first()
        {
            return self.arrive(t, host, frame);
        }
        match self.air.take() {
            None => self.start(t),
            Some(air) if air.received.is_none() => self.end_of_data(air),
            Some(air) => self.end_of_exchange(air),
        }
    }

    /// The earliest back-off ran out: everyone within the same slot transmits, the others freeze.
    fn start(&mut self, t: Time) {
        let mut air = Air {
            start: t,
            senders: Vec::new(),
            data_end: t,
            end: t,
            received: None,
        };
        for (i, s) in self.stations.iter_mut().enumerate() {
            match (s.attempt(self.idle_since), s.queue.front()) {
                (Some(at), Some(frame)) if at < t + SLOT => {
                    air.data_end = air.data_end.max(at + self.phy.data(frame.ip_bytes));
                    air.end = air.end.max(at + self.phy.exchange(frame.ip_bytes));
                    air.senders.push(i);
                    let h = &mut self.stats.hosts[i];
                    h.attempts += 1;
                    h.retries += u64::from(s.retries > 0);
                    h.air += self.phy.exchange(frame.ip_bytes);
                }
                _ => s.freeze(self.idle_since, t, &mut self.rng),
            }
        }
        self.stats.collisions += u64::from(air.senders.len() > 1);
        self.air = Some(air);
    }

    fn end_of_data(&mut self, mut air: Air) {
        let t = air.data_end;
        air.received = Some(false);
        if let [sender] = air.senders[..]
            && let Some(to) = self.stations[sender].queue.front().map(|f| f.to)
        {
            let up = to > sender;
            let lost = self
                .config
                .loss
                .draw(&mut self.bad[2 * sender + usize::from(up)], &mut self.rng);
            self.stats.lost += u64::from(lost);
            air.received = Some(!lost);
            // The air must count as busy for a relay that the frame reaches now.
            self.air = Some(air);
            if !lost && let Some(frame) = self.stations[sender].queue.pop_front() {
                let next = if up { sender + 1 } else { sender - 1 };
                self.stats.hosts[sender].acknowledged += 1;
                if self.config.delay.is_zero() {
                    self.arrive(t, next, frame);
                } else {
                    self.order += 1;
                    self.delayed
                        .insert((t + self.config.delay, self.order), (next, frame));
                }
            }
        } else {
            self.air = Some(air);
        }
    }

    fn end_of_exchange(&mut self, air: Air) {
        self.stats.busy += air.end.since(air.start);
        self.idle_since = air.end;
        for &i in &air.senders {
            let s = &mut self.stations[i];
            if air.received == Some(true) {
                s.settle(&mut self.rng);
            } else if s.retries < self.config.retries {
                s.back_off(&mut self.rng);
            } else {
                s.settle(&mut self.rng);
                if let Some(frame) = s.queue.pop_front() {
                    self.drop_frame(air.end, i, DropReason::Air, frame);
                }
            }
        }
    }

    fn arrive(&mut self, t: Time, host: usize, frame: Frame<P>) {
        if host == frame.to {
            self.stats.delivered += 1;
            self.stats.delivered_bytes += frame.ip_bytes as u64;
            self.out.push_back(Event::Delivered {
                at: t,
                host,
                from: frame.from,
                payload: frame.payload,
            });
        } else if let Err(frame) = self.enqueue(t, host, frame) {
            self.out.push_back(Event::Dropped {
                at: t,
                host,
                reason: DropReason::DeviceQueue,
                payload: frame.payload,
            });
        }
    }

    fn enqueue(&mut self, t: Time, host: usize, frame: Frame<P>) -> Result<(), Frame<P>> {
        let idle = self.air.is_none().then_some(self.idle_since);
        let s = &mut self.stations[host];
        let h = &mut self.stats.hosts[host];
        if s.queue.len() >= self.config.queue_frames {
            h.drops.add(DropReason::DeviceQueue, 1);
            return Err(frame);
        }
        s.push(t, idle, frame, &mut self.rng);
        h.queue_high_water = h.queue_high_water.max(s.queue.len());
        Ok(())
    }

    fn drop_frame(&mut self, at: Time, host: usize, reason: DropReason, frame: Frame<P>) {
        self.stats.hosts[host].drops.add(reason, 1);
        self.out.push_back(Event::Dropped {
            at,
            host,
            reason,
            payload: frame.payload,
        });
    }
}
