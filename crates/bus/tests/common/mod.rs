//! Shared parts of the integration tests.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test uses a part of it"
)]

pub mod census;
pub mod child;
pub mod raw;

use bus::{Bus, BusConfig, TopicType};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Long enough for any machine; a test that waits this long has failed.
pub const LONG: Duration = Duration::from_secs(120);

pub fn topic(name: &str) -> TopicType {
    TopicType {
        topic: name.into(),
        type_name: "test_msgs/Blob".into(),
        type_hash: [0x5A; 16],
        flavour: Default::default(),
        definition: "uint8[] data\n".into(),
    }
}

/// Ends the process if a call that must not block does, that is, if this is not called for a long time. A
/// test of many parts, which together take long on a busy machine, calls it before each part.
pub fn watchdog() {
    static FED: Mutex<Option<Instant>> = Mutex::new(None);
    let fed = || FED.lock().unwrap_or_else(PoisonError::into_inner);
    if fed().replace(Instant::now()).is_some() {
        return;
    }
    std::thread::spawn(move || {
        loop {
            let left = fed().map_or(Duration::ZERO, |at| (10 * LONG).saturating_sub(at.elapsed()));
            if left.is_zero() {
                eprintln!("the watchdog ends a test that hangs");
                std::process::abort();
            }
            std::thread::sleep(left);
        }
    });
}

pub fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    watchdog();
    let dir = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

pub fn bus(dir: &tempfile::TempDir) -> Bus {
    Bus::open(BusConfig::new(dir.path())).unwrap()
}

/// Waits until `done` returns true; panics after a long time.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a test that needs something not every machine permits may continue. If not, the test reports that;
/// in CI (`CI=true`) that is a failure.
pub fn permitted(what: &str, is_permitted: bool) -> bool {
    if !is_permitted {
        eprintln!("NOTHING WAS TESTED: {what} is not possible here");
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{what} is not possible here, but CI must test it"
        );
    }
    is_permitted
}

/// What `/proc` shows for shared memory of this name, in the built-in variant.
pub fn shared_memory(name: &str) -> String {
    let path = if cfg!(feature = "posix") {
        "/dev/shm/"
    } else {
        "/memfd:"
    };
    format!("{path}{name}")
}

/// A cheap fingerprint of bytes (FNV-1a).
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A small random number generator with the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

/// Whether a descriptor is readable now.
pub fn readable(fd: impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let fd = fd.as_fd();
    let zero = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&zero)).unwrap() == 1
}
