//! Link daemons of an experiment, one on each host, and the keys of their team.

use crate::kit::error::RunError;
use crate::kit::site::{Ground, Job};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Returns the arguments that start a link with a configuration. It prints its state at its end; the interval of an
/// hour means that no other state comes before.
pub(crate) fn link_words<'a>(program: &'a str, configuration: &'a str) -> [&'a str; 6] {
    [program, "link", configuration, "--json", "--every", "3600"]
}

/// How long a daemon may take to end after the request.
const END: Duration = Duration::from_secs(10);

/// The team of a session, with its hosts that have keys.
#[derive(Default)]
pub(crate) struct Team(RefCell<BTreeSet<String>>);

impl Team {
    /// Returns the folder with a host's keys, which are created on first use.
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

/// The running daemons, by host. Dropping it ends them.
#[derive(Default)]
pub(crate) struct Daemons(Vec<(String, Job)>);

impl Daemons {
    /// Starts the daemon of a host.
    pub(crate) fn start(&mut self, host: &str, command: &mut Command) -> Result<(), RunError> {
        self.0.push((host.to_owned(), Job::start(command)?));
        Ok(())
    }

    /// Returns their process ids.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|(_, job)| job.pid())
    }

    /// Ends the daemons after a run. Returns the run's result, and the last state that each daemon printed.
    pub(crate) fn end<T>(
        self,
        played: Result<T, RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        match (played, self.down(stopped)) {
            (Err(RunError::Stopped), _) | (_, Err(RunError::Stopped)) => Err(RunError::Stopped),
            (Ok(played), Ok(last)) => Ok((played, last)),
            // If a daemon reports a problem, that is why the nodes did not find each other.
            (_, Err(why)) | (Err(why), Ok(_)) => Err(why),
        }
    }

    /// Ends the daemons after others of the same run, and adds the states that they printed.
    pub(crate) fn end_too<T>(
        self,
        ended: Result<(T, BTreeMap<String, Value>), RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        let ((played, mut states), own) = self.end(ended, stopped)?;
        states.extend(own);
        Ok((played, states))
    }

    /// Ends the daemons, and returns the last state that each printed.
    fn down(self, stopped: &dyn Fn() -> bool) -> Result<BTreeMap<String, Value>, RunError> {
        let mut last = BTreeMap::new();
        for (host, job) in self.0 {
            let said = job.end(END, stopped)?;
            let status = last_whole(&said)
                .map_err(|e| format!("the link on {host} printed no valid JSON state: {e}"))?;
            last.insert(host, status);
        }
        Ok(last)
    }
}

/// Returns the last of the states with the most bridged topics. A bridge forgets a topic soon after its publisher has
/// gone, which may be before the bridge itself ends. For links, and bridges without topics, it is the last state.
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
