//! Zenoh with priorities (`peers/zenoh`, `src/bin/flow.rs`), configured as its documentation advises for a slow radio.
//!
//! `docs/guide/bench-link.md` lists the settings with reasons.

use super::network::Topic;
use super::tools::Tools;
use crate::flows::play::{self, Extra, Leg, Part, Played};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::site::{Ground, Site};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PORT: u16 = 7447;
/// Port of the control loop, whose ends are separate processes.
const LOOP: u16 = 7457;
/// About a frame of the radio: more important messages go between two batches.
const BATCH: u32 = 1400;
/// Bytes that the kernel may hold of a TCP connection beyond Zenoh's queues; the kernel doubles it.
const SEND_BUFFER: u32 = 4096;

/// The protocol that carries Zenoh's messages.
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

    /// Returns the endpoints of a host: two links if the protocol has connections, so that important messages wait
    /// behind no others in a socket. `slow`: over a radio, where a socket's own queue must be short.
    fn endpoints(self, address: &str, port: u16, slow: bool) -> Vec<String> {
        let place = |port: u16| format!("{}/{address}:{port}", self.name());
        match self {
            Protocol::Tcp if slow => vec![
                format!("{}?prio=1-4#so_sndbuf={SEND_BUFFER}", place(port)),
                format!("{}?prio=5-7#so_sndbuf={SEND_BUFFER}", place(port + 1)),
            ],
            Protocol::Tcp | Protocol::Quic => vec![
                format!("{}?prio=1-4", place(port)),
                format!("{}?prio=5-7", place(port + 1)),
            ],
            Protocol::Udp => vec![place(port)],
        }
    }
}

/// The program that sends and receives.
pub(super) struct Zenoh {
    program: PathBuf,
    pub(super) version: String,
}

impl Zenoh {
    /// Finds it, and builds it if it is missing.
    pub(super) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Zenoh, Error> {
        let (program, version) = ground.peer("zenoh-flow", "udpros", folder)?;
        Ok(Zenoh { program, version })
    }

    /// Sends `legs` through a running lab, together with further processes; `topics` are the legs'.
    pub(super) fn play(
        &self,
        tools: &Tools<'_>,
        what: &str,
        (protocol, topics): (Protocol, &[Topic]),
        site: &Site<'_>,
        legs: &[Leg],
        extras: &mut [Extra],
    ) -> Result<Played, RunError> {
        let mut files = Vec::new();
        for part in [Part::Publish, Part::Subscribe] {
            let mut hosts: Vec<&str> = legs.iter().map(|l| part.host(l)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            for host in hosts {
                let ends = ends(part, host, legs);
                let name = format!("{host}-{}", part.name());
                files.push((
                    part,
                    host,
                    configured(tools, protocol, site, (host, &name), &ends)?,
                ));
            }
        }
        let command = |part: Part, host: &str, of_host: &[&Leg]| {
            let file = files.iter().find(|f| f.0 == part && f.1 == host).map(|f| &*f.2);
            let mut words = vec![
                part.name().to_owned(),
                "--config".into(),
                file.unwrap_or_default().into(),
            ];
            for leg in of_host {
                let topic = legs
                    .iter()
                    .zip(topics)
                    .find(|(l, _)| l.flow.topic == leg.flow.topic);
                let priority = topic.map_or(50, |(_, t)| t.priority);
                words.extend(["--flow".into(), leg.flow.argument(), "--qos".into()]);
                words.push(quality(priority, protocol));
            }
            self.command(site, host, &words)
        };
        play::play_with(what, site, &tools.sandbox, legs, &command, extras)
    }

    /// Returns the commands of both ends of the control loop, each with its further arguments: the first on `hosts[0]`,
    /// which listens.
    pub(super) fn control(
        &self,
        tools: &Tools<'_>,
        (protocol, priority): (Protocol, u8),
        site: &Site<'_>,
        ends: [(&str, &str, Vec<String>); 2],
    ) -> Result<[Command; 2], RunError> {
        let listens = ends[0].1.to_owned();
        let one = |(role, host, words): (&str, &str, Vec<String>)| {
            let ends = if host == listens {
                Ends::Listens(LOOP)
            } else {
                Ends::Connects(vec![listens.clone()], LOOP)
            };
            let file = configured(tools, protocol, site, (host, role), &ends)?;
            let mut all = vec![role.to_owned(), "--config".into(), file];
            all.extend(words);
            all.extend(["--qos".into(), quality(priority, protocol)]);
            Ok::<_, RunError>(self.command(site, host, &all))
        };
        let [first, second] = ends;
        Ok([one(first)?, one(second)?])
    }

    fn command(&self, site: &Site<'_>, host: &str, words: &[String]) -> Command {
        let program = self.program.to_string_lossy();
        let words: Vec<&str> = [&*program]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        site.command(host, true, &words)
    }
}

/// The address of a process, or the addresses that it connects to, with their first port.
enum Ends {
    Listens(u16),
    Connects(Vec<String>, u16),
}

/// Publishers listen; subscribers connect to all that send to them.
fn ends(part: Part, host: &str, legs: &[Leg]) -> Ends {
    if part == Part::Publish {
        return Ends::Listens(PORT);
    }
    let mut senders: Vec<String> = (legs.iter().filter(|l| l.to == host))
        .map(|l| l.from.clone())
        .collect();
    senders.dedup();
    Ends::Connects(senders, PORT)
}

impl Zenoh {
    /// Returns the arguments of the publishing and of the subscribing program for one large message over a long path:
    /// one link, with the default buffers and batches of Zenoh and the kernel, because small ones would limit it to a
    /// few kB per round trip.
    pub(super) fn far(
        &self,
        tools: &Tools<'_>,
        protocol: Protocol,
        site: &Site<'_>,
        leg: &Leg,
    ) -> Result<(Vec<String>, Vec<String>), RunError> {
        let endpoint = format!("{}/{}:{PORT}", protocol.name(), site.address(&leg.from)?);
        let words = |part: Part| {
            let ends = |own: bool| if own { vec![endpoint.clone()] } else { Vec::new() };
            let publishes = part == Part::Publish;
            let mut config = session(ends(publishes), ends(!publishes));
            config["transport"] = json!({ "shared_memory": {"enabled": false} });
            let file = tools.file(&format!("{}-far-zenoh.json5", part.name()));
            fs::write(&file, config.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
            let mut words = vec![self.program.to_string_lossy().into_owned(), part.name().into()];
            words.extend(["--config".into(), file.to_string_lossy().into_owned()]);
            words.extend([
                "--flow".into(),
                leg.flow.argument(),
                "--qos".into(),
                quality(0, protocol),
            ]);
            Ok::<_, RunError>(words)
        };
        Ok((words(Part::Publish)?, words(Part::Subscribe)?))
    }
}

/// Returns a session that listens or connects, without scouting.
fn session(listen: Vec<String>, connect: Vec<String>) -> Value {
    json!({
        "mode": "peer",
        "listen": {"endpoints": listen},
        "connect": {
            "endpoints": connect, "timeout_ms": -1, "exit_on_failure": false,
            "retry": {"period_init_ms": 20, "period_max_ms": 100, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": false}, "gossip": {"enabled": false}},
    })
}

/// Returns Zenoh's priority (1 is its highest), its behaviour with a full queue, and whether it waits to fill a batch.
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

/// The session of a host's bridge: one host listens, the others connect to it.
pub(super) fn passing(site: &Site<'_>, host: &str, middle: &str) -> Result<String, RunError> {
    let endpoints = Protocol::Tcp.endpoints(&site.address(middle)?, PORT, true);
    let mut config = match host == middle {
        true => session(endpoints, Vec::new()),
        false => session(Vec::new(), endpoints),
    };
    config["transport"] = json!({
        "unicast": {"max_links": 2},
        "link": {"tx": {"batch_size": BATCH}},
        "shared_memory": {"enabled": false},
    });
    // As Zenoh's own bridge to DDS does: otherwise every image would be dropped, and the scans sent at the same time.
    config["qos"] = json!({
        "publication": [{"key_exprs": ["**"], "config": {"congestion_control": "block"}}],
    });
    Ok(config.to_string())
}

/// Writes the configuration of a process into a file with that name, without scouting.
fn configured(
    tools: &Tools<'_>,
    protocol: Protocol,
    site: &Site<'_>,
    (host, name): (&str, &str),
    ends: &Ends,
) -> Result<String, RunError> {
    // On a wire, Zenoh's own defaults are best.
    let slow = !site.is_wired();
    let (mut listen, mut connect) = (Vec::new(), Vec::new());
    match ends {
        Ends::Listens(port) => listen = protocol.endpoints(&site.address(host)?, *port, slow),
        Ends::Connects(hosts, port) => {
            for other in hosts {
                connect.extend(protocol.endpoints(&site.address(other)?, *port, slow));
            }
        }
    }
    let mut config = session(listen, connect);
    config["transport"] = json!({
        "unicast": {"max_links": 2},
        "link": {"tx": {}},
        "shared_memory": {"enabled": false},
    });
    if slow {
        config["transport"]["link"]["tx"]["batch_size"] = json!(BATCH);
    }
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
            // The certificates name hosts of the team, but Zenoh's endpoints are addresses.
            "verify_name_on_connect": false,
        });
    }
    let file = tools.file(&format!("{name}-zenoh.json5"));
    fs::write(&file, config.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file.to_string_lossy().into_owned())
}
