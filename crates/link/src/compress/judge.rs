//! Whether packing pays for a topic, by what it gave so far.

/// More than this share of its length must a message lose to be worth packing.
const WORTH: f64 = 0.9;
/// Messages that are not tried after the first failure, and at most.
const PAUSES: (u32, u32) = (16, 1024);

/// Keeps in mind whether a topic's messages shrink.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Messages that are not tried any more.
    skip: u32,
    /// The last such pause.
    pause: u32,
    /// The last message shrank, so no sample is needed.
    trusts: bool,
}

impl Judge {
    /// Whether the next message should be tried.
    pub(super) fn tries(&mut self) -> bool {
        self.skip = self.skip.saturating_sub(1);
        self.skip == 0
    }

    /// Whether a sample should be looked at first.
    pub(super) fn doubts(&self) -> bool {
        !self.trusts
    }

    /// Learns from a message or a sample, and says whether it shrank enough.
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
    fn what_does_not_shrink_is_tried_ever_more_seldom() {
        let mut judge = Judge::default();
        let mut tried = 0;
        for _ in 0..10_000 {
            if judge.tries() {
                tried += 1;
                assert!(!judge.learn(1000, 950));
            }
        }
        assert!((10..30).contains(&tried), "{tried}");
        // And what shrinks again is trusted again.
        while !judge.tries() {}
        assert!(judge.doubts());
        assert!(judge.learn(1000, 300));
        assert!(judge.tries() && !judge.doubts());
        assert!(judge.tries());
    }
}
