//! Current state of the directed links of a medium.

use crate::check::{self, RateCheck};
use crate::config::{ConfigError, Link, Outage, Quality};
use crate::delay::{Path, PathState};
use crate::loss::{Loss, LossState, now};
use crate::rng::Rng;
use core::time::Duration;
use stats::Time;
use std::collections::BTreeMap;

/// The settings of all links, and the state of each.
pub(crate) struct Links {
    start: Time,
    loss: Loss,
    pub(crate) path: Path,
    quality: Vec<(Duration, Quality)>,
    own: BTreeMap<(usize, usize), Link>,
    state: BTreeMap<(usize, usize), LinkState>,
}

#[derive(Default)]
struct LinkState {
    loss: LossState,
    path: PathState,
}

impl Links {
    pub(crate) fn new(
        start: Time,
        loss: Loss,
        path: Path,
        quality: Vec<(Duration, Quality)>,
        own: BTreeMap<(usize, usize), Link>,
        rate: RateCheck<'_>,
    ) -> Result<Links, ConfigError> {
        check::loss("loss", &loss)?;
        check::path("path", &path)?;
        check::quality("quality", &quality, rate)?;
        for ((from, to), link) in &own {
            check::link(&name(*from, *to), link, rate)?;
        }
        Ok(Links {
            start,
            loss,
            path,
            quality,
            own,
            state: BTreeMap::new(),
        })
    }

    pub(crate) fn get(&self, link: (usize, usize)) -> Link {
        self.own.get(&link).cloned().unwrap_or_default()
    }

    /// Links with their own settings.
    pub(crate) fn own(&self) -> Vec<(usize, usize)> {
        self.own.keys().copied().collect()
    }

    pub(crate) fn set(
        &mut self,
        link: (usize, usize),
        to: Link,
        rate: RateCheck<'_>,
    ) -> Result<(), ConfigError> {
        check::link(&name(link.0, link.1), &to, rate)?;
        self.own.insert(link, to);
        self.forget_order(|l| *l == link);
        Ok(())
    }

    pub(crate) fn set_path(&mut self, path: Path) -> Result<(), ConfigError> {
        check::path("path", &path)?;
        self.path = path;
        self.forget_order(|_| true);
        Ok(())
    }

    /// Sets another loss for links without their own; the table's losses are dropped.
    pub(crate) fn set_loss(&mut self, loss: Loss) {
        self.loss = loss;
        self.quality.iter_mut().for_each(|(_, q)| q.loss = None);
    }

    pub(crate) fn set_quality(
        &mut self,
        quality: Vec<(Duration, Quality)>,
        rate: RateCheck<'_>,
    ) -> Result<(), ConfigError> {
        check::quality("quality", &quality, rate)?;
        self.quality = quality;
        Ok(())
    }

    /// The medium's rate was set: drops the rates of its table.
    pub(crate) fn forget_quality_rates(&mut self) {
        self.quality.iter_mut().for_each(|(_, q)| q.rate_bits = None);
    }

    /// A new delay applies to every packet from here on; none waits for those under the old one.
    fn forget_order(&mut self, which: impl Fn(&(usize, usize)) -> bool) {
        for (_, state) in self.state.iter_mut().filter(|(l, _)| which(l)) {
            state.path.last = Time::ZERO;
        }
    }

    /// The rate of a link: by its own table, its own setting, `host`'s, the medium's table, or `medium`.
    pub(crate) fn rate(&self, t: Time, link: (usize, usize), host: Option<u64>, medium: u64) -> u64 {
        let own = self.own.get(&link);
        own.and_then(|l| self.quality_at(t, &l.quality)?.rate_bits)
            .or_else(|| own?.rate_bits)
            .or(host)
            .or_else(|| self.quality_at(t, &self.quality)?.rate_bits)
            .unwrap_or(medium)
    }

    /// Every rate that a table or a link may use.
    pub(crate) fn rates(&self) -> impl Iterator<Item = u64> {
        let own = self.own.values();
        let tables = own.clone().map(|l| &l.quality).chain([&self.quality]);
        let tables = tables.flatten().filter_map(|(_, q)| q.rate_bits);
        own.filter_map(|l| l.rate_bits).chain(tables)
    }

    /// Whether nothing can cross the link.
    pub(crate) fn is_down(&self, t: Time, link: (usize, usize)) -> bool {
        let gone = |table: &[(Duration, Quality)]| self.quality_at(t, table).is_some_and(|q| q.gone);
        let elapsed = self.elapsed(t);
        let out = |o: &Outage| (o.from..o.until).contains(&elapsed);
        let own = |l: &Link| l.down || gone(&l.quality) || l.outages.iter().any(out);
        gone(&self.quality) || self.own.get(&link).is_some_and(own)
    }

    /// Whether the next frame on the link is lost by chance.
    pub(crate) fn loses(&mut self, t: Time, link: (usize, usize), rng: &mut Rng) -> bool {
        let own = self.own.get(&link);
        let moved = own.and_then(|l| self.quality_at(t, &l.quality)?.loss);
        let whole = || self.quality_at(t, &self.quality)?.loss;
        let loss = match (moved, own.and_then(|l| l.loss.as_ref())) {
            (Some(p), _) => return rng.chance(p),
            (None, Some(loss)) => loss,
            (None, None) => match whole() {
                Some(p) => return rng.chance(p),
                None => &self.loss,
            },
        };
        let elapsed = t.since(self.start);
        loss.draw(&mut self.state.entry(link).or_default().loss, elapsed, rng)
    }

    /// When a packet that has crossed the air or wire at `t` arrives, and its copy; `None` if it is lost.
    pub(crate) fn transit(
        &mut self,
        t: Time,
        link: (usize, usize),
        rng: &mut Rng,
    ) -> Option<(Time, Option<Time>)> {
        let path = self.own.get(&link).and_then(|l| l.path.as_ref());
        let elapsed = t.since(self.start);
        let state = &mut self.state.entry(link).or_default().path;
        path.unwrap_or(&self.path).transit(t, elapsed, state, rng)
    }

    fn elapsed(&self, t: Time) -> Duration {
        t.since(self.start)
    }

    fn quality_at<'a>(&self, t: Time, table: &'a [(Duration, Quality)]) -> Option<&'a Quality> {
        if table.is_empty() || t < self.start {
            return None;
        }
        now(table, self.elapsed(t))
    }
}

fn name(from: usize, to: usize) -> String {
    format!("link {from} to {to}")
}
