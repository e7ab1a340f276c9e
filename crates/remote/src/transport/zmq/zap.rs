//! Decides which controllers may connect to a robot: ZeroMQ's authentication protocol (RFC 27), answered by the thread
//! that owns the robot's socket.

use super::keys::{AllowedKeys, PublicKey};
use crate::transport;
use ::zmq::{Context, DONTWAIT, REP, Socket};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Every CURVE handshake asks here. Without it, anyone who knows the robot's public key gets in.
pub(super) struct Gate {
    pub(super) socket: Socket,
    allowed: Allowed,
}

/// The newest list of keys. The identity that a message's connection proved when it began counts only as long as its
/// key is on this list.
pub(super) struct Allowed {
    keys: AllowedKeys,
    /// By the text of the key: ZeroMQ reports it with each message of the connection.
    identities: HashMap<String, transport::Peer>,
}

impl Allowed {
    pub(super) fn new(keys: AllowedKeys) -> Self {
        let identity = |(key, name): (&PublicKey, &String)| {
            let key = key.to_string();
            let peer = transport::Peer::Key {
                key: key.as_str().into(),
                name: name.as_str().into(),
            };
            (key, peer)
        };
        Allowed {
            identities: keys.0.iter().map(identity).collect(),
            keys,
        }
    }

    /// Returns the owner of the secret key to this public key, if it is permitted.
    pub(super) fn identity(&self, key: &str) -> Option<&transport::Peer> {
        self.identities.get(key)
    }

    /// Returns whether this peer is still permitted.
    pub(super) fn has(&self, identity: &transport::Peer) -> bool {
        matches!(identity, transport::Peer::Key { key, .. } if self.identities.get(&**key) == Some(identity))
    }

    /// Returns the peers of this list that `newer` does not have, or has under another name.
    fn without(&self, newer: &Allowed) -> Vec<transport::Peer> {
        let all = self.identities.values();
        all.filter(|identity| !newer.has(identity)).cloned().collect()
    }
}

impl Gate {
    /// To be called before the robot's address is bound.
    pub(super) fn open(context: &Context, allowed: AllowedKeys) -> ::zmq::Result<Self> {
        let socket = context.socket(REP)?;
        socket.set_linger(0)?;
        socket.bind("inproc://zeromq.zap.01")?;
        Ok(Gate {
            socket,
            allowed: Allowed::new(allowed),
        })
    }

    /// Applies another list. Returns the peers that lost their permission.
    pub(super) fn allow(&mut self, keys: AllowedKeys) -> Vec<transport::Peer> {
        let newer = Allowed::new(keys);
        let gone = self.allowed.without(&newer);
        self.allowed = newer;
        gone
    }

    /// Returns the newest list.
    pub(super) fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Answers all pending requests.
    pub(super) fn answer(&self, refused: &AtomicU64) {
        while let Ok(request) = self.socket.recv_multipart(DONTWAIT) {
            let known = self.judge(&request);
            if known.is_none() {
                refused.fetch_add(1, Ordering::Relaxed);
                let address = request
                    .get(3)
                    .map(|a| String::from_utf8_lossy(a).into_owned())
                    .unwrap_or_default();
                tracing::warn!(address, "refused a controller whose key is not allowed");
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
                known.as_deref().unwrap_or_default().as_bytes(),
                b"",
            ];
            if self.socket.send_multipart(reply, DONTWAIT).is_err() {
                return;
            }
        }
    }

    /// Returns the key as text: ZeroMQ attaches it to each message of the connection (`User-Id`).
    fn judge(&self, request: &[Vec<u8>]) -> Option<String> {
        let [version, _, _, _, _, mechanism, key] = request else {
            return None;
        };
        if version != b"1.0" || mechanism != b"CURVE" {
            return None;
        }
        let key = PublicKey(key.as_slice().try_into().ok()?);
        self.allowed.keys.0.contains_key(&key).then(|| key.to_string())
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
        let mut gate = Gate::open(&Context::new(), AllowedKeys::new().with("base", known)).unwrap();
        let request = |version: &[u8], mechanism: &[u8], key: &[u8]| -> Vec<Vec<u8>> {
            [version, b"1", b"ropewalk", b"127.0.0.1", b"", mechanism, key]
                .iter()
                .map(|p| p.to_vec())
                .collect()
        };
        assert_eq!(
            gate.judge(&request(b"1.0", b"CURVE", &known.0)),
            Some(known.to_string())
        );
        for wrong in [
            request(b"1.0", b"CURVE", &unknown.0),
            request(b"1.0", b"NULL", &known.0),
            request(b"2.0", b"CURVE", &known.0),
            request(b"1.0", b"CURVE", b"short"),
            vec![],
        ] {
            assert_eq!(gate.judge(&wrong), None);
        }
        let base = gate.allowed().identity(&known.to_string()).cloned().unwrap();
        assert!(gate.allowed().has(&base) && !gate.allowed().has(&transport::Peer::Unproven));
        // A list without the key, or with its name given to another key.
        let newer = AllowedKeys::new().with("base", unknown);
        assert_eq!(gate.allow(newer), std::slice::from_ref(&base));
        assert!(!gate.allowed().has(&base) && gate.judge(&request(b"1.0", b"CURVE", &known.0)).is_none());
    }
}
