//! Runs the callbacks of many subscribers and servers in one thread.

use crate::guard::{Guard, Panicked};
use crate::server::{Handled, by_structure, by_value};
use crate::typed::{ServiceType, Structure};
use crate::{CallbackOptions, Message, Node, NodeError, Request, Server, Subscriber};
use bus::{Interrupt, ServerOptions, SubscriberOptions, TakeError, WaitSet};
use schema::{Schema, Service, Value};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Maximum time to sleep at once. Waking this rarely costs nothing.
const LONG: Duration = Duration::from_secs(3600);

/// Runs the callbacks of many subscribers and servers in the thread that spins, one message of each in turn.
/// It sleeps while there is nothing to do.
///
/// If a callback panics, only the message that it was processing is lost: the panic is logged and counted, and
/// the callback continues. With [`CallbackOptions::with_end_on_error`] the panic propagates through
/// [`Executor::spin`].
pub struct Executor {
    node: Node,
    wait_set: WaitSet,
    members: Vec<Member>,
    stop: Arc<AtomicBool>,
    options: CallbackOptions,
    errors: Arc<AtomicU64>,
}

/// Handles one message; returns `None` if there was none.
type Member = Box<dyn FnMut() -> Result<Option<Result<(), Panicked>>, TakeError> + Send>;

/// Stops an [`Executor`], from any thread or callback. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
    interrupt: Interrupt,
}

/// Why a member cannot be added.
#[derive(Debug, thiserror::Error)]
#[error("{name} does not wake this executor: create it with the executor's wait_set in its options")]
pub struct OtherWaitSet {
    name: String,
}

impl Executor {
    /// Creates an executor without members, on the bus of `node`.
    ///
    /// # Errors
    /// [`NodeError::Open`] if no descriptor is left.
    pub fn new(node: &Node) -> Result<Self, NodeError> {
        Ok(Executor {
            node: node.clone(),
            wait_set: node.wait_set()?,
            members: Vec::new(),
            stop: Arc::default(),
            options: CallbackOptions::default(),
            errors: Arc::default(),
        })
    }

    /// Sets the options that its callbacks run with.
    pub fn with_callback_options(mut self, options: CallbackOptions) -> Self {
        self.options = options;
        self
    }

    /// Number of panics of its callbacks.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Subscribes to `topic` and passes every message to `f`, as a generated structure.
    ///
    /// # Errors
    /// As for [`Node::subscriber`].
    pub fn subscribe<T: Structure>(
        &mut self,
        topic: &str,
        f: impl FnMut(Message<T>) + Send + 'static,
    ) -> Result<(), NodeError> {
        let options = SubscriberOptions::default().with_wait_set(&self.wait_set);
        let subscriber = self.node.subscriber_with(topic, options)?;
        self.push(subscriber, f);
        Ok(())
    }

    /// Subscribes to `topic`, whose messages have type `schema`, and passes every message to `f`.
    ///
    /// # Errors
    /// As for [`Node::subscriber`].
    pub fn subscribe_dynamic(
        &mut self,
        topic: &str,
        schema: &Schema,
        f: impl FnMut(Message) + Send + 'static,
    ) -> Result<(), NodeError> {
        let options = SubscriberOptions::default().with_wait_set(&self.wait_set);
        let subscriber = self.node.dynamic_subscriber_with(topic, schema, options)?;
        self.push(subscriber, f);
        Ok(())
    }

    /// Serves `service` and answers every request with the result of `f`, both as generated structures. The
    /// client receives an error of `f`.
    ///
    /// # Errors
    /// As for [`Node::server`].
    pub fn serve<S: ServiceType>(
        &mut self,
        service: &str,
        f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String> + Send + 'static,
    ) -> Result<(), NodeError> {
        let options = ServerOptions::default().with_wait_set(&self.wait_set);
        let server = self.node.server_with::<S>(service, options)?;
        self.push_server(server, by_structure(f));
        Ok(())
    }

    /// Like [`Executor::serve`], for a service of type `schema`.
    ///
    /// # Errors
    /// As for [`Node::server`].
    pub fn serve_dynamic(
        &mut self,
        service: &str,
        schema: &Service,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<(), NodeError> {
        let options = ServerOptions::default().with_wait_set(&self.wait_set);
        let server = self.node.dynamic_server_with(service, schema, options)?;
        self.push_server(server, by_value(f));
        Ok(())
    }

    /// Adds a subscriber that was created with its own options, which must include [`Executor::wait_set`].
    ///
    /// # Errors
    /// [`OtherWaitSet`]
    pub fn add<T: 'static>(
        &mut self,
        subscriber: Subscriber<T>,
        f: impl FnMut(Message<T>) + Send + 'static,
    ) -> Result<(), OtherWaitSet> {
        if !subscriber.bus().is_in(&self.wait_set) {
            let name = subscriber.topic().to_owned();
            return Err(OtherWaitSet { name });
        }
        self.push(subscriber, f);
        Ok(())
    }

    /// Adds a server that was created with its own options, which must include [`Executor::wait_set`].
    ///
    /// # Errors
    /// [`OtherWaitSet`]
    pub fn add_server<S: ServiceType>(
        &mut self,
        server: Server<S>,
        f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String> + Send + 'static,
    ) -> Result<(), OtherWaitSet> {
        self.check_server(&server)?;
        self.push_server(server, by_structure(f));
        Ok(())
    }

    /// Like [`Executor::add_server`], for a server of a type that a [`Service`] describes.
    ///
    /// # Errors
    /// [`OtherWaitSet`]
    pub fn add_dynamic_server(
        &mut self,
        server: Server,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<(), OtherWaitSet> {
        self.check_server(&server)?;
        self.push_server(server, by_value(f));
        Ok(())
    }

    fn check_server<S>(&self, server: &Server<S>) -> Result<(), OtherWaitSet> {
        match server.bus().is_in(&self.wait_set) {
            true => Ok(()),
            false => Err(OtherWaitSet {
                name: server.service().to_owned(),
            }),
        }
    }

    fn push<T: 'static>(
        &mut self,
        subscriber: Subscriber<T>,
        mut f: impl FnMut(Message<T>) + Send + 'static,
    ) {
        let mut guard = self.guard(subscriber.topic());
        self.members.push(Box::new(move || {
            let message = subscriber.take()?;
            Ok(message.map(|message| guard.run(|| f(message))))
        }));
    }

    fn push_server<S: 'static>(
        &mut self,
        server: Server<S>,
        mut handle: impl FnMut(&Server<S>, &Request<S>) -> Handled + Send + 'static,
    ) {
        let mut guard = self.guard(server.service());
        self.members.push(Box::new(move || {
            let request = server.take()?;
            Ok(request.map(|r| server.answer(r, &mut guard, &mut handle)))
        }));
    }

    fn guard(&self, name: &str) -> Guard {
        Guard::new(name).counting(self.errors.clone())
    }

    /// Returns the wait set through which its members wake it.
    pub fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Returns a handle that stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            stop: self.stop.clone(),
            interrupt: self.wait_set.interrupt(),
        }
    }

    /// Runs callbacks until a [`Stopper`] stops it. It cannot be restarted.
    ///
    /// # Errors
    /// [`TakeError`]: waiting failed, or the process was forked.
    pub fn spin(&mut self) -> Result<(), TakeError> {
        while !self.stop.load(Ordering::Acquire) {
            self.spin_once(LONG)?;
        }
        Ok(())
    }

    /// Handles one message of each member that has one. If none has, waits for the first one, at most
    /// `timeout`. Returns how many messages were handled. A callback that holds the maximum number of
    /// messages gets no further ones until it drops one; the others continue.
    ///
    /// # Errors
    /// As for [`Executor::spin`].
    pub fn spin_once(&mut self, timeout: Duration) -> Result<usize, TakeError> {
        let handled = self.round()?;
        if handled > 0 || self.stop.load(Ordering::Acquire) || !self.wait_set.wait(timeout)? {
            return Ok(handled);
        }
        self.round()
    }

    fn round(&mut self) -> Result<usize, TakeError> {
        let mut handled = 0;
        for member in &mut self.members {
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            match member() {
                Ok(None) => {}
                Ok(Some(Ok(()))) => handled += 1,
                Ok(Some(Err(panicked))) if self.options.ends_on_error() => panicked.resume(),
                Ok(Some(Err(panicked))) => {
                    panicked.forget();
                    handled += 1;
                }
                Err(TakeError::HoldLimit { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(handled)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("node", &self.node.name())
            .field("members", &self.members.len())
            .finish_non_exhaustive()
    }
}

impl Stopper {
    /// Makes [`Executor::spin`] return after the current callback.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.interrupt.wake();
    }
}
