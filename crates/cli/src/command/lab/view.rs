//! Formats a lab's state for people.

use super::failure;
use crate::failure::{OrFail, Outcome};
use crate::signals::Signals;
use ::lab::{Lab, StationStatus, Status, Verdict};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Interval between two updates.
const EVERY: Duration = Duration::from_secs(1);
/// Most hosts shown in a summary; --json has the rest.
const MOST: usize = 40;

/// Names and addresses of the hosts.
pub(super) fn hosts(status: &Status) -> String {
    let width = status.hosts.iter().map(|h| h.name.len()).max().unwrap_or(0);
    let mut text = format!("lab {} is up:\n", status.name);
    for host in &status.hosts {
        let devices: Vec<String> = host
            .interfaces
            .iter()
            .map(|i| format!("{} {}", i.device, i.address))
            .collect();
        let _ = writeln!(text, "  {:width$}  {}", host.name, devices.join(", "));
    }
    text
}

/// The whole state; rates and shares are those since `before`, or since the start.
pub(super) fn status(now: &Status, before: Option<&Status>) -> String {
    let span = now.uptime_s - before.map_or(0.0, |b| b.uptime_s);
    let share = |s: f64| {
        if span > 0.0 {
            (s / span).clamp(0.0, 1.0)
        } else {
            0.0
        }
    };
    let mut text = format!(
        "lab {} ({}), up {:.1} s, TCP {}\n",
        now.name, now.scenario, now.uptime_s, now.congestion_control
    );
    for (m, medium) in now.media.iter().enumerate() {
        let old = before.and_then(|b| b.media.get(m));
        let bits = (medium.delivered_bytes - old.map_or(0, |o| o.delivered_bytes)) as f64 * 8.0;
        let _ = writeln!(
            text,
            "\n{}: busy {:.1} %, {:.3} Mbit/s delivered, {} collisions, {} frames lost",
            medium.name,
            share(medium.busy_s - old.map_or(0.0, |o| o.busy_s)) * 100.0,
            if span > 0.0 { bits / span / 1e6 } else { 0.0 },
            medium.collisions,
            medium.lost_frames,
        );
        let width = medium
            .hosts
            .iter()
            .map(|h| h.host.len())
            .max()
            .unwrap_or(0)
            .max(4);
        let _ = writeln!(
            text,
            "  {:width$}  {:>6}  {:20}  {:>5}  {:>7}  {:>7}  drops",
            "host", "air %", "", "queue", "frames", "retries"
        );
        for (h, host) in medium.hosts.iter().enumerate().take(MOST) {
            let old: Option<&StationStatus> = old.and_then(|o| o.hosts.get(h));
            let air = share(host.air_s - old.map_or(0.0, |o| o.air_s));
            let _ = writeln!(
                text,
                "  {:width$}  {:>6.1}  {}  {:>5}  {:>7}  {:>7}  {}",
                host.host,
                air * 100.0,
                bar(air),
                host.queue_frames,
                host.attempts,
                host.retries,
                host.drops,
            );
            let queues: Vec<String> = host
                .categories
                .iter()
                .map(|c| format!("{} {}/{}", c.name, c.queue_frames, c.attempts))
                .collect();
            if !queues.is_empty() {
                let _ = writeln!(
                    text,
                    "  {:width$}          queue/frames: {}",
                    "",
                    queues.join("  ")
                );
            }
        }
        if medium.hosts.len() > MOST {
            let _ = writeln!(text, "  and {} more; see --json", medium.hosts.len() - MOST);
        }
    }
    let t = &now.timing;
    let verdict = match t.verdict {
        Verdict::Good => "good",
        Verdict::Rerun => "rerun",
    };
    let _ = writeln!(
        text,
        "\ntiming: {verdict}; late by p50 {:.0} µs, p99 {:.0} µs, at most {:.0} µs over {} frames, {} stalls; {}",
        t.lateness_p50_us, t.lateness_p99_us, t.lateness_max_us, t.events, t.stalls, t.scheduling,
    );
    if let Some(remark) = &t.remark {
        let _ = writeln!(text, "        {remark}");
    }
    text
}

/// Shows the status every second until the lab or the user ends it.
pub(super) fn watch(lab: &Lab) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let mut out = crate::screen::raw();
    let terminal = out.is_terminal();
    let mut before: Option<Status> = None;
    while !signals.stopped() {
        let now = match lab.status() {
            Ok(now) => now,
            // The lab was stopped, which is no error.
            Err(_) if before.is_some() && !lab.is_running() => return Ok(()),
            Err(e) => return Err(failure(e)),
        };
        let picture = status(&now, before.as_ref());
        let picture = stats::text::printable_lines(&picture).into_owned();
        // Cursor to the top left, then clear each line and the rest of the screen: no flicker.
        let shown = if terminal {
            format!("\x1b[H{}\x1b[J", picture.replace('\n', "\x1b[K\n"))
        } else {
            picture + "\n"
        };
        if out
            .write_all(shown.as_bytes())
            .and_then(|()| out.flush())
            .is_err()
        {
            return Ok(());
        }
        before = Some(now);
        let until = clock::monotonic() + EVERY;
        clock::sleep_until(until, Duration::ZERO, || signals.stopped()).or_job("waiting")?;
    }
    Ok(())
}

fn bar(share: f64) -> String {
    let full = (share * 20.0).round() as usize;
    format!("{}{}", "█".repeat(full.min(20)), "·".repeat(20 - full.min(20)))
}
