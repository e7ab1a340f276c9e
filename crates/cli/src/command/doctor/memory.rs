//! Memory for messages, and what happens when it runs out.

use super::finding::Finding;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
/// Memory that a few cameras need.
const LITTLE: u64 = 256 * MIB;

pub(super) fn check() -> Vec<Finding> {
    let mut findings = vec![host(&read("/proc/meminfo"))];
    findings.push(group(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")));
    findings.extend(swap(&read("/proc/meminfo"), &read("/proc/sys/vm/swappiness")));
    findings
}

fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_default()
}

fn host(meminfo: &str) -> Finding {
    let Some(free) = field(meminfo, "MemAvailable:") else {
        return Finding::warning(
            "memory",
            "/proc/meminfo does not state the available memory",
            "mount /proc: without it, growth is not checked",
        );
    };
    let shared = field(meminfo, "Shmem:").unwrap_or(0);
    let found = format!(
        "{} MiB available, {} MiB shared by all programs",
        free / MIB,
        shared / MIB
    );
    if free < LITTLE {
        Finding::warning(
            "memory",
            found,
            "end other programs, or lower the publishers' memory_limit",
        )
    } else {
        Finding::ok("memory", found)
    }
}

/// Above a control group's limit the kernel kills processes. It charges pages of shared memory to the group of the
/// process that touched them first, the publisher.
fn group(membership: &str, root: &Path) -> Finding {
    let Some((path, left, limit)) = tightest(membership, root) else {
        return Finding::ok("control group", "no memory limit (cgroup)");
    };
    let found = format!("{} of {} MiB left in {}", left / MIB, limit / MIB, path.display());
    let fix = "publishers refuse a loan 16 MiB before this limit, but cannot foresee what other programs of the group \
                take at the same moment, and the kernel then kills: keep the sum of all memory_limit below it";
    if left < LITTLE {
        Finding::warning("control group", found, fix)
    } else {
        Finding::ok(
            "control group",
            format!("{found}; above the limit the kernel kills processes"),
        )
    }
}

/// The group, of this one and its parents, with the least memory left: path, memory left, and limit.
fn tightest(membership: &str, root: &Path) -> Option<(PathBuf, u64, u64)> {
    let path = membership.lines().find_map(|l| l.strip_prefix("0::"))?;
    let mut group = PathBuf::from(path.trim().trim_start_matches('/'));
    let mut least: Option<(PathBuf, u64, u64)> = None;
    loop {
        let number = |name| -> Option<u64> {
            read_to_string(root.join(&group).join(name))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        if let (Some(limit), Some(used)) = (number("memory.max"), number("memory.current")) {
            let left = limit.saturating_sub(used);
            if least.as_ref().is_none_or(|(_, l, _)| left < *l) {
                least = Some((root.join(&group), left, limit));
            }
        }
        if !group.pop() {
            return least;
        }
    }
}

fn swap(meminfo: &str, swappiness: &str) -> Option<Finding> {
    let total = field(meminfo, "SwapTotal:")?;
    if total == 0 {
        return Some(Finding::ok("swap", "none"));
    }
    let used = total - field(meminfo, "SwapFree:")?.min(total);
    let found = format!(
        "{} of {} MiB used, swappiness {}",
        used / MIB,
        total / MIB,
        swappiness.trim()
    );
    Some(if used > total / 10 {
        Finding::warning(
            "swap",
            found,
            "pages of messages may be on disk: add memory, or swapoff -a on a robot",
        )
    } else {
        Finding::ok("swap", found)
    })
}

fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const INFO: &str =
        "MemTotal: 100 kB\nMemAvailable:  1048576 kB\nShmem: 2048 kB\nSwapTotal: 1000 kB\nSwapFree: 500 kB\n";

    #[test]
    fn numbers_are_read_from_meminfo() {
        assert_eq!(field(INFO, "MemAvailable:"), Some(1 << 30));
        assert_eq!(field(INFO, "Nothing:"), None);
        assert_eq!(host(INFO).level, Level::Ok);
        assert_eq!(host("").level, Level::Warning);
        assert_eq!(swap(INFO, "60").unwrap().level, Level::Warning);
    }

    #[test]
    fn the_group_that_leaves_least_counts() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |path: PathBuf, max: &str, now: &str| {
            std::fs::write(path.join("memory.max"), max).unwrap();
            std::fs::write(path.join("memory.current"), now).unwrap();
        };
        write(inner, "max\n", "5\n");
        write(dir.path().join("a"), "1000\n", "900\n");
        let (path, left, limit) = tightest("0::/a/b\n", dir.path()).unwrap();
        assert_eq!((path, left, limit), (dir.path().join("a"), 100, 1000));
        assert_eq!(group("0::/a/b\n", dir.path()).level, Level::Warning);
        assert_eq!(group("", dir.path()).level, Level::Ok);
    }
}
