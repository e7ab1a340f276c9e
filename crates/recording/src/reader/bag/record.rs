//! Records and header fields of the bag format 2.0 (<http://wiki.ros.org/Bags/Format/2.0>).
//!
//! A record is `header_len: u32, header, data_len: u32, data`; a header is a sequence of
//! `field_len: u32, name=value`. All numbers are little-endian.

use std::io::{Read, Seek};

use stats::Time;

use crate::error::ReadError;
use crate::model::Channel;
use crate::reader::source::{Bytes, Source, text};

pub(crate) mod op {
    pub(crate) const MESSAGE: u8 = 2;
    pub(crate) const BAG_HEADER: u8 = 3;
    pub(crate) const INDEX: u8 = 4;
    pub(crate) const CHUNK: u8 = 5;
    pub(crate) const CHUNK_INFO: u8 = 6;
    pub(crate) const CONNECTION: u8 = 7;
}

/// Headers hold a handful of short fields; definitions are in the data.
const HEADER_LIMIT: u64 = 1 << 20;

/// A record's head as read from the file.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) offset: u64,
    header: Vec<u8>,
    /// Start of its data.
    pub(crate) data: u64,
    pub(crate) data_len: u64,
}

impl Head {
    pub(crate) fn read<R: Read + Seek>(
        source: &Source<R>,
        offset: u64,
        what: &'static str,
    ) -> Result<Self, ReadError> {
        // A truncated head is reported at the start of the record, not of the truncated field.
        let at_start = |error| match error {
            ReadError::Truncated {
                path, end, missing, ..
            } => ReadError::Truncated {
                path,
                offset,
                what,
                end,
                missing,
            },
            other => other,
        };
        let length = |at| {
            source
                .bytes(at, 4, what)
                .map_err(at_start)
                .map(|bytes| le(&bytes))
        };
        let header_len = length(offset)?;
        source.check(offset, "a record header", header_len, HEADER_LIMIT)?;
        let header = source.bytes(offset + 4, header_len, what).map_err(at_start)?;
        let data_len = length(offset + 4 + header_len)?;
        Ok(Head {
            offset,
            header,
            data: offset + 8 + header_len,
            data_len,
        })
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields(&self.header)
    }

    /// Start of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.data.saturating_add(self.data_len)
    }
}

/// The fields of a header, or of a connection's data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The first field of that name. Invalid data ends the search.
    pub(crate) fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        let mut fields = Bytes(self.0);
        while let Some(field) = fields.sized() {
            let equals = field.iter().position(|&byte| byte == b'=')?;
            if &field[..equals] == name.as_bytes() {
                return Some(&field[equals + 1..]);
            }
        }
        None
    }

    /// Whether all bytes are fields.
    pub(crate) fn are_whole(&self) -> bool {
        let mut fields = Bytes(self.0);
        while fields.sized().is_some_and(|field| field.contains(&b'=')) {}
        fields.0.is_empty()
    }

    pub(crate) fn op(&self) -> Option<u8> {
        match self.bytes("op")? {
            &[op] => Some(op),
            _ => None,
        }
    }

    pub(crate) fn u32(&self, name: &str) -> Option<u32> {
        self.bytes(name)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, name: &str) -> Option<u64> {
        self.bytes(name)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Seconds and nanoseconds, 32 bits each.
    pub(crate) fn time(&self, name: &str) -> Option<Time> {
        let mut bytes = Bytes(self.bytes(name)?);
        let (secs, nsecs) = (bytes.u32()?, bytes.u32()?);
        Some(Time(u64::from(secs) * 1_000_000_000 + u64::from(nsecs)))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(text)
    }
}

/// Splits the first record off records in memory.
pub(crate) fn split<'a>(records: &mut Bytes<'a>) -> Option<(Fields<'a>, &'a [u8])> {
    let mut rest = *records;
    let header = rest.sized()?;
    let data = rest.sized()?;
    *records = rest;
    Some((Fields(header), data))
}

/// A connection record's number and channel; `None` if a required field is missing.
pub(crate) fn connection(header: Fields<'_>, data: &[u8]) -> Option<(u32, Channel)> {
    let number = header.u32("conn")?;
    let topic = header.text("topic")?;
    let fields = Fields(data);
    let type_name = fields.text("type")?;
    // A publisher of any type announces `*`, which is as good as unknown.
    let md5 = fields.text("md5sum").filter(|md5| md5 != "*");
    let definition = fields.text("message_definition").unwrap_or_default();
    let mut channel = Channel::ros1(&topic, &type_name, "", &definition);
    channel.md5 = md5;
    channel.latched = fields.bytes("latching") == Some(b"1");
    channel.callerid = fields.text("callerid");
    Some((number, channel))
}

fn le(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}
