//! The macros of Pound's header.

use std::collections::BTreeMap;

/// A macro with its arguments, without quotes.
pub(super) struct Call {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
}

/// Returns the macros of a header, or notes about other content, each with its line. Replaces names that `#define`
/// sets.
pub(super) fn calls(text: &str) -> Vec<Result<Call, (usize, String)>> {
    let mut scan = Scan::new(text);
    let mut found = Vec::new();
    let mut defined = BTreeMap::<String, Defined>::new();
    loop {
        scan.skip_blank();
        let line = scan.line;
        match scan.peek() {
            None => break,
            Some('#') => {
                let directive: String = scan.rest_of_line();
                match Defined::read(line, &directive) {
                    Some((name, value)) => drop(defined.insert(name, value)),
                    None => found.push(Err((line, unevaluated(&directive)))),
                }
            }
            Some(';') => scan.next(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = scan.word();
                scan.skip_blank();
                if scan.peek() != Some('(') {
                    found.push(Err((line, format!("'{name}' is not understood: ignored"))));
                    continue;
                }
                scan.next();
                let Some(mut arguments) = scan.arguments() else {
                    found.push(Err((line, format!("{name}( has no end: ignored"))));
                    continue;
                };
                for argument in &mut arguments {
                    if let Some(value) = defined.get_mut(argument.trim()) {
                        value.is_used = true;
                        argument.clone_from(&value.text);
                    }
                }
                found.push(Ok(Call {
                    line,
                    name,
                    arguments,
                }));
            }
            Some(c) => {
                found.push(Err((
                    line,
                    format!("'{c}' is not understood: the line is ignored"),
                )));
                scan.rest_of_line();
            }
        }
    }
    let unused = defined.into_iter().filter(|(_, value)| !value.is_used);
    found.extend(
        unused.map(|(name, value)| Err((value.line, format!("{name} is not used by any macro: ignored")))),
    );
    found
}

/// Value that `#define` gives a name.
struct Defined {
    line: usize,
    text: String,
    is_used: bool,
}

impl Defined {
    fn read(line: usize, directive: &str) -> Option<(String, Defined)> {
        let rest = directive
            .trim_start_matches('#')
            .trim_start()
            .strip_prefix("define")?;
        let (name, value) = rest.trim_start().split_once([' ', '\t'])?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let value = value.split("//").next().unwrap_or_default();
        let value = value.split("/*").next().unwrap_or_default().trim();
        let defined = Defined {
            line,
            text: value.trim_matches('"').to_owned(),
            is_used: false,
        };
        (rest.starts_with(char::is_whitespace) && name.chars().all(is_name))
            .then(|| (name.to_owned(), defined))
    }
}

fn unevaluated(directive: &str) -> String {
    let word = directive.trim_start_matches('#').trim_start();
    match word.starts_with("if") || word.starts_with("el") {
        true => format!(
            "`{}` is not evaluated: what follows is included",
            directive.trim()
        ),
        false => format!("`{}` is not evaluated: ignored", directive.trim()),
    }
}

struct Scan<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan {
            rest: text.chars().peekable(),
            line: 1,
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn next(&mut self) {
        if self.rest.next() == Some('\n') {
            self.line += 1;
        }
    }

    /// Skips blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            match self.peek() {
                Some(c) if c.is_whitespace() => self.next(),
                Some('/') => {
                    let mut ahead = self.rest.clone();
                    ahead.next();
                    match ahead.peek() {
                        Some('/') => drop(self.rest_of_line()),
                        Some('*') => {
                            self.next();
                            self.next();
                            let mut star = false;
                            while let Some(c) = self.peek() {
                                self.next();
                                if star && c == '/' {
                                    break;
                                }
                                star = c == '*';
                            }
                        }
                        _ => return,
                    }
                }
                _ => return,
            }
        }
    }

    fn rest_of_line(&mut self) -> String {
        let mut line = String::new();
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            line.push(c);
            self.next();
        }
        line
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            word.push(c);
            self.next();
        }
        word
    }

    /// Returns the arguments between parentheses. The opening one is already read, the closing one is read here; `None`
    /// if it is missing.
    fn arguments(&mut self) -> Option<Vec<String>> {
        let mut arguments = vec![String::new()];
        let mut quoted = false;
        let mut depth = 0;
        loop {
            if !quoted {
                self.skip_blank();
            }
            let c = self.peek()?;
            self.next();
            match c {
                '"' => quoted = !quoted,
                _ if quoted => arguments.last_mut()?.push(c),
                ',' if depth == 0 => arguments.push(String::new()),
                '(' | '<' => {
                    depth += 1;
                    arguments.last_mut()?.push(c);
                }
                ')' if depth == 0 => return Some(arguments),
                ')' | '>' => {
                    depth = if depth > 0 { depth - 1 } else { 0 };
                    arguments.last_mut()?.push(c);
                }
                c => arguments.last_mut()?.push(c),
            }
        }
    }
}
