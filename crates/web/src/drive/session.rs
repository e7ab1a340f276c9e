//! One page that drives a robot, or may do so.

use super::fleet::{Done, Driver, Outcome, Right, Wish};
use super::request::{self, Moved, Request};
use super::wheel::{Turn, Wheel};
use super::{NEWS, Shared};
use crate::foxglove::lock;
use crate::frame::Opcode;
use crate::page::message;
use crate::{Client, Handler, Received, Role};
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Requests about the right to move that wait for the robot's answer.
const MAX_WISHES: usize = 8;
/// How often the robot is asked who holds the right.
const LOOK: Duration = Duration::from_secs(1);
/// Zero twists after the robot was stopped for the page: the first may be lost.
const ZEROS: u8 = 3;

/// One page.
pub(super) struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    start: Instant,
    wishes: SyncSender<Task>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    robot: Option<Arc<Joined>>,
    wheel: Wheel,
    /// Zero twists that are still to be sent, one each tick.
    zeros: u8,
}

/// The robot that a page chose, with the page's own controller of it.
struct Joined {
    name: String,
    driver: Box<dyn Driver>,
    right: Mutex<Option<Right>>,
}

impl Joined {
    fn is_mine(&self) -> bool {
        lock(&self.right).as_ref().is_some_and(|right| right.mine)
    }
}

/// Work that waits for a robot's answer, done by the session's own thread.
enum Task {
    Right(Arc<Joined>, Wish),
    Leave(Arc<Joined>),
}

/// Ends the session when the page leaves.
pub(super) struct SessionHandler(pub(super) Arc<Session>);

impl Handler for SessionHandler {
    fn received(&mut self, received: Received) {
        let done = match &received {
            Received::Text(text) => request::read(text.as_bytes()).and_then(|request| self.0.handle(request)),
            Received::Binary(_) => Err("write JSON".into()),
        };
        if let Err(error) = done {
            self.0.tell("error", json!({ "error": error }));
        }
    }
}

impl Drop for SessionHandler {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Session {
    pub(super) fn start(shared: Arc<Shared>, client: Arc<Client>) -> io::Result<Arc<Self>> {
        let (wishes, tasks) = sync_channel(MAX_WISHES);
        let session = Arc::new(Session {
            shared,
            client,
            start: Instant::now(),
            wishes,
            state: Mutex::default(),
        });
        let weak = Arc::downgrade(&session);
        std::thread::Builder::new()
            .name("drive-right".into())
            .spawn(move || serve(&weak, &tasks))?;
        Ok(session)
    }

    /// The robot that the page chose.
    pub(super) fn robot(&self) -> Option<String> {
        let state = lock(&self.state);
        state.robot.as_ref().map(|robot| robot.name.clone())
    }

    fn joined(&self) -> Result<Arc<Joined>, String> {
        let robot = lock(&self.state).robot.clone();
        robot.ok_or_else(|| "choose a robot first".into())
    }

    fn handle(self: &Arc<Self>, request: Request) -> Result<(), String> {
        if self.client.role < Role::Drive {
            return Err("driving needs a token with the role drive".into());
        }
        match request {
            Request::Robot(name) => self.join(name),
            Request::Right(wish) => self.want(Task::Right(self.joined()?, wish)),
            Request::Ask => self.ask(&*self.joined()?),
            Request::Drive(moved) => self.moved(moved),
            Request::Stop { n } => self.stop(n),
            Request::StopAll => {
                self.stop_all();
                Ok(())
            }
        }
    }

    fn join(&self, name: String) -> Result<(), String> {
        if self.robot().as_ref() == Some(&name) {
            return Ok(());
        }
        // Held controls count only after a zero.
        self.leave();
        if !self.shared.fleet.robots().contains(&name) {
            return Err(format!("there is no robot {name:?} to drive"));
        }
        let driver = self.shared.fleet.join(&name, &self.operator())?;
        let joined = Joined {
            name,
            driver,
            right: Mutex::default(),
        };
        lock(&self.state).robot = Some(Arc::new(joined));
        self.tell_standing();
        Ok(())
    }

    /// The operator's name, as far as the connection proves it.
    fn operator(&self) -> String {
        format!("page at {}", self.client.address)
    }

    fn want(&self, task: Task) -> Result<(), String> {
        let sent = self.wishes.try_send(task);
        sent.map_err(|_| "the robot has not answered the previous request".into())
    }

    /// Notifies the page of the operator who holds the right that this operator requests it.
    fn ask(&self, joined: &Joined) -> Result<(), String> {
        let holder = lock(&joined.right).clone().and_then(|right| right.holder);
        let holder = holder.ok_or("nobody holds the right to move this robot: request it")?;
        let by = json!({ "id": joined.driver.standing().id.to_string(), "name": self.operator() });
        let asked = self.shared.of_robot(&joined.name).into_iter().filter(|session| {
            session
                .joined()
                .is_ok_and(|joined| joined.driver.standing().id == holder.id)
        });
        let mut reported = false;
        for session in asked {
            session.tell("asked", json!({ "robot": joined.name, "by": by }));
            reported = true;
        }
        match reported {
            true => Ok(()),
            false => Err(format!(
                "{} is not on this server's page: ask the operator directly, or take over",
                holder.name
            )),
        }
    }

    fn moved(self: &Arc<Self>, moved: Moved) -> Result<(), String> {
        let joined = self.joined()?;
        let turn = lock(&self.state).wheel.moved(moved, self.start.elapsed());
        match turn {
            Turn::Send(forward, turn) => self.send(&joined, (forward, turn), Some(moved.n)),
            Turn::Halt(reason) => self.halted(&joined, &reason),
            Turn::Ignore => {}
            Turn::Hopeless => self.client.queue.close(),
        }
        Ok(())
    }

    /// Stops the robot, for all pages that drive it.
    fn stop(self: &Arc<Self>, n: u64) -> Result<(), String> {
        let joined = self.joined()?;
        lock(&self.state).wheel.halt();
        let others = self.shared.of_robot(&joined.name).into_iter();
        let others: Vec<_> = others.filter(|other| !Arc::ptr_eq(other, self)).collect();
        for other in &others {
            other.stopped_by(&self.operator());
        }
        // The robot obeys the operator who holds the right.
        let holder = others.iter().filter_map(|other| other.joined().ok());
        let through = holder.into_iter().find(|other| other.is_mine()).unwrap_or(joined);
        self.send(&through, (0.0, 0.0), Some(n));
        Ok(())
    }

    /// Stops all robots that pages of this server have the right to move. The page learns which, and each outcome.
    fn stop_all(self: &Arc<Self>) {
        let sessions = self.shared.sessions();
        for session in &sessions {
            session.stopped_by(&self.operator());
        }
        let all = sessions.iter().filter_map(|session| session.joined().ok());
        let held: Vec<_> = all.filter(|joined| joined.is_mine()).collect();
        let robots: Vec<_> = held.iter().map(|joined| &joined.name).collect();
        self.tell("stopping", json!({ "robots": robots }));
        for joined in &held {
            let (weak, robot) = (Arc::downgrade(self), joined.name.clone());
            let done: Done = Box::new(move |outcome: Outcome, text: String| {
                if let Some(session) = weak.upgrade() {
                    let fields = json!({ "robot": robot, "outcome": outcome.name(), "text": text });
                    session.tell("stopped", fields);
                }
            });
            joined.driver.drive(0.0, 0.0, done);
        }
    }

    /// Another operator pressed STOP. A page that has the right to move the robot learns so even while it stands.
    fn stopped_by(self: &Arc<Self>, operator: &str) {
        let Ok(joined) = self.joined() else { return };
        {
            let wheel = &mut lock(&self.state).wheel;
            if !wheel.is_moving() && !joined.is_mine() {
                return;
            }
            wheel.halt();
        }
        self.halted(&joined, &format!("{operator} pressed STOP"));
    }

    /// Stops the robot for the page, which failed to do so.
    fn halted(self: &Arc<Self>, joined: &Joined, reason: &str) {
        self.send(joined, (0.0, 0.0), None);
        lock(&self.state).zeros = ZEROS;
        self.tell("halted", json!({ "reason": reason }));
    }

    /// Time passed.
    pub(super) fn tick(self: &Arc<Self>) {
        let Ok(joined) = self.joined() else { return };
        let (silent, zero) = {
            let mut state = lock(&self.state);
            let zero = state.zeros > 0;
            state.zeros -= u8::from(zero);
            let round_trip = joined.driver.standing().round_trip;
            (state.wheel.passed(self.start.elapsed(), round_trip), zero)
        };
        if let Some(reason) = silent {
            self.halted(&joined, &reason);
        } else if zero {
            self.send(&joined, (0.0, 0.0), None);
        }
    }

    /// Sends a twist; the page learns the outcome of message `n`.
    fn send(self: &Arc<Self>, joined: &Joined, (forward, turn): (f64, f64), n: Option<u64>) {
        let limits = self.shared.limits;
        let (weak, sent) = (Arc::downgrade(self), Instant::now());
        let done: Done = Box::new(move |outcome: Outcome, text: String| {
            let (Some(session), Some(n)) = (weak.upgrade(), n) else {
                return;
            };
            if outcome == Outcome::Executed {
                let now = session.start.elapsed();
                lock(&session.state).wheel.executed(now);
            }
            let ms = sent.elapsed().as_secs_f64() * 1e3;
            session.tell(
                "outcome",
                json!({ "n": n, "outcome": outcome.name(), "text": text, "ms": (ms * 100.0).round() / 100.0 }),
            );
        });
        joined
            .driver
            .drive(forward * limits.speed, turn * limits.turn, done);
    }

    /// The page leaves its robot: it stops, and another operator may move it.
    fn leave(&self) {
        let (robot, moved) = {
            let mut state = lock(&self.state);
            (state.robot.take(), state.wheel.halt())
        };
        let Some(robot) = robot else { return };
        if moved {
            robot.driver.drive(0.0, 0.0, Box::new(|_, _| {}));
        }
        // If the thread is busy with a robot that does not answer, the right ends with the controller.
        let _ = self.wishes.try_send(Task::Leave(robot));
    }

    pub(super) fn tell_robots(&self, robots: &[String]) {
        self.tell("robots", json!({ "robots": robots }));
    }

    pub(super) fn tell_standing(&self) {
        let Ok(joined) = self.joined() else { return };
        let standing = joined.driver.standing();
        let right = lock(&joined.right).clone();
        let right = right.map(|right| {
            let holder = right
                .holder
                .map(|h| json!({ "id": h.id.to_string(), "name": h.name }));
            json!({ "holder": holder, "mine": right.mine })
        });
        let limits = self.shared.limits;
        let rtt = standing.round_trip.map(|rtt| rtt.as_secs_f64() * 1e3);
        self.tell(
            "robot",
            json!({
                "robot": joined.name,
                "found": standing.found,
                "rtt_ms": rtt,
                "right": right,
                "speed": limits.speed,
                "turn": limits.turn,
            }),
        );
    }

    fn tell(&self, op: &str, fields: Value) {
        self.client.queue.answer(Opcode::Text, message(op, fields));
    }
}

/// Performs tasks that wait for a robot's answer, and asks once a second who holds the right.
fn serve(session: &Weak<Session>, tasks: &Receiver<Task>) {
    let mut looked = Instant::now();
    loop {
        let task = match tasks.recv_timeout(NEWS) {
            Ok(task) => Some(task),
            Err(RecvTimeoutError::Timeout) => None,
            // The page has left.
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let (joined, wish) = match task {
            Some(Task::Right(joined, wish)) => (joined, wish),
            Some(Task::Leave(joined)) => {
                if joined.is_mine() && joined.driver.standing().found {
                    let _ = joined.driver.right(Wish::Release);
                }
                continue;
            }
            None => {
                let joined = session.upgrade().and_then(|session| session.joined().ok());
                match joined.filter(|j| j.driver.standing().found && looked.elapsed() >= LOOK) {
                    Some(joined) => (joined, Wish::Know),
                    None => continue,
                }
            }
        };
        looked = Instant::now();
        let answer = joined.driver.right(wish);
        let Some(session) = session.upgrade() else { return };
        match answer {
            Ok(right) => *lock(&joined.right) = Some(right),
            Err(_) if wish == Wish::Know => {}
            Err(error) => session.tell("error", json!({ "error": error })),
        }
        session.tell_standing();
    }
}
