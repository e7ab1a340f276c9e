//! Ends with keys given as file names, for configurations and other languages.

use super::{KeyPair, PublicKey, ZmqController, ZmqRobot};
use crate::transport::TransportError;
use std::path::PathBuf;

/// Settings of an end over ZeroMQ: those of [`ZmqRobot`] and [`ZmqController`], with keys given by their files. As safe
/// as those: the default is Ropewalk's own wire, which other hosts can reach only with keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZmqSettings {
    /// `tcp://IP:PORT` or `ipc:///PATH`; for a robot also `tcp://IP:*` for any port. With `plain_v6`: the address for
    /// requests; a robot that gives neither address uses ports 7001 and 7002 of this host.
    pub address: String,
    /// The address for telemetry of version 6; empty otherwise.
    pub telemetry: String,
    /// Use version 6, with peers of other vendors: neither encrypted nor authenticated.
    pub plain_v6: bool,
    /// The file with this end's secret key ([`KeyPair::write`]).
    pub key: Option<PathBuf>,
    /// For a robot: the file that lists the controllers' public keys ([`AllowedKeys::read`](super::AllowedKeys::read)).
    /// For a controller: the file with the robot's public key ([`PublicKey::read`]).
    pub peers: Option<PathBuf>,
    /// Allow an address that other hosts can reach without keys.
    pub insecure: bool,
    /// As [`ZmqRobotOptions::waiting_bytes`](super::ZmqRobotOptions::waiting_bytes); 0: the default.
    pub waiting_bytes: usize,
}

impl ZmqSettings {
    /// Creates a robot's end.
    ///
    /// # Errors
    /// [`TransportError::Setup`], as for the functions that it calls; or one of the two key files is missing.
    pub fn robot(&self) -> Result<ZmqRobot, TransportError> {
        self.check()?;
        let mut options = match self.plain_v6 {
            false => ZmqRobot::own(&self.address),
            true if self.address.is_empty() && self.telemetry.is_empty() => ZmqRobot::plain_v6(),
            true => ZmqRobot::plain_v6().bind_v6(&self.address, &self.telemetry),
        };
        if let (Some(key), Some(peers)) = (&self.key, &self.peers) {
            options = options.curve_file(KeyPair::read(key)?, peers)?;
        }
        if self.insecure {
            options = options.insecure();
        }
        if self.waiting_bytes > 0 {
            options = options.waiting_bytes(self.waiting_bytes);
        }
        options.open()
    }

    /// Creates a controller's end.
    ///
    /// # Errors
    /// As [`ZmqSettings::robot`].
    pub fn controller(&self) -> Result<ZmqController, TransportError> {
        self.check()?;
        let mut options = match self.plain_v6 {
            false => ZmqController::own(&self.address),
            true => ZmqController::plain_v6(&self.address, &self.telemetry),
        };
        if let (Some(key), Some(peers)) = (&self.key, &self.peers) {
            options = options.curve(KeyPair::read(key)?, PublicKey::read(peers)?);
        }
        if self.insecure {
            options = options.insecure();
        }
        options.open()
    }

    /// Refuses settings that contradict each other or are incomplete.
    fn check(&self) -> Result<(), TransportError> {
        let wrong = match (&self.key, &self.peers) {
            (Some(key), None) => format!(
                "the key {} alone is not enough: also set the file with the other side's public keys (for a robot: one line per controller; \
                 for a controller: the robot's .pub file)",
                key.display()
            ),
            (None, Some(peers)) => format!(
                "{} has the other side's keys, but this side has none: also set the file with its secret key",
                peers.display()
            ),
            _ if !self.plain_v6 && !self.telemetry.is_empty() => format!(
                "only version 6 uses an address for telemetry ({}): remove it, or set plain_v6",
                self.telemetry
            ),
            _ => return Ok(()),
        };
        Err(TransportError::Setup(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: ZmqSettings, robot: &str, controller: &str) {
        let error = settings.robot().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(robot), "{error}");
        let error = settings
            .controller()
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(error.contains(controller), "{error}");
    }

    #[test]
    fn in_the_open_only_by_word() {
        let own = |address: &str| ZmqSettings {
            address: address.into(),
            ..ZmqSettings::default()
        };
        refused(ZmqSettings::default(), "not an address", "not an address");
        refused(own("tcp://192.0.2.1:7010"), "set keys", "set keys");
        assert!(own("tcp://127.0.0.1:7010").robot().is_ok());
        let word = ZmqSettings {
            insecure: true,
            ..own("tcp://192.0.2.1:7010")
        };
        assert!(word.robot().is_ok() && word.controller().is_ok());
        let v6 = ZmqSettings {
            plain_v6: true,
            ..ZmqSettings::default()
        };
        assert!(v6.robot().is_ok(), "on loopback");
        refused(
            ZmqSettings {
                telemetry: "tcp://192.0.2.1:7002".into(),
                address: "tcp://192.0.2.1:7001".into(),
                ..v6.clone()
            },
            "set keys",
            "",
        );
    }

    #[test]
    fn half_of_the_keys_is_none() {
        let half = ZmqSettings {
            address: "tcp://127.0.0.1:7010".into(),
            key: Some("rover.key".into()),
            ..ZmqSettings::default()
        };
        refused(half.clone(), "rover.key alone", "rover.key alone");
        let other = ZmqSettings {
            key: None,
            peers: Some("controllers".into()),
            ..half.clone()
        };
        refused(other, "its secret key", "its secret key");
        let telemetry = ZmqSettings {
            key: None,
            telemetry: "tcp://127.0.0.1:7002".into(),
            ..half
        };
        refused(telemetry, "plain_v6", "plain_v6");
    }
}
