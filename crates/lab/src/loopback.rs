//! Carries a scenario's media between loopback sockets, without root.

use crate::scenario::{Change, Channels, Kind, Packet};
use crate::tap::plan::Plan;
use crate::{Lateness, Scenario, ScenarioError, Timing};
use clock::{PollFd, PollFlags};
use medium::{Event, SendError};
use stats::{DropReason, Drops, Time};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// IPv4 and UDP headers, which a real medium would carry with each datagram.
const HEADERS: usize = 28;
/// Largest datagram in a frame of 1500 B; loopback does not fragment longer ones.
const MAX_DATAGRAM: usize = 1500 - HEADERS;
/// How often a running radio checks whether it has to stop.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Connects one host of the scenario to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The emulator's own address: the program on `from` sends datagrams for `to` here, and receives those of `to` from
    /// here. A loopback address.
    pub bind: SocketAddr,
    /// The address of the program on `from`; datagrams from other addresses are refused.
    pub host: SocketAddr,
    /// The host, by its index in [`Scenario::hosts`].
    pub from: usize,
    /// The host at the other end.
    pub to: usize,
}

/// Why a scenario could not be set up between sockets, or could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// See [`ScenarioError`].
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario requires something that sockets cannot do.
    #[error(
        "{scenario}: {what} needs a host's kernel, which loopback sockets lack: leave it out, or use `ropewalk lab up`"
    )]
    NeedsHosts {
        /// The scenario.
        scenario: String,
        /// What it requires.
        what: String,
    },
    /// A tap between hosts that do not exist, or between a host and itself.
    #[error("a tap cannot join the hosts {from} and {to}: name two hosts from 0 to {last}")]
    Tap {
        /// One end.
        from: usize,
        /// The other.
        to: usize,
        /// The last existing host.
        last: usize,
    },
    /// The emulator never leaves this host.
    #[error("{address} is not a loopback address: choose one in 127.0.0.0/8")]
    NotLoopback {
        /// The address given.
        address: SocketAddr,
    },
    /// A tap's address cannot be used.
    #[error("the radio cannot bind {address}: {source}; choose a free address")]
    Bind {
        /// The address given.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// Waiting on the sockets failed.
    #[error("the radio's sockets failed: {source}")]
    Socket {
        /// The system's error.
        source: std::io::Error,
    },
    /// The model refused a change of the scenario.
    #[error("the model refused a change of the scenario: {0}")]
    Change(String),
}

/// Counters of the radio.
#[derive(Clone, Debug, Default)]
pub struct RadioStats {
    /// Datagrams taken from hosts.
    pub taken: u64,
    /// Datagrams delivered; a duplicate counts again.
    pub delivered: u64,
    /// Datagrams lost, by reason.
    pub drops: Drops,
    /// Datagrams refused because they came from an unknown address, or have more than 1472 B.
    pub refused: u64,
    /// How long air and wires were busy, all of the scenario's media together.
    pub busy: Duration,
    /// The emulator's own lateness.
    pub lateness: Lateness,
}

impl RadioStats {
    /// How punctual the emulator was, given its thread's scheduling.
    pub fn timing(&self, scheduling: clock::Scheduling) -> Timing {
        Timing::new(&self.lateness, scheduling)
    }
}

/// A datagram under way: its tap, and its current leg.
#[derive(Clone)]
struct Datagram {
    tap: usize,
    leg: usize,
    bytes: Arc<[u8]>,
}

/// A part of a route on one medium, by its stations there; the medium finds the hops between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leg {
    medium: usize,
    from: usize,
    to: usize,
}

struct Way {
    tap: Tap,
    socket: UdpSocket,
    legs: Vec<Leg>,
    /// The tap of the opposite direction, where the datagrams come out.
    back: Option<usize>,
}

/// The model of a scenario's media between loopback sockets.
///
/// It has the rates, losses, delays, queues, outages and events of the TAP lab. It carries only UDP datagrams, isolates
/// nothing, and has no hosts: it refuses scenarios that need a host's kernel.
pub struct LoopbackRadio {
    channels: Channels<Datagram>,
    ways: Vec<Way>,
    changes: VecDeque<(Duration, Change)>,
    stats: RadioStats,
}

impl LoopbackRadio {
    /// Binds all taps.
    ///
    /// # Errors
    /// [`RadioError`]: a scenario that needs more than sockets, or an address that is not loopback or not free.
    pub fn new(scenario: &Scenario, taps: &[Tap]) -> Result<Self, RadioError> {
        refuse_what_needs_hosts(scenario)?;
        let plan = scenario.plan()?;
        let channels = scenario.channels().map_err(RadioError::Change)?;
        let mut ways = Vec::new();
        for tap in taps {
            let Tap { from, to, .. } = *tap;
            let last = plan.hosts.len() - 1;
            if from == to || from.max(to) > last {
                return Err(RadioError::Tap { from, to, last });
            }
            ways.push(Way {
                tap: *tap,
                socket: bind(tap)?,
                legs: legs(&plan, from, to),
                back: taps.iter().position(|t| (t.from, t.to) == (to, from)),
            });
        }
        Ok(LoopbackRadio {
            channels,
            ways,
            changes: scenario.changes().iter().cloned().collect(),
            stats: RadioStats::default(),
        })
    }

    /// Carries datagrams until `stop` is set, blocking the calling thread; calls `tick` about twenty times per second.
    /// The scenario's time starts at the call. For exact timing give the thread real-time scheduling first.
    ///
    /// # Errors
    /// [`RadioError::Socket`] if waiting on the sockets fails, [`RadioError::Change`].
    pub fn run(&mut self, stop: &AtomicBool, mut tick: impl FnMut(&RadioStats)) -> Result<(), RadioError> {
        let start = clock::monotonic();
        let mut next_tick = start;
        while !stop.load(Ordering::Relaxed) {
            let now = clock::monotonic();
            while let Some((after, change)) = self.changes.front().filter(|(after, _)| start + *after <= now)
            {
                let changed = self.channels.apply(start + *after, change);
                changed.map_err(RadioError::Change)?;
                self.changes.pop_front();
            }
            if now >= next_tick {
                self.stats.busy = self.channels.busy();
                tick(&self.stats);
                next_tick = now + STOP_CHECK;
            }
            let change = self.changes.front().map(|(after, _)| start + *after);
            let due = self.channels.next_event().into_iter().chain(change).min();
            let until = due.map_or(next_tick, |t| t.min(next_tick));
            let mut fds: Vec<_> = self
                .ways
                .iter()
                .map(|w| PollFd::new(&w.socket, PollFlags::IN))
                .collect();
            let readable = clock::wait(&mut fds, Some(until), clock::SPIN)
                .map_err(|source| RadioError::Socket { source })?;
            let ready: Vec<bool> = fds.iter().map(|f| !f.revents().is_empty()).collect();
            self.deliver(clock::monotonic());
            if readable {
                for i in (0..ready.len()).filter(|i| ready[*i]) {
                    self.take(i);
                }
            }
        }
        self.stats.busy = self.channels.busy();
        tick(&self.stats);
        Ok(())
    }

    fn take(&mut self, tap: usize) {
        let mut buffer = [0u8; 65_536];
        // Bounded, so that a flood cannot hold up the air's events.
        for _ in 0..32 {
            let way = &self.ways[tap];
            match way.socket.recv_from(&mut buffer) {
                Ok((..=MAX_DATAGRAM, from)) if from != way.tap.host => self.stats.refused += 1,
                Ok((len @ ..=MAX_DATAGRAM, _)) => {
                    self.stats.taken += 1;
                    let bytes = buffer[..len].into();
                    self.send(clock::monotonic(), Datagram { tap, leg: 0, bytes });
                }
                Ok(_) => self.stats.refused += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A closed port of a host that is gone is reported on the next call; the radio continues.
                Err(_) => {}
            }
        }
    }

    fn send(&mut self, now: Time, datagram: Datagram) {
        let Leg { medium, from, to } = self.ways[datagram.tap].legs[datagram.leg];
        let packet = Packet {
            ip_bytes: datagram.bytes.len() + HEADERS,
            dscp: 0,
            payload: datagram,
        };
        // The medium counts a full queue, and it is counted again here, where it is shown.
        if let Err(SendError::QueueFull { .. }) = self.channels.send(now, medium, from, Some(to), packet) {
            self.stats.drops.add(DropReason::DeviceQueue, 1);
        }
    }

    fn deliver(&mut self, now: Time) {
        while let Some((_, event)) = self.channels.poll(now) {
            match event {
                Event::Delivered { at, payload, .. } => self.arrived(at, payload),
                Event::Dropped { reason, .. } => self.stats.drops.add(reason, 1),
            }
        }
    }

    /// A datagram has reached the end of a leg.
    fn arrived(&mut self, at: Time, mut datagram: Datagram) {
        let way = &self.ways[datagram.tap];
        if datagram.leg + 1 < way.legs.len() {
            datagram.leg += 1;
            self.send(at, datagram);
            return;
        }
        self.stats.lateness.record(at, clock::monotonic());
        self.stats.delivered += 1;
        if let Some(back) = way.back.map(|b| &self.ways[b]) {
            // The host may be gone: then the air was used for nothing, as on a real radio.
            let _ = back.socket.send_to(&datagram.bytes, back.tap.host);
        }
    }
}

fn refuse_what_needs_hosts(scenario: &Scenario) -> Result<(), RadioError> {
    let refuse = |what: String| {
        let scenario = scenario.name().to_owned();
        Err(RadioError::NeedsHosts { scenario, what })
    };
    if scenario.congestion_control.is_some() {
        return refuse("`congestion_control`, which is TCP's,".into());
    }
    let edca = |m: &&crate::scenario::Medium| matches!(&m.kind, Kind::Wifi(w) if w.edca);
    match scenario.media.iter().find(edca) {
        Some(medium) => refuse(format!(
            "`edca` of '{}', which goes by a packet's DSCP,",
            medium.name
        )),
        None => Ok(()),
    }
}

/// The route from one host to another; hops on the same medium are one leg.
fn legs(plan: &Plan, from: usize, to: usize) -> Vec<Leg> {
    let mut legs: Vec<Leg> = Vec::new();
    for (out, next) in plan.way(from, to) {
        let (out, next) = (&plan.interfaces[out], &plan.interfaces[next]);
        match legs.last_mut().filter(|l| l.medium == out.medium) {
            Some(leg) => leg.to = next.station,
            None => legs.push(Leg {
                medium: out.medium,
                from: out.station,
                to: next.station,
            }),
        }
    }
    legs
}

fn bind(tap: &Tap) -> Result<UdpSocket, RadioError> {
    for address in [tap.bind, tap.host] {
        if !address.ip().is_loopback() {
            return Err(RadioError::NotLoopback { address });
        }
    }
    let bound = UdpSocket::bind(tap.bind).and_then(|s| s.set_nonblocking(true).map(|()| s));
    bound.map_err(|source| RadioError::Bind {
        address: tap.bind,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> SocketAddr {
        // Each test process has its own net, so that parallel runs do not interfere.
        let pid = std::process::id().to_be_bytes();
        SocketAddr::from(([127, 64 | pid[2] & 63, pid[3], host], 7400))
    }

    /// Taps for both directions between two hosts, whose programs have the addresses `n` and `n + 1`.
    fn taps(n: u8, from: usize, to: usize) -> [Tap; 2] {
        let tap = |bind, host, from, to| Tap {
            bind: address(bind),
            host: address(host),
            from,
            to,
        };
        [tap(n + 2, n, from, to), tap(n + 3, n + 1, to, from)]
    }

    /// Runs a scenario between two programs; `act` gets their sockets and the taps they send to.
    fn between(
        scenario: &Scenario,
        taps: [Tap; 2],
        act: impl FnOnce([&UdpSocket; 2], [SocketAddr; 2]),
    ) -> RadioStats {
        let mut radio = LoopbackRadio::new(scenario, &taps).expect("binds");
        let sockets = taps.map(|t| UdpSocket::bind(t.host).expect("binds"));
        for s in &sockets {
            s.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                radio.run(&stop, |_| {}).expect("runs");
                radio.stats.clone()
            });
            act([&sockets[0], &sockets[1]], taps.map(|t| t.bind));
            stop.store(true, Ordering::Relaxed);
            running.join().expect("no panic")
        })
    }

    fn load(name: &str) -> Scenario {
        Scenario::load(name).expect("is shipped")
    }

    #[test]
    fn carries_both_ways_at_the_rate_of_the_radio() {
        let taps = taps(1, 0, 1);
        let stats = between(&load("wifi-1hop"), taps, |sockets, binds| {
            let again = LoopbackRadio::new(&load("wifi-1hop"), &taps)
                .map(|_| ())
                .expect_err("is taken");
            assert!(again.to_string().contains(&binds[0].to_string()), "{again}");
            let start = clock::monotonic();
            let mut buffer = [0u8; 2000];
            for i in 0..20u8 {
                sockets[0].send_to(&[i; 1000], binds[0]).expect("sends");
            }
            for i in 0..20u8 {
                let (n, from) = sockets[1].recv_from(&mut buffer).expect("arrives");
                assert_eq!((n, buffer[0], from), (1000, i, binds[1]));
            }
            // 20 frames of at least 1.4 ms each: the air cannot be faster.
            assert!(clock::monotonic().since(start) > Duration::from_millis(28));
            // Longer than a frame, and nothing fragments it.
            sockets[1].send_to(&[0; 1473], binds[1]).expect("sends");
            sockets[1].send_to(b"back", binds[1]).expect("sends");
            assert_eq!(sockets[0].recv(&mut buffer).expect("arrives"), 4);
        });
        assert_eq!((stats.taken, stats.delivered, stats.drops.total()), (21, 21, 0));
        assert!(stats.refused == 1 && stats.busy > Duration::from_millis(28));
    }

    #[test]
    fn a_scenario_of_several_media_with_events_is_carried_as_in_a_lab() {
        let yaml = "hosts: [a, relay, b]\nmedia:\n  - {name: air, hosts: [a, relay], wifi: {rate: 6Mbit/s}}\n  \
                    - {name: line, hosts: [relay, b], wire: {}, set: {delay: 40ms}}\n\
                    events:\n  - {at: 300ms, target: a>relay, set: {packet_loss: 100%}}\n";
        let scenario = Scenario::parse(yaml, "f.yaml").expect("is good");
        let plan = scenario.plan().expect("is good");
        let leg = |medium, from, to| Leg { medium, from, to };
        assert_eq!(legs(&plan, 0, 2), [leg(0, 0, 1), leg(1, 0, 1)]);
        assert_eq!(
            legs(&load("wifi-chain-5").plan().expect("is good"), 4, 1),
            [leg(0, 4, 1)]
        );
        let stats = between(&scenario, taps(11, 0, 2), |sockets, binds| {
            let start = clock::monotonic();
            let mut buffer = [0u8; 100];
            sockets[1].send_to(b"up", binds[1]).expect("sends");
            assert_eq!(sockets[0].recv(&mut buffer).expect("arrives"), 2);
            assert!(clock::monotonic().since(start) >= Duration::from_millis(40));
            clock::sleep_until(start + Duration::from_millis(500), Duration::ZERO, || false).expect("sleeps");
            sockets[0].send_to(b"lost", binds[0]).expect("sends");
            sockets[1].send_to(b"last", binds[1]).expect("sends");
            assert_eq!(sockets[0].recv(&mut buffer).expect("arrives"), 4);
        });
        assert_eq!((stats.taken, stats.delivered), (3, 2));
        assert_eq!(stats.drops.count(DropReason::PathLoss), 1);
    }

    #[test]
    fn features_that_need_hosts_are_refused_in_one_line() {
        let refused = |scenario: &Scenario, taps: &[Tap]| {
            let error = LoopbackRadio::new(scenario, taps)
                .map(|_| ())
                .expect_err("refused");
            error.to_string()
        };
        assert_eq!(
            refused(&load("team-of-8"), &[]),
            "team-of-8: `edca` of 'wifi', which goes by a packet's DSCP, needs a host's kernel, which loopback sockets \
             lack: leave it out, or use `ropewalk lab up`"
        );
        let mut cubic = load("wifi-1hop");
        cubic.set_congestion_control("cubic").expect("is a name");
        assert!(refused(&cubic, &[]).starts_with("wifi-1hop: `congestion_control`, which is TCP's,"));
        let outside = Tap {
            host: SocketAddr::from(([192, 0, 2, 1], 7400)),
            ..taps(21, 0, 1)[0]
        };
        assert!(refused(&load("wifi-1hop"), &[outside]).contains("192.0.2.1"));
        assert!(refused(&load("wifi-1hop"), &taps(21, 0, 2)).contains("name two hosts from 0 to 1"));
    }
}
