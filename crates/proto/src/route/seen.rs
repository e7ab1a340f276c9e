//! Which messages of a source have arrived, so that each is delivered and forwarded once however many routes it takes.

/// Number of remembered messages.
const SPAN: usize = 256;
/// A number this far beyond the newest is of another run of the source, or wrong.
const MAX_JUMP: u64 = 1 << 20;

/// Destinations for which the last messages of one topic of one source have been taken. 2 KiB in any case.
#[derive(Clone, Debug)]
pub struct Seen {
    /// By number modulo the span: the hosts that it was taken for.
    masks: Box<[u64; SPAN]>,
    /// One more than the newest number.
    top: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
            masks: Box::new([0; SPAN]),
            top: 0,
        }
    }
}

impl Seen {
    /// Takes message `number` for the hosts in `mask`, and returns those of them that it was not taken for before.
    /// Returns none if the message is too old to know.
    pub fn claim(&mut self, number: u64, mask: u64) -> u64 {
        // Larger than what the wire carries.
        if number > u64::MAX >> 1 {
            return 0;
        }
        if number >= self.top {
            let by = number - self.top;
            if by >= SPAN as u64 {
                self.masks.fill(0);
            } else {
                (self.top..number).for_each(|n| self.masks[n as usize % SPAN] = 0);
            }
            // A source that restarts its numbering is announced again; one that jumps loses what it jumped over.
            self.masks[number as usize % SPAN] = 0;
            self.top = number + 1;
        } else if self.top - number > SPAN as u64 {
            return 0;
        }
        let known = &mut self.masks[number as usize % SPAN];
        let new = mask & !*known;
        *known |= new;
        new
    }

    /// The hosts that message `number` was taken for; all if it is too old to know.
    pub fn taken(&self, number: u64) -> u64 {
        match self.top.checked_sub(number) {
            None | Some(0) => 0,
            Some(age) if age > SPAN as u64 => u64::MAX,
            Some(_) => self.masks[number as usize % SPAN],
        }
    }

    /// Whether `number` is further ahead than an honest source gets.
    pub fn is_absurd(&self, number: u64) -> bool {
        self.top > 0 && number > self.top.saturating_add(MAX_JUMP)
    }

    /// The copy that was taken for the hosts in `mask` was lost: another may be taken.
    pub fn release(&mut self, number: u64, mask: u64) {
        if number < self.top && self.top - number <= SPAN as u64 {
            self.masks[number as usize % SPAN] &= !mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_taken_once_for_each_host() {
        let mut s = Seen::default();
        assert_eq!(s.claim(5, 0b11), 0b11);
        assert_eq!(s.claim(5, 0b111), 0b100, "another way brings it for a third host");
        assert_eq!(s.claim(5, 0b111), 0);
        assert_eq!((s.taken(5), s.taken(6), s.taken(4)), (0b111, 0, 0));
        assert_eq!(s.claim(4, 0b1), 0b1, "one that was overtaken");
        s.release(5, 0b10);
        assert_eq!(s.claim(5, 0b11), 0b10);
        assert_eq!(s.claim(5 + SPAN as u64, 1), 1);
        assert_eq!(s.claim(5, 1), 0, "too old to know");
        s.release(5, 1);
        assert_eq!(s.claim(5 + SPAN as u64, 1), 0, "what is too old releases nothing");
        assert_eq!(
            s.claim(6 + SPAN as u64, 1),
            1,
            "numbers that were jumped over are new"
        );
        assert_eq!(s.claim(6, 1), 0);
        assert_eq!(s.taken(6), u64::MAX, "too old to know");
        assert!(s.is_absurd(1 << 40) && !s.is_absurd(5 + SPAN as u64 + 1000));
        assert_eq!(s.claim(u64::MAX, 1), 0);
    }
}
