//! Listing and calling services.

use crate::support::{Host, address, eventually};
use ropewalk::{BusConfig, Flavour, Node, Registry, Value};

#[test]
fn a_service_is_listed_described_and_called() {
    let host = Host::new();
    let node = Node::with_config("tester", BusConfig::new(host.path("bus"))).expect("a node");
    let set_bool = Registry::new(Flavour::Ros1)
        .service("std_srvs/SetBool")
        .expect("a type");
    let response = set_bool.response().clone();
    let callback = node.dynamic_service("/brake", &set_bool, move |request| {
        let value = request.value().map_err(|e| e.to_string())?;
        if value.get("data").ok() != Some(Value::Bool(true)) {
            return Err("the brake stays on".into());
        }
        let mut answer = response.default_value();
        answer
            .set("success", Value::Bool(true))
            .map_err(|e| e.to_string())?;
        answer
            .set("message", Value::String("braking".into()))
            .map_err(|e| e.to_string())?;
        Ok(answer)
    });
    let callback = callback.expect("serves");

    let list = host.run(&["service", "list"]);
    assert!(
        list.stdout.contains("/brake") && list.stdout.contains("std_srvs/SetBool"),
        "{list:?}"
    );
    let list = host.run(&["service", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list["services"][0]["md5"], "09fb03525b03e7ea1fd3992bafd87e16");
    assert_eq!(list["services"][0]["servers"][0]["pid"], std::process::id());
    let topics = host.run(&["topic", "list"]);
    assert!(topics.stdout.is_empty(), "services are no topics: {topics:?}");

    let info = host.run(&["service", "info", "brake"]);
    assert!(
        info.stdout.contains("bool data") && info.stdout.contains("servers  "),
        "{info:?}"
    );
    let info = host.run(&["service", "info", "/brake", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info.stdout).expect("JSON");
    assert!(
        info["definition"]
            .as_str()
            .is_some_and(|d| d.contains("bool success")),
        "{info}"
    );

    let call = host.run(&["service", "call", "/brake", "data: true", "--timeout", "60"]);
    assert_eq!(
        (call.code, &*call.stdout),
        (0, "success: true\nmessage: \"braking\"\n"),
        "{call:?}"
    );
    let call = host.run(&[
        "service",
        "call",
        "/brake",
        "{\"data\": true}",
        "--timeout",
        "60",
        "--json",
    ]);
    let answer: serde_json::Value = serde_json::from_str(&call.stdout).expect("JSON");
    assert_eq!(
        answer,
        serde_json::json!({ "success": true, "message": "braking" })
    );

    // The server's own error; an invalid request; an unknown service.
    let call = host.run(&["service", "call", "/brake", "--timeout", "60"]);
    assert!(
        call.code == 1 && call.stderr.contains("the brake stays on"),
        "{call:?}"
    );
    let call = host.run(&["service", "call", "/brake", "dada: true", "--timeout", "60"]);
    assert!(call.code == 2 && call.stderr.contains("dada"), "{call:?}");
    drop(callback);
    let call = host.run(&["service", "call", "/brake", "--timeout", "0.2"]);
    assert!(
        call.code == 2 && call.stderr.contains("nobody served /brake"),
        "{call:?}"
    );
    let info = host.run(&["service", "info", "/brake"]);
    assert!(info.code == 2 && info.stderr.contains("/brake"), "{info:?}");
    assert!(host.run(&["service", "list"]).stderr.contains("no services"));
}

#[test]
fn a_service_of_another_host_is_called_over_a_link() {
    let (robot, base) = (Host::new(), Host::new());
    let (a, b) = (address(), address());
    let config = |host: &Host, own: (&str, &str), peer: (&str, &str), services: &str| {
        let text = format!(
            "host: {}\nradio: {{bind: '{}', rate: 54Mbit/s}}\npeers: [{{name: {}, address: '{}', namespace: '/{{peer}}'}}]\n\
             services:\n{services}",
            own.0, own.1, peer.0, peer.1
        );
        std::fs::write(host.path("link.yaml"), text).expect("writes");
    };
    config(
        &robot,
        ("robot", &a),
        ("base", &b),
        "  - {name: /brake, role: serve}\n",
    );
    config(
        &base,
        ("base", &b),
        ("robot", &a),
        "  - {name: /brake, role: call, from: robot}\n",
    );
    let node = Node::with_config("tester", BusConfig::new(robot.path("bus"))).expect("a node");
    let trigger = Registry::new(Flavour::Ros1)
        .service("std_srvs/Trigger")
        .expect("a type");
    let response = trigger.response().clone();
    let served = node.dynamic_service("/brake", &trigger, move |_| {
        let json = serde_json::json!({ "success": true, "message": "standing" });
        response.value_from_json(&json).map_err(|e| e.to_string())
    });
    let served = served.expect("serves");
    let links = [
        robot.start(&["link", "link.yaml"]),
        base.start(&["link", "link.yaml"]),
    ];
    let call = base.run(&["service", "call", "/robot/brake", "--timeout", "60"]);
    assert_eq!(
        (call.code, &*call.stdout),
        (0, "success: true\nmessage: \"standing\"\n"),
        "{call:?}"
    );
    let info = base.run(&["service", "info", "/robot/brake"]);
    assert!(
        info.stdout.contains("std_srvs/Trigger") && info.stdout.contains("bool success"),
        "{info:?}"
    );
    let state = |host: &Host| {
        let done = host.run(&["link", "status", "--json"]);
        let state: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
        state["services"][0].clone()
    };
    let counted = |s: &serde_json::Value| (s["calls"] == 1 && s["answered"] == 1).then_some(());
    eventually("the call is counted", || {
        counted(&state(&base)).and(counted(&state(&robot)))
    });
    let at_base = state(&base);
    assert_eq!(
        (
            &at_base["role"],
            &at_base["state"],
            &at_base["here"],
            &at_base["name"]
        ),
        (
            &"call".into(),
            &"ready".into(),
            &"/robot/brake".into(),
            &"/brake".into()
        )
    );
    let text = robot.run(&["link", "status"]).stdout;
    let line = text
        .lines()
        .find(|l| l.starts_with("/brake "))
        .expect("a line of the service");
    assert!(line.contains("for base") && line.contains("ready"), "{text}");
    // The same in every view.
    let plain = base.run(&["top", "-n", "1", "--every", "0.2"]).stdout;
    assert!(
        plain
            .lines()
            .any(|l| l.starts_with("/robot/brake ") && l.contains("calls")),
        "{plain}"
    );
    let json = base.run(&["top", "-n", "1", "--every", "0.2", "--json"]).stdout;
    let top: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(top["services"][0]["answered"], 1, "{json}");
    // The newest report may precede the call.
    eventually("the link's own topic reports the call", || {
        let echo = base.run(&["topic", "echo", "/link/base/status", "-n", "1", "--wait", "30"]);
        let parts = ["service: \"/robot/brake\"", "role: \"call\"", "answered: 1"];
        parts.iter().all(|part| echo.stdout.contains(part)).then_some(())
    });
    // A name that `top` shows can be set.
    let set = base.run(&["link", "set", "/brake?request", "priority=90", "--peer", "robot"]);
    assert_eq!(
        (set.code, set.stdout.trim()),
        (0, "to robot: priority=90"),
        "{set:?}"
    );
    // When the server ends, the service disappears here as well.
    drop(served);
    eventually("nobody serves it any more", || {
        let call = base.run(&["service", "call", "/robot/brake", "--timeout", "0.3"]);
        (call.code == 2 && call.stderr.contains("nobody served")).then_some(())
    });
    for link in links {
        link.interrupt();
        assert_eq!(link.wait().code, 0);
    }
}
