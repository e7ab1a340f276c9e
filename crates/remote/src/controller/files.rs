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
/// A piece is waited for so long: with those that are ahead of it, over 100 kbit/s.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often in a row a piece is asked for again.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Most files of a list, and bytes of their paths; and answers that it may take, of which an honest robot needs a tenth.
const LIST_FILES: usize = 100_000;
const LIST_BYTES: usize = 32 << 20;
const LIST_PAGES: usize = 1_000;
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

/// What a download may do beyond making new files; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saving {
    /// Files of the same name are replaced.
    pub replace: bool,
    /// Files and folders may have names that begin with a dot, which programs read without being asked.
    pub hidden: bool,
}

impl Saving {
    /// Allows to replace files.
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

/// Where a file is put: below `into`, in parts none of which leads elsewhere.
struct Place<'a> {
    into: &'a Path,
    name: String,
    parts: Vec<String>,
    saving: Saving,
}

impl<'a> Place<'a> {
    fn new(into: &'a Path, name: String, saving: Saving) -> Result<Self, FileError> {
        let parts =
            beneath::parts(&name).and_then(|parts| match beneath::is_hidden(&parts) && !saving.hidden {
                false => Ok(parts),
                true => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "its name begins with a dot: allow hidden files if it is wanted",
                )),
            });
        let parts = parts.map_err(|error| FileError::Io {
            path: into.join(&name),
            error,
        })?;
        Ok(Place {
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
                    "its list has more than {LIST_FILES} files, or {LIST_BYTES} B of paths"
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
            "its list of files does not end within {LIST_PAGES} answers"
        )))
    }

    /// One file, under the name that was asked for: a single one under its identifier.
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
        let place = Place::new(into, name, saving)?;
        if self.speaks_v6() {
            return self.download_v6(identifier, path, &place, progress);
        }
        self.download_to(identifier, path, &place, progress)
    }

    /// All files, in a folder that is called as what they are shared under; of a single one as [`Core::download`].
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
            Place::new(into, name, saving)
        };
        if self.speaks_v6() {
            return self.download_all_v6(identifier, below, progress);
        }
        let files = self.files(identifier)?;
        // None is fetched where one may not be written.
        let places = files
            .iter()
            .map(|file| below(&file.path))
            .collect::<Result<Vec<_>, _>>()?;
        let fetch = |(file, place): (&FileInfo, &Place<'_>)| {
            self.download_to(identifier, &file.path, place, progress)
        };
        files.iter().zip(&places).map(fetch).collect()
    }

    /// What something is called below the folder that it is put into: robots of version 6 name files by absolute paths, too.
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
        place: &Place<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let failed = |error| place.failed(error);
        let mut part = match place.open() {
            Ok(part) => part,
            // An earlier download, of this file or of all of them, got so far.
            Err(error) if error.is_there() && self.is_fetched(identifier, path, place, progress)? => {
                return Ok(place.path());
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
                return Ok(place.path());
            }
            part.restart().map_err(failed)?;
            if !std::mem::take(&mut again) {
                part.abandon();
                return Err(FileError::Checksum(place.name.clone()));
            }
        }
    }

    /// Whether the file that stands there is the robot's.
    fn is_fetched(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        place: &Place<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<bool, FileError> {
        let Ok((size, sha)) = place.content() else {
            return Ok(false);
        };
        // What reaches the end, though it is nothing, has the checksum of all of it.
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

    /// Version 6's answer: files under names that the robot chooses.
    fn ask_v6(self: &Arc<Self>, identifier: &str) -> Result<v6::Files, FileError> {
        let request = FileRequest {
            identifier: identifier.into(),
            ..Default::default()
        };
        let reply = self.ask_file(request).wait()?;
        Ok(v6::parse_files(&reply.data, WHOLE)?)
    }

    /// The file of version 6's answer that was asked for: the only one, or that of a path.
    fn download_v6(
        self: &Arc<Self>,
        identifier: &str,
        path: &str,
        place: &Place<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<PathBuf, FileError> {
        let files = self.ask_v6(identifier)?;
        let none = |text: String| FileError::from(RequestError::Rejected(text));
        let wanted = place.parts.join("/");
        let data = match path.is_empty() {
            true if files.len() == 1 => files.values().next(),
            true => {
                let text = format!("{} files came: say which, or fetch all", files.len());
                return Err(none(text));
            }
            false => files.get(&wanted),
        };
        let data = data.ok_or_else(|| none(format!("what came has no file {path:?}")))?;
        place.put(data, path, progress)
    }

    /// All files of version 6's answer.
    fn download_all_v6<'a>(
        self: &Arc<Self>,
        identifier: &str,
        below: impl Fn(&str) -> Result<Place<'a>, FileError>,
        progress: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<Vec<PathBuf>, FileError> {
        let files = self.ask_v6(identifier)?;
        let places = files
            .keys()
            .map(|path| below(path))
            .collect::<Result<Vec<_>, _>>()?;
        let put = |(place, (path, data)): (&Place<'_>, (&String, &Vec<u8>))| place.put(data, path, progress);
        places.iter().zip(&files).map(put).collect()
    }
}

impl FileError {
    /// A file stands where one is to be made.
    fn is_there(&self) -> bool {
        matches!(self, FileError::Io { error, .. } if error.kind() == io::ErrorKind::AlreadyExists)
    }
}

impl Place<'_> {
    /// Length and SHA-256 of the file that stands there.
    fn content(&self) -> io::Result<(u64, Vec<u8>)> {
        let mut file = beneath::open_without_links(self.into, &self.parts)?;
        let mut sha = Sha256::new();
        let size = hash(&mut file, &mut sha)?;
        Ok((size, sha.finalize().to_vec()))
    }

    /// Writes a file that came whole.
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
        let told = Progress {
            path,
            done: size,
            size,
        };
        match progress(told) {
            true => Ok(self.path()),
            false => Err(FileError::Stopped),
        }
    }
}

/// What came of a file so far: beside where it will stand, under another name.
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
        let (folder, name) = beneath::walk(beneath::open_folder(into)?, parts, true)?;
        let there = rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        if !replace && there.is_ok() {
            return Err(exists());
        }
        let temporary = format!(".{name}.part");
        let mut file = beneath::create(&folder, &temporary)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "it is being fetched already"))?;
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

    /// Nothing that a next try could go on from is left behind.
    fn abandon(&self) {
        if self.done == 0 {
            let _ = rustix::fs::unlinkat(&self.folder, self.temporary.as_str(), AtFlags::empty());
        }
    }

    /// Whole and checked: it gets its name.
    fn finish(&self) -> io::Result<()> {
        self.file.sync_all()?;
        let (folder, from, to) = (&self.folder, self.temporary.as_str(), self.name.as_str());
        if self.replace {
            return Ok(rustix::fs::renameat(folder, from, folder, to)?);
        }
        match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(exists()),
            // Some file systems know no such renaming; a link replaces nothing, either.
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

/// What a file holds from where it stands goes into `sha`; its bytes.
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
    let text = "it exists already: choose another folder, or allow to replace files";
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}
