//! Goal of a ROS 2 action: three services and a feedback topic.

use super::goal::{Done, Event, Goal, with_goal};
use super::names;
use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail};
use ropewalk::{Client, Node, Pending, Service, Subscriber};
use schema::{Template, Value};
use std::time::{Duration, Instant};

/// Names of the states of `action_msgs/msg/GoalStatus`.
const STATUS: [&str; 7] = [
    "UNKNOWN",
    "ACCEPTED",
    "EXECUTING",
    "CANCELING",
    "SUCCEEDED",
    "CANCELED",
    "ABORTED",
];
/// Timeout of the result call: a goal has no time limit, a call needs one.
const LONG: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long the server may take to answer a cancel request.
const CANCELLING: Duration = Duration::from_secs(5);

/// An accepted goal.
pub(super) struct Ros2 {
    id: [u8; 16],
    feedback: Option<Subscriber>,
    cancel: Client,
    result: Pending,
    /// How the goal ended; returned after all feedback that preceded it.
    ended: Option<Done>,
    /// Client of `result`, which has to live as long as the goal.
    _results: Client,
}

/// The services of an action.
pub(super) struct Server {
    send: (Client, Service),
    result: (Client, Service),
    cancel: (Client, Service),
    feedback: Option<Subscriber>,
    deadline: Instant,
}

impl Server {
    /// Waits for the action's server.
    pub(super) fn find(
        node: &Node,
        action: &str,
        feedback: bool,
        timeout: Duration,
    ) -> Result<Server, Failure> {
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        let _waiting = Waiting::on(format!("a server of {action}"));
        let client = |part: &str| {
            let name = format!("{action}{part}");
            let schema = node.discover_service(&name, left()).or_input()?;
            let client = node.dynamic_client(&name, &schema).or_input()?;
            client
                .wait_for_server(left())
                .or_job("waiting for the action's server")?;
            Ok::<_, Failure>((client, schema))
        };
        let subscriber = || {
            let name = format!("{action}{}", names::FEEDBACK);
            let schema = node.discover(&name, left()).or_input()?;
            let subscriber = node.dynamic_subscriber(&name, &schema).or_job("subscribing")?;
            subscriber.wait_for_publishers(1, left());
            Ok::<_, Failure>(subscriber)
        };
        Ok(Server {
            send: client(names::SEND_GOAL)?,
            result: client(names::GET_RESULT)?,
            cancel: client(names::CANCEL_GOAL)?,
            feedback: feedback.then(subscriber).transpose()?,
            deadline,
        })
    }

    /// The action's type as ROS 2 writes it.
    pub(super) fn type_name(&self) -> String {
        let name = self.send.1.name().replacen('/', "/action/", 1);
        name.strip_suffix("_SendGoal").unwrap_or(&name).to_owned()
    }

    /// Sends a goal; `None` if the server rejects it.
    pub(super) fn send(self, goal: &str) -> Result<Option<Ros2>, Failure> {
        let id = random().or_job("making the goal's identity")?;
        let fields = format!("goal_id: {{uuid: {id:?}}}");
        let request = value(&self.send.1, &with_goal(&fields, goal))?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let answer = self.send.0.call_value(&request, left).map_err(Failure::job)?;
        if answer.get("accepted").ok() != Some(Value::Bool(true)) {
            return Ok(None);
        }
        let request = value(&self.result.1, &fields)?;
        let result = self.result.0.send_value(&request, LONG).map_err(Failure::job)?;
        Ok(Some(Ros2 {
            id,
            feedback: self.feedback,
            cancel: self.cancel.0,
            result,
            ended: None,
            _results: self.result.0,
        }))
    }
}

impl Goal for Ros2 {
    fn id(&self) -> String {
        crate::command::endpoints::hex(&self.id)
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Event>, Failure> {
        // Feedback that arrived before the result is shown before it.
        let message = match &self.feedback {
            Some(feedback) => feedback.take_timeout(wait).or_job("taking feedback")?,
            None => {
                std::thread::sleep(wait);
                None
            }
        };
        if let Some(message) = message {
            let value = message.value().or_job("feedback")?;
            let of = value.get("goal_id.uuid").or_job("feedback")?;
            let is_own = (of.count() == Some(16))
                && (0..16).all(|i| {
                    let byte = value.get(&format!("goal_id.uuid[{i}]")).ok();
                    byte.and_then(|b| b.as_integer()) == self.id.get(i).map(|b| i128::from(*b))
                });
            return match is_own {
                true => Ok(Some(Event::Feedback(value.get("feedback").or_job("feedback")?))),
                false => Ok(None),
            };
        }
        if let Some(done) = self.ended.take() {
            return Ok(Some(Event::Done(done)));
        }
        let Some(reply) = self.result.poll() else {
            return Ok(None);
        };
        let value = reply.and_then(|r| r.value()).map_err(Failure::job)?;
        let status = value.get("status").ok().and_then(|s| s.as_integer()).unwrap_or(0);
        let status = usize::try_from(status).ok().and_then(|s| STATUS.get(s)).copied();
        self.ended = Some(Done {
            status: status.unwrap_or("UNKNOWN"),
            text: String::new(),
            result: value.get("result").or_job("the result")?,
        });
        Ok(None)
    }

    fn cancel(&mut self) -> Result<(), Failure> {
        let text = format!("goal_info: {{goal_id: {{uuid: {:?}}}}}", self.id);
        let request = value(self.cancel.schema(), &text)?;
        self.cancel
            .call_value(&request, CANCELLING)
            .map(drop)
            .map_err(Failure::job)
    }
}

/// A request from YAML, in which a time may be `now`.
fn value(service: &Service, text: &str) -> Result<Value, Failure> {
    let now = Duration::from_nanos(clock::realtime().0);
    let template = Template::parse(text).or_input()?;
    service.request().value_from_template(&template, now).or_input()
}

/// A random number, unique in practice.
fn random() -> std::io::Result<[u8; 16]> {
    use std::io::Read;
    let mut id = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}
