//! Writes messages: a header, then submessages, all little endian (DDSI-RTPS 2.5, section 9.4).

use super::VERSION;
use super::bytes::{put_u16, put_u32};
use super::ids::{EntityId, GuidPrefix, VendorId, put_sequence};
use super::inline::InlineQos;
use super::kind;
use super::submessage::{
    AckNack, FINAL, FRAGMENT_OF_KEY, Gap, HAS_DATA, HAS_KEY, Heartbeat, INLINE, INVALIDATE, LITTLE, NackFrag,
    Payload,
};
use super::time::Timestamp;

/// Writes the header of a message.
pub(crate) fn header(out: &mut Vec<u8>, vendor: VendorId, source: GuidPrefix) {
    out.extend_from_slice(b"RTPS");
    out.extend_from_slice(&VERSION);
    out.extend_from_slice(&vendor.0);
    out.extend_from_slice(&source.0);
}

/// Writes a submessage and fills in its length afterwards.
fn submessage(out: &mut Vec<u8>, id: u8, flags: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[id, flags | LITTLE, 0, 0]);
    let at = out.len();
    write(out);
    // A submessage too long for the field must be the last of its datagram: 0 means "up to the end".
    let length = u16::try_from(out.len() - at).unwrap_or(0);
    if let Some(field) = out.get_mut(at - 2..at) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

pub(crate) fn info_dst(out: &mut Vec<u8>, destination: GuidPrefix) {
    submessage(out, kind::INFO_DST, 0, |out| {
        out.extend_from_slice(&destination.0)
    });
}

pub(crate) fn info_ts(out: &mut Vec<u8>, timestamp: Option<Timestamp>) {
    match timestamp {
        Some(t) => submessage(out, kind::INFO_TS, 0, |out| t.put(out)),
        None => submessage(out, kind::INFO_TS, INVALIDATE, |_| {}),
    }
}

/// Sender and receiver of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence: i64,
}

fn head(out: &mut Vec<u8>, route: Route, offset: u16) {
    put_u16(out, 0);
    put_u16(out, offset);
    out.extend_from_slice(&route.reader.0);
    out.extend_from_slice(&route.writer.0);
    put_sequence(out, route.sequence);
}

pub(crate) fn data(out: &mut Vec<u8>, route: Route, inline: &InlineQos, payload: Payload<'_>) {
    let (has, bytes) = match payload {
        Payload::None => (0, &[][..]),
        Payload::Data(bytes) => (HAS_DATA, bytes),
        Payload::Key(bytes) => (HAS_KEY, bytes),
    };
    let flags = if inline.is_empty() { has } else { has | INLINE };
    submessage(out, kind::DATA, flags, |out| {
        head(out, route, 16);
        if !inline.is_empty() {
            inline.put(out);
        }
        out.extend_from_slice(bytes);
        // Submessages start at multiples of 4 (section 9.4.1).
        out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
    });
}

/// Writes fragment `number`, from 1, of a sample with the payload `whole`. Writes nothing if there is no such fragment.
pub(crate) fn data_frag(
    out: &mut Vec<u8>,
    route: Route,
    inline: &InlineQos,
    number: u32,
    fragment_size: u16,
    whole: Payload<'_>,
) {
    let (key, whole) = match whole {
        Payload::None => return,
        Payload::Data(bytes) => (0, bytes),
        Payload::Key(bytes) => (FRAGMENT_OF_KEY, bytes),
    };
    let from = (number as usize).saturating_sub(1) * usize::from(fragment_size);
    let to = (from + usize::from(fragment_size)).min(whole.len());
    let Some(bytes) = whole.get(from..to).filter(|b| !b.is_empty()) else {
        return;
    };
    let flags = if inline.is_empty() { key } else { key | INLINE };
    submessage(out, kind::DATA_FRAG, flags, |out| {
        head(out, route, 28);
        put_u32(out, number);
        put_u16(out, 1);
        put_u16(out, fragment_size);
        put_u32(out, whole.len() as u32);
        if !inline.is_empty() {
            inline.put(out);
        }
        out.extend_from_slice(bytes);
        out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
    });
}

pub(crate) fn heartbeat(out: &mut Vec<u8>, h: &Heartbeat) {
    let flags = if h.last_word { FINAL } else { 0 };
    submessage(out, kind::HEARTBEAT, flags, |out| {
        out.extend_from_slice(&h.reader.0);
        out.extend_from_slice(&h.writer.0);
        put_sequence(out, h.first);
        put_sequence(out, h.last);
        put_u32(out, h.count);
    });
}

pub(crate) fn acknack(out: &mut Vec<u8>, a: &AckNack) {
    let flags = if a.last_word { FINAL } else { 0 };
    submessage(out, kind::ACKNACK, flags, |out| {
        out.extend_from_slice(&a.reader.0);
        out.extend_from_slice(&a.writer.0);
        a.missing.put(out);
        put_u32(out, a.count);
    });
}

pub(crate) fn nack_frag(out: &mut Vec<u8>, n: &NackFrag) {
    submessage(out, kind::NACK_FRAG, 0, |out| {
        out.extend_from_slice(&n.reader.0);
        out.extend_from_slice(&n.writer.0);
        put_sequence(out, n.sequence);
        n.missing.put_fragments(out);
        put_u32(out, n.count);
    });
}

pub(crate) fn gap(out: &mut Vec<u8>, g: &Gap) {
    submessage(out, kind::GAP, 0, |out| {
        out.extend_from_slice(&g.reader.0);
        out.extend_from_slice(&g.writer.0);
        put_sequence(out, g.first);
        g.set.put(out);
    });
}
