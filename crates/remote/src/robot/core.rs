//! State that the parts of a robot share.

use super::builder::{Carries, Options};
use super::commands::Commands;
use super::events::Events;
use super::files::Files;
use super::permission::Permissions;
use super::telemetry::Streams;
use crate::clock::{now, random_id};
use crate::own;
use crate::safety::{Controllers, Id, Rights, Which};
use crate::statistics::Counters;
use crate::sync::{lock, read};
use crate::transport::{Peer, Reply, RobotEnd};
use stats::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::Duration;

/// The answer to a command, kept for repetitions of the command.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) outcome: own::Outcome,
    pub(crate) reason: String,
    /// The answer to a request for the right to move.
    pub(crate) right: Option<own::AuthorityState>,
}

impl Verdict {
    pub(crate) fn new(outcome: own::Outcome, reason: impl Into<String>) -> Self {
        Verdict {
            outcome,
            reason: reason.into(),
            right: None,
        }
    }

    pub(crate) fn rejected(reason: impl Into<String>) -> Self {
        Verdict::new(own::Outcome::Rejected, reason)
    }
}

/// Locks are taken in the order lane, state. Neither is held while a transport is called, and the state is not held
/// while a user's code runs.
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) run: u64,
    pub(crate) options: Options,
    pub(crate) ends: Vec<End>,
    pub(crate) commands: Commands,
    pub(crate) streams: Streams,
    pub(crate) state: Mutex<State>,
    /// Notified when a controller is found that could be lost later, and at the end.
    pub(crate) changed: Condvar,
    /// By subsystem: held while a command moves it, and while the right to move it changes.
    lanes: RwLock<Vec<Arc<Mutex<()>>>>,
    pub(crate) events: Events,
    pub(crate) counters: Counters,
    pub(crate) files: Files,
    pub(crate) permissions: Permissions,
    /// The least urgent level of log messages that the robot sends.
    pub(crate) log_level: AtomicU32,
    /// Whether the log has already named a controller of version 7.
    pub(crate) heard_version_7: AtomicBool,
    /// Orders commands that have no sequence number.
    pub(crate) v6_sequence: AtomicU64,
    /// Whether the robot has started to serve controllers.
    pub(super) started: AtomicBool,
    ended: AtomicBool,
}

pub(crate) struct End {
    pub(crate) end: Arc<dyn RobotEnd>,
    pub(crate) carries: Carries,
}

/// The controllers that the robot knows, and their rights.
pub(crate) struct State {
    pub(crate) controllers: Controllers<Verdict, Reply>,
    pub(crate) rights: Rights,
    /// By subsystem: until when its twist holds.
    pub(crate) twists: BTreeMap<usize, Time>,
}

impl State {
    /// A silent controller that has no identity and announced no heartbeats loses its rights. It does not count as
    /// lost: nothing stops for it.
    pub(crate) fn free_silent(&mut self, now: Time, lost_after: Duration) {
        let silent = self
            .controllers
            .iter()
            .filter(|known| known.anonymous && known.period.is_none() && now.since(known.heard) > lost_after);
        for known in silent {
            self.rights.release(known.id, Which::All);
        }
    }

    /// Returns the identity of a controller, as its transport proves it.
    pub(crate) fn peer(&self, id: Id) -> Peer {
        self.controllers
            .get(id)
            .map_or(Peer::Unproven, |known| known.peer.clone())
    }

    /// Returns the name of a controller, for people.
    pub(crate) fn called(&self, id: Id) -> String {
        self.controllers
            .get(id)
            .map_or_else(|| format!("{id:x}"), |known| known.name.to_string())
    }
}

impl Core {
    pub(crate) fn new(name: String, ends: Vec<(Arc<dyn RobotEnd>, Carries)>, options: Options) -> Self {
        Core {
            name,
            run: random_id(),
            options,
            ends: ends
                .into_iter()
                .map(|(end, carries)| End { end, carries })
                .collect(),
            commands: Commands::default(),
            streams: Streams::default(),
            state: Mutex::new(State {
                controllers: Controllers::new(),
                rights: Rights::default(),
                twists: BTreeMap::new(),
            }),
            changed: Condvar::new(),
            lanes: RwLock::default(),
            events: Events::default(),
            counters: Counters::default(),
            files: Files::default(),
            permissions: Permissions::default(),
            log_level: AtomicU32::new(crate::types::LogLevel::Info as u32),
            heard_version_7: AtomicBool::new(false),
            v6_sequence: AtomicU64::new(0),
            started: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// Returns the number of a subsystem, which is added if it is unknown.
    pub(crate) fn subsystem(&self, name: &str) -> usize {
        let number = lock(&self.state).rights.subsystem(name);
        let mut lanes = crate::sync::write(&self.lanes);
        while lanes.len() <= number {
            lanes.push(Arc::default());
        }
        number
    }

    pub(crate) fn lane(&self, subsystem: usize) -> Arc<Mutex<()>> {
        read(&self.lanes).get(subsystem).cloned().unwrap_or_default()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Builds an answer on Ropewalk's own wire.
    pub(crate) fn response(
        &self,
        sequence: u64,
        verdict: Verdict,
        what: Option<own::response::What>,
    ) -> own::Response {
        own::Response {
            sequence,
            run: self.run,
            stamp: now().as_nanos(),
            outcome: verdict.outcome.into(),
            reason: verdict.reason,
            what: what.or(verdict.right.map(own::response::What::Authority)),
        }
    }

    /// Ends the robot: no handler starts after this.
    pub(crate) fn stop(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        {
            let _state = lock(&self.state);
            self.changed.notify_all();
        }
        for End { end, .. } in &self.ends {
            end.stop();
        }
        self.files.stop();
        self.permissions.clear();
        self.commands.clear();
        self.events.clear();
    }
}
