//! XML-RPC (xmlrpc.com/spec.md), as far as ROS 1 uses it: calls, answers and their values.

mod read;
mod write;

pub(crate) use read::{call, response};
pub(crate) use write::{write_call, write_fault, write_response};

/// Deepest nesting of values. ROS's own answers nest four deep.
const MAX_DEPTH: usize = 16;
/// Maximum number of values in one document; a graph of a thousand topics with ten nodes each takes some ten thousand.
const MAX_VALUES: usize = 1 << 18;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Int(i64),
    Bool(bool),
    Double(f64),
    /// Includes dates and base64 in their written form, which is not interpreted.
    String(String),
    Array(Vec<Value>),
    Struct(Vec<(String, Value)>),
}

impl Value {
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Bool(b) => Some((*b).into()),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<i32> for Value {
    fn from(n: i32) -> Self {
        Value::Int(n.into())
    }
}

impl<const N: usize> From<[Value; N]> for Value {
    fn from(values: [Value; N]) -> Self {
        Value::Array(values.into())
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: Vec<Value>,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Response {
    Value(Value),
    /// The other end could not carry it out.
    Fault(String),
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not XML-RPC at byte {at}: {what}")]
pub(crate) struct XmlError {
    at: u64,
    what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let params = vec![
            "/a<b>&'\"".into(),
            7.into(),
            Value::Int(-8),
            Value::Bool(true),
            Value::Double(1.5),
            Value::String(" spaces\nand lines ".into()),
            [["TCPROS".into(), "x".into()].into(), Value::Array(vec![])].into(),
            Value::Struct(vec![("k".into(), 1.into())]),
        ];
        let text = write_call("requestTopic", &params);
        let read = call(text.as_bytes()).unwrap();
        assert_eq!((read.method.as_str(), &read.params), ("requestTopic", &params));
        let value = Value::Array(params);
        assert_eq!(
            response(write_response(&value).as_bytes()),
            Ok(Response::Value(value))
        );
        let fault = Response::Fault("no <such> method".into());
        assert_eq!(response(write_fault("no <such> method").as_bytes()), Ok(fault));
    }

    #[test]
    fn the_ways_in_which_others_write_are_understood() {
        // roscpp: no type for strings, i4; Python: newlines everywhere; CDATA, references and comments are XML.
        let text = "<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value><array><data>\n<value><i4>1</i4></value>\
                    <value>a &amp; b</value><value><string/></value><value/><value><![CDATA[<x>]]></value><!-- no -->\
                    <value><string>&#65;&lt;</string></value></data></array></value>\n</param>\n</params>\n</methodResponse>\n";
        let expected: Value = [
            1.into(),
            "a & b".into(),
            "".into(),
            "".into(),
            "<x>".into(),
            "A<".into(),
        ]
        .into();
        assert_eq!(response(text.as_bytes()), Ok(Response::Value(expected)));
        let empty = b"<methodCall><methodName>getPid</methodName></methodCall>";
        assert_eq!(call(empty).unwrap().params, []);
    }

    #[test]
    fn malformed_calls_are_refused_with_the_place() {
        for bad in [
            "",
            "<",
            "hello",
            "<methodCall>",
            "<methodCall></methodCall>",
            "<methodCall><methodName>x</methodName>",
            "<methodCall><methodName>x</methodName><params><param></param></params></methodCall>",
            "<methodCall><methodName>x</methodName><params><param><value><i4>x</i4></value></param></params></methodCall>",
            "<methodCall><methodName>x</methodName><params><param><value><odd>1</odd></value></param></params></methodCall>",
            "<methodCall><methodName>x</methodName><params><param><value>&bomb;</value></param></params></methodCall>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><methodCall><methodName>x</methodName></methodCall>",
            "<methodCall><methodName>x</methodName></methodCall><methodCall/>",
            "<methodCall><methodName>x</methodName><params><param><value><struct><member><value/></member></struct></value></param></params></methodCall>",
        ] {
            let error = call(bad.as_bytes()).expect_err(bad).to_string();
            assert!(error.starts_with("not XML-RPC at byte "), "{error}");
        }
        let deep = format!(
            "<methodResponse><params><param>{}",
            "<value><array><data>".repeat(100_000)
        );
        assert!(
            response(deep.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("nested")
        );
        let many = format!(
            "<methodCall><methodName>x</methodName><params><param><value><array><data>{}",
            "<value/>".repeat(1 << 19)
        );
        assert!(call(many.as_bytes()).unwrap_err().to_string().contains("values"));
    }
}
