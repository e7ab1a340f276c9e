//! Limits of this user.

use super::finding::Finding;
use rustix::process::{Resource, getrlimit};

/// File descriptors that a process with a few hundred endpoints needs.
const FILES: u64 = 4096;

pub(super) fn check() -> Vec<Finding> {
    vec![open_files(), file_size(), kernel()]
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let found = format!(
        "{} now, {} at most (a connection takes one to three)",
        number(limit.current),
        number(limit.maximum)
    );
    if hard < FILES {
        Finding::warning(
            "open files",
            found,
            format!("raise the hard limit to {FILES} or more: ulimit -Hn, LimitNOFILE= of systemd"),
        )
    } else {
        // Programs raise the soft limit themselves.
        Finding::ok("open files", found)
    }
}

fn file_size() -> Finding {
    let limit = getrlimit(Resource::Fsize);
    match limit.current {
        None => Finding::ok("file size", "unlimited"),
        Some(bytes) => Finding::warning(
            "file size",
            format!("limited to {bytes} bytes, which also limits messages"),
            "ulimit -f unlimited",
        ),
    }
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let found = format!("Linux {release}, {}", uname.version().to_string_lossy());
    match version(&release) {
        Some(v) if v < (5, 3) => Finding::problem(
            "kernel",
            found,
            "5.3 or newer is needed (pidfd_open, F_SEAL_FUTURE_WRITE)",
        ),
        Some(v) if v < (5, 14) => Finding::warning(
            "kernel",
            found,
            "5.14 or newer maps new memory in advance (MADV_POPULATE_WRITE); before it, first messages are slower",
        ),
        _ => Finding::ok("kernel", found),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn number(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".into(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_whatever_follows() {
        assert_eq!(version("6.1.0-28-amd64"), Some((6, 1)));
        assert_eq!(version("5.15.0"), Some((5, 15)));
        assert_eq!(version("4.19-rt"), Some((4, 19)));
        assert_eq!(version("unknown"), None);
    }
}
