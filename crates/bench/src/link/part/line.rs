//! A serial line between two pseudo-terminals, as slow as a real one.
//!
//! A pseudo-terminal accepts bytes as fast as they are written, whatever its speed setting. So this process delays each
//! byte, while carrying it to the other terminal, by the time that it would take on a wire.

use super::{Gate, PeerError, say};
use rustix::event::{PollFd, PollFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use stats::Time;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bits on the line for each byte: start, eight, stop.
const BITS: u64 = 10;
/// Bytes that are carried together: this delays the bytes after them by less than a millisecond at 115,200 baud.
const TOGETHER: usize = 8;
const LOOK: Duration = Duration::from_millis(100);

/// Creates two terminals, links to them at these paths, and carries bytes between them until it is stopped.
pub(super) fn run(baud: u32, paths: &[PathBuf; 2]) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let ends = [terminal(&paths[0])?, terminal(&paths[1])?];
    let byte = Duration::from_nanos(BITS * 1_000_000_000 / u64::from(baud));
    say(&"ready")?;
    std::thread::scope(|scope| {
        let ways = [(&ends[0], &ends[1]), (&ends[1], &ends[0])].map(|(from, to)| {
            let gate = gate.clone();
            scope.spawn(move || carry(from, to, byte, &gate))
        });
        let mut ended = ways
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        ended.try_for_each(|way| way)
    })?;
    paths.iter().for_each(|p| drop(std::fs::remove_file(p)));
    Ok(())
}

/// The carrying end, and the other end, kept open so that it exists while no program has opened it.
struct Terminal {
    master: OwnedFd,
    _slave: OwnedFd,
}

fn terminal(link: &Path) -> io::Result<Terminal> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let name = Path::new(std::str::from_utf8(name.to_bytes()).map_err(io::Error::other)?).to_owned();
    let slave = std::fs::OpenOptions::new().read(true).write(true).open(&name)?;
    // No echo before the link configures the terminal itself.
    let mut raw = tcgetattr(&slave)?;
    raw.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &raw)?;
    std::os::unix::fs::symlink(&name, link)?;
    Ok(Terminal {
        master,
        _slave: slave.into(),
    })
}

/// Carries bytes in one direction, each after its time on the line.
fn carry(from: &Terminal, to: &Terminal, byte: Duration, gate: &Gate) -> Result<(), PeerError> {
    let mut free = Time::ZERO;
    let mut bytes = [0; TOGETHER];
    while !gate.stopped() {
        let now = clock::monotonic();
        let mut fds = [PollFd::from_borrowed_fd(from.master.as_fd(), PollFlags::IN)];
        if !clock::wait(&mut fds, Some(now + LOOK), Duration::ZERO)? {
            continue;
        }
        let came = rustix::io::read(&from.master, &mut bytes).map_err(io::Error::from)?;
        // From ideal times, so that a late wake-up is caught up.
        free = free.max(clock::monotonic() - byte) + byte * came as u32;
        clock::sleep_until(free, clock::SPIN, || gate.stopped())?;
        let mut rest = &bytes[..came];
        while !rest.is_empty() {
            let written = rustix::io::write(&to.master, rest).map_err(io::Error::from)?;
            rest = &rest[written..];
        }
    }
    Ok(())
}
