//! The session with Zenoh: the routers it connects to, and its limits.

use std::path::{Path, PathBuf};
use zenoh::config::WhatAmI;
use zenoh::{Config, Session, Wait};

/// Default address of a router: where rmw_zenoh looks for it.
const ROUTER: &str = "tcp/localhost:7447";
/// How long a client tries to reach a router before [`open`] returns, in milliseconds.
const CLIENT_TRIES: &str = "3000";
/// Allowance for what a message takes on the wire in addition to its payload.
const MARGIN: u64 = 64 << 10;

/// As nodes of rmw_zenoh configure it: peers that a router introduces to each other, nothing sent to unknown hosts, and
/// connection attempts that never give up. Frames, leases and queues are rmw_zenoh's too.
const DEFAULT: &str = r#"{
    mode: "peer",
    connect: {timeout_ms: -1, exit_on_failure: false, retry: {period_init_ms: 200, period_max_ms: 1000, period_increase_factor: 2}},
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

/// The routers that a session connects to.
#[derive(Clone, Debug)]
pub(crate) struct SessionConfig {
    pub(crate) domain: u32,
    /// Endpoints of routers, such as `tcp/10.0.0.2:7447`. If empty: those of the file, or this host's.
    pub(crate) connect: Vec<String>,
    /// A configuration file of Zenoh.
    pub(crate) config: Option<PathBuf>,
}

/// Why the session cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The file is not a configuration of Zenoh.
    #[error("zenoh.config: {}: {problem}; give a configuration of Zenoh (JSON5)", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Zenoh's error.
        problem: String,
    },
    /// A setting is not valid.
    #[error("zenoh.{key}: {value} is refused: {problem}")]
    Value {
        /// Name of the setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Zenoh's error.
        problem: String,
    },
    /// No router answers, and the configuration's mode is `client`, which needs one. Try again later.
    #[error("{}", super::no_router(routers))]
    NoRouter {
        /// The addresses that were tried.
        routers: Vec<String>,
    },
    /// Zenoh does not start.
    #[error("cannot start Zenoh: {problem}")]
    Open {
        /// Zenoh's error.
        problem: String,
    },
}

/// Opens a session that accepts messages of `max_message` bytes. Also returns the addresses of its routers, if it looks
/// for any. A peer connects in the background; a client returns once it is connected.
pub(super) fn open(
    session_config: &SessionConfig,
    max_message: u64,
) -> Result<(Session, Vec<String>), SessionError> {
    let mut config = match &session_config.config {
        Some(path) => read(path)?,
        None => Config::from_json5(DEFAULT).map_err(opening)?,
    };
    let connect = match (&session_config.connect[..], &session_config.config) {
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
    // Messages kept for late subscribers are distinguished by their time.
    set(&mut config, "config", "timestamping/enabled", "true")?;
    let mode = config.mode().unwrap_or(WhatAmI::Peer);
    let routers = match mode {
        WhatAmI::Router => Vec::new(),
        _ => endpoints(&config),
    };
    let is_client = mode == WhatAmI::Client;
    if is_client {
        set(&mut config, "config", "connect/timeout_ms", CLIENT_TRIES)?;
    }
    match zenoh::open(config).wait() {
        Ok(session) => Ok((session, routers)),
        Err(error) if is_client => {
            tracing::debug!(%error, "cannot connect to a router");
            Err(SessionError::NoRouter { routers })
        }
        Err(error) => Err(opening(error)),
    }
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

/// Returns all endpoints that a configuration connects to, in every mode.
fn endpoints(config: &Config) -> Vec<String> {
    let text = config.get_json("connect/endpoints").unwrap_or_default();
    let texts = text.split('"').skip(1).step_by(2);
    texts.filter(|t| t.contains('/')).map(str::to_owned).collect()
}
