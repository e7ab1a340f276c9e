//! The functions as C calls them: a round trip of a message in place, calls, waits, and mistakes of callers.

mod calls;

use calls::{LONG, bus, error, made, ok};
use ropewalk_c::loan::*;
use ropewalk_c::message::*;
use ropewalk_c::node::*;
use ropewalk_c::options::*;
use ropewalk_c::publisher::*;
use ropewalk_c::service::*;
use ropewalk_c::status::*;
use ropewalk_c::subscriber::*;
use ropewalk_c::types::*;
use ropewalk_c::wait::*;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

fn find(name: &CStr) -> *mut MessageType {
    // SAFETY: the text lives until the call returns.
    made(|out| unsafe { ropewalk_type_find(name.as_ptr(), 0, out) })
}

fn text(call: impl Fn(*mut c_char, usize, *mut usize) -> Status) -> String {
    let mut len = 0;
    assert_eq!(call(null_mut(), 0, &mut len), Status::BufferTooSmall);
    let mut buffer = vec![0u8; len];
    ok(call(buffer.as_mut_ptr().cast(), len, &mut len));
    assert_eq!(buffer.pop(), Some(0));
    String::from_utf8(buffer).expect("UTF-8")
}

/// A `std_msgs/UInt8MultiArray` of `n` bytes as its parts: no dimensions, offset 0, the data in a data part.
fn control(n: u32) -> Vec<u8> {
    let mut control = vec![0; 8];
    control.extend((n | 1 << 31).to_le_bytes());
    control
}

#[test]
fn a_message_is_written_and_read_in_place() {
    let bus = bus();
    let kind = find(c"std_msgs/UInt8MultiArray");
    // SAFETY: all handles are alive where they are used, buffers as long as stated.
    unsafe {
        let set = made(|out| ropewalk_node_wait_set(bus.node, out));
        let mut options = ropewalk_subscriber_options_default();
        options.wait_set = set;
        let topic = c"/bytes".as_ptr();
        let sub = made(|out| ropewalk_node_subscriber(bus.node, topic, kind, &options, out));
        let publisher = made(|out| ropewalk_node_publisher(bus.node, topic, kind, null(), out));
        ok(ropewalk_publisher_wait_for_subscribers(publisher, 1, LONG));
        ok(ropewalk_subscriber_wait_for_publishers(sub, 1, LONG));
        assert_eq!(ropewalk_wait_set_wait(set, 0), Status::Empty);

        let control = control(5000);
        // Reserves a longer control part than needed in the end.
        let loan = made(|out| ropewalk_publisher_loan(publisher, control.len() + 100, &5000, 1, out));
        let (mut data, mut len) = (null_mut(), 0);
        ok(ropewalk_loan_control(loan, &mut data, &mut len));
        assert_eq!(len, control.len() + 100);
        data.copy_from(control.as_ptr(), control.len());
        ok(ropewalk_loan_shrink_control(loan, control.len()));
        assert_eq!(ropewalk_loan_shrink_control(loan, len), Status::InvalidArgument);
        ok(ropewalk_loan_part(loan, 0, &mut data, &mut len));
        assert_eq!((len, data as usize % 64), (5000, 0));
        data.write_bytes(7, len);
        let (mut whole, mut places, mut n): (MutableBytes, [MutableBytes; 2], usize) = std::mem::zeroed();
        ok(ropewalk_loan_content(
            loan,
            &mut whole,
            places.as_mut_ptr(),
            2,
            &mut n,
        ));
        assert_eq!((n, places[0].data, places[0].len), (1, data, 5000));
        assert_eq!((*whole.data, whole.len), (control[0], control.len()));
        assert_eq!(
            ropewalk_loan_content(loan, &mut whole, places.as_mut_ptr(), 0, &mut n),
            Status::BufferTooSmall
        );
        assert_eq!(
            ropewalk_loan_content(loan, null_mut(), null_mut(), 0, null_mut()),
            Status::InvalidArgument
        );
        assert_eq!(
            ropewalk_loan_part(loan, 1, &mut data, &mut len),
            Status::InvalidArgument
        );
        let mut done = Published {
            sequence: 0,
            queued_to: 0,
        };
        ok(ropewalk_publisher_publish(publisher, loan, &mut done));
        assert_eq!((done.sequence, done.queued_to), (1, 1));

        ok(ropewalk_wait_set_wait(set, LONG));
        let message = made(|out| ropewalk_subscriber_take(sub, 0, out));
        let (mut part, mut len) = (null(), 0);
        ok(ropewalk_message_part(message, 0, &mut part, &mut len));
        assert_eq!(std::slice::from_raw_parts(part, len), [7; 5000]);
        let (mut start, mut len) = (null(), 0);
        ok(ropewalk_message_control(message, &mut start, &mut len));
        assert_eq!(std::slice::from_raw_parts(start, len), control);
        let (mut whole, mut bytes, mut n): (Bytes, [Bytes; 2], usize) = std::mem::zeroed();
        ok(ropewalk_message_content(
            message,
            &mut whole,
            bytes.as_mut_ptr(),
            2,
            &mut n,
        ));
        assert_eq!((whole.data, whole.len), (start, control.len()));
        assert_eq!((n, bytes[0].data, bytes[0].len), (1, part, 5000));
        n = 0;
        assert_eq!(
            ropewalk_message_content(message, &mut whole, null_mut(), 32, &mut n),
            Status::BufferTooSmall
        );
        assert_eq!(n, 1);
        let mut info = std::mem::zeroed();
        ok(ropewalk_message_get_info(message, &mut info));
        assert_eq!((info.sequence, info.part_count, info.lost), (1, 1, 0));
        let mut len = 0;
        assert_eq!(
            ropewalk_message_ros1(message, null_mut(), 0, &mut len),
            Status::BufferTooSmall
        );
        let mut bytes = vec![0; len];
        ok(ropewalk_message_ros1(message, bytes.as_mut_ptr(), len, &mut len));
        assert_eq!(bytes[12..], [7; 5000]);
        // A taken message outlives everything else.
        ropewalk_subscriber_free(sub);
        ropewalk_publisher_free(publisher);
        ropewalk_wait_set_free(set);
        ropewalk_type_free(kind);
        ropewalk_node_free(bus.node);
        assert_eq!(std::slice::from_raw_parts(part, 5000), [7; 5000]);
        ropewalk_message_free(message);
    }
}

#[test]
fn a_service_answers_rejects_and_dies() {
    let bus = bus();
    // SAFETY: as above.
    unsafe {
        let kind = made(|out| ropewalk_service_type_find(c"std_srvs/SetBool".as_ptr(), 0, out));
        let name = c"/switch".as_ptr();
        let client = made(|out| ropewalk_node_client(bus.node, name, kind, out));
        let mut out = null_mut();
        let alone = ropewalk_client_send_ros1(client, [1].as_ptr(), 1, LONG, &mut out);
        assert_eq!(alone, Status::NoPeer, "{}", error());
        let server = made(|out| ropewalk_node_server(bus.node, name, kind, null(), out));
        ok(ropewalk_client_wait_for_server(client, LONG));

        let send = || made(|out| ropewalk_client_send_ros1(client, [1].as_ptr(), 1, LONG, out));
        let pending = send();
        let mut reply = null_mut();
        assert_eq!(ropewalk_pending_poll(pending, &mut reply), Status::Empty);
        let request = made(|out| ropewalk_server_take(server, LONG, out));
        let mut info = std::mem::zeroed();
        ok(ropewalk_message_get_info(request, &mut info));
        assert!(info.time_left_ns > 0);
        // success, and the text "on".
        let answer = [1, 2, 0, 0, 0, b'o', b'n'];
        ok(ropewalk_server_respond_ros1(
            server,
            request,
            answer.as_ptr(),
            answer.len(),
        ));
        let reply = made(|out| ropewalk_pending_wait(pending, out));
        let mut bytes = [0; 7];
        ok(ropewalk_message_ros1(reply, bytes.as_mut_ptr(), 7, null_mut()));
        assert_eq!(bytes, answer);
        let mut again = null_mut();
        assert_eq!(
            ropewalk_pending_wait(pending, &mut again),
            Status::InvalidArgument
        );
        // Only requests can be answered; the reply is consumed nevertheless.
        assert_eq!(
            ropewalk_server_reject(server, reply, c"no".as_ptr()),
            Status::InvalidArgument
        );
        ropewalk_pending_free(pending);

        let pending = send();
        let request = made(|out| ropewalk_server_take(server, LONG, out));
        ok(ropewalk_server_reject(
            server,
            request,
            c"the motor \xff is hot".as_ptr(),
        ));
        assert_eq!(ropewalk_pending_wait(pending, &mut again), Status::Rejected);
        assert!(error().contains("the motor \u{fffd} is hot"), "{}", error());
        ropewalk_pending_free(pending);

        let pending = send();
        ropewalk_server_free(server);
        assert_eq!(
            ropewalk_pending_wait(pending, &mut again),
            Status::PeerDied,
            "{}",
            error()
        );
        ropewalk_pending_free(pending);
        ropewalk_client_free(client);
        ropewalk_service_type_free(kind);
        ropewalk_node_free(bus.node);
    }
}

#[test]
fn an_interrupt_ends_a_wait() {
    let bus = bus();
    let kind = find(c"std_msgs/String");
    // SAFETY: as above; one other thread uses the interrupt, and ends before it is freed.
    unsafe {
        let sub = made(|out| ropewalk_node_subscriber(bus.node, c"/x".as_ptr(), kind, null(), out));
        let interrupt = ropewalk_subscriber_interrupt(sub) as usize;
        let other = std::thread::spawn(move || ropewalk_interrupt_wake(interrupt as *const Interrupt));
        let mut out = null_mut();
        assert_eq!(ropewalk_subscriber_take(sub, -1, &mut out), Status::Empty);
        ok(other.join().expect("no panic"));
        ropewalk_interrupt_free(interrupt as *mut Interrupt);
        ropewalk_subscriber_free(sub);
        ropewalk_type_free(kind);
        ropewalk_node_free(bus.node);
    }
}

#[test]
fn bad_use_is_an_error_with_the_fix() {
    let bus = bus();
    let kind = find(c"std_msgs/String");
    let mut none: *mut MessageType = null_mut();
    let refused = |status: Status, expected: Status, part: &str| {
        assert_eq!(status, expected, "{}", error());
        assert!(error().contains(part), "{}", error());
    };
    // SAFETY: as above; the functions check the mistakes.
    unsafe {
        use Status::*;
        let nowhere = &raw mut none;
        let find = |name: &CStr, flavour| ropewalk_type_find(name.as_ptr(), flavour, nowhere);
        refused(find(c"a/B", 0), Type, "a/B");
        refused(find(c"nonsense", 0), Type, "nonsense");
        refused(
            find(c"std_msgs/String", 9),
            InvalidArgument,
            "9 is not a ropewalk_flavour",
        );
        refused(find(c"\xff", 0), InvalidArgument, "not UTF-8");
        refused(ropewalk_type_find(null(), 0, nowhere), InvalidArgument, "is NULL");
        refused(
            ropewalk_type_find(c"std_msgs/String".as_ptr(), 0, null_mut()),
            InvalidArgument,
            "out is NULL",
        );
        let (name, text_of) = (c"std_msgs/String".as_ptr(), c"string data".as_ptr());
        let wrong = c"00000000000000000000000000000000".as_ptr();
        let status = ropewalk_type_from_definition(name, text_of, 0, wrong, nowhere);
        refused(status, Type, "992ce8a1687cec8c8bd883ec73ca41d1");
        let right = c"992ce8a1687cec8c8bd883ec73ca41d1".as_ptr();
        let same = made(|out| ropewalk_type_from_definition(name, text_of, 0, right, out));
        assert_eq!(
            text(|b, c, l| ropewalk_type_md5(same, b, c, l)),
            text(|b, c, l| ropewalk_type_md5(kind, b, c, l))
        );
        assert_eq!(
            text(|b, c, l| ropewalk_type_name(same, b, c, l)),
            "std_msgs/String"
        );
        ropewalk_type_free(same);

        let mut publisher = null_mut();
        let topic = c"no topic".as_ptr();
        refused(
            ropewalk_node_publisher(bus.node, topic, kind, null(), &mut publisher),
            InvalidArgument,
            "no topic",
        );
        refused(
            ropewalk_node_publisher(null(), topic, kind, null(), &mut publisher),
            InvalidArgument,
            "node is NULL",
        );
        let mut options = ropewalk_publisher_options_default();
        options.memory_policy = 77;
        let topic = c"/x".as_ptr();
        let status = ropewalk_node_publisher(bus.node, topic, kind, &options, &mut publisher);
        refused(status, InvalidArgument, "77 is not a ropewalk_memory_policy");
        options = ropewalk_publisher_options_default();
        options.memory_limit = 65536;
        let publisher = made(|out| ropewalk_node_publisher(bus.node, topic, kind, &options, out));
        let mut loan = null_mut();
        refused(
            ropewalk_publisher_loan(publisher, 8, &(1 << 30), 1, &mut loan),
            Memory,
            "memory limit",
        );
        refused(
            ropewalk_publisher_loan(publisher, 8, null(), 1, &mut loan),
            InvalidArgument,
            "part lengths",
        );
        refused(
            ropewalk_publisher_loan(publisher, 8, [0; 40].as_ptr(), 40, &mut loan),
            InvalidArgument,
            "40",
        );
        let bytes = [9u8, 0, 0, 0];
        let status = ropewalk_publisher_publish_ros1(publisher, bytes.as_ptr(), 4, null_mut());
        refused(status, Content, "std_msgs/String");
        // Another publisher's loan.
        let other = made(|out| ropewalk_node_publisher(bus.node, topic, kind, null(), out));
        let loan = made(|out| ropewalk_publisher_loan(other, 8, null(), 0, out));
        refused(
            ropewalk_publisher_publish(publisher, loan, null_mut()),
            InvalidArgument,
            "loan",
        );
        refused(
            ropewalk_publisher_publish(publisher, null_mut(), null_mut()),
            InvalidArgument,
            "loan is NULL",
        );
        ropewalk_publisher_free(other);

        // More messages held than allowed, and a message that does not have its type.
        let mut options = ropewalk_subscriber_options_default();
        options.max_held = 1;
        let sub = made(|out| ropewalk_node_subscriber(bus.node, topic, kind, &options, out));
        ok(ropewalk_publisher_wait_for_subscribers(publisher, 1, LONG));
        for _ in 0..2 {
            let loan = made(|out| ropewalk_publisher_loan(publisher, 1, null(), 0, out));
            ok(ropewalk_publisher_publish(publisher, loan, null_mut()));
        }
        let message = made(|out| ropewalk_subscriber_take(sub, LONG, out));
        let mut another = null_mut();
        refused(
            ropewalk_subscriber_take(sub, LONG, &mut another),
            HoldLimit,
            "max_held",
        );
        let status = ropewalk_message_ros1(message, null_mut(), 0, null_mut());
        assert_eq!(status, Content, "{}", error());
        ropewalk_message_free(message);
        ok(ropewalk_subscriber_wait_takeable(sub, LONG));

        // A type of the same name and another sum is refused, and both sides report why.
        let old = made(|out| ropewalk_type_from_definition(name, c"string text".as_ptr(), 0, null(), out));
        let mismatched = made(|out| ropewalk_node_subscriber(bus.node, topic, old, null(), out));
        let why = loop {
            let why = text(|b, c, l| ropewalk_subscriber_refusals(mismatched, b, c, l));
            if !why.is_empty() {
                break why;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert!(why.contains("992ce8a1687cec8c8bd883ec73ca41d1"), "{why}");
        for sub in [sub, mismatched] {
            ropewalk_subscriber_free(sub);
        }
        ropewalk_publisher_free(publisher);
        ropewalk_type_free(old);
        ropewalk_type_free(kind);
        ropewalk_node_free(bus.node);
        ropewalk_node_free(null_mut());
    }
}
