//! Entry points of the fuzz targets. Not part of the interface.

use crate::frame::{Decoder, Event};
use crate::{Access, Request, parse_json, upgrade};

/// Reads a request's head and runs the checks on it.
pub fn head(data: &[u8]) {
    match Request::parse(data) {
        Ok(Some((request, size))) => {
            assert!(size <= data.len());
            let access = Access::default();
            if let Err(refusal) = access.role(&request) {
                assert_eq!(refusal.to_string().lines().count(), 1);
            }
            let offered = upgrade::offered(&request);
            if let Ok(accepted) = upgrade::accept(&request, offered.first().cloned()) {
                // Nothing of the client's may start another line.
                assert!(accepted.head().lines().count() <= 6);
            }
        }
        Ok(None) => {}
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    let _ = parse_json(data);
}

/// Reads frames in chunks, whose length is the first byte: the result must be that of one chunk.
pub fn frames(data: &[u8]) {
    const MAX: usize = 4096;
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let read = |chunk: usize| {
        let mut decoder = Decoder::new(MAX);
        let mut events: Vec<Event> = Vec::new();
        for bytes in data.chunks(chunk) {
            decoder.feed(bytes);
            loop {
                match decoder.next() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(error) => return (events, Some(error)),
                }
            }
            assert!(decoder.held() <= 2 * MAX + 14 + chunk);
        }
        (events, None)
    };
    assert_eq!(read(usize::from(*first) + 1), read(data.len().max(1)));
}

/// Reads a message of a Foxglove client, as text and as bytes.
pub fn foxglove(data: &[u8]) {
    use crate::foxglove::message::Message;
    let text = Message::text(&String::from_utf8_lossy(data)).map_err(|e| e.to_string());
    let binary = Message::binary(data).map_err(|e| e.to_string());
    for error in [text.err(), binary.err()].into_iter().flatten() {
        assert!(error.lines().count() <= 1, "{error}");
    }
}

/// Reads a message of a page that drives, and steers with it.
pub fn drive(data: &[u8]) {
    use crate::drive::fuzzing::steer;
    for line in data.split(|b| *b == b'\n') {
        if let Err(error) = steer(line) {
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Runs each seed as it is, cut at every position, and with random changes: 2,000 times, or as often as makes
    /// `PACKETS` in total.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus is there").collect();
        assert!(files.len() > 2, "{target} has no corpus");
        let rounds = std::env::var("PACKETS").map_or(2_000, |n| {
            n.parse::<usize>().expect("PACKETS is a number") / files.len()
        });
        // xorshift64
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        for entry in files {
            let seed = std::fs::read(entry.expect("a seed").path()).expect("a seed");
            check(&seed);
            (0..seed.len()).for_each(|n| check(&seed[..n]));
            for _ in 0..rounds {
                let mut mutant = seed.clone();
                for _ in 0..=random() % 3 {
                    let at = random() as usize % mutant.len();
                    match random() % 4 {
                        0 => mutant[at] = random() as u8,
                        1 => mutant.iter_mut().skip(at).take(4).for_each(|b| *b = 0xff),
                        2 => drop(mutant.splice(at..at, seed.iter().copied().skip(at / 2).take(9))),
                        _ => drop(mutant.splice(at..(at + 5).min(mutant.len()), [b'<'])),
                    }
                }
                check(&mutant);
            }
        }
    }

    #[test]
    fn heads_and_their_mutants_are_read_or_refused() {
        replay("web_head", head);
    }

    #[test]
    fn frames_and_their_mutants_are_read_or_refused() {
        replay("web_frames", frames);
    }

    #[test]
    fn messages_of_foxglove_and_their_mutants_are_read_or_refused() {
        replay("web_foxglove", foxglove);
    }

    #[test]
    fn messages_of_pages_that_drive_and_their_mutants_are_read_or_refused() {
        replay("web_drive", drive);
    }
}
