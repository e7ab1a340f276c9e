//! The right to move each subsystem: held by one controller at a time (decision 170).

use super::{Id, NOBODY};

/// The subsystems of a robot, and the holder of the right to move each.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    subsystems: Vec<Subsystem>,
}

#[derive(Debug)]
struct Subsystem {
    name: String,
    holder: Id,
}

/// The scope of a request: one subsystem's number, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    One(usize),
}

/// Another holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) subsystem: usize,
    /// `NOBODY` if the right is free, but has to be requested.
    pub(crate) by: Id,
}

impl Rights {
    /// Returns the number of the subsystem with this name, which is added if it is unknown.
    pub(crate) fn subsystem(&mut self, name: &str) -> usize {
        self.subsystems
            .iter()
            .position(|s| s.name == name)
            .unwrap_or_else(|| {
                self.subsystems.push(Subsystem {
                    name: name.to_owned(),
                    holder: NOBODY,
                });
                self.subsystems.len() - 1
            })
    }

    /// Returns the scope that a name stands for; the empty name is the whole robot.
    pub(crate) fn which(&self, name: &str) -> Option<Which> {
        if name.is_empty() {
            return Some(Which::All);
        }
        self.subsystems
            .iter()
            .position(|s| s.name == name)
            .map(Which::One)
    }

    pub(crate) fn name(&self, subsystem: usize) -> &str {
        self.subsystems.get(subsystem).map_or("", |s| &s.name)
    }

    /// Returns names and holders, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Id)> {
        self.subsystems.iter().map(|s| (s.name.as_str(), s.holder))
    }

    /// Returns the holder; of several subsystems, the controller that holds all of them.
    pub(crate) fn holder(&self, which: Which) -> Id {
        let mut holders = self.of(which).map(|n| self.subsystems[n].holder);
        let first = holders.next().unwrap_or(NOBODY);
        if holders.all(|h| h == first) {
            first
        } else {
            NOBODY
        }
    }

    pub(crate) fn holds_any(&self, controller: Id) -> bool {
        self.subsystems.iter().any(|s| s.holder == controller)
    }

    /// Returns whether `controller` may move it now. With `implicit`, a free right goes to the first controller that
    /// moves.
    pub(crate) fn moves(&mut self, controller: Id, subsystem: usize, implicit: bool) -> Result<(), Held> {
        match self.subsystems.get_mut(subsystem) {
            Some(s) if s.holder == controller => Ok(()),
            Some(s) if s.holder == NOBODY && implicit => {
                s.holder = controller;
                Ok(())
            }
            Some(s) => Err(Held {
                subsystem,
                by: s.holder,
            }),
            None => Err(Held {
                subsystem,
                by: NOBODY,
            }),
        }
    }

    /// Grants the right where it is free: for all subsystems, or for none.
    pub(crate) fn request(&mut self, controller: Id, which: Which) -> Result<(), Held> {
        if let Some(n) = self
            .of(which)
            .find(|n| ![controller, NOBODY].contains(&self.subsystems[*n].holder))
        {
            return Err(Held {
                subsystem: n,
                by: self.subsystems[n].holder,
            });
        }
        self.take_over(controller, which);
        Ok(())
    }

    /// Grants the right regardless of its holder: the robot has already permitted it.
    pub(crate) fn take_over(&mut self, controller: Id, which: Which) {
        for n in self.of(which) {
            self.subsystems[n].holder = controller;
        }
    }

    /// Releases the rights in this scope that `controller` holds.
    pub(crate) fn release(&mut self, controller: Id, which: Which) {
        for n in self.of(which) {
            if self.subsystems[n].holder == controller {
                self.subsystems[n].holder = NOBODY;
            }
        }
    }

    /// Hands the rights in this scope that `controller` holds over to `to`.
    pub(crate) fn hand_over(&mut self, controller: Id, to: Id, which: Which) -> Result<(), Held> {
        let mut any = false;
        for n in self.of(which) {
            if self.subsystems[n].holder == controller {
                self.subsystems[n].holder = to;
                any = true;
            }
        }
        let subsystem = self.of(which).next().unwrap_or(0);
        if any {
            Ok(())
        } else {
            Err(Held {
                subsystem,
                by: self.holder(which),
            })
        }
    }

    fn of(&self, which: Which) -> std::ops::Range<usize> {
        match which {
            Which::All => 0..self.subsystems.len(),
            Which::One(n) if n < self.subsystems.len() => n..n + 1,
            Which::One(_) => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Id = 1;
    const B: Id = 2;

    fn two() -> Rights {
        let mut rights = Rights::default();
        assert_eq!(
            (
                rights.subsystem("base"),
                rights.subsystem("arm"),
                rights.subsystem("base")
            ),
            (0, 1, 0)
        );
        rights
    }

    #[test]
    fn a_free_right_goes_to_the_first_mover_unless_it_has_to_be_asked_for() {
        let mut rights = two();
        assert_eq!(
            rights.moves(A, 0, false),
            Err(Held {
                subsystem: 0,
                by: NOBODY
            })
        );
        assert_eq!(rights.moves(A, 0, true), Ok(()));
        assert_eq!(rights.moves(A, 0, false), Ok(()));
        assert_eq!(rights.moves(B, 0, true), Err(Held { subsystem: 0, by: A }));
        assert_eq!(rights.moves(B, 1, true), Ok(()));
        assert!(rights.moves(A, 2, true).is_err(), "no such subsystem");
    }

    #[test]
    fn all_or_none_is_granted() {
        let mut rights = two();
        assert_eq!(rights.request(B, Which::One(1)), Ok(()));
        assert_eq!(rights.request(A, Which::All), Err(Held { subsystem: 1, by: B }));
        assert_eq!(rights.holder(Which::One(0)), NOBODY);
        rights.release(A, Which::All);
        assert_eq!(rights.holder(Which::One(1)), B, "A cannot release it");
        rights.release(B, Which::All);
        assert_eq!(rights.request(A, Which::All), Ok(()));
        assert_eq!(rights.holder(Which::All), A);
    }

    #[test]
    fn only_the_holder_hands_over_and_releases() {
        let mut rights = two();
        rights.request(A, Which::All).expect("free");
        assert_eq!(
            rights.hand_over(B, B, Which::One(0)),
            Err(Held { subsystem: 0, by: A })
        );
        assert_eq!(rights.hand_over(A, B, Which::One(0)), Ok(()));
        assert_eq!(rights.moves(A, 0, true), Err(Held { subsystem: 0, by: B }));
        rights.release(A, Which::All);
        assert_eq!(
            (rights.holder(Which::One(0)), rights.holder(Which::One(1))),
            (B, NOBODY)
        );
        rights.take_over(A, Which::All);
        rights.release(B, Which::All);
        assert_eq!(rights.holder(Which::All), A);
        assert!(rights.holds_any(A) && !rights.holds_any(B));
        assert_eq!(
            (rights.which(""), rights.which("arm")),
            (Some(Which::All), Some(Which::One(1)))
        );
        assert_eq!(rights.which("leg"), None);
    }
}
