//! The thread that moves frames between the hosts' devices and the model of the media.

use super::frame::{ETHERNET_HEADER, Header};
use super::host::{Doing, Failed};
use super::plan::Plan;
use crate::Lateness;
use crate::scenario::{Change, Channels, Packet, Scenario};
use clock::{PollFd, PollFlags, Scheduling};
use medium::Event;
use rustix::event::{EventfdFlags, epoll, eventfd};
use stats::Time;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Above every measured program, below the kernel's own important threads.
const PRIORITY: u8 = 60;
/// Longer than a wake-up takes.
const SPIN: Duration = Duration::from_micros(100);
/// Frames taken from one device before the air's own events are checked again.
const BURST: usize = 32;
/// More than any frame at MTU 1500.
const MAX_FRAME: usize = 16 << 10;
/// Captured frames that may wait for a slow reader.
const CAPTURE_QUEUE: usize = 8192;
/// Most captures at once.
const MAX_CAPTURES: usize = 64;

/// A frame as it passed between a host's kernel and the emulator.
pub(crate) struct Captured {
    /// Since the Unix epoch.
    pub(crate) at: Time,
    pub(crate) frame: Box<[u8]>,
}

/// Frames that one host exchanged with the emulator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) refused: u64,
}

/// All counters at one moment.
pub(crate) struct Snapshot {
    pub(crate) up: Duration,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) media: Vec<crate::scenario::Counts>,
    pub(crate) lateness: Lateness,
    pub(crate) scheduling: Scheduling,
}

/// Requests of other threads to the air's thread.
enum Command {
    Snapshot(SyncSender<Snapshot>),
    Change(Change, SyncSender<Result<(), String>>),
    Capture(Capture, SyncSender<Result<(), String>>),
}

struct Capture {
    host: usize,
    to: SyncSender<Captured>,
    missed: Arc<AtomicU64>,
}

/// The frames of a capture.
pub(crate) struct Capturing {
    pub(crate) frames: Receiver<Captured>,
    /// Number of frames that were left out because the reader was too slow.
    pub(crate) missed: Arc<AtomicU64>,
}

/// The other threads' handle to the air's thread.
pub(crate) struct Handle {
    commands: SyncSender<Command>,
    wake: Arc<OwnedFd>,
}

/// The air's thread has ended, and the lab is about to.
#[derive(Debug)]
pub(crate) struct Ended;

impl Handle {
    /// Returns all current counters.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Ended> {
        self.ask(Command::Snapshot)
    }

    /// Makes a change at once.
    pub(crate) fn change(&self, change: Change) -> Result<Result<(), String>, Ended> {
        self.ask(|reply| Command::Change(change, reply))
    }

    /// Starts copying the host's frames.
    pub(crate) fn capture(&self, host: usize) -> Result<Capturing, String> {
        let (to, frames) = sync_channel(CAPTURE_QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let capture = Capture {
            host,
            to,
            missed: missed.clone(),
        };
        let taken = self.ask(|reply| Command::Capture(capture, reply));
        taken
            .map_err(|e| e.to_string())?
            .map(|()| Capturing { frames, missed })
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, Ended> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(command(reply)).map_err(|_| Ended)?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        answer.recv().map_err(|_| Ended)
    }
}

/// Limits the time spent spinning. The kernel gives time that a thread at real-time priority uses above 95 % of a
/// processor to others, all at once (sched(7)): the air would stand still for 50 ms each second.
struct Allowance {
    at: Time,
    left: Duration,
}

impl Allowance {
    /// Half of the time is for spinning, and up to this much of it can be saved.
    const MOST: Duration = Duration::from_millis(20);

    fn new(now: Time) -> Self {
        Allowance {
            at: now,
            left: Self::MOST,
        }
    }

    /// How long to spin before `until`.
    fn spin(&mut self, now: Time, until: Option<Time>) -> Duration {
        self.left = (self.left + now.since(self.at) / 2).min(Self::MOST);
        self.at = now;
        let wanted = until.map_or(Duration::ZERO, |t| SPIN.min(t.since(now)));
        match self.left.checked_sub(wanted) {
            Some(left) => {
                self.left = left;
                wanted
            }
            None => Duration::ZERO,
        }
    }
}

/// The air of a lab.
pub(crate) struct Air {
    channels: Channels<Arc<[u8]>>,
    taps: Vec<OwnedFd>,
    /// Host of each interface, and its medium and station.
    place: Vec<(usize, usize, usize)>,
    /// Interface of each station of each medium.
    stations: Vec<Vec<usize>>,
    traffic: Vec<Traffic>,
    captures: Vec<Capture>,
    changes: VecDeque<(Time, Change)>,
    start: Time,
    lateness: Lateness,
    scheduling: Scheduling,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    epoll: OwnedFd,
    buffer: Box<[u8]>,
}

impl Air {
    /// Starts the thread; the scenario's time starts now.
    pub(crate) fn start(
        scenario: &Scenario,
        plan: &Plan,
        taps: Vec<OwnedFd>,
    ) -> Result<(Handle, JoinHandle<()>), Failed> {
        let (commands, asked) = sync_channel(16);
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).doing("making an eventfd")?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).doing("making an epoll")?;
        let watched = taps.iter().chain([&*wake]);
        for (i, fd) in watched.enumerate() {
            let data = epoll::EventData::new_u64(i as u64);
            epoll::add(&epoll, fd, data, epoll::EventFlags::IN).doing("watching a device")?;
        }
        let start = clock::monotonic();
        let mut air = Air {
            channels: scenario.channels().doing("making the media")?,
            place: plan
                .interfaces
                .iter()
                .map(|i| (i.host, i.medium, i.station))
                .collect(),
            stations: plan.of_medium.clone(),
            traffic: vec![Traffic::default(); plan.hosts.len()],
            captures: Vec::new(),
            changes: scenario
                .changes()
                .iter()
                .map(|(at, c)| (start + *at, c.clone()))
                .collect(),
            start,
            lateness: Lateness::default(),
            scheduling: Scheduling::Other,
            commands: asked,
            wake: wake.clone(),
            epoll,
            taps,
            buffer: vec![0; MAX_FRAME].into(),
        };
        let thread = std::thread::Builder::new().name("air".into()).spawn(move || {
            air.scheduling = clock::realtime_thread(PRIORITY);
            air.run();
        });
        let handle = Handle { commands, wake };
        Ok((handle, thread.doing("starting a thread")?))
    }

    fn run(&mut self) {
        let mut allowance = Allowance::new(clock::monotonic());
        loop {
            let changes = self.changes.front().map(|(at, _)| *at);
            let until = self.channels.next_event().into_iter().chain(changes).min();
            let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
            let spin = allowance.spin(clock::monotonic(), until);
            let readable = match clock::wait(&mut fds, until, spin) {
                Ok(readable) => readable,
                Err(error) => {
                    tracing::error!(%error, "cannot wait for the hosts' devices");
                    return;
                }
            };
            let now = clock::monotonic();
            while self.changes.front().is_some_and(|(at, _)| *at <= now) {
                let Some((at, change)) = self.changes.pop_front() else {
                    break;
                };
                if let Err(error) = self.channels.apply(at, &change) {
                    tracing::error!(error, "a change of the scenario was refused");
                }
            }
            self.deliver(now);
            if readable {
                self.take();
            }
        }
    }

    /// Delivers everything that is due by `now`.
    fn deliver(&mut self, now: Time) {
        while let Some((medium, event)) = self.channels.poll(now) {
            let Event::Delivered {
                at,
                host: station,
                payload: frame,
                ..
            } = event
            else {
                continue;
            };
            let interface = self.stations[medium][station];
            let host = self.place[interface].0;
            // A device that is full or down drops; the host's kernel counts it.
            let written = rustix::io::write(&self.taps[interface], &frame);
            self.lateness.record(at, clock::monotonic());
            self.traffic[host].received += u64::from(written.is_ok());
            self.look_on(host, &frame);
        }
    }

    /// Takes what the hosts' kernels send.
    fn take(&mut self) {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(64);
        let no_wait = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut ready),
            Some(&no_wait),
        )
        .is_err()
        {
            return;
        }
        for event in &ready {
            let index = event.data.u64() as usize;
            if index < self.taps.len() {
                self.take_from(index);
            } else {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                while let Ok(command) = self.commands.try_recv() {
                    self.obey(command);
                }
            }
        }
    }

    fn take_from(&mut self, interface: usize) {
        let (host, medium, station) = self.place[interface];
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..BURST {
            let Ok(length @ 1..) = rustix::io::read(&self.taps[interface], &mut *buffer) else {
                break;
            };
            let frame = &buffer[..length];
            self.look_on(host, frame);
            match self.destination(frame, medium) {
                Some((to, header)) => {
                    self.traffic[host].sent += 1;
                    let packet = Packet {
                        ip_bytes: header.ip_bytes,
                        dscp: header.dscp,
                        payload: frame.into(),
                    };
                    // The model counts what it refuses.
                    let _ = self
                        .channels
                        .send(clock::monotonic(), medium, station, to, packet);
                }
                None => self.traffic[host].refused += 1,
            }
        }
        self.buffer = buffer;
    }

    /// The station that a frame is for; `None` for all of them.
    fn destination(&self, frame: &[u8], medium: usize) -> Option<(Option<usize>, Header)> {
        let header = Header::parse(frame)?;
        if header.to.is_group() {
            return Some((None, header));
        }
        let (there, host) = header.to.place()?;
        let of_host = |i: &usize| self.place[*i].0 == host;
        let station = self.stations[medium].iter().position(of_host)?;
        (there == medium).then_some((Some(station), header))
    }

    fn look_on(&mut self, host: usize, frame: &[u8]) {
        if self.captures.is_empty() {
            return;
        }
        let at = clock::realtime();
        self.captures.retain(|c| {
            if c.host != host {
                return true;
            }
            let captured = Captured {
                at,
                frame: frame.into(),
            };
            match c.to.try_send(captured) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    c.missed.fetch_add(1, Ordering::Relaxed);
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            }
        });
    }

    fn obey(&mut self, command: Command) {
        // The requester may have gone meanwhile.
        match command {
            Command::Snapshot(reply) => {
                let snapshot = Snapshot {
                    up: clock::monotonic().since(self.start),
                    traffic: self.traffic.clone(),
                    media: self.channels.counts(),
                    lateness: self.lateness.clone(),
                    scheduling: self.scheduling,
                };
                let _ = reply.send(snapshot);
            }
            Command::Change(change, reply) => {
                let _ = reply.send(self.channels.apply(clock::monotonic(), &change));
            }
            Command::Capture(capture, reply) => {
                // A capture whose reader was killed while nothing passed is still on the list.
                self.captures.retain(|c| Arc::strong_count(&c.missed) > 1);
                let answer = if self.captures.len() < MAX_CAPTURES {
                    self.captures.push(capture);
                    Ok(())
                } else {
                    Err(format!("{MAX_CAPTURES} captures are running; end one"))
                };
                let _ = reply.send(answer);
            }
        }
    }
}

const _: () = assert!(ETHERNET_HEADER + 1500 < MAX_FRAME);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_takes_half_of_the_time_at_most() {
        let start = Time::from_millis(1);
        let (mut now, mut spent) = (start, Duration::ZERO);
        let mut allowance = Allowance::new(now);
        // An event every 60 µs, as on a wire of 100 Mbit/s that is full in both directions.
        for _ in 0..20_000 {
            let until = now + Duration::from_micros(60);
            spent += allowance.spin(now, Some(until));
            now = until;
        }
        let all = now.since(start);
        assert!(spent <= all / 2 + Allowance::MOST, "{spent:?} of {all:?}");
        assert!(spent >= all / 2 - Allowance::MOST, "{spent:?} of {all:?}");
        // Rare events are waited for as exactly as before.
        for _ in 0..1_000 {
            now += Duration::from_millis(1);
            assert_eq!(allowance.spin(now, Some(now + Duration::from_micros(500))), SPIN);
            assert_eq!(allowance.spin(now, None), Duration::ZERO);
        }
    }
}
