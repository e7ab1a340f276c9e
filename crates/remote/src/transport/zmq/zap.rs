//! Who may connect to a robot: ZeroMQ's authentication protocol (RFC 27), answered by the thread that owns the robot's socket.

use super::keys::{AllowedKeys, PublicKey};
use ::zmq::{Context, DONTWAIT, REP, Socket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Every handshake of CURVE asks here. Without it everyone who knows the robot's public key gets in.
pub(super) struct Gate {
    pub(super) socket: Socket,
    allowed: AllowedKeys,
}

impl Gate {
    /// To be opened before the robot's address is bound.
    pub(super) fn open(context: &Context, allowed: AllowedKeys) -> ::zmq::Result<Self> {
        let socket = context.socket(REP)?;
        socket.set_linger(0)?;
        socket.bind("inproc://zeromq.zap.01")?;
        Ok(Gate { socket, allowed })
    }

    /// Answers whoever asks now.
    pub(super) fn answer(&self, refused: &AtomicU64) {
        while let Ok(request) = self.socket.recv_multipart(DONTWAIT) {
            let known = self.judge(&request);
            if known.is_none() {
                refused.fetch_add(1, Ordering::Relaxed);
                let address = request
                    .get(3)
                    .map(|a| String::from_utf8_lossy(a).into_owned())
                    .unwrap_or_default();
                tracing::warn!(address, "a controller whose key is not allowed was refused");
            }
            let id = request.get(1).map(Vec::as_slice).unwrap_or_default();
            let (code, text) = if known.is_some() {
                ("200", "")
            } else {
                ("400", "this key is not allowed")
            };
            let reply: [&[u8]; 6] = [
                b"1.0",
                id,
                code.as_bytes(),
                text.as_bytes(),
                known.unwrap_or_default().as_bytes(),
                b"",
            ];
            if self.socket.send_multipart(reply, DONTWAIT).is_err() {
                return;
            }
        }
    }

    fn judge(&self, request: &[Vec<u8>]) -> Option<&str> {
        let [version, _, _, _, _, mechanism, key] = request else {
            return None;
        };
        if version != b"1.0" || mechanism != b"CURVE" {
            return None;
        }
        let key = PublicKey(key.as_slice().try_into().ok()?);
        self.allowed.0.get(&key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::zmq::KeyPair;

    #[test]
    fn only_allowed_keys_of_curve_get_in() {
        let (known, unknown) = (
            KeyPair::generate().unwrap().public(),
            KeyPair::generate().unwrap().public(),
        );
        let gate = Gate::open(&Context::new(), AllowedKeys::new().with("base", known)).unwrap();
        let request = |version: &[u8], mechanism: &[u8], key: &[u8]| -> Vec<Vec<u8>> {
            [version, b"1", b"ropewalk", b"127.0.0.1", b"", mechanism, key]
                .iter()
                .map(|p| p.to_vec())
                .collect()
        };
        assert_eq!(gate.judge(&request(b"1.0", b"CURVE", &known.0)), Some("base"));
        for wrong in [
            request(b"1.0", b"CURVE", &unknown.0),
            request(b"1.0", b"NULL", &known.0),
            request(b"2.0", b"CURVE", &known.0),
            request(b"1.0", b"CURVE", b"short"),
            vec![],
        ] {
            assert_eq!(gate.judge(&wrong), None);
        }
    }
}
