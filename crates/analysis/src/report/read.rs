//! Any benchmark's JSON, flattened.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Most levels of nested objects that are read.
const MOST_DEPTH: usize = 8;

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Name of the file.
    pub name: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Machine, versions and notes: names and values.
    pub about: Vec<(String, String)>,
    /// Remarks, a sentence each.
    pub notes: Vec<String>,
    /// Measured cells.
    pub cells: Vec<Flat>,
    /// Results of the paper, for comparison.
    pub paper: Vec<Flat>,
}

/// One cell: names as in JSON, with dots between the levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flat {
    /// Measured system.
    pub system: String,
    /// Setting.
    pub params: Vec<(String, Value)>,
    /// Numbers, booleans and texts.
    pub metrics: Vec<(String, Value)>,
    /// Pairs of numbers: delays by message, distributions.
    pub series: Vec<(String, Vec<[f64; 2]>)>,
}

/// Why a file is not a benchmark's result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not JSON.
    #[error("this is not JSON: {0}")]
    Json(String),
    /// It has no cells.
    #[error("`experiment` or `cells` is missing: give the output of a `ropewalk bench … --json`")]
    NoCells,
    /// A cell is invalid.
    #[error("cell {0} is not an object with `system`, `params` and `metrics`")]
    Cell(usize),
}

impl Document {
    /// Reads a result.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, name: String) -> Result<Document, ReadError> {
        let whole: Value = serde_json::from_str(text).map_err(|e| ReadError::Json(e.to_string()))?;
        let experiment = whole.get("experiment").and_then(Value::as_str);
        let (Some(experiment), Some(cells)) = (experiment, whole.get("cells").and_then(Value::as_array))
        else {
            return Err(ReadError::NoCells);
        };
        let mut about = Vec::new();
        for key in ["machine", "versions", "interval", "fits", "health"] {
            let mut leaves = Vec::new();
            if let Some(value) = whole.get(key) {
                leaf(key, value, &mut leaves, &mut Vec::new(), 0);
            }
            about.extend(leaves.into_iter().map(|(name, v)| (name, plain(&v))));
        }
        let mut notes = Vec::new();
        for key in ["notes", "missing", "failed", "sure", "changes", "breaks_first"] {
            match whole.get(key) {
                Some(Value::Array(all)) => notes.extend(all.iter().map(|v| note(key, v))),
                Some(Value::Object(_)) => notes.push(note(key, &whole[key])),
                _ => {}
            }
        }
        let cells = cells.iter().enumerate();
        let cells = cells.map(|(i, c)| cell(c).ok_or(ReadError::Cell(i)));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let paper = whole.get("paper").and_then(Value::as_array);
        Ok(Document {
            name,
            experiment: heading(experiment, &cells),
            about,
            notes,
            cells,
            paper: paper.map_or_else(Vec::new, |rows| rows.iter().filter_map(paper_row).collect()),
        })
    }
}

/// The experiment, with the numbers of the experiments of its cells.
fn heading(experiment: &str, cells: &[Flat]) -> String {
    let mut of = Vec::new();
    for c in cells {
        if let Some(n) = find(&c.params, "experiment").map(plain)
            && n != experiment
            && !of.contains(&n)
        {
            of.push(n);
        }
    }
    match of.len() {
        0 => experiment.to_owned(),
        n => format!(
            "{experiment}: experiment{} {}",
            if n == 1 { "" } else { "s" },
            of.join(", ")
        ),
    }
}

fn cell(value: &Value) -> Option<Flat> {
    let value = value.as_object()?;
    let mut flat = Flat {
        system: value.get("system")?.as_str()?.to_owned(),
        ..Flat::default()
    };
    let params = value.get("params").and_then(Value::as_object);
    for (name, v) in params.into_iter().flatten() {
        leaf(name, v, &mut flat.params, &mut Vec::new(), 0);
    }
    for (name, v) in value.get("metrics")?.as_object()? {
        leaf(name, v, &mut flat.metrics, &mut flat.series, 0);
    }
    Some(flat)
}

/// Papers have one level: the cells' `delay_ms.mean` is `delay_mean_ms` there.
fn paper_row(value: &Value) -> Option<Flat> {
    let row: &Map<String, Value> = value.as_object()?;
    let mut flat = Flat {
        system: row.get("system")?.as_str()?.to_owned(),
        ..Flat::default()
    };
    for (name, v) in row.iter().filter(|(n, _)| *n != "system") {
        let mut parts: Vec<&str> = name.rsplitn(3, '_').collect();
        parts.reverse();
        match parts[..] {
            [what, "mean" | "std" | "p50" | "p99" | "max", unit] => {
                let of = parts[1];
                leaf(
                    &format!("{what}_{unit}.{of}"),
                    v,
                    &mut flat.metrics,
                    &mut Vec::new(),
                    0,
                );
            }
            _ if v.is_string() || name == "hops" => leaf(name, v, &mut flat.params, &mut Vec::new(), 0),
            _ => leaf(name, v, &mut flat.metrics, &mut Vec::new(), 0),
        }
    }
    Some(flat)
}

fn leaf(
    name: &str,
    value: &Value,
    leaves: &mut Vec<(String, Value)>,
    series: &mut Vec<(String, Vec<[f64; 2]>)>,
    depth: usize,
) {
    match value {
        Value::Object(map) if depth < MOST_DEPTH => {
            for (key, v) in map {
                leaf(&format!("{name}.{key}"), v, leaves, series, depth + 1);
            }
        }
        Value::Array(all) => {
            let pairs: Option<Vec<[f64; 2]>> = all.iter().map(pair).collect();
            match pairs {
                Some(pairs) if !pairs.is_empty() => series.push((name.to_owned(), pairs)),
                _ if all.len() <= 8 && all.iter().all(|v| !v.is_object() && !v.is_array()) => {
                    let texts: Vec<String> = all.iter().map(plain).collect();
                    leaves.push((name.to_owned(), Value::String(texts.join(", "))));
                }
                _ => {}
            }
        }
        Value::Object(_) | Value::Null => {}
        v => leaves.push((name.to_owned(), v.clone())),
    }
}

fn pair(value: &Value) -> Option<[f64; 2]> {
    match &value.as_array()?[..] {
        [a, b] => Some([a.as_f64()?, b.as_f64()?]),
        _ => None,
    }
}

/// A value without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn note(key: &str, value: &Value) -> String {
    let Some(map) = value.as_object() else {
        return format!("{key}: {}", plain(value));
    };
    let all = map.iter().filter(|(_, v)| !v.is_null());
    let all = all.map(|(k, v)| format!("{k} {}", plain(v)));
    format!("{key}: {}", all.collect::<Vec<_>>().join(", "))
}

impl Flat {
    /// A metric as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        find(&self.metrics, name)?.as_f64()
    }

    /// Statistics among the metrics: objects with `mean` or `p50`.
    pub(super) fn distributions(&self) -> BTreeSet<&str> {
        let names = self.metrics.iter().filter(|(_, v)| v.is_number());
        names
            .filter_map(|(n, _)| n.strip_suffix(".mean").or_else(|| n.strip_suffix(".p50")))
            .collect()
    }
}

pub(super) fn find<'a>(all: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    all.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_benchmark_has_is_flat() {
        let text = r#"{"experiment":"e","machine":{"cpu":"x"},"versions":{"ropewalk":"1"},"notes":["n"],
            "missing":[{"system":"a","why":"b"}],
            "cells":[{"system":"s","params":{"hz":5},"metrics":{"delay_ms":{"mean":1.5,"p99":null},"good":true,
                "by_number_ms":[[0,1],[1,2]],"list":[1,2]}}],
            "paper":[{"system":"TCP","hops":1,"topic":"/laser","delay_mean_ms":18.6,"delivery":0.99}]}"#;
        let d = Document::parse(text, "f".into()).expect("a result");
        assert_eq!(d.cells[0].number("delay_ms.mean"), Some(1.5));
        assert_eq!(d.cells[0].series[0].1.len(), 2);
        assert_eq!(
            find(&d.cells[0].metrics, "list"),
            Some(&Value::String("1, 2".into()))
        );
        assert_eq!(d.paper[0].number("delay_ms.mean"), Some(18.6));
        assert_eq!(d.experiment, "e");
        let two = text.replace(
            r#""cells":["#,
            r#""cells":[{"system":"t","params":{"experiment":5},"metrics":{}},"#,
        );
        let two = two.replace(r#"{"hz":5}"#, r#"{"experiment":6}"#);
        let two = Document::parse(&two, "f".into()).expect("a result");
        assert_eq!(two.experiment, "e: experiments 5, 6");
        assert_eq!(d.notes, ["notes: n", "missing: system a, why b"]);
    }

    #[test]
    fn invalid_results_are_refused() {
        assert!(matches!(
            Document::parse("", String::new()),
            Err(ReadError::Json(_))
        ));
        assert_eq!(Document::parse("{}", String::new()), Err(ReadError::NoCells));
        let odd = r#"{"experiment":"e","cells":[{"system":"s","metrics":3}]}"#;
        assert_eq!(Document::parse(odd, String::new()), Err(ReadError::Cell(0)));
    }
}
