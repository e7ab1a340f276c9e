//! Code shared by the Rust peers of `ropewalk bench ipc`: arguments, the protocol on the standard streams, the
//! schedule, the logs and the result lines of `../../CONTRACT.md`; the same as `../peer.hpp`.
//!
//! It does not depend on any middleware: a peer passes closures that loan, publish and receive.

mod options;
mod orchestrator;

use std::fmt::Display;
use std::mem::MaybeUninit;

pub use options::{Options, Program, parse, runtime_folder};
pub use orchestrator::Orchestrator;

/// Ends the process with one line on stderr.
pub fn fail(code: i32, message: impl Display) -> ! {
    eprintln!("{}", message.to_string().replace('\n', " "));
    // Without destructors: other threads may be inside the middleware.
    // SAFETY: ends the process; takes no pointers.
    unsafe { libc::_exit(code) }
}

/// Returns the value, or ends the process with a description of the attempt.
pub fn need<T, E: Display>(result: Result<T, E>, what: &str) -> T {
    result.unwrap_or_else(|error| fail(1, format!("{what}: {error}")))
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec, which `t` is.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Prints one whole line of the protocol.
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // The orchestrator may be gone; then stdin ends, too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints the answer to `version`.
pub fn say_version(o: &Options, version: &str, modes: &[&str]) {
    let modes: Vec<String> = modes.iter().map(|mode| format!("\"{mode}\"")).collect();
    say(&format!(
        "{{\"system\": \"{}\", \"version\": \"{version}\", \"modes\": [{}]}}",
        o.system,
        modes.join(", ")
    ));
}

/// Gives SCHED_FIFO to this thread, and to threads that it creates later.
pub fn enter_fifo(o: &Options) {
    if o.fifo == 0 {
        return;
    }
    let parameter = libc::sched_param {
        sched_priority: o.fifo,
    };
    // SAFETY: the call reads one sched_param.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } != 0 {
        let error = std::io::Error::last_os_error();
        fail(
            1,
            format!("--fifo {}: {error}; run as root or raise `ulimit -r`", o.fifo),
        );
    }
}

/// Waits until `connected` returns at least `count`, polling every 5 ms; also returns on `stop`.
pub fn wait_connected(orchestrator: &Orchestrator, count: usize, mut connected: impl FnMut() -> usize) {
    while connected() < count && orchestrator.pause_ms(5) {}
}

/// For publishers and ping, after their subscribers have connected.
pub fn ready_and_go(orchestrator: &Orchestrator) {
    if !orchestrator.stopped() {
        say("ready");
    }
    orchestrator.wait_go();
}

/// The paper's rule: the whole payload is written, then the sequence number, and last the stamp, which is returned.
pub fn fill(payload: &mut [MaybeUninit<u8>], sequence: u64) -> u64 {
    let byte = (sequence.wrapping_mul(31) + 1) as u8;
    // One memset, as in C.
    // SAFETY: exactly the slice's bytes are written.
    unsafe { std::ptr::write_bytes(payload.as_mut_ptr(), byte, payload.len()) };
    write(&mut payload[8..16], &sequence.to_le_bytes());
    let now = now_ns();
    write(&mut payload[..8], &now.to_le_bytes());
    now
}

/// Copies `bytes` to the start of `to`.
#[inline]
pub fn write(to: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    for (to, &byte) in to.iter_mut().zip(bytes) {
        to.write(byte);
    }
}

/// Initialized bytes as a payload to fill.
pub fn uninit(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: same memory and lifetime; only `fill` writes here, and it writes initialized bytes.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

/// The sequence number of a payload.
pub fn sequence_of(payload: &[u8]) -> u64 {
    payload
        .get(8..16)
        .and_then(|b| b.try_into().ok())
        .map_or(u64::MAX, u64::from_le_bytes)
}

/// Sends all messages on the schedule and prints the publisher's line. `loan` returns the next message's memory, or
/// none if the system refuses; `bytes` returns its payload; `publish` sends it and returns whether it was accepted.
pub fn send_all<L>(
    o: &Options,
    orchestrator: &Orchestrator,
    mut loan: impl FnMut() -> Option<L>,
    bytes: impl Fn(&mut L) -> &mut [MaybeUninit<u8>],
    mut publish: impl FnMut(L) -> bool,
) {
    let mut publish_ns = reserved(o.messages);
    let mut refused = 0_u64;
    let period = if o.rate > 0.0 { 1e9 / o.rate } else { 0.0 };
    let start = now_ns() + 200_000_000;
    for sequence in 0..o.total() {
        sleep_until(start + (period * sequence as f64) as u64, orchestrator);
        if orchestrator.stopped() {
            break;
        }
        let measured = sequence >= o.warmup;
        let Some(mut message) = loan() else {
            refused += u64::from(measured);
            continue;
        };
        let before = fill(bytes(&mut message), sequence);
        let accepted = publish(message);
        let took = now_ns() - before;
        match (measured, accepted) {
            (true, true) => publish_ns.push(took),
            (true, false) => refused += 1,
            (false, _) => {}
        }
    }
    say(&format!(
        "{{\"published\": {}, \"refused\": {refused}, \"publish_ns\": {}}}",
        publish_ns.len(),
        numbers(&publish_ns)
    ));
}

/// Ping's loop: `loan` and `bytes` as above; `exchange` publishes and busy-polls for the reply, and returns false when
/// stopped.
pub fn ping_all<L>(
    o: &Options,
    orchestrator: &Orchestrator,
    mut loan: impl FnMut() -> Option<L>,
    bytes: impl Fn(&mut L) -> &mut [MaybeUninit<u8>],
    mut exchange: impl FnMut(L, u64) -> bool,
) {
    let mut round_trip = reserved(o.messages);
    for sequence in 0..o.total() {
        if orchestrator.stopped() {
            break;
        }
        let Some(mut message) = loan() else {
            fail(1, "no memory for a ping: raise --limit")
        };
        let before = fill(bytes(&mut message), sequence);
        if !exchange(message, sequence) {
            break;
        }
        let took = now_ns() - before;
        if sequence >= o.warmup {
            round_trip.push(took);
        }
    }
    say(&format!("{{\"round_trip_ns\": {}}}", numbers(&round_trip)));
}

/// A subscriber's log.
pub struct Log {
    latency: Vec<u64>,
    sequence: Vec<u64>,
    warmup: u64,
    last: u64,
    work_us: u64,
}

impl Log {
    pub fn new(o: &Options) -> Self {
        Log {
            latency: reserved(o.messages),
            sequence: reserved(o.messages),
            warmup: o.warmup,
            last: o.total() - 1,
            work_us: o.work_us,
        }
    }

    /// Called first in the callback; prints `done` with the last message.
    #[inline]
    pub fn receive(&mut self, payload: &[u8]) {
        let now = now_ns();
        let Some(sent) = payload
            .get(..8)
            .and_then(|b| b.try_into().ok())
            .map(u64::from_le_bytes)
        else {
            fail(1, "a message without a stamp: give each cell its own --topic");
        };
        let sequence = sequence_of(payload);
        if sequence >= self.warmup {
            if sequence > self.last || self.sequence.len() == self.sequence.capacity() {
                fail(
                    1,
                    format!(
                        "message {sequence} does not belong to this cell: give each cell its own --topic"
                    ),
                );
            }
            self.latency.push(now.saturating_sub(sent));
            self.sequence.push(sequence);
        }
        if self.work_us > 0 {
            std::thread::sleep(std::time::Duration::from_micros(self.work_us));
        }
        if sequence == self.last {
            say("done");
        }
    }

    /// Prints the subscriber's line.
    pub fn print(&self) {
        say(&format!(
            "{{\"received\": {}, \"latency_ns\": {}, \"sequence\": {}}}",
            self.latency.len(),
            numbers(&self.latency),
            numbers(&self.sequence)
        ));
    }
}

/// Sleeps until an instant of CLOCK_MONOTONIC, in short steps, so that `stop` takes effect in the middle of a long
/// period.
fn sleep_until(due: u64, orchestrator: &Orchestrator) {
    loop {
        let now = now_ns();
        if now >= due || orchestrator.stopped() {
            return;
        }
        let until = if due - now > 500_000_000 {
            now + 250_000_000
        } else {
            due
        };
        let t = libc::timespec {
            tv_sec: (until / 1_000_000_000) as libc::time_t,
            tv_nsec: (until % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the call reads one timespec; absolute waits write no remainder.
        unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &t,
                std::ptr::null_mut(),
            )
        };
    }
}

/// Memory that is reserved and touched before the measurement.
fn reserved(count: u64) -> Vec<u64> {
    let mut values = vec![1; count as usize];
    values.clear();
    values
}

fn numbers(values: &[u64]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(values.len() * 8 + 2);
    text.push('[');
    for (i, value) in values.iter().enumerate() {
        let _ = write!(text, "{}{value}", if i > 0 { "," } else { "" });
    }
    text.push(']');
    text
}
