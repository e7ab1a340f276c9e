use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "bridge.yaml").map_err(|e| e.to_string())
}

#[test]
fn an_action_is_three_services_and_two_topics() {
    let config = parse("actions: [{name: /fib, direction: to_bus, bus: /far/fib}]").unwrap();
    let (topics, services) = config.whole();
    let topics: Vec<_> = topics
        .iter()
        .map(|r| (r.value.name.as_str(), r.value.bus_name()))
        .collect();
    assert_eq!(
        topics,
        [
            ("/fib/_action/feedback", "/far/fib/_action/feedback"),
            ("/fib/_action/status", "/far/fib/_action/status"),
        ]
    );
    let services: Vec<_> = services.iter().map(|r| r.value.name.as_str()).collect();
    assert_eq!(
        services,
        [
            "/fib/_action/send_goal",
            "/fib/_action/cancel_goal",
            "/fib/_action/get_result"
        ]
    );
    let rule = ServiceRule::new("/fib/_action/get_result", Direction::ToBus);
    assert_eq!(timeout(&rule, &rule.name), RESULT);
    let rule = ServiceRule::new("/fib", Direction::ToBus);
    assert_eq!(timeout(&rule, &rule.name), rule.timeout());
}

#[test]
fn errors_state_the_place_and_the_fix() {
    for (text, expected) in [
        ("domain: 0", "bridge.yaml: nothing is bridged"),
        (
            "domain: 233\ntopics: [{name: /a, direction: both}]",
            "domains are 0 to 232",
        ),
        (
            "topics:\n  - {name: /a, direction: both}\nactions:\n  - {name: '/b/*', direction: to_bus}",
            "bridge.yaml:4:5: /b/*: an action needs a full name",
        ),
        (
            "actions:\n  - {name: /b, direction: both}",
            "bridge.yaml:2:5: /b: an action is served on one side",
        ),
        (
            "actions: [{name: /b, direction: to_bus}]\nservices:\n  - {name: /b/_action/send_goal, direction: to_bus}",
            "/b/_action/send_goal is listed twice: keep one",
        ),
        (
            "range: far\ntopics: [{name: /a, direction: both}]",
            "bridge.yaml:1:8",
        ),
        (
            "node: 'a b'\ntopics: [{name: /a, direction: both}]",
            "node: '/a b' is not a full name",
        ),
        (
            "participant_memory: 1KiB\ntopics: [{name: /a, direction: both}]",
            "1MiB to 1TiB",
        ),
        ("max_message: 1GB\ntopics: [{name: /a, direction: both}]", ""),
        ("topic: []", "ropewalk ros2 --help"),
    ] {
        match parse(text) {
            Err(error) => assert!(error.contains(expected), "{text}: {error}"),
            Ok(_) => assert_eq!(expected, "", "{text}"),
        }
    }
}

#[test]
fn configurations_built_in_code_are_checked() {
    let config = Config::default();
    assert!(config.check().is_err());
    let config = config
        .with_topic(TopicRule::new("/a", Direction::Both))
        .with_service(ServiceRule::new("/b", Direction::ToBus))
        .with_action(ActionRule::new("/c", Direction::ToRos));
    assert!(config.check().is_ok());
    assert_eq!(config.node_name(), "/ropewalk");
}
