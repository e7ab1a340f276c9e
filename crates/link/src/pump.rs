//! Moves datagrams between a radio and its carrier.

use crate::carrier::{Carrier, Sent};
use crate::coder::Coder;
use crate::config::{Config, Order, Rate};
use crate::error::LinkError;
use crate::names::host_id;
use crate::outgoing::Outgoing;
use crate::reach::Reach;
use crate::rules::Relayed;
use proto::{PacketError, PeerId, Radio, Sink, Transmit};
use ring::rand::{SecureRandom, SystemRandom};
use stats::Time;

/// Datagrams read before the scheduler has its turn again. A joined datagram counts as its parts.
const RECEIVE_BATCH: usize = 64;
/// Datagrams that may be in flight to a peer on a wire, including its socket: urgent messages wait behind
/// them. The number has to cover a few batches, so that sender and receiver both have work. It may be larger
/// if nothing is urgent.
const WIRE_IN_FLIGHT: u32 = 128;

/// A radio, and what moves its datagrams over a carrier. The carrier belongs to the owner.
pub(crate) struct Pump {
    pub(crate) radio: Radio<Outgoing>,
    /// In the carrier's order.
    pub(crate) peers: Vec<PeerId>,
    /// Which peers do not answer.
    pub(crate) reach: Reach,
    /// Distinguishes this run of the host from others.
    pub(crate) run: u32,
    coder: Coder,
    datagram: Vec<u8>,
    /// For a carrier's largest datagram.
    buffer: Vec<u8>,
}

impl Pump {
    /// Builds the radio of a configuration over a carrier, whose peers are those of the configuration in the same
    /// order. `states_watched` is as in the radio's configuration. Another thread calls `wake` when there is work.
    ///
    /// # Errors
    /// [`LinkError`] if the radio rejects a setting or no thread can start.
    pub(crate) fn start(
        config: &Config,
        carrier: &impl Carrier,
        states_watched: bool,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, LinkError> {
        let (run, now) = (session(), clock::monotonic());
        let (radio, peers) = radio(config, carrier, run, states_watched, now)?;
        let coder = Coder::start(wake).map_err(LinkError::system("start a thread"))?;
        Ok(Pump {
            radio,
            peers,
            reach: Reach::new(now),
            run,
            coder,
            datagram: Vec::with_capacity(carrier.max_datagram()),
            buffer: vec![0; carrier.max_datagram() * carrier.joined() + 1],
        })
    }

    /// Receives a limited number of datagrams, and handles due timers and finished jobs. True if there may be more
    /// datagrams.
    pub(crate) fn hear(
        &mut self,
        carrier: &mut impl Carrier,
        sink: &mut impl Sink,
    ) -> Result<bool, LinkError> {
        let more = self.receive(carrier, sink)?;
        let now = clock::monotonic();
        if self.radio.next_timeout().is_some_and(|t| t <= now) {
            self.radio.handle_timeout(now, sink);
        }
        while let Some(done) = self.coder.done() {
            self.radio.job_done(now, done, sink);
        }
        Ok(more)
    }

    /// Sends what is due while the carrier accepts it. Returns when there is something to do next.
    pub(crate) fn speak(&mut self, carrier: &mut impl Carrier) -> Result<Option<Time>, LinkError> {
        let slot = self.transmit(carrier)?;
        let service = carrier.service()?.map(|d| clock::monotonic() + d);
        self.follow_paths(carrier);
        while let Some(job) = self.radio.next_job() {
            self.coder.take(job);
        }
        let times = [slot, self.radio.next_timeout(), service];
        Ok(times.into_iter().flatten().min())
    }

    /// Checks which peers answer, and logs due reports.
    pub(crate) fn look(&mut self, now: Time, config: &Config, carrier: &impl Carrier) {
        let peers = (config, &self.peers[..]);
        self.reach.look_at(now, peers, &self.radio, carrier);
    }

    /// Sets the scheduler's datagram sizes to one packet each, and tells the carrier which peers have other paths.
    fn follow_paths(&mut self, carrier: &mut impl Carrier) {
        for (index, peer) in self.peers.iter().enumerate() {
            self.radio.set_max_datagram(*peer, carrier.max_datagram_to(index));
            let elsewhere = self.radio.leads_elsewhere(*peer);
            carrier.leads_elsewhere(index, elsewhere);
        }
    }

    fn receive(&mut self, carrier: &mut impl Carrier, sink: &mut impl Sink) -> Result<bool, LinkError> {
        let (mut taken, one) = (0, carrier.max_datagram());
        while taken < RECEIVE_BATCH {
            let Some(got) = carrier.receive(&mut self.buffer)? else {
                return Ok(false);
            };
            taken += got.datagram.len().div_ceil(one).max(1);
            let Some(peer) = self.peers.get(got.peer) else {
                continue;
            };
            let index = got.peer;
            match (self.radio).handle(clock::monotonic(), *peer, got.datagram, sink) {
                Ok(()) => {}
                Err(PacketError::AnotherHost { .. }) => carrier.turn_away(index),
                Err(error) => tracing::debug!(%error, peer = index, "cannot parse a datagram"),
            }
        }
        Ok(true)
    }

    /// Sends what is due while the carrier accepts it, and returns when the next datagram is due. For a
    /// carrier with batches it sends one batch: then other work has its turn, so that urgent messages wait no
    /// longer.
    fn transmit(&mut self, carrier: &mut impl Carrier) -> Result<Option<Time>, LinkError> {
        let mut next = None;
        let mut left = carrier.batch();
        while carrier.ready() {
            match (self.radio).poll_transmit(clock::monotonic(), &mut self.datagram) {
                Transmit::Datagram { peer, priority } => {
                    let index = self.peers.iter().position(|p| *p == peer).unwrap_or(usize::MAX);
                    if carrier.send(index, priority, &self.datagram)? != Sent::Taken {
                        self.radio.carrier_refused(peer);
                    }
                    left = left.map(|n| n.saturating_sub(self.datagram.len()));
                }
                Transmit::Wait(until) => {
                    next = Some(until);
                    break;
                }
                Transmit::Idle => break,
            }
            if left == Some(0) {
                next = Some(Time::ZERO);
                break;
            }
        }
        carrier.flush()?;
        Ok(next)
    }
}

/// Builds the radio of a configuration over a carrier, whose peers are those of the configuration in the same
/// order. `run` distinguishes this run of the host from others, and `states_watched` is as in the radio's
/// configuration.
fn radio(
    config: &Config,
    carrier: &impl Carrier,
    run: u32,
    states_watched: bool,
    now: Time,
) -> Result<(Radio<Outgoing>, Vec<PeerId>), LinkError> {
    let mut airtime = config.airtime(carrier.overhead());
    if let Some(gain) = config.radio.gain {
        airtime = airtime.with_gain(gain);
    }
    let route = config.routes().then(|| proto::RouteConfig {
        relay: config.relay.as_ref().is_some_and(Relayed::is_any),
        ..proto::RouteConfig::default()
    });
    let defaults = proto::RadioConfig::new(run, airtime);
    let mut radio = Radio::new(proto::RadioConfig {
        route,
        states_watched,
        host: host_id(&config.host),
        name: config.host.clone(),
        order: match config.radio.order {
            Order::Priority => proto::Order::Priority,
            Order::Fifo => proto::Order::Fifo,
        },
        max_queued_bytes: config.queue_bytes(),
        auto_rate: config.radio.rate == Some(Rate::Auto),
        wire: config.is_wire(),
        duty: config.radio.duty,
        min_share: config.radio.min_share,
        yields: config.radio.yields,
        least_share: config.radio.least_share,
        denied_air: (config.peers.iter().filter(|p| !p.has_air()))
            .map(|p| host_id(&p.name))
            .collect(),
        in_flight: if config.is_wire() {
            WIRE_IN_FLIGHT
        } else {
            defaults.in_flight
        },
        // All peers may send at once.
        holds: u32::try_from(carrier.holds() / config.peers.len().max(1)).unwrap_or(u32::MAX),
        ..defaults
    })?;
    let joined = u32::try_from(carrier.joined()).unwrap_or(1);
    let peer = proto::PeerConfig {
        hops: u32::from(config.radio.hops),
        max_datagram: carrier.max_datagram(),
        joined: if config.is_wire() { joined } else { 1 },
        ..proto::PeerConfig::default()
    };
    let peers = config
        .neighbours()
        .iter()
        .map(|p| {
            let (host, air) = (host_id(&p.name), p.has_air());
            radio.add_peer(now, proto::PeerConfig { host, air, ..peer })
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((radio, peers))
}

/// A random number that distinguishes this run from other runs of the same host, never 0.
fn session() -> u32 {
    let mut bytes = [0; 4];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // A host without random numbers still has a clock.
        bytes = (clock::realtime().0 as u32).to_ne_bytes();
    }
    u32::from_ne_bytes(bytes).max(1)
}
