//! Third-party raw data, models, plans and reports, from the command line.

use crate::support::Host;
use serde_json::Value;
use std::fs;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plan");

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A server with a service time of 2.5 ms for all: messages that it cannot handle in time arrive after the log is
/// closed.
fn raw_data(host: &Host) {
    for (hz, nodes) in [
        (10, 2),
        (100, 2),
        (300, 2),
        (600, 2),
        (100, 8),
        (200, 8),
        (100, 4),
        (300, 4),
    ] {
        for run in 0..3u64 {
            let folder = host.path(&format!("raw/{hz}Hz/{nodes}nodes/run{run}"));
            fs::create_dir_all(&folder).expect("a folder");
            let senders = nodes / 2;
            let mut free = 0u64;
            let mut files = vec![String::new(); senders];
            for m in 0..600u64 {
                for (s, file) in files.iter_mut().enumerate() {
                    let sent = m * 1_000_000 / hz + s as u64 + run;
                    free = free.max(sent) + 2_500;
                    let closes = 600_000_000 / hz + 500_000;
                    let received = if free < closes {
                        (free + 1000).to_string()
                    } else {
                        String::new()
                    };
                    file.push_str(&format!("{m},{sent},{received}\n"));
                }
            }
            for (s, text) in files.iter().enumerate() {
                fs::write(folder.join(format!("{s}.csv")), text).expect("a file");
            }
        }
    }
    let layout = "files: \"{hz}Hz/{nodes}nodes/run{run}/*.csv\"\npayload_bytes: 4250\nmessages: 600\nunit: us\n\
                  closes_after: 500ms\nsystem: rospy\n";
    fs::write(host.path("raw/layout.yaml"), layout).expect("a file");
}

#[test]
fn raw_data_is_analyzed_modelled_and_reported() {
    let host = Host::new();
    raw_data(&host);
    let args = [
        "bench",
        "analyze",
        "raw",
        "--json",
        "--csv",
        "cells.csv",
        "--figure",
        "delays.svg",
    ];
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    let result = json(&done.stdout);
    let cells = result["cells"].as_array().expect("cells");
    let of = |what: &str| cells.iter().filter(|c| c["params"]["what"] == what).count();
    assert_eq!(of("cell"), 8);
    assert!(of("knee") >= 3, "{cells:?}");
    let model = cells.iter().find(|c| c["system"] == "model").expect("a model");
    assert_eq!(model["params"]["of"], "rospy");
    assert!(model["metrics"]["cslv_median_error"].is_number());
    let csv = fs::read_to_string(host.path("cells.csv")).expect("was written");
    assert_eq!(csv.lines().count(), 9);
    assert!(
        fs::read_to_string(host.path("delays.svg"))
            .expect("was written")
            .starts_with("<svg ")
    );
    fs::write(host.path("data.json"), &done.stdout).expect("a file");
    let done = host.run(&[
        "bench",
        "report",
        "data.json",
        "-o",
        "page.html",
        "--title",
        "Rows",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    let page = fs::read_to_string(host.path("page.html")).expect("was written");
    assert!(page.contains("<h1>Rows</h1>") && page.contains("data-metric=\"by_number_ms\""));
    let done = host.run(&["bench", "model", "data.json", "--json=models.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("rospy") && !done.stdout.contains('{'),
        "{done:?}"
    );
    let models = json(&fs::read_to_string(host.path("models.json")).expect("was written"));
    assert!(models["models"]["rospy"]["process"].is_object(), "{models}");
    let done = host.run(&["bench", "analyze", "raw"]);
    assert!(
        done.stdout.contains("right-censored") && done.stdout.contains("Student"),
        "{done:?}"
    );
}

#[test]
fn the_examples_are_planned() {
    let host = Host::new();
    let demo = format!("{EXAMPLES}/demo.yaml");
    let done = host.run(&[
        "plan",
        &demo,
        "--brief",
        "--json",
        "--runs",
        "2",
        "--seconds",
        "5",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    let plan = json(&done.stdout);
    assert_eq!(
        (&plan["experiment"], &plan["fits"]),
        (&"plan".into(), &true.into())
    );
    let topics: Vec<_> = plan["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter(|c| c["params"]["what"] == "topic")
        .map(|c| c["metrics"]["delay_ms"]["mean"].as_f64().expect("a number"))
        .collect();
    assert!(
        topics.len() == 3 && topics[0] < 10.0 && topics[2] > 100.0,
        "{topics:?}"
    );
    let fleet = format!("{EXAMPLES}/fleet.yaml");
    let done = host.run(&["plan", &fleet, "--brief", "--runs", "1", "--seconds", "2"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("It fits.") && done.stdout.contains("Confidence:"),
        "{done:?}"
    );
}

#[test]
fn a_plan_that_does_not_fit_exits_with_1_and_bad_input_with_2() {
    let host = Host::new();
    let text = "hosts: [a, b]\nmedia: [{name: wifi, radio: 6Mbit/s}]\ntopics: [{name: /x, from: a, to: b, bytes: 100kB, hz: 20}]\n";
    fs::write(host.path("s.yaml"), text).expect("a file");
    let short = ["--brief", "--runs", "1", "--seconds", "2"];
    let done = host.run(&[&["plan", "s.yaml"], &short[..]].concat());
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("It does not fit."), "{done:?}");
    fs::write(
        host.path("typed.yaml"),
        text.replace("bytes: 100kB", "type: sensor_msgs/Image"),
    )
    .expect("a file");
    fs::write(host.path("recorded.yaml"), format!("recording: none.bag\n{text}")).expect("a file");
    fs::write(host.path("page.json"), "{}").expect("a file");
    for (args, says) in [
        (&["plan", "none.yaml"][..], "none.yaml"),
        (&["plan", "typed.yaml"], "no fixed size: give `bytes`"),
        (&["plan", "recorded.yaml"], "recording none.bag"),
        (
            &["plan", "s.yaml", "--machine", "page.json"],
            "`models` is missing",
        ),
        (
            &["bench", "report", "page.json"],
            "`experiment` or `cells` is missing",
        ),
        (&["bench", "model", "page.json"], "`cells` is missing"),
        (&["bench", "analyze", "nowhere"], "nowhere/layout.yaml"),
    ] {
        let done = host.run(args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(done.stderr.contains(says), "{args:?}: {done:?}");
    }
}
