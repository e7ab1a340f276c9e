//! What the fuzz targets call. Not part of the interface.

use crate::v6::{self, Ack, Request, Telemetry};
use crate::{command, telemetry};

/// A frame of version 6, as either end would take it: whatever comes, it is read or refused; what is read is written alike.
pub fn v6(frame: &[u8]) {
    match Request::parse(frame) {
        Ok(request) => {
            let again = request.encode();
            if let Request::Command { number, body } = request {
                assert_eq!(again, frame);
                if let Some(kind) = command::by_v6(number) {
                    let _ = (kind.check)(body);
                }
            }
            // A file's name may have been written otherwise, with fields that are not known.
            assert_eq!(Request::parse(&again).as_ref(), Ok(&request));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    if let Ok(telemetry) = Telemetry::parse(frame) {
        assert_eq!(telemetry.encode(), frame);
        if let Some(kind) = telemetry::by_v6(telemetry.number) {
            let _ = (kind.check)(telemetry.body);
        }
    }
    for sent in [4, 11] {
        match Ack::parse(sent, frame) {
            Ok(Ack::Taken) => assert_eq!(frame, v6::ack(sent)),
            Ok(Ack::Refused) => assert_eq!(frame, v6::nak()),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
    let _ = v6::latest(frame);
    let _ = v6::version(frame);
    const MOST: u64 = 1 << 20;
    match v6::parse_files(frame, MOST) {
        Ok(files) => {
            assert!(files.values().map(|data| data.len() as u64).sum::<u64>() <= MOST);
            for path in files.keys() {
                assert_eq!(v6::confined(path).as_ref(), Ok(path));
            }
            // What was read can be sent on, and is the same there.
            let entries = files.iter().map(|(path, data)| (path.as_str(), &data[..]));
            let again = v6::files(entries, true).expect("as many as were read");
            assert_eq!(v6::parse_files(&again, MOST), Ok(files));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

#[cfg(test)]
mod tests {
    use proto::fuzzing::Chance;
    use std::path::Path;

    /// Each seed, cut at every byte, and mutants of all.
    fn replay(target: &str, run: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let entries = std::fs::read_dir(folder).expect("the corpus is there");
        let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        files.sort();
        assert!(files.len() >= 2);
        let seeds: Vec<_> = files.iter().map(|f| std::fs::read(f).expect("reads")).collect();
        for seed in &seeds {
            (0..=seed.len()).for_each(|cut| run(&seed[..cut]));
        }
        let mut chance = Chance(0x0F00_D5EE);
        for _ in 0..4000 {
            run(&chance.mutant(&seeds));
        }
    }

    #[test]
    fn frames_of_version_6_whole_cut_and_mutated_are_read_or_refused() {
        replay("remote_v6", super::v6);
    }
}
