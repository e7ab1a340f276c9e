//! One WebSocket client: what it may do, its queue, and the loop that reads its messages.

use crate::frame::{Decoder, Event, Opcode};
use crate::{Accepted, Queue, Request, Role};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::sync::Arc;

/// A WebSocket client.
#[derive(Debug)]
pub struct Client {
    /// Its role.
    pub role: Role,
    /// Its address.
    pub address: SocketAddr,
    /// The path it asked for.
    pub path: String,
    /// The agreed subprotocol.
    pub protocol: Option<String>,
    /// Whether a web page opened it.
    pub is_page: bool,
    /// Where messages for it wait.
    pub queue: Arc<Queue>,
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// Serves one client; dropped when the client leaves.
pub trait Handler: Send {
    /// Handles a message. Runs in the client's own thread and may block.
    fn received(&mut self, message: Received);
}

impl Client {
    pub(crate) fn new(
        role: Role,
        address: SocketAddr,
        request: &Request,
        accepted: &Accepted,
        queue: Arc<Queue>,
    ) -> Self {
        Client {
            role,
            address,
            path: request.path().to_owned(),
            protocol: accepted.protocol().map(str::to_owned),
            is_page: request.header("origin").is_some(),
            queue,
        }
    }
}

/// Reads until the client leaves, breaks the rules, or the queue closes. `early` are the bytes after the handshake.
pub(crate) fn read(
    socket: &mut impl Read,
    early: &[u8],
    max: usize,
    queue: &Queue,
    handler: &mut dyn Handler,
) {
    let mut decoder = Decoder::new(max);
    let mut buffer = vec![0; 16 << 10];
    decoder.feed(early);
    loop {
        loop {
            match decoder.next() {
                Ok(Some(Event::Text(text))) => handler.received(Received::Text(text)),
                Ok(Some(Event::Binary(bytes))) => handler.received(Received::Binary(bytes)),
                Ok(Some(Event::Ping(bytes))) => queue.answer(Opcode::Pong, bytes),
                Ok(Some(Event::Pong(number))) => queue.answered(&number),
                Ok(Some(Event::Close)) => return queue.answer(Opcode::Close, vec![3, 232]),
                Ok(None) => break,
                Err(error) => {
                    tracing::info!(%error, "a client was disconnected");
                    let mut why = error.status().to_be_bytes().to_vec();
                    why.extend_from_slice(error.to_string().as_bytes());
                    return queue.answer(Opcode::Close, why);
                }
            }
            if queue.is_closed() {
                return;
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) => return queue.close(),
            Ok(n) => decoder.feed(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return queue.close(),
        }
        if queue.is_closed() {
            return;
        }
    }
}
