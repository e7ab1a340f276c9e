//! The processes of one run, and their output.

use super::error::RunError;
use super::group::{Group, how};
use super::line::{self, shorten};
use super::sandbox::Sandbox;
use super::usage::{Memory, Usage};
use stats::Time;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a peer may take to end after its result.
const END: Duration = Duration::from_secs(10);
/// How often a wait checks whether the user stopped it.
const LOOK: Duration = Duration::from_millis(50);
/// Number of lines of standard error kept for a peer.
const COMPLAINTS: usize = 8;

/// Output of peers of one kind: their lines, the rule by which these are checked, and the collected data.
pub(crate) trait Says: Default {
    /// What is needed beforehand to check a line.
    type Rule: Copy + Send + 'static;
    /// One line.
    type Line: Send + 'static;

    /// Maximum length of a valid line, in bytes.
    fn longest(rule: Self::Rule) -> u64;

    /// Parses a line, or returns what is wrong with it.
    fn parse(text: &str, rule: Self::Rule) -> Result<Self::Line, String>;

    /// Stores a line that arrived at `at`.
    fn hear(&mut self, at: Time, line: Self::Line);
}

/// The processes of one run. Dropping it ends them all and removes their leftovers.
pub(crate) struct Processes<'a, S: Says> {
    peers: Vec<Peer<S>>,
    rule: S::Rule,
    heard: Receiver<Heard<S::Line>>,
    say: SyncSender<Heard<S::Line>>,
    sandbox: &'a Sandbox,
    stopped: &'a dyn Fn() -> bool,
}

/// One process and its output.
pub(crate) struct Peer<S> {
    pub(crate) name: String,
    group: Group,
    input: Option<ChildStdin>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    /// Reads the complaints; ends when every writer has closed the stream.
    listener: JoinHandle<()>,
    pub(crate) said: S,
    silent: bool,
}

struct Heard<L> {
    who: usize,
    at: Time,
    /// `None`: the end of its output.
    line: Option<Result<L, String>>,
}

impl<'a, S: Says> Processes<'a, S> {
    pub(crate) fn new(rule: S::Rule, sandbox: &'a Sandbox, stopped: &'a dyn Fn() -> bool) -> Self {
        // Bounded: a peer that prints without end blocks, and does not fill our memory.
        let (say, heard) = sync_channel(64);
        Processes {
            peers: Vec::new(),
            rule,
            heard,
            say,
            sandbox,
            stopped,
        }
    }

    pub(crate) fn peers(&self) -> &[Peer<S>] {
        &self.peers
    }

    pub(crate) fn into_peers(mut self) -> Vec<Peer<S>> {
        std::mem::take(&mut self.peers)
    }

    /// Starts another process.
    pub(crate) fn start(&mut self, name: String, command: &mut Command) -> Result<(), RunError> {
        self.sandbox.prepare(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(command).map_err(|e| {
            let program = command.get_program().to_string_lossy();
            format!("{name} does not start: {program}: {e}")
        })?;
        let child = group.child();
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (who, rule, say) = (self.peers.len(), self.rule, self.say.clone());
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let keep = complaints.clone();
        std::thread::spawn(move || {
            if let Some(output) = output {
                line::read::<S>(output, rule, |line| {
                    let (at, line) = (clock::monotonic(), Some(line));
                    say.send(Heard { who, at, line }).is_ok()
                });
            }
            let (at, line) = (clock::monotonic(), None);
            let _ = say.send(Heard { who, at, line });
        });
        let listener = std::thread::spawn(move || errors.into_iter().for_each(|e| keep_last_lines(e, &keep)));
        self.peers.push(Peer {
            name,
            group,
            input,
            complaints,
            listener,
            said: S::default(),
            silent: false,
        });
        Ok(())
    }

    /// Sends one word to one peer. That a peer is gone is noticed in `listen`.
    pub(crate) fn tell(&mut self, who: usize, word: &str) {
        if let Some(input) = self.peers.get_mut(who).and_then(|p| p.input.as_mut()) {
            let _ = writeln!(input, "{word}").and_then(|()| input.flush());
        }
    }

    /// Processes output until `enough`; returns false if `deadline` passes first.
    ///
    /// # Errors
    /// If a peer prints an invalid line, ends too early, or the user stops the run.
    pub(crate) fn listen(
        &mut self,
        deadline: Time,
        mut enough: impl FnMut(&[Peer<S>]) -> bool,
    ) -> Result<bool, RunError> {
        loop {
            if enough(&self.peers) {
                return Ok(true);
            }
            if (self.stopped)() {
                return Err(RunError::Stopped);
            }
            let left = deadline.since(clock::monotonic());
            if left.is_zero() {
                return Ok(false);
            }
            match self.heard.recv_timeout(left.min(LOOK)) {
                Ok(heard) => self.hear(heard)?,
                Err(RecvTimeoutError::Timeout) => {}
                // Does not happen while `self.say` exists.
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
        }
    }

    fn hear(&mut self, Heard { who, at, line }: Heard<S::Line>) -> Result<(), RunError> {
        let peer = &mut self.peers[who];
        match line {
            Some(Ok(line)) => peer.said.hear(at, line),
            Some(Err(odd)) => return Err(peer.complain(&odd)),
            None => {
                peer.silent = true;
                if peer.input.is_some() {
                    // It may only have closed its output; wait for its end, so that the reason is known.
                    let status = peer.group.wait(Duration::from_secs(1)).ok().flatten();
                    peer.hear_out();
                    let how = status.map_or_else(|| "closed its output".into(), how);
                    return Err(peer.complain(&format!("it {how} too early")));
                }
            }
        }
        Ok(())
    }

    /// Asks one peer to stop: it may still print its results before it ends.
    pub(crate) fn dismiss(&mut self, who: usize) {
        self.tell(who, "stop");
        // The end of its input means the same.
        if let Some(peer) = self.peers.get_mut(who) {
            peer.input = None;
        }
    }

    /// Asks all peers to stop, and processes their output until `enough`.
    pub(crate) fn stop(
        &mut self,
        patience: Duration,
        enough: impl FnMut(&[Peer<S>]) -> bool,
    ) -> Result<bool, RunError> {
        (0..self.peers.len()).for_each(|who| self.dismiss(who));
        self.listen(clock::monotonic() + patience, enough)
    }

    /// Waits until all have ended successfully.
    pub(crate) fn join(&mut self) -> Result<(), RunError> {
        let deadline = clock::monotonic() + END;
        for peer in &mut self.peers {
            let left = deadline.since(clock::monotonic());
            match peer.group.wait(left) {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => return Err(peer.complain(&format!("it {}", how(status)))),
                Ok(None) => return Err(peer.complain(&format!("it did not end within {END:?} after `stop`"))),
                Err(e) => return Err(format!("waiting for {}: {e}", peer.name).into()),
            }
        }
        Ok(())
    }

    /// Records the peers' files in shared memory, to remove leftovers later.
    pub(crate) fn look(&self) {
        for peer in &self.peers {
            self.sandbox.look(peer.group.pid());
        }
    }
}

impl<S: Says> Drop for Processes<'_, S> {
    fn drop(&mut self) {
        self.look();
        for peer in &mut self.peers {
            peer.group.kill();
        }
    }
}

impl<S> Peer<S> {
    pub(crate) fn pid(&self) -> u32 {
        self.group.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns its usage so far; `None` if it is gone.
    pub(crate) fn usage(&self) -> Option<(Usage, Memory)> {
        Some((Usage::of(self.group.pid())?, Memory::of(self.group.pid())?))
    }

    /// Waits until its complaints are read, unless another process still holds its standard error open.
    fn hear_out(&self) {
        let deadline = clock::monotonic() + Duration::from_secs(1);
        while !self.listener.is_finished() && clock::monotonic() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Builds an error about this peer, with its output on standard error.
    pub(crate) fn complain(&self, what: &str) -> RunError {
        let lines = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<&str> = lines.iter().map(|l| l.as_str()).collect();
        if said.is_empty() {
            return format!("{}: {what}", self.name).into();
        }
        format!("{}: {what}; standard error: {}", self.name, said.join(" | ")).into()
    }
}

/// Keeps the last lines of a stream, each truncated, so that no peer can fill our memory.
pub(crate) fn keep_last_lines(stream: impl Read, keep: &Mutex<VecDeque<String>>) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut stream).take(4096).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        if text.trim().is_empty() {
            continue;
        }
        let mut keep = keep.lock().unwrap_or_else(PoisonError::into_inner);
        if keep.len() == COMPLAINTS {
            keep.pop_front();
        }
        keep.push_back(shorten(text.trim()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::said::{Rule, Said};

    #[test]
    fn a_dismissed_process_reports_its_last_values_and_may_end() {
        let sandbox = Sandbox::new().expect("a sandbox");
        let mut processes = Processes::<Said>::new(Rule { flows: 1, most: 1 }, &sandbox, &|| false);
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let reported = |all: &[Peer<Said>]| all[0].said.values.is_some();
        let deadline = || clock::monotonic() + Duration::from_secs(60);
        let script = "echo ready; read word; echo '{\"values\": [1.0]}'";
        processes.start("one".into(), &mut sh(script)).expect("starts");
        processes.dismiss(0);
        assert!(processes.listen(deadline(), reported).expect("no complaint"));
        processes.join().expect("ended well");
        // A process that ends by itself is an error.
        processes
            .start("two".into(), &mut sh("echo ready"))
            .expect("starts");
        let early = processes.listen(deadline(), |all| all[1].said.values.is_some());
        assert!(matches!(early, Err(RunError::Failed(why)) if why.contains("too early")));
    }
}
