//! Splits a command line as a shell does, without expanding anything.

/// The simple commands of a line as words: those between `&&`, `|`, `;` and `&`, and a command of `ropewalk` that another one starts (after
/// `--`). Variables before a command, redirections and comments are left out.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut skip = false;
    for token in tokens(line) {
        match token {
            Token::End => all.push(Vec::new()),
            Token::Redirection => skip = true,
            Token::Word(_) if std::mem::take(&mut skip) => {}
            Token::Word(word) => {
                let command = all.last_mut().expect("there is one");
                let variable = |(name, _): (&str, &str)| {
                    name.chars()
                        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                };
                if !command.is_empty() || !word.split_once('=').is_some_and(variable) {
                    command.push(word);
                }
            }
        }
    }
    let started: Vec<Vec<String>> = all
        .iter()
        .filter_map(|words| {
            let at = words
                .windows(2)
                .position(|pair| pair[0] == "--" && pair[1] == "ropewalk")?;
            Some(words[at + 1..].to_vec())
        })
        .collect();
    all.extend(started);
    all.retain(|words| !words.is_empty());
    all
}

enum Token {
    Word(String),
    Redirection,
    End,
}

fn tokens(line: &str) -> Vec<Token> {
    // A here-document is input, not commands.
    let line = match line.find("<<") {
        Some(at) => line[..at].to_owned(),
        None => line.replace("\\\n", " "),
    };
    let mut tokens = Vec::new();
    let mut rest = line.chars().peekable();
    while let Some(&next) = rest.peek() {
        match next {
            ' ' | '\t' => {
                rest.next();
            }
            '#' => break,
            '&' | '|' | ';' | '\n' => {
                rest.next();
                tokens.push(Token::End);
            }
            '>' | '<' => {
                rest.next();
                tokens.push(Token::Redirection);
            }
            _ => tokens.push(Token::Word(word(&mut rest))),
        }
    }
    tokens
}

fn word(rest: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> String {
    let mut word = String::new();
    let mut quote = None;
    let mut depth = 0;
    while let Some(&c) = rest.peek() {
        match (quote, c) {
            (None, ' ' | '\t' | '&' | '|' | ';' | '>' | '<' | '\n') if depth == 0 => break,
            (None, '\'' | '"') if depth == 0 => quote = Some(c),
            (Some(open), _) if c == open && depth == 0 => quote = None,
            (None, '\\') => {
                rest.next();
                word.extend(rest.peek());
            }
            _ => {
                // Within `$(…)`, which is not expanded, nothing separates words.
                if quote != Some('\'') {
                    depth += i32::from(c == '(' && word.ends_with('$'));
                    depth -= i32::from(c == ')' && depth > 0);
                }
                word.push(c);
            }
        }
        rest.next();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn words_are_those_of_a_shell() {
        let cases: [(&str, &[&[&str]]); 6] = [
            ("ropewalk top   # live", &[&["ropewalk", "top"]]),
            (
                "A_B=1 ropewalk pub /t 'data: \"a b\"' > file.txt && cd x",
                &[&["ropewalk", "pub", "/t", "data: \"a b\""], &["cd", "x"]],
            ),
            ("a | b& c", &[&["a"], &["b"], &["c"]]),
            (
                "lab exec robot -- ropewalk top",
                &[
                    &["lab", "exec", "robot", "--", "ropewalk", "top"],
                    &["ropewalk", "top"],
                ],
            ),
            (
                "x \"data: $(head -c 3 | tr '\\0' s)\" y",
                &[&["x", "data: $(head -c 3 | tr '\\0' s)", "y"]],
            ),
            ("x --json <<'END'\nropewalk\nEND", &[&["x", "--json"]]),
        ];
        for (line, expected) in cases {
            assert_eq!(commands(line), expected, "{line}");
        }
    }
}
