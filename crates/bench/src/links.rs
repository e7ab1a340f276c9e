//! Link daemons of an experiment, one on each host, and the keys of their team.

use crate::ipc::error::RunError;
use crate::lab::site::{Ground, Job};
use serde_json::{Map, Value};
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
            let status = last_whole(&said)
                .map_err(|e| format!("the link on {host} said no state that is JSON: {e}"))?;
            last.insert(host, status);
        }
        Ok(last)
    }
}

/// The last state among those that name the most bridged topics. A bridge forgets a topic soon after whoever published
/// it has gone, which may be before the bridge itself is told to end. Links and bridges without topics: the last.
fn last_whole(said: &str) -> Result<Value, serde_json::Error> {
    let bridged = |state: &Value| {
        let ways = ["to_bus", "to_ros"].map(|way| state[way].as_object().map_or(0, Map::len));
        ways.iter().sum::<usize>()
    };
    let states: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    match states.into_iter().max_by_key(bridged) {
        Some(state) => Ok(state),
        None => serde_json::from_str(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_a_bridge_forgot_at_its_end_is_still_counted() {
        let line = |n: u32, topics: &str| format!(r#"{{"n": {n}, "to_bus": {{{topics}}}, "to_ros": {{}}}}"#);
        let laser = r#""/laser": {"messages": 9}"#;
        let said = [line(1, ""), line(2, laser), line(3, laser), line(4, "")].join("\n");
        assert_eq!(last_whole(&said).expect("JSON")["n"], 3);
    }

    #[test]
    fn a_link_s_last_state_is_taken() {
        assert_eq!(last_whole("{\"n\": 1}\n{\"n\": 2}\n").expect("JSON")["n"], 2);
        assert!(last_whole("").is_err() && last_whole("stopped").is_err());
    }
}
