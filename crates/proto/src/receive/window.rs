//! Outcomes of the last messages of a topic.

/// Number of messages whose individual fates are remembered.
pub(crate) const WINDOW: u64 = 128;

/// The outcome of one number, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Undecided so far.
    Open,
    /// It was delivered.
    Delivered,
    /// It was lost and counted under its reason.
    Dropped,
    /// Too old to know; if it was never decided, it stays counted as lost on the air.
    Ancient,
}

/// Fates of the numbers below `top`; the newest [`WINDOW`] of them are kept individually.
///
/// Undecided numbers are derived, not counted: see [`Window::decided`]. So a message that arrives after all is counted
/// once, under its real outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    first: u64,
    top: u64,
    /// Bit `i` is the number `top - 1 - i`.
    delivered: u128,
    dropped: u128,
    decided: u64,
}

impl Window {
    /// A window in which the first message is number `first`.
    pub(crate) fn new(first: u64) -> Self {
        Window {
            first,
            top: first,
            delivered: 0,
            dropped: 0,
            decided: 0,
        }
    }

    /// One more than the newest number seen.
    pub(crate) fn top(&self) -> u64 {
        self.top
    }

    /// How many numbers there are up to the newest.
    pub(crate) fn span(&self) -> u64 {
        self.top - self.first
    }

    /// How many of them have a fate.
    pub(crate) fn decided(&self) -> u64 {
        self.decided
    }

    pub(crate) fn fate(&self, seq: u64) -> Fate {
        if seq >= self.top {
            return Fate::Open;
        }
        let back = self.top - 1 - seq;
        if seq < self.first || back >= WINDOW {
            return Fate::Ancient;
        }
        match (self.delivered >> back & 1, self.dropped >> back & 1) {
            (1, _) => Fate::Delivered,
            (_, 1) => Fate::Dropped,
            _ => Fate::Open,
        }
    }

    /// Records that a message of this number exists.
    pub(crate) fn see(&mut self, seq: u64) {
        if seq >= self.top {
            let by = seq + 1 - self.top;
            self.top = seq + 1;
            let shift = |bits: u128| if by >= WINDOW { 0 } else { bits << by };
            self.delivered = shift(self.delivered);
            self.dropped = shift(self.dropped);
        }
    }

    /// Decides the fate of an open number; others stay as they are.
    pub(crate) fn decide(&mut self, seq: u64, delivered: bool) {
        self.see(seq);
        if self.fate(seq) == Fate::Open {
            self.decided += 1;
            let bit = 1u128 << (self.top - 1 - seq);
            if delivered {
                self.delivered |= bit;
            } else {
                self.dropped |= bit;
            }
        } else if seq < self.top.saturating_sub(WINDOW) && seq >= self.first {
            // A partial message that the window has outrun: it leaves no bit, but is counted.
            self.decided += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_remembered_and_counted_once() {
        let mut w = Window::new(10);
        w.decide(10, true);
        w.decide(13, false);
        w.decide(13, true);
        assert_eq!(
            [9, 10, 11, 13, 14].map(|s| w.fate(s)),
            [
                Fate::Ancient,
                Fate::Delivered,
                Fate::Open,
                Fate::Dropped,
                Fate::Open
            ]
        );
        assert_eq!((w.span(), w.decided()), (4, 2));
        w.decide(11, true);
        assert_eq!((w.span(), w.decided()), (4, 3));
        w.see(10 + WINDOW);
        assert_eq!((w.fate(10), w.fate(11)), (Fate::Ancient, Fate::Delivered));
        w.see((1 << 62) - 1);
        assert_eq!(w.fate(11), Fate::Ancient);
        assert_eq!(w.decided(), 3);
    }
}
