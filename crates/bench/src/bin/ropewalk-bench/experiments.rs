//! `ropewalk bench`: benchmarks and comparisons.

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use analysis::{calibrate, raw, report};
use bench::brake;
use bench::ipc::{self, peer};
use bench::{lab, link, remote, scale};
use clap::Subcommand;
use std::io::Write;
use std::path::{Path, PathBuf};
use terminal::json::Json;

#[derive(Subcommand)]
pub(crate) enum What {
    Ipc(ipc::Options),
    Brake(brake::Options),
    Lab(lab::Options),
    Link(link::Options),
    Remote(remote::Options),
    Analyze(raw::Options),
    Model(calibrate::Options),
    Report(report::Options),
    Scale(scale::Options),
    Agent(scale::agents::Options),
    /// One process of `bench ipc`.
    #[command(hide = true)]
    IpcPeer {
        #[command(subcommand)]
        role: peer::Role,
    },
    /// One process of `bench brake`.
    #[command(hide = true)]
    BrakePart {
        #[command(subcommand)]
        role: brake::part::Role,
    },
    /// One process of `bench link`.
    #[command(hide = true)]
    LinkPart {
        #[command(subcommand)]
        role: link::part::Role,
    },
    /// One process of `bench remote`.
    #[command(hide = true)]
    RemotePart {
        #[command(subcommand)]
        role: Box<remote::part::Role>,
    },
    /// One node of `bench scale`.
    #[command(hide = true)]
    ScalePart {
        #[command(subcommand)]
        role: scale::part::Role,
    },
    /// The agent process of one machine, child of its supervisor.
    #[command(hide = true)]
    ScaleAgent(scale::agents::Work),
    /// One end of a probe of `bench lab`.
    #[command(hide = true)]
    LabProbe {
        #[command(subcommand)]
        role: lab::probe::Role,
    },
}

/// Text, CSV and figure of an experiment's outcome.
macro_rules! shown {
    ($outcome:expr) => {
        Shown {
            csv: $outcome.csv(),
            figure: $outcome.figure(),
            json: $outcome.json(),
            text: $outcome.text(),
            verdict: $outcome.verdict(),
        }
    };
}

/// Runs one of the experiments.
pub(crate) fn run(what: &What) -> Outcome {
    match what {
        What::Ipc(options) => run_ipc(options),
        What::Brake(options) => run_brake(options),
        What::Lab(options) => run_in_lab(([&options.csv, &options.figure], &options.json), |stopped| {
            lab::run(options, stopped).map(|outcome| shown!(outcome))
        }),
        What::Link(options) => run_in_lab(([&options.csv, &options.figure], &options.json), |stopped| {
            link::run(options, stopped).map(|outcome| shown!(outcome))
        }),
        What::Remote(options) => run_in_lab(([&options.csv, &options.figure], &options.json), |stopped| {
            remote::run(options, stopped).map(|outcome| shown!(outcome))
        }),
        What::Analyze(options) => run_analyze(options),
        What::Model(options) => run_model(options),
        What::Report(options) => run_report(options),
        What::Scale(options) => run_in_lab(([&options.csv, &options.figure], &options.json), |stopped| {
            scale::run(options, stopped).map(|outcome| shown!(outcome))
        }),
        What::Agent(options) => run_agent(options),
        What::ScaleAgent(options) => {
            // A stopped agent receives SIGHUP when it resumes after its supervisor ended (setpgid(2)). It has to clean
            // up first, and notices by itself that the supervisor is gone.
            crate::signals::outlive_hangups();
            scale::agents::work(options).or_job("bench agent")
        }
        What::ScalePart { role } => scale::part::run(role).or_job("bench scale-part"),
        What::LinkPart { role } => link::part::run(role).or_job("bench link-part"),
        What::RemotePart { role } => remote::part::run(role).or_job("bench remote-part"),
        What::LabProbe { role } => lab::probe::run(role).or_job("bench lab-probe"),
        What::IpcPeer { role } => peer::run(role).or_job("bench ipc-peer"),
        What::BrakePart { role } => brake::part::run(role).or_job("bench brake-part"),
    }
}

fn run_ipc(options: &ipc::Options) -> Outcome {
    prepare([
        options.csv.as_deref(),
        options.figure.as_deref(),
        options.json.file(),
    ])?;
    let signals = Signals::watch().or_job("watching signals")?;
    let outcome = ipc::run(options, &|| signals.stopped()).map_err(Failure::job)?;
    if let Some(file) = &options.csv {
        write(file, &outcome.csv())?;
    }
    if let Some(file) = &options.figure {
        write(file, &outcome.figure(options.experiment))?;
    }
    show(&options.json, outcome.json(), outcome.text())?;
    outcome.verdict().map_err(Failure::job)
}

fn run_brake(options: &brake::Options) -> Outcome {
    prepare([options.figure.as_deref(), options.json.file()])?;
    let signals = Signals::watch().or_job("watching signals")?;
    let outcome = brake::run(options, &|| signals.stopped()).map_err(Failure::job)?;
    if let Some(file) = &options.figure {
        write(file, &outcome.figure())?;
    }
    show(&options.json, outcome.json(), outcome.text())?;
    outcome.verdict().map_err(Failure::job)
}

fn run_analyze(options: &raw::Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let outcome = raw::run(options, &|| signals.stopped()).map_err(|e| {
        if e.is_input() {
            Failure::input(e)
        } else {
            Failure::job(e)
        }
    })?;
    if let Some(file) = &options.csv {
        write(file, &outcome.csv())?;
    }
    if let Some(file) = &options.figure {
        write(file, &outcome.figure())?;
    }
    show(&options.json, outcome.json(), outcome.text())
}

fn run_model(options: &calibrate::Options) -> Outcome {
    let outcome = calibrate::run(options, bench::machine::describe()).or_input()?;
    show(&options.json, outcome.json(), outcome.text())
}

fn run_report(options: &report::Options) -> Outcome {
    report::run(options).or_input()?;
    crate::screen::tell!("report: {}", options.output.display());
    Ok(())
}

fn run_agent(options: &scale::agents::Options) -> Outcome {
    if options.serve {
        return scale::agents::serve(options).map_err(|e| match e {
            bench::Error::Input(_) => Failure::input(e),
            _ => Failure::job(e),
        });
    }
    let scale = options.experiment().unwrap_or_else(|e| e.exit());
    run_in_lab(([&scale.csv, &scale.figure], &scale.json), |stopped| {
        scale::agents::run(options, &scale, stopped).map(|outcome| shown!(outcome))
    })
}

/// Outcome of an experiment in the lab, as printed and written to files.
struct Shown {
    csv: String,
    figure: String,
    json: String,
    text: String,
    verdict: Result<(), bench::Error>,
}

/// Runs an experiment in the lab, writes its files, prints its outcome and returns its verdict.
fn run_in_lab(
    ([csv, figure], json): ([&Option<PathBuf>; 2], &Json),
    run: impl Fn(&dyn Fn() -> bool) -> Result<Shown, bench::Error>,
) -> Outcome {
    prepare([csv.as_deref(), figure.as_deref(), json.file()])?;
    let signals = Signals::watch().or_job("watching signals")?;
    let shown = run(&|| signals.stopped()).map_err(|e| match e {
        bench::Error::Input(_) => Failure::input(e),
        _ => Failure::job(e),
    })?;
    if let Some(file) = csv {
        write(file, &shown.csv)?;
    }
    if let Some(file) = figure {
        write(file, &shown.figure)?;
    }
    show(json, shown.json, shown.text)?;
    shown.verdict.map_err(Failure::job)
}

/// Shows a result as requested.
pub(crate) fn show(option: &Json, json: String, text: String) -> Outcome {
    if let Some(file) = option.file() {
        write(file, &(json.clone() + "\n"))?;
    }
    let shown = if option.is_printed() { json } else { text };
    writeln!(crate::screen::stdout(), "{shown}").or_job("writing")
}

/// Creates the files that the results go to. Fails before hours of measurements, not after.
fn prepare<const N: usize>(files: [Option<&Path>; N]) -> Outcome {
    files.into_iter().flatten().try_for_each(|file| write(file, ""))
}

fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|e| Failure::input(format_args!("{}: {e}", file.display())))
}
