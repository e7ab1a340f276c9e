//! One run of one system at one point.

use super::measured::Measured;
use super::nodes_of_run::{Here, RunNodes};
use super::peers::Play;
use super::point::Point;
use super::said::Said;
use super::stage::Stage;
use super::statistics::Trips;
use super::tools::Tools;
use super::watch::BEFORE;
use super::{System, agents, calls, links, raw};
use crate::kit::error::RunError;
use crate::kit::links::Daemons;
use crate::kit::processes::Processes;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Part of the error message for nodes that do not find each other.
pub(super) const NOT_READY: &str = "nodes are not ready";
/// Part of the error message for a sender that does not finish.
pub(super) const HANGS: &str = "it did not come to its end";
/// Share of messages before the counted ones, of each sender.
pub(super) const WARM_UP: f64 = 0.1;
/// How long the nodes may take to find each other; each starts with its share of the processors.
const READY: Duration = Duration::from_secs(60);
const READY_EACH: Duration = Duration::from_secs(1);
/// How long senders may take beyond their schedule, and the factor.
const HANGING: Duration = Duration::from_secs(60);
const OVERLOAD: u32 = 8;
const RESULT: Duration = Duration::from_secs(60);
/// Shares of processors are measured until this part of the schedule is over.
const MOST: f64 = 0.9;

/// The folder and number of a run.
pub(super) struct Run<'a> {
    pub(super) folder: &'a Path,
    /// Unique in this process.
    pub(super) number: u64,
    pub(super) linger: Duration,
    pub(super) looks: Looks,
}

/// Additional measurements, in separate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    Nothing,
    /// System calls are counted into the run's folder.
    Calls,
    /// Processor time is sampled.
    Profile,
}

impl Run<'_> {
    fn traced(&self, command: Command, node: u32) -> Command {
        if self.looks != Looks::Calls {
            return command;
        }
        calls::traced(&command, &calls::file(self.folder, node as usize))
    }
}

/// Runs `system` once. Afterwards the raw data are in the run's folder.
pub(super) fn run(
    tools: &Tools<'_>,
    stage: &mut Stage<'_>,
    system: System,
    point: &Point,
    run: &Run<'_>,
) -> Result<Measured, RunError> {
    fs::create_dir_all(run.folder).map_err(|e| format!("{}: {e}", run.folder.display()))?;
    stage.prepare(system)?;
    if point.medium.is_real() {
        return agents::trial(tools, stage, system, point, run);
    }
    let daemons = if system.is_ours() && point.hosts > 1 {
        links::up(tools, stage, point)?
    } else {
        Daemons::default()
    };
    let pids: Vec<u32> = daemons.pids().collect();
    let measured = nodes(tools, stage, system, point, run, &pids);
    let (mut measured, last) = daemons.end(measured, tools.ground.stopped)?;
    measured.drops.extend(links::drops(&last));
    measured.held = links::held(&last, point.bytes);
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
    let mut processes = Processes::<Said>::new(point.rows(), &stage.sandbox, tools.ground.stopped);
    let addresses = stage.addresses()?;
    let play = Play {
        program: tools.program(system),
        addresses: &addresses,
        system,
        point,
        number: run.number,
        linger: run.linger,
        folder: run.folder,
    };
    for node in 0..2 * point.senders() {
        let command = stage.command(&play.node(node))?;
        let mut command = run.traced(command, node);
        processes.start(play.name(node), &mut command)?;
    }
    let samples = (run.looks == Looks::Profile).then_some(run.folder);
    let mut run_nodes = Here::new(processes, stage, daemons, samples);
    let seen = conduct(&mut run_nodes, point, run.linger);
    run_nodes.processes().look();
    let mut measured = seen?;
    run_nodes.processes().join()?;
    measured.profile = run_nodes.profile();
    results(&mut measured, &run_nodes, point);
    logs(&mut measured, point, run.folder)?;
    Ok(measured)
}

/// Waits until all nodes are ready.
fn all_ready(run_nodes: &mut dyn RunNodes, point: &Point) -> Result<(), RunError> {
    let nodes = 0..2 * point.senders() as usize;
    let begin = Instant::now();
    let most = READY + READY_EACH * point.nodes;
    let (mut seen, mut until) = (0, READY);
    while !run_nodes.listen(
        clock::monotonic() + until.saturating_sub(begin.elapsed()),
        0,
        |said| said.ready,
    )? {
        let waited = begin.elapsed();
        let ready = nodes.clone().filter(|n| run_nodes.said(*n).ready).count();
        match patience(waited, [seen, ready], most) {
            Some(longer) => (seen, until) = (ready, longer),
            None => return Err(not_ready(run_nodes, point, nodes, waited)),
        }
    }
    Ok(())
}

/// Returns how long from the start to wait for the others, given the number of ready nodes before and now: for the same
/// time again, at least a minute. `None` if the number did not grow: then the missing nodes will not find the others.
fn patience(waited: Duration, [before, now]: [usize; 2], most: Duration) -> Option<Duration> {
    let longer = match now {
        0 => most,
        _ if now > before => (waited + waited.max(READY)).min(most),
        _ => return None,
    };
    (longer > waited).then_some(longer)
}

fn not_ready(run_nodes: &dyn RunNodes, point: &Point, nodes: Range<usize>, waited: Duration) -> RunError {
    let late: Vec<_> = nodes.filter(|n| !run_nodes.said(*n).ready).collect();
    let few: Vec<_> = late.iter().take(4).map(|n| run_nodes.name(*n)).collect();
    let hint = if point.medium.is_real() && point.hosts > 1 {
        "; do the machines reach each other at their addresses, through their firewalls?"
    } else {
        ""
    };
    let (late, few) = (late.len(), few.join(", "));
    format!("{late} {NOT_READY} after {waited:.0?}: {few}{hint}").into()
}

/// From the start of the processes to their results.
pub(super) fn conduct(
    run_nodes: &mut dyn RunNodes,
    point: &Point,
    linger: Duration,
) -> Result<Measured, RunError> {
    let echoes = point.senders() as usize;
    all_ready(run_nodes, point)?;
    run_nodes.go()?;
    let nearly = clock::monotonic() + BEFORE + point.lasts().mul_f64(MOST);
    run_nodes.listen(nearly, echoes, |said| said.closed)?;
    run_nodes.look()?;
    let patience = BEFORE + point.lasts() * OVERLOAD + linger + HANGING;
    if !run_nodes.listen(clock::monotonic() + patience, echoes, |said| said.closed)? {
        let hanging = (echoes..2 * echoes).find(|n| !run_nodes.said(*n).closed);
        let why = format!("{HANGS} within {patience:?}");
        return Err(hanging.map_or(RunError::Failed(why.clone()), |n| run_nodes.complain(n, &why)));
    }
    let measured = run_nodes.load()?.into_measured();
    if !run_nodes.stop(RESULT)? {
        return Err(format!("not all nodes gave a result within {RESULT:?}").into());
    }
    Ok(measured)
}

/// Reads the nodes' reports of their losses.
pub(super) fn results(measured: &mut Measured, run_nodes: &dyn RunNodes, point: &Point) {
    let echoes = point.senders() as usize;
    for node in 0..2 * echoes {
        let result = run_nodes.said(node).result.clone().unwrap_or_default();
        measured.refused = measured.refused.saturating_add(result.refused);
        let (from, to) = if node < echoes {
            ("echo", "sender")
        } else {
            ("sender", "echo")
        };
        for (reason, n) in result.drops.iter().filter(|(_, n)| **n > 0) {
            let sum = measured.drops.entry(format!("{from} to {to}: {reason}"));
            let sum = sum.or_insert(0);
            *sum = sum.saturating_add(*n);
        }
    }
}

/// Reads the senders' logs.
pub(super) fn logs(measured: &mut Measured, point: &Point, folder: &Path) -> Result<(), RunError> {
    let most = point.rows();
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

/// Returns the share of the scheduled rate that a sender kept; at most 1.
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
        logs(&mut measured, &point, folder.path()).expect("reads");
        assert_eq!(
            (measured.all, measured.trips.sent, measured.trips.mean_ms),
            (400, 360, Some(1.0))
        );
        assert_eq!(measured.schedule, 1.0);
        let more = Point { nodes: 6, ..point };
        assert!(
            matches!(logs(&mut measured, &more, folder.path()), Err(RunError::Failed(w)) if w.contains("sender2"))
        );
    }

    #[test]
    fn nodes_are_waited_for_while_they_come() {
        let [minute, all] = [60, 316].map(Duration::from_secs);
        // Interpreters that start together are ready together.
        assert_eq!(patience(minute, [0, 0], all), Some(all));
        assert_eq!(patience(minute, [0, 128], all), Some(minute * 2));
        assert_eq!(patience(minute * 2, [128, 200], all), Some(minute * 4));
        assert_eq!(patience(minute * 4, [200, 255], all), Some(all));
        // Half of them wait for each other.
        assert_eq!(patience(minute * 2, [128, 128], all), None);
        assert_eq!(patience(all, [200, 255], all), None);
        assert_eq!(patience(all, [0, 0], all), None);
    }
}
