//! Looks for the peers of this process's endpoints in the runtime folder, and again after a failure.

use super::handshake::Pending;
use super::{Core, Housekeeping};
use crate::folder::{ByTopic, ConnectError};
use crate::frame::Role;
use std::io;
use std::time::{Duration, Instant};

/// The longest time between attempts to reach a peer whose socket exists but does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
pub(super) const MIN_BACKOFF: Duration = Duration::from_millis(50);
impl Housekeeping {
    /// Connects to all peers that the endpoints do not know yet. Reads the folder once for all of them: when
    /// many start together, reading it for each would take most of their time.
    pub(super) fn scan(&mut self, ids: &[u64]) {
        if ids.is_empty() {
            return;
        }
        match self.shared.folder.by_topic() {
            Ok(names) => ids.iter().for_each(|id| self.connect_to_peers(*id, &names)),
            Err(e) => {
                tracing::warn!("cannot read the runtime folder: {e}");
                ids.iter().for_each(|id| self.scan_soon(*id));
            }
        }
    }

    pub(super) fn connect_to_peers(&mut self, id: u64, names: &ByTopic) {
        let Some(endpoint) = self.endpoints.get_mut(&id) else {
            return;
        };
        endpoint.scan_at = None;
        let core = endpoint.core.clone();
        let (topic, role) = match &core {
            Core::Publisher(core) => (core.upgrade().map(|c| c.topic.topic.clone()), Role::Subscriber),
            Core::Subscriber(core) => (core.upgrade().map(|c| c.topic.topic.clone()), Role::Publisher),
        };
        let Some(topic) = topic else { return };
        for name in self.shared.folder.peers(names, &topic, role) {
            let known = self
                .endpoints
                .get(&id)
                .is_none_or(|e| e.mismatched.contains(&name.id))
                || core.is_connected(name.id)
                || self.pending_of(id).any(|(_, p)| p.peer_id == Some(name.id));
            if known {
                continue;
            }
            match self.shared.folder.connect(&name.to_string()) {
                Ok(socket) => {
                    crate::hooks::step("connected");
                    match Pending::connected(&self.shared, id, core.clone(), socket, name.id) {
                        Ok(pending) => self.add_pending(pending),
                        Err(true) => self.mismatch(id, name.id),
                        Err(false) => self.scan_soon(id),
                    }
                }
                Err(ConnectError::Dead { .. }) => {}
                // Removed since the scan.
                Err(ConnectError::Io(e)) if e.kind() == io::ErrorKind::NotFound => {}
                Err(ConnectError::Io(e)) if e.kind() == io::ErrorKind::PermissionDenied => {
                    let reason = format!("not permitted to connect to the socket {name}: {e}");
                    core.refuse(crate::topic::Refusal {
                        pid: name.pid as i32,
                        uid: u32::MAX,
                        reason,
                    });
                    self.mismatch(id, name.id);
                }
                // Its queue of connections is full, or this process is out of descriptors.
                Err(_) => self.scan_soon(id),
            }
        }
    }

    pub(super) fn scan_soon(&mut self, id: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id)
            && endpoint.scan_at.is_none()
        {
            endpoint.scan_at = Some(Instant::now() + endpoint.backoff);
            endpoint.backoff = (endpoint.backoff * 2).min(MAX_BACKOFF);
            self.later.insert(id);
        }
    }

    pub(super) fn mismatch(&mut self, id: u64, peer: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id) {
            if endpoint.mismatched.len() >= 1024 {
                endpoint.mismatched.clear();
            }
            endpoint.mismatched.insert(peer);
        }
    }

    pub(super) fn reset_backoff(&mut self, id: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id) {
            endpoint.backoff = MIN_BACKOFF;
        }
    }
}
