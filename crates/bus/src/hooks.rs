//! Steps at which a test may stop or kill the process, or run code of its own. Without the feature
//! `test-hooks` they compile to an empty function.

#[cfg(feature = "test-hooks")]
pub use plan::call_at_step;
#[cfg(feature = "test-hooks")]
pub(crate) use plan::step;

#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub(crate) fn step(_name: &'static str) {}

#[cfg(feature = "test-hooks")]
mod plan {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Clone, Copy)]
    enum Action {
        Kill,
        Stop,
        Call,
    }

    struct Plan {
        step: String,
        left: AtomicU64,
        action: Action,
    }

    static CALL: OnceLock<fn()> = OnceLock::new();

    /// Sets what `ROPEWALK_TEST_CALL_AT` calls. The call runs in whichever thread reaches the step, with all
    /// locks that the thread holds.
    pub fn call_at_step(action: fn()) {
        let _ = CALL.set(action);
    }

    /// Kills (`ROPEWALK_TEST_KILL_AT`) or stops (`ROPEWALK_TEST_STOP_AT`) the process, or calls the function
    /// given to [`call_at_step`] (`ROPEWALK_TEST_CALL_AT`), if that variable names this step, as `step` or
    /// `step:n` for its n-th occurrence.
    pub(crate) fn step(name: &'static str) {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        let Some(plan) = PLAN.get_or_init(read) else {
            return;
        };
        if plan.step != name || plan.left.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        match plan.action {
            Action::Kill => drop(kill_process(getpid(), Signal::KILL)),
            Action::Stop => crate::sys::process::stop_here(),
            Action::Call => CALL.get().into_iter().for_each(|call| call()),
        }
    }

    fn read() -> Option<Plan> {
        let one = |var, action| {
            let text = std::env::var(var).ok()?;
            let (step, n) = text
                .split_once(':')
                .map_or((&*text, 1), |(s, n)| (s, n.parse().unwrap_or(1)));
            Some(Plan {
                step: step.to_owned(),
                left: AtomicU64::new(n),
                action,
            })
        };
        one("ROPEWALK_TEST_KILL_AT", Action::Kill)
            .or_else(|| one("ROPEWALK_TEST_STOP_AT", Action::Stop))
            .or_else(|| one("ROPEWALK_TEST_CALL_AT", Action::Call))
    }
}
