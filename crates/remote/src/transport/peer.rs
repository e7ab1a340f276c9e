//! Who sent a request.

use std::fmt;
use std::sync::Arc;

/// Who sent a request, as its transport proves it: nothing here is taken from the frame, nor from what the sender says of itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// Nobody can tell: ZeroMQ without keys, and version 6. Controllers are told apart by the random number of their run alone, which
    /// anyone who reads the wire can send, too.
    Unproven,
    /// A controller's end within this process, by its number.
    Local(u64),
    /// A process of this host, as the kernel says of its connection to the bus (`SO_PEERCRED`).
    Process {
        /// Its user.
        uid: u32,
        /// Its number; 0 where it is in a PID namespace that is not visible from here.
        pid: u32,
        /// The id of the host for which it says that it asks, as a link daemon does. It proves nothing beyond the process: another
        /// process that names the same host is another peer.
        host: Option<u64>,
    },
    /// A host, by its name, as the link of this program knows it: by its certificate, or on carriers without keys by its address.
    Host(Arc<str>),
    /// Who has the secret key to this public one.
    Key {
        /// The public key (CURVE), as text.
        key: Arc<str>,
        /// As the robot's own list of keys names it.
        name: Arc<str>,
    },
}

impl Peer {
    /// Whether the transport proves anything.
    pub fn is_proven(&self) -> bool {
        *self != Peer::Unproven
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Unproven => f.write_str("unproven"),
            Peer::Local(number) => write!(f, "end {number} of this process"),
            Peer::Process { uid, pid, host: None } => write!(f, "process {pid} of user {uid}"),
            Peer::Process {
                uid,
                pid,
                host: Some(host),
            } => write!(f, "host {host:016x} through process {pid} of user {uid}"),
            Peer::Host(name) => write!(f, "host {}", name.escape_debug()),
            Peer::Key { key, name } => write!(f, "key {key} ({})", name.escape_debug()),
        }
    }
}
