//! Sends flows through a lab, and logs what arrives.

use super::Sent;
use super::said::{Received, Rule, Said};
use crate::kit::cell::Timing;
use crate::kit::error::RunError;
use crate::kit::processes::{Peer, Processes};
use crate::kit::sandbox::Sandbox;
use crate::kit::site::Site;
use lab::Status;
use std::process::Command;
use std::time::Duration;

/// Time between `ready` and `go`, for connections to settle.
const SETTLE: Duration = Duration::from_millis(500);
/// Time after the last message: longer than any queue of a working flow.
const LINGER: Duration = Duration::from_secs(3);
const READY: Duration = Duration::from_secs(60);
const RESULT: Duration = Duration::from_secs(30);
/// Maximum number of values of an extra process if there are no flows.
const MOST_VALUES: u64 = 10_000;

/// A flow and its hosts.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) flow: Sent,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The part of a process in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Publish,
    Subscribe,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Publish => "publish",
            Part::Subscribe => "subscribe",
        }
    }

    pub(crate) fn host(self, leg: &Leg) -> &str {
        match self {
            Part::Publish => &leg.from,
            Part::Subscribe => &leg.to,
        }
    }
}

/// Result of a run.
pub(crate) struct Played {
    /// For each leg, in order.
    pub(crate) received: Vec<Received>,
    /// Timing of the lab.
    pub(crate) timing: Timing,
    /// The values of each extra process, in order.
    pub(crate) values: Vec<Option<Vec<f64>>>,
    /// The lab's numbers after the last message.
    pub(crate) lab: Status,
}

/// A process in addition to those that send and receive flows.
pub(crate) struct Extra {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
    /// How long it takes until it reports its values; `None`: it runs until it is stopped.
    pub(crate) takes: Option<Duration>,
}

/// Returns the arguments that describe a process's flows.
pub(crate) fn flow_arguments(legs: &[&Leg]) -> Vec<String> {
    let words = legs.iter().map(|l| ["--flow".to_owned(), l.flow.argument()]);
    words.flatten().collect()
}

/// Starts one publishing process on each host where a leg begins, and a subscribing one on each host where a leg ends;
/// starts the sending; returns what arrived. `command` returns the process for a part with some legs on a host. `what`
/// is named in errors.
pub(crate) fn play(
    what: &str,
    site: &Site<'_>,
    sandbox: &Sandbox,
    legs: &[Leg],
    command: &dyn Fn(Part, &str, &[&Leg]) -> Command,
) -> Result<Played, RunError> {
    play_with(what, site, sandbox, legs, command, &mut [])
}

/// The same with further processes, which start together with the senders.
pub(crate) fn play_with(
    what: &str,
    site: &Site<'_>,
    sandbox: &Sandbox,
    legs: &[Leg],
    command: &dyn Fn(Part, &str, &[&Leg]) -> Command,
    extras: &mut [Extra],
) -> Result<Played, RunError> {
    let rule = Rule {
        flows: legs.len().max(1),
        most: legs.iter().map(|l| l.flow.count).max().unwrap_or(MOST_VALUES),
    };
    let mut processes = Processes::<Said>::new(rule, sandbox, site.stopped());
    // The legs of each process.
    let mut parts: Vec<(Part, Vec<usize>)> = Vec::new();
    for part in [Part::Publish, Part::Subscribe] {
        let mut hosts: Vec<&str> = Vec::new();
        for leg in legs {
            if !hosts.contains(&part.host(leg)) {
                hosts.push(part.host(leg));
            }
        }
        for host in hosts {
            let own: Vec<usize> = (0..legs.len()).filter(|i| part.host(&legs[*i]) == host).collect();
            let of_host: Vec<&Leg> = own.iter().map(|i| &legs[*i]).collect();
            processes.start(
                format!("{what}: {} on {host}", part.name()),
                &mut command(part, host, &of_host),
            )?;
            parts.push((part, own));
        }
    }
    for extra in extras.iter_mut() {
        processes.start(format!("{what}: {}", extra.name), &mut extra.command)?;
    }
    let ready = processes.listen(clock::monotonic() + READY, |peers| {
        peers.iter().all(|p| p.said.ready)
    })?;
    if !ready {
        let why = format!("{what}: publisher and subscriber did not find each other within {READY:?}");
        return Err(why.into());
    }
    processes.listen(clock::monotonic() + SETTLE, |_| false)?;
    let senders = parts.iter().filter(|p| p.0 == Part::Publish).count();
    let own = parts.len();
    (0..senders)
        .chain(own..own + extras.len())
        .for_each(|who| processes.tell(who, "go"));
    let flows = legs.iter().map(|l| Duration::from_micros(l.flow.takes_us()));
    let takes = flows.chain(extras.iter().filter_map(|e| e.takes)).max();
    let patience = takes.unwrap_or_default() + RESULT;
    let waits: Vec<bool> = extras.iter().map(|e| e.takes.is_some()).collect();
    // The first process that is not done yet.
    let ended = |peers: &[Peer<Said>]| {
        let sending = (0..senders).find(|i| peers[*i].said.published.is_none());
        let extra = |i: &usize| waits[*i - own] && peers[*i].said.values.is_none();
        sending.or_else(|| (own..peers.len()).find(extra))
    };
    if !processes.listen(clock::monotonic() + patience, |peers| ended(peers).is_none())? {
        let who = ended(processes.peers()).unwrap_or_default();
        return Err(processes.peers()[who].complain(&format!("it did not finish within {patience:?}")));
    }
    processes.listen(clock::monotonic() + LINGER, |_| false)?;
    let lab = site.status()?;
    let heard_out = processes.stop(RESULT, |peers| {
        peers[senders..own].iter().all(|p| p.said.received.is_some())
    })?;
    if !heard_out {
        return Err(format!("{what}: no result within {RESULT:?}").into());
    }
    processes.join()?;
    let mut received: Vec<Option<Received>> = vec![None; legs.len()];
    let mut whole = vec![false; legs.len()];
    let mut peers = processes.into_peers();
    let values = peers.split_off(own).into_iter().map(|p| p.said.values).collect();
    for ((part, own), peer) in parts.iter().zip(peers) {
        let (published, logs) = (
            peer.said.published.unwrap_or_default(),
            peer.said.received.unwrap_or_default(),
        );
        for (i, place) in own.iter().enumerate() {
            let flow = &legs[*place].flow;
            match part {
                Part::Publish => {
                    let all = |s: &super::said::Published| s.topic == flow.topic && s.sent == flow.count;
                    whole[*place] = published.get(i).is_some_and(all);
                }
                Part::Subscribe => {
                    received[*place] = logs.get(i).filter(|r| r.topic == flow.topic).cloned();
                }
            }
        }
    }
    let mut logs = Vec::new();
    for ((log, whole), leg) in received.into_iter().zip(whole).zip(legs) {
        let log = log.filter(|_| whole);
        logs.push(log.ok_or_else(|| {
            RunError::Failed(format!(
                "{what}: {} was not sent completely, or not logged",
                leg.flow.topic
            ))
        })?);
    }
    Ok(Played {
        received: logs,
        values,
        timing: Timing::of(&lab),
        lab,
    })
}
