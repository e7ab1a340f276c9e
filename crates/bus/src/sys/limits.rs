//! System limits: open files, file sizes, memory.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Raises the soft limit of open files to `wanted`, as far as the hard limit allows. Best effort: a process
/// with few endpoints works under any limit.
pub(crate) fn raise_open_files(wanted: u64) {
    let now = getrlimit(Resource::Nofile);
    let target = now.maximum.map_or(wanted, |hard| hard.min(wanted));
    if now.current.is_some_and(|soft| soft < target) {
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(target),
                maximum: now.maximum,
            },
        );
    }
}

/// Returns how many descriptors this process may have open.
pub(crate) fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns free heap memory to the system. glibc keeps small freed pieces for later, which can amount to a
/// hundred MiB after a peer has used its budget. Locks the heap for some milliseconds.
pub fn return_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the heap's locks like any allocation, and touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the maximum size of a file that this process may create. Exceeding it would raise SIGXFSZ.
pub(crate) fn file_size() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Reserve that is never used: growth fails before the last page of memory is used up, since beyond a control
/// group's limit the kernel kills the process instead of failing the call.
const MARGIN: u64 = 16 << 20;

/// Returns how much more memory this process can have, less a margin, and the limit that applies.
pub(crate) fn memory_left() -> (u64, &'static str) {
    let free = read_to_string("/proc/meminfo")
        .ok()
        .and_then(|t| available(&t))
        .unwrap_or(u64::MAX);
    let group = read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|t| group_left(&t, Path::new("/sys/fs/cgroup")));
    match group {
        Some(group) if group < free => (group.saturating_sub(MARGIN), "the control group's limit"),
        _ => (free.saturating_sub(MARGIN), "the host's free memory"),
    }
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Returns the least that any group on the path to the root leaves, with cgroup v2 or v1.
fn group_left(membership: &str, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (base, limit, usage) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max", "memory.current")
        } else if controllers.split(',').any(|c| c == "memory") {
            (
                root.join("memory"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        } else {
            continue;
        };
        let mut group = PathBuf::from(path.trim_start_matches('/'));
        loop {
            let number = |name| {
                read_to_string(base.join(&group).join(name))
                    .ok()?
                    .trim()
                    .parse::<u64>()
                    .ok()
            };
            if let (Some(limit), Some(usage)) = (number(limit), number(usage)) {
                let left = limit.saturating_sub(usage);
                least = Some(least.map_or(left, |l: u64| l.min(left)));
            }
            if !group.pop() {
                break;
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "900\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "100\n");
        assert_eq!(group_left("0::/a/b\n", root.path()), Some(100));
        write("memory/x/memory.limit_in_bytes", "50\n");
        write("memory/x/memory.usage_in_bytes", "70\n");
        assert_eq!(group_left("0::/a/b\n4:cpu,memory:/x\n", root.path()), Some(0));
        assert_eq!(group_left("garbage", root.path()), None);
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        assert_eq!(
            available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(available("MemAvailable: lots"), None);
    }

    #[test]
    fn the_host_has_memory_left() {
        assert!(memory_left().0 > 0);
    }
}
