//! Who gets in with CURVE, and who does not.

use crate::support::{Heard, LONG, ask, echo, publish_until_heard};
use remote::transport::zmq::{AllowedKeys, KeyPair, ZmqController, ZmqRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(1500);

#[test]
fn known_controllers_get_in_and_strangers_get_nothing() {
    let (robot_key, base, stranger) = (
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
            .curve(stranger.clone(), robot_is)
            .open()
            .unwrap(),
    );
    assert!(unknown.contains("allowed keys"), "{unknown}");
    assert!(robot.statistics().refused > 0);
    // A robot that is another one's is not spoken to.
    let pinned = error(
        ZmqController::own(address)
            .curve(base, stranger.public())
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
