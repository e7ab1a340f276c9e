//! The rows of the validation: what runs, and the expected results.

mod contention;
mod goodput;
mod impairments;
mod phases;

use super::many_hosts;
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Ground;

/// IP packets of the goodput rows.
const IP_BYTES: usize = 1500;
/// Retries of a frame, as in the lab's scenarios.
const RETRIES: u8 = 7;
/// Source of a target that is the scenario's own setting.
const OWN: &str = "the scenario's own setting";

/// Runs in a lab, and returns its numbers.
type Run = Box<dyn Fn(&Ground<'_>) -> Result<(Values, Timing), RunError>>;

/// One row.
pub(super) struct Check {
    pub(super) system: &'static str,
    pub(super) what: &'static str,
    pub(super) scenario: &'static str,
    pub(super) params: Params,
    pub(super) targets: Vec<Target>,
    pub(super) source: &'static str,
    /// Whether its numbers are valid only if the lab kept its time.
    pub(super) needs_time: bool,
    pub(super) run: Run,
}

/// A scenario's name, and its text if it is not shipped.
type ScenarioText = (&'static str, Option<String>);

const SHIPPED: Option<String> = None;

/// All rows, in the order of the table.
pub(super) fn all(quick: bool) -> Vec<Check> {
    let mut rows = goodput::rows(if quick { 4 } else { 10 });
    rows.extend(impairments::rows(quick));
    rows.extend(phases::rows());
    rows.push(contention::fairness(if quick { 10 } else { 20 }));
    rows.extend(contention::lateness(if quick { 5 } else { 15 }));
    rows.extend([many_hosts::check(false), many_hosts::check(true)]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_targets_that_name_what_is_measured() {
        let rows = all(true);
        assert!(rows.len() > 20, "{}", rows.len());
        for row in &rows {
            for target in &row.targets {
                assert!(target.at_least <= target.at_most, "{}: {target}", row.what);
            }
        }
    }
}
