//! The status of services.

use super::failure::Failure;
use crate::config::ServiceRole;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether a service can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServiceState {
    /// It can be called.
    Ready,
    /// The peer does not offer it: its link does not list it, or it has no server there.
    NotOffered,
    /// The peer offers it, but is silent at present.
    NoPeer,
    /// The serving host does not permit the other host to call it (`allow`).
    Refused,
    /// It has no server on this host.
    Unserved,
}

/// A service towards one peer. Every call is open, answered, or failed for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// The peer's configured name.
    pub peer: String,
    /// The service's name as it crosses the air.
    pub name: String,
    /// Its name on this host's bus.
    pub here: String,
    /// This host's role for it.
    pub role: ServiceRole,
    /// Its type, if known.
    pub type_name: Option<String>,
    /// Whether it can be called.
    pub state: ServiceState,
    /// The priority of the requests or replies that this host sends.
    pub priority: u8,
    /// Calls that have no answer yet.
    pub open: u64,
    /// Calls so far, by this host's callers or the peer's.
    pub calls: u64,
    /// Calls that the server answered.
    pub answered: u64,
    /// Calls that failed, by reason.
    pub failed: BTreeMap<Failure, u64>,
    /// Bytes of requests passed to or received from the radio, including headers.
    pub request_bytes: u64,
    /// Bytes of replies, counted the same way.
    pub reply_bytes: u64,
    /// Repeated requests that were not executed again.
    pub repeated: u64,
    /// Replies without a waiting caller.
    pub late: u64,
}
