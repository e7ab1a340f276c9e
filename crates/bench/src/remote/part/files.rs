//! Another controller, which fetches the robot's file.

use super::over::Over;
use super::robot::FILE;
use super::{PartError, tell};
use crate::kit::part::{Gate, LOOK};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Fetches the file until it is complete or the run is stopped. Prints the start and end in seconds of CLOCK_MONOTONIC,
/// and the number of received bytes.
pub(super) fn fetch(gate: &Gate, over: &Over, into: &Path) -> Result<(), PartError> {
    let ends = over.open()?;
    let Some(controller) = ends.ready(gate, |_| {})? else {
        return Ok(());
    };
    let done = Arc::new(AtomicU64::new(0));
    let (seen, into) = (done.clone(), into.to_owned());
    let begin = clock::monotonic();
    let fetching = std::thread::spawn(move || {
        controller.download(FILE, "", &into, |progress| {
            seen.store(progress.done, Ordering::Relaxed);
        })
    });
    while !fetching.is_finished() && !gate.stopped() {
        std::thread::sleep(LOOK / 10);
    }
    let seconds = |time: stats::Time| time.as_nanos() as f64 / 1e9;
    let end = clock::monotonic();
    if fetching.is_finished() {
        let fetched = fetching
            .join()
            .map_err(|_| PartError::Wrong("the download panicked".into()))?;
        fetched?;
    }
    tell(
        gate,
        &[seconds(begin), seconds(end), done.load(Ordering::Relaxed) as f64],
    )
}
