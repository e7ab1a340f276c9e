//! Cells as lines of comma-separated values.

use super::super::{Latency, Metrics, Mode, Params};
use stats::Cell;

/// One line for each cell, after a header.
pub(super) fn lines(cells: &[Cell<Params, Metrics>]) -> String {
    let mut lines = vec![
        "experiment,system,size,subscribers,rate_hz,messages,runs,mode,awake,p50_us,p99_us,mean_us,min_us,p25_us,p75_us,\
         max_us,received_ratio,publish_p50_us,publish_p99_us,refused,cpu_us_per_message,\
         voluntary_switches_per_message,max_rss_mb,messages_per_s,gb_per_s,copies"
            .to_owned(),
    ];
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
    for Cell {
        system,
        params: p,
        metrics: m,
    } in cells
    {
        let l = m.time_us();
        let field = |f: fn(&Latency) -> f64| number(l.as_ref().map(f));
        let mode = match p.mode {
            Mode::Block => "block",
            Mode::Spin => "spin",
            Mode::PingPong => "ping-pong",
            Mode::Call => "call",
        };
        lines.push(
            [
                p.experiment.name().to_owned(),
                system.clone(),
                p.size.to_string(),
                p.subscribers.to_string(),
                p.rate_hz.to_string(),
                p.messages.to_string(),
                p.runs.to_string(),
                mode.to_owned(),
                p.awake.to_string(),
                field(|l| l.p50),
                field(|l| l.p99),
                field(|l| l.mean),
                field(|l| l.min),
                field(|l| l.p25),
                field(|l| l.p75),
                field(|l| l.max),
                number(m.received_ratio),
                number(m.publish_us.map(|q| q.p50)),
                number(m.publish_us.map(|q| q.p99)),
                m.refused.to_string(),
                number(m.cpu_us_per_message),
                number(m.voluntary_switches_per_message),
                number(m.max_rss_mb),
                number(m.messages_per_s),
                number(m.gb_per_s),
                number(m.copies.map(|c| c.total)),
            ]
            .join(","),
        );
    }
    lines.join("\n") + "\n"
}
