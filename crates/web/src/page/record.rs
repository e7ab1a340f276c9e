//! Recordings of this host's bus that operators start from the page, one at a time and in a separate thread.
//!
//! A recording continues when its operator leaves. It ends when an operator stops it, when the server ends, or on its
//! own.

use crate::foxglove::lock;
use observe::{Happened, Observer};
use serde_json::{Value, json};
use stats::Drops;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// Records a bus into files; implemented by the program that can record.
pub trait Recorder: std::fmt::Debug + Send + Sync + 'static {
    /// Records the topics that one of `patterns` matches (all topics if there are none) into a new file until `tell`
    /// returns false; then closes the file. Blocks. Calls `tell` with the progress at least once a second while it
    /// records, and a last time after the file is closed.
    ///
    /// # Errors
    /// The reason why the recording did not start or ended on its own: a line for the operator that says what to do.
    fn record(&self, patterns: &[String], tell: &mut dyn FnMut(Progress) -> bool) -> Result<(), String>;
}

/// The progress of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The file's name, without its folder.
    pub file: String,
    /// The file's size.
    pub bytes: u64,
    /// The size at which the recording ends.
    pub limit: u64,
    /// Free bytes on the file's disk.
    pub free: u64,
    /// Messages in the file.
    pub messages: u64,
    /// Recorded topics.
    pub topics: u64,
    /// Messages that were lost before they reached the file, by reason.
    pub lost: Drops,
    /// The first topics that cannot be recorded, each with the reason.
    pub left_out: Vec<String>,
}

/// The recordings of a server.
#[derive(Debug)]
pub(super) struct Recordings {
    recorder: Arc<dyn Recorder>,
    observer: Arc<Observer>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The newest recording.
    newest: Option<Newest>,
    thread: Option<JoinHandle<()>>,
    /// Whether the server is ending.
    over: bool,
}

#[derive(Debug)]
struct Newest {
    runs: bool,
    started_by: String,
    since: Instant,
    seconds: u64,
    progress: Progress,
    stopped_by: Option<String>,
    /// The reason, if it ended on its own.
    why: Option<String>,
}

impl Recordings {
    pub(super) fn new(recorder: Arc<dyn Recorder>, observer: Arc<Observer>) -> Self {
        Recordings {
            recorder,
            observer,
            state: Mutex::default(),
        }
    }

    /// Starts to record; `by` is the operator.
    ///
    /// # Errors
    /// The reason, as a line for the operator. Later failures are shown on all pages.
    pub(super) fn start(self: &Arc<Self>, patterns: Vec<String>, by: String) -> Result<(), String> {
        let mut state = lock(&self.state);
        if state.over {
            return Err("the server is ending".into());
        }
        if let Some(newest) = state.newest.as_ref().filter(|newest| newest.runs) {
            return Err(format!(
                "{} already records: stop that recording first",
                newest.started_by
            ));
        }
        let (of_thread, topics) = (self.clone(), patterns.clone());
        let thread = std::thread::Builder::new().name("record".into());
        let thread = thread.spawn(move || of_thread.run(&topics));
        state.thread = Some(thread.map_err(|error| format!("starting a thread: {error}: try again"))?);
        state.newest = Some(Newest {
            runs: true,
            started_by: by.clone(),
            since: Instant::now(),
            seconds: 0,
            progress: Progress::default(),
            stopped_by: None,
            why: None,
        });
        let topics = patterns;
        self.observer.note(Happened::RecordingStarted { topics, by });
        Ok(())
    }

    /// Stops the recording, whose file is then closed; `by` is the operator. Does not block.
    ///
    /// # Errors
    /// No recording runs.
    pub(super) fn stop(&self, by: String) -> Result<(), String> {
        let mut state = lock(&self.state);
        let newest = state.newest.as_mut().filter(|newest| newest.runs);
        let newest = newest.ok_or("nothing is being recorded")?;
        newest.stopped_by.get_or_insert(by);
        Ok(())
    }

    /// Stops the recording for good, and waits until its file is closed.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        if let Some(newest) = &mut state.newest {
            newest
                .stopped_by
                .get_or_insert_with(|| "the end of the server".into());
        }
        let thread = state.thread.take();
        drop(state);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// The newest recording, as pages show it.
    pub(super) fn json(&self) -> Value {
        let state = lock(&self.state);
        let Some(newest) = &state.newest else {
            return json!({ "runs": false });
        };
        let progress = &newest.progress;
        json!({
            "runs": newest.runs,
            "by": newest.started_by,
            "seconds": if newest.runs { newest.since.elapsed().as_secs() } else { newest.seconds },
            "file": progress.file,
            "bytes": progress.bytes,
            "limit": progress.limit,
            "free": progress.free,
            "messages": progress.messages,
            "topics": progress.topics,
            "lost": progress.lost,
            "left_out": progress.left_out,
            "stopped_by": newest.stopped_by,
            "why": newest.why,
        })
    }

    fn run(&self, patterns: &[String]) {
        let result = self.recorder.record(patterns, &mut |progress| {
            let mut state = lock(&self.state);
            state.newest.as_mut().is_some_and(|newest| {
                newest.progress = progress;
                newest.stopped_by.is_none()
            })
        });
        let mut state = lock(&self.state);
        let Some(newest) = &mut state.newest else {
            return;
        };
        newest.runs = false;
        newest.seconds = newest.since.elapsed().as_secs();
        newest.why = result.err();
        self.observer.note(Happened::RecordingEnded {
            file: newest.progress.file.clone(),
            messages: newest.progress.messages,
            lost: newest.progress.lost.total(),
            by: newest.stopped_by.clone(),
            why: newest.why.clone(),
        });
    }
}
