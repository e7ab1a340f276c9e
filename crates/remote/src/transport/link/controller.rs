//! A controller's end.

use super::caller::{self, Caller};
use super::gate::Gate;
use super::listener::Listener;
use super::robot::setup;
use super::{names, types};
use crate::sync::lock;
use crate::transport::{Class, ControllerEnd, ControllerSink, Done, Listen, TransportError, Wire};
use ropewalk::{ClientOptions, Node};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// The end of a controller on this host's bus, for a robot on the same bus or on another host that a link leads to.
pub struct LinkController {
    node: Node,
    robot: String,
    gate: Gate,
    running: OnceLock<Running>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Running {
    command: Arc<Caller>,
    request: Arc<Caller>,
    file: Arc<Caller>,
    listener: Arc<Listener>,
}

impl Running {
    fn caller(&self, class: Class) -> &Caller {
        match class {
            Class::Command => &self.command,
            Class::Request => &self.request,
            Class::File => &self.file,
        }
    }
}

impl LinkController {
    /// Returns the end for the robot `name`, as this host's bus knows it: with the namespace, if any, that the link's
    /// configuration gives to the robot's host.
    pub fn new(node: &Node, name: &str) -> Self {
        LinkController {
            node: node.clone(),
            robot: name.to_owned(),
            gate: Gate::default(),
            running: OnceLock::new(),
            threads: Mutex::default(),
        }
    }

    /// Creates the needed parts, once: [`LinkController::listen`] may be called before it starts.
    fn running(&self) -> Result<&Running, TransportError> {
        if self.gate.is_closed() {
            return Err(TransportError::Ended);
        }
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let call = types::call().map_err(setup)?;
        let caller = |class| {
            let options = ClientOptions::default().with_max_outstanding(caller::MOST);
            let client = self
                .node
                .dynamic_client_with(&names::service(&self.robot, class), &call, options);
            Ok(Arc::new(Caller::new(client.map_err(setup)?)?))
        };
        let running = Running {
            command: caller(Class::Command)?,
            request: caller(Class::Request)?,
            file: caller(Class::File)?,
            listener: Arc::new(Listener::new(&self.node, &self.robot)?),
        };
        Ok(self.running.get_or_init(|| running))
    }
}

impl ControllerEnd for LinkController {
    fn wire(&self) -> Wire {
        Wire::Own
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        let running = self.running()?;
        let mut threads = lock(&self.threads);
        let of_commands = sink.clone();
        threads.push(
            caller::start(&running.command, &self.gate, move |c| of_commands.connected(c)).map_err(setup)?,
        );
        for other in [&running.request, &running.file] {
            threads.push(caller::start(other, &self.gate, |_| {}).map_err(setup)?);
        }
        threads.extend(running.listener.start(&self.gate, &sink).map_err(setup)?);
        Ok(())
    }

    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done) {
        match self.running() {
            Ok(running) => running.caller(class).request(frame, timeout, done),
            Err(error) => done(Err(error)),
        }
    }

    fn receive(&self, class: Class, timeout: Duration, over: &dyn Fn() -> bool) {
        if let Some(running) = self.running.get() {
            running.caller(class).receive(timeout, over);
        }
    }

    fn wake(&self, class: Class) {
        if let Some(running) = self.running.get() {
            running.caller(class).wake();
        }
    }

    fn listen(&self, streams: Listen<'_>) {
        match self.running() {
            Ok(running) => running.listener.listen(streams),
            Err(error) => tracing::error!(%error, "cannot receive telemetry"),
        }
    }

    fn stop(&self) {
        self.gate.close();
        if let Some(running) = self.running.get() {
            running.listener.close();
            for caller in [&running.command, &running.request, &running.file] {
                caller.close();
            }
        }
        let own = std::thread::current().id();
        let threads = std::mem::take(&mut *lock(&self.threads));
        // If its own callback stops it, that thread ends when the callback returns.
        if threads.iter().any(|t| t.thread().id() == own) {
            return;
        }
        for thread in threads {
            let _ = thread.join();
        }
    }

    fn describe(&self) -> String {
        let folder = self.node.bus().config().runtime_dir.display().to_string();
        format!(
            "link {} on the bus {folder}",
            names::service(&self.robot, Class::Command)
        )
    }
}

impl Drop for LinkController {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for LinkController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkController").field(&self.describe()).finish()
    }
}
