//! Records of MCAP (<https://mcap.dev/spec>): an opcode of one byte, a length of eight, the body.
//!
//! The bodies are parsed here and not by the `mcap` crate, whose `parse_record` allocates what a length field asks for
//! before it checks how much data there is (`mcap` 0.26 on `binrw` 0.15).

use std::io::{Read, Seek};

use stats::Time;

use crate::error::ReadError;
use crate::model::{Channel, ChannelId, Encoding};
use crate::qos::{self, Qos};
use crate::reader::directory::Schema;
use crate::reader::source::{Bytes, Source, text};

pub(crate) mod op {
    pub(crate) const HEADER: u8 = 0x01;
    pub(crate) const FOOTER: u8 = 0x02;
    pub(crate) const SCHEMA: u8 = 0x03;
    pub(crate) const CHANNEL: u8 = 0x04;
    pub(crate) const MESSAGE: u8 = 0x05;
    pub(crate) const CHUNK: u8 = 0x06;
    pub(crate) const CHUNK_INDEX: u8 = 0x08;
    pub(crate) const STATISTICS: u8 = 0x0b;
    pub(crate) const DATA_END: u8 = 0x0f;
}

/// Opcode and length.
pub(crate) const HEAD: u64 = 9;

/// Name of an opcode, for error messages.
pub(crate) fn name(op: u8) -> &'static str {
    match op {
        op::HEADER => "the header",
        op::FOOTER => "the footer",
        op::SCHEMA => "a schema",
        op::CHANNEL => "a channel",
        op::MESSAGE => "a message",
        op::CHUNK => "a chunk",
        op::CHUNK_INDEX => "a chunk's index",
        op::STATISTICS => "the statistics",
        op::DATA_END => "the end of the data",
        _ => "a record",
    }
}

/// A record's head as read from the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) op: u8,
    pub(crate) body: u64,
    pub(crate) len: u64,
}

impl Head {
    pub(crate) fn read<R: Read + Seek>(source: &Source<R>, offset: u64) -> Result<Self, ReadError> {
        let bytes = source.bytes(offset, HEAD, "a record")?;
        let mut cursor = Bytes(&bytes);
        match (cursor.u8(), cursor.u64()) {
            (Some(op), Some(len)) => Ok(Head {
                op,
                body: offset + HEAD,
                len,
            }),
            _ => Err(source.truncated(offset, "a record", HEAD)),
        }
    }

    /// Start of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.body.saturating_add(self.len)
    }
}

pub(crate) struct ChunkHeader<'a> {
    pub(crate) uncompressed: u64,
    pub(crate) crc: u32,
    pub(crate) compression: &'a [u8],
    pub(crate) compressed: u64,
}

/// Splits a chunk's header off its body.
pub(crate) fn chunk_header<'a>(body: &mut Bytes<'a>) -> Option<ChunkHeader<'a>> {
    let (_first, _last) = (body.u64()?, body.u64()?);
    Some(ChunkHeader {
        uncompressed: body.u64()?,
        crc: body.u32()?,
        compression: body.sized()?,
        compressed: body.u64()?,
    })
}

pub(crate) struct MessageHeader {
    pub(crate) channel: u16,
    pub(crate) log_time: Time,
    pub(crate) publish_time: Time,
}

/// Length of [`MessageHeader`] in the file.
pub(crate) const MESSAGE_HEADER: usize = 22;

pub(crate) fn message(body: &[u8]) -> Option<MessageHeader> {
    let mut body = Bytes(body);
    let channel = body.u16()?;
    let _sequence = body.u32()?;
    Some(MessageHeader {
        channel,
        log_time: Time(body.u64()?),
        publish_time: Time(body.u64()?),
    })
}

pub(crate) fn schema(body: &[u8]) -> Option<(u16, Schema)> {
    let mut body = Bytes(body);
    let id = body.u16()?;
    let (name, encoding, definition) = (text(body.sized()?), text(body.sized()?), body.sized()?);
    // Binary schemas (of protobuf, for example) are useless as text.
    let definition = std::str::from_utf8(definition).unwrap_or_default().to_owned();
    Some((
        id,
        Schema {
            name,
            encoding,
            definition,
        },
    ))
}

/// A channel as in the file, to be completed by its schema.
pub(crate) struct RawChannel {
    pub(crate) number: u16,
    pub(crate) schema: u16,
    channel: Channel,
}

impl RawChannel {
    pub(crate) fn with_schema(self, schema: &Schema) -> Channel {
        Channel {
            type_name: schema.name.clone(),
            definition: schema.definition.clone(),
            definition_encoding: schema.encoding.clone(),
            ..self.channel
        }
    }
}

pub(crate) fn channel(body: &[u8]) -> Option<RawChannel> {
    let mut body = Bytes(body);
    let (number, schema) = (body.u16()?, body.u16()?);
    let (topic, encoding) = (text(body.sized()?), text(body.sized()?));
    let mut channel = Channel {
        id: ChannelId(0),
        topic,
        type_name: String::new(),
        md5: None,
        type_hash: None,
        definition: String::new(),
        definition_encoding: String::new(),
        encoding: Encoding::from_name(&encoding),
        latched: false,
        callerid: None,
        qos: Vec::new(),
    };
    let mut metadata = Bytes(body.sized()?);
    while !metadata.0.is_empty() {
        let (key, value) = (metadata.sized()?, metadata.sized()?);
        match key {
            b"md5sum" | b"md5" => channel.md5 = Some(text(value)),
            b"callerid" => channel.callerid = Some(text(value)),
            b"latching" => channel.latched = matches!(value, b"1" | b"true"),
            _ if key == crate::write::TYPE_HASH.as_bytes() => {
                channel.type_hash = Some(text(value)).filter(|hash| !hash.is_empty());
            }
            _ if key == qos::KEY.as_bytes() => channel.qos = Qos::read(&text(value)),
            _ => {}
        }
    }
    Some(RawChannel {
        number,
        schema,
        channel,
    })
}

pub(crate) struct ChunkIndex {
    pub(crate) first: Time,
    pub(crate) last: Time,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) message_index_len: u64,
}

pub(crate) fn chunk_index(body: &[u8]) -> Option<ChunkIndex> {
    let mut body = Bytes(body);
    let (first, last) = (Time(body.u64()?), Time(body.u64()?));
    let (offset, len) = (body.u64()?, body.u64()?);
    let _message_indexes = body.sized()?;
    Some(ChunkIndex {
        first,
        last,
        offset,
        len,
        message_index_len: body.u64()?,
    })
}

#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) messages: u64,
    pub(crate) chunks: u32,
    pub(crate) first: Time,
    pub(crate) last: Time,
    /// Channel number and its messages.
    pub(crate) counts: Vec<(u16, u64)>,
}

pub(crate) fn statistics(body: &[u8]) -> Option<Statistics> {
    let mut body = Bytes(body);
    let messages = body.u64()?;
    let (_schemas, _channels) = (body.u16()?, body.u32()?);
    let (_attachments, _metadata) = (body.u32()?, body.u32()?);
    let chunks = body.u32()?;
    let (first, last) = (Time(body.u64()?), Time(body.u64()?));
    let mut map = Bytes(body.sized()?);
    let mut counts = Vec::new();
    while !map.0.is_empty() {
        // A channel's number has 16 bits.
        if counts.len() > usize::from(u16::MAX) {
            return None;
        }
        counts.push((map.u16()?, map.u64()?));
    }
    Some(Statistics {
        messages,
        chunks,
        first,
        last,
        counts,
    })
}
