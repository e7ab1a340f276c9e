//! Names of nodes, namespaces and topics, by ROS 2's rules (`rmw/validate_*.h`).

/// Longest name of a node, in bytes.
const MAX_NODE: usize = 255;
/// Longest namespace, in bytes: a topic name has room for a slash and a word after it.
const MAX_NAMESPACE: usize = 245;
/// Longest full name of a topic or service, in bytes.
const MAX_TOPIC: usize = 247;

/// Returns what is wrong with a node name.
pub(crate) fn node(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("node name must not be empty");
    }
    if name.len() > MAX_NODE {
        return Some("node name is longer than 255 bytes");
    }
    if !name.bytes().all(is_allowed) {
        return Some("node name must consist of letters, digits and underscores");
    }
    begins_with_digit(name).then_some("node name must not begin with a digit")
}

/// Returns what is wrong with a namespace.
pub(crate) fn namespace(name: &str) -> Option<&'static str> {
    if name == "/" {
        return None;
    }
    full(name).or_else(|| (name.len() > MAX_NAMESPACE).then_some("namespace is longer than 245 bytes"))
}

/// Returns what is wrong with the full name of a topic or service.
pub(crate) fn topic(name: &str) -> Option<&'static str> {
    full(name).or_else(|| (name.len() > MAX_TOPIC).then_some("topic name is longer than 247 bytes"))
}

fn full(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("name must not be empty");
    }
    let Some(rest) = name.strip_prefix('/') else {
        return Some("name must begin with a slash");
    };
    if name.ends_with('/') {
        return Some("name must not end with a slash");
    }
    for word in rest.split('/') {
        if word.is_empty() {
            return Some("name must not have two slashes in a row");
        }
        if !word.bytes().all(is_allowed) {
            return Some("name must consist of letters, digits, underscores and slashes");
        }
        if begins_with_digit(word) {
            return Some("no word of a name may begin with a digit");
        }
    }
    None
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn begins_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_ros_does() {
        for (good, bad) in [("a", ""), ("_a1", "1a"), ("camera", "a/b"), ("x_y", "a-b")] {
            assert!(node(good).is_none() && node(bad).is_some(), "{good} {bad}");
        }
        for (good, bad) in [
            ("/", ""),
            ("/a", "a"),
            ("/a/b", "/a//b"),
            ("/a/_b", "/a/"),
            ("/x", "/1x"),
        ] {
            assert!(
                namespace(good).is_none() && namespace(bad).is_some(),
                "{good} {bad}"
            );
        }
        assert!(topic("/").is_some() && topic("/a b").is_some() && topic("/chatter").is_none());
        assert!(topic(&format!("/{}", "a".repeat(247))).is_some());
    }
}
