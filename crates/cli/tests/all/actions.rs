//! Goals of actionlib actions of ROS 1. Goals of ROS 2 are tested with a node of rclpy (tests/ros2).

use crate::support::Host;
use ropewalk::{BusConfig, Flavour, Node, Publisher, Registry, Schema, Subscriber};
use serde_json::{Value, json};
use std::time::Duration;

/// A server of `move_base`, reduced to what the test needs.
struct Server {
    goals: Subscriber,
    cancels: Subscriber,
    feedback: Publisher,
    results: Publisher,
}

impl Server {
    fn new(node: &Node) -> Server {
        let registry = Registry::new(Flavour::Ros1);
        let of = |name: &str| -> Schema { registry.schema(name).expect("a type") };
        let subscriber = |part: &str, ty: &str| {
            node.dynamic_subscriber(&format!("/move_base/{part}"), &of(ty))
                .expect("subscribes")
        };
        let publisher = |part: &str, ty: &str| {
            node.dynamic_publisher(&format!("/move_base/{part}"), &of(ty))
                .expect("publishes")
        };
        Server {
            goals: subscriber("goal", "move_base_msgs/MoveBaseActionGoal"),
            cancels: subscriber("cancel", "actionlib_msgs/GoalID"),
            feedback: publisher("feedback", "move_base_msgs/MoveBaseActionFeedback"),
            results: publisher("result", "move_base_msgs/MoveBaseActionResult"),
        }
    }

    fn goal(&self) -> Value {
        let goal = self
            .goals
            .take_timeout(Duration::from_secs(60))
            .expect("takes")
            .expect("a goal");
        goal.value().expect("a goal").to_json(schema::Show::ALL)
    }

    fn publish(publisher: &Publisher, message: &Value) {
        let value = publisher.schema().value_from_json(message).expect("a message");
        publisher.publish_value(&value).expect("publishes");
    }

    fn end(&self, goal: &Value, status: u8) {
        let status =
            json!({ "goal_id": { "id": goal["goal_id"]["id"] }, "status": status, "text": "as told" });
        Self::publish(&self.results, &json!({ "status": status }));
    }
}

#[test]
fn a_goal_of_actionlib_gives_feedback_and_a_result_and_is_cancelled() {
    let host = Host::new();
    let node = Node::with_config("move_base", BusConfig::new(host.path("bus"))).expect("a node");
    let server = Server::new(&node);
    let ty = "move_base_msgs/MoveBaseAction";
    assert_eq!(
        host.run(&["action", "list", "-t"]).stdout,
        format!("/move_base [{ty}]\n")
    );
    let goal = "target_pose: {header: {frame_id: map, stamp: now}, pose: {position: {x: 2}}}";
    let send = |more: &[&str]| {
        let args = ["action", "send_goal", "/move_base", ty, goal, "--timeout", "60"];
        host.start(&[&args[..], more].concat())
    };
    let sent = send(&["--feedback"]);
    let taken = server.goal();
    assert_eq!(taken["goal"]["target_pose"]["pose"]["position"]["x"], 2.0);
    assert!(
        taken["goal"]["target_pose"]["header"]["stamp"]["secs"]
            .as_u64()
            .is_some_and(|s| s > 1_600_000_000)
    );
    let of_another = json!({ "status": { "goal_id": { "id": "another" } } });
    Server::publish(&server.feedback, &of_another);
    let status = json!({ "goal_id": { "id": taken["goal_id"]["id"] } });
    let feedback = json!({ "base_position": { "pose": { "position": { "x": 1 } } } });
    Server::publish(
        &server.feedback,
        &json!({ "status": status, "feedback": feedback }),
    );
    server.end(&taken, 3);
    let done = sent.wait();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.matches("Feedback:").count(), 1, "{done:?}");
    assert!(
        done.stdout.contains("x: 1.0") && done.stdout.ends_with("status: SUCCEEDED\n"),
        "{done:?}"
    );

    let sent = send(&["--json"]);
    let taken = server.goal();
    server.end(&taken, 4);
    let done = sent.wait();
    assert!(
        done.code == 1 && done.stderr.contains("ABORTED: as told"),
        "{done:?}"
    );
    let last: Value = serde_json::from_str(done.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["status"], "ABORTED");

    let sent = send(&[]);
    let taken = server.goal();
    sent.interrupt();
    let cancel = server
        .cancels
        .take_timeout(Duration::from_secs(60))
        .expect("takes")
        .expect("a cancel");
    let id = cancel.value().expect("a cancel").get("id").expect("an identity");
    assert_eq!(id.as_str(), taken["goal_id"]["id"].as_str());
    server.end(&taken, 2);
    let done = sent.wait();
    assert!(
        done.code == 1 && done.stdout.ends_with("status: PREEMPTED\n"),
        "{done:?}"
    );

    let wrong = host.run(&["action", "send_goal", "/move_base", "a_msgs/action/Other", "{}"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("MoveBaseAction"),
        "{wrong:?}"
    );
    let nobody = host.run(&["action", "send_goal", "/dock", "{}", "--timeout", "0.2"]);
    assert!(
        nobody.code == 2 && nobody.stderr.contains("`ropewalk action list`"),
        "{nobody:?}"
    );
}
