//! Divides a message among the neighbours that lead to its destinations.

use super::{Flow, FlowKey, Sealed, Sealer, Sealing};
use crate::body::{Body, Message};
use crate::config::PeerId;
use crate::radio::Radio;
use crate::route::Route;
use stats::{DropReason, Time};
use std::collections::BTreeMap;

/// Offers a message to the peers that lead to its destinations. Returns the number of these peers, and why there is
/// none. `origin`: the peer that brought the message, or the sealer of this host's own messages.
pub(super) fn send<B: Body + Clone>(
    now: Time,
    radio: &mut Radio<B>,
    (key, flow): (&FlowKey, &Flow),
    message: Message<B>,
    route: Route,
    origin: Result<PeerId, &mut dyn Sealer<B>>,
) -> (u64, Option<DropReason>) {
    let from = origin.as_ref().ok().copied();
    let mut ways: BTreeMap<PeerId, u64> = BTreeMap::new();
    let (mut unserved, mut missed) = (0u64, 0);
    for (i, host) in flow.via.to.iter().enumerate() {
        let bit = 1u64 << i;
        if route.to & bit == 0 {
            continue;
        }
        let serves = |p: PeerId| {
            let topic = flow.topics.get(&p);
            Some(p) != from
                && topic.is_some_and(|(t, mask)| mask & bit != 0 && !radio.is_refused(*t))
                && flow.declined_by(now, p) & bit == 0
        };
        match radio.way(*host, serves) {
            Some(way) => *ways.entry(way.next).or_default() |= bit,
            None => {
                missed |= bit;
                unserved += u64::from(flow.topics.keys().any(|p| serves(*p)));
            }
        }
    }
    let mut sealer = origin.err();
    let (mut sent, mut unsealed, mut kept) = (0, 0, false);
    let sealing = |to, own| Sealing {
        key,
        announcement: &flow.announcement,
        via: &flow.via,
        number: route.number,
        to,
        own,
    };
    if let Some(sealer) = sealer
        .as_mut()
        .filter(|_| missed != 0 && flow.announcement.latched)
    {
        sealer.missed(&sealing(missed, 0), &message);
    }
    for (peer, to) in &ways {
        let Some((topic, _)) = flow.topics.get(peer) else {
            continue;
        };
        let own = bits_of(&flow.via.to, radio.host_of(*peer));
        // A message that no other host carries needs no seal.
        let sealed = match &mut sealer {
            Some(sealer) if to & !own != 0 => sealer.seal(&sealing(*to, own), &message),
            _ => Sealed::Clear,
        };
        let bodies = match sealed {
            Sealed::Clear => [Some((message.body.clone(), *to)), None],
            Sealed::For(body, hosts) => {
                unsealed |= to & !hosts & !own;
                let rest = to & !hosts & own;
                [
                    Some((body, hosts & to)).filter(|(_, to)| *to != 0),
                    Some((message.body.clone(), rest)).filter(|(_, to)| *to != 0),
                ]
            }
            Sealed::Later | Sealed::Nobody => {
                kept |= matches!(sealed, Sealed::Later);
                unsealed |= to & !own;
                [
                    Some((message.body.clone(), to & own)).filter(|(_, to)| *to != 0),
                    None,
                ]
            }
        };
        for (body, to) in bodies.into_iter().flatten() {
            sent += 1;
            let route = Some(Route { to, ..route });
            // The radio counts what it refuses.
            let _ = radio.offer(
                now,
                *topic,
                Message {
                    body,
                    route,
                    ..message.clone()
                },
            );
        }
    }
    let lost = match (sent, unsealed, unserved) {
        (1.., ..) => None,
        _ if kept => None,
        (0, 1.., _) => Some(DropReason::Unsealed),
        (0, 0, 0) => Some(DropReason::Unannounced),
        (0, 0, _) => Some(DropReason::NoPeer),
    };
    (sent, lost)
}

/// The bit of `host` among `hosts`.
pub(super) fn bits_of(hosts: &[u64], host: u64) -> u64 {
    let at = hosts.iter().position(|h| *h == host);
    at.map_or(0, |i| 1 << i)
}
