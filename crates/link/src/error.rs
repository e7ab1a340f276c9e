//! Why a link cannot start or continue.

use crate::carrier::CarrierError;

/// Why a link cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// See [`CarrierError`].
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// See [`bus::CreateError`].
    #[error("cannot create an endpoint on the bus: {0}")]
    Create(#[from] bus::CreateError),
    /// See [`bus::OpenError`].
    #[error(transparent)]
    Open(#[from] bus::OpenError),
    /// See [`bus::TakeError`].
    #[error("the bus fails: {0}")]
    Take(#[from] bus::TakeError),
    /// The radio rejects a setting.
    #[error("the radio refuses its settings: {0}")]
    Radio(#[from] proto::ConfigError),
    /// The radio rejects a peer.
    #[error("the radio refuses a peer: {0}")]
    Peer(#[from] proto::PeerError),
    /// The radio rejects a topic.
    #[error("the radio refuses a topic: {0}")]
    Topic(#[from] proto::TopicError),
    /// Another daemon owns the radio, or the link's name.
    #[error("{what} is already used by {holder}: {fix}")]
    Taken {
        /// The radio or name that is in use.
        what: String,
        /// The current owner.
        holder: String,
        /// What to do about it.
        fix: &'static str,
    },
    /// A topic cannot be filtered as configured.
    #[error("{0}")]
    Filter(String),
    /// The lock file that names the radio's owner cannot be used.
    #[error("cannot lock {path}: {source}: remove it if no link is running")]
    Lock {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The services for operators cannot start.
    #[error("the bus refuses the services of the link {link}: {source}")]
    Control {
        /// The link's name.
        link: String,
        /// Why.
        source: Box<ropewalk::NodeError>,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What the daemon was doing.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl LinkError {
    /// A system call failed while the link was `doing` something.
    pub(crate) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> LinkError + Copy {
        move |source| LinkError::System { doing, source }
    }
}
