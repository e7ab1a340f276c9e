//! A run whose nodes are on real machines.

use super::super::System;
use super::super::links;
use super::super::measured::Measured;
use super::super::nodes_of_run::RunNodes;
use super::super::peers;
use super::super::point::Point;
use super::super::raw::{self, Row};
use super::super::said::Said;
use super::super::stage::Stage;
use super::super::tools::Tools;
use super::super::trial::{self, Run as Which};
use super::super::watch::Load;
use super::fleet::Agents;
use super::protocol::{Answer, KEYS, NODE_LINES, Order, Run};
use crate::kit::error::RunError;
use crate::kit::processes::Says;
use stats::Time;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long machines may take: to start all nodes, to read `/proc`, to see the nodes end, to send a line of rows, and
/// to end the link.
const START: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_secs(30);
const JOIN: Duration = Duration::from_secs(60);
const ROWS: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(60);

/// Runs `system` once. Afterwards the raw data are in the run's folder on this machine.
pub(in crate::scale) fn trial(
    tools: &Tools<'_>,
    stage: &Stage<'_>,
    system: System,
    point: &Point,
    run: &Which<'_>,
) -> Result<Measured, RunError> {
    let agents = tools.agents()?;
    let played = play(tools, agents, stage, system, point, run);
    if matches!(played, Err(RunError::Stopped)) {
        return played;
    }
    let drops = agents.ask(0..point.hosts, |_| Order::End, END);
    match (played, drops) {
        (Ok(mut measured), Ok(drops)) => {
            for answer in drops {
                let Answer::Drops(drops) = answer else {
                    return Err(RunError::Failed(
                        "an agent does not report its link's losses".into(),
                    ));
                };
                for (reason, n) in drops {
                    let sum = measured.drops.entry(reason).or_insert(0);
                    *sum = sum.saturating_add(n);
                }
            }
            Ok(measured)
        }
        // A link's complaint may be why the nodes did not find each other, or a consequence of ending the run early.
        (Err(RunError::Failed(first)), Err(RunError::Failed(then))) if first != then => {
            Err(format!("{first}; {then}").into())
        }
        (_, Err(why)) | (Err(why), Ok(_)) => Err(why),
    }
}

fn play(
    tools: &Tools<'_>,
    agents: &Agents<'_>,
    stage: &Stage<'_>,
    system: System,
    point: &Point,
    run: &Which<'_>,
) -> Result<Measured, RunError> {
    let mut keys: Vec<BTreeMap<String, String>> = Vec::new();
    for host in 0..point.hosts {
        let linked = system.is_ours() && point.hosts > 1;
        keys.push(if linked {
            read_keys(tools, host)?
        } else {
            BTreeMap::new()
        });
    }
    let nodes = 2 * point.senders() as usize;
    for host in 0..point.hosts as usize {
        agents
            .reports
            .with(host, |state| state.begin(run.number, nodes * NODE_LINES));
    }
    let order = |host: u32| {
        Order::Run(Box::new(Run {
            system,
            point: point.clone(),
            number: run.number,
            linger_ms: u64::try_from(run.linger.as_millis()).unwrap_or(u64::MAX),
            ports: stage.ports().to_vec(),
            master: stage.master_port(),
            keys: keys[host as usize].clone(),
        }))
    };
    agents.ask(0..point.hosts, order, START)?;
    let mut run_nodes = There {
        agents,
        system,
        point,
        said: Vec::new(),
    };
    run_nodes.said.resize_with(nodes, Said::default);
    let mut measured = trial::conduct(&mut run_nodes, point, run.linger)?;
    agents.ask(0..point.hosts, |_| Order::Join, JOIN)?;
    trial::results(&mut measured, &run_nodes, point);
    for sender in 0..point.senders() {
        run_nodes.fetch(sender, run.folder)?;
    }
    trial::logs(&mut measured, point, run.folder)?;
    Ok(measured)
}

/// The files of a host's keys.
fn read_keys(tools: &Tools<'_>, host: u32) -> Result<BTreeMap<String, String>, RunError> {
    let folder = tools.team.keys(&tools.ground, &links::host_name(host))?;
    let read = |name: &str| -> Result<(String, String), RunError> {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok((name.to_owned(), text))
    };
    KEYS.iter().map(|name| read(name)).collect()
}

/// The nodes of a run, as the agents report them.
struct There<'a> {
    agents: &'a Agents<'a>,
    system: System,
    point: &'a Point,
    said: Vec<Said>,
}

impl There<'_> {
    fn all(&self, order: &Order) -> Result<Vec<Answer>, RunError> {
        self.agents.ask(0..self.point.hosts, |_| order.clone(), LOOK)
    }

    /// Copies a sender's log into a folder on this machine.
    fn fetch(&self, sender: u32, folder: &Path) -> Result<(), RunError> {
        let [host, _] = self.point.hosts_of(sender);
        let (most, mut all) = (self.point.rows(), Vec::<Row>::new());
        loop {
            let from = all.len() as u64;
            let order = |_| Order::Rows { sender, from };
            let answer = self.agents.ask(host..host + 1, order, ROWS)?.pop();
            let Some(Answer::Rows { rows, more }) = answer else {
                return Err(format!("{} sends no rows", self.agents.host(host)).into());
            };
            let none = rows.is_empty();
            all.extend(
                rows.into_iter()
                    .map(|(id, sent_ns, recv_ns)| Row { id, sent_ns, recv_ns }),
            );
            if all.len() as u64 > most || (more && none) {
                return Err(format!("{} sends more rows than possible", self.agents.host(host)).into());
            }
            if !more {
                break;
            }
        }
        let file = raw::file(folder, sender);
        raw::write(&file, all.into_iter()).map_err(|e| format!("{}: {e}", file.display()).into())
    }
}

/// Stores a line of a node, if the node is on that host.
fn keep(said: &mut [Said], point: &Point, host: u32, node: u32, line: &str) -> Result<(), String> {
    let place = said
        .get_mut(node as usize)
        .filter(|_| point.host_of(node) == host);
    let place = place.ok_or("it reports a node that it does not run")?;
    place.hear(clock::monotonic(), Said::parse(line, point.rows())?);
    Ok(())
}

impl RunNodes for There<'_> {
    fn listen(&mut self, deadline: Time, first: usize, so: fn(&Said) -> bool) -> Result<bool, RunError> {
        let (agents, point, said) = (self.agents, self.point, &mut self.said);
        let heard = agents.reports.wait(deadline, agents.stopped, |states| {
            for (host, state) in (0..point.hosts).zip(states) {
                for (node, line) in state.heard.drain(..) {
                    if let Err(why) = keep(said, point, host, node, &line) {
                        return Some(Err(format!("{}: {why}", agents.host(host))));
                    }
                }
                if let Some(why) = &state.lost {
                    return Some(Err(why.clone()));
                }
                if let Some(why) = &state.failed {
                    return Some(Err(format!("{}: {why}", agents.host(host))));
                }
            }
            said[first..].iter().all(so).then_some(Ok(()))
        })?;
        match heard {
            Some(Ok(())) => Ok(true),
            Some(Err(why)) => Err(why.into()),
            None => Ok(false),
        }
    }

    fn said(&self, node: usize) -> &Said {
        &self.said[node]
    }

    fn go(&mut self) -> Result<(), RunError> {
        self.all(&Order::Go).map(drop)
    }

    fn look(&mut self) -> Result<(), RunError> {
        self.all(&Order::Look).map(drop)
    }

    fn load(&mut self) -> Result<Load, RunError> {
        let mut sum = Load::default();
        for (host, answer) in (0..).zip(self.all(&Order::Load)?) {
            let name = self.agents.host(host);
            let Answer::Load(mut load) = answer else {
                return Err(format!("{name} does not report its usage").into());
            };
            if let Some(busiest) = &mut load.busiest {
                busiest.part = format!("{} on {name}", busiest.part);
            }
            sum.add(*load);
        }
        Ok(sum)
    }

    fn stop(&mut self, patience: Duration) -> Result<bool, RunError> {
        self.all(&Order::Stop)?;
        self.listen(clock::monotonic() + patience, 0, |said| said.result.is_some())
    }

    fn name(&self, node: usize) -> String {
        let node = node as u32;
        let name = peers::name(self.system, self.point, node);
        format!("{name} on {}", self.agents.host(self.point.host_of(node)))
    }

    fn complain(&self, node: usize, what: &str) -> RunError {
        format!("{}: {what}", self.name(node)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::example;
    use super::*;

    #[test]
    fn lines_are_kept_of_the_hosts_own_nodes_alone() {
        let point = example().point;
        let mut said: Vec<Said> = Vec::new();
        said.resize_with(4, Said::default);
        // Echoes are on the second host.
        assert_eq!(keep(&mut said, &point, 1, 1, "ready"), Ok(()));
        assert!(said[1].ready && !said[0].ready);
        for (host, node, line) in [
            (0, 1, "ready"),
            (1, 2, "ready"),
            (1, 4, "ready"),
            (1, u32::MAX, "ready"),
            (1, 0, "x"),
        ] {
            assert!(
                keep(&mut said, &point, host, node, line).is_err(),
                "{host} {node} {line}"
            );
        }
    }
}
