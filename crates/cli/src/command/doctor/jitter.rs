//! What delays wake-ups on this host, and by how much.

use super::finding::Finding;
use clock::Scheduling;
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use stats::Histogram;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

pub(super) fn check() -> Vec<Finding> {
    let cpus = Path::new("/sys/devices/system/cpu");
    let mut findings = vec![
        governor(cpus),
        idle_states(&cpus.join("cpu0/cpuidle")),
        clock_source(&read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )),
        preemption(&rustix::system::uname().version().to_string_lossy()),
        real_time(),
        throttle(
            &read("/proc/sys/kernel/sched_rt_runtime_us"),
            &read("/proc/sys/kernel/sched_rt_period_us"),
        ),
        load(&read("/proc/loadavg"), processors()),
    ];
    findings.extend(pressure(&read("/proc/pressure/cpu")));
    findings.push(virtual_machine(&read("/proc/cpuinfo"), &read("/proc/stat")));
    findings
}

fn read(path: impl AsRef<Path>) -> String {
    read_to_string(path).unwrap_or_default()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn governor(cpus: &Path) -> Finding {
    let mut governors = BTreeMap::<String, usize>::new();
    for entry in std::fs::read_dir(cpus).into_iter().flatten().flatten() {
        if let Ok(text) = read_to_string(entry.path().join("cpufreq/scaling_governor")) {
            *governors.entry(text.trim().to_owned()).or_default() += 1;
        }
    }
    if governors.is_empty() {
        return Finding::ok("CPU governor", "none: the firmware or the hypervisor decides");
    }
    let list: Vec<_> = governors
        .iter()
        .map(|(name, n)| format!("{name} on {n}"))
        .collect();
    let found = format!("{} processors", list.join(", "));
    if governors.keys().all(|g| g == "performance") {
        Finding::ok("CPU governor", found)
    } else {
        Finding::warning(
            "CPU governor",
            format!("{found}: the clock frequency rises only after a wake-up"),
            "cpupower frequency-set -g performance",
        )
    }
}

/// The deepest allowed idle state, by its exit latency.
fn idle_states(folder: &Path) -> Finding {
    let mut deepest: Option<(u64, String)> = None;
    for state in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = |name: &str| read(state.path().join(name)).trim().to_owned();
        let Ok(latency) = text("latency").parse::<u64>() else {
            continue;
        };
        if text("disable") != "1" && deepest.as_ref().is_none_or(|(l, _)| latency > *l) {
            deepest = Some((latency, text("name")));
        }
    }
    match deepest {
        None => Finding::ok("idle states", "not visible here"),
        Some((us, name)) if us > 50 => Finding::warning(
            "idle states",
            format!("leaving {name} takes up to {us} µs"),
            "hold /dev/cpu_dma_latency open at 0 (ropewalk's daemons do where permitted), or cpupower idle-set -D 20",
        ),
        Some((us, name)) => Finding::ok("idle states", format!("leaving {name} takes up to {us} µs")),
    }
}

fn clock_source(name: &str) -> Finding {
    match name.trim() {
        "" => Finding::ok("clock source", "unknown"),
        fast @ ("tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page") => {
            Finding::ok("clock source", format!("{fast}: readable without a system call"))
        }
        slow => Finding::warning(
            "clock source",
            format!("{slow}: each read may take a system call of about 1 µs, two per message"),
            "boot with tsc=reliable if the processor's time-stamp counter is sound",
        ),
    }
}

fn preemption(version: &str) -> Finding {
    let kind = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"]
        .into_iter()
        .find(|k| version.split_whitespace().any(|w| w == *k));
    match kind {
        Some("PREEMPT_RT") => Finding::ok("preemption", "PREEMPT_RT: real-time kernel"),
        Some(kind) => Finding::ok("preemption", format!("{kind}; PREEMPT_RT bounds the worst case")),
        None => Finding::warning(
            "preemption",
            "none: another program's system call may delay a wake-up by milliseconds",
            "use a kernel with PREEMPT_DYNAMIC and preempt=full, or PREEMPT_RT",
        ),
    }
}

fn real_time() -> Finding {
    // In a separate thread, so that this thread's scheduling does not change.
    match std::thread::spawn(|| clock::realtime_thread(10)).join() {
        Ok(Scheduling::Fifo(_)) => Finding::ok("SCHED_FIFO", "permitted"),
        _ => Finding::warning(
            "SCHED_FIFO",
            format!(
                "not permitted (RLIMIT_RTPRIO {})",
                getrlimit(Resource::Rtprio)
                    .current
                    .map_or_else(|| "unlimited".into(), |n| n.to_string())
            ),
            "give the user rtprio in /etc/security/limits.d (\"@robot - rtprio 80\"), or LimitRTPRIO= of systemd",
        ),
    }
}

fn throttle(runtime: &str, period: &str) -> Finding {
    match (runtime.trim().parse::<i64>(), period.trim().parse::<i64>()) {
        (Ok(-1), _) => Finding::ok(
            "RT throttling",
            "off: a spinning SCHED_FIFO thread can starve the host",
        ),
        (Ok(runtime), Ok(period)) if period > 0 => Finding::ok(
            "RT throttling",
            format!(
                "SCHED_FIFO may use {} % of each {} ms",
                runtime * 100 / period,
                period / 1000
            ),
        ),
        _ => Finding::ok("RT throttling", "unknown"),
    }
}

fn load(text: &str, processors: usize) -> Finding {
    let Some(minute) = text.split_whitespace().next().and_then(|t| t.parse::<f64>().ok()) else {
        return Finding::ok("load", "unknown");
    };
    let found = format!("{minute:.1} runnable programs on {processors} processors (last minute)");
    if minute > processors as f64 {
        Finding::warning(
            "load",
            found,
            "a program that wakes up waits for a processor: end or renice programs that are not needed",
        )
    } else {
        Finding::ok("load", found)
    }
}

fn pressure(text: &str) -> Option<Finding> {
    let line = text.lines().find(|l| l.starts_with("some"))?;
    let waiting: f64 = line
        .split_whitespace()
        .find_map(|w| w.strip_prefix("avg10="))?
        .parse()
        .ok()?;
    let found = format!("at least one program waited for a processor during {waiting} % of the last 10 s");
    Some(if waiting > 20.0 {
        Finding::warning(
            "CPU pressure",
            found,
            "see top; give time-critical programs SCHED_FIFO or a processor of their own",
        )
    } else {
        Finding::ok("CPU pressure", found)
    })
}

fn virtual_machine(cpuinfo: &str, stat: &str) -> Finding {
    let flags = cpuinfo
        .lines()
        .find(|l| l.starts_with("flags"))
        .unwrap_or_default();
    if !flags.split_whitespace().any(|f| f == "hypervisor") {
        return Finding::ok("virtual machine", "no");
    }
    let cpu: Vec<u64> = stat
        .lines()
        .find(|l| l.starts_with("cpu "))
        .into_iter()
        .flat_map(|l| l.split_whitespace().skip(1).filter_map(|n| n.parse().ok()))
        .collect();
    let stolen = match cpu.get(7) {
        Some(stolen) if cpu.iter().sum::<u64>() > 0 => {
            format!(
                ", {:.2} % of its time stolen",
                *stolen as f64 * 100.0 / cpu.iter().sum::<u64>() as f64
            )
        }
        _ => String::new(),
    };
    Finding::warning(
        "virtual machine",
        format!("yes{stolen}"),
        "waking an idle processor takes a VM exit: measure on the robot's own computer before you decide",
    )
}

const PERIOD: Duration = Duration::from_millis(2);
const TIMES: u32 = 400;

/// Measures how late sleepers wake, under the default policy and under SCHED_FIFO.
pub(super) fn measure() -> Vec<Finding> {
    let plain = std::thread::spawn(|| lateness(Scheduling::Other));
    let mut findings: Vec<_> = plain.join().ok().into_iter().collect();
    let fifo = std::thread::spawn(|| match clock::realtime_thread(80) {
        Scheduling::Nice(_) | Scheduling::Other => None,
        granted => Some(lateness(granted)),
    });
    findings.extend(fifo.join().ok().flatten());
    findings
}

fn lateness(scheduling: Scheduling) -> Finding {
    let mut late = Histogram::new();
    let mut next = clock::monotonic();
    for _ in 0..TIMES {
        next += PERIOD;
        if clock::wait(&mut [], Some(next), Duration::ZERO).is_err() {
            return Finding::problem("wake-ups", "poll fails", "see dmesg");
        }
        late.record_duration(clock::monotonic().since(next));
    }
    let us = |q| late.quantile(q) as f64 / 1000.0;
    let (p50, p99, max) = (us(0.5), us(0.99), late.max() as f64 / 1000.0);
    let found = format!("{scheduling}: {p50:.0} µs late (median), p99 {p99:.0}, worst {max:.0} of {TIMES}");
    let numbers =
        json!({"scheduling": scheduling.to_string(), "lateness_us": {"p50": p50, "p99": p99, "max": max}});
    let finding = if p99 > 1000.0 {
        Finding::warning(
            "wake-ups",
            found,
            "see the findings above for causes; until they are fixed, expect messages to be this late",
        )
    } else {
        Finding::ok("wake-ups", found)
    };
    finding.with_numbers(numbers)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn causes_of_a_late_host_are_recognized() {
        assert_eq!(clock_source("tsc\n").level, Level::Ok);
        assert_eq!(clock_source("hpet\n").level, Level::Warning);
        assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC Debian").level, Level::Ok);
        assert_eq!(preemption("#1 SMP Debian").level, Level::Warning);
        assert_eq!(load("0.50 0.40 0.30 1/100 5", 2).level, Level::Ok);
        assert_eq!(load("7.50 0.40 0.30 1/100 5", 2).level, Level::Warning);
        assert_eq!(
            pressure("some avg10=40.00 avg60=1 total=5").map(|f| f.level),
            Some(Level::Warning)
        );
        assert!(pressure("").is_none());
        assert_eq!(
            virtual_machine("flags\t: fpu hypervisor\n", "cpu 1 2 3 4 5 6 7 8 0 0").level,
            Level::Warning
        );
        assert_eq!(virtual_machine("flags\t: fpu\n", "").level, Level::Ok);
        assert_eq!(throttle("950000", "1000000").level, Level::Ok);
        assert_eq!(throttle("", "").level, Level::Ok);
    }

    #[test]
    fn governors_and_idle_states_come_from_sysfs() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(governor(dir.path()).level, Level::Ok);
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("cpu0/cpufreq/scaling_governor", "performance\n");
        assert_eq!(governor(dir.path()).level, Level::Ok);
        put("cpu1/cpufreq/scaling_governor", "powersave\n");
        assert_eq!(governor(dir.path()).level, Level::Warning);
        put("idle/state0/latency", "2\n");
        assert_eq!(idle_states(&dir.path().join("idle")).level, Level::Ok);
        put("idle/state1/latency", "200\n");
        put("idle/state1/name", "C6\n");
        assert_eq!(idle_states(&dir.path().join("idle")).level, Level::Warning);
        put("idle/state1/disable", "1\n");
        assert_eq!(idle_states(&dir.path().join("idle")).level, Level::Ok);
    }
}
