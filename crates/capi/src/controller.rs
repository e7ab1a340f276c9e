//! Controllers: the end of remote control that sends commands and receives telemetry.

use crate::callback::{Calls, User};
use crate::node::Node;
use crate::pointer::{
    self, array, consume, file, give, give_if, handle, invalid, output, set, text_out, timeout,
};
use crate::robot::{FreeUser, command_kind, in_process, telemetry_kind, text};
use crate::status::{Failure, Status, free, guard};
use crate::zmq::{self, Zmq};
use remote::controller::{FileError, FileInfo, Progress};
use remote::transport::ControllerEnd;
use remote::transport::link::LinkController;
use remote::{Connection, Expiry, Pending};
use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Commands one robot and receives its telemetry.
pub struct Controller(ManuallyDrop<Ends>);

struct Ends {
    controller: remote::Controller,
    calls: Arc<Calls>,
    process: u32,
}

/// A command that was sent.
pub struct Sent {
    state: Mutex<State>,
    process: u32,
}

enum State {
    Waits(Pending<remote::Outcome>),
    /// Another thread waits for its outcome.
    Awaited,
    Known(remote::Outcome),
}

/// A telemetry value, or other bytes.
pub struct Value(Vec<u8>);

/// Settings of a controller.
#[repr(C)]
pub struct ControllerOptions {
    /// Interval of heartbeats to the robot, in nanoseconds: 300 ms by default. The robot is lost after three
    /// intervals without a message from it, but not before 1 s and two round trips.
    pub heartbeat_ns: i64,
    /// Connects to the robot over ZeroMQ instead of the bus. NULL by default.
    pub zmq: *const Zmq,
}

/// The outcome of a command.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its handler executed it.
    Executed = 0,
    /// Not executed: it has no handler, it is malformed, its handler refused it, or another controller has
    /// the right to move.
    Rejected = 1,
    /// Not executed and never will be: it was too old when it arrived, or a newer one of its kind arrived
    /// first.
    Expired = 2,
    /// The robot's answer did not arrive in time, and the command did not reach it.
    Unreachable = 3,
    /// The robot's answer did not arrive in time, but the command may have been executed.
    MaybeExecuted = 4,
}

/// A controller's request about the right to move.
#[repr(C)]
pub enum Wish {
    /// Ask who has it.
    Ask = 0,
    /// Get it, if nobody else has it.
    Request = 1,
    /// Give it back.
    Release = 2,
    /// Hand it over to another controller.
    HandOver = 3,
    /// Get it, even from another controller, if the robot permits.
    TakeOver = 4,
}

/// The holder of the right to move.
#[repr(C)]
pub struct Right {
    /// The number of a controller's run (`ropewalk_controller_id`); 0: nobody.
    pub holder: u64,
    /// Whether the asking controller holds it.
    pub mine: bool,
    /// The holder's name, cut to fit; empty: nobody.
    pub holder_name: [c_char; 64],
}

/// A telemetry value, valid until the function that receives it returns.
#[repr(C)]
pub struct Telemetry {
    /// The name of its kind.
    pub kind: *const c_char,
    /// The body, encoded as protocol buffers.
    pub body: *const u8,
    /// Length of the body in bytes.
    pub len: usize,
    /// Number of the value within its kind and channel, assigned by the robot, starting at 1.
    pub sequence: u64,
    /// How many values of this kind and channel are missing since the first one received.
    pub lost: u64,
    /// 0 if there is only one.
    pub channel: u8,
}

/// Receives telemetry values on a thread of the library, which waits for it. It must not wait for an answer
/// of the same robot. It must not throw a C++ exception.
pub type TelemetryHandler = Option<unsafe extern "C" fn(user: *mut c_void, telemetry: *const Telemetry)>;

/// The robot was found or lost.
pub type ConnectionHandler = Option<unsafe extern "C" fn(user: *mut c_void, found: bool)>;

/// Receives a file that a robot shares, or the progress of a download: `done` of `size` bytes. `path` is
/// relative to the shared folder, empty if a single file is shared, and valid until the function returns.
/// Returns whether to continue. Called on the requesting thread; it must not throw a C++ exception.
pub type FileHandler =
    Option<unsafe extern "C" fn(user: *mut c_void, path: *const c_char, done: u64, size: u64) -> bool>;

/// Returns the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_controller_options_default() -> ControllerOptions {
    ControllerOptions {
        heartbeat_ns: 300_000_000,
        zmq: std::ptr::null(),
    }
}

/// Starts a controller of the robot called `robot` on this bus, and connects to it in the background. `name`
/// is for people. `options` may be NULL. `node` and `robot` may be NULL if the options name an end over
/// ZeroMQ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_new(
    node: *const Node,
    name: *const c_char,
    robot: *const c_char,
    options: *const ControllerOptions,
    out: *mut *mut Controller,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (name, options) = unsafe { (pointer::text(name, "controller's name")?, options.as_ref()) };
        // SAFETY: the crate's contract.
        let over_zmq = options.and_then(|options| unsafe { options.zmq.as_ref() });
        let end: Arc<dyn ControllerEnd> = match over_zmq {
            // SAFETY: the crate's contract.
            Some(end) => unsafe { zmq::controller(end) }?,
            None => {
                // SAFETY: the crate's contract.
                let (node, robot) = unsafe { (handle(node, "node")?, pointer::text(robot, "robot's name")?) };
                Arc::new(LinkController::new(node.inner(), robot))
            }
        };
        let mut builder = remote::Controller::builder(name).end(end);
        if let Some(options) = options {
            builder = builder.heartbeat(timeout(options.heartbeat_ns));
        }
        let ends = Ends {
            controller: builder.start()?,
            calls: Arc::default(),
            process: std::process::id(),
        };
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Controller(ManuallyDrop::new(ends)), out) };
        Ok(Status::Ok)
    })
}

/// Blocks until the robot has answered and described its capabilities; `ROPEWALK_STATUS_EMPTY` after
/// `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_wait_until_found(
    controller: *const Controller,
    timeout_ns: i64,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        Ok(Status::of(ends.controller.wait_until_found(timeout(timeout_ns))))
    })
}

/// Sets the function to call when the robot is found or lost. Finally, also on failure, `free_user` is called
/// with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_on_connection(
    controller: *const Controller,
    callback: ConnectionHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        let calls = ends.calls.clone();
        ends.controller.on_connection(move |connection| {
            let found = connection == Connection::Found;
            // SAFETY: the crate's contract.
            calls.run(|| unsafe { callback(user.pointer(), found) });
        });
        Ok(Status::Ok)
    })
}

/// Returns the smoothed time from a heartbeat to its answer; `ROPEWALK_STATUS_EMPTY` before the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_round_trip(
    controller: *const Controller,
    round_trip_ns: *mut i64,
) -> Status {
    guard(|| {
        output(round_trip_ns, "round_trip_ns")?;
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        let time = ends.controller.round_trip();
        if let Some(time) = time {
            // SAFETY: the crate's contract; it was checked.
            unsafe { set(round_trip_ns, i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)) };
        }
        Ok(Status::of(time.is_some()))
    })
}

/// Returns the number of the controller's run, which identifies it to the robot and to other controllers. 0
/// if `controller` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_id(controller: *const Controller) -> u64 {
    // SAFETY: the crate's contract.
    unsafe { controller.as_ref() }.map_or(0, |c| c.0.controller.id())
}

/// Sends a command with its body, encoded as protocol buffers. It expires after `expiry_ns`: 0 means twice
/// the round trip and at least 200 ms; negative means never, which commands that move do not allow. Never
/// blocks. `out` may be NULL if the outcome does not matter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_send(
    controller: *const Controller,
    kind: *const c_char,
    body: *const u8,
    len: usize,
    expiry_ns: i64,
    out: *mut *mut Sent,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        // SAFETY: the crate's contract.
        let (entry, body) = unsafe { (command_kind(kind, std::ptr::null())?, array(body, len, "body")?) };
        let malformed = |e| Failure::new(Status::Content, format!("not a valid {}: {e}", entry.name));
        (entry.check)(body).map_err(malformed)?;
        let expiry = match expiry_ns {
            0 => Expiry::Default,
            ns => u64::try_from(ns).map_or(Expiry::Never, |ns| Expiry::After(Duration::from_nanos(ns))),
        };
        let pending = ends.controller.send_kind(&entry, body.to_vec(), expiry);
        if !out.is_null() {
            let sent = Sent {
                state: Mutex::new(State::Waits(pending)),
                process: ends.process,
            };
            // SAFETY: the crate's contract; `out` was checked.
            unsafe { give(sent, out) };
        }
        Ok(Status::Ok)
    })
}

/// Blocks until the outcome of a command is known, at most `timeout_ns`; `ROPEWALK_STATUS_EMPTY` if it is not
/// known by then. May be called repeatedly, and then returns the same outcome. Do not call it from a callback
/// of the library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_sent_wait(
    sent: *const Sent,
    timeout_ns: i64,
    outcome: *mut Outcome,
) -> Status {
    guard(|| {
        output(outcome, "outcome")?;
        // SAFETY: the crate's contract.
        let sent = unsafe { handle(sent, "sent command") }?;
        in_process(sent.process)?;
        let pending = match &mut *sent.lock() {
            state @ State::Waits(_) => std::mem::replace(state, State::Awaited),
            State::Awaited => return Err(invalid("another thread waits for the outcome of this command")),
            State::Known(_) => State::Awaited,
        };
        if let State::Waits(pending) = pending {
            *sent.lock() = match pending.wait_for(timeout(timeout_ns)) {
                Ok(outcome) => State::Known(outcome),
                Err(pending) => State::Waits(pending),
            };
        }
        let known = match &*sent.lock() {
            State::Known(outcome) => Some(of(outcome)),
            _ => None,
        };
        if let Some(known) = known {
            // SAFETY: the crate's contract; `outcome` was checked.
            unsafe { set(outcome, known) };
        }
        Ok(Status::of(known.is_some()))
    })
}

/// Writes why a command was not executed, for people; empty if it was. Call it after `ropewalk_sent_wait` has
/// returned the outcome. `len` (may be NULL) always gets the length with the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_sent_reason(
    sent: *const Sent,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let state = unsafe { handle(sent, "sent command") }?.lock();
        let reason = match &*state {
            State::Known(outcome) => reason(outcome),
            _ => {
                return Err(invalid(
                    "the outcome of this command is not known yet: wait for it",
                ));
            }
        };
        // SAFETY: the crate's contract.
        unsafe { text_out(reason, buffer, capacity, len) }
    })
}

/// Frees a sent command, which stays under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_sent_free(sent: *mut Sent) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(sent, "sent command") }));
}

/// Sets the function that receives each value of a telemetry kind and channel (0 if there is only one) from
/// now on. Malformed bodies of the library's kinds are not passed to it. Finally, also on failure,
/// `free_user` is called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_on_telemetry(
    controller: *const Controller,
    kind: *const c_char,
    channel: u8,
    callback: TelemetryHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        // SAFETY: the crate's contract.
        let entry = unsafe { telemetry_kind(kind) }?;
        let (name, calls) = (text(entry.name), ends.calls.clone());
        ends.controller.on_kind(&entry, channel, move |body, info| {
            let telemetry = Telemetry {
                kind: name.as_ptr(),
                body: body.as_ptr(),
                len: body.len(),
                sequence: info.sequence,
                lost: info.lost,
                channel: info.channel,
            };
            // SAFETY: the crate's contract; everything that it points at lives until it returns.
            calls.run(|| unsafe { callback(user.pointer(), &telemetry) });
        });
        Ok(Status::Ok)
    })
}

/// Returns the latest value of a telemetry kind and channel that the robot sent by itself;
/// `ROPEWALK_STATUS_EMPTY` before the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_latest(
    controller: *const Controller,
    kind: *const c_char,
    channel: u8,
    out: *mut *mut Value,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        // SAFETY: the crate's contract.
        let latest = ends
            .controller
            .latest_kind(&unsafe { telemetry_kind(kind) }?, channel);
        // SAFETY: the crate's contract; `out` was checked.
        Ok(unsafe { give_if(latest.map(Value), out) })
    })
}

/// Requests the latest value of a telemetry kind and channel from the robot, and blocks for it at most
/// `timeout_ns`. `ROPEWALK_STATUS_EMPTY`: none has been set yet; `ROPEWALK_STATUS_REJECTED`: the robot has no
/// such telemetry; `ROPEWALK_STATUS_TIMEOUT`: it did not answer. Do not call it from a callback of the
/// library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_fetch(
    controller: *const Controller,
    kind: *const c_char,
    channel: u8,
    timeout_ns: i64,
    out: *mut *mut Value,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        // SAFETY: the crate's contract.
        let entry = unsafe { telemetry_kind(kind) }?;
        let fetched = ends
            .controller
            .fetch_kind(&entry, channel, timeout(timeout_ns))
            .wait()?;
        // SAFETY: the crate's contract; `out` was checked.
        Ok(unsafe { give_if(fetched.map(Value), out) })
    })
}

/// Returns the bytes of a value, encoded as protocol buffers, valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_value_data(
    value: *const Value,
    data: *mut *const u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        output(data, "data")?;
        // SAFETY: the crate's contract.
        let bytes = &unsafe { handle(value, "value") }?.0;
        // SAFETY: the crate's contract; `data` was checked.
        unsafe {
            set(data, bytes.as_ptr());
            set(len, bytes.len());
        }
        Ok(Status::Ok)
    })
}

/// Frees a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_value_free(value: *mut Value) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(value, "value") }));
}

/// Queries, requests, releases, hands over or takes over the right to move a subsystem (empty: the whole
/// robot). `wish` is a `ropewalk_wish`; with `ROPEWALK_WISH_HAND_OVER`, `to` is the number of the controller
/// that gets the right. Blocks for the answer, at most 30 s; do not call it from a callback of the library.
/// `ROPEWALK_STATUS_REJECTED`: the robot refuses, and the error message says why; `ROPEWALK_STATUS_TIMEOUT`:
/// it did not answer. `right` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_right(
    controller: *const Controller,
    subsystem: *const c_char,
    wish: u32,
    to: u64,
    right: *mut Right,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        // SAFETY: the crate's contract.
        let subsystem = unsafe { pointer::text(subsystem, "subsystem") }?;
        let controller = &ends.controller;
        let granted = match wish {
            0 => controller.right(subsystem)?,
            1 => controller.request_right(subsystem)?,
            2 => controller.release_right(subsystem)?,
            3 => controller.hand_right_over(subsystem, to)?,
            4 => controller.take_right_over(subsystem)?,
            n => return Err(invalid(&format!("{n} is not a ropewalk_wish"))),
        };
        let (holder, name) = granted.holder.unwrap_or_default();
        let mut holder_name = [0; 64];
        // The last byte stays zero; the name is cut between characters.
        let end = (0..=name.len().min(63)).rev().find(|n| name.is_char_boundary(*n));
        for (to, from) in holder_name.iter_mut().zip(name[..end.unwrap_or(0)].bytes()) {
            *to = from as c_char;
        }
        let is = Right {
            holder,
            mine: granted.mine,
            holder_name,
        };
        // SAFETY: the crate's contract.
        unsafe { set(right, is) };
        Ok(Status::Ok)
    })
}

/// Calls `callback` for each file that the robot shares under an identifier. Blocks for the answer; do not
/// call it from a callback of the library. `ROPEWALK_STATUS_REJECTED`: the robot shares nothing under that
/// name; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_EMPTY`: `callback` stopped it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_files(
    controller: *const Controller,
    identifier: *const c_char,
    callback: FileHandler,
    user: *mut c_void,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        // SAFETY: the crate's contract.
        let identifier = unsafe { pointer::text(identifier, "identifier") }?;
        let mut files = ends.controller.files(identifier)?.into_iter();
        let all = files.all(|FileInfo { path, size }| {
            // SAFETY: the crate's contract; the text lives until it returns.
            unsafe { callback(user, text(&path).as_ptr(), 0, size) }
        });
        Ok(Status::of(all))
    })
}

/// Downloads a file that the robot shares into the folder `into`, under its path there (a single file, whose
/// path is empty, under its identifier), or all files of an identifier if `path` is NULL. Blocks until the
/// download is complete and its SHA-256 matches the robot's. An interrupted download resumes where it
/// stopped; an incomplete file is called `.NAME.part`. Nothing outside of `into` is written, whatever path
/// the robot gives. `progress` (may be NULL) is called for each received piece. `written` (may be NULL) gets
/// the paths of the written files, each with its zero byte. Do not call it from a callback of the library.
/// `ROPEWALK_STATUS_REJECTED`: the robot refuses; `ROPEWALK_STATUS_TIMEOUT`: it did not answer;
/// `ROPEWALK_STATUS_INVALID_ARGUMENT`: the path leads out of the folder; `ROPEWALK_STATUS_SYSTEM`: the file
/// cannot be written; `ROPEWALK_STATUS_CONTENT`: the checksum does not match, and the file was deleted;
/// `ROPEWALK_STATUS_EMPTY`: `progress` stopped it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_download(
    controller: *const Controller,
    identifier: *const c_char,
    path: *const c_char,
    into: *const c_char,
    progress: FileHandler,
    user: *mut c_void,
    written: *mut *mut Value,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(controller, "controller") }?.ends()?;
        // SAFETY: the crate's contract.
        let (identifier, into) = unsafe { (pointer::text(identifier, "identifier")?, file(into, "folder")?) };
        let report = |p: Progress<'_>| match progress {
            // SAFETY: the crate's contract; the text lives until it returns.
            Some(callback) if !unsafe { callback(user, text(p.path).as_ptr(), p.done, p.size) } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        let fetched = if path.is_null() {
            ends.controller.download_all(identifier, into, report)
        } else {
            // SAFETY: the crate's contract.
            let path = unsafe { pointer::text(path, "path") }?;
            ends.controller
                .download(identifier, path, into, report)
                .map(|file| vec![file])
        };
        let fetched = match fetched {
            Err(FileError::Stopped) => return Ok(Status::Empty),
            fetched => fetched?,
        };
        if !written.is_null() {
            let names = fetched.iter().map(|file| file.as_os_str().as_bytes());
            let names = names.flat_map(|name| name.iter().copied().chain([0]));
            // SAFETY: the crate's contract; `written` was checked.
            unsafe { give(Value(names.collect()), written) };
        }
        Ok(Status::Ok)
    })
}

/// Stops a controller and frees it: everything that it moves stops. Pending commands end as unreachable.
/// Waits for its running callbacks, except the one that calls this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_free(controller: *mut Controller) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(controller, "controller") }));
}

impl Controller {
    fn ends(&self) -> Result<&Ends, Failure> {
        in_process(self.0.process)?;
        Ok(&self.0)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // A forked child has none of the threads that stopping would wait for.
        if in_process(self.0.process).is_ok() {
            self.0.controller.stop();
            self.0.calls.wait();
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl Sent {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of(outcome: &remote::Outcome) -> Outcome {
    match outcome {
        remote::Outcome::Executed => Outcome::Executed,
        remote::Outcome::Rejected(_) => Outcome::Rejected,
        remote::Outcome::Expired(_) => Outcome::Expired,
        remote::Outcome::Unreachable {
            maybe_executed: false,
            ..
        } => Outcome::Unreachable,
        remote::Outcome::Unreachable {
            maybe_executed: true, ..
        } => Outcome::MaybeExecuted,
    }
}

fn reason(outcome: &remote::Outcome) -> &str {
    match outcome {
        remote::Outcome::Executed => "",
        remote::Outcome::Rejected(reason) | remote::Outcome::Expired(reason) => reason,
        remote::Outcome::Unreachable { reason, .. } => reason,
    }
}
