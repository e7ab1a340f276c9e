//! Driving a robot from a page: WebSockets with the subprotocol `ropewalk.drive.v1`.
//!
//! Each page that chooses a robot gets a controller of its own, so the robot distinguishes its operators, grants the
//! right to move to one of them and judges each command by its age. Keys that are held on the page become twists. The
//! server stops the robot when messages of the page stop or are late (`wheel.rs`). If the server fails, the robot stops
//! by its own clock.
//!
//! Messages are JSON. From the page: `robot`, `request`, `release`, `take_over`, `ask`, `hand_over`, `drive`, `stop`,
//! `stop_all`. To the page: `robots`, `robot`, `asked`, `outcome`, `halted`, `stopping`, `stopped`, `error`.

mod fleet;
mod request;
mod session;
mod wheel;

pub use fleet::{Done, Driver, Fleet, Holder, Outcome, Right, SpeedLimits, Standing, Wish};

use crate::foxglove::lock;
use crate::{Client, Handler};
use session::{Session, SessionHandler};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The subprotocol.
pub(crate) const PROTOCOL: &str = "ropewalk.drive.v1";
/// How often the server checks whether messages of a page still arrive.
const TICK: Duration = Duration::from_millis(20);
/// How often pages receive the robot's state.
const NEWS: Duration = Duration::from_millis(500);

/// Robots that pages drive.
pub(crate) struct Drive {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// For `crate::fuzzing`.
pub(crate) mod fuzzing {
    use super::request::{Request, read};
    use super::wheel::Wheel;
    use std::time::Duration;

    /// Reads a message, and steers with it.
    pub(crate) fn steer(line: &[u8]) -> Result<(), String> {
        if let Request::Drive(moved) = read(line)? {
            let _ = Wheel::default().moved(moved, Duration::from_secs(1));
        }
        Ok(())
    }
}

/// State that the sessions share.
pub(crate) struct Shared {
    fleet: Arc<dyn Fleet>,
    limits: SpeedLimits,
    sessions: Mutex<Vec<Weak<Session>>>,
    robots: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

impl Drive {
    /// Drives these robots.
    pub(crate) fn start(fleet: Arc<dyn Fleet>, limits: SpeedLimits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            robots: Mutex::new(fleet.robots()),
            fleet,
            limits,
            sessions: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("drive".into())
            .spawn(move || of_thread.watch())?;
        Ok(Drive {
            shared,
            thread: Some(thread),
        })
    }

    /// Serves a page.
    pub(crate) fn open(&self, client: Arc<Client>) -> io::Result<Box<dyn Handler>> {
        let session = Session::start(self.shared.clone(), client)?;
        session.tell_robots(&lock(&self.shared.robots));
        lock(&self.shared.sessions).push(Arc::downgrade(&session));
        self.wake();
        Ok(Box::new(SessionHandler(session)))
    }
}

impl Drive {
    /// Wakes the thread, which sleeps while no page is open.
    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").finish_non_exhaustive()
    }
}

impl Shared {
    /// The open sessions.
    fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.iter().filter_map(Weak::upgrade).collect()
    }

    /// The sessions of pages that chose this robot.
    fn of_robot(&self, robot: &str) -> Vec<Arc<Session>> {
        let mut all = self.sessions();
        all.retain(|session| session.robot().as_deref() == Some(robot));
        all
    }

    fn watch(&self) {
        let mut news = Instant::now();
        while !self.stopped.load(Ordering::Relaxed) {
            if self.sessions().is_empty() {
                std::thread::park_timeout(NEWS);
                continue;
            }
            std::thread::sleep(TICK);
            let sessions = self.sessions();
            for session in &sessions {
                session.tick();
            }
            if Instant::now() < news {
                continue;
            }
            news = Instant::now() + NEWS;
            let robots = self.fleet.robots();
            let changed = {
                let mut known = lock(&self.robots);
                let changed = *known != robots;
                known.clone_from(&robots);
                changed
            };
            for session in &sessions {
                if changed {
                    session.tell_robots(&robots);
                }
                session.tell_standing();
            }
        }
    }
}
