//! A queue of items that wait to be polled.

use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a full queue does with a new item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Keep only the newest: a new item replaces one that was not polled.
    Newest,
    /// Keep up to this many, in order. When the queue is full, a new command is rejected; new telemetry replaces the
    /// oldest.
    Fifo(usize),
}

#[derive(Debug)]
pub(crate) struct Inbox<T> {
    queue: Queue,
    waiting: Mutex<VecDeque<T>>,
    came: Condvar,
}

impl<T> Inbox<T> {
    pub(crate) fn new(queue: Queue) -> Self {
        Inbox {
            queue,
            waiting: Mutex::default(),
            came: Condvar::new(),
        }
    }

    /// Adds an item. Returns it as `Err` if the queue is full.
    pub(crate) fn offer(&self, item: T) -> Result<(), T> {
        let mut waiting = lock(&self.waiting);
        match self.queue {
            Queue::Newest => waiting.clear(),
            Queue::Fifo(most) if waiting.len() >= most.max(1) => return Err(item),
            Queue::Fifo(_) => {}
        }
        waiting.push_back(item);
        self.came.notify_one();
        Ok(())
    }

    /// Adds an item and removes the oldest if the queue is full. Returns whether an item was removed.
    pub(crate) fn push(&self, item: T) -> bool {
        let mut waiting = lock(&self.waiting);
        let most = match self.queue {
            Queue::Newest => 1,
            Queue::Fifo(most) => most.max(1),
        };
        let full = waiting.len() >= most;
        if full {
            waiting.pop_front();
        }
        waiting.push_back(item);
        self.came.notify_one();
        full
    }

    pub(crate) fn try_take(&self) -> Option<T> {
        lock(&self.waiting).pop_front()
    }

    /// Waits for an item, at most for `timeout`.
    pub(crate) fn take(&self, timeout: Duration) -> Option<T> {
        let until = Instant::now().checked_add(timeout);
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(item) = waiting.pop_front() {
                return Some(item);
            }
            let left = match until {
                Some(until) => until.checked_duration_since(Instant::now())?,
                None => Duration::MAX,
            };
            waiting = self
                .came
                .wait_timeout(waiting, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_its_policy_says() {
        let newest = Inbox::new(Queue::Newest);
        assert!((0..5).all(|i| newest.offer(i).is_ok()));
        assert_eq!((newest.try_take(), newest.try_take()), (Some(4), None));
        let fifo = Inbox::new(Queue::Fifo(2));
        assert_eq!(
            (fifo.offer(1), fifo.offer(2), fifo.offer(3)),
            (Ok(()), Ok(()), Err(3))
        );
        assert!(fifo.push(4));
        assert_eq!(
            (fifo.take(Duration::MAX), fifo.take(Duration::ZERO)),
            (Some(2), Some(4))
        );
        assert_eq!(fifo.take(Duration::from_millis(1)), None);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let inbox = std::sync::Arc::new(Inbox::new(Queue::Newest));
        let waiter = std::thread::spawn({
            let inbox = inbox.clone();
            move || inbox.take(Duration::from_secs(60))
        });
        inbox.push(7);
        assert_eq!(waiter.join().expect("no panic"), Some(7));
    }
}
