//! Zenoh with priorities (`peers/zenoh`, `src/bin/flow.rs`), set as its documentation advises for a slow radio.
//!
//! `docs/guide/bench-link.md` says which settings, and why.

use super::network::Topic;
use super::tools::Tools;
use crate::flows::play::{self, Leg, Part, Played};
use crate::ipc::Error;
use crate::ipc::error::RunError;
use crate::lab::site::{Ground, Site};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const PORT: u16 = 7447;
/// About a frame of the radio: what is more important goes between two batches.
const BATCH: u32 = 1400;
/// What the kernel may hold of a TCP connection beyond Zenoh's queues; it doubles it.
const SEND_BUFFER: u32 = 4096;

/// What carries Zenoh's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
    Quic,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Quic => "quic",
        }
    }

    /// Endpoints of a host: two links where the protocol has connections, so that what is important waits behind
    /// nothing else in a socket.
    fn endpoints(self, address: &str) -> Vec<String> {
        let place = |port: u16| format!("{}/{address}:{port}", self.name());
        match self {
            Protocol::Tcp => vec![
                format!("{}?prio=1-4#so_sndbuf={SEND_BUFFER}", place(PORT)),
                format!("{}?prio=5-7#so_sndbuf={SEND_BUFFER}", place(PORT + 1)),
            ],
            Protocol::Quic => vec![
                format!("{}?prio=1-4", place(PORT)),
                format!("{}?prio=5-7", place(PORT + 1)),
            ],
            Protocol::Udp => vec![place(PORT)],
        }
    }
}

/// The program that sends and receives.
pub(super) struct Zenoh {
    program: PathBuf,
    pub(super) version: String,
}

impl Zenoh {
    /// Finds it, and builds it if it is not there.
    pub(super) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Zenoh, Error> {
        let (program, version) = ground.peer("zenoh-flow", folder)?;
        Ok(Zenoh { program, version })
    }

    /// Sends `legs` through a lab that is up; `topics` are theirs.
    pub(super) fn play(
        &self,
        tools: &Tools<'_>,
        what: &str,
        (protocol, topics): (Protocol, &[Topic]),
        site: &Site<'_>,
        legs: &[Leg],
    ) -> Result<Played, RunError> {
        let mut files = Vec::new();
        for part in [Part::Publish, Part::Subscribe] {
            let mut hosts: Vec<&str> = legs.iter().map(|l| part.host(l)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            for host in hosts {
                let config = configuration(tools, protocol, part, host, site, legs)?;
                let file = tools.file(&format!("{host}-{}-zenoh.json5", part.name()));
                fs::write(&file, config.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
                files.push((part, host, file));
            }
        }
        let command = |part: Part, host: &str, of_host: &[&Leg]| {
            let file = files.iter().find(|f| f.0 == part && f.1 == host).map(|f| &f.2);
            let file = file.map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
            let mut words = vec![self.program.to_string_lossy().into_owned(), part.name().into()];
            words.extend(["--config".into(), file]);
            for leg in of_host {
                let topic = legs
                    .iter()
                    .zip(topics)
                    .find(|(l, _)| l.flow.topic == leg.flow.topic);
                let priority = topic.map_or(50, |(_, t)| t.priority);
                words.extend(["--flow".into(), leg.flow.argument(), "--qos".into()]);
                words.push(quality(priority, protocol));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            site.command(host, true, &words)
        };
        play::play(what, site, &tools.sandbox, legs, &command)
    }
}

/// Zenoh's priority (1 is its highest), what it does when its queue is full, and whether it waits to fill a batch.
fn quality(priority: u8, protocol: Protocol) -> String {
    let (priority, express) = match priority {
        100.. => (1, "express"),
        60..100 => (3, "express"),
        20..60 => (5, "batch"),
        _ => (7, "batch"),
    };
    // Zenoh's default, drop, loses most of a large message on a slow radio.
    let reliability = if protocol == Protocol::Udp {
        "best-effort"
    } else {
        "reliable"
    };
    format!("{priority},block,{express},{reliability}")
}

/// Publishers listen, subscribers connect to all that send to them; nobody scouts.
fn configuration(
    tools: &Tools<'_>,
    protocol: Protocol,
    part: Part,
    host: &str,
    site: &Site<'_>,
    legs: &[Leg],
) -> Result<Value, RunError> {
    let (mut listen, mut connect) = (Vec::new(), Vec::new());
    if part == Part::Publish {
        listen = protocol.endpoints(&site.address(host)?);
    } else {
        let mut senders: Vec<&str> = legs.iter().filter(|l| l.to == host).map(|l| &*l.from).collect();
        senders.dedup();
        for sender in senders {
            connect.extend(protocol.endpoints(&site.address(sender)?));
        }
    }
    let mut config = json!({
        "mode": "peer",
        "listen": {"endpoints": listen},
        "connect": {
            "endpoints": connect, "timeout_ms": -1, "exit_on_failure": false,
            "retry": {"period_init_ms": 20, "period_max_ms": 100, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": false}, "gossip": {"enabled": false}},
        "transport": {
            "unicast": {"max_links": 2},
            "link": {"tx": {"batch_size": BATCH}},
            "shared_memory": {"enabled": false},
        },
    });
    if protocol == Protocol::Quic {
        let keys = tools.keys(host)?;
        let file = |name: &str| keys.join(name).to_string_lossy().into_owned();
        config["transport"]["link"]["tls"] = json!({
            "root_ca_certificate": file("team.pem"),
            "listen_private_key": file("host.key"),
            "listen_certificate": file("host.pem"),
            "connect_private_key": file("host.key"),
            "connect_certificate": file("host.pem"),
            "enable_mtls": true,
            // The certificates name hosts of the team, Zenoh's endpoints are addresses.
            "verify_name_on_connect": false,
        });
    }
    Ok(config)
}
