//! The controllers that a robot knows: a bounded table, because anyone may say hello.
//!
//! A controller is identified by what its transport proves ([`Peer`]) together with the random number of its run. The
//! controller sends that number only to the robot, so other controllers do not learn it. The robot assigns an id to
//! each controller, by which it and other controllers refer to it.

use super::{Id, Window};
use crate::transport::Peer;
use stats::Time;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of controllers that a robot remembers.
const MOST_CONTROLLERS: usize = 64;
/// Maximum characters of a controller's name that are kept.
const NAME: usize = 64;
/// How far a sequence may exceed the highest one before it while its controller is not lost. Requests that were lost on
/// the way leave a gap, but never more than the number sent while a controller counts as alive.
pub(crate) const MOST_JUMP: u64 = 1 << 20;
/// Minimum silence that is allowed beyond an announced period: the rule of version 6's wire.
const SLACK: Duration = Duration::from_millis(100);

/// `A`, `W`: as in [`Window`].
#[derive(Debug)]
pub(crate) struct Controllers<A, W> {
    known: Vec<Known<A, W>>,
}

/// One controller.
#[derive(Debug)]
pub(crate) struct Known<A, W> {
    /// The number by which the robot and others know it: it proves nothing.
    pub(crate) id: Id,
    pub(crate) peer: Peer,
    /// The number of its run, as it sends it.
    number: u64,
    pub(crate) name: Arc<str>,
    pub(crate) heard: Time,
    /// The period of its heartbeats, as announced.
    pub(crate) period: Option<Duration>,
    /// Smoothed bound on the age of its requests: a round trip, as the robot sees it.
    pub(crate) rtt: Option<Duration>,
    pub(crate) window: Window<A, W>,
    /// Without an identity on the wire: its period applies exactly, and without a period it is never lost.
    pub(crate) anonymous: bool,
    lost: bool,
    /// Highest sequence of all its requests.
    highest: u64,
    /// The newest sequence that was executed, by kind and subsystem.
    newest: BTreeMap<(u32, usize), u64>,
}

/// A controller that was lost or forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) peer: Peer,
}

/// A controller that says hello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest<'a> {
    pub(crate) peer: &'a Peer,
    /// The number of its run, as it sends it.
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    pub(crate) name: &'a str,
    pub(crate) anonymous: bool,
}

/// Result of a hello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) id: Id,
    /// Whether it is new to the robot, or was lost.
    pub(crate) found: bool,
    /// The controller that was forgotten to make room.
    pub(crate) gone: Option<Gone>,
}

impl<A: Clone, W> Known<A, W> {
    /// Returns whether this request is newer than all of its kind that were executed. From then on it counts as
    /// executed, unless its sequence jumped.
    pub(crate) fn is_newest(&mut self, kind: u32, subsystem: usize, sequence: u64) -> bool {
        if self.has_jumped(sequence) {
            return true;
        }
        let newest = self.newest.entry((kind, subsystem)).or_default();
        let newer = sequence > *newest;
        if newer {
            *newest = sequence;
        }
        newer
    }

    /// Returns whether a request of this sequence may follow the earlier ones; if so, it becomes one of them. After a
    /// silence so long that the controller was lost, the number of missed requests is unknown, and any sequence may
    /// follow.
    fn follows(&mut self, sequence: u64) -> bool {
        let follows = self.lost || sequence <= self.highest.saturating_add(MOST_JUMP);
        if follows {
            self.highest = self.highest.max(sequence);
        }
        follows
    }

    /// Returns whether a sequence was accepted although it jumps, as for a stop: later sequences are not compared with
    /// it.
    pub(crate) fn has_jumped(&self, sequence: u64) -> bool {
        !self.anonymous && sequence > self.highest
    }

    fn gone(&self) -> Gone {
        Gone {
            id: self.id,
            name: self.name.clone(),
            peer: self.peer.clone(),
        }
    }

    /// Records an upper bound of a request's age.
    pub(crate) fn aged(&mut self, age: Duration) {
        self.rtt = Some(self.rtt.map_or(age, |old| old - old / 8 + age / 8));
    }

    /// Returns the silence after which it is lost; `None`: never.
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

    /// Returns the controller that sends this number over a connection of this peer.
    pub(crate) fn find(&self, peer: &Peer, number: u64) -> Option<Id> {
        let known = self.known.iter().find(|k| k.number == number && k.peer == *peer);
        known.map(|k| k.id)
    }

    /// Records a request of this sequence from a controller. Returns whether the controller was lost before; `None` if
    /// the controller is not known, or if the sequence jumps ([`MOST_JUMP`]): then nothing is recorded. With `any`, the
    /// sequence may jump.
    pub(crate) fn hear(
        &mut self,
        id: Id,
        sequence: u64,
        any: bool,
        now: Time,
    ) -> Option<(&mut Known<A, W>, bool)> {
        let known = self.get_mut(id)?;
        if !known.follows(sequence) && !any {
            return None;
        }
        known.heard = known.heard.max(now);
        let found = std::mem::take(&mut known.lost);
        Some((known, found))
    }

    /// Admits a controller that said hello; if it is new, it receives `id`. If the table is full, a controller for
    /// which `keep` is false is forgotten: a lost one, if there is any; else, of the peer with the most controllers,
    /// the one that was silent for longest. So a peer that says hello under many numbers does not displace other peers.
    ///
    /// `None`: its sequence jumps ([`MOST_JUMP`]).
    pub(crate) fn admit(
        &mut self,
        guest: Guest<'_>,
        id: Id,
        now: Time,
        keep: impl Fn(Id) -> bool,
    ) -> Option<Admitted> {
        let name: String = guest
            .name
            .chars()
            .filter(|c| !c.is_control())
            .take(NAME)
            .collect();
        if let Some(id) = self.find(guest.peer, guest.number) {
            let (known, found) = self.hear(id, guest.sequence, false, now)?;
            known.name = name.into();
            return Some(Admitted {
                id,
                found,
                gone: None,
            });
        }
        let mut gone = None;
        if self.known.len() >= MOST_CONTROLLERS {
            let leaves = self.index_to_displace(keep);
            let known = self.known.swap_remove(leaves);
            gone = (!known.lost).then(|| known.gone());
        }
        self.known.push(Known {
            id,
            peer: guest.peer.clone(),
            number: guest.number,
            name: name.into(),
            heard: now,
            period: None,
            rtt: None,
            window: Window::new(),
            anonymous: guest.anonymous,
            lost: false,
            highest: guest.sequence,
            newest: BTreeMap::new(),
        });
        Some(Admitted {
            id,
            found: true,
            gone,
        })
    }

    fn index_to_displace(&self, keep: impl Fn(Id) -> bool) -> usize {
        let mut of_peer: BTreeMap<&Peer, usize> = BTreeMap::new();
        for known in &self.known {
            *of_peer.entry(&known.peer).or_default() += 1;
        }
        let free = (0..self.known.len()).filter(|n| !keep(self.known[*n].id));
        let first = free.max_by_key(|n| {
            let known = &self.known[*n];
            (known.lost, of_peer.get(&known.peer), Reverse(known.heard))
        });
        first.unwrap_or(0)
    }

    /// Forgets all controllers of a peer.
    pub(crate) fn revoke(&mut self, peer: &Peer) -> Vec<Gone> {
        let (gone, known) = std::mem::take(&mut self.known)
            .into_iter()
            .partition(|k| k.peer == *peer);
        self.known = known;
        gone.iter().map(Known::gone).collect()
    }

    /// Returns the controllers that have newly been silent for too long, and marks them as lost.
    pub(crate) fn lose(&mut self, now: Time, lost_after: Duration) -> Vec<Gone> {
        let silent = self.known.iter_mut().filter_map(|known| {
            let patience = known.patience(lost_after)?;
            if known.lost || now.since(known.heard) <= patience {
                return None;
            }
            known.lost = true;
            Some(known.gone())
        });
        silent.collect()
    }

    /// Returns when the next controller could be lost, if no message arrives until then.
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

    fn host(name: &str) -> Peer {
        Peer::Host(name.into())
    }

    fn guest<'a>(peer: &'a Peer, number: u64, name: &'a str) -> Guest<'a> {
        Guest {
            peer,
            number,
            sequence: 1,
            name,
            anonymous: false,
        }
    }

    #[test]
    fn the_least_recently_heard_goes_but_never_who_holds_a_right() {
        let (mut table, peer) = (table(), Peer::Unproven);
        for id in 1..=64 {
            let new = table
                .admit(guest(&peer, id, "c"), id, at(id), |_| false)
                .expect("follows");
            assert_eq!((new.id, new.found, new.gone), (id, true, None));
        }
        assert!(table.hear(2, 1, false, at(100)).is_some());
        let new = table.admit(guest(&peer, 65, "new\n"), 65, at(101), |id| id == 1);
        let new = new.expect("follows");
        assert!(new.found && new.gone.is_some_and(|g| g.id == 3));
        assert!(table.get(1).is_some() && table.get(2).is_some() && table.get(3).is_none());
        assert_eq!(table.get(65).expect("known").name.as_ref(), "new");
        for id in 1_000..3_000 {
            let long = "x".repeat(500);
            table
                .admit(guest(&peer, id, &long), id, at(id), |id| id == 1)
                .expect("follows");
        }
        assert_eq!((table.iter().count(), table.get(1).is_some()), (64, true));
        assert!(table.iter().all(|k| k.name.len() <= NAME));
    }

    #[test]
    fn one_peer_under_many_numbers_takes_no_place_of_others() {
        let mut table = table();
        for id in 1..=8 {
            table
                .admit(guest(&host(&id.to_string()), 1, "honest"), id, at(id), |_| false)
                .expect("follows");
        }
        for number in 100..2_000 {
            table
                .admit(guest(&host("greedy"), number, "g"), number, at(number), |_| false)
                .expect("follows");
        }
        assert!((1..=8).all(|id| table.get(id).is_some()));
        assert_eq!(table.iter().count(), MOST_CONTROLLERS);
    }

    #[test]
    fn the_number_of_another_peer_is_another_controller() {
        let mut table = table();
        let (base, thief) = (host("base"), host("thief"));
        let first = table
            .admit(guest(&base, 5, "a"), 1, at(0), |_| false)
            .expect("follows");
        let second = table
            .admit(guest(&thief, 5, "b"), 2, at(0), |_| false)
            .expect("follows");
        assert_eq!((first.id, second.id, second.found), (1, 2, true));
        assert_eq!((table.find(&base, 5), table.find(&thief, 5)), (Some(1), Some(2)));
        assert_eq!(table.find(&Peer::Unproven, 5), None);
        assert_eq!(table.find(&base, 1), None, "an id is not a number");
        table.hear(2, 2, false, at(5_000));
        assert_eq!(
            table.lose(at(5_000), SECOND).len(),
            1,
            "it keeps nobody else alive"
        );
        let gone = table.revoke(&thief);
        assert!(gone.len() == 1 && gone[0].id == 2 && table.find(&thief, 5).is_none());
        assert!(table.find(&base, 5).is_some());
    }

    #[test]
    fn a_sequence_does_not_jump_unless_its_controller_was_lost() {
        let (mut table, peer) = (table(), host("base"));
        table
            .admit(guest(&peer, 5, "a"), 1, at(0), |_| false)
            .expect("follows");
        assert!(table.hear(1, 1 + MOST_JUMP, false, at(1)).is_some());
        assert!(table.hear(1, 2 + 2 * MOST_JUMP, false, at(900)).is_none());
        assert!(table.hear(1, 7, false, at(2)).is_some(), "behind is not ahead");
        let mut far = guest(&peer, 5, "a");
        far.sequence = u64::MAX;
        assert!(
            table.admit(far, 9, at(3), |_| false).is_none(),
            "a hello does not jump, either"
        );
        assert_eq!(
            table.lose(at(1_500), SECOND).len(),
            1,
            "what jumps keeps nobody alive"
        );
        assert!(table.hear(1, 1 << 60, false, at(2_000)).is_some());
        assert!(
            table.hear(1, u64::MAX, true, at(2_000)).is_some(),
            "a stop passes"
        );
    }

    #[test]
    fn silence_is_judged_by_period_and_round_trip() {
        let mut table = table();
        table
            .admit(guest(&Peer::Unproven, 1, "c"), 1, at(0), |_| false)
            .expect("follows");
        assert_eq!(table.next_loss(SECOND), Some(at(1_000)));
        assert!(table.lose(at(1_000), SECOND).is_empty());
        assert_eq!(table.lose(at(1_001), SECOND).len(), 1);
        assert!(table.lose(at(5_000), SECOND).is_empty(), "reported once");
        assert!(!table.is_alive(1));
        let (known, found) = table.hear(1, 1, false, at(6_000)).expect("known");
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
    fn anonymous_controllers_are_lost_only_by_their_announced_period() {
        let mut table = table();
        let anonymous = Guest {
            anonymous: true,
            ..guest(&Peer::Unproven, 1, "v6")
        };
        table.admit(anonymous, 1, at(0), |_| false).expect("follows");
        assert_eq!(table.next_loss(SECOND), None);
        table.get_mut(1).expect("known").period = Some(Duration::from_millis(500));
        assert_eq!(table.next_loss(SECOND), Some(at(600)));
    }

    #[test]
    fn motion_goes_forward_only() {
        let mut table = table();
        table
            .admit(guest(&Peer::Unproven, 1, "c"), 1, at(0), |_| false)
            .expect("follows");
        table.hear(1, 10, false, at(0)).expect("follows");
        let known = table.get_mut(1).expect("known");
        assert!(known.is_newest(3, 0, 5) && !known.is_newest(3, 0, 5) && !known.is_newest(3, 0, 4));
        assert!(known.is_newest(3, 1, 4), "another subsystem");
        assert!(known.is_newest(4, 0, 4), "another kind");
        assert!(known.is_newest(3, 0, 6));
        assert!(known.is_newest(3, 0, MOST_JUMP * 2), "a stop that jumps");
        assert!(known.is_newest(3, 0, 7), "and what follows it");
    }
}
