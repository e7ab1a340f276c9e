//! `bench link`: one short real run from end to end, and the shape of the JSON.

use crate::bench_lab::complete;
use crate::lab::Place;
use crate::support::{Host, finish};
use serde_json::Value;

/// Links with keys on two hosts of a lab carry laser and image. Tolerances are wide: machines that run tests are busy.
#[test]
fn a_link_carries_pounds_flows_over_one_hop() {
    let Some(place) = Place::with(&[]) else {
        return;
    };
    let mut command = place
        .host
        .command(&["bench", "link", "--quick", "--runs", "1", "--json"]);
    command.args([
        "--systems",
        "ropewalk",
        "--carriers",
        "quic",
        "--scenarios",
        "wifi-1hop",
        "--rates",
        "set",
    ]);
    command.args(["--csv", "rows.csv", "--figure", "rows.svg"]);
    command.env("ROPEWALK_LAB_DIR", place.folder());
    let done = finish(command);
    let json = complete(&done, "link");
    let cells = json["cells"].as_array().expect("cells");
    let topics: Vec<_> = cells
        .iter()
        .filter_map(|c| c["params"]["topic"].as_str())
        .collect();
    assert_eq!(topics, ["/laser", "/image"]);
    for cell in cells {
        assert_eq!(cell["system"], "ropewalk");
        let p = &cell["params"];
        assert_eq!(
            (
                &p["experiment"],
                &p["carrier"],
                &p["rate"],
                &p["source"],
                &p["hops"]
            ),
            (
                &"pound".into(),
                &"quic".into(),
                &"set".into(),
                &"periodic".into(),
                &1.into()
            )
        );
        let m = &cell["metrics"];
        for number in ["late_p99_us", "late_max_us", "stalls"] {
            assert!(m["lab"][number].is_number(), "{cell}");
        }
        for number in ["mean", "std", "p50", "p99", "max"] {
            assert!(m["delay_ms"][number].as_f64().is_some_and(|n| n > 0.0), "{cell}");
        }
        assert!(m["period_ms"]["std"].is_number(), "{cell}");
        assert!(m["delivery"].as_f64().is_some_and(|d| d > 0.9), "{cell}");
        assert!(m["verdict"].is_string() && m["targets"].is_array(), "{cell}");
    }
    let of = |cell: usize, name: &str| cells[cell]["metrics"][name]["mean"].as_f64().expect(name);
    assert!((19.0..21.0).contains(&of(0, "period_ms")), "{json}");
    assert!((140.0..160.0).contains(&of(1, "period_ms")), "{json}");
    // Less than 64,000 B at 6 Mbit/s is not possible, and urgent messages do not wait for whole images.
    assert!(of(1, "delay_ms") > 85.0 && of(0, "delay_ms") < 50.0, "{json}");
    // The paper's rows are not cells.
    assert!(json["paper"].as_array().is_some_and(|p| p.len() == 32), "{json}");
    let csv = std::fs::read_to_string(place.host.path("rows.csv")).expect("was written");
    assert!(
        csv.contains("wifi-1hop,\"flow /laser\",ropewalk,delay_ms.mean,"),
        "{csv}"
    );
    let svg = std::fs::read_to_string(place.host.path("rows.svg")).expect("was written");
    assert!(svg.contains("ropewalk quic, rate set"), "{svg}");
    let left = std::fs::read_dir(place.folder()).into_iter().flatten().count();
    assert_eq!(left, 0, "a lab is left");
}

/// Pound's setup: a roscore on each host, unmodified nodes of roscpp, bridges and links.
#[test]
fn nodes_of_two_roscores_meet_over_a_link() {
    let Some(place) = Place::with(&["roscore", "g++"]) else {
        return;
    };
    let mut command = place
        .host
        .command(&["bench", "link", "--quick", "--runs", "1", "--json"]);
    command.args(["--systems", "ropewalk", "--carriers", "quic", "--rates", "set"]);
    command.args(["--scenarios", "wifi-1hop", "--ends", "ros", "--keep", "kept"]);
    command.args(["--peers", concat!(env!("CARGO_MANIFEST_DIR"), "/../../peers")]);
    command.env("ROPEWALK_LAB_DIR", place.folder());
    let json = complete(&finish(command), "link");
    let cells = json["cells"].as_array().expect("cells");
    let topics: Vec<_> = cells
        .iter()
        .filter_map(|c| c["params"]["topic"].as_str())
        .collect();
    assert_eq!(topics, ["/laser", "/image"]);
    for cell in cells {
        assert_eq!(cell["params"]["ends"], "ros", "{cell}");
        assert!(
            cell["metrics"]["delivery"].as_f64().is_some_and(|d| d > 0.9),
            "{cell}"
        );
    }
    // Every message went through both bridges, and over the air.
    let kept = std::fs::read_to_string(place.host.path("kept/000.json")).expect("was kept");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let crossed = |host: &str, way: &str| kept["links"][format!("{host}, bridge")][way]["/laser"].clone();
    for (host, way) in [("robot", "to_bus"), ("base", "to_ros")] {
        let count = crossed(host, way)["messages"].as_u64();
        assert!(count.is_some_and(|n| n > 900), "{kept}");
    }
    assert!(
        kept["links"]["base"]["peers"][0]["bytes_received"]
            .as_u64()
            .is_some_and(|n| n > 1_000_000)
    );
}

#[test]
fn options_that_leave_nothing_to_measure_are_refused() {
    let host = Host::new();
    for words in [
        &["--hops", "3"][..],
        &["--runs", "0"],
        &["--experiment", "weather"],
        &["--experiment", "lossy", "--ends", "ros"],
    ] {
        let done = host.run(&[&["bench", "link", "--systems", "ropewalk"], words].concat());
        assert_eq!(done.code, 2, "{done:?}");
    }
    let done = host.run(&["bench", "link", "--systems", "ropewalk", "--hops", "3"]);
    assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    assert!(done.stderr.contains("--hops"), "{done:?}");
}

#[test]
fn a_carrier_that_nothing_measures_is_refused() {
    let host = Host::new();
    for (words, fix) in [
        (
            &["--carriers", "tls"][..],
            "pound does not measure it: give --experiment bandwidth",
        ),
        (&["--carriers", "quic,serial"], "give --experiment serial"),
        (
            &["--carriers", "udp", "--systems", "tcpros"],
            "nothing is left to measure",
        ),
    ] {
        let done = host.run(&[&["bench", "link", "--quick"], words].concat());
        assert!(done.code == 2 && done.stderr.contains(fix), "{words:?}: {done:?}");
    }
}
