//! Memory by peer: for its messages and calls in progress, and for what its topics reserve on the bus.

use super::{Peer, Peers, Reason, Standing};
use crate::hub::lock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All unknown peers together may take this many times the memory of one.
const UNKNOWN_FACTOR: u64 = 4;

/// Bytes by peer.
#[derive(Debug, Default)]
pub(super) struct Taken {
    by_peer: BTreeMap<Peer, u64>,
    /// The part of unknown peers.
    unknown: u64,
}

/// A peer has used up its memory limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{peer} may take {most} bytes at a time, but has {taken} and requests {wanted} more: raise `{key}` if this \
     is intended{hint}"
)]
pub(crate) struct Full {
    peer: Peer,
    most: u64,
    wanted: u64,
    taken: u64,
    key: &'static str,
    hint: &'static str,
}

/// Bytes charged to a peer; released when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    peers: Arc<Peers>,
    standing: Standing,
    bytes: u64,
}

impl Share {
    /// A share of 0 bytes.
    pub(crate) fn new(peers: &Arc<Peers>, standing: Standing) -> Share {
        Share {
            peers: peers.clone(),
            standing,
            bytes: 0,
        }
    }

    /// A share of a known peer.
    pub(crate) fn test(peers: &Arc<Peers>) -> Share {
        let here = std::net::Ipv4Addr::LOCALHOST.into();
        Share::new(peers, peers.judge(here, here))
    }

    /// Charges what is missing to `bytes`.
    pub(crate) fn cover(&mut self, bytes: u64) -> Result<(), Full> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let wanted = bytes - self.bytes;
        let known = self.standing.known;
        let (most, key, hint) = match known {
            true => (self.peers.known_memory, "known_memory", ""),
            false => (
                self.peers.unknown_memory,
                "peer_memory",
                ", or list the address under `peers`",
            ),
        };
        let mut all = lock(&self.peers.taken);
        let unknown = all.unknown;
        let taken = all.by_peer.entry(self.standing.peer).or_default();
        let together = known || unknown.saturating_add(wanted) <= most.saturating_mul(UNKNOWN_FACTOR);
        if taken.saturating_add(wanted) > most || !together {
            let taken = *taken;
            if taken == 0 {
                all.by_peer.remove(&self.standing.peer);
            }
            drop(all);
            let full = Full {
                peer: self.standing.peer,
                most,
                wanted,
                taken,
                key,
                hint,
            };
            self.peers.refuse(Reason::Memory, &full);
            return Err(full);
        }
        *taken += wanted;
        if !known {
            all.unknown += wanted;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Charges or releases bytes until the share is `bytes`.
    pub(crate) fn set(&mut self, bytes: u64) -> Result<(), Full> {
        self.release(self.bytes.saturating_sub(bytes));
        self.cover(bytes)
    }

    fn release(&mut self, bytes: u64) {
        let mut all = lock(&self.peers.taken);
        if let Some(taken) = all.by_peer.get_mut(&self.standing.peer) {
            *taken = taken.saturating_sub(bytes);
            if *taken == 0 {
                all.by_peer.remove(&self.standing.peer);
            }
        }
        if !self.standing.known {
            all.unknown = all.unknown.saturating_sub(bytes);
        }
        self.bytes -= bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_its_share_and_gives_it_back() {
        let peers = Arc::new(Peers::new(&["192.0.2.9".parse().unwrap()], 1000, 5000));
        let share = |far: &str| {
            let standing = peers.judge(far.parse().unwrap(), "192.0.2.1".parse().unwrap());
            Share::new(&peers, standing)
        };
        let (mut a, mut again, mut known) = (share("192.0.2.2"), share("192.0.2.2"), share("192.0.2.9"));
        a.cover(600).unwrap();
        a.cover(100).unwrap();
        again.cover(400).unwrap();
        let full = again.cover(401).unwrap_err().to_string();
        assert!(
            full.contains("192.0.2.2 may take 1000 bytes") && full.contains("`peer_memory`"),
            "{full}"
        );
        known.cover(5000).unwrap();
        assert!(
            known
                .cover(5001)
                .unwrap_err()
                .to_string()
                .contains("`known_memory`")
        );
        a.set(10).unwrap();
        again.cover(990).unwrap();
        // Limits all unknown peers together, but never a known one.
        let mut others: Vec<_> = (3..6).map(|n| share(&format!("192.0.2.{n}"))).collect();
        others.iter_mut().for_each(|s| s.cover(1000).unwrap());
        assert!(share("192.0.2.200").cover(1).is_err());
        known.set(1).unwrap();
        known.cover(5000).unwrap();
        assert_eq!(peers.refused(), [("memory", 3)].into());
        drop((a, again, known, others));
        let taken = lock(&peers.taken);
        assert!(taken.by_peer.is_empty() && taken.unknown == 0, "{taken:?}");
    }
}
