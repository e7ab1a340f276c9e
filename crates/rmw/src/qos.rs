//! Quality of service: resolves requested profiles, and checks whether a publisher's profile fits a subscription's.

use crate::abi::{QosProfile, RmwTime};
use crate::graph::record::Kind;
use std::time::Duration;

// rmw_qos_reliability_policy_t; likewise for the others.
pub(crate) const SYSTEM_DEFAULT: u32 = 0;
pub(crate) const RELIABLE: u32 = 1;
pub(crate) const BEST_EFFORT: u32 = 2;
pub(crate) const RELIABILITY_BEST_AVAILABLE: u32 = 4;
pub(crate) const KEEP_LAST: u32 = 1;
pub(crate) const KEEP_ALL: u32 = 2;
pub(crate) const TRANSIENT_LOCAL: u32 = 1;
pub(crate) const VOLATILE: u32 = 2;
pub(crate) const DURABILITY_BEST_AVAILABLE: u32 = 4;
pub(crate) const AUTOMATIC: u32 = 1;
pub(crate) const MANUAL_BY_TOPIC: u32 = 3;
pub(crate) const LIVELINESS_BEST_AVAILABLE: u32 = 5;
const UNKNOWN: u32 = 3;
const LIVELINESS_UNKNOWN: u32 = 4;

// rmw_qos_policy_kind_t.
pub(crate) const POLICY_DURABILITY: u32 = 1 << 1;
pub(crate) const POLICY_DEADLINE: u32 = 1 << 2;
pub(crate) const POLICY_LIVELINESS: u32 = 1 << 3;
pub(crate) const POLICY_RELIABILITY: u32 = 1 << 4;

/// `RMW_DURATION_INFINITE`.
pub(crate) const INFINITE: RmwTime = RmwTime {
    sec: 9_223_372_036,
    nsec: 854_775_807,
};
/// `RMW_QOS_DEADLINE_BEST_AVAILABLE`; the same for the lease.
const BEST_AVAILABLE: RmwTime = RmwTime {
    sec: 9_223_372_036,
    nsec: 854_775_806,
};
/// Maximum number of messages that a publisher keeps or a subscription queues; queues of the bus are not longer.
pub(crate) const MAX_DEPTH: u32 = 4096;

/// The end that a profile belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Publisher,
    Subscription,
}

impl End {
    /// Kind of the endpoints at the other end.
    pub(crate) fn other_kind(self) -> Kind {
        match self {
            End::Publisher => Kind::Subscription,
            End::Subscription => Kind::Publisher,
        }
    }
}

impl QosProfile {
    /// Reports a profile with unknown policies, which is a mistake of the caller (`rmw_qos_profile_unknown`).
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let unknown = self.history == UNKNOWN
            || self.reliability == UNKNOWN
            || self.durability == UNKNOWN
            || self.liveliness == LIVELINESS_UNKNOWN;
        unknown.then_some("a policy of the QoS profile is unknown")
    }

    /// Returns the effective profile: fills in defaults, and resolves "best available" for the endpoints that exist
    /// now.
    pub(crate) fn resolved(&self, end: End, others: &[QosProfile]) -> QosProfile {
        let all = |right: fn(&QosProfile) -> bool| others.iter().all(right);
        let publisher = end == End::Publisher;
        QosProfile {
            history: if self.history == KEEP_ALL {
                KEEP_ALL
            } else {
                KEEP_LAST
            },
            depth: match (self.history, self.depth) {
                (KEEP_ALL, depth) => depth,
                (_, 0) => 1,
                (_, depth) => depth,
            },
            reliability: match self.reliability {
                SYSTEM_DEFAULT if publisher => RELIABLE,
                SYSTEM_DEFAULT => BEST_EFFORT,
                RELIABILITY_BEST_AVAILABLE if publisher || all(|q| q.reliability == RELIABLE) => RELIABLE,
                RELIABILITY_BEST_AVAILABLE => BEST_EFFORT,
                other => other,
            },
            durability: match self.durability {
                SYSTEM_DEFAULT => VOLATILE,
                DURABILITY_BEST_AVAILABLE if publisher || all(|q| q.durability == TRANSIENT_LOCAL) => {
                    TRANSIENT_LOCAL
                }
                DURABILITY_BEST_AVAILABLE => VOLATILE,
                other => other,
            },
            deadline: strictest(self.deadline, end, others.iter().map(|q| q.deadline)),
            lifespan: definite(self.lifespan),
            liveliness: match self.liveliness {
                LIVELINESS_BEST_AVAILABLE if publisher => match all(|q| q.liveliness != MANUAL_BY_TOPIC) {
                    true => AUTOMATIC,
                    false => MANUAL_BY_TOPIC,
                },
                LIVELINESS_BEST_AVAILABLE
                    if !others.is_empty() && all(|q| q.liveliness == MANUAL_BY_TOPIC) =>
                {
                    MANUAL_BY_TOPIC
                }
                MANUAL_BY_TOPIC => MANUAL_BY_TOPIC,
                _ => AUTOMATIC,
            },
            lease: strictest(self.lease, end, others.iter().map(|q| q.lease)),
            avoid_ros_namespace_conventions: self.avoid_ros_namespace_conventions,
        }
    }

    /// Queue depth, and the number of messages kept for late joiners.
    pub(crate) fn queue(&self) -> u32 {
        match self.history {
            KEEP_ALL => MAX_DEPTH,
            _ => u32::try_from(self.depth).unwrap_or(MAX_DEPTH).clamp(1, MAX_DEPTH),
        }
    }

    /// Returns the policy in which this profile, of `end`, does not fit one of the other end.
    pub(crate) fn mismatch(&self, end: End, other: &QosProfile) -> Option<u32> {
        match end {
            End::Publisher => self.unfit(other),
            End::Subscription => other.unfit(self),
        }
    }

    /// Returns the policy in which a publisher that offers this does not fit a subscription that requests `asked`: DDS
    /// 1.4, table 2.2.3.
    pub(crate) fn unfit(&self, asked: &QosProfile) -> Option<u32> {
        let late = |offered: RmwTime, asked: RmwTime| nanos(offered) > nanos(asked);
        if self.reliability == BEST_EFFORT && asked.reliability == RELIABLE {
            return Some(POLICY_RELIABILITY);
        }
        if self.durability == VOLATILE && asked.durability == TRANSIENT_LOCAL {
            return Some(POLICY_DURABILITY);
        }
        if late(self.deadline, asked.deadline) {
            return Some(POLICY_DEADLINE);
        }
        if self.liveliness == AUTOMATIC && asked.liveliness == MANUAL_BY_TOPIC {
            return Some(POLICY_LIVELINESS);
        }
        // DDS has a single policy for the kind and the lease.
        late(self.lease, asked.lease).then_some(POLICY_LIVELINESS)
    }
}

/// Resolves an explicit time: unset means infinite.
fn definite(time: RmwTime) -> RmwTime {
    match time {
        RmwTime { sec: 0, nsec: 0 } => INFINITE,
        _ if nanos(time) >= nanos(BEST_AVAILABLE) => INFINITE,
        other => other,
    }
}

/// Resolves "best available": a publisher offers the shortest time requested, a subscription requests the longest
/// offered.
fn strictest(time: RmwTime, end: End, others: impl Iterator<Item = RmwTime>) -> RmwTime {
    if time != BEST_AVAILABLE {
        return definite(time);
    }
    let best = match end {
        End::Publisher => others.min_by_key(|t| nanos(*t)),
        End::Subscription => others.max_by_key(|t| nanos(*t)),
    };
    best.map_or(INFINITE, definite)
}

/// Returns a time in nanoseconds. Unset times and times too long to represent are infinite.
pub(crate) fn nanos(time: RmwTime) -> u64 {
    if (time.sec, time.nsec) == (0, 0) {
        return u64::MAX;
    }
    let all = time.sec.saturating_mul(1_000_000_000).saturating_add(time.nsec);
    if all >= i64::MAX as u64 - 1 { u64::MAX } else { all }
}

/// Returns a time limit, or `None` if it is infinite.
pub(crate) fn limit(time: RmwTime) -> Option<Duration> {
    Some(nanos(time))
        .filter(|n| *n != u64::MAX)
        .map(Duration::from_nanos)
}

/// Implements `rmw_qos_profile_check_compatible` for a publisher's and a subscription's profile: 0 they fit, 1 perhaps,
/// 2 not; and why.
pub(crate) fn check(publisher: &QosProfile, subscription: &QosProfile) -> (u32, String) {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let (p, s) = (publisher, subscription);
    if p.reliability == BEST_EFFORT && s.reliability == RELIABLE {
        errors.push("ERROR: Best effort publisher and reliable subscription;");
    }
    if p.durability == VOLATILE && s.durability == TRANSIENT_LOCAL {
        errors.push("ERROR: Volatile publisher and transient local subscription;");
    }
    if nanos(s.deadline) != u64::MAX && nanos(p.deadline) == u64::MAX {
        errors.push("ERROR: Subscription has a deadline, but publisher does not;");
    } else if nanos(p.deadline) > nanos(s.deadline) {
        errors.push("ERROR: Subscription deadline is less than publisher deadline;");
    }
    if p.liveliness == AUTOMATIC && s.liveliness == MANUAL_BY_TOPIC {
        errors.push("ERROR: Publisher's liveliness is automatic and subscription's is manual by topic;");
    }
    if nanos(s.lease) != u64::MAX && nanos(p.lease) == u64::MAX {
        errors.push("ERROR: Subscription has a liveliness lease duration, but publisher does not;");
    } else if nanos(p.lease) > nanos(s.lease) {
        errors.push("ERROR: Subscription liveliness lease duration is less than publisher's;");
    }
    let vague = |policy: u32, unknown: u32| policy == SYSTEM_DEFAULT || policy == unknown;
    let either = |a: bool, b: bool, harmless: bool| (a || b) && !harmless;
    // If one end leaves a policy open, the other end may still rule out a problem.
    if either(
        vague(p.reliability, UNKNOWN),
        vague(s.reliability, UNKNOWN),
        p.reliability == RELIABLE || s.reliability == BEST_EFFORT,
    ) {
        warnings.push("WARNING: A reliability is left to the system;");
    }
    if either(
        vague(p.durability, UNKNOWN),
        vague(s.durability, UNKNOWN),
        p.durability == TRANSIENT_LOCAL || s.durability == VOLATILE,
    ) {
        warnings.push("WARNING: A durability is left to the system;");
    }
    if either(
        vague(p.liveliness, LIVELINESS_UNKNOWN),
        vague(s.liveliness, LIVELINESS_UNKNOWN),
        p.liveliness == MANUAL_BY_TOPIC
            || s.liveliness == AUTOMATIC
            || p.liveliness == s.liveliness && p.liveliness == SYSTEM_DEFAULT,
    ) {
        warnings.push("WARNING: A liveliness is left to the system;");
    }
    match (errors.is_empty(), warnings.is_empty()) {
        (false, _) => (2, errors.concat()),
        (true, false) => (1, warnings.concat()),
        (true, true) => (0, String::new()),
    }
}

#[cfg(test)]
pub(crate) fn sample() -> QosProfile {
    QosProfile {
        history: KEEP_LAST,
        depth: 10,
        reliability: RELIABLE,
        durability: VOLATILE,
        deadline: RmwTime::default(),
        lifespan: RmwTime::default(),
        liveliness: SYSTEM_DEFAULT,
        lease: RmwTime::default(),
        avoid_ros_namespace_conventions: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_and_requested_qos_match_as_in_dds() {
        let p = sample().resolved(End::Publisher, &[]);
        assert_eq!((p.deadline, p.liveliness), (INFINITE, AUTOMATIC));
        assert_eq!(p.unfit(&p), None);
        let second = RmwTime { sec: 1, nsec: 0 };
        for (policy, offered, asked) in [
            (
                POLICY_RELIABILITY,
                QosProfile {
                    reliability: BEST_EFFORT,
                    ..p
                },
                p,
            ),
            (
                POLICY_DURABILITY,
                p,
                QosProfile {
                    durability: TRANSIENT_LOCAL,
                    ..p
                },
            ),
            (
                POLICY_DEADLINE,
                p,
                QosProfile {
                    deadline: second,
                    ..p
                },
            ),
            (
                POLICY_LIVELINESS,
                p,
                QosProfile {
                    liveliness: MANUAL_BY_TOPIC,
                    ..p
                },
            ),
            (POLICY_LIVELINESS, p, QosProfile { lease: second, ..p }),
        ] {
            assert_eq!(offered.unfit(&asked), Some(policy));
            assert_eq!(asked.unfit(&offered), None);
            assert_eq!(check(&offered, &asked).0, 2, "{policy}");
        }
    }

    #[test]
    fn best_available_takes_what_all_have() {
        let open = QosProfile {
            reliability: RELIABILITY_BEST_AVAILABLE,
            durability: DURABILITY_BEST_AVAILABLE,
            deadline: BEST_AVAILABLE,
            ..sample()
        };
        let lasting = QosProfile {
            durability: TRANSIENT_LOCAL,
            deadline: RmwTime { sec: 2, nsec: 0 },
            ..sample()
        };
        let one = open.resolved(End::Subscription, &[lasting]);
        assert_eq!(
            (one.reliability, one.durability, one.deadline.sec),
            (RELIABLE, TRANSIENT_LOCAL, 2)
        );
        let both = open.resolved(
            End::Subscription,
            &[
                lasting,
                QosProfile {
                    reliability: BEST_EFFORT,
                    ..sample()
                },
            ],
        );
        assert_eq!(
            (both.reliability, both.durability, both.deadline),
            (BEST_EFFORT, VOLATILE, INFINITE)
        );
    }
}
