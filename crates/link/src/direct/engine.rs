//! The logic of a program's own link, without threads. One thread at a time holds it, and delivers the
//! resulting events without it.

mod calling;
mod serving;

use super::inbox::{Came, Inbox, Route};
use super::{AnswerTo, Answered, Event};
use crate::carrier::{Carrier, open_carrier};
use crate::coder::Coder;
use crate::config::{self, Config, PeerConfig};
use crate::daemon::{asked_priority, radio, session};
use crate::error::LinkError;
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

/// Length of the header in front of the control part of a service's message.
pub(super) const HEAD: usize = LEN;

pub(super) struct Engine {
    config: Config,
    radio: Radio<Outgoing>,
    /// None once the link ends, so that its address is free.
    carrier: Option<Box<dyn Carrier>>,
    peers: Vec<PeerId>,
    inbox: Inbox,
    coder: Coder,
    run: u32,
    last_stamp: Time,
    /// Radio topics for replies.
    lines: BTreeMap<Of, TopicId>,
    seen: BTreeMap<PeerId, Seen>,
    /// Unanswered calls of peers.
    open: BTreeMap<Of, usize>,
    /// Replies in progress, at most [`MOST_UNDER_WAY`](crate::services::MOST_UNDER_WAY) to one service's
    /// callers on one peer.
    sent: VecDeque<(Time, AnswerTo)>,
    uses: BTreeMap<Of, Use>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    /// The radio topics of each topic that this program sends, by its name here.
    topics: BTreeMap<String, Vec<TopicId>>,
    events: Vec<Event>,
    datagram: Vec<u8>,
    buffer: Vec<u8>,
    /// When the receiving thread has to run again, and when it will.
    due: Option<Time>,
    asleep_until: Option<Time>,
    /// Which peers do not answer, and when to check next.
    reach: Reach,
    next_look: Time,
    /// The thread that receives in place of the link's own while it waits for something.
    borrowed: Option<ThreadId>,
    /// When that began or ended last.
    lent: Time,
    /// Whether the link's thread checks by itself whether another thread still receives.
    dozes: bool,
}

/// What the link's own thread does while another thread receives.
pub(super) enum Rest {
    /// Waits until it is notified.
    Notified,
    /// Waits this long, then checks again.
    For(Duration),
}

/// Interval at which to check for peers that do not answer.
const LOOK: Duration = Duration::from_secs(1);
/// A thread that sends one command after another soon waits again, so for this long the link's thread does
/// not take over in between: otherwise the receiver role would change processors twice per command.
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
        let (radio, peers) = radio(&config, &carrier, run, false, now)?;
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

    /// Returns whether the link's thread rests, and how.
    pub(super) fn rest(&mut self, now: Time) -> Option<Rest> {
        let since = now.since(self.lent);
        let due = self.due.map_or(REST, |due| due.since(now));
        let left = REST.saturating_sub(since).min(due);
        let rest = match self.borrowed {
            _ if self.carrier.is_none() => None,
            Some(_) if since < REST => Some(Rest::For(REST)),
            Some(_) => Some(Rest::Notified),
            None if !left.is_zero() => Some(Rest::For(left)),
            None => None,
        };
        self.dozes = matches!(rest, Some(Rest::For(_)));
        rest
    }

    /// Returns whether a thread other than the calling one receives in place of the link's.
    pub(super) fn is_lent(&self) -> bool {
        self.borrowed.is_some_and(|by| by != std::thread::current().id())
    }

    /// Makes the calling thread the receiver. Returns false if another one is, or the link has ended.
    pub(super) fn borrow(&mut self) -> bool {
        let may = self.borrowed.is_none() && self.carrier.is_some();
        if may {
            self.borrowed = Some(std::thread::current().id());
            self.lent = clock::monotonic();
        }
        may
    }

    /// Ends the borrowing. Returns whether to notify the link's thread.
    pub(super) fn give_back(&mut self) -> bool {
        let now = clock::monotonic();
        // After a long wait, a thread cannot borrow again before the link's thread has had its turn.
        let was_short = now.since(self.lent) < REST;
        self.borrowed = None;
        self.lent = if was_short { now } else { Time::ZERO };
        !(self.dozes && was_short) || self.carrier.is_none()
    }

    /// Returns whether it waits for the carrier to accept more.
    fn is_held_up(&mut self) -> bool {
        self.carrier.as_mut().is_some_and(|c| !c.ready())
    }

    /// The events since the last call.
    pub(super) fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Receives datagrams and handles due timers.
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
            tracing::error!(%error, "this program's link ends");
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

    /// Returns whether the sleeping thread would wake too late, or does not wait for everything that it has to.
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

    /// Until when the thread sleeps, and whether it also waits for the carrier to accept more; none after the
    /// end.
    pub(super) fn sleep(&mut self, stays_awake: bool) -> Option<(Option<Time>, bool)> {
        self.carrier.as_ref()?;
        self.asleep_until = match stays_awake {
            true => Some(Time::ZERO),
            false => self.due,
        };
        Some((self.due, self.is_held_up()))
    }

    /// Ends everything. Withdraws services at peers, if the datagrams get through.
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
            .map_or_else(|| name.clone(), |p| config::service_on_bus(p, of.role, name))
    }

    fn stamp(&mut self, now: Time) -> Time {
        self.last_stamp = now.max(Time(self.last_stamp.0 + 1));
        self.last_stamp
    }

    /// Announces a topic to its receivers.
    pub(super) fn announce(&mut self, now: Time, kind: &TopicType) -> Result<(), LinkError> {
        if self.topics.contains_key(&kind.topic) {
            return Ok(());
        }
        let mut lines = Vec::new();
        for (peer, _, mut topic) in config::sent_as(&self.config, &kind.topic) {
            let allow = self.config.peers[peer].allow.as_ref();
            // Only relays reach the other peers.
            let neighbour = self.peers.get(peer).copied();
            let Some(to) = neighbour.filter(|_| may(allow, Right::Subscribe, &topic.name)) else {
                continue;
            };
            if let Some(priority) = asked_priority(&kind.definition).filter(|_| topic.publisher_priority) {
                topic.priority = priority;
            }
            let announced = proto::TopicConfig {
                type_hash: kind.type_hash,
                flavour: names::announced(kind.flavour),
                definition: kind.definition.to_string(),
                ..topic.announced(kind.type_name.clone())
            };
            lines.push(self.radio.add_topic(now, to, announced)?);
        }
        if lines.is_empty() {
            tracing::warn!(
                topic = kind.topic,
                "no receivers: the link's configuration names no peer for it"
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
            // The radio counts the messages that it refuses.
            let _ = self.radio.offer(now, *line, Message::new(body.clone(), stamp));
        }
        Ok(())
    }

    /// Turns the radio's news into events and replies.
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

/// The header of a service's message, if it is valid.
fn header(came: &Came) -> Option<Header> {
    if (came.geometry.control_len() as usize) < LEN {
        return None;
    }
    let head = came.bytes.first_chunk::<LEN>()?;
    Header::parse(head)
        .inspect_err(|error| tracing::debug!(%error, "a service's message is malformed"))
        .ok()
}

/// A message with `head` in front of its control part; `None` if it is too long.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::serial::tests::{path, relay, terminal};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn topics_cross_a_serial_line_whose_peer_has_no_address() {
        let lines = [terminal(), terminal()];
        let engine = |host: &str, peer: &str, direction: &str, line: &_| {
            let line = path(line);
            let text = format!(
                "{{host: {host}, radio: {{carrier: serial, line: {}, baud: 921600}}, peers: [{{name: {peer}}}], topics: \
                 [{{name: /pose, direction: {direction}}}]}}",
                line.display()
            );
            Engine::open(Config::parse(&text).expect("a configuration"), || ()).expect("a link")
        };
        let mut robot = engine("robot", "base", "out", &lines[0]);
        let mut base = engine("base", "robot", "in", &lines[1]);
        let kind = TopicType {
            topic: "/pose".into(),
            type_name: "std_msgs/String".into(),
            type_hash: [7; 16],
            flavour: Default::default(),
            definition: "string data".into(),
        };
        let running = AtomicBool::new(false);
        let begun = clock::monotonic();
        let came = loop {
            let now = clock::monotonic();
            assert!(now.since(begun) < Duration::from_secs(20), "no message came");
            robot.publish(now, &kind, b"here", &[]).expect("is published");
            robot.turn();
            robot.send();
            base.turn();
            base.send();
            relay(&lines[0], &lines[1], &running);
            relay(&lines[1], &lines[0], &running);
            if let Some(Event::Message(topic, bytes, _)) = base.events().pop() {
                break (topic, bytes);
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(came, ("/pose".into(), b"here".to_vec()));
    }
}
