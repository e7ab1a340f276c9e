//! The kinds of commands that a robot handles, and their handlers.

use super::Context;
use super::core::Core;
use crate::kind::CommandKind;
use crate::outcome::Rejection;
use crate::statistics::Counters;
use crate::sync::{lock, read, write};
use crate::{command, decode, types};
use prost::Message;
use std::sync::{Arc, Mutex, RwLock};

/// Maximum number of kinds that one robot may register, so that its welcome fits into every transport's frames.
const MOST: usize = 512;

/// Receives the body as it arrived, and parses it.
pub(crate) type Handler = Box<dyn FnMut(&[u8], &Context) -> Result<(), Rejection> + Send>;

/// By number, in the order of registration: the first has number 1.
#[derive(Default)]
pub(crate) struct Commands(RwLock<Vec<Arc<Entry>>>);

pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    v6: Option<u8>,
    /// The subsystem that it moves.
    pub(crate) subsystem: Option<usize>,
    /// The body of this kind that stops the subsystem.
    pub(crate) stop: Option<Vec<u8>>,
    /// Can be replaced without waiting for a handler that is running.
    handler: RwLock<Option<Arc<Mutex<Handler>>>>,
}

/// Returns whether the twist has no velocity.
pub(super) fn stands_still(twist: &types::Twist) -> bool {
    let mut axes = [twist.linear, twist.angular].into_iter().flatten();
    axes.all(|v| [v.x, v.y, v.z] == [0.0; 3])
}

impl Entry {
    /// Returns whether a body stops the subsystem that the kind moves: a twist without velocity, or the
    /// [`CommandKind::stop`] of a user's kind.
    pub(crate) fn is_stop(&self, body: &[u8]) -> bool {
        if self.subsystem.is_none() {
            return false;
        }
        if self.name != command::Twist::NAME {
            return self.stop.as_deref() == Some(body);
        }
        types::Twist::decode(body).is_ok_and(|twist| stands_still(&twist))
    }

    /// Runs the handler. If the handler panics, the command is rejected.
    pub(crate) fn handle(
        &self,
        counters: &Counters,
        body: &[u8],
        context: &Context,
    ) -> Result<(), Rejection> {
        let handler = read(&self.handler).clone();
        let Some(handler) = handler else {
            return Err(format!("the handler of {} was removed", self.name).into());
        };
        let mut handler = lock(&handler);
        let name = format!("the handler of {}", self.name);
        (counters.guarded(&name, || handler(body, context)))
            .unwrap_or_else(|| Err(format!("{name} panicked").into()))
    }
}

impl Commands {
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        read(&self.0).clone()
    }

    pub(crate) fn get(&self, number: u32) -> Option<Arc<Entry>> {
        read(&self.0)
            .get(usize::try_from(number.checked_sub(1)?).ok()?)
            .cloned()
    }

    pub(crate) fn of_v6(&self, number: u8) -> Option<Arc<Entry>> {
        read(&self.0).iter().find(|e| e.v6 == Some(number)).cloned()
    }

    pub(crate) fn clear(&self) {
        for entry in self.all() {
            write(&entry.handler).take();
        }
    }
}

impl Core {
    /// Registers `handle` for commands of kind `K`.
    pub(crate) fn handle<K: CommandKind>(
        &self,
        mut handle: impl FnMut(K::Body, &Context) -> Result<(), Rejection> + Send + 'static,
    ) {
        let handler: Handler = Box::new(move |body: &[u8], context: &Context| {
            let body = decode::body::<K::Body>(K::NAME, body)
                .map_err(|e| Rejection::from(format!("malformed: {e}")))?;
            handle(body, context)
        });
        let stop = K::stop().map(|body| body.encode_to_vec());
        self.handle_kind(&command::Entry::of::<K>(), stop, handler);
    }

    /// As [`Core::handle`]; `stop` is the body that stops the subsystem that the kind moves.
    pub(crate) fn handle_kind(&self, kind: &command::Entry, stop: Option<Vec<u8>>, handler: Handler) {
        let handler = Some(Arc::new(Mutex::new(handler)));
        if let Some(known) = self.commands.all().iter().find(|e| e.name == kind.name) {
            *write(&known.handler) = handler;
            return;
        }
        let subsystem = match self.options.moves.get(kind.name) {
            Some(set) => set.as_deref(),
            None => kind.moves,
        };
        let subsystem = subsystem.map(|name| self.subsystem(name));
        let mut entries = write(&self.commands.0);
        if entries.len() >= MOST {
            tracing::error!("{}: {MOST} kinds of commands are registered already", kind.name);
            return;
        }
        let number = entries.len() as u32 + 1;
        entries.push(Arc::new(Entry {
            name: kind.name,
            number,
            v6: kind.v6,
            subsystem,
            stop,
            handler: RwLock::new(handler),
        }));
    }
}
