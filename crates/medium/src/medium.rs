//! A radio channel with its hosts: sending, events, and changes at run time.

use crate::check;
use crate::config::{ConfigError, Link, MediumConfig, Quality};
use crate::count::{CategoryStats, HostStats, MediumStats};
use crate::delay::Path;
use crate::edca::{Access, Category, Contention, Mapping};
use crate::event::{Event, SendError};
use crate::links::Links;
use crate::loss::Loss;
use crate::phy::{Phy, RateError, Standard};
use crate::power::Power;
use crate::station::Station;
use crate::topology::{EVERYONE, Map};
use crate::transfer::{Frame, Transfer};
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::BTreeMap;

/// One shared half-duplex channel with its hosts; see the crate's documentation.
///
/// `P` is the driver's payload: bytes, or a number that stands for them.
pub struct Medium<P> {
    pub(crate) standard: Standard,
    basic_rates: Vec<u64>,
    rate_bits: u64,
    host_rates: BTreeMap<usize, u64>,
    mapping: Option<Mapping>,
    queue_frames: usize,
    pub(crate) retries: u8,
    pub(crate) map: Map,
    pub(crate) transfer: Transfer<P>,
    pub(crate) stations: Vec<Station<P>>,
    /// Hosts that transmit or are about to.
    pub(crate) on_air: Vec<usize>,
    pub(crate) busy_since: Time,
    /// Until when the time is counted during which some host wanted the channel.
    wanted_until: Time,
    /// When the first of the idle hosts transmits.
    pub(crate) next_attempt: Option<Time>,
    /// Shortest duration of a frame at the head of a queue; `None` if all are empty.
    pub(crate) shortest: Option<Duration>,
    /// Whether categories of a host may collide with each other.
    pub(crate) contested: bool,
    /// The timing at each rate that is set anywhere.
    pub(crate) phys: Vec<Phy>,
    clock: Time,
    power: Power,
}

impl<P: Clone> Medium<P> {
    /// An idle channel.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn new(config: MediumConfig) -> Result<Self, ConfigError> {
        let MediumConfig { standard, hosts, .. } = config;
        let rate = |bits| judge(standard, bits, &config.basic_rates);
        rate(config.rate_bits)?;
        if !(2..=1024).contains(&hosts) {
            return Err(ConfigError::Hosts { hosts });
        }
        if config.queue_frames == 0 {
            return Err(ConfigError::Queue);
        }
        for (host, bits) in &config.host_rates {
            check::host("host_rates", *host, hosts)?;
            rate(*bits)?;
        }
        let map = Map::new(config.topology, &config.hearing, hosts)?;
        if let Some((from, to)) = config.links.keys().copied().find(|(a, b)| !map.linked(*a, *b)) {
            let setting = "links".into();
            return Err(ConfigError::NoSuchLink { setting, from, to });
        }
        let power = Power::new(hosts, config.start, &config.host_outages)?;
        let links = Links::new(
            config.start,
            config.loss,
            config.path,
            config.quality,
            config.links,
            &rate,
        )?;
        let (mapping, rules) = match config.access {
            Access::Dcf => (None, vec![Contention::dcf(standard)]),
            Access::Edca(m) => (
                Some(m),
                Category::ALL.map(|c| Contention::edca(standard, c)).to_vec(),
            ),
        };
        let categories = mapping.map_or(Vec::new(), |_| vec![CategoryStats::default(); rules.len()]);
        let host = HostStats {
            categories,
            ..HostStats::default()
        };
        let stats = MediumStats {
            hosts: vec![host; hosts],
            ..MediumStats::default()
        };
        let transfer = Transfer::new(links, config.seed, stats);
        let mut medium = Medium {
            standard,
            basic_rates: config.basic_rates,
            rate_bits: config.rate_bits,
            host_rates: config.host_rates,
            mapping,
            queue_frames: config.queue_frames,
            retries: config.retries,
            map,
            transfer,
            stations: (0..hosts).map(|_| Station::new(&rules)).collect(),
            on_air: Vec::new(),
            busy_since: Time::ZERO,
            wanted_until: Time::ZERO,
            next_attempt: None,
            shortest: None,
            contested: false,
            phys: Vec::new(),
            clock: Time::ZERO,
            power,
        };
        medium.collect_rates();
        Ok(medium)
    }

    /// [`Medium::send_dscp`] with DSCP 0.
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
        self.send_dscp(now, from, to, ip_bytes, 0, payload)
    }

    /// Puts an IP packet of `ip_bytes` into the queue of host `from`, addressed to host `to`. Its `dscp` (0 to 63)
    /// selects the access category if the medium has [`Access::Edca`].
    ///
    /// If `now` is earlier than the time already simulated, it counts as that instant: the past does not change. A host
    /// that is down takes the packet and drops it.
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
        let hosts = self.stations.len();
        if to == EVERYONE || self.map.next(from, to).is_none() {
            return Err(SendError::NoRoute {
                from,
                to,
                hosts,
                payload,
            });
        }
        self.offer(now, from, to, ip_bytes, dscp, payload)
    }

    /// Puts an IP packet of `ip_bytes` into the queue of host `from`, addressed to all hosts that decode it.
    ///
    /// It is sent once, at the lowest basic rate, without acknowledgement or retry, and each receiver gets it or not by
    /// an independent chance. A station of an access point sends it there as any other frame, and the access point
    /// sends it to everyone else. Nobody forwards it further.
    ///
    /// It counts as one packet offered and, once it was on the air, as one more duplicated for each receiver after the
    /// first; receivers that miss it count as drops of the sender.
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
        let hosts = self.stations.len();
        if from >= hosts {
            return Err(SendError::NoRoute {
                from,
                to: from,
                hosts,
                payload,
            });
        }
        self.offer(now, from, EVERYONE, ip_bytes, dscp, payload)
    }

    /// Takes a packet that has a route.
    fn offer(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        ip_bytes: usize,
        dscp: u8,
        payload: P,
    ) -> Result<(), SendError<P>> {
        self.advance(now);
        self.transfer.offered(from);
        let frame = Frame {
            from,
            to,
            ip_bytes,
            queue: self.mapping.map_or(0, |m| Category::of_dscp(dscp, m) as usize),
            payload: Some(payload),
        };
        if self.stations[from].down {
            self.transfer.lose(self.clock, from, DropReason::Outage, frame);
            return Ok(());
        }
        match self.enqueue(self.clock, from, frame) {
            Ok(()) => Ok(()),
            Err(frame) => {
                let queue = frame.queue;
                self.transfer.count_loss(from, queue, DropReason::DeviceQueue);
                // A packet that was just handed in has its payload.
                frame.payload.map_or(Ok(()), |payload| {
                    Err(SendError::QueueFull {
                        host: from,
                        frames: self.stations[from].queues[queue].queue.len(),
                        payload,
                    })
                })
            }
        }
    }

    /// When [`Medium::poll`] should be called next; `None` while nothing is under way.
    ///
    /// There may be nothing to report then, since chance decides when hosts transmit; but nothing occurs before it,
    /// unless something is sent or changed.
    pub fn next_event(&self) -> Option<Time> {
        let reported = self.transfer.out.front().map(Event::at);
        reported.into_iter().chain(self.next_report()).min()
    }

    /// The next event up to `now`, in order of time; call until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        self.advance(now);
        self.transfer.out.pop_front()
    }

    /// Counters since the start.
    pub fn stats(&self) -> &MediumStats {
        &self.transfer.stats
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.stations.len()
    }

    /// Number of frames in the device queue of `host`, including the one in the air; with categories, all queues
    /// together.
    pub fn queue_len(&self, host: usize) -> usize {
        self.stations.get(host).map_or(0, Station::queued)
    }

    /// Number of frames in the queue of one category of `host`; without EDCA, [`Medium::queue_len`].
    pub fn category_len(&self, host: usize, category: Category) -> usize {
        let Some(s) = self.stations.get(host) else {
            return 0;
        };
        let queue = s.queues.get(category as usize).or(s.queues.first());
        queue.map_or(0, |q| q.queue.len())
    }

    /// Packets accepted and neither delivered nor dropped yet, including copies. A frame that was received but not
    /// acknowledged counts where it was received.
    pub fn in_flight(&self) -> u64 {
        let waiting = |s: &Station<P>| {
            let frames = s.queues.iter().flat_map(|q| &q.queue);
            frames.filter(|f| f.payload.is_some()).count()
        };
        (self.transfer.under_way() + self.stations.iter().map(waiting).sum::<usize>()) as u64
    }

    /// Whether packets go from `from` to `to` without another host between.
    pub fn are_neighbours(&self, from: usize, to: usize) -> bool {
        self.map.next(from, to) == Some(to)
    }

    /// Changes the rate of the frames that start after `now`. Rates of hosts and links stay; those in the medium's
    /// table of quality are dropped.
    ///
    /// # Errors
    /// [`RateError`] if the rate is invalid; the old one stays.
    pub fn set_rate(&mut self, now: Time, rate_bits: u64) -> Result<(), RateError> {
        self.advance(now);
        Phy::of(self.standard, rate_bits, &self.basic_rates)?;
        self.rate_bits = rate_bits;
        self.transfer.links.forget_quality_rates();
        self.collect_rates();
        Ok(())
    }

    /// Changes the rate of one host's frames that start after `now`; `None` for that of the medium.
    ///
    /// # Errors
    /// [`ConfigError`] if the rate is invalid or there is no such host; the old one stays.
    pub fn set_host_rate(
        &mut self,
        now: Time,
        host: usize,
        rate_bits: Option<u64>,
    ) -> Result<(), ConfigError> {
        self.advance(now);
        check::host("host rate", host, self.hosts())?;
        match rate_bits {
            Some(bits) => {
                judge(self.standard, bits, &self.basic_rates)?;
                self.host_rates.insert(host, bits);
            }
            None => {
                self.host_rates.remove(&host);
            }
        }
        self.collect_rates();
        Ok(())
    }

    /// Changes the loss of the frames that end after `now`; probabilities outside 0 to 1 are clamped (never, always).
    /// Losses of links stay; those in the medium's table of quality are dropped.
    pub fn set_loss(&mut self, now: Time, loss: Loss) {
        self.advance(now);
        self.transfer.links.set_loss(loss);
    }

    /// Changes the path of packets that leave the air after `now`; paths of links stay.
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_path(&mut self, now: Time, path: Path) -> Result<(), ConfigError> {
        self.advance(now);
        self.transfer.links.set_path(path)
    }

    /// The path of packets after the air, on links without their own.
    pub fn path(&self) -> &Path {
        &self.transfer.links.path
    }

    /// Changes the table of the whole medium's quality; its times count from [`MediumConfig::start`].
    ///
    /// # Errors
    /// [`ConfigError`]; the old one stays.
    pub fn set_quality(&mut self, now: Time, quality: Vec<(Duration, Quality)>) -> Result<(), ConfigError> {
        self.advance(now);
        let (standard, basic) = (self.standard, &self.basic_rates);
        let rate = |bits| judge(standard, bits, basic);
        self.transfer.links.set_quality(quality, &rate)?;
        self.collect_rates();
        Ok(())
    }

    /// The own settings of the link from `from` to `to`.
    pub fn link(&self, from: usize, to: usize) -> Link {
        self.transfer.links.get((from, to))
    }

    /// Links that have, or had, their own settings: sender and receiver, in ascending order.
    pub fn own_links(&self) -> Vec<(usize, usize)> {
        self.transfer.links.own()
    }

    /// Whether a host is switched off.
    pub fn is_host_down(&self, host: usize) -> bool {
        self.power.is_down(host)
    }

    /// Changes the own settings of the link from `from` to `to`; the other direction stays.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such link or a setting is invalid; the old ones stay.
    pub fn set_link(&mut self, now: Time, from: usize, to: usize, link: Link) -> Result<(), ConfigError> {
        self.advance(now);
        if !self.map.linked(from, to) || from.max(to) >= self.hosts() {
            let setting = "set_link".into();
            return Err(ConfigError::NoSuchLink { setting, from, to });
        }
        let (standard, basic) = (self.standard, &self.basic_rates);
        let rate = |bits| judge(standard, bits, basic);
        self.transfer.links.set((from, to), link, &rate)?;
        self.collect_rates();
        Ok(())
    }

    /// Switches a host off or on. Frames that wait in the queues of a host that goes off are lost. A frame that it has
    /// on the air ends; if that fails, it waits for the host to return.
    ///
    /// # Errors
    /// [`ConfigError::NoSuchHost`].
    pub fn set_host_down(&mut self, now: Time, host: usize, down: bool) -> Result<(), ConfigError> {
        self.advance(now);
        check::host("set_host_down", host, self.hosts())?;
        let change = self.power.set(host, down);
        self.switch(self.clock, change);
        self.refresh();
        Ok(())
    }

    /// The timing of a frame from `from` to its neighbour `to` that starts at `t`.
    pub(crate) fn phy(&self, t: Time, from: usize, to: usize) -> Phy {
        let host = self.host_rates.get(&from).copied();
        if to == EVERYONE {
            // Not any link's rate: the frame is for all of them.
            let rate = self.transfer.links.rate(t, (from, from), host, self.rate_bits);
            return self.judged(Phy::group(self.standard, rate, &self.basic_rates));
        }
        self.phy_at(self.transfer.links.rate(t, (from, to), host, self.rate_bits))
    }

    fn phy_at(&self, rate_bits: u64) -> Phy {
        self.judged(Phy::of(self.standard, rate_bits, &self.basic_rates))
    }

    /// Every rate was checked when it was set.
    fn judged(&self, phy: Result<Phy, RateError>) -> Phy {
        let phy = phy.unwrap_or_else(|e| unreachable!("{e}"));
        if self.has_categories() {
            phy.with_qos()
        } else {
            phy
        }
    }

    /// Collects the rates that are set anywhere.
    fn collect_rates(&mut self) {
        let hosts = self.host_rates.values().copied();
        let mut rates: Vec<u64> = hosts.chain(self.transfer.links.rates()).collect();
        rates.push(self.rate_bits);
        rates.sort_unstable();
        rates.dedup();
        self.phys = rates.into_iter().map(|r| self.phy_at(r)).collect();
        self.refresh();
    }

    pub(crate) fn has_categories(&self) -> bool {
        self.mapping.is_some()
    }

    pub(crate) fn power_next(&self) -> Option<Time> {
        self.power.next()
    }

    fn advance(&mut self, now: Time) {
        while let Some(t) = self.next_step().filter(|t| *t <= now) {
            self.pass(t);
            self.step(self.clock);
            self.refresh();
        }
        self.pass(now);
    }

    /// Advances time while nothing begins or ends.
    fn pass(&mut self, to: Time) {
        self.clock = self.clock.max(to);
        if !self.on_air.is_empty() || self.shortest.is_some() {
            self.transfer.stats.wanted += self.clock.since(self.wanted_until);
        }
        self.wanted_until = self.clock;
    }

    pub(crate) fn next_step(&self) -> Option<Time> {
        let on_air = self.on_air.iter().filter_map(|i| self.stations[*i].due());
        let rest = [self.transfer.next(), self.power.next(), self.next_attempt];
        on_air.chain(rest.into_iter().flatten()).min()
    }

    /// Carries out the next thing that happens at `t`.
    fn step(&mut self, t: Time) {
        let due = |at: Option<Time>| at.is_some_and(|at| at <= t);
        if due(self.transfer.next()) {
            if let Some((host, frame)) = self.transfer.pop() {
                self.arrive(t, host, frame);
            }
        } else if due(self.power.next()) {
            let change = self.power.go_on();
            self.switch(t, change);
        } else if let Some(&host) = self.on_air.iter().find(|i| due(self.stations[**i].due())) {
            self.go_on(t, host);
        } else if let Some(host) = self.stations.iter().position(|s| due(s.attempt())) {
            self.on_air.push(host);
            self.begin(t, host);
        }
    }

    pub(crate) fn arrive(&mut self, t: Time, host: usize, frame: Frame<P>) {
        if self.stations[host].down {
            self.transfer.lose(t, host, DropReason::Outage, frame);
        } else if frame.to == EVERYONE {
            self.arrive_for_all(t, host, frame);
        } else if host == frame.to {
            self.transfer.deliver(t, host, frame);
        } else if let Err(frame) = self.enqueue(t, host, frame) {
            self.transfer.lose(t, host, DropReason::DeviceQueue, frame);
        }
    }

    /// A packet for everyone has reached one host; if that is the access point of its sender, it is forwarded to the
    /// others.
    fn arrive_for_all(&mut self, t: Time, host: usize, frame: Frame<P>) {
        let is_access_point = self.map.access_point() == Some(host);
        if is_access_point && self.map.receivers(host, frame.from).next().is_some() {
            self.transfer.stats.duplicated += 1;
            if let Err(frame) = self.enqueue(t, host, frame.clone()) {
                self.transfer.lose(t, host, DropReason::DeviceQueue, frame);
            }
        }
        self.transfer.deliver(t, host, frame);
    }

    /// Returns the frame, uncounted, if its queue is full.
    fn enqueue(&mut self, t: Time, host: usize, frame: Frame<P>) -> Result<(), Frame<P>> {
        let s = &mut self.stations[host];
        let (idle, queue, ip_bytes) = (s.idle(), frame.queue, frame.ip_bytes);
        if s.queues[queue].queue.len() >= self.queue_frames {
            return Err(frame);
        }
        s.queues[queue].push(t, idle, frame, &mut self.transfer.rng);
        let attempt = s.attempt();
        let (own, all) = (s.queues[queue].queue.len(), s.queued());
        self.contested |= s.is_contested();
        self.transfer.grown(host, queue, own, all);
        self.next_attempt = self.next_attempt.into_iter().chain(attempt).min();
        if own == 1 {
            let duration = self.phys.iter().map(|p| p.data(ip_bytes)).min();
            self.shortest = self.shortest.into_iter().chain(duration).min();
        }
        Ok(())
    }

    fn switch(&mut self, t: Time, change: Option<(usize, bool)>) {
        let Some((host, down)) = change else { return };
        let s = &mut self.stations[host];
        s.down = down;
        if down {
            // The frame that it is transmitting stays the head of its queue until it ends.
            let speaks = s.air.is_some() || s.committed.is_some() || s.outcome.is_some();
            let mut lost = Vec::new();
            for q in &mut s.queues {
                let keep = usize::from(speaks).min(q.queue.len());
                lost.extend(q.queue.split_off(keep));
            }
            for frame in lost {
                self.transfer.lose(t, host, DropReason::Outage, frame);
            }
        } else {
            let idle = s.idle();
            for q in &mut s.queues {
                q.listen(t, idle, &mut self.transfer.rng);
            }
        }
    }
}

fn judge(standard: Standard, rate_bits: u64, basic_rates: &[u64]) -> Result<(), ConfigError> {
    Phy::of(standard, rate_bits, basic_rates)?;
    Ok(())
}
