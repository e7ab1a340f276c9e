//! Answers to requests that are not WebSocket's.

use std::io::{self, Write};

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// 200.
    Ok,
    /// 400.
    BadRequest,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 405.
    NotAllowed,
    /// 408.
    Timeout,
    /// 426.
    UpgradeRequired,
    /// 431.
    HeadTooLarge,
    /// 503.
    Busy,
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Page {
    /// Plain text; a line feed is added.
    Text(String),
    /// A file with its media type, such as `text/html; charset=utf-8`.
    File(&'static str, Vec<u8>),
}

/// An answer. The connection ends after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: Status,
    page: Page,
    headers: Vec<(&'static str, String)>,
    policy: Option<String>,
}

/// The content security policy of a page that has none of its own: load from this server only.
const POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:";

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::NotAllowed => "405 Method Not Allowed",
            Status::Timeout => "408 Request Timeout",
            Status::UpgradeRequired => "426 Upgrade Required",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::Busy => "503 Service Unavailable",
        }
    }
}

impl Response {
    /// An answer.
    pub fn new(status: Status, page: Page) -> Self {
        Response {
            status,
            page,
            headers: Vec::new(),
            policy: None,
        }
    }

    /// Replaces the content security policy. One with a line break is left out.
    #[must_use]
    pub fn with_policy(mut self, policy: String) -> Self {
        if !policy.contains(['\r', '\n']) {
            self.policy = Some(policy);
        }
        self
    }

    /// Adds a header, such as `Set-Cookie`. A value with a line break is left out.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: String) -> Self {
        if !value.contains(['\r', '\n']) {
            self.headers.push((name, value));
        }
        self
    }

    /// Writes it; pages may load nothing from other sites, and no site may frame them.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let text;
        let (kind, bytes) = match &self.page {
            Page::Text(line) => {
                text = format!("{line}\n");
                ("text/plain; charset=utf-8", text.as_bytes())
            }
            Page::File(kind, bytes) => (*kind, bytes.as_slice()),
        };
        let mut head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {}\r\n",
            self.status.line(),
            bytes.len(),
            self.policy.as_deref().unwrap_or(POLICY),
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        to.write_all(head.as_bytes())?;
        to.write_all(bytes)
    }
}
