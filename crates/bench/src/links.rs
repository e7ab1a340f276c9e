//! Link daemons of an experiment, one on each host, and the keys of their team.

use crate::ipc::error::RunError;
use crate::lab::site::{Ground, Job};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The words that start a link of a configuration. Its state is told at its end, however soon that comes, and an hour of others in between is never in the way.
pub(crate) fn link_words<'a>(program: &'a str, configuration: &'a str) -> [&'a str; 6] {
    [program, "link", configuration, "--json", "--every", "3600"]
}

/// How long a daemon may take to end when it is told to.
const END: Duration = Duration::from_secs(10);

/// A team of the session, and its hosts that have keys.
#[derive(Default)]
pub(crate) struct Team(RefCell<BTreeSet<String>>);

impl Team {
    /// The folder with a host's keys, made when first needed.
    pub(crate) fn keys(&self, ground: &Ground<'_>, host: &str) -> Result<PathBuf, RunError> {
        let team = ground.folder.path().join("team");
        let shown = team.to_string_lossy().into_owned();
        let keys = |words: &[&str]| {
            let mut command = Command::new(&ground.executable);
            command.arg("keys").args(words);
            ground.hear(&mut command, Duration::from_secs(20))
        };
        let mut made = self.0.borrow_mut();
        if made.is_empty() {
            keys(&["team", "bench", "--folder", &shown])?;
        }
        if made.insert(host.to_owned()) {
            keys(&["host", host, "--team", &shown])?;
        }
        Ok(team.join("hosts").join(host))
    }
}

/// The daemons that run, by host. Dropping it ends them.
#[derive(Default)]
pub(crate) struct Daemons(Vec<(String, Job)>);

impl Daemons {
    /// Starts the daemon of a host.
    pub(crate) fn start(&mut self, host: &str, command: &mut Command) -> Result<(), RunError> {
        self.0.push((host.to_owned(), Job::start(command)?));
        Ok(())
    }

    /// Their processes.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|(_, job)| job.pid())
    }

    /// Ends the daemons when a run is over; gives what came of it, and what each daemon last said of itself.
    pub(crate) fn end<T>(
        self,
        played: Result<T, RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        match (played, self.down(stopped)) {
            (Err(RunError::Stopped), _) | (_, Err(RunError::Stopped)) => Err(RunError::Stopped),
            (Ok(played), Ok(last)) => Ok((played, last)),
            // What a daemon complains of is why nobody found each other.
            (_, Err(why)) | (Err(why), Ok(_)) => Err(why),
        }
    }

    /// Ends the daemons, and gives what each last said of itself.
    fn down(self, stopped: &dyn Fn() -> bool) -> Result<BTreeMap<String, Value>, RunError> {
        let mut last = BTreeMap::new();
        for (host, job) in self.0 {
            let said = job.end(END, stopped)?;
            let line = said.lines().last().unwrap_or_default();
            let status = serde_json::from_str(line)
                .map_err(|e| format!("the link on {host} said no state that is JSON: {e}"))?;
            last.insert(host, status);
        }
        Ok(last)
    }
}
