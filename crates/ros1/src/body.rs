//! Moves the bytes of messages between sockets and blocks: received bytes are written once, to their final place, and
//! sent from there.

use crate::peers::{Full, Share};
use bus::{Loan, LoanError};
use schema::{CodecError, Schema};
use std::borrow::Cow;
use std::io::{self, IoSlice, Read, Write};

/// Bytes to read before deciding where the rest goes.
const HEAD: usize = 4096;
/// Minimum step in which a whole message is read.
const STEP: usize = 64 << 10;
/// Messages shorter than this are sent as one piece.
const SMALL: usize = 64 << 10;

/// Why a received message was refused. The stream is positioned after it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    #[error("it sends a message that is not a {type_name}: {source}")]
    Content { type_name: String, source: CodecError },
    #[error(transparent)]
    Loan(#[from] LoanError),
    #[error(transparent)]
    Full(#[from] Full),
}

impl Untaken {
    fn content(schema: &Schema, source: CodecError) -> Untaken {
        Untaken::Content {
            type_name: schema.name().to_owned(),
            source,
        }
    }
}

/// Reads a message of `len` bytes into a block. `buffer` is reused from message to message. When this returns, `share`
/// covers what was allocated.
///
/// An outer `Err` is an error of the stream, the inner one an error of the message.
pub(crate) fn read(
    stream: &mut impl Read,
    len: usize,
    schema: &Schema,
    buffer: &mut Vec<u8>,
    share: &mut Share,
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> io::Result<Result<Loan, Untaken>> {
    buffer.clear();
    if let Err(full) = gather(stream, len.min(HEAD), buffer, share)? {
        skip(stream, len - buffer.len())?;
        return Ok(Err(full.into()));
    }
    let Some(bulk) = schema.bulk_ros1(buffer, len) else {
        if let Err(full) = gather(stream, len, buffer, share)? {
            skip(stream, len - buffer.len())?;
            return Ok(Err(full.into()));
        }
        return Ok(split(schema, buffer, loan));
    };
    // A block is allocated as a whole before its bytes arrive: the peer's share bounds what the peer may announce.
    let covered = share.cover(len as u64).map_err(Untaken::from);
    let mut loan = match covered.and_then(|()| Ok(loan(bulk.control_len(), &[bulk.part_len()])?)) {
        Ok(loan) => loan,
        Err(error) => {
            skip(stream, len - buffer.len())?;
            return Ok(Err(error));
        }
    };
    let (control, mut parts) = loan.split_mut();
    let Some(part) = parts.next() else {
        return Err(io::Error::other("a loan without its part"));
    };
    bulk.write_head(buffer, control);
    // First what arrived with the head, then bytes from the socket.
    let end = bulk.at() + bulk.part_len();
    let here = buffer.get(bulk.at()..end.min(buffer.len())).unwrap_or(&[]);
    part[..here.len()].copy_from_slice(here);
    stream.read_exact(&mut part[here.len()..])?;
    let behind = buffer.get(end..).unwrap_or(&[]);
    let tail = &mut control[bulk.at()..];
    tail[..behind.len()].copy_from_slice(behind);
    stream.read_exact(&mut tail[behind.len()..])?;
    let whole = schema.join(control, &[part]).map(drop);
    Ok(whole.map_err(|e| Untaken::content(schema, e)).map(|()| loan))
}

/// Reads until `buffer` has `len` bytes. The buffer and its charge to the peer's share grow with what has arrived, not
/// with what was announced. An inner `Err` comes from the share; the rest is still to be read then.
pub(crate) fn gather(
    stream: &mut impl Read,
    len: usize,
    buffer: &mut Vec<u8>,
    share: &mut Share,
) -> io::Result<Result<(), Full>> {
    while buffer.len() < len {
        let step = (len - buffer.len()).min(buffer.len().max(STEP));
        let next = buffer.len() + step;
        if let Err(full) = share.cover(next as u64) {
            return Ok(Err(full));
        }
        buffer.reserve_exact(step);
        stream.take(step as u64).read_to_end(buffer)?;
        if buffer.len() < next {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Ok(()))
}

/// Reads and discards bytes.
pub(crate) fn skip(stream: &mut impl Read, len: usize) -> io::Result<()> {
    let skipped = io::copy(&mut stream.take(len as u64), &mut io::sink())?;
    if skipped < len as u64 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Splits a whole message into a block.
pub(crate) fn split(
    schema: &Schema,
    bytes: &[u8],
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, Untaken> {
    let content = |source| Untaken::content(schema, source);
    let split = schema.split_ros1(bytes).map_err(content)?;
    let sizes = split.sizes();
    let mut loan = loan(sizes.control_len, &sizes.part_lens)?;
    let (control, parts) = loan.split_mut();
    split.write_control(control).map_err(content)?;
    for (i, part) in parts.enumerate() {
        split.write_part(i, part).map_err(content)?;
    }
    Ok(loan)
}

/// A message on its way into ROS.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Still where its publisher wrote it.
    Block(ropewalk::Message),
    /// Encoded again, since a part of it was filtered out.
    Bytes(Vec<u8>),
}

impl Outgoing {
    /// Sends it, preceded by its length. Returns the number of bytes of the message.
    pub(crate) fn send(&self, schema: &Schema, stream: &mut impl Write) -> io::Result<usize> {
        match self {
            Outgoing::Bytes(bytes) => send(&[Cow::Borrowed(bytes.as_slice())], stream),
            Outgoing::Block(message) => {
                let parts: Vec<&[u8]> = (0..message.part_count())
                    .map(|i| message.part(i).bytes())
                    .collect();
                let join = schema.join(message.control(), &parts);
                let join = join.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
                send(&join.ros1_pieces(), stream)
            }
        }
    }
}

fn send(pieces: &[Cow<'_, [u8]>], stream: &mut impl Write) -> io::Result<usize> {
    let len: usize = pieces.iter().map(|p| p.len()).sum();
    let word = u32::try_from(len)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "longer than ROS can send"))?;
    let word = word.to_le_bytes();
    if len <= SMALL {
        let mut whole = Vec::with_capacity(len + 4);
        whole.extend(word);
        pieces.iter().for_each(|p| whole.extend_from_slice(p));
        stream.write_all(&whole)?;
        return Ok(len);
    }
    let mut slices = vec![IoSlice::new(&word)];
    slices.extend(pieces.iter().map(|p| IoSlice::new(p)));
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match stream.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut left, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests;
