//! Reads cells of a benchmark's JSON.

use super::knee::grown;
use super::{Knee, Params, Sample, Varied};
use serde::Deserialize;
use serde_json::Value;

/// The cause that `bench scale` states for a search without an overload: its highest rate is no knee.
pub const UNBROKEN: &str = "the search goes no higher";

/// Contents of a file, each with its system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// Cells.
    pub samples: Vec<(String, Sample)>,
    /// Knees.
    pub knees: Vec<(String, Knee)>,
}

impl Read {
    /// Contents of one system.
    pub fn of(&self, system: &str) -> (Vec<Sample>, Vec<Knee>) {
        (own(&self.samples, system), own(&self.knees, system))
    }
}

fn own<T: Clone>(all: &[(String, T)], system: &str) -> Vec<T> {
    let own = all.iter().filter(|(s, _)| s == system);
    own.map(|(_, t)| t.clone()).collect()
}

/// Why a file is not a benchmark's JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not JSON.
    #[error("this is not JSON: {0}")]
    Json(String),
    /// It has no cells.
    #[error("`cells` is missing: give the output of `bench scale --json` or `bench analyze --json`")]
    NoCells,
    /// A cell is invalid.
    #[error("cell {index}: {problem}")]
    Cell {
        /// Index from 0.
        index: usize,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Written {
    system: String,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    metrics: Value,
}

/// Reads the cells of `bench scale --json` and `bench analyze --json`; ignores others.
///
/// # Errors
/// What is wrong, with the index of the cell.
pub fn read(json: &str) -> Result<Read, ReadError> {
    let whole: Value = serde_json::from_str(json).map_err(|e| ReadError::Json(e.to_string()))?;
    let Some(cells) = whole.get("cells").and_then(Value::as_array) else {
        return Err(ReadError::NoCells);
    };
    let mut all = Read::default();
    for (index, cell) in cells.iter().enumerate() {
        let bad = |problem: String| ReadError::Cell { index, problem };
        let cell = Written::deserialize(cell).map_err(|e| bad(e.to_string()))?;
        let what = cell.params.get("what").and_then(Value::as_str).unwrap_or("cell");
        if !matches!(what, "cell" | "knee") || cell.system == "model" || cell.params.is_null() {
            continue;
        }
        let params = Params::deserialize(&cell.params).map_err(|e| bad(e.to_string()))?;
        check(&params).map_err(bad)?;
        let number = |pointer: &str| {
            let value = cell.metrics.pointer(pointer).and_then(Value::as_f64);
            value.filter(|v| v.is_finite() && *v >= 0.0)
        };
        if what == "knee" {
            if let Some(each) = cell.metrics.get("by_nodes").and_then(Value::as_array) {
                let knees = each.iter().filter_map(|found| by_nodes(&params, found));
                all.knees.extend(knees.map(|knee| (cell.system.clone(), knee)));
                continue;
            }
            let Some(rate) = number("/messages_per_s").filter(|r| *r > 0.0) else {
                continue;
            };
            // The knee is along the frequency, unless stated otherwise.
            let varied = match cell.metrics.get("varied").and_then(Value::as_str) {
                Some("nodes") => Varied::Nodes,
                _ => Varied::Hz,
            };
            let params = match varied {
                Varied::Nodes if params.rate() > 0.0 => grown(&params, varied, rate),
                _ => at_rate(params, rate),
            };
            check(&params).map_err(bad)?;
            all.knees.push((
                cell.system,
                Knee {
                    params,
                    ends: None,
                    varied,
                    sustained: number("/sustained_per_s").unwrap_or(rate),
                    broken: number("/broken_per_s").unwrap_or(rate),
                    cpu_us: number("/cpu_us_per_message"),
                },
            ));
            continue;
        }
        let Some(delivery) = number("/delivery") else {
            continue;
        };
        let mean_ms = number("/rtt_ms/mean");
        let sustained = cell.metrics.get("sustained").and_then(Value::as_bool);
        all.samples.push((
            cell.system,
            Sample {
                params,
                delivery,
                mean_ms,
                cpu_us: number("/cpu_us_per_message"),
                switches: number("/context_switches_per_message"),
                sustained: sustained.unwrap_or_else(|| super::SUSTAINED.holds(delivery, mean_ms)),
            },
        ));
    }
    Ok(all)
}

/// The knee for a number of nodes, half of which send; none if no rate was sustained, or none was too high.
fn by_nodes(of: &Params, found: &Value) -> Option<Knee> {
    let number = |name: &str| {
        found
            .get(name)
            .and_then(Value::as_f64)
            .filter(|v| v.is_finite() && *v > 0.0)
    };
    let rate = number("messages_per_s")?;
    let nodes = u32::try_from(found.get("nodes")?.as_u64()?)
        .ok()
        .filter(|n| *n >= 2)?;
    let cause = found.get("cause").and_then(Value::as_str).unwrap_or_default();
    if cause == UNBROKEN {
        return None;
    }
    let params = Params {
        nodes,
        senders: nodes / 2,
        ..of.clone()
    };
    let params = at_rate(params, rate);
    check(&params).ok()?;
    Some(Knee {
        params,
        ends: None,
        varied: Varied::Hz,
        sustained: rate,
        broken: rate,
        cpu_us: number("cpu_us_per_message"),
    })
}

/// The same setting at this rate in round trips a second, in a run of the same duration.
fn at_rate(params: Params, rate: f64) -> Params {
    let hz = rate / f64::from(params.senders) / params.copies();
    let longer = if params.hz > 0.0 { hz / params.hz } else { 1.0 };
    Params {
        hz,
        messages: (f64::from(params.messages) * longer).round() as u32,
        ..params
    }
}

fn check(p: &Params) -> Result<(), String> {
    if !(p.hz.is_finite() && (0.0..=1e9).contains(&p.hz)) {
        return Err(format!("hz {}: give 0 to 1e9", p.hz));
    }
    if !(p.cpu_share.is_finite() && p.cpu_share > 0.0) {
        return Err(format!("cpu_share {}: give more than 0, 1 for all", p.cpu_share));
    }
    if p.senders == 0 || p.nodes < p.senders || p.nodes > 1_000_000 {
        return Err(format!(
            "there are {} senders among {} nodes: give at least one sender",
            p.senders, p.nodes
        ));
    }
    if p.bytes == 0 || p.bytes > 1 << 32 {
        return Err(format!("a message has {} bytes: give 1 to 4294967296", p.bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_knees_are_distinguished() {
        let json = r#"{"experiment":"scale","machine":{},"versions":{},"cells":[
            {"system":"roscpp","params":{"experiment":7,"what":"cell","nodes":4,"senders":2,"hz":20,"bytes":4250,"medium":"wifi-6","cpu_share":100},
             "metrics":{"delivery":1,"rtt_ms":{"mean":3.5,"p50":3,"p99":null},"cpu_us_per_message":80,"sustained":true}},
            {"system":"roscpp","params":{"what":"knee","nodes":4,"senders":2,"bytes":4250},"metrics":{"messages_per_s":320.0,"cause":"air"}},
            {"system":"zenoh","params":{"what":"knee","nodes":8,"senders":4,"bytes":4250},"metrics":{"messages_per_s":900.0,"by_nodes":[
             {"nodes":2,"messages_per_s":500.0,"cause":"cpu","cpu_us_per_message":7.0},{"nodes":8,"messages_per_s":900.0,"cause":"cpu"},
             {"nodes":4,"messages_per_s":1e6,"cause":"the search goes no higher"},{"nodes":16,"messages_per_s":0.0,"cause":"x"}]}},
            {"system":"model","params":{"of":"roscpp"},"metrics":{"median_error":0.1}},
            {"system":"roscpp","params":{"what":"profile"},"metrics":{}}]}"#;
        let all = read(json).expect("cells");
        assert_eq!((all.samples.len(), all.knees.len()), (1, 3));
        let each = all.knees[1..]
            .iter()
            .map(|(s, k)| (s.as_str(), k.params.nodes, k.params.hz, k.cpu_us));
        assert_eq!(
            each.collect::<Vec<_>>(),
            [("zenoh", 2, 500.0, Some(7.0)), ("zenoh", 8, 225.0, None)]
        );
        let (_, sample) = &all.samples[0];
        assert_eq!(
            (sample.cpu_us, sample.mean_ms, sample.params.share()),
            (Some(80.0), Some(3.5), 1.0)
        );
        assert_eq!(all.knees[0].1.params.hz, 160.0);
    }

    #[test]
    fn runs_of_a_search_take_as_long_for_any_number_of_nodes() {
        let json = r#"{"cells":[{"system":"a","params":{"what":"knee","nodes":8,"senders":4,"hz":700,"messages":1400},"metrics":{"by_nodes":[
            {"nodes":2,"messages_per_s":2800},{"nodes":8,"messages_per_s":2800}]}}]}"#;
        let knees = read(json).expect("knees").knees;
        let seconds = |k: &Knee| f64::from(k.params.messages) / k.params.hz;
        assert!(
            knees.iter().all(|(_, k)| (seconds(k) - 2.0).abs() < 1e-3),
            "{knees:?}"
        );
        assert_eq!(knees.len(), 2);
    }

    #[test]
    fn invalid_cells_are_reported_by_number() {
        assert!(matches!(read("{"), Err(ReadError::Json(_))));
        assert_eq!(read("[]"), Err(ReadError::NoCells));
        for bad in [
            r#"{"cells":[3]}"#,
            r#"{"cells":[{"system":"a","params":{"senders":-1}}]}"#,
            r#"{"cells":[{"system":"a","params":{"senders":0}}]}"#,
            r#"{"cells":[{"system":"a","params":{"senders":3,"nodes":2}}]}"#,
            r#"{"cells":[{"system":"a","params":{"bytes":0}}]}"#,
            r#"{"cells":[{"system":"a","params":{"cpu_share":0}}]}"#,
            r#"{"cells":[{"system":"a","params":{"hz":1e300}}]}"#,
        ] {
            let error = read(bad).expect_err(bad).to_string();
            assert!(error.starts_with("cell 0: "), "{error}");
        }
        assert_eq!(read(r#"{"cells":[{"system":"a"}]}"#), Ok(Read::default()));
    }
}
