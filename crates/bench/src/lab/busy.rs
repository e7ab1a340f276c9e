//! Keeps processors busy with ordinary processes.

use crate::kit::error::RunError;
use crate::kit::site::Job;
use std::process::Command;

/// Number of loops: one for each processor, so that none is left over for the lab.
pub(super) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The running loops. Dropping it ends them.
pub(super) struct Busy {
    _loops: Vec<Job>,
}

impl Busy {
    pub(super) fn start() -> Result<Busy, RunError> {
        let one = |_| Job::start(Command::new("sh").args(["-c", "while :; do :; done"]));
        let loops = (0..count()).map(one).collect::<Result<_, _>>()?;
        Ok(Busy { _loops: loops })
    }
}
