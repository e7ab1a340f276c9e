//! Moves datagrams between a radio and its carrier.

use crate::carrier::{Carrier, Sent};
use crate::daemon::LinkError;
use crate::outgoing::Outgoing;
use proto::{PacketError, PeerId, Radio, Sink, Transmit};
use stats::Time;

/// Datagrams read before the scheduler has its turn again. A joined datagram counts as its parts.
const RECEIVE_BATCH: usize = 64;

/// Size of the buffer for a carrier's largest datagram.
pub(crate) fn room(carrier: &impl Carrier) -> usize {
    carrier.max_datagram() * carrier.joined() + 1
}

/// A radio's path to its peers.
pub(crate) struct Way<'a, C> {
    pub(crate) radio: &'a mut Radio<Outgoing>,
    pub(crate) carrier: &'a mut C,
    /// In the carrier's order.
    pub(crate) peers: &'a [PeerId],
}

impl<C: Carrier> Way<'_, C> {
    /// Sets the scheduler's datagram sizes to one packet each, and tells the carrier which peers have other paths.
    pub(crate) fn follow_paths(&mut self) {
        for (index, peer) in self.peers.iter().enumerate() {
            self.radio
                .set_max_datagram(*peer, self.carrier.max_datagram_to(index));
            let elsewhere = self.radio.leads_elsewhere(*peer);
            self.carrier.leads_elsewhere(index, elsewhere);
        }
    }

    /// Receives a limited number of datagrams; true if there may be more.
    pub(crate) fn receive(&mut self, sink: &mut impl Sink, buffer: &mut [u8]) -> Result<bool, LinkError> {
        let (mut taken, one) = (0, self.carrier.max_datagram());
        while taken < RECEIVE_BATCH {
            let Some(got) = self.carrier.receive(buffer)? else {
                return Ok(false);
            };
            taken += got.datagram.len().div_ceil(one).max(1);
            let Some(peer) = self.peers.get(got.peer) else {
                continue;
            };
            let index = got.peer;
            match (self.radio).handle(clock::monotonic(), *peer, got.datagram, sink) {
                Ok(()) => {}
                Err(PacketError::AnotherHost { .. }) => self.carrier.turn_away(index),
                Err(error) => tracing::debug!(%error, peer = index, "cannot parse a datagram"),
            }
        }
        Ok(true)
    }

    /// Sends what is due while the carrier accepts it, and returns when the next datagram is due. For a
    /// carrier with batches it sends one batch: then other work has its turn, so that urgent messages wait no
    /// longer.
    pub(crate) fn transmit(&mut self, datagram: &mut Vec<u8>) -> Result<Option<Time>, LinkError> {
        let mut next = None;
        let mut left = self.carrier.batch();
        while self.carrier.ready() {
            match self.radio.poll_transmit(clock::monotonic(), datagram) {
                Transmit::Datagram { peer, priority } => {
                    let index = self.peers.iter().position(|p| *p == peer).unwrap_or(usize::MAX);
                    if self.carrier.send(index, priority, datagram)? != Sent::Taken {
                        self.radio.carrier_refused(peer);
                    }
                    left = left.map(|n| n.saturating_sub(datagram.len()));
                }
                Transmit::Wait(until) => {
                    next = Some(until);
                    break;
                }
                Transmit::Idle => break,
            }
            if left == Some(0) {
                next = Some(Time::ZERO);
                break;
            }
        }
        self.carrier.flush()?;
        Ok(next)
    }
}
