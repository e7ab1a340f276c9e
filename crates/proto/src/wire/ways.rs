//! Frames for route discovery, and for messages that follow a route.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;
use crate::route::{MAX_HOPS, Route};

/// Most entries in one frame.
pub(crate) const MAX_ENTRIES: usize = 64;

/// An advertised route from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The reachable host.
    pub(crate) host: u64,
    /// Its own sequence number of its advertisement, as it was when this entry left it.
    pub(crate) seq: u64,
    /// Airtime of a full datagram from the sender to it, in µs; 0: it is no longer reachable.
    pub(crate) cost: u64,
    /// Hops from the sender to it.
    pub(crate) hops: u8,
}

/// Most bytes that an entry takes.
pub(crate) const ENTRY_ROOM: usize = 8 + 8 + 8 + 1;

/// A probe of a neighbour, the answer to its last probe, and a part of the sender's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Numbers these frames to the receiver, from 1.
    pub(crate) serial: u64,
    /// The highest serial received from the receiver; 0 if none.
    pub(crate) echo: u64,
    /// Number of such frames received from the receiver in its session.
    pub(crate) heard: u64,
    /// How long ago the frame of `echo` arrived, in µs.
    pub(crate) held: u64,
    /// The sequence number of the sender's advertisement.
    pub(crate) seq: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Ways {
    /// Most bytes without entries, including the kind.
    pub(crate) const ROOM: usize = 1 + 5 * 8 + 1;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.serial, self.echo, self.heard, self.held, self.seq] {
            put_varint(out, n);
        }
        put_varint(out, self.entries.len() as u64);
        for e in &self.entries {
            out.extend_from_slice(&e.host.to_le_bytes());
            put_varint(out, e.seq);
            put_varint(out, e.cost);
            out.push(e.hops);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let mut numbers = [0; 5];
        for n in &mut numbers {
            *n = r.varint()?;
        }
        let [serial, echo, heard, held, seq] = numbers;
        let at = r.at();
        let count = r.varint()?;
        if serial == 0 || count > MAX_ENTRIES as u64 {
            return Err(PacketError::Invalid { what: "ways", at });
        }
        let entry = |r: &mut Reader<'_>| {
            Ok(Entry {
                host: r.u64()?,
                seq: r.varint()?,
                cost: r.varint()?,
                hops: r.u8()?,
            })
        };
        let entries = (0..count).map(|_| entry(r)).collect::<Result<_, PacketError>>()?;
        Ok(Ways {
            serial,
            echo,
            heard,
            held,
            seq,
            entries,
        })
    }
}

/// Most bytes of a [`Route`] in front of a fragment, including the kind.
pub(crate) const ROUTE_ROOM: usize = 1 + 8 + 1 + 8 + 5;

/// `left`: milliseconds until the message expires; more than 0.
pub(super) fn put_route(route: &Route, left: Option<u32>, out: &mut Vec<u8>) {
    put_varint(out, route.number);
    out.push(route.hops);
    put_varint(out, route.to);
    if let Some(left) = left {
        put_varint(out, left.into());
    }
}

pub(super) fn left(r: &mut Reader<'_>) -> Result<u32, PacketError> {
    let at = r.at();
    let left = u32::try_from(r.varint()?).ok().filter(|ms| *ms > 0);
    left.ok_or(PacketError::Invalid { what: "left", at })
}

pub(super) fn route(r: &mut Reader<'_>) -> Result<Route, PacketError> {
    let at = r.at();
    let route = Route {
        number: r.varint()?,
        hops: r.u8()?,
        to: r.varint()?,
    };
    if route.hops > MAX_HOPS || route.to == 0 {
        return Err(PacketError::Invalid { what: "route", at });
    }
    Ok(route)
}
