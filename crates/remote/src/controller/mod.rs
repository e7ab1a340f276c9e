//! The controller's end: sends commands, hears telemetry.

mod ahead;
mod builder;
mod call;
mod core;
mod files;
pub(crate) mod fuzzing;
mod keeper;
mod pending;
mod requests;
mod telemetry;
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

/// Commands one robot and hears its telemetry, over any transport. A cheap handle: clones are the same controller, which ends when the last
/// one is dropped, or at [`Controller::stop`]. A callback that owns a clone keeps it until `stop`.
///
/// Callbacks run on threads of the transport, as soon as something comes; they return soon, and do not block for an answer
/// of the same robot: [`Controller::send`] does not.
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

/// How long a request is waited for that says nothing else: beyond the minutes that 10 MB may take, somebody should be told.
const PATIENCE: Duration = Duration::from_secs(30);

impl Controller {
    /// A controller of this name, for people and logs.
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

    /// Sends a command and blocks until it is known what became of it: at most for its expiry and the way of the answer. Not
    /// from a handler or callback.
    pub fn command<K: CommandKind>(&self, body: &K::Body) -> Outcome {
        self.send::<K>(body).wait()
    }

    /// Sends a command. What became of it can be waited for, awaited, or forgotten. Never blocks.
    pub fn send<K: CommandKind>(&self, body: &K::Body) -> Pending<Outcome> {
        self.send_within::<K>(body, self.expiry)
    }

    /// As [`Controller::send`], with an expiry of its own.
    pub fn send_within<K: CommandKind>(&self, body: &K::Body, expiry: Expiry) -> Pending<Outcome> {
        self.core.send::<K>(body, expiry)
    }

    /// `callback` gets each value of a telemetry kind and channel (0 where there is only one) from now on.
    pub fn on<K: TelemetryKind>(&self, channel: u8, callback: impl FnMut(K::Body, &Info) + Send + 'static) {
        self.core.on::<K>(channel, callback);
    }

    /// Values of a telemetry kind and channel wait in a queue from now on.
    pub fn queue<K: TelemetryKind>(&self, channel: u8, queue: Queue) -> TelemetryQueue<K> {
        self.core.inbox::<K>(channel, queue)
    }

    /// The latest value that came by itself; `None` before the first.
    pub fn latest<K: TelemetryKind>(&self, channel: u8) -> Option<K::Body> {
        self.core.latest::<K>(channel)
    }

    /// Asks the robot for its latest value, and blocks for it, at most 30 s. `None`: nothing was set yet.
    ///
    /// # Errors
    /// [`RequestError`]: the robot has no such telemetry, or did not answer.
    pub fn fetch<K: TelemetryKind>(&self, channel: u8) -> Result<Option<K::Body>, RequestError> {
        self.fetch_within::<K>(channel, PATIENCE).wait()
    }

    /// As [`Controller::fetch`], without blocking, with a time of its own.
    pub fn fetch_within<K: TelemetryKind>(
        &self,
        channel: u8,
        timeout: Duration,
    ) -> Pending<Result<Option<K::Body>, RequestError>> {
        self.core.fetch::<K>(channel, timeout)
    }

    /// As [`Controller::send_within`], of a kind that is known by its name, with its body's encoding.
    pub fn send_kind(&self, kind: &CommandEntry, body: Vec<u8>, expiry: Expiry) -> Pending<Outcome> {
        self.core.send_kind(kind, body.into(), expiry)
    }

    /// As [`Controller::on`], of a kind that is known by its name; `callback` gets the body's encoding, which is one where the kind is the
    /// library's.
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

    /// As [`Controller::latest`], of a kind that is known by its name.
    pub fn latest_kind(&self, kind: &TelemetryEntry, channel: u8) -> Option<Vec<u8>> {
        let body = self.core.latest_kind(kind, channel)?;
        (kind.check)(&body).is_ok().then(|| body.to_vec())
    }

    /// As [`Controller::fetch_within`], of a kind that is known by its name.
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

    /// Puts a telemetry kind and channel on the watch list: from the first one on nothing else is asked of the transport but what stands there. What
    /// has a callback or a queue is put there with it.
    pub fn watch<K: TelemetryKind>(&self, channel: u8) {
        self.core.watch::<K>(channel);
    }

    /// Takes it off the watch list.
    pub fn unwatch<K: TelemetryKind>(&self, channel: u8) {
        self.core.unwatch::<K>(channel);
    }

    /// Hears everything, as in the beginning.
    pub fn watch_all(&self) {
        self.core.watch_all();
    }

    /// Names of kinds and channels on the watch list; `None`: everything is heard.
    pub fn watched(&self) -> Option<Vec<(String, u8)>> {
        self.core.watched()
    }

    /// Who may move a subsystem (empty: the whole robot). Blocks for the answer, at most 30 s, as do the others here.
    ///
    /// # Errors
    /// [`RequestError`]: there is no such subsystem, or no answer.
    pub fn right(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::Ask, 0, PATIENCE).wait()
    }

    /// Asks for the right to move a subsystem; granted if nobody else has it.
    ///
    /// # Errors
    /// [`RequestError`]: it is another's, or no answer came.
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

    /// Hands the right to move a subsystem over to the controller that the robot calls so ([`Controller::id`]).
    ///
    /// # Errors
    /// [`RequestError`]: it is not this controller's, the robot does not hear the other, or no answer came.
    pub fn hand_right_over(&self, subsystem: &str, to: u64) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::HandOver, to, PATIENCE).wait()
    }

    /// Takes the right to move a subsystem, also from another, if the robot permits it.
    ///
    /// # Errors
    /// [`RequestError`]: the robot does not, or no answer came.
    pub fn take_right_over(&self, subsystem: &str) -> Result<Right, RequestError> {
        self.core.wish(subsystem, Wish::TakeOver, 0, PATIENCE).wait()
    }

    /// Says from which level on the robot's log is wanted: 1 fatal, 2 error, 3 warn, 4 info, 5 debug; 0 none. Blocks for the answer, at most
    /// 30 s.
    ///
    /// # Errors
    /// [`RequestError`]: no answer.
    pub fn set_log_level(&self, level: u32) -> Result<(), RequestError> {
        self.core.ask_log_level(level, PATIENCE).wait()
    }

    /// The files that the robot shares under an identifier. Blocks for the answer. Which identifiers there are says
    /// [`FileDefinition`](crate::telemetry::FileDefinition).
    ///
    /// # Errors
    /// [`RequestError`]: it shares nothing of that name, or did not answer.
    pub fn files(&self, identifier: &str) -> Result<Vec<FileInfo>, RequestError> {
        self.core.files(identifier)
    }

    /// The same controller, whose downloads from this handle may do more than make new files that are not hidden.
    #[must_use]
    pub fn saving(&self, saving: Saving) -> Controller {
        Controller {
            saving,
            ..self.clone()
        }
    }

    /// Fetches one file into the folder `into`, under the path that is asked for (a single file under its identifier), and blocks until it is whole and its SHA-256 is
    /// the robot's. `progress` is told of each piece, and ends the download where it says so ([`GoOn`]). An interrupted download goes on where it was; before it is whole it is called `.NAME.part`. Nothing outside of `into`
    /// is written, whatever the robot says, no file is replaced, and none whose name begins with a dot is made, unless [`Controller::saving`] allows it. Not from
    /// a handler or callback.
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

    /// Fetches all files that are shared under an identifier, one after the other, as [`Controller::download`], into a folder of their own:
    /// `into/IDENTIFIER` (a single file is called so itself). The robot chooses their names within that. On version 6's wire all of it
    /// comes in one answer, of at most 256 MiB.
    ///
    /// # Errors
    /// [`FileError`] of the first that was not fetched; where one may not be written by its name, none is.
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

    /// Called when the robot is found or lost.
    pub fn on_connection(&self, callback: impl Fn(Connection) + Send + Sync + 'static) {
        self.core.on_connection.set(Some(Arc::new(callback)));
    }

    /// Blocks until the robot was heard and has said what it can do; whether that was within `timeout`.
    pub fn wait_until_found(&self, timeout: Duration) -> bool {
        self.core.wait_until_met(timeout)
    }

    /// Whether the robot is heard.
    pub fn is_found(&self) -> bool {
        lock(&self.core.state).found
    }

    /// From a heartbeat to its answer, smoothed; `None` before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        lock(&self.core.state).rtt
    }

    /// What the robot calls itself, as of its last welcome.
    pub fn robot_name(&self) -> Option<String> {
        lock(&self.core.state)
            .known
            .as_ref()
            .map(|known| known.robot.clone())
    }

    /// Whether the robot has said which kinds of commands and telemetry it has. Version 6's wire has no way to.
    pub fn knows_kinds(&self) -> bool {
        !self.core.speaks_v6() && lock(&self.core.state).known.is_some()
    }

    /// Names of the commands that the robot takes, as of its last welcome; none where it cannot tell ([`Controller::knows_kinds`]).
    pub fn robot_commands(&self) -> Vec<String> {
        let known = lock(&self.core.state).known.clone();
        known
            .map(|known| known.commands.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Names of the telemetry that the robot has, as of its last welcome; none where it cannot tell ([`Controller::knows_kinds`]).
    pub fn robot_telemetry(&self) -> Vec<String> {
        let known = lock(&self.core.state).known.clone();
        known
            .map(|known| known.telemetry.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Names of the robot's subsystems, as of its last welcome.
    pub fn subsystems(&self) -> Vec<String> {
        lock(&self.core.state)
            .known
            .as_ref()
            .map(|known| known.subsystems.clone())
            .unwrap_or_default()
    }

    /// Number and name of the channels of a telemetry kind that have a name, as of the robot's last welcome.
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

    /// What came, went and was dropped so far.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.statistics(now())
    }

    /// As the robot calls this run to other controllers, who hand the right to move over to it by this; 0 before the robot was met, and on
    /// version 6's wire. Whoever knows it can do nothing as this controller.
    pub fn id(&self) -> u64 {
        self.core.id()
    }

    /// Ends it: requests under way end as unreachable, no callback begins after this.
    pub fn stop(&self) {
        self.core.stop();
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller({}, {:x})", self.core.name, self.core.id())
    }
}
