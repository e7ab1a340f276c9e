//! Parses expressions into conditions by recursive descent: OR binds least, then AND, then NOT.

use super::tokens::{Token, tokens};
use super::{Condition, FilterError, Operand, Plain, Relation};

/// Maximum nesting of parentheses and NOT: each level uses stack.
const MAX_DEPTH: usize = 64;

pub(super) fn expression(text: &str, parameters: &[String]) -> Result<Condition, FilterError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        end: text.chars().count() + 1,
        parameters,
    };
    let condition = parser.any(0)?;
    match parser.peek() {
        None => Ok(condition),
        Some(_) => Err(parser.expected("AND, OR or the end")),
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    /// Position after the last character.
    end: usize,
    parameters: &'a [String],
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<Condition, FilterError> {
        let mut all = vec![self.every(depth)?];
        while self.word("OR") {
            all.push(self.every(depth)?);
        }
        Ok(one_or(all, Condition::Or))
    }

    fn every(&mut self, depth: usize) -> Result<Condition, FilterError> {
        let mut all = vec![self.single(depth)?];
        while self.word("AND") {
            all.push(self.single(depth)?);
        }
        Ok(one_or(all, Condition::And))
    }

    fn single(&mut self, depth: usize) -> Result<Condition, FilterError> {
        if depth > MAX_DEPTH {
            let what = format!("too many nested parentheses or NOTs: at most {MAX_DEPTH}");
            return Err(self.syntax(what));
        }
        if self.word("NOT") {
            return Ok(Condition::Not(Box::new(self.single(depth + 1)?)));
        }
        if self.sign("(") {
            let inner = self.any(depth + 1)?;
            return match self.sign(")") {
                true => Ok(inner),
                false => Err(self.expected(")")),
            };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Condition, FilterError> {
        let left = self.operand()?;
        let negated = self.word("NOT");
        let condition = if self.word("BETWEEN") {
            let low = self.operand()?;
            if !self.word("AND") {
                return Err(self.expected("AND"));
            }
            let high = self.operand()?;
            Condition::And(vec![
                Condition::Compare(left.clone(), Relation::GreaterOrEqual, low),
                Condition::Compare(left, Relation::LessOrEqual, high),
            ])
        } else if self.word("LIKE") {
            Condition::Compare(left, Relation::Like, self.operand()?)
        } else if negated {
            return Err(self.expected("BETWEEN or LIKE"));
        } else {
            let relation = match self.peek() {
                Some(Token::Sign("=")) => Relation::Equal,
                Some(Token::Sign("<>" | "!=")) => Relation::Unequal,
                Some(Token::Sign("<")) => Relation::Less,
                Some(Token::Sign("<=")) => Relation::LessOrEqual,
                Some(Token::Sign(">")) => Relation::Greater,
                Some(Token::Sign(">=")) => Relation::GreaterOrEqual,
                _ => return Err(self.expected("one of = <> < <= > >= LIKE BETWEEN")),
            };
            self.next += 1;
            Condition::Compare(left, relation, self.operand()?)
        };
        Ok(match negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        })
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        let operand = match self.peek() {
            Some(Token::Word(word)) if !is_keyword(word) => match constant(word) {
                Some(plain) => Operand::Plain(plain),
                None => Operand::Field((*word).to_owned()),
            },
            Some(Token::Number(text)) => Operand::Plain(self.number(text)?),
            Some(Token::Text(text)) => Operand::Plain(quoted(text)),
            Some(Token::Parameter(number)) => {
                let (number, given) = (*number, self.parameters.len());
                let text = self.parameters.get(number);
                let text = text.ok_or(FilterError::Parameter { number, given })?;
                Operand::Plain(parameter(text))
            }
            _ => return Err(self.expected("a field, a number, a 'text' or a parameter")),
        };
        self.next += 1;
        Ok(operand)
    }

    fn number(&self, text: &str) -> Result<Plain, FilterError> {
        number(text).ok_or_else(|| {
            let is_whole = text.chars().skip(1).all(|c| c.is_ascii_digit());
            let what = if is_whole {
                "the number is too large"
            } else {
                "this is not a number"
            };
            self.syntax(format!("{what}: {text}"))
        })
    }

    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Consumes a keyword if it comes next; returns whether it did.
    fn word(&mut self, keyword: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(is_it);
        is_it
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.next += usize::from(is_it);
        is_it
    }

    fn syntax(&self, what: String) -> FilterError {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        FilterError::Syntax { at, what }
    }

    fn expected(&self, what: &str) -> FilterError {
        self.syntax(format!("{what} is expected here"))
    }
}

fn one_or(mut all: Vec<Condition>, several: impl FnOnce(Vec<Condition>) -> Condition) -> Condition {
    match all.pop() {
        Some(only) if all.is_empty() => only,
        Some(last) => {
            all.push(last);
            several(all)
        }
        None => several(all),
    }
}

fn is_keyword(word: &str) -> bool {
    let keywords = ["AND", "OR", "NOT", "LIKE", "BETWEEN"];
    keywords.iter().any(|k| word.eq_ignore_ascii_case(k))
}

fn constant(word: &str) -> Option<Plain> {
    let is = |name| word.eq_ignore_ascii_case(name);
    match (is("TRUE"), is("FALSE")) {
        (true, _) => Some(Plain::Whole(1)),
        (_, true) => Some(Plain::Whole(0)),
        _ => None,
    }
}

fn number(text: &str) -> Option<Plain> {
    let whole = text.parse().ok().map(Plain::Whole);
    // Rust also parses `inf` and `nan`, which are not numbers in SQL.
    let is_plain = text
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'));
    let has_point = text.contains(['.', 'e', 'E']);
    whole.or_else(|| {
        let float = text.parse().ok().filter(|_| is_plain && has_point);
        float.map(Plain::Float)
    })
}

fn quoted(text: &str) -> Plain {
    Plain::Text(text.replace("''", "'").into_bytes())
}

/// Value of a parameter's text.
fn parameter(text: &str) -> Plain {
    let text = text.trim();
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    match inner {
        Some(inner) => quoted(inner),
        None => constant(text)
            .or_else(|| number(text))
            .unwrap_or_else(|| Plain::Text(text.as_bytes().to_vec())),
    }
}
