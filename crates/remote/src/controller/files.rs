//! Fetching a robot's files: piece by piece, from where it was interrupted, checked by their SHA-256, below one folder only.

use super::ahead::Ahead;
use super::call::What;
use super::core::Core;
use super::pending::Pending;
use super::requests::RequestError;
use crate::beneath;
use crate::clock::now;
use crate::own::{FileChunk, FileRequest, request, response};
use crate::transport::Class;
use crate::v6::{self, FilesError};
use rustix::fs::{AtFlags, FlockOperation};
use sha2::{Digest, Sha256};
use stats::Time;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a piece.
const PIECE: u32 = 256 << 10;
/// A piece is waited for so long: with those that are ahead of it, over 100 kbit/s.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often in a row a piece is asked for again.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Bytes of a whole folder on version 6's wire.
const WHOLE: u64 = 256 << 20;

/// A file that a robot shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Within the shared folder; empty where a single file is shared.
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// As in [`FileInfo`].
    pub path: &'a str,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes of the whole file.
    pub size: u64,
}

/// What a function says that is told of a download's [`Progress`]: nothing, or [`ControlFlow::Break`], which ends the download.
pub trait GoOn {
    /// Whether the download goes on.
    fn goes_on(&self) -> bool;
}

impl GoOn for () {
    fn goes_on(&self) -> bool {
        true
    }
}

impl GoOn for ControlFlow<()> {
    fn goes_on(&self) -> bool {
        self.is_continue()
    }
}

/// Why a file was not fetched. What came of it stays, and the next try goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The robot refuses, or does not answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It cannot be written: what, and why.
    #[error("{}: {error}", path.display())]
    Io {
        /// Below which folder, or what.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What came is not what the robot has: it changed meanwhile, or was damaged on the way. It was thrown away.
    #[error("{0:?} did not come as the robot has it: it changed meanwhile, or was damaged; try again")]
    Checksum(String),
    /// Who was told of the progress ended it.
    #[error("the download was ended; another goes on from where it was")]
    Stopped,
    /// Version 6's answer, with names that lead out of the folder, too large, or malformed.
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl Core {
    fn ask_file(self: &Arc<Self>, request: FileRequest) -> Pending<Result<FileChunk, RequestError>> {
        let what = What::Other(request::What::File(request));
        self.request(Class::File, what, PATIENCE, |what| match what {
            Some(response::What::File(chunk)) => Some(chunk),
            _ => None,
        })
    }

    pub(super) fn files(self: &Arc<Self>, identifier: &str) -> Result<Vec<FileInfo>, RequestError> {
        if self.speaks_v6() {
            return Err(RequestError::Rejected(
                "version 6's wire has no list of the files in a folder".into(),
            ));
        }
        let mut files: Vec<FileInfo> = Vec::new();
        loop {
            let request = FileRequest {
                identifier: identifier.into(),
                offset: files.len() as u64,
                ..Default::default()
            };
            let chunk = self.ask_file(request).wait()?;
            let done = chunk.entries.is_empty() || files.len() as u64 >= chunk.size;
            files.extend(chunk.entries.into_iter().map(|e| FileInfo {
                path: e.path,
                size: e.size,
            }));
            if done || files.len() as u64 >= chunk.size {
                return Ok(files);
            }
        }
    }

    pub(super) fn download(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        into: &Path,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        // A single file is called as what it is shared under.
        let name = if path.is_empty() { identifier } else { path };
        let failed = |error| FileError::Io {
            path: into.join(name),
            error,
        };
        let parts = beneath::parts(name).map_err(failed)?;
        let mut part = Part::open(into, &parts).map_err(failed)?;
        let mut again = part.done > 0;
        loop {
            let sum = match self.fetch_pieces(identifier, path, &mut part, progress, &failed) {
                Ok(sum) => sum,
                Err(e) => {
                    part.abandon();
                    return Err(e);
                }
            };
            if sum == part.sha.clone().finalize().as_slice() {
                part.finish().map_err(failed)?;
                return Ok(into.join(parts.join("/")));
            }
            part.restart().map_err(failed)?;
            if !std::mem::take(&mut again) {
                part.abandon();
                return Err(FileError::Checksum(name.to_owned()));
            }
        }
    }

    /// Fetches what is missing; the checksum of the robot's file.
    fn fetch_pieces(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        part: &mut Part,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
        failed: &dyn Fn(io::Error) -> FileError,
    ) -> Result<Vec<u8>, FileError> {
        let ask = |offset| {
            self.ask_file(FileRequest {
                identifier: identifier.into(),
                path: path.into(),
                offset,
                length: PIECE,
            })
        };
        let mut under_way: VecDeque<(Time, Pending<Result<FileChunk, RequestError>>)> = VecDeque::new();
        let mut ahead = Ahead::default();
        let (mut asked, mut size, mut failures) = (part.done, None, 0);
        loop {
            // The first answer says how much there is to ask for.
            while under_way.len() < if size.is_some() { ahead.pieces() } else { 1 }
                && (under_way.is_empty() || size.is_some_and(|size| asked < size))
            {
                under_way.push_back((now(), ask(asked)));
                asked += u64::from(PIECE);
            }
            let Some((begun, next)) = under_way.pop_front() else {
                continue;
            };
            let chunk = match next.wait() {
                Ok(chunk) => chunk,
                // Somebody else's pieces may have filled the robot's queue; at the beginning it is a refusal.
                Err(error)
                    if failures == TRIES
                        || (size.is_none() && matches!(error, RequestError::Rejected(_))) =>
                {
                    return Err(error.into());
                }
                Err(_) => {
                    under_way.clear();
                    ahead.failed();
                    asked = part.done;
                    std::thread::sleep(FIRST_WAIT * (1 << failures));
                    failures += 1;
                    continue;
                }
            };
            let len = chunk.data.len() as u64;
            let fits = part.done.checked_add(len).is_some_and(|end| end <= chunk.size);
            let last = !chunk.sha256.is_empty();
            if chunk.offset != part.done
                || !fits
                || size.is_some_and(|s| s != chunk.size)
                || (len == 0 && !last)
            {
                // Another file stands there now, a shorter one perhaps.
                return Ok(Vec::new());
            }
            ahead.came(now().since(begun));
            part.write(&chunk.data).map_err(failed)?;
            (size, failures) = (Some(chunk.size), 0);
            let told = Progress {
                path,
                done: part.done,
                size: chunk.size,
            };
            if !progress(told) {
                return Err(FileError::Stopped);
            }
            if last {
                return Ok(chunk.sha256.to_vec());
            }
            // A robot may give less at once than was asked for.
            if len < u64::from(PIECE) {
                under_way.clear();
                asked = part.done;
            }
        }
    }

    /// All files of version 6's answer.
    pub(super) fn download_v6(
        self: &Arc<Self>,
        identifier: &str,
        into: &Path,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<Vec<PathBuf>, FileError> {
        let request = FileRequest {
            identifier: identifier.into(),
            ..Default::default()
        };
        let reply = self.ask_file(request).wait()?;
        let files = v6::parse_files(&reply.data, WHOLE)?;
        let mut written = Vec::new();
        for (path, data) in files {
            let failed = |error| FileError::Io {
                path: into.join(&path),
                error,
            };
            let parts = beneath::parts(&path).map_err(failed)?;
            let mut part = Part::open(into, &parts).map_err(failed)?;
            part.restart().map_err(failed)?;
            part.write(&data).map_err(failed)?;
            part.finish().map_err(failed)?;
            let told = Progress {
                path: &path,
                done: part.done,
                size: part.done,
            };
            if !progress(told) {
                return Err(FileError::Stopped);
            }
            written.push(into.join(path));
        }
        Ok(written)
    }
}

/// What came of a file so far: beside where it will stand, under another name.
struct Part {
    folder: OwnedFd,
    name: String,
    temporary: String,
    file: File,
    done: u64,
    sha: Sha256,
}

impl Part {
    fn open(into: &Path, parts: &[String]) -> io::Result<Self> {
        std::fs::create_dir_all(into)?;
        let (folder, name) = beneath::walk(beneath::open_folder(into)?, parts, true)?;
        let temporary = format!(".{name}.part");
        let mut file = beneath::create(&folder, &temporary)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "it is being fetched already"))?;
        let mut sha = Sha256::new();
        let mut done = 0;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => {
                    sha.update(&buffer[..read]);
                    done += read as u64;
                }
            }
        }
        Ok(Part {
            folder,
            name,
            temporary,
            file,
            done,
            sha,
        })
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.sha.update(data);
        self.done += data.len() as u64;
        Ok(())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.done, self.sha) = (0, Sha256::new());
        Ok(())
    }

    /// Nothing that a next try could go on from is left behind.
    fn abandon(&self) {
        if self.done == 0 {
            let _ = rustix::fs::unlinkat(&self.folder, self.temporary.as_str(), AtFlags::empty());
        }
    }

    /// Whole and checked: it gets its name.
    fn finish(&self) -> io::Result<()> {
        self.file.sync_all()?;
        Ok(rustix::fs::renameat(
            &self.folder,
            self.temporary.as_str(),
            &self.folder,
            self.name.as_str(),
        )?)
    }
}
