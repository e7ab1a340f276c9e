//! Names of topics and nodes, by ROS's rules (wiki.ros.org/Names; design.ros2.org, Topic and Service name
//! mapping).

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a {what}: {rule}")]
pub struct NameError {
    name: String,
    what: &'static str,
    rule: &'static str,
}

/// Checks a topic's name and returns it in full: `scan` becomes `/scan`.
pub(crate) fn topic(name: &str) -> Result<String, NameError> {
    full("topic name", name)
}

/// Checks a service's name by the same rules and returns it in full.
pub(crate) fn service(name: &str) -> Result<String, NameError> {
    full("service name", name)
}

fn full(what: &'static str, name: &str) -> Result<String, NameError> {
    let full = if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/{name}")
    };
    let words = full[1..].split('/');
    let good = words.clone().all(|w| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    if good && full.len() <= bus::MAX_NAME {
        return Ok(full);
    }
    let rule = "write words of letters, digits and _, none beginning with a digit, with / between them";
    Err(NameError {
        name: name.to_owned(),
        what,
        rule,
    })
}

/// Checks a node's name.
pub(crate) fn node(name: &str) -> Result<(), NameError> {
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let rule = "write at most 64 letters, digits and _, not beginning with a digit";
    if good {
        Ok(())
    } else {
        Err(NameError {
            name: name.to_owned(),
            what: "node name",
            rule,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_ros() {
        assert_eq!(topic("scan").as_deref(), Ok("/scan"));
        assert_eq!(
            topic("/camera_1/image/compressed").as_deref(),
            Ok("/camera_1/image/compressed")
        );
        for bad in [
            "", "/", "//", "/scan/", "/a//b", "/1a", "/a b", "/ä", "/a-b", "~x",
        ] {
            let error = topic(bad).expect_err(bad);
            assert!(error.to_string().contains(&format!("'{bad}'")), "{error}");
        }
        assert!(topic(&format!("/{}", "a".repeat(300))).is_err());
        assert!(node("camera_driver").is_ok() && node("").is_err() && node("a/b").is_err());
    }
}
