//! The protocol between the coordinator and an agent: lines of JSON, each checked before use.

use super::super::peers::Play;
use super::super::point::Point;
use super::super::raw::Row;
use super::super::watch::Load;
use super::super::{System, system};
use crate::kit::line::shorten;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Changes when the lines change; both ends must have the same.
pub(super) const PROTOCOL: u32 = 2;
/// Maximum length of a line of either end, in bytes.
pub(super) const LONGEST: usize = 1 << 20;
/// Rows of raw data in a line.
pub(super) const ROWS: usize = 8192;
/// Maximum length of a node's line, and maximum number of lines passed on per node and run: a node prints three.
pub(super) const NODE_LINE: usize = 4096;
pub(super) const NODE_LINES: usize = 16;
/// Interval of heartbeats, and the silence after which the other end counts as gone.
pub(super) const BEAT: Duration = Duration::from_secs(1);
pub(super) const SILENT: Duration = Duration::from_secs(30);
/// Key under which a machine lists its wireless devices.
pub(super) const RADIOS: &str = "radios";
/// The files of a host's keys.
pub(super) const KEYS: [&str; 5] = [
    link::keys::HOST_KEY,
    link::keys::HOST_CERTIFICATE,
    link::keys::TEAM_CERTIFICATE,
    link::keys::ADMISSION_SECRET,
    link::keys::REVOKED,
];
const KEY_BYTES: usize = 16 << 10;
/// Maximum number of parts, reasons for losses and the like, and maximum length of their names.
const NAMES: usize = 64;
const NAME_BYTES: usize = 200;

/// A line of the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// Heartbeat.
    Beat,
    /// An order, which is answered under the same number.
    Order { number: u64, order: Order },
}

/// An order to an agent. No order names a program, a file or a variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Order {
    /// Ends all processes, and sets the machines of the following runs; `here` is the index of this one.
    Stage {
        addresses: Vec<Ipv4Addr>,
        here: u32,
        cpu_share: f64,
    },
    /// Starts a ROS master.
    Master,
    /// Starts the nodes and the link of this machine.
    Run(Box<Run>),
    /// Reads usage, and starts the senders.
    Go,
    /// Reads usage.
    Look,
    /// Reads usage, and returns it.
    Load,
    /// Stops the nodes.
    Stop,
    /// Waits until they have ended.
    Join,
    /// Returns a sender's rows from the given one on.
    Rows { sender: u32, from: u64 },
    /// Ends the run's link, and returns its losses.
    End,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    #[serde(deserialize_with = "system::read")]
    pub(super) system: System,
    pub(super) point: Point,
    pub(super) number: u64,
    pub(super) linger_ms: u64,
    /// Ports of the machines' links.
    pub(super) ports: Vec<u16>,
    /// Port of the ROS master, on the first machine.
    pub(super) master: Option<u16>,
    /// Keys of this machine's link, by file; empty: no link.
    pub(super) keys: BTreeMap<String, String>,
}

/// A line of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// The first line.
    Hello(Box<Hello>),
    /// Heartbeat.
    Beat,
    /// A line of a node.
    Said { run: u64, node: u32, line: String },
    /// A run failed.
    Failed { run: u64, why: String },
    /// An order was carried out.
    Done { number: u64, answer: Answer },
    /// An order was refused.
    Refused { number: u64, why: String },
    /// It ends, because it received a line that it does not understand.
    Bye { why: String },
}

/// Description of an agent. Another version may send more fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    #[serde(default)]
    pub(super) machine: BTreeMap<String, Value>,
    /// The versions of the systems that it can run, and why it cannot run the others.
    #[serde(default)]
    pub(super) systems: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) missing: BTreeMap<String, String>,
}

/// Result of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Answer {
    /// It is done.
    Yes,
    /// A free port, or the port of a listener.
    Port { port: u16 },
    /// The usage.
    Load(Box<Load>),
    /// Rows, and whether more follow.
    Rows {
        rows: Vec<(u64, u64, Option<u64>)>,
        more: bool,
    },
    /// Losses of a link, by reason.
    Drops(BTreeMap<String, u64>),
}

impl Line {
    /// # Errors
    /// It is not a valid line, or has impossible values.
    pub(super) fn parse(bytes: &[u8]) -> Result<Line, String> {
        let line: Line = understand(bytes)?;
        if let Line::Order { order, .. } = &line {
            order.check()?;
        }
        Ok(line)
    }
}

impl Order {
    fn check(&self) -> Result<(), String> {
        match self {
            Order::Stage {
                addresses,
                here,
                cpu_share,
            } => {
                if addresses.len() > 64 || *here as usize >= addresses.len() {
                    return Err("more machines than allowed, or this one is not among them".into());
                }
                if !(0.01..=1.0).contains(cpu_share) {
                    return Err("an invalid share of the processors".into());
                }
                Ok(())
            }
            Order::Run(run) => run.check(),
            _ => Ok(()),
        }
    }
}

impl Run {
    fn check(&self) -> Result<(), String> {
        self.point.check()?;
        if self.linger_ms > 600_000 || self.ports.len() > 64 {
            return Err("a run with more patience or ports than allowed".into());
        }
        let known = |(name, text): (&String, &String)| KEYS.contains(&&**name) && text.len() <= KEY_BYTES;
        if !self.keys.iter().all(known) {
            return Err("a file that is not one of a host's keys".into());
        }
        Ok(())
    }

    pub(super) fn linger(&self) -> Duration {
        Duration::from_millis(self.linger_ms)
    }

    /// What the nodes of a run have in common, for callers with the other values.
    pub(super) fn play<'a>(
        &'a self,
        program: Vec<String>,
        addresses: &'a [Ipv4Addr],
        folder: &'a std::path::Path,
    ) -> Play<'a> {
        Play {
            program,
            addresses,
            system: self.system,
            point: &self.point,
            number: self.number,
            linger: self.linger(),
            folder,
        }
    }
}

impl Report {
    /// # Errors
    /// It is not a valid line, or has impossible values.
    pub(super) fn parse(bytes: &[u8]) -> Result<Report, String> {
        let mut report: Report = understand(bytes)?;
        match &mut report {
            Report::Hello(hello) => hello.shorten(),
            Report::Said { line, .. } if line.len() > NODE_LINE => {
                return Err(format!("a node's line of more than {NODE_LINE} bytes"));
            }
            Report::Failed { why, .. } | Report::Refused { why, .. } | Report::Bye { why } => {
                *why = said(why);
            }
            Report::Done { answer, .. } => answer.check()?,
            _ => {}
        }
        Ok(report)
    }
}

impl Hello {
    /// Shortens texts for people: short, and on one line.
    fn shorten(&mut self) {
        self.version = said(&self.version);
        for texts in [&mut self.systems, &mut self.missing] {
            texts.values_mut().for_each(|t| *t = said(t));
        }
    }
}

impl Answer {
    fn check(&self) -> Result<(), String> {
        let right = match self {
            Answer::Yes | Answer::Port { .. } => true,
            Answer::Rows { rows, .. } => rows.len() <= ROWS,
            Answer::Drops(drops) => short(drops.keys()),
            Answer::Load(load) => {
                let shares = [load.host_busy, load.host_steal];
                let used = load.cpu_s.values().copied();
                let busiest = load.busiest.iter();
                let used = used.chain(busiest.clone().flat_map(|b| [b.share, b.waiting_share]));
                let used = used.chain(shares);
                let names = busiest.flat_map(|b| [&b.part, &b.thread]);
                let names = names.chain(load.sockets.iter().map(|s| &s.part));
                short(load.cpu_s.keys().chain(names)) && used.into_iter().all(|n| (0.0..1e9).contains(&n))
            }
        };
        if right {
            Ok(())
        } else {
            Err("an answer with more data than allowed".into())
        }
    }

    /// Returns rows in the form in which they are sent.
    pub(super) fn rows(all: &[Row], from: u64) -> Answer {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(all.len());
        let rest = &all[from..];
        let rows = rest.iter().take(ROWS).map(|r| (r.id, r.sent_ns, r.recv_ns));
        Answer::Rows {
            rows: rows.collect(),
            more: rest.len() > ROWS,
        }
    }
}

/// Returns whether names are few, and fit to be shown.
fn short<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    let names: Vec<_> = names.take(NAMES + 1).collect();
    let fits = |n: &&String| n.len() <= NAME_BYTES && !n.chars().any(char::is_control);
    names.len() <= NAMES && names.iter().all(fits)
}

/// Returns a line in the form in which it is sent, with its end.
pub(super) fn written(line: &impl Serialize) -> String {
    // Numbers, texts and maps with text keys: serializing cannot fail.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

/// Shortens text from another process to one line of readable length.
pub(super) fn said(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let clean = |c: char| if c.is_control() { '?' } else { c };
    words.join(" ").chars().take(1000).map(clean).collect()
}

fn understand<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, String> {
    if bytes.len() > LONGEST {
        return Err(format!("a line of more than {LONGEST} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "bytes that are not text".to_owned())?;
    serde_json::from_str(text).map_err(|e| {
        let e = e.to_string();
        format!(
            "{:?}, which is not a valid line ({})",
            shorten(&said(text)),
            said(&e)
        )
    })
}

#[cfg(test)]
pub(super) fn example() -> Run {
    use super::super::Medium;
    Run {
        system: System::Ropewalk,
        point: Point {
            hosts: 2,
            nodes: 4,
            medium: Medium::Machines,
            ..super::super::point::example()
        },
        number: 3,
        linger_ms: 1000,
        ports: vec![7400, 7401],
        master: None,
        keys: KEYS.iter().map(|k| ((*k).to_owned(), "x".into())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::measured::{Busiest, InSockets, Lost};
    use super::*;

    #[test]
    fn orders_and_reports_survive_a_round_trip() {
        let orders = [
            Order::Stage {
                addresses: vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
                here: 1,
                cpu_share: 1.0,
            },
            Order::Master,
            Order::Run(Box::new(example())),
            Order::Go,
            Order::Rows {
                sender: 1,
                from: 8192,
            },
        ];
        for (number, order) in (1..).zip(orders) {
            let line = Line::Order { number, order };
            let text = written(&line);
            assert_eq!(Line::parse(text.trim_end().as_bytes()), Ok(line), "{text}");
        }
        assert_eq!(Line::parse(b"\"beat\""), Ok(Line::Beat));
        let load = Load {
            busiest: Some(Busiest {
                part: "echo".into(),
                thread: "t".into(),
                share: 0.5,
                waiting_share: 0.25,
            }),
            sockets: Some(InSockets {
                part: "echo".into(),
                to_send: 1,
                to_read: 2,
            }),
            lost: Lost {
                datagrams: 3,
                ..Lost::default()
            },
            cpu_s: [("echo".to_owned(), 0.25)].into(),
            ..Load::default()
        };
        for answer in [
            Answer::Yes,
            Answer::Port { port: 7 },
            Answer::Load(Box::new(load)),
            Answer::Rows {
                rows: vec![(0, 1, Some(2)), (1, 2, None)],
                more: true,
            },
            Answer::Drops([("link: expired".to_owned(), 3)].into()),
        ] {
            let report = Report::Done { number: 1, answer };
            let text = written(&report);
            assert_eq!(Report::parse(text.trim_end().as_bytes()), Ok(report), "{text}");
        }
        let hello = Report::parse(br#"{"hello": {"protocol": 9, "version": "9.0\n", "more": [1]}}"#);
        assert!(matches!(hello, Ok(Report::Hello(h)) if (h.protocol, &*h.version) == (9, "9.0")));
    }

    #[test]
    fn invalid_orders_are_refused() {
        let mut run = example();
        run.keys.insert("../x".into(), String::new());
        assert!(run.check().is_err_and(|e| e.contains("keys")));
        run.keys = [("host.key".to_owned(), "x".repeat(1 << 20))].into();
        assert!(run.check().is_err());
        run.keys.clear();
        run.point.hz = -1.0;
        assert!(run.check().is_err());
        for bad in [
            "",
            "hello",
            "[]",
            r#"{"order": {"number": 1, "order": {"exec": {"program": "sh"}}}}"#,
            r#"{"order": {"number": -1, "order": "go"}}"#,
            r#"{"order": {"number": 1, "order": "go", "env": {"A": "b"}}}"#,
            r#"{"order": {"number": 1, "order": {"stage": {"addresses": ["10.0.0.1"], "here": 1, "cpu_share": 1}}}}"#,
            r#"{"order": {"number": 1, "order": {"stage": {"addresses": ["$(x)"], "here": 0, "cpu_share": 1}}}}"#,
            r#"{"order": {"number": 1, "order": {"stage": {"addresses": ["10.0.0.1"], "here": 0, "cpu_share": 9}}}}"#,
        ] {
            assert!(Line::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let long = format!(
            r#"{{"said": {{"run": 1, "node": 1, "line": "{}"}}}}"#,
            "x".repeat(5000)
        );
        for bad in [
            "Welcome to robot!",
            r#"{"said": {"run": 1, "node": -1, "line": ""}}"#,
            r#"{"done": {"number": 1, "answer": {"load": {}}}}"#,
            r#"{"done": {"number": 1, "answer": {"rows": {"rows": [[1, 2]], "more": false}}}}"#,
            &long,
        ] {
            assert!(Report::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = "[".repeat(100_000);
        assert!(Report::parse(deep.as_bytes()).is_err_and(|e| e.len() < 1000));
        assert!(Report::parse(&[0xff, 0xfe]).is_err());
        assert_eq!(said("a\u{1b}[31m\n b"), "a?[31m b");
    }

    #[test]
    fn the_seeds_are_lines_of_either_end() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/bench_agent");
        for entry in std::fs::read_dir(corpus).expect("the corpus is there") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("text");
            for line in text.lines().map(str::as_bytes) {
                let understood = Line::parse(line)
                    .map(drop)
                    .or_else(|order| Report::parse(line).map(drop).map_err(|report| (order, report)));
                assert_eq!(understood, Ok(()));
            }
        }
    }

    #[test]
    fn rows_go_in_pieces() {
        let row = |id| Row {
            id,
            sent_ns: u64::MAX,
            recv_ns: Some(u64::MAX - id),
        };
        let all: Vec<Row> = (0..ROWS as u64 + 5).map(row).collect();
        let first = Answer::rows(&all, 0);
        assert!(matches!(&first, Answer::Rows { rows, more: true } if rows.len() == ROWS));
        assert!(
            written(&Report::Done {
                number: 1,
                answer: first
            })
            .len()
                < LONGEST
        );
        let rest = Answer::rows(&all, ROWS as u64);
        assert!(matches!(&rest, Answer::Rows { rows, more: false } if rows.len() == 5));
        assert!(
            matches!(Answer::rows(&all, u64::MAX), Answer::Rows { rows, more: false } if rows.is_empty())
        );
    }
}
