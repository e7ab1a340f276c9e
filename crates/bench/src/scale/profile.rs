//! Distribution of processor time, sampled by perf in separate runs, because sampling takes time, too.

use super::counters::tree;
use super::point::Point;
use crate::kit::error::RunError;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Samples per second of a processor; not a divisor of a schedule's rates.
const HZ: &str = "997";
/// Number of functions in a result.
const NAMED: usize = 12;
/// With fewer samples, the result is meaningless.
const LEAST: u64 = 100;
/// Hint for when perf is missing.
const HINT: &str = "perf is needed for --profile: `apt-get install linux-perf`, and root or `sysctl kernel.perf_event_paranoid=1`";

/// Processor time for a message and its answer, in all processes of a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Number of samples.
    pub samples: u64,
    /// Shares by activity: system calls of the kernel, libraries, and the namespaces of programs.
    pub shares: BTreeMap<String, f64>,
    /// The functions with the largest shares.
    pub functions: Vec<Function>,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Program, library or `kernel`.
    pub of: String,
    /// Share of all samples.
    pub share: f64,
}

impl Profile {
    /// Returns the shares in one line, largest first.
    pub(super) fn line(&self) -> String {
        let mut shares: Vec<_> = self.shares.iter().collect();
        shares.sort_by(|a, b| b.1.total_cmp(a.1));
        let shares = shares.iter().filter(|s| *s.1 >= 0.01).take(9);
        let shares: Vec<_> = shares
            .map(|(of, share)| format!("{of} {:.0} %", *share * 100.0))
            .collect();
        shares.join(", ")
    }
}

/// Returns whether a point can be profiled: everything runs on this machine, on all processors.
pub(super) fn can_be_taken(point: &Point) -> bool {
    !point.medium.is_real() && point.cpu_share == 1.0 && !point.warm
}

/// A running perf; dropping it ends it.
pub(super) struct Sampler {
    child: Child,
    file: PathBuf,
    messages: PathBuf,
}

impl Sampler {
    /// Samples the processes, including their future threads, into a file in the folder.
    pub(super) fn start(pids: &[u32], folder: &Path) -> Result<Sampler, RunError> {
        let (file, messages) = (folder.join("perf.data"), folder.join("perf.txt"));
        let pids = pids.iter().flat_map(|pid| tree(*pid));
        let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
        let log = File::create(&messages).map_err(|e| format!("{}: {e}", messages.display()))?;
        // The machine's own clock: virtual machines seldom have hardware counters.
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-e", "cpu-clock", "-F", HZ, "-g", "-p"]);
        command.arg(pids.join(",")).arg("-o").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|e| format!("{HINT} ({e})"))?;
        Ok(Sampler {
            child,
            file,
            messages,
        })
    }

    /// Ends it and reads the samples.
    pub(super) fn end(mut self) -> Result<Profile, RunError> {
        self.interrupt();
        // It ends by the signal, or normally.
        let _ = self.child.wait();
        let mut script = Command::new("perf");
        script.args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]);
        let script = script
            .arg(&self.file)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let script = script.map_err(|e| format!("{HINT} ({e})"))?;
        let profile = profile(&String::from_utf8_lossy(&script.stdout));
        if profile.samples < LEAST {
            let said = std::fs::read_to_string(&self.messages).unwrap_or_default();
            let said = said
                .lines()
                .find(|l| !l.trim().is_empty())
                .unwrap_or("it printed nothing");
            return Err(format!("perf took {} samples: {said}; {HINT}", profile.samples).into());
        }
        Ok(profile)
    }

    fn interrupt(&mut self) {
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), Pid::from_raw(self.child.id() as i32)) {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.child.wait();
    }
}

/// Parses samples. Each has lines `address function (object)` from the innermost on; an empty line separates samples.
fn profile(script: &str) -> Profile {
    let mut shares = BTreeMap::<String, u64>::new();
    let mut functions = BTreeMap::<(String, String), u64>::new();
    let mut samples = 0u64;
    let mut stack = Vec::new();
    for line in script.lines().chain([""]) {
        if !line.trim().is_empty() {
            stack.extend(frame(line));
            continue;
        }
        if let Some((name, of)) = stack.first() {
            samples += 1;
            *shares.entry(kind(&stack)).or_insert(0) += 1;
            *functions
                .entry(((*name).to_owned(), (*of).to_owned()))
                .or_insert(0) += 1;
        }
        stack.clear();
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|f| std::cmp::Reverse(f.1));
    let share = |n: u64| n as f64 / samples.max(1) as f64;
    let function = |((name, of), n): ((String, String), u64)| Function {
        name,
        of,
        share: share(n),
    };
    Profile {
        samples,
        shares: shares.into_iter().map(|(of, n)| (of, share(n))).collect(),
        functions: functions.into_iter().take(NAMED).map(function).collect(),
    }
}

/// Returns a function and its object, from `address function (object)`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (name, object) = rest.rsplit_once(" (")?;
    let object = object.strip_suffix(')')?;
    let of = match object.rsplit('/').next() {
        Some(file) if !object.starts_with("[kernel") && !object.ends_with(".ko") => file,
        _ => "kernel",
    };
    Some((name.trim(), of))
}

/// Returns the activity: for the kernel, the system call.
fn kind(stack: &[(&str, &str)]) -> String {
    let Some((name, of)) = stack.first() else {
        return String::new();
    };
    if *of == "kernel" {
        let mut calls = stack.iter().filter_map(|(name, _)| {
            let prefixes = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];
            prefixes.iter().find_map(|p| name.strip_prefix(p))
        });
        let any = |part: &str| stack.iter().any(|(name, _)| name.contains(part));
        return match calls.next_back() {
            Some(call) => format!("kernel: {call}"),
            None if any("page_fault") => "kernel: page faults".into(),
            None if any("exit_to_user_mode") => "kernel: giving way to others".into(),
            None if any("syscall") || any("SYSCALL") || any("el0_svc") => {
                "kernel: entering and leaving".into()
            }
            None if any("sysvec") || any("interrupt") || any("irq_exit") => "kernel: interrupts".into(),
            None => "kernel: other".into(),
        };
    }
    // A program with many parts: `<link::daemon::Daemon<C>>::run`, `ros::TransportTCP::write(…)`.
    let bare = name.trim_start_matches(['<', '&', '*', '(']);
    let bare = bare.strip_prefix("mut ").unwrap_or(bare);
    let bare = bare.strip_prefix("dyn ").unwrap_or(bare);
    let ends = |c: char| !(c.is_alphanumeric() || c == '_');
    let space = bare.split(ends).next().unwrap_or_default();
    if !space.is_empty() && bare[space.len()..].starts_with("::") {
        return format!("{of}: {space}");
    }
    (*of).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::super::{Medium, point::Point};
    use super::*;

    #[test]
    fn samples_are_sorted_by_call_library_and_namespace() {
        let sample = |lines: &[&str]| lines.iter().map(|l| format!("\t{l}\n")).collect::<String>() + "\n";
        let script = [
            sample(&[
                "ffffffff81a0 _raw_spin_unlock_irqrestore ([kernel.kallsyms])",
                "ffffffff81a1 __x64_sys_sendmsg ([kernel.kallsyms])",
                "ffffffff81a2 do_syscall_64 ([kernel.kallsyms])",
            ])
            .repeat(5),
            sample(&[
                "ffffffff81b0 veth_xmit (/lib/modules/6.1/veth.ko)",
                "ffffffff81 asm_sysvec_apic_timer_interrupt ([kernel.kallsyms])",
            ]),
            sample(&["7f00 __memmove_avx (/usr/lib/libc.so.6)"]),
            sample(&["55d0 <link::daemon::Daemon<C>>::run (/opt/ropewalk)"]).repeat(2),
            sample(&["55d1 proto::radio::poll (a b) (/opt/ropewalk)"]),
            "no frame\n\n\n".to_owned(),
        ]
        .concat();
        let p = profile(&script);
        assert_eq!(p.samples, 10);
        for (of, share) in [
            ("kernel: sendmsg", 0.5),
            ("kernel: interrupts", 0.1),
            ("libc.so.6", 0.1),
            ("ropewalk: link", 0.2),
            ("ropewalk: proto", 0.1),
        ] {
            assert_eq!(p.shares.get(of), Some(&share), "{of}: {p:?}");
        }
        assert_eq!(
            (p.functions[0].name.as_str(), p.functions[0].of.as_str()),
            ("_raw_spin_unlock_irqrestore", "kernel")
        );
        assert!(
            p.line().starts_with("kernel: sendmsg 50 %, ropewalk: link 20 %"),
            "{}",
            p.line()
        );
        assert_eq!(profile("").samples, 0);
        assert_eq!(profile("garbage (\n\n").samples, 0);
    }

    #[test]
    fn remote_and_throttled_points_are_not_sampled() {
        assert!(can_be_taken(&example()));
        let real = Point {
            medium: Medium::Machines,
            ..example()
        };
        let half = Point {
            cpu_share: 0.5,
            ..example()
        };
        assert!(!can_be_taken(&real) && !can_be_taken(&half));
    }

    #[test]
    fn a_process_that_works_is_seen_to_or_what_is_missing_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("starts");
        let taken = Sampler::start(&[busy.id()], folder.path()).and_then(|sampler| {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            sampler.end()
        });
        let _ = busy.kill();
        let _ = busy.wait();
        match taken {
            Ok(profile) => {
                let sum: f64 = profile.shares.values().sum();
                assert!(
                    (sum - 1.0).abs() < 1e-9 && !profile.functions.is_empty(),
                    "{profile:?}"
                );
            }
            Err(RunError::Failed(why)) => assert!(why.contains("linux-perf"), "{why}"),
            Err(RunError::Stopped) => unreachable!("it is not stopped"),
        }
    }
}
