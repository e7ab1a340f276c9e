//! Properties of a network before the measurements on it: the paper's Table 2.

use super::options::Options;
use super::setup::{ROBOT, Setup, Table2};
use super::tools::Tools;
use crate::kit::cell::Timing;
use crate::kit::error::RunError;
use crate::kit::site::Site;
use crate::kit::traffic::{Flow, Iperf, Probing, RoundTrips, ping, probe};
use crate::table::{Align, Table};
use serde::Serialize;
use std::time::Duration;

/// The payload that fills a packet of 1500 B.
const PAYLOAD: usize = 1472;
const IP_UDP: usize = 28;
/// Factor by which the offered UDP traffic exceeds the network's rate.
const OFFERED: f64 = 1.15;

/// A network's measured properties.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// As in cells' `params`.
    pub network: &'static str,
    /// The lab's scenario.
    pub scenario: &'static str,
    /// By ping, from the controller.
    pub round_trip_ms: RoundTrip,
    /// Loss of packets of 64 B from the controller to the robot.
    pub lost_percent: f64,
    /// Loss of the same from the robot to the controller.
    pub lost_back_percent: f64,
    /// Mean difference of the delays of two successive packets, from the controller to the robot.
    pub jitter_ms: f64,
    /// UDP throughput in IP packets of 1500 B, from the controller to the robot.
    pub udp_mbit_s: f64,
    /// Throughput of one TCP connection (iperf3, cubic), if it was measured.
    pub tcp_mbit_s: Option<f64>,
    /// The paper's values, if it is one of its networks.
    pub paper: Option<Table2>,
    /// The lab's own timing.
    pub lab: Timing,
}

/// Round trips by ping.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrip {
    /// The minimum.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub max: f64,
}

/// Measures the network in a lab that is started for it.
pub(super) fn measure(
    tools: &Tools<'_>,
    setup: &Setup,
    options: &Options,
) -> Result<Option<Measured>, RunError> {
    let Some(scenario) = setup.scenario else {
        return Ok(None);
    };
    let site = Site::up(&tools.ground, scenario, None)?;
    let quick = options.quick;
    // As many as in the paper within its time, or fewer.
    let (pings, every_s) = if quick { (20, 0.1) } else { (100, 0.2) };
    let RoundTrips { min, mean, max, .. } = ping(&site, [setup.operator, ROBOT], pings, every_s)?;
    let linger = Duration::from_secs_f64(setup.round_trip_ms() / 1e3) + Duration::from_millis(200);
    let light = |from, to| Probing {
        from,
        to,
        count: if quick { 150 } else { 2_000 },
        every: Duration::from_millis(5),
        size: 64,
        linger,
    };
    let ways = probe(
        &site,
        &[light(setup.operator, ROBOT), light(ROBOT, setup.operator)],
    )?;
    let bits = (PAYLOAD + IP_UDP) as f64 * 8.0;
    let offered = setup.rate_mbit_s * OFFERED * 1e6;
    let every = Duration::from_secs_f64(bits / offered);
    let seconds = if quick { 1.5 } else { 5.0 };
    let full = Probing {
        from: setup.operator,
        to: ROBOT,
        count: (seconds / every.as_secs_f64()) as u32,
        every,
        size: PAYLOAD,
        linger: linger + Duration::from_millis(300),
    };
    let arrived = probe(&site, &[full])?;
    let times = &arrived[0].arrival_ns;
    let span_ns = times
        .last()
        .zip(times.first())
        .map_or(0, |(last, first)| last.saturating_sub(*first));
    let udp_mbit_s = (times.len() - 1) as f64 * bits / (span_ns.max(1) as f64 / 1e3);
    // TCP takes many round trips to find its rate, and more with packet loss.
    let easy = setup.round_trip_ms() < 100.0 && setup.loss == 0.0;
    let tcp_mbit_s = match (easy, quick) {
        (true, _) => Some(tcp(&site, setup, if quick { 4 } else { 10 })?),
        (false, true) => None,
        (false, false) => tcp(&site, setup, 30).map_or_else(not_measured, |v| Ok(Some(v)))?,
    };
    Ok(Some(Measured {
        network: setup.network.name(),
        scenario,
        round_trip_ms: RoundTrip { min, mean, max },
        lost_percent: ways[0].lost_percent,
        lost_back_percent: ways[1].lost_percent,
        jitter_ms: ways[0].jitter_ms,
        udp_mbit_s,
        tcp_mbit_s,
        paper: setup.paper,
        lab: Timing::of(&site.status()?),
    }))
}

fn tcp(site: &Site<'_>, setup: &Setup, seconds: u32) -> Result<f64, RunError> {
    Iperf::start(site, [setup.operator, ROBOT], Flow::Tcp, seconds, 5201)?.goodput_mbit_s()
}

/// iperf3 has its own control connection, which bad networks break.
fn not_measured(error: RunError) -> Result<Option<f64>, RunError> {
    match error {
        RunError::Stopped => Err(RunError::Stopped),
        RunError::Failed(why) => {
            eprintln!("    TCP's throughput was not measured: {why}");
            Ok(None)
        }
    }
}

/// One line for each network, with the paper's values below it.
pub(super) fn lines(all: &[Measured]) -> Vec<String> {
    let mut table = Table::new(&[
        ("network", Align::Left),
        ("by", Align::Left),
        ("ping ms", Align::Right),
        ("min..max", Align::Right),
        ("lost %", Align::Right),
        ("lost back %", Align::Right),
        ("jitter ms", Align::Right),
        ("UDP Mbit/s", Align::Right),
        ("TCP Mbit/s", Align::Right),
        ("lab late p99 us", Align::Right),
    ]);
    let one = |v: f64| format!("{v:.1}");
    let two = |v: f64| format!("{v:.2}");
    for m in all {
        let RoundTrip { min, mean, max } = m.round_trip_ms;
        table.row([
            m.scenario.into(),
            "measured".into(),
            one(mean),
            format!("{min:.1}..{max:.1}"),
            one(m.lost_percent),
            one(m.lost_back_percent),
            two(m.jitter_ms),
            two(m.udp_mbit_s),
            m.tcp_mbit_s.map_or("-".into(), two),
            format!("{:.0}", m.lab.late_p99_us),
        ]);
        if let Some(paper) = m.paper {
            let none = String::new;
            table.row([
                none(),
                "the paper".into(),
                one(paper.round_trip_ms),
                none(),
                one(paper.lost_percent),
                none(),
                two(paper.jitter_ms),
                none(),
                two(paper.tcp_mbit_s),
                none(),
            ]);
        }
    }
    table.lines()
}
