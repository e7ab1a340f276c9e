//! One run of the demo: starts its processes, watches them, and collects their reports.

use super::System;
use super::process::{Process, how};
use super::protocol::{Arrived, Part, RadioState, Report, Spec};
use super::view::View;
use crate::failure::Failure;
use crate::signals::Signals;
use stats::{DropReason, Drops, FlowMetrics};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the parts may take to start and connect.
const START: Duration = Duration::from_secs(20);
/// After the last message: time without an arrival until the rest counts as lost.
const QUIET: Duration = Duration::from_millis(1500);
/// How long a run may exceed the recording's duration.
const EXTRA: Duration = Duration::from_secs(30);

/// Result of a run.
pub(crate) struct RunResult {
    pub(crate) system: System,
    pub(crate) spec: Spec,
    pub(crate) state: State,
    /// Processes that ended early, and how.
    pub(crate) casualties: Vec<String>,
    /// Whether the user stopped it.
    pub(crate) stopped: bool,
    /// Number of tries.
    pub(crate) tries: u8,
}

/// The last report of every part.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) ready: BTreeMap<Part, String>,
    pub(crate) connected: bool,
    pub(crate) published: BTreeMap<String, u64>,
    pub(crate) done: bool,
    pub(crate) links: BTreeMap<Part, BTreeMap<String, Drops>>,
    pub(crate) arrived: BTreeMap<String, Arrived>,
    pub(crate) radio: RadioState,
    /// Set once a part ended early: its uncounted messages are lost.
    pub(crate) casualty: bool,
    failed: Option<(Part, String, bool)>,
}

impl State {
    fn take(&mut self, report: Report) {
        match report {
            Report::Ready { part, scheduling } => drop(self.ready.insert(part, scheduling)),
            Report::Failed {
                part,
                message,
                bad_input,
            } => self.failed = Some((part, message, bad_input)),
            Report::Published { topics, done } => {
                self.published = topics.into_iter().map(|(t, s)| (t, s.messages)).collect();
                self.done |= done;
            }
            Report::Link {
                part,
                connected,
                topics,
            } => {
                if part == Part::RobotLink {
                    self.connected = connected;
                }
                self.links.insert(part, topics);
            }
            Report::Radio(state) => self.radio = state,
            Report::Received { topics } => self.arrived = topics,
        }
    }

    /// End-to-end numbers of a topic.
    pub(crate) fn metrics(&self, topic: &str) -> FlowMetrics {
        let arrived = self.arrived.get(topic).cloned().unwrap_or_default();
        let mut metrics = arrived.metrics;
        // A publisher that was killed could not report its last messages.
        metrics.sent = self
            .published
            .get(topic)
            .copied()
            .unwrap_or(0)
            .max(metrics.received);
        metrics.delivery = if metrics.sent == 0 {
            0.0
        } else {
            metrics.received as f64 / metrics.sent as f64
        };
        metrics.drops = arrived.drops;
        for link in self.links.values() {
            if let Some(drops) = link.get(topic) {
                metrics.drops.merge(drops);
            }
        }
        if self.casualty {
            let uncounted = Self::uncounted(&metrics);
            metrics.drops.add(DropReason::PeerLost, uncounted);
        }
        metrics
    }

    /// Messages that neither arrived nor were counted as lost: in flight, or lost with a killed part.
    pub(crate) fn uncounted(metrics: &FlowMetrics) -> u64 {
        metrics
            .sent
            .saturating_sub(metrics.received)
            .saturating_sub(metrics.drops.total())
    }

    fn received(&self) -> u64 {
        self.arrived.values().map(|a| a.metrics.received).sum()
    }

    fn settled(&self, spec: &Spec) -> bool {
        spec.topics.keys().all(|t| Self::uncounted(&self.metrics(t)) == 0)
            && self.arrived.values().all(|a| a.unchecked == 0)
    }
}

/// Runs the recording once.
pub(crate) fn run(
    spec: &Spec,
    system: System,
    separate: bool,
    signals: &Signals,
) -> Result<RunResult, Failure> {
    let groups: &[&[Part]] = if separate {
        &[
            &[Part::Radio],
            &[Part::BaseLink],
            &[Part::Subscriber],
            &[Part::RobotLink],
            &[Part::Publisher],
        ]
    } else {
        &[
            &[Part::Radio],
            &[Part::BaseLink, Part::Subscriber],
            &[Part::RobotLink, Part::Publisher],
        ]
    };
    let (sender, reports) = channel();
    let mut processes = Vec::new();
    for parts in groups {
        let process = Process::start(spec, parts, sender.clone())?;
        crate::screen::tell!("{}: started {}", system.name(), process.name());
        processes.push(process);
    }
    drop(sender);
    let mut run = Run {
        spec,
        signals,
        reports,
        processes,
        state: State::default(),
        casualties: Vec::new(),
        view: View::new(system),
        began: Instant::now(),
    };
    let stopped = match run.start() {
        Ok(true) => run.watch()?,
        Ok(false) => true,
        Err(failure) => return Err(failure),
    };
    run.end()?;
    let Run {
        state, casualties, ..
    } = run;
    Ok(RunResult {
        system,
        spec: spec.clone(),
        state,
        casualties,
        stopped,
        tries: 1,
    })
}

struct Run<'a> {
    spec: &'a Spec,
    signals: &'a Signals,
    reports: Receiver<Report>,
    processes: Vec<Process>,
    state: State,
    casualties: Vec<String>,
    view: View,
    began: Instant,
}

impl Run<'_> {
    /// Waits until every part works and the links are connected; false if the user stops it.
    fn start(&mut self) -> Result<bool, Failure> {
        while self.state.ready.len() < Part::ALL.len() || !self.state.connected {
            self.gather(Duration::from_millis(50));
            self.check_failed()?;
            if self.signals.stopped() {
                return Ok(false);
            }
            if let Some(casualty) = self.casualties.first() {
                return Err(Failure::job(format_args!("{casualty} before the demo had begun")));
            }
            if self.began.elapsed() > START {
                let missing: Vec<_> = Part::ALL
                    .iter()
                    .filter(|p| !self.state.ready.contains_key(p))
                    .map(|p| p.name())
                    .collect();
                let what = if missing.is_empty() {
                    "the links did not connect".into()
                } else {
                    missing.join(", ")
                };
                return Err(Failure::job(format_args!(
                    "not ready after {} s: {what}",
                    START.as_secs()
                )));
            }
        }
        for process in &mut self.processes {
            process.go();
        }
        self.began = Instant::now();
        Ok(true)
    }

    /// Waits until all messages were played and have arrived or are lost; true if the user stopped it.
    fn watch(&mut self) -> Result<bool, Failure> {
        let limit = Duration::from_secs_f64(self.spec.seconds) + EXTRA;
        let mut progress = (0, Instant::now());
        loop {
            self.gather(Duration::from_millis(100));
            self.check_failed()?;
            self.view.show(self.spec, &self.state, self.began.elapsed());
            if self.signals.stopped() {
                return Ok(true);
            }
            if self.state.received() != progress.0 {
                progress = (self.state.received(), Instant::now());
            }
            let playing = !self.state.done && self.lives(Part::Publisher);
            if !playing && (self.state.settled(self.spec) || progress.1.elapsed() > QUIET) {
                return Ok(false);
            }
            if self.began.elapsed() > limit || self.processes.iter().all(Process::has_ended) {
                return Ok(false);
            }
        }
    }

    /// Stops all parts and collects their last reports.
    fn end(&mut self) -> Result<(), Failure> {
        for process in &mut self.processes {
            process.stop();
        }
        let joined = self.processes.iter_mut().map(Process::join).collect::<Vec<_>>();
        while let Ok(report) = self.reports.recv_timeout(Duration::from_secs(2)) {
            self.state.take(report);
        }
        self.view.end(self.spec, &self.state, self.began.elapsed());
        joined.into_iter().collect()
    }

    fn gather(&mut self, patience: Duration) {
        match self.reports.recv_timeout(patience) {
            Ok(report) => self.state.take(report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(patience),
        }
        while let Ok(report) = self.reports.try_recv() {
            self.state.take(report);
        }
        for process in &mut self.processes {
            if let Some(status) = process.newly_ended() {
                let casualty = format!("{} {}", process.name(), how(status));
                self.view.note(&format!("{casualty}; the others continue"));
                self.casualties.push(casualty);
                self.state.casualty = true;
            }
        }
    }

    fn check_failed(&mut self) -> Result<(), Failure> {
        match self.state.failed.take() {
            Some((part, message, true)) => Err(Failure::input(format_args!("{}: {message}", part.name()))),
            Some((part, message, false)) => Err(Failure::job(format_args!("{}: {message}", part.name()))),
            None => Ok(()),
        }
    }

    fn lives(&self, part: Part) -> bool {
        self.processes
            .iter()
            .any(|p| p.parts.contains(&part) && !p.has_ended())
    }
}
