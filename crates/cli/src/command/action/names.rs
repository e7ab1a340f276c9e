//! Topics and services that make up an action, in ROS 2 and in ROS 1.

use crate::graph::{End, Node};
use bridge::nodes::Kind;
use std::collections::BTreeMap;

/// Suffixes of an action's services and topics in ROS 2.
pub(crate) const SEND_GOAL: &str = "/_action/send_goal";
pub(crate) const GET_RESULT: &str = "/_action/get_result";
pub(crate) const CANCEL_GOAL: &str = "/_action/cancel_goal";
pub(crate) const FEEDBACK: &str = "/_action/feedback";

/// Actions that a node serves, or calls, with their types.
pub(crate) fn of_node(node: &Node, serves: bool) -> BTreeMap<&str, String> {
    let end = |e| if serves { server(e) } else { client(e) };
    node.ends.iter().filter_map(end).collect()
}

/// The action that an endpoint serves: known by its goal service, or in ROS 1 by its subscription to goals.
fn server(end: &End) -> Option<(&str, String)> {
    match end.kind {
        Kind::Service => of_ros2(end),
        Kind::Subscription => of_ros1(end),
        _ => None,
    }
}

/// The action that an endpoint calls.
fn client(end: &End) -> Option<(&str, String)> {
    match end.kind {
        Kind::Client => of_ros2(end),
        Kind::Publisher => of_ros1(end),
        _ => None,
    }
}

fn of_ros2(end: &End) -> Option<(&str, String)> {
    let action = end.name.strip_suffix(SEND_GOAL)?;
    let ty = end.type_name.strip_suffix("_SendGoal")?;
    Some((action, ty.to_owned()))
}

/// `actionlib` publishes goals of a type that ends with `ActionGoal` on a topic that ends with `/goal`.
fn of_ros1(end: &End) -> Option<(&str, String)> {
    let action = end.name.strip_suffix("/goal")?;
    let ty = end.type_name.strip_suffix("Goal")?;
    ty.ends_with("Action").then(|| (action, ty.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_known_by_their_goals() {
        let end = |kind, name: &str, ty: &str| End {
            kind,
            name: name.into(),
            type_name: ty.into(),
            id: 0,
            qos: None,
        };
        let node = Node {
            ends: vec![
                end(
                    Kind::Service,
                    "/a/_action/send_goal",
                    "test_msgs/action/Fibonacci_SendGoal",
                ),
                end(
                    Kind::Service,
                    "/a/_action/get_result",
                    "test_msgs/action/Fibonacci_GetResult",
                ),
                end(
                    Kind::Subscription,
                    "/move_base/goal",
                    "move_base_msgs/MoveBaseActionGoal",
                ),
                end(Kind::Subscription, "/x/goal", "geometry_msgs/PoseStamped"),
                end(
                    Kind::Client,
                    "/b/_action/send_goal",
                    "test_msgs/action/Fibonacci_SendGoal",
                ),
            ],
            ..Node::default()
        };
        let served: Vec<_> = of_node(&node, true).into_iter().collect();
        let fibonacci = "test_msgs/action/Fibonacci".to_owned();
        let move_base = "move_base_msgs/MoveBaseAction".to_owned();
        assert_eq!(served, [("/a", fibonacci.clone()), ("/move_base", move_base)]);
        assert_eq!(of_node(&node, false), BTreeMap::from([("/b", fibonacci)]));
    }
}
