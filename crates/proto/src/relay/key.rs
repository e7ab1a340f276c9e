//! Identification of flows.

use crate::announcement::{Announcement, Via};

/// Identifies a topic of a source. Relays and receivers use it to distinguish equal names of several hosts, and topics
/// that one host has for several others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Host id of the source.
    pub source: u64,
    /// Topic name, as it is sent over the air.
    pub topic: String,
    /// The lowest id of its destinations: everything that a host sends to one destination under a name is one topic, so
    /// two topics of that name have no destination in common.
    pub first: u64,
    /// Distinguishes announcements that differ in the source's run, the hosts or the type: what one neighbour announces
    /// about a source's topic does not change what another has announced.
    pub variant: u64,
}

impl FlowKey {
    /// The flow of a topic with this announcement.
    pub fn new(announcement: &Announcement, via: &Via) -> Self {
        FlowKey {
            source: via.source,
            topic: announcement.name.clone(),
            first: via.first(),
            variant: variant(announcement, via),
        }
    }
}

/// FNV-1a of the parts that make an announcement a different one.
fn variant(a: &Announcement, via: &Via) -> u64 {
    let hosts = via.to.iter().flat_map(|h| h.to_le_bytes());
    let offered = a.offers_reliable.map_or(0, |r| 1 + u8::from(r));
    let kinds = [a.ordering as u8, u8::from(a.latched) | offered << 1];
    let texts = [&a.type_name, &a.definition].into_iter();
    let texts = texts.flat_map(|t| (t.len() as u32).to_le_bytes().into_iter().chain(t.bytes()));
    let all = via.run.to_le_bytes().into_iter().chain(hosts).chain(kinds);
    let all = all.chain(a.type_hash).chain(a.flavour.0).chain(texts);
    all.fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}
