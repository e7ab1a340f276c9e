//! Which peers get in with CURVE, and which do not.

use crate::support::{Heard, LONG, ask, echo, publish_until_heard};
use remote::transport::zmq::{AllowedKeys, KeyPair, ZmqController, ZmqRobot};
use remote::transport::{Class, ControllerEnd, Peer, Reply, RobotEnd, RobotSink, TransportError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(1500);

#[test]
fn known_controllers_get_in_and_unknown_ones_get_nothing() {
    let (robot_key, base, unknown_key) = (
        KeyPair::generate().unwrap(),
        KeyPair::generate().unwrap(),
        KeyPair::generate().unwrap(),
    );
    let robot_is = robot_key.public();
    let robot = ZmqRobot::own("tcp://127.0.0.1:*")
        .curve(robot_key, AllowedKeys::new().with("base", base.public()))
        .open()
        .unwrap();
    robot.start(echo()).unwrap();
    let address = robot.requests_address().unwrap();
    assert!(robot.describe().contains("CURVE"));

    let known = ZmqController::own(address)
        .curve(base.clone(), robot_is)
        .open()
        .unwrap();
    let heard = Arc::new(Heard::default());
    known.start(heard.clone()).unwrap();
    assert_eq!(ask(&known, b"x", LONG), Ok(b"x".to_vec()));
    publish_until_heard(&robot, &heard);

    let error = |controller: ZmqController| {
        let heard = Arc::new(Heard::default());
        controller.start(heard.clone()).unwrap();
        let error = ask(&controller, b"x", SHORT).unwrap_err().to_string();
        robot.publish(crate::support::STREAM, b"secret").unwrap();
        assert!(!heard.connected.load(Ordering::SeqCst) && heard.count.load(Ordering::SeqCst) == 0);
        error
    };
    let unknown = error(
        ZmqController::own(address)
            .curve(unknown_key.clone(), robot_is)
            .open()
            .unwrap(),
    );
    assert!(unknown.contains("allowed keys"), "{unknown}");
    assert!(robot.statistics().refused > 0);
    // A controller does not speak to a robot with another key.
    let pinned = error(
        ZmqController::own(address)
            .curve(base, unknown_key.public())
            .open()
            .unwrap(),
    );
    assert!(pinned.contains("nothing was sent"), "{pinned}");
    let plain = error(ZmqController::own(address).open().unwrap());
    assert!(plain.contains("nothing was sent"), "{plain}");

    assert_eq!(ask(&known, b"y", LONG), Ok(b"y".to_vec()));
}

#[test]
fn version_6_has_no_keys() {
    let key = KeyPair::generate().unwrap();
    let error = ZmqRobot::plain_v6()
        .curve(key.clone(), AllowedKeys::new())
        .open()
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("own wire"), "{error}");
    let controller = ZmqController::plain_v6("tcp://127.0.0.1:1", "tcp://127.0.0.1:2");
    assert!(controller.curve(key.clone(), key.public()).open().is_err());
}

/// Answers only when the test asks for it, and records the peers whose key was revoked.
#[derive(Default)]
struct Holding {
    held: Mutex<Vec<(Peer, Reply)>>,
    revoked: Mutex<Vec<Peer>>,
}

impl RobotSink for Holding {
    fn request(&self, _: &[u8], from: &Peer, reply: Reply) {
        self.held.lock().unwrap().push((from.clone(), reply));
    }

    fn revoked(&self, peer: &Peer) {
        self.revoked.lock().unwrap().push(peer.clone());
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_key_that_is_taken_off_the_list_is_not_heard_over_a_connection_that_stands() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("controllers");
    let (robot_key, base, other) = (
        KeyPair::generate().unwrap(),
        KeyPair::generate().unwrap(),
        KeyPair::generate().unwrap(),
    );
    let robot_is = robot_key.public();
    let both = format!("{} base\n{} other\n", base.public(), other.public());
    std::fs::write(&list, &both).unwrap();
    let robot = ZmqRobot::own("tcp://127.0.0.1:*")
        .curve_file(robot_key, &list)
        .unwrap();
    let robot = robot.open().unwrap();
    let sink = Arc::new(Holding::default());
    robot.start(sink.clone()).unwrap();
    let address = robot.requests_address().unwrap();
    let ask = |key: &KeyPair| {
        let end = ZmqController::own(address)
            .curve(key.clone(), robot_is)
            .open()
            .unwrap();
        end.start(Arc::new(Heard::default())).unwrap();
        let (done, answered) = channel();
        let done = move |result: Result<&[u8], TransportError>| drop(done.send(result.map(<[u8]>::to_vec)));
        end.request(Class::Command, b"x", LONG, Box::new(done));
        (end, answered)
    };
    let held = |n| move |sink: &Holding| sink.held.lock().unwrap().len() == n;
    let (base_end, base_answered) = ask(&base);
    wait_until("its request came", || held(1)(&sink));
    // Its key is removed while its request is in progress.
    std::fs::write(&list, format!("{} other\n", other.public())).unwrap();
    wait_until("it is revoked", || sink.revoked.lock().unwrap().len() == 1);
    let (who, reply) = sink.held.lock().unwrap().pop().unwrap();
    assert!(
        matches!(&who, Peer::Key { name, key } if &**name == "base" && **key == base.public().to_string())
    );
    assert_eq!(*sink.revoked.lock().unwrap(), [who]);
    reply.send(b"secret").unwrap();
    base_end.request(Class::Command, b"again", SHORT, Box::new(|_| {}));
    wait_until("neither counts", || robot.statistics().revoked >= 2);
    assert!(base_answered.try_recv().is_err() && sink.held.lock().unwrap().is_empty());
    // The other controller is served as before; a list that cannot be read changes nothing.
    std::fs::write(&list, "nonsense\n").unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let (_other_end, answered) = ask(&other);
    wait_until("the other's request came", || held(1)(&sink));
    let (_, reply) = sink.held.lock().unwrap().pop().unwrap();
    reply.send(b"yes").unwrap();
    assert_eq!(answered.recv_timeout(LONG).unwrap(), Ok(b"yes".to_vec()));
    robot.allow(AllowedKeys::new());
    wait_until("by the program's word, too", || {
        sink.revoked.lock().unwrap().len() == 2
    });
}
