//! The interface through which transports call a robot.

use super::core::Core;
use crate::transport::{Peer, Reply, RobotSink, Wire};
use std::sync::Arc;

pub(super) struct Sink {
    core: Arc<Core>,
    end: usize,
}

impl Sink {
    pub(super) fn new(core: Arc<Core>, end: usize) -> Arc<Self> {
        Arc::new(Sink { core, end })
    }
}

impl RobotSink for Sink {
    fn request(&self, frame: &[u8], from: &Peer, reply: Reply) {
        if self.core.has_ended() {
            return;
        }
        match self.core.ends[self.end].end.wire() {
            Wire::Own => self.core.serve(frame, from, reply),
            Wire::V6 => self.core.serve_v6(self.end, frame, reply),
        }
    }

    fn revoked(&self, peer: &Peer) {
        self.core.revoke(peer);
    }
}
