//! The TZC paper's applications (section IV-E): `ropewalk bench brake`.
//!
//! A simulated robot with a camera stops when recognizers see a red light in its images. Images and the command to stop
//! go through the measured system. Image, motion and recognition are simulated, but time is real: processes, transport
//! and scheduling are this machine's. The programs are started and read by the same means as those of
//! [`ipc`](crate::ipc).

mod figure;
mod metrics;
pub mod motion;
mod options;
mod outcome;
pub mod part;
pub mod recognize;
mod said;
pub mod scene;
mod trial;

pub use metrics::{Metrics, Params, Spread};
pub use motion::Application;
pub use options::Options;
#[cfg(test)]
pub(crate) use options::SYSTEMS;
pub use outcome::{Failed, Outcome, Paper};
pub use recognize::Region;

use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings;
use crate::kit::programs::Missing;
use crate::kit::programs::{self, Door, Ready};
use crate::kit::roscore;
use crate::kit::sandbox::Sandbox;
use crate::kit::systems::System;
use crate::machine;
use stats::{Cell, Report};
use trial::{Surroundings, Trial};

/// Measures according to `options`. Blocks for minutes, with its progress on standard error. It calls `stopped` at
/// least ten times a second; true ends it early, with the results so far.
///
/// # Errors
/// [`Error`]: nothing can be measured. Missing systems and failed trials are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let sandbox = Sandbox::new()?;
    let (systems, mut missing) = prepare(options, &sandbox, stopped)?;
    let (roscore, systems) = roscore::start_for(systems, &mut missing, &sandbox, stopped)?;
    for gone in &missing {
        eprintln!("{} is left out: {}", gone.system, gone.why);
    }
    if systems.is_empty() {
        let why: Vec<String> = missing
            .iter()
            .map(|m| format!("{}: {}", m.system, m.why))
            .collect();
        return Err(Error::Nothing(why.join("; ")));
    }
    let around = Surroundings {
        options,
        sandbox: &sandbox,
        roscore: roscore.as_ref(),
        stopped,
    };
    let (before, note) = findings::watch();
    let mut outcome = measure(&systems, &around);
    outcome.found.health.before = before;
    outcome.found.notes.extend(note);
    outcome.found.missing = missing;
    Ok(outcome)
}

/// Finds the systems that can take part, and checks that all draw and recognize alike.
fn prepare(
    options: &Options,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<(Vec<Ready>, Vec<Missing>), Error> {
    let folder = programs::folder(options.peers.as_deref());
    let (mut systems, mut missing) = (Vec::new(), Vec::new());
    // Ropewalk's image and recognition are the reference.
    let ours = programs::prepare(Door::Brake, System::Ropewalk, None, sandbox, stopped)?;
    let expected = match &ours {
        Ok(ours) => check(ours, options.roi, sandbox, stopped)?,
        Err(gone) => Err(gone.why.clone()),
    };
    for system in options.wanted_systems() {
        let ready = match programs::prepare(Door::Brake, system, folder.as_deref(), sandbox, stopped)? {
            Ok(ready) => ready,
            Err(gone) => {
                missing.push(gone);
                continue;
            }
        };
        match (check(&ready, options.roi, sandbox, stopped)?, &expected) {
            (Ok(said), Ok(expected)) if said == *expected => systems.push(ready),
            (Ok(_), Ok(_)) => missing.push(Missing {
                system,
                why: "it draws or recognizes differently from this program: build it again (make -B -C peers brake)"
                    .into(),
            }),
            (Err(why), _) => missing.push(Missing { system, why }),
            (_, Err(why)) => missing.push(Missing {
                system,
                why: why.clone(),
            }),
        }
    }
    Ok((systems, missing))
}

/// Returns a program's image hash and recognition in the test image, or why it prints none.
fn check(
    ready: &Ready,
    roi: Region,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<serde_json::Value, String>, Error> {
    let mut command = ready.command("check");
    command.arg("--roi").arg(roi.to_string());
    let said = programs::hear(&mut command, sandbox, stopped)?;
    Ok(
        said.and_then(|said| {
            serde_json::from_str(&said).map_err(|e| format!("cannot parse its check ({e})"))
        }),
    )
}

fn measure(systems: &[Ready], around: &Surroundings<'_>) -> Outcome {
    let options = around.options;
    let applications = options.wanted_applications();
    let mut results: Vec<Vec<Vec<Trial>>> = vec![vec![Vec::new(); systems.len()]; applications.len()];
    let (mut failed, mut number) = (Vec::new(), 0);
    let all = options.trials() as usize * applications.len() * systems.len();
    let mut complete = true;
    'trials: for trial in 0..options.trials() {
        for (a, application) in applications.iter().enumerate() {
            for i in 0..systems.len() {
                // The order rotates by one each time.
                let s = (i + a + trial as usize) % systems.len();
                number += 1;
                let result = trial::run(&systems[s], *application, trial, number, around);
                around.sandbox.sweep();
                let shown = match result {
                    Ok(trial) => {
                        let shown = outcome::one_line(*application, &trial, options);
                        results[a][s].push(trial);
                        shown
                    }
                    Err(RunError::Stopped) => {
                        complete = false;
                        break 'trials;
                    }
                    Err(RunError::Failed(why)) => {
                        let shown = format!("FAILED: {why}");
                        failed.push(Failed {
                            system: systems[s].system,
                            application: *application,
                            trial,
                            why,
                        });
                        shown
                    }
                };
                let (system, application) = (systems[s].system, application.name());
                eprintln!("[{number}/{all}] {application} {system}: {shown}");
            }
        }
    }
    let mut versions = machine::versions();
    versions.extend(
        systems
            .iter()
            .map(|s| (s.system.name().to_owned(), s.version.clone())),
    );
    let mut cells = Vec::new();
    for (application, by_system) in applications.iter().zip(&results) {
        for (system, trials) in systems.iter().zip(by_system).filter(|(_, t)| !t.is_empty()) {
            let entry = motion::entry_degrees(options.roi.width);
            cells.push(Cell {
                system: system.system.name().to_owned(),
                params: Params::new(*application, trials.len() as u32, options),
                metrics: metrics::pool(*application, entry, trials),
            });
        }
    }
    let report = Report {
        experiment: "brake".to_owned(),
        machine: machine::describe(),
        versions,
        cells,
    };
    Outcome::new(report, failed, complete, !options.systems.is_empty())
}
