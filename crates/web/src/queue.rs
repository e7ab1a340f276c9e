//! Messages that wait for one client, between the threads that produce and the one that writes.

use crate::frame::Opcode;
use crate::pace::{LONG, Number, Pace};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many messages of a topic usually may wait; history for late joiners may be longer ([`Push::keep`]).
pub const KEEP: usize = 64;
/// Bytes of one topic that wait, unless a single message is longer.
const TOPIC_BYTES: usize = 1 << 20;
/// Bytes of answers that wait.
const CONTROL_BYTES: usize = 8 << 20;
/// Memory of an entry, without its payload.
const OVERHEAD: usize = 128;

/// The payload of a message: bytes in pieces, which may be in shared memory.
pub trait Body: Send {
    /// Approximate number of bytes.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `write` once with the pieces in order.
    ///
    /// # Errors
    /// What `write` returns; [`io::ErrorKind::InvalidData`] if there is no message to write, which leaves the message
    /// out.
    fn pieces(&self, write: &mut dyn FnMut(&[&[u8]]) -> io::Result<()>) -> io::Result<()>;
}

impl Body for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn pieces(&self, write: &mut dyn FnMut(&[&[u8]]) -> io::Result<()>) -> io::Result<()> {
        write(&[self])
    }
}

/// A message of a topic.
pub struct Push {
    /// The topic's number: newer messages of it replace older ones.
    pub topic: u32,
    /// Higher goes first.
    pub priority: u8,
    /// How many messages of the topic may wait.
    pub keep: usize,
    /// Whether the message is useless without the previous one, like a video picture that is not a key frame: if the
    /// previous one is lost, this one is lost, too.
    pub follows: bool,
    /// The message, sent as a binary frame.
    pub body: Box<dyn Body>,
}

/// Messages that wait for one client.
///
/// Answers go first, in order. Topics follow by priority; within one priority, the message that has waited longest goes
/// first. A topic whose messages exceed its limit loses the oldest ones; if all messages together exceed the limit, the
/// topic of the lowest priority loses its oldest ones. Messages that follow a lost one are lost, too
/// ([`Push::follows`]). A message that is longer than the limit is lost alone. Losses are counted by topic. A message of
/// 32 KiB or more waits until the client has received the previous long one, so that at most one delays a short one.
pub struct Queue {
    max: usize,
    state: Mutex<State>,
    changed: Condvar,
    taken: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    control: VecDeque<(Opcode, Vec<u8>)>,
    control_bytes: usize,
    topics: BTreeMap<u32, Topic>,
    bytes: usize,
    /// Bytes of the message that is being written.
    writing: usize,
    order: u64,
    pace: Pace,
}

#[derive(Default)]
struct Topic {
    priority: u8,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    lost: u64,
    /// Whether the newest message was lost.
    broken: bool,
}

struct Waiting {
    order: u64,
    size: usize,
    follows: bool,
    body: Box<dyn Body>,
}

/// The next item to write.
pub(crate) enum Next {
    Control(Opcode, Vec<u8>),
    Topic(Box<dyn Body>),
    Ping(Number),
    Nothing,
    Closed,
}

impl Queue {
    /// A queue of at most `max` bytes, with the message that is being written.
    pub fn new(max: usize) -> Self {
        Queue {
            max,
            state: Mutex::default(),
            changed: Condvar::new(),
            taken: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a message may have; a longer one is lost.
    pub fn longest(&self) -> usize {
        self.max.saturating_sub(OVERHEAD)
    }

    /// Queues an answer. A client that asks without reading the answers is disconnected: the queue closes.
    pub fn answer(&self, opcode: Opcode, bytes: Vec<u8>) {
        let mut state = self.state();
        let size = bytes.len() + OVERHEAD;
        let max = CONTROL_BYTES.min(self.max / 2);
        if state.control_bytes + size > max && !state.control.is_empty() {
            state.close();
            self.taken.notify_all();
        }
        if !state.closed {
            state.control_bytes += size;
            state.bytes += size;
            state.control.push_back((opcode, bytes));
            state.shrink(self.max);
        }
        self.changed.notify_one();
    }

    /// Queues a long answer after those that wait are taken. Blocks until then, or until the queue closes.
    pub fn answer_in_turn(&self, opcode: Opcode, bytes: Vec<u8>) {
        let mut state = self.state();
        while !state.closed && !state.control.is_empty() {
            let waited = self.taken.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.answer(opcode, bytes);
    }

    /// Queues a message of a topic. It replaces older ones when the limits are reached.
    pub fn push(&self, push: Push) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let size = push.body.len() + OVERHEAD;
        state.order += 1;
        let order = state.order;
        let topic = state.topics.entry(push.topic).or_default();
        let is_too_long = size > self.max;
        if is_too_long || push.follows && topic.broken {
            topic.broken = true;
            topic.lost += 1;
            return;
        }
        topic.broken = false;
        topic.priority = push.priority;
        topic.waiting.push_back(Waiting {
            order,
            size,
            follows: push.follows,
            body: push.body,
        });
        topic.bytes += size;
        let mut freed = 0;
        while topic.waiting.len() > push.keep.max(1) || (topic.waiting.len() > 1 && topic.bytes > TOPIC_BYTES)
        {
            freed += topic.lose();
        }
        state.bytes = state.bytes + size - freed;
        state.shrink(self.max);
        self.changed.notify_one();
    }

    /// Forgets a topic and its waiting messages.
    pub fn forget(&self, topic: u32) {
        let mut state = self.state();
        if let Some(topic) = state.topics.remove(&topic) {
            state.bytes -= topic.bytes;
        }
    }

    /// Messages lost by topic since the last call.
    pub fn losses(&self) -> Vec<(u32, u64)> {
        let mut state = self.state();
        let lost = state.topics.iter_mut().filter(|(_, topic)| topic.lost > 0);
        lost.map(|(id, topic)| (*id, std::mem::take(&mut topic.lost)))
            .collect()
    }

    /// Bytes that wait, with the message that is being written.
    pub fn held(&self) -> usize {
        let state = self.state();
        state.bytes + state.writing
    }

    /// Ends the connection and drops waiting messages.
    pub fn close(&self) {
        self.state().close();
        self.changed.notify_all();
        self.taken.notify_all();
    }

    /// Ends the connection from the side that writes: nothing is being written any more.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.close();
        state.writing = 0;
        self.taken.notify_all();
    }

    /// Whether the connection ended.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Takes the next item to write; the previous one counts as written. Waits at most `patience`.
    pub(crate) fn next(&self, patience: Duration) -> Next {
        let mut state = self.state();
        state.writing = 0;
        let now = Instant::now();
        let mut next = state.take(now);
        if matches!(next, Next::Nothing) {
            let answer = state.pace.waits(now).map(|until| until - now);
            let wait = answer.map_or(patience, |t| t.min(patience));
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            next = state.take(Instant::now());
        }
        drop(state);
        self.taken.notify_all();
        next
    }

    /// Maximum bytes that a message should have, so that it does not delay others for long, estimated from the client's
    /// answers.
    pub(crate) fn room(&self) -> usize {
        self.state().pace.room()
    }

    /// Notes that `bytes` were written since `since`. Returns the ping that has to follow them.
    pub(crate) fn wrote(&self, since: Instant, bytes: usize) -> Option<Number> {
        let pace = &mut self.state().pace;
        pace.measures(bytes).then(|| pace.sent(since, bytes))
    }

    /// The client answered a ping.
    pub(crate) fn answered(&self, number: &[u8]) {
        self.state().pace.answered(Instant::now(), number);
        self.changed.notify_one();
    }
}

impl State {
    fn close(&mut self) {
        let writing = self.writing;
        *self = State {
            closed: true,
            writing,
            ..State::default()
        };
    }

    fn take(&mut self, now: Instant) -> Next {
        if self.closed {
            return Next::Closed;
        }
        if let Some((opcode, bytes)) = self.control.pop_front() {
            self.writing = bytes.len() + OVERHEAD;
            self.bytes -= self.writing;
            self.control_bytes -= self.writing;
            return Next::Control(opcode, bytes);
        }
        let first = |topic: &&mut Topic| (std::cmp::Reverse(topic.priority), topic.oldest());
        let longest = match self.pace.waits(now) {
            None => usize::MAX,
            Some(_) => LONG,
        };
        let may_go = |topic: &&mut Topic| topic.waiting.front().is_some_and(|first| first.size < longest);
        let waiting = self.topics.values_mut().filter(may_go);
        let Some(topic) = waiting.min_by_key(first) else {
            return Next::Nothing;
        };
        let is_long = topic.waiting.front().is_some_and(|first| first.size >= LONG);
        if is_long && let Some(number) = self.pace.alone(now) {
            return Next::Ping(number);
        }
        let Some(Waiting { size, body, .. }) = topic.waiting.pop_front() else {
            return Next::Nothing;
        };
        topic.bytes -= size;
        self.bytes -= size;
        self.writing = size;
        Next::Topic(body)
    }

    /// Drops the oldest of the least urgent until the rest fits.
    fn shrink(&mut self, max: usize) {
        while self.bytes + self.writing > max {
            let first = |topic: &&mut Topic| (topic.priority, topic.oldest());
            let waiting = self.topics.values_mut().filter(|topic| !topic.waiting.is_empty());
            let Some(topic) = waiting.min_by_key(first) else {
                return;
            };
            self.bytes -= topic.lose();
        }
    }
}

impl Topic {
    /// The number of its oldest message.
    fn oldest(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |first| first.order)
    }

    /// Drops the oldest message and those that follow it ([`Push::follows`]); returns their size.
    fn lose(&mut self) -> usize {
        let mut freed = 0;
        while let Some(first) = self.waiting.pop_front() {
            freed += first.size;
            self.lost += 1;
            if self.waiting.front().is_none_or(|next| !next.follows) {
                break;
            }
        }
        self.bytes -= freed;
        self.broken = self.waiting.is_empty();
        freed
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("max", &self.max)
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &Queue, topic: u32, priority: u8, body: Vec<u8>) {
        queue.push(Push {
            topic,
            priority,
            keep: KEEP,
            follows: false,
            body: Box::new(body),
        });
    }

    /// A picture of a video, of which three may wait.
    fn picture(queue: &Queue, follows: bool, body: Vec<u8>) {
        queue.push(Push {
            topic: 1,
            priority: 0,
            keep: 3,
            follows,
            body: Box::new(body),
        });
    }

    fn next(queue: &Queue) -> Vec<u8> {
        match queue.next(Duration::ZERO) {
            Next::Control(_, bytes) => bytes,
            Next::Topic(body) => {
                let mut bytes = Vec::new();
                let mut write = |pieces: &[&[u8]]| {
                    bytes = pieces.concat();
                    Ok(())
                };
                body.pieces(&mut write).unwrap();
                bytes
            }
            Next::Ping(number) => {
                queue.answered(&number);
                next(queue)
            }
            Next::Nothing | Next::Closed => Vec::new(),
        }
    }

    #[test]
    fn urgent_topics_pass_and_large_ones_keep_the_newest() {
        let queue = Queue::new(16 << 20);
        for n in 0..5 {
            push(&queue, 1, 0, vec![n; 6 << 20]);
            push(&queue, 2, 1, vec![n]);
        }
        queue.answer(Opcode::Text, b"answer".to_vec());
        assert_eq!(next(&queue), b"answer");
        (0..5).for_each(|n| assert_eq!(next(&queue), [n]));
        assert_eq!(next(&queue)[0], 4);
        assert_eq!(queue.losses(), [(1, 4)]);
        assert_eq!(queue.losses(), []);
        assert!(next(&queue).is_empty());
        assert_eq!(queue.held(), 0);
    }

    #[test]
    fn a_picture_that_follows_a_lost_one_is_lost_too() {
        let queue = Queue::new(16 << 20);
        for n in 0..9_u8 {
            picture(&queue, !matches!(n, 0 | 6), vec![n]);
            if n == 1 {
                assert_eq!(next(&queue), [0]);
            }
        }
        // 4 did not fit: 1 was dropped, and all that followed it.
        assert_eq!(queue.losses(), [(1, 5)]);
        (6..9).for_each(|n| assert_eq!(next(&queue), [n]));
        // A key frame that waits is not lost with the pictures before it.
        for n in 0..4_u8 {
            picture(&queue, n != 2, vec![n]);
        }
        assert_eq!(queue.losses(), [(1, 2)]);
        (2..4).for_each(|n| assert_eq!(next(&queue), [n]));
        // The bytes of all topics together are limited, too.
        let queue = Queue::new(4 << 20);
        picture(&queue, false, vec![0; 1 << 20]);
        push(&queue, 2, 9, vec![1; 7 << 19]);
        picture(&queue, true, vec![2]);
        picture(&queue, false, vec![3]);
        assert_eq!(queue.losses(), [(1, 2)]);
        assert_eq!(next(&queue)[0], 1);
        assert_eq!(next(&queue), [3]);
        assert_eq!(queue.held(), OVERHEAD + 1);
    }

    #[test]
    fn whatever_waits_and_is_written_stays_below_the_limit() {
        let queue = Queue::new(16 << 20);
        for topic in 0..10 {
            push(&queue, topic, (topic % 3) as u8, vec![1; 6 << 20]);
            assert!(queue.held() <= 16 << 20);
        }
        assert_eq!(next(&queue).len(), 6 << 20);
        for topic in 0..10 {
            push(&queue, topic, 9, vec![1; 6 << 20]);
            assert!(queue.held() <= 16 << 20);
        }
        // One that never fits displaces no others.
        let held = queue.held();
        push(&queue, 99, 9, vec![1; 17 << 20]);
        assert_eq!(queue.held(), held);
        assert!(queue.losses().contains(&(99, 1)));
        let queue = Queue::new(16 << 20);
        for n in 0..100_000_u32 {
            push(&queue, n, 9, Vec::new());
        }
        assert!(queue.held() <= 16 << 20);
    }

    #[test]
    fn a_client_that_asks_without_reading_is_disconnected() {
        let queue = Queue::new(16 << 20);
        for _ in 0..100_000 {
            queue.answer(Opcode::Pong, vec![0; 125]);
        }
        assert!(queue.is_closed());
        assert_eq!(queue.held(), 0);
        assert!(matches!(queue.next(Duration::ZERO), Next::Closed));
    }

    #[test]
    fn a_topic_that_is_forgotten_leaves_nothing() {
        let queue = Queue::new(1 << 20);
        push(&queue, 1, 0, vec![1; 1000]);
        queue.forget(1);
        assert_eq!(queue.held(), 0);
        assert!(next(&queue).is_empty());
    }
}
