//! Suggests the name that a misspelt one was meant to be.

/// Of the `candidates`, the one that `wanted` most likely means: a few characters differ, one begins with the other, or
/// both have the same last word. Names that differ in case only are equal.
///
/// ```
/// let topics = ["/camera/image_raw", "/odom", "/scan"];
/// assert_eq!(schema::nearest("/odmo", topics), Some("/odom"));
/// assert_eq!(schema::nearest("/image_raw", topics), Some("/camera/image_raw"));
/// assert_eq!(schema::nearest("/cmd_vel", topics), None);
/// ```
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = Some(folded(wanted)).filter(|w| !w.is_empty())?;
    let scored = candidates
        .into_iter()
        .filter_map(|name| Some((score(&wanted, &folded(name))?, name)));
    scored.min().map(|(_, name)| name)
}

/// The suggestion as an addition to an error: empty, or ` (did you mean /scan?)`.
pub fn did_you_mean(near: Option<&str>) -> String {
    near.map(|name| format!(" (did you mean {name}?)"))
        .unwrap_or_default()
}

/// A YAML parser's text about a key or word that it does not know, with the one that was meant, if one of those that it
/// expects is like it. Other texts stay as they are.
///
/// ```
/// let text = "unknown field `priorty`, expected one of depth, priority";
/// let helpful = "unknown field `priorty` (did you mean priority?), expected one of depth, priority";
/// assert_eq!(schema::with_suggestion(text), helpful);
/// ```
pub fn with_suggestion(problem: &str) -> String {
    let suggested = || {
        let rest = ["unknown field `", "unknown variant `"]
            .iter()
            .find_map(|start| problem.strip_prefix(start))?;
        let (wanted, expected) = rest.split_once("`, expected one of ")?;
        let known = expected.split(", ").map(|name| name.trim_matches('`'));
        let near = did_you_mean(Some(nearest(wanted, known)?));
        Some(problem.replacen("`, expected", &format!("`{near}, expected"), 1))
    };
    suggested().unwrap_or_else(|| problem.to_owned())
}

/// Shortest name of which another may be a longer form.
const MIN_PREFIX: usize = 3;
/// Most characters that may differ.
const MAX_EDITS: usize = 3;

fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Kind of the resemblance, the best first, and its distance.
fn score(wanted: &[char], name: &[char]) -> Option<(u8, usize)> {
    let apart = wanted.len().abs_diff(name.len());
    let edits = (wanted.len().min(name.len()) / 3).min(MAX_EDITS);
    if apart <= edits {
        let distance = distance(wanted, name);
        if distance <= edits {
            return Some((0, distance));
        }
    }
    let is_long = |name: &[char]| name.iter().filter(|c| c.is_alphanumeric()).count() >= MIN_PREFIX;
    let begins = |long: &[char], short: &[char]| is_long(short) && long.starts_with(short);
    if begins(name, wanted) || begins(wanted, name) {
        return Some((1, apart));
    }
    let last = |name: &[char]| -> Vec<char> {
        let word = name.rsplit(|c| *c == '/').next().unwrap_or_default();
        word.to_vec()
    };
    let word = last(wanted);
    (!word.is_empty() && word == last(name)).then_some((2, apart))
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one into the other (the optimal string
/// alignment distance).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = at(&last, j) + usize::from(x != y);
            let mut least = replaced.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if is_swap {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    at(&last, b.len())
}

fn at(row: &[usize], index: usize) -> usize {
    row.get(index).copied().unwrap_or(usize::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_the_wanted_one_are_suggested() {
        let types = ["geometry_msgs/Twist", "sensor_msgs/LaserScan", "std_msgs/String"];
        assert_eq!(nearest("std_msgs/Strng", types), Some("std_msgs/String"));
        assert_eq!(nearest("std_msg/string", types), Some("std_msgs/String"));
        assert_eq!(nearest("LaserScan", types), Some("sensor_msgs/LaserScan"));
        assert_eq!(nearest("frame", ["seq", "stamp", "frame_id"]), Some("frame_id"));
        assert_eq!(nearest("wdith", ["height", "width", "step"]), Some("width"));
        assert_eq!(nearest("/scan", ["/scan_filtered", "/scam"]), Some("/scam"));
    }

    #[test]
    fn names_that_resemble_nothing_get_no_suggestion() {
        assert_eq!(nearest("w", ["x", "y", "z"]), None);
        assert_eq!(nearest("/a", ["/b"]), None);
        assert_eq!(nearest("", ["", "/x"]), None);
        assert_eq!(nearest("/odom", ["/chatter", "/tf"]), None);
        assert_eq!(nearest("/odom", []), None);
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        let distance = |a: &str, b: &str| distance(&folded(a), &folded(b));
        assert_eq!(distance("odmo", "odom"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn a_parsers_text_gets_a_suggestion_only_if_a_word_is_alike() {
        let text = "unknown variant `quik`, expected one of `quic`, `udp`";
        assert!(with_suggestion(text).starts_with("unknown variant `quik` (did you mean quic?), expected"));
        for same in [
            "unknown field `speed`, expected one of rate, loss",
            "expected mapping start",
            "",
        ] {
            assert_eq!(with_suggestion(same), same);
        }
    }
}
