//! Whether peers' topics have a subscriber on this host's bus (decision 352).

use super::Inbound;
use crate::outgoing::Outgoing;
use proto::Radio;

impl Inbound {
    /// Tells the peers which of their topics that are sent only on demand have a subscriber on this bus. `own` returns
    /// the link's own subscriber of a topic, which does not count.
    pub(crate) fn state_watched(&self, radio: &mut Radio<Outgoing>, own: impl Fn(&str) -> Option<u64>) {
        for ((peer, topic), route) in &self.routes {
            if !radio.asks_watched(*peer, *topic) {
                continue;
            }
            let own = own(&route.publisher.topic().topic);
            let mut watched = false;
            (route.publisher).each_subscriber(|id| watched |= Some(id) != own);
            radio.state_watched(*peer, *topic, watched);
        }
    }
}
