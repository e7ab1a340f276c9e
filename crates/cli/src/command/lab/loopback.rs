//! `ropewalk lab loopback`: emulates a scenario between programs on this machine.

use super::print;
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use ::lab::{LoopbackRadio, RadioError, RadioStats, Scenario, Tap, Verdict};
use clap::Args;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Args)]
#[command(override_usage = "ropewalk lab loopback [OPTIONS] SCENARIO HOST=ADDRESS HOST=ADDRESS...")]
pub(super) struct Options {
    /// A shipped scenario (see `ropewalk lab list`) or a YAML file.
    scenario: String,
    /// A host of the scenario, and the address of the program that runs as this host; two or more.
    #[arg(required = true, num_args = 2.., value_name = "HOST=ADDRESS")]
    programs: Vec<String>,
    /// End after this many seconds.
    #[arg(long, value_parser = crate::numbers::duration)]
    seconds: Option<f64>,
    /// Print two lines of JSON: the paths, and at the end the counts of datagrams.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> Outcome {
    let scenario = Scenario::load(&options.scenario).or_input()?;
    let taps = taps(&scenario, &options.programs)?;
    let mut radio = LoopbackRadio::new(&scenario, &taps).map_err(failure)?;
    let scheduling = clock::realtime_thread(60);
    let name = |host: usize| &scenario.hosts()[host];
    if options.json {
        let way = |t: &Tap| json!({"from": name(t.from), "to": name(t.to), "address": t.bind});
        let ways: Vec<_> = taps.iter().map(way).collect();
        print(&json!({ "ways": ways }).to_string())?;
    } else {
        for tap in &taps {
            print(&format!(
                "{} reaches {} at {}",
                name(tap.from),
                name(tap.to),
                tap.bind
            ))?;
        }
    }
    let signals = Signals::watch().or_job("watching signals")?;
    let stop = AtomicBool::new(false);
    let end = options.seconds.map(Duration::from_secs_f64);
    let start = clock::monotonic();
    let mut carried = RadioStats::default();
    let ran = radio.run(&stop, |stats| {
        let over = end.is_some_and(|end| clock::monotonic().since(start) >= end);
        if over || signals.stopped() {
            stop.store(true, Ordering::Relaxed);
        }
        carried.clone_from(stats);
    });
    ran.map_err(failure)?;
    let timing = carried.timing(scheduling);
    if options.json {
        let carried = json!({
            "taken": carried.taken,
            "delivered": carried.delivered,
            "refused": carried.refused,
            "drops": carried.drops,
            "busy_s": carried.busy.as_secs_f64(),
            "timing": timing,
        });
        return print(&carried.to_string());
    }
    let verdict = match timing.verdict {
        Verdict::Good => "good",
        Verdict::Rerun => "rerun",
    };
    print(&format!(
        "{} taken, {} delivered, {} refused; lost: {}; busy {:.3} s\ntiming: {verdict}; late by p50 {:.0} µs, p99 {:.0} µs; {}",
        carried.taken,
        carried.delivered,
        carried.refused,
        carried.drops,
        carried.busy.as_secs_f64(),
        timing.lateness_p50_us,
        timing.lateness_p99_us,
        timing.remark.unwrap_or(timing.scheduling),
    ))
}

/// A tap for each direction between two of the programs: the program of host `a` (counting from 1) reaches `b` at
/// 127.77.a.b, on the port of `b`.
fn taps(scenario: &Scenario, programs: &[String]) -> Result<Vec<Tap>, Failure> {
    let mut ends: Vec<(usize, SocketAddr)> = Vec::new();
    for program in programs {
        let wrong = |why: &str| Failure::input(format_args!("'{program}': {why}"));
        let form = "write HOST=ADDRESS:PORT, for example robot=127.0.1.1:7400";
        let (host, address) = program.split_once('=').ok_or_else(|| wrong(form))?;
        let address: SocketAddr = address.parse().map_err(|_| wrong(form))?;
        let known = scenario.hosts().iter().position(|h| h == host);
        let host = known.ok_or_else(|| {
            let hosts = scenario.hosts().join(", ");
            wrong(&format!("the scenario has no such host; it has {hosts}"))
        })?;
        if ends.iter().any(|(h, a)| *h == host || *a == address) {
            return Err(wrong(
                "give each host and each address once: each program needs its own",
            ));
        }
        ends.push((host, address));
    }
    let mut taps = Vec::new();
    for &(from, host) in &ends {
        for &(to, there) in ends.iter().filter(|(to, _)| *to != from) {
            // Hosts are at most 250.
            let [a, b] = [from, to].map(|h| h as u8 + 1);
            let bind = SocketAddr::from(([127, 77, a, b], there.port()));
            taps.push(Tap { bind, host, from, to });
        }
    }
    Ok(taps)
}

/// A failure to wait on sockets is this machine's (exit code 1); every other error is in the user's input.
fn failure(error: RadioError) -> Failure {
    match error {
        RadioError::Socket { .. } => Failure::job(error),
        _ => Failure::input(error),
    }
}
