//! The session with Zenoh: whom it connects to, and what it may hold.

use std::path::{Path, PathBuf};
use zenoh::config::WhatAmI;
use zenoh::{Config, Session, Wait};

/// Where a router is unless told otherwise: where rmw_zenoh looks for it.
const ROUTER: &str = "tcp/localhost:7447";
/// What a message takes on the wire beside its payload.
const MARGIN: u64 = 64 << 10;

/// As nodes of rmw_zenoh have it: peers that a router introduces to each other, nothing sent to unknown hosts, and attempts that never end.
/// Frames, leases and queues are theirs, too.
const DEFAULT: &str = r#"{
    mode: "peer",
    connect: {timeout_ms: -1, exit_on_failure: false, retry: {period_init_ms: 500, period_max_ms: 4000, period_increase_factor: 2}},
    listen: {timeout_ms: 0, endpoints: ["tcp/localhost:0"]},
    scouting: {
        multicast: {enabled: false},
        gossip: {
            enabled: true,
            multihop: false,
            target: {router: ["router", "peer"], peer: ["router"]},
            autoconnect: {router: [], peer: ["router", "peer"]},
            autoconnect_strategy: {peer: {to_router: "always", to_peer: "greater-zid"}},
        },
    },
    transport: {
        unicast: {open_timeout: 60000, accept_timeout: 60000, accept_pending: 10000, max_sessions: 10000, max_links: 1},
        link: {tx: {lease: 60000, keep_alive: 2, queue: {allocation: {mode: "lazy"}}}},
    },
}"#;

/// Whom a session connects to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) domain: u32,
    /// Endpoints of routers, such as `tcp/10.0.0.2:7447`; those of the file, or this host's, if none are named.
    pub(crate) connect: Vec<String>,
    /// A configuration of Zenoh's own.
    pub(crate) config: Option<PathBuf>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The file is none of Zenoh's.
    #[error("zenoh.config: {}: {problem}; it must be a configuration of Zenoh (JSON5)", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What Zenoh says.
        problem: String,
    },
    /// Something that is asked for is none.
    #[error("zenoh.{key}: {value} is not taken: {problem}")]
    Value {
        /// What it is for.
        key: &'static str,
        /// As it was given.
        value: String,
        /// What Zenoh says.
        problem: String,
    },
    /// Zenoh does not start.
    #[error("Zenoh does not start: {problem}")]
    Open {
        /// What it says.
        problem: String,
    },
}

/// Opens a session that takes messages of this many bytes. Also says where its routers are, if it looks for any.
pub(super) fn open(place: &Place, max_message: u64) -> Result<(Session, Vec<String>), SessionError> {
    let mut config = match &place.config {
        Some(path) => read(path)?,
        None => Config::from_json5(DEFAULT).map_err(opening)?,
    };
    let connect = match (&place.connect[..], &place.config) {
        ([], Some(_)) => None,
        ([], None) => Some(vec![ROUTER.to_owned()]),
        (named, _) => Some(named.to_vec()),
    };
    if let Some(connect) = connect {
        let quoted: Vec<String> = connect.iter().map(|e| format!("{e:?}")).collect();
        set(
            &mut config,
            "connect",
            "connect/endpoints",
            &format!("[{}]", quoted.join(", ")),
        )?;
    }
    let most = (max_message + MARGIN).to_string();
    set(&mut config, "config", "transport/link/rx/max_message_size", &most)?;
    // What is kept for late subscribers is told apart by its time.
    set(&mut config, "config", "timestamping/enabled", "true")?;
    let is_router = config.mode().is_some_and(|mode| mode == WhatAmI::Router);
    let routers = if is_router { Vec::new() } else { endpoints(&config) };
    let session = zenoh::open(config).wait().map_err(opening)?;
    Ok((session, routers))
}

fn opening(error: zenoh::Error) -> SessionError {
    SessionError::Open {
        problem: error.to_string(),
    }
}

fn read(path: &Path) -> Result<Config, SessionError> {
    Config::from_file(path).map_err(|error| SessionError::File {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

fn set(config: &mut Config, key: &'static str, path: &str, value: &str) -> Result<(), SessionError> {
    config
        .insert_json5(path, value)
        .map_err(|error| SessionError::Value {
            key,
            value: value.to_owned(),
            problem: error.to_string(),
        })
}

/// All endpoints that a configuration connects to, of whatever mode.
fn endpoints(config: &Config) -> Vec<String> {
    let text = config.get_json("connect/endpoints").unwrap_or_default();
    let mut texts = text.split('"').skip(1).step_by(2);
    let mut out = Vec::new();
    while let Some(text) = texts.next() {
        if text.contains('/') {
            out.push(text.to_owned());
        }
    }
    out
}
