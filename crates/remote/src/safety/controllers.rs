//! The controllers that a robot knows: a bounded table, since anyone may say hello.

use super::{Id, Window};
use stats::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Controllers that a robot remembers.
const MOST_CONTROLLERS: usize = 64;
/// Characters of a controller's name that are kept.
const NAME: usize = 64;
/// Silence that is allowed beyond an announced period at least: the wire's own rule, version 6.
const SLACK: Duration = Duration::from_millis(100);

/// `A`, `W`: as in [`Window`].
#[derive(Debug)]
pub(crate) struct Controllers<A, W> {
    known: Vec<Known<A, W>>,
}

/// One controller.
#[derive(Debug)]
pub(crate) struct Known<A, W> {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) heard: Time,
    /// Between its heartbeats, as it announced.
    pub(crate) period: Option<Duration>,
    /// The bound of its requests' age, smoothed: a round trip, as the robot sees it.
    pub(crate) rtt: Option<Duration>,
    pub(crate) window: Window<A, W>,
    /// Without an identity on the wire: its period counts to the letter, and without one it is never lost.
    pub(crate) anonymous: bool,
    lost: bool,
    /// The newest sequence that was carried out, by kind and subsystem.
    newest: BTreeMap<(u32, usize), u64>,
}

/// A controller that was lost or forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
}

impl<A: Clone, W> Known<A, W> {
    /// Is this request newer than all of its kind that were carried out? It counts as carried out from now on.
    pub(crate) fn is_newest(&mut self, kind: u32, subsystem: usize, sequence: u64) -> bool {
        let newest = self.newest.entry((kind, subsystem)).or_default();
        let newer = sequence > *newest;
        if newer {
            *newest = sequence;
        }
        newer
    }

    /// The age of a request was at most so much.
    pub(crate) fn aged(&mut self, age: Duration) {
        self.rtt = Some(self.rtt.map_or(age, |old| old - old / 8 + age / 8));
    }

    /// The silence after which it is lost; `None`: never.
    fn patience(&self, lost_after: Duration) -> Option<Duration> {
        if self.anonymous {
            return self.period.map(|p| p + SLACK);
        }
        let period = self.period.map_or(Duration::ZERO, |p| p + SLACK);
        Some(lost_after.max(period) + self.rtt.unwrap_or_default() * 2)
    }
}

impl<A: Clone, W> Controllers<A, W> {
    pub(crate) fn new() -> Self {
        Controllers { known: Vec::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Known<A, W>> {
        self.known.iter()
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Known<A, W>> {
        self.known.iter().find(|k| k.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Known<A, W>> {
        self.known.iter_mut().find(|k| k.id == id)
    }

    pub(crate) fn is_alive(&self, id: Id) -> bool {
        self.get(id).is_some_and(|k| !k.lost)
    }

    /// Something came of a controller. Whether it was lost before; `None` if it is not known.
    pub(crate) fn hear(&mut self, id: Id, now: Time) -> Option<(&mut Known<A, W>, bool)> {
        let known = self.get_mut(id)?;
        known.heard = known.heard.max(now);
        let found = std::mem::take(&mut known.lost);
        Some((known, found))
    }

    /// A controller said hello. Whether it is new here or was lost, and who had to go: of those that `keep` does not hold, the one not
    /// heard for longest.
    pub(crate) fn admit(
        &mut self,
        id: Id,
        name: &str,
        anonymous: bool,
        now: Time,
        keep: impl Fn(Id) -> bool,
    ) -> (bool, Option<Gone>) {
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
        if let Some((known, found)) = self.hear(id, now) {
            known.name = name.into();
            return (found, None);
        }
        let mut gone = None;
        if self.known.len() >= MOST_CONTROLLERS {
            let free = (0..self.known.len()).filter(|n| !keep(self.known[*n].id));
            let oldest = free.min_by_key(|n| self.known[*n].heard).unwrap_or(0);
            let Known { id, name, lost, .. } = self.known.swap_remove(oldest);
            gone = (!lost).then_some(Gone { id, name });
        }
        self.known.push(Known {
            id,
            name: name.into(),
            heard: now,
            period: None,
            rtt: None,
            window: Window::new(),
            anonymous,
            lost: false,
            newest: BTreeMap::new(),
        });
        (true, gone)
    }

    /// Who has been silent for too long and was not before.
    pub(crate) fn lose(&mut self, now: Time, lost_after: Duration) -> Vec<Gone> {
        let silent = self.known.iter_mut().filter_map(|known| {
            let patience = known.patience(lost_after)?;
            if known.lost || now.since(known.heard) <= patience {
                return None;
            }
            known.lost = true;
            Some(Gone {
                id: known.id,
                name: known.name.clone(),
            })
        });
        silent.collect()
    }

    /// When the next could be lost, if nothing comes until then.
    pub(crate) fn next_loss(&self, lost_after: Duration) -> Option<Time> {
        let alive = self.known.iter().filter(|k| !k.lost);
        alive
            .filter_map(|k| Some(k.heard + k.patience(lost_after)?))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn table() -> Controllers<(), ()> {
        Controllers::new()
    }

    #[test]
    fn the_least_recently_heard_goes_but_never_who_holds_a_right() {
        let mut table = table();
        for id in 1..=64 {
            assert_eq!(table.admit(id, "c", false, at(id), |_| false), (true, None));
        }
        assert!(table.hear(2, at(100)).is_some());
        let (new, gone) = table.admit(65, "new\n", false, at(101), |id| id == 1);
        assert!(new && gone.is_some_and(|g| g.id == 3));
        assert!(table.get(1).is_some() && table.get(2).is_some() && table.hear(3, at(102)).is_none());
        assert_eq!(table.get(65).expect("known").name.as_ref(), "new");
        for id in 1_000..100_000 {
            table.admit(id, &"x".repeat(500), false, at(id), |id| id == 1);
        }
        assert_eq!((table.iter().count(), table.get(1).is_some()), (64, true));
        assert!(table.iter().all(|k| k.name.len() <= NAME));
    }

    #[test]
    fn silence_is_judged_by_period_and_round_trip() {
        let mut table = table();
        table.admit(1, "c", false, at(0), |_| false);
        assert_eq!(table.next_loss(SECOND), Some(at(1_000)));
        assert!(table.lose(at(1_000), SECOND).is_empty());
        assert_eq!(table.lose(at(1_001), SECOND).len(), 1);
        assert!(table.lose(at(5_000), SECOND).is_empty(), "told once");
        assert!(!table.is_alive(1));
        let (known, found) = table.hear(1, at(6_000)).expect("known");
        assert!(found);
        known.aged(Duration::from_secs(2));
        assert_eq!(
            table.next_loss(SECOND),
            Some(at(11_000)),
            "1 s and two round trips"
        );
        table.get_mut(1).expect("known").period = Some(Duration::from_secs(5));
        assert_eq!(table.next_loss(SECOND), Some(at(15_100)));
    }

    #[test]
    fn whoever_has_no_identity_is_lost_by_its_announced_period_alone() {
        let mut table = table();
        table.admit(1, "v6", true, at(0), |_| false);
        assert_eq!(table.next_loss(SECOND), None);
        table.get_mut(1).expect("known").period = Some(Duration::from_millis(500));
        assert_eq!(table.next_loss(SECOND), Some(at(600)));
    }

    #[test]
    fn motion_goes_forward_only() {
        let mut table = table();
        table.admit(1, "c", false, at(0), |_| false);
        let known = table.get_mut(1).expect("known");
        assert!(known.is_newest(3, 0, 5) && !known.is_newest(3, 0, 5) && !known.is_newest(3, 0, 4));
        assert!(known.is_newest(3, 1, 4), "another subsystem");
        assert!(known.is_newest(4, 0, 4), "another kind");
        assert!(known.is_newest(3, 0, 6));
    }
}
