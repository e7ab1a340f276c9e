//! Decodes one chunk of a bag, or a run of records outside chunks.

use std::io::{Read, Seek};

use bzip2::read::BzDecoder;
use lz4_flex::frame::FrameDecoder;

use super::record::{Fields, Head, connection, op, split};
use crate::error::ReadError;
use crate::reader::block::{Block, Decoded, Entry};
use crate::reader::directory::Access;
use crate::reader::source::{Bytes, Source, text};
use crate::reader::{Limits, TEXTS};

/// Reads and decodes the block. Of a damaged block, the messages before the damage are returned.
pub(crate) fn decode<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    block: &Block,
    access: Access<'_>,
) -> Decoded {
    let head = match Head::read(source, block.offset, "a chunk") {
        Ok(head) => head,
        Err(error) => return Decoded::failed(error),
    };
    let loaded = if head.fields().op() == Some(op::CHUNK) {
        load_chunk(source, limits, &head)
    } else if block.len > 0 {
        source
            .check(block.offset, "a run of records", block.len, limits.block)
            .and_then(|()| source.bytes(block.offset, block.len, "a run of records"))
            .map(|data| Loaded {
                data,
                base: Some(block.offset),
                damage: None,
            })
    } else {
        Err(source.malformed(
            block.offset,
            "a chunk, as the index says",
            found_op(head.fields()),
        ))
    };
    match loaded {
        Ok(loaded) => parse(source, limits, block, loaded, access),
        Err(error) => Decoded::failed(error),
    }
}

/// Uncompressed records.
struct Loaded {
    data: Vec<u8>,
    /// File offset of the data's first byte, if the data is uncompressed in the file.
    base: Option<u64>,
    damage: Option<ReadError>,
}

fn load_chunk<R: Read + Seek>(source: &Source<R>, limits: &Limits, head: &Head) -> Result<Loaded, ReadError> {
    source.check(head.offset, "a chunk", head.data_len, limits.block)?;
    let compression = head.fields().bytes("compression").unwrap_or(b"none");
    let size = head.fields().u32("size").map(u64::from);
    if let Some(size) = size {
        source.check(head.offset, "an uncompressed chunk", size, limits.block)?;
    }
    let cut = head.data_len.saturating_sub(source.remaining(head.data));
    let raw = source.bytes(head.data, head.data_len - cut, "a chunk")?;
    // One byte more than allowed is enough to detect excess data.
    let most = size.unwrap_or(limits.block).saturating_add(1);
    let mut data = Vec::new();
    let (name, result) = match compression {
        b"none" | b"" => {
            data = raw;
            ("no", Ok(0))
        }
        b"bz2" => (
            "bz2",
            BzDecoder::new(raw.as_slice()).take(most).read_to_end(&mut data),
        ),
        b"lz4" => (
            "lz4",
            FrameDecoder::new(raw.as_slice())
                .take(most)
                .read_to_end(&mut data),
        ),
        other => {
            return Err(ReadError::UnknownCompression {
                path: source.path().to_owned(),
                offset: head.offset,
                name: text(other),
            });
        }
    };
    let length = data.len() as u64;
    let damage = if cut > 0 {
        Some(source.truncated(head.offset, "a chunk", cut))
    } else if let Err(error) = result {
        Some(ReadError::Decompress {
            path: source.path().to_owned(),
            offset: head.offset,
            compression: name,
            detail: error.to_string(),
        })
    } else if let Some(size) = size.filter(|&size| size != length) {
        let more = if length > size { " or more" } else { "" };
        let found = format!("{length} bytes{more} instead of {size}");
        Some(source.malformed(
            head.offset,
            "a chunk as long, uncompressed, as its header says",
            found,
        ))
    } else if length > limits.block {
        source.check(head.offset, "an uncompressed chunk", length, limits.block)?;
        None
    } else {
        None
    };
    if let Some(size) = size {
        data.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    }
    Ok(Loaded {
        data,
        base: (name == "no").then_some(head.data),
        damage,
    })
}

fn parse<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    block: &Block,
    loaded: Loaded,
    mut access: Access<'_>,
) -> Decoded {
    let Loaded { data, base, damage } = loaded;
    let mut decoded = Decoded::default();
    damage.into_iter().for_each(|error| decoded.note(error));
    let cut = !decoded.damage.is_empty();
    let mut records = Bytes(&data);
    while !records.0.is_empty() {
        let position = data.len() - records.0.len();
        let offset = base.map_or(block.offset, |base| base + position as u64);
        let Some((header, body)) = split(&mut records) else {
            let left = data.len() - position;
            if !cut {
                let found = format!("a record cut after {left} bytes");
                decoded.note(source.malformed(offset, "a whole record", found));
            }
            break;
        };
        match record(source, limits, offset, header, body, &mut access) {
            Ok(None) => {}
            Ok(Some(mut entry)) => {
                if let Err(error) = Decoded::check_entries(decoded.entries.len(), source, limits, offset) {
                    decoded.note(error);
                    break;
                }
                entry.start = data.len() - records.0.len() - body.len();
                decoded.entries.push(entry);
            }
            // The lengths of the other records are known: an invalid record does not affect them.
            Err(error) => decoded.note(error),
        }
    }
    decoded.data = data;
    decoded.sort();
    decoded
}

/// Parses one record within a chunk: a message's entry (without its place), or a connection, which it defines.
fn record<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    offset: u64,
    header: Fields<'_>,
    body: &[u8],
    access: &mut Access<'_>,
) -> Result<Option<Entry>, ReadError> {
    match header.op() {
        Some(op::MESSAGE) => {
            let number = header
                .u32("conn")
                .ok_or_else(|| source.malformed(offset, "a message with a `conn` of 4 bytes", "none"))?;
            let time = header
                .time("time")
                .ok_or_else(|| source.malformed(offset, "a message with a `time` of 8 bytes", "none"))?;
            let channel = access
                .directory()
                .find(number)
                .ok_or_else(|| ReadError::UnknownChannel {
                    path: source.path().to_owned(),
                    offset,
                    channel: number,
                    messages: 1,
                })?;
            Ok(Some(Entry {
                log_time: time,
                publish_time: time,
                channel,
                start: 0,
                len: body.len(),
            }))
        }
        Some(op::CONNECTION) => {
            define(source, limits, offset, header, body, access)?;
            Ok(None)
        }
        _ => Err(source.malformed(offset, "a message or a connection", found_op(header))),
    }
}

/// Adds the connection to the directory, unless it is defined already.
pub(crate) fn define<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    offset: u64,
    header: Fields<'_>,
    body: &[u8],
    access: &mut Access<'_>,
) -> Result<(), ReadError> {
    let Some(directory) = header.u32("conn").and_then(|number| access.undefined(number)) else {
        return Ok(());
    };
    let (number, channel) = connection(header, body)
        .ok_or_else(|| source.malformed(offset, "a connection with conn, topic and type", "one without"))?;
    directory
        .define(number, channel, limits.index)
        .map_err(|length| source.check(offset, TEXTS, length, limits.index))
        .or_else(|error| error)
}

pub(crate) fn found_op(header: Fields<'_>) -> String {
    match header.op() {
        Some(op) => format!("a record with op {op}"),
        None => "a record without op".to_owned(),
    }
}
