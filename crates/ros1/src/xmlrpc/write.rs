//! Writes a document.

use super::Value;
use quick_xml::escape::escape;
use std::fmt::Write;

const HEAD: &str = "<?xml version=\"1.0\"?>\n";

/// Writes a call.
pub(crate) fn write_call(method: &str, params: &[Value]) -> String {
    let mut out = format!(
        "{HEAD}<methodCall><methodName>{}</methodName><params>",
        escape(method)
    );
    for param in params {
        out.push_str("<param>");
        value(&mut out, param);
        out.push_str("</param>");
    }
    out + "</params></methodCall>\n"
}

/// Writes an answer.
pub(crate) fn write_response(answer: &Value) -> String {
    let mut out = format!("{HEAD}<methodResponse><params><param>");
    value(&mut out, answer);
    out + "</param></params></methodResponse>\n"
}

/// Writes a fault.
pub(crate) fn write_fault(reason: &str) -> String {
    let fault = [
        ("faultCode".to_owned(), 1.into()),
        ("faultString".to_owned(), reason.into()),
    ];
    let mut out = format!("{HEAD}<methodResponse><fault>");
    value(&mut out, &Value::Struct(fault.into()));
    out + "</fault></methodResponse>\n"
}

fn value(out: &mut String, v: &Value) {
    out.push_str("<value>");
    // Writing to a string does not fail.
    let _ = match v {
        Value::Int(n) => write!(out, "<i4>{n}</i4>"),
        Value::Bool(b) => write!(out, "<boolean>{}</boolean>", i32::from(*b)),
        Value::Double(x) => write!(out, "<double>{x}</double>"),
        Value::String(text) => write!(out, "<string>{}</string>", escape(printable(text))),
        Value::Array(values) => {
            out.push_str("<array><data>");
            values.iter().for_each(|v| value(out, v));
            write!(out, "</data></array>")
        }
        Value::Struct(members) => {
            out.push_str("<struct>");
            for (name, member) in members {
                let _ = write!(out, "<member><name>{}</name>", escape(printable(name)));
                value(out, member);
                out.push_str("</member>");
            }
            write!(out, "</struct>")
        }
    };
    out.push_str("</value>");
}

/// Removes control characters, which XML does not allow.
fn printable(text: &str) -> String {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    text.chars()
        .map(|c| if odd(c) { '\u{fffd}' } else { c })
        .collect()
}
