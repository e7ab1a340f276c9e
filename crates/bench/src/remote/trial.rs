//! One run of one row.

use super::links::{Host, configuration};
use super::options::What;
use super::plan::{FILE_BYTES, Means, Row};
use super::setup::ROBOT;
use super::stage::Stage;
use super::tools::Tools;
use super::values;
use crate::flows::said::{Rule, Said};
use crate::kit::cell::{Timing, Values};
use crate::kit::error::RunError;
use crate::kit::links::Daemons;
use crate::kit::noise::Noise;
use crate::kit::processes::{Peer, Processes};
use crate::kit::roscore::Roscore;
use crate::kit::site::Job;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long processes may take to find each other: over a long path with loss, some round trips.
const READY: Duration = Duration::from_secs(120);
/// Time between `ready` and `go`.
const SETTLE: Duration = Duration::from_millis(500);
/// How long the end may take beyond a row's duration.
const RESULT: Duration = Duration::from_secs(120);
/// Duration of twists alone, before the file transfer begins.
const ALONE: Duration = Duration::from_secs(3);
/// Maximum number of values of a process.
const MOST: u64 = 100_000;
/// Bytes of a twist in version 6, and of its answer.
const TWIST: [usize; 2] = [26, 1];

/// Result of a run.
pub(super) struct Trial {
    pub(super) values: Values,
    /// Number of measured times.
    pub(super) made: u64,
}

/// Runs the row; returns the lab's timing, too, if there is a lab.
pub(super) fn run(row: &Row, tools: &Tools<'_>) -> Result<(Trial, Option<Timing>), RunError> {
    let stage = Stage::up(tools, row.setup)?;
    let set = Set::up(row, tools, &stage)?;
    let busy = (row.awake == Some(true)).then(clock::Busy::keep);
    let reported = play(row, tools, &stage, &set);
    drop(busy);
    let (reported, links) = set.daemons.end(reported, tools.ground.stopped)?;
    let lab = match stage.site() {
        Some(site) => Some(site.status()?),
        None => None,
    };
    let (values, made) = match row.what {
        What::File => values::of_file(&reported)?,
        _ => values::of_times(reported.first().map_or(&[], Vec::as_slice))?,
    };
    tools
        .keep
        .put(|| json!({ "row": row.shown(), "reported": reported, "lab": lab, "links": links }))?;
    Ok((Trial { values, made }, lab.as_ref().map(Timing::of)))
}

/// What a means needs in addition to the processes, and the arguments for these.
struct Set {
    daemons: Daemons,
    words: Vec<String>,
    /// Arguments for each of the hosts, the operator's first.
    own: [Vec<String>; 2],
    ros: Option<Core>,
}

/// The master of roscpp's nodes.
enum Core {
    Here(Roscore),
    Lab(String, Job),
}

fn words<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).into()
}

impl Set {
    fn up(row: &Row, tools: &Tools<'_>, stage: &Stage<'_>) -> Result<Set, RunError> {
        let mut set = Set {
            daemons: Daemons::default(),
            words: Vec::new(),
            own: [Vec::new(), Vec::new()],
            ros: None,
        };
        match row.means {
            Means::Sockets => {
                let [port, ..] = stage.tcp_ports()?;
                set.words = words(["--address", &format!("{}:{port}", stage.address(ROBOT)?)]);
            }
            Means::Daemons | Means::Direct => set.links(row, tools, stage)?,
            Means::V6 | Means::Own => {
                let (robot, operator) = (stage.address(ROBOT)?, stage.address(stage.operator)?);
                let [a, b, c, d] = stage.tcp_ports()?;
                let at =
                    |host: &str, ports: [u16; 2]| ports.map(|port| format!("tcp://{host}:{port}")).join(",");
                let over = if row.means == Means::V6 {
                    "zmq-v6"
                } else {
                    "zmq-own"
                };
                let (robot, operator) = (at(&robot, [a, b]), at(&operator, [c, d]));
                set.words = words(["--over", over, "--robot-at", &robot, "--operator-at", &operator]);
            }
            Means::Service | Means::Topic => {
                set.ros = Some(match stage.site() {
                    Some(site) => {
                        let (uri, job) = tools.ros()?.roscore(site, stage.operator)?;
                        Core::Lab(uri, job)
                    }
                    None => match Roscore::start(&tools.sandbox, tools.ground.stopped)? {
                        Some(core) => Core::Here(core),
                        None => return Err(RunError::Stopped),
                    },
                });
            }
        }
        Ok(set)
    }

    fn links(&mut self, row: &Row, tools: &Tools<'_>, stage: &Stage<'_>) -> Result<(), RunError> {
        let hosts = stage.hosts();
        let ports = stage.udp_ports()?;
        let host = |i: usize| -> Result<Host<'_>, RunError> {
            Ok(Host {
                name: hosts[i],
                address: stage.address(hosts[i])?,
                port: ports[i],
            })
        };
        let both = [host(0)?, host(1)?];
        for (i, robots) in [(0, ["operator", ROBOT]), (1, [ROBOT, "operator"])] {
            let keys = tools.team.keys(&tools.ground, hosts[i])?;
            let text = configuration(row.setup, [&both[i], &both[1 - i]], robots, &keys);
            let file = stage.file(&format!("{}.yaml", hosts[i]));
            fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
            let file = file.to_string_lossy();
            if row.means == Means::Direct {
                self.own[i] = words(["--over", "direct", "--config", &file]);
                continue;
            }
            self.daemons.start(hosts[i], &mut stage.daemon(hosts[i], &file))?;
            self.own[i] = words(["--over", "bus"]);
            if let Some(bus) = stage.bus(hosts[i]) {
                self.own[i].extend(words(["--bus", &bus.to_string_lossy()]));
            }
        }
        Ok(())
    }

    /// Returns the command of a process of the operator (0) or the robot (1) in a role.
    fn command(
        &self,
        tools: &Tools<'_>,
        stage: &Stage<'_>,
        side: usize,
        role: &str,
        more: &[String],
    ) -> Result<Command, RunError> {
        let host = stage.hosts()[side];
        let Some(core) = &self.ros else {
            let all = [&words([role])[..], &self.words, &self.own[side], more].concat();
            return Ok(stage.part(host, &all));
        };
        let program = tools.ros()?.program.to_string_lossy().into_owned();
        let mut all = words([&program, role, "--system", "tcpros"]);
        all.extend_from_slice(more);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut command = stage.command(host, true, &all);
        match core {
            Core::Here(core) => core.prepare(&mut command),
            Core::Lab(uri, _job) => {
                command.env("ROS_MASTER_URI", uri);
            }
        }
        Ok(command)
    }
}

/// Roles and their arguments: of the operator and of the robot.
fn roles(row: &Row) -> [(&'static str, Vec<String>); 2] {
    let number = |n: u128| n.to_string();
    let mut plan = words(["--count", &number(row.count.into()), "--warm-up"]);
    plan.push(number(row.warm_up.into()));
    plan.extend(words(["--budget-ms", &number(row.budget.as_millis())]));
    let bytes = words(["--bytes", &number(row.what.bytes().into())]);
    let patience = words(["--patience-ms", &number(row.patience.as_millis())]);
    let expiry = words(["--expiry-ms", &number(row.expiry.as_millis())]);
    let period = words(["--period-ms", &number(row.period.as_millis())]);
    let settle = words(["--settle-ms", &number(row.settle.as_millis())]);
    let unordered = match row.period.is_zero() {
        true => Vec::new(),
        false => words(["--unordered"]),
    };
    match (row.means, row.what) {
        (Means::Sockets, what) => {
            let [sent, answer] = match what {
                What::Twist => TWIST,
                what => [what.bytes() as usize; 2],
            };
            let sizes = words(["--bytes", &sent.to_string(), "--answer", &answer.to_string()]);
            [
                ("floor-call", [plan, sizes.clone()].concat()),
                ("floor-serve", sizes),
            ]
        }
        (Means::Service, _) => [("call", plan), ("serve", Vec::new())],
        (Means::Topic, What::Twist) => [("say", [plan, patience].concat()), ("echo", Vec::new())],
        (Means::Topic, _) => [
            ("throw", [plan, bytes, patience].concat()),
            ("repeat", Vec::new()),
        ],
        (_, What::Twist) => [("twist", [plan, period, expiry].concat()), ("robot", unordered)],
        (_, What::File) => [("drive", Vec::new()), ("robot", Vec::new())],
        (_, What::Telemetry10MbOneway) => [
            ("catch", [plan, bytes, patience, settle].concat()),
            ("robot", Vec::new()),
        ],
        (_, What::Telemetry1Mb | What::Telemetry10Mb) => [
            ("throw", [plan, bytes, patience].concat()),
            ("repeat", Vec::new()),
        ],
    }
}

/// Starts the processes, runs them, and returns the operator's values; for a file also its fetcher's.
fn play(row: &Row, tools: &Tools<'_>, stage: &Stage<'_>, set: &Set) -> Result<Vec<Vec<f64>>, RunError> {
    let rule = Rule { flows: 1, most: MOST };
    let mut processes = Processes::<Said>::new(rule, &tools.sandbox, tools.ground.stopped);
    let [operator, mut robot] = roles(row);
    let beside = row.what == What::File;
    if beside {
        let file = stage.file("file");
        fill(&file, FILE_BYTES).map_err(|e| format!("{}: {e}", file.display()))?;
        robot.1.extend(words(["--share", &file.to_string_lossy()]));
    }
    let mut parts = vec![(0, operator), (1, robot)];
    if beside {
        let into = stage.file("into");
        fs::create_dir(&into).map_err(|e| format!("{}: {e}", into.display()))?;
        parts.push((0, ("fetch", words(["--into", &into.to_string_lossy()]))));
    }
    for (side, (role, more)) in &parts {
        let mut command = set.command(tools, stage, *side, role, more)?;
        processes.start(format!("{}: {role}", row.shown()), &mut command)?;
    }
    if !processes.listen(clock::monotonic() + READY, |all| all.iter().all(|p| p.said.ready))? {
        let late = processes.peers().iter().find(|p| !p.said.ready);
        let why = format!("it did not find its peer within {READY:?}");
        return Err(late.map_or_else(|| why.clone().into(), |p| p.complain(&why)));
    }
    processes.listen(clock::monotonic() + SETTLE, |_| false)?;
    processes.tell(0, "go");
    if beside {
        return file(row, &mut processes);
    }
    let one = row.patience.max(row.expiry * 3);
    let patience = row.budget.min(row.expected() * 20) + one + RESULT;
    let reported = |all: &[Peer<Said>]| all[0].said.values.is_some();
    if !processes.listen(clock::monotonic() + patience, reported)? {
        let why = format!("it did not finish within {patience:?}");
        return Err(processes.peers()[0].complain(&why));
    }
    processes.stop(RESULT, |_| true)?;
    processes.join()?;
    let reported = processes.into_peers().into_iter().take(1);
    Ok(reported.filter_map(|p| p.said.values).collect())
}

/// Runs twists alone for a while, then during the file transfer until the file is complete or the time is over.
fn file(row: &Row, processes: &mut Processes<'_, Said>) -> Result<Vec<Vec<f64>>, RunError> {
    let fetched = |all: &[Peer<Said>]| all[2].said.values.is_some();
    processes.listen(clock::monotonic() + ALONE, |_| false)?;
    processes.tell(2, "go");
    if !processes.listen(clock::monotonic() + row.budget, fetched)? {
        processes.dismiss(2);
        if !processes.listen(clock::monotonic() + RESULT, fetched)? {
            return Err(processes.peers()[2].complain("it did not report its progress"));
        }
    }
    processes.dismiss(0);
    let reported = |all: &[Peer<Said>]| all[0].said.values.is_some();
    if !processes.listen(clock::monotonic() + RESULT, reported)? {
        return Err(processes.peers()[0].complain("it did not report the durations of its twists"));
    }
    let of = |who: usize| processes.peers()[who].said.values.clone().unwrap_or_default();
    Ok(vec![of(0), of(2)])
}

/// Writes an incompressible file.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut noise = Noise::new(1);
    let mut block = [0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        noise.fill(&mut block);
        let n = left.min(block.len() as u64);
        file.write_all(&block[..n as usize])?;
        left -= n;
    }
    Ok(())
}
