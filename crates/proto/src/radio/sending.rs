//! Sending messages in fragments.

use super::{Radio, Transmit};
use crate::body::Body;
use crate::config::{MAX_PRIORITY, Order, PeerId};
use crate::peer::{Peer, put};
use crate::policy::tuning::tuning;
use crate::policy::{CONTROL, Entry, Fragment, Room, Whose, is_within};
use crate::send::{Foreseen, SendTopic, When, Work, account};
use crate::wire::{AnnouncePiece, Frame};
use core::time::Duration;
use stats::{DropReason, Time};

/// Most that the header of a datagram and of a piece of an announcement take together.
pub(super) const ANNOUNCE_HEAD: usize = 64;
/// Most that the header of a datagram takes.
pub(super) const HEAD: usize = 16;
/// How a datagram uses the air.
#[derive(Clone, Copy)]
struct Over {
    hops: u32,
    /// Whether it shares the air with hosts of equal priority.
    equals: bool,
    /// Whether it was shortened for others.
    cut: bool,
}

/// What to send next.
enum Plan {
    Announce(usize),
    /// A fragment of this topic, in a datagram of at most this many bytes.
    Fragment(usize, usize),
    /// A fragment of this topic, in the pacer's next slot and not before this time.
    Slot(usize, Option<Time>),
    /// Nothing before this time, unless a message is offered or a datagram arrives.
    Hold(Time),
    Nothing,
}

impl<B: Body> Radio<B> {
    /// Writes the next datagram into `datagram` (cleared first), if one may be sent.
    ///
    /// At most one datagram is sent per slot of airtime, except that a datagram more important than the one handed over
    /// last is sent at once and charged afterwards. Nothing is sent to a peer whose in-flight limit is reached, and
    /// nothing that would still be in the air when a more important message is foreseen.
    pub fn poll_transmit(&mut self, now: Time, datagram: &mut Vec<u8>) -> Transmit {
        let now = self.tick(now);
        for p in self.peers.values_mut() {
            p.tick_flight(now);
        }
        self.greet_by_ways(now);
        self.follow_arrivals(now);
        self.expire_messages(now);
        self.send_again(now);
        for p in self.peers.values_mut() {
            p.receiver.tick(now);
        }
        let free = self.air.device.is_free(now);
        let plan = match self.plan(now, free) {
            Plan::Hold(until) => Plan::Hold(self.holds(now, until)),
            plan => {
                self.air.others.waits_no_more(now);
                plan
            }
        };
        let due = self.control_due();
        let waits =
            due.and_then(|peer| Some((self.control_waits(now, peer)?, self.peers.get(&peer)?.full_air())));
        let waits = waits.map(|(until, full)| {
            self.air
                .others
                .control_waits(now, full)
                .map_or(until, |t| t.min(until))
        });
        if waits.is_none() {
            self.air.others.control_rests(now);
        }
        let control = due.filter(|_| waits.is_none());
        match (waits, self.carry_out(now, plan, control, datagram)) {
            (Some(until), Transmit::Wait(t)) => Transmit::Wait(t.min(until)),
            (Some(until), Transmit::Idle) => Transmit::Wait(until),
            (_, transmit) => transmit,
        }
    }

    /// Sends what is planned, or control frames to the peer `control`.
    fn carry_out(
        &mut self,
        now: Time,
        plan: Plan,
        control: Option<PeerId>,
        datagram: &mut Vec<u8>,
    ) -> Transmit {
        let free = self.air.device.is_free(now);
        if let Some(peer) = control
            && (free || self.air.device.is_urgent(CONTROL))
            && !self.receipt_rides(now, peer, &plan)
        {
            return self.send_control(now, peer, datagram);
        }
        match plan {
            Plan::Announce(i) => self.send_announcement(now, i, datagram),
            Plan::Fragment(i, max) => self.send_fragment(now, i, max, datagram),
            Plan::Slot(_, listens) => {
                let turn = self.air.device.await_turn();
                Transmit::Wait(listens.map_or(turn, |until| until.max(turn)))
            }
            // Nothing waits for the pacer in that case, so a slot that passes meanwhile is given up.
            Plan::Hold(until) if control.is_none() => Transmit::Wait(until),
            Plan::Hold(_) | Plan::Nothing if control.is_some() => {
                Transmit::Wait(self.air.device.await_turn())
            }
            Plan::Hold(until) => Transmit::Wait(until),
            Plan::Nothing => Transmit::Idle,
        }
    }

    /// What to send next if no control frames are due.
    fn plan(&self, now: Time, free: bool) -> Plan {
        let Some((i, work)) = self.scheduler.pick(&self.topics, |t| self.may_send(now, t)) else {
            // Topics that are still backlogged wait for receipts, or for the timeout of receipts.
            let backlogged = |t: &&SendTopic<B>| t.is_backlogged() || t.announcer.is_due();
            let blocked = self
                .topics
                .iter()
                .filter(|t| self.is_up(t.peer))
                .filter(backlogged);
            let full = blocked.filter_map(|t| self.peers.get(&t.peer)?.flight.next_timeout());
            let others = self.peers.values().filter_map(|p| p.flight.next_timeout());
            let gated = self
                .topics
                .iter()
                .filter(|t| self.is_up(t.peer) && t.is_backlogged());
            let gated = gated.filter_map(|t| self.gate(now, t, t.config.priority));
            return match full.chain(others).chain(gated).min() {
                Some(t)
                    if self
                        .topics
                        .iter()
                        .any(|t| self.is_up(t.peer) && t.is_backlogged()) =>
                {
                    Plan::Hold(t)
                }
                _ => Plan::Nothing,
            };
        };
        let t = &self.topics[i];
        let by_priority = self.scheduler.order() == Order::Priority;
        let urgent = by_priority && self.air.device.is_urgent(t.config.priority);
        let listens = self.listens_until(t);
        if !urgent && (!free || listens.is_some_and(|until| now < until)) {
            return Plan::Slot(i, listens);
        }
        if work == Work::Announce {
            return Plan::Announce(i);
        }
        let Some(p) = self.peers.get(&t.peer) else {
            return Plan::Nothing;
        };
        let max = match t.is_best_effort() {
            true => p.config.max_joined(),
            // Fragments cut when datagrams could be longer need that room.
            false => p.config.max_datagram.max((HEAD + t.head_room()).min(p.takes)),
        };
        if !free || !by_priority || !self.config.predict || !self.policy.makes_room(p) {
            return Plan::Fragment(i, max);
        }
        let max = self.deferring_length(now, t, max);
        // An estimate in doubt does not justify cutting for this host's own messages, which wait for one frame at most.
        // Other hosts' messages wait for everything in this host's device queue.
        let ours = self
            .foreseen(now, t.config.priority)
            .filter(|_| !p.flight.doubts());
        match self.air.foreseen(now, Whose::All(t.config.priority, ours)) {
            Some(f) => self.make_room(now, i, p, max, f),
            None => Plan::Fragment(i, max),
        }
    }

    /// Until when a fragment of this topic waits beyond the pacer's slot, for a receipt that is late.
    fn listens_until(&self, t: &SendTopic<B>) -> Option<Time> {
        let listens = self
            .policy
            .listens(self.peers.get(&t.peer)?, self.router.is_none())?;
        Some(self.air.device.next() + listens)
    }

    /// Makes room for a foreseen message, by a fragment of topic `i` of at most `max` bytes.
    fn make_room(&self, now: Time, i: usize, p: &Peer, max: usize, foreseen: Foreseen) -> Plan {
        let t = &self.topics[i];
        let fragment = Fragment {
            max,
            whole: HEAD + t.rest_with_head(),
            least: HEAD + t.head_room() + tuning().least_cut,
            begins: t.begins_message(),
        };
        match self.policy.make_room(now, p, &fragment, foreseen) {
            Room::Within(max) => Plan::Fragment(i, max),
            Room::Wait(until) => Plan::Hold(until),
        }
    }

    /// The next foreseen message of this host that is more important than `priority`.
    fn foreseen(&self, now: Time, priority: u8) -> Option<Foreseen> {
        let more = self.topics.iter().filter(|t| t.config.priority > priority);
        let quiet = more.filter(|t| !t.is_backlogged() && t.announcer.accepted() == Some(true));
        let up = quiet.filter(|t| self.is_up(t.peer));
        up.filter_map(|t| t.rhythm.next(now)).min_by_key(|f| f.from)
    }

    /// When the claims of other hosts permit this topic to continue, if they hold it back. Forwarded messages had their
    /// share at the source, and would be in the air already if they went by one hop: they yield only to more important
    /// ones.
    fn gate(&self, now: Time, t: &SendTopic<B>, importance: u8) -> Option<Time> {
        let at = self.air.others.gate(now, importance)?;
        // A receipt would have to be sent in any case, and alone costs as much as is saved.
        let takes = || self.peers.get(&t.peer).is_some_and(Peer::owes_only);
        let shares = self.air.others.is_outranked(now, importance) || !self.is_forwarded(t) && !takes();
        shares.then_some(at)
    }

    /// Whether the topic's messages come from another host.
    pub(super) fn is_forwarded(&self, t: &SendTopic<B>) -> bool {
        t.config
            .via
            .as_ref()
            .is_some_and(|v| v.source != self.config.host)
    }

    /// Whether the peer of this topic is up and takes one more datagram of its importance.
    fn may_send(&self, now: Time, t: &SendTopic<B>) -> bool {
        let Some(p) = self.peers.get(&t.peer).filter(|p| p.session.is_up()) else {
            return false;
        };
        if !self.is_way(t.peer) {
            return false;
        }
        let importance = match self.scheduler.order() {
            Order::Priority => t.config.priority,
            Order::Fifo => 0,
        };
        // Where there may be another route, nothing is queued in the device behind unanswered datagrams.
        if self.router.is_some() && p.flight.is_silent() && p.flight.holds(importance) {
            return false;
        }
        let window = self.window(now, p, importance);
        if !p.flight.admits(now, importance, window) || self.gate(now, t, importance).is_some() {
            return false;
        }
        // A peer that is silent, or from which no receipt is expected, holds up neither others nor itself: otherwise no
        // datagram would ever ask again.
        let waits = |p: &Peer| p.flight.awaits_receipt() && !p.flight.is_silent();
        let common = |p: &&Peer| self.policy.is_queue_common(p) && waits(p);
        if !common(&p) {
            return true;
        }
        let others = self.peers.values().filter(common);
        let total: usize = others.clone().map(|p| p.flight.len()).sum();
        let peers = || others.map(|p| p.flight.peers_of(now, importance)).sum();
        is_within(total, window, peers)
    }

    /// Whether `peer` is owed nothing but a receipt, and the receipt can ride with the planned fragment, at once or
    /// within the time of a frame.
    fn receipt_rides(&self, now: Time, peer: PeerId, plan: &Plan) -> bool {
        let Some(p) = self.peers.get(&peer).filter(|p| p.owes_only()) else {
            return false;
        };
        let i = match plan {
            Plan::Fragment(i, _) => *i,
            Plan::Slot(i, listens) if listens.unwrap_or(self.air.device.next()) <= now + p.full_air() => *i,
            _ => return false,
        };
        // A symbol leaves little room after it.
        let t = &self.topics[i];
        t.peer == peer && t.symbol_room().is_none()
    }

    /// Records that the carrier refused the datagram that [`Radio::poll_transmit`] returned last. It is counted as
    /// [`DropReason::Carrier`] of the peer, and its contents are lost.
    pub fn carrier_refused(&mut self, peer: PeerId) {
        if let Some(p) = self.peers.get_mut(&peer) {
            p.stats.drops.add(DropReason::Carrier, 1);
        }
    }

    fn control_due(&self) -> Option<PeerId> {
        let has_update = |t: &SendTopic<B>| {
            let confirms = t.demand.confirms().is_some();
            confirms || t.cancelled.is_some() || t.unacked.as_ref().is_some_and(|k| k.floor_update_due())
        };
        let cancels = |id: PeerId| self.topics.iter().any(|t| t.peer == id && has_update(t));
        let ways = |id: PeerId| self.route_due(id);
        let due = self
            .peers
            .iter()
            .filter(|(id, p)| p.has_control() || p.session.is_up() && (cancels(**id) || ways(**id)));
        // A frame on a bad link is retried repeatedly while all others wait behind it. It goes last; otherwise the
        // links probed after it look as bad.
        due.map(|(id, _)| *id).min_by_key(|id| self.badness(*id))
    }

    fn send_control(&mut self, now: Time, peer: PeerId, out: &mut Vec<u8>) -> Transmit {
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        if p.session.is_up() {
            for (i, t) in self.topics.iter_mut().enumerate().filter(|(_, t)| t.peer == peer) {
                if let Some(seq) = t.cancelled
                    && put(
                        out,
                        p.config.max_datagram,
                        &Frame::Cancel { topic: i as u32, seq },
                    )
                {
                    t.cancelled = None;
                }
                let (topic, floor, timing) = (i as u32, t.floor(), p.way.timing());
                if let Some(serial) = t.demand.confirms()
                    && put(out, p.config.max_datagram, &Frame::WatchedSeen { topic, serial })
                {
                    t.demand.confirmed();
                }
                if let Some(unacked) = t.unacked.as_mut().filter(|k| k.floor_update_due())
                    && put(out, p.config.max_datagram, &Frame::Settled { topic, floor })
                {
                    unacked.floor_update_sent(now, timing);
                }
            }
        }
        let receipt = p.session.is_up() && p.owes();
        p.put_control(now, &self.config, out);
        // Where receipts were lost, any receipt ends the silence.
        if p.session.is_up() && p.flight.is_silent() {
            put(out, p.config.max_datagram, &Frame::Ask);
        }
        self.put_ways(now, peer, out);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.stats.control_sent += 1;
        let (full, air, hops) = (p.full_air(), p.airtime, p.config.hops);
        self.put_sharing(now, peer, receipt, usize::MAX, out);
        self.air
            .others
            .control_goes(now, air.airtime(out.len(), hops), full);
        self.sent(now, peer, CONTROL, out.len(), None);
        Transmit::Datagram {
            peer,
            priority: MAX_PRIORITY,
        }
    }

    fn send_announcement(&mut self, now: Time, i: usize, out: &mut Vec<u8>) -> Transmit {
        let t = &mut self.topics[i];
        let (peer, priority) = (t.peer, t.config.priority);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        let asks = self.should_ask(now, peer, MAX_PRIORITY, true);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        if asks {
            Frame::Ask.encode(out);
        }
        let t = &mut self.topics[i];
        let (edition, total) = (t.announcer.edition(), t.announcer.total());
        let air = p.airtime.airtime(p.config.max_datagram, p.config.hops);
        let (offset, poll, bytes) = t.announcer.piece(now, p.config.max_datagram - ANNOUNCE_HEAD, air);
        Frame::Announce(AnnouncePiece {
            topic: i as u32,
            edition,
            total,
            offset,
            poll,
            bytes,
        })
        .encode(out);
        p.stats.control_sent += 1;
        self.sent(now, peer, priority, out.len(), Some(asks));
        Transmit::Datagram { peer, priority }
    }

    /// Sends the next fragment of topic `i`. If that ends a message, small ones that fit behind it whole go along,
    /// since a frame of their own would cost more than their bytes.
    fn send_fragment(&mut self, now: Time, i: usize, max: usize, out: &mut Vec<u8>) -> Transmit {
        let (peer, priority) = (self.topics[i].peer, self.topics[i].config.priority);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        let hops = self.topics[i].hops(p.config.hops);
        let (p_max, airtime) = (p.config.max_datagram, p.airtime);
        p.header(self.config.session, out);
        let receipt = p.put_receipt(now, out);
        // Beyond it the fragment would be empty, and its receiver would refuse the whole datagram.
        let room = max.saturating_sub(self.topics[i].head_room() + tuning().least_cut);
        p.put_acknowledgements(now, room, out, true);
        let mut when = When {
            now,
            number: p.last_number(),
            timing: p.way.timing(),
            origin: None,
        };
        // A shortened datagram has no room for more.
        let uncut = max >= self.deferring_length(now, &self.topics[i], p_max);
        if receipt || uncut {
            self.put_sharing(now, peer, receipt, room, out);
        }
        let air = |bytes: usize| airtime.airtime(bytes, hops);
        // A receipt would collide with the message for which this fragment is cut, or with one that comes soon after;
        // or there would be no time to make up for what it met.
        let meets = self.peers.get(&peer).is_some_and(|p| {
            let end = now + self.policy.exchange(p, max, hops);
            self.air.delays(now, end, Whose::Others(priority)).is_some()
        });
        let asks = self.should_ask(now, peer, priority, uncut && !meets);
        if asks {
            Frame::Ask.encode(out);
        }
        let probes = asks && self.air.others.is_probe(now, priority);
        if let Some(p) = self.peers.get_mut(&peer).filter(|_| probes) {
            p.share.probe = Some(p.last_number());
        }
        let mut next = Some(i);
        let (mut bytes_first, mut charged) = (None, Duration::ZERO);
        while let Some(i) = next {
            self.put_timing(now, i, max, out);
            let t = &mut self.topics[i];
            if let Some(route) = t.route().filter(|_| !t.continues()) {
                Frame::Route(route, t.left_ms(now)).encode(out);
            }
            let ended = t.put_fragment(i as u32, max, out, &mut when);
            let airtime = air(out.len()).saturating_sub(charged);
            charged += airtime;
            t.counts.air += airtime;
            self.scheduler.charge(t, airtime);
            account(&mut self.scheduler.below, &mut self.topics, i, airtime);
            let Some(ended) = ended else { break };
            self.stats.queued_bytes = self.stats.queued_bytes.saturating_sub(ended);
            // A less important message may lengthen the datagram by at most the airtime of an empty frame.
            let first = *bytes_first.get_or_insert(out.len());
            let short = |len: usize| air(len).saturating_sub(air(first)) <= air(0);
            next = self.scheduler.pick_along(&self.topics, |t| {
                let len = out.len().saturating_add(t.rest_with_head());
                t.peer == peer
                    && (max <= p_max || t.is_best_effort())
                    && t.hops(1) <= hops
                    && len <= max
                    && (t.config.priority >= priority || short(len))
            });
            if next.is_none() && self.fills(i, max.saturating_sub(out.len())) {
                next = Some(i);
            }
        }
        let equals = !self.is_forwarded(&self.topics[i]);
        let over = Over {
            hops,
            equals,
            cut: !uncut,
        };
        self.lately.add(now, priority);
        self.sent_over(now, peer, priority, out.len(), Some(asks), over);
        Transmit::Datagram { peer, priority }
    }

    /// Whether a topic's next message begins in the `room` behind the one that ended, where nothing more important
    /// waits: a frame costs the air of many bytes before its first. Topics of other peers whose turn it is cannot ride
    /// along; the message that goes before them is charged. Few frames of long messages are not full.
    fn fills(&self, i: usize, room: usize) -> bool {
        let t = &self.topics[i];
        let equal = |(j, work): (usize, Work)| {
            let other = &self.topics[j];
            work == Work::Data
                && (j == i || other.peer != t.peer && other.config.priority == t.config.priority)
        };
        t.begins_message()
            && t.head().is_some_and(|p| self.policy.fills_all() || p.is_short())
            && room >= t.head_room() + tuning().least_begun
            && self.scheduler.pick(&self.topics, |_| true).is_some_and(equal)
    }

    /// Whether the next datagram to `peer`, carrying something of this priority, should ask for a receipt. `calm`:
    /// there is time for one.
    fn should_ask(&self, now: Time, peer: PeerId, priority: u8, calm: bool) -> bool {
        let Some(p) = self.peers.get(&peer) else {
            return false;
        };
        self.policy.may_ask(p, calm)
            && self.policy.should_ask(
                now,
                p,
                self.air.others.defers(now, priority),
                self.window(now, p, priority),
            )
    }

    /// How many datagrams may be in flight to a peer, including the next one of this importance.
    fn window(&self, now: Time, p: &Peer, importance: u8) -> usize {
        self.policy.window(p, self.lately.at(now) <= Some(importance))
    }

    /// Charges a datagram and counts it. `in_flight`: set if it counts against the limit; the value says whether it
    /// asks for a receipt, whose air is charged too.
    fn sent(&mut self, now: Time, peer: PeerId, importance: u8, bytes: usize, in_flight: Option<bool>) {
        let hops = self.peers.get(&peer).map_or(1, |p| p.config.hops);
        let over = Over {
            hops,
            equals: true,
            cut: false,
        };
        self.sent_over(now, peer, importance, bytes, in_flight, over);
    }

    /// The same for a datagram that is sent over `hops` of the radio; its receipt still comes from the peer.
    fn sent_over(
        &mut self,
        now: Time,
        peer: PeerId,
        importance: u8,
        bytes: usize,
        in_flight: Option<bool>,
        over: Over,
    ) {
        let hops = over.hops;
        let Some(p) = self.peers.get(&peer) else {
            return;
        };
        let pause = self.deference_gap(now, p, importance, over.equals);
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let model = p.airtime;
        p.way.sent(now, p.last_number());
        let relays = f64::from(hops.saturating_sub(p.config.hops));
        let airtime = model
            .airtime(bytes, hops)
            .mul_f64(1.0 + relays * tuning().relay_gain);
        let airtime = match in_flight {
            Some(true) => airtime + self.policy.receipt_air(p),
            _ => airtime,
        };
        let full = model.airtime(p.config.max_datagram, hops);
        if let Some(asks) = in_flight {
            let late_at = self
                .policy
                .late_at(now, p, self.air.ends(now, Duration::ZERO), hops);
            let entry = Entry {
                number: p.last_number(),
                at: self.air.device.starts(now),
                bytes,
                pieces: bytes.div_ceil(p.config.max_datagram).max(1),
                importance,
                asks,
            };
            p.flight.sent(entry, late_at, full);
        }
        let shares = over.equals || self.air.others.is_outranked(now, importance);
        if in_flight.is_some() {
            if self.config.yields {
                self.air.others.takes(now, model.airtime(bytes, hops));
            }
            // A datagram that was cut for others carries less for its airtime than what they leave to this host would.
            let whole = full.mul_f64(bytes as f64 / p.config.max_datagram as f64);
            let worth = if over.cut { airtime.min(whole) } else { airtime };
            self.air.others.goes(now, importance, worth, full);
            let yields = shares && self.air.others.charge(now, importance, airtime);
            self.stats.yielded += u64::from(yields);
        }
        self.stats.urgent += u64::from(!self.air.device.is_free(now));
        let slot = self.policy.slot(p, airtime, pause);
        if !pause.is_zero() {
            self.air.device.forfeit();
        }
        // Ropewalk relays let important messages pass, so only the medium's own forwarding makes them wait.
        self.air.device.charge(now, importance, p.config.hops, slot);
        p.session.sent(now);
        p.stats.datagrams_sent += 1;
        p.stats.bytes_sent += bytes as u64;
        p.stats.air += airtime;
        self.stats.datagrams += 1;
        self.stats.bytes += bytes as u64;
        self.stats.air += airtime;
    }
}
