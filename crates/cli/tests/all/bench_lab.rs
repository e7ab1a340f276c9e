//! `bench lab`: one real row for each tool, and the shape of the JSON.

use crate::lab::Place;
use crate::support::{Done, Host, finish};
use serde_json::Value;

/// Result of a bench in a lab, which has to run to its end without a failed row.
pub(crate) fn complete(done: &Done, experiment: &str) -> Value {
    // Exit code 1: a row missed its target, which happens when other programs use the machine.
    assert!([0, 1].contains(&done.code), "{done:?}");
    let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    assert_eq!(
        (&json["experiment"], &json["complete"]),
        (&experiment.into(), &true.into())
    );
    assert_eq!(json["failed"], Value::Array(vec![]), "{done:?}");
    json
}

/// The goodput of a radio, and a round trip. Tolerances are wide: machines that run tests are busy.
#[test]
fn the_radio_carries_what_the_closed_form_says() {
    let Some(place) = Place::with(&["iperf3"]) else {
        return;
    };
    let mut command = place.host.command(&["bench", "lab", "--quick", "--json"]);
    command.args(["--scenarios", "wifi-1hop,direct", "--csv", "rows.csv"]);
    command.env("ROPEWALK_LAB_DIR", place.folder());
    let done = finish(command);
    let json = complete(&done, "lab");
    assert!(
        json["versions"]["iperf3"].is_string() && json["machine"]["kernel"].is_string(),
        "{json}"
    );
    let cells = json["cells"].as_array().expect("cells");
    let checks: Vec<_> = cells
        .iter()
        .filter_map(|c| c["params"]["check"].as_str())
        .collect();
    assert_eq!(checks, ["goodput UDP", "goodput TCP", "round trip of nothing"]);
    for cell in cells {
        let m = &cell["metrics"];
        for number in ["late_p99_us", "late_max_us", "stalls"] {
            assert!(m["lab"][number].is_number(), "{cell}");
        }
        assert!(
            ["good", "rerun"].contains(&m["lab"]["verdict"].as_str().unwrap_or_default()),
            "{cell}"
        );
        assert!(
            m["tries"].as_u64().is_some_and(|t| (1..=3).contains(&t)),
            "{cell}"
        );
        assert!(m["verdict"].is_string() && m["targets"].is_array(), "{cell}");
    }
    let of = |cell: usize, name: &str| cells[cell]["metrics"][name].as_f64().expect(name);
    assert!((4.0..5.5).contains(&of(0, "goodput_mbit_s")), "{json}");
    assert!((of(0, "closed_form_mbit_s") - 5.27).abs() < 0.01, "{json}");
    assert!((3.0..5.0).contains(&of(1, "goodput_mbit_s")), "{json}");
    assert!(
        of(2, "rtt_min_ms") > 0.0 && of(2, "rtt_min_ms") <= of(2, "rtt_max_ms"),
        "{json}"
    );
    let csv = std::fs::read_to_string(place.host.path("rows.csv")).expect("was written");
    assert!(
        csv.lines().count() > 6 && csv.contains("wifi-1hop,\"goodput UDP\",iperf3,goodput_mbit_s,"),
        "{csv}"
    );
    let left = std::fs::read_dir(place.folder()).into_iter().flatten().count();
    assert_eq!(left, 0, "a lab is left");
}

#[test]
fn rows_that_are_not_there_are_refused_by_name() {
    let host = Host::new();
    let done = host.run(&["bench", "lab", "--scenarios", "wifi-3hops"]);
    assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{done:?}");
    assert!(
        done.stderr.contains("'wifi-3hops' is not one of") && done.stderr.contains("loss-20"),
        "{done:?}"
    );
    assert_eq!(host.run(&["bench", "lab", "--runs", "0"]).code, 2);
}
