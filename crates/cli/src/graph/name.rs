//! Names of nodes, topics and types as ROS writes them.

use bus::Ros;

/// A node's name with its namespace.
pub(crate) fn full(namespace: &str, name: &str) -> String {
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

/// Whether ROS 2 hides a topic or service: a word of its name starts with an underscore.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.split('/').any(|word| word.starts_with('_'))
}

/// The bus's name `package/Type` as its ROS writes it: in ROS 2 with the folder `msg` or `srv`, or `action` for an
/// action's parts.
pub(crate) fn type_name(on_bus: &str, ros: Ros, folder: &str) -> String {
    match (ros, on_bus.split_once('/')) {
        (Ros::Two, Some((package, name))) if !name.contains('/') => {
            let parts = ["_SendGoal", "_GetResult", "_FeedbackMessage"];
            let is_action = parts.iter().any(|part| name.ends_with(part));
            format!("{package}/{}/{name}", if is_action { "action" } else { folder })
        }
        _ => on_bus.to_owned(),
    }
}

/// The reverse: `std_msgs/msg/String` becomes `std_msgs/String`.
pub(super) fn without_folder(name: &str) -> String {
    let words: Vec<&str> = name.split('/').collect();
    match words.as_slice() {
        [package, _, name] => format!("{package}/{name}"),
        _ => name.to_owned(),
    }
}

/// Whether two names are of one type, whichever way each is written.
pub(crate) fn is_same_type(a: &str, b: &str) -> bool {
    without_folder(a) == without_folder(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_a_folder_in_ros_2() {
        assert_eq!(
            type_name("std_msgs/String", Ros::Two, "msg"),
            "std_msgs/msg/String"
        );
        assert_eq!(type_name("std_msgs/String", Ros::One, "msg"), "std_msgs/String");
        let goal = type_name("test_msgs/Fibonacci_SendGoal", Ros::Two, "srv");
        assert_eq!(goal, "test_msgs/action/Fibonacci_SendGoal");
        assert!(is_same_type("std_msgs/String", "std_msgs/msg/String"));
        assert!(!is_same_type("std_msgs/String", "std_msgs/msg/Strings"));
    }

    #[test]
    fn hidden_names_have_a_word_with_an_underscore_before_it() {
        assert!(is_hidden("/fibonacci/_action/status") && is_hidden("/_a") && !is_hidden("/a_b/c"));
        assert_eq!((full("/", "a"), full("/b", "a")), ("/a".into(), "/b/a".into()));
    }
}
