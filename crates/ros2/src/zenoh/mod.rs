//! Zenoh as rmw_zenoh uses it: keys of topics and services, tokens of nodes and endpoints, and attachments of messages.
//! The code that reads and writes these is always compiled, the session only with the feature (decision 344).

mod attachment;
#[cfg(feature = "zenoh")]
mod ends;
pub mod fuzzing;
mod keys;
mod qos;
#[cfg(feature = "zenoh")]
mod queue;
#[cfg(feature = "zenoh")]
mod seen;
#[cfg(feature = "zenoh")]
mod session;
#[cfg(feature = "zenoh")]
mod shown;
mod token;
#[cfg(feature = "zenoh")]
mod wire;

#[cfg(feature = "zenoh")]
use crate::hub::lock;
#[cfg(feature = "zenoh")]
pub use session::SessionError;
#[cfg(feature = "zenoh")]
pub(crate) use {session::SessionConfig, wire::Zenoh};

/// Says that none of these routers answers.
#[cfg(feature = "zenoh")]
fn no_router(routers: &[String]) -> String {
    format!(
        "no Zenoh router answers at {}: start one (ros2 run rmw_zenoh_cpp rmw_zenohd, or zenohd), name another in `zenoh: {{connect: [...]}}`, or check the certificates in `zenoh: {{config: ...}}`",
        routers.join(", ")
    )
}
