//! Starts and stops the demo's processes.

use super::protocol::{GO, Part, Report, Spec};
use crate::failure::{Failure, OrFail};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a process may take to end after a stop request.
const PATIENCE: Duration = Duration::from_secs(5);

/// One process and the parts that it runs.
pub(crate) struct Process {
    pub(crate) parts: Vec<Part>,
    child: Child,
    input: Option<ChildStdin>,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a process; its reports go to `reports`.
    pub(crate) fn start(spec: &Spec, parts: &[Part], reports: Sender<Report>) -> Result<Self, Failure> {
        let program = std::env::current_exe().or_job("finding this program")?;
        let spec = serde_json::to_string(spec).or_job("describing the run")?;
        let mut child = Command::new(program)
            .args(["demo-part", "--spec", &spec])
            .args(parts.iter().map(|p| p.name()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A separate process group: Ctrl-C reaches only the demo, which then stops its parts in order.
            .process_group(0)
            .spawn()
            .or_job("starting a process")?;
        let output = child.stdout.take();
        std::thread::spawn(move || {
            for line in output
                .into_iter()
                .flat_map(|o| BufReader::new(o).lines())
                .map_while(Result::ok)
            {
                match serde_json::from_str(&line) {
                    Ok(report) => drop(reports.send(report)),
                    Err(error) => tracing::error!(%error, line, "a part sent an unreadable report"),
                }
            }
        });
        Ok(Process {
            parts: parts.to_vec(),
            input: child.stdin.take(),
            child,
            ended: None,
        })
    }

    /// Its name, for people.
    pub(crate) fn name(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(|p| p.name()).collect();
        format!("{} (pid {})", parts.join(" + "), self.child.id())
    }

    /// Lets the publisher start.
    pub(crate) fn go(&mut self) {
        if let Some(input) = &mut self.input {
            // `ended` notices a process that is gone.
            let _ = writeln!(input, "{GO}");
        }
    }

    /// Exit status, when the process is first seen to have ended.
    pub(crate) fn newly_ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            return self.ended;
        }
        None
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Asks the process to stop; it ends soon after.
    pub(crate) fn stop(&mut self) {
        self.input = None;
    }

    /// Waits until the process has ended. Kills it after a timeout, which is an error.
    pub(crate) fn join(&mut self) -> Result<(), Failure> {
        self.stop();
        let deadline = Instant::now() + PATIENCE;
        while self.ended.is_none() {
            self.ended = self.child.try_wait().or_job("waiting for a process")?;
            if self.ended.is_none() {
                if Instant::now() > deadline {
                    self.kill();
                    return Err(Failure::job(format_args!(
                        "{} did not stop and was killed",
                        self.name()
                    )));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    fn kill(&mut self) {
        // The child was not waited for yet, so its pid cannot be reused.
        let _ = self.child.kill();
        self.ended = self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() && self.join().is_err() {
            self.kill();
        }
    }
}

/// How a process ended, for people.
pub(crate) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    }
}
