//! Telemetry that waits for a listener that is slower than the robot.

use crate::transport::Stream;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum frames that wait for one listener.
const MAX_FRAMES: usize = 256;

/// A frame and its stream.
#[derive(Clone)]
pub(super) struct Waiting {
    /// Number of the kind, and channel.
    pub(super) stream: (u32, u8),
    pub(super) priority: u8,
    pub(super) frame: Arc<[u8]>,
}

/// Numbers for the names of kinds that this program publishes.
#[derive(Default)]
pub(super) struct Kinds(HashMap<String, u32>);

impl Kinds {
    pub(super) fn waiting(&mut self, stream: Stream<'_>, frame: Arc<[u8]>) -> Waiting {
        let next = self.0.len() as u32;
        let kind = match self.0.get(stream.kind) {
            Some(kind) => *kind,
            None => *self.0.entry(stream.kind.to_owned()).or_insert(next),
        };
        Waiting {
            stream: (kind, stream.channel),
            priority: stream.priority,
            frame,
        }
    }
}

/// The frames that wait for one listener, in the order of sending. If there is no room, the oldest frame of the new
/// frame's own stream is dropped, so that images displace images and no log message; if there is none, the oldest of
/// the least urgent.
#[derive(Default)]
pub(super) struct Backlog {
    queue: VecDeque<Waiting>,
    bytes: usize,
}

impl Backlog {
    /// Adds a frame. Returns how many frames were dropped for it, possibly including `new`. One frame always fits.
    pub(super) fn push(&mut self, new: Waiting, most_bytes: usize) -> u64 {
        let mut lost = 0;
        while !self.queue.is_empty()
            && (self.queue.len() >= MAX_FRAMES || self.bytes + new.frame.len() > most_bytes)
        {
            let own = self.queue.iter().position(|w| w.stream == new.stream);
            let victim = own.or_else(|| {
                let least = self.queue.iter().map(|w| w.priority).min()?;
                (least <= new.priority)
                    .then(|| self.queue.iter().position(|w| w.priority == least))
                    .flatten()
            });
            lost += 1;
            match victim.and_then(|at| self.queue.remove(at)) {
                Some(gone) => self.bytes -= gone.frame.len(),
                None => return lost,
            }
        }
        self.bytes += new.frame.len();
        self.queue.push_back(new);
        lost
    }

    pub(super) fn front(&self) -> Option<&Arc<[u8]>> {
        self.queue.front().map(|w| &w.frame)
    }

    pub(super) fn pop(&mut self) -> Option<Arc<[u8]>> {
        let first = self.queue.pop_front()?;
        self.bytes -= first.frame.len();
        Some(first.frame)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        assert_eq!(
            self.bytes,
            self.queue.iter().map(|w| w.frame.len()).sum::<usize>()
        );
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u32, priority: u8, len: usize) -> Waiting {
        Waiting {
            stream: (kind, 0),
            priority,
            frame: vec![kind as u8; len].into(),
        }
    }

    #[test]
    fn a_stream_displaces_itself_first() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.push(frame(1, 90, 10), 100), 0);
        for _ in 0..9 {
            assert_eq!(backlog.push(frame(2, 10, 10), 100), 0);
        }
        assert_eq!(backlog.push(frame(2, 10, 30), 100), 3);
        assert_eq!(backlog.bytes(), 100);
        assert_eq!(backlog.pop().unwrap()[0], 1);
    }

    #[test]
    fn the_less_urgent_goes_for_the_more_urgent_and_not_the_other_way() {
        let mut backlog = Backlog::default();
        backlog.push(frame(1, 50, 100), 100);
        assert_eq!(backlog.push(frame(2, 40, 10), 100), 1);
        assert_eq!(backlog.front().unwrap().len(), 100);
        assert_eq!(backlog.push(frame(2, 60, 10), 100), 1);
        assert_eq!(backlog.front().unwrap().len(), 10);
    }

    #[test]
    fn one_frame_fits_always() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.push(frame(1, 1, 1000), 100), 0);
        assert_eq!(backlog.push(frame(1, 1, 1000), 100), 1);
        assert_eq!(backlog.bytes(), 1000);
    }

    proptest! {
        #[test]
        fn nothing_is_unbounded(pushes in proptest::collection::vec((0u32..4, 0u8..4, 0usize..60), 0..600)) {
            let mut backlog = Backlog::default();
            let (mut given, mut lost) = (0, 0);
            for (kind, priority, len) in pushes {
                given += 1;
                lost += backlog.push(frame(kind, priority, len), 200);
                prop_assert!(backlog.bytes() <= 200 && backlog.queue.len() <= MAX_FRAMES);
            }
            prop_assert_eq!(given, lost + backlog.queue.len() as u64);
        }
    }
}
