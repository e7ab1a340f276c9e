//! Goal of a ROS 1 action over actionlib's topics.

use super::goal::{Done, Event, Goal, with_goal};
use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail};
use ropewalk::{Flavour, Node, Publisher, Registry, Schema, Subscriber};
use schema::{Template, Value};
use std::time::{Duration, Instant};

/// Names of the states of `actionlib_msgs/GoalStatus`.
const STATUS: [&str; 10] = [
    "PENDING",
    "ACTIVE",
    "PREEMPTED",
    "SUCCEEDED",
    "ABORTED",
    "REJECTED",
    "PREEMPTING",
    "RECALLING",
    "RECALLED",
    "LOST",
];

/// Topics of an action, with one goal that was sent.
pub(super) struct Actionlib {
    goals: Publisher,
    cancels: Publisher,
    feedback: Option<Subscriber>,
    results: Subscriber,
    id: String,
    /// How the goal ended; returned after all feedback that preceded it.
    ended: Option<Done>,
}

/// Whether the action has a server of ROS 1.
pub(super) fn is_served(node: &Node, action: &str) -> Result<bool, Failure> {
    Ok(goal_type(node, action)?.is_some())
}

/// Type of the goal topic, from its subscribers.
fn goal_type(node: &Node, action: &str) -> Result<Option<Schema>, Failure> {
    let name = format!("{action}/goal");
    let topics = node.topics().or_input()?;
    let of = |t: &&bus::TopicInfo| {
        t.topic.topic == name && t.topic.type_name.ends_with("ActionGoal") && !t.subscribers.is_empty()
    };
    topics
        .iter()
        .find(of)
        .map(|t| node.schema_of(t).or_input())
        .transpose()
}

impl Actionlib {
    /// Waits for the action's server.
    pub(super) fn find(
        node: &Node,
        action: &str,
        feedback: bool,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        let Some(schema) = goal_type(node, action)? else {
            return Err(Failure::input(format_args!(
                "no server subscribes to {action}/goal"
            )));
        };
        let _waiting = Waiting::on(format!("the server of {action}"));
        let subscriber = |part: &str| {
            let name = format!("{action}/{part}");
            let schema = node.discover(&name, left()).or_input()?;
            let subscriber = node.dynamic_subscriber(&name, &schema).or_job("subscribing")?;
            subscriber.wait_for_publishers(1, left());
            Ok::<_, Failure>(subscriber)
        };
        let goal_id = Registry::new(Flavour::Ros1)
            .schema("actionlib_msgs/GoalID")
            .or_job("the type of cancels")?;
        let made = Actionlib {
            results: subscriber("result")?,
            feedback: feedback.then(|| subscriber("feedback")).transpose()?,
            goals: node
                .dynamic_publisher(&format!("{action}/goal"), &schema)
                .or_job("publishing goals")?,
            cancels: node
                .dynamic_publisher(&format!("{action}/cancel"), &goal_id)
                .or_job("publishing cancels")?,
            id: format!("/ropewalk-{}-{}", std::process::id(), clock::realtime().0),
            ended: None,
        };
        if !made.goals.wait_for_subscribers(1, left()) {
            return Err(Failure::job(format_args!(
                "the server of {action} does not subscribe to goals in time"
            )));
        }
        Ok(made)
    }

    /// The action's type.
    pub(super) fn type_name(&self) -> String {
        let name = self.goals.schema().name();
        name.strip_suffix("Goal").unwrap_or(name).to_owned()
    }

    /// Sends a goal. The result shows whether the server accepted it.
    pub(super) fn send(&self, goal: &str) -> Result<(), Failure> {
        let fields = format!("header: auto\ngoal_id: {{stamp: now, id: '{}'}}", self.id);
        publish(&self.goals, &with_goal(&fields, goal))
    }

    /// Field `part` of a message and the message, if its status is about this goal.
    fn own(&self, message: &ropewalk::Message, part: &str) -> Result<Option<(Value, Value)>, Failure> {
        let value = message.value().or_job("a message of the action")?;
        let id = value.get("status.goal_id.id").or_job("a message of the action")?;
        if id.as_str() != Some(&self.id) {
            return Ok(None);
        }
        let part = value.get(part).or_job("a message of the action")?;
        Ok(Some((part, value)))
    }
}

impl Goal for Actionlib {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Event>, Failure> {
        let fed = match &self.feedback {
            Some(feedback) => feedback.take().or_job("taking feedback")?,
            None => None,
        };
        if let Some(message) = fed {
            let own = self.own(&message, "feedback")?;
            return Ok(own.map(|(feedback, _)| Event::Feedback(feedback)));
        }
        if let Some(done) = self.ended.take() {
            return Ok(Some(Event::Done(done)));
        }
        let Some(message) = self.results.take_timeout(wait).or_job("taking the result")? else {
            return Ok(None);
        };
        let Some((result, whole)) = self.own(&message, "result")? else {
            return Ok(None);
        };
        let status = whole
            .get("status.status")
            .ok()
            .and_then(|s| s.as_integer())
            .unwrap_or(-1);
        let status = usize::try_from(status).ok().and_then(|s| STATUS.get(s)).copied();
        let text = whole.get("status.text").ok();
        self.ended = Some(Done {
            status: status.unwrap_or("UNKNOWN"),
            text: text
                .and_then(|t| t.as_str().map(str::to_owned))
                .unwrap_or_default(),
            result,
        });
        Ok(None)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        self.cancels.wait_for_subscribers(1, Duration::from_secs(1));
        publish(&self.cancels, &format!("{{stamp: 0, id: '{}'}}", self.id))
    }
}

fn publish(publisher: &Publisher, text: &str) -> Result<(), Failure> {
    let now = Duration::from_nanos(clock::realtime().0);
    let template = Template::parse(text).or_input()?;
    let value = publisher
        .schema()
        .value_from_template(&template, now)
        .or_input()?;
    publisher.publish_value(&value).map(drop).or_job("publishing")
}
