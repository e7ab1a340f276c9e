//! The result of one row, and its verdict.

use lab::{Status, Verdict as Timed};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The setting of a cell, by name.
pub type Params = BTreeMap<String, Value>;

/// Timing of the lab during a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Number of frames whose time was recorded.
    pub events: u64,
    /// Half of them were later than this.
    pub late_p50_us: f64,
    /// One in a hundred was later than this.
    pub late_p99_us: f64,
    /// The maximum.
    pub late_max_us: f64,
    /// Frames more than 5 ms late.
    pub stalls: u64,
    /// `rerun`: the lab was too late for its numbers to be used.
    pub verdict: Timed,
    /// False if the lab has no SCHED_FIFO, whatever the numbers.
    pub trusted: bool,
}

impl Timing {
    pub(crate) fn of(status: &Status) -> Self {
        let t = &status.timing;
        Timing {
            events: t.events,
            late_p50_us: t.lateness_p50_us,
            late_p99_us: t.lateness_p99_us,
            late_max_us: t.lateness_max_us,
            stalls: t.stalls,
            verdict: t.verdict,
            trusted: t.trusted,
        }
    }

    /// Returns whether a run can be used.
    pub(crate) fn good(&self) -> bool {
        self.trusted && self.verdict == Timed::Good
    }

    /// Returns the worse of each value.
    pub(crate) fn worst(self, other: Timing) -> Timing {
        Timing {
            events: self.events + other.events,
            late_p50_us: self.late_p50_us.max(other.late_p50_us),
            late_p99_us: self.late_p99_us.max(other.late_p99_us),
            late_max_us: self.late_max_us.max(other.late_max_us),
            stalls: self.stalls + other.stalls,
            verdict: match (self.verdict, other.verdict) {
                (Timed::Good, Timed::Good) => Timed::Good,
                _ => Timed::Rerun,
            },
            trusted: self.trusted && other.trusted,
        }
    }
}

/// The target of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// The metric.
    pub metric: &'static str,
    /// Minimum, in the metric's unit.
    pub at_least: f64,
    /// Maximum, in the metric's unit.
    pub at_most: f64,
}

impl Target {
    /// Between two bounds.
    pub(crate) fn within(metric: &'static str, at_least: f64, at_most: f64) -> Target {
        Target {
            metric,
            at_least,
            at_most,
        }
    }

    /// `middle`, give or take `by`.
    pub(crate) fn about(metric: &'static str, middle: f64, by: f64) -> Target {
        Target::within(metric, middle - by, middle + by)
    }

    /// Exactly this value, for counts.
    pub(crate) fn exactly(metric: &'static str, value: f64) -> Target {
        Target::within(metric, value, value)
    }

    fn met(&self, values: &Values) -> bool {
        values
            .get(self.metric)
            .is_some_and(|v| (self.at_least..=self.at_most).contains(v))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            metric,
            at_least,
            at_most,
        } = self;
        match (at_least.is_finite() && *at_least != 0.0, at_most.is_finite()) {
            _ if at_least == at_most => write!(f, "{metric} {}", number(*at_least)),
            (true, true) => write!(f, "{metric} {}..{}", number(*at_least), number(*at_most)),
            (true, false) => write!(f, "{metric} >= {}", number(*at_least)),
            _ => write!(f, "{metric} <= {}", number(*at_most)),
        }
    }
}

/// As many digits after the point as needed, at most four.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" {
        "0".into()
    } else {
        text.to_owned()
    }
}

/// Measured values by name; the name ends with the unit.
pub type Values = BTreeMap<&'static str, f64>;

/// The verdict on a row's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All targets are met.
    Met,
    /// One is missed.
    Missed,
    /// The lab did not keep its time in any try: the numbers prove nothing.
    Untrusted,
    /// There is no target.
    Shown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Untrusted => "UNTRUSTED",
            Verdict::Shown => "shown",
        })
    }
}

/// A row's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// The measured values (and the closed form), the median of the runs.
    #[serde(flatten, serialize_with = "nested")]
    pub values: Values,
    /// The targets.
    pub targets: Vec<Target>,
    /// The source of the closed form or the target.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub source: &'static str,
    /// Whether they are met.
    pub verdict: Verdict,
    /// Number of runs, including those repeated because the lab was late.
    pub tries: u32,
    /// The lab's own timing: the worst of the runs that count. Absent without a lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<Timing>,
}

impl Metrics {
    /// `needs_time`: whether targets count only if the lab kept its time.
    pub(crate) fn new(
        runs: &[(Values, Timing)],
        tries: u32,
        targets: Vec<Target>,
        source: &'static str,
        needs_time: bool,
    ) -> Option<Metrics> {
        let values = medians(runs.iter().map(|r| &r.0));
        let lab = runs.iter().map(|r| r.1).reduce(Timing::worst)?;
        let trusted = !needs_time || lab.good();
        Some(Metrics {
            lab: Some(lab),
            ..Metrics::judged(values, tries, targets, source, trusted)
        })
    }

    /// For values measured without a lab.
    pub(crate) fn without_lab(values: Values, targets: Vec<Target>, source: &'static str) -> Metrics {
        Metrics::judged(values, 1, targets, source, true)
    }

    fn judged(
        values: Values,
        tries: u32,
        targets: Vec<Target>,
        source: &'static str,
        trusted: bool,
    ) -> Metrics {
        let verdict = if targets.is_empty() {
            Verdict::Shown
        } else if !trusted {
            Verdict::Untrusted
        } else if targets.iter().all(|t| t.met(&values)) {
            Verdict::Met
        } else {
            Verdict::Missed
        };
        Metrics {
            values,
            targets,
            source,
            verdict,
            tries,
            lab: None,
        }
    }

    /// Returns the lab's lateness at the 99th percentile, for people.
    pub(crate) fn late_p99(&self) -> String {
        self.lab.map_or("-".into(), |t| format!("{:.0}", t.late_p99_us))
    }
}

/// Serializes `delay_ms.mean` as `"delay_ms": {"mean": ...}`.
fn nested<S: Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = Map::new();
    for (name, value) in values {
        match name.split_once('.') {
            None => map.insert((*name).into(), json!(value)),
            Some((outer, inner)) => {
                let outer = map.entry(outer).or_insert_with(|| json!({}));
                outer
                    .as_object_mut()
                    .and_then(|o| o.insert(inner.into(), json!(value)))
            }
        };
    }
    map.serialize(serializer)
}

/// Returns the median of each value; between two, their mean.
fn medians<'a>(runs: impl Iterator<Item = &'a Values>) -> Values {
    let mut all: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for run in runs {
        for (name, value) in run {
            all.entry(name).or_default().push(*value);
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        (values[last / 2] + values[last.div_ceil(2)]) / 2.0
    };
    all.into_iter().map(|(name, v)| (name, median(v))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(verdict: Timed, trusted: bool) -> Timing {
        Timing {
            events: 1,
            late_p50_us: 1.0,
            late_p99_us: 2.0,
            late_max_us: 3.0,
            stalls: 0,
            verdict,
            trusted,
        }
    }

    fn judged(value: f64, timing: Timing, needs_time: bool) -> Verdict {
        let runs = [(Values::from([("goodput_mbit_s", value)]), timing)];
        let targets = vec![Target::about("goodput_mbit_s", 5.2, 0.15)];
        Metrics::new(&runs, 1, targets, "", needs_time)
            .expect("a run")
            .verdict
    }

    #[test]
    fn a_target_is_met_missed_or_proves_nothing() {
        let good = timing(Timed::Good, true);
        assert_eq!(judged(5.3, good, true), Verdict::Met);
        assert_eq!(judged(5.4, good, true), Verdict::Missed);
        assert_eq!(judged(f64::NAN, good, true), Verdict::Missed);
        for bad in [timing(Timed::Rerun, true), timing(Timed::Good, false)] {
            assert_eq!(judged(5.2, bad, true), Verdict::Untrusted);
            assert_eq!(judged(5.4, bad, false), Verdict::Missed);
        }
        // A missing metric misses its target.
        let runs = [(Values::new(), good)];
        let targets = vec![Target::exactly("left", 0.0)];
        let m = Metrics::new(&runs, 1, targets, "", true).expect("a run");
        assert_eq!(m.verdict, Verdict::Missed);
        assert_eq!(Metrics::new(&[], 1, vec![], "", true), None);
    }

    #[test]
    fn medians_and_the_worst_timing_stand_for_the_runs() {
        let run = |v: f64, late| {
            let mut t = timing(Timed::Good, true);
            t.late_p99_us = late;
            (Values::from([("x_ms", v)]), t)
        };
        let runs = [run(9.0, 1.0), run(1.0, 7.0), run(2.0, 1.0)];
        let m = Metrics::new(&runs, 4, vec![], "", true).expect("runs");
        let late = m.lab.map(|t| (t.late_p99_us, t.events));
        assert_eq!((m.values["x_ms"], late), (2.0, Some((7.0, 3))));
        assert_eq!(m.verdict, Verdict::Shown);
        let m = Metrics::new(&runs[..2], 4, vec![], "", true).expect("runs");
        assert_eq!(m.values["x_ms"], 5.0);
    }

    #[test]
    fn without_a_lab_the_numbers_alone_count() {
        let targets = vec![Target::within("x_ms", 0.0, 2.0)];
        let judged = |v| Metrics::without_lab(Values::from([("x_ms", v)]), targets.clone(), "here");
        assert_eq!(
            (judged(1.0).verdict, judged(3.0).verdict),
            (Verdict::Met, Verdict::Missed)
        );
        let json = serde_json::to_value(judged(1.0)).expect("is JSON");
        assert!(
            json.get("lab").is_none() && judged(1.0).late_p99() == "-",
            "{json}"
        );
    }

    #[test]
    fn names_with_a_point_are_nested() {
        let values = Values::from([("delay_ms.mean", 2.0), ("delay_ms.p99", 3.0), ("delivery", 1.0)]);
        let runs = [(values, timing(Timed::Good, true))];
        let metrics = Metrics::new(&runs, 1, vec![], "", true).expect("a run");
        let json = serde_json::to_value(&metrics).expect("is JSON");
        assert_eq!(
            (&json["delay_ms"]["p99"], &json["delivery"]),
            (&json!(3.0), &json!(1.0))
        );
        assert_eq!(
            (&json["lab"]["verdict"], &json["verdict"]),
            (&json!("good"), &json!("shown"))
        );
    }

    #[test]
    fn targets_are_short_to_read() {
        let shown = |t: Target| t.to_string();
        assert_eq!(shown(Target::about("a_ms", 2000.0, 2.0)), "a_ms 1998..2002");
        assert_eq!(shown(Target::within("a_us", 0.0, 300.0)), "a_us <= 300");
        assert_eq!(shown(Target::within("a", 0.99, f64::INFINITY)), "a >= 0.99");
        assert_eq!(shown(Target::exactly("left", 0.0)), "left 0");
        assert_eq!((number(5.2719), number(-0.0001)), ("5.272".into(), "0".into()));
    }
}
