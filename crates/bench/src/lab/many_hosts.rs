//! 64 hosts in one lab: how soon they are up, whether they reach each other, and what they leave behind.

use super::checks::Check;
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::{Ground, Site, labs_folder};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const HOSTS: usize = 64;
/// How long the kernel may take to remove unused objects.
const REMOVAL: Duration = Duration::from_secs(10);

/// The row of a lab that ends on request (or, if `killed`, by kill -9 of its main process).
pub(super) fn check(killed: bool) -> Check {
    Check {
        system: "ropewalk",
        what: if killed { "64 hosts, killed" } else { "64 hosts" },
        scenario: "wifi-chain-64",
        params: Params::from([("hosts".into(), json!(HOSTS)), ("killed".into(), json!(killed))]),
        targets: vec![
            Target::within("start_s", 0.0, 10.0),
            Target::exactly("hosts_that_reach_the_next", HOSTS as f64 - 1.0),
            Target::exactly("left_processes", 0.0),
            Target::exactly("left_namespaces", 0.0),
            Target::exactly("left_devices", 0.0),
            Target::exactly("left_files", 0.0),
        ],
        source: "",
        needs_time: false,
        run: Box::new(move |ground| run(ground, killed)),
    }
}

fn run(ground: &Ground<'_>, killed: bool) -> Result<(Values, Timing), RunError> {
    let devices = devices();
    let began = Instant::now();
    let site = Site::up(ground, "wifi-chain-64", None)?;
    let start = began.elapsed();

    let began = Instant::now();
    let mut pings = Vec::new();
    for n in 1..HOSTS {
        let (from, to) = (format!("h{n}"), format!("h{}", n + 1));
        pings.push(site.start(&from, &["ping", "-q", "-c", "2", "-i", "0.2", "-W", "5", &to])?);
    }
    let mut reached = 0;
    for ping in pings {
        match site.finish(ping, Duration::from_secs(60)) {
            Ok(_) => reached += 1,
            Err(RunError::Stopped) => return Err(RunError::Stopped),
            Err(RunError::Failed(why)) => tracing::warn!("{why}"),
        }
    }
    let pinging = began.elapsed();
    let timing = Timing::of(&site.status()?);

    // Processes that would survive.
    let _sleepers = [
        site.start("h1", &["sleep", "1000"])?,
        site.start("h64", &["sleep", "1000"])?,
    ];
    let name = site.lab.name().to_owned();
    let emulator =
        emulator(&name).ok_or_else(|| RunError::Failed("the lab's process is not in /proc".into()))?;
    let namespaces: BTreeSet<PathBuf> = namespaces_of(emulator)
        .difference(&namespaces_of(std::process::id()))
        .cloned()
        .collect();
    let began = Instant::now();
    if killed {
        let pid = i32::try_from(emulator)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| RunError::Failed("the lab's process has no process id".into()))?;
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .map_err(|e| format!("killing the lab: {e}"))?;
        // The next search for labs removes its own folder.
        let deadline = Instant::now() + REMOVAL;
        while processes(&name) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = lab::Labs::open().and_then(|l| l.running());
    } else {
        site.lab.down().map_err(|e| e.to_string())?;
    }
    let stop = began.elapsed();
    let mut left = Left::look(&name, &namespaces, &devices);
    let deadline = Instant::now() + REMOVAL;
    while left != Left::default() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
        left = Left::look(&name, &namespaces, &devices);
    }
    let values = [
        ("start_s", start.as_secs_f64()),
        ("pinging_s", pinging.as_secs_f64()),
        ("stop_s", stop.as_secs_f64()),
        ("hosts_that_reach_the_next", f64::from(reached)),
        ("namespaces", namespaces.len() as f64),
        ("left_processes", left.processes as f64),
        ("left_namespaces", left.namespaces as f64),
        ("left_devices", left.devices as f64),
        ("left_files", left.files as f64),
    ];
    Ok((values.into(), timing))
}

/// Remains of a lab.
#[derive(Debug, Default, PartialEq)]
struct Left {
    processes: usize,
    namespaces: usize,
    devices: usize,
    files: usize,
}

impl Left {
    fn look(name: &str, namespaces: &BTreeSet<PathBuf>, devices_before: &BTreeSet<PathBuf>) -> Left {
        let held: BTreeSet<PathBuf> = pids().flat_map(namespaces_of).collect();
        Left {
            processes: processes(name),
            namespaces: held.intersection(namespaces).count(),
            devices: devices().difference(devices_before).count(),
            files: files(name),
        }
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// Counts processes of the lab: its own, those that run programs in it, and the programs.
fn processes(name: &str) -> usize {
    let others = pids().filter(|pid| *pid != std::process::id());
    others.filter(|pid| command(*pid).contains(name)).count()
}

/// Returns the lab's main process.
fn emulator(name: &str) -> Option<u32> {
    let ours = |pid: &u32| {
        let command = command(*pid);
        command.contains("\0emulate\0") && command.contains(name)
    };
    pids().find(ours)
}

fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the namespaces that a process is in, or holds.
fn namespaces_of(pid: u32) -> BTreeSet<PathBuf> {
    let folder = Path::new("/proc").join(pid.to_string());
    let links = ["ns", "fd"].map(|d| fs::read_dir(folder.join(d)).into_iter().flatten().flatten());
    let links = links
        .into_iter()
        .flatten()
        .filter_map(|l| fs::read_link(l.path()).ok());
    // Such as net:[4026531840].
    links
        .filter(|l| l.to_string_lossy().ends_with(']') && l.to_string_lossy().contains(":[402"))
        .collect()
}

/// Returns network devices outside labs.
fn devices() -> BTreeSet<PathBuf> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|e| e.path()).collect()
}

/// Counts files of the lab.
fn files(name: &str) -> usize {
    let entries = fs::read_dir(labs_folder()).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy().contains(name))
        .count()
}
