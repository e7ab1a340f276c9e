//! Robots and controllers as C calls them, and mistakes of callers.

mod calls;

use calls::{Bus, LONG, bus, error, made, ok};
use ropewalk_c::controller::*;
use ropewalk_c::node::*;
use ropewalk_c::robot::*;
use ropewalk_c::status::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

const TWIST: &CStr = c"robot_remote_control.Twist";
const POSE: &CStr = c"robot_remote_control.CurrentPose";

struct Pair {
    bus: Bus,
    robot: *mut Robot,
    controller: *mut Controller,
}

fn pair() -> Pair {
    let bus = bus();
    let node = bus.node;
    // SAFETY: texts and options live until the calls return.
    unsafe {
        // A busy machine must not count as a lost peer.
        let mut options = ropewalk_robot_options_default();
        options.lost_after_ns = 5_000_000_000;
        let robot = made(|out| ropewalk_robot_new(node, c"rover".as_ptr(), &options, out));
        let (name, of) = (c"desk".as_ptr(), c"rover".as_ptr());
        let controller = made(|out| ropewalk_controller_new(node, name, of, null(), out));
        Pair {
            bus,
            robot,
            controller,
        }
    }
}

impl Pair {
    fn found(&self) {
        // SAFETY: alive.
        unsafe { ok(ropewalk_controller_wait_until_found(self.controller, LONG)) };
    }

    /// Sends a command and returns its outcome, with the reason.
    fn command(&self, kind: &CStr, body: &[u8]) -> (Outcome, String) {
        let mut outcome = Outcome::Unreachable;
        let mut reason = [0 as c_char; 500];
        // SAFETY: alive, and as long as stated.
        unsafe {
            let (controller, kind) = (self.controller, kind.as_ptr());
            let sent =
                made(|out| ropewalk_controller_send(controller, kind, body.as_ptr(), body.len(), LONG, out));
            ok(ropewalk_sent_wait(sent, LONG, &mut outcome));
            let mut again = Outcome::Unreachable;
            ok(ropewalk_sent_wait(sent, 0, &mut again));
            assert_eq!(again, outcome);
            ok(ropewalk_sent_reason(sent, reason.as_mut_ptr(), 500, null_mut()));
            ropewalk_sent_free(sent);
            (
                outcome,
                CStr::from_ptr(reason.as_ptr()).to_string_lossy().into_owned(),
            )
        }
    }

    fn free(self) {
        // SAFETY: the last use of each.
        unsafe {
            ropewalk_controller_free(self.controller);
            ropewalk_robot_free(self.robot);
            ropewalk_node_free(self.bus.node);
        }
    }
}

/// Handler of commands: refuses bodies that begin with 7, and counts.
unsafe extern "C" fn handler(
    user: *mut c_void,
    command: *const Command,
    reason: *mut c_char,
    capacity: usize,
) -> bool {
    // SAFETY: as the tests call it.
    unsafe {
        let (count, command) = (&*user.cast::<AtomicU32>(), &*command);
        count.fetch_add(1, Ordering::SeqCst);
        let who = CStr::from_ptr(command.controller);
        assert!(who == c"desk" && command.controller_id != 0 && command.age_ns >= 0);
        if command.len > 0 && *command.body == 7 {
            let text = b"seven is not for me\0";
            assert!(capacity >= text.len() && *reason == 0);
            reason.copy_from(text.as_ptr().cast(), text.len());
        }
        command.len == 0 || *command.body != 7
    }
}

unsafe extern "C" fn freed(user: *mut c_void) {
    // SAFETY: as the tests call it.
    unsafe { &*user.cast::<AtomicU32>() }.fetch_add(1000, Ordering::SeqCst);
}

unsafe extern "C" fn reported(user: *mut c_void, telemetry: *const Telemetry) {
    // SAFETY: as the tests call it.
    unsafe {
        let (count, telemetry) = (&*user.cast::<AtomicU32>(), &*telemetry);
        assert!(CStr::from_ptr(telemetry.kind) == c"acme.Tank" && telemetry.channel == 3);
        count.store(u32::from(*telemetry.body), Ordering::SeqCst);
    }
}

unsafe extern "C" fn lost(user: *mut c_void, subsystem: *const c_char, controller: *const c_char) -> bool {
    // SAFETY: as the tests call it.
    unsafe {
        assert!(CStr::from_ptr(subsystem) == c"nozzle" && CStr::from_ptr(controller) == c"desk");
        (*user.cast::<AtomicU32>()).store(1, Ordering::SeqCst);
    }
    true
}

fn eventually(condition: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !condition() {
        assert!(began.elapsed().as_nanos() < LONG as u128, "it never came");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn user(of: &AtomicU32) -> *mut c_void {
    std::ptr::from_ref(of).cast_mut().cast()
}

#[test]
fn a_command_is_executed_rejected_or_not_known() {
    let (pair, count, lights) = (pair(), AtomicU32::new(0), AtomicU32::new(0));
    // SAFETY: the counters outlive the robot.
    unsafe {
        let spray = c"acme.Spray".as_ptr();
        let on =
            |user| ropewalk_robot_on_command(pair.robot, spray, null(), Some(handler), user, Some(freed));
        ok(on(user(&count)));
        pair.found();
        assert_eq!(
            pair.command(c"acme.Spray", &[1, 2]),
            (Outcome::Executed, String::new())
        );
        let refused = (Outcome::Rejected, "seven is not for me".to_owned());
        assert_eq!(pair.command(c"acme.Spray", &[7]), refused);
        let (outcome, reason) = pair.command(c"acme.Unknown", &[]);
        assert!(
            outcome == Outcome::Rejected && reason.contains("acme.Unknown"),
            "{reason}"
        );
        assert_eq!(count.load(Ordering::SeqCst), 2);
        // Another handler replaces the first, which is freed.
        ok(on(user(&lights)));
        assert_eq!(count.load(Ordering::SeqCst), 1002);
        let mut round_trip = 0;
        ok(ropewalk_controller_round_trip(pair.controller, &mut round_trip));
        assert!(round_trip > 0);
    }
    pair.free();
    assert_eq!(lights.load(Ordering::SeqCst), 1000);
}

#[test]
fn telemetry_is_called_back_kept_and_asked_for() {
    let (pair, seen) = (pair(), AtomicU32::new(0));
    // SAFETY: the counters outlive the controller.
    unsafe {
        let tank = c"acme.Tank".as_ptr();
        let (user, controller) = (user(&seen), pair.controller);
        ok(ropewalk_controller_on_telemetry(
            controller,
            tank,
            3,
            Some(reported),
            user,
            None,
        ));
        let mut value = null_mut();
        assert_eq!(
            ropewalk_controller_latest(controller, tank, 3, &mut value),
            Status::Empty
        );
        pair.found();
        ok(ropewalk_robot_set(pair.robot, tank, 3, [42, 1].as_ptr(), 2));
        eventually(|| seen.load(Ordering::SeqCst) == 42);
        let bytes = |value: *mut Value| {
            let (mut data, mut len) = (null(), 0);
            ok(ropewalk_value_data(value, &mut data, &mut len));
            let bytes = std::slice::from_raw_parts(data, len).to_vec();
            ropewalk_value_free(value);
            bytes
        };
        assert_eq!(
            bytes(made(|out| ropewalk_controller_latest(controller, tank, 3, out))),
            [42, 1]
        );
        assert_eq!(
            bytes(made(|out| ropewalk_controller_fetch(
                controller, tank, 3, LONG, out
            ))),
            [42, 1]
        );
        let unset = ropewalk_controller_fetch(controller, tank, 9, LONG, &mut value);
        assert_eq!(unset, Status::Empty, "{}", error());
        let none = ropewalk_controller_fetch(controller, c"acme.None".as_ptr(), 0, LONG, &mut value);
        assert_eq!(none, Status::Rejected);
        assert!(error().contains("acme.None"), "{}", error());
    }
    pair.free();
}

#[test]
fn the_right_to_move_is_requested_and_a_lost_holder_is_reported() {
    let (pair, count, gone) = (pair(), AtomicU32::new(0), AtomicU32::new(0));
    // SAFETY: as above.
    unsafe {
        let (spray, nozzle) = (c"acme.Spray".as_ptr(), c"nozzle".as_ptr());
        ok(ropewalk_robot_on_command(
            pair.robot,
            spray,
            nozzle,
            Some(handler),
            user(&count),
            None,
        ));
        ok(ropewalk_robot_on_link_lost(
            pair.robot,
            Some(lost),
            user(&gone),
            None,
        ));
        let second = made(|out| {
            ropewalk_controller_new(pair.bus.node, c"rival".as_ptr(), c"rover".as_ptr(), null(), out)
        });
        pair.found();
        let mut id = 0;
        assert_eq!(ropewalk_robot_holder(pair.robot, nozzle, &mut id), Status::Empty);
        let mut right = std::mem::zeroed::<Right>();
        let mut wish =
            |of, wish: Wish, to| ropewalk_controller_right(of, nozzle, wish as u32, to, &mut right);
        ok(wish(pair.controller, Wish::Request, 0));
        assert_eq!(wish(second, Wish::Request, 0), Status::Rejected);
        assert!(error().contains("desk"), "{}", error());
        assert_eq!(wish(second, Wish::TakeOver, 0), Status::Rejected);
        ok(wish(second, Wish::Ask, 0));
        assert!(!right.mine && right.holder == ropewalk_controller_id(pair.controller));
        assert_eq!(CStr::from_ptr(right.holder_name.as_ptr()), c"desk");
        ok(ropewalk_robot_holder(pair.robot, nozzle, &mut id));
        assert_eq!(id, right.holder);
        assert_eq!(
            ropewalk_controller_right(second, nozzle, 5, 0, null_mut()),
            Status::InvalidArgument
        );
        ropewalk_controller_free(second);
        ropewalk_controller_free(pair.controller);
        eventually(|| gone.load(Ordering::SeqCst) == 1);
        ropewalk_robot_free(pair.robot);
        ropewalk_node_free(pair.bus.node);
    }
}

#[test]
fn bad_use_is_an_error_with_the_fix() {
    let (pair, count) = (pair(), AtomicU32::new(0));
    let refused = |status: Status, expected: Status, part: &str| {
        assert_eq!(status, expected, "{}", error());
        assert!(error().contains(part), "{}", error());
    };
    // SAFETY: as above; the functions check the mistakes.
    unsafe {
        use Status::*;
        let (robot, controller) = (pair.robot, pair.controller);
        let on = |kind: *const c_char, f: CommandHandler| {
            ropewalk_robot_on_command(robot, kind, null(), f, user(&count), Some(freed))
        };
        refused(on(null(), Some(handler)), InvalidArgument, "kind is NULL");
        refused(on(c"".as_ptr(), Some(handler)), InvalidArgument, "1 to 128");
        refused(on(TWIST.as_ptr(), None), InvalidArgument, "handler is NULL");
        // The user pointers are freed nevertheless.
        assert_eq!(count.load(Ordering::SeqCst), 3000);
        let set = |bytes: &[u8]| ropewalk_robot_set(robot, POSE.as_ptr(), 0, bytes.as_ptr(), bytes.len());
        refused(
            set(&[0xff; 3]),
            Content,
            "not a valid robot_remote_control.CurrentPose",
        );
        ok(set(&[]));
        refused(
            ropewalk_robot_set(robot, c"acme.Tank".as_ptr(), 0, null(), 9),
            InvalidArgument,
            "body is NULL",
        );
        // More than the robot's transport accepts at once.
        let huge = vec![1u8; 300 << 20];
        refused(
            ropewalk_robot_set(robot, c"acme.Tank".as_ptr(), 0, huge.as_ptr(), huge.len()),
            InvalidArgument,
            "exceeds the limit",
        );
        drop(huge);
        let mut sent = null_mut();
        refused(
            ropewalk_controller_send(controller, TWIST.as_ptr(), [0xff].as_ptr(), 1, 0, &mut sent),
            Content,
            "not a valid robot_remote_control.Twist",
        );
        refused(
            ropewalk_sent_wait(null(), 0, &mut Outcome::Executed),
            InvalidArgument,
            "sent command is NULL",
        );
        // The outcome does not matter.
        ok(ropewalk_controller_send(
            controller,
            TWIST.as_ptr(),
            null(),
            0,
            0,
            null_mut(),
        ));
        let mut other = null_mut();
        refused(
            ropewalk_robot_new(pair.bus.node, c"no name".as_ptr(), null(), &mut other),
            InvalidArgument,
            "no name",
        );
        // A robot that does not exist.
        let lonely =
            made(|out| ropewalk_controller_new(pair.bus.node, c"l".as_ptr(), c"ghost".as_ptr(), null(), out));
        assert_eq!(ropewalk_controller_wait_until_found(lonely, 1_000_000), Empty);
        let expiry = 50_000_000;
        let sent = made(|out| ropewalk_controller_send(lonely, TWIST.as_ptr(), null(), 0, expiry, out));
        assert_eq!(
            ropewalk_sent_reason(sent, null_mut(), 0, null_mut()),
            InvalidArgument
        );
        let mut outcome = Outcome::Executed;
        ok(ropewalk_sent_wait(sent, LONG, &mut outcome));
        assert_eq!(outcome, Outcome::Unreachable);
        ropewalk_sent_free(sent);
        ropewalk_controller_free(lonely);
        ropewalk_robot_free(null_mut());
        ropewalk_controller_free(null_mut());
    }
    pair.free();
}
