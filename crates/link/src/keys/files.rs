//! Files that hold secrets: only their owner can read them.

use super::KeysError;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Largest key file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

fn failed(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> KeysError {
    move |source| KeysError::File {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// Makes a folder that only its owner can enter, and its parents.
pub(super) fn make_folder(path: &Path) -> Result<(), KeysError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed(path, "make"))
}

/// Writes a file atomically. It has `mode` from the first byte on.
pub(super) fn write(path: &Path, mode: u32, content: &[u8]) -> Result<(), KeysError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // A leftover file may have another mode.
    let _ = std::fs::remove_file(&new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&new)
        .map_err(failed(&new, "write"))?;
    file.write_all(content)
        .and_then(|()| file.sync_all())
        .map_err(failed(&new, "write"))?;
    std::fs::rename(&new, path).map_err(failed(path, "write"))
}

/// Reads a text file of bounded size.
pub(super) fn read(path: &Path) -> Result<String, KeysError> {
    read_open(File::open(path).map_err(failed(path, "read"))?, path)
}

/// Reads a secret, unless others can read it too.
pub(super) fn read_secret(path: &Path) -> Result<String, KeysError> {
    let file = File::open(path).map_err(failed(path, "read"))?;
    // The mode of the open file, so that nobody can swap the file in between.
    let mode = file
        .metadata()
        .map_err(failed(path, "read"))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(KeysError::Mode {
            path: path.to_owned(),
            mode: mode & 0o7777,
        });
    }
    read_open(file, path)
}

fn read_open(file: File, path: &Path) -> Result<String, KeysError> {
    let mut text = String::new();
    let n = file
        .take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(failed(path, "read"))?;
    if n as u64 > MAX_FILE {
        return Err(KeysError::Malformed {
            path: path.to_owned(),
            problem: format!("it is longer than {MAX_FILE} bytes"),
        });
    }
    Ok(text)
}
