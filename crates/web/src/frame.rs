//! Frames of WebSocket (RFC 6455, section 5): reading a client's, writing the server's. No I/O.

/// The longest head of a frame that the server writes, in bytes.
pub const MAX_HEAD: usize = 10;
/// The longest payload of a control frame, in bytes.
const MAX_CONTROL: u64 = 125;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// The next fragment of a message.
    Continuation,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Binary,
    /// The end of the connection.
    Close,
    /// Asks whether the peer is alive.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// A whole message of a client, or a control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// The client asks whether the server is alive; answer with these bytes.
    Ping(Vec<u8>),
    /// The client answers a ping with its bytes.
    Pong(Vec<u8>),
    /// The client leaves.
    Close,
}

/// Why a client's frames are refused. The connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A reserved bit is set.
    #[error("a frame with reserved bits {0:#04x}; no extension was agreed")]
    Reserved(u8),
    /// An unknown opcode.
    #[error("a frame with the unknown opcode {0}")]
    Opcode(u8),
    /// Clients must mask.
    #[error("a frame without a mask; clients must mask (RFC 6455, 5.1)")]
    Unmasked,
    /// A control frame that is fragmented or too long.
    #[error("a control frame that is fragmented or longer than {MAX_CONTROL} bytes")]
    Control,
    /// A fragment without a message, or a message within one.
    #[error("a fragment out of order")]
    Fragment,
    /// A length that was not written in the shortest way, or is above 2^63.
    #[error("a length that is not written in its shortest form")]
    Length,
    /// A message that is too long.
    #[error("a message of {len} bytes; at most {max} are accepted")]
    TooLong {
        /// Its length so far.
        len: u64,
        /// The limit.
        max: usize,
    },
    /// Text that is not UTF-8.
    #[error("a text that is not UTF-8")]
    Text,
}

impl FrameError {
    /// The status with which the connection is closed (RFC 6455, 7.4.1).
    pub fn status(self) -> u16 {
        match self {
            FrameError::TooLong { .. } => 1009,
            FrameError::Text => 1007,
            _ => 1002,
        }
    }
}

/// Reads a client's frames from a stream of bytes, and joins fragments.
#[derive(Debug)]
pub struct Decoder {
    max: usize,
    /// Bytes of a frame that is not complete.
    buffer: Vec<u8>,
    /// The message whose fragments are arriving.
    partial: Option<(Opcode, Vec<u8>)>,
}

impl Decoder {
    /// Takes messages of at most `max` bytes.
    pub fn new(max: usize) -> Self {
        Decoder {
            max,
            buffer: Vec::new(),
            partial: None,
        }
    }

    /// Adds bytes from the socket; call [`next`](Self::next) until it finds nothing before adding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that it holds.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.partial.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }

    /// The next message or control frame, if it is complete.
    ///
    /// # Errors
    /// [`FrameError`]; the stream cannot be read any further.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Event>, FrameError> {
        loop {
            let Some(head) = Head::read(&self.buffer)? else {
                return Ok(None);
            };
            self.check(&head)?;
            // Checked to be at most `max`.
            let len = head.len as usize;
            let Some(payload) = self.buffer.get_mut(head.size..head.size + len) else {
                return Ok(None);
            };
            for (byte, mask) in payload.iter_mut().zip(head.mask.iter().cycle()) {
                *byte ^= mask;
            }
            let payload = payload.to_vec();
            self.buffer.drain(..head.size + len);
            if self.buffer.is_empty() && self.buffer.capacity() > 1 << 16 {
                self.buffer = Vec::new();
            }
            if let Some(event) = self.take(&head, payload)? {
                return Ok(Some(event));
            }
        }
    }

    /// Refuses a frame before its payload is held.
    fn check(&self, head: &Head) -> Result<(), FrameError> {
        if head.opcode.is_control() {
            if !head.last || head.len > MAX_CONTROL {
                return Err(FrameError::Control);
            }
            return Ok(());
        }
        if self.partial.is_some() != (head.opcode == Opcode::Continuation) {
            return Err(FrameError::Fragment);
        }
        let before = self.partial.as_ref().map_or(0, |(_, bytes)| bytes.len());
        let len = head.len.saturating_add(before as u64);
        if len > self.max as u64 {
            return Err(FrameError::TooLong { len, max: self.max });
        }
        Ok(())
    }

    fn take(&mut self, head: &Head, payload: Vec<u8>) -> Result<Option<Event>, FrameError> {
        let (opcode, bytes) = match head.opcode {
            Opcode::Ping => return Ok(Some(Event::Ping(payload))),
            Opcode::Pong => return Ok(Some(Event::Pong(payload))),
            Opcode::Close => return Ok(Some(Event::Close)),
            Opcode::Continuation => {
                let (opcode, mut bytes) = self.partial.take().ok_or(FrameError::Fragment)?;
                bytes.extend_from_slice(&payload);
                (opcode, bytes)
            }
            opcode => (opcode, payload),
        };
        if !head.last {
            self.partial = Some((opcode, bytes));
            return Ok(None);
        }
        Ok(Some(match opcode {
            Opcode::Text => Event::Text(String::from_utf8(bytes).map_err(|_| FrameError::Text)?),
            _ => Event::Binary(bytes),
        }))
    }
}

/// Writes the head of an unfragmented, unmasked frame; returns its length in bytes.
pub fn head(opcode: Opcode, len: usize, to: &mut [u8; MAX_HEAD]) -> usize {
    to[0] = 0x80 | opcode.bits();
    if let Ok(len @ 0..=125) = u8::try_from(len) {
        to[1] = len;
        2
    } else if let Ok(len) = u16::try_from(len) {
        to[1] = 126;
        to[2..4].copy_from_slice(&len.to_be_bytes());
        4
    } else {
        to[1] = 127;
        to[2..10].copy_from_slice(&(len as u64).to_be_bytes());
        10
    }
}

/// The head of a client's frame.
struct Head {
    last: bool,
    opcode: Opcode,
    len: u64,
    mask: [u8; 4],
    /// Its own length.
    size: usize,
}

impl Head {
    /// `None` if it is not complete.
    fn read(bytes: &[u8]) -> Result<Option<Head>, FrameError> {
        let &[first, second, ref rest @ ..] = bytes else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(FrameError::Reserved(first & 0x70));
        }
        let opcode = Opcode::from_bits(first & 0x0f).ok_or(FrameError::Opcode(first & 0x0f))?;
        if second & 0x80 == 0 {
            return Err(FrameError::Unmasked);
        }
        let (len, rest, size) = match second & 0x7f {
            126 => match rest.split_first_chunk::<2>() {
                Some((len, rest)) => (u16::from_be_bytes(*len).into(), rest, 8),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk::<8>() {
                Some((len, rest)) => (u64::from_be_bytes(*len), rest, 14),
                None => return Ok(None),
            },
            len => (u64::from(len), rest, 6),
        };
        let shortest = match size {
            6 => true,
            8 => len > 125,
            _ => len > 0xffff && len < 1 << 63,
        };
        if !shortest {
            return Err(FrameError::Length);
        }
        let Some(mask) = rest.first_chunk::<4>() else {
            return Ok(None);
        };
        Ok(Some(Head {
            last: first & 0x80 != 0,
            opcode,
            len,
            mask: *mask,
            size,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut head = [0; MAX_HEAD];
        let n = super::head(Opcode::Binary, payload.len(), &mut head);
        head[0] = first;
        head[1] |= 0x80;
        let mask = [1, 2, 3, 250];
        let masked = payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m);
        [&head[..n], &mask].concat().into_iter().chain(masked).collect()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Event>, FrameError> {
        let mut decoder = Decoder::new(70_000);
        let mut events = Vec::new();
        for byte in bytes {
            decoder.feed(&[*byte]);
            while let Some(event) = decoder.next()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn messages_of_each_length_and_fragments_with_a_ping_between_are_read() {
        for len in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = vec![7; len];
            assert_eq!(
                read(&frame(0x82, &payload)),
                Ok(vec![Event::Binary(payload)]),
                "{len}"
            );
        }
        let bytes = [
            frame(0x01, b"hel"),
            frame(0x89, b"?"),
            frame(0x00, b"l"),
            frame(0x80, b"o"),
            frame(0x88, &[3, 232]),
        ];
        let expected = vec![
            Event::Ping(b"?".to_vec()),
            Event::Text("hello".into()),
            Event::Close,
        ];
        assert_eq!(read(&bytes.concat()), Ok(expected));
    }

    #[test]
    fn frames_the_rfc_forbids_are_refused() {
        let long = FrameError::TooLong {
            len: 70_001,
            max: 70_000,
        };
        for (bytes, error) in [
            (frame(0xc2, b""), FrameError::Reserved(0x40)),
            (frame(0x83, b""), FrameError::Opcode(3)),
            (vec![0x82, 0x00], FrameError::Unmasked),
            (frame(0x09, b""), FrameError::Control),
            (frame(0x89, &[0; 126]), FrameError::Control),
            (frame(0x80, b""), FrameError::Fragment),
            (
                [frame(0x01, b"a"), frame(0x81, b"b")].concat(),
                FrameError::Fragment,
            ),
            (vec![0x82, 0xfe, 0, 5, 0, 0, 0, 0], FrameError::Length),
            (frame(0x82, &[0; 70_001]), long),
            ([frame(0x02, &[0; 70_000]), frame(0x80, &[0])].concat(), long),
            (frame(0x81, &[0xff]), FrameError::Text),
        ] {
            assert_eq!(read(&bytes), Err(error));
        }
    }

    #[test]
    fn a_length_alone_reserves_nothing() {
        let mut decoder = Decoder::new(70_000);
        decoder.feed(&[
            0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
        ]);
        assert!(matches!(decoder.next(), Err(FrameError::TooLong { .. })));
        assert!(decoder.held() <= 14);
    }
}
