//! Resource usage of the processes of a run, from `/proc`.

use crate::kit::usage::{field, thread_usage};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// All threads of some processes and of their descendants, at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot(BTreeMap<u32, Thread>);

#[derive(Clone, Debug)]
struct Thread {
    name: String,
    cpu: Duration,
    waited: Duration,
    switches: u64,
}

/// Usage between two instants.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub(super) cpu_s: f64,
    pub(super) switches: u64,
    /// The thread with the highest sum of running and waiting time.
    pub(super) busiest: Option<ThreadUsed>,
}

/// The same for a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ThreadUsed {
    pub(super) name: String,
    pub(super) cpu_s: f64,
    /// Time for which it was runnable while others ran.
    pub(super) waited_s: f64,
}

impl Snapshot {
    /// Reads a process and its descendants; ended ones are left out.
    pub(super) fn of(pid: u32) -> Snapshot {
        let mut all = Snapshot::default();
        for pid in tree(pid) {
            for task in fs::read_dir(format!("/proc/{pid}/task"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let Some(tid) = task.file_name().to_str().and_then(|t| t.parse().ok()) else {
                    continue;
                };
                let of = thread_usage(&task.path());
                let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                let switches = |name| field(&of.status, name).unwrap_or(0);
                all.0.insert(
                    tid,
                    Thread {
                        name: name.trim().to_owned(),
                        cpu: of.cpu,
                        waited: of.waited,
                        switches: switches("voluntary_ctxt_switches:")
                            + switches("nonvoluntary_ctxt_switches:"),
                    },
                );
            }
        }
        all
    }

    pub(super) fn add(&mut self, other: Snapshot) {
        self.0.extend(other.0);
    }

    pub(super) fn since(&self, earlier: &Snapshot) -> Used {
        let mut used = Used::default();
        for (tid, thread) in &self.0 {
            let before = earlier.0.get(tid);
            let since = |of: fn(&Thread) -> Duration| {
                let before = before.map_or(Duration::ZERO, of);
                of(thread).saturating_sub(before).as_secs_f64()
            };
            let of = ThreadUsed {
                name: thread.name.clone(),
                cpu_s: since(|t| t.cpu),
                waited_s: since(|t| t.waited),
            };
            used.cpu_s += of.cpu_s;
            used.switches += thread.switches.saturating_sub(before.map_or(0, |t| t.switches));
            let wanted = |t: &ThreadUsed| t.cpu_s + t.waited_s;
            if used.busiest.as_ref().is_none_or(|b| wanted(b) < wanted(&of)) {
                used.busiest = Some(of);
            }
        }
        used
    }
}

/// Returns the memory of a process and its descendants in KiB: shared memory counts proportionally, so that processes
/// can be summed.
pub(super) fn memory_kib(pid: u32) -> u64 {
    let one = |pid: u32| {
        let shares = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        let pss = shares.and_then(|s| field(&s, "Pss:"));
        pss.or_else(|| field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:"))
    };
    tree(pid).into_iter().filter_map(one).sum()
}

/// Returns a process and its descendants.
pub(super) fn tree(pid: u32) -> Vec<u32> {
    let (mut all, mut at) = (vec![pid], 0);
    while at < all.len() {
        let pid = all[at];
        at += 1;
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|c| c.parse::<u32>().ok());
            all.extend(children.filter(|c| *c != pid));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_counted_with_what_it_started() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; cat";
        let mut child = Command::new("sh")
            .args(["-c", &format!("sh -c '{script}'; true")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("reads");
        let used = Snapshot::of(child.id()).since(&Snapshot::default());
        let memory = memory_kib(child.id());
        drop(child.stdin.take());
        child.wait().expect("ends");
        assert!(used.cpu_s > 0.0 && memory > 0, "{used:?} {memory}");
        assert!(tree(child.id()).len() == 1 && Snapshot::of(child.id()).0.is_empty());
    }

    #[test]
    fn only_what_lies_between_counts() {
        let at = |cpu, waited, switches| Thread {
            name: format!("t{switches}"),
            cpu: Duration::from_secs(cpu),
            waited: Duration::from_secs(waited),
            switches,
        };
        let before = Snapshot([(1, at(5, 8, 7))].into());
        let after = Snapshot([(1, at(6, 11, 9)), (2, at(3, 0, 1))].into());
        let used = after.since(&before);
        assert_eq!((used.cpu_s, used.switches), (4.0, 3));
        let busiest = used.busiest.expect("a thread");
        assert_eq!(
            (busiest.name.as_str(), busiest.cpu_s, busiest.waited_s),
            ("t9", 1.0, 3.0)
        );
    }
}
