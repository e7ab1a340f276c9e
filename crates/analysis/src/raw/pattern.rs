//! Pattern of the paths of folders and files: `{hz}Hz/{nodes}nodes/run{run}/*.csv`.

use std::collections::{BTreeMap, BTreeSet};

/// Fields that a path states about its rows, by the names in braces.
pub type Fields = BTreeMap<String, String>;

/// Names of the fields.
pub const NAMES: [&str; 10] = [
    "hz",
    "nodes",
    "run",
    "sender",
    "bytes",
    "system",
    "medium",
    "hosts",
    "cpu_share",
    "topology",
];
/// Names of the text fields; the others are numbers.
const TEXTS: [&str; 4] = ["sender", "system", "medium", "topology"];
/// Most pieces in one name.
const MOST_PIECES: usize = 16;

/// A pattern of relative paths, one list of pieces for each folder and the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    components: Vec<Vec<Piece>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Number(String),
    Word(String),
    Any,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        if text.is_empty() || text.starts_with('/') || text.ends_with('/') {
            return Err(format!(
                "the pattern '{text}' must name files below the folder, such as {{hz}}Hz/*.csv"
            ));
        }
        let components: Vec<_> = text.split('/').map(component).collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        for piece in components.iter().flatten() {
            if let Piece::Number(name) | Piece::Word(name) = piece
                && !names.insert(name)
            {
                return Err(format!("the pattern has {{{name}}} twice: leave one out"));
            }
        }
        Ok(Pattern { components })
    }

    /// Depth of the files, counting themselves.
    pub fn depth(&self) -> usize {
        self.components.len()
    }

    /// Whether paths state this field.
    pub fn has(&self, field: &str) -> bool {
        let mut pieces = self.components.iter().flatten();
        pieces.any(|p| matches!(p, Piece::Number(name) | Piece::Word(name) if name == field))
    }

    /// Whether a folder with these names can contain matching files; returns the fields of its path. Names beyond the
    /// pattern's depth match nothing.
    pub fn matches(&self, names: &[&str]) -> Option<Fields> {
        let mut fields = Fields::new();
        if names.len() > self.components.len() {
            return None;
        }
        for (pieces, name) in self.components.iter().zip(names) {
            let mut found = Vec::new();
            if !within(pieces, name, 0, &mut BTreeSet::new(), &mut found) {
                return None;
            }
            fields.extend(found);
        }
        Some(fields)
    }
}

fn component(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, after) = match first {
            '{' => {
                let (name, after) = rest[1..].split_once('}').ok_or_else(|| {
                    format!("'{text}' has {{ without }}: write the names of fields as {{hz}}")
                })?;
                (field(name)?, after)
            }
            '*' => (Piece::Any, &rest[1..]),
            _ => {
                let end = rest.find(['{', '*']).unwrap_or(rest.len());
                (Piece::Text(rest[..end].to_owned()), &rest[end..])
            }
        };
        pieces.push(piece);
        rest = after;
    }
    match pieces.len() {
        0 => Err("the pattern has an empty name between two slashes: leave one out".into()),
        1..=MOST_PIECES => Ok(pieces),
        _ => Err(format!(
            "'{text}' has more than {MOST_PIECES} pieces: put some into folders"
        )),
    }
}

fn field(name: &str) -> Result<Piece, String> {
    match name {
        _ if TEXTS.contains(&name) => Ok(Piece::Word(name.to_owned())),
        _ if NAMES.contains(&name) => Ok(Piece::Number(name.to_owned())),
        _ => Err(format!(
            "the pattern has {{{name}}}, which is not a field: give one of {}",
            NAMES.join(", ")
        )),
    }
}

/// `failed` holds pieces and positions from which nothing matches, so that no pattern takes long.
fn within(
    pieces: &[Piece],
    name: &str,
    at: usize,
    failed: &mut BTreeSet<(usize, usize)>,
    found: &mut Vec<(String, String)>,
) -> bool {
    let rest = &name[at..];
    let Some((piece, others)) = pieces.split_first() else {
        return rest.is_empty();
    };
    if failed.contains(&(pieces.len(), at)) {
        return false;
    }
    let ends: Vec<usize> = match piece {
        Piece::Text(text) if rest.starts_with(text.as_str()) => vec![text.len()],
        Piece::Text(_) => Vec::new(),
        // The longest number first, so that no digit is left for the next piece.
        Piece::Number(_) => {
            let end = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            (1..=end)
                .rev()
                .filter(|n| rest[..*n].parse::<f64>().is_ok())
                .collect()
        }
        Piece::Word(_) => rest.char_indices().map(|(i, c)| i + c.len_utf8()).collect(),
        Piece::Any => (rest.char_indices().map(|(i, _)| i))
            .chain([rest.len()])
            .collect(),
    };
    for end in ends {
        let before = found.len();
        if let Piece::Number(field) | Piece::Word(field) = piece {
            found.push((field.clone(), rest[..end].to_owned()));
        }
        if within(others, name, at + end, failed, found) {
            return true;
        }
        found.truncate(before);
    }
    failed.insert((pieces.len(), at));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        let names: Vec<&str> = path.split('/').collect();
        let pattern = Pattern::parse(pattern).expect("a pattern");
        let found = pattern.matches(&names).filter(|_| names.len() == pattern.depth());
        Some(found?.into_iter().collect())
    }

    #[test]
    fn names_say_what_their_rows_are() {
        let found = fields(
            "{hz}Hz/{nodes}_nodes/run{run}/{sender}.csv",
            "10Hz/32_nodes/run2/talker_7.csv",
        );
        let found = found.expect("a match");
        let text: Vec<_> = found.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(text, ["hz=10", "nodes=32", "run=2", "sender=talker_7"]);
        assert_eq!(
            fields("{nodes}n{hz}*", "12n0.5hz"),
            Some(vec![("hz".into(), "0.5".into()), ("nodes".into(), "12".into())])
        );
        assert_eq!(fields("{hz}Hz/*", "xHz/a"), None);
        assert_eq!(fields("{hz}Hz/*.csv", "5Hz/a.txt"), None);
        assert_eq!(fields("{system}-{medium}", "a-b-c").map(|f| f.len()), Some(2));
    }

    #[test]
    fn invalid_patterns_are_refused_with_the_fix() {
        for (bad, says) in [
            ("", "must name files"),
            ("/a", "must name files"),
            ("a//b", "empty name"),
            ("{hz", "without }"),
            ("{hertz}/*", "give one of hz, nodes"),
            ("{hz}/{hz}", "twice"),
            ("*a*a*a*a*a*a*a*a*a*a", "16 pieces"),
        ] {
            let error = Pattern::parse(bad).expect_err(bad);
            assert!(error.contains(says), "{bad}: {error}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern = Pattern::parse("*a*a*a*a*a*a*a*b").expect("a pattern");
        assert_eq!(pattern.matches(&["a".repeat(255).as_str()]), None);
        let words = Pattern::parse("{system}{medium}{topology}{sender}ä").expect("a pattern");
        assert_eq!(words.matches(&["ö".repeat(120).as_str()]), None);
    }
}
