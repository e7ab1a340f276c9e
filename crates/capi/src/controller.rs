//! Controllers: the end of remote control that sends commands and hears telemetry.

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

/// Commands one robot and hears its telemetry.
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
    /// Another thread waits for it.
    Awaited,
    Known(remote::Outcome),
}

/// A value of telemetry, or other bytes.
pub struct Value(Vec<u8>);

/// How a controller behaves.
#[repr(C)]
pub struct ControllerOptions {
    /// How often the robot hears that it is there, in nanoseconds: 300 ms by default. The robot is lost after three of them without a word from
    /// it, but not before 1 s and two round trips.
    pub heartbeat_ns: i64,
    /// Reaches the robot over ZeroMQ instead of the bus. NULL by default.
    pub zmq: *const Zmq,
}

/// What became of a command.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its handler carried it out.
    Executed = 0,
    /// Not carried out: nobody handles it, it is malformed, its handler refused, or the right to move is another's.
    Rejected = 1,
    /// Not carried out and never will be: it was too old when it came, or a newer one of its kind came before it.
    Expired = 2,
    /// The robot's word on it did not come in time, and nothing reached it.
    Unreachable = 3,
    /// The robot's word on it did not come in time, but it may have been carried out.
    MaybeExecuted = 4,
}

/// What a controller wants of the right to move.
#[repr(C)]
pub enum Wish {
    /// To know who has it.
    Ask = 0,
    /// To have it, if nobody else has.
    Request = 1,
    /// To give it back.
    Release = 2,
    /// To give it to another controller.
    HandOver = 3,
    /// To have it, also from another, if the robot permits.
    TakeOver = 4,
}

/// Who has the right to move.
#[repr(C)]
pub struct Right {
    /// The number of a controller's run (`ropewalk_controller_id`); 0: nobody.
    pub holder: u64,
    /// Whether that is the controller that asks.
    pub mine: bool,
    /// What the holder calls itself, cut to what fits; empty: nobody.
    pub holder_name: [c_char; 64],
}

/// A value of telemetry, valid until the function that gets it returns.
#[repr(C)]
pub struct Telemetry {
    /// The name of its kind.
    pub kind: *const c_char,
    /// The body, encoded as protocol buffers encode it.
    pub body: *const u8,
    /// Bytes of the body.
    pub len: usize,
    /// Of this kind and channel, by the robot, from 1.
    pub sequence: u64,
    /// How many of this kind and channel are missing since the first that came.
    pub lost: u64,
    /// 0 where there is only one.
    pub channel: u8,
}

/// Gets values of telemetry, on a thread of the library's, which waits for it. It must not wait for an answer of the same robot. No C++ exception
/// must leave it.
pub type TelemetryHandler = Option<unsafe extern "C" fn(user: *mut c_void, telemetry: *const Telemetry)>;

/// The robot was found, or is lost.
pub type ConnectionHandler = Option<unsafe extern "C" fn(user: *mut c_void, found: bool)>;

/// A file that a robot shares, or how far a download of it is: `done` of `size` bytes. `path` is within the shared folder, empty where a single file is
/// shared, and valid until it returns. Returns whether to go on. Called on the thread that asks; no C++ exception must leave it.
pub type FileHandler =
    Option<unsafe extern "C" fn(user: *mut c_void, path: *const c_char, done: u64, size: u64) -> bool>;

/// The defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_controller_options_default() -> ControllerOptions {
    ControllerOptions {
        heartbeat_ns: 300_000_000,
        zmq: std::ptr::null(),
    }
}

/// Starts a controller of the robot that is called `robot` on this bus, and greets that in the background. `name` is for people. `options` may be
/// NULL. `node` and `robot` may be NULL where these name an end over ZeroMQ.
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

/// Blocks until the robot was heard and has said what it can do; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
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

/// `callback` is called when the robot is found or lost. In any case `free_user` is called with `user` in the end.
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

/// From a heartbeat to its answer, smoothed; `ROPEWALK_STATUS_EMPTY` before the first.
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

/// The number of the controller's run: who it is to the robot and to other controllers. 0 if `controller` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_controller_id(controller: *const Controller) -> u64 {
    // SAFETY: the crate's contract.
    unsafe { controller.as_ref() }.map_or(0, |c| c.0.controller.id())
}

/// Sends a command with its body, encoded as protocol buffers encode it. It stays good for `expiry_ns`: 0 is twice the round trip and at
/// least 200 ms; negative is for ever, and not for what moves. Never blocks. `out` may be NULL, if nobody wants to know what becomes of it.
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
        let malformed = |e| Failure::new(Status::Content, format!("this is no body of {}: {e}", entry.name));
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

/// Blocks until it is known what became of a command, at most `timeout_ns`, and tells that as often as it is asked; `ROPEWALK_STATUS_EMPTY` if it is not known by
/// then. Not from a function that the library calls.
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
            State::Awaited => return Err(invalid("another thread waits for what becomes of this command")),
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

/// Why a command was not carried out, for people; empty if it was. To be asked when `ropewalk_sent_wait` told what became of it. `len` (may be NULL)
/// gets the length with the zero byte in any case.
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
                    "it is not known yet what became of this command: wait for it",
                ));
            }
        };
        // SAFETY: the crate's contract.
        unsafe { text_out(reason, buffer, capacity, len) }
    })
}

/// Frees a sent command, which goes on all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_sent_free(sent: *mut Sent) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(sent, "sent command") }));
}

/// `callback` gets each value of a telemetry kind and channel (0 where there is only one) from now on. Bodies of the library's kinds that are none do not come
/// here. In any case `free_user` is called with `user` in the end.
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

/// The latest value of a telemetry kind and channel that came by itself; `ROPEWALK_STATUS_EMPTY` before the first.
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

/// Asks the robot for the latest value of a telemetry kind and channel, and blocks for it at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`: none was set yet;
/// `ROPEWALK_STATUS_REJECTED`: it has no such telemetry; `ROPEWALK_STATUS_TIMEOUT`: it did not answer. Not from a function that the library calls.
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

/// The bytes of a value, encoded as protocol buffers encode it, valid until it is freed.
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

/// Asks for, requests, releases, hands over or takes over the right to move a subsystem (empty: the whole robot). `wish` is a `ropewalk_wish`; `to` is the number of the controller
/// that gets it of `ROPEWALK_WISH_HAND_OVER`. Blocks for the answer, at most 30 s: not from a function that the library calls. `ROPEWALK_STATUS_REJECTED`: the robot does not grant it, and the message says why;
/// `ROPEWALK_STATUS_TIMEOUT`: it did not answer. `right` may be NULL.
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
            n => return Err(invalid(&format!("{n} is no ropewalk_wish"))),
        };
        let (holder, name) = granted.holder.unwrap_or_default();
        let mut holder_name = [0; 64];
        // The last byte stays zero; what is cut is cut between characters.
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

/// Calls `callback` for each file that the robot shares under an identifier. Blocks for the answer; not from a function that the library
/// calls. `ROPEWALK_STATUS_REJECTED`: it shares nothing of that name; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_EMPTY`: `callback`
/// ended it.
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

/// Fetches a file that the robot shares into the folder `into`, under its path there (a single file, whose path is empty, under its identifier), or with
/// `path` NULL all of an identifier, and blocks until it is whole and its SHA-256 is the robot's. An interrupted download goes on where it was; before it is
/// whole it is called `.NAME.part`. Nothing outside of `into` is written, whatever the robot calls it. `progress` (may be NULL) is called for each piece
/// that came. `written` (may be NULL) gets the paths of what was written, each with its zero byte. Not from a function that the library calls.
/// `ROPEWALK_STATUS_REJECTED`: the robot refuses; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_INVALID_ARGUMENT`: the path leads out
/// of the folder; `ROPEWALK_STATUS_SYSTEM`: it cannot be written; `ROPEWALK_STATUS_CONTENT`: it has another checksum, and was thrown away;
/// `ROPEWALK_STATUS_EMPTY`: `progress` ended it.
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
        let tell = |p: Progress<'_>| match progress {
            // SAFETY: the crate's contract; the text lives until it returns.
            Some(told) if !unsafe { told(user, text(p.path).as_ptr(), p.done, p.size) } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        let fetched = if path.is_null() {
            ends.controller.download_all(identifier, into, tell)
        } else {
            // SAFETY: the crate's contract.
            let path = unsafe { pointer::text(path, "path") }?;
            ends.controller
                .download(identifier, path, into, tell)
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

/// Stops a controller and frees it: what it moves stops. Commands under way end as unreachable. Waits for the functions that it calls, but for the
/// one that calls this.
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
