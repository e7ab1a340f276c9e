//! One run of one system at one point.

use super::counters::{Snapshot, memory_kib};
use super::measured::{Busiest, Measured};
use super::point::Point;
use super::said::Said;
use super::stage::{Stage, wire_between};
use super::statistics::Trips;
use super::tools::Tools;
use super::{System, calls, links, peers, raw};
use crate::ipc::crew::{Crew, Peer};
use crate::ipc::error::RunError;
use crate::ipc::usage::Host;
use crate::links::Daemons;
use lab::Status;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What is said of a sender that does not come to its end.
pub(super) const HANGS: &str = "it did not come to its end";
/// Messages before those that count, of each sender.
pub(super) const WARM_UP: f64 = 0.1;
/// How long the nodes may take to find each other; each has its share of the processors to start with.
const READY: Duration = Duration::from_secs(60);
const READY_EACH: Duration = Duration::from_secs(1);
/// How long senders may take beyond their schedule, and how many times longer.
const HANGING: Duration = Duration::from_secs(60);
const OVERLOAD: u32 = 8;
const RESULT: Duration = Duration::from_secs(60);
/// Between `go` and the first message.
const BEFORE: Duration = Duration::from_millis(200);
/// Shares of processors are looked at until so much of the schedule is over.
const MOST: f64 = 0.9;

/// Where a run writes, and which it is.
pub(super) struct Run<'a> {
    pub(super) folder: &'a Path,
    /// Unique in this process.
    pub(super) number: u64,
    pub(super) linger: Duration,
    /// Whether system calls are counted into the folder.
    pub(super) traced: bool,
}

impl Run<'_> {
    fn traced(&self, command: Command, node: u32) -> Command {
        if !self.traced {
            return command;
        }
        calls::traced(&command, &calls::file(self.folder, node as usize))
    }
}

/// Runs `system` once. The raw data lie in the run's folder afterwards.
pub(super) fn run(
    tools: &Tools<'_>,
    stage: &mut Stage<'_>,
    system: System,
    point: &Point,
    run: &Run<'_>,
) -> Result<Measured, RunError> {
    fs::create_dir_all(run.folder).map_err(|e| format!("{}: {e}", run.folder.display()))?;
    stage.prepare(system)?;
    let daemons = if system.is_ours() && point.hosts > 1 {
        links::up(tools, stage, point)?
    } else {
        Daemons::default()
    };
    let pids: Vec<u32> = daemons.pids().collect();
    let measured = nodes(tools, stage, system, point, run, &pids);
    let (mut measured, last) = daemons.end(measured, tools.ground.stopped)?;
    measured.drops.extend(links::drops(&last));
    Ok(measured)
}

fn nodes(
    tools: &Tools<'_>,
    stage: &Stage<'_>,
    system: System,
    point: &Point,
    run: &Run<'_>,
    daemons: &[u32],
) -> Result<Measured, RunError> {
    let most = point.rows();
    let mut crew = Crew::<Said>::new(most, &stage.sandbox, tools.ground.stopped);
    for echo in 0..point.senders() {
        let command = peers::echo(tools, stage, system, point, run.number, echo)?;
        let mut command = run.traced(command, echo);
        crew.start(format!("{} echo {echo}", system.name()), &mut command)?;
    }
    for sender in 0..point.senders() {
        let command = peers::sender(tools, stage, system, point, run, sender)?;
        let mut command = run.traced(command, point.senders() + sender);
        crew.start(format!("{} sender {sender}", system.name()), &mut command)?;
    }
    let seen = conduct(&mut crew, stage, point, run.linger, daemons);
    crew.look();
    let seen = seen?;
    crew.join()?;
    let mut measured = seen;
    for (i, peer) in crew.into_peers().iter().enumerate() {
        let result = peer.said.result.clone().unwrap_or_default();
        measured.refused += result.refused;
        let (from, to) = if i < point.senders() as usize {
            ("echo", "sender")
        } else {
            ("sender", "echo")
        };
        for (reason, n) in result.drops.iter().filter(|(_, n)| **n > 0) {
            *measured
                .drops
                .entry(format!("{from} to {to}: {reason}"))
                .or_insert(0) += n;
        }
    }
    logs(&mut measured, point, run.folder, most)?;
    Ok(measured)
}

/// From the start of the processes to their results.
fn conduct(
    crew: &mut Crew<'_, Said>,
    stage: &Stage<'_>,
    point: &Point,
    linger: Duration,
    daemons: &[u32],
) -> Result<Measured, RunError> {
    let patience = READY + READY_EACH * point.nodes;
    if !crew.listen(clock::monotonic() + patience, |peers| {
        peers.iter().all(|p| p.said.ready)
    })? {
        let late: Vec<_> = crew
            .peers()
            .iter()
            .filter(|p| !p.said.ready)
            .map(|p| &*p.name)
            .collect();
        let (few, count) = (&late[..late.len().min(4)], late.len());
        return Err(format!(
            "{count} nodes are not ready within {patience:?}: {}",
            few.join(", ")
        )
        .into());
    }
    let echoes = point.senders() as usize;
    let look = |crew: &Crew<'_, Said>| -> Result<Look, RunError> {
        Ok(Look {
            host: Host::now(),
            parts: parts(crew.peers(), echoes, daemons),
            wire: stage.status()?,
            at: clock::monotonic(),
        })
    };
    let before = look(crew)?;
    (echoes..2 * echoes).for_each(|who| crew.tell(who, "go"));
    let closed = |peers: &[Peer<Said>]| peers[echoes..].iter().all(|p| p.said.closed);
    let half_way = clock::monotonic() + BEFORE + point.lasts().mul_f64(MOST);
    crew.listen(half_way, closed)?;
    let during = look(crew)?;
    let patience = BEFORE + point.lasts() * OVERLOAD + linger + HANGING;
    if !crew.listen(clock::monotonic() + patience, closed)? {
        let hanging = crew.peers()[echoes..].iter().find(|p| !p.said.closed);
        let why = format!("{HANGS} within {patience:?}");
        return Err(hanging.map_or(RunError::Failed(why.clone()), |p| p.complain(&why)));
    }
    let after = look(crew)?;
    let memory = |pid| memory_kib(pid);
    let pids = crew.peers().iter().map(Peer::pid).chain(daemons.iter().copied());
    let mut measured = during.since(&before);
    measured.memory_kib = pids.map(memory).sum();
    for (part, (snapshot, earlier)) in after
        .parts
        .iter()
        .zip(&before.parts)
        .map(|((n, s), (_, e))| (n, (s, e)))
    {
        let used = snapshot.since(earlier);
        measured.cpu_s.insert((*part).to_owned(), used.cpu_s);
        measured.switches += used.switches;
    }
    let told = |peers: &[Peer<Said>]| peers.iter().all(|p| p.said.result.is_some());
    if !crew.stop(RESULT, told)? {
        return Err(format!("not all nodes gave a result within {RESULT:?}").into());
    }
    Ok(measured)
}

/// What is read of `/proc` and the lab at one instant.
struct Look {
    host: Host,
    parts: BTreeMap<&'static str, Snapshot>,
    wire: Option<Status>,
    at: stats::Time,
}

impl Look {
    /// How busy everything was.
    fn since(&self, earlier: &Look) -> Measured {
        let time = self
            .at
            .since(earlier.at)
            .saturating_sub(BEFORE)
            .as_secs_f64()
            .max(1e-3);
        let load = self.host.since(&earlier.host);
        let used = self
            .parts
            .iter()
            .map(|(part, s)| (part, s.since(&earlier.parts[part])));
        let used: Vec<_> = used.collect();
        let own_s: f64 = used.iter().map(|(_, u)| u.cpu_s).sum();
        let busiest = used.into_iter().filter_map(|(part, used)| {
            let (thread, cpu_s) = used.busiest?;
            Some(Busiest {
                part: (*part).to_owned(),
                thread,
                share: cpu_s / time,
            })
        });
        let wire = self.wire.as_ref().zip(earlier.wire.as_ref());
        Measured {
            busiest: busiest.max_by(|a, b| a.share.total_cmp(&b.share)),
            // A lab keeps all processors awake.
            host_busy: if wire.is_some() {
                own_s / time / processors()
            } else {
                load.busy
            },
            host_steal: load.steal,
            wire: wire.map(|(after, before)| wire_between(before, after, BEFORE)),
            ..Measured::default()
        }
    }
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1, |n| n.get()) as f64
}

/// The threads of each part.
fn parts(peers: &[Peer<Said>], echoes: usize, daemons: &[u32]) -> BTreeMap<&'static str, Snapshot> {
    let mut parts = BTreeMap::from([("echo", Snapshot::default()), ("sender", Snapshot::default())]);
    for (i, peer) in peers.iter().enumerate() {
        let part = if i < echoes { "echo" } else { "sender" };
        parts.entry(part).or_default().add(Snapshot::of(peer.pid()));
    }
    for pid in daemons {
        parts.entry("link").or_default().add(Snapshot::of(*pid));
    }
    parts
}

/// Reads what the senders logged.
fn logs(measured: &mut Measured, point: &Point, folder: &Path, most: u64) -> Result<(), RunError> {
    let mut all = Vec::new();
    let mut kept = Vec::new();
    for sender in 0..point.senders() {
        let rows = raw::read(&raw::file(folder, sender), most)?;
        measured.all += rows.len() as u64;
        kept.push(schedule(&rows, point));
        all.push(rows);
    }
    measured.schedule = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
    let first = (f64::from(point.messages) * WARM_UP) as u64 * u64::from(point.answers());
    let counted: Vec<&[raw::Row]> = all
        .iter()
        .map(|rows| &rows[rows.partition_point(|r| r.id < first)..])
        .collect();
    measured.trips = Trips::of(&counted);
    Ok(())
}

/// Of its rate, what a sender kept; at most all.
fn schedule(rows: &[raw::Row], point: &Point) -> f64 {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return 0.0;
    };
    let messages = rows.len() as f64 / f64::from(point.answers());
    let took = last.sent_ns.saturating_sub(first.sent_ns) as f64 / 1e9;
    let due = (messages - 1.0) / point.hz;
    if took <= due { 1.0 } else { due / took }
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::*;
    use raw::Row;

    fn rows(gap_ns: u64) -> Vec<Row> {
        let row = |id| Row {
            id,
            sent_ns: 7 + id * gap_ns,
            recv_ns: Some(7 + id * gap_ns + 1_000_000),
        };
        (0..200).map(row).collect()
    }

    #[test]
    fn a_schedule_is_kept_or_not() {
        let point = example();
        assert_eq!(schedule(&rows(10_000_000), &point), 1.0);
        assert_eq!(schedule(&rows(5_000_000), &point), 1.0);
        assert!((schedule(&rows(20_000_000), &point) - 0.5).abs() < 1e-9);
        assert_eq!(schedule(&[], &point), 0.0);
    }

    #[test]
    fn logs_count_without_their_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let point = Point {
            nodes: 4,
            ..example()
        };
        for sender in 0..2 {
            let file = raw::file(folder.path(), sender);
            raw::write(&file, rows(10_000_000).into_iter()).expect("writes");
        }
        let mut measured = Measured::default();
        logs(&mut measured, &point, folder.path(), 200).expect("reads");
        assert_eq!(
            (measured.all, measured.trips.sent, measured.trips.mean_ms),
            (400, 360, Some(1.0))
        );
        assert_eq!(measured.schedule, 1.0);
        let more = Point { nodes: 6, ..point };
        assert!(
            matches!(logs(&mut measured, &more, folder.path(), 200), Err(RunError::Failed(w)) if w.contains("sender2"))
        );
    }
}
