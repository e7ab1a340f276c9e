//! Reads a document. Never fails to terminate, and is bounded by the document's length, [`MAX_DEPTH`] and
//! [`MAX_VALUES`].

use super::{Call, MAX_DEPTH, MAX_VALUES, Response, Value, XmlError};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// Reads a call.
pub(crate) fn call(bytes: &[u8]) -> Result<Call, XmlError> {
    let text = String::from_utf8_lossy(bytes);
    let mut doc = Document::new(&text);
    doc.open("methodCall")?;
    doc.open("methodName")?;
    let method = doc.text("methodName")?.trim().to_owned();
    let mut params = Vec::new();
    if doc.more("methodCall")? {
        doc.opened("params")?;
        while doc.more("params")? {
            doc.opened("param")?;
            doc.open("value")?;
            params.push(doc.value(0)?);
            doc.close("param")?;
        }
        doc.close("methodCall")?;
    }
    doc.end()?;
    Ok(Call { method, params })
}

/// Reads an answer.
pub(crate) fn response(bytes: &[u8]) -> Result<Response, XmlError> {
    let text = String::from_utf8_lossy(bytes);
    let mut doc = Document::new(&text);
    doc.open("methodResponse")?;
    let response = match doc.token()? {
        Token::Open(name) if name == "params" => {
            doc.open("param")?;
            doc.open("value")?;
            let value = doc.value(0)?;
            doc.close("param")?;
            doc.close("params")?;
            Response::Value(value)
        }
        Token::Open(name) if name == "fault" => {
            doc.open("value")?;
            let value = doc.value(0)?;
            doc.close("fault")?;
            Response::Fault(reason(value))
        }
        other => return Err(doc.wrong(format!("{} instead of <params> or <fault>", other.show()))),
    };
    doc.close("methodResponse")?;
    doc.end()?;
    Ok(response)
}

fn reason(value: Value) -> String {
    let Value::Struct(members) = value else {
        return "a fault without a reason".into();
    };
    let text = members.into_iter().find(|(name, _)| name == "faultString");
    match text {
        Some((_, Value::String(text))) => text,
        _ => "a fault without a reason".into(),
    }
}

enum Token {
    Open(String),
    Close(String),
    Text(String),
    End,
}

impl Token {
    fn show(&self) -> String {
        match self {
            Token::Open(name) => format!("<{name}>"),
            Token::Close(name) => format!("</{name}>"),
            Token::Text(_) => "text".into(),
            Token::End => "the end".into(),
        }
    }
}

struct Document<'a> {
    xml: Reader<&'a [u8]>,
    /// Token that is read already: the element that `more` found, or what followed a text.
    next: Option<Token>,
    values: usize,
}

impl<'a> Document<'a> {
    fn new(text: &'a str) -> Self {
        let mut xml = Reader::from_str(text);
        xml.config_mut().expand_empty_elements = true;
        Document {
            xml,
            next: None,
            values: 0,
        }
    }

    fn wrong(&self, what: impl Into<String>) -> XmlError {
        XmlError {
            at: self.xml.buffer_position(),
            what: what.into(),
        }
    }

    /// Returns the next token. Adjacent pieces of text are merged.
    fn raw(&mut self) -> Result<Token, XmlError> {
        if let Some(token) = self.next.take() {
            return Ok(token);
        }
        let mut text: Option<String> = None;
        let token = loop {
            match self.xml.read_event() {
                Ok(Event::Start(e)) => break Token::Open(e.local_name().as_ref().to_owned()),
                Ok(Event::End(e)) => break Token::Close(e.local_name().as_ref().to_owned()),
                Ok(Event::Text(e)) => text.get_or_insert_default().push_str(&e),
                Ok(Event::CData(e)) => text.get_or_insert_default().push_str(&e),
                Ok(Event::GeneralRef(e)) => {
                    let text = text.get_or_insert_default();
                    match (e.resolve_char_ref(), resolve_predefined_entity(&e)) {
                        (Ok(Some(c)), _) => text.push(c),
                        (_, Some(known)) => text.push_str(known),
                        _ => return Err(self.wrong("a reference to an undeclared entity")),
                    }
                }
                Ok(Event::Decl(_) | Event::Comment(_) | Event::PI(_)) => {}
                Ok(Event::DocType(_)) => {
                    return Err(self.wrong("a document type, which XML-RPC does not have"));
                }
                Ok(Event::Eof) => break Token::End,
                Ok(_) => return Err(self.wrong("unknown markup")),
                Err(error) => return Err(self.wrong(error.to_string())),
            }
        };
        Ok(match text {
            Some(text) => {
                self.next = Some(token);
                Token::Text(text)
            }
            None => token,
        })
    }

    /// Returns the next token that is not white space.
    fn token(&mut self) -> Result<Token, XmlError> {
        loop {
            match self.raw()? {
                Token::Text(text) if text.trim().is_empty() => {}
                token => return Ok(token),
            }
        }
    }

    fn open(&mut self, name: &str) -> Result<(), XmlError> {
        match self.token()? {
            Token::Open(found) if found == name => Ok(()),
            other => Err(self.wrong(format!("{} instead of <{name}>", other.show()))),
        }
    }

    /// As [`Document::open`], after [`Document::more`].
    fn opened(&mut self, name: &str) -> Result<(), XmlError> {
        self.open(name)
    }

    fn close(&mut self, name: &str) -> Result<(), XmlError> {
        match self.token()? {
            Token::Close(found) if found == name => Ok(()),
            other => Err(self.wrong(format!("{} instead of </{name}>", other.show()))),
        }
    }

    /// Returns whether another element begins inside `name`; otherwise `name` ends here.
    fn more(&mut self, name: &str) -> Result<bool, XmlError> {
        match self.token()? {
            Token::Close(found) if found == name => Ok(false),
            token @ Token::Open(_) => {
                self.next = Some(token);
                Ok(true)
            }
            other => Err(self.wrong(format!("{} inside <{name}>", other.show()))),
        }
    }

    /// Returns the text up to the end of `name`, which is open.
    fn text(&mut self, name: &str) -> Result<String, XmlError> {
        let text = match self.raw()? {
            Token::Text(text) => text,
            token => {
                self.next = Some(token);
                String::new()
            }
        };
        self.close(name)?;
        Ok(text)
    }

    fn end(&mut self) -> Result<(), XmlError> {
        match self.token()? {
            Token::End => Ok(()),
            other => Err(self.wrong(format!("{} after the end", other.show()))),
        }
    }

    /// Reads a value, whose element is open, up to its end.
    fn value(&mut self, depth: usize) -> Result<Value, XmlError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.wrong(format!("more than {MAX_VALUES} values")));
        }
        if depth >= MAX_DEPTH {
            return Err(self.wrong(format!("values nested more than {MAX_DEPTH} deep")));
        }
        let kind = match self.raw()? {
            Token::Close(name) if name == "value" => return Ok("".into()),
            Token::Open(kind) => kind,
            Token::Text(text) => match self.raw()? {
                // Without a type it is a string.
                Token::Close(name) if name == "value" => return Ok(Value::String(text)),
                Token::Open(kind) if text.trim().is_empty() => kind,
                other => return Err(self.wrong(format!("{} after text", other.show()))),
            },
            other => return Err(self.wrong(format!("{} inside <value>", other.show()))),
        };
        let value = match kind.as_str() {
            "string" | "dateTime.iso8601" | "base64" => Value::String(self.text(&kind)?),
            "array" => self.array(depth)?,
            "struct" => self.members(depth)?,
            "i4" | "int" | "i8" | "boolean" | "double" => {
                let text = self.text(&kind)?;
                let number = number(&kind, text.trim());
                number.ok_or_else(|| self.wrong(format!("<{kind}> is not such a number")))?
            }
            other => return Err(self.wrong(format!("<{other}> is not a type of a value"))),
        };
        self.close("value")?;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value, XmlError> {
        self.open("data")?;
        let mut values = Vec::new();
        while self.more("data")? {
            self.opened("value")?;
            values.push(self.value(depth + 1)?);
        }
        self.close("array")?;
        Ok(Value::Array(values))
    }

    fn members(&mut self, depth: usize) -> Result<Value, XmlError> {
        let mut members = Vec::new();
        while self.more("struct")? {
            self.opened("member")?;
            self.open("name")?;
            let name = self.text("name")?;
            self.open("value")?;
            members.push((name, self.value(depth + 1)?));
            self.close("member")?;
        }
        Ok(Value::Struct(members))
    }
}

fn number(kind: &str, text: &str) -> Option<Value> {
    Some(match kind {
        "boolean" => Value::Bool(match text {
            "1" | "true" => true,
            "0" | "false" => false,
            _ => return None,
        }),
        "double" => Value::Double(text.parse().ok()?),
        _ => Value::Int(text.parse().ok()?),
    })
}
