//! Files that controllers may fetch. One thread reads them, piece by piece, so that no command waits for a disk.

use super::core::{Core, Verdict};
use super::pieces::{Checksums, piece, whole};
use crate::own::{FileChunk, FileRequest, Outcome, response};
use crate::safe_path;
use crate::safety::Id;
use crate::sync::{lock, read, write};
use crate::transport::Reply;
use crate::{telemetry, types, v6};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, RwLock};

/// Maximum number of requests that wait for the thread: those of four controllers with as many pieces in flight as
/// allowed.
const WAITING: usize = 256;

#[derive(Default)]
pub(crate) struct Files {
    shared: RwLock<BTreeMap<String, PathBuf>>,
    jobs: Mutex<Option<SyncSender<Job>>>,
}

struct Job {
    shared: PathBuf,
    wanted: Wanted,
    reply: Reply,
}

enum Wanted {
    Piece {
        from: Id,
        sequence: u64,
        request: FileRequest,
    },
    Whole {
        compressed: bool,
    },
}

impl Core {
    /// Shares a file, or all files below a folder, under an identifier.
    pub(super) fn share(self: &Arc<Self>, identifier: &str, path: &Path) -> io::Result<()> {
        let path = path.canonicalize()?;
        // Checks that it can be opened and is a file or a folder.
        if path.is_dir() {
            safe_path::open_folder(&path)?;
        } else {
            safe_path::open_file(&path)?;
        }
        self.begin_reading()?;
        let definition = {
            let mut shared = write(&self.files.shared);
            shared.insert(identifier.to_owned(), path);
            let file = |(identifier, path): (&String, &PathBuf)| types::File {
                identifier: identifier.clone(),
                path: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                remote_path: String::new(),
            };
            types::FileDefinition {
                file: shared.iter().map(file).collect(),
                is_folder: shared.values().map(|path| path.is_dir()).collect(),
            }
        };
        self.set::<telemetry::FileDefinition>(0, &definition)
            .map_err(io::Error::other)
    }

    fn begin_reading(self: &Arc<Self>) -> io::Result<()> {
        let mut jobs = lock(&self.files.jobs);
        if jobs.is_some() || self.has_ended() {
            return Ok(());
        }
        let (send, receive) = sync_channel(WAITING);
        let core = Arc::downgrade(self);
        let work = move || {
            let mut checksums = Checksums::default();
            while let Ok(Job {
                shared,
                wanted,
                reply,
            }) = receive.recv()
            {
                let Some(core) = core.upgrade().filter(|core| !core.has_ended()) else {
                    return;
                };
                match wanted {
                    Wanted::Piece {
                        from,
                        sequence,
                        request,
                    } => match piece(&shared, &request, from, &mut checksums) {
                        Ok(chunk) => core.give(sequence, chunk, reply),
                        Err(e) => core.refuse(sequence, &e.to_string(), reply),
                    },
                    Wanted::Whole { compressed } => core.send(reply, &whole(&shared, compressed)),
                }
            }
        };
        std::thread::Builder::new()
            .name("remote-files".into())
            .spawn(work)?;
        *jobs = Some(send);
        Ok(())
    }

    fn give(&self, sequence: u64, chunk: FileChunk, reply: Reply) {
        let verdict = Verdict::new(Outcome::Executed, "");
        self.answer(sequence, verdict, Some(response::What::File(chunk)), reply);
    }

    /// Serves a piece of a file, or a page of a list, on Ropewalk's own wire.
    pub(super) fn file(&self, from: Id, sequence: u64, request: FileRequest, reply: Reply) {
        let shared = self.files.path(&request.identifier);
        let Some(shared) = shared else {
            let reason = format!(
                "the robot shares no file or folder called {:?}",
                request.identifier
            );
            return self.refuse(sequence, &reason, reply);
        };
        if let Err(job) = self.files.put(Job {
            shared,
            wanted: Wanted::Piece {
                from,
                sequence,
                request,
            },
            reply,
        }) {
            self.refuse(
                sequence,
                "the robot's queue of file requests is full: try again later",
                job.reply,
            );
        }
    }

    /// Serves everything at once, on the wire of version 6.
    pub(super) fn file_v6(&self, request: &types::FileRequest, reply: Reply) {
        let Some(shared) = self.files.path(&request.identifier) else {
            let reason = format!(
                "the robot shares no file or folder called {:?}",
                request.identifier
            );
            self.counters.dropped("refused", 1);
            return self.send(reply, &v6::no_files(&reason));
        };
        let wanted = Wanted::Whole {
            compressed: request.compressed,
        };
        if let Err(job) = self.files.put(Job {
            shared,
            wanted,
            reply,
        }) {
            self.counters.dropped("refused", 1);
            self.send(
                job.reply,
                &v6::no_files("the robot's queue of file requests is full: try again later"),
            );
        }
    }
}

impl Files {
    fn path(&self, identifier: &str) -> Option<PathBuf> {
        read(&self.shared).get(identifier).cloned()
    }

    fn put(&self, job: Job) -> Result<(), Box<Job>> {
        match &*lock(&self.jobs) {
            Some(jobs) => jobs.try_send(job).map_err(|e| match e {
                TrySendError::Full(job) | TrySendError::Disconnected(job) => Box::new(job),
            }),
            None => Err(Box::new(job)),
        }
    }

    /// Ends the thread after its current request.
    pub(super) fn stop(&self) {
        lock(&self.jobs).take();
    }
}
