//! Entry points for the fuzz targets. Not part of the interface.

use crate::Scenario;
use crate::scenario::Settings;
use crate::tap::request::Request;

/// A scenario: any text yields a lab or one line that says what is wrong.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Scenario::parse(text, "fuzz") {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// A control message: any line yields a request or one line that says what is wrong. Every request can be serialized.
pub fn control(data: &[u8]) {
    match Request::parse(data) {
        Err(error) => assert_eq!(error.lines().count(), 1, "{error}"),
        Ok(request) => {
            let again = serde_json::to_vec(&request).expect("can be written");
            assert_eq!(Request::parse(&again).as_ref(), Ok(&request));
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if let Err(error) = Settings::from_words(&words) {
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(corpus).expect("the corpus is there");
        let seeds: Vec<_> = entries
            .map(|e| std::fs::read(e.expect("an entry").path()).expect("reads"))
            .collect();
        assert!(seeds.len() >= 2);
        seeds
    }

    /// Runs each seed, cut at every byte, and with bytes replaced.
    fn replay(target: &str, run: fn(&[u8])) {
        let mut state = 1u64;
        for seed in seeds(target) {
            (0..=seed.len()).for_each(|cut| run(&seed[..cut]));
            for _ in 0..1500 {
                let mut bad = seed.clone();
                for _ in 0..3 {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    let at = (state >> 33) as usize % bad.len();
                    bad[at] = b" \n:-{}[]&*!'\"09az%M>,"[(state >> 20) as usize % 21];
                }
                run(&bad);
            }
        }
    }

    #[test]
    fn scenarios_whole_cut_and_mutated_are_read_or_refused() {
        replay("lab_scenario", super::scenario);
    }

    #[test]
    fn control_messages_whole_cut_and_mutated_are_read_or_refused() {
        replay("lab_control", super::control);
    }
}
