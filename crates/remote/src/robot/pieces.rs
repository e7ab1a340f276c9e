//! Reads files piece by piece, with their checksums.

use crate::own::{FileChunk, FileEntry, FileRequest};
use crate::safety::Id;
use crate::{safe_path, v6};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum bytes of one piece.
const PIECE: usize = 1 << 20;
/// Maximum files that are listed of one folder, and maximum depth of its folders.
const MOST_FILES: usize = 100_000;
const DEEPEST: usize = 32;
/// Maximum bytes of paths in one page of a list.
const PAGE: usize = 256 << 10;
/// Maximum number of checksums that are computed at the same time.
const CHECKSUMS: usize = 16;
/// Maximum bytes of one reply on version 6's wire, where everything is in one frame.
const WHOLE: u64 = 256 << 20;

/// Checksums that are updated with each piece, so that a file is read only once if it is fetched in order.
#[derive(Default)]
pub(super) struct Checksums(VecDeque<Checksum>);

struct Checksum {
    of: Of,
    hashed: u64,
    sha: Sha256,
}

/// Identifies the content: a changed file is a different one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Of {
    by: Id,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Checksums {
    /// Adds bytes that were read from `offset` on.
    fn add(&mut self, of: Of, offset: u64, data: &[u8]) {
        let at = self.0.iter().position(|c| c.of == of);
        if offset == 0 && at.is_none() {
            if self.0.len() == CHECKSUMS {
                self.0.pop_front();
            }
            self.0.push_back(Checksum {
                of,
                hashed: 0,
                sha: Sha256::new(),
            });
        }
        if let Some(checksum) = self.0.iter_mut().rev().find(|c| c.of == of && c.hashed == offset) {
            checksum.sha.update(data);
            checksum.hashed += data.len() as u64;
        }
    }

    /// Returns the checksum of the whole file; reads the part that was not read in order.
    fn finish(&mut self, of: Of, file: &File) -> io::Result<Vec<u8>> {
        let known = self
            .0
            .iter()
            .position(|c| c.of == of)
            .and_then(|at| self.0.remove(at));
        let Checksum {
            mut hashed, mut sha, ..
        } = known.unwrap_or_else(|| Checksum {
            of,
            hashed: 0,
            sha: Sha256::new(),
        });
        let mut buffer = vec![0; PIECE];
        while hashed < of.size {
            let read = file.read_at(&mut buffer, hashed)?;
            if read == 0 {
                return Err(io::Error::other("the file was truncated while being read"));
            }
            sha.update(&buffer[..read]);
            hashed += read as u64;
        }
        Ok(sha.finalize().to_vec())
    }
}

/// Returns the part of a shared file or folder that a controller asks for: a piece, or a page of the list.
pub(super) fn piece(
    shared: &Path,
    request: &FileRequest,
    by: Id,
    checksums: &mut Checksums,
) -> io::Result<FileChunk> {
    if request.length == 0 {
        return page(shared, request.offset);
    }
    let file = match shared.is_dir() {
        true => safe_path::open(shared, &request.path)?,
        false if request.path.is_empty() => safe_path::open_file(shared)?,
        false => {
            return Err(io::Error::new(io::ErrorKind::NotFound, "not a folder but a file"));
        }
    };
    let data = file.metadata()?;
    let of = Of {
        by,
        device: data.dev(),
        inode: data.ino(),
        size: data.len(),
        changed: (data.mtime(), data.mtime_nsec()),
    };
    let left = of.size.saturating_sub(request.offset);
    let length = left.min(u64::from(request.length)).min(PIECE as u64) as usize;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, request.offset)?;
    checksums.add(of, request.offset, &bytes);
    let last = length as u64 == left;
    Ok(FileChunk {
        size: of.size,
        offset: request.offset,
        sha256: if last {
            checksums.finish(of, &file)?.into()
        } else {
            Default::default()
        },
        data: bytes.into(),
        entries: Vec::new(),
    })
}

fn page(shared: &Path, skip: u64) -> io::Result<FileChunk> {
    let all = list(shared)?;
    let size = all.len() as u64;
    let mut bytes = 0;
    let entries = all
        .into_iter()
        .skip(usize::try_from(skip).unwrap_or(usize::MAX))
        .take_while(|entry| {
            bytes += entry.path.len() + 16;
            bytes <= PAGE
        });
    Ok(FileChunk {
        size,
        offset: skip,
        entries: entries.collect(),
        ..Default::default()
    })
}

/// Lists regular files by path, without following symbolic links. A single file is listed alone, with an empty path.
fn list(shared: &Path) -> io::Result<Vec<FileEntry>> {
    if !shared.is_dir() {
        return Ok(vec![FileEntry {
            path: String::new(),
            size: shared.metadata()?.len(),
        }]);
    }
    let mut files = Vec::new();
    let mut folders: Vec<(PathBuf, String, usize)> = vec![(shared.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            // A file whose name is not valid UTF-8 cannot be requested.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{prefix}{name}");
            if kind.is_dir() && depth < DEEPEST {
                folders.push((entry.path(), format!("{path}/"), depth + 1));
            } else if kind.is_file() {
                files.push(FileEntry {
                    path,
                    size: entry.metadata()?.len(),
                });
            }
            if files.len() + folders.len() > MOST_FILES {
                return Err(io::Error::other(format!(
                    "the folder contains more than {MOST_FILES} files"
                )));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Builds the reply of version 6's wire.
pub(super) fn whole(shared: &Path, compressed: bool) -> Vec<u8> {
    let read = || -> Result<Vec<u8>, String> {
        let entries = list(shared).map_err(|e| e.to_string())?;
        let total: u64 = entries.iter().map(|entry| entry.size).sum();
        if total > WHOLE {
            return Err(format!(
                "the files have {total} B, but a reply of version 6 has at most {WHOLE} B: fetch single files"
            ));
        }
        let name = shared
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut files = Vec::new();
        for entry in entries {
            let single = entry.path.is_empty();
            let file = if single {
                safe_path::open_file(shared)
            } else {
                safe_path::open(shared, &entry.path)
            };
            let mut data = vec![0; usize::try_from(entry.size).map_err(|e| e.to_string())?];
            file.and_then(|file| file.read_exact_at(&mut data, 0))
                .map_err(|e| e.to_string())?;
            files.push((if single { name.clone() } else { entry.path }, data));
        }
        let entries = files.iter().map(|(path, data)| (path.as_str(), &data[..]));
        v6::files(entries, compressed).map_err(|e| e.to_string())
    };
    read().unwrap_or_else(|reason| v6::no_files(&reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_more_files_than_are_listed_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in 0..11 {
            let folder = dir.path().join(folder.to_string());
            std::fs::create_dir(&folder).expect("a folder");
            let first = folder.join("0");
            File::create(&first).expect("a file");
            // Links are quicker to create than files.
            (1..MOST_FILES / 10)
                .try_for_each(|n| std::fs::hard_link(&first, folder.join(n.to_string())))
                .expect("links");
        }
        let error = list(dir.path()).unwrap_err().to_string();
        assert!(error.contains("more than 100000 files"), "{error}");
    }
}
