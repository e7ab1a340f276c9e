//! Converts policies between DDS and ROS 2 (`rmw/types.h`).

use bridge::nodes::Qos;
use bridge::nodes::policy::{
    AUTOMATIC, BEST_EFFORT, INFINITE, KEEP_ALL, MANUAL_BY_TOPIC, RELIABLE, TRANSIENT_LOCAL, UNKNOWN_HISTORY,
    VOLATILE,
};
use rtps::{Durability, History, Liveliness, Reliability};
use std::time::Duration;

/// Maximum number of samples that a writer keeps.
const MAX_DEPTH: u64 = 1_024;

/// Policies of the topic that announces node names.
pub(super) fn of_info() -> rtps::Qos {
    rtps::Qos {
        durability: Durability::TransientLocal,
        ..rtps::Qos::writer()
    }
}

/// Converts the policies of an endpoint of this bridge. Its liveliness is automatic: it lives as long as the bridge.
pub(super) fn to_dds(qos: &Qos) -> rtps::Qos {
    let depth = match qos.history {
        KEEP_ALL => MAX_DEPTH,
        _ => qos.depth.clamp(1, MAX_DEPTH),
    };
    rtps::Qos {
        reliability: match qos.reliability {
            BEST_EFFORT => Reliability::BestEffort,
            _ => Reliability::Reliable,
        },
        durability: match qos.durability {
            TRANSIENT_LOCAL => Durability::TransientLocal,
            _ => Durability::Volatile,
        },
        history: History::KeepLast(depth as u32),
        deadline: duration(qos.deadline),
        lifespan: duration(qos.lifespan),
        lease: duration(qos.lease).filter(|_| qos.liveliness == AUTOMATIC),
        ..rtps::Qos::writer()
    }
}

/// Converts policies that others announce. The announcement does not include how much they keep.
pub(super) fn from_dds(qos: &rtps::Qos) -> Qos {
    Qos {
        history: match qos.history {
            History::KeepAll => KEEP_ALL,
            History::KeepLast(_) => UNKNOWN_HISTORY,
        },
        reliability: match qos.reliability {
            Reliability::Reliable => RELIABLE,
            Reliability::BestEffort => BEST_EFFORT,
        },
        durability: match qos.durability {
            Durability::Volatile => VOLATILE,
            _ => TRANSIENT_LOCAL,
        },
        liveliness: match qos.liveliness {
            Liveliness::ManualByTopic => MANUAL_BY_TOPIC,
            _ => AUTOMATIC,
        },
        avoids_ros_names: false,
        depth: 0,
        deadline: time(qos.deadline),
        lifespan: time(qos.lifespan),
        lease: time(qos.lease),
    }
}

/// Converts a duration; unset and infinite become `None`.
fn duration((seconds, nanoseconds): (u64, u64)) -> Option<Duration> {
    let given = (seconds, nanoseconds) != (0, 0) && (seconds, nanoseconds) < INFINITE;
    let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0).min(999_999_999);
    given.then(|| Duration::new(seconds, nanoseconds))
}

fn time(duration: Option<Duration>) -> (u64, u64) {
    duration.map_or(INFINITE, |d| (d.as_secs(), d.subsec_nanos().into()).min(INFINITE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::nodes::policy::KEEP_LAST;

    #[test]
    fn policies_go_there_and_back() {
        let qos = Qos {
            history: KEEP_LAST,
            reliability: BEST_EFFORT,
            durability: TRANSIENT_LOCAL,
            liveliness: AUTOMATIC,
            avoids_ros_names: false,
            depth: 7,
            deadline: (1, 5),
            lifespan: INFINITE,
            lease: (2, 0),
        };
        let there = to_dds(&qos);
        assert_eq!(there.history, History::KeepLast(7));
        assert_eq!(
            (there.lifespan, there.deadline),
            (None, Some(Duration::new(1, 5)))
        );
        let back = Qos {
            history: UNKNOWN_HISTORY,
            depth: 0,
            ..qos
        };
        assert_eq!(from_dds(&there), back);
        assert_eq!(to_dds(&Qos::default()).reliability, Reliability::Reliable);
        assert_eq!(duration((u64::MAX, u64::MAX)), None);
    }
}
