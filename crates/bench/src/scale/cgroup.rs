//! A share of this machine's processors, by the quota of a control group (version 1 or 2).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The period of the quota: short, so that a throttled process waits about as long as on a slower processor. Linux does
/// not allow shorter periods or quotas.
const PERIOD_US: u64 = 1_000;
/// Prefix of the groups' names; the creating process's id follows.
const PREFIX: &str = "ropewalk-bench-";
/// How long killed processes may take to leave their group.
const LEAVE: Duration = Duration::from_secs(5);

/// Run time of its processes together, in each period.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    quota_us: u64,
    period_us: u64,
}

impl Limit {
    /// Limits to this many processors; for less than one, the period is longer.
    fn of(processors: f64) -> Limit {
        let period = PERIOD_US as f64 / processors.clamp(0.001, 1.0);
        Limit {
            quota_us: ((processors * period).round() as u64).max(PERIOD_US),
            period_us: period.round() as u64,
        }
    }
}

/// A control group. Dropping it removes it, after its processes have ended.
#[derive(Debug)]
pub(super) struct Quota(PathBuf);

impl Quota {
    /// Creates a group whose processes may use `share` of all processors together.
    ///
    /// # Errors
    /// The reason why not, and how to fix it.
    pub(super) fn new(share: f64) -> Result<Quota, String> {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
        let limit = Limit::of(share * processors);
        let mounts = read(Path::new("/proc/self/mountinfo"))?;
        let own = read(Path::new("/proc/self/cgroup"))?;
        let hierarchy = Hierarchy::of(&mounts, &own)
            .ok_or("a CPU share needs control groups with the controller cpu, which are not mounted here: mount them, or omit \
                    --cpu and the experiments 3 and 5 at less than 100 %")?;
        hierarchy.make(limit)
    }

    /// Returns the same program inside the group.
    pub(super) fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("sh");
        wrapped
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.0.join("cgroup.procs"))
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        wrapped
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let until = std::time::Instant::now() + LEAVE;
        while let Err(error) = fs::remove_dir(&self.0) {
            if error.kind() == io::ErrorKind::NotFound {
                return;
            }
            if std::time::Instant::now() > until {
                tracing::warn!("{}: {error}: remove it with rmdir", self.0.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where groups with processor quotas are created.
#[derive(Debug, PartialEq)]
enum Hierarchy {
    /// `cpu.cfs_quota_us`.
    One(PathBuf),
    /// `cpu.max`.
    Two(PathBuf),
}

impl Hierarchy {
    /// Returns the hierarchy of this process, from `/proc/self/mountinfo` and `/proc/self/cgroup`.
    fn of(mounts: &str, own: &str) -> Option<Hierarchy> {
        // 36 35 98:0 ROOT MOUNT OPTIONS [optional fields] - TYPE SOURCE SUPER
        let mount = |kind: &str, controller: Option<&str>| {
            mounts.lines().find_map(|line| {
                let (front, back) = line.split_once(" - ")?;
                let mut words = back.split(' ');
                let is_kind = words.next()? == kind;
                let options = words.nth(1).unwrap_or_default();
                let has = controller.is_none_or(|c| options.split(',').any(|o| o == c));
                (is_kind && has).then_some(())?;
                let mut front = front.split(' ').skip(3);
                Some((front.next()?.to_owned(), PathBuf::from(front.next()?)))
            })
        };
        let group = |which: &dyn Fn(&str) -> bool| {
            own.lines().find_map(|line| {
                let mut words = line.splitn(3, ':').skip(1);
                which(words.next()?).then_some(())?;
                words.next()
            })
        };
        let inside = |(root, place): (String, PathBuf), group: &str| {
            // A mount may show only a part of the hierarchy, below its root.
            let below = group.strip_prefix(root.trim_end_matches('/')).unwrap_or(group);
            place.join(below.trim_start_matches('/'))
        };
        let is_cpu = |controllers: &str| controllers.split(',').any(|c| c == "cpu");
        if let (Some(mount), Some(group)) = (mount("cgroup", Some("cpu")), group(&is_cpu)) {
            return Some(Hierarchy::One(inside(mount, group)));
        }
        let group = group(&str::is_empty)?;
        Some(Hierarchy::Two(inside(mount("cgroup2", None)?, group)))
    }

    fn make(&self, limit: Limit) -> Result<Quota, String> {
        let Limit { quota_us, period_us } = limit;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        match self {
            Hierarchy::One(parent) => {
                sweep(parent);
                let quota = made(parent.join(name))?;
                write(&quota.0.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&quota.0.join("cpu.cfs_quota_us"), &quota_us.to_string())?;
                Ok(quota)
            }
            Hierarchy::Two(parent) => {
                // A group with processes cannot delegate the controller, but its parent may have done so.
                let _ = write(&parent.join("cgroup.subtree_control"), "+cpu");
                let places = [Some(parent.as_path()), parent.parent()];
                let mut error = String::new();
                for place in places.into_iter().flatten() {
                    sweep(place);
                    let quota = match made(place.join(&name)) {
                        Ok(quota) => quota,
                        Err(why) => {
                            error = why;
                            continue;
                        }
                    };
                    match write(&quota.0.join("cpu.max"), &format!("{quota_us} {period_us}")) {
                        Ok(()) => return Ok(quota),
                        Err(why) => error = why,
                    }
                }
                Err(error)
            }
        }
    }
}

/// Removes the groups that killed programs left.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((pid, _)) = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX)?.split_once('-'))
        else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            // A group with processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn made(path: PathBuf) -> Result<Quota, String> {
    fs::create_dir(&path).map_err(|e| refused(&path, &e))?;
    Ok(Quota(path))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| refused(path, &e))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn refused(path: &Path, error: &io::Error) -> String {
    format!(
        "{}: {error}: a CPU share needs a control group; run as root, or under `systemd-run --user --scope -p Delegate=yes`",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                       31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                       32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const TWO: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn both_versions_are_found_where_this_process_is() {
        let one = Hierarchy::of(ONE, "4:cpu,cpuacct:/user/a\n3:memory:/m\n0::/u\n");
        assert_eq!(
            one,
            Some(Hierarchy::One("/sys/fs/cgroup/cpu,cpuacct/user/a".into()))
        );
        let two = Hierarchy::of(TWO, "0::/user.slice/x.scope\n");
        assert_eq!(
            two,
            Some(Hierarchy::Two("/sys/fs/cgroup/user.slice/x.scope".into()))
        );
        // A container sees only the groups below its own.
        let inner = TWO.replace(" / /sys", " /docker/1 /sys");
        let two = Hierarchy::of(&inner, "0::/docker/1/x\n");
        assert_eq!(two, Some(Hierarchy::Two("/sys/fs/cgroup/x".into())));
        for (mounts, own) in [
            ("", ""),
            (TWO, ""),
            ("", "0::/\n"),
            ("x - y\n", "0::/\n"),
            (ONE, "garbage\n"),
        ] {
            assert_eq!(Hierarchy::of(mounts, own), None, "{mounts} {own}");
        }
    }

    #[test]
    fn a_wrapped_command_keeps_its_words_and_variables() {
        let quota = Quota("/nowhere/at/all".into());
        let mut command = Command::new("prog");
        command.args(["a b", "c"]).env("X", "1").env_remove("Y");
        let wrapped = quota.wrap(&command);
        let words: Vec<_> = wrapped.get_args().skip(2).collect();
        assert_eq!(words, ["/nowhere/at/all/cgroup.procs", "prog", "a b", "c"]);
        assert_eq!(wrapped.get_envs().count(), 2);
    }

    #[test]
    fn quotas_are_what_linux_takes() {
        let of = |p| {
            let Limit { quota_us, period_us } = Limit::of(p);
            (quota_us, period_us)
        };
        assert_eq!(
            [of(2.0), of(1.5), of(1.0), of(0.75), of(0.5), of(0.01)],
            [
                (2_000, 1_000),
                (1_500, 1_000),
                (1_000, 1_000),
                (1_000, 1_333),
                (1_000, 2_000),
                (1_000, 100_000)
            ]
        );
    }

    #[test]
    fn groups_of_the_dead_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let group = |pid: &str| folder.path().join(format!("{PREFIX}{pid}-0"));
        let own = std::process::id().to_string();
        for pid in ["999999999", &own, "no-pid"] {
            fs::create_dir(group(pid)).expect("a folder");
        }
        sweep(folder.path());
        let left: Vec<_> = ["999999999", &own].map(|pid| group(pid).exists()).into();
        assert_eq!(left, [false, true]);
    }

    #[test]
    fn a_refusal_names_the_place_and_the_fix() {
        let error = Hierarchy::One("/proc/self".into())
            .make(Limit::of(1.0))
            .expect_err("not there");
        assert!(
            error.contains("/proc/self/ropewalk-bench") && error.contains("root"),
            "{error}"
        );
    }
}
