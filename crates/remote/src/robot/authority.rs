//! Requests for the right to move.

use super::core::{Core, State, Verdict};
use super::events::TakeOver;
use crate::clock::now;
use crate::own::{AuthorityRequest, AuthorityState, Outcome, Wish};
use crate::safety::{Held, Id, NOBODY, Which};
use crate::sync::lock;
use std::sync::MutexGuard;

impl Core {
    /// Decides on a request. Waits for commands that move the subsystem: once the request is answered, no command of
    /// the old holder is still running.
    pub(super) fn decide(&self, controller: Id, name: &str, wish: &AuthorityRequest) -> Verdict {
        let Some(which) = lock(&self.state).rights.which(&wish.subsystem) else {
            return Verdict::rejected(format!("the robot has no subsystem {:?}", wish.subsystem));
        };
        if wish.wish() == Wish::TakeOver && !self.permits(controller, name, which, &wish.subsystem) {
            return self.verdict(which, wish, Err("the robot does not permit taking over".into()));
        }
        let lanes: Vec<_> = match which {
            Which::One(subsystem) => vec![self.lane(subsystem)],
            Which::All => (0..lock(&self.state).rights.all().count())
                .map(|s| self.lane(s))
                .collect(),
        };
        let _lanes: Vec<MutexGuard<'_, ()>> = lanes.iter().map(|lane| lock(lane)).collect();
        let result = {
            let mut state = lock(&self.state);
            state.free_silent(now(), self.options.lost_after);
            let result = match wish.wish() {
                Wish::Ask => Ok(()),
                Wish::Request => state.rights.request(controller, which),
                Wish::Release => {
                    state.rights.release(controller, which);
                    Ok(())
                }
                Wish::TakeOver => {
                    state.rights.take_over(controller, which);
                    Ok(())
                }
                Wish::HandOver if state.controllers.is_alive(wish.to) => {
                    state.rights.hand_over(controller, wish.to, which)
                }
                Wish::HandOver => {
                    return Verdict::rejected("the controller to hand over to is not connected");
                }
                Wish::Unspecified => {
                    return Verdict::rejected("malformed: unknown request for the right to move");
                }
            };
            result.map_err(|held| self.held(&state, &held))
        };
        self.verdict(which, wish, result)
    }

    fn held(&self, state: &State, held: &Held) -> String {
        let name = state.rights.name(held.subsystem);
        if held.by == NOBODY {
            return format!("this controller does not hold the right to move {name}");
        }
        self.refusal(held, name, &state.called(held.by))
    }

    /// Returns whether `controller` may have the right. The callback is asked only where another controller holds it.
    fn permits(&self, controller: Id, name: &str, which: Which, subsystem: &str) -> bool {
        let from = {
            let state = lock(&self.state);
            let mut concerned = state.rights.all().enumerate().filter(|(n, _)| match which {
                Which::All => true,
                Which::One(one) => *n == one,
            });
            let held = concerned.find(|(_, (_, holder))| *holder != NOBODY && *holder != controller);
            held.map(|(_, (_, holder))| {
                (
                    state.called(holder),
                    holder,
                    state.peer(holder),
                    state.peer(controller),
                )
            })
        };
        let (Some((holder, id, from_peer, by_peer)), callback) = (from, self.events.take_over.get()) else {
            return true;
        };
        let wanted = TakeOver {
            subsystem: subsystem.to_owned(),
            by: (name.to_owned(), controller),
            by_peer,
            from: (holder, id),
            from_peer,
        };
        let permitted = callback.is_some_and(|callback| {
            let asked = || callback(wanted.clone());
            self.counters.guarded("the callback for take-overs", asked) == Some(true)
        });
        tracing::info!(
            "{}: {} {} take the right to move {:?} from {}",
            self.name,
            name,
            if permitted { "may" } else { "may not" },
            wanted.subsystem,
            wanted.from.0
        );
        permitted
    }

    fn verdict(&self, which: Which, wish: &AuthorityRequest, result: Result<(), String>) -> Verdict {
        let state = lock(&self.state);
        let holder = state.rights.holder(which);
        let mut verdict = match result {
            Ok(()) => Verdict::new(Outcome::Executed, ""),
            Err(reason) => Verdict::rejected(reason),
        };
        verdict.right = Some(AuthorityState {
            subsystem: wish.subsystem.clone(),
            holder,
            holder_name: if holder == NOBODY {
                String::new()
            } else {
                state.called(holder)
            },
        });
        verdict
    }
}
