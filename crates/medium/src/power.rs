//! Hosts that are switched off, manually or by schedule.

use crate::check;
use crate::config::{ConfigError, Outage};
use stats::Time;
use std::collections::VecDeque;

pub(crate) struct Power {
    /// Hosts that go off (`true`) and on again.
    agenda: VecDeque<(Time, usize, bool)>,
    hosts: Vec<Switch>,
}

#[derive(Clone, Default)]
struct Switch {
    by_hand: bool,
    /// Number of scheduled outages that currently hold; they may overlap.
    outages: u32,
}

impl Power {
    pub(crate) fn new(hosts: usize, start: Time, outages: &[(usize, Outage)]) -> Result<Power, ConfigError> {
        let mut agenda = Vec::new();
        for (host, outage) in outages {
            check::host("host_outages", *host, hosts)?;
            check::outage("host_outages", outage)?;
            agenda.push((start + outage.from, *host, true));
            agenda.push((start + outage.until, *host, false));
        }
        agenda.sort_by_key(|(at, ..)| *at);
        Ok(Power {
            agenda: agenda.into(),
            hosts: vec![Switch::default(); hosts],
        })
    }

    pub(crate) fn is_down(&self, host: usize) -> bool {
        self.hosts.get(host).is_some_and(|h| h.by_hand || h.outages > 0)
    }

    /// The time of the next scheduled change.
    pub(crate) fn next(&self) -> Option<Time> {
        self.agenda.front().map(|(t, ..)| *t)
    }

    /// Carries out the next scheduled change; returns the host and whether it is down, if that changed.
    pub(crate) fn go_on(&mut self) -> Option<(usize, bool)> {
        let (_, host, down) = self.agenda.pop_front()?;
        self.change(host, |h| match down {
            true => h.outages += 1,
            false => h.outages = h.outages.saturating_sub(1),
        })
    }

    /// Switches manually; returns the same.
    pub(crate) fn set(&mut self, host: usize, down: bool) -> Option<(usize, bool)> {
        self.change(host, |h| h.by_hand = down)
    }

    fn change(&mut self, host: usize, change: impl FnOnce(&mut Switch)) -> Option<(usize, bool)> {
        let before = self.is_down(host);
        change(self.hosts.get_mut(host)?);
        let after = self.is_down(host);
        (before != after).then_some((host, after))
    }
}
