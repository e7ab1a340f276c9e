//! `ropewalk plan`: predicts whether a system fits before it is built.

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use analysis::plan::{HostCosts, Known, Options, System, Trace, plan};
use recording::{Recording, simulation};
use schema::{Flavour, Registry};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the demo's robot, in place of a recording's file.
const SIMULATED: &str = "simulated";
/// Seconds of it that are used.
const SECONDS: f64 = 20.0;

/// Runs the command; exit code 1 if the system does not fit.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let file = options.system.display();
    let text =
        std::fs::read_to_string(&options.system).map_err(|e| Failure::input(format_args!("{file}: {e}")))?;
    let folder = options.system.parent().unwrap_or(Path::new("")).to_owned();
    let known = Files { folder };
    let system = System::parse(&text, &file.to_string(), &known).or_input()?;
    let costs = match &options.machine {
        None => HostCosts::defaults(),
        Some(path) => {
            let bad = |e: String| Failure::input(format_args!("{}: {e}", path.display()));
            let json = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
            HostCosts::parse(&json).map_err(bad)?
        }
    };
    crate::screen::tell!(
        "{} runs of {} s in virtual time{}",
        options.runs,
        options.seconds,
        if options.brief {
            ""
        } else {
            ", then what breaks first and what would help"
        }
    );
    let outcome = plan(&system, &costs, options, &|| signals.stopped())
        .map_err(|e| Failure::input(format_args!("{file}: {e}")))?;
    if signals.stopped() {
        return Err(Failure::job("stopped before the end"));
    }
    let json = outcome.json(bench::machine::describe());
    crate::experiments::show(&options.json, json, outcome.text())?;
    if outcome.fits() {
        Ok(())
    } else {
        Err(Failure::job("the system does not fit"))
    }
}

/// Types and recordings on this machine.
struct Files {
    /// Folder of the system's file: recordings' names are relative to it.
    folder: PathBuf,
}

impl Known for Files {
    fn size(&self, type_name: &str) -> Result<u64, String> {
        let schema = Registry::from_env(Flavour::Ros1)
            .schema(type_name)
            .map_err(|e| e.to_string())?;
        let size = schema.message_type().fixed_size();
        size.map(|s| s.max(1) as u64)
            .ok_or_else(|| format!("messages of {type_name} have no fixed size: give `bytes`"))
    }

    fn recording(&self, file: &str) -> Result<BTreeMap<String, Trace>, String> {
        let mut all = BTreeMap::<String, Trace>::new();
        let mut start = None;
        let mut put = |channel: &recording::Channel, message: &recording::Message| {
            let start = *start.get_or_insert(message.log_time);
            let trace = all.entry(channel.topic.clone()).or_default();
            trace.type_name.clone_from(&channel.type_name);
            let at: Duration = message.log_time.since(start);
            let bytes = u32::try_from(message.data.len()).unwrap_or(u32::MAX);
            trace.messages.push((at, bytes));
        };
        if file == SIMULATED {
            let channels = simulation::channels();
            for message in simulation::generate(SECONDS, 1) {
                put(&channels[message.channel.0 as usize], &message);
            }
        } else {
            let recording = Recording::open(self.folder.join(file)).map_err(|e| e.to_string())?;
            for message in recording.messages() {
                // A damaged part does not invalidate the rest.
                match message {
                    Ok(message) => put(recording.channel(message.channel), &message),
                    Err(error) => crate::screen::tell!("{error}"),
                }
            }
        }
        Ok(all)
    }
}
