//! Entry points of the fuzz targets. Not part of the interface.

/// Lines of a coordinator and of an agent: any bytes are parsed, or refused with an error of one line.
pub fn agent(data: &[u8]) {
    crate::scale::agents::fuzz(data);
}

#[cfg(test)]
mod tests {
    /// Each seed of the corpus unchanged, truncated at any byte, and with any byte changed.
    #[test]
    fn corpus_and_mutants_of_it_are_understood_or_refused() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/bench_agent");
        let mut seeds = 0;
        for entry in std::fs::read_dir(corpus).expect("the corpus is there") {
            let seed = std::fs::read(entry.expect("an entry").path()).expect("reads");
            super::agent(&seed);
            seeds += 1;
            for at in 0..seed.len() {
                super::agent(&seed[..at]);
                for change in [0, b'"', b'}', b'-', b'9', 0xff, seed[at] ^ 1] {
                    let mut mutant = seed.clone();
                    mutant[at] = change;
                    super::agent(&mutant);
                }
            }
        }
        assert!(seeds >= 4, "{seeds} seeds");
    }
}
