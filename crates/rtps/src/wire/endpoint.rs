//! What a participant announces about its writers and readers (DDSI-RTPS 2.5, sections 8.5.4 and 9.6.3.3, 9.6.3.4).

use super::bytes::{put_octets, put_string};
use super::error::WireError;
use super::ids::{EntityId, Guid};
use super::locator;
use super::parameters::{PL_CDR_LE, Parameters, payload, pid, put, put_sentinel, unknown};
use super::participant::{MAX_USER_DATA, keep};
use super::policies;
use crate::qos::Qos;
use std::net::SocketAddrV4;

/// Longest name of a topic, a type or a partition, in bytes.
pub(crate) const MAX_TEXT: usize = 1024;

/// A writer or a reader as its participant announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointData {
    /// Its GUID; the entity kind says whether it is a writer or a reader.
    pub guid: Guid,
    /// Topic name; in ROS 2, with a prefix such as `rt/`.
    pub topic: String,
    /// Type name.
    pub type_name: String,
    /// Its policies.
    pub qos: Qos,
    /// User data from its program; in ROS 2, `typehash=RIHS01_…;`.
    pub user_data: Vec<u8>,
    /// Addresses that reach it; empty for those of its participant.
    pub unicast: Vec<SocketAddrV4>,
}

impl EndpointData {
    /// Reads an announcement. Omitted parameters get DDS' defaults for a writer or a reader.
    ///
    /// # Errors
    ///
    /// If it is truncated, lacks the GUID, topic or type, has longer texts or lists than allowed, or has an unknown
    /// parameter that must be understood.
    pub(crate) fn read(bytes: &[u8], writer: bool) -> Result<Self, WireError> {
        let mut out = EndpointData {
            guid: Guid::default(),
            topic: String::new(),
            type_name: String::new(),
            qos: if writer { Qos::writer() } else { Qos::reader() },
            user_data: Vec::new(),
            unicast: Vec::new(),
        };
        let mut from = payload(bytes)?;
        let mut parameters = Parameters::new(&mut from);
        while let Some((id, mut v)) = parameters.next()? {
            match id {
                pid::ENDPOINT_GUID => out.guid = Guid::read(&mut v)?,
                pid::TOPIC_NAME => out.topic = v.string(MAX_TEXT, "name of a topic")?,
                pid::TYPE_NAME => out.type_name = v.string(MAX_TEXT, "name of a type")?,
                pid::USER_DATA => out.user_data = v.octets(MAX_USER_DATA, "user data")?.to_vec(),
                pid::UNICAST_LOCATOR => keep(&mut out.unicast, locator::read(&mut v)?),
                _ if policies::read(&mut out.qos, id, &mut v)? => {}
                _ => unknown(id)?,
            }
        }
        for (what, missing) in [
            ("GUID", out.guid == Guid::default()),
            ("topic", out.topic.is_empty()),
            ("type", out.type_name.is_empty()),
        ] {
            if missing {
                return Err(WireError::Missing { what });
            }
        }
        if out.guid.entity.is_writer() != writer || out.guid.entity.is_reader() == writer {
            return Err(WireError::Invalid {
                what: "kind of the announced endpoint",
                at: 0,
            });
        }
        Ok(out)
    }

    /// Returns the announcement, with its encapsulation.
    pub(crate) fn write(&self) -> Vec<u8> {
        let out = &mut PL_CDR_LE.to_vec();
        put(out, pid::ENDPOINT_GUID, |out| {
            out.extend_from_slice(&self.guid.to_bytes());
        });
        // Fast DDS takes the participant only from this parameter: without it, nodes of ROS 2 show no node for the
        // endpoint.
        put(out, pid::PARTICIPANT_GUID, |out| {
            let participant = Guid::new(self.guid.prefix, EntityId::PARTICIPANT);
            out.extend_from_slice(&participant.to_bytes());
        });
        // Older versions of Fast DDS require the key in addition to the GUID.
        put(out, pid::KEY_HASH, |out| {
            out.extend_from_slice(&self.guid.to_bytes())
        });
        put(out, pid::TOPIC_NAME, |out| put_string(out, &self.topic));
        put(out, pid::TYPE_NAME, |out| put_string(out, &self.type_name));
        for address in &self.unicast {
            put(out, pid::UNICAST_LOCATOR, |out| locator::put(out, *address));
        }
        if !self.user_data.is_empty() {
            put(out, pid::USER_DATA, |out| put_octets(out, &self.user_data));
        }
        policies::write(out, &self.qos, self.guid.entity.is_writer());
        put_sentinel(out);
        core::mem::take(out)
    }

    /// Approximate size in memory.
    pub(crate) fn size(&self) -> usize {
        let partitions = self.qos.partitions.iter();
        size_of::<Self>()
            + self.topic.len()
            + self.type_name.len()
            + self.user_data.len()
            + self.unicast.len() * size_of::<SocketAddrV4>()
            + self.qos.representations.len() * 2
            + partitions.map(|p| p.len() + size_of::<String>()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{DestinationOrder, Durability, History, Liveliness, Ownership, Presentation};
    use crate::wire::ids::GuidPrefix;
    use core::time::Duration;

    fn data(id: EntityId) -> EndpointData {
        EndpointData {
            guid: Guid::new(GuidPrefix(*b"\x01\xfeANYBODY-01"), id),
            topic: "rt/chatter".into(),
            type_name: "std_msgs::msg::dds_::String_".into(),
            qos: Qos {
                durability: Durability::TransientLocal,
                history: History::KeepLast(7),
                deadline: Some(Duration::from_millis(100)),
                latency_budget: Duration::from_millis(3),
                liveliness: Liveliness::ManualByTopic,
                lease: Some(Duration::from_secs(2)),
                ownership: Ownership::Exclusive,
                destination_order: DestinationOrder::BySource,
                presentation: Presentation {
                    scope: 1,
                    coherent: true,
                    ordered: true,
                },
                partitions: vec!["a".into(), "longer*".into(), String::new()],
                representations: vec![0, 2],
                ..Qos::writer()
            },
            user_data: b"typehash=RIHS01_00;".to_vec(),
            unicast: vec!["192.0.2.1:7411".parse().expect("an address")],
        }
    }

    #[test]
    fn announcements_make_the_round_trip_and_are_whole_or_refused() {
        let mut writer = data(EntityId::writer(1));
        writer.qos.strength = 5;
        writer.qos.lifespan = Some(Duration::from_secs(9));
        let mut all = data(EntityId::reader(2));
        all.qos.history = History::KeepAll;
        for (data, writes) in [(writer, true), (all, false)] {
            let bytes = data.write();
            assert_eq!(EndpointData::read(&bytes, writes).as_ref(), Ok(&data));
            assert!(
                EndpointData::read(&bytes, !writes).is_err(),
                "it is of the other kind"
            );
            for n in 0..bytes.len() {
                assert!(EndpointData::read(&bytes[..n], writes).is_err(), "cut at {n}");
            }
            assert!(data.size() > 200);
        }
    }

    #[test]
    fn an_announcement_names_its_participant() {
        let bytes = data(EntityId::writer(1)).write();
        let mut from = payload(&bytes).expect("a list");
        let mut parameters = Parameters::new(&mut from);
        let mut named = None;
        while let Some((id, mut value)) = parameters.next().expect("a parameter") {
            if id == pid::PARTICIPANT_GUID {
                named = Some(Guid::read(&mut value).expect("a GUID"));
            }
        }
        let participant = Guid::new(GuidPrefix(*b"\x01\xfeANYBODY-01"), EntityId::PARTICIPANT);
        assert_eq!(named, Some(participant));
    }

    #[test]
    fn missing_parameters_take_the_default_of_a_writer_or_a_reader() {
        let short = |id: EntityId| {
            let mut out = PL_CDR_LE.to_vec();
            let guid = Guid::new(GuidPrefix([7; 12]), id);
            put(&mut out, pid::ENDPOINT_GUID, |out| {
                out.extend_from_slice(&guid.to_bytes())
            });
            put(&mut out, pid::TOPIC_NAME, |out| put_string(out, "t"));
            put(&mut out, pid::TYPE_NAME, |out| put_string(out, "T"));
            put_sentinel(&mut out);
            EndpointData::read(&out, id.is_writer()).map(|d| d.qos)
        };
        assert_eq!(short(EntityId::writer(1)), Ok(Qos::writer()));
        assert_eq!(short(EntityId::reader(1)), Ok(Qos::reader()));
    }

    #[test]
    fn nonsense_is_refused_by_what_it_is() {
        let with = |id: u16, value: &[u8]| {
            let mut bytes = data(EntityId::writer(1)).write();
            bytes.truncate(bytes.len() - 4);
            put(&mut bytes, id, |out| out.extend_from_slice(value));
            put_sentinel(&mut bytes);
            EndpointData::read(&bytes, true).map(drop)
        };
        assert_eq!(with(pid::PAD, &[0; 8]), Ok(()));
        assert_eq!(with(0x0075, &[0; 80]), Ok(()), "type information");
        for id in [
            pid::RELIABILITY,
            pid::DURABILITY,
            pid::LIVELINESS,
            pid::OWNERSHIP,
            pid::HISTORY,
            pid::DESTINATION_ORDER,
        ] {
            assert!(
                matches!(with(id, &[9; 16]), Err(WireError::Invalid { .. })),
                "{id:#x}"
            );
            assert!(
                matches!(with(id, &[]), Err(WireError::Truncated { .. })),
                "{id:#x}"
            );
        }
        assert!(matches!(
            with(pid::PARTITION, &[0xff; 8]),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            with(pid::DATA_REPRESENTATION, &[17, 0, 0, 0]),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            with(pid::TOPIC_NAME, &[0xff; 8]),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            with(pid::TOPIC_NAME, &[1, 0, 0, 0, 0, 0, 0, 0]),
            Err(WireError::Missing { what: "topic" })
        ));
    }
}
