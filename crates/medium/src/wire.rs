//! A full-duplex line between two hosts: Ethernet, a long haul, or just a delay.

use crate::check;
use crate::config::{ConfigError, Link, Outage, Quality};
use crate::count::{HostStats, MediumStats};
use crate::delay::{Delay, Path};
use crate::event::{Event, SendError};
use crate::links::Links;
use crate::loss::Loss;
use crate::phy;
use crate::power::Power;
use crate::transfer::{Frame, Transfer};
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};

/// Hosts at the ends of a wire.
const ENDS: usize = 2;
/// Stands for "no limit" where a rate is a number.
const UNLIMITED: u64 = u64::MAX;

/// The settings of a [`Wire`]. Frames lost by `loss` are gone, like packets lost by `path`: a wire has no retries.
/// Times in schedules count from `start`.
#[derive(Clone, Debug)]
pub struct WireConfig {
    /// Rate of each direction in bit/s; `None` takes no time at all.
    pub rate_bits: Option<u64>,
    /// Bytes around an IP packet on the wire.
    pub frame_bytes: usize,
    /// Smaller IP packets take as long as one of this size, in bytes.
    pub min_ip_bytes: usize,
    /// Silence after each frame, in bytes.
    pub gap_bytes: usize,
    /// Length of the queue of each direction in frames, including the one on the wire.
    pub queue_frames: usize,
    /// Length of the queue of each direction in bytes of IP packets; `None` for no limit in bytes.
    pub queue_bytes: Option<usize>,
    /// Loss of frames.
    pub loss: Loss,
    /// Impairments of packets after the wire.
    pub path: Path,
    /// How rate and loss change over time.
    pub quality: Vec<(Duration, Quality)>,
    /// When hosts are switched off.
    pub host_outages: Vec<(usize, Outage)>,
    /// Own settings of the directions: (0, 1) and (1, 0).
    pub links: BTreeMap<(usize, usize), Link>,
    /// Seed of all random draws.
    pub seed: u64,
    /// When schedules begin.
    pub start: Time,
}

impl WireConfig {
    /// A wire that adds nothing: no rate limit, no delay, no loss.
    pub fn direct() -> WireConfig {
        WireConfig {
            rate_bits: None,
            frame_bytes: 0,
            min_ip_bytes: 0,
            gap_bytes: 0,
            queue_frames: 1000,
            queue_bytes: None,
            loss: Loss::NONE,
            path: Path::CLEAR,
            quality: Vec::new(),
            host_outages: Vec::new(),
            links: BTreeMap::new(),
            seed: 1,
            start: Time::ZERO,
        }
    }

    /// Ethernet at `rate_bits` bit/s (IEEE 802.3, clauses 3 and 4): preamble 8 B, header 14, checksum 4, at
    /// least 46 B of content, gap 12; a queue of 1000 frames, the default of Linux.
    pub fn ethernet(rate_bits: u64) -> WireConfig {
        WireConfig {
            rate_bits: Some(rate_bits),
            frame_bytes: 8 + 14 + 4,
            min_ip_bytes: 46,
            gap_bytes: 12,
            ..WireConfig::direct()
        }
    }

    /// A long haul: IP packets back to back at `rate_bits` bit/s, `delay` in each direction, `queue_bytes` in front of
    /// each end.
    pub fn long_haul(rate_bits: u64, delay: impl Into<Delay>, queue_bytes: usize) -> WireConfig {
        WireConfig {
            rate_bits: Some(rate_bits),
            queue_frames: usize::MAX,
            queue_bytes: Some(queue_bytes),
            path: Path::delay(delay),
            ..WireConfig::direct()
        }
    }
}

/// A full-duplex line between host 0 and host 1.
pub struct Wire<P> {
    rate_bits: u64,
    frame_bytes: usize,
    min_ip_bytes: usize,
    gap_bytes: usize,
    queue_frames: usize,
    queue_bytes: usize,
    /// By the sending host.
    lanes: [Lane<P>; ENDS],
    transfer: Transfer<P>,
    power: Power,
    clock: Time,
}

struct Lane<P> {
    queue: VecDeque<Frame<P>>,
    bytes: usize,
    /// When the head of the queue has crossed; `None` if the queue is empty.
    head_end: Option<Time>,
    /// When the next frame may begin.
    free: Time,
}

impl<P: Clone> Wire<P> {
    /// A silent wire.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn new(config: WireConfig) -> Result<Self, ConfigError> {
        config.rate_bits.map_or(Ok(()), rate)?;
        if config.queue_frames == 0 || config.queue_bytes == Some(0) {
            return Err(ConfigError::Queue);
        }
        if let Some((from, to)) = config.links.keys().copied().find(|(a, b)| !is_lane(*a, *b)) {
            let setting = "links".into();
            return Err(ConfigError::NoSuchLink { setting, from, to });
        }
        let power = Power::new(ENDS, config.start, &config.host_outages)?;
        let links = Links::new(
            config.start,
            config.loss,
            config.path,
            config.quality,
            config.links,
            &rate,
        )?;
        let stats = MediumStats {
            hosts: vec![HostStats::default(); ENDS],
            ..MediumStats::default()
        };
        Ok(Wire {
            rate_bits: config.rate_bits.unwrap_or(UNLIMITED),
            frame_bytes: config.frame_bytes,
            min_ip_bytes: config.min_ip_bytes,
            gap_bytes: config.gap_bytes,
            queue_frames: config.queue_frames,
            queue_bytes: config.queue_bytes.unwrap_or(usize::MAX),
            lanes: [(); ENDS].map(|()| Lane {
                queue: VecDeque::new(),
                bytes: 0,
                head_end: None,
                free: Time::ZERO,
            }),
            transfer: Transfer::new(links, config.seed, stats),
            power,
            clock: Time::ZERO,
        })
    }

    /// Puts an IP packet of `ip_bytes` into the queue of host `from`, addressed to the other; see
    /// [`crate::Medium::send_dscp`].
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
        if !is_lane(from, to) {
            let hosts = ENDS;
            return Err(SendError::NoRoute {
                from,
                to,
                hosts,
                payload,
            });
        }
        self.transfer.offered(from);
        let lane = &mut self.lanes[from];
        let bytes = lane.bytes.saturating_add(ip_bytes);
        if lane.queue.len() >= self.queue_frames || bytes > self.queue_bytes {
            let frames = lane.queue.len();
            self.transfer.count_loss(from, 0, DropReason::DeviceQueue);
            return Err(SendError::QueueFull {
                host: from,
                frames,
                payload,
            });
        }
        let frame = Frame {
            from,
            to,
            ip_bytes,
            queue: 0,
            payload: Some(payload),
        };
        if self.power.is_down(from) {
            self.transfer.lose(self.clock, from, DropReason::Outage, frame);
            return Ok(());
        }
        lane.bytes = bytes;
        lane.queue.push_back(frame);
        let all = lane.queue.len();
        self.transfer.grown(from, 0, all, all);
        if lane.head_end.is_none() {
            self.begin(self.clock, from);
        }
        Ok(())
    }

    /// When [`Wire::poll`] should be called next; `None` while nothing is under way.
    pub fn next_event(&self) -> Option<Time> {
        let reported = self.transfer.out.front().map(Event::at);
        reported.into_iter().chain(self.next_step()).min()
    }

    /// The next event up to `now`, in order of time; call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        self.advance(now);
        self.transfer.out.pop_front()
    }

    /// Counters since the start; `air` and `busy` are time on the wire, including gaps.
    pub fn stats(&self) -> &MediumStats {
        &self.transfer.stats
    }

    /// Number of frames in the queue of `host`, including the one on the wire.
    pub fn queue_len(&self, host: usize) -> usize {
        self.lanes.get(host).map_or(0, |l| l.queue.len())
    }

    /// Packets accepted and neither delivered nor dropped yet, including copies.
    pub fn in_flight(&self) -> u64 {
        (self.transfer.under_way() + self.lanes.iter().map(|l| l.queue.len()).sum::<usize>()) as u64
    }

    /// Changes the rate of the frames that start after `now`; `None` for no limit. Rates of directions stay; those in
    /// the wire's table of quality are dropped.
    ///
    /// # Errors
    /// [`ConfigError::WireRate`]; the old one stays.
    pub fn set_rate(&mut self, now: Time, rate_bits: Option<u64>) -> Result<(), ConfigError> {
        self.advance(now);
        rate_bits.map_or(Ok(()), rate)?;
        self.rate_bits = rate_bits.unwrap_or(UNLIMITED);
        self.transfer.links.forget_quality_rates();
        Ok(())
    }

    /// See [`crate::Medium::set_loss`].
    pub fn set_loss(&mut self, now: Time, loss: Loss) {
        self.advance(now);
        self.transfer.links.set_loss(loss);
    }

    /// See [`crate::Medium::set_path`].
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_path(&mut self, now: Time, path: Path) -> Result<(), ConfigError> {
        self.advance(now);
        self.transfer.links.set_path(path)
    }

    /// Impairments of packets after the wire, in directions without a path of their own.
    pub fn path(&self) -> &Path {
        &self.transfer.links.path
    }

    /// See [`crate::Medium::set_quality`].
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_quality(&mut self, now: Time, quality: Vec<(Duration, Quality)>) -> Result<(), ConfigError> {
        self.advance(now);
        self.transfer.links.set_quality(quality, &rate)
    }

    /// The own settings of the direction from `from` to `to`.
    pub fn link(&self, from: usize, to: usize) -> Link {
        self.transfer.links.get((from, to))
    }

    /// See [`crate::Medium::own_links`].
    pub fn own_links(&self) -> Vec<(usize, usize)> {
        self.transfer.links.own()
    }

    /// Whether a host is switched off.
    pub fn is_host_down(&self, host: usize) -> bool {
        self.power.is_down(host)
    }

    /// See [`crate::Medium::set_link`].
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such direction or a setting is invalid; the old ones stay.
    pub fn set_link(&mut self, now: Time, from: usize, to: usize, link: Link) -> Result<(), ConfigError> {
        self.advance(now);
        if !is_lane(from, to) {
            let setting = "set_link".into();
            return Err(ConfigError::NoSuchLink { setting, from, to });
        }
        self.transfer.links.set((from, to), link, &rate)
    }

    /// See [`crate::Medium::set_host_down`]; a frame that is already on the wire crosses it.
    ///
    /// # Errors
    /// [`ConfigError::NoSuchHost`].
    pub fn set_host_down(&mut self, now: Time, host: usize, down: bool) -> Result<(), ConfigError> {
        self.advance(now);
        check::host("set_host_down", host, ENDS)?;
        let change = self.power.set(host, down);
        self.switch(self.clock, change);
        Ok(())
    }

    fn advance(&mut self, now: Time) {
        while let Some(t) = self.next_step().filter(|t| *t <= now) {
            self.clock = self.clock.max(t);
            self.step(self.clock);
        }
        self.clock = self.clock.max(now);
    }

    fn next_step(&self) -> Option<Time> {
        let lanes = self.lanes.iter().filter_map(|l| l.head_end);
        let rest = [self.transfer.next(), self.power.next()];
        lanes.chain(rest.into_iter().flatten()).min()
    }

    fn step(&mut self, t: Time) {
        let due = |at: Option<Time>| at.is_some_and(|at| at <= t);
        if due(self.transfer.next()) {
            if let Some((host, frame)) = self.transfer.pop() {
                self.arrive(t, host, frame);
            }
        } else if due(self.power.next()) {
            let change = self.power.go_on();
            self.switch(t, change);
        } else if let Some(from) = self.lanes.iter().position(|l| due(l.head_end)) {
            self.end(t, from);
        }
    }

    /// The head of the queue goes onto the wire as soon as it is free.
    fn begin(&mut self, t: Time, from: usize) {
        let lane = &mut self.lanes[from];
        let Some(ip_bytes) = lane.queue.front().map(|f| f.ip_bytes) else {
            return;
        };
        let start = t.max(lane.free);
        let bits = self
            .transfer
            .links
            .rate(start, (from, 1 - from), None, self.rate_bits);
        let time = |bytes: usize| match bits {
            UNLIMITED => Duration::ZERO,
            _ => Duration::from_nanos(phy::steps((bytes as u64).saturating_mul(8), bits, 1)),
        };
        let frame = ip_bytes.max(self.min_ip_bytes).saturating_add(self.frame_bytes);
        lane.head_end = Some(start + time(frame));
        let whole = time(frame.saturating_add(self.gap_bytes));
        lane.free = start + whole;
        let stats = &mut self.transfer.stats;
        stats.busy += whole;
        stats.hosts[from].air += whole;
        stats.hosts[from].attempts += 1;
    }

    fn end(&mut self, t: Time, from: usize) {
        let (lane, to) = (&mut self.lanes[from], 1 - from);
        lane.head_end = None;
        let Some(frame) = lane.queue.pop_front() else {
            return;
        };
        lane.bytes = lane.bytes.saturating_sub(frame.ip_bytes);
        self.begin(t, from);
        let down = self.power.is_down(to) || self.transfer.links.is_down(t, (from, to));
        if down || self.transfer.links.loses(t, (from, to), &mut self.transfer.rng) {
            let reason = if down { DropReason::Outage } else { DropReason::Air };
            self.transfer.stats.lost += 1;
            self.transfer.stats.hosts[from].lost += 1;
            self.transfer.lose(t, from, reason, frame);
        } else {
            self.transfer.over(from, frame.queue);
            if let Some(frame) = self.transfer.crossed(t, from, to, frame) {
                self.arrive(t, to, frame);
            }
        }
    }

    fn arrive(&mut self, t: Time, host: usize, frame: Frame<P>) {
        if self.power.is_down(host) {
            self.transfer.lose(t, host, DropReason::Outage, frame);
        } else {
            self.transfer.deliver(t, host, frame);
        }
    }

    fn switch(&mut self, t: Time, change: Option<(usize, bool)>) {
        let Some((host, true)) = change else { return };
        let lane = &mut self.lanes[host];
        let lost = lane.queue.split_off(lane.queue.len().min(1));
        lane.bytes = lane.queue.iter().map(|f| f.ip_bytes).sum();
        for frame in lost {
            self.transfer.lose(t, host, DropReason::Outage, frame);
        }
    }
}

fn is_lane(from: usize, to: usize) -> bool {
    from != to && from.max(to) < ENDS
}

fn rate(bits: u64) -> Result<(), ConfigError> {
    if bits == 0 {
        return Err(ConfigError::WireRate { bits });
    }
    Ok(())
}
