//! Operator interface of a running daemon: services and a topic on its bus.
//!
//! `/link/NAME/set` changes a topic, and `/link/NAME/state` returns the whole state as JSON.
//! `/link/NAME/status` is published once a second; late joiners get the newest message. The bus decides who
//! may use them, as for every topic (decision 100).

mod change;
mod types;

pub use change::{Change, ChangeError};

use crate::error::LinkError;
use crate::handle::Handle;
use crate::periodic::PeriodicThread;
use bus::{Bus, PublisherOptions};
use ropewalk::{Callback, Node, NodeError};
use schema::{Show, Value};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// How often the status is published.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the radio thread may take to answer. It answers between two datagrams.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most commands that may wait for the radio thread.
const QUEUE: usize = 16;
/// Most changes in one request.
const MAX_CHANGES: usize = 16;

/// The names of a link's services and topic.
pub mod name {
    /// Their common prefix.
    pub const FOLDER: &str = "/link/";
    /// The service that changes a topic.
    pub const SET: &str = "/set";
    /// The service that returns the state.
    pub const STATE: &str = "/state";
    /// The status topic.
    pub const STATUS: &str = "/status";
}

/// A change that an operator requested.
pub(crate) struct Command {
    pub(crate) topic: String,
    /// Only towards this peer.
    pub(crate) peer: Option<String>,
    pub(crate) change: Change,
    answer: SyncSender<Answer>,
}

/// The settings in force, or one line that says what is wrong.
pub(crate) type Answer = Result<Vec<String>, String>;

impl Command {
    /// Answers the operator. A second answer is ignored.
    pub(crate) fn answer(&self, answer: Answer) {
        let _ = self.answer.try_send(answer);
    }
}

/// The services and the topic of one daemon.
pub(crate) struct Control {
    commands: Receiver<Command>,
    _set: Callback,
    _state: Callback,
    _status: PeriodicThread,
}

impl Control {
    /// Serves on `bus` as the link called `link`. Calls `wake` after each command.
    pub(crate) fn start(
        bus: &Bus,
        link: &str,
        handle: Handle,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, LinkError> {
        let refused = |e: NodeError| LinkError::Control {
            link: link.to_owned(),
            source: Box::new(e),
        };
        let path = |what: &str| format!("{}{link}{what}", name::FOLDER);
        let node = Node::with_config("link", bus.config().clone()).map_err(refused)?;
        let types = types::Types::new();
        let (sender, commands) = sync_channel(QUEUE);
        let answers = types.set.response().clone();
        let set = node.dynamic_service(&path(name::SET), &types.set, move |request| {
            let request = request.value().map_err(|e| e.to_string())?;
            let now = ask(&sender, &wake, &request)?;
            answers
                .value_from_json(&serde_json::json!({ "now": now }))
                .map_err(|e| e.to_string())
        });
        let of_state = handle.clone();
        let answers = types.state.response().clone();
        let state = node.dynamic_service(&path(name::STATE), &types.state, move |_| {
            let json = serde_json::to_string(&of_state.status()).map_err(|e| e.to_string())?;
            answers
                .value_from_json(&serde_json::json!({ "json": json }))
                .map_err(|e| e.to_string())
        });
        let newest = PublisherOptions::default().with_history(1);
        let publisher = node
            .dynamic_publisher_with(&path(name::STATUS), &types.status, newest)
            .map_err(refused)?;
        let link = link.to_owned();
        let status = PeriodicThread::start("link-status", move || {
            let json = types::status_json(&link, &handle.status());
            let value = types.status.value_from_json(&json);
            let published = value.map(|v| publisher.publish_value(&v));
            if let Err(error) = published.map_err(|e| e.to_string()).and_then(|p| match p {
                Ok(_) => Ok(()),
                Err(e) => Err(e.to_string()),
            }) {
                tracing::warn!(error, "cannot publish the status");
            }
            Some(INTERVAL)
        });
        Ok(Control {
            commands,
            _set: set.map_err(refused)?,
            _state: state.map_err(refused)?,
            _status: status.map_err(LinkError::system("start a thread"))?,
        })
    }

    /// The next command, if there is one.
    pub(crate) fn next(&self) -> Option<Command> {
        self.commands.try_recv().ok()
    }
}

/// Hands a request to the radio thread and waits for its answer.
fn ask(commands: &SyncSender<Command>, wake: &impl Fn(), request: &Value) -> Answer {
    let json = request.to_json(Show::ALL);
    let text = |field: &str| json[field].as_str().unwrap_or_default().to_owned();
    let changes: Vec<&str> = json["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c.as_str())
        .take(MAX_CHANGES + 1)
        .collect();
    if changes.len() > MAX_CHANGES {
        return Err(format!("more than {MAX_CHANGES} changes at once"));
    }
    let change = Change::parse(&changes).map_err(|e| e.to_string())?;
    let (answer, answered) = sync_channel(1);
    let command = Command {
        topic: text("topic"),
        peer: Some(text("peer")).filter(|p| !p.is_empty()),
        change,
        answer,
    };
    commands
        .try_send(command)
        .map_err(|_| "the link is busy: try again".to_owned())?;
    wake();
    answered
        .recv_timeout(PATIENCE)
        .map_err(|_| "the link does not answer: it is stopping, or its thread is starved".to_owned())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_changes_than_one_request_may_have_are_refused() {
        let (sender, commands) = sync_channel(QUEUE);
        let types = types::Types::new();
        let request = |many: usize| {
            let json = serde_json::json!({ "topic": "/t", "peer": "", "changes": vec!["priority=5"; many] });
            types.set.request().value_from_json(&json).expect("a request")
        };
        let refused = ask(&sender, &|| (), &request(MAX_CHANGES + 1)).unwrap_err();
        assert_eq!(refused, "more than 16 changes at once");
        // Nothing takes the waiting commands.
        let command = |_| Command {
            topic: String::new(),
            peer: None,
            change: Change::default(),
            answer: sync_channel(1).0,
        };
        (0..QUEUE).for_each(|n| sender.try_send(command(n)).expect("room"));
        let busy = ask(&sender, &|| (), &request(1)).unwrap_err();
        assert!(busy.contains("busy"), "{busy}");
        drop(commands);
    }
}
