//! Listing and calling services.

use crate::support::Host;
use ropewalk::{BusConfig, Flavour, Node, Registry, Value};

#[test]
fn a_service_is_listed_described_and_called() {
    let host = Host::new();
    let node = Node::with_config("tester", BusConfig::new(host.path("bus"))).expect("a node");
    let set_bool = Registry::new(Flavour::Ros1)
        .service("std_srvs/SetBool")
        .expect("a type");
    let response = set_bool.response().clone();
    let callback = node.service("/brake", &set_bool, move |request| {
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

    // The server's own error; a request that is none; a service that is none.
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
