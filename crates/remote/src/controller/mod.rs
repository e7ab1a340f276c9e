//! The controller's end: sends commands and receives telemetry.

mod ahead;
mod builder;
mod call;
mod core;
mod files;
pub(crate) mod fuzzing;
mod pending;
mod requests;
mod telemetry;
mod timers;
mod v6;

pub use self::core::Connection;
pub use builder::ControllerBuilder;
pub use call::Expiry;
pub use files::{FileError, FileInfo, GoOn, Progress, Saving};
pub use pending::Pending;
pub(crate) use pending::Promise;
pub use requests::{RequestError, Right};
pub use telemetry::{Info, TelemetryQueue};

use self::core::Core;
use crate::clock::now;
use crate::inbox::Queue;
use crate::kind::{CommandKind, TelemetryKind};
use crate::outcome::Outcome;
use crate::own::Wish;
use crate::statistics::Statistics;
use crate::sync::lock;
use crate::{command::Entry as CommandEntry, telemetry::Entry as TelemetryEntry};
use prost::bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Commands one robot and receives its telemetry, over any transport. A cheap handle: clones refer to the same
/// controller, which ends when the last one is dropped, or at [`Controller::stop`]. A callback that owns a clone keeps
/// the controller alive until `stop`.
///
/// Callbacks run on threads of the transport, as soon as a message arrives. They have to return soon, and must not
/// block for an answer of the same robot: [`Controller::send`] does not block.
#[derive(Clone)]
pub struct Controller {
    core: Arc<Core>,
    expiry: Expiry,
    saving: Saving,
    _life: Arc<Life>,
}

/// Ends the controller with its last handle: transports own the core, too.
struct Life(Arc<Core>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Default time limit of requests. 10 MB may take minutes, but beyond this limit a person should know of the delay.
const PATIENCE: Duration = Duration::from_secs(30);

impl Controller {
    /// Returns a builder for a controller with this name, which is for people and logs.
    pub fn builder(name: &str) -> ControllerBuilder {
        ControllerBuilder::new(name)
    }

    fn new(core: Arc<Core>, expiry: Expiry) -> Self {
        Controller {
            _life: Arc::new(Life(core.clone())),
            core,
            expiry,
            saving: Saving::default(),
        }
    }

    /// Sends a command and blocks until its outcome is known: at most for its expiry and the time of the answer. Do not
    /// call this in a handler or callback.
    pub fn command<K: CommandKind>(&self, body: &K::Body) -> Outcome {
        self.send::<K>(body).wait()
    }

    /// Sends a command. Its outcome can be waited for, awaited, or ignored. Never blocks.
    pub fn send<K: CommandKind>(&self, body: &K::Body) -> Pending<Outcome> {
        self.send_within::<K>(body, self.expiry)
    }

    /// As [`Controller::send`], with this command's own expiry.
    pub fn send_within<K: CommandKind>(&self, body: &K::Body, expiry: Expiry) -> Pending<Outcome> {
        self.core.send::<K>(body, expiry)
    }

    /// Registers `callback` for each value of a telemetry kind and channel (0 where there is only one).
    pub fn on<K: TelemetryKind>(&self, channel: u8, callback: impl FnMut(K::Body, &Info) + Send + 'static) {
        self.core.on::<K>(channel, callback);
    }

    /// Puts values of a telemetry kind and channel into a queue.
    pub fn queue<K: TelemetryKind>(&self, channel: u8, queue: Queue) -> TelemetryQueue<K> {
        self.core.inbox::<K>(channel, queue)
    }

    /// Returns the latest value that the robot sent unasked; `None` before the first.
    pub fn latest<K: TelemetryKind>(&self, channel: u8) -> Option<K::Body> {
        self.core.latest::<K>(channel)
    }

    /// Requests the latest value from the robot, and blocks until it arrives, at most 30 s. `None`: the robot has not
    /// set a value yet.
    ///
    /// # Errors
    /// [`RequestError`]: the robot has no such telemetry, or did not answer.
    pub fn fetch<K: TelemetryKind>(&self, channel: u8) -> Result<Option<K::Body>, RequestError> {
        self.fetch_within::<K>(channel, PATIENCE).wait()
    }

    /// As [`Controller::fetch`], without blocking, with its own time limit.
    pub fn fetch_within<K: TelemetryKind>(
        &self,
        channel: u8,
        timeout: Duration,
    ) -> Pending<Result<Option<K::Body>, RequestError>> {
        self.core.fetch::<K>(channel, timeout)
    }

    /// As [`Controller::send_within`], for a kind known by its name, with the encoded body.
    pub fn send_kind(&self, kind: &CommandEntry, body: Vec<u8>, expiry: Expiry) -> Pending<Outcome> {
        self.core.send_kind(kind, body.into(), expiry)
    }

    /// As [`Controller::on`], for a kind known by its name. `callback` receives the encoded body, which is valid if the
    /// kind is one of the library's.
    pub fn on_kind(
        &self,
        kind: &TelemetryEntry,
        channel: u8,
        mut callback: impl FnMut(&[u8], &Info) + Send + 'static,
    ) {
        let check = kind.check;
        let checked = move |body: &[u8], info: &Info| check(body).map(|()| callback(body, info));
        self.core.on_kind(kind, channel, checked);
    }

    /// As [`Controller::latest`], for a kind known by its name.
    pub fn latest_kind(&self, kind: &TelemetryEntry, channel: u8) -> Option<Vec<u8>> {
        let body = self.core.latest_kind(kind, channel)?;
        (kind.check)(&body).is_ok().then(|| body.to_vec())
    }

    /// As [`Controller::fetch_within`], for a kind known by its name.
    pub fn fetch_kind(
        &self,
        kind: &TelemetryEntry,
        channel: u8,
        timeout: Duration,
    ) -> Pending<Result<Option<Vec<u8>>, RequestError>> {
        let check = kind.check;
        let decode = move |body: Bytes| check(&body).is_ok().then(|| body.to_vec());
        self.core.fetch_kind(kind, channel, timeout, decode)
    }

    /// Adds a telemetry kind and channel to the watch list. Once the list has an entry, the transport delivers only
    /// what is on it. A kind and channel with a callback or a queue is added automatically.
    pub fn watch<K: TelemetryKind>(&self, channel: u8) {
        self.core.watch::<K>(channel);
    }

    /// Removes a telemetry kind and channel from the watch list.
    pub fn unwatch<K: TelemetryKind>(&self, channel: u8) {
        self.core.unwatch::<K>(channel);
    }

    /// Receives all telemetry, as initially.
    pub fn watch_all(&self) {
        self.core.watch_all();
    }

    /// Returns the names of kinds and channels on the watch list; `None`: everything is received.
    pub fn watched(&self) -> Option<Vec<(String, u8)>> {
        self.core.watched()
    }

    /// Returns which controller may move a subsystem (empty: the whole robot). Blocks until the answer arrives, at most
    /// 30 s, like the other requests for rights.
    ///
    /// # Errors
    /// [`RequestError`]: there is no such subsystem, or no answer.
    pub fn right(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::Ask, 0, PATIENCE).wait()
    }

    /// Requests the right to move a subsystem; granted if no other controller holds it.
    ///
    /// # Errors
    /// [`RequestError`]: another controller holds it, or no answer came.
    pub fn request_right(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::Request, 0, PATIENCE).wait()
    }

    /// Gives the right to move a subsystem back.
    ///
    /// # Errors
    /// As [`Controller::right`].
    pub fn release_right(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::Release, 0, PATIENCE).wait()
    }

    /// Hands the right to move a subsystem over to the controller that the robot knows by this number
    /// ([`Controller::id`]).
    ///
    /// # Errors
    /// [`RequestError`]: this controller does not hold it, the other controller is lost or unknown, or no answer came.
    pub fn hand_right_over(&self, subsystem: &str, to: u64) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::HandOver, to, PATIENCE).wait()
    }

    /// Takes the right to move a subsystem, even from another controller, if the robot permits it.
    ///
    /// # Errors
    /// [`RequestError`]: the robot does not permit it, or no answer came.
    pub fn take_right_over(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::TakeOver, 0, PATIENCE).wait()
    }

    /// Sets the level up to which the robot sends its log: 1 fatal, 2 error, 3 warn, 4 info, 5 debug; 0 none. Blocks
    /// until the answer arrives, at most 30 s.
    ///
    /// # Errors
    /// [`RequestError`]: no answer.
    pub fn set_log_level(&self, level: u32) -> Result<(), RequestError> {
        self.core.ask_log_level(level, PATIENCE).wait()
    }

    /// Returns the files that the robot shares under an identifier. Blocks until the answer arrives.
    /// [`FileDefinition`](crate::telemetry::FileDefinition) lists the identifiers.
    ///
    /// # Errors
    /// [`RequestError`]: the robot shares nothing under that identifier, or did not answer.
    pub fn files(&self, identifier: &str) -> Result<Vec<FileInfo>, RequestError> {
        self.core.files(identifier)
    }

    /// Returns a handle to the same controller whose downloads may do more than create new files that are not hidden.
    #[must_use]
    pub fn saving(&self, saving: Saving) -> Controller {
        Controller {
            saving,
            ..self.clone()
        }
    }

    /// Fetches one file into the folder `into`, under the requested path (a single shared file under its identifier),
    /// and blocks until it is whole and its SHA-256 is the robot's. `progress` is called for each piece, and may end
    /// the download ([`GoOn`]). An interrupted download resumes where it ended; until the file is whole, it is called
    /// `.NAME.part`. Nothing outside `into` is written, whatever the robot sends. No file is replaced, and none whose
    /// name begins with a dot is created, unless [`Controller::saving`] allows it. Do not call this in a handler or
    /// callback.
    ///
    /// # Errors
    /// [`FileError`]
    pub fn download<G: GoOn>(
        &self,
        identifier: &str,
        path: &str,
        into: &Path,
        mut progress: impl FnMut(Progress<'_>) -> G,
    ) -> Result<PathBuf, FileError> {
        let mut progress = |p: Progress<'_>| progress(p).goes_on();
        self.core
            .download(identifier, path, into, self.saving, &mut progress)
    }

    /// Fetches all files that are shared under an identifier, one after the other, as [`Controller::download`], into
    /// their own folder `into/IDENTIFIER` (a single file is itself named `IDENTIFIER`). The robot chooses the names
    /// within it. On version 6's wire, everything comes in one answer of at most 256 MiB.
    ///
    /// # Errors
    /// [`FileError`] of the first file that was not fetched. If one of them may not be written because of its name,
    /// none is fetched.
    pub fn download_all<G: GoOn>(
        &self,
        identifier: &str,
        into: &Path,
        mut progress: impl FnMut(Progress<'_>) -> G,
    ) -> Result<Vec<PathBuf>, FileError> {
        let mut progress = |p: Progress<'_>| progress(p).goes_on();
        self.core
            .download_all(identifier, into, self.saving, &mut progress)
    }

    /// Sets a callback for when the robot is found or lost.
    pub fn on_connection(&self, callback: impl Fn(Connection) + Send + Sync + 'static) {
        self.core.on_connection.set(Some(Arc::new(callback)));
    }

    /// Blocks until the robot has answered and described itself. Returns whether that was within `timeout`.
    pub fn wait_until_found(&self, timeout: Duration) -> bool {
        self.core.wait_until_met(timeout)
    }

    /// Returns whether the robot is reachable.
    pub fn is_found(&self) -> bool {
        lock(&self.core.state).found
    }

    /// Returns the smoothed time from a heartbeat to its answer; `None` before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        lock(&self.core.state).rtt
    }

    /// Returns the robot's name from its last welcome.
    pub fn robot_name(&self) -> Option<String> {
        lock(&self.core.state)
            .known
            .as_ref()
            .map(|known| known.robot.clone())
    }

    /// Returns whether the robot has announced its kinds of commands and telemetry. Version 6's wire cannot announce
    /// them.
    pub fn knows_kinds(&self) -> bool {
        !self.core.speaks_v6() && lock(&self.core.state).known.is_some()
    }

    /// Returns the names of the robot's commands from its last welcome; none if the wire cannot announce them
    /// ([`Controller::knows_kinds`]).
    pub fn robot_commands(&self) -> Vec<String> {
        let known = lock(&self.core.state).known.clone();
        known
            .map(|known| known.commands.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns the names of the robot's telemetry from its last welcome; none if the wire cannot announce them
    /// ([`Controller::knows_kinds`]).
    pub fn robot_telemetry(&self) -> Vec<String> {
        let known = lock(&self.core.state).known.clone();
        known
            .map(|known| known.telemetry.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns the names of the robot's subsystems from its last welcome.
    pub fn subsystems(&self) -> Vec<String> {
        lock(&self.core.state)
            .known
            .as_ref()
            .map(|known| known.subsystems.clone())
            .unwrap_or_default()
    }

    /// Returns number and name of the named channels of a telemetry kind, from the robot's last welcome.
    pub fn channels<K: TelemetryKind>(&self) -> Vec<(u8, String)> {
        let known = lock(&self.core.state).known.clone();
        let Some(known) = known else { return Vec::new() };
        let Some(number) = known.telemetry.get(K::NAME) else {
            return Vec::new();
        };
        let of_it = known.channels.iter().filter(|c| c.telemetry == *number);
        of_it
            .filter_map(|c| Some((u8::try_from(c.channel).ok()?, c.name.clone())))
            .collect()
    }

    /// Returns the counts of received, sent and dropped messages.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.statistics(now())
    }

    /// Returns the number by which the robot and other controllers know this run; they hand the right to move over to
    /// it by this number. It is 0 before robot and controller have met, and on version 6's wire. The number does not
    /// allow others to act as this controller.
    pub fn id(&self) -> u64 {
        self.core.id()
    }

    /// Ends the controller: requests in progress end as unreachable, and no callback starts after this.
    pub fn stop(&self) {
        self.core.stop();
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller({}, {:x})", self.core.name, self.core.id())
    }
}
