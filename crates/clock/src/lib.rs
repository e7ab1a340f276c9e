#![forbid(unsafe_code)]
//! The clocks of this host, waiting until an exact instant, and real-time scheduling.
//!
//! The logic crates do not read a clock; the threads that drive them do it here. The crate contains no timers, no
//! runtime, and no estimate of another host's clock.
//!
//! ```
//! let start = clock::monotonic();
//! clock::wait(&mut [], Some(start + std::time::Duration::from_millis(2)), clock::SPIN)?;
//! assert!(clock::monotonic() >= start);
//! # Ok::<(), std::io::Error>(())
//! ```

mod awake;
mod quiet;
mod soon;

pub use awake::{Awake, Busy};
pub use quiet::Quiet;
use rustix::event::Timespec;
pub use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, clock_gettime};
pub use soon::Soon;
use stats::Time;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// How long before an instant [`wait`] stops sleeping and spins: longer than a wake-up takes, and short enough that a
/// thread under SCHED_FIFO stays far below the kernel's throttle of 95 % of each second.
pub const SPIN: Duration = Duration::from_micros(60);

/// CLOCK_MONOTONIC: for deadlines and pacing; never steps; meaningless on other hosts and after a reboot.
pub fn monotonic() -> Time {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME, since the Unix epoch: for timestamps that others read; may step.
pub fn realtime() -> Time {
    read(ClockId::Realtime)
}

fn read(id: ClockId) -> Time {
    let t = clock_gettime(id);
    let secs = u64::try_from(t.tv_sec).unwrap_or(0);
    Time(
        secs.saturating_mul(1_000_000_000)
            .saturating_add(t.tv_nsec as u64),
    )
}

/// Waits until one of `fds` is ready or `until` (of [`monotonic`]) has come, whichever is first, and returns whether a
/// descriptor is ready. Sleeps until `spin` before `until` and spins for the rest, watching the descriptors throughout.
/// `None` waits only for the descriptors. A signal does not end the wait.
///
/// # Errors
/// The errors of `ppoll`: a bad descriptor set or no memory.
pub fn wait(fds: &mut [PollFd<'_>], until: Option<Time>, spin: Duration) -> std::io::Result<bool> {
    loop {
        let left = until.map(|t| t.since(monotonic()));
        let sleep = left.map(|d| d.saturating_sub(spin));
        let timeout = sleep.map(|d| Timespec {
            tv_sec: d.as_secs() as i64,
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        match rustix::event::poll(fds, timeout.as_ref()) {
            Ok(0) if left.is_some_and(|d| d.is_zero()) => return Ok(false),
            Ok(0) if sleep.is_some_and(|d| d.is_zero()) => std::hint::spin_loop(),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sleeps until `until` (of [`monotonic`]), spinning for the last `spin`. Returns false if `stopped`, which is called
/// at least ten times per second, returns true first.
///
/// # Errors
/// As [`wait`].
pub fn sleep_until(until: Time, spin: Duration, stopped: impl Fn() -> bool) -> std::io::Result<bool> {
    const CHECK: Duration = Duration::from_millis(100);
    while !stopped() {
        let now = monotonic();
        if now >= until {
            return Ok(true);
        }
        wait(&mut [], Some(until.min(now + CHECK)), spin)?;
    }
    Ok(false)
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO at this priority.
    Fifo(u8),
    /// The kernel's default, with this nice value (-20 to -1): preferred over others, but sharing with them.
    Nice(i32),
    /// The kernel's default: this process may not ask for better.
    Other,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scheduling::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Scheduling::Nice(nice) => write!(f, "SCHED_OTHER, nice {nice}"),
            Scheduling::Other => f.write_str("SCHED_OTHER"),
        }
    }
}

/// Requests SCHED_FIFO at `priority` (1–99) for the calling thread, and exact timers in any case. Where it is not
/// permitted (no CAP_SYS_NICE, no RLIMIT_RTPRIO), the thread keeps its scheduling.
pub fn realtime_thread(priority: u8) -> Scheduling {
    // Slack delays the wake-ups of ordinary threads by 50 µs to save power.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let fifo = ThreadPriorityValue::try_from(priority).ok().and_then(|p| {
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(p), policy).ok()
    });
    match fifo {
        Some(()) => Scheduling::Fifo(priority),
        None => Scheduling::Other,
    }
}

/// Nice value for threads that pass on the messages of other processes. Without a preference over those, a message waits
/// for a processor at every process on its way.
pub const FORWARDING_NICE: i32 = -10;

/// Requests a nice value (-20 to -1, see sched(7)) for the calling thread only: it gets a processor soon after it
/// wakes, and leaves others their shares. Where that is not permitted (no CAP_SYS_NICE, no RLIMIT_NICE), or the thread
/// already has a better value, it keeps its scheduling.
pub fn nice_thread(nice: i32) -> Scheduling {
    // On Linux the value belongs to the thread, not to the process.
    let now = rustix::process::getpriority_process(None).unwrap_or(0);
    if now > nice && rustix::process::setpriority_process(None, nice).is_ok() {
        return Scheduling::Nice(nice);
    }
    if now < 0 {
        Scheduling::Nice(now)
    } else {
        Scheduling::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_value_is_the_threads_own() {
        let before = rustix::process::getpriority_process(None).expect("a thread");
        let own = std::thread::spawn(|| {
            let got = nice_thread(-3);
            (
                got,
                rustix::process::getpriority_process(None).expect("a thread"),
                nice_thread(-1),
            )
        });
        let (got, nice, after) = own.join().expect("runs");
        match got {
            Scheduling::Nice(n) => assert!(n == nice && n <= -3 && after == got, "{got} {nice} {after}"),
            other => assert!(other == Scheduling::Other && nice == before, "{got} {nice}"),
        }
        assert_eq!(rustix::process::getpriority_process(None), Ok(before));
    }

    #[test]
    fn never_returns_early() {
        for us in [0u64, 50, 500, 3000] {
            let until = monotonic() + Duration::from_micros(us);
            assert!(!wait(&mut [], Some(until), SPIN).expect("waits"));
            assert!(monotonic() >= until);
        }
    }

    #[test]
    fn a_sleeper_can_be_stopped() {
        let start = monotonic();
        assert!(sleep_until(start + Duration::from_millis(3), SPIN, || false).expect("sleeps"));
        assert!(monotonic() >= start + Duration::from_millis(3));
        assert!(
            !sleep_until(Time::MAX, SPIN, || monotonic() > start + Duration::from_millis(5)).expect("sleeps")
        );
    }

    #[test]
    fn a_ready_descriptor_ends_the_wait() {
        let (read, write) = rustix::pipe::pipe().expect("pipe");
        rustix::io::write(&write, b"x").expect("writes");
        let mut fds = [PollFd::new(&read, PollFlags::IN)];
        assert!(wait(&mut fds, Some(Time::MAX), SPIN).expect("waits"));
        assert!(wait(&mut fds, None, SPIN).expect("waits"));
    }

    #[test]
    fn realtime_scheduling_is_granted_or_reported_missing() {
        std::thread::spawn(|| {
            let got = realtime_thread(10);
            assert!(matches!(got, Scheduling::Fifo(10) | Scheduling::Other));
        })
        .join()
        .expect("no panic");
    }
}
