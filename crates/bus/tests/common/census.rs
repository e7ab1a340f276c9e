//! What a process holds of the bus, to be compared before and after.

use super::LONG;
use bus::Bus;
use std::path::Path;
use std::time::{Duration, Instant};

/// Descriptors of the bus, mappings of shared memory, files in the runtime folder and in `/dev/shm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// The kinds, sorted: `socket:`, `pipe:`, `/memfd:ropewalk-ring (deleted)`, …
    pub descriptors: Vec<String>,
    pub mappings: usize,
    pub files: usize,
    /// Objects of the bus; those of other programs come and go.
    pub shm: usize,
}

impl Census {
    /// The same without segments and rings, which come and go with the traffic.
    pub fn without_memory(mut self) -> Census {
        self.descriptors.retain(|d| !d.contains("ropewalk"));
        self.mappings = 0;
        self
    }
}

/// Returns the census once it is stable for a while: connections in progress come and go.
pub fn settled(dir: &Path) -> Census {
    let (mut last, mut since, start) = (census(dir), Instant::now(), Instant::now());
    while since.elapsed() < Duration::from_millis(150) {
        assert!(start.elapsed() < LONG, "it never settles: {last:?}");
        std::thread::sleep(Duration::from_millis(10));
        let now = census(dir);
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

/// The current census.
pub fn census(dir: &Path) -> Census {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut descriptors: Vec<_> = fds
        .filter_map(|e| std::fs::read_link(e.path()).ok())
        .map(|l| l.to_string_lossy().into_owned())
        // Without the folder itself, the test runner's descriptors, and a limit that is just being read.
        .filter(|l| !l.starts_with('/') || l.starts_with(&super::shared_memory("ropewalk")))
        // Only the kind counts: "socket:[123]", "/dev/shm/ropewalk-ring.123456789abc (deleted)".
        .map(|l| l.split(['[', '.']).next().unwrap_or_default().to_owned())
        .collect();
    descriptors.sort();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shared = |l: &&str| l.contains(&super::shared_memory("ropewalk"));
    let shm = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    Census {
        descriptors,
        mappings: maps.lines().filter(shared).count(),
        files: std::fs::read_dir(dir).unwrap().count(),
        shm: shm
            .filter(|e| cfg!(feature = "posix") && e.file_name().to_string_lossy().contains("ropewalk"))
            // An empty object is left by a process that was killed while creating one; the next bus sweeps
            // it.
            .filter(|e| e.metadata().is_ok_and(|m| m.len() > 0))
            .count(),
    }
}

/// Waits until `now` returns `baseline` again. Querying the topics sweeps the folder, as any new process
/// would.
pub fn returns_to(baseline: &Census, bus: &Bus, what: &str, now: impl Fn() -> Census) {
    let start = Instant::now();
    loop {
        let now = now();
        if now == *baseline {
            return;
        }
        assert!(start.elapsed() < LONG, "{what}: {now:?} instead of {baseline:?}");
        let _ = bus.topics(Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(5));
    }
}
