//! Files and folders: the reply to a request for them, whole in one frame.

use crate::decode;
use crate::types::{FileTransfer, FolderTransfer};
use crate::zlib::{self, ZlibError};
use prost::Message;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Default maximum bytes of all files of one reply together, when inflated, that a controller accepts: 512 MiB.
pub const MAX_INFLATED: u64 = 512 << 20;
/// Maximum number of files and folders of one reply.
pub const MAX_ENTRIES: usize = 65_536;
/// Maximum bytes of one path, as on Linux.
const MAX_PATH: usize = 4096;
/// Maximum number of folders in a path.
const MAX_DEPTH: usize = 100;

/// Files by their paths, which are confined ([`confined`]).
pub type Files = BTreeMap<String, Vec<u8>>;

/// Why files cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The reply is not a FolderTransfer.
    #[error("the answer is not a folder: {0}")]
    Body(prost::DecodeError),
    /// The robot has no file or folder with that identifier. Holds the robot's reason.
    #[error("the robot has no such file or folder: {0:?}")]
    Refused(String),
    /// A path leaves its folder, or may be understood so.
    #[error("the path {path:?} {why}")]
    Path {
        /// The path, cut after 200 characters.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two files with the same path, or a file where another's folder must be.
    #[error("the folder lists {0:?} twice")]
    Twice(String),
    /// Too many files.
    #[error("{0} files in one folder exceed the limit of {MAX_ENTRIES}")]
    TooMany(usize),
    /// More bytes than allowed.
    #[error("the files exceed the limit of {0} B")]
    TooLong(u64),
    /// A file that does not inflate, or cannot be compressed.
    #[error("{path:?}: {error}")]
    Zlib {
        /// The file.
        path: String,
        /// The reason.
        error: ZlibError,
    },
}

/// Builds the reply to [`Request::File`](super::Request::File): one file, or all files of a folder.
///
/// # Errors
/// [`FilesError`]: a path that no controller accepts, too many files, a file of 4 GiB, or more than a frame's 2 GiB
/// together.
pub fn files<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    compressed: bool,
) -> Result<Vec<u8>, FilesError> {
    let mut file = Vec::new();
    let mut total = 0u64;
    for (path, data) in entries {
        confined(path)?;
        total += data.len() as u64;
        if total > i32::MAX as u64 {
            return Err(FilesError::TooLong(i32::MAX as u64));
        }
        let data = if compressed {
            zlib::pack(data).map_err(|error| FilesError::Zlib {
                path: path.into(),
                error,
            })?
        } else {
            data.to_vec()
        };
        file.push(FileTransfer {
            path: path.into(),
            data,
        });
        if file.len() > MAX_ENTRIES {
            return Err(FilesError::TooMany(file.len()));
        }
    }
    let folder = FolderTransfer {
        identifier: String::new(),
        compressed,
        file,
        uncompressed_size: total as i32,
    };
    Ok(folder.encode_to_vec())
}

/// Builds the reply to a request for a file that does not exist: an empty folder with the reason.
pub fn no_files(why: &str) -> Vec<u8> {
    let folder = FolderTransfer {
        identifier: why.into(),
        ..Default::default()
    };
    folder.encode_to_vec()
}

/// Removes the root that a path may begin with: upstream's robots use the paths of their own system, and upstream's
/// controllers put all files below the user's folder.
pub fn below_root(path: &str) -> Cow<'_, str> {
    match path.strip_prefix('/') {
        None => Cow::Borrowed(path),
        Some(below) => {
            let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
            Cow::Owned(parts.join("/"))
        }
    }
}

/// Reads the reply to a request for a file or folder, inflated to at most `most` bytes together ([`MAX_INFLATED`]).
/// Folders themselves, which upstream lists together with their files, are left out. Absolute paths count from the
/// folder that receives the files ([`below_root`]).
///
/// # Errors
/// [`FilesError`]: it is malformed or too large, or would write outside the folder that receives the files.
pub fn parse_files(reply: &[u8], most: u64) -> Result<Files, FilesError> {
    let folder = decode::message::<FolderTransfer>("robot_remote_control.FolderTransfer", reply)
        .map_err(FilesError::Body)?;
    if folder.file.len() > MAX_ENTRIES {
        return Err(FilesError::TooMany(folder.file.len()));
    }
    if folder.file.is_empty() && !folder.identifier.is_empty() {
        return Err(FilesError::Refused(shortened(&folder.identifier)));
    }
    let mut files = Files::new();
    let mut left = most;
    for FileTransfer { path, data } in folder.file {
        let path = confined(&below_root(&path))?;
        // A folder is an entry without data, compressed or not.
        let data = if folder.compressed && !data.is_empty() {
            zlib::unpack(&data, left).map_err(|error| match error {
                ZlibError::TooLong { .. } => FilesError::TooLong(most),
                error => FilesError::Zlib {
                    path: path.clone(),
                    error,
                },
            })?
        } else {
            data
        };
        left = (left.checked_sub(data.len() as u64)).ok_or(FilesError::TooLong(most))?;
        if files.insert(path.clone(), data).is_some() {
            return Err(FilesError::Twice(path));
        }
    }
    without_folders(files)
}

/// Removes the entries that are folders of other entries.
fn without_folders(mut files: Files) -> Result<Files, FilesError> {
    let mut folders: Vec<String> = Vec::new();
    for path in files.keys() {
        let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        for parent in parents {
            if folders.last().is_none_or(|last| last != parent) && files.contains_key(parent) {
                folders.push(parent.to_owned());
            }
        }
    }
    for folder in folders {
        if files.remove(&folder).is_some_and(|data| !data.is_empty()) {
            return Err(FilesError::Twice(folder));
        }
    }
    Ok(files)
}

/// Returns a path that stays below any folder that it is joined to, without the parts `.` that upstream's paths have.
///
/// # Errors
/// [`FilesError::Path`]: it is absolute or empty, has an empty component or a part `..`, a NUL or a backslash, is longer
/// than 4096 B, or is more than 100 folders deep.
pub fn confined(path: &str) -> Result<String, FilesError> {
    let bad = |why| {
        Err(FilesError::Path {
            path: shortened(path),
            why,
        })
    };
    if path.len() > MAX_PATH {
        return bad("exceeds 4096 B");
    }
    if path.starts_with('/') {
        return bad("is absolute");
    }
    if path.contains('\\') {
        return bad("contains a backslash");
    }
    if path.contains('\0') {
        return bad("contains a NUL");
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" => return bad("has an empty component"),
            ".." => return bad("leads outside its folder"),
            "." => {}
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        return bad("names no file");
    }
    if parts.len() > MAX_DEPTH {
        return bad("is more than 100 folders deep");
    }
    Ok(parts.join("/"))
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
