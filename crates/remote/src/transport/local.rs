//! A transport within one process: calls run directly, in the caller's thread.
//!
//! A request runs the robot's handler before it returns, and telemetry runs the controllers' callbacks. Anything that
//! either sends over the same transport meanwhile waits until they have returned, as on any other transport; so a call
//! never waits for itself.
//!
//! ```
//! use remote::transport::{ControllerEnd, Wire, local};
//!
//! let (_robot, connect) = local::end("rover", Wire::Own);
//! assert_eq!(connect.end().describe(), "local rover");
//! ```

use super::{
    Class, ControllerEnd, ControllerSink, Done, Listen, Peer, Reply, RobotEnd, RobotSink, Stream,
    TransportError, Wire,
};

use crate::sync::{lock, read, write};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

/// Maximum requests of one controller in progress: those that the robot answers later.
const UNDER_WAY: usize = 1024;
/// Maximum calls that wait for the one that this thread is in.
const DEFERRED: usize = 1024;

/// Numbers of controllers' ends in this process.
static LINES: AtomicU64 = AtomicU64::new(1);

/// Creates a robot's end, and a handle that connects controllers to it.
pub fn end(name: &str, wire: Wire) -> (Arc<dyn RobotEnd>, Connect) {
    let hub = Arc::new(Hub {
        name: name.to_owned(),
        wire,
        robot: RwLock::default(),
        controllers: RwLock::default(),
    });
    (Arc::new(Robot(hub.clone())), Connect(hub))
}

/// Connects controllers to a robot of this process.
#[derive(Clone)]
pub struct Connect(Arc<Hub>);

impl Connect {
    /// Returns another end for the robot: for its next run, after the previous one has stopped.
    pub fn robot_end(&self) -> Arc<dyn RobotEnd> {
        Arc::new(Robot(self.0.clone()))
    }

    /// Returns an end for one controller.
    pub fn end(&self) -> Arc<dyn ControllerEnd> {
        Arc::new(Controller(Arc::new(Line {
            peer: Peer::Local(LINES.fetch_add(1, Ordering::Relaxed)),
            hub: self.0.clone(),
            sink: RwLock::default(),
            listens: RwLock::default(),
            under_way: Mutex::default(),
            ended: AtomicBool::new(false),
        })))
    }
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connect({})", self.0.name)
    }
}

struct Hub {
    name: String,
    wire: Wire,
    robot: RwLock<Option<Arc<dyn RobotSink>>>,
    controllers: RwLock<Vec<Weak<Line>>>,
}

impl Hub {
    fn lines(&self) -> Vec<Arc<Line>> {
        let lines = read(&self.controllers);
        lines.iter().filter_map(Weak::upgrade).collect()
    }

    fn notify(&self, connected: bool) {
        for line in self.lines() {
            if let Some(sink) = line.sink() {
                sink.connected(connected);
            }
        }
    }
}

struct Robot(Arc<Hub>);

impl RobotEnd for Robot {
    fn wire(&self) -> Wire {
        self.0.wire
    }

    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError> {
        *write(&self.0.robot) = Some(sink);
        self.0.notify(true);
        Ok(())
    }

    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError> {
        let wanting: Vec<_> = self
            .0
            .lines()
            .into_iter()
            .filter(|line| line.wants(&stream))
            .collect();
        if wanting.is_empty() {
            return Ok(());
        }
        let hub = Arc::as_ptr(&self.0) as usize;
        let deliver = move |frame: &[u8]| {
            for line in &wanting {
                if let Some(sink) = line.sink() {
                    sink.telemetry(frame);
                }
            }
        };
        if is_inside(hub) {
            let frame = frame.to_vec();
            return defer(hub, Box::new(move || deliver(&frame)));
        }
        enter(hub, || deliver(frame));
        Ok(())
    }

    fn stop(&self) {
        let stopped = write(&self.0.robot).take();
        if stopped.is_some() {
            self.0.notify(false);
        }
    }

    fn describe(&self) -> String {
        format!("local {}", self.0.name)
    }
}

struct Controller(Arc<Line>);

/// The connection of one controller's end.
struct Line {
    /// The controller's identity to the robot.
    peer: Peer,
    hub: Arc<Hub>,
    sink: RwLock<Option<Arc<dyn ControllerSink>>>,
    /// `None`: to all.
    listens: RwLock<Option<Vec<(String, u8)>>>,
    under_way: Mutex<Vec<Weak<Answer>>>,
    ended: AtomicBool,
}

/// Called once, by the first of: the robot's answer, the robot dropping the request, or the end of the transport.
struct Answer(Mutex<Option<Done>>);

impl Answer {
    fn give(&self, result: Result<&[u8], TransportError>) -> Result<(), TransportError> {
        let done = lock(&self.0).take();
        match done {
            Some(done) => {
                done(result);
                Ok(())
            }
            None => Err(TransportError::Ended),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let _ = self.give(Err(TransportError::Unreachable(
            "the robot dropped the request without an answer".into(),
        )));
    }
}

impl Line {
    fn sink(&self) -> Option<Arc<dyn ControllerSink>> {
        if self.ended.load(Ordering::Acquire) {
            return None;
        }
        read(&self.sink).clone()
    }

    fn wants(&self, stream: &Stream<'_>) -> bool {
        let listens = read(&self.listens);
        let wanted = |l: &Vec<(String, u8)>| l.iter().any(|(k, c)| k == stream.kind && *c == stream.channel);
        listens.as_ref().is_none_or(wanted)
    }

    fn ask(&self, frame: &[u8], done: Done) {
        if self.ended.load(Ordering::Acquire) {
            return done(Err(TransportError::Ended));
        }
        let robot = read(&self.hub.robot).clone();
        let Some(robot) = robot else {
            return done(Err(TransportError::Unreachable(format!(
                "the robot {} is not running in this process",
                self.hub.name
            ))));
        };
        let answer = Arc::new(Answer(Mutex::new(Some(done))));
        {
            let mut under_way = lock(&self.under_way);
            if under_way.len() >= UNDER_WAY {
                under_way.retain(|a| a.strong_count() > 0);
            }
            if under_way.len() >= UNDER_WAY {
                drop(under_way);
                let _ = answer.give(Err(TransportError::Busy(UNDER_WAY)));
                return;
            }
            under_way.push(Arc::downgrade(&answer));
        }
        let reply = Reply::new(move |frame| answer.give(Ok(frame)));
        robot.request(frame, &self.peer, reply);
    }
}

impl ControllerEnd for Controller {
    fn wire(&self) -> Wire {
        self.0.hub.wire
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        *write(&self.0.sink) = Some(sink.clone());
        {
            let mut lines = write(&self.0.hub.controllers);
            lines.retain(|line| line.strong_count() > 0);
            lines.push(Arc::downgrade(&self.0));
        }
        if read(&self.0.hub.robot).is_some() {
            sink.connected(true);
        }
        Ok(())
    }

    /// The robot answers in its own time. `timeout` has no effect here, because a caller that waits for an answer waits
    /// within this call. An answer that the robot gives later, from another thread, is passed on whenever it comes.
    fn request(&self, _class: Class, frame: &[u8], _timeout: Duration, done: Done) {
        let hub = Arc::as_ptr(&self.0.hub) as usize;
        if !is_inside(hub) {
            return enter(hub, || self.0.ask(frame, done));
        }
        let (line, frame) = (self.0.clone(), frame.to_vec());
        // If the table is full, `done` goes with the closure: it must be called all the same.
        let answer = Arc::new(Answer(Mutex::new(Some(done))));
        let later = answer.clone();
        let work = move || {
            let done = lock(&later.0).take();
            if let Some(done) = done {
                line.ask(&frame, done);
            }
        };
        if let Err(e) = defer(hub, Box::new(work)) {
            let _ = answer.give(Err(e));
        }
    }

    fn listen(&self, streams: Listen<'_>) {
        let wanted = match streams {
            Listen::All => None,
            Listen::To(streams) => Some(streams.iter().map(|s| (s.kind.to_owned(), s.channel)).collect()),
        };
        *write(&self.0.listens) = wanted;
    }

    fn stop(&self) {
        self.0.ended.store(true, Ordering::Release);
        let under_way = std::mem::take(&mut *lock(&self.0.under_way));
        for answer in under_way.iter().filter_map(Weak::upgrade) {
            let _ = answer.give(Err(TransportError::Ended));
        }
        write(&self.0.sink).take();
    }

    fn describe(&self) -> String {
        format!("local {}", self.0.hub.name)
    }
}

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// The transports that this thread is in a call of, and the deferred work of each.
    static INSIDE: RefCell<Vec<(usize, VecDeque<Work>)>> = const { RefCell::new(Vec::new()) };
}

fn is_inside(hub: usize) -> bool {
    INSIDE.with_borrow(|inside| inside.iter().any(|(h, _)| *h == hub))
}

fn defer(hub: usize, work: Work) -> Result<(), TransportError> {
    INSIDE.with_borrow_mut(|inside| match inside.iter_mut().find(|(h, _)| *h == hub) {
        Some((_, waiting)) if waiting.len() < DEFERRED => {
            waiting.push_back(work);
            Ok(())
        }
        _ => Err(TransportError::Busy(DEFERRED)),
    })
}

/// Runs `work`, then all deferred work.
fn enter(hub: usize, work: impl FnOnce()) {
    /// Also leaves if a callback panics.
    struct Leave(usize);
    impl Drop for Leave {
        fn drop(&mut self) {
            let left = INSIDE.with_borrow_mut(|inside| {
                let at = inside.iter().position(|(h, _)| *h == self.0)?;
                Some(inside.remove(at))
            });
            drop(left);
        }
    }
    INSIDE.with_borrow_mut(|inside| inside.push((hub, VecDeque::new())));
    let _leave = Leave(hub);
    work();
    loop {
        let next = INSIDE.with_borrow_mut(|inside| {
            let (_, waiting) = inside.iter_mut().find(|(h, _)| *h == hub)?;
            waiting.pop_front()
        });
        match next {
            Some(work) => work(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// A robot that echoes its requests, and a controller that sends a request for each telemetry frame.
    struct Echo(Arc<dyn RobotEnd>);

    impl RobotSink for Echo {
        fn request(&self, frame: &[u8], _: &Peer, reply: Reply) {
            let stream = Stream {
                kind: "k",
                channel: 0,
                priority: 0,
            };
            self.0.publish(stream, frame).expect("deferred");
            reply.send(frame).expect("asked");
        }
    }

    struct Again {
        end: Arc<dyn ControllerEnd>,
        asked: AtomicU32,
        inside: AtomicU32,
    }

    impl ControllerSink for Again {
        fn telemetry(&self, frame: &[u8]) {
            assert_eq!(
                self.inside.fetch_add(1, Ordering::Relaxed),
                0,
                "one after the other"
            );
            if self.asked.fetch_add(1, Ordering::Relaxed) < 100 {
                let done =
                    Box::new(|answer: Result<&[u8], TransportError>| assert_eq!(answer, Ok(&b"x"[..])));
                self.end.request(Class::Command, frame, Duration::ZERO, done);
            }
            self.inside.fetch_sub(1, Ordering::Relaxed);
        }
        fn lost(&self, _: u64) {}
        fn connected(&self, _: bool) {}
    }

    #[test]
    fn requests_made_inside_a_callback_wait_their_turn() {
        let (robot, connect) = end("r", Wire::Own);
        robot.start(Arc::new(Echo(robot.clone()))).expect("starts");
        let line = connect.end();
        let again = Arc::new(Again {
            end: line.clone(),
            asked: AtomicU32::new(0),
            inside: AtomicU32::new(0),
        });
        line.start(again.clone()).expect("starts");
        line.request(
            Class::Command,
            b"x",
            Duration::ZERO,
            Box::new(|answer| assert!(answer.is_ok())),
        );
        assert_eq!(again.asked.load(Ordering::Relaxed), 101);
        robot.stop();
    }

    #[test]
    fn each_request_ends_once_whatever_happens() {
        struct Never;
        impl RobotSink for Never {
            fn request(&self, _: &[u8], _: &Peer, _: Reply) {}
        }
        struct Later(Mutex<Option<Reply>>);
        impl RobotSink for Later {
            fn request(&self, _: &[u8], _: &Peer, reply: Reply) {
                *lock(&self.0) = Some(reply);
            }
        }
        let ended = Arc::new(Mutex::new(Vec::new()));
        let done = || {
            let ended = ended.clone();
            Box::new(move |answer: Result<&[u8], TransportError>| lock(&ended).push(answer.map(<[u8]>::len)))
        };
        let (robot, connect) = end("r", Wire::Own);
        let line = connect.end();
        line.request(Class::Command, b"", Duration::ZERO, done());
        assert!(matches!(
            lock(&ended).pop(),
            Some(Err(TransportError::Unreachable(_)))
        ));
        robot.start(Arc::new(Never)).expect("starts");
        line.request(Class::Command, b"", Duration::ZERO, done());
        assert!(matches!(
            lock(&ended).pop(),
            Some(Err(TransportError::Unreachable(_)))
        ));
        robot.stop();
        let later = Arc::new(Later(Mutex::default()));
        robot.start(later.clone()).expect("starts");
        line.request(Class::Command, b"", Duration::ZERO, done());
        assert!(lock(&ended).is_empty());
        line.stop();
        assert_eq!(lock(&ended).pop(), Some(Err(TransportError::Ended)));
        let reply = lock(&later.0).take().expect("asked");
        assert_eq!(reply.send(b"too late"), Err(TransportError::Ended));
        line.request(Class::Command, b"", Duration::ZERO, done());
        assert_eq!(*lock(&ended), [Err(TransportError::Ended)]);
    }
}
