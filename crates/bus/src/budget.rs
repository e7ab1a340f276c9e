//! What the peers of one bus may make this process hold: descriptors, the memory of their rings, the address space of their
//! segments, and copies of their control parts.
//!
//! One peer gets at most half, so that it cannot keep the others out. For that a [`Holder`] is one process of this user, or
//! all processes of another user together: a user who means harm starts as many as he likes. Processes of this user in
//! other PID namespaces cannot be told apart, and count as one. What this process connects to itself is its own affair.

use crate::sys::limits;
use crate::sys::process::Peer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Descriptors of one connection: its socket, and the doorbell or what watches the peer's process.
pub(crate) const CONNECTION: u64 = 2;
/// Descriptors of one segment of a publisher.
pub(crate) const SEGMENT: u64 = 1;
/// Each of these descriptors comes with at most one mapping, and the kernel gives a process 65,530 of those
/// (`vm.max_map_count`).
const MAX_DESCRIPTORS: u64 = 49_152;
/// Bytes of rings that subscribers make and this process may have to pay, since a hostile maker leaves holes in them.
const MAX_RING_BYTES: u64 = 512 << 20;
/// Bytes of control parts that subscribers of this process copy of one holder's messages, until the messages are dropped.
/// Two of the longest fit.
const MAX_COPIED: u64 = 160 << 20;
/// Bytes of address space that segments of publishers take; a process has 128 TiB on most machines.
const MAX_SPACE: u64 = 1 << 46;
/// Up to so many places are given to who comes first.
const SMALL: usize = 8;

/// Who has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// This process.
    Own,
    /// Another one of this user.
    Process(i32),
    /// All of another user.
    User(u32),
}

impl Holder {
    pub(crate) fn of(peer: Peer) -> Holder {
        if peer.uid != rustix::process::geteuid().as_raw() {
            Holder::User(peer.uid)
        } else if peer.pid == std::process::id() as i32 {
            Holder::Own
        } else {
            Holder::Process(peer.pid)
        }
    }

    /// Whether this holder may have one more of `places`, of which it has `has`.
    pub(crate) fn may_have_another(self, has: usize, places: usize) -> bool {
        self == Holder::Own || has < (places / 2).max(SMALL.min(places))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Own => f.write_str("this process"),
            Holder::Process(0) => f.write_str("the processes of other PID namespaces together"),
            Holder::Process(pid) => write!(f, "process {pid}"),
            Holder::User(uid) => write!(f, "user {uid}"),
        }
    }
}

/// What peers hold of this process, by holder.
#[derive(Debug)]
pub(crate) struct Budget {
    descriptors: u64,
    held: Mutex<BTreeMap<Holder, Held>>,
    copies: Mutex<BTreeMap<Holder, Weak<Copies>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    descriptors: u64,
    ring_bytes: u64,
    space: u64,
}

impl Budget {
    /// Three quarters of the descriptors that this process may open; the rest is for what it opens itself.
    pub(crate) fn new() -> Arc<Self> {
        Self::of(limits::open_files() / 4 * 3)
    }

    fn of(descriptors: u64) -> Arc<Self> {
        Arc::new(Budget {
            descriptors: descriptors.min(MAX_DESCRIPTORS),
            held: Mutex::default(),
            copies: Mutex::default(),
        })
    }

    /// Takes `descriptors` for a peer until the grant is dropped, or says what is used up.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer, descriptors: u64) -> Result<Grant, String> {
        let mut grant = Grant {
            budget: self.clone(),
            holder: Holder::of(peer),
            held: Held::default(),
        };
        grant.add(Held {
            descriptors,
            ..Held::default()
        })?;
        Ok(grant)
    }

    /// Where copies of a holder's control parts are counted. Of this process's own messages nothing is.
    pub(crate) fn copies(&self, holder: Holder) -> Option<Arc<Copies>> {
        if holder == Holder::Own {
            return None;
        }
        let mut all = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&holder).and_then(Weak::upgrade) {
            return Some(known);
        }
        all.retain(|_, copies| copies.strong_count() > 0);
        let new = Arc::new(Copies::default());
        all.insert(holder, Arc::downgrade(&new));
        Some(new)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Holder, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of one holder's control parts that this process has copied.
#[derive(Debug, Default)]
pub(crate) struct Copies(AtomicU64);

impl Copies {
    /// Counts `bytes` more; false, and they are not counted, if they are too many.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= MAX_COPIED;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    pub(crate) fn give(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A part of the budget, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Arc<Budget>,
    holder: Holder,
    held: Held,
}

impl Grant {
    pub(crate) fn holder(&self) -> Holder {
        self.holder
    }

    /// The memory of a ring, too.
    pub(crate) fn add_ring(&mut self, bytes: u64) -> Result<(), String> {
        self.add(Held {
            ring_bytes: bytes,
            ..Held::default()
        })
    }

    /// The address space of a segment, too.
    pub(crate) fn add_space(&mut self, bytes: u64) -> Result<(), String> {
        self.add(Held {
            space: bytes,
            ..Held::default()
        })
    }

    fn add(&mut self, more: Held) -> Result<(), String> {
        if self.holder == Holder::Own {
            return Ok(());
        }
        let mut held = self.budget.held();
        let sum = |f: fn(&Held) -> u64| held.values().map(f).sum::<u64>();
        let theirs = held.get(&self.holder).copied().unwrap_or_default();
        let limits = [
            (
                "descriptors",
                more.descriptors,
                theirs.descriptors,
                sum(|h| h.descriptors),
                self.budget.descriptors,
            ),
            (
                "bytes of rings",
                more.ring_bytes,
                theirs.ring_bytes,
                sum(|h| h.ring_bytes),
                MAX_RING_BYTES,
            ),
            (
                "bytes of address space",
                more.space,
                theirs.space,
                sum(|h| h.space),
                MAX_SPACE,
            ),
        ];
        for (what, more, theirs, all, most) in limits.into_iter().filter(|(_, more, ..)| *more > 0) {
            if all.saturating_add(more) > most {
                return Err(format!("{all} {what} of at most {most} are taken up by peers"));
            }
            if theirs.saturating_add(more) > most / 2 {
                return Err(format!(
                    "{} has {theirs} {what}, at most {} are for it",
                    self.holder,
                    most / 2
                ));
            }
        }
        let entry = held.entry(self.holder).or_default();
        for held in [entry, &mut self.held] {
            held.descriptors += more.descriptors;
            held.ring_bytes += more.ring_bytes;
            held.space += more.space;
        }
        Ok(())
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.held == Held::default() {
            return;
        }
        let mut held = self.budget.held();
        if let Some(entry) = held.get_mut(&self.holder) {
            entry.descriptors -= self.held.descriptors;
            entry.ring_bytes -= self.held.ring_bytes;
            entry.space -= self.held.space;
            if *entry == Held::default() {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(pid: i32, uid: u32) -> Peer {
        Peer { pid, uid }
    }

    #[test]
    fn one_process_or_one_other_user_gets_half_and_gives_it_back() {
        let own = rustix::process::geteuid().as_raw();
        let budget = Budget::of(100);
        let take = |pid, uid| budget.take(peer(pid, uid), CONNECTION);
        let first: Vec<_> = std::iter::from_fn(|| take(1, own).ok()).collect();
        assert_eq!(first.len(), 25);
        let text = take(1, own).unwrap_err();
        assert!(text.contains("process 1 has 50 descriptors"), "{text}");
        // Another user's processes share.
        let other: Vec<_> = (1..).map_while(|pid| take(pid, own + 1).ok()).collect();
        assert_eq!(other.len(), 25);
        let text = take(2, own).unwrap_err();
        assert!(text.contains("100 descriptors of at most 100"), "{text}");
        drop(other);
        let mut grant = take(2, own).unwrap();
        grant.add_ring(MAX_RING_BYTES / 2).unwrap();
        assert!(grant.add_ring(1).is_err());
        grant.add_space(MAX_SPACE / 2).unwrap();
        assert!(grant.add_space(1).is_err());
        drop((grant, first));
        assert!(budget.held().is_empty());
        let itself = std::process::id() as i32;
        assert!((0..200).map(|_| take(itself, own)).all(|g| g.is_ok()));
    }

    #[test]
    fn copies_are_counted_by_holder_and_given_back() {
        let budget = Budget::of(100);
        let (one, other) = (Holder::Process(1), Holder::User(2));
        let first = budget.copies(one).unwrap();
        assert!(first.take(MAX_COPIED) && !first.take(1));
        assert!(!budget.copies(one).unwrap().take(1), "the same account");
        assert!(budget.copies(other).unwrap().take(MAX_COPIED));
        first.give(1);
        assert!(budget.copies(one).unwrap().take(1));
        assert!(budget.copies(Holder::Own).is_none());
        drop(first);
        let _ = budget.copies(other);
        assert_eq!(budget.copies.lock().unwrap().len(), 1);
    }

    #[test]
    fn few_places_go_to_who_comes_first_and_of_many_one_holder_gets_half() {
        let holder = Holder::Process(7);
        let gets = |places| {
            (0..)
                .take_while(|n| *n < places && holder.may_have_another(*n, places))
                .count()
        };
        assert_eq!([1, 2, 8, 9, 16, 256].map(gets), [1, 2, 8, 8, 8, 128]);
        assert!(Holder::Own.may_have_another(255, 256));
    }
}
