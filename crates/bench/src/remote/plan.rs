//! The rows: system, measurement, network, number of runs, and targets.

use super::System;
use super::options::{Network, Options, What};
use super::setup::{DEFAULT, DELAY_2000, LOOPBACK, LOSS_20, LOSS_20_2S, Setup, WIFI_6};
use crate::kit::cell::{Params, Target};
use serde_json::json;
use std::time::Duration;

/// Number of runs, as in the paper.
const RUNS: u64 = 200;
/// Maximum duration of a row; runs that have not started by then are skipped.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// Bytes of the file, and maximum duration over a radio.
pub(super) const FILE_BYTES: u64 = 200_000_000;

/// How a system carries commands and telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// Plain TCP sockets.
    Sockets,
    /// The bus of each host and a link daemon there.
    Daemons,
    /// A link in each program.
    Direct,
    /// ZeroMQ, version 6.
    V6,
    /// ZeroMQ, Ropewalk's own wire.
    Own,
    /// A service call of roscpp, each with its own connection.
    Service,
    /// Topics of roscpp, one there and one back.
    Topic,
}

impl Means {
    pub(super) fn system(self) -> System {
        match self {
            Means::Sockets => System::BareSockets,
            Means::Daemons | Means::Direct => System::RopewalkLink,
            Means::V6 | Means::Own => System::RopewalkZmq,
            Means::Service | Means::Topic => System::Ros1,
        }
    }

    /// Returns how it differs from other means of its system: by name.
    fn param(self) -> (&'static str, &'static str) {
        match self {
            Means::Sockets => ("path", "tcp"),
            Means::Daemons => ("path", "daemons"),
            Means::Direct => ("path", "direct"),
            Means::V6 => ("wire", "v6"),
            Means::Own => ("wire", "own"),
            Means::Service => ("via", "service"),
            Means::Topic => ("via", "topic"),
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Means::Sockets => "TCP",
            Means::Daemons => "both hosts' daemons",
            Means::Direct => "links in the programs",
            Means::V6 => "version 6",
            Means::Own => "own wire",
            Means::Service => "service call",
            Means::Topic => "topics",
        }
    }

    fn is_ours(self) -> bool {
        matches!(self, Means::Daemons | Means::Direct)
    }
}

/// One line of the plan, which gives a cell.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) setup: &'static Setup,
    pub(super) what: What,
    pub(super) means: Means,
    /// Number of measured repetitions, and number before those.
    pub(super) count: u64,
    pub(super) warm_up: u64,
    /// No repetition starts after this; a file transfer stops after it.
    pub(super) budget: Duration,
    /// Interval of commands, whether earlier ones are decided or not; zero: one after another.
    pub(super) period: Duration,
    /// Expiry of commands; zero: the controller's default.
    pub(super) expiry: Duration,
    /// How long a path exists before it is used, so that a link learns its loss.
    pub(super) settle: Duration,
    /// How long to wait for one telemetry message.
    pub(super) patience: Duration,
    /// Whether the processors are kept from sleeping ([`clock::Busy`]); `None`: the lab does so, or it makes no
    /// difference.
    pub(super) awake: Option<bool>,
    pub(super) targets: Vec<Target>,
}

/// Returns all selected rows, by network.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let all = [
        loopback(options),
        default(options),
        loss(options),
        delay(options),
        radio(options),
    ];
    let wanted = |row: &Row| options.wants(row.setup.network, row.what, row.means.system());
    let mut rows: Vec<Row> = all.into_iter().flatten().filter(wanted).collect();
    // A floor is measured only with rows to compare.
    let measured: Vec<_> = rows
        .iter()
        .filter(|r| r.means != Means::Sockets)
        .map(|r| r.setup.network)
        .collect();
    let named = options.names(System::BareSockets);
    rows.retain(|r| r.means != Means::Sockets || named || measured.contains(&r.setup.network));
    rows
}

/// How long to wait for telemetry before a run counts as lost: longer than TCP takes for 10 MB at 2 s.
const PATIENCE: Duration = Duration::from_secs(180);

fn row(options: &Options, setup: &'static Setup, what: What, means: Means, quick: (u64, u64)) -> Row {
    let (quickly, seconds) = quick;
    let budget = if options.quick {
        Duration::from_secs(seconds)
    } else {
        LONGEST
    };
    let count = if options.quick { quickly } else { RUNS };
    Row {
        setup,
        what,
        means,
        count: options.runs.unwrap_or(count),
        // The first is left out, as in the paper, unless that would take half of the time.
        warm_up: u64::from(!options.quick || what == What::Twist && setup.round_trip_ms() < 100.0),
        budget,
        period: Duration::ZERO,
        expiry: Duration::ZERO,
        settle: Duration::ZERO,
        patience: PATIENCE,
        awake: None,
        targets: Vec::new(),
    }
}

fn most(metric: &'static str, value: f64) -> Target {
    Target::within(metric, 0.0, value)
}

fn loopback(options: &Options) -> Vec<Row> {
    use Means::{Daemons, Direct, Own, Service, Sockets, Topic, V6};
    let mut rows = Vec::new();
    let twists = [
        (Sockets, None),
        (Direct, Some(0.15)),
        (Daemons, Some(0.4)),
        (V6, Some(0.2)),
        (Own, Some(0.2)),
        (Service, None),
        (Topic, None),
    ];
    // The wake-up time of a virtual machine's sleeping processor depends on its host: these rows are shown without a
    // target. A quick run of everything skips them.
    let asleep = !options.quick || !options.systems.is_empty();
    for awake in [true, false] {
        for (means, p50_ms) in twists.into_iter().filter(|_| awake || asleep) {
            let mut row = row(options, &LOOPBACK, What::Twist, means, (RUNS, 20));
            row.warm_up = 100;
            row.awake = Some(awake);
            row.targets
                .extend(p50_ms.filter(|_| awake).map(|ms| most("latency_ms.p50", ms)));
            rows.push(row);
        }
    }
    for (what, runs) in [(What::Telemetry1Mb, 10), (What::Telemetry10Mb, 2)] {
        for means in [Sockets, Daemons, V6, Topic] {
            if what == What::Telemetry10Mb && skips(options, means) {
                continue;
            }
            let mut row = row(options, &LOOPBACK, what, means, (runs, 20));
            row.warm_up = 1;
            rows.push(row);
        }
    }
    for means in [Daemons, Own] {
        let mut row = row(options, &LOOPBACK, What::File, means, (1, 30));
        row.budget = Duration::from_secs(30);
        row.targets.push(most("added_p99_ms", 10.0));
        rows.push(row);
    }
    rows
}

fn default(options: &Options) -> Vec<Row> {
    use Means::{Daemons, Service, Topic, V6};
    let twist = [Daemons, V6, Service, Topic].map(|means| (What::Twist, means, (RUNS, 4)));
    let large = [
        (What::Telemetry1Mb, Daemons, (2, 4)),
        (What::Telemetry1Mb, V6, (2, 4)),
        (What::Telemetry1Mb, Topic, (2, 4)),
        (What::Telemetry10Mb, Daemons, (1, 4)),
        (What::Telemetry10Mb, V6, (1, 4)),
        (What::Telemetry10Mb, Topic, (1, 4)),
    ];
    let all = twist.into_iter().chain(large);
    // Without loss, 10 MB show nothing new about systems over TCP compared with 1 MB.
    let long = |what, means| what == What::Telemetry10Mb && skips(options, means);
    all.filter(|(what, means, _)| !long(*what, *means))
        .map(|(what, means, quick)| row(options, &DEFAULT, what, means, quick))
        .collect()
}

/// Returns whether --quick skips rows that take long with other systems.
fn skips(options: &Options, means: Means) -> bool {
    options.quick && !means.is_ours() && !options.names(means.system())
}

fn loss(options: &Options) -> Vec<Row> {
    use Means::{Daemons, Service, V6};
    let decided = |p99_ms| {
        vec![
            Target::exactly("decided", 1.0),
            Target::exactly("delivery", 1.0),
            most("latency_ms.p99", p99_ms),
        ]
    };
    let mut rows = Vec::new();
    for means in [Daemons, V6, Service] {
        let mut row = row(options, &LOSS_20, What::Twist, means, (RUNS, 4));
        row.expiry = Duration::from_secs(1);
        if means.is_ours() {
            row.budget = LONGEST;
            row.targets = decided(110.0);
        }
        rows.push(row);
    }
    for means in [Daemons, V6, Service] {
        // TCP takes 7 s for one; --quick has no time for that.
        if skips(options, means) {
            continue;
        }
        let mut row = row(options, &LOSS_20_2S, What::Twist, means, (100, 30));
        row.expiry = Duration::from_secs(20);
        if means.is_ours() {
            row.period = Duration::from_millis(100);
            row.targets = decided(4_500.0);
        }
        rows.push(row);
    }
    let mut one_way = row(options, &LOSS_20_2S, What::Telemetry10MbOneway, Daemons, (1, 20));
    one_way.warm_up = 0;
    one_way.settle = Duration::from_secs(if options.quick { 6 } else { 12 });
    one_way.targets = vec![Target::exactly("delivery", 1.0), most("latency_ms.p50", 13_000.0)];
    rows.push(one_way);
    rows
}

fn delay(options: &Options) -> Vec<Row> {
    use Means::{Daemons, Service, Topic, V6};
    let mut rows = Vec::new();
    for means in [Daemons, V6, Service] {
        // Each connection's handshakes take round trips of 2 s.
        if skips(options, means) {
            continue;
        }
        let quick = if means.is_ours() { (40, 3) } else { (1, 3) };
        let mut row = row(options, &DELAY_2000, What::Twist, means, quick);
        if means.is_ours() {
            row.period = Duration::from_millis(100);
            row.expiry = Duration::from_secs(20);
        }
        rows.push(row);
    }
    for (what, means, p50_ms) in [
        (What::Telemetry1Mb, Daemons, Some(4_300.0)),
        (What::Telemetry1Mb, V6, None),
        (What::Telemetry1Mb, Topic, None),
        (What::Telemetry10Mb, Daemons, Some(20_000.0)),
        (What::Telemetry10Mb, V6, None),
        (What::Telemetry10Mb, Topic, None),
    ] {
        // 10 MB over TCP take a minute.
        if skips(options, means) {
            continue;
        }
        let mut row = row(options, &DELAY_2000, what, means, (1, 4));
        row.targets.extend(p50_ms.map(|ms| most("latency_ms.p50", ms)));
        rows.push(row);
    }
    rows
}

fn radio(options: &Options) -> Vec<Row> {
    let mut row = row(options, &WIFI_6, What::File, Means::Daemons, (1, 12));
    if !options.quick {
        row.budget = Duration::from_secs(60);
    }
    row.targets.push(most("added_p99_ms", 5.0));
    vec![row]
}

impl Row {
    /// Describes the row for people.
    pub(super) fn shown(&self) -> String {
        let (what, system) = (self.what.name(), self.means.system().name());
        format!("{}: {what}, {system} ({})", self.setup.shown(), self.setting())
    }

    /// Returns how it differs from other rows of its system.
    pub(super) fn setting(&self) -> String {
        let how = self.means.shown();
        match (self.awake, self.period.as_millis()) {
            (Some(true), _) => format!("{how}, processors awake"),
            (Some(false), _) => format!("{how}, processors asleep"),
            (None, 0) => how.into(),
            (None, ms) => format!("{how}, one every {ms} ms"),
        }
    }

    /// Returns the parameters for programs; `made`: number of runs.
    pub(super) fn params(&self, made: u64) -> Params {
        let (name, value) = self.means.param();
        let mut params = Params::from([
            ("network".into(), json!(self.setup.network.name())),
            ("what".into(), json!(self.what.name())),
            ("scenario".into(), json!(self.setup.shown())),
            ("check".into(), json!(self.what.name())),
            ("setting".into(), json!(self.setting())),
            (name.into(), json!(value)),
            ("runs".into(), json!(made)),
        ]);
        if let Some(awake) = self.awake {
            let processors = if awake { "awake" } else { "asleep" };
            params.insert("processors".into(), json!(processors));
        }
        if !self.setup.is_loopback() {
            params.insert("round_trip_ms".into(), json!(self.setup.round_trip_ms()));
        }
        match self.what {
            What::Twist => {
                params.insert("period_ms".into(), json!(self.period.as_millis() as u64));
                if !self.expiry.is_zero() {
                    params.insert("expiry_ms".into(), json!(self.expiry.as_millis() as u64));
                }
            }
            What::File => {
                params.insert("file_bytes".into(), json!(FILE_BYTES));
            }
            _ => {
                params.insert("message_bytes".into(), json!(self.what.bytes()));
            }
        }
        params
    }

    /// Returns the approximate duration once everything is set up.
    pub(super) fn expected(&self) -> Duration {
        let one = self.setup.closed_form_ms(self.what).unwrap_or(match self.what {
            What::Twist => 1.0,
            _ => self.what.bytes() as f64 * 4e-5,
        });
        // Over TCP, a loss costs a timeout, and a long path many round trips.
        let hard = self.setup.loss > 0.0 || self.setup.round_trip_ms() > 1_000.0;
        let factor = match hard && !self.means.is_ours() {
            true => 4.0,
            false => 1.2,
        };
        let one = Duration::from_secs_f64(one / 1e3 * factor);
        let all = match self.what {
            What::File if self.setup.is_loopback() => Duration::from_secs(8),
            What::File => self.budget + Duration::from_secs(3),
            _ if !self.period.is_zero() => self.period * self.count as u32 + one,
            // A repetition that has started is finished.
            _ => (one * (self.count + self.warm_up) as u32).min(self.budget + one),
        };
        all + self.settle
    }

    /// Returns whether bare sockets are its floor.
    pub(super) fn has_floor(&self) -> bool {
        self.setup.network == Network::Loopback && self.means != Means::Sockets
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn options() -> Options {
        Options {
            what: Vec::new(),
            networks: Vec::new(),
            systems: Vec::new(),
            quick: false,
            runs: None,
            json: Default::default(),
            csv: None,
            figure: None,
            keep: None,
            peers: None,
        }
    }

    #[test]
    fn every_row_has_a_distinct_name() {
        for quick in [false, true] {
            let rows = rows(&Options { quick, ..options() });
            let mut names: Vec<String> = rows.iter().map(Row::shown).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), rows.len());
        }
    }

    #[test]
    fn all_systems_do_what_the_paper_compares() {
        let rows = rows(&options());
        for network in [
            Network::Loopback,
            Network::Default,
            Network::Loss20,
            Network::Delay2000,
        ] {
            for system in [System::RopewalkLink, System::RopewalkZmq, System::Ros1] {
                let here = |what| {
                    let one =
                        |r: &&Row| (r.setup.network, r.means.system(), r.what) == (network, system, what);
                    rows.iter().filter(one).count()
                };
                assert!(here(What::Twist) > 0, "{network:?} {system:?}");
                if network != Network::Loss20 {
                    assert_eq!(
                        (here(What::Telemetry1Mb), here(What::Telemetry10Mb)),
                        (1, 1),
                        "{network:?} {system:?}"
                    );
                }
            }
        }
        assert!(rows.iter().all(|r| r.what == What::File || r.count == RUNS));
    }

    #[test]
    fn quickly_means_under_five_minutes() {
        let rows = rows(&Options {
            quick: true,
            ..options()
        });
        let all: Duration = rows.iter().map(Row::expected).sum();
        assert!(
            all < Duration::from_secs(180),
            "{all:?}, and each row has to start its lab and processes, too"
        );
    }

    #[test]
    fn a_floor_stands_only_beside_something() {
        let only = |system| {
            rows(&Options {
                systems: vec![system],
                ..options()
            })
        };
        let sockets = |rows: &[Row]| rows.iter().filter(|r| r.means == Means::Sockets).count();
        assert_eq!(sockets(&only(System::Ros1)), 4);
        assert_eq!(sockets(&only(System::BareSockets)), 4);
        let elsewhere = rows(&Options {
            networks: vec![Network::Default],
            ..options()
        });
        assert_eq!(sockets(&elsewhere), 0);
    }
}
