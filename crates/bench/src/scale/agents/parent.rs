//! The parent process of an agent: removes what the agent leaves, however the agent ends.

use super::options::Options;
use crate::kit::error::Error;
use crate::kit::group::how;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use std::fs;
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Prefix of the folder in which an agent and its processes write.
const FOLDER: &str = "rwa-";
/// How long killed processes may take to end.
const END: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Runs an agent on standard input and output, and removes what it leaves. Blocks until the agent has ended.
///
/// # Errors
/// [`Error`]: it does not start, or was killed.
pub fn serve(options: &Options) -> Result<(), Error> {
    if std::io::stdin().is_terminal() {
        return Err(Error::Input(
            "an agent communicates with `ropewalk bench agent HOST`, which starts it: it is not for terminals".into(),
        ));
    }
    let system = |doing| move |source| Error::System { doing, source };
    // A process that loses its parent becomes a child of this process.
    set_child_subreaper(Some(getpid())).map_err(|e| system("becoming a child subreaper")(e.into()))?;
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir();
    let folder = folder.map_err(|source| Error::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let program = crate::kit::program::ropewalk()?;
    let mut command = Command::new(program);
    command
        .args(["bench", "scale-agent"])
        .env("TMPDIR", folder.path());
    // If this process's group is killed, the agent has the time to end what it started.
    command.process_group(0);
    if let Some(peers) = options.peers() {
        command.arg("--peers").arg(peers);
    }
    let agent = command.spawn().map_err(system("starting an agent"))?;
    let status = until_ended(Pid::from_child(&agent));
    end_all();
    let path = folder.path().to_owned();
    folder.close().map_err(|source| Error::File { path, source })?;
    match status.map(|s| ExitStatus::from_raw(s.as_raw())) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Error::Nothing(format!("the agent {}", how(status)))),
        None => Err(Error::Nothing("the agent is gone".into())),
    }
}

/// Returns whether a folder is one of those that this module creates.
pub(super) fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|n| n.to_str());
    name.is_some_and(|n| n.starts_with(FOLDER))
}

/// Waits for a child, and reaps all others that end before it.
fn until_ended(child: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Kills all children, and their children in turn, until none are left.
fn end_all() {
    let until = Instant::now() + END;
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let children = children();
        if children.is_empty() || Instant::now() > until {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the children of this process.
fn children() -> Vec<Pid> {
    let own = getpid();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|p| p.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent(&stat) == Some(own.as_raw_nonzero().get())
    };
    pids.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// Returns the fourth field of `/proc/PID/stat`; the second is a name in parentheses with any content.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_found_behind_any_name() {
        assert_eq!(parent("7 (a) S) x) S 42 7 7 0"), Some(42));
        assert_eq!(
            (parent(""), parent("7 (a"), parent("7 (a) S")),
            (None, None, None)
        );
        let mut child = Command::new("sleep").arg("1000").spawn().expect("starts");
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        child.kill().expect("is there");
        child.wait().expect("ends");
        assert!(!children().contains(&pid));
    }

    #[test]
    fn only_folders_of_agents_are_recognized() {
        assert!(
            is_ours(Path::new("/tmp/rwa-x1y2")) && !is_ours(Path::new("/tmp")) && !is_ours(Path::new("/"))
        );
    }
}
