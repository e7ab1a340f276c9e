//! One request, from its creation until its outcome is known.

use super::core::Core;
use crate::clock::now;
use crate::own::{self, Outcome, request};
use crate::sync::lock;
use crate::transport::{Class, TransportError};
use prost::Message;
use prost::bytes::Bytes;
use stats::Time;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How long a request whose own time limit is not known yet waits for the first contact with the robot.
const MEETING: Duration = Duration::from_secs(10);
/// Delay before a request is sent again: it doubles up to the maximum.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LONGEST_RETRY: Duration = Duration::from_millis(200);
/// The shortest default expiry.
const SHORTEST_EXPIRY: Duration = Duration::from_millis(200);
/// If the robot answers this often that it does not know this controller, although it was just greeted, requests wait
/// before they are sent again.
const MOST_STRANGE: u32 = 3;

/// How long a command stays good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Twice the round trip, and at least 200 ms. A command sent before robot and controller have met gets one round
    /// trip more.
    #[default]
    Default,
    /// This long after sending. The robot judges by an upper bound of the command's age: with less than a round trip,
    /// nothing is executed.
    After(Duration),
    /// Never: the robot executes it whenever it arrives. Not for commands that move.
    Never,
}

/// The request, with names; numbers are filled in when it is sent.
pub(crate) enum What {
    Command {
        kind: &'static str,
        v6: Option<u8>,
        body: Bytes,
    },
    Fetch {
        kind: &'static str,
        v6: Option<u8>,
        channel: u8,
    },
    Other(request::What),
}

/// How a call ended.
pub(crate) enum End {
    Answered(own::Response),
    /// The robot does not have this kind, or the request does not fit through the transport.
    Impossible(String),
    Unreachable {
        maybe: bool,
        reason: String,
    },
}

type Finish = Box<dyn FnOnce(End) + Send>;

pub(crate) struct Call {
    sequence: u64,
    pub(super) class: Class,
    pub(super) what: What,
    created: Time,
    progress: Mutex<Progress>,
}

struct Progress {
    finish: Option<Finish>,
    expiry: Expiry,
    /// The robot must not execute it after this; unknown until the round trip is known.
    expires: Option<Time>,
    /// The controller stops waiting after this.
    give_up: Time,
    /// It was sent, and the outcome is unknown.
    maybe: bool,
    strange: u32,
    retries: u32,
    /// Why it is still waiting.
    reason: String,
}

impl Call {
    /// It waits for the robot, which did not answer a greeting.
    pub(super) fn was_not_heard(&self, why: &str) {
        lock(&self.progress).reason = format!("no answer from the robot: {why}");
    }

    pub(crate) fn new(
        sequence: u64,
        class: Class,
        what: What,
        expiry: Expiry,
        timeout: Option<Duration>,
        finish: impl FnOnce(End) + Send + 'static,
    ) -> Arc<Self> {
        let created = now();
        let progress = Progress {
            finish: Some(Box::new(finish)),
            expiry,
            expires: None,
            give_up: created + timeout.unwrap_or(MEETING),
            maybe: false,
            strange: 0,
            retries: 0,
            reason: "no answer from the robot".to_owned(),
        };
        Arc::new(Call {
            sequence,
            class,
            what,
            created,
            progress: Mutex::new(progress),
        })
    }

    pub(crate) fn give_up_at(&self) -> Time {
        lock(&self.progress).give_up
    }

    /// Sets the expiry from the current round trip.
    pub(crate) fn time(&self, rtt: Option<Duration>, was_met: bool) {
        let mut progress = lock(&self.progress);
        if progress.expires.is_some() || matches!(self.what, What::Fetch { .. } | What::Other(_)) {
            return;
        }
        let expiry = match progress.expiry {
            Expiry::After(expiry) => expiry,
            Expiry::Never => {
                progress.give_up = Time::MAX;
                return;
            }
            Expiry::Default => match rtt {
                None => return,
                Some(rtt) => (rtt * if was_met { 2 } else { 3 }).max(SHORTEST_EXPIRY),
            },
        };
        let expires = self.created + expiry;
        progress.expires = Some(expires);
        // The answer takes time, too.
        progress.give_up = expires + (rtt.unwrap_or(Duration::from_secs(1)) * 2).max(SHORTEST_EXPIRY);
    }

    /// Returns for how many milliseconds after `now` it remains valid: 0 forever; `None`: it has expired.
    fn expiry_ms(&self, now: Time) -> Option<u32> {
        let expires = lock(&self.progress).expires;
        let Some(expires) = expires else { return Some(0) };
        let left = expires.since(now).as_millis();
        (left > 0).then(|| u32::try_from(left).unwrap_or(u32::MAX))
    }

    pub(crate) fn finish(&self, end: End) {
        let finish = lock(&self.progress).finish.take();
        if let Some(finish) = finish {
            finish(end);
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.progress).finish.is_none()
    }

    /// Stops waiting for it.
    pub(crate) fn give_up(&self) {
        let (maybe, reason) = {
            let progress = lock(&self.progress);
            (progress.maybe, progress.reason.clone())
        };
        self.finish(End::Unreachable { maybe, reason });
    }
}

impl Drop for Call {
    /// The transport dropped it.
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Core {
    /// Sends a call, or parks it until it can be sent.
    pub(crate) fn dispatch(self: &Arc<Self>, call: Arc<Call>) {
        let now = now();
        if call.is_finished() {
            return;
        }
        if self.has_ended() {
            return call.give_up();
        }
        if self.speaks_v6() {
            return self.dispatch_v6(&call);
        }
        let (echo, number) = {
            let state = lock(&self.state);
            call.time(state.rtt, state.met_at.is_some_and(|met| met <= call.created));
            let Some(known) = &state.known else {
                drop(state);
                return self.park(call, None);
            };
            let number = match &call.what {
                What::Command { kind, .. } => known.commands.get(*kind).copied(),
                What::Fetch { kind, .. } => known.telemetry.get(*kind).copied(),
                What::Other(_) => Some(0),
            };
            let fresh = state.met_at.is_some_and(|met| met > call.created);
            match number {
                None if fresh => {
                    let reason = format!("{} does not support {}", known.robot, call.what.kind());
                    drop(state);
                    return call.finish(End::Impossible(reason));
                }
                // The robot may have registered it since.
                None => {
                    drop(state);
                    self.forget_meeting();
                    return self.park(call, None);
                }
                Some(number) => (state.stamps.echo(now), number),
            }
        };
        let give_up = call.give_up_at();
        let (Some(expiry_ms), false) = (call.expiry_ms(now), now >= give_up) else {
            return call.give_up();
        };
        let what = match &call.what {
            What::Command { body, .. } => request::What::Command(own::Command {
                number,
                body: body.clone(),
            }),
            What::Fetch { channel, .. } => request::What::Fetch(own::Fetch {
                number,
                channel: (*channel).into(),
            }),
            What::Other(what) => what.clone(),
        };
        let request = own::Request {
            controller: self.number,
            sequence: call.sequence,
            echo,
            expiry_ms,
            what: Some(what),
        };
        let (core, class) = (Arc::downgrade(self), call.class);
        let done = Box::new(move |result: Result<&[u8], TransportError>| answered(&core, &call, result));
        self.requests
            .request(class, &request.encode_to_vec(), give_up.since(now), done);
    }

    /// Keeps a call until robot and controller have met, or until `retry`.
    pub(crate) fn park(self: &Arc<Self>, call: Arc<Call>, retry: Option<Time>) {
        let parked = {
            let mut state = lock(&self.state);
            if retry.is_none() && state.known.is_some() {
                // They met meanwhile.
                drop(state);
                return self.dispatch(call);
            }
            if let (Some(why), None) = (&state.unheard, retry) {
                call.was_not_heard(why);
            }
            state.park(call, retry)
        };
        match parked {
            Ok(()) if retry.is_none() => self.greet(),
            Ok(()) => self.changed.notify_all(),
            Err(call) => {
                lock(&call.progress).reason = "too many requests are waiting for the robot".to_owned();
                call.give_up();
            }
        }
    }
}

impl What {
    fn kind(&self) -> &str {
        match self {
            What::Command { kind, .. } | What::Fetch { kind, .. } => kind,
            What::Other(_) => "",
        }
    }
}

fn answered(core: &Weak<Core>, call: &Arc<Call>, result: Result<&[u8], TransportError>) {
    let Some(core) = core.upgrade() else { return };
    let error = match result {
        Ok(frame) => match core.heard_response(frame) {
            Some(response) if response.sequence == call.sequence => {
                if response.outcome() != Outcome::UnknownController {
                    return call.finish(End::Answered(response));
                }
                return core.is_strange(call);
            }
            _ => TransportError::Unreachable("the answer does not match the request".to_owned()),
        },
        Err(TransportError::TooLong { len, most }) => {
            let e = TransportError::TooLong { len, most };
            return call.finish(End::Impossible(e.to_string()));
        }
        Err(e) => e,
    };
    let retry = {
        let mut progress = lock(&call.progress);
        // A busy transport did not send it.
        progress.maybe |= !matches!(error, TransportError::Busy(_) | TransportError::NotSent(_));
        progress.reason = error.reason();
        progress.retry(now())
    };
    match retry {
        Some(at) if error != TransportError::Ended => core.park(call.clone(), Some(at)),
        _ => call.give_up(),
    }
}

impl Progress {
    /// Returns when to send it again, if there is time left.
    fn retry(&mut self, now: Time) -> Option<Time> {
        let wait = (FIRST_RETRY * (1 << self.retries.min(8))).min(LONGEST_RETRY);
        self.retries += 1;
        let at = now + wait;
        (at < self.expires.unwrap_or(self.give_up)).then_some(at)
    }
}

impl Core {
    /// The robot does not know this controller, or has restarted: greets it again, then sends the request again. If the
    /// request was already sent and its outcome is unknown, the robot may have executed it and then forgotten about
    /// it; such a request is not sent again.
    fn is_strange(self: &Arc<Self>, call: &Arc<Call>) {
        let (maybe, again) = {
            let mut progress = lock(&call.progress);
            progress.strange += 1;
            progress.reason = "the robot does not recognize this controller".to_owned();
            let believed = progress.strange <= MOST_STRANGE;
            let again = if believed {
                Some(None)
            } else {
                progress.retry(now()).map(Some)
            };
            (progress.maybe, again)
        };
        self.forget_meeting();
        match again {
            _ if maybe && matches!(call.what, What::Command { .. }) => call.give_up(),
            Some(at) => self.park(call.clone(), at),
            None => call.give_up(),
        }
    }
}
