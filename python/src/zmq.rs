//! Ends over ZeroMQ, for `ropewalk.remote.Zmq`.

use pyo3::prelude::*;
use remote::transport::ControllerEnd;
use std::path::PathBuf;
use std::sync::Arc;

/// `ropewalk.remote.Zmq`
#[derive(FromPyObject)]
#[cfg_attr(not(feature = "zmq"), allow(dead_code))]
pub(crate) struct Zmq {
    address: String,
    telemetry: String,
    plain_v6: bool,
    key: Option<PathBuf>,
    peers: Option<PathBuf>,
    insecure: bool,
    waiting_bytes: usize,
}

pub(crate) use with::{RobotEnd, address, controller, robot};

/// Writes a new key to `path`, and the public key next to it; returns the public key.
#[pyfunction]
pub(crate) fn make_key(path: PathBuf) -> PyResult<String> {
    with::make_key(path)
}

#[cfg(feature = "zmq")]
mod with {
    use super::*;
    use crate::fault::OrRaise;
    pub(crate) use remote::transport::zmq::ZmqRobot as RobotEnd;
    use remote::transport::zmq::{KeyPair, ZmqSettings};

    fn settings(zmq: Zmq) -> ZmqSettings {
        ZmqSettings {
            address: zmq.address,
            telemetry: zmq.telemetry,
            plain_v6: zmq.plain_v6,
            key: zmq.key,
            peers: zmq.peers,
            insecure: zmq.insecure,
            waiting_bytes: zmq.waiting_bytes,
        }
    }

    pub(crate) fn robot(zmq: Zmq) -> PyResult<RobotEnd> {
        settings(zmq).robot().or_raise()
    }

    pub(crate) fn controller(zmq: Zmq) -> PyResult<Arc<dyn ControllerEnd>> {
        Ok(Arc::new(settings(zmq).controller().or_raise()?))
    }

    pub(super) fn make_key(path: PathBuf) -> PyResult<String> {
        let key = KeyPair::generate().or_raise()?;
        key.write(&path).or_raise()?;
        Ok(key.public().to_string())
    }

    /// Returns the address for requests or telemetry, once started.
    pub(crate) fn address(end: &RobotEnd, telemetry: bool) -> Option<String> {
        match telemetry {
            false => end.requests_address().map(str::to_owned),
            true => end.telemetry_address(),
        }
    }
}

/// Replacement for packages built without ZeroMQ.
#[cfg(not(feature = "zmq"))]
mod with {
    use super::*;
    use crate::fault::raise;

    pub(crate) type RobotEnd = remote::transport::link::LinkRobot;

    fn none<T>() -> PyResult<T> {
        let text =
            "this package was built without ZeroMQ: install it with the feature `zmq`, which is the default";
        Err(raise("BadName", text))
    }

    pub(crate) fn robot(_: Zmq) -> PyResult<RobotEnd> {
        none()
    }

    pub(crate) fn controller(_: Zmq) -> PyResult<Arc<dyn ControllerEnd>> {
        none()
    }

    pub(super) fn make_key(_: PathBuf) -> PyResult<String> {
        none()
    }

    pub(crate) fn address(_: &RobotEnd, _: bool) -> Option<String> {
        None
    }
}
