//! What a participant announces about itself (DDSI-RTPS 2.5, sections 8.5.3 and 9.6.3.2:
//! `SPDPdiscoveredParticipantData`).

use super::VERSION;
use super::bytes::{put_octets, put_string, put_u32};
use super::error::WireError;
use super::ids::{EntityId, Guid, VendorId};
use super::locator;
use super::parameters::{PL_CDR_LE, Parameters, payload, pid, put, put_sentinel, unknown};
use super::time::{put_duration, read_duration};
use core::time::Duration;
use std::net::SocketAddrV4;

/// Longest user data of a participant or an endpoint, in bytes.
pub(crate) const MAX_USER_DATA: usize = 4096;
/// Longest name of a participant, and domain tag, in bytes.
pub(crate) const MAX_NAME: usize = 256;
/// Maximum number of locators of a kind kept from an announcement; the rest are ignored.
pub(crate) const MAX_LOCATORS: usize = 16;

/// Built-in endpoints of this implementation: SPDP, SEDP of both kinds, participant messages (section 9.3.2.12).
pub(crate) const BUILTIN_ENDPOINTS: u32 = 0x0c3f;

/// A participant as it announces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantData {
    /// Its GUID.
    pub guid: Guid,
    /// Vendor of its implementation.
    pub vendor: VendorId,
    /// Its protocol version.
    pub version: [u8; 2],
    /// Its name, which may be empty.
    pub name: String,
    /// User data from its program; in ROS 2, `enclave=/;`.
    pub user_data: Vec<u8>,
    /// How long it counts as alive without a message; `None` is infinite. DDS' default is 100 s.
    pub lease: Option<Duration>,
    /// Its built-in endpoints, one bit each.
    pub builtin_endpoints: u32,
    /// Its domain ID; older implementations omit it.
    pub domain: Option<u32>,
    /// Domain tag; only participants with the same tag meet.
    pub domain_tag: String,
    /// Addresses for discovery: UDP over IPv4 only.
    pub metatraffic: Vec<SocketAddrV4>,
    /// Addresses for data to its readers, unless they announce others.
    pub unicast: Vec<SocketAddrV4>,
}

impl ParticipantData {
    /// Reads an announcement.
    ///
    /// # Errors
    ///
    /// If it is truncated, names no participant GUID, has texts longer than 256 bytes or user data longer than 4,096,
    /// or has an unknown parameter that must be understood.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let mut out = ParticipantData {
            guid: Guid::default(),
            vendor: VendorId::default(),
            version: VERSION,
            name: String::new(),
            user_data: Vec::new(),
            lease: Some(Duration::from_secs(100)),
            builtin_endpoints: 0,
            domain: None,
            domain_tag: String::new(),
            metatraffic: Vec::new(),
            unicast: Vec::new(),
        };
        let mut from = payload(bytes)?;
        let mut parameters = Parameters::new(&mut from);
        while let Some((id, mut v)) = parameters.next()? {
            match id {
                pid::PARTICIPANT_GUID => out.guid = Guid::read(&mut v)?,
                pid::PROTOCOL_VERSION => out.version = v.array()?,
                pid::VENDOR_ID => out.vendor = VendorId(v.array()?),
                pid::ENTITY_NAME => out.name = v.string(MAX_NAME, "name of a participant")?,
                pid::USER_DATA => out.user_data = v.octets(MAX_USER_DATA, "user data")?.to_vec(),
                pid::LEASE_DURATION => out.lease = read_duration(&mut v)?,
                pid::BUILTIN_ENDPOINT_SET => out.builtin_endpoints = v.u32()?,
                pid::DOMAIN_ID => out.domain = Some(v.u32()?),
                pid::DOMAIN_TAG => out.domain_tag = v.string(MAX_NAME, "domain tag")?,
                pid::METATRAFFIC_UNICAST_LOCATOR => keep(&mut out.metatraffic, locator::read(&mut v)?),
                pid::DEFAULT_UNICAST_LOCATOR => keep(&mut out.unicast, locator::read(&mut v)?),
                _ => unknown(id)?,
            }
        }
        if out.guid.entity != EntityId::PARTICIPANT {
            return Err(WireError::Missing {
                what: "GUID of a participant",
            });
        }
        Ok(out)
    }

    /// Returns the announcement, with its encapsulation.
    pub(crate) fn write(&self) -> Vec<u8> {
        let out = &mut PL_CDR_LE.to_vec();
        put(out, pid::PROTOCOL_VERSION, |out| {
            out.extend_from_slice(&self.version)
        });
        put(out, pid::VENDOR_ID, |out| out.extend_from_slice(&self.vendor.0));
        put(out, pid::PARTICIPANT_GUID, |out| {
            out.extend_from_slice(&self.guid.to_bytes());
        });
        if let Some(domain) = self.domain {
            put(out, pid::DOMAIN_ID, |out| put_u32(out, domain));
        }
        if !self.domain_tag.is_empty() {
            put(out, pid::DOMAIN_TAG, |out| put_string(out, &self.domain_tag));
        }
        for address in &self.metatraffic {
            put(out, pid::METATRAFFIC_UNICAST_LOCATOR, |out| {
                locator::put(out, *address)
            });
        }
        for address in &self.unicast {
            put(out, pid::DEFAULT_UNICAST_LOCATOR, |out| {
                locator::put(out, *address)
            });
        }
        put(out, pid::LEASE_DURATION, |out| put_duration(out, self.lease));
        put(out, pid::BUILTIN_ENDPOINT_SET, |out| {
            put_u32(out, self.builtin_endpoints)
        });
        if !self.name.is_empty() {
            put(out, pid::ENTITY_NAME, |out| put_string(out, &self.name));
        }
        if !self.user_data.is_empty() {
            put(out, pid::USER_DATA, |out| put_octets(out, &self.user_data));
        }
        put_sentinel(out);
        core::mem::take(out)
    }

    /// Approximate size in memory.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>()
            + self.name.len()
            + self.user_data.len()
            + self.domain_tag.len()
            + (self.metatraffic.len() + self.unicast.len()) * size_of::<SocketAddrV4>()
    }
}

pub(super) fn keep(list: &mut Vec<SocketAddrV4>, address: Option<SocketAddrV4>) {
    if let Some(address) = address
        && list.len() < MAX_LOCATORS
        && !list.contains(&address)
    {
        list.push(address);
    }
}

/// Returns the key of a participant or an endpoint, with its encapsulation, for disposing of it.
pub(crate) fn key(id: u16, guid: Guid) -> Vec<u8> {
    let out = &mut PL_CDR_LE.to_vec();
    put(out, id, |out| out.extend_from_slice(&guid.to_bytes()));
    put_sentinel(out);
    core::mem::take(out)
}

/// Reads the GUID from such a key.
pub(crate) fn read_key(id: u16, bytes: &[u8]) -> Result<Guid, WireError> {
    let mut from = payload(bytes)?;
    let mut parameters = Parameters::new(&mut from);
    while let Some((found, mut v)) = parameters.next()? {
        if found == id {
            return Guid::read(&mut v);
        }
    }
    Err(WireError::Missing { what: "GUID" })
}

/// Whether a `BuiltinEndpointSet` has this bit.
pub(crate) fn has(set: u32, bit: u32) -> bool {
    set & 1 << bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ids::GuidPrefix;

    pub(crate) fn data() -> ParticipantData {
        ParticipantData {
            guid: Guid::new(GuidPrefix(*b"\x01\xfeANYBODY-01"), EntityId::PARTICIPANT),
            vendor: VendorId::OURS,
            version: VERSION,
            name: "somebody".into(),
            user_data: b"enclave=/;".to_vec(),
            lease: Some(Duration::from_secs(20)),
            builtin_endpoints: BUILTIN_ENDPOINTS,
            domain: Some(42),
            domain_tag: "lab".into(),
            metatraffic: vec!["192.0.2.1:7410".parse().expect("an address")],
            unicast: vec![
                "192.0.2.1:7411".parse().expect("an address"),
                "198.51.100.1:7411".parse().expect("an address"),
            ],
        }
    }

    #[test]
    fn an_announcement_makes_the_round_trip_and_is_whole_or_refused() {
        let bytes = data().write();
        assert_eq!(ParticipantData::read(&bytes), Ok(data()));
        for n in 0..bytes.len() {
            assert!(ParticipantData::read(&bytes[..n]).is_err(), "cut at {n}");
        }
        assert!(data().size() > 100);
    }

    #[test]
    fn data_without_a_participant_is_refused_and_unknown_parameters_skipped() {
        let with = |id: u16, value: &[u8]| {
            let mut bytes = data().write();
            bytes.truncate(bytes.len() - 4);
            put(&mut bytes, id, |out| out.extend_from_slice(value));
            put_sentinel(&mut bytes);
            ParticipantData::read(&bytes)
        };
        assert_eq!(with(0x8007, &[1; 40]), Ok(data()), "a vendor's");
        assert_eq!(with(0x0077, &[0; 4]), Ok(data()));
        assert_eq!(
            with(0x4abc, &[0; 4]),
            Err(WireError::MustUnderstand { pid: 0x4abc })
        );
        assert!(matches!(
            with(pid::USER_DATA, &[0xff; 8]),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            with(pid::PARTICIPANT_GUID, &[1; 16]),
            Err(WireError::Missing { .. })
        ));
        let many = with(pid::DEFAULT_UNICAST_LOCATOR, &[0; 24]);
        assert_eq!(many.map(|d| d.unicast.len()), Ok(2), "no address");
    }

    #[test]
    fn a_key_is_read_back() {
        let guid = data().guid;
        let bytes = key(pid::PARTICIPANT_GUID, guid);
        assert_eq!(read_key(pid::PARTICIPANT_GUID, &bytes), Ok(guid));
        assert!(read_key(pid::ENDPOINT_GUID, &bytes).is_err());
        (0..bytes.len() - 4).for_each(|n| assert!(read_key(pid::PARTICIPANT_GUID, &bytes[..n]).is_err()));
    }
}
