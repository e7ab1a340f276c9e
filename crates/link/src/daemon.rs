//! The link daemon: one thread that owns a radio.

mod sending;
mod settings;
mod showing;

use crate::carrier::{Carrier, open_carrier};
use crate::compress::{Compress, Packer, Unpacker};
use crate::config::{self, Config, Ros2};
use crate::control::Control;
use crate::discovery::Discovery;
use crate::error::LinkError;
use crate::handle::{Handle, Shared};
use crate::inbound::Inbound;
use crate::nodes::{Nodes, StartError};
use crate::outbound::OutboundTopic;
use crate::pump::Pump;
use crate::seal::Seals;
use crate::services::{self, Services};
use bridge::{Lock, LockError};
use bus::{Bus, WaitSet};
use clock::{PollFd, PollFlags, Scheduling};
use proto::PeerId;
use rustix::event::{EventfdFlags, eventfd};
use sending::Unsent;
use stats::Time;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval at which the status is refreshed.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// How long the daemon takes no messages from the bus after one of its subscribers reached its limit of held messages.
const HOLD_OFF: Duration = Duration::from_millis(1);
/// How long a starting link waits for its predecessor to end, and how often it checks.
const ENDING: Duration = Duration::from_secs(3);
const LOCK_AGAIN: Duration = Duration::from_millis(50);
/// Lease of a peer's nodes, as in DDS: they are gone once the peer was silent for this long.
const LEASE: Duration = Duration::from_secs(20);
/// SCHED_FIFO priority of the radio thread, where permitted.
const PRIORITY: u8 = 20;

/// Joins a bus to a radio. On its bus it is a subscriber and a publisher like any other.
pub struct Daemon<C> {
    config: Config,
    bus: Bus,
    carrier: C,
    pump: Pump,
    inbound: Inbound,
    outbound: BTreeMap<String, OutboundTopic>,
    /// Topics that should be sent and cannot be.
    unsent: BTreeMap<String, Unsent>,
    wait_set: WaitSet,
    handle: Handle,
    scheduling: Scheduling,
    /// Shared by all topics that are packed; none if no topic is.
    packer: Option<Packer>,
    /// Locks on the radio and on the link's name.
    _locks: Vec<Lock>,
}

impl Daemon<Box<dyn Carrier>> {
    /// Prepares a daemon for `config` on `bus`, with the carrier that the configuration names. The radio and
    /// the link's name are locked until the daemon is dropped or its process ends: one daemon owns a radio.
    ///
    /// # Errors
    /// [`LinkError`]: another daemon owns the radio or the name, the carrier cannot be opened, or as
    /// [`Daemon::new`].
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
    /// the same order. Nothing is sent before [`Daemon::run`].
    ///
    /// # Errors
    /// [`LinkError`] if the radio rejects a setting or the system provides no descriptor.
    pub fn new(config: Config, bus: Bus, carrier: C) -> Result<Self, LinkError> {
        let wanted = config
            .topics
            .iter()
            .filter(|t| t.direction.receives())
            .map(|t| t.name.clone())
            .collect();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|e| LinkError::system("make an eventfd")(e.into()))?;
        let shared = Shared {
            stop: AtomicBool::new(false),
            wake,
            status: Mutex::default(),
        };
        let handle = Handle(Arc::new(shared));
        let waker = handle.clone();
        let pump = Pump::start(&config, &carrier, true, move || waker.wake())?;
        let mut inbound = Inbound::new(bus.clone(), wanted, &config, pump.run);
        inbound.flows.seals = Seals::start(&config)?;
        Ok(Daemon {
            inbound,
            wait_set: WaitSet::new(&bus)?,
            outbound: BTreeMap::new(),
            unsent: BTreeMap::new(),
            handle,
            scheduling: Scheduling::Other,
            packer: None,
            _locks: Vec::new(),
            config,
            bus,
            carrier,
            pump,
        })
    }

    /// A handle to stop the daemon and to read its status.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Carries messages until the daemon is stopped. Blocks the calling thread, which becomes a real-time
    /// thread where that is permitted.
    ///
    /// # Errors
    /// [`LinkError`] if the carrier or the bus fails permanently. Peers and radios may come and go.
    pub fn run(mut self) -> Result<(), LinkError> {
        let wanted = config::sent(&self.config)
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
        .map_err(LinkError::system("start a thread"))?;
        let waker = self.handle.clone();
        let control = Control::start(
            &self.bus,
            &self.config.link_name(),
            self.handle.clone(),
            move || waker.wake(),
        )?;
        let started = LinkError::system("start a thread");
        if (self.config.topics.iter()).any(|t| t.direction.sends() && t.compress != Compress::None) {
            let waker = self.handle.clone();
            self.packer = Some(Packer::start(move || waker.wake()).map_err(started)?);
        }
        self.inbound.unpack_by(Unpacker::start().map_err(started)?);
        self.inbound.services =
            Services::start(&self.config, &self.bus, (self.pump.run, self.inbound.ids()))?;
        let _nodes = self.exchange_nodes()?;
        // Set the scheduling after the other threads have started, because they would inherit it. A wire has no time
        // slots to meet and can keep a processor busy, which a real-time thread would withhold from all others. A lower
        // nice value suffices, since the others wait for this thread's work.
        self.scheduling = if self.config.is_wire() {
            clock::nice_thread(clock::FORWARDING_NICE)
        } else {
            clock::realtime_thread(PRIORITY)
        };
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
                    topic.offer(now, &mut self.pump.radio, &mut self.inbound, done.message);
                }
            }
            for topic in self.outbound.values_mut() {
                topic.follow_watchers(now, &self.bus, &self.pump.radio);
            }
            self.try_unsent(now);
            let held_up = self.drain_bus(now)?;
            let more = self.pump.hear(&mut self.carrier, &mut self.inbound)?;
            self.inbound.ring();
            for change in self.inbound.changes() {
                tracing::info!("{change}");
            }
            self.inbound
                .flows
                .run_relay(clock::monotonic(), &mut self.pump.radio)?;
            let next_seal = self
                .inbound
                .flows
                .run_seals(clock::monotonic(), &mut self.pump.radio)?;
            let next_call = self.run_services();
            let next_radio = self.pump.speak(&mut self.carrier)?;
            if now >= next_status {
                self.inbound.sweep(now);
                for (peer, topic, lost) in self.inbound.not_taken() {
                    self.pump.radio.not_taken(peer, topic, lost);
                }
                let own = |topic: &str| self.outbound.get(topic)?.subscriber_id();
                self.inbound.state_watched(&mut self.pump.radio, own);
                self.count_lost_before();
                self.pump.look(now, &self.config, &self.carrier);
                self.renew_status();
                next_status = now + STATUS_INTERVAL;
            }
            let hold_off = held_up.then(|| now + HOLD_OFF);
            let times = [
                // A carrier that receives several datagrams at once may hold some although its descriptor is
                // not readable.
                more.then_some(now),
                next_radio,
                self.pump.radio.next_timeout(),
                Some(next_status),
                hold_off,
                next_call,
                next_seal,
            ];
            self.wait(times.into_iter().flatten().min(), !held_up)?;
        }
        self.renew_status();
        Ok(())
    }

    /// Starts the exchange of ROS 2 nodes with peers, if the configuration asks for it.
    fn exchange_nodes(&self) -> Result<Option<Nodes>, LinkError> {
        if self.config.ros2 == Ros2::No {
            return Ok(None);
        }
        let status = self.handle.clone();
        let is_heard = move |index: usize| {
            let status = status.status();
            let unheard = status.peers.get(index).and_then(|p| p.unheard.as_ref());
            unheard.is_none_or(|u| u.for_s < LEASE.as_secs_f64())
        };
        let nodes = Nodes::start(&self.config, &self.bus, is_heard);
        nodes.map(Some).map_err(|error| match error {
            StartError::Create(error) => error.into(),
            StartError::Thread(source) => LinkError::system("start a thread")(source),
        })
    }

    /// Runs the services and returns when to run them next.
    fn run_services(&mut self) -> Option<Time> {
        let services = self.inbound.services.as_mut()?;
        services.run(clock::monotonic(), &mut self.pump.radio, &mut self.inbound.flows);
        services.next_deadline()
    }

    /// Takes messages from the bus until it is empty, or until a topic has reached its limit (then returns true).
    fn drain_bus(&mut self, now: Time) -> Result<bool, LinkError> {
        loop {
            let mut held_up = false;
            for topic in self.outbound.values_mut() {
                let packer = self.packer.as_ref();
                held_up |= topic.drain(now, &mut self.pump.radio, packer, &mut self.inbound);
            }
            if held_up || !self.wait_set.rearm()? {
                return Ok(held_up);
            }
        }
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
        // With short slots it would spin all the time, and a wire makes up for late datagrams.
        let spin = if self.config.has_wire() {
            Duration::ZERO
        } else {
            clock::SPIN
        };
        clock::wait(&mut fds, until, spin).map_err(LinkError::system("wait for datagrams"))?;
        if !fds[1].revents().is_empty() {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
        let rang = fds[own..].iter().any(|fd| !fd.revents().is_empty());
        if let Some(services) = self.inbound.services.as_mut().filter(|_| rang) {
            services.rang();
        }
        Ok(())
    }

    /// The peer's configured name.
    fn peer_name(&self, peer: PeerId) -> String {
        let peer = self.config.peers.get(peer.0 as usize);
        peer.map(|p| p.name.clone()).unwrap_or_default()
    }
}

/// The priority that a publisher asks for, in the first line of its type's definition.
pub(crate) fn asked_priority(definition: &str) -> Option<u8> {
    let line = definition.lines().next()?.strip_prefix("# priority:")?;
    line.trim().parse().ok().filter(|p| *p <= proto::MAX_PRIORITY)
}

/// Locks the radio, if the configuration identifies it, and the link's name on this bus.
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
        let fix = "one daemon owns a radio, so that priorities hold: put the peers and topics of both into one \
                    configuration";
        wanted.push((format!("radio-{radio}"), format!("the radio {shown}"), fix));
    }
    let until = clock::monotonic() + ENDING;
    let take = |(file, what, fix): (String, String, &'static str)| loop {
        match Lock::take(folder, "link", &file, &holder) {
            Ok(lock) => return Ok(lock),
            // The previous link may still be ending, as after a restart.
            Err(LockError::Held(_)) if clock::monotonic() < until => std::thread::sleep(LOCK_AGAIN),
            Err(LockError::Held(holder)) => return Err(LinkError::Taken { what, holder, fix }),
            Err(LockError::File(path, source)) => return Err(LinkError::Lock { path, source }),
        }
    };
    wanted.into_iter().map(take).collect()
}
