//! The orchestrator's commands. A thread blocks on stdin and on SIGTERM and SIGINT, which mean `stop`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fail;

/// The commands received so far; clones share them.
#[derive(Clone)]
pub struct Orchestrator {
    stopped: Arc<AtomicBool>,
    go: i32,
    stop: i32,
}

impl Orchestrator {
    /// Create it before any other thread, so that all threads have the signals blocked.
    #[expect(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        // SAFETY: the calls fill and read `set`, a plain C struct for which zeros are a value.
        let (signals, go, stop) = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            (
                libc::signalfd(-1, &set, libc::SFD_CLOEXEC),
                libc::eventfd(0, libc::EFD_CLOEXEC),
                libc::eventfd(0, libc::EFD_CLOEXEC),
            )
        };
        if signals < 0 || go < 0 || stop < 0 {
            fail(1, format!("eventfd: {}", std::io::Error::last_os_error()));
        }
        let orchestrator = Orchestrator {
            stopped: Arc::default(),
            go,
            stop,
        };
        let listener = orchestrator.clone();
        std::thread::spawn(move || listener.listen(signals));
        orchestrator
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub fn wait_stop(&self) {
        while poll(&[self.stop], -1) == 0 {}
    }

    /// Also returns on `stop`.
    pub fn wait_go(&self) {
        while poll(&[self.go, self.stop], -1) == 0 {}
    }

    /// Sleeps a little, for polling loops; returns false when stopped.
    pub fn pause_ms(&self, ms: i32) -> bool {
        poll(&[self.stop], ms) == 0
    }

    fn listen(&self, signals: i32) {
        let mut line = Vec::new();
        loop {
            let readable = poll(&[libc::STDIN_FILENO, signals], -1);
            if readable == 0 {
                continue;
            }
            let mut bytes = [0_u8; 64];
            let n = match readable {
                // SAFETY: the call writes at most the length of `bytes`.
                1 => unsafe { libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len()) },
                _ => 0,
            };
            if n <= 0 {
                return self.hear_stop();
            }
            for &byte in &bytes[..n as usize] {
                match (byte, line.as_slice()) {
                    (b'\n', b"go") => ring(self.go),
                    (b'\n', b"stop") => return self.hear_stop(),
                    (b'\n', _) => {}
                    _ => {
                        if line.len() < 16 {
                            line.push(byte);
                        }
                        continue;
                    }
                }
                line.clear();
            }
        }
    }

    fn hear_stop(&self) {
        self.stopped.store(true, Ordering::Release);
        ring(self.stop);
    }
}

fn ring(fd: i32) {
    let one = 1_u64;
    // SAFETY: the call reads the 8 bytes of `one`.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

/// Returns a bit for each readable (or ended) descriptor; 0 after `ms` milliseconds (-1: never) or a signal.
fn poll(fds: &[i32], ms: i32) -> u32 {
    let mut set: Vec<libc::pollfd> = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: the call reads and writes the entries of `set`, whose count it is given.
    unsafe { libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, ms) };
    set.iter()
        .enumerate()
        .filter(|(_, p)| p.revents != 0)
        .map(|(i, _)| 1 << i)
        .sum()
}
