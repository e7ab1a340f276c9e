//! Services of this host, for callers on peers.

use super::Calls;
use super::event::{Arrived, Content, EndpointId, Event, Ticket};
use super::failure::{Failure, lost_response};
use super::found::Of;
use super::header::{CallId, Header, Kind, MAX_LEFT, Outcome};
use super::seen::Seen;
use super::shared::MAX_OPEN;
use crate::config::ServiceRole;
use crate::engine::path::{Air, ServicePath};
use crate::outgoing::Outgoing;
use bus::ServiceType;
use proto::{Body, GeometryError, PeerId, TopicError};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most replies in progress to one service's calls, per call that may be open.
pub(crate) const UNDER_WAY: usize = 4;
/// Most messages in progress to one service's callers on one peer. A peer that requests more gets no reply.
const MOST_UNDER_WAY: usize = 1000;

/// Longest time that the service of a dead server stays announced, while its last replies are in progress.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Services of this host, and open calls of peers.
#[derive(Default)]
pub(super) struct Serving {
    /// One for each caller, so that a caller's requests take no memory from the others.
    outlets: BTreeMap<Of, Outlet>,
    open: BTreeMap<Ticket, Open>,
    last: Ticket,
    seen: BTreeMap<PeerId, Seen>,
    sent: VecDeque<Sent>,
    /// Outcomes to report to callers as soon as the service has a server again. Before that the withdrawal
    /// notifies the callers, unless it ends before they learn of it.
    owed: VecDeque<(AnswerTo, Outcome, String)>,
}

/// The call to answer, and until when its caller waits.
#[derive(Clone, Copy)]
struct AnswerTo {
    of: Of,
    call: CallId,
    deadline: Time,
}

pub(super) struct Outlet {
    endpoint: EndpointId,
    kind: ServiceType,
    serving: bool,
    /// Without a server, until when replies of the last server may still be in progress.
    until: Time,
    path: Option<ServicePath>,
}

/// A call that a server of this host is processing.
struct Open {
    endpoint: EndpointId,
    to: AnswerTo,
}

/// A reply in progress.
struct Sent {
    to: AnswerTo,
    path: ServicePath,
    stamp: Time,
    /// If the reply is lost, its caller is notified, once.
    is_answer: bool,
}

impl<C: Content, K> Calls<C, K> {
    /// This host can serve a service, possibly with another type than before. Returns an endpoint for each
    /// peer that may call it, and the most calls that it may have open. They are not offered before
    /// [`Calls::serving`].
    pub(crate) fn serve(&mut self, air: &mut Air<'_>, kind: &ServiceType) -> Vec<(EndpointId, u16)> {
        // A pattern may match it.
        let _ = self.index_of(&kind.service, ServiceRole::Serve);
        self.gone(air, &kind.service);
        let mut endpoints = Vec::new();
        for of in self.shared.callers_of(&kind.service) {
            let endpoint = self.shared.new_endpoint();
            let outlet = Outlet {
                endpoint,
                serving: false,
                until: Time::ZERO,
                path: None,
                kind: kind.clone(),
            };
            self.serving.outlets.insert(of, outlet);
            endpoints.push((endpoint, self.shared.setting(of).depth));
        }
        endpoints
    }

    /// A service of this host has no server any more.
    pub(crate) fn gone(&mut self, air: &mut Air<'_>, here: &str) {
        self.remove_outlets(air, |o| o.kind.service == here);
    }

    /// Withdraws services of this host.
    pub(super) fn remove_outlets(&mut self, air: &mut Air<'_>, which: impl Fn(&Outlet) -> bool) {
        let of_it = self.serving.outlets.iter().filter(|(_, o)| which(o));
        for of in of_it.map(|(of, _)| *of).collect::<Vec<_>>() {
            let Some(outlet) = self.serving.outlets.remove(&of) else {
                continue;
            };
            if let Some(path) = outlet.path {
                self.close_outlet(air, of, &path);
            }
            self.shared.events.push_back(Event::Unused(outlet.endpoint));
            let over = |o: &Open| o.endpoint == outlet.endpoint;
            for open in self.serving.open.values().filter(|o| over(o)) {
                self.shared.tally(open.to.of).failed(Failure::ServerDied);
            }
            self.serving.open.retain(|_, o| !over(o));
        }
    }

    /// An endpoint of [`Calls::serve`] has a server, or none for now: informs the peers.
    ///
    /// # Errors
    /// If the radio accepts no further topic.
    pub(crate) fn serving(
        &mut self,
        air: &mut Air<'_>,
        endpoint: EndpointId,
        serving: bool,
    ) -> Result<(), TopicError> {
        let Some((of, outlet)) = self
            .serving
            .outlets
            .iter_mut()
            .find(|(_, o)| o.endpoint == endpoint)
        else {
            return Ok(());
        };
        let (of, peer) = (*of, self.shared.peer(of.peer).to_owned());
        outlet.serving = serving;
        if !serving {
            tracing::info!(service = outlet.kind.service, peer, "no server left: withdrawn");
            outlet.until = air.now + LAST_WORDS;
            return Ok(());
        }
        let mut opened = Ok(());
        if outlet.path.is_none() {
            match self.shared.open_path(air, of, &outlet.kind) {
                Ok(path) => {
                    tracing::info!(service = outlet.kind.service, peer, "offered");
                    outlet.path = Some(path);
                }
                Err(error) => opened = Err(error),
            }
        }
        for (to, outcome, text) in std::mem::take(&mut self.serving.owed) {
            if to.deadline > air.now {
                self.report_failure(air, to, outcome, &text);
            }
        }
        opened
    }

    /// Withdraws services without a server, after their last replies have arrived.
    pub(super) fn withdraw(&mut self, air: &mut Air<'_>) {
        let sent = &self.serving.sent;
        let speaks = |of: &Of| sent.iter().any(|s| s.is_answer && s.to.of == *of);
        let outlets = self.serving.outlets.iter_mut();
        let over =
            outlets.filter(|(of, o)| !o.serving && o.path.is_some() && (o.until <= air.now || !speaks(of)));
        let over = over.filter_map(|(of, o)| Some((*of, o.path.take()?)));
        for (of, path) in over.collect::<Vec<_>>() {
            self.close_outlet(air, of, &path);
        }
    }

    fn close_outlet(&mut self, air: &mut Air<'_>, of: Of, path: &ServicePath) {
        path.close(air);
        self.serving.sent.retain(|s| s.to.of != of);
    }

    /// A peer's request arrived, whose caller says that it waits for `left`.
    pub(super) fn requested(&mut self, air: &mut Air<'_>, arrived: Arrived<C>, left: Duration) {
        let (of, call, times) = (arrived.of, arrived.header.call, arrived.times);
        if !self.serving.seen.entry(of.peer).or_default().is_new(call) {
            self.shared.tally(of).repeated += 1;
            return;
        }
        let setting = self.shared.setting(of);
        let (depth, limit) = (usize::from(setting.depth), setting.timeout());
        let tally = self.shared.tally(of);
        tally.calls += 1;
        tally.request_bytes += arrived.bytes;
        let age = air.age(of.peer, times.at, times.stamp);
        let left = left.min(limit).min(MAX_LEFT).saturating_sub(age);
        // Over relays the peer's clock may be unknown, but the time that each relay held the request is
        // known.
        let deadline = (times.at + left).min(times.expires.unwrap_or(Time::MAX));
        let open = self.serving.open.values().filter(|o| o.to.of == of).count();
        let under_way = self.serving.sent.iter().filter(|s| s.to.of == of).count();
        let to = AnswerTo { of, call, deadline };
        let Some(outlet) = self.serving.outlets.get(&of).filter(|o| o.serving) else {
            tally.failed(Failure::Unserved);
            return self.report_failure(air, to, Outcome::Unserved, "");
        };
        if deadline <= air.now {
            // Its caller has given up.
            return tally.failed(Failure::TimedOut);
        }
        if open >= depth || open + under_way >= UNDER_WAY * depth || self.serving.open.len() >= MAX_OPEN {
            tally.failed(Failure::Busy);
            let text = format!("{open} calls are open there, the limit; call again later");
            return self.report_failure(air, to, Outcome::Busy, &text);
        }
        self.serving.last += 1;
        let endpoint = outlet.endpoint;
        self.serving.open.insert(self.serving.last, Open { endpoint, to });
        self.shared.events.push_back(Event::Request {
            endpoint,
            ticket: self.serving.last,
            peer: of.peer,
            content: arrived.content,
            timeout: deadline.since(air.now),
        });
    }

    /// A server of this host has answered a peer. `body` is the reply behind its header.
    ///
    /// # Errors
    /// Why the reply is lost; its caller is notified.
    pub(crate) fn reply(
        &mut self,
        air: &mut Air<'_>,
        ticket: Ticket,
        body: impl FnOnce(Header) -> Result<Outgoing, GeometryError>,
    ) -> Result<(), DropReason> {
        let Some(Open { to, .. }) = self.serving.open.remove(&ticket) else {
            return Err(DropReason::Unannounced);
        };
        if to.deadline <= air.now {
            self.shared.tally(to.of).failed(Failure::TimedOut);
            return Err(DropReason::Expired);
        }
        let kind = Kind::Reply(Outcome::Answered);
        let sent = match body(Header { call: to.call, kind }) {
            Ok(body) => {
                let bytes = u64::from(body.geometry().total_len());
                self.send(air, to, body, true).map(|()| bytes)
            }
            Err(_) => Err(DropReason::TooLarge),
        };
        match sent {
            Ok(bytes) => {
                let tally = self.shared.tally(to.of);
                tally.answered += 1;
                tally.reply_bytes += bytes;
                Ok(())
            }
            Err(reason) => {
                self.shared.tally(to.of).failed(Failure::Dropped);
                self.report_failure(air, to, Outcome::Failed, lost_response(reason));
                Err(reason)
            }
        }
    }

    /// There is no answer for a peer, with the text for its caller.
    pub(crate) fn fail(&mut self, air: &mut Air<'_>, ticket: Ticket, (failure, text): (Failure, &str)) {
        if let Some(Open { to, .. }) = self.serving.open.remove(&ticket) {
            self.shared.tally(to.of).failed(failure);
            self.report_failure(air, to, failure.into(), text);
        }
    }

    /// Reports to a caller why there is no answer.
    fn report_failure(&mut self, air: &mut Air<'_>, to: AnswerTo, outcome: Outcome, text: &str) {
        let outlet = self.serving.outlets.get(&to.of);
        if !outlet.is_some_and(|o| o.serving && o.path.is_some()) {
            self.serving.owed.push_back((to, outcome, text.to_owned()));
            if self.serving.owed.len() > MAX_OPEN {
                self.serving.owed.pop_front();
            }
            return;
        }
        let header = Header {
            call: to.call,
            kind: Kind::Reply(outcome),
        };
        if let Ok(body) = Outgoing::with_head(&header.encode(), text.as_bytes(), &[]) {
            // If this fails, the caller waits for its timeout.
            let _ = self.send(air, to, body, false);
        }
    }

    fn send(
        &mut self,
        air: &mut Air<'_>,
        to: AnswerTo,
        body: Outgoing,
        is_answer: bool,
    ) -> Result<(), DropReason> {
        let path = self.serving.outlets.get(&to.of).and_then(|o| o.path.clone());
        let path = path.ok_or(DropReason::Unannounced)?;
        if self.serving.sent.iter().filter(|s| s.to.of == to.of).count() >= MOST_UNDER_WAY {
            return Err(DropReason::Overflow);
        }
        let stamp = self.shared.stamp(air.now);
        path.offer(air, body, stamp, to.deadline)?;
        self.serving.sent.push_back(Sent {
            to,
            path,
            stamp,
            is_answer,
        });
        Ok(())
    }

    /// The radio reports the outcome of the message with this stamp.
    pub(super) fn settled(&mut self, air: &mut Air<'_>, stamp: Time, lost: Option<DropReason>) {
        let Some(at) = self.serving.sent.iter().position(|s| s.stamp == stamp) else {
            return;
        };
        let Some(Sent { to, is_answer, .. }) = self.serving.sent.remove(at) else {
            return;
        };
        let Some(reason) = lost.filter(|_| is_answer) else {
            return;
        };
        let tally = self.shared.tally(to.of);
        tally.answered = tally.answered.saturating_sub(1);
        tally.failed(Failure::Dropped);
        if to.deadline > air.now && !matches!(reason, DropReason::PeerLost | DropReason::Unannounced) {
            self.report_failure(air, to, Outcome::Failed, lost_response(reason));
        }
    }

    /// Gives up replies whose callers no longer wait.
    pub(super) fn expire_replies(&mut self, air: &mut Air<'_>) {
        let (late, rest) = std::mem::take(&mut self.serving.sent)
            .into_iter()
            .partition(|s| s.to.deadline <= air.now);
        self.serving.sent = rest;
        let late: VecDeque<Sent> = late;
        for sent in late {
            sent.path.end(air, sent.stamp, Err(DropReason::Expired));
            if sent.is_answer {
                let tally = self.shared.tally(sent.to.of);
                tally.answered = tally.answered.saturating_sub(1);
                tally.failed(Failure::TimedOut);
            }
        }
    }
}

impl Serving {
    /// The endpoint that passes a caller's requests to the service's servers, if there are any of this type.
    pub(super) fn takes(&self, of: Of, type_hash: [u8; 16]) -> Option<EndpointId> {
        let outlet = self.outlets.get(&of).filter(|o| o.serving)?;
        (outlet.kind.type_hash == type_hash).then_some(outlet.endpoint)
    }

    /// Returns whether a server of this host serves it.
    pub(super) fn serves(&self, here: &str) -> bool {
        self.outlets.values().any(|o| o.kind.service == here && o.serving)
    }

    /// The type of an endpoint's service.
    pub(super) fn kind(&self, endpoint: EndpointId) -> Option<&ServiceType> {
        let outlet = self.outlets.values().find(|o| o.endpoint == endpoint)?;
        Some(&outlet.kind)
    }

    /// The services with any state left.
    pub(super) fn all(&self) -> impl Iterator<Item = Of> {
        let open = self.open.values().map(|o| o.to.of);
        let sent = self.sent.iter().map(|s| s.to.of);
        let owed = self.owed.iter().map(|(to, ..)| to.of);
        self.outlets.keys().copied().chain(open).chain(sent).chain(owed)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let closing = (self.outlets.values()).filter(|o| !o.serving && o.path.is_some());
        let sent = self.sent.iter().map(|s| s.to.deadline);
        sent.chain(closing.map(|o| o.until)).min()
    }

    /// The type of a service, whether it has a server, and how many calls of a peer are open.
    pub(super) fn state(&self, of: Of) -> (Option<(&ServiceType, bool)>, u64) {
        let outlet = self.outlets.get(&of);
        let open = self.open.values().filter(|o| o.to.of == of).count() as u64;
        (outlet.map(|o| (&o.kind, o.serving)), open)
    }
}
