//! Pound's comparison (sections VI-A to VI-D) with real roscpp in the lab.
//!
//! Laser and image go from the first host to the last at once; roscore runs on the first, since the paper does not say
//! where its was. The publisher and the subscriber are one node each, as with the paper's ros-profiler.

mod paper;
mod said;

pub use paper::PaperRow;
pub(super) use paper::rows as paper;

use super::cell::{Metrics, Params, Target, Timing, Values};
use super::site::{Ground, Site};
use super::tried;
use crate::ipc::crew::Crew;
use crate::ipc::error::RunError;
use crate::ipc::sandbox::Sandbox;
use crate::ipc::{Error, programs};
use clap::ValueEnum;
use said::{Received, Rule, Said};
use serde_json::json;
use stats::{Cell, Drops, Flow, Time};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How roscpp carries the two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// TCPROS as it comes.
    Tcpros,
    /// TCPROS with TCP_NODELAY.
    Nodelay,
    /// UDPROS.
    Udpros,
    /// The laser by UDPROS, the image by TCPROS with TCP_NODELAY: the paper's UDP/NOD.
    Mixed,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Tcpros => "tcpros",
            Transport::Nodelay => "nodelay",
            Transport::Udpros => "udpros",
            Transport::Mixed => "mixed",
        }
    }
}

/// Who paces the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// An absolute schedule on a thread for each flow.
    Periodic,
    /// `ros::Timer`s.
    Roscpp,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::Periodic => "periodic",
            Source::Roscpp => "roscpp",
        }
    }
}

/// Between `ready` and `go`: connections settle.
const SETTLE: Duration = Duration::from_millis(500);
/// After the last message was sent: longer than any queue of a flow that works.
const LINGER: Duration = Duration::from_secs(3);
const READY: Duration = Duration::from_secs(60);
const RESULT: Duration = Duration::from_secs(30);
const MASTER: u16 = 11311;

const LASER: &str = "/laser";
const IMAGE: &str = "/image";
const LASER_BYTES: u64 = 1_000;
const IMAGE_BYTES: u64 = 64_000;
const LASER_US: u64 = 20_000;
/// Before counting, in microseconds.
const WARM_UP_US: u64 = 1_200_000;
/// Messages that wait for one subscriber, at either end.
const QUEUE: u64 = 10;

/// One system over so many hops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) transport: Transport,
    pub(super) source: Source,
    pub(super) scenario: &'static str,
    hops: u32,
    quick: bool,
}

impl Row {
    /// All that are asked for.
    pub(super) fn all(transports: &[Transport], source: Source, quick: bool) -> Vec<Row> {
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

    fn image_us(&self) -> u64 {
        if self.hops == 1 { 150_000 } else { 300_000 }
    }

    /// Messages counted of laser and image. The laser goes on until the images end, uncounted, so that all compete.
    fn counted(&self) -> [u64; 2] {
        let images = if self.quick {
            1000 * LASER_US / self.image_us()
        } else {
            500
        };
        [1000, images]
    }

    fn flows(&self, run: u32) -> [Sent; 2] {
        let [laser, image] = self.counted();
        let warm_up = WARM_UP_US / self.image_us();
        let all = (warm_up + image) * self.image_us();
        // The phase differs from run to run.
        let offset_us = (3_000 + u64::from(run) * 7_000) % LASER_US;
        [
            Sent {
                topic: LASER,
                bytes: LASER_BYTES,
                period_us: LASER_US,
                offset_us: 0,
                warm_up: WARM_UP_US / LASER_US,
                counted: laser,
                count: (all / LASER_US).max(WARM_UP_US / LASER_US + laser),
            },
            Sent {
                topic: IMAGE,
                bytes: IMAGE_BYTES,
                period_us: self.image_us(),
                offset_us,
                warm_up,
                counted: image,
                count: warm_up + image,
            },
        ]
    }

    pub(super) fn shown(&self) -> String {
        let (hops, s) = (self.hops, if self.hops == 1 { "" } else { "s" });
        format!("{} over {hops} hop{s}", self.transport.name())
    }
}

/// One flow.
#[derive(Clone, Copy, Debug)]
struct Sent {
    topic: &'static str,
    bytes: u64,
    period_us: u64,
    offset_us: u64,
    warm_up: u64,
    counted: u64,
    count: u64,
}

impl Sent {
    fn argument(&self) -> String {
        let Sent {
            topic,
            bytes,
            period_us,
            offset_us,
            count,
            ..
        } = self;
        format!("{topic},{bytes},{period_us},{offset_us},{count}")
    }

    /// The flow's numbers, from what the subscriber logged.
    fn judge(&self, log: &Received) -> Result<Values, String> {
        let counted = self.warm_up..self.warm_up + self.counted;
        let mut flow = Flow::new();
        let mut seen = vec![false; self.counted as usize];
        for ((&sequence, &stamp), &arrival) in log.sequence.iter().zip(&log.stamp_ns).zip(&log.arrival_ns) {
            if !counted.contains(&sequence) {
                continue;
            }
            let seen = &mut seen[(sequence - self.warm_up) as usize];
            if std::mem::replace(seen, true) {
                return Err(format!("{}: message {sequence} came twice", self.topic));
            }
            flow.received(Time(stamp), Time(arrival), self.bytes);
        }
        let m = flow.metrics(self.counted, &Drops::default());
        Ok(Values::from([
            ("sent", m.sent as f64),
            ("received", m.received as f64),
            ("delivery", m.delivery),
            ("period_ms.mean", m.period_ms.mean),
            ("period_ms.std", m.period_ms.std),
            ("delay_ms.mean", m.delay_ms.mean),
            ("delay_ms.std", m.delay_ms.std),
            ("delay_ms.p50", m.delay_ms.p50),
            ("delay_ms.p99", m.delay_ms.p99),
            ("delay_ms.max", m.delay_ms.max),
            ("mbit_s", m.mbit_s),
        ]))
    }
}

/// The program that sends and receives, and its version.
pub(super) struct Peer {
    program: PathBuf,
    pub(super) version: String,
    sandbox: Sandbox,
}

impl Peer {
    /// Finds it, and builds it if it is not there.
    pub(super) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Peer, Error> {
        let folder = programs::folder(folder).ok_or_else(|| {
            Error::Nothing(
                "there is no folder `peers` with a Makefile here or further up: start in the repository, or name the \
                 folder by --peers"
                    .into(),
            )
        })?;
        let program = folder.join("bin/flow");
        if let Some(why) = programs::build("flow", &program, &folder, ground.stopped)? {
            return Err(Error::Nothing(why));
        }
        let mut command = Command::new(&program);
        command.args(["version", "--system", "udpros"]);
        let said = ground.hear(&mut command, Duration::from_secs(20));
        let version = said.map_err(|e| match e {
            RunError::Stopped => Error::Stopped,
            RunError::Failed(why) => Error::Nothing(why),
        })?;
        let version: serde_json::Value = serde_json::from_str(&version).unwrap_or_default();
        let version = version["version"].as_str().unwrap_or("unknown").to_owned();
        Ok(Peer {
            program,
            version,
            sandbox: Sandbox::new()?,
        })
    }
}

/// Measures one system; gives a cell for each topic.
pub(super) fn measure(
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
    let master = format!("http://{}:{MASTER}", site.address(ENDS[0])?);
    let port = MASTER.to_string();
    let mut roscore = site.command(ENDS[0], false, &["roscore", "-p", &port]);
    peer.sandbox.prepare(&mut roscore);
    let _roscore = super::site::Job::start(&mut roscore)?;
    site.listens(ENDS[0], MASTER)?;

    let flows = row.flows(run);
    let rule = Rule {
        flows: flows.len(),
        most: flows.iter().map(|f| f.count).max().unwrap_or_default(),
    };
    let mut crew = Crew::<Said>::new(rule, &peer.sandbox, ground.stopped);
    let program = peer.program.to_string_lossy();
    let queue = QUEUE.to_string();
    for (host, role) in [(ENDS[0], "publish"), (ENDS[1], "subscribe")] {
        let mut words = vec![
            &*program,
            role,
            "--system",
            row.transport.name(),
            "--queue",
            &queue,
        ];
        words.extend(["--source", row.source.name()]);
        let arguments = flows.map(|f| f.argument());
        words.extend(arguments.iter().flat_map(|a| ["--flow", a]));
        let mut command = site.command(host, true, &words);
        command.env("ROS_MASTER_URI", &master);
        crew.start(format!("{} {role}", row.transport.name()), &mut command)?;
    }
    if !crew.listen(clock::monotonic() + READY, |peers| {
        peers.iter().all(|p| p.said.ready)
    })? {
        return Err(format!(
            "{}: publisher and subscriber do not find each other within {READY:?}",
            row.shown()
        )
        .into());
    }
    crew.listen(clock::monotonic() + SETTLE, |_| false)?;
    crew.tell(0, "go");
    let takes = flows.iter().map(|f| f.offset_us + f.period_us * f.count).max();
    let patience = Duration::from_micros(takes.unwrap_or_default()) + RESULT;
    if !crew.listen(clock::monotonic() + patience, |peers| {
        peers[0].said.published.is_some()
    })? {
        return Err(crew.peers()[0].complain(&format!("it did not come to its end within {patience:?}")));
    }
    crew.listen(clock::monotonic() + LINGER, |_| false)?;
    let timing = Timing::of(&site.status()?);
    if !crew.stop(RESULT, |peers| peers[1].said.received.is_some())? {
        return Err(format!("{}: no result within {RESULT:?}", row.shown()).into());
    }
    crew.join()?;
    let mut peers = crew.into_peers().into_iter();
    let sent = peers.next().and_then(|p| p.said.published).unwrap_or_default();
    let received = peers.next().and_then(|p| p.said.received).unwrap_or_default();
    let mut values = Vec::new();
    for (i, flow) in flows.iter().enumerate() {
        let all = sent
            .get(i)
            .is_some_and(|s| s.topic == flow.topic && s.sent == flow.count);
        let log = received.get(i).filter(|r| all && r.topic == flow.topic);
        let log = log.ok_or_else(|| {
            format!(
                "{}: {} was not sent whole, or not logged",
                row.shown(),
                flow.topic
            )
        })?;
        values.push(flow.judge(log)?);
    }
    Ok((values, timing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_counted_counts() {
        let flow = Sent {
            topic: LASER,
            bytes: 1000,
            period_us: 20_000,
            offset_us: 0,
            warm_up: 2,
            counted: 4,
            count: 9,
        };
        let ms = |all: &[u64]| all.iter().map(|t| t * 1_000_000).collect::<Vec<_>>();
        let log = Received {
            topic: LASER.into(),
            sequence: vec![0, 1, 2, 3, 5, 6],
            stamp_ns: ms(&[0, 20, 40, 60, 100, 120]),
            arrival_ns: ms(&[900, 901, 42, 65, 102, 900]),
        };
        let v = flow.judge(&log).expect("is right");
        assert_eq!((v["sent"], v["received"], v["delivery"]), (4.0, 3.0, 0.75));
        assert_eq!((v["period_ms.mean"], v["delay_ms.mean"]), (30.0, 3.0));
        let twice = Received {
            sequence: vec![2, 2, 2, 2, 2, 2],
            ..log
        };
        assert!(flow.judge(&twice).expect_err("twice").contains("came twice"));
    }

    #[test]
    fn the_flows_are_the_papers() {
        let rows = Row::all(&[Transport::Udpros], Source::Periodic, false);
        assert_eq!(rows.len(), 2);
        for (row, period) in rows.iter().zip([150_000, 300_000]) {
            let [laser, image] = row.flows(3);
            assert_eq!(
                (laser.counted, laser.bytes, laser.period_us),
                (1000, 1000, 20_000)
            );
            assert_eq!(
                (image.counted, image.bytes, image.period_us),
                (500, 64_000, period)
            );
            // The laser does not end before the images.
            assert!(laser.count * laser.period_us >= image.count * image.period_us - 20_000);
            assert!(laser.count >= laser.warm_up + laser.counted);
        }
        assert_eq!(paper().len(), 32);
        let udp = paper().into_iter().find(|r| r.system == "UDP").expect("a row");
        assert_eq!(
            (udp.hops, udp.topic, udp.period_std_ms, udp.delay_mean_ms),
            (1, LASER, 38.2, 42.5)
        );
    }
}
