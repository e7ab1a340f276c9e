//! Questions of a robot to people.

use super::core::Core;
use crate::controller::{Pending, Promise};
use crate::outcome::Rejection;
use crate::sync::lock;
use crate::{clock, command, telemetry, types};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Maximum number of open questions; beyond it, the oldest counts as denied.
const OPEN: usize = 64;

#[derive(Default)]
pub(crate) struct Permissions(Mutex<VecDeque<(String, Arc<Promise<bool>>)>>);

impl Permissions {
    pub(crate) fn clear(&self) {
        for (_, promise) in std::mem::take(&mut *lock(&self.0)) {
            promise.keep(false);
        }
    }
}

impl Core {
    /// Answers are commands.
    pub(crate) fn take_permissions(self: &Arc<Self>) {
        let core = Arc::downgrade(self);
        self.handle::<command::Permission>(move |answer, context| {
            let Some(core) = core.upgrade() else { return Ok(()) };
            let promise = {
                let mut open = lock(&core.permissions.0);
                let at = open.iter().position(|(uid, _)| *uid == answer.requestuid);
                at.and_then(|at| open.remove(at))
            };
            match promise {
                Some((_, promise)) => promise.keep(answer.granted),
                // Controllers of version 6 receive an acknowledgement, as from their own robots.
                None if matches!(context.origin, super::Origin::V6 { .. }) => {}
                None => {
                    return Err(Rejection::from("no question with this number is open"));
                }
            }
            Ok(())
        });
    }

    pub(crate) fn ask_permission(&self, description: &str) -> Pending<bool> {
        let (pending, promise) = Pending::new();
        let uid = format!("{:016x}", clock::random_id());
        let oldest = {
            let mut open = lock(&self.permissions.0);
            let oldest = if open.len() == OPEN {
                open.pop_front()
            } else {
                None
            };
            open.push_back((uid.clone(), promise));
            oldest
        };
        if let Some((_, promise)) = oldest {
            promise.keep(false);
        }
        let question = types::PermissionRequest {
            header: Some(header()),
            description: description.to_owned(),
            requestuid: uid,
            granted: false,
        };
        // A controller that misses the question can fetch it.
        if let Err(e) = self.set::<telemetry::PermissionRequest>(0, &question) {
            tracing::warn!("{}: cannot send a question: {e}", self.name);
        }
        pending
    }

    /// Sends a log message of a level, unless no controller wants that level. Users' own levels, from 20 up, are always
    /// sent, as in upstream.
    pub(crate) fn log(&self, level: u32, message: &str) -> Result<(), crate::transport::TransportError> {
        let most = self.log_level.load(std::sync::atomic::Ordering::Relaxed);
        if level > most && level < types::LogLevel::Custom as u32 {
            return Ok(());
        }
        let message = types::LogMessage {
            header: Some(header()),
            level,
            message: message.to_owned(),
        };
        self.set::<telemetry::LogMessage>(0, &message)
    }
}

fn header() -> types::Header {
    let now = ::clock::realtime().as_nanos();
    let timestamp = types::TimeStamp {
        secs: u32::try_from(now / 1_000_000_000).unwrap_or(u32::MAX),
        nsecs: (now % 1_000_000_000) as u32,
    };
    types::Header {
        timestamp: Some(timestamp),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Robot;
    use std::time::Duration;

    #[test]
    fn the_oldest_question_makes_room() {
        let robot = Robot::builder("rover").start().expect("a robot without an end");
        let first = robot.ask_permission("the first?");
        let others: Vec<_> = (1..OPEN).map(|n| robot.ask_permission(&n.to_string())).collect();
        let first = first.wait_for(Duration::ZERO).unwrap_err();
        let last = robot.ask_permission("the last?");
        assert_eq!(first.wait_for(Duration::ZERO).ok(), Some(false));
        let mut open = others.into_iter().chain([last]);
        assert!(open.all(|pending| pending.wait_for(Duration::ZERO).is_err()));
    }
}
