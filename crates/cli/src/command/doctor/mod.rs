//! `ropewalk doctor`: finds what is wrong with this host, and what would cause jitter.

mod finding;
mod folder;
mod jitter;
mod limits;
mod link;
mod memory;

use crate::failure::{Failure, OrFail, Outcome};
use clap::Args;
use finding::{Finding, Level};
use serde_json::json;
use std::io::{IsTerminal, Write};

/// Check this host for problems with discovery, shared memory and wake-up latency.
///
/// Checks the runtime folder (permissions, stale sockets, processes that do not answer), the limits of this user, the
/// free memory, the peers that the links of this host do not reach, and causes of latency: CPU governor, idle states,
/// scheduling, clocks, other load. Then it sends a message to itself and measures how late this host wakes a sleeping
/// thread.
///
/// The exit code is 1 if something is broken, 0 if there are only warnings.
#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Skip the measurements, which take about two seconds.
    #[arg(long)]
    no_measure: bool,
    /// Show only warnings and problems.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut findings = folder::check();
    findings.extend(limits::check());
    findings.extend(link::check());
    findings.extend(memory::check());
    findings.extend(jitter::check());
    if !options.no_measure {
        crate::screen::tell!("measuring wake-up latency ...");
        findings.extend(folder::try_it());
        findings.extend(jitter::measure());
    }
    let count = |level| findings.iter().filter(|f| f.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    if options.json {
        let all: Vec<_> = findings.iter().map(Finding::json).collect();
        let report = json!({"problems": problems, "warnings": warnings, "checks": all});
        writeln!(crate::screen::stdout(), "{report:#}").or_job("printing")?;
    } else {
        let mut out = crate::screen::raw().lock();
        let colour = crate::screen::may_colour(&out);
        // Only a terminal wraps lines; other readers get a line each.
        let size = rustix::termios::tcgetwinsize(&out)
            .ok()
            .filter(|_| out.is_terminal());
        let width = size.map_or(usize::MAX, |size| usize::from(size.ws_col).max(1));
        for finding in &findings {
            if !options.quiet || finding.level >= Level::Warning {
                write!(out, "{}", finding.text(colour, width)).or_job("printing")?;
            }
        }
        let (problems, warnings) = (counted(problems, "problem"), counted(warnings, "warning"));
        writeln!(out, "{problems}, {warnings}").or_job("printing")?;
    }
    if problems > 0 {
        return Err(Failure::job(format_args!(
            "{problems} of {} checks failed",
            findings.len()
        )));
    }
    Ok(())
}

/// `1 problem`, `2 problems`.
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(0, "problem"), "0 problems");
        assert_eq!(counted(1, "warning"), "1 warning");
        assert_eq!(counted(2, "warning"), "2 warnings");
    }
}
