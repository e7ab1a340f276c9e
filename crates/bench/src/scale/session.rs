//! One call of `bench scale`: point by point, system by system, and then the searches.

use super::bisect::Search;
use super::measured::{KneeMetrics, Measured, Metrics, NodesKnee, Params, pool};
use super::outcome::{Failed, Outcome};
use super::plan::{Plan, Sweep};
use super::point::{Point, shown_hz};
use super::stage::Stage;
use super::store::{Entry, FULL, Scratch, Store, What};
use super::tools::Tools;
use super::trial::{self, Looks, Run};
use super::{Medium, Options, System, calls, cause, profile, raw};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings::{Findings, Health, watch};
use crate::kit::progress::Progress;
use crate::kit::usage::HostLoad;
use analysis::model::UNBROKEN;
use stats::{Cell, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Final distance between the highest sustained rate and the lowest that is not.
const CLOSE: f64 = 0.05;
/// Attempts at a rate: other programs on the machine can only make it worse.
const TRIES: u32 = 2;
/// Approximate number of probes of a search.
const PROBES: u32 = 12;
/// A system that fails this often in a row is not tried again on that medium.
const GIVE_UP: u32 = 3;
/// Approximate bytes of a row of raw data.
const ROW: u64 = 44;

pub(super) struct Session<'a> {
    options: &'a Options,
    tools: &'a Tools<'a>,
    store: Store,
    systems: Vec<System>,
    failed: Vec<Failed>,
    notes: Vec<String>,
    in_a_row: BTreeMap<(System, Medium), u32>,
    /// Groups of nodes that did not find each other, which takes minutes to see: they are not started again.
    lost_groups: BTreeSet<NodeGroup>,
    stage: Option<Stage<'a>>,
    number: u64,
}

/// The nodes of a system on a medium: hosts, nodes and the bits of the processors' share. Sizes and rates do not affect
/// discovery.
type NodeGroup = (System, Medium, u32, u32, u64);

/// Why a session ends early.
enum End {
    Stopped,
    /// The disk is full, as the last failure says.
    Full,
    /// A machine is gone, as the last failure says.
    Lost,
}

/// A step of the progress.
enum Step<'p> {
    Run(usize, u32, System),
    Calls(usize, System),
    Profile(usize, System),
    Knee(&'p Sweep, u32, System),
}

impl<'a> Session<'a> {
    pub(super) fn open(options: &'a Options, tools: &'a Tools<'a>) -> Result<Session<'a>, Error> {
        let store = Store::open(options.out.as_deref())?;
        let mut notes = tools.notes.clone();
        if store.count() > 0 {
            let note = format!(
                "{} results were there already: {}",
                store.count(),
                store.folder().display()
            );
            eprintln!("{note}");
            notes.push(note);
        }
        let systems = tools.systems();
        if systems.is_empty() {
            return Err(Error::Nothing(notes.join("; ")));
        }
        Ok(Session {
            options,
            tools,
            store,
            systems,
            failed: Vec::new(),
            notes,
            in_a_row: BTreeMap::new(),
            lost_groups: BTreeSet::new(),
            stage: None,
            number: 0,
        })
    }

    pub(super) fn measure(mut self, plan: &Plan) -> Result<Outcome, Error> {
        let (before, note) = watch();
        self.notes.extend(note.inspect(|n| eprintln!("{n}")));
        let steps = self.steps(plan);
        let end = self.walk(plan, &steps).err();
        match (&end, &self.options.out) {
            (Some(_), Some(folder)) => eprintln!(
                "the same command with --out {} goes on from here",
                folder.display()
            ),
            (Some(End::Lost), None) => eprintln!("with --out FOLDER a stopped session can be resumed"),
            _ => {}
        }
        // A full disk and a machine that is gone are reported as failures.
        let complete = !matches!(end, Some(End::Stopped));
        self.stage = None;
        Ok(self.close(plan, before, complete))
    }

    /// Run by run, point by point, and within each the systems in an order that rotates by one each time; then the
    /// searches.
    fn steps<'p>(&self, plan: &'p Plan) -> Vec<Step<'p>> {
        let mut steps = Vec::new();
        let n = self.systems.len();
        let rotated = |by: usize| (0..n).map(move |i| (i + by) % n);
        for run in 0..plan.runs.iter().copied().max().unwrap_or(0) {
            for (i, _) in plan.runs.iter().enumerate().filter(|(_, runs)| **runs > run) {
                steps.extend(rotated(i + run as usize).map(|s| Step::Run(i, run, self.systems[s])));
            }
        }
        if self.options.calls {
            // The lowest rate, at which every message causes a wake-up, and the fewest nodes.
            let mut seen = BTreeSet::new();
            for (i, point) in plan.points.iter().enumerate() {
                if calls::can_be_counted(point) && seen.insert((point.experiment, point.bytes, point.nodes)) {
                    steps.extend(rotated(i).map(|s| Step::Calls(i, self.systems[s])));
                }
            }
        }
        if self.options.profile {
            // The highest rate, which shows the most.
            let mut last = BTreeMap::new();
            for (i, point) in plan.points.iter().enumerate() {
                if profile::can_be_taken(point) {
                    let setting = (
                        point.experiment,
                        point.bytes,
                        point.nodes,
                        point.medium,
                        point.hosts,
                    );
                    let found = last.entry(setting).or_insert(i);
                    if point.hz > plan.points[*found].hz {
                        *found = i;
                    }
                }
            }
            for i in last.into_values() {
                steps.extend(rotated(i).map(|s| Step::Profile(i, self.systems[s])));
            }
        }
        for (i, sweep) in plan.sweeps.iter().enumerate() {
            for nodes in &sweep.nodes {
                steps.extend(rotated(i).map(|s| Step::Knee(sweep, *nodes, self.systems[s])));
            }
        }
        steps
    }

    fn walk(&mut self, plan: &Plan, steps: &[Step<'_>]) -> Result<(), End> {
        let linger = self.options.linger();
        let expected = steps.iter().map(|step| match step {
            Step::Run(i, ..) => plan.points[*i].lasts() + linger / 4,
            Step::Profile(i, _) => plan.points[*i].lasts() + linger,
            Step::Calls(i, _) => calls::runs(&plan.points[*i]).iter().map(Point::lasts).sum(),
            Step::Knee(sweep, ..) => (sweep.lasts + linger + Duration::from_millis(1500)) * PROBES,
        });
        let mut progress = Progress::new(expected);
        for step in steps {
            let (point, system) = match step {
                Step::Run(i, _, system) | Step::Calls(i, system) | Step::Profile(i, system) => {
                    (&plan.points[*i], *system)
                }
                Step::Knee(sweep, _, system) => (&sweep.base, *system),
            };
            let there = (system, point.medium);
            let nodes = match step {
                Step::Knee(_, nodes, _) => *nodes,
                _ => point.nodes,
            };
            let node_group = (
                system,
                point.medium,
                point.hosts,
                nodes,
                point.cpu_share.to_bits(),
            );
            if self.in_a_row.get(&there).is_some_and(|n| *n >= GIVE_UP)
                || self.lost_groups.contains(&node_group)
            {
                progress.skip();
                continue;
            }
            let done = match step {
                Step::Run(_, run, _) => self.store.runs(system, point).iter().any(|r| r.0 == *run),
                Step::Calls(..) => self.store.calls(system, point).is_some(),
                Step::Profile(..) => self.store.profile(system, point).is_some(),
                Step::Knee(sweep, nodes, _) => self.store.knee(system, &start(sweep, *nodes)).is_some(),
            };
            if done {
                progress.skip();
                continue;
            }
            let result = match step {
                Step::Run(_, run, _) => {
                    progress.begin(format!("{point} {} {}", point.medium.name(system), system.name()));
                    self.cell(system, point, *run)
                }
                Step::Calls(..) => {
                    progress.begin(format!("{point} {}: system calls", system.name()));
                    self.calls(system, point)
                }
                Step::Profile(..) => {
                    let medium = point.medium.name(system);
                    progress.begin(format!("{point} {medium} {}: processor time", system.name()));
                    self.profile(system, point)
                }
                Step::Knee(sweep, nodes, _) => {
                    let point = start(sweep, *nodes);
                    progress.begin(format!(
                        "E{} {} B, {nodes} nodes, {} {}: highest rate",
                        point.experiment,
                        point.bytes,
                        point.medium.name(system),
                        system.name()
                    ));
                    self.knee(system, sweep, *nodes)
                }
            };
            match result {
                Ok(said) => {
                    self.in_a_row.remove(&there);
                    progress.done(&said);
                }
                Err(RunError::Stopped) => return Err(End::Stopped),
                Err(RunError::Failed(why)) => {
                    progress.done(&format!("FAILED: {why}"));
                    let full = why.contains("No space left") || why.contains(FULL);
                    // Processes and files of a failed run may disturb the next.
                    self.stage = None;
                    *self.in_a_row.entry(there).or_insert(0) += 1;
                    if why.contains(trial::NOT_READY) {
                        self.lost_groups.insert(node_group);
                        self.notes.push(format!(
                            "{}: {nodes} nodes on {} did not find each other, so their other points are skipped",
                            system.name(),
                            point.medium.name(system)
                        ));
                    }
                    self.failed.push(Failed {
                        system,
                        params: Params::new(point, system, "cell", 0),
                        why,
                    });
                    if full {
                        // No later result can be written either.
                        return Err(End::Full);
                    }
                    if self.tools.lost() {
                        return Err(End::Lost);
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs a cell; returns a summary.
    fn cell(&mut self, system: System, point: &Point, number: u32) -> Result<String, RunError> {
        let set = self.store.folder().join(point.data_set(system));
        let folder = set.join(point.folder()).join(format!("run{number}"));
        write_description(&set, system, point, self.options.linger())?;
        if point.warm {
            let trash = self.store.scratch(Scratch::Warm);
            self.trial(system, point, &trash)?;
            let _ = fs::remove_dir_all(trash);
        } else if point.experiment == 2 {
            self.stage = None;
        }
        let measured = self.trial(system, point, &folder)?;
        let said = said(&measured);
        self.keep(&Entry {
            system,
            point: point.clone(),
            what: What::Run { number, measured },
        })?;
        Ok(said)
    }

    /// Counts the system calls of a point; returns a summary.
    fn calls(&mut self, system: System, point: &Point) -> Result<String, RunError> {
        let folder = self.store.scratch(Scratch::Calls);
        let mut sums = [0; 2];
        for (run, sum) in calls::runs(point).iter().zip(&mut sums) {
            self.run(system, run, &folder, Looks::Calls)?;
            *sum = calls::sum(&folder, 2 * run.senders() as usize)?;
            let _ = fs::remove_dir_all(&folder);
        }
        let per_message = calls::per_message(sums, point);
        self.keep(&Entry {
            system,
            point: point.clone(),
            what: What::Calls { per_message },
        })?;
        Ok(format!(
            "{per_message:.1} system calls per message with its answer"
        ))
    }

    /// Samples processor time by function at a point; returns a summary.
    fn profile(&mut self, system: System, point: &Point) -> Result<String, RunError> {
        let folder = self.store.scratch(Scratch::Profile);
        let measured = self.run(system, point, &folder, Looks::Profile)?;
        let _ = fs::remove_dir_all(folder);
        let profile = measured.profile.ok_or_else(|| "nothing was sampled".to_owned())?;
        let said = profile.line();
        self.keep(&Entry {
            system,
            point: point.clone(),
            what: What::Profile { profile },
        })?;
        Ok(said)
    }

    /// Searches for the highest rate.
    fn knee(&mut self, system: System, sweep: &Sweep, nodes: u32) -> Result<String, RunError> {
        let point = start(sweep, nodes);
        let folder = self.store.scratch(Scratch::Search);
        let [least, most] = sweep.within;
        let mut search = match self.expected(system, sweep, nodes) {
            Some(hz) => Search::new(least, most, hz, CLOSE).near(),
            None => Search::new(least, most, point.hz, CLOSE),
        };
        let (mut good, mut bad, mut hung) = (None, None, None);
        while let Some(hz) = search.next() {
            let probe = sweep.probe(nodes, hz);
            let mut sustained = false;
            for _ in 0..TRIES {
                let measured = match self.trial(system, &probe, &folder) {
                    // This rate is too high.
                    Err(RunError::Failed(why)) if why.contains(trial::HANGS) => {
                        eprintln!("    {} Hz: {why}", shown_hz(probe.hz));
                        (hung, bad) = (Some(why), None);
                        break;
                    }
                    measured => measured?,
                };
                let _ = fs::remove_dir_all(&folder);
                sustained = measured.lasts();
                eprintln!("    {} Hz: {}", shown_hz(probe.hz), said(&measured));
                if sustained {
                    good = Some(measured);
                    break;
                }
                bad = Some((measured, probe.clone()));
            }
            search.tell(hz, sustained);
        }
        let hz = search.sustained().unwrap_or(0.0);
        let found = NodesKnee {
            nodes,
            hz,
            messages_per_s: Point {
                hz,
                ..sweep.probe(nodes, hz)
            }
            .messages_per_s(),
            cause: match (&bad, hung) {
                (Some((bad, probe)), _) => cause::of(bad, probe),
                (None, Some(why)) => format!("seen as {why}"),
                (None, None) => UNBROKEN.into(),
            },
            cpu_us_per_message: good.as_ref().map(Measured::cpu_us),
        };
        let said = format!("{:.0} messages/s each way; {}", found.messages_per_s, found.cause);
        self.keep(&Entry {
            system,
            point,
            what: What::Knee { found, at: good },
        })?;
        Ok(said)
    }

    /// Returns where the highest rate may be: as many messages as with another number of nodes, or, if the medium is
    /// the limit, as with another system. This saves probes, and decides nothing.
    fn expected(&self, system: System, sweep: &Sweep, nodes: u32) -> Option<f64> {
        let of = |s: System| {
            let knees = sweep
                .nodes
                .iter()
                .filter_map(move |n| self.store.knee(s, &start(sweep, *n)));
            knees.map(|k| k.0.messages_per_s).find(|m| *m > 0.0)
        };
        let limited = !matches!(sweep.base.medium, Medium::Host | Medium::Veth);
        let others = || self.systems.iter().filter(|_| limited).find_map(|s| of(*s));
        Some(of(system).or_else(others)? / sweep.probe(nodes, 1.0).messages_per_s())
    }

    fn keep(&mut self, entry: &Entry) -> Result<(), RunError> {
        self.store.put(entry).map_err(|e| RunError::Failed(e.to_string()))
    }

    fn trial(&mut self, system: System, point: &Point, folder: &Path) -> Result<Measured, RunError> {
        self.run(system, point, folder, Looks::Nothing)
    }

    fn run(
        &mut self,
        system: System,
        point: &Point,
        folder: &Path,
        looks: Looks,
    ) -> Result<Measured, RunError> {
        let rows = point.rows() * u64::from(point.senders());
        self.store.check_room(rows * ROW).map_err(|e| e.to_string())?;
        if !self.stage.as_ref().is_some_and(|s| s.fits(point)) {
            // One lab at a time.
            self.stage = None;
        }
        let stage = match &mut self.stage {
            Some(stage) => stage,
            none => none.insert(Stage::up(self.tools, point)?),
        };
        self.number += 1;
        let run = Run {
            folder,
            number: self.number,
            linger: self.options.linger(),
            looks,
        };
        let measured = trial::run(self.tools, stage, system, point, &run);
        stage.sandbox.sweep();
        if measured.is_err() {
            // An incomplete run does not count.
            let _ = fs::remove_dir_all(folder);
        }
        // An excessive load may leave datagrams with lost fragments: for 30 s (net.ipv4.ipfrag_time) these take the
        // memory that the next run needs, and that run then fails at any rate.
        if point.medium.is_emulated() && measured.as_ref().map_or(true, |m| m.lost.parts > 0) {
            self.stage = None;
        }
        measured
    }

    fn close(self, plan: &Plan, before: HostLoad, complete: bool) -> Outcome {
        let mut cells = Vec::new();
        for point in &plan.points {
            for system in &self.systems {
                let runs = self.store.runs(*system, point);
                let runs: Vec<&Measured> = runs.into_iter().map(|r| r.1).collect();
                if let Some(mut metrics) = pool(&runs) {
                    metrics.system_calls_per_message = self.store.calls(*system, point);
                    metrics.cpu_profile = self.store.profile(*system, point).cloned();
                    cells.push(Cell {
                        system: system.name().to_owned(),
                        params: Params::new(point, *system, "cell", runs.len()),
                        metrics: Metrics::Cell(Box::new(metrics)),
                    });
                }
            }
        }
        let mut seen = BTreeSet::new();
        for sweep in &plan.sweeps {
            for system in &self.systems {
                // Experiment 9 has a search for each number of hosts; other numbers of nodes belong to one search.
                if seen.insert((*system, sweep.base.setting())) {
                    cells.extend(self.best(sweep, *system));
                }
            }
        }
        let report = Report {
            experiment: "scale".to_owned(),
            machine: self.tools.machine(),
            versions: self.tools.versions(),
            cells,
        };
        let found = Findings {
            report,
            missing: Vec::new(),
            failed: self.failed,
            notes: self.notes,
            health: Health::now(before),
            complete,
            named: false,
        };
        Outcome::new(found)
    }

    /// Returns the highest load of a system, over all numbers of nodes.
    fn best(&self, sweep: &Sweep, system: System) -> Option<Cell<Params, Metrics>> {
        let knees = sweep
            .nodes
            .iter()
            .filter_map(|n| self.store.knee(system, &start(sweep, *n)));
        let knees: Vec<_> = knees.collect();
        let (best, at) = knees
            .iter()
            .max_by(|a, b| a.0.messages_per_s.total_cmp(&b.0.messages_per_s))?;
        let point = Point {
            hz: best.hz,
            ..sweep.probe(best.nodes, best.hz)
        };
        Some(Cell {
            system: system.name().to_owned(),
            params: Params::new(&point, system, "knee", 1),
            metrics: Metrics::Knee(Box::new(KneeMetrics {
                bytes_per_s: best.messages_per_s * point.bytes as f64,
                messages_per_s: best.messages_per_s,
                cause: best.cause.clone(),
                by_nodes: knees.iter().map(|k| k.0.clone()).collect(),
                at: at.and_then(|m| pool(&[m])),
            })),
        })
    }
}

/// Returns where a search begins, which identifies it.
fn start(sweep: &Sweep, nodes: u32) -> Point {
    let [least, most] = sweep.within;
    sweep.probe(
        nodes,
        (sweep.base.hz * 2.0 / f64::from(nodes)).clamp(least, most.max(least)),
    )
}

fn write_description(set: &Path, system: System, point: &Point, linger: Duration) -> Result<(), RunError> {
    let file = set.join(raw::LAYOUT);
    let text = raw::describe(point, system, trial::WARM_UP, linger);
    let written = fs::create_dir_all(set).and_then(|()| fs::write(&file, text));
    written.map_err(|e| format!("{}: {e}", file.display()).into())
}

/// Describes a run in one line.
fn said(measured: &Measured) -> String {
    let trips = &measured.trips;
    let ms = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
    let kept = if measured.schedule < 0.995 {
        format!(", {:.0} % of the schedule", measured.schedule * 100.0)
    } else {
        String::new()
    };
    format!(
        "mean {} ms, p99 {} ms, {:.2} % delivered{kept}",
        ms(trips.mean_ms),
        ms(trips.p99_ms),
        trips.delivery() * 100.0
    )
}
