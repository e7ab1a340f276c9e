//! Plans of systems with a known answer: by closed forms, by the demo, or because nothing could carry them.

use analysis::plan::{Effort, HostCosts, Known, Options, Outcome, System, Trace, plan, simulate};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

struct Ours;

impl Known for Ours {
    fn size(&self, type_name: &str) -> Result<u64, String> {
        Err(format!("{type_name}: give `bytes`"))
    }

    fn recording(&self, file: &str) -> Result<BTreeMap<String, Trace>, String> {
        assert_eq!(file, "simulated");
        let channels = recording::simulation::channels();
        let mut all = BTreeMap::<String, Trace>::new();
        for m in recording::simulation::generate(20.0, 1) {
            let channel = &channels[m.channel.0 as usize];
            let trace = all.entry(channel.topic.clone()).or_default();
            trace.type_name = channel.type_name.clone();
            trace
                .messages
                .push((Duration::from_nanos(m.log_time.0), m.data.len() as u32));
        }
        Ok(all)
    }
}

fn system(text: &str) -> System {
    System::parse(text, "system.yaml", &Ours).expect("a system")
}

fn planned(text: &str, brief: bool) -> Outcome {
    let options = Options {
        system: PathBuf::new(),
        machine: None,
        seconds: 10.0,
        runs: 3,
        brief,
        json: Default::default(),
        seed: 1,
    };
    let outcome = plan(&system(text), &HostCosts::defaults(), &options, &|| false).expect("a plan");
    println!("{}\n", outcome.text());
    outcome
}

#[test]
fn the_demos_system_is_as_the_demo_measures_it() {
    let system = system(include_str!("../../../examples/plan/demo.yaml"));
    let effort = Effort {
        runs: 3,
        span: Duration::from_secs(20),
        seed: 1,
    };
    let s = simulate(&system, &HostCosts::defaults(), 1.0, 1, effort).expect("figures");
    // As measured by `ropewalk demo --seconds 20` on a quiet machine (medians of six): mean delay in ms, delivery.
    let measured = [(4.30, 1.0), (1.13, 1.0), (268.5, 0.955)];
    for ((topic, figures), (mean, delivery)) in system.topics.iter().zip(&s.topics).zip(measured) {
        println!(
            "{}: {:.2} ms {:?}, measured {mean}; delivery {:.4}, measured {delivery}",
            topic.name, figures.mean_ms, figures.mean_interval_ms, figures.delivery
        );
    }
    for (figures, (mean, delivery)) in s.topics.iter().zip(measured) {
        assert!((figures.mean_ms / mean - 1.0f64).abs() < 0.15, "{figures:?}");
        assert!((figures.delivery / delivery - 1.0f64).abs() < 0.15, "{figures:?}");
    }
}

#[test]
fn a_lone_message_takes_its_airtime() {
    let outcome = planned(
        "hosts: [a, b]\nmedia: [{name: wifi, radio: 6Mbit/s, carrier: udp}]\ntopics: [{name: /x, from: a, to: b, bytes: 1000, hz: 5}]\n",
        false,
    );
    let f = &outcome.simulated.topics[0];
    // 1 kB with the link's overhead: about 1.5 ms on the air, 0.2 for the hosts.
    assert!(f.delivery == 1.0 && (1.6..2.1).contains(&f.mean_ms), "{f:?}");
    assert!(outcome.fits());
    assert!(outcome.sure.iter().any(|s| s.contains("defaults, not measured")));
}

#[test]
fn wires_and_one_host_are_planned_too() {
    let outcome = planned(
        "hosts: [a, b]\nmedia: [{name: line, wire: 10Mbit/s, delay: 20ms, carrier: udp}]\ntopics:\n  - {name: /x, from: a, to: b, \
         bytes: 10000, hz: 10}\n  - {name: /y, from: a, to: a, bytes: 1000000, hz: 30}\n",
        true,
    );
    let [x, y] = &outcome.simulated.topics[..] else {
        panic!("two topics")
    };
    // 10 kB at 10 Mbit/s are 8.4 ms with all overhead, in addition to the delay.
    assert!(x.delivery == 1.0 && (28.0..31.0).contains(&x.mean_ms), "{x:?}");
    assert!(y.delivery == 1.0 && y.mean_ms < 1.0, "{y:?}");
}

const TOO_MUCH: &str = "hosts: [robot, base]\nmedia: [{name: wifi, radio: 6Mbit/s}]\ntopics:\n  - {name: /scan, from: robot, to: base, \
                        bytes: 2600, hz: 30, priority: 5, within: 20ms}\n  - {name: /camera, from: robot, to: base, bytes: 80kB, hz: \
                        12, priority: 50, depth: 2}\n";

#[test]
fn a_plan_that_does_not_fit_names_what_would_help() {
    let outcome = planned(TOO_MUCH, false);
    assert!(!outcome.fits());
    let broken = outcome.breaks_first.as_ref().expect("something breaks");
    assert_eq!(broken.what, "topic");
    // The scan waits behind 80 kB, however rarely they are sent.
    assert_eq!(broken.at_load, 0.0, "{broken:?}");
    let kinds: Vec<_> = outcome.changes.iter().map(|c| (c.kind, c.fits)).collect();
    // The camera alone exceeds the radio: a priority helps only the scan.
    assert!(kinds.contains(&("priority", false)), "{kinds:?}");
    assert!(kinds.contains(&("medium", true)), "{kinds:?}");
    assert!(outcome.changes[0].fits);
    let medium = outcome
        .changes
        .iter()
        .find(|c| c.kind == "medium")
        .expect("a medium");
    assert!(medium.change.contains("a radio of 54"), "{medium:?}");
    let priority = outcome
        .changes
        .iter()
        .find(|c| c.kind == "priority")
        .expect("one");
    assert_eq!(priority.left, ["/camera"]);
}

#[test]
fn priorities_help_where_there_is_room() {
    let outcome = planned(&TOO_MUCH.replace("hz: 12", "hz: 4"), false);
    assert!(!outcome.fits(), "the scan waits for the camera");
    let priority = outcome
        .changes
        .iter()
        .find(|c| c.kind == "priority")
        .expect("one");
    assert!(priority.fits, "{priority:?}");
}

#[test]
fn fleets_are_as_many_stations_as_share_an_access_point() {
    let text = "hosts: [robot, base]\nmedia: [{name: wifi, radio: 54Mbit/s}]\ntopics:\n  - {name: /odom, from: robot, to: base, bytes: \
                700, hz: 20, priority: 100, deadline: 100ms}\n  - {name: /cmd, from: base, to: robot, bytes: 48, hz: 10, priority: \
                120, deadline: 100ms}\nfleet: {host: robot, robots: 40, access_points: 8}\n";
    let outcome = planned(text, false);
    assert!(outcome.fits());
    let fleet = outcome.fleet.as_ref().expect("a fleet");
    assert_eq!(fleet.robots_per_access_point, 5);
    assert!(fleet.most_robots_per_access_point >= 5, "{fleet:?}");
    let few = planned(
        &text
            .replace("54Mbit/s", "6Mbit/s")
            .replace("bytes: 700", "bytes: 6kB"),
        false,
    );
    assert!(!few.fits());
    let fleet = few.fleet.as_ref().expect("a fleet");
    // 6 kB at 20 Hz are a fifth of the air.
    assert!((1..5).contains(&fleet.most_robots_per_access_point), "{fleet:?}");
    let json: serde_json::Value = serde_json::from_str(&few.json(BTreeMap::new())).expect("JSON");
    assert_eq!(json["fits"], false);
    assert!(
        json["fleet"]["access_points_needed"]
            .as_u64()
            .is_some_and(|n| n > 8)
    );
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(2 + 1 + 2));
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    assert_eq!(
        planned(TOO_MUCH, true).simulated,
        planned(TOO_MUCH, true).simulated
    );
}
