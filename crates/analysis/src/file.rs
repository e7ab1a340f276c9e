//! Files that are read whole.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file gives nothing; `E`: what its bytes may be instead of what they should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError<E: Error + 'static> {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It says nothing that can be used.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: E,
    },
}

/// Reads a file as `parse` understands it.
pub(crate) fn read<T, E: Error + 'static>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, FileError<E>> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::File {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })
}
