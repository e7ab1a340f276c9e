//! Items that arrived and are not forwarded yet. Each topic queues as many messages as its depth, and keeps the newest.

use super::attachment::Attachment;
use crate::wire::{Call, Port};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zenoh::query::Query;

/// Maximum number of bytes of all queued messages, in addition to the longest accepted one.
const MAX_BYTES: u64 = 256 << 20;

/// Something that arrived.
#[derive(Debug)]
pub(super) enum Item {
    Message(Attachment, Vec<u8>),
    Request(Attachment, Vec<u8>, Query),
    Response(Call, Vec<u8>),
}

impl Item {
    fn len(&self) -> u64 {
        let (Item::Message(_, bytes) | Item::Request(_, bytes, _) | Item::Response(_, bytes)) = self;
        bytes.len() as u64
    }
}

/// Result of [`Queue::take`].
#[derive(Debug)]
pub(super) enum Taken {
    Item(Port, Item),
    /// Endpoints of others have changed.
    Changed,
}

/// Items that arrived and are not forwarded yet.
#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    rings: Condvar,
    most: u64,
}

#[derive(Debug, Default)]
struct Inner {
    ports: BTreeMap<Port, Waiting>,
    /// The ports in order of service, each as often as it has items.
    turns: VecDeque<Port>,
    bytes: u64,
    has_changed: bool,
}

#[derive(Debug)]
struct Waiting {
    items: VecDeque<Item>,
    depth: usize,
    keeps: Keeps,
}

/// Which items to keep if there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// For messages: the newest.
    Newest,
    /// For requests and responses: those that arrived first.
    Oldest,
}

impl Queue {
    pub(super) fn new(max_message: u64) -> Self {
        Queue {
            inner: Mutex::default(),
            rings: Condvar::new(),
            most: MAX_BYTES + max_message,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to accept items for this port.
    pub(super) fn open(&self, port: Port, depth: usize, keeps: Keeps) {
        let waiting = Waiting {
            items: VecDeque::new(),
            depth: depth.max(1),
            keeps,
        };
        self.inner().ports.insert(port, waiting);
    }

    pub(super) fn close(&self, port: Port) {
        let mut inner = self.inner();
        if let Some(waiting) = inner.ports.remove(&port) {
            inner.bytes -= waiting.items.iter().map(Item::len).sum::<u64>();
            inner.turns.retain(|p| *p != port);
        }
    }

    /// Queues an item for a port. Returns `false` if an item had to be dropped.
    pub(super) fn push(&self, port: Port, item: Item) -> bool {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let Some(waiting) = inner.ports.get_mut(&port) else {
            return true;
        };
        let is_full = waiting.items.len() >= waiting.depth;
        let mut is_whole = !is_full;
        if is_full {
            if waiting.keeps == Keeps::Oldest {
                return false;
            }
            if let Some(old) = waiting.items.pop_front() {
                inner.bytes -= old.len();
            }
            // The new item takes over the port's turn.
        }
        if inner.bytes + item.len() > self.most {
            is_whole = false;
            if is_full {
                let turn = inner.turns.iter().position(|p| *p == port);
                turn.map(|at| inner.turns.remove(at));
            }
        } else {
            inner.bytes += item.len();
            waiting.items.push_back(item);
            if !is_full {
                inner.turns.push_back(port);
            }
        }
        self.rings.notify_one();
        is_whole
    }

    /// Records that endpoints of others have changed.
    pub(super) fn change(&self) {
        self.inner().has_changed = true;
        self.rings.notify_one();
    }

    /// Returns the next item; waits for it until `until`.
    pub(super) fn take(&self, until: Instant) -> Option<Taken> {
        let mut inner = self.inner();
        loop {
            if std::mem::take(&mut inner.has_changed) {
                return Some(Taken::Changed);
            }
            while let Some(port) = inner.turns.pop_front() {
                let item = inner.ports.get_mut(&port).and_then(|w| w.items.pop_front());
                if let Some(item) = item {
                    inner.bytes -= item.len();
                    return Some(Taken::Item(port, item));
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return None;
            }
            let waited = self.rings.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: u8, len: usize) -> Item {
        let attachment = Attachment {
            sequence: n.into(),
            time: 0,
            sender: [0; 16],
        };
        Item::Message(attachment, vec![n; len])
    }

    fn drained(queue: &Queue) -> Vec<(u64, u8)> {
        let now = Instant::now();
        let taken = std::iter::from_fn(|| queue.take(now));
        let each = taken.map(|t| match t {
            Taken::Item(port, Item::Message(_, bytes)) => (port.0, bytes[0]),
            other => panic!("{other:?}"),
        });
        each.collect()
    }

    #[test]
    fn each_port_keeps_its_newest_and_its_turn() {
        let queue = Queue::new(1 << 20);
        queue.open(Port(1), 2, Keeps::Newest);
        queue.open(Port(2), 8, Keeps::Newest);
        for n in 1..=4 {
            assert_eq!(queue.push(Port(1), message(n, 1)), n <= 2);
            assert!(queue.push(Port(2), message(n, 1)));
            assert!(queue.push(Port(3), message(n, 1)));
        }
        assert_eq!(drained(&queue), [(1, 3), (2, 1), (1, 4), (2, 2), (2, 3), (2, 4)]);
        assert_eq!(queue.inner().bytes, 0);
    }

    #[test]
    fn requests_that_came_stay() {
        let queue = Queue::new(1 << 20);
        queue.open(Port(1), 1, Keeps::Oldest);
        assert!(queue.push(Port(1), message(1, 1)));
        assert!(!queue.push(Port(1), message(2, 1)));
        assert_eq!(drained(&queue), [(1, 1)]);
    }

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let queue = Queue {
            most: 10,
            ..Queue::new(0)
        };
        queue.open(Port(1), 2, Keeps::Newest);
        queue.open(Port(2), 2, Keeps::Newest);
        assert!(queue.push(Port(1), message(1, 6)));
        assert!(!queue.push(Port(2), message(2, 6)));
        assert!(queue.push(Port(1), message(3, 4)));
        // The port's oldest item is dropped; that is all that it may displace.
        assert!(!queue.push(Port(1), message(4, 7)));
        assert_eq!(drained(&queue), [(1, 3)]);
        assert_eq!(queue.inner().bytes, 0);
        assert!(queue.push(Port(2), message(5, 9)));
        queue.close(Port(2));
        assert_eq!(queue.inner().bytes, 0);
        assert_eq!(drained(&queue), []);
    }
}
