//! Robots and controllers over ZeroMQ.

use crate::pointer::{self, file, invalid, text_out};
use crate::status::{Failure, Status, guard};
use remote::transport::ControllerEnd;
use std::ffi::c_char;
use std::sync::Arc;

/// An end over ZeroMQ. Zero is each field's default. Without `plain_v6` it talks to Ropewalk's own ends,
/// encrypted (CURVE) if `key` and `peers` name files. Addresses that other hosts can reach need those, or
/// `insecure`.
#[repr(C)]
pub struct Zmq {
    /// `tcp://IP:PORT` or `ipc:///PATH`; for a robot also `tcp://IP:*` for any port. With `plain_v6` it is
    /// the address for requests; a robot without an address then uses ports 7001 and 7002 of this host.
    pub address: *const c_char,
    /// With `plain_v6`: the address of the telemetry.
    pub telemetry: *const c_char,
    /// The file with this end's secret key, as `ropewalk_zmq_make_key` writes it.
    pub key: *const c_char,
    /// For a robot: the file with the controllers that may talk to it, one per line: public key, blank, name.
    /// For a controller: the file with the robot's public key.
    pub peers: *const c_char,
    /// Speaks version 6 of Robot Remote Control, for robots and controllers of other vendors: neither
    /// encrypted nor authenticated.
    pub plain_v6: bool,
    /// Allows other hosts without keys: anyone who can reach the address can command the robot.
    pub insecure: bool,
    /// For a robot: bytes of telemetry that may wait for slow listeners, 64 MiB by default.
    pub waiting_bytes: usize,
}

/// Creates a key for one robot or controller: writes it to `path`, readable only by its owner, and the public
/// key, which peers get, to `path` with `.pub` appended. Overwrites nothing. `buffer` also gets the public
/// key, as 40 characters and a zero byte; `capacity` may be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_zmq_make_key(
    path: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let path = unsafe { file(path, "path") }?;
        if !matches!(capacity, 0 | 41..) {
            return Err(invalid(&format!(
                "a public key does not fit {capacity} bytes: it has 41"
            )));
        }
        let public = with::make_key(path)?;
        match capacity {
            0 => Ok(Status::Ok),
            // SAFETY: the crate's contract.
            _ => unsafe { text_out(&public, buffer, capacity, std::ptr::null_mut()) },
        }
    })
}

pub(crate) use with::{RobotEnd, address};

/// Creates a robot's end.
///
/// # Safety
/// As for the crate.
pub(crate) unsafe fn robot(zmq: &Zmq) -> Result<RobotEnd, Failure> {
    // SAFETY: by this function's contract.
    with::robot(unsafe { settings(zmq) }?)
}

/// Creates a controller's end.
///
/// # Safety
/// As for the crate.
pub(crate) unsafe fn controller(zmq: &Zmq) -> Result<Arc<dyn ControllerEnd>, Failure> {
    // SAFETY: by this function's contract.
    with::controller(unsafe { settings(zmq) }?)
}

/// # Safety
/// As for the crate.
unsafe fn settings(zmq: &Zmq) -> Result<with::Settings, Failure> {
    let text = |text: *const c_char, name| match text.is_null() {
        true => Ok(String::new()),
        // SAFETY: by this function's contract.
        false => unsafe { pointer::text(text, name) }.map(str::to_owned),
    };
    let path = |path: *const c_char, name| match path.is_null() {
        true => Ok(None),
        // SAFETY: by this function's contract.
        false => unsafe { file(path, name) }.map(|path| Some(path.to_owned())),
    };
    Ok(with::Settings {
        address: text(zmq.address, "address")?,
        telemetry: text(zmq.telemetry, "address of the telemetry")?,
        plain_v6: zmq.plain_v6,
        key: path(zmq.key, "name of the key's file")?,
        peers: path(zmq.peers, "name of the peers' file")?,
        insecure: zmq.insecure,
        waiting_bytes: zmq.waiting_bytes,
    })
}

#[cfg(feature = "zmq")]
mod with {
    use super::*;
    use remote::transport::zmq::KeyPair;
    pub(crate) use remote::transport::zmq::{ZmqRobot as RobotEnd, ZmqSettings as Settings};
    use std::path::Path;

    pub(super) fn robot(settings: Settings) -> Result<RobotEnd, Failure> {
        Ok(settings.robot()?)
    }

    pub(super) fn controller(settings: Settings) -> Result<Arc<dyn ControllerEnd>, Failure> {
        Ok(Arc::new(settings.controller()?))
    }

    pub(super) fn make_key(path: &Path) -> Result<String, Failure> {
        let key = KeyPair::generate()?;
        key.write(path)?;
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

/// Replacement for libraries built without ZeroMQ.
#[cfg(not(feature = "zmq"))]
mod with {
    use super::*;
    use std::path::{Path, PathBuf};

    pub(crate) type RobotEnd = remote::transport::link::LinkRobot;

    #[allow(dead_code)] // Never read: everything is refused.
    pub(crate) struct Settings {
        pub(super) address: String,
        pub(super) telemetry: String,
        pub(super) plain_v6: bool,
        pub(super) key: Option<PathBuf>,
        pub(super) peers: Option<PathBuf>,
        pub(super) insecure: bool,
        pub(super) waiting_bytes: usize,
    }

    fn none<T>() -> Result<T, Failure> {
        Err(invalid(
            "this libropewalk was built without ZeroMQ: build it with the feature `zmq`, which is the default",
        ))
    }

    pub(super) fn robot(_: Settings) -> Result<RobotEnd, Failure> {
        none()
    }

    pub(super) fn controller(_: Settings) -> Result<Arc<dyn ControllerEnd>, Failure> {
        none()
    }

    pub(super) fn make_key(_: &Path) -> Result<String, Failure> {
        none()
    }

    pub(crate) fn address(_: &RobotEnd, _: bool) -> Option<String> {
        None
    }
}
