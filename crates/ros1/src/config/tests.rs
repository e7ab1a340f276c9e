use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "c.yaml").map_err(|e| e.to_string())
}

#[test]
fn the_example_is_read() {
    let example: String = include_str!("../config.rs")
        .lines()
        .skip_while(|l| !l.contains("```yaml"))
        .skip(1)
        .take_while(|l| !l.contains("```"))
        .map(|l| {
            format!(
                "{}\n",
                l.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default()
            )
        })
        .collect();
    let config = parse(&example).unwrap();
    assert_eq!(
        config.rules().topic_to_bus("/scan").unwrap().0.priority,
        Some(100)
    );
    assert_eq!(
        config.rules().topic_to_bus("/camera/left/image").unwrap().1,
        "/front/left/image"
    );
    assert_eq!(config.rules().topic_to_ros("/cmd_vel").unwrap().1, "/cmd_vel");
    assert!(
        config.rules().topic_to_ros("/scan").is_none() && config.rules().topic_to_bus("/cmd_vel").is_none()
    );
    assert!(config.rules().topic_to_bus("/map").is_some() && config.rules().topic_to_ros("/map").is_some());
    assert_eq!(config.rules().topic_to_bus("/rosout").unwrap().0.level, Some(4));
    assert!(
        config.rules().service_to_bus("/arm/grasp").is_some()
            && config.rules().service_to_ros("/arm/grasp").is_none()
    );
}

#[test]
fn a_topics_own_name_counts_before_the_longest_pattern() {
    let text = "topics:\n- {name: '/*', direction: both}\n- {name: '/a/*', direction: to_bus, bus: '/x/*'}\n- {name: /a/b, direction: to_bus, bus: /y}";
    let config = parse(text).unwrap();
    assert_eq!(config.rules().topic_to_bus("/a/b").unwrap().1, "/y");
    assert_eq!(config.rules().topic_to_bus("/a/c/d").unwrap().1, "/x/c/d");
    assert_eq!(config.rules().topic_to_bus("/a").unwrap().1, "/a");
    assert_eq!(
        config.rules().topic_to_ros("/x/c").unwrap().1,
        "/x/c",
        "only /* leads into ROS"
    );
    assert!(
        config.rules().topic_to_bus("/rosout").is_none(),
        "a pattern does not take the log"
    );
}

#[test]
fn every_error_has_a_place_and_a_fix() {
    for (text, place, words) in [
        ("", "c.yaml", "--help"),
        ("topics: []", "c.yaml:", "nothing is bridged"),
        (
            "topics:\n- {name: scan, direction: both}",
            "c.yaml:2:3:",
            "not a full name",
        ),
        ("topics:\n- {name: /scan}", "c.yaml:2:", "direction"),
        ("topics:\n- {name: /scan, direction: in}", "c.yaml:2:", "to_bus"),
        (
            "topics:\n- {name: /scan, direction: both}\n- {name: /scan, direction: both}",
            "c.yaml:3:3:",
            "twice",
        ),
        (
            "topics:\n- {name: /a, bus: /c, direction: to_ros}\n- {name: /b, bus: /c, direction: both}",
            "c.yaml:3:3:",
            "would become /a and /b",
        ),
        (
            "topics:\n- {name: '/a/*', bus: /b, direction: both}",
            "c.yaml:2:3:",
            "both or neither",
        ),
        (
            "topics:\n- {name: /a, direction: both, priority: 128}",
            "c.yaml:2:3:",
            "0 to 127",
        ),
        (
            "topics:\n- {name: /a, direction: to_ros, priority: 12}",
            "c.yaml:2:3:",
            "leave it out",
        ),
        (
            "topics:\n- {name: /a, direction: both, depth: 0}",
            "c.yaml:2:3:",
            "1 to 1024",
        ),
        (
            "topics:\n- {name: /a, direction: both, rate_limit: fast}",
            "c.yaml:2:",
            "Hz",
        ),
        (
            "topics:\n- {name: /a, direction: both, level: loud}",
            "c.yaml:2:",
            "warn",
        ),
        (
            "services:\n- {name: /a, direction: both}",
            "c.yaml:2:3:",
            "one side",
        ),
        (
            "services:\n- {name: /a, direction: to_bus, timeout: 0s}",
            "c.yaml:2:3:",
            "more than 0",
        ),
        (
            "master: robot\ntopics:\n- {name: /a, direction: both}",
            "c.yaml:",
            "http://localhost:11311",
        ),
        (
            "node: a b\ntopics:\n- {name: /a, direction: both}",
            "c.yaml:",
            "node: ",
        ),
        ("colour: red", "c.yaml:1:1", "colour"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(
            error.starts_with(place) && error.contains(words),
            "{text}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn lengths_of_messages_are_bounded() {
    let config = Config {
        max_message: Some(2000),
        ..Config::default()
    };
    assert_eq!(config.max_message().check(2000), Ok(2000));
    assert!(
        config
            .max_message()
            .check(u32::MAX)
            .unwrap_err()
            .to_string()
            .contains("max_message")
    );
}

#[test]
fn a_topic_may_have_one_name_on_the_bus_where_it_comes_from_ros_and_another_where_it_goes_there() {
    let text =
        "topics:\n- {name: /chat, direction: to_bus}\n- {name: /chat, bus: /recv/chat, direction: to_ros}";
    let config = parse(text).unwrap();
    assert_eq!(config.rules().topic_to_bus("/chat").unwrap().1, "/chat");
    assert_eq!(config.rules().topic_to_ros("/recv/chat").unwrap().1, "/chat");
    assert!(config.rules().topic_to_ros("/chat").is_none());
}
