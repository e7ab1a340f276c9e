//! The coordinator's end of one agent.

use super::lines::Lines;
use super::machine::Machine;
use super::options::Options;
use super::protocol::{self, BEAT, LONGEST, Line, Report, SILENT};
use super::reports::Reports;
use crate::kit::error::Error;
use crate::kit::group::{Group, how};
use crate::kit::processes::keep_last_lines;
use clock::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of orders that wait to be written: a running agent takes each at once.
const ORDERS: usize = 64;
/// How long an agent may take to end after its input ends.
const END: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// A running agent. Dropping it ends it, with all that it started.
pub(super) struct Agent {
    pub(super) host: String,
    orders: Option<SyncSender<String>>,
    group: Arc<Mutex<Group>>,
}

impl Agent {
    /// Starts the agent. Its output goes to its entry in the `Reports`.
    ///
    /// # Errors
    /// [`Error::Nothing`]: the command that reaches it does not start.
    pub(super) fn start(
        who: usize,
        machine: &Machine,
        options: &Options,
        peers: Option<&PathBuf>,
        reports: &Arc<Reports>,
    ) -> Result<Agent, Error> {
        let failed = |program: &str, e: std::io::Error| {
            let fix = if e.kind() == ErrorKind::NotFound {
                ": install it, or set another command to reach the machines with --reach"
            } else {
                ""
            };
            Error::Nothing(format!("cannot start {program}: {e}{fix}"))
        };
        let mut command = machine
            .command(options, peers)
            .map_err(|e| failed("ropewalk", e))?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group =
            Group::start(&mut command).map_err(|e| failed(&command.get_program().to_string_lossy(), e))?;
        let child = group.child();
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Arc::new(Mutex::new(group));
        let complaints = Arc::new(Mutex::default());
        let keep = Arc::clone(&complaints);
        let listener = std::thread::spawn(move || errors.into_iter().for_each(|e| keep_last_lines(e, &keep)));
        let ear = Ear {
            who,
            machine: machine.clone(),
            by_ssh: options.by_ssh(),
            reports: Arc::clone(reports),
            group: Arc::clone(&group),
            complaints,
            listener,
        };
        std::thread::spawn(move || output.into_iter().for_each(|o| ear.listen(o)));
        let (orders, waiting) = sync_channel(ORDERS);
        std::thread::spawn(move || input.into_iter().for_each(|i| write(i, &waiting)));
        Ok(Agent {
            host: machine.host.clone(),
            orders: Some(orders),
            group,
        })
    }

    /// Sends a line. The answer shows whether it arrived.
    pub(super) fn say(&self, line: &Line) {
        if let Some(orders) = &self.orders {
            // An agent that does not read does not answer either.
            let _ = orders.try_send(protocol::written(line));
        }
    }

    /// Ends its input, and so its work.
    pub(super) fn dismiss(&mut self) {
        self.orders = None;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.dismiss();
        let deadline = clock::monotonic() + END;
        while clock::monotonic() < deadline {
            if !matches!(lock(&self.group).try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        lock(&self.group).kill();
    }
}

/// Writes orders, and heartbeats in between.
fn write(mut input: ChildStdin, orders: &Receiver<String>) {
    let beat = protocol::written(&Line::Beat);
    loop {
        let line = match orders.recv_timeout(BEAT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => beat.clone(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // The thread that reads its output reports how it ended.
        if input
            .write_all(line.as_bytes())
            .and_then(|()| input.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Reads an agent's output until the agent is gone.
struct Ear {
    who: usize,
    machine: Machine,
    by_ssh: bool,
    reports: Arc<Reports>,
    group: Arc<Mutex<Group>>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    listener: JoinHandle<()>,
}

impl Ear {
    fn listen(&self, output: ChildStdout) {
        let why = self.until_gone(output);
        lock(&self.group).kill();
        self.reports
            .with(self.who, |state| state.lost.get_or_insert(why).len());
    }

    /// Returns why it is gone.
    fn until_gone(&self, mut output: ChildStdout) -> String {
        let host = &self.machine.host;
        let mut lines = Lines::new(LONGEST);
        let mut bytes = vec![0; 64 << 10];
        loop {
            let mut fds = [PollFd::new(&output, PollFlags::IN)];
            match clock::wait(&mut fds, Some(clock::monotonic() + SILENT), Duration::ZERO) {
                Ok(true) => {}
                Ok(false) => {
                    return format!(
                        "{host} is gone: nothing was received for {SILENT:?}; its processes end by themselves"
                    );
                }
                Err(e) => return format!("{host} is gone: {e}"),
            }
            let n = match output.read(&mut bytes) {
                Ok(0) => return self.ended(),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return format!("{host} is gone: {e}"),
            };
            lines.push(&bytes[..n]);
            loop {
                let heard = match lines.next() {
                    Ok(None) => break,
                    Ok(Some(line)) => self.hear(&line),
                    Err(why) => Err(format!("it said {why}")),
                };
                if let Err(why) = heard {
                    return self.odd(&why);
                }
            }
        }
    }

    fn hear(&self, line: &[u8]) -> Result<(), String> {
        let report = Report::parse(line).map_err(|e| format!("it said {e}"))?;
        self.reports
            .with(self.who, |state| state.hear(report))
            .unwrap_or(Ok(()))
    }

    fn greeted(&self) -> bool {
        self.reports
            .with(self.who, |state| state.hello.is_some())
            .unwrap_or_default()
    }

    /// Describes output that is not an agent's.
    fn odd(&self, why: &str) -> String {
        let host = &self.machine.host;
        if self.greeted() {
            return format!("{host} is released: {why}");
        }
        format!(
            "{host} runs no agent: {why}; its shell must print nothing without a terminal (.bashrc, .profile), and its \
             ropewalk must have version {}",
            env!("CARGO_PKG_VERSION")
        )
    }

    /// Describes the end of its output.
    fn ended(&self) -> String {
        let host = &self.machine.host;
        let status = lock(&self.group).wait(Duration::from_secs(2)).ok().flatten();
        let deadline = clock::monotonic() + Duration::from_secs(1);
        while !self.listener.is_finished() && clock::monotonic() < deadline {
            std::thread::sleep(LOOK);
        }
        let lines = lock(&self.complaints);
        let lines: Vec<String> = lines.iter().map(|l| protocol::said(l)).collect();
        let said = if lines.is_empty() {
            String::new()
        } else {
            format!(" (standard error: {})", lines.join(" | "))
        };
        let how = status.map_or_else(|| "closed its output".into(), how);
        if !self.greeted() {
            return self.machine.explain(self.by_ssh, status, &how, &said);
        }
        format!("{host} is gone: the connection {how}{said}; its processes end by themselves")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
