//! Reads whole files.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be used; `E` is the error in its contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError<E: Error + 'static> {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Its contents are invalid.
    #[error("{path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        source: E,
    },
}

/// Reads a file and parses it with `parse`.
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
