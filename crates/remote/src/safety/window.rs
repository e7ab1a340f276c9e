//! Ensures that a request is executed at most once: a repeated request is only answered again.

use std::collections::VecDeque;

/// Number of answers kept per controller.
const KEPT: usize = 64;
/// Maximum repetitions that wait for one request which is still being executed.
const WAITERS: usize = 4;

/// The newest requests of one controller, with their answers `A`; `W` is the reply handle of a request that was
/// repeated meanwhile.
#[derive(Debug)]
pub(crate) struct Window<A, W> {
    /// In the order of arrival.
    requests: VecDeque<(u64, State<A, W>)>,
    /// The highest sequence that has been forgotten.
    floor: u64,
}

#[derive(Debug)]
enum State<A, W> {
    UnderWay(Vec<W>),
    Done(A),
}

/// What to do with a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Begin<A, W> {
    /// It is new: execute it, then call [`Window::end`].
    New(W),
    /// It was already answered, with this answer.
    Again(A, W),
    /// It is being executed: [`Window::end`] returns the reply handle.
    Waits,
    /// It is unknown whether it was executed.
    TooOld(W),
    /// The table is full of requests that are being executed.
    Full(W),
}

impl<A: Clone, W> Window<A, W> {
    pub(crate) fn new() -> Self {
        Window {
            requests: VecDeque::new(),
            floor: 0,
        }
    }

    /// A request with this sequence arrived, with its reply handle.
    pub(crate) fn begin(&mut self, sequence: u64, waiter: W) -> Begin<A, W> {
        if let Some((_, state)) = self.requests.iter_mut().rev().find(|(s, _)| *s == sequence) {
            return match state {
                State::Done(answer) => Begin::Again(answer.clone(), waiter),
                State::UnderWay(waiters) if waiters.len() < WAITERS => {
                    waiters.push(waiter);
                    Begin::Waits
                }
                State::UnderWay(_) => Begin::Full(waiter),
            };
        }
        if sequence <= self.floor {
            return Begin::TooOld(waiter);
        }
        if self.requests.len() == KEPT {
            // A request in progress is not forgotten, or it could be executed twice.
            match self
                .requests
                .iter()
                .position(|(_, s)| matches!(s, State::Done(_)))
            {
                None => return Begin::Full(waiter),
                Some(at) => {
                    let forgotten = self.requests.remove(at).map_or(0, |r| r.0);
                    self.floor = self.floor.max(forgotten);
                }
            }
            if sequence <= self.floor {
                return Begin::TooOld(waiter);
            }
        }
        self.requests.push_back((sequence, State::UnderWay(Vec::new())));
        Begin::New(waiter)
    }

    /// A new request has been answered. Returns the reply handles of its repetitions.
    pub(crate) fn end(&mut self, sequence: u64, answer: A) -> Vec<W> {
        match self.requests.iter_mut().rev().find(|(s, _)| *s == sequence) {
            Some((_, state)) => match std::mem::replace(state, State::Done(answer)) {
                State::UnderWay(waiters) => waiters,
                State::Done(_) => Vec::new(),
            },
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_repetition_gets_the_first_answer_or_waits_for_it() {
        let mut window = Window::new();
        assert_eq!(window.begin(5, 'a'), Begin::New('a'));
        assert_eq!(window.begin(5, 'b'), Begin::Waits);
        assert_eq!(window.end(5, "done"), ['b']);
        assert_eq!(window.begin(5, 'c'), Begin::Again("done", 'c'));
        // An older one that was overtaken is still new.
        assert_eq!(window.begin(4, 'd'), Begin::New('d'));
    }

    #[test]
    fn forgotten_requests_are_too_old_and_pending_ones_are_kept() {
        let mut window = Window::new();
        assert_eq!(window.begin(1, ()), Begin::New(()));
        for sequence in 2..=200 {
            assert_eq!(window.begin(sequence, ()), Begin::New(()));
            window.end(sequence, ());
        }
        assert_eq!(window.begin(1, ()), Begin::Waits);
        assert_eq!(window.begin(2, ()), Begin::TooOld(()));
        assert_eq!(window.begin(200, ()), Begin::Again((), ()));
    }

    #[test]
    fn nothing_is_unbounded() {
        let mut window: Window<(), u64> = Window::new();
        for sequence in 1..=KEPT as u64 {
            assert_eq!(window.begin(sequence, 0), Begin::New(0));
        }
        assert_eq!(window.begin(1000, 9), Begin::Full(9));
        for n in 0..WAITERS as u64 {
            assert_eq!(window.begin(1, n), Begin::Waits);
        }
        assert_eq!(window.begin(1, 9), Begin::Full(9));
    }

    proptest! {
        /// In any order and with any number of repetitions, each request is executed at most once, and one that was
        /// executed receives its own answer or none.
        #[test]
        fn at_most_once(sequences in proptest::collection::vec(1u64..150, 0..600), delay in 0usize..70) {
            let mut window = Window::new();
            let mut carried: BTreeMap<u64, u32> = BTreeMap::new();
            let mut under_way = VecDeque::new();
            for s in sequences {
                match window.begin(s, ()) {
                    Begin::New(()) => {
                        *carried.entry(s).or_default() += 1;
                        under_way.push_back(s);
                    }
                    Begin::Again(answer, ()) => prop_assert_eq!(answer, s),
                    Begin::Waits | Begin::TooOld(()) | Begin::Full(()) => {}
                }
                if under_way.len() > delay {
                    let s = under_way.pop_front().expect("one");
                    window.end(s, s);
                }
            }
            prop_assert!(carried.values().all(|n| *n == 1));
        }
    }
}
