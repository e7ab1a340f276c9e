//! Policies of an endpoint, and whether two endpoints agree (DDS 1.4, section 2.2.3; DDS-XTypes 1.3, section 7.6.3.1).

use crate::partition;
use core::time::Duration;

/// Policies of a writer or a reader. Durations that are `None` are infinite.
///
/// [`Qos::writer`] and [`Qos::reader`] are DDS' defaults, which hold for whatever an announcement does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Whether samples are repeated until they came.
    pub reliability: Reliability,
    /// What a late reader is given.
    pub durability: Durability,
    /// How much a writer keeps for its readers.
    pub history: History,
    /// At least one sample in each such period.
    pub deadline: Option<Duration>,
    /// By how much delivery may be delayed.
    pub latency_budget: Duration,
    /// How long a sample is worth anything.
    pub lifespan: Option<Duration>,
    /// Who says that a writer lives.
    pub liveliness: Liveliness,
    /// How long a writer lives without a word.
    pub lease: Option<Duration>,
    /// Whether one writer of several is heard alone.
    pub ownership: Ownership,
    /// Which of them: the strongest.
    pub strength: i32,
    /// By whose clock samples are ordered.
    pub destination_order: DestinationOrder,
    /// How changes of several instances belong together.
    pub presentation: Presentation,
    /// Parts of the domain, each perhaps with `*`, `?` and `[…]`; none is the part without a name.
    pub partitions: Vec<String>,
    /// Encodings of the data that it writes (the first) or reads (any); none is XCDR version 1.
    pub representations: Vec<i16>,
}

/// Whether samples are repeated until they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reliability {
    /// Each is sent once.
    BestEffort,
    /// Until they are acknowledged.
    Reliable,
}

/// What a late reader is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing that was written before.
    Volatile,
    /// What the writer still keeps.
    TransientLocal,
    /// What a service keeps.
    Transient,
    /// What a service keeps on a disk.
    Persistent,
}

/// How much a writer keeps for its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The newest, up to this number; an older one makes room, acknowledged or not.
    KeepLast(u32),
    /// All, as far as there is memory; then nothing more is written until some are acknowledged.
    KeepAll,
}

/// Who says that a writer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveliness {
    /// Its participant, by being there.
    Automatic,
    /// The program, of all writers of the participant.
    ManualByParticipant,
    /// The program, of each writer.
    ManualByTopic,
}

/// Whether one writer of several is heard alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// All are heard.
    Shared,
    /// The strongest.
    Exclusive,
}

/// By whose clock samples are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DestinationOrder {
    /// By the reader's.
    ByReception,
    /// By the writers'.
    BySource,
}

/// How changes of several instances belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presentation {
    /// 0 an instance, 1 a topic, 2 a group.
    pub scope: u8,
    /// Sets of changes come as a whole.
    pub coherent: bool,
    /// Changes come in the order in which they were made.
    pub ordered: bool,
}

/// A policy on which two endpoints of a topic do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// The names of their types differ.
    TypeName,
    /// The writer gives best effort, the reader wants more.
    Reliability,
    /// The writer keeps less than the reader wants.
    Durability,
    /// The writer promises longer periods than the reader wants.
    Deadline,
    /// The writer may delay longer than the reader wants.
    LatencyBudget,
    /// The writer's kind is less, or its lease longer, than the reader wants.
    Liveliness,
    /// One shares, the other does not.
    Ownership,
    /// The reader wants order by source.
    DestinationOrder,
    /// The reader wants more coherence or order.
    Presentation,
    /// The reader does not read what the writer writes.
    DataRepresentation,
}

/// XCDR version 1, which holds where nothing is said.
const XCDR1: i16 = 0;

impl Qos {
    /// Defaults of a writer: reliable, volatile, the newest sample.
    pub fn writer() -> Self {
        Qos {
            reliability: Reliability::Reliable,
            ..Qos::reader()
        }
    }

    /// Defaults of a reader: best effort, volatile, the newest sample.
    pub fn reader() -> Self {
        Qos {
            reliability: Reliability::BestEffort,
            durability: Durability::Volatile,
            history: History::KeepLast(1),
            deadline: None,
            latency_budget: Duration::ZERO,
            lifespan: None,
            liveliness: Liveliness::Automatic,
            lease: None,
            ownership: Ownership::Shared,
            strength: 0,
            destination_order: DestinationOrder::ByReception,
            presentation: Presentation {
                scope: 0,
                coherent: false,
                ordered: false,
            },
            partitions: Vec::new(),
            representations: Vec::new(),
        }
    }

    /// What a writer of these policies gives and a reader of `wanted` does not take; none if they agree. Partitions are another
    /// matter ([`Qos::meets`]): who is in none together does not meet, which is no fault.
    pub fn disagrees(&self, wanted: &Qos) -> Option<Policy> {
        let infinite = Duration::MAX;
        let offered = self.representations.first().copied().unwrap_or(XCDR1);
        let read = if wanted.representations.is_empty() {
            offered == XCDR1
        } else {
            wanted.representations.contains(&offered)
        };
        let (ours, theirs) = (self.presentation, wanted.presentation);
        let checks = [
            (Policy::Reliability, self.reliability >= wanted.reliability),
            (Policy::Durability, self.durability >= wanted.durability),
            (
                Policy::Deadline,
                self.deadline.unwrap_or(infinite) <= wanted.deadline.unwrap_or(infinite),
            ),
            (
                Policy::LatencyBudget,
                self.latency_budget <= wanted.latency_budget,
            ),
            (
                Policy::Liveliness,
                self.liveliness >= wanted.liveliness
                    && self.lease.unwrap_or(infinite) <= wanted.lease.unwrap_or(infinite),
            ),
            (Policy::Ownership, self.ownership == wanted.ownership),
            (
                Policy::DestinationOrder,
                self.destination_order >= wanted.destination_order,
            ),
            (
                Policy::Presentation,
                ours.scope >= theirs.scope
                    && ours.coherent >= theirs.coherent
                    && ours.ordered >= theirs.ordered,
            ),
            (Policy::DataRepresentation, read),
        ];
        checks.into_iter().find(|(_, agreed)| !agreed).map(|(p, _)| p)
    }

    /// Whether two endpoints have a partition in common. A name with wildcards meets the names that it fits, and no other with
    /// wildcards (DDS 1.4, section 2.2.3.13).
    pub fn meets(&self, other: &Qos) -> bool {
        let none = [String::new()];
        let names = |q: &'_ [String]| if q.is_empty() { none.to_vec() } else { q.to_vec() };
        let theirs = names(&other.partitions);
        names(&self.partitions)
            .iter()
            .any(|a| theirs.iter().any(|b| partition::meet(a, b)))
    }

    /// Whether a sample that was written before a reader came is kept for it.
    pub(crate) fn keeps(&self) -> bool {
        self.durability >= Durability::TransientLocal
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.reliability == Reliability::Reliable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_compared_as_the_specification_says() {
        let (w, r) = (Qos::writer(), Qos::reader());
        assert_eq!(w.disagrees(&r), None);
        let wants = |change: fn(&mut Qos)| {
            let mut r = Qos::reader();
            change(&mut r);
            w.disagrees(&r)
        };
        assert_eq!(wants(|r| r.reliability = Reliability::Reliable), None);
        assert_eq!(
            Qos::reader().disagrees(&Qos::writer()),
            Some(Policy::Reliability),
            "best effort is not reliable"
        );
        assert_eq!(
            wants(|r| r.durability = Durability::TransientLocal),
            Some(Policy::Durability)
        );
        assert_eq!(
            wants(|r| r.deadline = Some(Duration::from_secs(1))),
            Some(Policy::Deadline)
        );
        assert_eq!(
            wants(|r| r.lease = Some(Duration::from_secs(1))),
            Some(Policy::Liveliness)
        );
        assert_eq!(
            wants(|r| r.liveliness = Liveliness::ManualByTopic),
            Some(Policy::Liveliness)
        );
        assert_eq!(
            wants(|r| r.ownership = Ownership::Exclusive),
            Some(Policy::Ownership)
        );
        assert_eq!(
            wants(|r| r.presentation.ordered = true),
            Some(Policy::Presentation)
        );
        assert_eq!(
            wants(|r| r.destination_order = DestinationOrder::BySource),
            Some(Policy::DestinationOrder)
        );
        assert_eq!(
            wants(|r| r.representations = vec![2]),
            Some(Policy::DataRepresentation)
        );
        assert_eq!(wants(|r| r.representations = vec![2, 0]), None);
    }
}
