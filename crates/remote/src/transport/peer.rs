//! The sender of a request (decision 274).

use std::fmt;
use std::sync::Arc;

/// The sender of a request, as its transport proves it: nothing here comes from the frame, or from what the sender
/// claims.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// No proof: ZeroMQ without keys, and version 6. Controllers are distinguished only by the random number of their
    /// run, which anyone who reads the wire can send, too.
    Unproven,
    /// A controller's end within this process, by its number.
    Local(u64),
    /// A process of this host, as the kernel reports for its connection to the bus (`SO_PEERCRED`).
    Process {
        /// Its user.
        uid: u32,
        /// Its process id; 0 if it is in a PID namespace that is not visible from here.
        pid: u32,
        /// The id of the host on whose behalf it claims to ask, as a link daemon does. It proves nothing beyond the
        /// process: another process that names the same host is another peer.
        host: Option<u64>,
    },
    /// A host, by the name that this program's link knows it by: from its certificate, or from its address on carriers
    /// without keys.
    Host(Arc<str>),
    /// The owner of the secret key to this public key.
    Key {
        /// The public key (CURVE), as text.
        key: Arc<str>,
        /// Its name in the robot's own list of keys.
        name: Arc<str>,
    },
}

impl Peer {
    /// Returns whether the transport proves anything.
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
