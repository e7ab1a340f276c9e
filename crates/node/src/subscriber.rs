//! The receiving end of a topic.

use crate::unpublished::Unpublished;
use crate::{Callback, CallbackOptions, Dynamic, Message};
use bus::{Bus, Interrupt, SubscriberStats, TakeError};
use schema::{Conversion, Schema};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Receives the messages of one topic, by polling, waiting, a descriptor, or a callback: as a generated structure
/// `T` ([`typed`](crate::typed)), or, as plain `Subscriber`, of a type that a [`Schema`] describes.
#[derive(Debug)]
pub struct Subscriber<T = Dynamic> {
    bus: bus::Subscriber,
    schema: Schema,
    /// The conversion for messages of the other ROS version.
    conversion: Option<Conversion>,
    unpublished: Unpublished,
    of: PhantomData<fn() -> T>,
}

impl<T: 'static> Subscriber<T> {
    pub(crate) fn new(subscriber: bus::Subscriber, schema: Schema, bus: Bus) -> Self {
        let conversion = Conversion::new(&schema);
        Subscriber {
            bus: subscriber,
            schema,
            conversion,
            unpublished: Unpublished::new(bus),
            of: PhantomData,
        }
    }

    /// Takes the oldest waiting message, if there is one. Never blocks.
    ///
    /// # Errors
    /// [`TakeError`]: too many messages are held, or the process was forked.
    pub fn take(&self) -> Result<Option<Message<T>>, TakeError> {
        Ok(self.bus.take()?.map(|m| self.message(m)))
    }

    /// Takes the oldest waiting message; blocks until there is one, at most `timeout`. If nobody has published the
    /// topic for 5 s, it logs a warning, once.
    ///
    /// # Errors
    /// As for [`Subscriber::take`].
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Message<T>>, TakeError> {
        self.take_or_warn(timeout, |text| tracing::warn!("{text}"))
    }

    /// Like [`Subscriber::take_timeout`], with the caller's way to log: for interfaces to other languages.
    #[doc(hidden)]
    pub fn take_or_warn(
        &self,
        mut timeout: Duration,
        warn: impl FnOnce(&str),
    ) -> Result<Option<Message<T>>, TakeError> {
        if let Some(patience) = self.warns_after().filter(|patience| *patience < timeout) {
            let start = Instant::now();
            let taken = self.bus.take_timeout(patience)?;
            // Earlier than that an interrupt ended the wait.
            if taken.is_some() || start.elapsed() < patience {
                return Ok(taken.map(|m| self.message(m)));
            }
            if let Some(text) = self.warning() {
                warn(&text);
            }
            timeout = timeout.saturating_sub(start.elapsed());
        }
        Ok(self.bus.take_timeout(timeout)?.map(|m| self.message(m)))
    }

    /// How long to wait for a message before [`Subscriber::warning`] is due; `None` if it was called before.
    #[doc(hidden)]
    pub fn warns_after(&self) -> Option<Duration> {
        self.unpublished.due()
    }

    /// Why no message has come, if nobody publishes the topic. Only the first call returns it.
    #[doc(hidden)]
    pub fn warning(&self) -> Option<String> {
        self.unpublished.warning(&self.bus)
    }

    fn message(&self, message: bus::Message) -> Message<T> {
        Message::new(message, self.schema.clone(), self.conversion.as_ref())
    }

    /// Calls `f` for every message, on its own thread, until the [`Callback`] is dropped. A panic in `f` is
    /// logged and counted, and the next message follows.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn callback(self, f: impl FnMut(Message<T>) + Send + 'static) -> std::io::Result<Callback> {
        self.callback_with(CallbackOptions::default(), f)
    }

    /// Like [`Subscriber::callback`], with options.
    ///
    /// # Errors
    /// As for [`Subscriber::callback`].
    pub fn callback_with(
        self,
        options: CallbackOptions,
        mut f: impl FnMut(Message<T>) + Send + 'static,
    ) -> std::io::Result<Callback> {
        let (name, interrupt) = (self.topic().to_owned(), self.interrupt());
        Callback::start(name, interrupt, options, move |patience, guard| {
            match self.take_timeout(patience) {
                // The function holds the maximum number of messages.
                Err(TakeError::HoldLimit { .. }) => self.bus.wait_takeable(patience).map(|_| Ok(())),
                taken => Ok(match taken? {
                    Some(message) => guard.run(|| f(message)),
                    None => Ok(()),
                }),
            }
        })
    }

    /// Returns a handle that ends the wait of a thread that waits for messages of this subscriber.
    pub fn interrupt(&self) -> Interrupt {
        self.bus.interrupt()
    }

    /// Blocks until at least `n` publishers are connected. Returns false if `timeout` passes first.
    pub fn wait_for_publishers(&self, n: usize, timeout: Duration) -> bool {
        self.bus.wait_for_publishers(n, timeout)
    }

    /// The topic's full name.
    pub fn topic(&self) -> &str {
        &self.bus.topic().topic
    }

    /// The type of its messages.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Counters of received and lost messages.
    pub fn stats(&self) -> SubscriberStats {
        self.bus.stats()
    }

    /// Returns the bus's subscriber, for features that this type does not wrap.
    pub fn bus(&self) -> &bus::Subscriber {
        &self.bus
    }
}

impl<T> AsFd for Subscriber<T> {
    /// Readable while a message can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}
