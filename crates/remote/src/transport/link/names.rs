//! What a robot's services and topics are called.

use crate::transport::Class;

/// The service that requests of a class go to.
pub(super) fn service(robot: &str, class: Class) -> String {
    let last = match class {
        Class::Command => "command",
        Class::Request => "request",
        Class::File => "file",
    };
    format!("{}/{last}", base(robot))
}

/// What the topics of telemetry begin with.
pub(super) fn telemetry(robot: &str) -> String {
    format!("{}/telemetry/", base(robot))
}

/// Frames of so many bytes and more have a topic of their own, which links may carry in another way: large ones as bulk,
/// the rest with the newest first.
const LARGE: usize = 64 << 10;

/// Whether a frame of this length goes on the topic for large ones.
pub(super) fn is_large(len: usize) -> bool {
    len >= LARGE
}

/// The topics of a kind and channel: for frames as they mostly are, and for large ones.
pub(super) fn topics(robot: &str, kind: &str, channel: u8) -> [String; 2] {
    [false, true].map(|large| topic(robot, kind, channel, large))
}

/// The topic of a kind and channel. A kind's package is a level of the name; what a topic's name may not have becomes
/// `_`. Two kinds that become one share a topic, which costs nothing but their being told apart on the way: frames say
/// themselves what they are.
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
    // A word begins with no digit.
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
        assert_eq!(service("/fleet/r1", Class::File), "/fleet/r1/remote/file");
        assert_eq!(service("", Class::Request), "/remote/request");
        let of = |kind| topic("r1", kind, 3, false);
        assert_eq!(
            of("ropewalk.JointState"),
            "/r1/remote/telemetry/ropewalk/JointState/c3"
        );
        assert_eq!(
            topics("r1", "ropewalk.Map", 0)[1],
            "/r1/remote/telemetry/large/ropewalk/Map/c0"
        );
        assert_eq!(of("a-b.2"), "/r1/remote/telemetry/a_b/_2/c3");
        assert_eq!(of(""), "/r1/remote/telemetry/_/c3");
        let folder = tempfile::tempdir().expect("a folder");
        let node = ropewalk::Node::with_config("test", bus::BusConfig::new(folder.path())).expect("a node");
        let schema = super::super::types::telemetry(50).expect("a type");
        for kind in ["ropewalk.JointState", "a-b.2", "", "..", "ä.1?", "x/y"] {
            node.publisher(&of(kind), &schema).expect(kind);
        }
    }
}
