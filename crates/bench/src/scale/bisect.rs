//! The search for the highest sustained rate.

/// Factor of the first step if the highest rate is expected near the start.
const NEAR: f64 = 1.15;
/// Maximum factor of a step.
const STEP: f64 = 2.0;

/// Goes up (or down) in steps until a rate is not sustained (or is), then bisects until the bounds are close. It does
/// not measure: it receives the result of each probe.
#[derive(Clone, Debug)]
pub(super) struct Search {
    least: f64,
    most: f64,
    close: f64,
    good: Option<f64>,
    bad: Option<f64>,
    start: f64,
    step: f64,
}

impl Search {
    /// Searches between two rates, beginning at `start`, until the bounds are within `close` (0.05 is 5 %).
    pub(super) fn new(least: f64, most: f64, start: f64, close: f64) -> Search {
        Search {
            least,
            most,
            close,
            good: None,
            bad: None,
            start: start.clamp(least, most),
            step: STEP,
        }
    }

    /// The same if the rate is expected near the start: the first steps are short, and each is longer than the previous
    /// one.
    pub(super) fn near(self) -> Search {
        Search { step: NEAR, ..self }
    }

    /// Returns the next rate to try; `None`: the search is done.
    pub(super) fn next(&self) -> Option<f64> {
        match (self.good, self.bad) {
            (None, None) => Some(self.start),
            (Some(good), None) => (good < self.most).then(|| (good * self.step).min(self.most)),
            (None, Some(bad)) => (bad > self.least).then(|| (bad / self.step).max(self.least)),
            (Some(good), Some(bad)) => (bad > good * (1.0 + self.close)).then(|| (good * bad).sqrt()),
        }
    }

    /// Records the result of the last probe.
    pub(super) fn tell(&mut self, hz: f64, sustained: bool) {
        let side = if sustained { &mut self.good } else { &mut self.bad };
        if hz != self.start {
            self.step = (self.step * self.step).min(STEP);
        }
        *side = Some(hz);
    }

    /// Returns the highest rate that was sustained, if any.
    pub(super) fn sustained(&self) -> Option<f64> {
        self.good
    }

    /// Returns the lowest rate that was not; `None`: even the highest rate was sustained.
    #[cfg(test)]
    fn too_much(&self) -> Option<f64> {
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: f64, start: f64) -> (Search, u32) {
        let (mut search, mut tries) = (Search::new(0.5, 1e6, start, 0.05), 0);
        while let Some(hz) = search.next() {
            search.tell(hz, hz <= limit);
            tries += 1;
            assert!(tries < 60, "it ends");
        }
        (search, tries)
    }

    #[test]
    fn it_finds_any_limit_to_five_percent_from_anywhere() {
        for limit in [0.7, 3.0, 211.0, 4567.0, 999_999.0] {
            for start in [0.5, 50.0, 20_000.0, 1e6] {
                let (found, tries) = search(limit, start);
                let (good, bad) = (found.sustained().expect("some"), found.too_much().expect("some"));
                assert!(good <= limit && limit < bad && bad <= good * 1.05, "{found:?}");
                assert!(tries < 30, "{limit} from {start}: {tries}");
            }
        }
    }

    #[test]
    fn where_it_is_expected_it_is_found_with_few_tries() {
        let tries = |limit: f64, start| {
            let (mut search, mut tries) = (Search::new(0.5, 1e6, start, 0.05).near(), 0);
            while let Some(hz) = search.next() {
                search.tell(hz, hz <= limit);
                tries += 1;
            }
            let (good, bad) = (
                search.sustained().expect("some"),
                search.too_much().expect("some"),
            );
            assert!(good <= limit && limit < bad && bad <= good * 1.05, "{search:?}");
            tries
        };
        for limit in [90.0, 99.0, 100.0, 104.0, 110.0] {
            assert!(tries(limit, 100.0) <= 4, "{limit}");
        }
        for limit in [0.7, 211.0, 999_999.0] {
            assert!(tries(limit, 20_000.0) < 32, "{limit}");
        }
    }

    #[test]
    fn the_search_ends_if_no_or_every_rate_is_sustained() {
        let (all, _) = search(f64::INFINITY, 50.0);
        assert_eq!((all.sustained(), all.too_much()), (Some(1e6), None));
        let (none, _) = search(0.0, 50.0);
        assert_eq!((none.sustained(), none.too_much()), (None, Some(0.5)));
    }
}
