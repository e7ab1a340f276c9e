//! Asks links on this host's bus for their states, and changes their settings.

use bus::Survey;
use ropewalk::{CallError, Client, Node, NodeError, Service};
use schema::Show;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The prefix of a link's services.
const FOLDER: &str = "/link/";
/// The service that returns the state.
const STATE: &str = "/state";
/// The service that changes a topic.
const SET: &str = "/set";
/// Links of this host that are kept.
const MAX_LINKS: usize = 16;

/// The links on this host's bus; they keep their clients while they run.
#[derive(Clone, Debug, Default)]
pub struct Links(BTreeMap<String, Arc<Asked>>);

/// A link on this host's bus.
#[derive(Debug)]
pub struct Asked {
    node: Node,
    link: String,
    /// Clients of its services, created at the first call.
    set: OnceLock<Client>,
    state: OnceLock<Client>,
}

/// Why a link did not answer as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It has no such service.
    #[error(transparent)]
    Absent(NodeError),
    /// Its service cannot be used.
    #[error("cannot call the link: {0}")]
    Unusable(Box<dyn std::error::Error + Send + Sync>),
    /// It refused, with its own text.
    #[error("{0}")]
    Refused(String),
    /// It did not answer.
    #[error(transparent)]
    Call(CallError),
}

impl Links {
    /// Adds and removes links as a survey of the bus of `node` found them.
    pub fn update(&mut self, node: &Node, survey: &Survey) {
        let names = Asked::links(survey);
        self.0.retain(|name, _| names.contains(name));
        for name in names {
            if self.0.len() < MAX_LINKS {
                let made = || Arc::new(Asked::new(node.clone(), &name));
                self.0.entry(name.clone()).or_insert_with(made);
            }
        }
    }

    /// The link called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Asked>> {
        self.0.get(name)
    }

    /// All links, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Asked>> {
        self.0.values()
    }
}

impl Asked {
    /// The link called `link`. Nothing is asked yet.
    pub fn new(node: Node, link: &str) -> Self {
        Asked {
            node,
            link: link.to_owned(),
            set: OnceLock::new(),
            state: OnceLock::new(),
        }
    }

    /// Names of the links that a survey found.
    pub fn links(survey: &Survey) -> BTreeSet<String> {
        let services = survey.services().into_iter();
        let served = services.filter(|s| !s.servers.is_empty());
        served
            .filter_map(|s| {
                let link = s.service.service.strip_prefix(FOLDER)?.strip_suffix(STATE)?;
                Some(link.to_owned())
            })
            .collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.link
    }

    /// Its state, as JSON. Blocks for at most three times `patience`.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn state(&self, patience: Duration) -> Result<String, AskError> {
        let mut answer = self.call(&self.state, STATE, &json!({}), patience)?;
        match answer["json"].take() {
            Value::String(text) => Ok(text),
            _ => Ok(String::new()),
        }
    }

    /// Changes a topic towards `peer`, or towards all, and returns the settings that then hold. Blocks for at most
    /// three times `patience`.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn set(
        &self,
        topic: &str,
        peer: Option<&str>,
        changes: &[String],
        patience: Duration,
    ) -> Result<Vec<String>, AskError> {
        let request = json!({ "topic": topic, "peer": peer.unwrap_or_default(), "changes": changes });
        let answer = self.call(&self.set, SET, &request, patience)?;
        let lines = answer["now"].as_array().into_iter().flatten();
        Ok(lines.filter_map(|l| l.as_str()).map(str::to_owned).collect())
    }

    fn call(
        &self,
        client: &OnceLock<Client>,
        service: &str,
        request: &Value,
        patience: Duration,
    ) -> Result<Value, AskError> {
        let client = match client.get() {
            Some(client) => client,
            None => {
                let path = format!("{FOLDER}{}{service}", self.link);
                let kind = self
                    .node
                    .discover_service(&path, patience)
                    .map_err(AskError::Absent)?;
                let made = self.client(&path, &kind, patience)?;
                client.get_or_init(|| made)
            }
        };
        let request = client.schema().request().value_from_json(request);
        let request = request.map_err(|e| AskError::Unusable(e.into()))?;
        match client.call_value(&request, patience) {
            Ok(answer) => Ok(answer.to_json(Show::ALL)),
            Err(CallError::Call(bus::CallError::Rejected { text, .. })) => Err(AskError::Refused(text)),
            Err(e) => Err(AskError::Call(e)),
        }
    }

    fn client(&self, path: &str, kind: &Service, patience: Duration) -> Result<Client, AskError> {
        let client = self
            .node
            .dynamic_client(path, kind)
            .map_err(|e| AskError::Unusable(e.into()))?;
        let served = client.wait_for_server(patience);
        served.map_err(|e| AskError::Unusable(e.into()))?;
        Ok(client)
    }
}
