//! Robots: the end of remote control that receives commands and sends telemetry.

use crate::callback::{Calls, User};
use crate::node::Node;
use crate::pointer::{self, array, consume, file, give, handle, invalid, output, set, text_out, timeout};
use crate::status::{Failure, Status, free, guard};
use crate::zmq::{self, Zmq};
use remote::robot::{ControllerEvent, Origin};
use remote::transport::RobotEnd;
use remote::transport::link::LinkRobot;
use remote::{Context, Rejection, command, telemetry};
use std::ffi::{CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// A robot on this host's bus, commanded by controllers here and, over links, on other hosts.
pub struct Robot(ManuallyDrop<Ends>);

struct Ends {
    robot: remote::Robot,
    /// The ends that C named, in the same order.
    zmq: Vec<Arc<zmq::RobotEnd>>,
    calls: Arc<Calls>,
    process: u32,
}

/// Settings of a robot.
#[repr(C)]
pub struct RobotOptions {
    /// Whether the right to move has to be requested. By default a free right goes to the first controller
    /// that moves.
    pub require_request: bool,
    /// A controller is lost after this time without a message from it, plus twice its round trip. 1 s by
    /// default.
    pub lost_after_ns: i64,
    /// Answers nobody before `ropewalk_robot_start`, so that handlers, telemetry and files can be registered
    /// first. False by default: requests for anything that is not registered yet are refused.
    pub start_later: bool,
    /// Whether controllers that speak version 6 may move the robot, although the age of their commands is
    /// unknown. By default they may, on the ends that the robot was given.
    pub allow_v6_motion: bool,
    /// Ends over ZeroMQ, `zmq_count` of them, in addition to the one on the bus. NULL by default.
    pub zmq: *const Zmq,
    /// Number of ends.
    pub zmq_count: usize,
    /// How long a twist holds. If no other command moves the same subsystem within this time, its handler
    /// gets one without velocity from the robot itself. Below 0: until another command arrives. 0.5 s by
    /// default.
    pub twist_hold_ns: i64,
}

/// A command, valid until its handler returns.
#[repr(C)]
pub struct Command {
    /// The name of its kind.
    pub kind: *const c_char,
    /// The body, encoded as protocol buffers.
    pub body: *const u8,
    /// Length of the body in bytes.
    pub len: usize,
    /// The sender: the controller's name, or the robot's own name if the robot itself stops a subsystem that
    /// lost its controller.
    pub controller: *const c_char,
    /// The number of the controller's run; 0 for the robot itself.
    pub controller_id: u64,
    /// Increases with each request of its controller.
    pub sequence: u64,
    /// Upper bound of the command's age when it arrived; -1: unknown.
    pub age_ns: i64,
}

/// Executes a command and returns true; or returns false and writes the reason, for people, as a text with
/// its zero byte to `reason`, which has room for `capacity` bytes and is initially empty. Runs on a thread of
/// the library, which waits for it; one at a time for commands that move one subsystem, and for each kind. It
/// must not throw a C++ exception.
pub type CommandHandler = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        command: *const Command,
        reason: *mut c_char,
        capacity: usize,
    ) -> bool,
>;

/// The controller `controller` held the right to move `subsystem` and is lost. Returns whether the default
/// action should also run: the handler of twists gets a zero twist, the handler of joints gets their latest
/// state to hold.
pub type LinkLostHandler = Option<
    unsafe extern "C" fn(user: *mut c_void, subsystem: *const c_char, controller: *const c_char) -> bool,
>;

/// A controller connected or is lost. Texts are valid until the function returns.
pub type ControllerHandler =
    Option<unsafe extern "C" fn(user: *mut c_void, id: u64, name: *const c_char, found: bool)>;

/// Returns whether the controller `by` may take the right to move `subsystem` (empty: the whole robot) from
/// `holder`.
pub type TakeOverHandler = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        subsystem: *const c_char,
        by: *const c_char,
        holder: *const c_char,
    ) -> bool,
>;

/// The permission that the robot asked for is granted or denied. Called once, from any thread.
pub type AnswerHandler = Option<unsafe extern "C" fn(user: *mut c_void, granted: bool)>;

/// Frees the `user` pointer of a function once nothing can call that function any more. May be NULL.
pub type FreeUser = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Length of the buffer for a handler's reason.
const REASON: usize = 512;

/// Returns the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_robot_options_default() -> RobotOptions {
    RobotOptions {
        require_request: false,
        lost_after_ns: 1_000_000_000,
        start_later: false,
        allow_v6_motion: true,
        zmq: std::ptr::null(),
        zmq_count: 0,
        twist_hold_ns: 500_000_000,
    }
}

/// Starts a robot called `name`, both on the bus (words of letters, digits and `_`, with `/` between them)
/// and for people. `options` may be NULL. `node` may be NULL if the options name an end over ZeroMQ: then the
/// robot is not on the bus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_new(
    node: *const Node,
    name: *const c_char,
    options: *const RobotOptions,
    out: *mut *mut Robot,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (options, name) = unsafe { (options.as_ref(), pointer::text(name, "robot's name")?) };
        let (mut builder, mut over_zmq) = (remote::Robot::builder(name), Vec::new());
        if let Some(options) = options {
            builder = builder
                .require_request(options.require_request)
                .lost_after(timeout(options.lost_after_ns))
                .hold_twists((options.twist_hold_ns >= 0).then(|| timeout(options.twist_hold_ns)))
                .allow_v6_motion(options.allow_v6_motion);
            // SAFETY: the crate's contract.
            for end in unsafe { array(options.zmq, options.zmq_count, "ends over ZeroMQ") }? {
                // SAFETY: the crate's contract.
                over_zmq.push(Arc::new(unsafe { zmq::robot(end) }?));
            }
        }
        // An end on the bus comes first, also in the numbering.
        if !node.is_null() || over_zmq.is_empty() {
            // SAFETY: the crate's contract.
            let node = unsafe { handle(node, "node") }?;
            builder = builder.end(Arc::new(LinkRobot::new(node.inner(), name)));
        }
        for end in &over_zmq {
            builder = builder.end(end.clone() as Arc<dyn RobotEnd>);
        }
        let robot = builder.build()?;
        if !options.is_some_and(|options| options.start_later) {
            robot.start()?;
        }
        let ends = Ends {
            robot,
            zmq: over_zmq,
            calls: Arc::default(),
            process: std::process::id(),
        };
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Robot(ManuallyDrop::new(ends)), out) };
        Ok(Status::Ok)
    })
}

/// Starts to serve controllers, for a robot with the option `start_later`; otherwise does nothing. If it
/// fails, for instance because an address is in use, the robot has ended: free it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_start(robot: *const Robot) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(robot, "robot") }?.ends()?.robot.start()?;
        Ok(Status::Ok)
    })
}

/// Writes where controllers reach end number `end` (from 0) over ZeroMQ of those in the options, with its
/// actual port, once the robot has started; `ROPEWALK_STATUS_EMPTY` before. `telemetry`: the address of
/// version 6's telemetry instead. `len` (may be NULL) gets the length with the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_zmq_address(
    robot: *const Robot,
    end: usize,
    telemetry: bool,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let count = ends.zmq.len();
        let none = || {
            invalid(&format!(
                "{end} is not one of the robot's {count} ends over ZeroMQ"
            ))
        };
        match zmq::address(ends.zmq.get(end).ok_or_else(none)?, telemetry) {
            // SAFETY: the crate's contract.
            Some(address) => unsafe { text_out(&address, buffer, capacity, len) },
            None => Ok(Status::Empty),
        }
    })
}

/// Sets the handler that executes commands of a kind from now on, replacing any previous one. The kind is one
/// of the library's, such as `robot_remote_control.Twist`, whose bodies are checked first, or your own, such
/// as `acme.Spray`, with any body. Commands that are expired, repeated, out of order or not allowed do not
/// reach the handler. `moves` is the subsystem that the kind moves, for example `base` or `arm`; NULL: none,
/// or that of the library's kind. The first handler of a kind sets it. Only the controller that has the right
/// to move may send commands that move. Finally, also on failure, `free_user` is called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_on_command(
    robot: *const Robot,
    kind: *const c_char,
    moves: *const c_char,
    handler: CommandHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let handler = handler.ok_or_else(|| invalid("the handler is NULL"))?;
        // SAFETY: the crate's contract.
        let entry = unsafe { command_kind(kind, moves) }?;
        let (name, me) = (text(entry.name), text(ends.robot.name()));
        let calls = ends.calls.clone();
        ends.robot.on_kind(&entry, move |body, context| {
            calls.run(|| call(handler, &user, &name, &me, body, context))
        });
        Ok(Status::Ok)
    })
}

/// Sets the latest value of a telemetry kind and channel (0 if there is only one), and sends it to all
/// listeners. The body is encoded as for commands; `ROPEWALK_STATUS_CONTENT`: it is not a body of the
/// library's kind. Never blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_set(
    robot: *const Robot,
    kind: *const c_char,
    channel: u8,
    body: *const u8,
    len: usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        // SAFETY: the crate's contract.
        let (entry, body) = unsafe { (telemetry_kind(kind)?, array(body, len, "body")?) };
        ends.robot.set_kind(&entry, channel, body.to_vec())?;
        Ok(Status::Ok)
    })
}

/// Shares a file, or all files below a folder, with controllers, under its own identifier, which the
/// telemetry `robot_remote_control.FileDefinition` announces. Links are followed only if they stay below the
/// folder. One thread of the robot reads the files for all controllers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_share(
    robot: *const Robot,
    identifier: *const c_char,
    path: *const c_char,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        // SAFETY: the crate's contract.
        let (identifier, path) = unsafe { (pointer::text(identifier, "identifier")?, file(path, "path")?) };
        let failed = |e| {
            Failure::new(
                Status::System,
                format!("{} cannot be shared: {e}", path.display()),
            )
        };
        ends.robot.share(identifier, path).map_err(failed)?;
        Ok(Status::Ok)
    })
}

/// Asks the robot's controllers for a permission, through the telemetry
/// `robot_remote_control.PermissionRequest`, which a controller answers with the command
/// `robot_remote_control.Permission` with the same `requestuid`. `callback` gets the answer. The answer is no
/// when the robot stops, and when 64 newer questions are open. Finally, also on failure, `free_user` is
/// called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_ask_permission(
    robot: *const Robot,
    description: *const c_char,
    callback: AnswerHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        // SAFETY: the crate's contract.
        let description = unsafe { pointer::text(description, "description") }?;
        let calls = ends.calls.clone();
        ends.robot.ask_permission(description).then(move |granted| {
            calls.run(|| {
                // Freed at the end of the call; freeing the robot waits for that.
                let user = user;
                // SAFETY: the crate's contract.
                unsafe { callback(user.pointer(), granted) }
            });
        });
        Ok(Status::Ok)
    })
}

/// Sets the function to call, instead of stopping it, for each subsystem whose controller is lost. NULL
/// restores the default action. Finally, also on failure, `free_user` is called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_on_link_lost(
    robot: *const Robot,
    callback: LinkLostHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let Some(callback) = callback else {
            ends.robot.on_link_lost(|lost| lost.stop());
            return Ok(Status::Ok);
        };
        let calls = ends.calls.clone();
        ends.robot.on_link_lost(move |lost| {
            let (subsystem, controller) = (text(lost.subsystem()), text(lost.controller()));
            // SAFETY: the crate's contract; the texts live until it returns.
            let stop =
                calls.run(|| unsafe { callback(user.pointer(), subsystem.as_ptr(), controller.as_ptr()) });
            if stop {
                lost.stop();
            }
        });
        Ok(Status::Ok)
    })
}

/// Sets the function to call when controllers connect or are lost. Finally, also on failure, `free_user` is
/// called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_on_controller(
    robot: *const Robot,
    callback: ControllerHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        let calls = ends.calls.clone();
        ends.robot.on_controller(move |event| {
            let (id, name, found) = match event {
                ControllerEvent::Found { id, name, .. } => (id, name, true),
                ControllerEvent::Lost { id, name, .. } => (id, name, false),
            };
            let name = text(&name);
            // SAFETY: the crate's contract; the text lives until it returns.
            calls.run(|| unsafe { callback(user.pointer(), id, name.as_ptr(), found) });
        });
        Ok(Status::Ok)
    })
}

/// Sets the function that decides whether a controller may take the right to move from another; without one
/// it never may. Finally, also on failure, `free_user` is called with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_on_take_over(
    robot: *const Robot,
    callback: TakeOverHandler,
    user: *mut c_void,
    free_user: FreeUser,
) -> Status {
    let user = User::new(user, free_user);
    guard(|| {
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        let callback = callback.ok_or_else(|| invalid("the callback is NULL"))?;
        let calls = ends.calls.clone();
        ends.robot.on_take_over(move |wish| {
            let (subsystem, by, from) = (text(&wish.subsystem), text(&wish.by.0), text(&wish.from.0));
            let texts = (subsystem.as_ptr(), by.as_ptr(), from.as_ptr());
            // SAFETY: the crate's contract; the texts live until it returns.
            calls.run(|| unsafe { callback(user.pointer(), texts.0, texts.1, texts.2) })
        });
        Ok(Status::Ok)
    })
}

/// Returns the number of the controller that holds the right to move a subsystem; `ROPEWALK_STATUS_EMPTY`:
/// nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_holder(
    robot: *const Robot,
    subsystem: *const c_char,
    id: *mut u64,
) -> Status {
    guard(|| {
        output(id, "id")?;
        // SAFETY: the crate's contract.
        let ends = unsafe { handle(robot, "robot") }?.ends()?;
        // SAFETY: the crate's contract.
        let holder = ends
            .robot
            .holder(unsafe { pointer::text(subsystem, "subsystem") }?);
        if let Some(holder) = holder {
            // SAFETY: the crate's contract; `id` was checked.
            unsafe { set(id, holder) };
        }
        Ok(Status::of(holder.is_some()))
    })
}

/// Stops a robot and frees it: controllers lose it. Waits for its running callbacks, except the one that
/// calls this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_robot_free(robot: *mut Robot) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(robot, "robot") }));
}

impl Robot {
    fn ends(&self) -> Result<&Ends, Failure> {
        in_process(self.0.process)?;
        Ok(&self.0)
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        // A forked child has none of the threads that stopping would wait for.
        if in_process(self.0.process).is_ok() {
            self.0.robot.stop();
            self.0.calls.wait();
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// Refuses handles of the parent process.
pub(crate) fn in_process(process: u32) -> Result<(), Failure> {
    if process == std::process::id() {
        return Ok(());
    }
    let text = "the robot or controller belongs to the parent process: create one after fork";
    Err(Failure::new(Status::Forked, text))
}

/// Returns the kind of a command, by its name.
///
/// # Safety
/// As for the crate; `moves` may be NULL.
pub(crate) unsafe fn command_kind(
    kind: *const c_char,
    moves: *const c_char,
) -> Result<command::Entry, Failure> {
    // SAFETY: by this function's contract.
    let name = unsafe { kind_name(kind) }?;
    let moves = match moves.is_null() {
        true => None,
        // SAFETY: by this function's contract.
        false => Some(unsafe { pointer::text(moves, "subsystem") }?),
    };
    command::Entry::named(name, moves).ok_or_else(too_many)
}

/// Returns the kind of telemetry, by its name.
///
/// # Safety
/// As for the crate.
pub(crate) unsafe fn telemetry_kind(kind: *const c_char) -> Result<telemetry::Entry, Failure> {
    // SAFETY: by this function's contract.
    telemetry::Entry::named(unsafe { kind_name(kind) }?).ok_or_else(too_many)
}

/// # Safety
/// As for the crate.
unsafe fn kind_name<'a>(kind: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: by this function's contract.
    let name = unsafe { pointer::text(kind, "name of the kind") }?;
    if name.is_empty() || name.len() > 128 {
        let len = name.len();
        return Err(invalid(&format!(
            "the name of a kind has {len} bytes: 1 to 128 are allowed"
        )));
    }
    Ok(name)
}

fn too_many() -> Failure {
    invalid("this process has used too many names of kinds: name kinds, not values")
}

/// Converts a text for C, without its zero bytes.
pub(crate) fn text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

fn call(
    handler: unsafe extern "C" fn(*mut c_void, *const Command, *mut c_char, usize) -> bool,
    user: &User,
    kind: &CString,
    me: &CString,
    body: &[u8],
    context: &Context,
) -> Result<(), Rejection> {
    let (controller, controller_id) = match &context.origin {
        Origin::Controller { id, name, .. } => (text(name), *id),
        Origin::Robot => (me.clone(), 0),
        Origin::V6 { .. } => (CString::default(), 0),
    };
    let age = context
        .age
        .map(|age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
    let command = Command {
        kind: kind.as_ptr(),
        body: body.as_ptr(),
        len: body.len(),
        controller: controller.as_ptr(),
        controller_id,
        sequence: context.sequence,
        age_ns: age.unwrap_or(-1),
    };
    let mut reason = [0u8; REASON];
    // SAFETY: the crate's contract; everything that the command points at lives until it returns, and the
    // reason has the stated room.
    let done = unsafe { handler(user.pointer(), &command, reason.as_mut_ptr().cast(), REASON) };
    if done {
        return Ok(());
    }
    let len = reason.iter().position(|b| *b == 0).unwrap_or(REASON);
    match String::from_utf8_lossy(&reason[..len]) {
        why if why.is_empty() => Err("the robot's program gave no reason".into()),
        why => Err(why.into_owned().into()),
    }
}
