//! Delay and loss, compared with the scenarios' own settings.

use super::{Check, OWN};
use crate::kit::cell::{Params, Target, Timing};
use crate::kit::site::Site;
use crate::kit::traffic::{Probing, ping, probe};
use crate::lab::probe::SIZE;
use serde_json::json;
use std::time::Duration;

fn wire(settings: &str) -> Option<String> {
    let set = if settings.is_empty() {
        String::new()
    } else {
        format!("\n    set: {{{settings}}}")
    };
    Some(format!(
        "hosts: [controller, robot]\nmedia:\n  - name: wire\n    wire: {{}}{set}\n"
    ))
}

pub(super) fn rows(quick: bool) -> Vec<Check> {
    const ENDS: [&str; 2] = ["controller", "robot"];
    let few = if quick { 5 } else { 20 };
    let mut rows = Vec::new();
    // The cost of the lab itself: nothing is emulated.
    rows.push(Check {
        system: "ping",
        what: "round trip of nothing",
        scenario: "direct",
        params: Params::from([("packets".into(), json!(few * 20))]),
        targets: vec![],
        source: "",
        needs_time: true,
        run: Box::new(move |ground| {
            let site = Site::up(ground, "direct", wire("").as_deref())?;
            let rtt = ping(&site, ENDS, few * 20, 0.02)?;
            let values = [
                ("rtt_min_ms", rtt.min),
                ("rtt_mean_ms", rtt.mean),
                ("rtt_max_ms", rtt.max),
            ];
            Ok((values.into(), Timing::of(&site.status()?)))
        }),
    });
    for (scenario, out) in [("delay-2000-one-way", 2000.0), ("delay-1000-each-way", 1000.0)] {
        let back = 2000.0 - out;
        rows.push(Check {
            system: "ping",
            what: "delay",
            scenario,
            params: Params::from([("packets".into(), json!(few))]),
            targets: vec![
                Target::about("rtt_min_ms", 2000.0, 2.0),
                Target::about("rtt_mean_ms", 2000.0, 2.0),
                Target::about("rtt_max_ms", 2000.0, 2.0),
                Target::about("out_mean_ms", out, 1.0),
                Target::about("back_mean_ms", back, 1.0),
            ],
            source: OWN,
            needs_time: true,
            run: Box::new(move |ground| {
                let site = Site::up(ground, scenario, None)?;
                let rtt = ping(&site, ENDS, few, 0.2)?;
                let ways = both_ways(ENDS, 200, Duration::from_millis(5), Duration::from_millis(2200));
                let ways = probe(&site, &ways)?;
                let values = [
                    ("rtt_min_ms", rtt.min),
                    ("rtt_mean_ms", rtt.mean),
                    ("rtt_max_ms", rtt.max),
                    ("out_mean_ms", ways[0].delay_mean_ms),
                    ("back_mean_ms", ways[1].delay_mean_ms),
                ];
                Ok((values.into(), Timing::of(&site.status()?)))
            }),
        });
    }
    rows.push(loss());
    rows.push(bursts());
    let packets = if quick { 2000 } else { 10_000 };
    rows.push(spread(
        "delay-normal",
        "normal: [100ms, 10ms]",
        packets,
        100.0,
        10.0,
        2.0,
    ));
    let uniform = 100.0 / 12.0f64.sqrt();
    rows.push(spread(
        "delay-uniform",
        "uniform: [50ms, 150ms]",
        packets,
        100.0,
        uniform,
        0.8,
    ));
    rows
}

fn both_ways(
    [a, b]: [&'static str; 2],
    count: u32,
    every: Duration,
    linger: Duration,
) -> [Probing<'static>; 2] {
    let way = |from, to| Probing {
        from,
        to,
        count,
        every,
        size: SIZE,
        linger,
    };
    [way(a, b), way(b, a)]
}

fn loss() -> Check {
    // Twice the nominal number: chance alone then leaves the band once in 2000 times, not once in 80.
    const PACKETS: u32 = 20_000;
    Check {
        system: "ropewalk",
        what: "loss each way",
        scenario: "loss-20",
        params: Params::from([("packets".into(), json!(PACKETS))]),
        targets: vec![
            Target::about("out_lost_percent", 20.0, 1.0),
            Target::about("back_lost_percent", 20.0, 1.0),
        ],
        source: OWN,
        needs_time: false,
        run: Box::new(|ground| {
            let site = Site::up(ground, "loss-20", None)?;
            let ways = both_ways(
                ["controller", "robot"],
                PACKETS,
                Duration::from_micros(500),
                Duration::from_millis(200),
            );
            let ways = probe(&site, &ways)?;
            let values = [
                ("out_lost_percent", ways[0].lost_percent),
                ("back_lost_percent", ways[1].lost_percent),
                ("burst_packets", ways[0].burst_packets),
            ];
            Ok((values.into(), Timing::of(&site.status()?)))
        }),
    }
}

/// Loss in bursts: a packet moves the state from good to bad or back, and packets in the bad state are lost.
fn bursts() -> Check {
    const PACKETS: u32 = 20_000;
    let (to_bad, to_good) = (0.05f64, 0.25f64);
    let share = to_bad / (to_bad + to_good);
    let length = 1.0 / to_good;
    // Five times the standard deviation of a geometric variable, over the mean number of bursts.
    let by = 5.0 * (1.0 - to_good).sqrt() / to_good / (f64::from(PACKETS) * share / length).sqrt();
    Check {
        system: "ropewalk",
        what: "loss in bursts",
        scenario: "loss-gilbert",
        params: Params::from([
            ("packets".into(), json!(PACKETS)),
            ("to_bad".into(), json!(to_bad)),
            ("to_good".into(), json!(to_good)),
        ]),
        targets: vec![
            Target::about("burst_packets", length, by),
            // The variation of the lengths and number of bursts.
            Target::about("out_lost_percent", share * 100.0, 2.0),
        ],
        source: OWN,
        needs_time: false,
        run: Box::new(move |ground| {
            let yaml = wire(&format!(
                "packet_loss: {{gilbert: {{to_bad: {to_bad}, to_good: {to_good}}}}}"
            ));
            let site = Site::up(ground, "loss-gilbert", yaml.as_deref())?;
            let way = Probing {
                from: "controller",
                to: "robot",
                count: PACKETS,
                every: Duration::from_micros(500),
                size: SIZE,
                linger: Duration::from_millis(200),
            };
            let ways = probe(&site, &[way])?;
            let values = [
                ("burst_packets", ways[0].burst_packets),
                ("out_lost_percent", ways[0].lost_percent),
            ];
            Ok((values.into(), Timing::of(&site.status()?)))
        }),
    }
}

/// A delay drawn independently for each packet. `shape`: (kurtosis − 1), by which the variance of a sample varies.
fn spread(
    scenario: &'static str,
    delay: &'static str,
    packets: u32,
    mean: f64,
    std: f64,
    shape: f64,
) -> Check {
    // Five standard errors, and the delay that the lab itself adds.
    let n = f64::from(packets).sqrt();
    let (of_mean, of_std) = (5.0 * std / n + 0.1, 5.0 * std * shape.sqrt() / 2.0 / n + 0.1);
    Check {
        system: "ropewalk",
        what: "delay's distribution",
        scenario,
        params: Params::from([("packets".into(), json!(packets)), ("delay".into(), json!(delay))]),
        targets: vec![
            Target::about("out_mean_ms", mean, of_mean),
            Target::about("out_std_ms", std, of_std),
        ],
        source: OWN,
        needs_time: true,
        run: Box::new(move |ground| {
            let yaml = wire(&format!("delay: {{{delay}}}, keep_order: false"));
            let site = Site::up(ground, scenario, yaml.as_deref())?;
            let way = Probing {
                from: "controller",
                to: "robot",
                count: packets,
                every: Duration::from_millis(1),
                size: SIZE,
                linger: Duration::from_millis(500),
            };
            let ways = probe(&site, &[way])?;
            let values = [
                ("out_mean_ms", ways[0].delay_mean_ms),
                ("out_std_ms", ways[0].delay_std_ms),
                ("reordered_packets", ways[0].reordered),
            ];
            Ok((values.into(), Timing::of(&site.status()?)))
        }),
    }
}
