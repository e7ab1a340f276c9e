//! The handle of a bus.

use crate::config::BusConfig;
use crate::folder::Folder;
use crate::housekeeping::{Housekeeping, Shared};
use crate::publisher::{CreateError, Publisher, PublisherOptions};
use crate::subscriber::{Subscriber, SubscriberOptions};
use crate::survey::Survey;
use crate::sys::limits;
use crate::topic::{TopicInfo, TopicType};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A process's membership of a bus: a runtime folder, and one housekeeping thread that accepts connections,
/// performs handshakes, reserves memory ahead of time and cleans up.
///
/// Cheap to clone. Publishers and subscribers keep the bus alive; when the last of them is dropped, the
/// thread ends and all its files and descriptors are gone. Messages do not keep the bus alive and stay valid
/// without it.
#[derive(Clone, Debug)]
pub struct Bus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Bus {
    /// Creates and checks the runtime folder, raises the limit of open files and starts the housekeeping
    /// thread.
    pub fn open(config: BusConfig) -> Result<Bus, OpenError> {
        let folder = Folder::open(&config)?;
        limits::raise_open_files(config.open_files);
        let system = |what| move |source| OpenError::System { what, source };
        let shared = Arc::new(Shared::new(config, folder).map_err(system("making descriptors"))?);
        let housekeeping = Housekeeping::new(shared.clone());
        let thread = std::thread::Builder::new()
            .name("ropewalk-bus".into())
            .spawn(move || housekeeping.run())
            .map_err(system("starting the housekeeping thread"))?;
        Ok(Bus {
            inner: Arc::new(Inner {
                shared,
                thread: Some(thread),
            }),
        })
    }

    /// Returns the configuration that the bus was opened with.
    pub fn config(&self) -> &BusConfig {
        &self.inner.shared.config
    }

    /// Creates a publisher of `topic`. Returns at once; subscribers connect in the background.
    pub fn publisher(&self, topic: TopicType, options: PublisherOptions) -> Result<Publisher, CreateError> {
        Publisher::new(self, topic, options)
    }

    /// Creates a subscriber to `topic`. Returns at once; publishers connect in the background.
    pub fn subscriber(
        &self,
        topic: TopicType,
        options: SubscriberOptions,
    ) -> Result<Subscriber, CreateError> {
        Subscriber::new(self, topic, options)
    }

    /// Queries every live endpoint of this domain. Blocks until all have answered, at most `timeout`;
    /// endpoints that do not answer are left out, unless they answered before ([`Survey::topics`]). Also removes sockets of
    /// dead processes.
    pub fn topics(&self, timeout: Duration) -> Result<Vec<TopicInfo>, OpenError> {
        Ok(self.survey(timeout)?.topics)
    }

    /// Like [`Bus::topics`], and also returns what else the runtime folder contains: silent endpoints and
    /// sockets of dead processes.
    pub fn survey(&self, timeout: Duration) -> Result<Survey, OpenError> {
        let shared = &self.inner.shared;
        if shared.birth.is_foreign() {
            return Err(OpenError::Forked);
        }
        crate::survey::survey(&shared.folder, &shared.config, timeout, &shared.answers)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.shared.birth.is_foreign() {
            // The thread does not exist in a forked child; the child must not touch its handle.
            std::mem::forget(thread);
            return;
        }
        self.shared.stop();
        let _ = thread.join();
    }
}

/// Why a bus cannot be opened or listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The runtime folder cannot be created or read.
    #[error("the runtime folder {dir:?} is not usable: {source}")]
    Dir {
        /// The folder.
        dir: PathBuf,
        /// The system error.
        source: std::io::Error,
    },
    /// The runtime folder is a symbolic link or not a folder.
    #[error("{dir:?} is not a folder (symbolic links are refused): remove it or set ROPEWALK_RUNTIME_DIR")]
    NotADir {
        /// The path.
        dir: PathBuf,
    },
    /// The runtime folder belongs to someone else.
    #[error(
        "the runtime folder {dir:?} belongs to user {owner} and group {group}, not to user {uid}: set \
         ROPEWALK_RUNTIME_DIR to another folder, or share this one through its group (ROPEWALK_GROUP)"
    )]
    Owner {
        /// The folder.
        dir: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        uid: u32,
        /// Its group.
        group: u32,
    },
    /// Other users may write to the runtime folder, so they could impersonate endpoints.
    #[error(
        "other users may write to the runtime folder {dir:?} (mode {mode:03o}): run chmod 700 on it, or, if \
         a group shares it, set ROPEWALK_GROUP to the group's number"
    )]
    Mode {
        /// The folder.
        dir: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The path is too long for a Unix socket's address (108 bytes), and there is no `/proc` to work around
    /// that.
    #[error(
        "the path of the runtime folder {dir:?} has {len} bytes, but without /proc at most {max} are \
         possible: use a shorter path"
    )]
    PathTooLong {
        /// The folder.
        dir: PathBuf,
        /// Its length.
        len: usize,
        /// The longest that works without `/proc`.
        max: usize,
    },
    /// Without `/proc` a socket can only be reached by its path, which a member of the group may redirect.
    #[error("the runtime folder {dir:?} is shared by a group, which needs /proc: mount /proc")]
    NoProc {
        /// The folder.
        dir: PathBuf,
    },
    /// A descriptor or the thread could not be created.
    #[error("cannot start the bus ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// The system error.
        source: std::io::Error,
    },
    /// The process was forked after the bus was opened; open a new one in the child.
    #[error("this bus belongs to the parent process: open a new one after fork")]
    Forked,
}
