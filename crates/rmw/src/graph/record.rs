//! Converts the graph's records to rmw's terms.

use crate::abi::introspection::TypeHash;
use crate::abi::{QosProfile, RmwTime};
use bridge::nodes::Qos;
pub(crate) use bridge::nodes::{Endpoint, Kind, MAX_RECORD, Node as NodeRecord, Participant, Record};

impl From<&QosProfile> for Qos {
    fn from(profile: &QosProfile) -> Self {
        // The policies are small numbers and already checked.
        let policy = |p: u32| u8::try_from(p).unwrap_or(u8::MAX);
        let time = |t: RmwTime| (t.sec, t.nsec);
        Qos {
            history: policy(profile.history),
            reliability: policy(profile.reliability),
            durability: policy(profile.durability),
            liveliness: policy(profile.liveliness),
            avoids_ros_names: profile.avoid_ros_namespace_conventions,
            depth: profile.depth as u64,
            deadline: time(profile.deadline),
            lifespan: time(profile.lifespan),
            lease: time(profile.lease),
        }
    }
}

impl From<&Qos> for QosProfile {
    fn from(qos: &Qos) -> Self {
        let time = |(sec, nsec)| RmwTime { sec, nsec };
        QosProfile {
            history: qos.history.into(),
            depth: usize::try_from(qos.depth).unwrap_or(usize::MAX),
            reliability: qos.reliability.into(),
            durability: qos.durability.into(),
            deadline: time(qos.deadline),
            lifespan: time(qos.lifespan),
            liveliness: qos.liveliness.into(),
            lease: time(qos.lease),
            avoid_ros_namespace_conventions: qos.avoids_ros_names,
        }
    }
}

impl TypeHash {
    /// The parts as records store them.
    pub(crate) fn parts(&self) -> (u8, [u8; 32]) {
        (self.version, self.value)
    }

    pub(crate) fn of_parts((version, value): (u8, [u8; 32])) -> Self {
        TypeHash { version, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quality_of_service_makes_the_round_trip() {
        let profile = QosProfile {
            deadline: RmwTime { sec: 1, nsec: 2 },
            lifespan: RmwTime { sec: 3, nsec: 4 },
            lease: RmwTime { sec: 5, nsec: 6 },
            avoid_ros_namespace_conventions: true,
            ..crate::qos::sample()
        };
        assert_eq!(QosProfile::from(&Qos::from(&profile)), profile);
    }
}
