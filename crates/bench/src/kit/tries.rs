//! Runs that are repeated while the lab is late.

use crate::kit::cell::Timing;
use crate::kit::error::RunError;

/// Maximum number of runs if the lab is late.
const TRIES: u32 = 3;

/// Runs once, and again if the lab was late; `tries` counts all runs.
pub(crate) fn tried<T>(
    needs_time: bool,
    tries: &mut u32,
    run: impl Fn() -> Result<(T, Timing), RunError>,
) -> Result<(T, Timing), RunError> {
    let mut attempt = 1;
    loop {
        *tries += 1;
        let (values, timing) = run()?;
        let late = needs_time && timing.verdict == lab::Verdict::Rerun;
        if !late || attempt == TRIES {
            return Ok((values, timing));
        }
        eprintln!(
            "    the lab was late (p99 {:.0} us, {} stalls): again",
            timing.late_p99_us, timing.stalls
        );
        attempt += 1;
    }
}
