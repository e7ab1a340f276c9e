//! The conformance suite over both wires, and over Ropewalk's own wire with CURVE.

use crate::conformance::{self, Fixture};
use crate::support::address;
use remote::transport::zmq::{AllowedKeys, KeyPair, ZmqController, ZmqRobot};
use std::sync::Arc;

#[test]
fn conforms_over_tcp() {
    conformance::run(|| {
        let robot = address();
        let controller = robot.clone();
        Fixture {
            robot: Box::new(move || Arc::new(ZmqRobot::own(&robot).open().unwrap())),
            connect: Box::new(move || Arc::new(ZmqController::own(&controller).open().unwrap())),
            other: None,
            proves: false,
        }
    });
}

#[test]
fn conforms_with_curve() {
    conformance::run(|| {
        let address = address();
        let (robot_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let robot_is = robot_key.public();
        let other = KeyPair::generate().unwrap();
        let allowed = AllowedKeys::new()
            .with("desk", key.public())
            .with("other", other.public());
        let robot = ZmqRobot::own(&address).curve(robot_key, allowed);
        let controller = ZmqController::own(&address).curve(key, robot_is);
        let other = ZmqController::own(&address).curve(other, robot_is);
        Fixture {
            robot: Box::new(move || Arc::new(robot.clone().open().unwrap())),
            connect: Box::new(move || Arc::new(controller.clone().open().unwrap())),
            other: Some(Box::new(move || Arc::new(other.clone().open().unwrap()))),
            proves: true,
        }
    });
}

#[test]
fn conforms_in_version_6() {
    conformance::run_v6(|| {
        let (requests, telemetry) = (address(), address());
        let robot = ZmqRobot::plain_v6().bind_v6(&requests, &telemetry);
        let controller = ZmqController::plain_v6(&requests, &telemetry);
        Fixture {
            robot: Box::new(move || Arc::new(robot.clone().open().unwrap())),
            connect: Box::new(move || Arc::new(controller.clone().open().unwrap())),
            other: None,
            proves: false,
        }
    });
}
