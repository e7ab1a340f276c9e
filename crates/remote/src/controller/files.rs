//! Fetches a robot's files piece by piece. A download resumes after an interruption, is checked against the SHA-256,
//! and stays below one folder (decision 174).

use super::ahead::Ahead;
use super::call::What;
use super::core::Core;
use super::pending::Pending;
use super::requests::RequestError;
use crate::clock::now;
use crate::own::{FileChunk, FileRequest, request, response};
use crate::safe_path;
use crate::transport::Class;
use crate::v6::{self, FilesError};
use rustix::fs::{AtFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;
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
/// How long to wait for a piece: enough for it and the pieces ahead of it over 100 kbit/s.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum number of attempts in a row for a piece.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Maximum files in a list, maximum bytes of their paths, and maximum answers for one list; an honest robot needs a
/// tenth of these answers.
const LIST_FILES: usize = 100_000;
const LIST_BYTES: usize = 32 << 20;
const LIST_PAGES: usize = 1_000;
/// Maximum bytes of a whole folder on version 6's wire.
const WHOLE: u64 = 256 << 20;

/// A file that a robot shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Path within the shared folder; empty if a single file is shared.
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// Permissions of a download beyond creating new files; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saving {
    /// Replace files of the same name.
    pub replace: bool,
    /// Create files and folders whose names begin with a dot, which programs read unasked.
    pub hidden: bool,
}

impl Saving {
    /// Allows downloads to replace files.
    #[must_use]
    pub fn with_replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Allows names that begin with a dot.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }
}

/// Destination of a file: below `into`, by parts none of which leaves it.
struct Destination<'a> {
    into: &'a Path,
    name: String,
    parts: Vec<String>,
    saving: Saving,
}

impl<'a> Destination<'a> {
    fn new(into: &'a Path, name: String, saving: Saving) -> Result<Self, FileError> {
        let parts =
            safe_path::parts(&name).and_then(|parts| match safe_path::is_hidden(&parts) && !saving.hidden {
                false => Ok(parts),
                true => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the name starts with a dot: allow hidden files to create it",
                )),
            });
        let parts = parts.map_err(|error| FileError::Io {
            path: into.join(&name),
            error,
        })?;
        Ok(Destination {
            into,
            name,
            parts,
            saving,
        })
    }

    fn path(&self) -> PathBuf {
        self.into.join(self.parts.join("/"))
    }

    fn failed(&self, error: io::Error) -> FileError {
        FileError::Io {
            path: self.into.join(&self.name),
            error,
        }
    }

    fn open(&self) -> Result<Part, FileError> {
        Part::open(self.into, &self.parts, self.saving.replace).map_err(|e| self.failed(e))
    }
}

/// Progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// As in [`FileInfo`].
    pub path: &'a str,
    /// Bytes received.
    pub done: u64,
    /// Bytes of the whole file.
    pub size: u64,
}

/// Result of a progress callback: `()`, or [`ControlFlow::Break`] to end the download.
pub trait GoOn {
    /// Returns whether the download continues.
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

/// Why a file was not fetched. The received part stays, and the next try resumes there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The robot refuses, or does not answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A file cannot be written: which one, and why.
    #[error("{}: {error}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The received file differs from the robot's: it changed meanwhile, or was damaged on the way. It was discarded.
    #[error(
        "{0:?} differs from the robot's file: the file changed during the download, or was damaged; try again"
    )]
    Checksum(String),
    /// The progress callback ended it.
    #[error("the download was stopped; call again to resume it")]
    Stopped,
    /// An answer of version 6 that is malformed, too large, or has names that leave the folder.
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
                "the wire format of version 6 cannot list the files in a folder".into(),
            ));
        }
        let mut files: Vec<FileInfo> = Vec::new();
        let mut bytes = 0;
        for _ in 0..LIST_PAGES {
            let request = FileRequest {
                identifier: identifier.into(),
                offset: files.len() as u64,
                ..Default::default()
            };
            let chunk = self.ask_file(request).wait()?;
            let done = chunk.entries.is_empty() || files.len() as u64 >= chunk.size;
            bytes += chunk.entries.iter().map(|e| e.path.len()).sum::<usize>();
            if files.len() + chunk.entries.len() > LIST_FILES || bytes > LIST_BYTES {
                return Err(RequestError::Malformed(format!(
                    "the list exceeds {LIST_FILES} files or {LIST_BYTES} B of paths"
                )));
            }
            files.extend(chunk.entries.into_iter().map(|e| FileInfo {
                path: e.path,
                size: e.size,
            }));
            if done || files.len() as u64 >= chunk.size {
                return Ok(files);
            }
        }
        Err(RequestError::Malformed(format!(
            "the list of files exceeds {LIST_PAGES} answers"
        )))
    }

    /// Fetches one file under the requested name; a single shared file is named after its identifier.
    pub(super) fn download(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        into: &Path,
        saving: Saving,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let name = if path.is_empty() { identifier } else { path };
        let name = self.name_here(name);
        let destination = Destination::new(into, name, saving)?;
        if self.speaks_v6() {
            return self.download_v6(identifier, path, &destination, progress);
        }
        self.download_to(identifier, path, &destination, progress)
    }

    /// Fetches all files into a folder named after their identifier; a single file as [`Core::download`].
    pub(super) fn download_all(
        self: &Arc<Self>,
        identifier: &str,
        into: &Path,
        saving: Saving,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<Vec<PathBuf>, FileError> {
        let below = |path: &str| {
            let identifier = self.name_here(identifier);
            let name = if path.is_empty() {
                identifier
            } else {
                format!("{identifier}/{path}")
            };
            Destination::new(into, name, saving)
        };
        if self.speaks_v6() {
            return self.download_all_v6(identifier, below, progress);
        }
        let files = self.files(identifier)?;
        // If one of them may not be written, none is fetched.
        let destinations = files
            .iter()
            .map(|file| below(&file.path))
            .collect::<Result<Vec<_>, _>>()?;
        let fetch = |(file, destination): (&FileInfo, &Destination<'_>)| {
            self.download_to(identifier, &file.path, destination, progress)
        };
        files.iter().zip(&destinations).map(fetch).collect()
    }

    /// Returns the name below the destination folder: robots of version 6 also name files by absolute paths.
    fn name_here(&self, name: &str) -> String {
        match self.speaks_v6() {
            true => v6::below_root(name).into_owned(),
            false => name.to_owned(),
        }
    }

    fn download_to(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        destination: &Destination<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let failed = |error| destination.failed(error);
        let mut part = match destination.open() {
            Ok(part) => part,
            // An earlier download, of this file or of all of them, already finished it.
            Err(error) if error.is_there() && self.is_fetched(identifier, path, destination, progress)? => {
                return Ok(destination.path());
            }
            Err(error) => return Err(error),
        };
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
                return Ok(destination.path());
            }
            part.restart().map_err(failed)?;
            if !std::mem::take(&mut again) {
                part.abandon();
                return Err(FileError::Checksum(destination.name.clone()));
            }
        }
    }

    /// Returns whether the existing file is the same as the robot's.
    fn is_fetched(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        destination: &Destination<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<bool, FileError> {
        let Ok((size, sha)) = destination.content() else {
            return Ok(false);
        };
        // A piece at the end of the file is empty, but carries the checksum of the whole file.
        let end = self.ask_file(FileRequest {
            identifier: identifier.into(),
            path: path.into(),
            offset: size,
            length: 1,
        });
        let end = end.wait()?;
        let is_same = end.size == size && *end.sha256 == *sha;
        let done = size;
        match is_same && !progress(Progress { path, done, size }) {
            true => Err(FileError::Stopped),
            false => Ok(is_same),
        }
    }

    /// Fetches the missing pieces. Returns the checksum of the robot's file.
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
            // The first answer gives the size.
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
                // Other controllers may have filled the robot's queue; before the first piece, a rejection is final.
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
                // The robot has a different file now, perhaps a shorter one.
                return Ok(Vec::new());
            }
            ahead.came(now().since(begun));
            part.write(&chunk.data).map_err(failed)?;
            (size, failures) = (Some(chunk.size), 0);
            let state = Progress {
                path,
                done: part.done,
                size: chunk.size,
            };
            if !progress(state) {
                return Err(FileError::Stopped);
            }
            if last {
                return Ok(chunk.sha256.to_vec());
            }
            // A robot may return less at once than requested.
            if len < u64::from(PIECE) {
                under_way.clear();
                asked = part.done;
            }
        }
    }

    /// Requests version 6's answer: files under names that the robot chooses.
    fn ask_v6(self: &Arc<Self>, identifier: &str) -> Result<v6::Files, FileError> {
        let request = FileRequest {
            identifier: identifier.into(),
            ..Default::default()
        };
        let reply = self.ask_file(request).wait()?;
        Ok(v6::parse_files(&reply.data, WHOLE)?)
    }

    /// Saves the requested file of version 6's answer: the only one, or the one with this path.
    fn download_v6(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        destination: &Destination<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let files = self.ask_v6(identifier)?;
        let none = |text: String| FileError::from(RequestError::Rejected(text));
        let wanted = destination.parts.join("/");
        let data = match path.is_empty() {
            true if files.len() == 1 => files.values().next(),
            true => {
                let text = format!(
                    "the robot sent {} files: name one, or fetch all of them",
                    files.len()
                );
                return Err(none(text));
            }
            false => files.get(&wanted),
        };
        let data = data.ok_or_else(|| none(format!("the robot did not send the file {path:?}")))?;
        destination.put(data, path, progress)
    }

    /// Saves all files of version 6's answer.
    fn download_all_v6<'a>(
        self: &Arc<Self>,
        identifier: &str,
        below: impl Fn(&str) -> Result<Destination<'a>, FileError>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<Vec<PathBuf>, FileError> {
        let files = self.ask_v6(identifier)?;
        let destinations = files
            .keys()
            .map(|path| below(path))
            .collect::<Result<Vec<_>, _>>()?;
        let put = |(destination, (path, data)): (&Destination<'_>, (&String, &Vec<u8>))| {
            destination.put(data, path, progress)
        };
        destinations.iter().zip(&files).map(put).collect()
    }
}

impl FileError {
    /// A file already exists at the destination.
    fn is_there(&self) -> bool {
        matches!(self, FileError::Io { error, .. } if error.kind() == io::ErrorKind::AlreadyExists)
    }
}

impl Destination<'_> {
    /// Returns length and SHA-256 of the existing file.
    fn content(&self) -> io::Result<(u64, Vec<u8>)> {
        let mut file = safe_path::open_without_links(self.into, &self.parts)?;
        let mut sha = Sha256::new();
        let size = hash(&mut file, &mut sha)?;
        Ok((size, sha.finalize().to_vec()))
    }

    /// Writes a file that arrived whole.
    fn put(
        &self,
        data: &[u8],
        path: &str,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let size = data.len() as u64;
        match self.open() {
            Ok(mut part) => {
                let written = part.restart().and_then(|()| part.write(data));
                written
                    .and_then(|()| part.finish())
                    .map_err(|error| self.failed(error))?;
            }
            Err(error) if error.is_there() => match self.content() {
                Ok(there) if there == (size, Sha256::digest(data).to_vec()) => {}
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        }
        let state = Progress {
            path,
            done: size,
            size,
        };
        match progress(state) {
            true => Ok(self.path()),
            false => Err(FileError::Stopped),
        }
    }
}

/// The received part of a file: next to its destination, under a temporary name.
struct Part {
    folder: OwnedFd,
    replace: bool,
    name: String,
    temporary: String,
    file: File,
    done: u64,
    sha: Sha256,
}

impl Part {
    fn open(into: &Path, parts: &[String], replace: bool) -> io::Result<Self> {
        std::fs::create_dir_all(into)?;
        let (folder, name) = safe_path::walk(safe_path::open_folder(into)?, parts, true)?;
        let there = rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        if !replace && there.is_ok() {
            return Err(exists());
        }
        let temporary = format!(".{name}.part");
        let mut file = safe_path::create(&folder, &temporary)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            io::Error::new(
                io::ErrorKind::WouldBlock,
                "another download of this file is in progress",
            )
        })?;
        let mut sha = Sha256::new();
        let done = hash(&mut file, &mut sha)?;
        Ok(Part {
            folder,
            replace,
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

    /// Removes the temporary file if the next try could not resume from it.
    fn abandon(&self) {
        if self.done == 0 {
            let _ = rustix::fs::unlinkat(&self.folder, self.temporary.as_str(), AtFlags::empty());
        }
    }

    /// The file is whole and checked: gives it its final name.
    fn finish(&self) -> io::Result<()> {
        self.file.sync_all()?;
        let (folder, from, to) = (&self.folder, self.temporary.as_str(), self.name.as_str());
        if self.replace {
            return Ok(rustix::fs::renameat(folder, from, folder, to)?);
        }
        match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(exists()),
            // Some file systems do not support this rename; a hard link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match rustix::fs::linkat(folder, from, folder, to, AtFlags::empty()) {
                    Err(Errno::EXIST) => return Err(exists()),
                    linked => linked?,
                }
                Ok(rustix::fs::unlinkat(folder, from, AtFlags::empty())?)
            }
            renamed => Ok(renamed?),
        }
    }
}

/// Feeds the rest of a file, from its current position, into `sha`. Returns the number of bytes.
fn hash(file: &mut File, sha: &mut Sha256) -> io::Result<u64> {
    let mut done = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(done),
            read => {
                sha.update(&buffer[..read]);
                done += read as u64;
            }
        }
    }
}

fn exists() -> io::Error {
    let text = "the file already exists: choose another folder, or allow replacing files";
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}
