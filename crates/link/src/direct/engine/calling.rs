//! Calls of this program to its peers' services.

use super::{Call, Engine, HEAD, Use, body, header};
use crate::direct::inbox::{Came, News};
use crate::direct::{Answered, Event};
use crate::names::REQUEST;
use crate::services::header::{CallId, Header, Kind, MAX_LEFT};
use crate::services::{Failure, MAX_OPEN, Of, Outcome, lost_request, outcome_text, path_config};
use bus::CallError;
use proto::{Message, PeerId};
use stats::{DropReason, Time};
use std::time::Duration;

impl Engine {
    pub(in crate::direct) fn is_offered(&self, service: &str) -> bool {
        self.uses.values().any(|u| u.is_up && u.here == service)
    }

    pub(in crate::direct) fn call(
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
            let text = "the request is too large for the link: send less at a time".to_owned();
            return self.events.push(fails(done, Failure::Dropped.rejection(text)));
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

    /// Ends a call without a reply, since its request is lost.
    pub(super) fn lose(&mut self, now: Time, number: u64, reason: DropReason) {
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

    pub(super) fn fail(&mut self, now: Time, number: u64, failure: Failure, text: String) {
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
            Failure::Unserved => CallError::NoServer {
                service,
                refusal: String::new(),
            },
            other => other.rejection(text),
        };
        self.events.push(Event::Answered(call.done, Err(error)));
    }

    pub(super) fn hear(&mut self, now: Time, news: News) {
        match news {
            News::Offered(of, kind) => {
                if self.uses.get(&of).is_some_and(|u| u.kind == kind && u.is_up) {
                    return;
                }
                self.end(now, of);
                let setting = &self.config.services[of.service];
                let config = path_config(setting, REQUEST, &kind, u32::from(setting.depth));
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
                    Err(error) => tracing::error!(%error, "cannot call a peer's service"),
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

    /// A peer no longer offers a service.
    pub(super) fn end(&mut self, now: Time, of: Of) {
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

    /// The connection to a peer is lost.
    pub(super) fn lost(&mut self, now: Time, peer: PeerId) {
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

    /// A reply arrived.
    pub(super) fn answered(&mut self, now: Time, of: Of, came: Came) {
        let Some(Header {
            call,
            kind: Kind::Reply(outcome),
        }) = header(&came)
        else {
            return;
        };
        // Only the host that received the request may answer.
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
