//! ROS 1 bags, format 2.0.
//!
//! A closed bag ends with an index of its connections and chunks. A bag that was not closed (the recorder was killed)
//! or is truncated is read chunk by chunk instead.

mod chunk;
mod record;
mod salvage;

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use stats::Time;

pub(crate) use self::chunk::decode;
use self::chunk::{define, found_op};
use self::record::{Head, op};
use super::block::Block;
use super::directory::{Access, Directory};
use super::source::{Bytes, Source, text};
use super::{Contents, Limits};
use crate::error::{OpenError, ReadError};

/// The first line of every bag of this format.
pub(crate) const MAGIC: &[u8] = b"#ROSBAG V2.0\n";

/// Records outside chunks are read in runs of about this many bytes.
const RUN: u64 = 1 << 20;

/// Approximate size of an index entry without its counts.
const INFO: u64 = 128;

/// Reads the bag's header and its index, or the whole bag if it has none.
pub(crate) fn open<R: Read + Seek>(source: &Source<R>, limits: &Limits) -> Result<Contents, OpenError> {
    let start = MAGIC.len() as u64;
    let head = Head::read(source, start, "the bag header")?;
    let fields = head.fields();
    if fields.op() != Some(op::BAG_HEADER) {
        Err(source.malformed(start, "a bag header (op 3)", found_op(fields)))?;
    }
    let missing = |field| source.malformed(start, field, "none");
    let index = fields
        .u64("index_pos")
        .ok_or_else(|| missing("a bag header with index_pos"))?;
    let connections = fields
        .u32("conn_count")
        .ok_or_else(|| missing("a bag header with conn_count"))?;
    let chunks = fields
        .u32("chunk_count")
        .ok_or_else(|| missing("a bag header with chunk_count"))?;
    if let Some(encryptor) = fields.bytes("encryptor").map(text)
        && !encryptor.is_empty()
        && encryptor != "rosbag/NoEncryptor"
    {
        return Err(OpenError::Encrypted {
            path: source.path().to_owned(),
            encryptor,
        });
    }
    if head.next() > source.len() {
        Err(source.truncated(start, "the bag header", head.next() - source.len()))?;
    }
    // The recorder first writes 0, and the index's position when it closes the bag.
    let broken = if index == 0 {
        None
    } else {
        match read_index(source, limits, head.next(), index, connections, chunks) {
            Ok(contents) => return Ok(contents),
            Err(error) => Some(error),
        }
    };
    let mut contents = scan(source, limits, head.next());
    contents.damage = contents.damage.or(broken.map(ReadError::of_index));
    Ok(contents)
}

fn read_index<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
    first: u64,
    index: u64,
    connections: u32,
    chunks: u32,
) -> Result<Contents, ReadError> {
    if index < first || index > source.len() {
        let missing = index.saturating_sub(source.len());
        if missing > 0 {
            return Err(source.truncated(first, "the data before the index", missing));
        }
        return Err(source.malformed(
            first,
            "an index after the bag header",
            format!("one at byte {index}"),
        ));
    }
    let mut directory = Directory::default();
    let mut infos = Vec::new();
    let mut held = 0u64;
    let mut offset = index;
    while offset < source.len() {
        let head = Head::read(source, offset, "an index record")?;
        source.check(offset, "an index record", head.data_len, limits.block)?;
        let read = || {
            let cut = head.data_len.saturating_sub(source.remaining(head.data));
            if cut > 0 {
                return Err(source.truncated(offset, "an index record", cut));
            }
            source.bytes(head.data, head.data_len, "an index record")
        };
        match head.fields().op() {
            Some(op::CONNECTION) => {
                let mut access = Access::Fill(&mut directory);
                define(source, limits, offset, head.fields(), &read()?, &mut access)?;
            }
            Some(op::CHUNK_INFO) => {
                held = held.saturating_add(INFO).saturating_add(head.data_len);
                source.check(offset, "the list of chunks", held, limits.index)?;
                infos.push((chunk_info(source, &head)?, offset, read()?));
            }
            _ => {
                return Err(source.malformed(
                    offset,
                    "a connection or a chunk's index record",
                    found_op(head.fields()),
                ));
            }
        }
        offset = head.next();
    }
    let (found_connections, found_chunks) = (directory.channels.len() as u64, infos.len() as u64);
    if found_connections != u64::from(connections) || found_chunks != u64::from(chunks) {
        let found = format!("{found_connections} and {found_chunks} up to the end of the file");
        return Err(source.malformed(
            index,
            "as many connections and chunks in the index as the bag header counts",
            format!("{found} instead of {connections} and {chunks}"),
        ));
    }
    let mut contents = Contents {
        directory,
        indexed: true,
        ..Contents::default()
    };
    let mut seen = BTreeSet::new();
    for (block, offset, counts) in infos {
        if block.offset < first || block.offset >= index || !seen.insert(block.offset) {
            let found = format!("one at byte {}", block.offset);
            return Err(source.malformed(offset, "a chunk of its own before the index", found));
        }
        let mut counts = Bytes(&counts);
        let mut messages = 0;
        while let (Some(number), Some(count)) = (counts.u32(), counts.u32()) {
            let id = contents
                .directory
                .find(number)
                .ok_or_else(|| ReadError::UnknownChannel {
                    path: source.path().to_owned(),
                    offset,
                    channel: number,
                    messages: count.into(),
                })?;
            contents.count(id, count.into(), 0);
            messages += u64::from(count);
        }
        if messages > 0 {
            contents.span(block.first, block.last);
        }
        contents.blocks.push(block);
    }
    Ok(contents)
}

fn chunk_info<R: Read + Seek>(source: &Source<R>, head: &Head) -> Result<Block, ReadError> {
    let fields = head.fields();
    if fields.u32("ver") != Some(1) {
        let found = fields
            .u32("ver")
            .map_or("none".to_owned(), |version| version.to_string());
        return Err(source.malformed(head.offset, "a chunk's index record of version 1", found));
    }
    let block = || {
        Some(Block {
            offset: fields.u64("chunk_pos")?,
            len: 0,
            first: fields.time("start_time")?,
            last: fields.time("end_time")?,
            reported: false,
        })
    };
    block().ok_or_else(|| {
        source.malformed(
            head.offset,
            "a chunk's index record with chunk_pos, start_time, end_time",
            "less",
        )
    })
}

/// Reads the bag from `offset` to its end. After an incomplete record, reading continues with the next whole chunk.
fn scan<R: Read + Seek>(source: &Source<R>, limits: &Limits, mut offset: u64) -> Contents {
    let mut contents = Contents::default();
    // A run of messages and connections outside chunks: a recorder that is killed before it completes its first or last
    // chunk leaves them after a chunk header with length 0.
    let mut run: Option<(u64, u64)> = None;
    while offset < source.len() {
        let head = match Head::read(source, offset, "a record") {
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
        let op = head.fields().op();
        let what = match op {
            Some(op::CHUNK) => Some("a chunk"),
            Some(op::MESSAGE) => Some("a message"),
            Some(op::CONNECTION) => Some("a connection"),
            Some(op::INDEX | op::CHUNK_INFO) => Some("an index record"),
            _ => None,
        };
        let cut = head.next().saturating_sub(source.len());
        let wrong = match what {
            None => Some(source.malformed(offset, "a chunk or another record", found_op(head.fields()))),
            // A length beyond the end of the file means that the file is truncated, or that the length is wrong.
            Some(what) if cut > 0 => Some(source.truncated(offset, what, cut)),
            Some(_) => None,
        };
        let mut resumed = None;
        if let Some(error) = wrong {
            contents.damage.get_or_insert(error);
            resumed = salvage::next_chunk(source, offset + 1);
            if what.is_none() && resumed.is_none() {
                break;
            }
        }
        let bare = matches!(op, Some(op::MESSAGE | op::CONNECTION)) && cut == 0;
        if let Some((start, end)) = run
            && (!bare || end - start > RUN)
        {
            add(source, limits, &mut contents, start, end - start, false);
            run = None;
        }
        if bare {
            run = Some((run.map_or(offset, |(start, _)| start), head.next()));
        } else if op == Some(op::CHUNK) && resumed.is_none() {
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
        offset = head.next();
    }
    if let Some((start, end)) = run {
        add(source, limits, &mut contents, start, end - start, false);
    }
    contents
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
