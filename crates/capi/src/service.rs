//! Calling and serving services.

use crate::loan::{Loan, lend};
use crate::message::Message;
use crate::pointer::{self, array, consume, give, give_if, handle, invalid, output, set, timeout};
use crate::status::{Failure, Status, free, guard};
use crate::wait::{self, Interrupt};
use std::ffi::c_char;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

/// The calling end of a service.
pub struct Client(pub(crate) ropewalk::Client);

/// A request that was sent and has no reply yet.
pub struct Pending(Mutex<Option<ropewalk::Pending>>);

/// The serving end of a service.
pub struct Server(pub(crate) ropewalk::Server);

/// Blocks until a server is connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_client_wait_for_server(client: *const Client, timeout_ns: i64) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let there = unsafe { handle(client, "client") }?
            .0
            .wait_for_server(timeout(timeout_ns))?;
        Ok(Status::of(there))
    })
}

/// Reserves a block for a request. Like `ropewalk_publisher_loan`, but nothing is dropped when memory is
/// short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_client_loan(
    client: *const Client,
    control_len: usize,
    part_lens: *const usize,
    part_count: usize,
    out: *mut *mut Loan,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let client = unsafe { handle(client, "client") }?;
        // SAFETY: the crate's contract.
        unsafe {
            lend(control_len, part_lens, part_count, out, |c, p| {
                client.0.loan(c, p)
            })
        }
    })
}

/// Sends a filled loan of this client, which is always consumed. The reply is awaited with
/// `ropewalk_pending_wait`, at most `timeout_ns` from now. Never blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_client_send(
    client: *const Client,
    request: *mut Loan,
    timeout_ns: i64,
    out: *mut *mut Pending,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (request, client) = unsafe { (consume(request, "request")?, handle(client, "client")?) };
        output(out, "out")?;
        let pending = client.0.send(request.0, timeout(timeout_ns))?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Pending(Mutex::new(Some(pending))), out) };
        Ok(Status::Ok)
    })
}

/// Like `ropewalk_client_send`, for a request in ROS 1's serialization.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_client_send_ros1(
    client: *const Client,
    request: *const u8,
    len: usize,
    timeout_ns: i64,
    out: *mut *mut Pending,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (client, bytes) = unsafe { (handle(client, "client")?, array(request, len, "request")?) };
        let pending = client.0.send_ros1(bytes, timeout(timeout_ns))?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Pending(Mutex::new(Some(pending))), out) };
        Ok(Status::Ok)
    })
}

/// Blocks until the reply arrives, the time of the call is over, or the server is gone. Returns a reply only
/// once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_pending_wait(pending: *const Pending, out: *mut *mut Message) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let pending = unsafe { handle(pending, "pending call") }?.take()?;
        let reply = pending.wait()?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Message::Reply(reply), out) };
        Ok(Status::Ok)
    })
}

/// Returns the reply, or why there is none, if that is known; otherwise `ROPEWALK_STATUS_EMPTY`. Never
/// blocks. Returns a reply only once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_pending_poll(pending: *const Pending, out: *mut *mut Message) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let pending = unsafe { handle(pending, "pending call") }?;
        let mut waiting = pending.take()?;
        let Some(outcome) = waiting.poll() else {
            pending.put_back(waiting);
            return Ok(Status::Empty);
        };
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Message::Reply(outcome?), out) };
        Ok(Status::Ok)
    })
}

/// Frees a pending call. The server may still execute it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_pending_free(pending: *mut Pending) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(pending, "pending call") }));
}

/// Frees a client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_client_free(client: *mut Client) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(client, "client") }));
}

/// Takes the oldest waiting request; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`
/// if there is none, or a wait was interrupted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_take(
    server: *const Server,
    timeout_ns: i64,
    out: *mut *mut Message,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let server = unsafe { handle(server, "server") }?;
        let taken = match timeout_ns {
            0 => server.0.take()?,
            ns => server.0.take_timeout(timeout(ns))?,
        };
        // SAFETY: the crate's contract; `out` was checked.
        Ok(unsafe { give_if(taken.map(Message::Request), out) })
    })
}

/// Reserves a block for a reply, like `ropewalk_client_loan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_loan(
    server: *const Server,
    control_len: usize,
    part_lens: *const usize,
    part_count: usize,
    out: *mut *mut Loan,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let server = unsafe { handle(server, "server") }?;
        // SAFETY: the crate's contract.
        unsafe {
            lend(control_len, part_lens, part_count, out, |c, p| {
                server.0.loan(c, p)
            })
        }
    })
}

/// Answers a request with a filled loan of this server. Both are always consumed. Blocks only if the client's
/// handshake is not complete, at most for a second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_respond(
    server: *const Server,
    request: *mut Message,
    answer: *mut Loan,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract. If one of them is refused, the others are freed.
        let (request, answer) = unsafe { (consume(request, "request"), consume(answer, "answer")) };
        // SAFETY: the crate's contract.
        let server = unsafe { handle(server, "server") }?;
        server.0.respond(as_request(*request?)?, answer?.0)?;
        Ok(Status::Ok)
    })
}

/// Like `ropewalk_server_respond`, with a reply in ROS 1's serialization.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_respond_ros1(
    server: *const Server,
    request: *mut Message,
    answer: *const u8,
    len: usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let request = unsafe { consume(request, "request") }?;
        // SAFETY: the crate's contract.
        let (server, bytes) = unsafe { (handle(server, "server")?, array(answer, len, "answer")?) };
        server.0.respond_ros1(as_request(*request)?, bytes)?;
        Ok(Status::Ok)
    })
}

/// Answers a request, which is always consumed, with an error. The client gets up to 1024 bytes of its text;
/// bytes that are not UTF-8 are replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_reject(
    server: *const Server,
    request: *mut Message,
    text: *const c_char,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let request = unsafe { consume(request, "request") }?;
        // SAFETY: the crate's contract.
        let (server, text) = unsafe { (handle(server, "server")?, pointer::any_text(text, "text")?) };
        server.0.reject(as_request(*request)?, &text)?;
        Ok(Status::Ok)
    })
}

/// Returns an object that ends a wait of the server. NULL if `server` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_interrupt(server: *const Server) -> *mut Interrupt {
    // SAFETY: the crate's contract.
    wait::interrupt(unsafe { server.as_ref() }.map(|s| s.0.bus().interrupt()))
}

/// Returns the descriptor that is readable while a request can be taken, like `ropewalk_subscriber_fd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_fd(server: *const Server, fd: *mut i32) -> Status {
    guard(|| {
        output(fd, "fd")?;
        // SAFETY: the crate's contract; `fd` was checked.
        unsafe { set(fd, handle(server, "server")?.0.as_fd().as_raw_fd()) };
        Ok(Status::Ok)
    })
}

/// Frees a server: its clients notice at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_server_free(server: *mut Server) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(server, "server") }));
}

impl Pending {
    fn take(&self) -> Result<ropewalk::Pending, Failure> {
        let taken = self.lock().take();
        taken.ok_or_else(|| invalid("this call has ended, or another thread waits for its reply"))
    }

    fn put_back(&self, pending: ropewalk::Pending) {
        *self.lock() = Some(pending);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ropewalk::Pending>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn as_request(message: Message) -> Result<ropewalk::Request, Failure> {
    match message {
        Message::Request(request) => Ok(request),
        _ => Err(invalid("only requests from ropewalk_server_take can be answered")),
    }
}
