//! Drives the calls of a link for a program: it calls peers' services, and serves its own.

use super::Engine;
use crate::direct::event::{Answered, Caller, Event};
use crate::engine::calls::{Asked, Calls, Event as Decided, Failure, Ticket};
use crate::engine::path::Air;
use crate::engine::received::Received;
use crate::error::LinkError;
use crate::outgoing::Outgoing;
use bus::{CallError, ServiceType};
use stats::{DropReason, Time};
use std::time::Duration;

impl Engine {
    pub(in crate::direct) fn serve(&mut self, now: Time, kind: &ServiceType) -> Result<(), LinkError> {
        let mut services = self.config.services.iter();
        if !services.any(|s| s.name == kind.service && s.is_for_serving()) {
            return Err(LinkError::Filter(format!(
                "service {}: list it under `services` of the link's configuration, with `role: serve`",
                kind.service
            )));
        }
        let serve = |calls: &mut Calls<_, _>, air: &mut Air<'_>| {
            let mut endpoints = calls.serve(air, kind).into_iter();
            endpoints.try_for_each(|(endpoint, _)| calls.serving(air, endpoint, true))
        };
        Ok(self.with_calls(now, serve)?)
    }

    pub(in crate::direct) fn is_offered(&self, service: &str) -> bool {
        self.offered.contains_key(service)
    }

    pub(in crate::direct) fn call(
        &mut self,
        now: Time,
        service: &str,
        (control, parts): (&[u8], &[&[u8]]),
        timeout: Duration,
        done: Answered,
    ) {
        let service = service.to_owned();
        let Some(endpoint) = self.offered.get(&service).copied() else {
            let refusal = String::new();
            let error = CallError::NoServer { service, refusal };
            return self.events.push(Event::Answered(done, Err(error)));
        };
        let caller = Caller {
            service,
            timeout,
            done,
        };
        let asked = Asked {
            endpoint,
            caller,
            timeout,
        };
        self.with_calls(now, |calls, air| {
            calls.ask(air, asked, |header| {
                Outgoing::with_head(&header.encode(), control, parts)
            });
        });
    }

    /// Answers a peer's call.
    pub(in crate::direct) fn respond(
        &mut self,
        now: Time,
        ticket: Ticket,
        control: &[u8],
        parts: &[&[u8]],
    ) -> Result<(), DropReason> {
        self.with_calls(now, |calls, air| {
            calls.reply(air, ticket, |header| {
                Outgoing::with_head(&header.encode(), control, parts)
            })
        })
    }

    /// Rejects a peer's call that nobody answers.
    pub(in crate::direct) fn reject(&mut self, now: Time, ticket: Ticket) {
        let why = (Failure::Rejected, "the server dropped the request unanswered");
        self.with_calls(now, |calls, air| calls.fail(air, ticket, why));
    }

    /// Runs `what`, and passes on what the calls decided then.
    pub(super) fn with_calls<T>(
        &mut self,
        now: Time,
        what: impl FnOnce(&mut Calls<Received, Caller>, &mut Air<'_>) -> T,
    ) -> T {
        let (radio, flows) = (&mut self.pump.radio, &mut self.flows);
        let value = what(&mut self.inbox.calls, &mut Air { now, radio, flows });
        self.pass_on();
        value
    }

    /// Passes what the calls decided to the program.
    fn pass_on(&mut self) {
        let calls = &mut self.inbox.calls;
        while let Some(decided) = calls.poll_event() {
            match decided {
                Decided::Up(endpoint) => {
                    if let Some(kind) = calls.kind(endpoint) {
                        self.offered.insert(kind.service.clone(), endpoint);
                        self.events.push(Event::Offered(kind.service.clone(), true));
                    }
                }
                Decided::Down(endpoint, callers) => {
                    let died = callers.into_iter().map(|Caller { service, done, .. }| {
                        Event::Answered(done, Err(CallError::ServerDied { service }))
                    });
                    self.events.extend(died);
                    let mut offered = self.offered.iter();
                    if let Some(name) = offered.find(|(_, e)| **e == endpoint).map(|(n, _)| n.clone()) {
                        self.offered.remove(&name);
                        self.events.push(Event::Offered(name, false));
                    }
                }
                Decided::Request {
                    endpoint,
                    ticket,
                    peer,
                    content,
                    ..
                } => {
                    if let Some(kind) = calls.kind(endpoint) {
                        let from = calls.peer(peer).into();
                        self.events
                            .push(Event::Request(kind.service.clone(), from, content, ticket));
                    }
                }
                // The program itself is the server.
                Decided::Unused(_) => {}
                Decided::Ended(caller, with) => self.events.push(caller.answered(with)),
            }
        }
    }
}
