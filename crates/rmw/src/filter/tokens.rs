//! Splits an expression into tokens.

use super::FilterError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    /// A keyword or a field's path.
    Word(&'a str),
    Number(&'a str),
    /// A text without its quotes; two quotes inside stand for one.
    Text(&'a str),
    Parameter(usize),
    Sign(&'static str),
}

/// Longer signs come before their prefixes.
const SIGNS: [&str; 9] = ["<>", "<=", ">=", "!=", "=", "<", ">", "(", ")"];

/// Returns the tokens of a text, each with the position of its first character, counted from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, FilterError> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let place = text.len() - rest.len();
        let at = text.get(..place).map_or(0, |before| before.chars().count()) + 1;
        let syntax = |what: String| FilterError::Syntax { at, what };
        let Some(first) = rest.chars().next() else {
            return Ok(out);
        };
        let (token, len) = if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            (Token::Sign(sign), sign.len())
        } else if first == '\'' {
            let len = text_length(rest).ok_or_else(|| syntax("the text has no end: ' is missing".into()))?;
            (Token::Text(rest.get(1..len - 1).unwrap_or("")), len)
        } else if first == '%' {
            let digits = length(rest, 1, |c| c.is_ascii_digit());
            let number = rest
                .get(1..digits)
                .and_then(|d| d.parse().ok())
                .filter(|n| *n < 100);
            let number = number.ok_or_else(|| syntax("a parameter is % and its number, up to 99".into()))?;
            (Token::Parameter(number), digits)
        } else if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') {
            let mut before = first;
            let len = length(rest, 1, |c| {
                let exponent = matches!(c, '-' | '+') && matches!(before, 'e' | 'E');
                before = c;
                c.is_ascii_alphanumeric() || c == '.' || exponent
            });
            (Token::Number(rest.get(..len).unwrap_or(rest)), len)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let len = length(rest, 1, |c| {
                c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')
            });
            (Token::Word(rest.get(..len).unwrap_or(rest)), len)
        } else {
            return Err(syntax(format!("{first:?} is not allowed in an expression")));
        };
        out.push((at, token));
        rest = rest.get(len..).unwrap_or("");
    }
}

/// Length in bytes of a prefix: `from`, and all characters after it that fit.
fn length(text: &str, from: usize, mut fits: impl FnMut(char) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or("");
    from + rest.find(|c| !fits(c)).unwrap_or(rest.len())
}

/// Length in bytes of a quoted text, quotes included; `None` if it does not end.
fn text_length(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text.get(at..)?.find('\'')? + 1;
        match text.get(at..) {
            Some(rest) if rest.starts_with('\'') => at += 1,
            _ => return Some(at),
        }
    }
}
