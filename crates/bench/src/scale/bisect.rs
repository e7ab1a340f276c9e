//! The search for the highest rate that is sustained.

/// How far from where it is expected the highest rate is sought first.
const NEAR: f64 = 1.15;
/// The longest step.
const STEP: f64 = 2.0;

/// Upwards (or down) in steps until a rate is not sustained (or is), then between, until the bounds are close. It measures
/// nothing: it is told what each try gave.
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
    /// Between two rates, beginning at `start`, until good and bad are within `close` (0.05 are 5 %).
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

    /// The same where it is expected to be near the start: the first steps are short, and each is longer than the one before.
    pub(super) fn near(self) -> Search {
        Search { step: NEAR, ..self }
    }

    /// The next rate to try; `None`: it is found.
    pub(super) fn next(&self) -> Option<f64> {
        match (self.good, self.bad) {
            (None, None) => Some(self.start),
            (Some(good), None) => (good < self.most).then(|| (good * self.step).min(self.most)),
            (None, Some(bad)) => (bad > self.least).then(|| (bad / self.step).max(self.least)),
            (Some(good), Some(bad)) => (bad > good * (1.0 + self.close)).then(|| (good * bad).sqrt()),
        }
    }

    /// What the last try gave.
    pub(super) fn tell(&mut self, hz: f64, sustained: bool) {
        let side = if sustained { &mut self.good } else { &mut self.bad };
        if hz != self.start {
            self.step = (self.step * self.step).min(STEP);
        }
        *side = Some(hz);
    }

    /// The highest rate that was sustained, if any was.
    pub(super) fn sustained(&self) -> Option<f64> {
        self.good
    }

    /// The lowest that was not; `None`: not even the highest rate was too much.
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
    fn what_is_never_or_always_sustained_ends_the_search() {
        let (all, _) = search(f64::INFINITY, 50.0);
        assert_eq!((all.sustained(), all.too_much()), (Some(1e6), None));
        let (none, _) = search(0.0, 50.0);
        assert_eq!((none.sustained(), none.too_much()), (None, Some(0.5)));
    }
}
