//! One TCP connection: the admission token, TLS, and datagrams in its stream.

use super::frames::{self, Cutter, HEAD, RECORD};
use crate::carrier::PeerIndex;
use crate::carrier::team::admission::TOKEN_LEN;
use crate::carrier::team::standing::Standing;
use rustls::pki_types::CertificateDer;
use socket2::SockRef;
use std::io::{self, BufRead, ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Bytes read at once from an unauthenticated peer.
const LITTLE: usize = 4 << 10;

/// The progress of a connection.
#[derive(Debug)]
pub(super) enum Stage {
    /// This host dials: TCP is not connected yet.
    Dialing,
    /// The other end dialled and has to present its admission token; the received part of it.
    Admission(Vec<u8>),
    /// TLS has the stream: the handshake, then datagrams.
    Talking,
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum Came {
    Nothing,
    /// Bytes, without a further event.
    Bytes,
    /// The last byte of a token, which is now to be judged.
    Token,
    /// The handshake is complete.
    Up,
}

/// The place of a found datagram.
#[derive(Debug, Clone, Copy)]
enum Found {
    None,
    /// At the start of TLS's decrypted bytes, after its length: this many bytes in total.
    Plain(usize),
    /// In [`Connection::torn`], this many bytes.
    Torn(usize),
}

pub(super) struct Connection {
    socket: TcpStream,
    stage: Stage,
    tls: Option<rustls::Connection>,
    pub(super) standing: Standing,
    /// The unsent rest of this host's token.
    token: Vec<u8>,
    /// Datagrams that wait to share a record with others.
    gathered: Vec<u8>,
    /// Buffer for reads, and the part of it that TLS has not taken, since TLS holds at most one record of
    /// plaintext.
    room: Vec<u8>,
    cipher: Range<usize>,
    /// Datagrams that span two records.
    torn: Cutter,
    /// The last datagram found.
    found: Found,
    /// Since when the socket has been full.
    pub(super) full: Option<Instant>,
}

impl Connection {
    pub(super) fn dialing(
        socket: TcpStream,
        tls: rustls::ClientConnection,
        token: [u8; TOKEN_LEN],
        peer: PeerIndex,
        to: IpAddr,
        now: Instant,
    ) -> Self {
        Connection {
            stage: Stage::Dialing,
            tls: Some(unbound(tls.into())),
            token: token.to_vec(),
            ..Self::new(socket, Standing::new(Some(peer), to, now))
        }
    }

    pub(super) fn dialed_by(socket: TcpStream, from: IpAddr, now: Instant) -> Self {
        Self::new(socket, Standing::new(None, from, now))
    }

    fn new(socket: TcpStream, standing: Standing) -> Self {
        Connection {
            socket,
            stage: Stage::Admission(Vec::with_capacity(TOKEN_LEN)),
            tls: None,
            standing,
            token: Vec::new(),
            gathered: Vec::new(),
            room: Vec::new(),
            cipher: 0..0,
            torn: Cutter::default(),
            found: Found::None,
            full: None,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns whether datagrams may use it.
    pub(super) fn open(&self) -> bool {
        self.standing.is_up()
    }

    /// Returns whether datagrams wait in it.
    pub(super) fn gathers(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// The certificate that the other end presented.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        let shown = self.tls.as_ref()?.peer_certificates()?;
        Some(shown.first()?.clone().into_owned())
    }

    /// TCP is connected, or has failed. Call it when the socket becomes writable while dialling.
    pub(super) fn dial_done(&mut self, now: Instant) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        self.stage = Stage::Talking;
        self.flush(now)
    }

    /// The token is valid: starts TLS with the bytes behind it.
    pub(super) fn let_in(&mut self, tls: rustls::ServerConnection, now: Instant) -> io::Result<Came> {
        self.tls = Some(unbound(tls.into()));
        self.stage = Stage::Talking;
        // Its last messages must arrive even if the connection closes.
        SockRef::from(&self.socket).set_linger(None)?;
        self.take(now)
    }

    /// Reads once, at most `most` bytes, unless earlier bytes are not processed yet.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn read(&mut self, most: usize, now: Instant) -> io::Result<Came> {
        if !self.cipher.is_empty() {
            return Ok(Came::Bytes);
        }
        // An unauthenticated peer must not cause much memory use.
        let most = if self.open() { most } else { most.min(LITTLE) };
        self.room.resize(most, 0);
        match (&self.socket).read(&mut self.room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => self.cipher = 0..n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Came::Nothing);
            }
            Err(e) => return Err(e),
        }
        let Stage::Admission(token) = &mut self.stage else {
            return self.take(now);
        };
        let own = self.cipher.len().min(TOKEN_LEN - token.len());
        token.extend_from_slice(&self.room[..own]);
        self.cipher.start = own;
        Ok(if token.len() < TOKEN_LEN {
            Came::Bytes
        } else {
            Came::Token
        })
    }

    /// Passes received bytes to TLS, as far as it takes them at present.
    fn take(&mut self, now: Instant) -> io::Result<Came> {
        let Some(tls) = &mut self.tls else {
            return Ok(Came::Nothing);
        };
        self.standing.heard = Some(now);
        let mut closed = false;
        while !self.cipher.is_empty() && !closed {
            let mut bytes = &self.room[self.cipher.clone()];
            if tls.read_tls(&mut bytes)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.cipher.start = self.cipher.end - bytes.len();
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // Inform the other end of the reason.
                    let _ = tls.write_tls(&mut &self.socket);
                    return Err(io::Error::other(error));
                }
            };
            closed = state.peer_has_closed();
            if state.plaintext_bytes_to_read() > 0 {
                break;
            }
        }
        let up = !tls.is_handshaking() && self.standing.up.is_none();
        // TLS's own answers.
        if tls.wants_write() {
            self.flush(now)?;
        }
        if closed {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if up {
            self.standing.up = Some(now);
            return Ok(Came::Up);
        }
        Ok(Came::Bytes)
    }

    /// Finds the next datagram in the received bytes, which [`Connection::datagram`] then returns.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn next(&mut self, now: Instant) -> io::Result<bool> {
        loop {
            let Some(tls) = &mut self.tls else {
                return Ok(false);
            };
            if let Found::Plain(len) = std::mem::replace(&mut self.found, Found::None) {
                tls.reader().consume(len);
            }
            if let Some(datagram) = self.torn.next().map_err(io::Error::other)? {
                self.found = Found::Torn(datagram.len());
                return Ok(true);
            }
            let plain = match tls.reader().into_first_chunk() {
                Ok(plain) => plain,
                Err(e) if e.kind() == ErrorKind::WouldBlock => &[],
                Err(e) => return Err(e),
            };
            if plain.is_empty() {
                if self.cipher.is_empty() {
                    return Ok(false);
                }
                self.take(now)?;
                continue;
            }
            let whole = match self.torn.kept() {
                0 => frames::first(plain).map_err(io::Error::other)?,
                _ => None,
            };
            if let Some(datagram) = whole {
                self.found = Found::Plain(HEAD + datagram.len());
                return Ok(true);
            }
            self.torn.put(plain);
            let len = plain.len();
            tls.reader().consume(len);
        }
    }

    /// The datagram that [`Connection::next`] found.
    pub(super) fn datagram(&mut self) -> &[u8] {
        match (self.found, &mut self.tls) {
            (Found::Plain(len), Some(tls)) => {
                let plain = tls.reader().into_first_chunk().unwrap_or_default();
                plain.get(HEAD..len).unwrap_or_default()
            }
            (Found::Torn(len), _) => self.torn.last(len),
            _ => &[],
        }
    }

    /// Adds a datagram of at most [`frames::MOST`] bytes, which the next [`Connection::flush`] sends.
    pub(super) fn put(&mut self, datagram: &[u8]) -> io::Result<()> {
        let head = frames::head(datagram);
        let with = self.gathered.len() + head.len() + datagram.len();
        if with <= RECORD / 2 {
            self.gathered.extend_from_slice(&head);
            self.gathered.extend_from_slice(datagram);
            return Ok(());
        }
        if with > RECORD {
            self.encrypt()?;
        }
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let parts = [&self.gathered, &head[..], datagram].map(IoSlice::new);
        let whole = parts.iter().map(|p| p.len()).sum::<usize>();
        if tls.writer().write_vectored(&parts)? != whole {
            return Err(ErrorKind::WriteZero.into());
        }
        self.gathered.clear();
        Ok(())
    }

    /// Sends bytes that are not a datagram.
    #[cfg(test)]
    pub(super) fn put_unframed(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
    }

    fn encrypt(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(&self.gathered)?;
        }
        self.gathered.clear();
        Ok(())
    }

    /// Passes pending bytes to the system, as far as it takes them ([`Connection::full`]).
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn flush(&mut self, now: Instant) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.encrypt()?;
        }
        let Some(tls) = self
            .tls
            .as_mut()
            .filter(|_| !matches!(self.stage, Stage::Dialing))
        else {
            return Ok(());
        };
        let mut socket = &self.socket;
        while !self.token.is_empty() || tls.wants_write() {
            let wrote = match self.token.is_empty() {
                false => socket.write(&self.token).map(|n| drop(self.token.drain(..n))),
                true => tls.write_tls(&mut socket).map(drop),
            };
            match wrote {
                Ok(()) => self.full = None,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.full.get_or_insert(now);
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        self.full = None;
        Ok(())
    }

    /// Announces the end of the connection to the other end, as far as the socket takes it.
    pub(super) fn say_goodbye(&mut self, now: Instant) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.flush(now);
        }
    }
}

/// Removes TLS's buffer limit, since the carrier bounds the buffered bytes.
fn unbound(mut tls: rustls::Connection) -> rustls::Connection {
    tls.set_buffer_limit(None);
    tls
}
