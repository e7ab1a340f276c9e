//! Services of this program for its peers.

use super::{Engine, body, header};
use crate::config::ServiceRole;
use crate::direct::inbox::Came;
use crate::direct::{AnswerTo, Event};
use crate::error::LinkError;
use crate::names::REPLY;
use crate::services::header::{Header, Kind, MAX_LEFT};
use crate::services::{MOST_UNDER_WAY, Of, Outcome, age, lost_response, path_config};
use bus::ServiceType;
use proto::Message;
use stats::{DropReason, Time};

impl Engine {
    pub(in crate::direct) fn serve(&mut self, now: Time, kind: ServiceType) -> Result<(), LinkError> {
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
            let config = path_config(&self.config.services[service], REPLY, &kind, proto::MAX_DEPTH);
            if !self.lines.contains_key(&of) {
                let line = self.radio.add_topic(now, peer, config)?;
                self.lines.insert(of, line);
            }
        }
        Ok(())
    }

    /// Answers a peer's call.
    pub(in crate::direct) fn respond(
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

    pub(super) fn offer(
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
        self.sent.retain(|(_, (.., deadline))| *deadline > now);
        let is_answer = outcome == Outcome::Answered;
        if is_answer && self.sent.iter().filter(|(_, (to, ..))| *to == of).count() >= MOST_UNDER_WAY {
            return Err(DropReason::Overflow);
        }
        let kind = Kind::Reply(outcome);
        let body = body(&Header { call, kind }.encode(), content).ok_or(DropReason::TooLarge)?;
        let stamp = self.stamp(now);
        let message = Message {
            expires: Some(deadline),
            ..Message::new(body, stamp)
        };
        self.radio.offer(now, line, message)?;
        if is_answer {
            self.sent.push_back((stamp, answer_to));
        }
        Ok(())
    }

    /// A request arrived.
    pub(super) fn asked(&mut self, now: Time, of: Of, came: Came) {
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
            // Its caller has given up.
            return;
        }
        let open = self.open.entry(of).or_default();
        if *open >= depth {
            let text = format!("{open} calls are open there, the limit; call again later");
            let _ = self.offer(now, answer_to, Outcome::Busy, (text.as_bytes(), &[]));
            return;
        }
        *open += 1;
        let (here, from) = (
            self.here(of),
            self.config.peers[of.peer.0 as usize].name.as_str().into(),
        );
        self.events
            .push(Event::Request(here, from, came.bytes, came.geometry, answer_to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::services::header::CallId;

    fn engine(host: &str, role: &str, port: u16, peer: &str, at: u16) -> Engine {
        let text = format!(
            "host: {host}\nradio: {{carrier: udp, bind: '127.0.0.1:{port}', rate: 6Mbit/s}}\n\
             peers: [{{name: {peer}, address: '127.0.0.1:{at}'}}]\nservices: [{{name: /s, role: {role}}}]\n"
        );
        Engine::open(Config::parse(&text).expect("a configuration"), || ()).expect("a link")
    }

    #[test]
    fn an_answer_beyond_the_bound_is_refused_and_none_that_is_under_way_is_forgotten() {
        let free = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let [one, two] = free.map(|s| s.local_addr().expect("an address").port());
        let mut engine = engine("robot", "serve", one, "base", two);
        let mut peer = super::tests::engine("base", "call", two, "robot", one);
        let kind = ServiceType {
            service: "/s".into(),
            type_name: "std_srvs/Empty".into(),
            type_hash: [7; 16],
            flavour: Default::default(),
            definition: "---".into(),
        };
        engine.serve(clock::monotonic(), kind).expect("is served");
        let of = Of {
            peer: engine.peers[0],
            service: 0,
            role: ServiceRole::Serve,
        };
        let answer = |engine: &mut Engine, now: Time, number: usize| {
            let call = CallId {
                run: 1,
                number: number as u64 + 1,
            };
            let to = (of, call, now + std::time::Duration::from_secs(5));
            engine.respond(now, to, Outcome::Answered, (&[1, 2, 3], &[]))
        };
        // No reply can be sent before the two have met.
        let begun = clock::monotonic();
        while let Err(reason) = answer(&mut engine, clock::monotonic(), 0) {
            assert!(clock::monotonic().since(begun).as_secs() < 20, "{reason:?}");
            engine.turn();
            peer.turn();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // From here on the peer acknowledges nothing, so that all replies stay in progress.
        let now = clock::monotonic();
        for number in 1..MOST_UNDER_WAY {
            answer(&mut engine, now, number).expect("there is room");
        }
        let first: Vec<_> = engine.sent.iter().map(|(_, (_, call, _))| call.number).collect();
        assert_eq!(
            answer(&mut engine, now, MOST_UNDER_WAY),
            Err(DropReason::Overflow)
        );
        let then: Vec<_> = engine.sent.iter().map(|(_, (_, call, _))| call.number).collect();
        assert_eq!((first.len(), first), (MOST_UNDER_WAY, then));
        // Replies whose callers no longer wait make room.
        let later = now + std::time::Duration::from_secs(6);
        answer(&mut engine, later, 5000).expect("there is room again");
        assert_eq!(engine.sent.len(), 1);
    }
}
