//! A radio between loopback sockets, without root.

use crate::Lateness;
use clock::{PollFd, PollFlags};
use medium::{Event, Medium, MediumConfig, MediumStats};
use stats::{Drops, Time};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// IPv4 and UDP headers, which a real radio would carry with each datagram.
const HEADERS: usize = 28;
/// How often a running radio looks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Where one host of the radio sends what is meant for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The radio's own address: the program on `from` sends here what is for `to`, and gets from here what
    /// comes from `to`. A loopback address.
    pub bind: SocketAddr,
    /// The address of the program on `from`; datagrams of others are refused.
    pub host: SocketAddr,
    /// The host, by its place in the medium's chain.
    pub from: usize,
    /// The host at the other end.
    pub to: usize,
}

/// Why a radio could not be set up or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// See [`medium::ConfigError`].
    #[error(transparent)]
    Medium(#[from] medium::ConfigError),
    /// The emulator never leaves this host.
    #[error("{address} is not a loopback address; an emulated radio uses 127.0.0.0/8 only")]
    NotLoopback {
        /// The address given.
        address: SocketAddr,
    },
    /// A tap's address cannot be used.
    #[error("the radio cannot bind {address}: {source}; choose a free address")]
    Bind {
        /// The address given.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Waiting on the sockets failed.
    #[error("the radio's sockets failed: {source}")]
    Socket {
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a radio carried.
#[derive(Clone, Debug, Default)]
pub struct RadioStats {
    /// Datagrams taken from hosts.
    pub taken: u64,
    /// Datagrams delivered.
    pub delivered: u64,
    /// Datagrams lost, by reason.
    pub drops: Drops,
    /// Datagrams refused because they came from an unknown address.
    pub refused: u64,
    /// The emulator's own lateness.
    pub lateness: Lateness,
}

/// The model of a radio between loopback sockets.
pub struct LoopbackRadio {
    medium: Medium<Vec<u8>>,
    taps: Vec<(Tap, UdpSocket)>,
    stats: RadioStats,
}

impl LoopbackRadio {
    /// Binds all taps.
    ///
    /// # Errors
    /// [`RadioError`]: a bad medium, an address that is not loopback or not free.
    pub fn new(config: MediumConfig, taps: &[Tap]) -> Result<Self, RadioError> {
        let medium = Medium::new(config)?;
        let taps = taps
            .iter()
            .map(|t| Ok((*t, bind(t)?)))
            .collect::<Result<_, RadioError>>()?;
        Ok(LoopbackRadio {
            medium,
            taps,
            stats: RadioStats::default(),
        })
    }

    /// Carries datagrams until `stop` is set, blocking the calling thread; `tick` is called about twenty
    /// times a second. For exact timing give the thread real-time scheduling first.
    ///
    /// # Errors
    /// [`RadioError::Socket`] if waiting on the sockets fails.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut tick: impl FnMut(&RadioStats, &MediumStats),
    ) -> Result<(), RadioError> {
        let mut next_tick = clock::monotonic();
        while !stop.load(Ordering::Relaxed) {
            let now = clock::monotonic();
            if now >= next_tick {
                tick(&self.stats, self.medium.stats());
                next_tick = now + STOP_CHECK;
            }
            let until = self.medium.next_event().map_or(next_tick, |t| t.min(next_tick));
            let mut fds: Vec<_> = self
                .taps
                .iter()
                .map(|(_, s)| PollFd::new(s, PollFlags::IN))
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
        tick(&self.stats, self.medium.stats());
        Ok(())
    }

    fn take(&mut self, tap: usize) {
        let mut buffer = [0u8; 65_536];
        // Bounded, so that a flood cannot hold up the air's events.
        for _ in 0..32 {
            let (tap, socket) = &self.taps[tap];
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) if from == tap.host => {
                    self.stats.taken += 1;
                    let data = buffer[..len].to_vec();
                    // A full queue is counted by the medium and again here, where it is shown.
                    if let Err(medium::SendError::QueueFull { .. }) =
                        self.medium
                            .send(clock::monotonic(), tap.from, tap.to, len + HEADERS, data)
                    {
                        self.stats.drops.add(stats::DropReason::DeviceQueue, 1);
                    }
                }
                Ok(_) => self.stats.refused += 1,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A closed port of a host that is gone is reported on the next call; the air goes on.
                Err(_) => {}
            }
        }
    }

    fn deliver(&mut self, now: Time) {
        while let Some(event) = self.medium.poll(now) {
            match event {
                Event::Delivered {
                    at,
                    host,
                    from,
                    payload,
                } => {
                    self.stats.lateness.record(at, clock::monotonic());
                    self.stats.delivered += 1;
                    if let Some((tap, socket)) =
                        self.taps.iter().find(|(t, _)| t.from == host && t.to == from)
                    {
                        // The host may be gone: then the air was used for nothing, as in life.
                        let _ = socket.send_to(&payload, tap.host);
                    }
                }
                Event::Dropped { reason, .. } => self.stats.drops.add(reason, 1),
            }
        }
    }
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
        // A net of its own for this test process, so that parallel runs do not meet.
        let pid = std::process::id().to_be_bytes();
        SocketAddr::from(([127, 64 | pid[2] & 63, pid[3], host], 7400))
    }

    #[test]
    fn carries_both_ways_at_the_rate_of_the_radio() {
        let hosts = [address(1), address(2)];
        let taps = [
            Tap {
                bind: address(3),
                host: hosts[0],
                from: 0,
                to: 1,
            },
            Tap {
                bind: address(4),
                host: hosts[1],
                from: 1,
                to: 0,
            },
        ];
        let mut radio = LoopbackRadio::new(MediumConfig::chain(1), &taps).expect("binds");
        let again = LoopbackRadio::new(MediumConfig::chain(1), &taps)
            .map(|_| ())
            .expect_err("is taken");
        assert!(again.to_string().contains(&taps[0].bind.to_string()), "{again}");

        let sockets = hosts.map(|h| UdpSocket::bind(h).expect("binds"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                radio.run(&stop, |_, _| {}).expect("runs");
                radio.stats.clone()
            });
            for s in &sockets {
                s.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
            }
            let start = clock::monotonic();
            let mut buffer = [0u8; 2000];
            for i in 0..20u8 {
                sockets[0].send_to(&[i; 1000], taps[0].bind).expect("sends");
            }
            for i in 0..20u8 {
                let (n, from) = sockets[1].recv_from(&mut buffer).expect("arrives");
                assert_eq!((n, buffer[0], from), (1000, i, taps[1].bind));
            }
            // 20 frames of 1.4 ms at least each: the air cannot be faster than itself.
            assert!(clock::monotonic().since(start) > Duration::from_millis(28));
            sockets[1].send_to(b"back", taps[1].bind).expect("sends");
            assert_eq!(sockets[0].recv(&mut buffer).expect("arrives"), 4);
            stop.store(true, Ordering::Relaxed);
            let stats = running.join().expect("no panic");
            assert_eq!((stats.taken, stats.delivered, stats.drops.total()), (21, 21, 0));
        });
    }

    #[test]
    fn never_leaves_this_host() {
        let tap = Tap {
            bind: address(9),
            host: SocketAddr::from(([192, 0, 2, 1], 7400)),
            from: 0,
            to: 1,
        };
        let error = LoopbackRadio::new(MediumConfig::chain(1), &[tap])
            .map(|_| ())
            .expect_err("refused");
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }
}
