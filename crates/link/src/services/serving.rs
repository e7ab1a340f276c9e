//! Services of this host, for callers on peers.

use super::dispatcher::{EndpointId, Job};
use super::header::{CallId, Header, Kind, MAX_LEFT, Outcome};
use super::path::{Air, ServicePath};
use super::seen::Seen;
use super::{Failure, MAX_OPEN, Of, Shared};
use crate::blocks::{IDLE, KEPT};
use crate::names::{REPLY, host_id};
use crate::outgoing::Outgoing;
use bus::{CallError, Client, ClientOptions, Loan, Reply, ServiceType};
use proto::{Body, PeerId, Radio};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Most replies in progress to one service's calls, per call that may be open.
const UNDER_WAY: usize = 4;
/// Most messages in progress to one service's callers on one peer. A peer that requests more gets no reply.
pub(crate) const MOST_UNDER_WAY: usize = 1000;

/// Longest time that the service of a dead server stays announced, while its last replies are in progress.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Services found on this host's bus, and open calls of peers.
#[derive(Default)]
pub(super) struct Serving {
    /// One for each caller, so that a caller's requests take no memory from the others.
    outlets: BTreeMap<Of, Outlet>,
    tickets: BTreeMap<u64, Ticket>,
    last: u64,
    seen: BTreeMap<PeerId, Seen>,
    sent: VecDeque<Sent>,
    /// Outcomes to report to callers as soon as the service has a server again. Before that the withdrawal
    /// notifies the callers, unless it ends before they learn of it.
    owed: VecDeque<(AnswerTo, Outcome, String)>,
}

/// The call to answer, and until when its caller waits.
type AnswerTo = (Of, CallId, Time);

struct Outlet {
    endpoint: EndpointId,
    kind: ServiceType,
    client: Arc<Client>,
    serving: bool,
    /// Without a server, until when replies of the last server may still be in progress.
    until: Time,
    path: Option<ServicePath>,
    /// When the last request arrived.
    asked: Time,
}

/// A call that a server of this host is processing.
struct Ticket {
    of: Of,
    endpoint: EndpointId,
    call: CallId,
    deadline: Time,
}

/// A reply in progress.
struct Sent {
    of: Of,
    path: ServicePath,
    call: CallId,
    stamp: Time,
    deadline: Time,
    /// If the reply is lost, its caller is notified, once.
    is_answer: bool,
}

impl Serving {
    /// The client that passes a caller's requests to the service's servers, if there are any of this type.
    pub(super) fn client(&self, of: Of, type_hash: [u8; 16]) -> Option<&Arc<Client>> {
        let outlet = self.outlets.get(&of).filter(|o| o.serving)?;
        (outlet.kind.type_hash == type_hash).then_some(&outlet.client)
    }

    /// A service has a server on this bus, possibly of another type than before.
    pub(super) fn found(&mut self, shared: &mut Shared, air: &mut Air<'_>, kind: ServiceType) {
        self.gone(shared, air, &kind.service);
        for of in shared.callers_of(&kind.service) {
            let open = u32::from(shared.setting(of).depth).clamp(1, 1024);
            let options = ClientOptions::default()
                .with_max_outstanding(open)
                .with_max_held((open * UNDER_WAY as u32).min(2048));
            let client = match shared.bus.client(kind.clone(), options) {
                Ok(client) => Arc::new(client),
                Err(error) => {
                    tracing::error!(%error, service = kind.service, "cannot offer it to a peer");
                    continue;
                }
            };
            let endpoint = shared.new_endpoint();
            shared.dispatcher.ask(Job::Use(endpoint, client.clone()));
            let outlet = Outlet {
                endpoint,
                client,
                serving: false,
                until: Time::ZERO,
                path: None,
                asked: Time::ZERO,
                kind: kind.clone(),
            };
            self.outlets.insert(of, outlet);
        }
    }

    /// The service has had no server for a while.
    pub(super) fn gone(&mut self, shared: &mut Shared, air: &mut Air<'_>, here: &str) {
        let of_it = self.outlets.iter().filter(|(_, o)| o.kind.service == here);
        for of in of_it.map(|(of, _)| *of).collect::<Vec<_>>() {
            let Some(outlet) = self.outlets.remove(&of) else {
                continue;
            };
            if let Some(path) = outlet.path {
                self.close(air, of, &path);
            }
            shared.dispatcher.ask(Job::Unuse(outlet.endpoint));
            let over = |t: &Ticket| t.endpoint == outlet.endpoint;
            for ticket in self.tickets.values().filter(|t| over(t)) {
                shared.tally(ticket.of).failed(Failure::ServerDied);
            }
            self.tickets.retain(|_, t| !over(t));
        }
    }

    /// A server appeared, or the last one disappeared: informs the peers.
    pub(super) fn serving(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        endpoint: EndpointId,
        serving: bool,
    ) {
        let Some((of, outlet)) = self.outlets.iter_mut().find(|(_, o)| o.endpoint == endpoint) else {
            return;
        };
        let (of, peer) = (*of, shared.peer(of.peer).to_owned());
        outlet.serving = serving;
        if !serving {
            tracing::info!(service = outlet.kind.service, peer, "no server left: withdrawn");
            outlet.until = air.now + LAST_WORDS;
            return;
        }
        if outlet.path.is_none() {
            match shared.open_path(air, of, REPLY, &outlet.kind, proto::MAX_DEPTH) {
                Ok(path) => {
                    tracing::info!(service = outlet.kind.service, peer, "offered");
                    outlet.path = Some(path);
                }
                Err(error) => tracing::error!(%error, service = outlet.kind.service, "cannot offer to peer"),
            }
        }
        for (answer_to, outcome, text) in std::mem::take(&mut self.owed) {
            if answer_to.2 > air.now {
                self.report_failure(shared, air, answer_to, outcome, &text);
            }
        }
    }

    /// Withdraws services without a server, after their last replies have arrived.
    pub(super) fn withdraw(&mut self, air: &mut Air<'_>) {
        let sent = &self.sent;
        let speaks = |of: &Of| sent.iter().any(|s| s.is_answer && s.of == *of);
        let over = self
            .outlets
            .iter_mut()
            .filter(|(of, o)| !o.serving && o.path.is_some() && (o.until <= air.now || !speaks(of)));
        let over = over.filter_map(|(of, o)| Some((*of, o.path.take()?)));
        for (of, path) in over.collect::<Vec<_>>() {
            self.close(air, of, &path);
        }
    }

    /// Frees the memory of answered requests after a while without any request.
    pub(super) fn sweep(&self, now: Time) {
        let idle = |o: &&Outlet| o.asked + IDLE <= now && o.client.reserved() > KEPT;
        self.outlets.values().filter(idle).for_each(|o| o.client.trim());
    }

    /// Returns whether a node of this host serves it.
    pub(super) fn serves(&self, here: &str) -> bool {
        self.outlets.values().any(|o| o.kind.service == here && o.serving)
    }

    /// The services with any state left.
    pub(super) fn all(&self) -> impl Iterator<Item = Of> {
        let tickets = self.tickets.values().map(|t| t.of);
        let sent = self.sent.iter().map(|s| s.of);
        let owed = self.owed.iter().map(|(to, ..)| to.0);
        self.outlets
            .keys()
            .copied()
            .chain(tickets)
            .chain(sent)
            .chain(owed)
    }

    fn path(&self, of: Of) -> Option<&ServicePath> {
        self.outlets.get(&of)?.path.as_ref()
    }

    fn close(&mut self, air: &mut Air<'_>, of: Of, path: &ServicePath) {
        path.close(air);
        self.sent.retain(|s| s.of != of);
    }

    /// A peer's request arrived at `at`. `stamp` is by the peer's clock; `expires`, from a relay, is the time
    /// until which its caller waits.
    pub(super) fn requested(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        of: Of,
        header: Header,
        (loan, bytes): (Loan, u64),
        (at, stamp, expires): (Time, Time, Option<Time>),
    ) {
        let Kind::Request(left) = header.kind else { return };
        if !self.seen.entry(of.peer).or_default().is_new(header.call) {
            shared.tally(of).repeated += 1;
            return;
        }
        let setting = shared.setting(of);
        let (depth, limit) = (usize::from(setting.depth), setting.timeout());
        let tally = shared.tally(of);
        tally.calls += 1;
        tally.request_bytes += bytes;
        let left = left
            .min(limit)
            .min(MAX_LEFT)
            .saturating_sub(age(air.radio, of.peer, at, stamp));
        // Over relays the peer's clock may be unknown, but the time that each relay held the request is
        // known.
        let deadline = (at + left).min(expires.unwrap_or(Time::MAX));
        let open = self.tickets.values().filter(|t| t.of == of).count();
        let under_way = self.sent.iter().filter(|s| s.of == of).count();
        if let Some(outlet) = self.outlets.get_mut(&of) {
            outlet.asked = air.now;
        }
        let outlet = self.outlets.get(&of).filter(|o| o.serving);
        let answer_to = (of, header.call, deadline);
        let Some(outlet) = outlet else {
            tally.failed(Failure::Unserved);
            return self.report_failure(shared, air, answer_to, Outcome::Unserved, "");
        };
        if deadline <= air.now {
            // Its caller has given up.
            return tally.failed(Failure::TimedOut);
        }
        if open >= depth || open + under_way >= UNDER_WAY * depth || self.tickets.len() >= MAX_OPEN {
            tally.failed(Failure::Busy);
            let text = format!("{open} calls are open there, the limit; call again later");
            return self.report_failure(shared, air, answer_to, Outcome::Busy, &text);
        }
        self.last += 1;
        let ticket = Ticket {
            of,
            endpoint: outlet.endpoint,
            call: header.call,
            deadline,
        };
        self.tickets.insert(self.last, ticket);
        shared.dispatcher.ask(Job::Call {
            endpoint: outlet.endpoint,
            ticket: self.last,
            loan,
            timeout: deadline.since(air.now),
            origin: host_id(shared.peer(of.peer)),
        });
    }

    /// The outcome of a call.
    pub(super) fn answered(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        ticket: u64,
        result: Result<Reply, CallError>,
    ) {
        let Some(Ticket {
            of, call, deadline, ..
        }) = self.tickets.remove(&ticket)
        else {
            return;
        };
        let answer_to = (of, call, deadline);
        let error = match result {
            Ok(reply) => return self.reply(shared, air, answer_to, reply),
            Err(error) => error,
        };
        // The server may be another link's.
        let failure = Failure::of(&error).unwrap_or(match &error {
            CallError::ServerDied { .. } => Failure::ServerDied,
            CallError::NoServer { .. } => Failure::Unserved,
            CallError::Timeout { .. } => Failure::TimedOut,
            CallError::Dropped { .. } | CallError::TooMany { .. } | CallError::HoldLimit { .. } => {
                Failure::Busy
            }
            _ => Failure::Dropped,
        });
        let outcome = match failure {
            Failure::Rejected | Failure::Refused => Outcome::Rejected,
            Failure::ServerDied => Outcome::Died,
            Failure::Unserved => Outcome::Unserved,
            Failure::TimedOut => Outcome::TimedOut,
            Failure::Busy => Outcome::Busy,
            Failure::Unreachable | Failure::Dropped => Outcome::Failed,
        };
        let text = match error {
            CallError::Rejected { text, .. } => text,
            // The caller's host has a text of its own.
            CallError::ServerDied { .. } | CallError::NoServer { .. } => String::new(),
            other => other.to_string(),
        };
        shared.tally(of).failed(failure);
        self.report_failure(shared, air, answer_to, outcome, &text);
    }

    fn reply(&mut self, shared: &mut Shared, air: &mut Air<'_>, answer_to: AnswerTo, reply: Reply) {
        let (of, call, deadline) = answer_to;
        if deadline <= air.now {
            return shared.tally(of).failed(Failure::TimedOut);
        }
        let header = Header {
            call,
            kind: Kind::Reply(Outcome::Answered),
        };
        let sent = match Outgoing::reply(header, reply) {
            Ok(body) => {
                let bytes = u64::from(body.geometry().total_len());
                self.send(shared, air, answer_to, body, true).map(|()| bytes)
            }
            Err(error) => {
                static LOST: clock::Quiet = clock::Quiet::new();
                if let Some(more) = LOST.lets() {
                    tracing::warn!(%error, more, "cannot send a reply over the link");
                }
                Err(DropReason::TooLarge)
            }
        };
        match sent {
            Ok(bytes) => {
                let tally = shared.tally(of);
                tally.answered += 1;
                tally.reply_bytes += bytes;
            }
            Err(reason) => {
                shared.tally(of).failed(Failure::Dropped);
                self.report_failure(shared, air, answer_to, Outcome::Failed, lost_response(reason));
            }
        }
    }

    /// Reports to a caller why there is no answer.
    fn report_failure(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        answer_to: AnswerTo,
        outcome: Outcome,
        text: &str,
    ) {
        let outlet = self.outlets.get(&answer_to.0);
        if !outlet.is_some_and(|o| o.serving && o.path.is_some()) {
            self.owed.push_back((answer_to, outcome, text.to_owned()));
            if self.owed.len() > MAX_OPEN {
                self.owed.pop_front();
            }
            return;
        }
        let header = Header {
            call: answer_to.1,
            kind: Kind::Reply(outcome),
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        if let Ok(body) = Outgoing::made(bytes, &[]) {
            // If this fails, the caller waits for its timeout.
            let _ = self.send(shared, air, answer_to, body, false);
        }
    }

    fn send(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        (of, call, deadline): AnswerTo,
        body: Outgoing,
        is_answer: bool,
    ) -> Result<(), DropReason> {
        let path = self.path(of).ok_or(DropReason::Unannounced)?.clone();
        if self.sent.iter().filter(|s| s.of == of).count() >= MOST_UNDER_WAY {
            return Err(DropReason::Overflow);
        }
        let stamp = shared.stamp(air.now);
        path.offer(air, body, stamp, deadline)?;
        let sent = Sent {
            of,
            path,
            call,
            stamp,
            deadline,
            is_answer,
        };
        self.sent.push_back(sent);
        Ok(())
    }

    /// The radio reports the outcome of the message with this stamp.
    pub(super) fn settled(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        stamp: Time,
        lost: Option<DropReason>,
    ) {
        let Some(at) = self.sent.iter().position(|s| s.stamp == stamp) else {
            return;
        };
        let Some(sent) = self.sent.remove(at) else { return };
        let Some(reason) = lost.filter(|_| sent.is_answer) else {
            return;
        };
        let tally = shared.tally(sent.of);
        tally.answered = tally.answered.saturating_sub(1);
        tally.failed(Failure::Dropped);
        if sent.deadline > air.now && !matches!(reason, DropReason::PeerLost | DropReason::Unannounced) {
            let answer_to = (sent.of, sent.call, sent.deadline);
            self.report_failure(shared, air, answer_to, Outcome::Failed, lost_response(reason));
        }
    }

    /// Gives up replies whose callers no longer wait.
    pub(super) fn expire(&mut self, shared: &mut Shared, air: &mut Air<'_>) {
        let (late, rest) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|s| s.deadline <= air.now);
        self.sent = rest;
        let late: VecDeque<Sent> = late;
        for sent in late {
            sent.path.end(air, sent.stamp, Err(DropReason::Expired));
            if sent.is_answer {
                let tally = shared.tally(sent.of);
                tally.answered = tally.answered.saturating_sub(1);
                tally.failed(Failure::TimedOut);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let closing = (self.outlets.values()).filter(|o| !o.serving && o.path.is_some());
        let sent = self.sent.iter().map(|s| s.deadline);
        sent.chain(closing.map(|o| o.until)).min()
    }

    /// The type of a service, whether it has a server, and how many calls of a peer are open.
    pub(super) fn state(&self, of: Of) -> (Option<(&ServiceType, bool)>, u64) {
        let outlet = self.outlets.get(&of);
        let open = self.tickets.values().filter(|t| t.of == of).count() as u64;
        (outlet.map(|o| (&o.kind, o.serving)), open)
    }
}

/// Upper bound on the age of a message, or zero if the peer's clock is unknown.
pub(crate) fn age(radio: &Radio<Outgoing>, peer: PeerId, at: Time, stamp: Time) -> Duration {
    let clock = radio.peer_stats(peer).and_then(|p| p.clock);
    clock.map_or(Duration::ZERO, |c| {
        let there = at.0 as f64 + c.ahead_us * 1e3;
        let ns = (there - stamp.0 as f64).max(0.0) + c.uncertainty_us * 1e3;
        Duration::from_nanos(ns.max(0.0) as u64)
    })
}

/// Error text for a caller whose reply is lost.
pub(crate) fn lost_response(reason: DropReason) -> &'static str {
    match reason {
        DropReason::TooLarge => {
            "the server answered, but the reply is too large for the link: raise `radio.queue_bytes` of both ends"
        }
        DropReason::ReceiverMemory => "the server answered, but this host has no memory for the reply",
        _ => {
            "the server answered, but the link dropped the reply: raise the service's priority or call again later"
        }
    }
}
