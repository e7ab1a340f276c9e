//! Commands that wait to be polled.

use super::core::Core;
use super::{Context, Origin};
use crate::inbox::{Inbox, Queue};
use crate::kind::CommandKind;
use crate::outcome::Rejection;
use crate::safety::anonymous;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Commands of one kind that wait for the program to take them: see [`Robot::queue`](super::Robot::queue).
///
/// A command that expires in the queue, or whose controller loses the right to move meanwhile, is not returned.
pub struct CommandQueue<K: CommandKind> {
    inbox: Arc<Inbox<(K::Body, Context)>>,
    core: Weak<Core>,
}

impl<K: CommandKind> CommandQueue<K> {
    pub(super) fn register(core: &Arc<Core>, queue: Queue) -> Self
    where
        K::Body: Send,
    {
        let inbox = Arc::new(Inbox::new(queue));
        let queue = Arc::downgrade(&inbox);
        core.handle::<K>(move |body, context| {
            let Some(own) = queue.upgrade() else {
                return Err(Rejection::from(format!("the queue of {} was dropped", K::NAME)));
            };
            let full = || Rejection::from(format!("the queue of {} commands is full", K::NAME));
            own.offer((body, context.clone())).map_err(|_| full())
        });
        CommandQueue {
            inbox,
            core: Arc::downgrade(core),
        }
    }

    /// Returns the oldest command that is still good, without blocking.
    pub fn try_take(&self) -> Option<(K::Body, Context)> {
        loop {
            let item = self.inbox.try_take()?;
            if self.is_good(&item.1) {
                return Some(item);
            }
        }
    }

    /// Returns the oldest command that is still good; blocks until there is one, at most for `timeout`.
    pub fn take(&self, timeout: Duration) -> Option<(K::Body, Context)> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let left = until.map_or(Duration::MAX, |u| u.saturating_duration_since(Instant::now()));
            let item = self.inbox.take(left)?;
            if self.is_good(&item.1) {
                return Some(item);
            }
        }
    }

    fn is_good(&self, context: &Context) -> bool {
        let Some(core) = self.core.upgrade() else {
            return false;
        };
        let from = match context.origin {
            Origin::Controller { id, .. } => Some(id),
            Origin::V6 { end } => Some(anonymous(end)),
            Origin::Robot => None,
        };
        let entry = core.commands.all().into_iter().find(|e| e.name == K::NAME);
        let good = core.still_good(entry.and_then(|e| e.subsystem), from, context);
        if !good {
            core.counters.dropped("expired_in_queue", 1);
        }
        good
    }
}

impl<K: CommandKind> std::fmt::Debug for CommandQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CommandQueue({})", K::NAME)
    }
}
