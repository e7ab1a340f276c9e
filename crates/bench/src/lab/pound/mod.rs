//! Pound's comparison (sections VI-A to VI-D) with real roscpp in the lab.
//!
//! Laser and image go from the first host to the last simultaneously. roscore runs on the first host; the paper does
//! not say where its roscore ran. The publisher and the subscriber are one node each, as with the paper's ros-profiler.

mod paper;

pub use paper::PaperRow;
pub(crate) use paper::rows as paper;

use super::tried;
use crate::flows::play::{self, Leg, Part, Played, flow_arguments};
use crate::flows::{LASER, Sent};
use crate::ipc::Error;
use crate::kit::cell::{Metrics, Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::sandbox::Sandbox;
use crate::kit::site::{Ground, Job, Site};
use clap::ValueEnum;
use serde_json::json;
use stats::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How roscpp carries the two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// TCPROS with its defaults.
    Tcpros,
    /// TCPROS with TCP_NODELAY.
    Nodelay,
    /// UDPROS.
    Udpros,
    /// The laser by UDPROS, the image by TCPROS with TCP_NODELAY: the paper's UDP/NOD.
    Mixed,
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Tcpros => "tcpros",
            Transport::Nodelay => "nodelay",
            Transport::Udpros => "udpros",
            Transport::Mixed => "mixed",
        }
    }
}

/// What paces the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// An absolute schedule on a thread for each flow.
    Periodic,
    /// `ros::Timer`s.
    Roscpp,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Periodic => "periodic",
            Source::Roscpp => "roscpp",
        }
    }
}

const MASTER: u16 = 11311;

/// Queue depth of one subscriber, at either end.
const QUEUE: u64 = 10;

/// One system over a number of hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) transport: Transport,
    pub(crate) source: Source,
    pub(crate) scenario: &'static str,
    hops: u32,
    quick: bool,
}

impl Row {
    /// Returns all selected rows.
    pub(crate) fn all(transports: &[Transport], source: Source, quick: bool) -> Vec<Row> {
        let hops = [("wifi-1hop", 1), ("wifi-2hops", 2)];
        let each = |(scenario, hops)| {
            transports.iter().map(move |&transport| Row {
                transport,
                source,
                scenario,
                hops,
                quick,
            })
        };
        hops.into_iter().flat_map(each).collect()
    }

    fn flows(&self, run: u32) -> [Sent; 2] {
        crate::flows::pound(self.hops, self.quick, run)
    }

    pub(crate) fn shown(&self) -> String {
        let (hops, s) = (self.hops, if self.hops == 1 { "" } else { "s" });
        format!("{} over {hops} hop{s}", self.transport.name())
    }
}

/// The program that sends and receives, and its version.
pub(crate) struct Peer {
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    sandbox: Sandbox,
}

impl Peer {
    /// Finds it, and builds it if it is missing.
    pub(crate) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Peer, Error> {
        Peer::called("flow", folder, ground)
    }

    /// The same for another program of ROS 1.
    pub(crate) fn called(target: &str, folder: Option<&Path>, ground: &Ground<'_>) -> Result<Peer, Error> {
        let (program, version) = ground.peer(target, Transport::Tcpros.name(), folder)?;
        Ok(Peer {
            program,
            version,
            sandbox: Sandbox::new()?,
        })
    }

    /// Sends flows by roscpp, with roscore on the first leg's first host.
    pub(crate) fn play(
        &self,
        what: &str,
        transport: Transport,
        source: Source,
        site: &Site<'_>,
        legs: &[Leg],
    ) -> Result<Played, RunError> {
        let (master, _roscore) = self.roscore(site, &legs[0].from)?;
        let command = |part: Part, host: &str, legs: &[&Leg]| {
            self.part(site, (host, &master), (part, transport, source), legs)
        };
        play::play(what, site, &self.sandbox, legs, &command)
    }

    /// Returns the command of the program for some legs on a host, with the master at this address.
    pub(crate) fn part(
        &self,
        site: &Site<'_>,
        (host, master): (&str, &str),
        (part, transport, source): (Part, Transport, Source),
        legs: &[&Leg],
    ) -> Command {
        let mut words = vec!["--source".to_owned(), source.name().to_owned()];
        words.extend(flow_arguments(legs));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(site, host, master, (part.name(), transport), &words)
    }

    /// Returns the command of the program on a host, with a subcommand, a transport and further arguments.
    pub(crate) fn command(
        &self,
        site: &Site<'_>,
        host: &str,
        master: &str,
        (what, transport): (&str, Transport),
        words: &[&str],
    ) -> Command {
        let (program, queue) = (self.program.to_string_lossy(), QUEUE.to_string());
        let system = ["--system", transport.name(), "--queue", &queue];
        let all = [&[&*program, what], &system[..], words].concat();
        let mut command = site.command(host, true, &all);
        command.env("ROS_MASTER_URI", master);
        command
    }

    /// Starts roscore on a host; returns its address, for the environment.
    pub(crate) fn roscore(&self, site: &Site<'_>, host: &str) -> Result<(String, Job), RunError> {
        let port = MASTER.to_string();
        let mut roscore = site.command(host, false, &["roscore", "-p", &port]);
        self.sandbox.prepare(&mut roscore);
        let roscore = Job::start(&mut roscore)?;
        site.listens(host, MASTER)?;
        Ok((format!("http://{}:{MASTER}", site.address(host)?), roscore))
    }
}

/// Measures one system; returns a cell for each topic.
pub(crate) fn measure(
    row: &Row,
    runs: u32,
    peer: &Peer,
    ground: &Ground<'_>,
) -> Result<Vec<Cell<Params, Metrics>>, RunError> {
    let (mut results, mut tries) = (Vec::new(), 0);
    for run in 0..runs {
        results.push(tried(true, &mut tries, || trial(row, run, peer, ground))?);
    }
    let flows = row.flows(0);
    let mut cells = Vec::new();
    for (i, flow) in flows.iter().enumerate() {
        let of_topic: Vec<(Values, Timing)> = results
            .iter()
            .map(|(values, t)| (values[i].clone(), *t))
            .collect();
        let params = Params::from([
            ("check".into(), json!(format!("flow {}", flow.topic))),
            ("scenario".into(), json!(row.scenario)),
            ("hops".into(), json!(row.hops)),
            ("topic".into(), json!(flow.topic)),
            ("source".into(), json!(row.source.name())),
            ("message_bytes".into(), json!(flow.bytes)),
            ("sent_period_ms".into(), json!(flow.period_us as f64 / 1e3)),
            ("messages".into(), json!(flow.counted)),
            ("queue".into(), json!(QUEUE)),
            ("runs".into(), json!(runs)),
        ]);
        // The lab's test of faithfulness: the paper has 38.2 and 42.5 ms.
        let faithful = row.transport == Transport::Udpros && row.hops == 1 && flow.topic == LASER;
        let targets = if faithful {
            vec![
                Target::within("period_ms.std", 35.0, 41.0),
                Target::within("delay_ms.mean", 38.0, 46.0),
            ]
        } else {
            vec![]
        };
        let source = if faithful {
            "the Pound paper's Table I: 38.2 and 42.5 ms"
        } else {
            ""
        };
        let metrics = Metrics::new(&of_topic, tries, targets, source, true);
        cells.push(Cell {
            system: row.transport.name().to_owned(),
            params,
            metrics: metrics.ok_or_else(|| RunError::Failed("no run".into()))?,
        });
    }
    Ok(cells)
}

fn trial(row: &Row, run: u32, peer: &Peer, ground: &Ground<'_>) -> Result<(Vec<Values>, Timing), RunError> {
    const ENDS: [&str; 2] = ["robot", "base"];
    let site = Site::up(ground, row.scenario, None)?;
    let legs = row.flows(run).map(|flow| Leg {
        flow,
        from: ENDS[0].into(),
        to: ENDS[1].into(),
    });
    let played = peer.play(&row.shown(), row.transport, row.source, &site, &legs)?;
    let judged = std::iter::zip(&legs, &played.received).map(|(leg, log)| leg.flow.judge(log));
    Ok((judged.collect::<Result<_, _>>()?, played.timing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rows_are_there() {
        assert_eq!(Row::all(&[Transport::Udpros], Source::Periodic, false).len(), 2);
        assert_eq!(paper().len(), 32);
        let udp = paper().into_iter().find(|r| r.system == "UDP").expect("a row");
        assert_eq!(
            (udp.hops, udp.topic, udp.period_std_ms, udp.delay_mean_ms),
            (1, LASER, 38.2, 42.5)
        );
    }
}
