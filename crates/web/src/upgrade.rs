//! The opening handshake of WebSocket (RFC 6455, section 4).

use crate::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A handshake that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    key: String,
    protocol: Option<String>,
}

/// Whether the request asks for a WebSocket.
pub(crate) fn asked(request: &Request) -> bool {
    request.lists("upgrade", "websocket")
}

/// The subprotocols that the client offers, in its order.
pub(crate) fn offered(request: &Request) -> Vec<String> {
    let all = request
        .headers("sec-websocket-protocol")
        .flat_map(|v| v.split(','));
    let plain = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic());
    all.map(str::trim).filter(plain).map(str::to_owned).collect()
}

/// Checks the handshake, and answers with `protocol`, one of those offered.
///
/// # Errors
/// A line that says what is wrong.
pub(crate) fn accept(request: &Request, protocol: Option<String>) -> Result<Accepted, &'static str> {
    if request.method() != "GET" || !request.lists("connection", "upgrade") {
        return Err("a WebSocket is opened by GET with Connection: Upgrade");
    }
    if request.header("sec-websocket-version") != Some("13") {
        return Err("write Sec-WebSocket-Version: 13");
    }
    let key = request.header("sec-websocket-key").unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |bytes| bytes.len()) != 16 {
        return Err("Sec-WebSocket-Key must be 16 bytes in base64");
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    Ok(Accepted {
        key: STANDARD.encode(hash),
        protocol,
    })
}

impl Accepted {
    /// The subprotocol that was agreed.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    pub(crate) fn head(&self) -> String {
        let protocol = self.protocol.as_ref();
        let protocol = protocol.map_or_else(String::new, |p| format!("Sec-WebSocket-Protocol: {p}\r\n"));
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n{protocol}\r\n",
            self.key
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(more: &str) -> Request {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\n{more}\r\n");
        Request::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn the_key_of_the_rfc_gets_the_answer_of_the_rfc() {
        let request = request(
            "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: a, b\r\n",
        );
        assert!(asked(&request));
        assert_eq!(offered(&request), ["a", "b"]);
        let accepted = accept(&request, Some("b".into())).unwrap();
        assert!(
            accepted
                .head()
                .contains("Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: b\r\n")
        );
    }

    #[test]
    fn handshakes_that_lack_something_are_refused() {
        let version = "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
        for more in [
            "",
            "Connection: Upgrade\r\n",
            version,
            &format!("{version}Sec-WebSocket-Key: c2hvcnQ=\r\n"),
        ] {
            assert!(accept(&request(more), None).is_err(), "{more}");
        }
    }
}
