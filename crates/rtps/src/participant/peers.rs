//! Other participants: whether to accept them, their leases, and matching their built-in endpoints (DDSI-RTPS 2.5,
//! section 8.5.3).

use super::Participant;
use super::peer::{PEER, Peer};
use crate::account::Account;
use crate::context::Context;
use crate::event::{Event, SMALL};
use crate::reader::{Accounts, WriterProxy};
use crate::send::Target;
use crate::timers::Timer;
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::parameters::pid;
use crate::wire::participant::{ParticipantData, has, read_key};
use crate::wire::submessage::{Data, Payload};
use crate::writer::{PROXY, ReaderProxy};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// Shortest lease; shorter ones are raised to this.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// Time in which an unconfirmed participant must show that it received messages of this one, before another may take
/// its place.
const CHANCE: Duration = Duration::from_secs(1);

/// Minimum time between answers to the announcements of an unconfirmed participant.
const GREET_PERIOD: Duration = Duration::from_millis(50);

/// Built-in writers and readers, by the bit in the other's set that announces their counterpart (section 9.3.2.12).
const WRITERS: [(u32, EntityId, EntityId); 3] = [
    (3, EntityId::PUBLICATIONS_WRITER, EntityId::PUBLICATIONS_READER),
    (5, EntityId::SUBSCRIPTIONS_WRITER, EntityId::SUBSCRIPTIONS_READER),
    (11, EntityId::MESSAGE_WRITER, EntityId::MESSAGE_READER),
];
const READERS: [(u32, EntityId, EntityId); 3] = [
    (2, EntityId::PUBLICATIONS_READER, EntityId::PUBLICATIONS_WRITER),
    (4, EntityId::SUBSCRIPTIONS_READER, EntityId::SUBSCRIPTIONS_WRITER),
    (10, EntityId::MESSAGE_READER, EntityId::MESSAGE_WRITER),
];

impl Participant {
    /// Handles the announcement of a participant, or of its departure.
    pub(super) fn on_spdp(&mut self, now: Duration, source: GuidPrefix, data: &Data<'_>, from: SocketAddrV4) {
        if data.inline.gone {
            let guid = match (data.payload, data.inline.key_hash) {
                (Payload::Key(bytes), _) => read_key(pid::PARTICIPANT_GUID, bytes).ok(),
                (_, hash) => hash.map(Guid::from_bytes),
            };
            // No participant may announce the departure of another.
            if guid.is_some_and(|g| g.prefix == source) {
                self.drop_peer(now, source);
            }
            return;
        }
        let Payload::Data(bytes) = data.payload else {
            return;
        };
        let announced = match ParticipantData::read(bytes) {
            Ok(announced) if announced.guid.prefix == source => announced,
            Ok(_) => {
                self.counters.announcements_refused += 1;
                return;
            }
            Err(error) => {
                tracing::debug!(%from, %error, "cannot read the announcement of a participant");
                self.counters.announcements_refused += 1;
                return;
            }
        };
        let ours = announced.domain.is_none_or(|d| d == self.config.domain)
            && announced.domain_tag == self.config.domain_tag;
        if !ours {
            return;
        }
        if let Some(peer) = self.peers.get_mut(&source) {
            peer.heard = now;
            if *peer.data == announced {
                self.greet_again(now, source);
                return;
            }
            let moved = peer.data.metatraffic != announced.metatraffic
                || peer.data.unicast != announced.unicast
                || peer.data.builtin_endpoints != announced.builtin_endpoints;
            if !moved {
                self.update_peer(now, source, announced);
                return;
            }
            self.drop_peer(now, source);
        }
        self.add_peer(now, announced, *from.ip());
    }

    /// Answers a repeated announcement. A participant that is still unconfirmed may have missed the first answer: Fast
    /// DDS 3.2 announces itself a millisecond before it listens.
    fn greet_again(&mut self, now: Duration, prefix: GuidPrefix) {
        if let Some(peer) = self.peers.get_mut(&prefix)
            && !peer.acquainted
            && peer.greeted + GREET_PERIOD <= now
        {
            peer.greeted = now;
            let to = peer.metatraffic;
            self.say(now, to, self.announcement());
        }
    }

    /// Stores a changed announcement.
    fn update_peer(&mut self, now: Duration, prefix: GuidPrefix, announced: ParticipantData) {
        let Some(peer) = self.peers.get_mut(&prefix) else {
            return;
        };
        let size = announced.size();
        if let (Some(charge), Some(event)) = (
            peer.account().take(PEER + size),
            peer.account().take(SMALL + size),
        ) {
            peer.data = Arc::new(announced);
            peer._charge = charge;
            peer.lease = lease(&peer.data, self.config.limits.lease);
            self.timers.set(Timer::Lease(prefix), Some(now + peer.lease));
            self.events
                .push(Event::Participant(Arc::clone(&peer.data)), Some(event));
        }
    }

    fn add_peer(&mut self, now: Duration, announced: ParticipantData, from: Ipv4Addr) {
        let metatraffic = self.config.reach.pick(&announced.metatraffic, from);
        let unicast = self.config.reach.pick(&announced.unicast, from).or(metatraffic);
        let (Some(metatraffic), Some(unicast)) = (metatraffic, unicast) else {
            tracing::debug!(guid = %announced.guid, %from, "ignoring a participant that announces no address within reach");
            self.counters.participants_refused += 1;
            return;
        };
        if !self.make_room(now, from) {
            self.counters.participants_refused += 1;
            return;
        }
        let limits = self.config.limits;
        let of_address = Arc::clone(
            self.addresses
                .entry(from)
                .or_insert_with(|| Account::new(limits.address_memory, Some(Arc::clone(&self.account)))),
        );
        let all = Account::new(limits.unconfirmed_memory, Some(of_address));
        let ahead = Account::new(limits.unconfirmed_memory / 2, Some(Arc::clone(&all)));
        let size = announced.size();
        let (Some(charge), Some(event)) = (all.take(PEER + size), all.take(SMALL + size)) else {
            self.counters.participants_refused += 1;
            return;
        };
        let peer = Peer {
            from,
            metatraffic,
            unicast,
            addresses: BTreeSet::new(),
            since: now,
            heard: now,
            lease: lease(&announced, limits.lease),
            greeted: now,
            acquainted: false,
            endpoints: BTreeMap::new(),
            accounts: Accounts { all, ahead },
            data: Arc::new(announced),
            _charge: charge,
        };
        let prefix = peer.guid().prefix;
        tracing::debug!(guid = %peer.guid(), vendor = %peer.data.vendor, %metatraffic, "a participant appeared");
        self.timers.set(Timer::Lease(prefix), Some(now + peer.lease));
        self.events
            .push(Event::Participant(Arc::clone(&peer.data)), Some(event));
        self.peers.insert(prefix, peer);
        // The participant must know this one before it receives requests.
        self.say(now, metatraffic, self.announcement());
        self.match_builtin(now, prefix);
    }

    /// Whether there is room for another participant. One address may have at most half of the places. A new
    /// participant may displace the one that has been unconfirmed longest.
    fn make_room(&mut self, now: Duration, from: Ipv4Addr) -> bool {
        let limits = self.config.limits;
        let of_address = |p: &&Peer| p.from == from;
        if self.peers.len() >= limits.participants
            || self.peers.values().filter(of_address).count() >= limits.participants.div_ceil(2)
        {
            return false;
        }
        let unconfirmed = self.peers.values().filter(|p| !p.acquainted);
        if unconfirmed.clone().count() < limits.unconfirmed {
            return true;
        }
        let oldest = unconfirmed
            .min_by_key(|p| p.since)
            .map(|p| (p.since, p.guid().prefix));
        match oldest {
            Some((since, prefix)) if since + CHANCE <= now => {
                self.drop_peer(now, prefix);
                true
            }
            _ => false,
        }
    }

    fn match_builtin(&mut self, now: Duration, prefix: GuidPrefix) {
        let Some(peer) = self.peers.get(&prefix) else {
            return;
        };
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        let target = Target {
            address: peer.metatraffic,
            prefix,
        };
        let pace = self.config.pace(peer.metatraffic);
        for (bit, local, remote) in READERS {
            if let Some(reader) = self.readers.get_mut(&local)
                && has(peer.data.builtin_endpoints, bit)
                && let Some(charge) = peer.account().take(PROXY)
            {
                let own = Arc::clone(&reader.data);
                let policies = (&own.qos, &own.qos);
                let (vendor, accounts) = (peer.data.vendor, peer.accounts.clone());
                let proxy = WriterProxy::new(now, vendor, policies, (target, pace), accounts, charge);
                reader.add_writer(cx, Guid::new(prefix, remote), proxy);
            }
        }
        for (bit, local, remote) in WRITERS {
            if let Some(writer) = self.writers.get_mut(&local)
                && has(peer.data.builtin_endpoints, bit)
                && let Some(charge) = peer.account().take(PROXY)
            {
                let proxy = ReaderProxy::new(true, target, pace, Arc::clone(peer.account()), charge);
                writer.add_reader(cx, Guid::new(prefix, remote), proxy, true);
            }
        }
    }

    /// Ends the lease, unless messages of the participant have arrived since.
    pub(super) fn end_lease(&mut self, now: Duration, prefix: GuidPrefix) {
        let Some(peer) = self.peers.get(&prefix) else {
            return;
        };
        let ends = peer.heard + peer.lease;
        if ends > now {
            self.timers.set(Timer::Lease(prefix), Some(ends));
            return;
        }
        tracing::debug!(guid = %peer.guid(), "the lease of a participant expired");
        self.drop_peer(now, prefix);
    }

    /// Forgets a participant and everything that belongs to it.
    pub(super) fn drop_peer(&mut self, now: Duration, prefix: GuidPrefix) {
        let Some(peer) = self.peers.get(&prefix) else {
            return;
        };
        let endpoints: Vec<_> = peer.endpoints.keys().copied().collect();
        self.outbox.forget(prefix);
        for entity in endpoints {
            self.drop_endpoint(now, Guid::new(prefix, entity));
        }
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        for (_, local, remote) in READERS {
            if let Some(reader) = self.readers.get_mut(&local) {
                reader.remove_writer(cx, Guid::new(prefix, remote));
            }
        }
        for (_, local, remote) in WRITERS {
            if let Some(writer) = self.writers.get_mut(&local) {
                writer.remove_reader(cx, Guid::new(prefix, remote));
            }
        }
        self.timers.set(Timer::Lease(prefix), None);
        if let Some(peer) = self.peers.remove(&prefix) {
            let (guid, account) = (peer.guid(), Arc::clone(peer.account()));
            drop(peer);
            // The removal freed enough of the peer's budget for this event.
            self.events
                .push(Event::ParticipantGone(guid), account.take(SMALL));
        }
        self.addresses.retain(|_, account| Arc::strong_count(account) > 1);
    }
}

fn lease(data: &ParticipantData, longest: Duration) -> Duration {
    data.lease.unwrap_or(longest).min(longest).max(SHORTEST_LEASE)
}
