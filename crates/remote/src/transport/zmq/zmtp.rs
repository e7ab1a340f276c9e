//! ZMTP 3.0 (RFC 23) as a PUB socket without security speaks it: parses what subscribers send, and frames what they
//! receive.

/// Maximum bytes of a frame from a subscriber: subscriptions and pings.
pub(super) const MAX_FRAME: usize = 1024;
/// Maximum subscriptions of one subscriber.
pub(super) const MAX_TOPICS: usize = 256;

const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The first message of this end.
pub(super) fn greeting() -> Vec<u8> {
    let mut out = vec![0; GREETING];
    (out[0], out[9]) = (0xff, 0x7f);
    out[10] = 3;
    out[12..16].copy_from_slice(b"NULL");
    out
}

/// The message of this end after the peer's greeting.
pub(super) fn ready() -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    property(&mut body, b"Socket-Type", b"PUB");
    surround(COMMAND, &[&body])
}

/// The message with the reason for closing the connection.
pub(super) fn error(reason: &str) -> Vec<u8> {
    let len = reason.len().min(255);
    surround(COMMAND, &[b"\x05ERROR", &[len as u8], &reason.as_bytes()[..len]])
}

/// Frames a message of one part.
pub(super) fn message(frame: &[u8]) -> Vec<u8> {
    surround(0, &[frame])
}

fn pong(context: &[u8]) -> Vec<u8> {
    surround(COMMAND, &[b"\x04PONG", context])
}

fn property(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(name.len() as u8);
    out.extend_from_slice(name);
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

fn surround(flags: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(9 + len);
    match u8::try_from(len) {
        Ok(short) => out.extend_from_slice(&[flags, short]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// The state of a subscriber's input.
#[derive(Default)]
pub(super) struct Subscriber {
    stage: Stage,
    unread: Vec<u8>,
    topics: Vec<Vec<u8>>,
}

#[derive(Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Greeting,
    Handshake,
    Ready,
}

/// Why a connection has to be closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the peer does not speak ZMTP 3")]
    Greeting,
    #[error("the peer requires the security mechanism {0}, which version 6 does not have")]
    Mechanism(String),
    #[error("the peer uses a {0} socket; only SUB is accepted")]
    Socket(String),
    #[error("a frame of {0} B; subscriptions have at most {MAX_FRAME} B")]
    TooLong(u64),
    #[error("more than {MAX_TOPICS} subscriptions from one peer")]
    TooMany,
    #[error("malformed {0}")]
    Malformed(&'static str),
}

impl Subscriber {
    /// Takes received bytes and returns the bytes to answer.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.unread.extend_from_slice(bytes);
        let mut answers = Vec::new();
        if self.stage == Stage::Greeting {
            // Refuses a peer of another protocol before 64 bytes have arrived.
            if self.unread.first().is_some_and(|b| *b != 0xff)
                || self.unread.get(9).is_some_and(|b| b & 1 == 0)
            {
                return Err(Refusal::Greeting);
            }
            if self.unread.len() < GREETING {
                return Ok(answers);
            }
            self.greeted()?;
            answers.extend_from_slice(&ready());
        }
        let unread = std::mem::take(&mut self.unread);
        let mut rest = &unread[..];
        while let Some((flags, body, after)) = frame(rest)? {
            self.frame(flags, body, &mut answers)?;
            rest = after;
        }
        self.unread = rest.to_vec();
        Ok(answers)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(super) fn wants(&self, frame: &[u8]) -> bool {
        self.topics.iter().any(|topic| frame.starts_with(topic))
    }

    fn greeted(&mut self) -> Result<(), Refusal> {
        if self.unread[10] < 3 {
            return Err(Refusal::Greeting);
        }
        let mechanism = &self.unread[12..32];
        let mechanism = mechanism.split(|b| *b == 0).next().unwrap_or_default();
        if mechanism != b"NULL" {
            return Err(Refusal::Mechanism(printable(mechanism)));
        }
        self.unread.drain(..GREETING);
        self.stage = Stage::Handshake;
        Ok(())
    }

    fn frame(&mut self, flags: u8, body: &[u8], answers: &mut Vec<u8>) -> Result<(), Refusal> {
        let is_command = flags & COMMAND != 0;
        if self.stage == Stage::Handshake {
            if !is_command || flags & MORE != 0 {
                return Err(Refusal::Malformed("handshake"));
            }
            let properties = body
                .strip_prefix(b"\x05READY")
                .ok_or(Refusal::Malformed("handshake"))?;
            let socket = socket_type(properties)?;
            if !matches!(socket, b"SUB" | b"XSUB") {
                return Err(Refusal::Socket(printable(socket)));
            }
            self.stage = Stage::Ready;
        } else if !is_command {
            match body.split_first() {
                Some((1, topic)) if flags & MORE == 0 => self.subscribe(topic)?,
                Some((0, topic)) if flags & MORE == 0 => self.cancel(topic),
                // An XSUB may send anything to a PUB, which ignores it.
                _ => {}
            }
        } else if let Some(topic) = body.strip_prefix(b"\x09SUBSCRIBE") {
            self.subscribe(topic)?;
        } else if let Some(topic) = body.strip_prefix(b"\x06CANCEL") {
            self.cancel(topic);
        } else if let Some(ping) = body.strip_prefix(b"\x04PING") {
            let (_, context) = ping.split_at_checked(2).ok_or(Refusal::Malformed("PING"))?;
            answers.extend_from_slice(&pong(&context[..context.len().min(16)]));
        }
        Ok(())
    }

    fn subscribe(&mut self, topic: &[u8]) -> Result<(), Refusal> {
        if self.topics.len() >= MAX_TOPICS {
            return Err(Refusal::TooMany);
        }
        self.topics.push(topic.to_vec());
        Ok(())
    }

    fn cancel(&mut self, topic: &[u8]) {
        if let Some(at) = self.topics.iter().position(|t| t == topic) {
            self.topics.swap_remove(at);
        }
    }
}

/// Flags and body of a frame, and the bytes after it.
type Frame<'a> = (u8, &'a [u8], &'a [u8]);

/// Returns the first frame, if it is complete.
fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, Refusal> {
    let Some((flags, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(Refusal::Malformed("flags"));
    }
    let (len, rest) = if flags & LONG == 0 {
        let Some((len, rest)) = rest.split_first() else {
            return Ok(None);
        };
        (u64::from(*len), rest)
    } else {
        let Some((len, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        (u64::from_be_bytes(*len), rest)
    };
    if len > MAX_FRAME as u64 {
        return Err(Refusal::TooLong(len));
    }
    Ok(rest
        .split_at_checked(len as usize)
        .map(|(body, rest)| (*flags, body, rest)))
}

fn socket_type(mut properties: &[u8]) -> Result<&[u8], Refusal> {
    let malformed = Refusal::Malformed("READY");
    let mut socket = None;
    while let Some((len, rest)) = properties.split_first() {
        let Some((name, rest)) = rest.split_at_checked(usize::from(*len)) else {
            return Err(malformed);
        };
        let Some((len, rest)) = rest.split_first_chunk() else {
            return Err(malformed);
        };
        let Some((value, rest)) = rest.split_at_checked(u32::from_be_bytes(*len) as usize) else {
            return Err(malformed);
        };
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            socket = Some(value);
        }
        properties = rest;
    }
    socket.ok_or(malformed)
}

fn printable(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(20)
        .map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '?' })
        .collect()
}

/// Any bytes have the same result whole and in pieces, and little of them is kept.
pub(super) fn fuzz(bytes: &[u8]) {
    let outcome = |step: usize| {
        let mut subscriber = Subscriber::default();
        let mut answers = Vec::new();
        for chunk in bytes.chunks(step) {
            answers.extend_from_slice(&subscriber.take(chunk)?);
            assert!(subscriber.unread.len() <= MAX_FRAME + 9 && subscriber.topics.len() <= MAX_TOPICS);
        }
        Ok::<_, Refusal>((answers, subscriber.topics))
    };
    assert_eq!(outcome(bytes.len().max(1)), outcome(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sub() -> Vec<u8> {
        let mut out = greeting();
        let mut body = b"\x05READY".to_vec();
        property(&mut body, b"Socket-Type", b"SUB");
        property(&mut body, b"Identity", b"");
        out.extend_from_slice(&surround(COMMAND, &[&body]));
        out
    }

    #[test]
    fn a_subscriber_says_what_it_wants_in_either_way_and_byte_by_byte() {
        let mut bytes = sub();
        bytes.extend_from_slice(&message(b"\x01\x07"));
        bytes.extend_from_slice(&surround(COMMAND, &[b"\x09SUBSCRIBE\x08"]));
        bytes.extend_from_slice(&message(b"\x01\x08"));
        bytes.extend_from_slice(&message(b"\x00\x08"));
        bytes.extend_from_slice(&surround(COMMAND, &[b"\x04PING\x00\x05context"]));
        for step in [1, 3, bytes.len()] {
            let mut subscriber = Subscriber::default();
            let answers: Vec<u8> = bytes
                .chunks(step)
                .flat_map(|chunk| subscriber.take(chunk).unwrap())
                .collect();
            assert!(subscriber.is_ready());
            assert_eq!(answers, [ready(), pong(b"context")].concat());
            assert!(subscriber.wants(b"\x07\0x") && subscriber.wants(b"\x08\0"));
            subscriber.take(&surround(COMMAND, &[b"\x06CANCEL\x08"])).unwrap();
            assert!(!subscriber.wants(b"\x08\0") && !subscriber.wants(b""));
            subscriber.take(&message(b"\x01")).unwrap();
            assert!(subscriber.wants(b""));
        }
    }

    #[test]
    fn foreign_peers_are_refused_with_the_reason() {
        let refused = |bytes: &[u8]| Subscriber::default().take(bytes).unwrap_err();
        assert_eq!(refused(b"GET / HTTP/1.1\r\n"), Refusal::Greeting);
        let mut old = greeting();
        old[10] = 1;
        assert_eq!(refused(&old), Refusal::Greeting);
        let mut curve = greeting();
        curve[12..17].copy_from_slice(b"CURVE");
        assert_eq!(refused(&curve), Refusal::Mechanism("CURVE".into()));
        let after = |frame: &[u8]| refused(&[&greeting(), frame].concat());
        let mut body = b"\x05READY".to_vec();
        property(&mut body, b"Socket-Type", b"REQ");
        assert_eq!(after(&surround(COMMAND, &[&body])), Refusal::Socket("REQ".into()));
        assert_eq!(after(b"\x04\x06\x05READY"), Refusal::Malformed("READY"));
        assert_eq!(after(b"\x04\x08\x05READY\xffx"), Refusal::Malformed("READY"));
        assert_eq!(
            after(b"\x04\x0a\x05READY\x01x\xff\xff"),
            Refusal::Malformed("READY")
        );
        assert_eq!(after(b"\x00\x01x"), Refusal::Malformed("handshake"));
        assert_eq!(after(b"\x80"), Refusal::Malformed("flags"));
        assert_eq!(
            after(b"\x02\xff\xff\xff\xff\xff\xff\xff\xff"),
            Refusal::TooLong(u64::MAX)
        );
        let mut many = Subscriber::default();
        many.take(&sub()).unwrap();
        for _ in 0..MAX_TOPICS {
            many.take(b"\x00\x01\x01").unwrap();
        }
        assert_eq!(many.take(b"\x00\x01\x01"), Err(Refusal::TooMany));
    }

    #[test]
    fn long_messages_have_long_lengths() {
        assert_eq!(message(&[7; 255])[..2], [0, 255]);
        assert_eq!(message(&[7; 256])[..9], [LONG, 0, 0, 0, 0, 0, 0, 1, 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_and_little_is_kept(bytes in proptest::collection::vec(any::<u8>(), 0..300), begun in any::<bool>()) {
            let mut subscriber = Subscriber::default();
            if begun {
                subscriber.take(&sub()).unwrap();
            }
            for chunk in bytes.chunks(7) {
                if subscriber.take(chunk).is_err() {
                    break;
                }
                prop_assert!(subscriber.unread.len() <= MAX_FRAME + 9);
            }
        }
    }
}
