//! Raw series in the thesis' format: `id,sent_ns,recv_ns`, a file per sender, some with a truncated last line.

mod common;

use analysis::model::{Varied, WindowMetrics};
use analysis::raw::Outcome;
use std::fs;
use std::path::Path;

const MESSAGES: usize = 400;
const BYTES: f64 = 4250.0;
const NODES: [u32; 5] = [2, 4, 8, 16, 64];

/// One server for all senders, which takes `service_us` per message: it carries 1e6 / `service_us` a second.
struct Series {
    name: &'static str,
    hz: &'static [u64],
    service_us: u64,
    /// Files with a truncated last line, by frequency, nodes and run.
    cut: &'static [(u64, u32, u32)],
}

const BARE: Series = Series {
    name: "bare",
    hz: &[1, 10, 20, 100, 200, 300],
    service_us: 4000,
    cut: &[(1, 2, 0), (10, 16, 1), (20, 4, 0), (300, 64, 1)],
};
const CARS: Series = Series {
    name: "cars",
    hz: &[1, 10, 20],
    service_us: 8000,
    cut: &[(1, 64, 0), (10, 2, 0), (20, 64, 1)],
};

impl Series {
    fn write(&self, dir: &Path) {
        for &hz in self.hz {
            for nodes in NODES {
                for run in 0..2 {
                    self.run(dir, hz, nodes, run);
                }
            }
        }
        let layout = format!(
            "files: \"{{hz}}Hz/{{nodes}}nodes/run{{run}}/*.csv\"\npayload_bytes: 4250\nmessages: {MESSAGES}\nsenders: half\n\
             system: rospy\nmedium: {}\n",
            self.name
        );
        fs::write(dir.join("layout.yaml"), layout).expect("a file");
    }

    fn run(&self, dir: &Path, hz: u64, nodes: u32, run: u32) {
        let folder = dir.join(format!("{hz}Hz/{nodes}nodes/run{run}"));
        fs::create_dir_all(&folder).expect("a folder");
        let senders = u64::from(nodes / 2);
        let mut files = vec![String::from("id,sent_ns,recv_ns\n"); senders as usize];
        let mut free = 0;
        for id in 0..MESSAGES as u64 {
            for (s, file) in files.iter_mut().enumerate() {
                let sent = id * 1_000_000 / hz + s as u64 * 1_000_000 / hz / senders + u64::from(run) * 3;
                free = sent.max(free) + self.service_us;
                let closes = MESSAGES as u64 * 1_000_000 / hz + 5_000_000;
                let ns = |us: u64| 1_478_093_245_000_000_000 + us * 1000;
                let answer = if free < closes {
                    ns(free + 900).to_string()
                } else {
                    String::new()
                };
                file.push_str(&format!("{id},{},{answer}\n", ns(sent)));
            }
        }
        for (s, mut text) in files.into_iter().enumerate() {
            if s == 0 && self.cut.contains(&(hz, nodes, run)) {
                let last = text.trim_end().rfind('\n').expect("lines");
                text.truncate(last + 12);
            }
            fs::write(folder.join(format!("sender_{s}.csv")), text).expect("a file");
        }
    }
}

fn analyze(dir: &Path) -> Outcome {
    common::analyze(dir).expect("an analysis")
}

fn window(outcome: &Outcome) -> WindowMetrics {
    let [one] = &outcome.windows[..] else {
        panic!("{:?}", outcome.windows);
    };
    one.metrics.clone()
}

#[test]
fn series_with_cut_last_lines_give_tables_the_window_of_cslv_and_knees_at_measured_nodes() {
    for series in [BARE, CARS] {
        let dir = tempfile::tempdir().expect("a folder");
        // As on a disk that links to large data elsewhere.
        let stored = tempfile::tempdir().expect("a folder");
        series.write(stored.path());
        for entry in fs::read_dir(stored.path()).expect("reads") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_owned();
            std::os::unix::fs::symlink(path, dir.path().join(name)).expect("a link");
        }
        let outcome = analyze(dir.path());
        let text = outcome.text();
        println!("{text}");
        let note = format!("note: {} lines were left out", series.cut.len());
        assert!(
            text.contains(&note) && text.contains("sender_0.csv: line 401: "),
            "{text}"
        );
        assert_eq!(outcome.cells.len(), series.hz.len() * NODES.len());
        let capacity = 1e6 / series.service_us as f64;
        for cell in &outcome.cells {
            let (p, m) = (&cell.params, &cell.metrics);
            let fits = p.rate() <= capacity;
            assert_eq!(m.sustained, fits, "{p:?} {m:?}");
            // A truncated line removes only its own message from the expected ones.
            let cut = series.cut.iter().filter(|c| (c.0 as f64, c.1) == (p.hz, p.nodes));
            let expected = u64::from(p.senders) * MESSAGES as u64 * 2 - cut.count() as u64;
            assert_eq!(m.expected, expected, "{p:?}");
            assert!(!fits || m.delivery == 1.0, "{p:?} {m:?}");
        }
        let w = window(&outcome);
        let limit = capacity * BYTES;
        let (low, high) = (
            w.low_bytes_per_s.expect("works"),
            w.high_bytes_per_s.expect("breaks"),
        );
        assert!(low <= limit && limit <= high && w.contradicting == 0, "{w:?}");
        assert!(low < w.bytes_per_s && w.bytes_per_s < high, "{w:?}");
        assert!(
            text.contains("CSLV of rospy") && text.contains("window"),
            "{text}"
        );
        assert!(!outcome.knees.is_empty());
        for knee in &outcome.knees {
            let (works, breaks) = (
                knee.metrics.works.expect("known"),
                knee.metrics.breaks.expect("known"),
            );
            for end in [works, breaks] {
                assert!(NODES.contains(&end.nodes), "{end:?}");
                assert!(series.hz.contains(&(end.hz as u64)), "{end:?}");
            }
            assert_eq!((knee.params.nodes, knee.params.hz), (works.nodes, works.hz));
            match knee.metrics.varied {
                Varied::Hz => assert!(works.hz < breaks.hz && works.nodes == breaks.nodes),
                Varied::Nodes => assert!(works.nodes < breaks.nodes && works.hz == breaks.hz),
            }
        }
        // The output parses as knees again.
        let read = analysis::model::read(&outcome.json()).expect("reads");
        assert_eq!(read.knees.len(), outcome.knees.len());
        for ((_, read), knee) in read.knees.iter().zip(&outcome.knees) {
            assert!((read.rate() / knee.metrics.messages_per_s - 1.0).abs() < 1e-9);
            assert!((read.params.rate() / read.rate() - 1.0).abs() < 0.35, "{read:?}");
        }
    }
}

#[test]
fn intervals_hold_their_means_and_no_delay_is_negative() {
    let dir = tempfile::tempdir().expect("a folder");
    // Runs that differ much, and some of which lose more: by Student's t the interval would extend below 0.
    for (run, (ms, lost)) in [(1u64, 0u64), (2, 3), (90, 9)].into_iter().enumerate() {
        let folder = dir.path().join(format!("10Hz/run{run}"));
        fs::create_dir_all(&folder).expect("a folder");
        let row = |id: u64| match id < lost {
            true => format!("{id},{}\n", id * 100_000_000),
            false => format!(
                "{id},{},{}\n",
                id * 100_000_000,
                id * 100_000_000 + ms * 1_000_000
            ),
        };
        fs::write(folder.join("a.csv"), (0..10).map(row).collect::<String>()).expect("a file");
    }
    let layout = "files: \"{hz}Hz/run{run}/*.csv\"\npayload_bytes: 1\nmessages: 10\n";
    fs::write(dir.path().join("layout.yaml"), layout).expect("a file");
    let outcome = analyze(dir.path());
    let m = &outcome.cells[0].metrics;
    let intervals = m.intervals.expect("three runs");
    let (mean, interval) = (
        m.rtt_ms.mean.expect("a mean"),
        intervals.mean_ms.expect("an interval"),
    );
    assert!((mean - 31.0).abs() < 0.1, "each run counts alike: {mean}");
    assert!(interval.low == 0.0 && interval.contains(mean), "{interval:?}");
    assert!((m.delivery - 0.6).abs() < 1e-9 && intervals.delivery.contains(0.6));
    assert!(intervals.delivery.low >= 0.0 && intervals.delivery.high <= 1.0);
}

#[test]
fn every_axis_of_the_layout_has_a_column() {
    let dir = tempfile::tempdir().expect("a folder");
    for (hosts, share) in [(2, "1"), (2, "0.5"), (4, "1")] {
        let folder = dir.path().join(format!("{hosts}hosts/{share}cpu/full/10Hz"));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("a.csv"), "0,1,2\n").expect("a file");
    }
    let layout =
        "files: \"{hosts}hosts/{cpu_share}cpu/{topology}/{hz}Hz/*.csv\"\npayload_bytes: 1\nmessages: 1\n";
    fs::write(dir.path().join("layout.yaml"), layout).expect("a file");
    let outcome = analyze(dir.path());
    let text = outcome.text();
    let head = text.lines().next().expect("a table");
    for axis in ["hosts", "cpu_share", "topology"] {
        assert!(head.contains(axis), "{text}");
    }
    let csv = outcome.csv();
    assert!(
        csv.starts_with("system,medium,hosts,cpu_share,topology,nodes,"),
        "{csv}"
    );
    assert!(
        csv.lines().any(|l| l.starts_with("foreign,unknown,2,0.5,full,")),
        "{csv}"
    );
    assert_eq!(
        outcome.figure().matches("of the processors").count(),
        3,
        "a panel each"
    );
    assert_eq!(outcome.windows.len(), 3);
}

#[test]
fn dangling_and_circular_links_are_reported_and_only_they_are_skipped() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("10Hz/2nodes");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("a.csv"), "0,1,2\n").expect("a file");
    symlink(dir.path(), dir.path().join("10Hz/4nodes")).expect("a link");
    symlink("nowhere", dir.path().join("20Hz")).expect("a link");
    let layout = "files: \"{hz}Hz/{nodes}nodes/*.csv\"\npayload_bytes: 1\nmessages: 1\n";
    fs::write(dir.path().join("layout.yaml"), layout).expect("a file");
    let outcome = analyze(dir.path());
    assert_eq!(outcome.cells.len(), 1);
    assert!(
        outcome.notes.iter().any(|n| n.starts_with("2 files are links")),
        "{:?}",
        outcome.notes
    );
}
