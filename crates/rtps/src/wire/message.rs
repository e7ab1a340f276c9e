//! A message: its header, and its submessages with the context that earlier ones set (DDSI-RTPS 2.5, sections 8.3.4 and
//! 9.4.4).

use super::bytes::Reader;
use super::error::WireError;
use super::ids::GuidPrefix;
use super::kind;
use super::submessage::{LITTLE, Submessage};
use super::time::Timestamp;

/// Length of the header of a message.
pub(crate) const HEADER: usize = 20;

/// Iterates over the submessages of a datagram that are for a reader or a writer.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    bytes: Reader<'a>,
    source: GuidPrefix,
    destination: GuidPrefix,
    timestamp: Option<Timestamp>,
    failed: bool,
}

/// A submessage, and the context that the ones before it set.
#[derive(Debug, PartialEq)]
pub(crate) struct Item<'a> {
    pub(crate) source: GuidPrefix,
    /// All zero for every participant.
    pub(crate) destination: GuidPrefix,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) submessage: Submessage<'a>,
}

impl<'a> Message<'a> {
    pub(crate) fn new(datagram: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(datagram, true);
        if r.array::<4>().map_err(|_| WireError::Foreign)? != *b"RTPS" {
            return Err(WireError::Foreign);
        }
        let [major, minor] = r.array()?;
        if major != 2 {
            return Err(WireError::Version { major, minor });
        }
        // Skip the vendor, which does not matter.
        r.take(2)?;
        Ok(Message {
            source: GuidPrefix(r.array()?),
            bytes: r,
            destination: GuidPrefix::default(),
            timestamp: None,
            failed: false,
        })
    }

    /// Returns the next submessage for a reader or a writer. After an error there is none.
    fn next_item(&mut self) -> Result<Option<Item<'a>>, WireError> {
        while !self.bytes.is_empty() {
            let id = self.bytes.u8()?;
            let flags = self.bytes.u8()?;
            self.bytes.set_little(flags & LITTLE != 0);
            let length = usize::from(self.bytes.u16()?);
            // Length 0 means "up to the end", except for the two kinds that may be empty (section 9.4.5.1.3).
            let body = if length == 0 && id != kind::PAD && id != kind::INFO_TS {
                self.bytes.rest()
            } else {
                self.bytes.take(length)?
            };
            match Submessage::read(id, flags, body)? {
                Submessage::InfoTs(timestamp) => self.timestamp = timestamp,
                Submessage::InfoDst(prefix) => self.destination = prefix,
                Submessage::InfoSrc(prefix) => {
                    self.source = prefix;
                    self.destination = GuidPrefix::default();
                    self.timestamp = None;
                }
                Submessage::Skipped => {}
                submessage => {
                    return Ok(Some(Item {
                        source: self.source,
                        destination: self.destination,
                        timestamp: self.timestamp,
                        submessage,
                    }));
                }
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<Item<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.next_item();
        self.failed = item.is_err();
        item.transpose()
    }
}

#[cfg(test)]
mod tests;
