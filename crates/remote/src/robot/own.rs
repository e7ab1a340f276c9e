//! Requests on Ropewalk's own wire.

use super::core::{Core, Verdict};
use super::events::ControllerEvent;
use super::{Context, Origin};
use crate::clock::{now, random_id};
use crate::own::{self, Outcome, request, response};
use crate::safety::{Begin, Guest, Id, MOST_JUMP, bound, is_valid};
use crate::sync::lock;
use crate::transport::{Peer, Reply};
use prost::Message;
use stats::Time;
use std::sync::Arc;
use std::time::Duration;

/// Version of Ropewalk's own wire.
pub(crate) const VERSION: u32 = 2;

/// A request of a controller that the robot knows.
struct From {
    id: Id,
    name: Arc<str>,
    peer: Peer,
    sequence: u64,
    age: Option<Duration>,
    good_until: Option<Time>,
    /// Whether it asks the subsystem to stop.
    stops: bool,
    /// Whether it does so with a sequence that jumps.
    jumped: bool,
}

/// A request whose controller is not identified yet.
struct Sent<'a> {
    peer: &'a Peer,
    number: u64,
    sequence: u64,
    echo: Option<&'a own::Echo>,
    expiry: Duration,
    stops: bool,
}

/// Why a request is not processed further.
enum Unheard {
    UnknownController,
    Jump,
}

impl Core {
    pub(crate) fn serve(self: &Arc<Self>, frame: &[u8], from: &Peer, reply: Reply) {
        let now = now();
        let request = match own::Request::decode(frame) {
            Ok(request) => request,
            Err(e) => return self.refuse(0, &format!("malformed: {e}"), reply),
        };
        let (number, sequence) = (request.controller, request.sequence);
        if !is_valid(number) || sequence == 0 {
            return self.refuse(
                sequence,
                "malformed: the controller or the sequence is missing",
                reply,
            );
        }
        let what = match request.what {
            Some(request::What::Hello(hello)) => {
                if hello.version != VERSION {
                    let reason = format!(
                        "the controller speaks wire version {}, this robot {VERSION}: update the older one",
                        hello.version
                    );
                    return self.refuse(sequence, &reason, reply);
                }
                let guest = Guest {
                    peer: from,
                    number,
                    sequence,
                    name: &hello.name,
                    anonymous: false,
                };
                let Some(id) = self.admit(guest, random_id(), now) else {
                    return self.refuse_jump(sequence, reply);
                };
                let what = response::What::Welcome(self.describe(id));
                return self.answer(sequence, Verdict::new(Outcome::Executed, ""), Some(what), reply);
            }
            Some(what) => what,
            None => {
                return self.refuse(sequence, "malformed: unknown request", reply);
            }
        };
        let expiry = Duration::from_millis(request.expiry_ms.into());
        let stops = match &what {
            request::What::Command(command) => self
                .commands
                .get(command.number)
                .is_some_and(|entry| entry.is_stop(&command.body)),
            _ => false,
        };
        let sent = Sent {
            peer: from,
            number,
            sequence,
            echo: request.echo.as_ref(),
            expiry,
            stops,
        };
        match self.recognize(&sent, now) {
            Ok(from) => self.serve_known(from, what, reply),
            Err(Unheard::Jump) => self.refuse_jump(sequence, reply),
            Err(Unheard::UnknownController) => {
                self.counters.dropped("unknown controller", 1);
                let reason = "the controller is unknown: send hello first";
                self.answer(
                    sequence,
                    Verdict::new(Outcome::UnknownController, reason),
                    None,
                    reply,
                );
            }
        }
    }

    fn refuse_jump(&self, sequence: u64, reply: Reply) {
        self.counters.dropped("sequence_jumped", 1);
        let reason = format!("the sequence is more than {MOST_JUMP} above the highest one so far");
        self.answer(sequence, Verdict::rejected(reason), None, reply);
    }

    fn serve_known(self: &Arc<Self>, from: From, what: request::What, reply: Reply) {
        let executed = Verdict::new(Outcome::Executed, "");
        match what {
            request::What::Command(command) => self.once(from, reply, |from| self.command(from, &command)),
            request::What::Authority(wish) => {
                self.once(from, reply, |from| self.decide(from.id, &from.name, &wish));
            }
            request::What::Heartbeat(heartbeat) => {
                let period = Duration::from_millis(heartbeat.period_ms.into());
                self.set_period(from.id, period);
                self.answer(from.sequence, executed, None, reply);
            }
            request::What::Fetch(fetch) => match self.fetch(&fetch) {
                Ok(fetched) => {
                    self.answer(
                        from.sequence,
                        executed,
                        Some(response::What::Fetched(fetched)),
                        reply,
                    );
                }
                Err(reason) => self.refuse(from.sequence, &reason, reply),
            },
            request::What::LogLevel(wish) => {
                self.set_log_level(wish.level);
                self.answer(from.sequence, executed, None, reply);
            }
            request::What::File(request) => self.file(from.id, from.sequence, request, reply),
            // Already answered above.
            request::What::Hello(_) => {}
        }
    }

    /// Finds the controller of a request. Returns `Unheard` if it has to say hello (again) first, or if its sequence
    /// jumps.
    fn recognize(&self, sent: &Sent<'_>, now: Time) -> Result<From, Unheard> {
        let expiry = sent.expiry;
        let age = match sent.echo {
            Some(echo) => Some(bound(self.run, now, echo).ok_or(Unheard::UnknownController)?),
            // Without an echo, nobody can know whether it has expired.
            None if !expiry.is_zero() => return Err(Unheard::UnknownController),
            None => None,
        };
        let (from, found) = {
            let mut state = lock(&self.state);
            let id = state.controllers.find(sent.peer, sent.number);
            let id = id.ok_or(Unheard::UnknownController)?;
            let heard = state.controllers.hear(id, sent.sequence, sent.stops, now);
            let (known, found) = heard.ok_or(Unheard::Jump)?;
            if let Some(age) = age {
                known.aged(age);
            }
            let good_until = age
                .filter(|_| !expiry.is_zero())
                .map(|age| match expiry.checked_sub(age) {
                    Some(left) => now + left,
                    None => Time::ZERO,
                });
            let from = From {
                id,
                name: known.name.clone(),
                peer: known.peer.clone(),
                sequence: sent.sequence,
                age,
                good_until,
                stops: sent.stops,
                jumped: known.has_jumped(sent.sequence),
            };
            (from, found)
        };
        if found {
            self.changed.notify_all();
            self.notify(ControllerEvent::Found {
                id: from.id,
                name: from.name.clone(),
                peer: from.peer.clone(),
            });
        }
        Ok(from)
    }

    /// Admits a controller that is new (then under `id`), was lost, or says hello again. Returns the number by which
    /// the robot knows it; `None`: its sequence jumps.
    pub(super) fn admit(&self, guest: Guest<'_>, id: Id, now: Time) -> Option<Id> {
        let peer = guest.peer.clone();
        let (admitted, name) = {
            let mut state = lock(&self.state);
            let state = &mut *state;
            let keep = |id| state.rights.holds_any(id);
            let admitted = state.controllers.admit(guest, id, now, keep)?;
            let name = state.controllers.get(admitted.id).map(|k| k.name.clone());
            (admitted, name.unwrap_or_default())
        };
        if let Some(gone) = admitted.gone {
            self.counters.dropped("controllers_forgotten", 1);
            self.lose(gone);
        }
        let id = admitted.id;
        if admitted.found {
            self.changed.notify_all();
            self.notify(ControllerEvent::Found { id, name, peer });
        }
        Some(id)
    }

    /// Describes this robot's commands and telemetry to a controller, and the number `controller` by which the robot
    /// knows it.
    fn describe(&self, controller: Id) -> own::Welcome {
        let commands = self.commands.all();
        let streams = self.streams.all();
        let subsystems = {
            let state = lock(&self.state);
            let moved_by = |s| {
                commands
                    .iter()
                    .filter(move |e| e.subsystem == Some(s))
                    .map(|e| e.number)
            };
            let subsystems = state.rights.all().enumerate();
            subsystems
                .map(|(s, (name, _))| own::Subsystem {
                    name: name.to_owned(),
                    commands: moved_by(s).collect(),
                })
                .collect()
        };
        let kind = |number: u32, name: &str| own::Kind {
            number,
            name: name.to_owned(),
        };
        let channels = streams.iter().flat_map(|stream| {
            let channels = stream.named_channels().into_iter();
            channels.map(|(n, name)| own::Channel {
                telemetry: stream.number,
                channel: n.into(),
                name,
            })
        });
        own::Welcome {
            robot: self.name.clone(),
            version: VERSION,
            commands: commands.iter().map(|e| kind(e.number, e.name)).collect(),
            telemetry: streams.iter().map(|t| kind(t.number, t.name)).collect(),
            channels: channels.collect(),
            subsystems,
            controller,
            lost_after_ms: u32::try_from(self.options.lost_after.as_millis()).unwrap_or(u32::MAX),
        }
    }

    /// Does `work` and answers, unless the same request was already done.
    fn once(&self, from: From, reply: Reply, work: impl FnOnce(&From) -> Verdict) {
        let begin = {
            let mut state = lock(&self.state);
            match state.controllers.get_mut(from.id) {
                // Remembering this sequence would make all the controller's earlier ones too old.
                _ if from.jumped => Begin::TooOld(reply),
                Some(known) => known.window.begin(from.sequence, reply),
                None => Begin::TooOld(reply),
            }
        };
        let reply = match begin {
            Begin::New(reply) => reply,
            Begin::Waits => return self.counters.dropped("repeated", 1),
            Begin::Again(verdict, reply) => {
                self.counters.dropped("repeated", 1);
                return self.answer(from.sequence, verdict, None, reply);
            }
            // A stop is executed regardless of other work in progress or earlier requests: twice, if need be.
            Begin::TooOld(reply) | Begin::Full(reply) if from.stops => {
                let verdict = work(&from);
                return self.answer(from.sequence, verdict, None, reply);
            }
            Begin::TooOld(reply) => {
                self.counters.dropped("expired", 1);
                let verdict = Verdict::new(
                    Outcome::Expired,
                    "the request is too old to tell whether it was executed",
                );
                return self.answer(from.sequence, verdict, None, reply);
            }
            Begin::Full(reply) => {
                return self.refuse(
                    from.sequence,
                    "too many requests of this controller are in progress: wait for one to finish",
                    reply,
                );
            }
        };
        let verdict = work(&from);
        let waiters = {
            let mut state = lock(&self.state);
            let known = state.controllers.get_mut(from.id);
            known
                .map(|k| k.window.end(from.sequence, verdict.clone()))
                .unwrap_or_default()
        };
        for waiter in waiters {
            self.answer(from.sequence, verdict.clone(), None, waiter);
        }
        self.answer(from.sequence, verdict, None, reply);
    }

    fn command(&self, from: &From, command: &own::Command) -> Verdict {
        let Some(entry) = self.commands.get(command.number) else {
            return Verdict::rejected(format!(
                "the robot has no command with the number {}",
                command.number
            ));
        };
        let context = Context {
            origin: Origin::Controller {
                id: from.id,
                name: from.name.clone(),
                peer: from.peer.clone(),
            },
            sequence: from.sequence,
            age: from.age,
            good_until: from.good_until,
        };
        self.carry_out(&entry, &command.body, from.id, &context)
    }

    fn fetch(&self, fetch: &own::Fetch) -> Result<own::Fetched, String> {
        let no = || format!("the robot has no telemetry with the number {}", fetch.number);
        let stream = self.streams.get(fetch.number).ok_or_else(no)?;
        let channel = u8::try_from(fetch.channel).map_err(|_| "the channel exceeds 255".to_owned())?;
        let body = stream.latest(channel);
        Ok(own::Fetched {
            set: body.is_some(),
            body: body.unwrap_or_default(),
        })
    }

    pub(crate) fn set_log_level(&self, level: u32) {
        self.log_level.store(level, std::sync::atomic::Ordering::Relaxed);
        if let Some(callback) = self.events.log_level.get() {
            self.counters
                .guarded("the callback for log levels", || callback(level));
        }
    }

    pub(crate) fn refuse(&self, sequence: u64, reason: &str, reply: Reply) {
        let counted = if reason.starts_with("malformed") {
            "malformed"
        } else {
            "refused"
        };
        self.counters.dropped(counted, 1);
        self.answer(sequence, Verdict::rejected(reason), None, reply);
    }

    pub(crate) fn answer(&self, sequence: u64, verdict: Verdict, what: Option<response::What>, reply: Reply) {
        let frame = self.response(sequence, verdict, what).encode_to_vec();
        if let Err(e) = reply.send(&frame) {
            self.counters.dropped("not_answered", 1);
            tracing::debug!("{}: cannot send an answer: {e}", self.name);
        }
    }
}
