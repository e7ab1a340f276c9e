//! Parses a line before it has any effect.

use super::{body, kinds, shorthand};
use remote::Expiry;
use std::time::Duration;

/// Longest time that a user may give, in seconds.
const MOST_SECONDS: f64 = 86_400.0;

/// Splits a line into its command, the words after it, and the same text unsplit; `None` if the line is empty.
pub(super) fn cut(line: &str) -> Option<(&str, Vec<&str>, &str)> {
    let line = line.trim_start();
    let mut words = line.split_whitespace();
    let command = words.next()?;
    let tail = line.get(command.len()..).unwrap_or_default().trim();
    Some((command, words.collect(), tail))
}

/// Parses `set KIND BODY` into the kind and the encoded body.
pub(super) fn set(tail: &str) -> Result<(&'static kinds::Taken, Vec<u8>), String> {
    let (name, rest) = tail.split_once(char::is_whitespace).unwrap_or((tail, ""));
    if name.is_empty() {
        return Err("set KIND JSON, or the short form: `help set` lists the forms".into());
    }
    let kind = kinds::command_named(name)?;
    let rest = rest.trim();
    if rest.starts_with('{') {
        return Ok((kind, body::from_json(&(kind.message)(), rest)?));
    }
    let words: Vec<_> = rest.split_whitespace().collect();
    let form = shorthand::form(kind.name).map_or("JSON", |(_, form, _)| form);
    let bytes = shorthand::body(kind.name, &words);
    let bytes = bytes.map_err(|e| format!("{e}: set {} {form}, or JSON", kinds::short(kind.name)))?;
    Ok((kind, bytes))
}

/// Limits of a `watch` command.
#[derive(Debug, PartialEq)]
pub(super) struct Watch {
    /// Number of values after which it ends.
    pub(super) most: u64,
    /// How long it waits for the next value.
    pub(super) patience: Duration,
    pub(super) full: bool,
}

/// Parses the words after kind and channel of `watch`.
pub(super) fn watch(words: &[&str]) -> Result<Watch, String> {
    const FORM: &str = "watch KIND [CHANNEL] [-n N] [--timeout SECONDS] [--full]";
    let mut watch = Watch {
        most: u64::MAX,
        patience: Duration::from_secs(30),
        full: false,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match (*word, rest.next()) {
            ("--full", None) => watch.full = true,
            ("--full", Some(_)) => return Err(format!("--full goes last: {FORM}")),
            ("-n", Some(n)) => match n.parse() {
                Ok(n) if n > 0 => watch.most = n,
                _ => return Err(format!("-n takes a number from 1: {FORM}")),
            },
            ("--timeout", Some(s)) => {
                let wrong = || format!("--timeout takes seconds, at most a day: {FORM}");
                watch.patience = seconds(s).ok_or_else(wrong)?;
            }
            _ => return Err(FORM.into()),
        }
    }
    Ok(watch)
}

/// Parses the words after `expiry`; `None` leaves the expiry unchanged.
pub(super) fn expiry(words: &[&str]) -> Result<Option<Expiry>, String> {
    Ok(Some(match words {
        [] => return Ok(None),
        ["default"] => Expiry::Default,
        ["never"] => Expiry::Never,
        [ms] => match ms.parse::<f64>().ok().filter(|ms| (0.0..=1e9).contains(ms)) {
            Some(ms) => Expiry::After(Duration::from_secs_f64(ms / 1e3)),
            None => {
                return Err(format!(
                    "{ms:?} is not a time: expiry MILLISECONDS, `default` or `never`"
                ));
            }
        },
        _ => return Err("expiry [MILLISECONDS | default | never]".into()),
    }))
}

/// A time of at most a day.
pub(super) fn seconds(word: &str) -> Option<Duration> {
    let seconds = word
        .parse()
        .ok()
        .filter(|s: &f64| (0.0..=MOST_SECONDS).contains(s));
    seconds.map(Duration::from_secs_f64)
}

/// Any bytes as lines: each is parsed, or refused with a message of one line. The body of a command parses as its
/// message, and prints as JSON that parses to the same.
#[cfg_attr(not(test), allow(dead_code, reason = "for the fuzz target"))]
pub(super) fn fuzz(data: &[u8]) {
    use remote::types::ComplexActionType;
    let text = String::from_utf8_lossy(data);
    // Line by line, as the session reads them.
    for (command, words, tail) in text.lines().filter_map(cut) {
        let rest = words.get(1..).unwrap_or_default();
        let refused = match command {
            "set" => set(tail).map(|(kind, bytes)| {
                let message = (kind.message)();
                let json = body::to_json(&message, &bytes).expect("a message of its kind");
                let _ = (body::show(&json, false), body::show(&json, true));
                let again = body::from_json(&message, &json.to_string()).expect("what was written is read");
                let same = body::to_json(&message, &again).expect("a message of its kind");
                assert_eq!(json, same);
            }),
            "call" => {
                let name = words.first().copied().unwrap_or_default();
                let all = [ComplexActionType::PoseList, ComplexActionType::TwistList];
                let all = all.map(|kind| shorthand::complex(name, kind, rest).map(drop));
                all.into_iter().collect()
            }
            "get" | "request" | "listen" => {
                kinds::telemetry_named(words.first().copied().unwrap_or_default()).map(drop)
            }
            "watch" => watch(rest).map(|w| assert!(w.most > 0 && w.patience.as_secs_f64() <= MOST_SECONDS)),
            "expiry" => expiry(&words).map(drop),
            "sleep" => {
                let _ = words.first().and_then(|s| seconds(s));
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(text) = refused {
            assert!(!text.is_empty(), "{command}: refused without a reason");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::fuzzing::Chance;
    use std::path::Path;

    #[test]
    fn a_line_is_cut_into_its_command_and_the_rest() {
        assert_eq!(
            cut("  set  twist 1  2 "),
            Some(("set", vec!["twist", "1", "2"], "twist 1  2"))
        );
        assert_eq!(cut("\t quit"), Some(("quit", vec![], "")));
        assert_eq!(cut(" \u{a0}\t"), None);
    }

    #[test]
    fn watching_says_how_long() {
        let all = |words: &str| watch(&words.split_whitespace().collect::<Vec<_>>());
        let expected = Watch {
            most: 3,
            patience: Duration::from_millis(1500),
            full: true,
        };
        assert_eq!(all("-n 3 --timeout 1.5 --full"), Ok(expected));
        for bad in [
            "-n",
            "-n 0",
            "-n x",
            "--timeout -1",
            "--timeout NaN",
            "--full -n 1",
            "3",
        ] {
            assert!(all(bad).is_err(), "{bad}");
        }
    }

    /// Each seed of the fuzz target, cut at every byte, and mutants of all: 4000, or as many as `PACKETS` says.
    #[test]
    fn lines_whole_cut_and_mutated_mean_something_or_are_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/control_line");
        let entries = std::fs::read_dir(folder).expect("the corpus is there");
        let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        files.sort();
        assert!(files.len() >= 2);
        let seeds: Vec<_> = files.iter().map(|f| std::fs::read(f).expect("reads")).collect();
        for seed in &seeds {
            (0..=seed.len()).for_each(|cut| fuzz(&seed[..cut]));
        }
        let mut chance = Chance(0x0F00_D5EE);
        let mutants: u64 =
            std::env::var("PACKETS").map_or(4_000, |n| n.parse().expect("PACKETS is a number"));
        for _ in 0..mutants {
            fuzz(&chance.mutant(&seeds));
        }
    }
}
