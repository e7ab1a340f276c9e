//! One connection of a controller: its socket, whether it is connected, and the requests that wait for it.

use super::envelope::ToRobot;
use super::keys::{KeyPair, PublicKey};
use super::tune;
use ::zmq::{Context, DONTWAIT, PAIR, Socket, SocketType};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// ZeroMQ gives up after a refusal; the lane tries again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// Creates every socket of a controller.
pub(super) struct Maker {
    pub(super) context: Context,
    pub(super) curve: Option<(KeyPair, PublicKey)>,
    pub(super) is_ipv6: bool,
    made: u64,
}

impl Maker {
    pub(super) fn new(curve: Option<(KeyPair, PublicKey)>, is_ipv6: bool) -> Self {
        Maker {
            context: Context::new(),
            curve,
            is_ipv6,
            made: 0,
        }
    }
}

/// A socket that connects, reconnects, and reports the state of its connection.
pub(super) struct Lane {
    pub(super) socket: Socket,
    pub(super) monitor: Socket,
    kind: SocketType,
    address: String,
    most_bytes: usize,
    waiting_frames: i32,
    pub(super) is_connected: bool,
    /// Why it is not connected, as far as is known.
    pub(super) trouble: Option<&'static str>,
    again: Option<Instant>,
    /// The newest mark that arrived, to be sent back.
    pub(super) mark: Option<u64>,
    /// Requests that the socket did not accept yet.
    pub(super) waiting: VecDeque<(u64, Vec<Vec<u8>>)>,
}

/// A change of a lane's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Connected,
    Broken,
}

impl Lane {
    pub(super) fn open(
        maker: &mut Maker,
        kind: SocketType,
        address: &str,
        most_bytes: usize,
        waiting_frames: i32,
    ) -> ::zmq::Result<Self> {
        let (socket, monitor) = connect(maker, kind, address, most_bytes, waiting_frames)?;
        Ok(Lane {
            socket,
            monitor,
            kind,
            address: address.to_owned(),
            most_bytes,
            waiting_frames,
            is_connected: false,
            trouble: None,
            again: None,
            mark: None,
            waiting: VecDeque::new(),
        })
    }

    /// Sends the waiting requests, as far as the socket accepts them. Returns the numbers of those that were sent.
    pub(super) fn flush(&mut self) -> Option<u64> {
        // For a moment, a socket still accepts data that a connection which just ended will not carry.
        if !self.is_connected {
            return None;
        }
        if let Some(mark) = self.mark
            && self
                .socket
                .send(ToRobot::Return { mark }.encode(), DONTWAIT)
                .is_ok()
        {
            self.mark = None;
        }
        let (_, parts) = self.waiting.front_mut()?;
        // If the first part is accepted, so are the others.
        let flags = |more: bool| if more { DONTWAIT | ::zmq::SNDMORE } else { DONTWAIT };
        self.socket.send(&parts[0][..], flags(parts.len() > 1)).ok()?;
        let (id, parts) = self.waiting.pop_front()?;
        let last = parts.len() - 1;
        for (at, part) in parts.into_iter().enumerate().skip(1) {
            let _ = self.socket.send(part, flags(at < last));
        }
        Some(id)
    }

    /// Returns the next change that its monitor reports.
    pub(super) fn change(&mut self) -> Option<Change> {
        use ::zmq::SocketEvent as Event;
        loop {
            let event = self.monitor.recv_bytes(DONTWAIT).ok()?;
            while self.monitor.get_rcvmore() == Ok(true) {
                self.monitor.recv_bytes(DONTWAIT).ok()?;
            }
            let raw = u16::from_ne_bytes(*event.first_chunk()?);
            let is = |event: Event| raw == event.to_raw();
            if is(Event::HANDSHAKE_SUCCEEDED) {
                (self.is_connected, self.trouble, self.mark) = (true, None, None);
                return Some(Change::Connected);
            }
            let trouble = if is(Event::HANDSHAKE_FAILED_AUTH) {
                "the robot does not accept this controller's key: add it to the robot's allowed keys"
            } else if is(Event::HANDSHAKE_FAILED_PROTOCOL) || is(Event::HANDSHAKE_FAILED_NO_DETAIL) {
                "the handshake failed: check the robot's public key, and that both ends use CURVE"
            } else if is(Event::CONNECT_RETRIED) || is(Event::CLOSED) {
                self.trouble.get_or_insert("nothing listens at this address");
                continue;
            } else if is(Event::DISCONNECTED) {
                // This event also follows a failed handshake, and has less detail.
                self.trouble.get_or_insert("the connection broke");
                if std::mem::take(&mut self.is_connected) {
                    return Some(Change::Broken);
                }
                continue;
            } else {
                continue;
            };
            self.trouble = Some(trouble);
            self.again = Some(Instant::now() + AGAIN);
        }
    }

    /// Returns when [`Lane::renew`] is due.
    pub(super) fn again(&self) -> Option<Instant> {
        self.again
    }

    /// Connects again some time after a refused handshake.
    pub(super) fn renew(&mut self, maker: &mut Maker) {
        if self.again.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.again = None;
        match connect(
            maker,
            self.kind,
            &self.address,
            self.most_bytes,
            self.waiting_frames,
        ) {
            Ok((socket, monitor)) => (self.socket, self.monitor) = (socket, monitor),
            Err(error) => {
                tracing::warn!(%error, address = self.address, "cannot reconnect");
                self.again = Some(Instant::now() + AGAIN);
            }
        }
    }

    pub(super) fn why(&self) -> &'static str {
        self.trouble.unwrap_or("the connection could not be established")
    }
}

fn connect(
    maker: &mut Maker,
    kind: SocketType,
    address: &str,
    most_bytes: usize,
    waiting_frames: i32,
) -> ::zmq::Result<(Socket, Socket)> {
    let socket = maker.context.socket(kind)?;
    tune(&socket, maker.is_ipv6, most_bytes, waiting_frames, 256)?;
    // An unconnected socket accepts nothing: then it is certain that nothing was sent.
    socket.set_immediate(true)?;
    if let Some((key, robot)) = &maker.curve {
        socket.set_curve_serverkey(&robot.0)?;
        socket.set_curve_publickey(&key.public.0)?;
        socket.set_curve_secretkey(&key.secret)?;
    }
    if kind == ::zmq::SUB {
        socket.set_subscribe(b"")?;
    }
    maker.made += 1;
    let events = format!("inproc://monitor-{}", maker.made);
    socket.monitor(&events, i32::from(::zmq::SocketEvent::ALL.to_raw()))?;
    let monitor = maker.context.socket(PAIR)?;
    monitor.set_linger(0)?;
    monitor.set_rcvhwm(1000)?;
    monitor.connect(&events)?;
    socket.connect(address)?;
    Ok((socket, monitor))
}
