//! Services of this program for its peers.

use super::{Engine, MOST_SENT, body, header};
use crate::daemon::LinkError;
use crate::direct::inbox::Came;
use crate::direct::{AnswerTo, Event};
use crate::services::header::{Header, Kind, MAX_LEFT};
use crate::services::{Of, Outcome, REPLY, age, line_config, lost_response};
use crate::status::ServiceRole;
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
            let config = line_config(&self.config.services[service], REPLY, &kind, proto::MAX_DEPTH);
            if !self.lines.contains_key(&of) {
                let line = self.radio.add_topic(now, peer, config)?;
                self.lines.insert(of, line);
            }
        }
        Ok(())
    }

    /// Answers a call of a peer.
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

    /// A request came.
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
        let (here, from) = (
            self.here(of),
            self.config.peers[of.peer.0 as usize].name.as_str().into(),
        );
        self.events
            .push(Event::Request(here, from, came.bytes, came.geometry, answer_to));
    }
}
