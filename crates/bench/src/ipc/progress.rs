//! Texts for the progress of runs.

use super::System;
use super::metrics::Metrics;
use super::setting::Setting;

/// Describes a run that starts.
pub(super) fn shown(setting: &Setting, system: System) -> String {
    format!(
        "{} {} × {} {system}",
        setting.experiment.name(),
        bytes(setting.size),
        setting.subscribers
    )
}

/// Summarizes its result.
pub(super) fn result(metrics: &Metrics) -> String {
    let time = metrics.time_us();
    let time = time.map_or_else(
        || "no message arrived".into(),
        |l| format!("p50 {:.2} µs, p99 {:.2} µs", l.p50, l.p99),
    );
    let lost = metrics.received_ratio.filter(|r| *r < 1.0);
    let lost = lost.map_or_else(String::new, |r| format!(", {:.1} % lost", (1.0 - r) * 100.0));
    format!("{time}{lost}")
}

/// A size, for people.
pub(super) fn bytes(size: u64) -> String {
    match size {
        s if s >= 1 << 20 && s % (1 << 20) == 0 => format!("{} MiB", s >> 20),
        s if s >= 1 << 10 && s % (1 << 10) == 0 => format!("{} KiB", s >> 10),
        s => format!("{s} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_to_read() {
        assert_eq!(bytes(4 << 20), "4 MiB");
        assert_eq!((bytes(4096), bytes(300)), ("4 KiB".into(), "300 B".into()));
    }
}
