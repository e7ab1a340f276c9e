//! What a program's own link does, without threads: they hold it one at a time, and hand up what happened without it.

use super::inbox::{Came, Inbox, News, Route};
use super::{AnswerTo, Answered, Event};
use crate::carrier::{Carrier, open_carrier};
use crate::coder::Coder;
use crate::config::{Config, PeerConfig};
use crate::daemon::{LinkError, asked_priority, radio, session};
use crate::names;
use crate::outgoing::Outgoing;
use crate::pump;
use crate::rules::{Right, may};
use crate::services::header::{CallId, Header, Kind, LEN, MAX_LEFT};
use crate::services::seen::Seen;
use crate::services::{
    Failure, MAX_OPEN, Of, Outcome, REPLY, REQUEST, age, line_config, lost_request, lost_response,
    outcome_text,
};
use crate::status::ServiceRole;
use bus::{CallError, ServiceType, TopicType};
use proto::{End, Geometry, Message, PeerId, Radio, TopicId};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Of a service's message, in front of the control part.
pub(super) const HEAD: usize = LEN;
/// Answers under way of which the radio may still tell that they are lost.
const MOST_SENT: usize = 1024;

pub(super) struct Engine {
    config: Config,
    radio: Radio<Outgoing>,
    /// Until it ends, so that its address is free then.
    carrier: Option<Box<dyn Carrier>>,
    peers: Vec<PeerId>,
    inbox: Inbox,
    coder: Coder,
    run: u32,
    last_stamp: Time,
    /// Lines for answers.
    lines: BTreeMap<Of, TopicId>,
    seen: BTreeMap<PeerId, Seen>,
    /// Calls of peers that are not answered yet.
    open: BTreeMap<Of, usize>,
    sent: VecDeque<(Time, AnswerTo)>,
    uses: BTreeMap<Of, Use>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    /// Of the topics that this program sends, by their names here.
    topics: BTreeMap<String, Vec<TopicId>>,
    events: Vec<Event>,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
    /// When the thread has to look again, and when it will.
    due: Option<Time>,
    asleep_until: Option<Time>,
}

/// A service that a peer offers.
struct Use {
    here: String,
    kind: ServiceType,
    line: TopicId,
    is_up: bool,
}

struct Call {
    of: Of,
    line: TopicId,
    stamp: Time,
    deadline: Time,
    timeout: Duration,
    done: Answered,
}

impl Engine {
    pub(super) fn open(config: Config, wake: impl Fn() + Send + 'static) -> Result<Self, LinkError> {
        let carrier = open_carrier(&config)?;
        let (run, now) = (session(), clock::monotonic());
        let (radio, peers) = radio(&config, &carrier, run, now)?;
        let coder = Coder::start(wake).map_err(|source| LinkError::System {
            doing: "start a thread",
            source,
        })?;
        Ok(Engine {
            inbox: Inbox::new(&config),
            buffer: vec![0; pump::room(&carrier)],
            datagram: Vec::with_capacity(carrier.max_datagram()),
            config,
            radio,
            carrier: Some(carrier),
            peers,
            coder,
            run,
            last_stamp: Time::ZERO,
            lines: BTreeMap::new(),
            seen: BTreeMap::new(),
            open: BTreeMap::new(),
            sent: VecDeque::new(),
            uses: BTreeMap::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            topics: BTreeMap::new(),
            events: Vec::new(),
            due: None,
            asleep_until: None,
        })
    }

    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.carrier.as_ref().map(|c| c.readable())
    }

    /// Whether it waits for the carrier to take more.
    fn is_held_up(&mut self) -> bool {
        self.carrier.as_mut().is_some_and(|c| !c.ready())
    }

    /// What happened since the last call.
    pub(super) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Takes what came, and does what the time calls for.
    pub(super) fn turn(&mut self) {
        if let Err(error) = self.try_turn() {
            tracing::error!(%error, "the link of this program ends");
            self.stop();
        }
    }

    fn try_turn(&mut self) -> Result<(), LinkError> {
        let Some(carrier) = &mut self.carrier else {
            return Ok(());
        };
        let mut way = pump::Way {
            radio: &mut self.radio,
            carrier,
            peers: &self.peers,
        };
        let more = way.receive(&mut self.inbox, &mut self.buffer)?;
        let now = clock::monotonic();
        if self.radio.next_timeout().is_some_and(|t| t <= now) {
            self.radio.handle_timeout(now, &mut self.inbox);
        }
        while let Some(done) = self.coder.done() {
            self.radio.job_done(now, done, &mut self.inbox);
        }
        self.digest(now);
        self.try_send()?;
        if more {
            self.due = Some(Time::ZERO);
        }
        Ok(())
    }

    /// Sends what is due.
    pub(super) fn send(&mut self) {
        if let Err(error) = self.try_send() {
            tracing::error!(%error, "the link of this program ends");
            self.stop();
        }
    }

    fn try_send(&mut self) -> Result<(), LinkError> {
        let Some(carrier) = &mut self.carrier else {
            return Ok(());
        };
        let mut way = pump::Way {
            radio: &mut self.radio,
            carrier,
            peers: &self.peers,
        };
        let slot = way.transmit(&mut self.datagram)?;
        let service = carrier.service()?.map(|d| clock::monotonic() + d);
        while let Some(job) = self.radio.next_job() {
            self.coder.take(job);
        }
        let calls = self.calls.values().map(|c| c.deadline).min();
        let times = [slot, self.radio.next_timeout(), service, calls];
        self.due = times.into_iter().flatten().min();
        Ok(())
    }

    /// Whether the thread would look too late, or for too little.
    pub(super) fn is_due_earlier(&mut self) -> bool {
        let sleeps_longer = match (self.due, self.asleep_until) {
            (Some(due), Some(until)) => due < until,
            (due, None) => due.is_some(),
            (None, Some(_)) => false,
        };
        let earlier = sleeps_longer || self.is_held_up();
        if sleeps_longer {
            self.asleep_until = self.due;
        }
        earlier
    }

    /// Until when the thread sleeps, and whether also until the carrier takes more; none when it is over.
    pub(super) fn sleep(&mut self, stays_awake: bool) -> Option<(Option<Time>, bool)> {
        self.carrier.as_ref()?;
        self.asleep_until = match stays_awake {
            true => Some(Time::ZERO),
            false => self.due,
        };
        Some((self.due, self.is_held_up()))
    }

    /// Ends all; peers are told what is served no more, if that gets through.
    pub(super) fn stop(&mut self) {
        for line in std::mem::take(&mut self.lines).into_values() {
            let _ = self.radio.withdraw_topic(clock::monotonic(), line);
        }
        let _ = self.try_send();
        self.carrier = None;
        for (_, call) in std::mem::take(&mut self.calls) {
            let service = self.here(call.of);
            self.events
                .push(Event::Answered(call.done, Err(CallError::ServerDied { service })));
        }
        for (_, used) in std::mem::take(&mut self.uses) {
            if used.is_up {
                self.events.push(Event::Offered(used.here, false));
            }
        }
    }

    fn peer(&self, peer: PeerId) -> Option<&PeerConfig> {
        self.config.peers.get(peer.0 as usize)
    }

    fn peer_name(&self, peer: PeerId) -> String {
        self.peer(peer).map(|p| p.name.clone()).unwrap_or_default()
    }

    fn here(&self, of: Of) -> String {
        let name = &self.config.services[of.service].name;
        self.peer(of.peer)
            .map_or_else(|| name.clone(), |p| names::service_on_bus(p, of.role, name))
    }

    fn stamp(&mut self, now: Time) -> Time {
        self.last_stamp = now.max(Time(self.last_stamp.0 + 1));
        self.last_stamp
    }

    pub(super) fn is_offered(&self, service: &str) -> bool {
        self.uses.values().any(|u| u.is_up && u.here == service)
    }

    pub(super) fn serve(&mut self, now: Time, kind: ServiceType) -> Result<(), LinkError> {
        let serves = |name: &str| name == kind.service;
        let found = self.config.services.iter().position(|s| serves(&s.name));
        let service = found
            .filter(|i| self.config.services[*i].is_for_serving())
            .ok_or_else(|| {
                LinkError::Filter(format!(
                    "service {}: list it under `services` of the link's configuration, with `role: serve`",
                    kind.service
                ))
            })?;
        self.inbox.served.insert(kind.service.clone(), kind.clone());
        for peer in self.peers.clone() {
            let of = Of {
                peer,
                service,
                role: ServiceRole::Serve,
            };
            let config = line_config(&self.config.services[service], REPLY, &kind, proto::MAX_DEPTH);
            if !self.lines.contains_key(&of) {
                let line = self.radio.add_topic(now, peer, config)?;
                self.lines.insert(of, line);
            }
        }
        Ok(())
    }

    pub(super) fn publish(
        &mut self,
        now: Time,
        kind: &TopicType,
        control: &[u8],
        parts: &[&[u8]],
    ) -> Result<(), LinkError> {
        if !self.topics.contains_key(&kind.topic) {
            let mut lines = Vec::new();
            for (peer, _, mut topic) in names::sent_as(&self.config, &kind.topic) {
                let to = &self.config.peers[peer];
                if to.address.is_none() || !may(to.allow.as_ref(), Right::Subscribe, &topic.name) {
                    continue;
                }
                if let Some(priority) = asked_priority(&kind.definition).filter(|_| topic.publisher_priority)
                {
                    topic.priority = priority;
                }
                let announced = proto::TopicConfig {
                    type_hash: kind.type_hash,
                    definition: kind.definition.to_string(),
                    ..topic.announced(kind.type_name.clone())
                };
                lines.push(self.radio.add_topic(now, PeerId(peer as u32), announced)?);
            }
            if lines.is_empty() {
                tracing::warn!(
                    topic = kind.topic,
                    "sent to nobody: the link's configuration names no peer for it"
                );
            }
            self.topics.insert(kind.topic.clone(), lines);
        }
        let Some(body) = body(&[], (control, parts)) else {
            return Err(LinkError::Filter(format!(
                "{}: the message is too long",
                kind.topic
            )));
        };
        let stamp = clock::realtime();
        for line in self.topics.get(&kind.topic).into_iter().flatten() {
            // What the radio refuses it counts.
            let _ = self.radio.offer(now, *line, Message::new(body.clone(), stamp));
        }
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        now: Time,
        service: &str,
        content: (&[u8], &[&[u8]]),
        timeout: Duration,
        done: Answered,
    ) {
        let fails = |done, error| Event::Answered(done, Err(error));
        let Some((of, line)) = self
            .uses
            .iter()
            .find(|(_, u)| u.is_up && u.here == service)
            .map(|(of, u)| (*of, u.line))
        else {
            let (service, refusal) = (service.to_owned(), String::new());
            return self
                .events
                .push(fails(done, CallError::NoServer { service, refusal }));
        };
        let setting = &self.config.services[of.service];
        let outstanding = self.calls.values().filter(|c| c.of == of).count();
        if outstanding >= usize::from(setting.depth) || self.calls.len() >= MAX_OPEN {
            let (service, outstanding) = (service.to_owned(), outstanding.max(1));
            return self
                .events
                .push(fails(done, CallError::TooMany { service, outstanding }));
        }
        let left = timeout.min(setting.timeout()).min(MAX_LEFT);
        self.last_call += 1;
        let header = Header {
            call: CallId {
                run: self.run,
                number: self.last_call,
            },
            kind: Kind::Request(left),
        };
        let Some(body) = body(&header.encode(), content) else {
            let text = "the request is too long".to_owned();
            return self.events.push(fails(done, CallError::Rejected { text }));
        };
        let (stamp, deadline) = (self.stamp(now), now + left);
        let message = Message {
            expires: Some(deadline),
            ..Message::new(body, stamp)
        };
        let call = Call {
            of,
            line,
            stamp,
            deadline,
            timeout,
            done,
        };
        self.calls.insert(self.last_call, call);
        if let Err(reason) = self.radio.offer(now, line, message) {
            self.lose(now, self.last_call, reason);
        }
    }

    /// A call has no answer, since its request is lost.
    fn lose(&mut self, now: Time, number: u64, reason: DropReason) {
        let Some(call) = self.calls.get(&number) else {
            return;
        };
        let (peer, name) = (
            self.peer_name(call.of.peer),
            &self.config.services[call.of.service].name,
        );
        let (failure, text) = lost_request(reason, self.radio.is_refused(call.line), &peer, name);
        self.fail(now, number, failure, text);
    }

    fn fail(&mut self, now: Time, number: u64, failure: Failure, text: String) {
        let why = match failure {
            Failure::TimedOut => DropReason::Expired,
            _ => DropReason::PeerLost,
        };
        let Some(call) = self.calls.remove(&number) else {
            return;
        };
        let _ = self.radio.end_message(now, call.line, call.stamp, Err(why));
        let service = self.here(call.of);
        let error = match failure {
            Failure::TimedOut => CallError::Timeout {
                service,
                waited: call.timeout,
            },
            Failure::ServerDied => CallError::ServerDied { service },
            _ => CallError::Rejected { text },
        };
        self.events.push(Event::Answered(call.done, Err(error)));
    }

    /// Answers a call of a peer.
    pub(super) fn respond(
        &mut self,
        now: Time,
        answer_to: AnswerTo,
        outcome: Outcome,
        content: (&[u8], &[&[u8]]),
    ) -> Result<(), DropReason> {
        let (of, ..) = answer_to;
        if let Some(open) = self.open.get_mut(&of) {
            *open = open.saturating_sub(1);
        }
        let sent = self.offer(now, answer_to, outcome, content);
        if let Err(reason) = sent
            && outcome == Outcome::Answered
        {
            let text = lost_response(reason).as_bytes();
            let _ = self.offer(now, answer_to, Outcome::Failed, (text, &[]));
        }
        sent
    }

    fn offer(
        &mut self,
        now: Time,
        answer_to: AnswerTo,
        outcome: Outcome,
        content: (&[u8], &[&[u8]]),
    ) -> Result<(), DropReason> {
        let (of, call, deadline) = answer_to;
        if deadline <= now {
            return Err(DropReason::Expired);
        }
        let line = *self.lines.get(&of).ok_or(DropReason::Unannounced)?;
        let kind = Kind::Reply(outcome);
        let body = body(&Header { call, kind }.encode(), content).ok_or(DropReason::TooLarge)?;
        let stamp = self.stamp(now);
        let message = Message {
            expires: Some(deadline),
            ..Message::new(body, stamp)
        };
        self.radio.offer(now, line, message)?;
        if outcome == Outcome::Answered {
            self.sent.push_back((stamp, answer_to));
            self.sent.truncate(MOST_SENT);
        }
        Ok(())
    }

    /// Turns what the radio told into events and answers.
    fn digest(&mut self, now: Time) {
        for news in std::mem::take(&mut self.inbox.news) {
            self.hear(now, news);
        }
        for came in std::mem::take(&mut self.inbox.came) {
            match came.route {
                Route::Topic(name) => self.events.push(Event::Message(name, came.bytes, came.geometry)),
                Route::Requests(of) => self.asked(now, of, came),
                Route::Replies(of) => self.answered(now, of, came),
            }
        }
        while let Some(outcome) = self.radio.next_outcome() {
            let answer = self.sent.iter().position(|(stamp, _)| *stamp == outcome.stamp);
            let answer = answer.and_then(|i| self.sent.remove(i));
            let End::Lost(reason) = outcome.end else { continue };
            let call = self.calls.iter().find(|(_, c)| c.stamp == outcome.stamp);
            if let Some(number) = call.map(|(n, _)| *n) {
                self.lose(now, number, reason);
            }
            if let Some((_, answer_to)) = answer.filter(|_| reason != DropReason::PeerLost) {
                let text = lost_response(reason).as_bytes();
                let _ = self.offer(now, answer_to, Outcome::Failed, (text, &[]));
            }
        }
        let late = self.calls.iter().filter(|(_, c)| c.deadline <= now);
        for number in late.map(|(n, _)| *n).collect::<Vec<_>>() {
            self.lose(now, number, DropReason::Expired);
        }
    }

    fn hear(&mut self, now: Time, news: News) {
        match news {
            News::Offered(of, kind) => {
                if self.uses.get(&of).is_some_and(|u| u.kind == kind && u.is_up) {
                    return;
                }
                self.end(now, of);
                let setting = &self.config.services[of.service];
                let config = line_config(setting, REQUEST, &kind, u32::from(setting.depth));
                match self.radio.add_topic(now, of.peer, config) {
                    Ok(line) => {
                        let here = self.here(of);
                        self.events.push(Event::Offered(here.clone(), true));
                        let used = Use {
                            here,
                            kind,
                            line,
                            is_up: true,
                        };
                        self.uses.insert(of, used);
                    }
                    Err(error) => tracing::error!(%error, "a service of a peer cannot be called"),
                }
            }
            News::Withdrawn(of) => self.end(now, of),
            News::Lost(peer) => self.lost(now, peer),
            News::Found(peer) => {
                let of_it = self.uses.iter_mut().filter(|(of, u)| of.peer == peer && !u.is_up);
                for (_, used) in of_it {
                    used.is_up = true;
                    self.events.push(Event::Offered(used.here.clone(), true));
                }
            }
            News::Renewed(peer) => {
                let of_it = self.uses.keys().filter(|of| of.peer == peer);
                for of in of_it.copied().collect::<Vec<_>>() {
                    self.end(now, of);
                }
            }
        }
    }

    /// A peer offers a service no more.
    fn end(&mut self, now: Time, of: Of) {
        let Some(used) = self.uses.remove(&of) else { return };
        let open = self.calls.iter().filter(|(_, c)| c.of == of);
        for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
            self.fail(now, number, Failure::ServerDied, String::new());
        }
        let _ = self.radio.withdraw_topic(now, used.line);
        if used.is_up {
            self.events.push(Event::Offered(used.here, false));
        }
    }

    /// A peer is not heard any more.
    fn lost(&mut self, now: Time, peer: PeerId) {
        let open = self.calls.iter().filter(|(_, c)| c.of.peer == peer);
        for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
            let name = self.peer_name(peer);
            let text = crate::services::lost_link(&name);
            self.fail(now, number, Failure::Unreachable, text);
        }
        for (_, used) in self.uses.iter_mut().filter(|(of, u)| of.peer == peer && u.is_up) {
            used.is_up = false;
            self.events.push(Event::Offered(used.here.clone(), false));
        }
    }

    /// A request came.
    fn asked(&mut self, now: Time, of: Of, came: Came) {
        let Some(Header {
            call,
            kind: Kind::Request(left),
        }) = header(&came)
        else {
            return;
        };
        if !self.seen.entry(of.peer).or_default().is_new(call) {
            return;
        }
        let setting = &self.config.services[of.service];
        let (depth, limit) = (usize::from(setting.depth), setting.timeout());
        let left = left.min(limit).min(MAX_LEFT);
        let left = left.saturating_sub(age(&self.radio, of.peer, came.at, came.stamp));
        let answer_to = (of, call, came.at + left);
        if answer_to.2 <= now {
            // Its caller has given it up.
            return;
        }
        let open = self.open.entry(of).or_default();
        if *open >= depth {
            let text = format!("{open} calls are open there, as many as may be; call again later");
            let _ = self.offer(now, answer_to, Outcome::Busy, (text.as_bytes(), &[]));
            return;
        }
        *open += 1;
        let here = self.here(of);
        self.events
            .push(Event::Request(here, came.bytes, came.geometry, answer_to));
    }

    /// A reply came.
    fn answered(&mut self, now: Time, of: Of, came: Came) {
        let Some(Header {
            call,
            kind: Kind::Reply(outcome),
        }) = header(&came)
        else {
            return;
        };
        // Only the host that was asked may answer.
        let is_ours = |c: &Call| c.of == of && call.run == self.run;
        if !self.calls.get(&call.number).is_some_and(is_ours) {
            return;
        }
        if outcome != Outcome::Answered {
            let control = &came.bytes[HEAD..came.geometry.control_len() as usize];
            let text =
                String::from_utf8_lossy(&control[..control.len().min(bus::MAX_REJECTION)]).into_owned();
            let (peer, name) = (self.peer_name(of.peer), &self.config.services[of.service].name);
            let (failure, text) = outcome_text(outcome, text, &peer, name);
            return self.fail(now, call.number, failure, text);
        }
        if let Some(call) = self.calls.remove(&call.number) {
            let _ = self.radio.end_message(now, call.line, call.stamp, Ok(()));
            self.events
                .push(Event::Answered(call.done, Ok((came.bytes, came.geometry))));
        }
    }
}

/// The header of a service's message, if it has one.
fn header(came: &Came) -> Option<Header> {
    if (came.geometry.control_len() as usize) < LEN {
        return None;
    }
    let head = came.bytes.first_chunk::<LEN>()?;
    Header::parse(head)
        .inspect_err(|error| tracing::debug!(%error, "a message of a service is none"))
        .ok()
}

/// A message with so many bytes in front of its control part; none if it is too long.
fn body(head: &[u8], (control, parts): (&[u8], &[&[u8]])) -> Option<Outgoing> {
    let len = |n: usize| u32::try_from(n).ok();
    let lens: Option<Vec<u32>> = parts.iter().map(|p| len(p.len())).collect();
    let geometry = Geometry::new(len(head.len() + control.len())?, &lens?).ok()?;
    let mut bytes = Vec::with_capacity(geometry.total_len() as usize);
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(control);
    parts.iter().for_each(|p| bytes.extend_from_slice(p));
    Some(Outgoing::flat(bytes, geometry))
}
