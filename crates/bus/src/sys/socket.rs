//! Sockets that preserve message boundaries and carry descriptors.

use super::process::Peer;
use super::retry;
use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Maximum number of descriptors in one message.
pub(crate) const MAX_FDS: usize = 3;
/// Maximum length of a socket's path, without the terminating zero.
pub(crate) const MAX_PATH: usize = 107;

fn fresh() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// A socket that listens for connections.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let fd = fresh()?;
        rustix::net::bind(&fd, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&fd, 128)?;
        Ok(Listener(fd))
    }

    /// Returns the next connection, if one waits.
    pub(crate) fn accept(&self) -> io::Result<Option<Socket>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match retry(|| rustix::net::accept_with(&self.0, flags)) {
            Ok(fd) => Ok(Some(Socket(fd))),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted
                ) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of one receive.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message: its length in the buffer, and the descriptors it carried.
    Message(usize, Vec<OwnedFd>),
    /// A message that was longer than the buffer or carried too many descriptors.
    Oversized,
    /// Nothing yet.
    Nothing,
    /// The other end is gone, and everything that it sent was received.
    End,
}

/// A connection that never blocks.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Connects. Returns `WouldBlock` if the other end's queue of connections is full, `ConnectionRefused` if
    /// nobody listens there any more.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let fd = fresh()?;
        retry(|| rustix::net::connect(&fd, &SocketAddrUnix::new(path)?))?;
        Ok(Socket(fd))
    }

    /// Two connected ends.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Socket(a), Socket(b)))
    }

    /// Returns the process that was at the other end when it connected or began to listen.
    pub(crate) fn peer(&self) -> io::Result<Peer> {
        // rustix cannot represent the 0 that stands for a process of another PID namespace.
        let mut cred = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the socket is open, and the buffer is a ucred, whose fields may have any value, of the length
        // given.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut cred).cast(),
                &raw mut len,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Peer {
            pid: cred.pid,
            uid: cred.uid,
        })
    }

    /// Sends one message. Returns `WouldBlock` if the other end does not read.
    pub(crate) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry(|| rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags)).map(|_| ())
    }

    /// Receives one message.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut was_reset = false;
        let result = loop {
            match retry(|| rustix::net::recvmsg(&self.0, &mut [IoSliceMut::new(buffer)], &mut control, flags))
            {
                // The other end closed without reading everything. What it sent before can still be received.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset && !was_reset => was_reset = true,
                other => break other,
            }
        };
        let message = match result {
            Ok(message) => message,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
                ) =>
            {
                return Ok(Received::End);
            }
            Err(e) => return Err(e),
        };
        let mut fds = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                fds.extend(rights);
            }
        }
        if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Ok(Received::Oversized);
        }
        // No message of the protocol is empty, so zero bytes mean the end.
        Ok(if message.bytes == 0 {
            Received::End
        } else {
            Received::Message(message.bytes, fds)
        })
    }

    /// Hangs up, also for a forked child that shares the connection. Messages that were sent can still be
    /// received.
    pub(crate) fn hang_up(&self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
