//! The head of an HTTP/1.1 request.

use crate::Role;
use std::net::SocketAddr;

/// Headers of one request.
const MAX_HEADERS: usize = 64;

/// A request's method, target and headers. Bodies are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) role: Option<Role>,
    /// Whether it came encrypted.
    pub(crate) secure: bool,
    /// Whether the server's certificate is for the host that it names.
    pub(crate) certified: bool,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// It is not a request of HTTP/1.1.
    #[error("not a request of HTTP/1.1: {0}")]
    Syntax(httparse::Error),
    /// It has another version.
    #[error("the version is HTTP/1.{0}: use HTTP/1.1")]
    Version(u8),
    /// A value is not text.
    #[error("a header's value is not text")]
    Value,
    /// A header that must be unique appears twice.
    #[error("the header {0} appears twice")]
    Twice(&'static str),
    /// The target is not a path.
    #[error("the target is not a path: write /PATH")]
    Target,
    /// A body was announced.
    #[error("requests with a body are not accepted")]
    Body,
}

impl Request {
    /// Reads a head; `None` if it is not complete. Returns how many bytes it has.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, HeadError> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let size = match head.parse(bytes).map_err(HeadError::Syntax)? {
            httparse::Status::Complete(size) => size,
            httparse::Status::Partial => return Ok(None),
        };
        let version = head.version.unwrap_or(0);
        if version != 1 {
            return Err(HeadError::Version(version));
        }
        let target = head.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(HeadError::Target);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut named = Vec::with_capacity(head.headers.len());
        for header in head.headers.iter() {
            let value = std::str::from_utf8(header.value).map_err(|_| HeadError::Value)?;
            named.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let request = Request {
            method: head.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: named,
            peer: None,
            role: None,
            secure: false,
            certified: false,
        };
        // If such a header is repeated, a check and its user might read different values.
        for name in ["host", "origin", "authorization", "upgrade", "sec-websocket-key"] {
            if request.headers.iter().filter(|(n, _)| n == name).count() > 1 {
                return Err(HeadError::Twice(name));
            }
        }
        let body = request.header("content-length").is_some_and(|n| n != "0");
        if body || request.header("transfer-encoding").is_some() {
            return Err(HeadError::Body);
        }
        Ok(Some((request, size)))
    }

    /// The role of the client, once it is known.
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// The method, such as `GET`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path, starting with `/`, as written (not decoded).
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of `name` in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The first value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(n, _)| n == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// All values of a header, whose name is given in lower case.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.headers.iter().filter(move |(n, _)| n == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let all = self.headers("cookie").flat_map(|value| value.split(';'));
        let mut pairs = all.filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether a comma-separated header holds `word`, in any case.
    pub(crate) fn lists(&self, name: &str, word: &str) -> bool {
        self.headers(name)
            .flat_map(|value| value.split(','))
            .any(|item| item.trim().eq_ignore_ascii_case(word))
    }

    /// The client's address; `None` in tests of the parser.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_with_its_query_and_cookies() {
        let text = b"GET /a/b?token=x&y=2 HTTP/1.1\r\nHost: h:1\r\nCookie: a=1; s=2\r\n\r\nrest";
        let (request, size) = Request::parse(text).unwrap().unwrap();
        assert_eq!(size, text.len() - 4);
        assert_eq!((request.method(), request.path()), ("GET", "/a/b"));
        assert_eq!((request.query("token"), request.query("n")), (Some("x"), None));
        assert_eq!(
            (request.header("host"), request.cookie("s")),
            (Some("h:1"), Some("2"))
        );
        for n in 0..size {
            assert_eq!(Request::parse(&text[..n]), Ok(None), "{n}");
        }
    }

    #[test]
    fn invalid_requests_are_refused() {
        for (text, error) in [
            (&b"GET / HTTP/1.0\r\n\r\n"[..], HeadError::Version(0)),
            (b"GET http://h/ HTTP/1.1\r\n\r\n", HeadError::Target),
            (
                b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
                HeadError::Twice("host"),
            ),
            (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", HeadError::Body),
            (b"GET / HTTP/1.1\r\nA: \xff\r\n\r\n", HeadError::Value),
        ] {
            assert_eq!(Request::parse(text), Err(error));
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
        assert!(matches!(
            Request::parse(many.as_bytes()),
            Err(HeadError::Syntax(_))
        ));
    }
}
