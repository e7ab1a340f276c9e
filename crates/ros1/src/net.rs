//! Addresses, and sockets whose operations all have a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest host name in the DNS.
const MAX_HOST: usize = 253;

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostPort {
    /// Reads `scheme://host:port` with an optional path.
    pub(crate) fn parse(uri: &str, scheme: &str) -> Option<HostPort> {
        let rest = uri.trim().strip_prefix(scheme)?.strip_prefix("://")?;
        let rest = rest.split('/').next()?;
        let (host, port) = rest.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        let named = !host.is_empty()
            && host.len() <= MAX_HOST
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.:%".contains(c));
        let port = port.parse().ok().filter(|p| *p != 0)?;
        named.then(|| HostPort {
            host: host.to_owned(),
            port,
        })
    }

    /// Connects, and tries each address of the host name. Resolving the name takes as long as the system's resolver
    /// takes.
    pub(crate) fn connect(&self, timeout: Duration) -> io::Result<TcpStream> {
        let deadline = Instant::now() + timeout;
        let mut problem = io::Error::new(ErrorKind::NotFound, "the host's name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            let left = deadline.saturating_duration_since(Instant::now());
            match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
                Ok(stream) => return Ok(stream),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Whether the name stands for this host's loopback.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A stream whose reads and writes all share one deadline, however little arrives at a time.
pub(crate) struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(stream: &'a TcpStream, timeout: Duration) -> Self {
        Timed {
            stream,
            deadline: Instant::now() + timeout,
        }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let over = || io::Error::new(ErrorKind::TimedOut, "it was silent for too long");
        Some(left).filter(|l| !l.is_zero()).ok_or_else(over)
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        (&mut &*self.stream).read(to).map_err(timed_out)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        (&mut &*self.stream).write(from).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that stalls this long in the middle of a message is closed.
pub(crate) const STALL: Duration = Duration::from_secs(30);
/// Minimum rate of a message beyond that, in bytes per second. Without it, a peer could hold a message's memory forever
/// by sending a byte now and then.
const LEAST_RATE: u64 = 128 << 10;

/// How long a message of `len` bytes may take once it has begun.
pub(crate) fn patience(len: usize) -> Duration {
    STALL + Duration::from_secs(len as u64 / LEAST_RATE)
}

/// A stream whose reads each wait up to [`STALL`], and whose messages have a deadline.
pub(crate) struct Paced {
    stream: Arc<TcpStream>,
    deadline: Option<Instant>,
}

impl Paced {
    pub(crate) fn new(stream: Arc<TcpStream>) -> io::Result<Paced> {
        stream.set_read_timeout(Some(STALL))?;
        stream.set_write_timeout(None)?;
        Ok(Paced {
            stream,
            deadline: None,
        })
    }

    /// Starts the deadline of a message with this length, or, with `None`, ends it.
    pub(crate) fn expect(&mut self, len: Option<usize>) {
        self.deadline = len.map(|len| Instant::now() + patience(len));
    }
}

impl Read for Paced {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_some_and(|d| Instant::now() > d) {
            let slow = format!("slower than {} kB a second", LEAST_RATE / 1000);
            return Err(io::Error::other(slow));
        }
        (&mut &*self.stream).read(to)
    }
}

/// Replaces the socket's text for a timeout, which is no help to a user.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "it was silent for too long")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_trickles_in_ends_at_its_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut paced = Paced::new(Arc::new(listener.accept().unwrap().0)).unwrap();
        far.write_all(b"abc").unwrap();
        let mut byte = [0];
        paced.expect(Some(10));
        paced.read_exact(&mut byte).unwrap();
        paced.deadline = Some(Instant::now() - Duration::from_millis(1));
        assert!(
            paced
                .read_exact(&mut byte)
                .unwrap_err()
                .to_string()
                .contains("slower than 131 kB")
        );
        paced.expect(None);
        paced.read_exact(&mut byte).unwrap();
        assert_eq!(patience(64 << 20), STALL + Duration::from_secs(512));
    }

    #[test]
    fn places_are_read() {
        let address = |host: &str, port| {
            Some(HostPort {
                host: host.into(),
                port,
            })
        };
        assert_eq!(
            HostPort::parse("http://robot:11311/", "http"),
            address("robot", 11311)
        );
        assert_eq!(
            HostPort::parse("http://127.0.0.1:1", "http"),
            address("127.0.0.1", 1)
        );
        assert_eq!(HostPort::parse("http://[::1]:80/x", "http"), address("::1", 80));
        assert_eq!(
            HostPort::parse("rosrpc://a_b.local:5", "rosrpc"),
            address("a_b.local", 5)
        );
        for bad in [
            "",
            "http://",
            "http://x",
            "http://x:0",
            "http://:1",
            "http://x:99999",
            "http://a b:1",
            "x:1",
            "rosrpc://x:1",
        ] {
            assert_eq!(HostPort::parse(bad, "http"), None, "{bad}");
        }
    }
}
