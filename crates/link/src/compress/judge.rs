//! Decides whether packing pays for a topic, from its results so far.

/// A packed message must be at most this share of its original length to be worth it.
const WORTH: f64 = 0.9;
/// Messages that are skipped after the first failure, and at most.
const PAUSES: (u32, u32) = (16, 1024);

/// Remembers whether a topic's messages shrink.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Messages left to skip.
    skip: u32,
    /// Length of the last pause, in messages.
    pause: u32,
    /// The last message shrank, so no sample is needed.
    trusts: bool,
}

impl Judge {
    /// Returns whether to try the next message.
    pub(super) fn tries(&mut self) -> bool {
        self.skip = self.skip.saturating_sub(1);
        self.skip == 0
    }

    /// Returns whether to try a sample first.
    pub(super) fn doubts(&self) -> bool {
        !self.trusts
    }

    /// Records the result for a message or a sample. Returns whether it shrank enough.
    pub(super) fn learn(&mut self, original: usize, packed: usize) -> bool {
        let worth = (packed as f64) <= original as f64 * WORTH;
        self.trusts = worth;
        if worth {
            self.pause = 0;
        } else {
            self.pause = (self.pause * 2).clamp(PAUSES.0, PAUSES.1);
            self.skip = self.pause + 1;
        }
        worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incompressible_messages_are_tried_ever_less_often() {
        let mut judge = Judge::default();
        let mut tried = 0;
        for _ in 0..10_000 {
            if judge.tries() {
                tried += 1;
                assert!(!judge.learn(1000, 950));
            }
        }
        assert!((10..30).contains(&tried), "{tried}");
        // A message that shrinks again restores the trust.
        while !judge.tries() {}
        assert!(judge.doubts());
        assert!(judge.learn(1000, 300));
        assert!(judge.tries() && !judge.doubts());
        assert!(judge.tries());
    }
}
