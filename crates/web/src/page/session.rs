//! One open page.

use super::{Shared, message};
use crate::foxglove::lock;
use crate::frame::Opcode;
use crate::{Client, Handler, Received, Role, parse_json};
use observe::{VERSION, delta, unix_time};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Maximum number of changes or topics in one request; for changes, the limit of links.
const MAX_ITEMS: usize = 16;
/// Bytes of a name or a change.
const MAX_NAME: usize = 1024;

/// One open page.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    shown: Mutex<Shown>,
}

/// What the page has received.
#[derive(Debug, Default)]
struct Shown {
    picture: Option<Arc<Value>>,
    /// Number of the newest event.
    event: u64,
    /// The state of the recording.
    recording: Value,
}

/// Ends the session when the page leaves.
pub(crate) struct SessionHandler(pub(crate) Arc<Session>);

impl Handler for SessionHandler {
    fn received(&mut self, received: Received) {
        let answer = match received {
            Received::Text(text) => self.0.answer(text.as_bytes()),
            Received::Binary(_) => json!({ "error": "write JSON" }),
        };
        self.0.tell("answer", answer);
    }
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, client: Arc<Client>) -> Self {
        Session {
            shared,
            client,
            shown: Mutex::default(),
        }
    }

    /// Introduces the server, and sends the newest picture, all events and ten minutes of rates.
    pub(super) fn begin(&self) {
        let role = self.client.role.name();
        let drives = self.shared.drives;
        self.tell(
            "hello",
            json!({ "version": VERSION, "role": role, "drive": drives }),
        );
        self.tell("history", self.shared.observer.history());
        let (number, picture) = self.shared.observer.newest();
        if number > 0 {
            self.update(&picture);
        }
    }

    /// Sends a picture, the first one in full. While the previous one waits, this one is left out: the next difference
    /// contains it.
    pub(super) fn update(&self, picture: &Arc<Value>) {
        let mut shown = lock(&self.shown);
        let waits = self.client.queue.held() > 0;
        match &shown.picture {
            Some(_) if waits => return,
            Some(before) => {
                let patch = delta(before, picture);
                self.tell("delta", json!({ "now": unix_time(), "patch": patch }));
            }
            None => self.tell("state", json!({ "state": **picture })),
        }
        shown.picture = Some(picture.clone());
        if let Some(recordings) = &self.shared.recordings {
            let recording = recordings.json();
            if shown.recording != recording {
                shown.recording = recording.clone();
                self.tell("recording", recording);
            }
        }
        let events = self.shared.observer.events(shown.event);
        if let Some(newest) = events.last() {
            shown.event = newest.number;
            self.tell("events", json!({ "events": events }));
        }
    }

    fn answer(&self, bytes: &[u8]) -> Value {
        let request = match parse_json(bytes) {
            Ok(request) => request,
            Err(error) => return json!({ "error": error.to_string() }),
        };
        let id = request["id"].clone();
        let id = if id.is_u64() { id } else { Value::Null };
        // From the time until the answer, the page computes how well its clock agrees with this one.
        if request["op"] == "time" {
            return json!({ "id": id, "now": unix_time() });
        }
        match self.handle(&request) {
            Ok(now) => json!({ "id": id, "now": now }),
            Err(error) => json!({ "id": id, "error": error }),
        }
    }

    fn handle(&self, request: &Value) -> Result<Vec<String>, String> {
        let by = format!("{} at {}", self.client.role.name(), self.client.address.ip());
        let may = |what: &str| match self.client.role >= Role::Operate {
            true => Ok(()),
            false => Err(format!("{what} needs a token with the role operate")),
        };
        match request["op"].as_str() {
            Some("set") => {
                may("changing settings")?;
                self.set(request, &by)
            }
            Some(op @ ("record" | "stop_recording")) => {
                may("recording")?;
                let recordings = self.shared.recordings.as_ref();
                let recordings =
                    recordings.ok_or("this server does not record: start it with --record FOLDER")?;
                match op {
                    "record" => recordings.start(patterns(request)?, by)?,
                    _ => recordings.stop(by)?,
                }
                Ok(Vec::new())
            }
            _ => Err("known requests are time, set, record and stop_recording".into()),
        }
    }

    /// Changes a topic of a link.
    fn set(&self, request: &Value, by: &str) -> Result<Vec<String>, String> {
        let changes = items(&request["changes"]).ok_or("changes must be a list of KEY=VALUE")?;
        let changes: Vec<String> = changes.iter().map(text).collect::<Result<_, _>>()?;
        let (link, topic) = (text(&request["link"])?, text(&request["topic"])?);
        let peer = match &request["peer"] {
            Value::Null => None,
            peer => Some(text(peer)?),
        };
        let which = (link.as_str(), topic.as_str(), peer.as_deref());
        self.shared.observer.set(which, &changes, by)
    }

    fn tell(&self, op: &str, fields: Value) {
        self.client.queue.answer(Opcode::Text, message(op, fields));
    }
}

fn items(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|items| items.len() <= MAX_ITEMS)
}

fn text(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(text) if text.len() <= MAX_NAME => Ok(text.to_owned()),
        _ => Err("link, topic, topics, peer and changes must be texts".to_owned()),
    }
}

/// The topics that a page asks to record; an empty list means all.
fn patterns(request: &Value) -> Result<Vec<String>, String> {
    let topics = items(&request["topics"]);
    let topics =
        topics.ok_or_else(|| format!("topics must be a list of at most {MAX_ITEMS} names and patterns"))?;
    let topics: Vec<String> = topics.iter().map(text).collect::<Result<_, _>>()?;
    topics.iter().try_for_each(|topic| bridge::check(topic, true))?;
    Ok(topics)
}
