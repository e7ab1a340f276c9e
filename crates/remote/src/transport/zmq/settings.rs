//! Ends by names of files, as configurations and other languages give them.

use super::{KeyPair, PublicKey, ZmqController, ZmqRobot};
use crate::transport::TransportError;
use std::path::PathBuf;

/// How an end is reached over ZeroMQ: what [`ZmqRobot`] and [`ZmqController`] take, with keys by the files that they are in. As safe as those:
/// by default the own wire, which other hosts reach by keys alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZmqSettings {
    /// `tcp://IP:PORT` or `ipc:///PATH`, of a robot also `tcp://IP:*` for any port. With `plain_v6`: where requests go; a robot that
    /// gives none of the two is at ports 7001 and 7002 of this host.
    pub address: String,
    /// Where telemetry of version 6 comes from; empty otherwise.
    pub telemetry: String,
    /// Speaks version 6, with peers of other makers: neither encrypted nor authenticated.
    pub plain_v6: bool,
    /// The file with this end's secret key ([`KeyPair::write`]).
    pub key: Option<PathBuf>,
    /// Of a robot: the file that lists the controllers' public keys ([`AllowedKeys::read`](super::AllowedKeys::read)). Of a
    /// controller: the file with the robot's ([`PublicKey::read`]).
    pub peers: Option<PathBuf>,
    /// Does without keys where other hosts reach it.
    pub insecure: bool,
    /// As [`ZmqRobotOptions::waiting_bytes`](super::ZmqRobotOptions::waiting_bytes); 0: as without.
    pub waiting_bytes: usize,
}

impl ZmqSettings {
    /// A robot's end.
    ///
    /// # Errors
    /// [`TransportError::Setup`], as of what it stands for; one of the two files is missing.
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

    /// A controller's end.
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

    /// What says two things, or half of one.
    fn check(&self) -> Result<(), TransportError> {
        let wrong = match (&self.key, &self.peers) {
            (Some(key), None) => format!(
                "the key {} without those of the other side: name the file that has them, too (a robot's: a line for each controller; a \
                 controller's: the robot's .pub file)",
                key.display()
            ),
            (None, Some(peers)) => format!(
                "{} says whose keys the other side has, but this end has none: name the file with its secret key, too",
                peers.display()
            ),
            _ if !self.plain_v6 && !self.telemetry.is_empty() => format!(
                "an address for telemetry, {}, belongs to version 6 alone: leave it away, or say plain_v6",
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
        refused(ZmqSettings::default(), "no address", "no address");
        refused(own("tcp://192.0.2.1:7010"), "give keys", "give keys");
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
            "give keys",
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
        refused(half.clone(), "rover.key without", "rover.key without");
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
