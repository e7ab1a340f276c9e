//! The robots of this bus, for pages that drive.

use crate::numbers::limit;
use clap::Args;
use remote::command::Twist;
use remote::transport::link::{LinkController, robot_of_service};
use remote::types::{Twist as Body, Vector3};
use remote::{Controller, Outcome, Pending};
use ropewalk::Node;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use web::drive::{self, Done, Driver, Fleet, Holder, Right, SpeedLimits, Standing, Wish};

/// How often the bus is asked while a page is open.
const LOOK: Duration = Duration::from_secs(1);
/// After this long without a request, no page counts as open.
const IDLE: Duration = Duration::from_secs(3);

/// How fast robots are driven; for commands with an option `drive`.
#[derive(Args)]
pub(crate) struct Speeds {
    /// Maximum driving speed, in m/s.
    #[arg(long, value_name = "M/S", default_value_t = SpeedLimits::default().speed, value_parser = limit, requires = "drive")]
    speed: f64,
    /// Maximum turn rate, in rad/s.
    #[arg(long, value_name = "RAD/S", default_value_t = SpeedLimits::default().turn, value_parser = limit, requires = "drive")]
    turn: f64,
}

impl Speeds {
    pub(crate) fn limits(&self) -> SpeedLimits {
        SpeedLimits {
            speed: self.speed,
            turn: self.turn,
        }
    }
}

/// The robots of a bus whose names a pattern covers.
pub(crate) struct Robots {
    node: Node,
    shared: Arc<Shared>,
    outcomes: Sender<Event>,
}

struct Shared {
    patterns: Vec<String>,
    found: Mutex<Found>,
}

struct Found {
    names: Vec<String>,
    asked: Instant,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Robots {
    /// Starts to look for robots. `patterns`: of names; empty: all.
    pub(crate) fn start(node: Node, patterns: &[String]) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            patterns: patterns.iter().map(|p| p.trim_matches('/').to_owned()).collect(),
            found: Mutex::new(Found {
                names: Vec::new(),
                asked: Instant::now(),
                ended: false,
            }),
        });
        let (of_thread, bus) = (shared.clone(), node.clone());
        std::thread::Builder::new()
            .name("robots".into())
            .spawn(move || of_thread.watch(&bus))?;
        let (outcomes, events) = channel();
        let wake = outcomes.clone();
        std::thread::Builder::new()
            .name("outcomes".into())
            .spawn(move || Outcomes::default().serve(&events, &wake))?;
        Ok(Robots {
            node,
            shared,
            outcomes,
        })
    }
}

impl Drop for Robots {
    fn drop(&mut self) {
        lock(&self.shared.found).ended = true;
        let _ = self.outcomes.send(Event::End);
    }
}

impl std::fmt::Debug for Robots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Robots")
            .field("patterns", &self.shared.patterns)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn watch(&self, node: &Node) {
        loop {
            let idle = {
                let found = lock(&self.found);
                if found.ended {
                    return;
                }
                found.asked.elapsed() > IDLE
            };
            if !idle {
                match node.services() {
                    Ok(services) => {
                        let served = services.iter().filter(|s| !s.servers.is_empty());
                        let names = served.filter_map(|s| self.name(&s.service.service)).collect();
                        lock(&self.found).names = names;
                    }
                    Err(error) => tracing::warn!("looking for robots: {error}"),
                }
            }
            std::thread::sleep(if idle { LOOK / 10 } else { LOOK });
        }
    }

    /// The robot's name if this is the service of its commands.
    fn name(&self, service: &str) -> Option<String> {
        let name = robot_of_service(service)?;
        let covers = |pattern: &String| bridge::covers(pattern, name);
        (self.patterns.is_empty() || self.patterns.iter().any(covers)).then(|| name.to_owned())
    }
}

impl Fleet for Robots {
    fn robots(&self) -> Vec<String> {
        let mut found = lock(&self.shared.found);
        found.asked = Instant::now();
        found.names.clone()
    }

    fn join(&self, robot: &str, operator: &str) -> Result<Box<dyn Driver>, String> {
        let end = Arc::new(LinkController::new(&self.node, robot));
        let controller = Controller::builder(operator).end(end).start();
        Ok(Box::new(Operator {
            controller: controller.map_err(|error| error.to_string())?,
            outcomes: self.outcomes.clone(),
        }))
    }
}

/// An operator's controller.
struct Operator {
    controller: Controller,
    outcomes: Sender<Event>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.controller.stop();
    }
}

impl Driver for Operator {
    fn standing(&self) -> Standing {
        Standing {
            found: self.controller.is_found(),
            round_trip: self.controller.round_trip(),
            id: self.controller.id(),
        }
    }

    fn right(&self, wish: Wish) -> Result<Right, String> {
        let whole = "";
        let answer = match wish {
            Wish::Know => self.controller.right(whole),
            Wish::Request => self.controller.request_right(whole),
            Wish::Release => self.controller.release_right(whole),
            Wish::TakeOver => self.controller.take_right_over(whole),
            Wish::HandOver(to) => self.controller.hand_right_over(whole, to),
        };
        let right = answer.map_err(|error| error.to_string())?;
        Ok(Right {
            holder: right.holder.map(|(id, name)| Holder { id, name }),
            mine: right.mine,
        })
    }

    fn drive(&self, forward: f64, turn: f64, done: Done) {
        let vector = |x, z| Some(Vector3 { x, y: 0.0, z });
        let twist = Body {
            header: None,
            linear: vector(forward as f32, 0.0),
            angular: vector(0.0, turn as f32),
        };
        let pending = self.controller.send::<Twist>(&twist);
        // Without the thread, the command is sent all the same.
        let _ = self.outcomes.send(Event::Sent(pending, done));
    }
}

/// What the thread of outcomes waits for.
enum Event {
    Sent(Pending<Outcome>, Done),
    /// The outcome with this number may be known.
    Woken(u64),
    End,
}

/// Commands whose outcome is not known yet.
#[derive(Default)]
struct Outcomes {
    next: u64,
    pending: BTreeMap<u64, (Pending<Outcome>, Done)>,
}

struct Woken(u64, Sender<Event>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let _ = self.1.send(Event::Woken(self.0));
    }
}

impl Outcomes {
    fn serve(&mut self, events: &Receiver<Event>, wake: &Sender<Event>) {
        loop {
            match events.recv_timeout(IDLE) {
                Ok(Event::Sent(pending, done)) => {
                    self.next += 1;
                    self.pending.insert(self.next, (pending, done));
                    self.look(self.next, wake);
                }
                Ok(Event::Woken(number)) => self.look(number, wake),
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn look(&mut self, number: u64, wake: &Sender<Event>) {
        let Some((mut pending, done)) = self.pending.remove(&number) else {
            return;
        };
        let waker = Waker::from(Arc::new(Woken(number, wake.clone())));
        match pin!(&mut pending).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => {
                let (kind, text) = in_words(outcome);
                done(kind, text);
            }
            Poll::Pending => {
                self.pending.insert(number, (pending, done));
            }
        }
    }
}

fn in_words(outcome: Outcome) -> (drive::Outcome, String) {
    match outcome {
        Outcome::Executed => (drive::Outcome::Executed, String::new()),
        Outcome::Rejected(reason) => (drive::Outcome::Rejected, reason),
        Outcome::Expired(reason) => (drive::Outcome::Expired, reason),
        unreachable @ Outcome::Unreachable { .. } => (drive::Outcome::Unreachable, unreachable.to_string()),
    }
}
