//! A short run of the demo.

use crate::support::Host;
use serde_json::Value;

#[test]
fn both_orders_deliver_equal_content_and_account_for_every_loss() {
    let host = Host::new();
    let args = [
        "demo",
        "--seconds",
        "3",
        "--json",
        "out.json",
        "--figure",
        "delays.svg",
    ];
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("by priority"), "{done:?}");
    let end: Vec<&str> = done.stderr.lines().rev().take(2).collect();
    assert!(
        end[1].starts_with("In short: ") && end[0].starts_with("next: "),
        "{done:?}"
    );
    let json = std::fs::read_to_string(host.path("out.json")).expect("was written");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["experiment"], "demo");
    let cells = json["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    for cell in cells {
        let m = &cell["metrics"];
        assert_eq!(m["content_equal"], true, "{cell}");
        assert_eq!(m["uncounted"], 0, "{cell}");
        let dropped: u64 = m["drops"]
            .as_object()
            .expect("drops")
            .values()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(
            m["received"].as_u64().expect("a number") + dropped,
            m["sent"].as_u64().expect("a number")
        );
        for field in ["period_ms", "added_jitter_ms", "delay_ms"] {
            assert!(m[field]["std"].is_number(), "{cell}");
        }
    }
    let svg = std::fs::read_to_string(host.path("delays.svg")).expect("was written");
    assert!(svg.starts_with("<svg ") && svg.contains("/scan") && svg.contains("fifo"));
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing() {
    let host = Host::new();
    let demo = host.start(&["demo", "--seconds", "60", "--only", "priority"]);
    std::thread::sleep(std::time::Duration::from_secs(4));
    demo.interrupt();
    let done = demo.wait();
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("stopped before the end"), "{done:?}");
    assert!(host.left_behind().is_empty(), "{:?}", host.left_behind());
}
