//! Encoding of numbers and text as bytes.

use crate::subscriber::QueuePolicy;
use crate::topic::{Flavour, MAX_NAME, Offer, Reliability};

/// The start of a text, at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let end = (0..=text.len().min(max))
        .rev()
        .find(|i| text.is_char_boundary(*i));
    &text[..end.unwrap_or(0)]
}

fn queue_code(policy: QueuePolicy) -> u8 {
    match policy {
        QueuePolicy::DropOldest => 0,
        QueuePolicy::DropNewest => 1,
    }
}

fn reliability_code(reliability: Option<Reliability>) -> u8 {
    match reliability {
        None => 0,
        Some(Reliability::Reliable) => 1,
        Some(Reliability::BestEffort) => 2,
    }
}

pub(crate) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, v: u8) {
        self.0.push(v);
    }
    pub(crate) fn u16(&mut self, v: u16) {
        self.0.extend(v.to_le_bytes());
    }
    pub(crate) fn u32(&mut self, v: u32) {
        self.0.extend(v.to_le_bytes());
    }
    pub(crate) fn u64(&mut self, v: u64) {
        self.0.extend(v.to_le_bytes());
    }
    pub(crate) fn queue(&mut self, policy: QueuePolicy) {
        self.u8(queue_code(policy));
    }
    pub(super) fn flavour(&mut self, flavour: &Flavour) {
        self.0.extend(flavour.to_bytes());
    }
    pub(crate) fn offer(&mut self, offer: &Offer) {
        self.text(&offer.node);
        self.u32(offer.history);
        self.u8(reliability_code(offer.reliability));
        self.u32(offer.depth);
    }
    /// Names and texts were bounded on entry, far below 65,536 bytes.
    pub(super) fn text(&mut self, text: &str) {
        self.u16(text.len() as u16);
        self.0.extend(text.as_bytes());
    }
}

pub(crate) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self, max: usize) -> Option<String> {
        let len = usize::from(self.u16()?);
        let text = std::str::from_utf8(self.bytes(len)?).ok()?;
        (len <= max).then(|| text.to_owned())
    }

    /// Reads a name that is safe to print.
    pub(super) fn name(&mut self, max: usize) -> Option<String> {
        self.text(max).filter(|name| stats::text::is_plain(name))
    }

    pub(super) fn long_text(&mut self, max: usize) -> Option<&'a str> {
        let len = self.u32()? as usize;
        if len > max {
            return None;
        }
        std::str::from_utf8(self.bytes(len)?).ok()
    }

    pub(crate) fn queue(&mut self) -> Option<QueuePolicy> {
        let code = self.u8()?;
        [QueuePolicy::DropOldest, QueuePolicy::DropNewest]
            .into_iter()
            .find(|p| queue_code(*p) == code)
    }

    pub(super) fn flavour(&mut self) -> Option<Flavour> {
        Flavour::from_bytes(&self.array()?)
    }

    pub(crate) fn offer(&mut self) -> Option<Offer> {
        let (node, history) = (self.name(MAX_NAME)?, self.u32()?);
        let code = self.u8()?;
        let reliability = [None, Some(Reliability::Reliable), Some(Reliability::BestEffort)]
            .into_iter()
            .find(|r| reliability_code(*r) == code)?;
        Some(Offer {
            node,
            history,
            reliability,
            depth: self.u32()?,
        })
    }
}
