//! The part of HTTP/1.1 that XML-RPC needs (RFC 9112): one request and one answer per connection.

use crate::net::{HostPort, Timed};
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

/// Longest head of a message, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum number of header fields.
const MAX_FIELDS: usize = 64;
/// Longest body of a request in bytes: a node's calls have some hundred; 256 publishers' addresses have some ten
/// thousand.
pub(crate) const MAX_REQUEST: usize = 64 << 10;
/// Longest body of a node's answer, in bytes.
pub(crate) const MAX_ANSWER: usize = 64 << 10;
/// Longest body of the master's answer, in bytes: the state of a graph of ten thousand topics has some megabytes.
pub(crate) const MAX_STATE: usize = 16 << 20;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it closed the connection in the middle of a message")]
    Cut,
    #[error("it sent data that is not HTTP: {0}")]
    Syntax(String),
    #[error("a head of more than {MAX_HEAD} bytes")]
    Head,
    #[error("a body of {len} bytes: at most {most}")]
    Body { len: u64, most: usize },
    #[error("it does not state the length of what it sends (Content-Length)")]
    NoLength,
    #[error("it answered with status {0}")]
    Status(u16),
}

/// Sends `body` to `address`. Returns the answer's body, of at most `most` bytes, and the address that answered.
pub(crate) fn post(
    address: &HostPort,
    path: &str,
    body: &str,
    most: usize,
    timeout: Duration,
) -> Result<(Vec<u8>, IpAddr), HttpError> {
    let stream = address.connect(timeout)?;
    stream.set_nodelay(true)?;
    let ip = stream.peer_addr()?.ip();
    let mut stream = Timed::new(&stream, timeout);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: ropewalk\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())?;
    let (bytes, head) = read_head(&mut stream, Parsed::response)?;
    if head.status != 200 {
        return Err(HttpError::Status(head.status));
    }
    Ok((read_body(&mut stream, bytes, &head, most)?, ip))
}

/// Reads one request from a caller and returns its body.
pub(crate) fn request(stream: &TcpStream, timeout: Duration) -> Result<Vec<u8>, HttpError> {
    let mut stream = Timed::new(stream, timeout);
    let (bytes, head) = read_head(&mut stream, Parsed::request)?;
    read_body(&mut stream, bytes, &head, MAX_REQUEST)
}

/// Answers a request.
pub(crate) fn answer(stream: &TcpStream, status: &str, body: &str, timeout: Duration) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nServer: ropewalk\r\nContent-Type: text/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    Timed::new(stream, timeout).write_all((head + body).as_bytes())
}

/// The relevant parts of a head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Length of the head in bytes.
    len: usize,
    status: u16,
    /// Length of the body as stated.
    body: Option<u64>,
}

impl Parsed {
    /// Returns `None` if the head is incomplete.
    pub(crate) fn request(bytes: &[u8]) -> Result<Option<Parsed>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut head = httparse::Request::new(&mut fields);
        let parsed = head.parse(bytes).map_err(|e| HttpError::Syntax(e.to_string()))?;
        let httparse::Status::Complete(len) = parsed else {
            return Ok(None);
        };
        if head.method != Some("POST") {
            return Err(HttpError::Syntax("XML-RPC requires POST".into()));
        }
        let body = length(head.headers)?;
        Ok(Some(Parsed {
            len,
            status: 200,
            body,
        }))
    }

    /// As [`Parsed::request`].
    pub(crate) fn response(bytes: &[u8]) -> Result<Option<Parsed>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head.parse(bytes).map_err(|e| HttpError::Syntax(e.to_string()))?;
        let httparse::Status::Complete(len) = parsed else {
            return Ok(None);
        };
        let status = head.code.unwrap_or(0);
        let body = length(head.headers)?;
        Ok(Some(Parsed { len, status, body }))
    }
}

fn length(fields: &[httparse::Header<'_>]) -> Result<Option<u64>, HttpError> {
    let mut found = None;
    for field in fields {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(HttpError::NoLength);
        }
        if field.name.eq_ignore_ascii_case("content-length") {
            let number = std::str::from_utf8(field.value).ok();
            let number = number.and_then(|n| n.trim().parse::<u64>().ok());
            let number = number.ok_or_else(|| HttpError::Syntax("Content-Length is not a number".into()))?;
            if found.is_some_and(|f| f != number) {
                return Err(HttpError::Syntax("two lengths".into()));
            }
            found = Some(number);
        }
    }
    Ok(found)
}

fn read_head(
    stream: &mut impl Read,
    parse: fn(&[u8]) -> Result<Option<Parsed>, HttpError>,
) -> Result<(Vec<u8>, Parsed), HttpError> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece)?;
        if n == 0 {
            return Err(HttpError::Cut);
        }
        bytes.extend_from_slice(&piece[..n]);
        if let Some(head) = parse(&bytes)? {
            return Ok((bytes, head));
        }
        if bytes.len() > MAX_HEAD {
            return Err(HttpError::Head);
        }
    }
}

/// `bytes` begin with the head and may contain some of the body. Memory grows with what has arrived, not with what was
/// announced.
fn read_body(
    stream: &mut impl Read,
    mut bytes: Vec<u8>,
    head: &Parsed,
    most: usize,
) -> Result<Vec<u8>, HttpError> {
    let len = head.body.ok_or(HttpError::NoLength)?;
    if len > most as u64 {
        return Err(HttpError::Body { len, most });
    }
    bytes.drain(..head.len);
    let missing = len.saturating_sub(bytes.len() as u64);
    stream.take(missing).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < len {
        return Err(HttpError::Cut);
    }
    bytes.truncate(len as usize);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<u8>, HttpError> {
        let mut stream = bytes;
        let (bytes, head) = read_head(&mut stream, Parsed::request)?;
        read_body(&mut stream, bytes, &head, MAX_REQUEST)
    }

    #[test]
    fn a_request_is_read_and_bounded() {
        assert_eq!(
            read(b"POST / HTTP/1.0\r\ncontent-length: 3\r\n\r\nabcd").unwrap(),
            b"abc"
        );
        let text = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(text(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc").contains("closed"));
        assert!(
            text(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n").contains("99999999999 bytes")
        );
        assert!(text(b"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n").contains("at most 65536"));
        assert!(text(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n").contains("not a number"));
        assert!(
            text(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
                .contains("two lengths")
        );
        assert!(text(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").contains("Content-Length"));
        assert!(text(b"POST / HTTP/1.1\r\n\r\n").contains("Content-Length"));
        assert!(text(b"GET / HTTP/1.1\r\n\r\n").contains("POST"));
        assert!(text(b"\0\0\0\0\r\n\r\n").contains("not HTTP"));
        assert!(text(b"").contains("closed"));
        let endless = [b"POST / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 1 << 20]].concat();
        assert!(text(&endless).contains("head of more than"));
    }
}
