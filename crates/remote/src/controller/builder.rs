//! Setup of a controller.

use super::core::Core;
use super::telemetry::Sink;
use super::{Controller, Expiry};
use crate::transport::{ControllerEnd, Listen, TransportError};
use std::sync::Arc;
use std::time::Duration;

/// Sets up a [`Controller`].
#[must_use = "a builder does nothing before `start`"]
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

    /// Sends commands and receives telemetry over `end`.
    pub fn end(self, end: Arc<dyn ControllerEnd>) -> Self {
        self.commands(end.clone()).telemetry(end)
    }

    /// Sends commands and requests over `end`, in place of an earlier one.
    pub fn commands(mut self, end: Arc<dyn ControllerEnd>) -> Self {
        self.commands = Some(end);
        self
    }

    /// Receives telemetry over `end`, in addition to others. The first such end also carries requests if no other end
    /// does.
    pub fn telemetry(mut self, end: Arc<dyn ControllerEnd>) -> Self {
        self.telemetry.push(end);
        self
    }

    /// Period of the heartbeats that the robot receives from this controller. Default 300 ms. The robot counts as lost
    /// after three periods without a message from it, but not before 1 s and two round trips.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = period.clamp(Duration::from_millis(1), Duration::from_secs(3600));
        self
    }

    /// Default expiry of commands.
    pub fn expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Starts the controller: it greets the robot in the background, and retries until the robot answers.
    /// [`Controller::wait_until_found`] waits for that.
    ///
    /// # Errors
    /// [`TransportError`] if no end was set or an end can never work.
    pub fn start(self) -> Result<Controller, TransportError> {
        let none = || TransportError::Setup("the controller has no transport: set one with `end`".into());
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
        // From here on, dropping `controller` stops the ends that were started.
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
        core.start_timers()?;
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
