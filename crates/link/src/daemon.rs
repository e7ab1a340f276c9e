//! The link daemon: one thread that owns a radio.

mod settings;
mod showing;

use crate::carrier::{Carrier, CarrierError, open_carrier};
use crate::coder::Coder;
use crate::compress::{Compress, Packer, Unpacker};
use crate::config::{Config, Order, Rate, Ros2};
use crate::control::Control;
use crate::discovery::{Discovery, Found, Offers};
use crate::inbound::Inbound;
use crate::names;
use crate::nodes::{Nodes, StartError};
use crate::outbound::OutTopic;
use crate::outgoing::Outgoing;
use crate::pump;
use crate::reach::Reach;
use crate::relay::host_id;
use crate::rules::{Relayed, Right, may};
use crate::seal::Seals;
use crate::services::{self, REQUEST, Services};
use crate::status::Status;
use bridge::{Lock, LockError};
use bus::{Bus, WaitSet};
use clock::{PollFd, PollFlags, Scheduling};
use proto::{PeerId, Radio};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{EventfdFlags, eventfd};
use stats::Time;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the status is renewed.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// How long the bus is left alone after a subscriber held all it may.
const HOLD_OFF: Duration = Duration::from_millis(1);
/// Datagrams that may be on a wire to a peer, and in its socket: what is urgent waits behind them there. It has to
/// hold a few batches, so that sender and receiver both have work. Where nothing is urgent there may be more.
const WIRE_IN_FLIGHT: u32 = 128;
/// For so long a link that starts waits for the one before it to end, and looks so often.
const ENDING: Duration = Duration::from_secs(3);
const LOCK_AGAIN: Duration = Duration::from_millis(50);
/// The nodes of a peer that was not heard for so long are not there, as in DDS.
const LEASE: Duration = Duration::from_secs(20);
/// SCHED_FIFO priority of the radio's thread, where permitted.
const PRIORITY: u8 = 20;
/// Its nice value on a wire, where permitted.
const NICE: i32 = -10;

/// Why a link cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// See [`CarrierError`].
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// See [`bus::CreateError`].
    #[error("the bus refuses: {0}")]
    Create(#[from] bus::CreateError),
    /// See [`bus::OpenError`].
    #[error(transparent)]
    Open(#[from] bus::OpenError),
    /// See [`bus::TakeError`].
    #[error("the bus fails: {0}")]
    Take(#[from] bus::TakeError),
    /// A setting that the radio refuses.
    #[error("the radio refuses its settings: {0}")]
    Radio(#[from] proto::ConfigError),
    /// A peer that the radio refuses.
    #[error("the radio refuses a peer: {0}")]
    Peer(#[from] proto::PeerError),
    /// A topic that the radio refuses.
    #[error("the radio refuses a topic: {0}")]
    Topic(#[from] proto::TopicError),
    /// Another daemon has the radio, or the link's name.
    #[error("{what} is taken by {holder}: {mend}")]
    Taken {
        /// What is taken.
        what: String,
        /// By whom.
        holder: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A topic cannot be filtered as the configuration wishes.
    #[error("{0}")]
    Filter(String),
    /// The file that says who owns the radio cannot be used.
    #[error("cannot lock {path}: {source}; remove it if no link runs")]
    Lock {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Operators cannot be served.
    #[error("the bus refuses the services of the link {link}: {source}")]
    Control {
        /// The link's name.
        link: String,
        /// Why.
        source: Box<ropewalk::NodeError>,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Joins a bus to a radio. It is a subscriber and a publisher of its bus like any other.
pub struct Daemon<C> {
    config: Config,
    bus: Bus,
    carrier: C,
    radio: Radio<Outgoing>,
    peers: Vec<PeerId>,
    /// Tells this run of the host from others.
    run: u32,
    inbound: Inbound,
    outbound: BTreeMap<String, OutTopic>,
    wait_set: WaitSet,
    handle: Handle,
    scheduling: Scheduling,
    /// Where any topic is packed.
    packer: Option<Packer>,
    reach: Reach,
    /// Of the radio and of the link's name.
    _locks: Vec<Lock>,
}

/// Stops a daemon and shows its state, from any thread.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    stop: AtomicBool,
    wake: OwnedFd,
    status: Mutex<Status>,
}

impl Handle {
    /// Lets the daemon's `run` return soon.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// The daemon's state, at most a tenth of a second old.
    pub fn status(&self) -> Status {
        self.0
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn wake(&self) {
        // A full counter is as good a wake-up as any.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}

impl Daemon<Box<dyn Carrier>> {
    /// Prepares a daemon for `config` on `bus`, with the carrier that the configuration names. The radio and the
    /// link's name are locked until the daemon is dropped or its process ends: one daemon owns a radio.
    ///
    /// # Errors
    /// [`LinkError`]: another daemon has them, the carrier cannot be opened, or as [`Daemon::new`].
    pub fn open(config: Config, bus: Bus) -> Result<Self, LinkError> {
        let locks = locks(&config, &bus)?;
        let carrier = open_carrier(&config)?;
        let mut daemon = Daemon::new(config, bus, carrier)?;
        daemon._locks = locks;
        Ok(daemon)
    }
}

impl<C: Carrier> Daemon<C> {
    /// Prepares a daemon for `config` on `bus` over `carrier`, whose peers are those of the configuration, in
    /// its order. Nothing is sent before [`Daemon::run`].
    ///
    /// # Errors
    /// [`LinkError`] if the radio refuses a setting or the system gives no descriptor.
    pub fn new(config: Config, bus: Bus, carrier: C) -> Result<Self, LinkError> {
        let run = session();
        let (radio, peers) = radio(&config, &carrier, run, clock::monotonic())?;
        let wanted = config
            .topics
            .iter()
            .filter(|t| t.direction.receives())
            .map(|t| t.name.clone())
            .collect();
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|e| LinkError::System {
                doing: "make an eventfd",
                source: e.into(),
            })?;
        let shared = Shared {
            stop: AtomicBool::new(false),
            wake,
            status: Mutex::default(),
        };
        let mut inbound = Inbound::new(bus.clone(), wanted, &config, run);
        inbound.seals = Seals::start(&config)?;
        Ok(Daemon {
            inbound,
            wait_set: WaitSet::new(&bus)?,
            outbound: BTreeMap::new(),
            handle: Handle(Arc::new(shared)),
            scheduling: Scheduling::Other,
            packer: None,
            reach: Reach::new(clock::monotonic()),
            _locks: Vec::new(),
            config,
            bus,
            carrier,
            radio,
            peers,
            run,
        })
    }

    /// For stopping it and looking at it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Carries messages until it is stopped; blocks the calling thread, which becomes a real-time thread
    /// where that is permitted.
    ///
    /// # Errors
    /// [`LinkError`] if the carrier or the bus fails for good. Peers and radios may come and go.
    pub fn run(mut self) -> Result<(), LinkError> {
        let wanted = names::sent(&self.config)
            .chain(services::watched(&self.config))
            .collect();
        let wanted = (wanted, services::watched_patterns(&self.config).collect());
        let (waker, ids) = (self.handle.clone(), self.inbound.ids());
        let discovery = Discovery::start(
            self.bus.clone(),
            wanted,
            move |id| ids.contains(id),
            move || waker.wake(),
        )
        .map_err(|source| LinkError::System {
            doing: "start a thread",
            source,
        })?;
        let waker = self.handle.clone();
        let control = Control::start(
            &self.bus,
            &self.config.link_name(),
            self.handle.clone(),
            move || waker.wake(),
        )?;
        let started = |source| LinkError::System {
            doing: "start a thread",
            source,
        };
        if (self.config.topics.iter()).any(|t| t.direction.sends() && t.compress != Compress::None) {
            let waker = self.handle.clone();
            self.packer = Some(Packer::start(move || waker.wake()).map_err(started)?);
        }
        self.inbound.unpack_by(Unpacker::start().map_err(started)?);
        self.inbound.services = Services::start(&self.config, &self.bus, (self.run, self.inbound.ids()))?;
        let _nodes = self.exchange_nodes()?;
        let waker = self.handle.clone();
        let coder = Coder::start(move || waker.wake()).map_err(started)?;
        // After the other threads were made, which would inherit it. A wire has no slots to be met, and may keep a
        // processor busy, which all others would have to do without; but they wait for what this thread does.
        self.scheduling = if self.config.is_wire() {
            clock::nice_thread(NICE)
        } else {
            clock::realtime_thread(PRIORITY)
        };
        let mut datagram = Vec::with_capacity(self.carrier.max_datagram());
        let mut buffer = vec![0; pump::room(&self.carrier)];
        let mut next_status = Time::ZERO;
        while !self.handle.0.stop.load(Ordering::Acquire) {
            let now = clock::monotonic();
            while let Some((found, offers)) = discovery.next() {
                self.found(found, offers, now)?;
            }
            while let Some(command) = control.next() {
                self.obey(now, &command);
            }
            while let Some(done) = self.packer.as_ref().and_then(Packer::done) {
                let topic = self.outbound.values().find(|t| t.is_packed_as(done.key));
                if let Some(topic) = topic {
                    topic.offer(now, &mut self.radio, &mut self.inbound, done.message);
                }
            }
            let held_up = self.drain_bus(now)?;
            let more = self.receive(&mut buffer)?;
            if self.radio.next_timeout().is_some_and(|t| t <= clock::monotonic()) {
                self.radio.handle_timeout(clock::monotonic(), &mut self.inbound);
            }
            while let Some(done) = coder.done() {
                self.radio.job_done(clock::monotonic(), done, &mut self.inbound);
            }
            self.inbound.ring();
            self.inbound.run_relay(clock::monotonic(), &mut self.radio)?;
            let next_seal = self.inbound.run_seals(clock::monotonic(), &mut self.radio)?;
            let next_call = self.run_services();
            let next_slot = self.transmit(&mut datagram)?;
            while let Some(job) = self.radio.next_job() {
                coder.take(job);
            }
            if now >= next_status {
                self.inbound.sweep(now);
                for (peer, topic, lost) in self.inbound.not_taken() {
                    self.radio.not_taken(peer, topic, lost);
                }
                self.count_lost_before();
                let peers = (&self.config, &self.peers[..]);
                self.reach.look_at(now, peers, &self.radio, &self.carrier);
                self.renew_status();
                next_status = now + STATUS_INTERVAL;
            }
            let hold_off = held_up.then(|| now + HOLD_OFF);
            let service = self.carrier.service()?.map(|d| clock::monotonic() + d);
            self.follow_paths();
            let times = [
                // A carrier that takes several at once may have some although its descriptor is not readable.
                more.then_some(now),
                next_slot,
                self.radio.next_timeout(),
                Some(next_status),
                hold_off,
                service,
                next_call,
                next_seal,
            ];
            self.wait(times.into_iter().flatten().min(), !held_up)?;
        }
        self.renew_status();
        Ok(())
    }

    /// Begins to tell peers of nodes of ROS 2, and nodes of peers', if the configuration says so.
    fn exchange_nodes(&self) -> Result<Option<Nodes>, LinkError> {
        if self.config.ros2 == Ros2::No {
            return Ok(None);
        }
        let status = self.handle.clone();
        let is_heard = move |place: usize| {
            let status = status.status();
            let unheard = status.peers.get(place).and_then(|p| p.unheard.as_ref());
            unheard.is_none_or(|u| u.for_s < LEASE.as_secs_f64())
        };
        let nodes = Nodes::start(&self.config, &self.bus, is_heard);
        nodes.map(Some).map_err(|error| match error {
            StartError::Create(error) => error.into(),
            StartError::Thread(source) => LinkError::System {
                doing: "start a thread",
                source,
            },
        })
    }

    /// Lets services go on, and says when they are to again.
    fn run_services(&mut self) -> Option<Time> {
        // Apart, since they use what stands beside them.
        let mut services = self.inbound.services.take()?;
        services.run(clock::monotonic(), &mut self.radio, &mut self.inbound);
        let next = services.next_deadline();
        self.inbound.services = Some(services);
        next
    }

    /// Begins to send a topic, goes on with another type, or ends.
    fn found(&mut self, found: Found, offers: Offers, now: Time) -> Result<(), LinkError> {
        if let Some(mut services) = self
            .inbound
            .services
            .take_if(|_| found.topic().ends_with(REQUEST))
        {
            let kind = match &found {
                Found::Type(kind) => Ok(kind.clone()),
                Found::Gone(topic) => Err(topic.as_str()),
            };
            services.found(now, &mut self.radio, &mut self.inbound, kind);
            self.inbound.services = Some(services);
            return Ok(());
        }
        let name = found.topic().to_owned();
        self.count_lost_before();
        if let Some(old) = self.outbound.remove(&name) {
            old.close(now, &mut self.radio, &mut self.inbound)?;
        }
        match found {
            Found::Type(kind) => self.begin(kind, offers, now),
            Found::Gone(_) => {
                tracing::info!(topic = name, "nobody publishes it any more: withdrawn");
                Ok(())
            }
        }
    }

    /// Sends a topic of which the publishers offer this.
    fn begin(&mut self, kind: bus::TopicType, offers: Offers, now: Time) -> Result<(), LinkError> {
        let name = kind.topic.clone();
        let mut peers = Vec::with_capacity(self.peers.len());
        for (i, _, mut topic) in names::sent_as(&self.config, &name) {
            if let Some(priority) = asked_priority(&kind.definition).filter(|_| topic.publisher_priority) {
                topic.priority = priority;
            }
            topic.settle(offers);
            // By its place, as those that only relays reach have no number at the radio.
            let (peer, id) = (&self.config.peers[i], PeerId(i as u32));
            if may(peer.allow.as_ref(), Right::Subscribe, &topic.name) {
                tracing::info!(
                    topic = name,
                    r#type = kind.type_name,
                    priority = topic.priority,
                    peer = peer.name,
                    "sending"
                );
                peers.push((id, topic));
            } else {
                tracing::info!(
                    topic = name,
                    peer = peer.name,
                    "not sent: `allow` does not let it subscribe"
                );
                self.inbound.refuse(id);
            }
        }
        let rate = self.config.radio.rate.map_or(0, Rate::first);
        let peers: Vec<_> = peers.iter().map(|(id, topic)| (*id, topic)).collect();
        let opened = OutTopic::open(
            (&self.bus, &self.wait_set),
            (kind, offers.reliable),
            (&mut self.radio, &mut self.inbound),
            &peers,
            (rate, now),
        );
        match opened {
            Ok(topic) => drop(self.outbound.insert(name, topic)),
            // It was said; the other topics go on.
            Err(LinkError::Filter(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes from the bus until it is empty, or until a topic holds all it may (then true).
    fn drain_bus(&mut self, now: Time) -> Result<bool, LinkError> {
        loop {
            let mut held_up = false;
            for topic in self.outbound.values_mut() {
                let packer = self.packer.as_ref();
                held_up |= topic.drain(now, &mut self.radio, packer, &mut self.inbound);
            }
            if held_up || !self.wait_set.rearm()? {
                return Ok(held_up);
            }
        }
    }

    /// Takes what came, up to a bound; true if there may be more.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, LinkError> {
        let mut way = pump::Way {
            radio: &mut self.radio,
            carrier: &mut self.carrier,
            peers: &self.peers,
        };
        let more = way.receive(&mut self.inbound, buffer)?;
        self.inbound.ring();
        for change in self.inbound.changes() {
            tracing::info!("{change}");
        }
        Ok(more)
    }

    fn follow_paths(&mut self) {
        let mut way = pump::Way {
            radio: &mut self.radio,
            carrier: &mut self.carrier,
            peers: &self.peers,
        };
        way.follow_paths();
    }

    /// Sends what is due, and says when the next is.
    fn transmit(&mut self, datagram: &mut Vec<u8>) -> Result<Option<Time>, LinkError> {
        let mut way = pump::Way {
            radio: &mut self.radio,
            carrier: &mut self.carrier,
            peers: &self.peers,
        };
        way.transmit(datagram)
    }

    fn wait(&mut self, until: Option<Time>, watch_bus: bool) -> Result<(), LinkError> {
        let ready = self.carrier.ready();
        let wake = self.handle.0.wake.as_fd();
        let mut fds = vec![PollFd::from_borrowed_fd(self.carrier.readable(), PollFlags::IN)];
        fds.push(PollFd::from_borrowed_fd(wake, PollFlags::IN));
        if watch_bus {
            fds.push(PollFd::from_borrowed_fd(self.wait_set.as_fd(), PollFlags::IN));
        }
        if let Some(fd) = self.carrier.writable().filter(|_| !ready) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::OUT));
        }
        let own = fds.len();
        if let Some(services) = &self.inbound.services {
            services.watch(&mut fds);
        }
        // Where slots are short it would spin all the time, and what is late on a wire is made up for.
        let spin = if self.config.has_wire() {
            Duration::ZERO
        } else {
            clock::SPIN
        };
        clock::wait(&mut fds, until, spin).map_err(|source| LinkError::System {
            doing: "wait for datagrams",
            source,
        })?;
        if !fds[1].revents().is_empty() {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
        let rang = fds[own..].iter().any(|fd| !fd.revents().is_empty());
        if let Some(services) = self.inbound.services.as_mut().filter(|_| rang) {
            services.rang();
        }
        Ok(())
    }

    /// A peer's configured name.
    fn peer_name(&self, peer: PeerId) -> String {
        let peer = self.config.peers.get(peer.0 as usize);
        peer.map(|p| p.name.clone()).unwrap_or_default()
    }
}

/// The radio of a configuration over a carrier, whose peers are those of the configuration in its order. `run` tells this run of the
/// host from others.
pub(crate) fn radio(
    config: &Config,
    carrier: &impl Carrier,
    run: u32,
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
        host: host_id(&config.host),
        name: config.host.clone(),
        order: match config.radio.order {
            Order::Priority => proto::Order::Priority,
            Order::Fifo => proto::Order::Fifo,
        },
        max_queued_bytes: config.queue_bytes(),
        auto_rate: config.radio.rate == Some(Rate::Auto),
        wire: config.is_wire(),
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

/// The priority that a publisher asks for, in the first line of its type's definition.
pub(crate) fn asked_priority(definition: &str) -> Option<u8> {
    let line = definition.lines().next()?.strip_prefix("# priority:")?;
    line.trim().parse().ok().filter(|p| *p <= proto::MAX_PRIORITY)
}

/// Locks the radio, as far as the configuration tells one from another, and the link's name on this bus.
fn locks(config: &Config, bus: &Bus) -> Result<Vec<Lock>, LinkError> {
    let (folder, domain) = (&bus.config().runtime_dir, bus.config().domain);
    let holder = format!("process {} (the link of {})", std::process::id(), config.host);
    let name = config.link_name();
    let mut wanted = vec![(
        format!("{domain}-{name}"),
        format!("the link name {name}"),
        "stop it first, or, if this is another radio of the host, give it another `radio.name`",
    )];
    if let Some((radio, shown)) = config.radio_identity() {
        let mend = "one daemon owns a radio, so that priorities hold: put the peers and topics of both into one \
                    configuration";
        wanted.push((format!("radio-{radio}"), format!("the radio {shown}"), mend));
    }
    let until = clock::monotonic() + ENDING;
    let take = |(file, what, mend): (String, String, &'static str)| loop {
        match Lock::take(folder, "link", &file, &holder) {
            Ok(lock) => return Ok(lock),
            // The link before this one may be ending still, as after a restart.
            Err(LockError::Held(_)) if clock::monotonic() < until => std::thread::sleep(LOCK_AGAIN),
            Err(LockError::Held(holder)) => return Err(LinkError::Taken { what, holder, mend }),
            Err(LockError::File(path, source)) => return Err(LinkError::Lock { path, source }),
        }
    };
    wanted.into_iter().map(take).collect()
}

/// A random number that tells this run from other runs of the same host, never 0.
pub(crate) fn session() -> u32 {
    let mut bytes = [0; 4];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // Hosts without random numbers have clocks.
        bytes = (clock::realtime().0 as u32).to_ne_bytes();
    }
    u32::from_ne_bytes(bytes).max(1)
}
