//! What the fuzz targets call. Not part of the interface.

use crate::Config;

/// A configuration file: any text gives a configuration or one line that says what is wrong.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Config::parse(text) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_is_replayed() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/link_config");
        let mut seeds = 0;
        for entry in std::fs::read_dir(corpus).expect("the corpus is there") {
            super::config(&std::fs::read(entry.expect("an entry").path()).expect("reads"));
            seeds += 1;
        }
        assert!(seeds >= 2);
    }

    #[test]
    fn cut_and_mutated_configurations_are_refused_or_read() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/link_config/robot");
        let good = std::fs::read(corpus).expect("reads");
        super::config(&good);
        for cut in 0..good.len() {
            super::config(&good[..cut]);
        }
        let mut state = 1u64;
        for _ in 0..5000 {
            let mut bad = good.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % bad.len();
                bad[at] = b" \n:-{}[]&*!'\"09azM"[(state >> 20) as usize % 18];
            }
            super::config(&bad);
        }
    }
}
