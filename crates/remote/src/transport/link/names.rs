//! Names of a robot's services and topics.

use crate::transport::Class;

/// Returns the service for requests of a class.
pub(super) fn service(robot: &str, class: Class) -> String {
    let last = match class {
        Class::Command => "command",
        Class::Request => "request",
        Class::File => "file",
    };
    format!("{}/{last}", base(robot))
}

/// Returns the robot whose commands a service takes, as [`LinkController`](super::LinkController) names it; `None` for
/// other services.
pub fn robot_of_service(service: &str) -> Option<&str> {
    let name = service.trim_start_matches('/');
    match name {
        "remote/command" => Some(""),
        _ => name.strip_suffix("/remote/command"),
    }
}

/// Returns the prefix of the telemetry topics.
pub(super) fn telemetry(robot: &str) -> String {
    format!("{}/telemetry/", base(robot))
}

/// Frames of this many bytes or more have their own topic, which links may carry in another way: large ones as bulk,
/// the others newest first.
const LARGE: usize = 64 << 10;

/// Returns whether a frame of this length uses the topic for large ones.
pub(super) fn is_large(len: usize) -> bool {
    len >= LARGE
}

/// Returns the topics of a kind and channel: for ordinary frames, and for large ones.
pub(super) fn topics(robot: &str, kind: &str, channel: u8) -> [String; 2] {
    [false, true].map(|large| topic(robot, kind, channel, large))
}

/// Returns the topic of a kind and channel. A kind's package is a level of the name; characters that a topic's name may
/// not have become `_`. Two kinds with the same result share a topic; then a subscriber to either receives the frames
/// of both, and tells them apart by their content.
pub(super) fn topic(robot: &str, kind: &str, channel: u8, large: bool) -> String {
    let word = |word: &str| {
        let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let word: String = word.chars().map(legal).collect();
        match word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            true => word,
            false => format!("_{word}"),
        }
    };
    let kind: Vec<String> = kind.split('.').map(word).collect();
    // A word must not begin with a digit.
    let large = if large { "large/" } else { "" };
    format!("{}{large}{}/c{channel}", telemetry(robot), kind.join("/"))
}

fn base(robot: &str) -> String {
    match robot.trim_matches('/') {
        "" => "/remote".into(),
        name => format!("/{name}/remote"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_robot_and_legal() {
        assert_eq!(service("r1", Class::Command), "/r1/remote/command");
        for robot in ["r1", "site/r1", ""] {
            assert_eq!(robot_of_service(&service(robot, Class::Command)), Some(robot));
            assert_eq!(robot_of_service(&service(robot, Class::Request)), None);
        }
        assert_eq!(service("/fleet/r1", Class::File), "/fleet/r1/remote/file");
        assert_eq!(service("", Class::Request), "/remote/request");
        let of = |kind| topic("r1", kind, 3, false);
        assert_eq!(
            of("robot_remote_control.JointState"),
            "/r1/remote/telemetry/robot_remote_control/JointState/c3"
        );
        assert_eq!(
            topics("r1", "robot_remote_control.Map", 0)[1],
            "/r1/remote/telemetry/large/robot_remote_control/Map/c0"
        );
        assert_eq!(of("a-b.2"), "/r1/remote/telemetry/a_b/_2/c3");
        assert_eq!(of(""), "/r1/remote/telemetry/_/c3");
        let folder = tempfile::tempdir().expect("a folder");
        let node = ropewalk::Node::with_config("test", bus::BusConfig::new(folder.path())).expect("a node");
        let schema = super::super::types::telemetry(50).expect("a type");
        for kind in [
            "robot_remote_control.JointState",
            "a-b.2",
            "",
            "..",
            "ä.1?",
            "x/y",
        ] {
            node.dynamic_publisher(&of(kind), &schema).expect(kind);
        }
    }
}
