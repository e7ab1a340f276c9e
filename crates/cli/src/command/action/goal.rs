//! A goal that was sent, for actions of ROS 1 and ROS 2.

use crate::failure::Failure;
use schema::Value;
use std::time::Duration;

/// A goal under way.
pub(super) trait Goal {
    /// Identifier, for people.
    fn id(&self) -> String;

    /// Returns the next event; blocks for `wait` at most.
    fn next(&mut self, wait: Duration) -> Result<Option<Event>, Failure>;

    /// Asks the server to cancel the goal. The end arrives as an event.
    fn cancel(&mut self) -> Result<(), Failure>;
}

/// Event of a goal.
pub(super) enum Event {
    Feedback(Value),
    Done(Done),
}

/// How a goal ended.
pub(super) struct Done {
    /// Status in the terms of its ROS: `SUCCEEDED`, `ABORTED`, `CANCELED` or `PREEMPTED`.
    pub(super) status: &'static str,
    /// The server's explanation (ROS 1).
    pub(super) text: String,
    pub(super) result: Value,
}

/// YAML of a message: other fields, then `goal` as the field of that name.
pub(super) fn with_goal(fields: &str, goal: &str) -> String {
    if goal.trim().is_empty() {
        return format!("{fields}\ngoal: {{}}\n");
    }
    let lines: Vec<_> = goal.lines().map(|line| format!("  {line}\n")).collect();
    format!("{fields}\ngoal:\n{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_in_any_style_becomes_a_field() {
        assert_eq!(with_goal("a: 1", "{order: 5}"), "a: 1\ngoal:\n  {order: 5}\n");
        assert_eq!(with_goal("a: 1", "x:\n  y: 2\n"), "a: 1\ngoal:\n  x:\n    y: 2\n");
        assert_eq!(with_goal("a: 1", " "), "a: 1\ngoal: {}\n");
    }
}
