//! Requests of a controller other than commands.

use super::call::{Call, End, Expiry, What};
use super::core::Core;
use super::pending::Pending;
use crate::kind::{CommandKind, TelemetryKind};
use crate::outcome::Outcome;
use crate::own::{self, request, response};
use crate::transport::Class;
use crate::{command, decode, telemetry};
use prost::Message;
use prost::bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The robot refuses, with its reason.
    #[error("the robot refused: {0}")]
    Rejected(String),
    /// No answer came in time. Holds the transport's reason.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The answer does not match the request.
    #[error("the robot's answer is malformed: {0}")]
    Malformed(String),
}

/// The controller that may move a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Empty: the whole robot.
    pub subsystem: String,
    /// The number by which the robot knows the controller ([`Controller::id`](super::Controller::id)), and the
    /// controller's name for itself; `None`: the right is free.
    pub holder: Option<(u64, String)>,
    /// Whether this controller holds it.
    pub mine: bool,
}

impl Core {
    pub(crate) fn send<K: CommandKind>(self: &Arc<Self>, body: &K::Body, expiry: Expiry) -> Pending<Outcome> {
        self.send_kind(&command::Entry::of::<K>(), body.encode_to_vec().into(), expiry)
    }

    pub(crate) fn send_kind(
        self: &Arc<Self>,
        kind: &command::Entry,
        body: Bytes,
        expiry: Expiry,
    ) -> Pending<Outcome> {
        let (pending, promise) = Pending::new();
        self.counters.sent(kind.name, body.len(), crate::clock::now());
        let what = What::Command {
            kind: kind.name,
            v6: kind.v6,
            body,
        };
        let finish = move |end| promise.keep(outcome(end));
        self.dispatch(Call::new(
            self.next_sequence(),
            Class::Command,
            what,
            expiry,
            None,
            finish,
        ));
        pending.over(&self.requests, Class::Command)
    }

    /// Sends a request, and calls `read` with the answer if the robot granted it.
    pub(crate) fn request<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        what: What,
        timeout: Duration,
        read: impl FnOnce(Option<response::What>) -> Option<T> + Send + 'static,
    ) -> Pending<Result<T, RequestError>> {
        let (pending, promise) = Pending::new();
        let finish = move |end| promise.keep(granted(end, read));
        self.dispatch(Call::new(
            self.next_sequence(),
            class,
            what,
            Expiry::Never,
            Some(timeout),
            finish,
        ));
        pending.over(&self.requests, class)
    }

    pub(crate) fn fetch<K: TelemetryKind>(
        self: &Arc<Self>,
        channel: u8,
        timeout: Duration,
    ) -> Pending<Result<Option<K::Body>, RequestError>> {
        let decode = |body| decode::body::<K::Body>(K::NAME, body).ok();
        self.fetch_kind(&telemetry::Entry::of::<K>(), channel, timeout, decode)
    }

    pub(crate) fn fetch_kind<T: Send + 'static>(
        self: &Arc<Self>,
        kind: &telemetry::Entry,
        channel: u8,
        timeout: Duration,
        decode: impl FnOnce(Bytes) -> Option<T> + Send + 'static,
    ) -> Pending<Result<Option<T>, RequestError>> {
        let what = What::Fetch {
            kind: kind.name,
            v6: kind.v6,
            channel,
        };
        self.request(Class::Request, what, timeout, |what| match what {
            Some(response::What::Fetched(own::Fetched { set: false, .. })) => Some(None),
            Some(response::What::Fetched(own::Fetched { body, .. })) => decode(body).map(Some),
            _ => None,
        })
    }

    pub(crate) fn wish(
        self: &Arc<Self>,
        subsystem: &str,
        wish: own::Wish,
        to: u64,
        timeout: Duration,
    ) -> Pending<Result<Right, RequestError>> {
        let wish = own::AuthorityRequest {
            subsystem: subsystem.to_owned(),
            wish: wish.into(),
            to,
        };
        let core = Arc::downgrade(self);
        self.request(
            Class::Command,
            What::Other(request::What::Authority(wish)),
            timeout,
            move |what| match what {
                Some(response::What::Authority(own::AuthorityState {
                    subsystem,
                    holder,
                    holder_name,
                })) => {
                    let me = core.upgrade().map_or(0, |core| core.id());
                    let somebody = (holder != crate::safety::NOBODY).then_some((holder, holder_name));
                    let somebody_holds = somebody.is_some();
                    Some(Right {
                        subsystem,
                        holder: somebody,
                        mine: holder == me && somebody_holds,
                    })
                }
                _ => None,
            },
        )
    }

    pub(crate) fn ask_log_level(
        self: &Arc<Self>,
        level: u32,
        timeout: Duration,
    ) -> Pending<Result<(), RequestError>> {
        let what = What::Other(request::What::LogLevel(own::LogLevel { level }));
        self.request(Class::Command, what, timeout, |_| Some(()))
    }
}

fn outcome(end: End) -> Outcome {
    match end {
        End::Answered(response) => match response.outcome() {
            own::Outcome::Executed => Outcome::Executed,
            own::Outcome::Expired => Outcome::Expired(response.reason),
            own::Outcome::Rejected => Outcome::Rejected(response.reason),
            _ => Outcome::Unreachable {
                maybe_executed: true,
                reason: "the robot's answer states no outcome".into(),
            },
        },
        End::Impossible(reason) => Outcome::Rejected(reason),
        End::Unreachable { maybe, reason } => Outcome::Unreachable {
            maybe_executed: maybe,
            reason,
        },
    }
}

fn granted<T>(end: End, read: impl FnOnce(Option<response::What>) -> Option<T>) -> Result<T, RequestError> {
    match end {
        End::Answered(response) if response.outcome() == own::Outcome::Executed => {
            let nothing = || RequestError::Malformed("the requested data is missing".into());
            read(response.what).ok_or_else(nothing)
        }
        End::Answered(response) => Err(RequestError::Rejected(response.reason)),
        End::Impossible(reason) => Err(RequestError::Rejected(reason)),
        End::Unreachable { reason, .. } => Err(RequestError::Unreachable(reason)),
    }
}
