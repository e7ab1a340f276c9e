//! A file or any other seekable source, read by offset, with errors that contain the position.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::ReadError;

/// Shared by all iterators over one recording; each read locks, seeks and reads.
#[derive(Debug)]
pub(crate) struct Source<R> {
    reader: Mutex<R>,
    len: u64,
    path: PathBuf,
}

impl<R: Read + Seek> Source<R> {
    pub(crate) fn new(mut reader: R, path: &Path) -> std::io::Result<Self> {
        let len = reader.seek(SeekFrom::End(0))?;
        Ok(Source {
            reader: Mutex::new(reader),
            len,
            path: path.to_owned(),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of bytes after `offset`.
    pub(crate) fn remaining(&self, offset: u64) -> u64 {
        self.len.saturating_sub(offset)
    }

    /// Reads `length` bytes of `what`. The caller has checked the length against its limit; the allocation never
    /// exceeds the file's own length.
    pub(crate) fn bytes(&self, offset: u64, length: u64, what: &'static str) -> Result<Vec<u8>, ReadError> {
        let remaining = self.remaining(offset);
        if length > remaining {
            return Err(self.truncated(offset, what, length - remaining));
        }
        let too_large = || ReadError::TooLarge {
            path: self.path.clone(),
            offset,
            what,
            length,
            limit: usize::MAX as u64,
        };
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| too_large())?];
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let read = reader
            .seek(SeekFrom::Start(offset))
            .and_then(|_| reader.read_exact(&mut bytes));
        match read {
            Ok(()) => Ok(bytes),
            // The file was truncated after it was opened.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(self.truncated(offset, what, length))
            }
            Err(error) => Err(ReadError::Io {
                path: self.path.clone(),
                offset,
                source: Arc::new(error),
            }),
        }
    }

    pub(crate) fn truncated(&self, offset: u64, what: &'static str, missing: u64) -> ReadError {
        ReadError::Truncated {
            path: self.path.clone(),
            offset,
            what,
            end: self.len,
            missing,
        }
    }

    pub(crate) fn malformed(
        &self,
        offset: u64,
        expected: &'static str,
        found: impl Into<String>,
    ) -> ReadError {
        ReadError::Malformed {
            path: self.path.clone(),
            offset,
            expected,
            found: found.into(),
        }
    }

    pub(crate) fn check(
        &self,
        offset: u64,
        what: &'static str,
        length: u64,
        limit: u64,
    ) -> Result<(), ReadError> {
        if length > limit {
            return Err(ReadError::TooLarge {
                path: self.path.clone(),
                offset,
                what,
                length,
                limit,
            });
        }
        Ok(())
    }
}

/// A cursor over bytes in memory; returns `None` if they end too early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
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

    /// Bytes preceded by a 32-bit length.
    pub(crate) fn sized(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.take(length)
    }
}

/// Untrusted text: invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Untrusted bytes for an error message: short, printable.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const SHOWN: usize = 16;
    let head = &bytes[..bytes.len().min(SHOWN)];
    let hex: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = head
        .iter()
        .map(|&byte| {
            if (0x20..0x7f).contains(&byte) {
                char::from(byte)
            } else {
                '.'
            }
        })
        .collect();
    format!("{} (\"{text}\")", hex.join(" "))
}
