//! Steps at which a test may stop or kill the process. Nothing but an empty function without the feature
//! `test-hooks`.

/// Stops (`ROPEWALK_TEST_STOP_AT`) or kills (`ROPEWALK_TEST_KILL_AT`) the process if that variable names this
/// step, as `step` or `step:n` for its n-th time.
#[cfg(feature = "test-hooks")]
pub(crate) fn step(name: &'static str) {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        step: String,
        left: AtomicU64,
        signal: Signal,
    }
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let read = |var, signal| {
            let text = std::env::var(var).ok()?;
            let (step, n) = text
                .split_once(':')
                .map_or((&*text, 1), |(s, n)| (s, n.parse().unwrap_or(1)));
            Some(Plan {
                step: step.to_owned(),
                left: AtomicU64::new(n),
                signal,
            })
        };
        read("ROPEWALK_TEST_KILL_AT", Signal::KILL).or_else(|| read("ROPEWALK_TEST_STOP_AT", Signal::STOP))
    });
    if let Some(plan) = plan
        && plan.step == name
        && plan.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        let _ = kill_process(getpid(), plan.signal);
    }
}

#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub(crate) fn step(_name: &'static str) {}
