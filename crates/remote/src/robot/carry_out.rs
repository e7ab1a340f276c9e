//! Takes an incoming command to its handler, or finds the reason why not.

use super::commands::Entry;
use super::core::{Core, Verdict};
use super::{Context, Origin};
use crate::clock::now;
use crate::own::Outcome;
use crate::safety::{Held, Id, NOBODY};
use crate::sync::lock;

impl Core {
    /// Carries a command out, or gives the reason why not. Waits for commands that move the same subsystem.
    pub(crate) fn carry_out(&self, entry: &Entry, body: &[u8], from: Id, context: &Context) -> Verdict {
        self.counters.received(entry.name, body.len(), now());
        let verdict = match entry.subsystem {
            None => self.in_time(entry, body, context),
            Some(subsystem) => {
                let lane = self.lane(subsystem);
                let _lane = lock(&lane);
                self.move_it(entry, subsystem, body, from, context)
            }
        };
        match verdict.outcome {
            Outcome::Expired => self.counters.dropped("expired", 1),
            Outcome::Rejected => self.counters.dropped("rejected", 1),
            _ => {}
        }
        verdict
    }

    /// The lane is held: nothing else moves the subsystem, and the right to move it does not change.
    fn move_it(&self, entry: &Entry, subsystem: usize, body: &[u8], from: Id, context: &Context) -> Verdict {
        if matches!(context.origin, Origin::V6 { .. }) && !self.options.v6_motion {
            return Verdict::rejected(
                "the robot does not accept motion commands of unknown age, as those of version 6",
            );
        }
        if is_late(context) {
            return too_late();
        }
        {
            let mut state = lock(&self.state);
            state.free_silent(now(), self.options.lost_after);
            if let Err(held) = state.rights.moves(from, subsystem, self.options.implicit) {
                let name = state.rights.name(held.subsystem).to_owned();
                return Verdict::rejected(self.refusal(&held, &name, &state.called(held.by)));
            }
            let newest = state
                .controllers
                .get_mut(from)
                .map(|k| k.is_newest(entry.number, subsystem, context.sequence));
            // A command that stops is never too old for its order, whatever was executed since.
            if newest == Some(false) && !entry.is_stop(body) {
                return Verdict::new(Outcome::Expired, "a newer command was already executed");
            }
        }
        let verdict = self.in_time(entry, body, context);
        if verdict.outcome == Outcome::Executed {
            self.note_motion(entry, subsystem, body, &context.origin);
        }
        verdict
    }

    fn in_time(&self, entry: &Entry, body: &[u8], context: &Context) -> Verdict {
        if self.has_ended() {
            return Verdict::rejected(format!("the robot {} was stopped", self.name));
        }
        if is_late(context) {
            return too_late();
        }
        match entry.handle(&self.counters, body, context) {
            Ok(()) => Verdict::new(Outcome::Executed, ""),
            Err(rejection) => Verdict::rejected(rejection.into_reason()),
        }
    }

    /// Returns why a controller may not move a subsystem.
    pub(crate) fn refusal(&self, held: &Held, subsystem: &str, holder: &str) -> String {
        if held.by == NOBODY {
            format!("nobody holds the right to move {subsystem}: request it first")
        } else {
            format!("{holder} holds the right to move {subsystem}")
        }
    }

    /// Returns whether a command that waited in a queue may still be executed.
    pub(crate) fn still_good(&self, subsystem: Option<usize>, from: Option<Id>, context: &Context) -> bool {
        let holds = |s: usize| lock(&self.state).rights.holder(crate::safety::Which::One(s));
        let may = match (subsystem, from) {
            (Some(subsystem), Some(from)) => holds(subsystem) == from,
            // Not if the sender's key was revoked meanwhile.
            (None, Some(from)) => lock(&self.state).controllers.get(from).is_some(),
            _ => true,
        };
        may && !is_late(context)
    }
}

fn is_late(context: &Context) -> bool {
    context.good_until.is_some_and(|until| now() > until)
}

fn too_late() -> Verdict {
    Verdict::new(Outcome::Expired, "the command arrived after its expiry")
}
