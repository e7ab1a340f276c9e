//! System calls, counted by strace in separate runs, because tracing slows everything down.

use super::Medium;
use super::point::Point;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Messages of two runs; their difference excludes start and end.
const MESSAGES: [u32; 2] = [50, 250];
/// A traced node keeps up with this many per second.
const HZ: f64 = 50.0;
/// More processes take too long to start when they are traced.
const NODES: u32 = 8;

/// Returns whether calls at a point can be counted: everything runs on this machine, and at its own rate.
pub(super) fn can_be_counted(point: &Point) -> bool {
    point.medium == Medium::Host && point.nodes <= NODES && point.cpu_share == 1.0 && !point.warm
}

/// The two runs.
pub(super) fn runs(point: &Point) -> [Point; 2] {
    MESSAGES.map(|messages| Point {
        messages,
        hz: point.hz.min(HZ),
        ..point.clone()
    })
}

/// Returns system calls per message and its answers, from the two runs' sums.
pub(super) fn per_message(sums: [u64; 2], point: &Point) -> f64 {
    let messages =
        f64::from(MESSAGES[1] - MESSAGES[0]) * f64::from(point.senders()) * f64::from(point.answers());
    sums[1].saturating_sub(sums[0]) as f64 / messages
}

/// Returns the same program under strace, which counts into a file.
pub(super) fn traced(command: &Command, file: &Path) -> Command {
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-c", "-qq", "-o"])
        .arg(file)
        .arg(command.get_program());
    traced.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    traced
}

/// Returns the file with the count of a node's calls.
pub(super) fn file(run: &Path, node: usize) -> PathBuf {
    run.join(format!("calls{node}"))
}

/// Returns all calls of a run's nodes.
///
/// # Errors
/// A file is missing, or is not strace's.
pub(super) fn sum(run: &Path, nodes: usize) -> Result<u64, String> {
    let mut all = 0;
    for path in (0..nodes).map(|n| file(run, n)) {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        all += count(&text).ok_or_else(|| format!("{}: not what strace -c writes", path.display()))?;
    }
    Ok(all)
}

/// Parses `% time, seconds, usecs/call, calls, [errors,] name`, between two rules of dashes.
fn count(text: &str) -> Option<u64> {
    let is_rule = |line: &&str| line.starts_with("------");
    let rows = text
        .lines()
        .skip_while(|l| !is_rule(l))
        .skip(1)
        .take_while(|l| !is_rule(l));
    let mut sum = 0u64;
    let mut any = false;
    for row in rows {
        sum = sum.checked_add(row.split_whitespace().nth(3)?.parse().ok()?)?;
        any = true;
    }
    any.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::*;

    const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall\n\
                         ------ ----------- ----------- --------- --------- ----------------\n \
                         60.00    0.000010           2       105         3 futex\n \
                         40.00    0.000005           1        20           write\n\
                         ------ ----------- ----------- --------- --------- ----------------\n\
                         100.00    0.000015           1       125         3 total\n";

    #[test]
    fn tables_of_strace_are_summed_or_refused() {
        assert_eq!(count(TABLE), Some(125));
        for bad in [
            "",
            "strace: exec: no such file",
            "------ -\n------ -\n",
            "------ -\n1 2 3 x y\n",
        ] {
            assert_eq!(count(bad), None, "{bad}");
        }
        assert!(sum(Path::new("/nowhere"), 1).is_err());
        assert_eq!(sum(Path::new("/nowhere"), 0), Ok(0));
    }

    #[test]
    fn starting_and_ending_is_left_out() {
        let point = Point {
            nodes: 4,
            ..example()
        };
        assert!(
            can_be_counted(&point)
                && !can_be_counted(&Point {
                    medium: Medium::Machines,
                    ..point.clone()
                })
        );
        let [few, many] = runs(&point);
        assert_eq!((few.messages, many.messages, few.hz), (50, 250, 50.0));
        assert_eq!(per_message([5_000, 9_000], &point), 10.0);
        assert_eq!(per_message([5_000, 4_000], &point), 0.0);
    }
}
