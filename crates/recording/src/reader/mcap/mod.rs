//! MCAP files (<https://mcap.dev/spec>), read by their summary, or chunk by chunk without one.

mod chunk;
mod record;
mod salvage;

use std::io::{Read, Seek};

use stats::Time;

pub(crate) use self::chunk::decode;
use self::chunk::define;
use self::record::{ChunkIndex, HEAD, Head, Statistics, op};
use super::block::Block;
use super::directory::{Access, Directory};
use super::source::{Bytes, Source, shown};
use super::{Contents, Limits};
use crate::error::{OpenError, ReadError};

/// The first and last eight bytes of every file.
pub(crate) const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Footer record (20 bytes of body) and end magic.
const TAIL: u64 = HEAD + 20 + 8;

/// Records outside chunks are read in runs of about this many bytes.
const RUN: u64 = 1 << 20;

/// Reads the file's summary, or the whole file if the summary is missing or invalid.
pub(crate) fn open<R: Read + Seek>(source: &Source<R>, limits: &Limits) -> Result<Contents, OpenError> {
    let start = MAGIC.len() as u64;
    let head = Head::read(source, start)?;
    if head.op != op::HEADER {
        let found = format!("a record with opcode {:#04x}", head.op);
        Err(source.malformed(start, "a header (opcode 0x01)", found))?;
    }
    let cut = head.next().saturating_sub(source.len());
    if cut > 0 {
        Err(source.truncated(start, "the header", cut))?;
    }
    let broken = match summary_start(source) {
        Some(summary) => match read_summary(source, limits, head.next(), summary) {
            Ok(Some(contents)) => return Ok(contents),
            Ok(None) => None,
            Err(error) => Some(error),
        },
        None => None,
    };
    let mut contents = scan(source, limits, head.next());
    contents.damage = contents.damage.or(broken.map(ReadError::of_index));
    Ok(contents)
}

/// Start of the summary, if the file was closed and has one.
fn summary_start<R: Read + Seek>(source: &Source<R>) -> Option<u64> {
    let offset = source.len().checked_sub(TAIL)?;
    let tail = source.bytes(offset, TAIL, "the footer").ok()?;
    let mut cursor = Bytes(&tail);
    let (op, len) = (cursor.u8()?, cursor.u64()?);
    let start = cursor.u64()?;
    (op == op::FOOTER && len == 20 && tail.ends_with(MAGIC) && start != 0).then_some(start)
}

/// The summary's contents; `None` if it is valid but not sufficient to find all messages.
fn read_summary<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    first: u64,
    start: u64,
) -> Result<Option<Contents>, ReadError> {
    let footer = source.len() - TAIL;
    if start < first || start > footer {
        let found = format!("one at byte {start}");
        return Err(source.malformed(footer, "a summary between the data and the footer", found));
    }
    check_crc(source, start)?;
    let mut directory = Directory::default();
    // Schemas may follow the channels that refer to them.
    let mut channels = Vec::new();
    let mut indexes = Vec::new();
    let mut statistics = None;
    let mut offset = start;
    while offset < footer {
        let head = Head::read(source, offset)?;
        if head.next() > footer {
            let found = format!("one of {} bytes", head.len);
            return Err(source.malformed(offset, "a record that ends before the footer", found));
        }
        source.check(offset, record::name(head.op), head.len, limits.block)?;
        let body = || source.bytes(head.body, head.len, record::name(head.op));
        let short = || source.malformed(offset, "a record as long as its fields", record::name(head.op));
        match head.op {
            op::SCHEMA => {
                let mut access = Access::Fill(&mut directory);
                define(source, limits, &mut access, head.op, &body()?, offset)?;
            }
            op::CHANNEL => {
                let length = ((channels.len() + 1) * size_of::<Head>()) as u64;
                source.check(offset, "the list of channels", length, limits.index)?;
                channels.push(head);
            }
            op::CHUNK_INDEX => {
                let length = ((indexes.len() + 1) * size_of::<ChunkIndex>()) as u64;
                source.check(offset, "the list of chunks", length, limits.index)?;
                indexes.push(record::chunk_index(&body()?).ok_or_else(short)?);
            }
            op::STATISTICS => statistics = Some(record::statistics(&body()?).ok_or_else(short)?),
            _ => {}
        }
        offset = head.next();
    }
    let Some(statistics) = statistics else {
        return Ok(None);
    };
    for head in channels {
        let body = source.bytes(head.body, head.len, record::name(head.op))?;
        // A summary may repeat channels without their schemas: then only the data has the schemas.
        let schema = record::channel(&body).map_or(0, |channel| channel.schema);
        if schema != 0 && directory.schema(schema).is_none() {
            return Ok(None);
        }
        let mut access = Access::Fill(&mut directory);
        define(source, limits, &mut access, head.op, &body, head.body - HEAD)?;
    }
    indexes.sort_by_key(|index| index.offset);
    if !is_complete(&directory, &indexes, &statistics) || !covers(source, first, start, &indexes)? {
        return Ok(None);
    }
    check_spans(source, &indexes)?;
    let mut contents = Contents {
        directory,
        indexed: true,
        ..Contents::default()
    };
    for &(number, count) in &statistics.counts {
        if let Some(id) = contents.directory.find(number.into()) {
            contents.count(id, count, 0);
        }
    }
    if statistics.messages > 0 {
        contents.span(statistics.first, statistics.last);
    }
    contents.blocks = indexes
        .iter()
        .map(|index| Block {
            offset: index.offset,
            len: 0,
            first: index.first,
            last: index.last,
            reported: false,
        })
        .collect();
    Ok(Some(contents))
}

/// The footer's CRC-32 covers the summary and the footer up to the CRC itself; 0 stands for none.
fn check_crc<R: Read + Seek>(source: &Source<R>, start: u64) -> Result<(), ReadError> {
    const STEP: u64 = 1 << 16;
    let end = source.len() - 12;
    let saved = Bytes(&source.bytes(end, 4, "the footer")?).u32().unwrap_or(0);
    if saved == 0 {
        return Ok(());
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut offset = start;
    while offset < end {
        let step = STEP.min(end - offset);
        hasher.update(&source.bytes(offset, step, "the summary")?);
        offset += step;
    }
    let calculated = hasher.finalize();
    if calculated != saved {
        let found = format!("{calculated:08x} instead of {saved:08x}");
        return Err(source.malformed(start, "a summary whose CRC-32 is as the footer says", found));
    }
    Ok(())
}

/// Whether the summary repeats all channels, counts each one's messages and lists all chunks.
fn is_complete(directory: &Directory, indexes: &[ChunkIndex], statistics: &Statistics) -> bool {
    let counted = statistics
        .counts
        .iter()
        .fold(0, |sum: u64, &(_, count)| sum.saturating_add(count));
    counted == statistics.messages
        && indexes.len() as u64 == u64::from(statistics.chunks)
        && statistics
            .counts
            .iter()
            .all(|&(number, _)| directory.find(number.into()).is_some())
}

/// Whether no message, schema or channel lies outside the chunks of the index (in time order of offsets).
fn covers<R: Read + Seek>(
    source: &Source<R>,
    first: u64,
    end: u64,
    indexes: &[ChunkIndex],
) -> Result<bool, ReadError> {
    let mut offset = first;
    for index in indexes {
        if index.offset < offset || index.offset >= end {
            let found = format!("one at byte {}", index.offset);
            return Err(source.malformed(end, "an index of chunks that do not overlap", found));
        }
        if !is_bare(source, offset, index.offset)? {
            return Ok(false);
        }
        offset = index
            .offset
            .saturating_add(index.len)
            .saturating_add(index.message_index_len);
    }
    is_bare(source, offset, end)
}

/// Messages are read in the order of their chunks' times: an index with times other than the chunks' own would deliver
/// messages late.
fn check_spans<R: Read + Seek>(source: &Source<R>, indexes: &[ChunkIndex]) -> Result<(), ReadError> {
    for index in indexes {
        let head = source.bytes(index.offset, HEAD + 16, "a chunk")?;
        let mut head = Bytes(&head);
        let (op, _) = (head.u8(), head.u64());
        let (first, last) = (head.u64(), head.u64());
        // An entry that is not a chunk is reported when it is read.
        if op == Some(op::CHUNK) && (first, last) != (Some(index.first.0), Some(index.last.0)) {
            let found = format!("messages from {} to {} ns", index.first.0, index.last.0);
            return Err(source.malformed(
                index.offset,
                "an index with the times that the chunk states",
                found,
            ));
        }
    }
    Ok(())
}

fn is_bare<R: Read + Seek>(source: &Source<R>, mut offset: u64, end: u64) -> Result<bool, ReadError> {
    while offset < end {
        let head = Head::read(source, offset)?;
        if matches!(head.op, op::MESSAGE | op::SCHEMA | op::CHANNEL | op::CHUNK) {
            return Ok(false);
        }
        offset = head.next();
    }
    Ok(offset == end)
}

/// Reads the file from `offset` to its footer. After an incomplete record, reading continues with the next whole chunk.
fn scan<R: Read + Seek>(source: &Source<R>, limits: &Limits, mut offset: u64) -> Contents {
    let mut contents = Contents::default();
    let mut run: Option<(u64, u64)> = None;
    let mut data_ended = false;
    let mut footer = false;
    while offset < source.len() && !footer {
        let head = match Head::read(source, offset) {
            Ok(head) if head.op == 0 => Err(source.malformed(offset, "a record", "opcode 0")),
            head => head,
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => {
                contents.damage.get_or_insert(error);
                let Some(chunk) = salvage::next_chunk(source, offset + 1) else {
                    break;
                };
                offset = chunk;
                continue;
            }
        };
        let cut = head.next().saturating_sub(source.len());
        // A length beyond the end of the file means that the file is truncated, or that the length is wrong.
        let resumed = (cut > 0)
            .then(|| salvage::next_chunk(source, offset + 1))
            .flatten();
        if cut > 0 {
            let error = source.truncated(offset, record::name(head.op), cut);
            contents.damage.get_or_insert(error);
        }
        let bare = matches!(head.op, op::MESSAGE | op::SCHEMA | op::CHANNEL) && cut == 0 && !data_ended;
        if let Some((start, end)) = run
            && (!bare || end - start > RUN)
        {
            add(source, limits, &mut contents, start, end - start, false);
            run = None;
        }
        if bare {
            run = Some((run.map_or(offset, |(start, _)| start), head.next()));
        } else if head.op == op::CHUNK && !data_ended && resumed.is_none() {
            let len = head.next().min(source.len()) - offset;
            add(source, limits, &mut contents, offset, len, cut > 0);
        }
        if let Some(chunk) = resumed {
            offset = chunk;
            continue;
        }
        if cut > 0 {
            break;
        }
        if let Err(error) = contents.check_blocks(source, limits, offset) {
            contents.damage = Some(error);
            return contents;
        }
        data_ended |= head.op == op::DATA_END;
        footer = head.op == op::FOOTER;
        offset = head.next();
    }
    if let Some((start, end)) = run {
        add(source, limits, &mut contents, start, end - start, false);
    }
    if contents.damage.is_none() {
        contents.damage = check_end(source, offset, data_ended, footer).err();
    }
    contents
}

/// Checks what follows the last record. A killed recorder leaves neither an end of the data nor a footer: such a file
/// has no index, but is not damaged.
fn check_end<R: Read + Seek>(
    source: &Source<R>,
    offset: u64,
    data_ended: bool,
    footer: bool,
) -> Result<(), ReadError> {
    if footer {
        let magic = source.bytes(offset, MAGIC.len() as u64, "the magic at the end")?;
        if magic != MAGIC {
            return Err(source.malformed(offset, "the magic at the end", shown(&magic)));
        }
    } else if data_ended {
        return Err(source.truncated(offset, "the summary", TAIL));
    }
    Ok(())
}

/// Decodes a block to collect its channels, times and counts.
fn add<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    contents: &mut Contents,
    offset: u64,
    len: u64,
    reported: bool,
) {
    let block = Block {
        offset,
        len,
        first: Time::ZERO,
        last: Time::ZERO,
        reported,
    };
    let decoded = decode(source, limits, &block, Access::Fill(&mut contents.directory));
    contents.add(block, &decoded);
}
