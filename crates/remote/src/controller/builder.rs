//! How a controller is set up.

use super::core::Core;
use super::telemetry::Sink;
use super::{Controller, Expiry};
use crate::transport::{ControllerEnd, Listen, TransportError};
use std::sync::Arc;
use std::time::Duration;

/// Sets up a [`Controller`].
#[must_use = "nothing is there before `start`"]
pub struct ControllerBuilder {
    name: String,
    commands: Option<Arc<dyn ControllerEnd>>,
    telemetry: Vec<Arc<dyn ControllerEnd>>,
    heartbeat: Duration,
    expiry: Expiry,
}

impl ControllerBuilder {
    pub(super) fn new(name: &str) -> Self {
        ControllerBuilder {
            name: name.to_owned(),
            commands: None,
            telemetry: Vec::new(),
            heartbeat: Duration::from_millis(300),
            expiry: Expiry::Default,
        }
    }

    /// Sends commands and hears telemetry over `end`.
    pub fn end(self, end: Arc<dyn ControllerEnd>) -> Self {
        self.commands(end.clone()).telemetry(end)
    }

    /// Sends commands and requests over `end`, instead of one that was given before.
    pub fn commands(mut self, end: Arc<dyn ControllerEnd>) -> Self {
        self.commands = Some(end);
        self
    }

    /// Hears telemetry over `end`, besides others. The first carries requests, too, where no other end does.
    pub fn telemetry(mut self, end: Arc<dyn ControllerEnd>) -> Self {
        self.telemetry.push(end);
        self
    }

    /// How often the robot hears that this controller is there. Default 300 ms. After three of them without a word from the robot, but not before
    /// 1 s and two round trips, it is lost.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = period.clamp(Duration::from_millis(1), Duration::from_secs(3600));
        self
    }

    /// How long commands stay good unless one says otherwise.
    pub fn expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Begins: greets the robot in the background, and goes on trying. [`Controller::wait_until_found`] waits for it.
    ///
    /// # Errors
    /// [`TransportError`] if an end was not given or can never work.
    pub fn start(self) -> Result<Controller, TransportError> {
        let none = || TransportError::Setup("a controller needs an end: give it one by `end`".into());
        let requests = self
            .commands
            .or_else(|| self.telemetry.first().cloned())
            .ok_or_else(none)?;
        let core = Arc::new(Core::new(
            self.name,
            self.heartbeat,
            requests.clone(),
            self.telemetry.clone(),
        ));
        // From here on dropping it stops what was started.
        let controller = Controller::new(core.clone(), self.expiry);
        let is_requests = |end: &Arc<dyn ControllerEnd>| Arc::ptr_eq(end, &requests);
        let heard = self.telemetry.iter().any(is_requests);
        let wire = requests.wire();
        requests.start(Arc::new(Sink {
            core: core.clone(),
            telemetry: heard,
            wire,
        }))?;
        if !heard {
            requests.listen(Listen::To(&[]));
        }
        for end in self.telemetry.iter().filter(|end| !is_requests(end)) {
            end.start(Arc::new(Sink {
                core: core.clone(),
                telemetry: true,
                wire: end.wire(),
            }))?;
        }
        core.begin_keeping()?;
        Ok(controller)
    }
}

impl std::fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
