//! Keeps processors from sleeping, for the shortest wake-ups.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Keeps the processors of this host out of deep sleep while it lives, so that wake-ups are as short as possible; it
/// costs power. See the kernel's `Documentation/power/pm_qos_interface.rst`. A virtual machine whose processors halt
/// may not get them back for milliseconds, whatever is requested here: see [`Busy`].
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks the kernel for a wake-up latency of 0 µs. Returns `None` where that is not permitted (it needs write access
    /// to `/dev/cpu_dma_latency`, usually root) or not supported.
    pub fn request() -> Option<Awake> {
        let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        // The request lasts as long as the file is open.
        file.write_all(&0i32.to_ne_bytes()).ok()?;
        Some(Awake { _request: file })
    }
}

/// Keeps every processor that this process may use busy while it lives, with threads that run only where nothing else
/// does (SCHED_IDLE, see sched(7)). The processors of a virtual machine then never halt, and its host does not give
/// them to others in between. It costs the maximum of power.
#[derive(Debug)]
pub struct Busy {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts the threads; none where the kernel does not list the processors or has no threads left.
    pub fn keep() -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let set = sched_getaffinity(None).unwrap_or_default();
        let each = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        let thread = |cpu| {
            let over = over.clone();
            let name = format!("busy-{cpu}");
            std::thread::Builder::new()
                .name(name)
                .spawn(move || spin(cpu, &over))
        };
        let threads = each.map_while(|cpu| thread(cpu).ok()).collect();
        Busy { over, threads }
    }

    /// Number of processors that it keeps busy.
    pub fn processors(&self) -> usize {
        self.threads.iter().filter(|t| !t.is_finished()).count()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn spin(cpu: usize, over: &AtomicBool) {
    let mut one = CpuSet::new();
    one.set(cpu);
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let stands_back = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).is_ok();
    // A thread that would compete with others ends instead.
    if !stands_back || sched_setaffinity(None, &one).is_err() {
        return;
    }
    while !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn busy_threads_stand_back_and_end() {
        let busy = Busy::keep();
        // They stay, each on its processor, or the kernel did not let them yield to others.
        std::thread::sleep(Duration::from_millis(20));
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        assert!((1..=allowed.max(CpuSet::MAX_CPU)).contains(&busy.processors()));
        let policies = std::fs::read_dir("/proc/self/task").expect("lists");
        let idle = policies.filter_map(Result::ok).filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // proc_pid_stat(5): policy is field 41, the name is field 2 and may have spaces; SCHED_IDLE is 5.
            let after = stat.rsplit(") ").next().unwrap_or_default();
            name.starts_with("busy-") && after.split(' ').nth(38) == Some("5")
        });
        assert_eq!(idle.count(), busy.processors());
        // Other threads run at once all the same.
        let start = Instant::now();
        let other = std::thread::spawn(|| (0..1000u64).sum::<u64>());
        assert_eq!(other.join().expect("runs"), 499_500);
        drop(busy);
        assert!(start.elapsed() > Duration::ZERO);
    }
}
