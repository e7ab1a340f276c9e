//! How the nodes of each system are started (`peers/scale/README.md`).

use super::point::Point;
use super::stage::Stage;
use super::tools::Tools;
use super::trial::Run;
use super::{System, raw};
use crate::ipc::error::RunError;
use std::process::Command;

/// The first port of Zenoh's echoes.
const ZENOH: u32 = 17_447;

/// The node that sends.
pub(super) fn sender(
    tools: &Tools<'_>,
    stage: &Stage<'_>,
    system: System,
    point: &Point,
    run: &Run<'_>,
    sender: u32,
) -> Result<Command, RunError> {
    let [host, _] = point.hosts_of(sender);
    let answers: Vec<_> = point
        .echoes_of(sender)
        .map(|e| answered(host, run.number, sender, e))
        .collect();
    // Senders are not in step.
    let phase = (f64::from(sender) * 0.618_034).fract();
    let mut words = node(tools, system, point, "send");
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("publish", sent(host, run.number, sender));
    option("answers", answers.join(","));
    option("hz", point.hz.to_string());
    option("messages", point.messages.to_string());
    option("offset-us", ((phase * 1e6 / point.hz) as u64).to_string());
    option("linger-ms", run.linger.as_millis().to_string());
    option(
        "log",
        raw::file(run.folder, sender).to_string_lossy().into_owned(),
    );
    if system == System::Zenoh {
        for echo in point.echoes_of(sender) {
            let [_, there] = point.hosts_of(echo);
            option(
                "connect",
                format!("tcp/{}:{}", stage.address(there)?, ZENOH + echo),
            );
        }
    }
    let mut command = stage.command(host, &words)?;
    around(&mut command, system, stage, point)?;
    Ok(command)
}

/// The node that answers.
pub(super) fn echo(
    tools: &Tools<'_>,
    stage: &Stage<'_>,
    system: System,
    point: &Point,
    number: u64,
    echo: u32,
) -> Result<Command, RunError> {
    let [_, host] = point.hosts_of(echo);
    let ways: Vec<_> = (0..point.senders())
        .filter(|s| point.echoes_of(*s).contains(&echo))
        .map(|s| {
            let [from, _] = point.hosts_of(s);
            format!("{}:{}", sent(from, number, s), answered(from, number, s, echo))
        })
        .collect();
    let mut words = node(tools, system, point, "echo");
    words.extend(["--ways".to_owned(), ways.join(",")]);
    if system == System::Zenoh {
        words.extend([
            "--listen".to_owned(),
            format!("tcp/{}:{}", stage.address(host)?, ZENOH + echo),
        ]);
    }
    let mut command = stage.command(host, &words)?;
    around(&mut command, system, stage, point)?;
    Ok(command)
}

fn node(tools: &Tools<'_>, system: System, point: &Point, role: &str) -> Vec<String> {
    let mut words = tools.program(system);
    words.push(role.to_owned());
    for (name, value) in [
        ("system", system.name().to_owned()),
        ("bytes", point.bytes.to_string()),
        ("queue", point.queue().to_string()),
    ] {
        words.extend([format!("--{name}"), value]);
    }
    words
}

/// A sender's topic: links know its host by it.
fn sent(host: u32, number: u64, sender: u32) -> String {
    format!("/scale/s{host}/n{number}/t{sender}")
}

/// The topic of an echo's answers to a sender.
fn answered(host: u32, number: u64, sender: u32, echo: u32) -> String {
    format!("/scale/r{host}/n{number}/t{sender}_{echo}")
}

/// Cyclone DDS finds others by their addresses: a lab carries no multicast.
fn around(command: &mut Command, system: System, stage: &Stage<'_>, point: &Point) -> Result<(), RunError> {
    if system != System::Cyclonedds {
        return Ok(());
    }
    let mut peers = String::new();
    for host in 0..point.hosts {
        peers.push_str(&format!("<Peer address=\"{}\"/>", stage.address(host)?));
    }
    let interface = if point.hosts == 1 {
        "<Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>"
    } else {
        ""
    };
    command.env(
        "CYCLONEDDS_URI",
        format!(
            "<CycloneDDS><Domain><General>{interface}<AllowMulticast>false</AllowMulticast></General><Discovery>\
             <ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{}</MaxAutoParticipantIndex>\
             <Peers>{peers}</Peers></Discovery></Domain></CycloneDDS>",
            point.nodes + 8
        ),
    );
    Ok(())
}
