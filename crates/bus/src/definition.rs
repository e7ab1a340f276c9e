//! The difference between two definitions of one type, in terms of their fields.

use std::collections::BTreeMap;

/// The longest definition that an end shows to a mismatched peer, in bytes; longer ones are cut.
pub(crate) const MAX_SHOWN: usize = 32 * 1024;
/// The longest line to quote, in characters.
const MAX_QUOTED: usize = 80;

/// The start of a definition, as much as may be shown.
pub(crate) fn shown(definition: &str) -> &str {
    crate::frame::cut(definition, MAX_SHOWN)
}

/// Returns the first field that differs, with both versions of it. Comments and white space do not count.
///
/// Definitions have ROS's format: the type's own lines, then, for each type that it uses, a line of `=`, a
/// line `MSG: package/Type` and that type's lines.
pub(crate) fn difference(ours: &str, theirs: &str) -> String {
    if ours.trim().is_empty() || theirs.trim().is_empty() {
        return "one of the two has no definition to compare".into();
    }
    let (ours, theirs) = (sections(ours), sections(theirs));
    for (name, our_fields) in &ours {
        let of = if name.is_empty() {
            String::new()
        } else {
            format!(" of {}", quoted(name))
        };
        let Some(their_fields) = theirs.get(name) else {
            return format!("{} is defined here and not there", quoted(name));
        };
        let longer = our_fields.len().max(their_fields.len());
        for i in 0..longer {
            let n = i + 1;
            match (our_fields.get(i), their_fields.get(i)) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => {
                    return format!("field {n}{of} is {} here and {} there", quoted(a), quoted(b));
                }
                (Some(a), None) => return format!("field {n}{of} is {} here and missing there", quoted(a)),
                (None, Some(b)) => return format!("field {n}{of} is missing here and {} there", quoted(b)),
                (None, None) => {}
            }
        }
    }
    if let Some(name) = theirs.keys().find(|name| !ours.contains_key(*name)) {
        return format!("{} is defined there and not here", quoted(name));
    }
    "the fields that are shown are equal, so one of the two sums does not match its definition".into()
}

/// The significant lines, by type; the type itself has an empty name.
fn sections(definition: &str) -> BTreeMap<&str, Vec<String>> {
    let mut all = BTreeMap::new();
    let mut name = "";
    let mut fields = Vec::new();
    for line in definition.lines() {
        if line.starts_with("===") {
            continue;
        }
        if let Some(next) = line.strip_prefix("MSG:") {
            all.insert(name, std::mem::take(&mut fields));
            name = next.trim();
        } else if let Some(field) = field(line) {
            fields.push(field);
        }
    }
    all.insert(name, fields);
    all
}

/// A line without its comment and with single spaces. In a string constant, everything after `=` is the
/// value.
fn field(line: &str) -> Option<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match line.split_once('=') {
        Some((left, _)) if left.trim_start().starts_with("string ") && !left.contains('#') => words(line),
        _ => words(line.split('#').next().unwrap_or_default()),
    };
    (!text.is_empty()).then_some(text)
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTED).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCAN: &str = "std_msgs/Header header # when\n\nfloat32[]  ranges\n\
                        ===\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";

    #[test]
    fn the_first_field_that_differs_is_named_with_both_versions() {
        let cases = [
            (
                SCAN.replace("float32[]  ranges", "float64[] ranges"),
                "field 2 is \"float32[] ranges\" here and \"float64[] ranges\" there",
            ),
            (
                SCAN.replace("uint32 seq", "uint64 seq"),
                "field 1 of \"std_msgs/Header\" is \"uint32 seq\" here and \"uint64 seq\" there",
            ),
            (
                SCAN.replace("string frame_id\n", ""),
                "field 3 of \"std_msgs/Header\" is \"string frame_id\" here and missing there",
            ),
            (
                SCAN.replace("===", "uint8 x\n==="),
                "field 3 is missing here and \"uint8 x\" there",
            ),
            (
                SCAN[..SCAN.find("===").unwrap()].to_owned(),
                "\"std_msgs/Header\" is defined here and not there",
            ),
            (
                format!("{SCAN}===\nMSG: a/B\nuint8 x\n"),
                "\"a/B\" is defined there and not here",
            ),
            (String::new(), "one of the two has no definition to compare"),
        ];
        for (theirs, text) in cases {
            assert_eq!(difference(SCAN, &theirs), text);
        }
    }

    #[test]
    fn comments_and_spaces_are_no_difference_but_constants_are() {
        let same = "  std_msgs/Header   header\nfloat32[] ranges #r\n===\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\n\
                    string frame_id # id";
        assert!(difference(SCAN, same).starts_with("the fields that are shown are equal"));
        assert_eq!(
            difference("string A=x # y", "string A=x # z"),
            "field 1 is \"string A=x # y\" here and \"string A=x # z\" there"
        );
    }

    proptest! {
        #[test]
        fn any_two_texts_give_a_short_answer(a in "\\PC{0,300}", b in "\\PC{0,300}") {
            prop_assert!(difference(&a, &b).len() < 2000);
            prop_assert!(shown(&a.repeat(200)).len() <= MAX_SHOWN);
        }

        #[test]
        fn differences_are_found_from_both_ends(
            lines in proptest::collection::vec("[a-c]{1,3} [a-c]{1,3}", 1..8),
            at in 0usize..8,
        ) {
            let at = at % lines.len();
            let mut other = lines.clone();
            other[at] = "changed field".into();
            let (a, b) = (lines.join("\n"), other.join("\n"));
            let named = format!("field {} is", at + 1);
            prop_assert!(difference(&a, &b).starts_with(&named));
            prop_assert!(difference(&b, &a).starts_with(&named));
        }
    }
}
