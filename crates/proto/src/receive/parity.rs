//! Computes lost fragments of a redundant topic from parity.

use crate::coding::{WINDOW, add, coefficient, inverse, product};
use std::collections::BTreeMap;

/// Fragments that are remembered: a parity covers up to [`WINDOW`], and may be late by as many.
const REMEMBERED: u64 = 2 * WINDOW;
/// Most parities with unknown fragments.
const MOST_EQUATIONS: usize = WINDOW as usize;
/// Approximate cost of a fragment or an unknown in addition to its bytes.
const EACH: usize = 32;
/// An honest sender skips fewer numbers than this.
const MAX_JUMP: u64 = 1 << 20;

/// A sum of unknown fragments, each multiplied by its coefficient.
struct Equation {
    unknown: BTreeMap<u64, u8>,
    sum: Vec<u8>,
}

/// The last fragments, each as its length and its frame, and what is known about the missing ones.
#[derive(Default)]
pub(crate) struct Decoder {
    known: BTreeMap<u64, Vec<u8>>,
    /// No two share their first unknown, and no other equation contains it.
    equations: Vec<Equation>,
    /// One more than the newest number.
    top: u64,
}

impl Decoder {
    /// Takes the fragment `id`. Returns those that can be computed with it.
    ///
    /// # Errors
    /// If no honest sender would use this number.
    pub(crate) fn source(&mut self, id: u64, frame: &[u8]) -> Result<Vec<Vec<u8>>, ()> {
        self.see(id)?;
        if id + REMEMBERED < self.top || self.known.contains_key(&id) {
            return Ok(Vec::new());
        }
        let mut shard = Vec::with_capacity(frame.len() + 2);
        shard.extend_from_slice(&(frame.len() as u16).to_le_bytes());
        shard.extend_from_slice(frame);
        self.learn(id, shard);
        Ok(self.solve())
    }

    /// Takes a parity of the `count` fragments from `first` on. Returns the fragments that can be computed with it.
    ///
    /// # Errors
    /// If no honest sender would use these numbers.
    pub(crate) fn parity(&mut self, first: u64, count: u8, key: u8, sum: &[u8]) -> Result<Vec<Vec<u8>>, ()> {
        let count = u64::from(count);
        let last = first
            .checked_add(count)
            .and_then(|e| e.checked_sub(1))
            .ok_or(())?;
        if count == 0 || count > WINDOW {
            return Err(());
        }
        self.see(last)?;
        let ids = first..=last;
        if first + REMEMBERED < self.top || ids.clone().all(|id| self.known.contains_key(&id)) {
            return Ok(Vec::new());
        }
        let mut equation = Equation {
            unknown: BTreeMap::new(),
            sum: sum.to_vec(),
        };
        for id in ids {
            let factor = coefficient(key, id);
            match self.known.get(&id) {
                Some(shard) => add(&mut equation.sum, shard, factor),
                None => {
                    equation.unknown.insert(id, factor);
                }
            }
        }
        for other in &self.equations {
            if let Some((pivot, _)) = other.unknown.first_key_value()
                && let Some(factor) = equation.unknown.get(pivot).copied()
            {
                equation.subtract(other, factor);
            }
        }
        self.insert(equation);
        Ok(self.solve())
    }

    /// Bytes that are kept.
    pub(crate) fn held(&self) -> usize {
        let known = self.known.values().map(|shard| shard.len() + EACH);
        let equations = self.equations.iter();
        let equations = equations.map(|e| e.sum.len() + EACH * (1 + e.unknown.len()));
        known.chain(equations).sum()
    }

    /// Drops everything: fragments lost so far stay lost.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.equations.clear();
    }

    fn see(&mut self, id: u64) -> Result<(), ()> {
        if id >= u64::MAX / 4 || self.top > 0 && id > self.top + MAX_JUMP {
            return Err(());
        }
        self.top = self.top.max(id + 1);
        let oldest = self.top.saturating_sub(REMEMBERED);
        self.known = self.known.split_off(&oldest);
        // Equations with forgotten fragments can never be solved.
        self.equations
            .retain(|e| e.unknown.first_key_value().is_some_and(|(id, _)| *id >= oldest));
        Ok(())
    }

    /// Adds an equation that contains no other's first unknown.
    fn insert(&mut self, mut equation: Equation) {
        let Some((pivot, factor)) = equation.unknown.first_key_value().map(|(i, f)| (*i, *f)) else {
            return;
        };
        equation.scale(inverse(factor));
        for other in &mut self.equations {
            if let Some(factor) = other.unknown.get(&pivot).copied() {
                other.subtract(&equation, factor);
            }
        }
        if self.equations.len() >= MOST_EQUATIONS {
            self.equations.remove(0);
        }
        self.equations.push(equation);
    }

    /// The fragment `id` is known: removes it from all equations.
    fn learn(&mut self, id: u64, shard: Vec<u8>) {
        let mut changed = Vec::new();
        for (i, e) in self.equations.iter_mut().enumerate() {
            let was_first = e.unknown.first_key_value().is_some_and(|(first, _)| *first == id);
            if let Some(factor) = e.unknown.remove(&id) {
                add(&mut e.sum, &shard, factor);
                if was_first {
                    changed.push(i);
                }
            }
        }
        self.known.insert(id, shard);
        // Its first unknown has changed, and others may have it too.
        for i in changed.into_iter().rev() {
            let mut equation = self.equations.swap_remove(i);
            for other in &self.equations {
                if let Some((pivot, _)) = other.unknown.first_key_value()
                    && let Some(factor) = equation.unknown.get(pivot).copied()
                {
                    equation.subtract(other, factor);
                }
            }
            self.insert(equation);
        }
    }

    /// Solves equations of one unknown, until there are none.
    fn solve(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(i) = self.equations.iter().position(|e| e.unknown.len() == 1) {
            let e = self.equations.swap_remove(i);
            let Some((id, factor)) = e.unknown.first_key_value().map(|(i, f)| (*i, *f)) else {
                continue;
            };
            let mut shard = Vec::new();
            add(&mut shard, &e.sum, inverse(factor));
            if let Some(frame) = framed(&shard) {
                frames.push(frame.to_vec());
            }
            self.learn(id, shard);
        }
        frames
    }
}

/// The frame in a shard, if its length is valid.
fn framed(shard: &[u8]) -> Option<&[u8]> {
    let (length, rest) = shard.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

impl Equation {
    fn scale(&mut self, factor: u8) {
        self.unknown.values_mut().for_each(|f| *f = product(*f, factor));
        let mut sum = Vec::new();
        add(&mut sum, &self.sum, factor);
        self.sum = sum;
    }

    /// Subtracts `factor` times another from this one.
    fn subtract(&mut self, other: &Equation, factor: u8) {
        for (id, f) in &other.unknown {
            let mine = self.unknown.entry(*id).or_default();
            *mine ^= product(*f, factor);
            if *mine == 0 {
                self.unknown.remove(id);
            }
        }
        add(&mut self.sum, &other.sum, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::Coder;
    use crate::wire::{Frame, Reader};
    use stats::Time;

    /// Sends 2000 fragments with this share of parity over a path that loses datagrams by `lost`, and returns how many
    /// of the lost ones were repaired, and how many were not.
    fn carry(share: f64, mut lost: impl FnMut() -> bool) -> (usize, usize) {
        let (mut coder, mut decoder) = (Coder::default(), Decoder::default());
        let (mut missing, mut repaired) = (std::collections::BTreeSet::new(), 0);
        for i in 0..2_000u64 {
            let now = Time::from_millis(10 * i);
            let frame: Vec<u8> = (0..(i % 97 + 5)).map(|b| (b * 31 + i) as u8).collect();
            let id = coder.next_id();
            coder.sent(now, &frame, share);
            let mut back = Vec::new();
            if lost() {
                missing.insert(frame);
            } else {
                back = decoder.source(id, &frame).expect("honest");
            }
            let later = now + core::time::Duration::from_millis(6);
            coder.tick(later);
            while coder.is_due() {
                let mut out = Vec::new();
                coder.put(later, 3, 2_000, &mut out);
                if lost() {
                    continue;
                }
                match Frame::decode(&mut Reader::new(&out)) {
                    Ok(Frame::Parity {
                        first,
                        count,
                        key,
                        bytes,
                        ..
                    }) => {
                        back.extend(decoder.parity(first, count, key, bytes).expect("honest"));
                    }
                    other => panic!("{other:?}"),
                }
            }
            for frame in back {
                assert!(missing.remove(&frame), "what was computed was lost: {frame:?}");
                repaired += 1;
            }
            assert!(decoder.known.len() as u64 <= REMEMBERED && decoder.equations.len() <= MOST_EQUATIONS);
        }
        (repaired, missing.len())
    }

    #[test]
    fn lost_fragments_are_computed_from_parity() {
        let mut n = 0;
        let every_fifth = move || {
            n += 1;
            n % 5 == 0
        };
        let (repaired, missing) = carry(1.0, every_fifth);
        assert!(repaired > 150 && missing <= 4, "{repaired} {missing}");
        let (repaired, missing) = carry(0.5, || false);
        assert_eq!((repaired, missing), (0, 0));
        let mut rng = medium::Rng::new(2);
        let (repaired, missing) = carry(0.6, || rng.chance(0.1));
        assert!(repaired > 150 && missing <= 6, "{repaired} {missing}");
    }

    #[test]
    fn foreign_numbers_and_sums_do_no_harm() {
        let mut d = Decoder::default();
        assert!(d.source(u64::MAX, b"x").is_err() && d.parity(u64::MAX, 3, 0, b"x").is_err());
        assert!(d.parity(0, 0, 0, b"x").is_err() && d.parity(0, 33, 0, b"x").is_err());
        let mut rng = medium::Rng::new(7);
        for _ in 0..5_000 {
            let bytes: Vec<u8> = (0..rng.below(40)).map(|_| rng.next_u64() as u8).collect();
            let id = rng.below(200);
            if rng.chance(0.5) {
                let _ = d.source(id, &bytes);
            } else {
                let _ = d.parity(id, rng.below(40) as u8, rng.next_u64() as u8, &bytes);
            }
            assert!(d.known.len() as u64 <= REMEMBERED && d.equations.len() <= MOST_EQUATIONS);
        }
        assert!(d.source(1 << 40, b"x").is_err(), "too far");
    }
}
