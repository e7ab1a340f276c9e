//! Process 1 of a lab: creates the hosts, moves their frames, answers requests, reaps orphans.

use super::air::{Air, Handle};
use super::control;
use super::folder;
use super::host::{self, Base, Doing, Failed, Namespaces};
use super::plan::Plan;
use crate::Scenario;
use clock::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time that the programs inside have between SIGTERM and the end.
const GRACE: Duration = Duration::from_secs(2);

/// A lab as its own process sees it.
pub(crate) struct Emulator {
    /// The lab's name, which is that of its folder.
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    pub(crate) plan: Plan,
    pub(crate) hosts: Vec<Namespaces>,
    /// The lab's user namespace, if it runs without root.
    pub(crate) user: Option<OwnedFd>,
    pub(crate) pid: OwnedFd,
    pub(crate) air: Handle,
    /// A byte written here ends the lab.
    pub(crate) end: UnixStream,
}

/// Runs the lab whose folder is `path` until it receives a request or signal to end; calls `ready` once everything is
/// up.
///
/// Standard input is the lock of the lab's folder; it is kept as long as the process lives.
pub(crate) fn run(
    place: &str,
    path: &Path,
    congestion_control: &str,
    user: bool,
    ready: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), Failed> {
    let _lock = take_standard_input()?;
    let _ = rustix::process::setsid();
    raise_open_files();
    let text = std::fs::read_to_string(path.join(folder::SCENARIO)).doing("reading the scenario")?;
    let mut scenario = Scenario::parse(&text, place).doing("reading the scenario again")?;
    let doing = "reading the scenario again";
    scenario.set_congestion_control(congestion_control).doing(doing)?;
    let plan = scenario.plan().doing("reading the scenario again")?;
    std::fs::write(path.join(folder::HOSTS), plan.etc_hosts()).doing("writing the hosts' names")?;

    let base = Base::prepare()?;
    let (mut hosts, mut taps) = (Vec::new(), Vec::new());
    taps.resize_with(plan.interfaces.len(), || None);
    for index in 0..plan.hosts.len() {
        let (namespaces, devices) = host::make(&base, &plan, index, path)
            .map_err(|e| Failed(format!("host {}: {e}", plan.hosts[index])))?;
        hosts.push(namespaces);
        for (interface, tap) in plan.of_host[index].iter().zip(devices) {
            taps[*interface] = Some(tap);
        }
    }
    base.enter()?;

    let listener = UnixListener::bind(path.join(folder::SOCKET)).doing("binding the control socket")?;
    listener.set_nonblocking(true).doing("the control socket")?;
    let (end, ended) = UnixStream::pair().doing("making a socket pair")?;
    let children = on_signals(&[SIGCHLD])?;
    for signal in [SIGTERM, SIGINT] {
        let end = end.try_clone().doing("copying a descriptor")?;
        signal_hook::low_level::pipe::register(signal, end).doing("watching signals")?;
    }
    // The first thread starts here: only single-threaded processes may enter mount and user namespaces.
    let taps = taps
        .into_iter()
        .map(|t| t.expect("each interface has its device"))
        .collect();
    let (air, thread) = Air::start(&scenario, &plan, taps)?;
    let emulator = Arc::new(Emulator {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        user: user.then(|| open("/proc/self/ns/user")).transpose()?,
        pid: open("/proc/self/ns/pid")?,
        end: end.try_clone().doing("copying a descriptor")?,
        scenario,
        plan,
        hosts,
        air,
    });
    // If this fails, the process that asked for the lab has gone, and the lab ends too.
    ready().doing("reporting that the lab is up")?;
    rustix::stdio::dup2_stdout(std::io::stderr()).doing("closing standard output")?;

    let visitors = control::Visitors::default();
    loop {
        let mut fds = [
            PollFd::new(&listener, PollFlags::IN),
            PollFd::new(&ended, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        // Wakes up regularly, to check that the air still moves.
        let until = clock::monotonic() + Duration::from_secs(1);
        clock::wait(&mut fds, Some(until), Duration::ZERO).doing("waiting")?;
        let [connection, end, child] = fds.map(|f| !f.revents().is_empty());
        if child {
            drain(&children);
            reap();
        }
        if connection && let Ok((stream, _)) = listener.accept() {
            visitors.receive(&emulator, stream);
        }
        if end {
            break;
        }
        if thread.is_finished() {
            return Err(Failed("the emulator's thread ended".into()));
        }
    }
    end_others();
    Ok(())
}

/// Asks every process of this PID namespace to end, and waits a little; the kernel kills the rest when process 1 ends.
fn end_others() {
    let until = clock::monotonic() + GRACE;
    for pid in others() {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
    while others().next().is_some() && clock::monotonic() < until {
        reap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn others() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != 1)
        .filter_map(Pid::from_raw)
}

/// Reaps orphans of the lab, which become children of process 1.
fn reap() {
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}

fn take_standard_input() -> Result<OwnedFd, Failed> {
    let lock = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).doing("keeping the lock")?;
    let null = open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null).doing("closing standard input")?;
    Ok(lock)
}

/// Each host holds four descriptors for its namespaces and one for each device.
fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

fn on_signals(signals: &[i32]) -> Result<UnixStream, Failed> {
    let (read, write) = UnixStream::pair().doing("making a socket pair")?;
    read.set_nonblocking(true).doing("making a socket pair")?;
    for signal in signals {
        let write = write.try_clone().doing("copying a descriptor")?;
        signal_hook::low_level::pipe::register(*signal, write).doing("watching signals")?;
    }
    Ok(read)
}

fn drain(mut stream: &UnixStream) {
    let mut buffer = [0; 64];
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
}

fn open(path: &str) -> Result<OwnedFd, Failed> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .doing(format_args!("opening {path}"))
}
