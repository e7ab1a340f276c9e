//! Queue of messages to write: bounded in bytes, so that a slow disk costs messages and not memory.

use recording::Channel;
use stats::Time;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Approximate memory of a queued message in addition to its bytes.
const OVERHEAD: u64 = 96;

/// An item to write to the file.
#[derive(Debug)]
pub(super) enum Item {
    /// The next channel; channels are numbered from 0 in this order. If the file accepts no further channel, `instead`
    /// stands for it.
    Channel {
        channel: Channel,
        instead: Option<usize>,
    },
    /// A message of channel `channel`.
    Message {
        channel: usize,
        log_time: Time,
        publish_time: Time,
        data: Vec<u8>,
    },
}

/// Result of taking from the queue.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, on the writer's stack"
)]
pub(super) enum Popped {
    Item(Item),
    /// Nothing arrived within the given time.
    Idle,
    /// The queue is closed and empty.
    End,
}

/// The queue between the taking thread and the disk.
#[derive(Debug)]
pub(super) struct Queue {
    budget: u64,
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    bytes: u64,
    closed: bool,
}

impl Queue {
    /// A queue of at most `budget` bytes; a single message always fits.
    pub(super) fn new(budget: u64) -> Self {
        Queue {
            budget,
            state: Mutex::default(),
            filled: Condvar::new(),
        }
    }

    /// Whether a message of `len` bytes fits.
    pub(super) fn has_room(&self, len: usize) -> bool {
        let state = self.lock();
        state.bytes == 0 || state.bytes.saturating_add(len as u64 + OVERHEAD) <= self.budget
    }

    /// Appends an item. The caller checks [`Queue::has_room`] before it builds a message.
    pub(super) fn push(&self, item: Item) {
        let mut state = self.lock();
        state.bytes += cost(&item);
        state.items.push_back(item);
        drop(state);
        self.filled.notify_one();
    }

    /// The oldest item; waits at most `patience` for one.
    pub(super) fn pop(&self, patience: Duration) -> Popped {
        let state = self.lock();
        let empty = |state: &mut State| state.items.is_empty() && !state.closed;
        let waited = self.filled.wait_timeout_while(state, patience, empty);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.items.pop_front() {
            Some(item) => {
                state.bytes = state.bytes.saturating_sub(cost(&item));
                Popped::Item(item)
            }
            None if state.closed => Popped::End,
            None => Popped::Idle,
        }
    }

    /// Closes the queue.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Bytes in the queue.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(item: &Item) -> u64 {
    match item {
        // Few, and bounded by the topics.
        Item::Channel { .. } => 0,
        Item::Message { data, .. } => data.len() as u64 + OVERHEAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize) -> Item {
        Item::Message {
            channel: 0,
            log_time: Time::ZERO,
            publish_time: Time::ZERO,
            data: vec![0; len],
        }
    }

    #[test]
    fn it_holds_its_limit_of_bytes_or_one_message() {
        let queue = Queue::new(10_000);
        assert!(queue.has_room(1 << 30), "a single message always fits");
        let mut count = 0;
        while queue.has_room(1000) {
            queue.push(message(1000));
            count += 1;
        }
        assert_eq!(count, 9);
        assert!(queue.has_room(10) && !queue.has_room(1000));
        for _ in 0..count {
            assert!(matches!(queue.pop(Duration::ZERO), Popped::Item(_)));
        }
        assert_eq!(queue.bytes(), 0);
        assert!(matches!(queue.pop(Duration::ZERO), Popped::Idle));
        queue.push(message(1));
        queue.close();
        assert!(
            matches!(queue.pop(Duration::MAX), Popped::Item(_)),
            "queued items still arrive"
        );
        assert!(matches!(queue.pop(Duration::MAX), Popped::End));
    }
}
