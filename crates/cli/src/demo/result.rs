//! Result of the demo: a comparison, a figure, JSON.

use super::protocol::{Spec, TopicPlan};
use super::run::{RunResult, State};
use super::{Options, System};
use crate::failure::{Failure, OrFail, Outcome};
use crate::figure::{self, Panel, Series};
use proto::AirtimeModel;
use serde::Serialize;
use stats::{Cell, FlowMetrics, Report};
use std::io::Write;
use terminal::table::{Align, Table};

#[derive(Serialize)]
struct Params {
    topic: String,
    #[serde(rename = "type")]
    type_name: String,
    priority: u8,
    depth: u16,
    deadline_ms: Option<f64>,
    mean_bytes: f64,
    rate_mbit_s: f64,
    hops: u8,
    seconds: f64,
    /// Lowest delay of a message of mean size on an idle radio, by the airtime formula.
    idle_air_ms: f64,
    radio_air_percent: f64,
    radio_late_p99_us: f64,
    radio_stalls: u64,
    radio_timing_good: bool,
    tries: u8,
}

#[derive(Serialize)]
struct Metrics {
    #[serde(flatten)]
    flow: FlowMetrics,
    /// Whether every delivered message's ROS 1 bytes equal the recording's, in its order.
    content_equal: bool,
    /// Messages that neither arrived nor were counted as lost.
    uncounted: u64,
}

/// Prints and writes the result; an error if a part ended early or contents differ.
pub(crate) fn finish(options: &Options, results: &[RunResult], awake: bool) -> Outcome {
    let mut out = crate::screen::stdout();
    let text = comparison(results);
    if options.json.is_printed() {
        write!(crate::screen::stderr(), "{text}").or_job("writing the result")?;
    } else {
        out.write_all(text.as_bytes()).or_job("writing the result")?;
    }
    std::fs::write(&options.figure, draw(options, results))
        .map_err(|e| Failure::job(format_args!("cannot write {}: {e}", options.figure.display())))?;
    let figure = std::path::absolute(&options.figure).unwrap_or_else(|_| options.figure.clone());
    crate::screen::tell!("plot of the delays: {}", figure.display());
    if let Some(point) = point(results) {
        let next = "next: `ropewalk topic list` shows this host's topics; docs/guide/link.md explains how \
                    to carry them over a radio";
        crate::screen::tell!("\n{point}\n{next}");
    }
    let json = serde_json::to_string_pretty(&json(results, awake)).or_job("writing JSON")?;
    if options.json.is_printed() {
        writeln!(out, "{json}").or_job("writing JSON")?;
    } else if let Some(file) = options.json.file() {
        std::fs::write(file, json + "\n")
            .map_err(|e| Failure::job(format_args!("cannot write {}: {e}", file.display())))?;
    }
    verdict(results)
}

fn verdict(results: &[RunResult]) -> Outcome {
    if results.iter().any(|r| r.stopped) {
        return Err(Failure::job("stopped before the end"));
    }
    let differing = results
        .iter()
        .flat_map(|r| r.state.arrived.iter())
        .find(|(_, a)| a.unequal > 0);
    if let Some((topic, arrived)) = differing {
        return Err(Failure::job(format_args!(
            "{} messages of {topic} arrived changed, twice, or out of order",
            arrived.unequal
        )));
    }
    let casualties: Vec<_> = results
        .iter()
        .flat_map(|r| r.casualties.iter().cloned())
        .collect();
    if casualties.is_empty() {
        return Ok(());
    }
    let lost: u64 = (results.iter())
        .flat_map(|r| r.spec.topics.keys().map(|t| r.state.metrics(t)))
        .map(|m| m.sent.saturating_sub(m.received))
        .sum();
    Err(Failure::lost(format_args!(
        "{}; {lost} messages did not arrive",
        casualties.join("; ")
    )))
}

fn comparison(results: &[RunResult]) -> String {
    let mut table = Table::new(&[
        ("topic", Align::Left),
        ("order", Align::Left),
        ("sent", Align::Right),
        ("delivered", Align::Right),
        ("period ms (std)", Align::Right),
        ("added jitter ms", Align::Right),
        ("delay ms p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("Mbit/s", Align::Right),
        ("content", Align::Left),
        ("lost", Align::Left),
    ]);
    let topics = results.first().map(|r| &r.spec.topics);
    for topic in topics.into_iter().flat_map(|t| t.keys()) {
        for result in results {
            let m = result.state.metrics(topic);
            let arrived = result.state.arrived.get(topic).cloned().unwrap_or_default();
            let content = match (arrived.unequal, arrived.equal) {
                (0, 0) => "-",
                (0, _) => "equal",
                _ => "DIFFERS",
            };
            table.row([
                topic.clone(),
                result.system.name().into(),
                m.sent.to_string(),
                format!("{:.1} %", m.delivery * 100.0),
                format!("{:.1} ({:.1})", m.period_ms.mean, m.period_ms.std),
                format!("{:.2}", m.added_jitter_ms.std),
                format!("{:.2}", m.delay_ms.p50),
                format!("{:.2}", m.delay_ms.p99),
                format!("{:.2}", m.delay_ms.max),
                format!("{:.3}", m.mbit_s),
                content.into(),
                m.drops.to_string(),
            ]);
        }
    }
    let mut text = String::from("\n");
    for line in table.lines() {
        text.push_str(&line);
        text.push('\n');
    }
    for result in results {
        let radio = &result.state.radio;
        text.push_str(&format!(
            "{}: air {:.0} % busy, {} datagrams delivered, lost on the radio: {}; the radio's own lateness \
             p99 {:.0} µs, {} stalls: {}\n",
            result.system.name(),
            radio.air_percent,
            radio.delivered,
            radio.drops,
            radio.late_p99_us,
            radio.stalls,
            if radio.good {
                "timing good"
            } else {
                "timing doubtful, rerun on a quieter machine"
            }
        ));
        if let Some((part, scheduling)) = result.state.ready.iter().find(|(_, s)| *s == "SCHED_OTHER") {
            text.push_str(&format!(
                "  ({} ran at {scheduling}: real-time scheduling is not permitted)\n",
                part.name()
            ));
        }
        for casualty in &result.casualties {
            text.push_str(&format!("  {casualty}\n"));
        }
    }
    let of = |system| results.iter().find(|r| r.system == system);
    if let (Some(fifo), Some(priority)) = (of(System::Fifo), of(System::Priority)) {
        for topic in fifo.spec.topics.keys() {
            let (a, b) = (
                fifo.state.metrics(topic).delay_ms.p99,
                priority.state.metrics(topic).delay_ms.p99,
            );
            if a > 0.0 && b > 0.0 {
                text.push_str(&format!(
                    "{topic}: 99 % arrive within {b:.1} ms by priority, {a:.1} ms in order of arrival\n"
                ));
            }
        }
    }
    text
}

/// What the two runs show, in a sentence: the delays of the topic with the highest priority.
fn point(results: &[RunResult]) -> Option<String> {
    let of = |system| results.iter().find(|r| r.system == system);
    let (fifo, priority) = (of(System::Fifo)?, of(System::Priority)?);
    let topics = fifo.spec.topics.iter().map(|(topic, plan)| {
        let (before, after) = (fifo.state.metrics(topic), priority.state.metrics(topic));
        (plan.priority, topic, before, after)
    });
    let measured = topics.filter(|(_, _, a, b)| a.delay_ms.p99 > 0.0 && b.delay_ms.p99 > 0.0);
    let (_, topic, before, after) = measured.max_by_key(|(level, ..)| *level)?;
    let (slow, fast) = (before.delay_ms.p99, after.delay_ms.p99);
    Some(if fast < slow {
        let lost = |m: &FlowMetrics| format!("{:.0} % lost", (1.0 - m.delivery) * 100.0);
        format!(
            "In short: {topic} has the highest priority. Sent by priority, 99 % of its messages arrive \
             within {fast:.0} ms ({}); sent in order of arrival, within {slow:.0} ms ({}).",
            lost(&after),
            lost(&before)
        )
    } else {
        format!(
            "In short: the radio was not a bottleneck, and priority made no difference to {topic}: 99 % of \
             its messages arrive within {fast:.0} ms either way. A slower --rate or more --hops shows a \
             difference."
        )
    })
}

fn draw(options: &Options, results: &[RunResult]) -> String {
    let Some(first) = results.first() else {
        return figure::delays("no result", "", &[]);
    };
    let mut topics: Vec<(&String, &TopicPlan)> = first.spec.topics.iter().collect();
    topics.sort_by_key(|(_, plan)| std::cmp::Reverse(plan.priority));
    let panels: Vec<Panel<'_>> = (topics.into_iter())
        .map(|(topic, plan)| Panel {
            title: format!(
                "{topic}  ({}, {:.1} kB, priority {})",
                plan.type_name,
                plan.bytes / 1e3,
                plan.priority
            ),
            series: (results.iter())
                .filter_map(|r| Some((r, r.state.arrived.get(topic)?)))
                .map(|(r, a)| Series {
                    name: r.system.name(),
                    cumulative: &a.cumulative,
                    p99_ms: a.metrics.delay_ms.p99,
                    lost: 1.0 - r.state.metrics(topic).delivery,
                })
                .collect(),
        })
        .collect();
    let subtitle = format!(
        "{} Mbit/s 802.11 radio (modelled), {} hop{}, {} s of {}",
        options.rate as f64 / 1e6,
        options.hops,
        if options.hops == 1 { "" } else { "s" },
        options.seconds,
        options
            .recording
            .as_ref()
            .map_or("a simulated robot".into(), |f| f.display().to_string())
    );
    figure::delays(
        "Delay from publisher to subscriber, in order of arrival and by priority",
        &subtitle,
        &panels,
    )
}

fn json(results: &[RunResult], awake: bool) -> Report<Params, Metrics> {
    let mut machine = terminal::machine::describe();
    let sleep = if awake {
        "none (/dev/cpu_dma_latency held at 0)"
    } else {
        "as the kernel chooses"
    };
    machine.insert("processor_sleep".into(), sleep.into());
    for result in results {
        let threads = result.state.ready.iter().map(|(p, s)| (p.name(), s.clone()));
        let threads: std::collections::BTreeMap<_, _> = threads.collect();
        machine.insert(
            format!("scheduling_{}", result.system.name()),
            serde_json::json!(threads),
        );
    }
    let cells = results
        .iter()
        .flat_map(|r| r.spec.topics.iter().map(move |(t, plan)| cell(r, t, plan)));
    Report {
        experiment: "demo".into(),
        machine,
        versions: terminal::machine::versions(),
        cells: cells.collect(),
    }
}

fn cell(result: &RunResult, topic: &str, plan: &TopicPlan) -> Cell<Params, Metrics> {
    let flow = result.state.metrics(topic);
    let arrived = result.state.arrived.get(topic).cloned().unwrap_or_default();
    let radio = &result.state.radio;
    Cell {
        system: result.system.name().into(),
        params: Params {
            topic: topic.to_owned(),
            type_name: plan.type_name.clone(),
            priority: plan.priority,
            depth: plan.depth,
            deadline_ms: plan
                .deadline
                .filter(|_| !result.spec.fifo)
                .map(|d| d.as_secs_f64() * 1e3),
            mean_bytes: plan.bytes,
            rate_mbit_s: result.spec.rate as f64 / 1e6,
            hops: result.spec.hops,
            seconds: result.spec.seconds,
            idle_air_ms: idle_air_ms(&result.spec, plan.bytes),
            radio_air_percent: radio.air_percent,
            radio_late_p99_us: radio.late_p99_us,
            radio_stalls: radio.stalls,
            radio_timing_good: radio.good,
            tries: result.tries,
        },
        metrics: Metrics {
            content_equal: arrived.unequal == 0 && arrived.unchecked == 0,
            uncounted: State::uncounted(&flow),
            flow,
        },
    }
}

/// Airtime of a message alone on the radio, over all hops, without the link's own headers.
fn idle_air_ms(spec: &Spec, bytes: f64) -> f64 {
    const DATAGRAM: usize = 1440;
    let air = AirtimeModel::wifi(spec.rate).with_gain(1.0);
    let bytes = bytes.round() as usize;
    let full = air.airtime(DATAGRAM, u32::from(spec.hops)).as_secs_f64() * (bytes / DATAGRAM) as f64;
    let rest = match bytes % DATAGRAM {
        0 => 0.0,
        n => air.airtime(n, u32::from(spec.hops)).as_secs_f64(),
    };
    (full + rest) * 1e3
}
