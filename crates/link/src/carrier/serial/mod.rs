//! The serial carrier: one datagram per frame over a serial line, for radios that are modems.
//!
//! Neither encrypted nor authenticated: any device on the line is taken for the peer. The frame format is in
//! `docs/wire/serial.md`.

pub(crate) mod frame;

use super::{Carrier, CarrierError, PeerIndex, Received, Sent};
use crate::config::SERIAL_BITS;
use frame::{Deframer, encode, framed};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::termios::{self, ControlModes, OptionalActions, QueueSelector};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time that one frame occupies the line, which a more important datagram has to wait for.
const FRAME: Duration = Duration::from_millis(20);
/// Bounds of the datagram size at any speed.
const SIZES: std::ops::RangeInclusive<usize> = 256..=1023;
/// Interval at which to look for a line that vanished.
const REOPEN: Duration = Duration::from_millis(250);

/// Frames over a tty.
#[derive(Debug)]
pub struct SerialCarrier {
    path: PathBuf,
    baud: u32,
    max: usize,
    line: Option<OwnedFd>,
    /// Never readable: a descriptor to wait on while there is no line.
    nothing: OwnedFd,
    reopen: Instant,
    /// The rest of the frame that the line has not taken.
    output: Vec<u8>,
    /// When the line has sent everything it was given.
    free: Instant,
    input: Vec<u8>,
    /// The part of `input` that is not processed yet.
    unread: Range<usize>,
    deframer: Deframer,
    refused: u64,
}

impl SerialCarrier {
    /// Opens the line at `path` with `baud` bits per second, 8 data bits, no parity, one stop bit, no flow
    /// control.
    ///
    /// # Errors
    /// [`CarrierError::Line`] if there is no such tty, another program uses it, or it does not support the
    /// speed.
    pub fn open(path: &Path, baud: u32) -> Result<Self, CarrierError> {
        let now = Instant::now();
        let max = max_datagram(baud);
        let nothing = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| CarrierError::Socket {
            doing: "making an eventfd",
            source: e.into(),
        })?;
        Ok(SerialCarrier {
            line: Some(open_line(path, baud)?),
            path: path.to_owned(),
            baud,
            max,
            nothing,
            reopen: now,
            output: Vec::with_capacity(framed(max)),
            free: now,
            input: vec![0; 4096],
            unread: 0..0,
            deframer: Deframer::new(max),
            refused: 0,
        })
    }

    fn time(&self, bytes: usize) -> Duration {
        Duration::from_nanos(bytes as u64 * SERIAL_BITS * 1_000_000_000 / u64::from(self.baud.max(1)))
    }

    /// Writes as much of the frame as the line takes.
    fn flush(&mut self) {
        let Some(line) = &self.line else {
            self.output.clear();
            return;
        };
        while !self.output.is_empty() {
            match rustix::io::write(line, &self.output) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => return self.vanished(error),
            }
        }
    }

    fn vanished(&mut self, error: Errno) {
        tracing::warn!(line = %self.path.display(), %error, "the line is gone: waiting for it");
        self.line = None;
        self.output.clear();
        self.reopen = Instant::now() + REOPEN;
    }

    fn next_datagram(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let mut rest = &self.input[self.unread.clone()];
        let bad = self.deframer.bad;
        let got = self.deframer.next(&mut rest).map(|d| {
            let to = buffer.get_mut(..d.len());
            to.map(|to| {
                to.copy_from_slice(d);
                to.len()
            })
        });
        self.unread.start = self.unread.end - rest.len();
        self.refused += self.deframer.bad - bad;
        match got {
            Some(Some(len)) => Some(len),
            Some(None) => {
                self.refused += 1;
                None
            }
            None => None,
        }
    }
}

/// The largest datagram at `baud`: about 20 ms of the line.
pub(crate) fn max_datagram(baud: u32) -> usize {
    let bytes = u128::from(baud) * FRAME.as_nanos() / 1_000_000_000 / u128::from(SERIAL_BITS);
    let framing = framed(0);
    usize::try_from(bytes)
        .unwrap_or(*SIZES.end())
        .saturating_sub(framing)
        .clamp(*SIZES.start(), *SIZES.end())
}

fn open_line(path: &Path, baud: u32) -> Result<OwnedFd, CarrierError> {
    let failed = |doing: &'static str| {
        move |source: Errno| CarrierError::Line {
            path: path.to_owned(),
            doing,
            source: source.into(),
        }
    };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let line = open(path, flags, Mode::empty()).map_err(failed("open"))?;
    let mut settings = termios::tcgetattr(&line).map_err(failed("use as a tty"))?;
    // Two daemons on one line would corrupt each other's frames.
    termios::ioctl_tiocexcl(&line).map_err(failed("have alone"))?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes -= ControlModes::CSTOPB | ControlModes::PARENB | ControlModes::CRTSCTS;
    settings.set_speed(baud).map_err(failed("set the speed of"))?;
    termios::tcsetattr(&line, OptionalActions::Now, &settings).map_err(failed("set up"))?;
    termios::tcflush(&line, QueueSelector::IOFlush).map_err(failed("clear"))?;
    Ok(line)
}

impl Carrier for SerialCarrier {
    fn max_datagram(&self) -> usize {
        self.max
    }

    fn overhead(&self) -> usize {
        framed(self.max) - self.max
    }

    fn ready(&mut self) -> bool {
        if !self.output.is_empty() {
            self.flush();
        }
        // By the clock, since nothing reports what a USB adapter still holds.
        if !self.output.is_empty() || Instant::now() < self.free {
            return false;
        }
        let Some(line) = &self.line else {
            return true;
        };
        let mut fds = [PollFd::new(line, PollFlags::OUT)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0)
    }

    fn send(&mut self, peer: PeerIndex, _: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        if !self.ready() {
            return Ok(Sent::NotReady);
        }
        if peer != 0 || self.line.is_none() || !(1..=self.max).contains(&datagram.len()) {
            return Ok(Sent::Lost);
        }
        encode(datagram, &mut self.output);
        self.free = Instant::now() + self.time(self.output.len());
        self.flush();
        Ok(Sent::Taken)
    }

    fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError> {
        // Bounded, so that a babbling line cannot keep the caller here.
        for _ in 0..16 {
            while !self.unread.is_empty() {
                if let Some(len) = self.next_datagram(buffer) {
                    let datagram = &buffer[..len];
                    return Ok(Some(Received { peer: 0, datagram }));
                }
            }
            let Some(line) = &self.line else {
                return Ok(None);
            };
            match rustix::io::read(line, &mut self.input[..]) {
                Ok(0) => self.vanished(Errno::IO),
                Ok(n) => self.unread = 0..n,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
                Err(error) => self.vanished(error),
            }
        }
        Ok(None)
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.line.as_ref().unwrap_or(&self.nothing).as_fd()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        let waiting = !self.output.is_empty() || Instant::now() >= self.free;
        self.line.as_ref().filter(|_| waiting).map(|l| l.as_fd())
    }

    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        let now = Instant::now();
        if self.line.is_none() && now >= self.reopen {
            self.reopen = now + REOPEN;
            if let Ok(line) = open_line(&self.path, self.baud) {
                tracing::info!(line = %self.path.display(), "the line is back");
                self.line = Some(line);
                self.unread = 0..0;
                self.deframer = Deframer::new(self.max);
            }
        }
        self.flush();
        if !self.unread.is_empty() {
            return Ok(Some(Duration::ZERO));
        }
        let busy = self.free.checked_duration_since(now).filter(|d| !d.is_zero());
        let reopen = self
            .line
            .is_none()
            .then(|| self.reopen.saturating_duration_since(now));
        Ok(busy.into_iter().chain(reopen).min())
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn held(&self) -> usize {
        usize::from(!self.output.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod tests;
