//! Resource usage of processes and the host, from `/proc`.

use rustix::process::Pid;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Processor time and voluntary switches of all living threads of a process, since their start.
///
/// The difference of two values excludes a process's start and end, which in a short run would weigh more than the
/// messages; `wait4` cannot exclude them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) voluntary_switches: u64,
}

impl Usage {
    /// `None` if the process has ended.
    pub(crate) fn of(pid: Pid) -> Option<Usage> {
        let mut usage = Usage::default();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let of = thread_usage(&thread.path());
            usage.cpu += of.cpu;
            usage.voluntary_switches += field(&of.status, "voluntary_ctxt_switches:").unwrap_or(0);
        }
        Some(usage)
    }

    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
        }
    }
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Peak resident memory, including shared memory that it touched.
    pub(crate) peak: u64,
    /// Currently resident shared memory and memory files.
    pub(crate) shared: u64,
}

impl Memory {
    /// `None` if the process has ended.
    pub(crate) fn of(pid: Pid) -> Option<Memory> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(Memory {
            peak: field(&status, "VmHWM:")? * 1024,
            shared: field(&status, "RssShmem:").unwrap_or(0) * 1024,
        })
    }
}

/// Usage of a thread since its start.
pub(crate) struct ThreadUsage {
    pub(crate) cpu: Duration,
    /// How long it was runnable while other threads ran.
    pub(crate) waited: Duration,
    pub(crate) status: String,
}

/// Returns the usage of the thread in this folder; zero if it has ended meanwhile.
pub(crate) fn thread_usage(folder: &Path) -> ThreadUsage {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let stat = read("schedstat");
    let mut ns = stat.split_whitespace().map(|n| n.parse().unwrap_or(0));
    let mut next = || Duration::from_nanos(ns.next().unwrap_or(0));
    ThreadUsage {
        cpu: next(),
        waited: next(),
        status: read("status"),
    }
}

/// Returns the number in a line of a file such as `status`.
pub(crate) fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Processor time of the whole host since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Host {
    total: u64,
    idle: u64,
    steal: u64,
}

/// Shares of all processors' time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostLoad {
    /// In use by programs on this host.
    pub busy: f64,
    /// Taken by the hypervisor for other guests.
    pub steal: f64,
}

/// Returns the load averages over 1, 5 and 15 minutes.
pub(crate) fn loadavg() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

impl Host {
    pub(crate) fn now() -> Host {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(stat: &str) -> Host {
        let line = stat
            .lines()
            .find_map(|l| l.strip_prefix("cpu "))
            .unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; later fields are included in user and nice.
        let tick = |i| ticks.get(i).copied().unwrap_or(0);
        Host {
            total: ticks.iter().take(8).sum(),
            idle: tick(3) + tick(4),
            steal: tick(7),
        }
    }

    pub(crate) fn since(&self, earlier: &Host) -> HostLoad {
        let total = self.total.saturating_sub(earlier.total).max(1) as f64;
        let idle = self.idle.saturating_sub(earlier.idle) as f64;
        let steal = self.steal.saturating_sub(earlier.steal) as f64;
        HostLoad {
            busy: ((total - idle - steal) / total).clamp(0.0, 1.0),
            steal: (steal / total).clamp(0.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_to_work() {
        let pid = rustix::process::getpid();
        let before = Usage::of(pid).expect("lives");
        let start = std::time::Instant::now();
        while Usage::of(pid).expect("lives").since(&before).cpu < Duration::from_millis(20) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no processor time counted"
            );
        }
        assert!(Memory::of(pid).expect("lives").peak > 100_000);
        assert!(Usage::of(Pid::from_raw(i32::MAX).expect("a pid")).is_none());
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let host = |s: &str| Host::parse(&format!("cpu  {s}\ncpu0 9 9\n"));
        let load = host("40 0 20 90 10 0 0 40 7 0").since(&host("0 0 0 0 0 0 0 0 0 0"));
        assert_eq!(
            load,
            HostLoad {
                busy: 0.3,
                steal: 0.2
            }
        );
        assert!(host("").since(&host("")).busy.is_finite());
    }
}
