//! Partition names, with the wildcards of POSIX `fnmatch` (DDS 1.4, section 2.2.3.13).

/// Whether two names meet. A name with wildcards meets the names that it matches, and a name with wildcards only if
/// both are equal.
pub(crate) fn meet(a: &str, b: &str) -> bool {
    let wild = |s: &str| s.contains(['*', '?', '[']);
    match (wild(a), wild(b)) {
        (false, false) => a == b,
        (true, false) => fits(a.as_bytes(), b.as_bytes()),
        (false, true) => fits(b.as_bytes(), a.as_bytes()),
        (true, true) => a == b,
    }
}

/// Matches like POSIX `fnmatch`. Backtracks to the last `*` only, so the time is at most the product of the lengths.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (pattern, text);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match (p.split_first(), t.split_first()) {
            (Some((b'*', rest)), _) => {
                star = Some((rest, t));
                p = rest;
                continue;
            }
            (None, None) => return true,
            (Some((b'?', rest)), Some((_, after))) => Some((rest, after)),
            (Some((b'[', rest)), Some((c, after))) => match class(rest, *c) {
                Some((true, rest)) => Some((rest, after)),
                _ => None,
            },
            (Some((a, rest)), Some((b, after))) if a == b => Some((rest, after)),
            _ => None,
        };
        match (step, star) {
            (Some((rest, after)), _) => (p, t) = (rest, after),
            (None, Some((rest, [_, after @ ..]))) => {
                star = Some((rest, after));
                (p, t) = (rest, after);
            }
            (None, _) => return false,
        }
    }
}

/// Whether a character is in a class, and the pattern after the class; `None` if the class does not end.
fn class(pattern: &[u8], c: u8) -> Option<(bool, &[u8])> {
    let (negated, mut p) = match pattern {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    let mut first = true;
    loop {
        match p {
            [b']', rest @ ..] if !first => return Some((found != negated, rest)),
            [from, b'-', to, rest @ ..] if *to != b']' => {
                found |= (*from..=*to).contains(&c);
                p = rest;
            }
            [one, rest @ ..] => {
                found |= *one == c;
                p = rest;
            }
            [] => return None,
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::Qos;

    #[test]
    fn partitions_meet_by_name_and_pattern() {
        let of = |names: &[&str]| Qos {
            partitions: names.iter().map(|n| (*n).to_owned()).collect(),
            ..Qos::reader()
        };
        for (a, b, meets) in [
            (&[][..], &[][..], true),
            (&[], &[""], true),
            (&["a"], &[], false),
            (&["a", "b"], &["c", "b"], true),
            (&["robot*"], &["robot7"], true),
            (&["robot*"], &["robot*"], true),
            (&["r*"], &["robo*"], false),
            (&["ro?ot[0-9]"], &["robot7"], true),
            (&["ro?ot[!0-9]"], &["robot7"], false),
            (&["*a*b*c"], &["xxaxxbxxc"], true),
            (&["*a*b*c"], &["xxaxxbxx"], false),
            (&["[a"], &["a"], false),
            (&["*"], &[], true),
        ] {
            assert_eq!(of(a).meets(&of(b)), meets, "{a:?} {b:?}");
            assert_eq!(of(b).meets(&of(a)), meets, "{b:?} {a:?}");
        }
        let (stars, text) = ("*a".repeat(200), "a".repeat(4000) + "b");
        assert!(
            !fits(stars.as_bytes(), text.as_bytes()),
            "in time that is bounded"
        );
    }
}
