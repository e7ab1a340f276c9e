//! Policies of an endpoint, and whether two endpoints are compatible (DDS 1.4, section 2.2.3; DDS-XTypes 1.3, section
//! 7.6.3.1).

use crate::partition;
use core::fmt;
use core::time::Duration;

/// Policies of a writer or a reader. Durations that are `None` are infinite.
///
/// [`Qos::writer`] and [`Qos::reader`] return DDS' defaults, which apply to everything that an announcement omits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Whether lost samples are retransmitted.
    pub reliability: Reliability,
    /// Which earlier samples a late joiner receives.
    pub durability: Durability,
    /// How many samples a writer keeps for its readers.
    pub history: History,
    /// Period in which at least one sample is expected.
    pub deadline: Option<Duration>,
    /// Acceptable additional delay of delivery.
    pub latency_budget: Duration,
    /// How long a sample is valid.
    pub lifespan: Option<Duration>,
    /// Actor that asserts that a writer is alive.
    pub liveliness: Liveliness,
    /// How long a writer counts as alive without an assertion.
    pub lease: Option<Duration>,
    /// Whether a reader accepts only one writer at a time.
    pub ownership: Ownership,
    /// With exclusive ownership, the strongest writer wins.
    pub strength: i32,
    /// Clock that orders samples.
    pub destination_order: DestinationOrder,
    /// How changes of several instances are grouped.
    pub presentation: Presentation,
    /// Partitions of the domain, possibly with `*`, `?` and `[…]`; an empty list is the unnamed partition.
    pub partitions: Vec<String>,
    /// Encodings of the data that it writes (the first) or reads (any); an empty list is XCDR version 1.
    pub representations: Vec<i16>,
}

/// Whether lost samples are retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reliability {
    /// Each sample is sent once.
    BestEffort,
    /// Samples are retransmitted until acknowledged.
    Reliable,
}

/// Which earlier samples a late joiner receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// None.
    Volatile,
    /// Those that the writer still keeps.
    TransientLocal,
    /// Those that a service keeps.
    Transient,
    /// Those that a service keeps on disk.
    Persistent,
}

/// How many samples a writer keeps for its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The newest, up to this number; further ones displace the oldest, acknowledged or not.
    KeepLast(u32),
    /// All, while there is memory; then writing fails until some are acknowledged.
    KeepAll,
}

/// Actor that asserts that a writer is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveliness {
    /// Its participant, by existing.
    Automatic,
    /// The program, for all writers of the participant.
    ManualByParticipant,
    /// The program, for each writer.
    ManualByTopic,
}

/// Whether a reader accepts only one writer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Samples of all writers are accepted.
    Shared,
    /// Only samples of the strongest writer are accepted.
    Exclusive,
}

/// Clock that orders samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DestinationOrder {
    /// The reader's.
    ByReception,
    /// The writers'.
    BySource,
}

/// How changes of several instances are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presentation {
    /// 0 an instance, 1 a topic, 2 a group.
    pub scope: u8,
    /// Sets of changes arrive as a whole.
    pub coherent: bool,
    /// Changes arrive in the order in which they were made.
    pub ordered: bool,
}

/// A policy in which two endpoints of a topic are incompatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// The names of their types differ.
    TypeName,
    /// The writer is best effort, the reader requests reliable.
    Reliability,
    /// The writer offers less durability than the reader requests.
    Durability,
    /// The writer offers a longer period than the reader requests.
    Deadline,
    /// The writer offers a longer delay than the reader requests.
    LatencyBudget,
    /// The writer offers a lesser kind, or a longer lease, than the reader requests.
    Liveliness,
    /// One is shared, the other exclusive.
    Ownership,
    /// The reader requests order by source.
    DestinationOrder,
    /// The reader requests more coherence or order.
    Presentation,
    /// The reader does not read the writer's encoding.
    DataRepresentation,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::TypeName => "the type's name",
            Policy::Reliability => "reliability",
            Policy::Durability => "durability",
            Policy::Deadline => "deadline",
            Policy::LatencyBudget => "latency budget",
            Policy::Liveliness => "liveliness",
            Policy::Ownership => "ownership",
            Policy::DestinationOrder => "destination order",
            Policy::Presentation => "presentation",
            Policy::DataRepresentation => "data representation",
        })
    }
}

/// XCDR version 1, the default.
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

    /// Returns the policy of this writer that a reader of `wanted` does not accept; `None` if they are compatible.
    /// Partitions are checked separately ([`Qos::meets`]): endpoints without a common partition do not match, which is
    /// not an error.
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

    /// Whether two endpoints have a partition in common. A name with wildcards meets the names that it matches, and no
    /// other name with wildcards (DDS 1.4, section 2.2.3.13).
    pub fn meets(&self, other: &Qos) -> bool {
        let none = [String::new()];
        let names = |q: &'_ [String]| if q.is_empty() { none.to_vec() } else { q.to_vec() };
        let theirs = names(&other.partitions);
        names(&self.partitions)
            .iter()
            .any(|a| theirs.iter().any(|b| partition::meet(a, b)))
    }

    /// Whether samples are kept for readers that join later.
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
