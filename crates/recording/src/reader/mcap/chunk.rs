//! Decodes one chunk of an MCAP file, or a run of records outside chunks.

use std::io::{Read, Seek};

use ::mcap::McapError;
use ::mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::record::{self, HEAD, Head, MESSAGE_HEADER, op};
use crate::error::ReadError;
use crate::reader::block::{Block, Decoded, Entry};
use crate::reader::directory::{Access, Schema};
use crate::reader::source::{Bytes, Source, text};
use crate::reader::{Limits, TEXTS};

/// Reads and decodes the block. Of a damaged block, the messages before the damage are returned; of a chunk with a
/// wrong checksum, none.
pub(crate) fn decode<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    block: &Block,
    access: Access<'_>,
) -> Decoded {
    let mut collector = Collector {
        source,
        limits,
        block,
        access,
        decoded: Decoded::default(),
    };
    let result = collector.read();
    let mut decoded = collector.decoded;
    if let Err(error) = result {
        decoded.note(error);
    }
    decoded.sort();
    decoded
}

struct Collector<'a, R> {
    source: &'a Source<R>,
    limits: &'a Limits,
    block: &'a Block,
    access: Access<'a>,
    decoded: Decoded,
}

impl<R: Read + Seek> Collector<'_, R> {
    fn read(&mut self) -> Result<(), ReadError> {
        let offset = self.block.offset;
        let head = Head::read(self.source, offset)?;
        if head.op == op::CHUNK {
            return self.chunk(&head);
        }
        if self.block.len == 0 {
            let found = format!("{} (opcode {:#04x})", record::name(head.op), head.op);
            return Err(self.source.malformed(offset, "a chunk, as the index says", found));
        }
        self.source
            .check(offset, "a run of records", self.block.len, self.limits.block)?;
        let bytes = self.source.bytes(offset, self.block.len, "a run of records")?;
        self.records(&bytes, Some(offset))
    }

    fn chunk(&mut self, head: &Head) -> Result<(), ReadError> {
        let offset = self.block.offset;
        self.source
            .check(offset, "a chunk", head.len, self.limits.block)?;
        let cut = head.len.saturating_sub(self.source.remaining(head.body));
        let body = self.source.bytes(head.body, head.len - cut, "a chunk")?;
        let truncated = || self.source.truncated(offset, "a chunk", cut);
        let mut payload = Bytes(&body);
        let Some(header) = record::chunk_header(&mut payload) else {
            return Err(if cut > 0 {
                truncated()
            } else {
                self.source
                    .malformed(offset, "a chunk with a header", format!("{} bytes", head.len))
            });
        };
        self.source.check(
            offset,
            "an uncompressed chunk",
            header.uncompressed,
            self.limits.block,
        )?;
        let held = payload.0.len() as u64 + cut;
        if header.compressed > held {
            let found = format!("{held} bytes instead of {}", header.compressed);
            return Err(self
                .source
                .malformed(offset, "a chunk as long as its header says", found));
        }
        let payload = usize::try_from(header.compressed)
            .ok()
            .and_then(|length| payload.0.get(..length))
            .unwrap_or(payload.0);
        let result = match header.compression {
            b"" => self.uncompressed(
                payload,
                &header,
                offset + HEAD + (body.len() - payload.len()) as u64,
                cut,
            ),
            b"lz4" => self.compressed(head, &body, "lz4", header.uncompressed),
            b"zstd" => self.compressed(head, &body, "zstd", header.uncompressed),
            other => Err(ReadError::UnknownCompression {
                path: self.source.path().to_owned(),
                offset,
                name: text(other),
            }),
        };
        match result {
            Err(ReadError::UnknownCompression { .. }) => result,
            _ if cut > 0 => Err(self.source.truncated(offset, "a chunk", cut)),
            _ => result,
        }
    }

    fn uncompressed(
        &mut self,
        payload: &[u8],
        header: &record::ChunkHeader<'_>,
        base: u64,
        cut: u64,
    ) -> Result<(), ReadError> {
        if cut == 0 {
            if header.uncompressed != header.compressed {
                let found = format!("{} bytes instead of {}", header.compressed, header.uncompressed);
                return Err(self.source.malformed(
                    self.block.offset,
                    "an uncompressed chunk as long as its header says",
                    found,
                ));
            }
            let calculated = crc32fast::hash(payload);
            if header.crc != 0 && header.crc != calculated {
                return Err(self.bad_crc(header.crc, calculated));
            }
        }
        self.records(payload, Some(base))
    }

    /// Records in memory; `base` is the file offset of the first.
    fn records(&mut self, bytes: &[u8], base: Option<u64>) -> Result<(), ReadError> {
        let mut rest = Bytes(bytes);
        while !rest.0.is_empty() {
            let offset = base.map_or(self.block.offset, |base| {
                base + (bytes.len() - rest.0.len()) as u64
            });
            let mut split = || {
                let (op, length) = (rest.u8()?, rest.u64()?);
                Some((op, rest.take(usize::try_from(length).ok()?)?))
            };
            let Some((op, body)) = split() else {
                return Err(self.source.malformed(offset, "a whole record", "one that is cut"));
            };
            self.take(op, body, offset)?;
        }
        Ok(())
    }

    /// Feeds the chunk record to the `mcap` crate, which decompresses it and checks its CRC at the end. (Uncompressed
    /// chunks are decoded here: an inner record longer than its chunk makes mcap 0.26 subtract below zero.)
    fn compressed(
        &mut self,
        head: &Head,
        body: &[u8],
        compression: &'static str,
        uncompressed: u64,
    ) -> Result<(), ReadError> {
        let options = LinearReaderOptions::default()
            .with_skip_start_magic(true)
            .with_skip_end_magic(true)
            .with_validate_chunk_crcs(true)
            .with_record_length_limit(usize::try_from(uncompressed.max(1 << 16)).unwrap_or(usize::MAX));
        let mut reader = LinearReader::new_with_options(options);
        let mut prefix = [op::CHUNK; HEAD as usize];
        prefix[1..].copy_from_slice(&head.len.to_le_bytes());
        let mut input = prefix.chain(body);
        let mut total: u64 = 0;
        // An excessive length does not end the reading: the checksum at the end shows whether any of the chunk can be
        // trusted.
        let mut result = Ok(());
        loop {
            let (op, data) = match reader.next_event() {
                None => return result,
                Some(Ok(LinearReadEvent::ReadRequest(wanted))) => {
                    // Never more than the available bytes: the reader would allocate what a wrong length asks for.
                    let wanted = wanted.min(1 << 16);
                    let read = input.read(reader.insert(wanted)).unwrap_or(0);
                    reader.notify_read(read);
                    continue;
                }
                Some(Ok(LinearReadEvent::Record { data, opcode })) => (opcode, data),
                Some(Err(error @ McapError::BadChunkCrc { .. })) => {
                    return Err(self.translate(error, compression));
                }
                Some(Err(error)) => return result.and(Err(self.translate(error, compression))),
            };
            total = total.saturating_add(HEAD + data.len() as u64);
            if result.is_ok() {
                let fits = self
                    .source
                    .check(self.block.offset, "an uncompressed chunk", total, uncompressed);
                result = fits.and_then(|()| self.take(op, data, self.block.offset));
            }
        }
    }

    /// Takes a record. The lengths of the other records are known: an invalid record does not affect them, unless it
    /// exceeds a limit of the whole chunk.
    fn take(&mut self, op: u8, body: &[u8], offset: u64) -> Result<(), ReadError> {
        match self.record(op, body, offset) {
            Err(error @ ReadError::TooLarge { what, .. }) if what != TEXTS => Err(error),
            Err(error) => {
                self.decoded.note(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn record(&mut self, op: u8, body: &[u8], offset: u64) -> Result<(), ReadError> {
        let short =
            |source: &Source<R>| source.malformed(offset, "a record as long as its fields", record::name(op));
        match op {
            op::MESSAGE => {
                let message = record::message(body).ok_or_else(|| short(self.source))?;
                let number = u32::from(message.channel);
                let channel =
                    self.access
                        .directory()
                        .find(number)
                        .ok_or_else(|| ReadError::UnknownChannel {
                            path: self.source.path().to_owned(),
                            offset,
                            channel: number,
                            messages: 1,
                        })?;
                Decoded::check_entries(self.decoded.entries.len(), self.source, self.limits, offset)?;
                let data = &body[MESSAGE_HEADER..];
                self.decoded.entries.push(Entry {
                    log_time: message.log_time,
                    publish_time: message.publish_time,
                    channel,
                    start: self.decoded.data.len(),
                    len: data.len(),
                });
                self.decoded.data.extend_from_slice(data);
                Ok(())
            }
            op::SCHEMA | op::CHANNEL => define(self.source, self.limits, &mut self.access, op, body, offset),
            op::CHUNK => Err(self.source.malformed(offset, "no chunk within a chunk", "one")),
            _ => Ok(()),
        }
    }

    fn bad_crc(&self, saved: u32, calculated: u32) -> ReadError {
        let found = format!("{calculated:08x} instead of {saved:08x}");
        self.source.malformed(
            self.block.offset,
            "a chunk whose CRC-32 is as its header says",
            found,
        )
    }

    fn translate(&mut self, error: McapError, compression: &'static str) -> ReadError {
        let offset = self.block.offset;
        match error {
            McapError::BadChunkCrc { saved, calculated } => {
                self.decoded = Decoded::default();
                self.bad_crc(saved, calculated)
            }
            McapError::DecompressionError(_) | McapError::Io(_) => ReadError::Decompress {
                path: self.source.path().to_owned(),
                offset,
                compression,
                detail: match std::error::Error::source(&error) {
                    Some(source) => source.to_string(),
                    None => error.to_string(),
                },
            },
            other => self
                .source
                .malformed(offset, "a well-formed chunk", other.to_string()),
        }
    }
}

/// Adds a schema or channel to the directory, unless it is defined already.
pub(crate) fn define<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    access: &mut Access<'_>,
    op: u8,
    body: &[u8],
    offset: u64,
) -> Result<(), ReadError> {
    let Some(directory) = access.filling() else {
        return Ok(());
    };
    let short = || source.malformed(offset, "a record as long as its fields", record::name(op));
    let defined = if op == op::SCHEMA {
        let (id, schema) = record::schema(body).ok_or_else(short)?;
        // Readers must ignore schema 0.
        if id == 0 {
            Ok(())
        } else {
            directory.define_schema(id, schema, limits.index)
        }
    } else {
        let raw = record::channel(body).ok_or_else(short)?;
        if access.undefined(u32::from(raw.number)).is_none() {
            return Ok(());
        }
        let Some(directory) = access.filling() else {
            return Ok(());
        };
        let none = Schema::default();
        // A schema that is not defined yet costs the channel its type, not the chunk.
        let schema = directory.schema(raw.schema).unwrap_or(&none);
        let (number, channel) = (u32::from(raw.number), raw.with_schema(schema));
        directory.define(number, channel, limits.index)
    };
    match defined {
        Ok(()) => Ok(()),
        Err(length) => source.check(offset, TEXTS, length, limits.index),
    }
}
