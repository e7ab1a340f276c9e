//! Robots and controllers. Bodies are bytes here, and messages in `ropewalk/remote`.

use crate::fault::{OrRaise, raise};
use crate::node::Node;
use crate::wait;
use crate::zmq::{self, Zmq};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use remote::controller::Progress;
use remote::robot::{ControllerEvent, Origin};
use remote::transport::link::{LinkController, LinkRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use remote::{Connection, Expiry, Pending, Rejection, command, telemetry};
use std::future::Future;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The outcome of a command, with its names in Python: outcome, reason, and whether it may have been
/// executed.
type OutcomeFields = (&'static str, String, bool);

/// A robot or controller, with the process that created it.
struct Own<T>(Mutex<Option<T>>, u32);

impl<T: Clone + Send> Own<T> {
    fn new(end: T) -> Self {
        Own(Mutex::new(Some(end)), std::process::id())
    }

    fn get(&self) -> PyResult<T> {
        if self.1 != std::process::id() {
            let text = "it belongs to the parent process: create a robot or controller after fork";
            return Err(raise("Forked", text));
        }
        let stopped = || raise("NoPeer", "it was stopped: create another");
        lock(&self.0).clone().ok_or_else(stopped)
    }

    /// Ends it while other threads run, since it waits for their callbacks.
    fn end(&self, stop: impl FnOnce(T) + Send) {
        let end = lock(&self.0).take();
        if self.1 != std::process::id() {
            // A forked child has none of the threads that this would wait for.
            std::mem::forget(end);
        } else if let Some(end) = end {
            Python::attach(|py| py.detach(|| stop(end)));
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls into Python and reads the result. Exceptions are written to standard error and yield `None`; so does
/// an interpreter that is ending.
fn call<T>(f: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> Option<T> {
    Python::try_attach(|py| match f(py) {
        Ok(value) => Some(value),
        Err(error) => {
            error.write_unraisable(py, None);
            None
        }
    })
    .flatten()
}

fn too_many() -> PyErr {
    let text =
        "the name of a kind has 1 to 128 bytes, and a process may use a few thousand: name kinds, not values";
    raise("BadName", text)
}

fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
}

fn command_kind(name: &str, moves: Option<&str>) -> PyResult<command::Entry> {
    let kind = is_name(name).then(|| command::Entry::named(name, moves));
    kind.flatten().ok_or_else(too_many)
}

fn telemetry_kind(name: &str) -> PyResult<telemetry::Entry> {
    let kind = is_name(name).then(|| telemetry::Entry::named(name));
    kind.flatten().ok_or_else(too_many)
}

/// Converts a time in seconds from a setting.
fn seconds(value: f64, what: &str) -> PyResult<Duration> {
    let wrong = |e| raise("BadName", format!("{what}: {value} s: {e}"));
    Duration::try_from_secs_f64(value).map_err(wrong)
}

/// Runs `work` on another thread, which may send items to `each`, and waits for it while other threads run.
/// If `each` or a signal handler raises, `work` is asked to end, and nobody waits for it any more.
fn aside<E: Send + 'static, T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn(E) -> bool) -> T + Send + 'static,
    mut each: impl FnMut(E) -> PyResult<()>,
) -> PyResult<T> {
    enum Came<E, T> {
        Thing(E),
        End(T),
    }
    let (give, came) = channel();
    let run = move || {
        // An interrupted caller does not receive it.
        let value = work(&|thing| give.send(Came::Thing(thing)).is_ok());
        let _ = give.send(Came::End(value));
    };
    let no_thread = |e| raise("SystemFault", format!("no thread for a download: {e}"));
    std::thread::Builder::new()
        .name("remote-aside".into())
        .spawn(run)
        .map_err(no_thread)?;
    let came = Mutex::new(came);
    loop {
        let next = wait(py, None, |patience| match lock(&came).recv_timeout(patience) {
            Ok(next) => Ok(Some(next)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(raise("SystemFault", "a bug in ropewalk: it panicked"))
            }
        })?;
        match next {
            Some(Came::Thing(thing)) => each(thing)?,
            Some(Came::End(value)) => return Ok(value),
            None => {}
        }
    }
}

/// Receives commands and sends telemetry.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Robot(Own<remote::Robot>, Vec<Arc<zmq::RobotEnd>>);

#[pymethods]
impl Robot {
    #[new]
    #[pyo3(signature = (node, name, *, zmq=Vec::new(), start=true, require_request=false, lost_after=1.0, allow_v6_motion=true, twist_hold=Some(0.5)))]
    #[allow(clippy::too_many_arguments)] // They have names in Python.
    fn new(
        py: Python<'_>,
        node: Option<PyRef<'_, Node>>,
        name: &str,
        zmq: Vec<Zmq>,
        start: bool,
        require_request: bool,
        lost_after: f64,
        allow_v6_motion: bool,
        twist_hold: Option<f64>,
    ) -> PyResult<Self> {
        let mut builder = remote::Robot::builder(name)
            .require_request(require_request)
            .lost_after(seconds(lost_after, "lost_after")?)
            .allow_v6_motion(allow_v6_motion)
            .hold_twists(twist_hold.map(|s| seconds(s, "twist_hold")).transpose()?);
        let over_zmq: Vec<_> = zmq
            .into_iter()
            .map(|end| zmq::robot(end).map(Arc::new))
            .collect::<PyResult<_>>()?;
        if let Some(node) = &node {
            builder = builder.end(Arc::new(LinkRobot::new(&node.0, name)));
        } else if over_zmq.is_empty() {
            let text = "a robot needs a node, or an end over ZeroMQ (zmq=...): nobody could reach it";
            return Err(raise("BadName", text));
        }
        for end in &over_zmq {
            builder = builder.end(end.clone() as Arc<dyn RobotEnd>);
        }
        let made = py.detach(|| if start { builder.start() } else { builder.build() });
        Ok(Robot(Own::new(made.or_raise()?), over_zmq))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let robot = self.0.get()?;
        py.detach(|| robot.start()).or_raise()
    }

    /// Returns the address of an end over ZeroMQ, once it has started.
    #[pyo3(signature = (end=0, telemetry=false))]
    fn zmq_address(&self, end: usize, telemetry: bool) -> PyResult<Option<String>> {
        let count = self.1.len();
        let none = || {
            let text = format!("{end} is not one of the robot's {count} ends over ZeroMQ");
            raise("BadName", text)
        };
        Ok(zmq::address(self.1.get(end).ok_or_else(none)?, telemetry))
    }

    fn share(&self, py: Python<'_>, identifier: &str, path: PathBuf) -> PyResult<()> {
        let robot = self.0.get()?;
        let failed = |e| {
            let text = format!("{} cannot be shared: {e}", path.display());
            raise("SystemFault", text)
        };
        py.detach(|| robot.share(identifier, &path)).map_err(failed)
    }

    /// `callback(granted)`, once.
    fn ask_permission(&self, py: Python<'_>, description: &str, callback: Py<PyAny>) -> PyResult<()> {
        let robot = self.0.get()?;
        let answered = move |granted: bool| {
            call(|py| callback.call1(py, (granted,)));
        };
        py.detach(|| robot.ask_permission(description).then(answered));
        Ok(())
    }

    /// `handler(body, controller, id, sequence, age)` returns None, or why it does not execute the command.
    fn on_command(&self, kind: &str, moves: Option<&str>, handler: Py<PyAny>) -> PyResult<()> {
        let entry = command_kind(kind, moves)?;
        let robot = self.0.get()?;
        let me = robot.name().to_owned();
        robot.on_kind(&entry, move |body, context| {
            let (controller, id) = match &context.origin {
                Origin::Controller { id, name, .. } => (&**name, *id),
                Origin::V6 { .. } => ("", 0),
                Origin::Robot => (&*me, 0),
            };
            let age = context.age.map(|age| age.as_secs_f64());
            let said = call(|py| -> PyResult<Option<String>> {
                let arguments = (PyBytes::new(py, body), controller, id, context.sequence, age);
                handler.call1(py, arguments)?.extract(py)
            });
            match said {
                Some(None) => Ok(()),
                Some(Some(reason)) => Err(reason.into()),
                None => Err(Rejection::from("the robot's program was interrupted")),
            }
        });
        Ok(())
    }

    fn set(&self, py: Python<'_>, kind: &str, channel: u8, body: &[u8]) -> PyResult<()> {
        let (entry, robot) = (telemetry_kind(kind)?, self.0.get()?);
        let body = body.to_vec();
        py.detach(|| robot.set_kind(&entry, channel, body)).or_raise()
    }

    /// `callback(subsystem, controller)` returns whether the default action should also run.
    fn on_link_lost(&self, callback: Py<PyAny>) -> PyResult<()> {
        self.0.get()?.on_link_lost(move |lost| {
            let names = (lost.subsystem(), lost.controller());
            let stop = call(|py| callback.call1(py, names)?.extract(py));
            // A failing callback does not keep a robot moving.
            if stop.unwrap_or(true) {
                lost.stop();
            }
        });
        Ok(())
    }

    /// `callback(id, name, found)`
    fn on_controller(&self, callback: Py<PyAny>) -> PyResult<()> {
        self.0.get()?.on_controller(move |event| {
            let (id, name, found) = match event {
                ControllerEvent::Found { id, name, .. } => (id, name, true),
                ControllerEvent::Lost { id, name, .. } => (id, name, false),
            };
            call(|py| callback.call1(py, (id, &*name, found)));
        });
        Ok(())
    }

    /// `callback(subsystem, by, holder)` returns whether it may.
    fn on_take_over(&self, callback: Py<PyAny>) -> PyResult<()> {
        self.0.get()?.on_take_over(move |wish| {
            let names = (&*wish.subsystem, &*wish.by.0, &*wish.from.0);
            call(|py| callback.call1(py, names)?.extract(py)).unwrap_or(false)
        });
        Ok(())
    }

    /// The number of the controller that may move a subsystem.
    fn holder(&self, subsystem: &str) -> PyResult<Option<u64>> {
        Ok(self.0.get()?.holder(subsystem))
    }

    fn stop(&self) {
        self.0.end(|robot| robot.stop());
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a controller reaches its robot.
#[derive(FromPyObject)]
enum Way {
    Bus(String),
    Zmq(Zmq),
}

/// Commands one robot and receives its telemetry.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Controller(Own<remote::Controller>);

#[pymethods]
impl Controller {
    #[new]
    #[pyo3(signature = (node, name, robot, *, heartbeat=0.3))]
    fn new(
        py: Python<'_>,
        node: Option<PyRef<'_, Node>>,
        name: &str,
        robot: Way,
        heartbeat: f64,
    ) -> PyResult<Self> {
        let end: Arc<dyn ControllerEnd> = match (robot, &node) {
            (Way::Zmq(zmq), _) => zmq::controller(zmq)?,
            (Way::Bus(robot), Some(node)) => Arc::new(LinkController::new(&node.0, &robot)),
            (Way::Bus(robot), None) => {
                let text = format!(
                    "{robot:?} is a name on the bus, which needs a node; over ZeroMQ give a Zmq instead"
                );
                return Err(raise("BadName", text));
            }
        };
        let builder = remote::Controller::builder(name)
            .end(end)
            .heartbeat(seconds(heartbeat, "heartbeat")?);
        Ok(Controller(Own::new(py.detach(|| builder.start()).or_raise()?)))
    }

    #[pyo3(signature = (timeout=None))]
    fn wait_until_found(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let controller = self.0.get()?;
        let step = |patience| Ok(controller.wait_until_found(patience).then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    /// `callback(found)`
    fn on_connection(&self, callback: Py<PyAny>) -> PyResult<()> {
        self.0.get()?.on_connection(move |connection| {
            call(|py| callback.call1(py, (connection == Connection::Found,)));
        });
        Ok(())
    }

    #[getter]
    fn round_trip(&self) -> PyResult<Option<f64>> {
        Ok(self.0.get()?.round_trip().map(|time| time.as_secs_f64()))
    }

    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.0.get()?.id())
    }

    /// Returns the names of the robot's commands, telemetry and subsystems.
    fn robot(&self) -> PyResult<(Vec<String>, Vec<String>, Vec<String>)> {
        let controller = self.0.get()?;
        Ok((
            controller.robot_commands(),
            controller.robot_telemetry(),
            controller.subsystems(),
        ))
    }

    /// `expiry` in seconds; None means twice the round trip; infinity means no expiry.
    fn send(&self, py: Python<'_>, kind: &str, body: &[u8], expiry: Option<f64>) -> PyResult<Sent> {
        let (entry, controller) = (command_kind(kind, None)?, self.0.get()?);
        (entry.check)(body).map_err(|e| raise("ContentError", format!("not a valid {}: {e}", entry.name)))?;
        let expiry = match expiry {
            None => Expiry::Default,
            Some(seconds) if seconds == f64::INFINITY => Expiry::Never,
            Some(value) => Expiry::After(seconds(value, "expiry")?),
        };
        let body = body.to_vec();
        let pending = py.detach(|| controller.send_kind(&entry, body, expiry));
        Ok(Sent {
            state: Mutex::new(State::Waits(pending)),
            listeners: Arc::default(),
        })
    }

    /// `callback(body, channel, sequence, lost)`
    fn on_telemetry(&self, kind: &str, channel: u8, callback: Py<PyAny>) -> PyResult<()> {
        let entry = telemetry_kind(kind)?;
        self.0.get()?.on_kind(&entry, channel, move |body, info| {
            call(|py| {
                let arguments = (PyBytes::new(py, body), info.channel, info.sequence, info.lost);
                callback.call1(py, arguments)
            });
        });
        Ok(())
    }

    fn latest<'py>(&self, py: Python<'py>, kind: &str, channel: u8) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let latest = self.0.get()?.latest_kind(&telemetry_kind(kind)?, channel);
        Ok(latest.map(|body| PyBytes::new(py, &body)))
    }

    fn fetch<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        channel: u8,
        timeout: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (entry, controller) = (telemetry_kind(kind)?, self.0.get()?);
        let pending = controller.fetch_kind(&entry, channel, seconds(timeout, "timeout")?);
        let slot = Mutex::new(Some(pending));
        // It has its own deadline.
        let answer = wait(py, None, |patience| {
            let Some(pending) = lock(&slot).take() else {
                return Ok(None);
            };
            Ok(match pending.wait_for(patience) {
                Ok(answer) => Some(answer),
                Err(pending) => {
                    *lock(&slot) = Some(pending);
                    None
                }
            })
        })?;
        let body = answer.transpose().or_raise()?.flatten();
        Ok(body.map(|body| PyBytes::new(py, &body)))
    }

    /// Returns (number of the holder, or None; its name; whether it is this controller).
    #[pyo3(signature = (subsystem, wish, to=0))]
    fn right(
        &self,
        py: Python<'_>,
        subsystem: &str,
        wish: &str,
        to: u64,
    ) -> PyResult<(Option<u64>, String, bool)> {
        let controller = self.0.get()?;
        let right = py.detach(|| match wish {
            "ask" => Some(controller.right(subsystem)),
            "request" => Some(controller.request_right(subsystem)),
            "release" => Some(controller.release_right(subsystem)),
            "hand_over" => Some(controller.hand_right_over(subsystem, to)),
            "take_over" => Some(controller.take_right_over(subsystem)),
            _ => None,
        });
        let right = right
            .ok_or_else(|| raise("BadName", format!("{wish:?} is not a wish")))?
            .or_raise()?;
        let (id, name) = right
            .holder
            .map_or((None, String::new()), |(id, name)| (Some(id), name));
        Ok((id, name, right.mine))
    }

    /// Returns path and size of each file.
    fn files(&self, py: Python<'_>, identifier: String) -> PyResult<Vec<(String, u64)>> {
        let controller = self.0.get()?;
        let files = aside(
            py,
            move |_: &dyn Fn(()) -> bool| controller.files(&identifier),
            Ok,
        )?;
        let files = files.or_raise()?.into_iter();
        Ok(files.map(|file| (file.path, file.size)).collect())
    }

    /// `progress(path, done, size)`; without a path, downloads all files.
    fn download(
        &self,
        py: Python<'_>,
        identifier: String,
        path: Option<String>,
        into: PathBuf,
        progress: Py<PyAny>,
    ) -> PyResult<Vec<PathBuf>> {
        let controller = self.0.get()?;
        let fetch = move |tell: &dyn Fn((String, u64, u64)) -> bool| {
            let report = |p: Progress<'_>| match tell((p.path.to_owned(), p.done, p.size)) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            };
            match path {
                Some(path) => controller
                    .download(&identifier, &path, &into, report)
                    .map(|file| vec![file]),
                None => controller.download_all(&identifier, &into, report),
            }
        };
        aside(py, fetch, |reported| progress.call1(py, reported).map(drop))?.or_raise()
    }

    fn stop(&self) {
        self.0.end(|controller| controller.stop());
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A command that was sent.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Sent {
    state: Mutex<State>,
    listeners: Arc<Listeners>,
}

enum State {
    Waits(Pending<remote::Outcome>),
    Known(remote::Outcome),
    /// Only while waiting.
    Nothing,
}

/// Functions to call once the outcome of a command is known.
#[derive(Default)]
struct Listeners(Mutex<Vec<Py<PyAny>>>);

impl Wake for Listeners {
    fn wake(self: Arc<Self>) {
        let listeners = std::mem::take(&mut *lock(&self.0));
        for listener in listeners {
            call(|py| listener.call0(py));
        }
    }
}

impl Sent {
    /// Returns the outcome if it is known within `patience`. Returns `None` if another thread is waiting.
    fn look(&self, patience: Duration) -> Option<OutcomeFields> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(patience.min(Duration::from_millis(5)));
                return None;
            }
        };
        if matches!(*state, State::Waits(_))
            && let State::Waits(pending) = std::mem::replace(&mut *state, State::Nothing)
        {
            *state = match pending.wait_for(patience) {
                Ok(outcome) => State::Known(outcome),
                Err(pending) => State::Waits(pending),
            };
        }
        match &*state {
            State::Known(outcome) => Some(outcome_fields(outcome)),
            _ => None,
        }
    }
}

#[pymethods]
impl Sent {
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<OutcomeFields>> {
        wait(py, timeout, |patience| Ok(self.look(patience)))
    }

    /// Calls `listener` once, from any thread, when the outcome is known; immediately if it already is.
    fn listen(&self, py: Python<'_>, listener: Py<PyAny>) {
        lock(&self.listeners.0).push(listener);
        let known = py.detach(|| {
            let mut state = lock(&self.state);
            let waker = Waker::from(self.listeners.clone());
            if let State::Waits(pending) = &mut *state {
                match Pin::new(pending).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(outcome) => *state = State::Known(outcome),
                    Poll::Pending => return false,
                }
            }
            true
        });
        if known {
            self.listeners.clone().wake();
        }
    }
}

fn outcome_fields(outcome: &remote::Outcome) -> OutcomeFields {
    match outcome {
        remote::Outcome::Executed => ("executed", String::new(), true),
        remote::Outcome::Rejected(reason) => ("rejected", reason.clone(), false),
        remote::Outcome::Expired(reason) => ("expired", reason.clone(), false),
        remote::Outcome::Unreachable {
            maybe_executed,
            reason,
        } => ("unreachable", reason.clone(), *maybe_executed),
    }
}

/// Returns the library's kinds of commands: name, message, and subsystem.
#[pyfunction]
pub(crate) fn command_kinds() -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    let bodies = command::ALL.iter().zip(command::BODIES);
    bodies
        .map(|(kind, body)| (kind.name, *body, kind.moves))
        .collect()
}

/// Returns the library's kinds of telemetry: name and message.
#[pyfunction]
pub(crate) fn telemetry_kinds() -> Vec<(&'static str, &'static str)> {
    let bodies = telemetry::ALL.iter().zip(telemetry::BODIES);
    bodies.map(|(kind, body)| (kind.name, *body)).collect()
}

/// Returns all messages as an encoded `google.protobuf.FileDescriptorSet`.
#[pyfunction]
pub(crate) fn descriptors(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, remote::DESCRIPTORS)
}
