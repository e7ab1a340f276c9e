//! Analyzes raw data with a known truth.

mod common;

use common::analyze;
use std::fs;
use std::path::Path;

const MESSAGES: usize = 400;
/// Time of each message on the shared server.
const SERVICE_MS: f64 = 2.5;
/// Additional time of each message.
const BASE_MS: f64 = 3.0;

struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Writes data of a shared server of known speed, whose log closes 5 s after each sender's last message; with noise of
/// mean 1 ms. Returns the true mean of all round trips of the cell, without the cut of the log.
fn write(dir: &Path, hz: u32, senders: usize, runs: u32, loss: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for run in 0..runs {
        let mut chance = Chance(u64::from(hz * 1000 + run * 7) + senders as u64);
        let folder = dir.join(format!("{hz}Hz/{}nodes/run{run}", 2 * senders));
        fs::create_dir_all(&folder).expect("a folder");
        let period = 1e3 / f64::from(hz);
        let mut events: Vec<(f64, usize, usize)> = (0..senders)
            .flat_map(|s| {
                let phase = chance.uniform() * period;
                (0..MESSAGES).map(move |m| (phase + m as f64 * period, s, m))
            })
            .collect();
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut files = vec![String::from("id,sent_ns,recv_ns\n"); senders];
        let closes: Vec<f64> = (0..senders)
            .map(|s| {
                let own = events.iter().filter(|e| e.1 == s);
                own.map(|e| e.0).fold(0.0, f64::max) + 5000.0
            })
            .collect();
        let mut free = 0.0f64;
        for (sent, s, m) in events {
            free = free.max(sent) + SERVICE_MS;
            let received = free + BASE_MS + 2.0 * chance.uniform();
            (sum, count) = (sum + received - sent, count + 1.0);
            let lost = chance.uniform() < loss || received > closes[s];
            let ns = |ms: f64| 1_478_093_245_000_000_000u64 + (ms * 1e6) as u64;
            let answer = if lost {
                String::new()
            } else {
                ns(received).to_string()
            };
            files[s].push_str(&format!("{m},{},{answer}\n", ns(sent)));
        }
        for (s, text) in files.iter().enumerate() {
            fs::write(folder.join(format!("sender_{s}.csv")), text).expect("a file");
        }
    }
    sum / count
}

fn layout(dir: &Path) {
    let text = format!(
        "files: \"{{hz}}Hz/{{nodes}}nodes/run{{run}}/*.csv\"\npayload_bytes: 4250\nmessages: {MESSAGES}\nwarm_up: 10\nsenders: half\nsystem: truth\n"
    );
    fs::write(dir.join("layout.yaml"), text).expect("a file");
}

#[test]
fn the_truth_of_generated_data_is_found() {
    let dir = tempfile::tempdir().expect("a folder");
    layout(dir.path());
    let mut truths = Vec::new();
    for senders in [1, 2, 4] {
        for hz in [20, 50, 100, 200, 300, 410, 500] {
            truths.push((
                (2 * senders as u32, f64::from(hz)),
                write(dir.path(), hz, senders, 5, 0.0),
            ));
        }
    }
    let outcome = analyze(dir.path()).expect("an analysis");
    println!("{}", outcome.text());
    let mut within = 0;
    let mut sound = 0;
    for ((nodes, hz), truth) in &truths {
        let cell = outcome
            .cells
            .iter()
            .find(|c| c.params.nodes == *nodes && c.params.hz == *hz)
            .expect("a cell");
        let overloaded = f64::from(*nodes) / 2.0 * hz * SERVICE_MS > 1000.0;
        let m = &cell.metrics;
        assert_eq!(m.censored, m.delivery < 1.0);
        if m.censored {
            assert!(overloaded, "{nodes} {hz}");
            assert!(
                m.rtt_ms.mean.expect("some came") < *truth,
                "what is cut is missing"
            );
            assert!(
                m.mean_at_least_ms <= *truth * 1.01,
                "{} {truth}",
                m.mean_at_least_ms
            );
        }
        if !overloaded {
            assert!(m.sustained, "{nodes} nodes {hz} Hz");
            sound += 1;
            let interval = m.intervals.and_then(|i| i.mean_ms).expect("five runs");
            within += u32::from(interval.contains(*truth));
            assert!((m.rtt_ms.mean.expect("all came") / truth - 1.0).abs() < 0.05);
        }
    }
    assert!(
        within * 10 >= sound * 8,
        "{within} of {sound} intervals hold the truth"
    );
    // Each sweep breaks where the server is full, within the spacing of its cells.
    let full = 1e3 / SERVICE_MS;
    assert!(!outcome.knees.is_empty());
    for knee in &outcome.knees {
        let m = &knee.metrics;
        assert!(
            m.sustained_per_s <= full * 1.05 && m.broken_per_s >= full * 0.95,
            "{m:?}"
        );
    }
    // The limit is the same for any number of nodes, as both models find.
    let model = &outcome.models[0].metrics;
    assert!(model.leave_one_out && model.median_error < 0.35, "{model:?}");
}

#[test]
fn overload_is_ranked_by_delivery_and_never_by_its_mean() {
    let dir = tempfile::tempdir().expect("a folder");
    layout(dir.path());
    // Slightly lossy and slow; almost nothing arrives, but quickly: its mean is the smallest of all.
    write(dir.path(), 100, 1, 3, 0.0);
    write(dir.path(), 200, 1, 3, 0.02);
    write(dir.path(), 20, 1, 3, 0.9);
    write(dir.path(), 390, 1, 3, 0.5);
    write(dir.path(), 450, 16, 2, 0.0);
    let outcome = analyze(dir.path()).expect("an analysis");
    let mut cells: Vec<_> = outcome.cells.iter().collect();
    cells.sort_by_key(|c| c.metrics.rank);
    let order: Vec<f64> = cells.iter().map(|c| c.params.hz).collect();
    println!("{}", outcome.text());
    assert_eq!(order[0], 100.0);
    let deliveries: Vec<f64> = cells.iter().map(|c| c.metrics.delivery).collect();
    assert!(deliveries.windows(2).all(|w| w[0] >= w[1]), "{deliveries:?}");
    let (last, fast) = (cells[4], outcome.cells.iter().find(|c| c.params.hz == 450.0));
    assert_eq!(last.params.hz, 20.0, "most is lost");
    let slow = fast.and_then(|c| c.metrics.rtt_ms.mean).expect("some came");
    assert!(
        last.metrics.rtt_ms.mean.expect("some came") < slow,
        "though its mean is smaller"
    );
    assert_eq!(last.metrics.rtt_ms.p50, None, "the median never came");
    let text = outcome.text();
    assert!(text.contains("right-censored") && text.contains("> "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&outcome.json()).expect("JSON");
    assert_eq!(json["experiment"], "analyze");
    assert_eq!(
        json["cells"].as_array().map(Vec::len),
        Some(5 + outcome.knees.len() + outcome.windows.len())
    );
    assert_eq!(outcome.csv().lines().count(), 6);
    let figure = outcome.figure();
    assert_eq!(figure.matches("class=\"cell\"").count(), 5);
    assert!(
        figure.contains("fill=\"white\" stroke") && !figure.contains("NaN"),
        "{figure}"
    );
}

#[test]
fn unreadable_input_is_reported_with_file_and_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = analyze(dir.path()).expect_err("no layout").to_string();
    assert!(error.contains("layout.yaml"), "{error}");
    layout(dir.path());
    let error = analyze(dir.path()).expect_err("no files").to_string();
    assert!(error.contains("has no file that matches `files`"), "{error}");
    write(dir.path(), 20, 2, 2, 0.0);
    let bad = dir.path().join("20Hz/4nodes/run1/sender_1.csv");
    fs::write(&bad, "id,sent_ns,recv_ns\n0,1,2\n1,x,3\n").expect("a file");
    let error = analyze(dir.path()).expect_err("a bad row").to_string();
    assert_eq!(
        error,
        format!(
            "{}: line 3: 'x' is not a time: write a number of ns",
            bad.display()
        )
    );
    fs::remove_file(&bad).expect("removed");
    fs::write(dir.path().join("20Hz/4nodes/notes.txt"), "x").expect("a file");
    let outcome = analyze(dir.path()).expect("an analysis");
    assert!(
        outcome.notes.iter().any(|n| n.contains("1 senders left no file")),
        "{:?}",
        outcome.notes
    );
    assert!(
        outcome.notes.iter().any(|n| n.contains("notes.txt")),
        "{:?}",
        outcome.notes
    );
    let m = &outcome.cells[0].metrics;
    assert!(
        (m.delivery - 0.75).abs() < 1e-9,
        "a silent sender lost all: {}",
        m.delivery
    );
}
