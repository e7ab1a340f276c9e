//! Comparison of local transports: `ropewalk bench ipc`.
//!
//! Every system is a program of its own that follows one contract (`peers/CONTRACT.md`): it publishes or subscribes
//! according to its options, and prints its numbers. Processes are started again for each run. Systems alternate within
//! each cell, in rotated order, so that other load on the machine affects all of them alike; the floor is measured in
//! the same session (decision 044).

mod copies;
mod elsewhere;
mod figure;
mod metrics;
mod options;
mod outcome;
pub mod peer;
mod plan;
mod progress;
mod setting;
mod system;
mod trial;

pub use crate::kit::findings::{Floor, Health};
pub use crate::kit::programs::Missing;
pub use crate::kit::systems::System;
pub use crate::kit::usage::HostLoad;
pub use metrics::{Copies, Latency, Metrics, Quantiles, Slow};
pub use options::{Experiment, Options};
pub use outcome::{Failed, Outcome};
pub use setting::{Mode, Params};
pub use system::Language;
pub(crate) use system::{SYSTEMS, all};

use crate::kit::error::{Error, RunError};
use crate::kit::findings;
use crate::kit::programs::{Door, Ready};
use crate::kit::progress::Progress;
use crate::kit::roscore::Roscore;
use crate::kit::sandbox::Sandbox;
use crate::machine;
use clock::Busy;
use setting::Setting;
use stats::{Cell, Report};
use std::path::{Path, PathBuf};
use trial::{Surroundings, Trial};

/// A system that fails this often in a row is not tried again: each attempt may take a minute.
const TRIES: u32 = 3;

/// Measures according to `options`. Blocks for minutes to hours, with its progress on standard error. It calls
/// `stopped` at least ten times a second; true ends it early, with the results so far.
///
/// # Errors
/// [`Error`]: nothing can be measured. Missing systems and failed runs are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let mut session = Session::open(options, stopped)?;
    let settings = session.possible(plan::settings(options))?;
    session.measure(&settings)?;
    Ok(session.close(settings))
}

/// One experiment with everything that it needs.
struct Session<'a> {
    options: &'a Options,
    stopped: &'a dyn Fn() -> bool,
    systems: Vec<Ready>,
    missing: Vec<Missing>,
    failed: Vec<Failed>,
    notes: Vec<String>,
    results: Vec<Vec<Vec<Trial>>>,
    before: HostLoad,
    complete: bool,
    // In the order of their end.
    roscore: Option<Roscore>,
    copy_counter: Option<PathBuf>,
    sandbox: Sandbox,
}

impl<'a> Session<'a> {
    /// Finds the systems that can take part.
    fn open(options: &'a Options, stopped: &'a dyn Fn() -> bool) -> Result<Self, Error> {
        let sandbox = Sandbox::new()?;
        let folder = crate::kit::programs::folder(options.peers.as_deref());
        let (mut systems, mut missing) = (Vec::new(), Vec::new());
        for system in options.wanted() {
            match crate::kit::programs::prepare(Door::Ipc, system, folder.as_deref(), &sandbox, stopped)? {
                Ok(ready) => systems.push(ready),
                Err(gone) => missing.push(gone),
            }
        }
        let mut session = Session {
            options,
            stopped,
            systems,
            missing,
            failed: Vec::new(),
            notes: Vec::new(),
            results: Vec::new(),
            before: HostLoad::default(),
            complete: false,
            roscore: None,
            copy_counter: None,
            sandbox,
        };
        session.start_roscore()?;
        session.find_copy_counter(folder.as_deref())?;
        for gone in &session.missing {
            eprintln!("{} is left out: {}", gone.system, gone.why);
        }
        Ok(session)
    }

    fn start_roscore(&mut self) -> Result<(), Error> {
        let systems = std::mem::take(&mut self.systems);
        (self.roscore, self.systems) =
            crate::kit::roscore::start_for(systems, &mut self.missing, &self.sandbox, self.stopped)?;
        Ok(())
    }

    fn find_copy_counter(&mut self, folder: Option<&Path>) -> Result<(), Error> {
        if !matches!(self.options.experiment, Experiment::Table1 | Experiment::All) {
            return Ok(());
        }
        match crate::kit::programs::copy_counter(folder, self.stopped)? {
            Ok(library) => self.copy_counter = Some(library),
            Err(why) => self.note(format!("copies cannot be counted: {why}")),
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }

    /// Removes settings that this machine does not allow, with a note.
    fn possible(&mut self, mut settings: Vec<Setting>) -> Result<Vec<Setting>, Error> {
        let fifo = settings.iter().find_map(|s| s.fifo);
        if let Some(priority) = fifo
            && !fifo_is_permitted(priority)
        {
            self.note(format!(
                "SCHED_FIFO {priority} is not permitted here, so Fig. 8 is skipped: run as root, or raise the limit \
                 rtprio (ulimit -r)"
            ));
            settings.retain(|s| s.fifo.is_none());
        }
        if self.copy_counter.is_none() {
            settings.retain(|s| !s.count_copies);
        }
        settings.retain(|s| self.systems.iter().any(|system| s.fits(system)));
        if settings.is_empty() {
            let missing = self.missing.iter().map(|m| format!("{}: {}", m.system, m.why));
            let why: Vec<String> = missing.chain(self.notes.iter().cloned()).collect();
            let why = if why.is_empty() {
                "no system supports it".into()
            } else {
                why.join("; ")
            };
            return Err(Error::Nothing(why));
        }
        Ok(settings)
    }

    fn measure(&mut self, settings: &[Setting]) -> Result<(), Error> {
        let (before, note) = findings::watch();
        self.before = before;
        let busy = self.options.awake.then(Busy::keep);
        if let Some(busy) = &busy {
            let (kept, all) = (
                busy.processors(),
                std::thread::available_parallelism().map_or(1, usize::from),
            );
            self.note(format!("{kept} of {all} processors are kept from sleeping"));
        }
        note.into_iter().for_each(|note| self.note(note));
        self.results = settings
            .iter()
            .map(|_| self.systems.iter().map(|_| Vec::new()).collect())
            .collect();
        let mut in_a_row = vec![0; self.systems.len()];
        let steps = self.steps(settings);
        let mut progress = Progress::new(steps.iter().map(|step| settings[step.cell].expected()));
        for (number, step) in steps.iter().enumerate() {
            let (setting, system) = (&settings[step.cell], &self.systems[step.system]);
            if in_a_row[step.system] >= TRIES {
                progress.skip();
                continue;
            }
            progress.begin(progress::shown(setting, system.system));
            let around = Surroundings {
                sandbox: &self.sandbox,
                roscore: self.roscore.as_ref(),
                copy_counter: self.copy_counter.as_deref(),
                stopped: self.stopped,
            };
            let result = trial::run(system, setting, number as u64, &around);
            self.sandbox.sweep();
            match result {
                Ok(trial) => {
                    progress.done(&progress::result(&metrics::pool(
                        setting,
                        std::slice::from_ref(&trial),
                    )));
                    in_a_row[step.system] = 0;
                    self.results[step.cell][step.system].push(trial);
                }
                Err(RunError::Stopped) => return Ok(()),
                Err(RunError::Failed(mut why)) => {
                    in_a_row[step.system] += 1;
                    if in_a_row[step.system] == TRIES {
                        why.push_str("; it is not tried again");
                    }
                    progress.done(&format!("FAILED: {why}"));
                    self.failed.push(Failed {
                        system: system.system,
                        params: setting.params(system.system, 0),
                        run: step.run,
                        why,
                    });
                }
            }
        }
        self.complete = true;
        Ok(())
    }

    /// Run by run, cell by cell, and within each cell the systems in an order that rotates by one each time.
    fn steps(&self, settings: &[Setting]) -> Vec<Step> {
        let n = self.systems.len();
        let mut steps = Vec::new();
        for run in 0..self.options.runs() {
            for (cell, setting) in settings.iter().enumerate() {
                let order = (0..n).map(|i| (i + cell + run as usize) % n);
                let fits = order.filter(|s| setting.fits(&self.systems[*s]));
                steps.extend(fits.map(|system| Step { run, cell, system }));
            }
        }
        steps
    }

    fn close(self, settings: Vec<Setting>) -> Outcome {
        let mut versions = machine::versions();
        versions.extend(
            self.systems
                .iter()
                .map(|s| (s.system.name().to_owned(), s.version.clone())),
        );
        let mut cells = Vec::new();
        for (setting, systems) in settings.iter().zip(&self.results) {
            for (system, trials) in self.systems.iter().zip(systems).filter(|(_, t)| !t.is_empty()) {
                cells.push(Cell {
                    system: system.system.name().to_owned(),
                    params: setting.params(system.system, trials.len() as u32),
                    metrics: metrics::pool(setting, trials),
                });
            }
        }
        let report = Report {
            experiment: self.options.experiment.name().to_owned(),
            machine: machine::describe(),
            versions,
            cells,
        };
        let named = !self.options.systems.is_empty() || !self.options.language.is_empty();
        Outcome::new(
            report,
            self.missing,
            named,
            self.failed,
            self.notes,
            self.before,
            self.complete,
        )
    }
}

/// One run of one system under one setting, by their indices.
struct Step {
    run: u32,
    cell: usize,
    system: usize,
}

/// Tries it on a thread that ends at once.
fn fifo_is_permitted(priority: u8) -> bool {
    let tried = std::thread::spawn(move || clock::realtime_thread(priority)).join();
    tried.is_ok_and(|got| got != clock::Scheduling::Other)
}
