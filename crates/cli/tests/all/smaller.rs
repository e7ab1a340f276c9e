//! How links decimate and compress topics.

use crate::support::{Host, Running, address, eventually};
use serde_json::{Value, json};

fn links(sends: &str, receives: &str) -> (Host, Host, Vec<Running>) {
    let (robot, base) = (Host::new(), Host::new());
    let (a, b) = (address(), address());
    for (host, own, peer, topics) in [
        (&robot, ("robot", &a), ("base", &b), sends),
        (&base, ("base", &b), ("robot", &a), receives),
    ] {
        let text = format!(
            "host: {}\nradio: {{bind: '{}', rate: 6Mbit/s}}\npeers: [{{name: {}, address: '{}'}}]\ntopics:\n{topics}",
            own.0, own.1, peer.0, peer.1
        );
        std::fs::write(host.path("link.yaml"), text).expect("writes");
    }
    let running = vec![
        robot.start(&["link", "link.yaml"]),
        base.start(&["link", "link.yaml"]),
    ];
    (robot, base, running)
}

fn state(host: &Host) -> Option<Value> {
    let done = host.run(&["link", "status", "--json"]);
    serde_json::from_str(done.stdout.lines().next()?).ok()
}

#[test]
fn a_large_message_that_shrinks_crosses_packed() {
    let (robot, base, _links) = links(
        "  - {name: /text, direction: out, compress: auto, depth: 4}\n",
        "  - {name: /text, direction: in}\n",
    );
    let short = "all work and no play ".repeat(4_000);
    let _publish = robot.start(&[
        "topic",
        "pub",
        "/text",
        "std_msgs/String",
        &format!("data: '{short}'"),
        "--rate",
        "20",
    ]);
    let echo = base.run(&["topic", "echo", "/text", "-n", "10", "--wait", "60", "--full"]);
    assert_eq!(echo.code, 0, "{}", echo.stderr);
    assert_eq!(echo.stdout.matches("no play").count(), 40_000);
    let sent = eventually("the compression is reported", || {
        let sent = state(&robot)?["sent"][0].clone();
        (sent["packing"]["packed"].as_u64()? > 0).then_some(sent)
    });
    let (before, after) = (
        &sent["packing"]["original_bytes"],
        &sent["packing"]["packed_bytes"],
    );
    assert!(
        after.as_u64().expect("a count") * 20 < before.as_u64().expect("a count"),
        "{sent}"
    );
    assert!(
        sent["packing"]["copied_bytes"].as_u64() >= before.as_u64(),
        "{sent}"
    );
    // 84 kB at 20 Hz are 13 Mbit/s: uncompressed, less than half would get through.
    let received = eventually("all of them come", || {
        let received = state(&base)?["received"][0].clone();
        (received["unpacking"]["unpacked"].as_u64()? >= 30).then_some(received)
    });
    assert_eq!(received["unpacking"]["failed"], 0, "{received}");
    assert!(received["recent"]["hz"].as_f64() > Some(15.0), "{received}");
}

fn transforms(frames: &[&str]) -> String {
    let list: Vec<Value> = frames
        .iter()
        .map(|f| json!({ "header": { "frame_id": "map" }, "child_frame_id": f }))
        .collect();
    json!({ "transforms": list }).to_string()
}

#[test]
fn transforms_are_reduced_and_static_ones_kept_for_late_joiners() {
    let (robot, base, mut links) = links(
        "  - {name: /tf, direction: out, depth: 10, tf: {frames: [odom, 'arm_*'], rates: {odom: 10Hz}}}\n  \
         - {name: /tf_static, direction: out, tf: {frames: ['base*']}}\n",
        "  - {name: /tf, direction: in}\n  - {name: /tf_static, direction: in}\n",
    );
    let publish = |topic: &str, frames: &[&str], more: &[&str]| {
        let message = transforms(frames);
        let args = [&["topic", "pub", topic, "tf2_msgs/TFMessage", &message][..], more].concat();
        robot.start(&args)
    };
    let _tf = publish("/tf", &["odom", "arm_1", "camera"], &["--rate", "50"]);
    let echo = base.run(&["topic", "echo", "/tf", "-n", "20", "--wait", "60", "--full"]);
    assert_eq!(echo.code, 0, "{echo:?}");
    let count = |frame: &str| echo.stdout.matches(frame).count();
    assert_eq!((count("arm_1"), count("camera")), (20, 0), "{}", echo.stdout);
    assert!((2..=8).contains(&count("odom")), "{}", echo.stdout);

    // Published only for a while.
    let fixed = publish("/tf_static", &["base_link", "gps"], &["--rate", "10"]);
    eventually("the static transforms are sent", || {
        let sent = state(&robot)?["sent"].as_array()?.clone();
        sent.iter()
            .any(|t| t["name"] == "/tf_static" && t["sent"].as_u64() > Some(0))
            .then_some(())
    });
    // A late joiner on the base, and a restarted link of the base, have them.
    let late = |what: &str| {
        let echo = base.run(&["topic", "echo", "/tf_static", "-n", "1", "--wait", "60", "--full"]);
        assert_eq!(echo.code, 0, "{what}: {echo:?}");
        assert!(
            echo.stdout.contains("base_link") && !echo.stdout.contains("gps"),
            "{what}: {echo:?}"
        );
    };
    late("a late program");
    drop(links.remove(1));
    links.push(base.start(&["link", "link.yaml"]));
    late("a new link");
    drop(fixed);
    let sent = state(&robot).expect("a state")["sent"].clone();
    let tf = sent
        .as_array()
        .into_iter()
        .flatten()
        .find(|t| t["name"] == "/tf")
        .expect("is sent")
        .clone();
    assert!(tf["tf"]["other_frames"].as_u64() > Some(10), "{tf}");
    assert!(tf["tf"]["too_soon"].as_u64() > Some(5), "{tf}");
}
