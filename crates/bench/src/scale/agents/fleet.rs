//! All agents of a session.

use super::super::System;
use super::super::point::Point;
use super::agent::Agent;
use super::machine;
use super::options::Options;
use super::protocol::{Answer, Hello, Line, Order, PROTOCOL, RADIOS};
use super::reports::Reports;
use crate::kit::error::Error;
use crate::kit::error::RunError;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long agents may take to start: they query the versions of programs.
const HELLO: Duration = Duration::from_secs(90);
/// How long they may take to end old processes.
const STAGE: Duration = Duration::from_secs(60);
/// How long a ROS master may take to start.
const MASTER: Duration = Duration::from_secs(90);

/// The machines of a session, each with an agent. Dropping it ends all agents.
pub(in crate::scale) struct Agents<'a> {
    pub(super) reports: Arc<Reports>,
    agents: Vec<Agent>,
    hellos: Vec<Hello>,
    addresses: Vec<Ipv4Addr>,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl<'a> Agents<'a> {
    /// Starts the agents. Blocks until each has said hello, or returns why one cannot.
    ///
    /// # Errors
    /// [`Error::Nothing`] with the machine and how to fix it, [`Error::Input`], [`Error::Stopped`].
    pub(super) fn reach(
        options: &Options,
        peers: Option<&PathBuf>,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Agents<'a>, Error> {
        let machines = options.machines();
        let mut all = Agents {
            reports: Arc::new(Reports::new(machines.len())),
            agents: Vec::new(),
            hellos: Vec::new(),
            addresses: machine::addresses(machines)?,
            stopped,
        };
        for (who, machine) in machines.iter().enumerate() {
            all.agents
                .push(Agent::start(who, machine, options, peers, &all.reports)?);
        }
        let met = all.reports.wait(clock::monotonic() + HELLO, stopped, |states| {
            if let Some(why) = states.iter().find_map(|s| s.lost.clone()) {
                return Some(Err(why));
            }
            let hellos: Vec<Hello> = states.iter().filter_map(|s| s.hello.clone()).collect();
            (hellos.len() == states.len()).then_some(Ok(hellos))
        });
        all.hellos = match met {
            Err(_) => return Err(Error::Stopped),
            Ok(Some(Ok(hellos))) => hellos,
            Ok(Some(Err(why))) => return Err(Error::Nothing(why)),
            Ok(None) => {
                return Err(Error::Nothing(format!(
                    "not all machines answered within {HELLO:?}: check that `{}` works on each machine",
                    "ropewalk bench agent --serve"
                )));
            }
        };
        for (agent, hello) in all.agents.iter().zip(&all.hellos) {
            check(&agent.host, hello).map_err(Error::Nothing)?;
        }
        Ok(all)
    }

    /// Returns the version of a system that all machines can run.
    ///
    /// # Errors
    /// The machines that cannot, and why.
    pub(in crate::scale) fn version(&self, system: System) -> Result<String, String> {
        let mut versions: Vec<&str> = Vec::new();
        for (agent, hello) in self.agents.iter().zip(&self.hellos) {
            let Some(version) = hello.systems.get(system.name()) else {
                let why = hello
                    .missing
                    .get(system.name())
                    .map_or("it has no such system", String::as_str);
                return Err(format!("{} on {}: {why}", system.name(), agent.host));
            };
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
        Ok(versions.join(" and "))
    }

    /// Returns whether there are several machines and none has a radio: then cables join them.
    pub(in crate::scale) fn wired(&self) -> bool {
        self.hellos.len() > 1 && self.hellos.iter().all(has_no_radio)
    }

    /// Describes the machines for results.
    pub(in crate::scale) fn describe(&self) -> Value {
        let all = self.agents.iter().zip(&self.hellos).zip(&self.addresses);
        let one = |((agent, hello), address): ((&Agent, &Hello), &Ipv4Addr)| json!({ "host": agent.host, "address": address.to_string(), "machine": hello.machine });
        all.map(one).collect()
    }

    /// Returns why one of them is gone.
    pub(in crate::scale) fn lost(&self) -> Option<String> {
        let now = clock::monotonic();
        let lost = self.reports.wait(now, &|| false, |states| {
            states.iter().find_map(|s| s.lost.clone())
        });
        lost.ok().flatten()
    }

    /// Prepares the machines for a point; returns the ports of their links.
    pub(in crate::scale) fn stage(&self, point: &Point) -> Result<Vec<u16>, RunError> {
        let addresses = self.addresses.get(..point.hosts as usize);
        let addresses =
            addresses.ok_or_else(|| "there are fewer machines than the point needs".to_owned())?;
        let order = |here| Order::Stage {
            addresses: addresses.to_vec(),
            here,
            cpu_share: point.cpu_share,
        };
        let answers = self.ask(0..point.hosts, order, STAGE)?;
        let answers = (0..).zip(&answers);
        answers.map(|(host, answer)| self.port(host, answer)).collect()
    }

    /// Starts a ROS master on the first machine, and returns its port.
    pub(in crate::scale) fn master(&self) -> Result<u16, RunError> {
        let answers = self.ask(0..1, |_| Order::Master, MASTER)?;
        self.port(0, answers.first().unwrap_or(&Answer::Yes))
    }

    fn port(&self, host: u32, answer: &Answer) -> Result<u16, RunError> {
        match answer {
            Answer::Port { port } => Ok(*port),
            _ => Err(format!("{} answered something else where a port was due", self.host(host)).into()),
        }
    }

    pub(super) fn host(&self, host: u32) -> &str {
        self.agents.get(host as usize).map_or("?", |a| a.host.as_str())
    }

    /// Sends an order to some agents, and waits for all their answers.
    ///
    /// # Errors
    /// An agent refused, did not answer, or is gone, or the user stopped it.
    pub(super) fn ask(
        &self,
        hosts: Range<u32>,
        order: impl Fn(u32) -> Order,
        patience: Duration,
    ) -> Result<Vec<Answer>, RunError> {
        let some = || hosts.clone().map(|h| h as usize);
        for (host, who) in hosts.clone().zip(some()) {
            let number = self.reports.with(who, |state| state.order());
            if let (Some(agent), Some(number)) = (self.agents.get(who), number) {
                let order = order(host);
                agent.say(&Line::Order { number, order });
            }
        }
        let mut answers: Vec<Option<Answer>> = vec![None; hosts.len()];
        let deadline = clock::monotonic() + patience;
        let all = self.reports.wait(deadline, self.stopped, |states| {
            for (who, place) in some().zip(&mut answers) {
                let state = states.get_mut(who)?;
                match state.answer.take() {
                    Some(Ok(answer)) => *place = Some(answer),
                    Some(Err(why)) => return Some(Err(format!("{}: {why}", self.host(who as u32)))),
                    None => {}
                }
                if place.is_none()
                    && let Some(why) = &state.lost
                {
                    return Some(Err(why.clone()));
                }
            }
            answers.iter().all(Option::is_some).then_some(Ok(()))
        })?;
        match all {
            Some(Ok(())) => Ok(answers.into_iter().flatten().collect()),
            Some(Err(why)) => Err(why.into()),
            None => {
                let late = hosts.zip(&answers).find(|(_, answer)| answer.is_none());
                let late = late.map_or("?", |(host, _)| self.host(host));
                Err(format!("{late} did not answer within {patience:?}").into())
            }
        }
    }
}

impl Drop for Agents<'_> {
    fn drop(&mut self) {
        // All at once; then wait for each.
        self.agents.iter_mut().for_each(Agent::dismiss);
    }
}

/// Returns whether a machine has reported that it has no radio: a missing report is unknown.
fn has_no_radio(hello: &Hello) -> bool {
    let radios = hello.machine.get(RADIOS).and_then(Value::as_array);
    radios.is_some_and(Vec::is_empty)
}

/// Checks whether both ends have the same protocol and version.
fn check(host: &str, hello: &Hello) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    if hello.version == own && hello.protocol == PROTOCOL {
        return Ok(());
    }
    let (theirs, what) = (&hello.version, hello.protocol);
    let same = if theirs == own {
        format!(" (and its protocol is {what}, not {PROTOCOL}: it was built from another state)")
    } else {
        String::new()
    };
    Err(format!(
        "{host} has ropewalk {theirs}, this is {own}{same}: install the same on both, or set its path with --program"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_without_a_radio_are_recognized() {
        let says = |radios: Option<Value>| Hello {
            machine: radios.map(|r| (RADIOS.to_owned(), r)).into_iter().collect(),
            ..Hello::default()
        };
        assert!(has_no_radio(&says(Some(json!([])))));
        for other in [None, Some(json!(["wlan0"])), Some(json!(0)), Some(Value::Null)] {
            assert!(!has_no_radio(&says(other)));
        }
    }

    #[test]
    fn other_versions_are_refused_with_the_fix() {
        let hello = |protocol, version: &str| Hello {
            protocol,
            version: version.into(),
            ..Hello::default()
        };
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(check("robot", &hello(PROTOCOL, own)), Ok(()));
        let other = check("robot", &hello(PROTOCOL, "9.9")).expect_err("another");
        assert!(
            other.contains("robot has ropewalk 9.9") && other.contains("--program"),
            "{other}"
        );
        assert!(check("robot", &hello(PROTOCOL + 1, own)).is_err_and(|e| e.contains("protocol")));
    }
}
