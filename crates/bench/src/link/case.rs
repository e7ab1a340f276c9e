//! A row whose runs are only flows through one lab.

use super::tools::Means;
use super::{Experiment, Part, Row, System};
use crate::flows::play::{Leg, Played};
use crate::flows::said::Received;
use crate::kit::cell::{Params, Target, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use serde_json::Value;
use stats::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// The lab of a case.
#[derive(Clone, Debug)]
pub(super) struct LabSetup {
    /// A shipped scenario, or the name of `yaml`.
    pub(super) scenario: &'static str,
    pub(super) yaml: Option<String>,
    pub(super) hops: u32,
}

impl LabSetup {
    pub(super) fn shipped(scenario: &'static str, hops: u32) -> LabSetup {
        LabSetup {
            scenario,
            yaml: None,
            hops,
        }
    }
}

/// Data of one run after its end.
pub(super) struct Seen<'a> {
    pub(super) legs: &'a [Leg],
    pub(super) played: &'a Played,
    /// When the lab came up, by CLOCK_MONOTONIC: its events count from then.
    pub(super) lab_began: Time,
}

impl Seen<'_> {
    /// Returns the numbers of each leg.
    pub(super) fn flows(&self) -> Result<Vec<Values>, RunError> {
        let judged = std::iter::zip(self.legs, &self.played.received).map(|(leg, log)| leg.flow.judge(log));
        Ok(judged.collect::<Result<_, _>>()?)
    }

    /// Returns the longest delay of messages stamped in each second since the lab came up, in ms.
    pub(super) fn over_time(&self, log: &Received) -> Vec<[f64; 2]> {
        let mut worst: BTreeMap<u64, u64> = BTreeMap::new();
        for (stamp, arrival) in log.stamp_ns.iter().zip(&log.arrival_ns) {
            let second = stamp.saturating_sub(self.lab_began.as_nanos()) / 1_000_000_000;
            let delay = arrival.saturating_sub(*stamp);
            let entry = worst.entry(second).or_default();
            *entry = delay.max(*entry);
        }
        worst
            .into_iter()
            .map(|(s, ns)| [s as f64, ns as f64 / 1e6])
            .collect()
    }

    /// Returns a cell for each leg, with these targets for the first ones.
    pub(super) fn cells(&self, targets: &[Vec<Target>]) -> Result<Vec<Part>, RunError> {
        let none = Vec::new();
        let targets = targets.iter().chain(std::iter::repeat(&none));
        let flows = self.flows()?.into_iter().zip(targets);
        let parts = self.legs.iter().zip(flows);
        Ok(parts
            .map(|(leg, (values, targets))| Part::of_flow(leg, values, targets.clone()))
            .collect())
    }
}

/// A row whose runs are flows.
pub(super) struct Case {
    pub(super) experiment: Experiment,
    pub(super) system: System,
    pub(super) place: LabSetup,
    pub(super) means: Means,
    /// Further parameters: for people, and by name.
    pub(super) varies: Vec<(&'static str, String, Value)>,
    /// Returns the legs of run `n`.
    pub(super) legs: Box<dyn Fn(u32) -> Vec<Leg>>,
    /// Evaluates a run.
    pub(super) judge: Judge,
}

pub(super) type Judge = Box<dyn Fn(&Seen<'_>) -> Result<Vec<Part>, RunError>>;

impl Case {
    pub(super) fn row(self) -> Row {
        let shown = self.varies.iter().map(|v| v.1.clone());
        let shown: Vec<_> = [self.means.shown()].into_iter().chain(shown).collect();
        let shown = shown.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>();
        let mut params = Params::new();
        self.means.describe(&mut params);
        params.extend(self.varies.iter().map(|v| (v.0.to_owned(), v.2.clone())));
        let what = format!("{} {}", self.experiment.name(), self.system.name());
        Row {
            beside: Vec::new(),
            experiment: self.experiment,
            system: self.system,
            scenario: self.place.scenario,
            hops: self.place.hops,
            setting: shown.join(", "),
            params,
            run: Box::new(move |tools, run| {
                let site = Site::up(&tools.ground, self.place.scenario, self.place.yaml.as_deref())?;
                let lab_began = began(&site)?;
                let legs = (self.legs)(run);
                let played = tools.play(&what, &site, &self.means, &legs)?;
                let seen = Seen {
                    legs: &legs,
                    played: &played,
                    lab_began,
                };
                Ok(((self.judge)(&seen)?, played.timing))
            }),
        }
    }
}

/// Returns when a lab came up, to about a millisecond: the duration of its answer.
fn began(site: &Site<'_>) -> Result<Time, RunError> {
    let before = clock::monotonic();
    let up = site.status()?.uptime_s;
    let middle = before + clock::monotonic().since(before) / 2;
    Ok(middle - Duration::from_secs_f64(up))
}

/// Returns a flow from one host to another.
pub(super) fn leg(flow: crate::flows::Sent, from: &str, to: &str) -> Leg {
    Leg {
        flow,
        from: from.into(),
        to: to.into(),
    }
}
