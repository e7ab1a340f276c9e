//! Requests on the wire of version 6: they have no sender, no number and no time.

use super::core::Core;
use super::{Context, Origin};
use crate::clock::now;
use crate::own::Outcome;
use crate::safety::{Guest, anonymous};
use crate::sync::lock;
use crate::transport::{Peer, Reply};
use crate::v6::{self, Request};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The answer to a request for the version in a version control system.
const BUILD: &str = concat!("ropewalk ", env!("CARGO_PKG_VERSION"));
/// The number of the kind of maps.
const MAP: u8 = crate::types::TelemetryMessageType::Map as u8;

impl Core {
    /// Serves all controllers on the end with this number: together they count as one controller.
    pub(crate) fn serve_v6(self: &Arc<Self>, end: usize, frame: &[u8], reply: Reply) {
        let request = match Request::parse(frame) {
            Ok(request) => request,
            Err(e) => {
                let is_later = e == v6::Malformed::Version7;
                self.counters
                    .dropped(if is_later { "version_7" } else { "malformed" }, 1);
                // Logged once: such a controller sends heartbeats all the time.
                if is_later && !self.heard_version_7.swap(true, Ordering::Relaxed) {
                    tracing::warn!("{}: cannot serve a controller: {e}", self.name);
                } else {
                    tracing::debug!("{}: {e}", self.name);
                }
                return self.send(reply, &v6::nak());
            }
        };
        self.receive_v6(end);
        let number = request.number();
        match request {
            Request::ProtocolVersion => self.send(reply, v6::PROTOCOL_VERSION.as_bytes()),
            Request::LibraryVersion => self.send(reply, v6::LIBRARY_VERSION.as_bytes()),
            Request::GitVersion => self.send(reply, BUILD.as_bytes()),
            Request::Heartbeat { period } => {
                self.set_period(anonymous(end), period);
                self.send(reply, &v6::ack(number));
            }
            Request::Telemetry { number, channel } => self.latest_v6(number, channel, reply),
            Request::Map { channel } => self.latest_v6(MAP, channel, reply),
            Request::File(request) => self.file_v6(&request, reply),
            Request::LogLevel(level) => {
                self.set_log_level(level.into());
                self.send(reply, &v6::ack(number));
            }
            Request::Command { number, body } => {
                if self.command_v6(end, number, body) {
                    self.send(reply, &v6::ack(number));
                } else {
                    self.send(reply, &v6::nak());
                }
            }
        }
    }

    fn receive_v6(&self, end: usize) {
        let id = anonymous(end);
        let guest = Guest {
            peer: &Peer::Unproven,
            number: id,
            sequence: 0,
            name: "v6",
            anonymous: true,
        };
        self.admit(guest, id, now());
    }

    /// Sets the period of a controller's heartbeats.
    pub(super) fn set_period(&self, id: crate::safety::Id, period: Duration) {
        let shorter = {
            let mut state = lock(&self.state);
            let Some(known) = state.controllers.get_mut(id) else {
                return;
            };
            let old = known.period.replace(period);
            old.is_none_or(|old| period < old)
        };
        if shorter {
            self.changed.notify_all();
        }
    }

    fn latest_v6(&self, number: u8, channel: u8, reply: Reply) {
        let stream = self.streams.of_v6(number);
        match stream.as_ref().map(|stream| stream.latest(channel)) {
            Some(Some(body)) => self.send(reply, &body),
            // A kind without a value is not an unknown kind.
            Some(None) => self.send(reply, &[]),
            None if crate::telemetry::by_v6(number).is_some() => self.send(reply, &[]),
            None => {
                self.counters.dropped("refused", 1);
                self.send(reply, &v6::nak());
            }
        }
    }

    fn command_v6(&self, end: usize, number: u8, body: &[u8]) -> bool {
        let Some(entry) = self.commands.of_v6(number) else {
            self.counters.dropped("refused", 1);
            return false;
        };
        let sequence = self.v6_sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let context = Context {
            origin: Origin::V6 { end },
            sequence,
            age: None,
            good_until: None,
        };
        let verdict = self.carry_out(&entry, body, anonymous(end), &context);
        if verdict.outcome != Outcome::Executed {
            // This wire has no room for the reason.
            if let Some(more) = self.counters.refusal_to_log() {
                tracing::info!(
                    more,
                    "{}: refused {} of version 6: {}",
                    self.name,
                    entry.name,
                    verdict.reason
                );
            }
        }
        verdict.outcome == Outcome::Executed
    }

    pub(super) fn send(&self, reply: Reply, frame: &[u8]) {
        if let Err(e) = reply.send(frame) {
            self.counters.dropped("not_answered", 1);
            tracing::debug!("{}: cannot send an answer: {e}", self.name);
        }
    }
}
