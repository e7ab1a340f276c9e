//! Assembles a sample from fragments. Memory is allocated as bytes arrive; until then the whole sample is only charged.

use crate::account::{Account, Charge};
use crate::wire::inline::InlineQos;
use crate::wire::submessage::DataFrag;
use crate::wire::time::Timestamp;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Until 1/`SHARE` of a sample has arrived, fragments are kept individually; a short sample gets its memory at once.
const SHARE: usize = 16;
const AT_ONCE: usize = 64 << 10;

/// Overhead of a fragment that is kept individually.
const ENTRY: usize = 112;

/// A sample of which fragments have arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) inline: InlineQos,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) key: bool,
    /// When the last new fragment arrived.
    pub(super) at: Duration,
    size: usize,
    fragment: u16,
    fragments: u32,
    missing: u32,
    /// Highest fragment number that arrived.
    highest: u32,
    store: Store,
    charge: Charge,
}

#[derive(Debug)]
enum Store {
    /// Fragments by number, and their total size.
    Few(BTreeMap<u32, Box<[u8]>>, usize),
    Whole {
        bytes: Vec<u8>,
        /// A bit for each fragment that arrived.
        have: Vec<u64>,
        /// All fragments before this word arrived.
        full: usize,
    },
}

impl Assembly {
    /// `None` if the account has no room for the sample and a bit for each fragment.
    pub(super) fn new(now: Duration, frag: &DataFrag<'_>, account: &Arc<Account>) -> Option<Self> {
        let (size, fragments) = (frag.sample_size as usize, frag.fragments());
        let charge = account.take(size + fragments as usize / 8 + size_of::<Self>() + 64)?;
        let mut out = Assembly {
            inline: frag.inline,
            timestamp: None,
            key: frag.key,
            at: now,
            size,
            fragment: frag.fragment_size,
            fragments,
            missing: fragments,
            highest: 0,
            store: Store::Few(BTreeMap::new(), 0),
            charge,
        };
        if size <= AT_ONCE {
            out.make_whole();
        }
        Some(out)
    }

    fn make_whole(&mut self) {
        let few = match &mut self.store {
            Store::Few(few, _) => core::mem::take(few),
            Store::Whole { .. } => return,
        };
        self.store = Store::Whole {
            bytes: vec![0; self.size],
            have: vec![0; (self.fragments as usize).div_ceil(64)],
            full: 0,
        };
        for (number, bytes) in few {
            self.place(number, &bytes);
        }
        self.charge
            .shrink_to(self.size + self.fragments as usize / 8 + size_of::<Self>() + 64);
    }

    /// Copies a fragment to its position. Returns `false` if it was already there.
    fn place(&mut self, number: u32, fragment: &[u8]) -> bool {
        let Store::Whole { bytes, have, full } = &mut self.store else {
            return false;
        };
        let index = number as usize - 1;
        let Some(word) = have.get_mut(index / 64) else {
            return false;
        };
        let from = index * usize::from(self.fragment);
        let Some(to) = bytes.get_mut(from..from + fragment.len()) else {
            return false;
        };
        if *word & 1 << (index % 64) != 0 {
            return false;
        }
        *word |= 1 << (index % 64);
        to.copy_from_slice(fragment);
        while have.get(*full) == Some(&u64::MAX) {
            *full += 1;
        }
        true
    }

    /// Adds fragments and returns how many of them are new. Refuses those that contradict earlier ones, or for which
    /// there is no room.
    pub(super) fn add(&mut self, now: Duration, frag: &DataFrag<'_>) -> u32 {
        if frag.sample_size as usize != self.size
            || frag.fragment_size != self.fragment
            || frag.key != self.key
        {
            return 0;
        }
        // Only the first fragment has to carry the inline QoS (section 8.3.8.3.5).
        if self.inline.is_empty() {
            self.inline = frag.inline;
        }
        let mut new = 0;
        for (i, bytes) in frag.bytes.chunks(usize::from(self.fragment)).enumerate() {
            let number = frag.first + i as u32;
            new += u32::from(match &mut self.store {
                Store::Whole { .. } => self.place(number, bytes),
                Store::Few(few, held) => {
                    let room = !few.contains_key(&number) && self.charge.grow(ENTRY);
                    if room {
                        few.insert(number, bytes.into());
                        *held += bytes.len();
                    }
                    room
                }
            });
            self.highest = self.highest.max(number);
            if matches!(&self.store, Store::Few(_, held) if *held * SHARE >= self.size) {
                self.make_whole();
            }
        }
        if new > 0 {
            self.at = now;
        }
        self.missing -= new;
        new
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Returns the numbers of missing fragments in order: those before the highest that arrived, or all.
    pub(super) fn missing(&self, all: bool) -> impl Iterator<Item = u32> + '_ {
        let from = match &self.store {
            Store::Few(..) => 1,
            Store::Whole { full, .. } => *full as u32 * 64 + 1,
        };
        let to = if all { self.fragments } else { self.highest };
        (from..=to).filter(|number| !self.has(*number))
    }

    fn has(&self, number: u32) -> bool {
        match &self.store {
            Store::Few(few, _) => few.contains_key(&number),
            Store::Whole { have, .. } => {
                let index = number as usize - 1;
                have.get(index / 64).is_some_and(|w| w & 1 << (index % 64) != 0)
            }
        }
    }

    /// Returns the complete sample and its charge.
    pub(super) fn into_sample(mut self) -> (Vec<u8>, Charge) {
        self.make_whole();
        let bytes = match self.store {
            Store::Whole { bytes, .. } => bytes,
            Store::Few(..) => Vec::new(),
        };
        (bytes, self.charge)
    }

    /// Approximate number of bytes that it holds now.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        match &self.store {
            Store::Few(few, bytes) => bytes + few.len() * ENTRY,
            Store::Whole { bytes, have, .. } => bytes.capacity() + have.len() * 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ids::EntityId;

    fn frag(first: u32, count: u16, fragment_size: u16, sample_size: u32, bytes: &[u8]) -> DataFrag<'_> {
        DataFrag {
            reader: EntityId::UNKNOWN,
            writer: EntityId::writer(1),
            sequence: 1,
            inline: InlineQos::default(),
            first,
            count,
            fragment_size,
            sample_size,
            key: false,
            bytes,
        }
    }

    #[test]
    fn fragments_in_any_order_make_the_sample() {
        let sample: Vec<u8> = (0..200_003u32).map(|i| (i * 7) as u8).collect();
        let account = Account::new(1 << 20, None);
        let pieces: Vec<_> = sample.chunks(1000).collect();
        let order = (0..pieces.len()).map(|i| i * 77 % pieces.len());
        let all = sample.len() as u32;
        let mut assembly = Assembly::new(Duration::ZERO, &frag(1, 1, 1000, all, pieces[0]), &account);
        let assembly = assembly.as_mut().expect("room");
        for (n, i) in order.enumerate() {
            assert_eq!(assembly.missing(true).count(), pieces.len() - n);
            let piece = frag(i as u32 + 1, 1, 1000, all, pieces[i]);
            assert_eq!(assembly.add(Duration::ZERO, &piece), 1);
            assert_eq!(assembly.add(Duration::ZERO, &piece), 0, "a duplicate");
            assert!(assembly.held() <= account.used());
        }
        assert!(assembly.is_complete());
        assert_eq!(
            assembly.add(Duration::ZERO, &frag(1, 1, 999, all, &sample[..999])),
            0
        );
    }

    #[test]
    fn several_fragments_come_at_once() {
        let sample: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let account = Account::new(1 << 20, None);
        let first = frag(1, 40, 1344, 100_000, &sample[..40 * 1344]);
        let mut assembly = Assembly::new(Duration::ZERO, &first, &account).expect("room");
        assert_eq!(assembly.add(Duration::ZERO, &first), 40);
        assert_eq!(
            assembly.missing(true).collect::<Vec<_>>(),
            (41..=75).collect::<Vec<_>>()
        );
        assert_eq!(assembly.missing(false).count(), 0);
        let rest = frag(31, 45, 1344, 100_000, &sample[30 * 1344..]);
        assert_eq!(assembly.add(Duration::ZERO, &rest), 35);
        let (bytes, charge) = assembly.into_sample();
        assert!(bytes == sample && account.used() >= bytes.len());
        drop(charge);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn memory_is_taken_as_fragments_come_and_never_beyond_the_account() {
        let account = Account::new(64 << 20, None);
        assert!(
            Assembly::new(Duration::ZERO, &frag(1, 1, 1, u32::MAX, &[0]), &account).is_none(),
            "4 GB"
        );
        let large = 32 << 20;
        let one = frag(7, 1, 1, large, &[0]);
        let mut assembly = Assembly::new(Duration::ZERO, &one, &account).expect("room");
        assert_eq!(assembly.add(Duration::ZERO, &one), 1);
        assert!(assembly.held() < 1000, "of 32 MiB one byte came");
        // Fragments of one byte each cost more than they bring, and are bounded too.
        for n in 0..400_000 {
            assembly.add(Duration::ZERO, &frag(n * 2 + 1, 1, 1, large, &[0]));
        }
        assert!(account.used() <= 64 << 20 && assembly.held() <= account.used());
        drop(assembly);
        assert_eq!(account.used(), 0);
    }
}
