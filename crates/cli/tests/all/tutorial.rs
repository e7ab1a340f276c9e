//! The tutorial (`docs/guide/tutorial.md`) with its files (`examples/link`): two hosts over an emulated radio.

use crate::lab::Place;
use crate::support::eventually;
use std::path::Path;

const LAB: &str = "wifi-1hop";

#[test]
fn two_robots_on_one_laptop() {
    let Some(place) = Place::new() else { return };
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/link");
    for host in ["robot", "base"] {
        let name = format!("{host}.yaml");
        std::fs::copy(files.join(&name), place.host.path(&name)).expect("copies");
    }
    assert_eq!(place.host.run(&["keys", "team", "rovers"]).code, 0);
    for host in ["robot", "base"] {
        assert_eq!(place.host.run(&["keys", "host", host]).code, 0);
    }
    let ropewalk = env!("CARGO_BIN_EXE_ropewalk");
    assert_eq!(place.lab(&["up", LAB]).code, 0);
    let start = |host: &str, words: &[&str]| place.start(&[&["exec", host, "--", ropewalk], words].concat());
    let file = |name: &str| place.host.path(name).to_string_lossy().into_owned();
    let _links = ["robot", "base"].map(|host| start(host, &["link", &file(&format!("{host}.yaml"))]));
    let image = format!("data: {}", "c".repeat(60_000));
    let _camera = start(
        "robot",
        &[
            "topic",
            "pub",
            "/camera",
            "std_msgs/String",
            &image,
            "--rate",
            "10",
        ],
    );
    let _scan = start(
        "robot",
        &[
            "topic",
            "pub",
            "/scan",
            "std_msgs/String",
            "data: a scan",
            "--rate",
            "20",
        ],
    );
    let heard = eventually("the scan arrives", || {
        let words = [
            "exec",
            "base",
            "--",
            ropewalk,
            "topic",
            "echo",
            "/scan",
            "--count",
            "1",
            "--timeout",
            "20",
        ];
        let done = place.lab(&words);
        (done.code == 0).then_some(done.stdout)
    });
    assert!(heard.contains("a scan"), "{heard}");
    let status = || {
        place
            .lab(&["exec", "base", "--", ropewalk, "link", "status"])
            .stdout
    };
    let both = |text: &String| text.contains("/camera") && text.contains("peer robot: up");
    eventually("the camera is there", || Some(status()).filter(both));
    let set = place.lab(&["exec", "base", "--", ropewalk, "link", "status", "--json"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
}
