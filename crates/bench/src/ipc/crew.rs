//! The processes of one run, and what they say.

use super::error::RunError;
use super::group::{Group, how};
use super::line::{self, Count, Line, Published, Received, RoundTrips, shorten};
use super::sandbox::Sandbox;
use super::usage::{Memory, Usage};
use stats::Time;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a peer may take to end after its result.
const END: Duration = Duration::from_secs(10);
/// How often a wait looks whether the user stopped it.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of standard error that are kept of a peer.
const COMPLAINTS: usize = 8;

/// The processes of one run. Dropping it ends them all, and what they would leave behind.
pub(super) struct Crew<'a> {
    peers: Vec<Peer>,
    count: Count,
    heard: Receiver<Heard>,
    say: SyncSender<Heard>,
    sandbox: &'a Sandbox,
    stopped: &'a dyn Fn() -> bool,
}

/// One process and what it has said.
pub(super) struct Peer {
    pub(super) name: String,
    group: Group,
    input: Option<ChildStdin>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    pub(super) ready: u32,
    /// When each `done` was heard.
    pub(super) done: Vec<Time>,
    pub(super) published: Option<(Time, Published)>,
    pub(super) received: Vec<Received>,
    pub(super) round_trips: Option<(Time, RoundTrips)>,
    silent: bool,
}

struct Heard {
    who: usize,
    at: Time,
    /// `None`: it will say no more.
    line: Option<Result<Line, String>>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(count: Count, sandbox: &'a Sandbox, stopped: &'a dyn Fn() -> bool) -> Self {
        // Bounded: a peer that prints without end waits for us, not the other way round.
        let (say, heard) = sync_channel(64);
        Crew {
            peers: Vec::new(),
            count,
            heard,
            say,
            sandbox,
            stopped,
        }
    }

    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    pub(super) fn into_peers(mut self) -> Vec<Peer> {
        std::mem::take(&mut self.peers)
    }

    /// Starts one more process.
    pub(super) fn start(&mut self, name: String, command: &mut Command) -> Result<(), RunError> {
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
        let (who, count, say) = (self.peers.len(), self.count, self.say.clone());
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let keep = complaints.clone();
        std::thread::spawn(move || {
            if let Some(output) = output {
                line::read(output, count, |line| {
                    let (at, line) = (clock::monotonic(), Some(line));
                    say.send(Heard { who, at, line }).is_ok()
                });
            }
            let (at, line) = (clock::monotonic(), None);
            let _ = say.send(Heard { who, at, line });
        });
        std::thread::spawn(move || errors.into_iter().for_each(|e| keep_last_lines(e, &keep)));
        self.peers.push(Peer {
            name,
            group,
            input,
            complaints,
            ready: 0,
            done: Vec::new(),
            published: None,
            received: Vec::new(),
            round_trips: None,
            silent: false,
        });
        Ok(())
    }

    /// Says one word to one peer; one that is gone is noticed when it is listened to.
    pub(super) fn tell(&mut self, who: usize, word: &str) {
        if let Some(input) = self.peers.get_mut(who).and_then(|p| p.input.as_mut()) {
            let _ = writeln!(input, "{word}").and_then(|()| input.flush());
        }
    }

    /// Listens until `enough`; false if `deadline` passed first.
    ///
    /// # Errors
    /// If a peer says something odd, ends before it was told to, or the user stops the run.
    pub(super) fn listen(
        &mut self,
        deadline: Time,
        mut enough: impl FnMut(&[Peer]) -> bool,
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
                // Not while `self.say` lives.
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
        }
    }

    fn hear(&mut self, Heard { who, at, line }: Heard) -> Result<(), RunError> {
        let peer = &mut self.peers[who];
        match line {
            Some(Ok(Line::Ready)) => peer.ready += 1,
            Some(Ok(Line::Done)) => peer.done.push(at),
            Some(Ok(Line::Published(result))) => peer.published = Some((at, result)),
            Some(Ok(Line::Received(result))) => peer.received.push(result),
            Some(Ok(Line::RoundTrips(result))) => peer.round_trips = Some((at, result)),
            Some(Err(odd)) => return Err(peer.complain(&odd)),
            None => {
                peer.silent = true;
                if peer.input.is_some() {
                    // It may only have closed its output; give it the time to end, so that its reason is known.
                    let status = peer.group.wait(Duration::from_secs(1)).ok().flatten();
                    let how = status.map_or_else(|| "closed its output".into(), how);
                    return Err(peer.complain(&format!("it {how} before it was told to")));
                }
            }
        }
        Ok(())
    }

    /// Tells all to stop, and hears them out until `enough`.
    pub(super) fn stop(
        &mut self,
        patience: Duration,
        enough: impl FnMut(&[Peer]) -> bool,
    ) -> Result<bool, RunError> {
        for who in 0..self.peers.len() {
            self.tell(who, "stop");
            // The end of its input says the same.
            self.peers[who].input = None;
        }
        self.listen(clock::monotonic() + patience, enough)
    }

    /// Waits until all have ended well.
    pub(super) fn join(&mut self) -> Result<(), RunError> {
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

    /// Remembers what the peers have in shared memory, to remove what they leave.
    pub(super) fn look(&self) {
        for peer in &self.peers {
            self.sandbox.look(peer.group.pid());
        }
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        self.look();
        for peer in &mut self.peers {
            peer.group.kill();
        }
    }
}

impl Peer {
    /// What it has used so far; `None` if it is gone.
    pub(super) fn usage(&self) -> Option<(Usage, Memory)> {
        Some((Usage::of(self.group.pid())?, Memory::of(self.group.pid())?))
    }

    /// Something that is wrong with it, with what it said on standard error.
    pub(super) fn complain(&self, what: &str) -> RunError {
        let lines = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<&str> = lines.iter().map(|l| l.as_str()).collect();
        if said.is_empty() {
            return format!("{}: {what}", self.name).into();
        }
        format!("{}: {what}; it said: {}", self.name, said.join(" | ")).into()
    }
}

/// Keeps the last lines of a stream, each shortened, so that no peer can fill our memory.
pub(super) fn keep_last_lines(stream: impl Read, keep: &Mutex<VecDeque<String>>) {
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
