//! Requests over a lab's control socket: one line of JSON in each direction.

use crate::scenario::Settings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Longest line that either side reads.
pub(crate) const MAX_REQUEST: usize = 16 << 10;
/// A status names every host of every medium.
pub(crate) const MAX_REPLY: usize = 16 << 20;

/// A request; a connection carries one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields, tag = "request")]
pub(crate) enum Request {
    /// Return the lab's counters.
    Status {},
    /// Change a medium, a link or a host.
    Set {
        /// `robot-base`, `robot>base`, or the name of a medium or a host.
        target: String,
        set: Settings,
    },
    /// Return the namespaces of a host, as descriptors, and the environment for programs there.
    Enter { host: String },
    /// Send a pcap file of a host's frames after the reply.
    Pcap {
        host: String,
        /// End after this many frames.
        #[serde(default)]
        count: Option<u64>,
    },
    /// End the lab when this connection ends, for any reason.
    Hold {},
    /// End the lab.
    Down {},
}

/// What a program needs to enter a host; the namespaces' descriptors come with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entrance {
    /// Kinds of the descriptors, in the order in which to enter them.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) environment: BTreeMap<String, String>,
}

/// A kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Namespace {
    User,
    Pid,
    Ipc,
    Uts,
    Net,
    Mount,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply<T> {
    /// Done, with the requested value.
    Ok(T),
    /// Refused: one line that says how to fix it.
    Error(String),
}

impl Request {
    /// Parses a request; any bytes yield one, or a line that says what is wrong.
    pub(crate) fn parse(line: &[u8]) -> Result<Request, String> {
        serde_json::from_slice(line).map_err(|e| {
            let text = e.to_string();
            format!("not a request: {}", text.lines().next().unwrap_or_default())
        })
    }
}

/// Reads up to the first newline, without it, at most `limit` bytes.
pub(crate) fn read_line(from: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    // Byte by byte: descriptors and a pcap file may follow the line, and a buffered reader would consume them.
    while line.len() < limit {
        match from.read(&mut byte) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up")),
            Ok(_) if byte[0] == b'\n' => return Ok(line),
            Ok(_) => line.push(byte[0]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        format!("a line of more than {limit} bytes"),
    ))
}

/// One line of JSON.
pub(crate) fn to_line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}").into());
    line.push(b'\n');
    line
}
