//! The report's page in a real browser: it shows what the JSON contains.

use analysis::report::{Document, html};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Cells like those of the benchmarks: of round trips with raw data, of flows with the paper's rows, and of a model.
fn results() -> Vec<Value> {
    let mut cells = Vec::new();
    for (n, nodes) in [2, 8, 32].into_iter().enumerate() {
        for (k, hz) in [1.0, 10.0, 100.0, 300.0].into_iter().enumerate() {
            let mean = 1.5 + 0.37 * (n * n) as f64 + 3.0f64.powi(k as i32 * (n as i32 + 1)) / 7.0;
            let pairs: Vec<Value> = (0..40)
                .map(|i| json!([i, mean * (1.0 + 0.1 * f64::from(i % 7))]))
                .collect();
            cells.push(json!({
                "system": "rospy <&\"x>",
                "params": { "what": "cell", "nodes": nodes, "senders": nodes / 2, "hz": hz, "bytes": 4250, "medium": "wifi-6" },
                "metrics": { "delivery": 1.0 - 0.01 * k as f64, "rtt_ms": { "mean": mean, "p50": mean * 0.9, "p99": mean * 3.0 },
                    "spread_ms": { "min": mean / 2.0, "p25": mean * 0.8, "p50": mean * 0.9, "p75": mean * 1.1, "max": mean * 4.0,
                        "std": mean / 3.0 },
                    "censored": k == 3, "sustained": k < 3, "by_number_ms": pairs },
            }));
        }
    }
    cells.push(json!({ "system": "model", "params": { "of": "rospy" },
        "metrics": { "median_error": 0.041, "cslv_median_error": 0.7, "cells": 24 } }));
    let scale = json!({ "experiment": "scale", "machine": { "cpu": "a <cpu> & more", "cores": 2 },
        "versions": { "ropewalk": "0.1.0" }, "cells": cells, "notes": ["3 cells are <censored>"] });
    let flow = |system: &str, mean: f64| {
        json!({ "system": system, "params": { "hops": 1, "topic": "/laser" },
            "metrics": { "delivery": 0.998, "delay_ms": { "mean": mean, "std": 1.0 / 3.0, "p50": mean, "p99": 7.1 },
                "period_ms": { "mean": 20.0, "std": 0.2 } } })
    };
    let lab = json!({ "experiment": "lab", "machine": {}, "versions": {},
        "cells": [flow("pound", 3.1), flow("ropewalk", 1.7)],
        "paper": [{ "system": "TCP", "hops": 1, "topic": "/laser", "period_mean_ms": 20.0, "period_std_ms": 13.3,
            "delay_mean_ms": 18.6, "delay_std_ms": 11.6, "delivery": 0.993, "mbit_s": 0.4 }] });
    vec![scale, lab]
}

fn page() -> String {
    let documents: Vec<Document> = results()
        .iter()
        .enumerate()
        .map(|(i, r)| Document::parse(&r.to_string(), format!("{i}.json")).expect("a result"))
        .collect();
    html("A test of <pages>", &documents)
}

/// The page as loaded by the browser; none without a browser, if that is allowed.
fn in_browser(file: &Path, home: &Path) -> Option<String> {
    let done = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", home.display()))
        .arg(format!("file://{}", file.display()))
        .env("HOME", home)
        .output();
    match done {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(String::from_utf8(done.stdout).expect("text"))
        }
        Err(e) if std::env::var_os("CI").is_some() => panic!("chromium: {e}; install tests/report/apt.txt"),
        Err(e) => {
            eprintln!("NOT TESTED: chromium: {e}; install tests/report/apt.txt");
            None
        }
    }
}

/// Elements' attributes, by name.
fn elements(dom: &str) -> Vec<BTreeMap<String, String>> {
    let mut all = Vec::new();
    for tag in dom.split('<').skip(1) {
        let mut attributes = BTreeMap::new();
        let mut rest = tag;
        while let Some((name, after)) = rest.split_once("=\"") {
            let Some((value, after)) = after.split_once('"') else {
                break;
            };
            if name.contains('>') {
                break;
            }
            let name = name.rsplit(char::is_whitespace).next().unwrap_or(name);
            attributes.insert(name.to_owned(), value.to_owned());
            rest = after;
        }
        if let Some(first) = tag.split(|c: char| !c.is_ascii_alphanumeric()).next() {
            attributes.insert("tag".into(), first.to_owned());
        }
        all.push(attributes);
    }
    all
}

fn value<'a>(results: &'a [Value], e: &BTreeMap<String, String>) -> &'a Value {
    let number = |name: &str| e[name].parse::<usize>().expect("a number");
    let metric = format!("/metrics/{}", e["data-metric"].replace('.', "/"));
    let found = results[number("data-file")]["cells"][number("data-cell")].pointer(&metric);
    found.unwrap_or_else(|| panic!("{e:?} is not in the JSON"))
}

/// The value at a position on an axis.
fn at(axis: &str, place: f64) -> f64 {
    let parts: Vec<&str> = axis.split(' ').collect();
    let n: Vec<f64> = parts[1..].iter().map(|p| p.parse().expect("a number")).collect();
    let share = (place - n[2]) / (n[3] - n[2]);
    match parts[0] {
        "log" => n[0] * (n[1] / n[0]).powf(share),
        _ => n[0] + (n[1] - n[0]) * share,
    }
}

/// Equal except for the last bit, which parsing JSON may lose.
fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-14 * b.abs()
}

fn compare(dom: &str) {
    let results = results();
    let all = elements(dom);
    let (mut axes, mut shown, mut drawn) = (
        BTreeMap::new(),
        BTreeMap::<(String, String, String), u32>::new(),
        0,
    );
    for e in &all {
        if e["tag"] == "svg" {
            axes = e.clone();
        }
        if let Some(text) = e.get("data-value") {
            let (read, truth) = (text.replace("&lt;", "<"), value(&results, e));
            match truth.as_f64() {
                Some(truth) => assert!(equal(read.parse().expect("a number"), truth), "{truth}: {e:?}"),
                None => assert_eq!(read, truth.to_string().trim_matches('"'), "{e:?}"),
            }
            let key = (
                e["data-file"].clone(),
                e["data-cell"].clone(),
                e["data-metric"].clone(),
            );
            *shown.entry(key).or_default() += 1;
            // Drawn values are at the position of their value.
            let place = match e["tag"].as_str() {
                "circle" if axes.contains_key("data-y") => Some(("data-y", &e["cy"])),
                "circle" => Some(("data-x", &e["cx"])),
                "line" => Some(("data-x", &e["x1"])),
                _ => None,
            };
            if let Some((axis, place)) = place {
                let there = at(&axes[axis], place.parse().expect("a place"));
                let truth = truth.as_f64().expect("a number");
                assert!((there / truth - 1.0).abs() < 0.002, "{e:?} stands at {there}");
                drawn += 1;
            }
        }
        if let Some(pairs) = e.get("data-pairs") {
            let read: Vec<Vec<f64>> = pairs
                .split(';')
                .map(|p| p.split(' ').map(|n| n.parse().expect("a number")).collect())
                .collect();
            let truth = floats(value(&results, e));
            assert_eq!(read.len(), truth.len());
            for (a, b) in read.iter().flatten().zip(truth.iter().flatten()) {
                assert!(equal(*a, *b), "{b}: {e:?}");
            }
            for (place, pair) in e["points"].split(' ').zip(&read) {
                let (_, y) = place.split_once(',').expect("two numbers");
                let there = at(&axes["data-y"], y.parse().expect("a number"));
                assert!((there / pair[1] - 1.0).abs() < 0.002, "{there} {pair:?}");
            }
            drawn += 1;
        }
    }
    // Every number of every cell is on the page, and means are in figures as well.
    for (file, result) in results.iter().enumerate() {
        for (i, cell) in result["cells"].as_array().expect("cells").iter().enumerate() {
            for (name, v) in cell["metrics"].as_object().expect("metrics") {
                let names: Vec<String> = match v {
                    Value::Object(map) => map.keys().map(|k| format!("{name}.{k}")).collect(),
                    Value::Array(_) => continue,
                    _ => vec![name.clone()],
                };
                for name in names {
                    let times = shown.get(&(file.to_string(), i.to_string(), name.clone()));
                    let least = if name.ends_with(".mean") { 2 } else { 1 };
                    assert!(
                        times.is_some_and(|t| *t >= least),
                        "{name} of cell {i} of file {file}: {times:?}"
                    );
                }
            }
        }
    }
    assert!(drawn > 100, "{drawn}");
    assert!(dom.contains("TCP (the paper)") && dom.contains("(the paper's)"));
}

fn floats(pairs: &Value) -> Vec<Vec<f64>> {
    let pairs = pairs.as_array().expect("pairs").iter();
    let row = |p: &Value| {
        p.as_array()
            .expect("a pair")
            .iter()
            .map(|n| n.as_f64().expect("a number"))
            .collect()
    };
    pairs.map(row).collect()
}

#[test]
fn the_page_says_what_the_json_does() {
    compare(&page());
}

#[test]
fn a_browser_reads_the_same_from_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("report.html");
    std::fs::write(&file, page()).expect("a file");
    if let Some(dom) = in_browser(&file, dir.path()) {
        compare(&dom);
        assert!(dom.contains("<h1>A test of &lt;pages&gt;</h1>"));
    }
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = page();
    for outside in ["http:", "https:", "<script", "<link", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    for needed in [
        "prefers-color-scheme: dark",
        "@media print",
        "class=\"box\"",
        "class=\"deviation",
        "hollow",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
}

#[test]
fn foreign_text_is_no_markup() {
    let odd = json!({ "experiment": "</style><script>1</script>", "machine": { "a\"b": "<b>" }, "versions": {}, "cells": [
        { "system": "\"><img>", "params": { "x\"><i>": "<u>" }, "metrics": { "m\" onload=\"x": { "mean": 1.0 }, "t": "\"<s>" } }] });
    let document = Document::parse(&odd.to_string(), "<name>".into()).expect("a result");
    let page = html("</title>", &[document]);
    for markup in ["<script>", "<img>", "<i>", "<u>", "<s>", "<b>", "<name>"] {
        assert!(!page.contains(markup), "{markup} in {page}");
    }
    assert!(
        page.contains("data-metric=\"m&quot; onload=&quot;x.mean\""),
        "{page}"
    );
}
