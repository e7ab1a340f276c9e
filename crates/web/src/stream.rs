//! A client's connection, plain or encrypted: one thread reads it and another may write it.
//!
//! An encrypted connection has one state for both directions. No thread holds it while it waits for the socket, so a
//! client that reads nothing does not keep the server from reading what it sends.

use crate::Tls;
use crate::pace::LONG;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustls::ServerConnection;
use socket2::SockRef;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are read at once: a record of TLS with its head.
const READ: usize = (16 << 10) + 512;
/// Bytes that the system may hold unsent for a client: the rest waits in the queue, where newer messages replace it.
const UNSENT: u32 = 16 << 10;

/// A connection, as the thread that reads sees it.
pub(crate) struct Stream {
    line: Arc<Line>,
    /// Encrypted bytes that were read; those in `rest` are not decrypted yet.
    bytes: Vec<u8>,
    rest: Range<usize>,
    /// Reading fails from here on.
    until: Option<Instant>,
}

/// The same connection, for another thread that writes.
pub(crate) struct Writing(Arc<Line>);

struct Line {
    socket: TcpStream,
    tls: Option<Session>,
    /// What the system may hold unsent now, in bytes.
    unsent: AtomicU32,
}

struct Session {
    state: Mutex<ServerConnection>,
    /// Encrypted bytes that wait for the socket; locked before `state`, so that they leave in their order.
    outgoing: Mutex<Vec<u8>>,
}

impl Stream {
    /// A plain connection. Reading fails after `until`.
    pub(crate) fn plain(socket: TcpStream, until: Instant) -> Self {
        Stream::new(socket, None, until)
    }

    /// A connection that is encrypted from here on: the handshake has to end before `until`, and reading fails after
    /// that.
    ///
    /// # Errors
    /// What the socket returns, `TimedOut`, or `InvalidData` if the client does not speak TLS 1.3. It is notified.
    pub(crate) fn encrypted(socket: TcpStream, tls: &Tls, until: Instant) -> io::Result<Self> {
        let state = ServerConnection::new(tls.config.clone()).map_err(io::Error::other)?;
        let session = Session {
            state: Mutex::new(state),
            outgoing: Mutex::default(),
        };
        let mut stream = Stream::new(socket, Some(session), until);
        while let Some(session) = &stream.line.tls
            && lock(&session.state).is_handshaking()
        {
            if !stream.receive()? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(stream)
    }

    fn new(socket: TcpStream, tls: Option<Session>, until: Instant) -> Self {
        let bytes = vec![0; if tls.is_some() { READ } else { 0 }];
        Stream {
            line: Arc::new(Line {
                socket,
                tls,
                unsent: AtomicU32::new(u32::MAX),
            }),
            bytes,
            rest: 0..0,
            until: Some(until),
        }
    }

    /// Lets reading take any time.
    ///
    /// # Errors
    /// What the socket returns.
    pub(crate) fn wait_forever(&mut self) -> io::Result<()> {
        self.until = None;
        self.line.socket.set_read_timeout(None)
    }

    /// The half that writes.
    pub(crate) fn writing(&self) -> Writing {
        Writing(self.line.clone())
    }

    /// Reads from the socket within the time that is left. Without a limit it polls first: a thread that blocks in `read`
    /// is woken by the kernel each time that the other thread may write again.
    fn read_socket(&mut self, to: Option<&mut [u8]>) -> io::Result<usize> {
        let to = to.unwrap_or(&mut self.bytes);
        loop {
            if let Some(until) = self.until {
                self.line.socket.set_read_timeout(Some(left(until)?))?;
            } else {
                match poll(&mut [PollFd::new(&self.line.socket, PollFlags::IN)], None) {
                    Err(Errno::INTR) => continue,
                    polled => polled?,
                };
            }
            match (&self.line.socket).read(to) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Decrypts what has arrived, or waits for more; false if the client has left.
    fn receive(&mut self) -> io::Result<bool> {
        if self.rest.is_empty() {
            self.rest = 0..self.read_socket(None)?;
            if self.rest.is_empty() {
                return Ok(false);
            }
        }
        let Some(session) = &self.line.tls else {
            return Ok(false);
        };
        let mut state = lock(&session.state);
        let used = state.read_tls(&mut &self.bytes[self.rest.clone()])?;
        self.rest.start += used;
        let taken = state.process_new_packets();
        let answers = state.wants_write();
        drop(state);
        // The thread that writes sends the answer along if it holds this.
        if answers && let Ok(mut outgoing) = session.outgoing.try_lock() {
            self.line.flush(session, &mut outgoing)?;
        }
        taken.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        match used {
            0 => Err(ErrorKind::InvalidData.into()),
            _ => Ok(true),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(session) = &self.line.tls else {
                return self.read_socket(Some(to));
            };
            let read = lock(&session.state).reader().read(to);
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The client left without a TLS close notification, as many do.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if !self.receive()? {
                return Ok(0);
            }
        }
    }
}

impl Line {
    /// Writes all encrypted bytes that wait.
    fn flush(&self, session: &Session, outgoing: &mut Vec<u8>) -> io::Result<()> {
        {
            let mut state = lock(&session.state);
            while state.wants_write() {
                state.write_tls(outgoing)?;
            }
        }
        let written = (&self.socket).write_all(outgoing);
        outgoing.clear();
        written
    }

    /// If the system supports it, limits what it holds unsent, unless `rest`, the remaining bytes of a message, is long:
    /// nothing can overtake that, and the thread that writes it is woken less often.
    fn limit_unsent(&self, rest: usize) {
        let unsent = if rest >= LONG { u32::MAX } else { UNSENT };
        if self.unsent.swap(unsent, Ordering::Relaxed) == unsent {
            return;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Err(error) = SockRef::from(&self.socket).set_tcp_notsent_lowat(unsent) {
            tracing::debug!(%error, "TCP_NOTSENT_LOWAT is not available");
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = SockRef::from(&self.socket);
    }

    fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.limit_unsent(pieces.iter().map(|piece| piece.len()).sum());
        let Some(session) = &self.tls else {
            return (&self.socket).write_vectored(pieces);
        };
        let mut outgoing = lock(&session.outgoing);
        // A bounded part; what is encrypted is written before more is taken.
        let taken = lock(&session.state).writer().write_vectored(pieces)?;
        self.flush(session, &mut outgoing)?;
        Ok(taken)
    }

    /// Notifies the client that no further data follows.
    fn finish(&self) -> io::Result<()> {
        if let Some(session) = &self.tls {
            let mut outgoing = lock(&session.outgoing);
            lock(&session.state).send_close_notify();
            self.flush(session, &mut outgoing)?;
        }
        self.socket.shutdown(Shutdown::Write)
    }
}

impl Writing {
    /// Notifies the client that no further data follows.
    ///
    /// # Errors
    /// What the socket returns.
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.0.finish()
    }

    /// Ends both directions.
    pub(crate) fn end(&self) {
        let _ = self.0.socket.shutdown(Shutdown::Both);
    }
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time until then.
///
/// # Errors
/// `TimedOut` if there is none.
pub(crate) fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (!left.is_zero())
        .then_some(left)
        .ok_or(ErrorKind::TimedOut.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
