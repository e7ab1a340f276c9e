//! Names of topics and services, and patterns of them.

/// The longest name, in bytes, as on the bus.
const MAX_NAME: usize = 255;

/// Returns whether a configured name stands for all names below it.
pub fn is_pattern(name: &str) -> bool {
    name.ends_with("/*")
}

/// Returns whether a configured name covers `name`: they are equal, or the pattern ends with `*` and `name`
/// starts with the rest.
pub fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Checks a full name by ROS's rules, or a pattern if `pattern` is set.
pub fn check(name: &str, pattern: bool) -> Result<(), String> {
    let stem = match name.strip_suffix("/*").filter(|_| pattern) {
        Some("") => return Ok(()),
        Some(stem) => stem,
        None => name,
    };
    let word = |w: &str| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let good = stem.strip_prefix('/').is_some_and(|s| s.split('/').all(word));
    if good && name.len() <= MAX_NAME {
        return Ok(());
    }
    let star = if pattern {
        ", with /* at the end for all names below"
    } else {
        ""
    };
    Err(format!(
        "'{name}' is not a full name: write words of letters, digits and _, each after a /{star}"
    ))
}

/// Among the rules of the right direction that cover a name, returns the exact one, else the longest pattern.
pub fn best<'a, R>(
    rules: impl Iterator<Item = &'a R>,
    of: impl Fn(&'a R) -> (&'a str, bool),
    name: &str,
) -> Option<&'a R> {
    let covers = |rule: &&'a R| {
        let (pattern, right) = of(rule);
        let below = |stem: &str| {
            // Names that begin with an underscore are private to their programs, such as the names of nodes
            // on a bus.
            !matches!(name, "/rosout" | "/rosout_agg")
                && !name.starts_with("/_")
                && name
                    .strip_prefix(stem)
                    .is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
        };
        right && (pattern == name || pattern.strip_suffix("/*").is_some_and(below))
    };
    let rules = rules.filter(covers);
    rules.max_by_key(|rule| {
        let (pattern, _) = of(rule);
        (pattern == name, pattern.len())
    })
}

/// Maps a name that `from` covers to the form of `to`.
pub fn renamed(from: &str, to: &str, name: &str) -> String {
    match (from.strip_suffix("/*"), to.strip_suffix("/*")) {
        (Some(from), Some(to)) => format!("{to}{}", name.strip_prefix(from).unwrap_or(name)),
        _ => to.to_owned(),
    }
}
