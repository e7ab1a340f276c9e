//! What a program's own link does, without threads: they hold it one at a time, and hand up what happened without it.

mod calling;
mod serving;

use super::inbox::{Came, Inbox, Route};
use super::{AnswerTo, Answered, Event};
use crate::carrier::{Carrier, open_carrier};
use crate::coder::Coder;
use crate::config::{Config, PeerConfig};
use crate::daemon::{LinkError, asked_priority, radio, session};
use crate::names;
use crate::outgoing::Outgoing;
use crate::pump;
use crate::reach::Reach;
use crate::rules::{Right, may};
use crate::services::header::{Header, LEN};
use crate::services::seen::Seen;
use crate::services::{Of, Outcome, lost_response};
use bus::{CallError, ServiceType, TopicType};
use proto::{End, Geometry, Message, PeerId, Radio, TopicId};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::thread::ThreadId;
use std::time::Duration;

/// Of a service's message, in front of the control part.
pub(super) const HEAD: usize = LEN;

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
    /// Answers under way, at most [`MOST_UNDER_WAY`](crate::services::MOST_UNDER_WAY) to one service's callers on one peer.
    sent: VecDeque<(Time, AnswerTo)>,
    uses: BTreeMap<Of, Use>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    /// Of the topics that this program sends, by their names here.
    topics: BTreeMap<String, Vec<TopicId>>,
    events: Vec<Event>,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
    /// When whoever receives has to look again, and when it will.
    due: Option<Time>,
    asleep_until: Option<Time>,
    /// This one, which waits for something, receives instead of the link's thread.
    /// Who does not answer, and when that is looked at next.
    reach: Reach,
    next_look: Time,
    borrowed: Option<ThreadId>,
    /// When that began or ended last.
    lent: Time,
    /// The link's thread looks by itself whether it is lent still.
    dozes: bool,
}

/// What the link's own thread does while others receive.
pub(super) enum Rest {
    /// Until it is told to go on.
    Told,
    /// For so long, then it looks again.
    For(Duration),
}

/// So often it is looked who does not answer.
const LOOK: Duration = Duration::from_secs(1);
/// Who commands one thing after another waits again at once: the link's thread does not take its turn in between, for which two processors
/// would have to change hands twice a command.
const REST: Duration = Duration::from_millis(1);

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
            reach: Reach::new(now),
            next_look: Time::ZERO,
            asleep_until: None,
            borrowed: None,
            lent: Time::ZERO,
            dozes: false,
        })
    }

    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.carrier.as_ref().map(|c| c.readable())
    }

    /// Whether the link's thread rests, and how.
    pub(super) fn rest(&mut self, now: Time) -> Option<Rest> {
        let since = now.since(self.lent);
        let due = self.due.map_or(REST, |due| due.since(now));
        let left = REST.saturating_sub(since).min(due);
        let rest = match self.borrowed {
            _ if self.carrier.is_none() => None,
            Some(_) if since < REST => Some(Rest::For(REST)),
            Some(_) => Some(Rest::Told),
            None if !left.is_zero() => Some(Rest::For(left)),
            None => None,
        };
        self.dozes = matches!(rest, Some(Rest::For(_)));
        rest
    }

    /// Whether another thread than this one receives instead of the link's.
    pub(super) fn is_lent(&self) -> bool {
        self.borrowed.is_some_and(|by| by != std::thread::current().id())
    }

    /// Lets another thread receive; false if one does, or it is over.
    pub(super) fn borrow(&mut self) -> bool {
        let may = self.borrowed.is_none() && self.carrier.is_some();
        if may {
            self.borrowed = Some(std::thread::current().id());
            self.lent = clock::monotonic();
        }
        may
    }

    /// Whether somebody has to be told.
    pub(super) fn give_back(&mut self) -> bool {
        let now = clock::monotonic();
        // Who waited long does so again no sooner than the thread has had its turn.
        let was_short = now.since(self.lent) < REST;
        self.borrowed = None;
        self.lent = if was_short { now } else { Time::ZERO };
        !(self.dozes && was_short) || self.carrier.is_none()
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
        let done = self.try_turn();
        self.go_on(done);
    }

    /// Sends what is due.
    pub(super) fn send(&mut self) {
        let done = self.try_send();
        self.go_on(done);
    }

    fn go_on(&mut self, done: Result<(), LinkError>) {
        if let Err(error) = done {
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
        if let Some(carrier) = self.carrier.as_ref().filter(|_| now >= self.next_look) {
            let peers = (&self.config, &self.peers[..]);
            self.reach.look_at(now, peers, &self.radio, carrier);
            self.next_look = now + LOOK;
        }
        self.try_send()?;
        if more {
            self.due = Some(Time::ZERO);
        }
        Ok(())
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
        let service = way.carrier.service()?.map(|d| clock::monotonic() + d);
        way.follow_paths();
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

    /// Makes a topic known to the peers that it is for.
    pub(super) fn announce(&mut self, now: Time, kind: &TopicType) -> Result<(), LinkError> {
        if self.topics.contains_key(&kind.topic) {
            return Ok(());
        }
        let mut lines = Vec::new();
        for (peer, _, mut topic) in names::sent_as(&self.config, &kind.topic) {
            let to = &self.config.peers[peer];
            if to.address.is_none() || !may(to.allow.as_ref(), Right::Subscribe, &topic.name) {
                continue;
            }
            if let Some(priority) = asked_priority(&kind.definition).filter(|_| topic.publisher_priority) {
                topic.priority = priority;
            }
            let announced = proto::TopicConfig {
                type_hash: kind.type_hash,
                flavour: names::announced(kind.flavour),
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
        Ok(())
    }

    pub(super) fn publish(
        &mut self,
        now: Time,
        kind: &TopicType,
        control: &[u8],
        parts: &[&[u8]],
    ) -> Result<(), LinkError> {
        self.announce(now, kind)?;
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
