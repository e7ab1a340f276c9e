//! The logic of a program's own link, without threads. One thread at a time holds it, and delivers the
//! resulting events without it.

mod calls;

use super::event::Event;
use super::inbox::Inbox;
use crate::carrier::{Carrier, open_carrier};
use crate::config::{self, Config};
use crate::daemon::asked_priority;
use crate::engine::calls::EndpointId;
use crate::error::LinkError;
use crate::flows::Flows;
use crate::names;
use crate::outgoing::Outgoing;
use crate::pump::Pump;
use crate::rules::{Right, may};
use bus::TopicType;
use proto::{Message, TopicId};
use stats::Time;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::thread::ThreadId;
use std::time::Duration;

pub(super) struct Engine {
    config: Config,
    pump: Pump,
    /// None once the link ends, so that its address is free.
    carrier: Option<Box<dyn Carrier>>,
    inbox: Inbox,
    flows: Flows,
    /// The peers' services that can be called, by their names here.
    offered: BTreeMap<String, EndpointId>,
    /// The radio topics of each topic that this program sends, by its name here.
    topics: BTreeMap<String, Vec<TopicId>>,
    events: Vec<Event>,
    /// When the receiving thread has to run again, and when it will.
    due: Option<Time>,
    asleep_until: Option<Time>,
    /// When to check next which peers do not answer.
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

impl Engine {
    pub(super) fn open(config: Config, wake: impl Fn() + Send + 'static) -> Result<Self, LinkError> {
        let carrier = open_carrier(&config)?;
        let pump = Pump::start(&config, &carrier, false, wake)?;
        Ok(Engine {
            inbox: Inbox::new(&config, pump.run),
            flows: Flows::new(&config, false, pump.run),
            config,
            pump,
            carrier: Some(carrier),
            offered: BTreeMap::new(),
            topics: BTreeMap::new(),
            events: Vec::new(),
            due: None,
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
        let more = self.pump.hear(carrier, &mut self.inbox)?;
        let now = clock::monotonic();
        self.with_calls(now, |calls, air| {
            calls.hear(air);
            calls.run(air);
        });
        let messages = self.inbox.messages.drain(..);
        self.events
            .extend(messages.map(|(topic, received)| Event::Message(topic, received)));
        if let Some(carrier) = self.carrier.as_ref().filter(|_| now >= self.next_look) {
            self.pump.look(now, &self.config, carrier);
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
        let next = self.pump.speak(carrier)?;
        let times = [next, self.inbox.calls.next_timeout()];
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
        self.with_calls(clock::monotonic(), |calls, air| calls.stop(air));
        let _ = self.try_send();
        self.carrier = None;
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
            let neighbour = self.pump.peers.get(peer).copied();
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
            lines.push(self.pump.radio.add_topic(now, to, announced)?);
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
        let Ok(body) = Outgoing::with_head(&[], control, parts) else {
            return Err(LinkError::Filter(format!(
                "{}: the message is too long",
                kind.topic
            )));
        };
        let stamp = clock::realtime();
        for line in self.topics.get(&kind.topic).into_iter().flatten() {
            // The radio counts the messages that it refuses.
            let _ = self
                .pump
                .radio
                .offer(now, *line, Message::new(body.clone(), stamp));
        }
        Ok(())
    }
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
            if let Some(Event::Message(topic, received)) = base.events().pop() {
                break (topic, received.bytes);
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(came, ("/pose".into(), b"here".to_vec()));
    }
}
