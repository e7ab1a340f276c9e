//! Why a call failed, and why a reply was not sent.

use crate::publisher::PublishError;
use crate::subscriber::TakeError;
use stats::DropReason;
use std::time::Duration;

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No server is connected.
    #[error("no server of {service} is connected: start one, or wait for it with wait_for_server{}", because(.refusal))]
    NoServer {
        /// The service.
        service: String,
        /// The last server that did not match, and the reason; empty if there was none.
        refusal: String,
    },
    /// The server has not answered in time. It may still execute the request.
    #[error("{service} has not answered within {waited:?}: its server is busy or stopped, give it more time")]
    Timeout {
        /// The service.
        service: String,
        /// How long the call waited.
        waited: Duration,
    },
    /// The server died or left the bus before it answered. Whether it executed the request is unknown.
    #[error(
        "the server of {service} died before it answered: start it again and repeat the call if that is safe"
    )]
    ServerDied {
        /// The service.
        service: String,
    },
    /// The server answered with an error of its own, or the request or its reply got lost between hosts.
    #[error("{}: {text}", rejected_by(*.code))]
    Rejected {
        /// 0 if the server rejected the request. Otherwise the number of the reason of the program that forwards
        /// requests to the server's host.
        code: u16,
        /// Its text, at most [`MAX_REJECTION`](crate::MAX_REJECTION) bytes.
        text: String,
    },
    /// The server's queue had no room for the request, which was not executed; or this client's queue had no
    /// room for the reply.
    #[error(
        "a queue of {service} has no room ({}): call again later, or raise the server's depth \
         or the client's limits", .reason.name()
    )]
    Dropped {
        /// The service.
        service: String,
        /// Why.
        reason: DropReason,
    },
    /// The client has reached its limit of unanswered requests.
    #[error(
        "{outstanding} requests to {service} are unanswered, which is the limit: wait, or raise max_outstanding"
    )]
    TooMany {
        /// The service.
        service: String,
        /// Their number.
        outstanding: usize,
    },
    /// The reply waits in the queue, but the client has reached its limit of held replies.
    #[error("too many replies of {service} are held: drop some, or raise max_held")]
    HoldLimit {
        /// The service.
        service: String,
    },
    /// The request cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Waiting failed.
    #[error(transparent)]
    Wait(#[from] TakeError),
}

fn rejected_by(code: u16) -> &'static str {
    match code {
        0 => "the server rejected the request",
        _ => "the call failed between hosts",
    }
}

fn because(refusal: &str) -> String {
    match refusal {
        "" => String::new(),
        text => format!(" (one was refused: {text})"),
    }
}

/// Why a reply was not sent. The request is finished nevertheless.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The client is gone.
    #[error("the client is gone: nobody waits for the reply")]
    ClientGone,
    /// The client no longer waits.
    #[error("the reply comes too late: the client's deadline has passed")]
    Expired,
    /// The client's queue has no room.
    #[error("the client has no room for the reply ({}): it takes or drops replies too slowly", .reason.name())]
    Refused {
        /// Why.
        reason: DropReason,
    },
    /// The request belongs to another server.
    #[error("the request belongs to another server")]
    ForeignRequest,
    /// There is no memory for the rejection.
    #[error(transparent)]
    Loan(#[from] crate::loan::LoanError),
    /// The loan belongs to another endpoint, or the process was forked.
    #[error(transparent)]
    Publish(#[from] PublishError),
}
