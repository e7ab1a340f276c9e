//! A message: its header, and its submessages with what earlier ones say of them (DDSI-RTPS 2.5, sections 8.3.4 and 9.4.4).

use super::bytes::Reader;
use super::error::WireError;
use super::ids::GuidPrefix;
use super::kind;
use super::submessage::{LITTLE, Submessage};
use super::time::Timestamp;

/// Length of the header of a message.
pub(crate) const HEADER: usize = 20;

/// The submessages of a datagram that are for a reader or a writer, one after the other.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    bytes: Reader<'a>,
    source: GuidPrefix,
    destination: GuidPrefix,
    timestamp: Option<Timestamp>,
    failed: bool,
}

/// One submessage, and what the ones before it say of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Item<'a> {
    pub(crate) source: GuidPrefix,
    /// All zero for everybody.
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
        // The vendor, which says nothing that matters.
        r.take(2)?;
        Ok(Message {
            source: GuidPrefix(r.array()?),
            bytes: r,
            destination: GuidPrefix::default(),
            timestamp: None,
            failed: false,
        })
    }

    /// The next submessage with something for a reader or a writer. After an error there is none.
    fn next_item(&mut self) -> Result<Option<Item<'a>>, WireError> {
        while !self.bytes.is_empty() {
            let id = self.bytes.u8()?;
            let flags = self.bytes.u8()?;
            self.bytes.set_little(flags & LITTLE != 0);
            let length = usize::from(self.bytes.u16()?);
            // Length 0 is "up to the end" but for the two that may be empty (section 9.4.5.1.3).
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
