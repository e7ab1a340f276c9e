//! A service of the bus, served in the domain.

use crate::called::qos;
use crate::hub::{Hub, lock};
use crate::types::named_service;
use crate::wire::{Caller, Port, WireError};
use bridge::nodes::Kind;
use bridge::{Counts, ServiceRule};
use ropewalk::{Client, NodeError, Pending, Service};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most calls of one service that wait for their responses.
const MAX_OPEN: usize = 1024;

/// A service of the bus, served in the domain.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Its name in ROS.
    pub(crate) name: String,
    pub(crate) bus_name: String,
    pub(crate) service: Service,
    pub(crate) port: Port,
    pub(crate) counts: Counts,
    timeout: Duration,
    client: Client,
    open: Mutex<Vec<(Caller, Pending)>>,
    wake: OwnedFd,
    is_closed: AtomicBool,
}

/// Why a service of the bus cannot be served in the domain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferedError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Bus(#[from] NodeError),
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Offered {
    pub(crate) fn start(
        hub: &Arc<Hub>,
        name: String,
        bus_name: String,
        service: Service,
        rule: &ServiceRule,
    ) -> Result<Arc<Offered>, OfferedError> {
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(std::io::Error::from)?;
        let client = hub.node.client(&bus_name, &service)?;
        hub.begins(client.bus().id());
        let offered = Arc::new(Offered {
            port: hub
                .wire
                .open(Kind::Service, &named_service(&name, &service), &qos())?,
            timeout: crate::config::timeout(rule, &name),
            name,
            bus_name,
            service,
            counts: Counts::default(),
            client,
            open: Mutex::default(),
            wake,
            is_closed: AtomicBool::new(false),
        });
        let (this, hub) = (offered.clone(), hub.clone());
        let thread = std::thread::Builder::new().name("ros2-offered".into());
        thread.spawn(move || this.work(&hub))?;
        Ok(offered)
    }

    pub(crate) fn end(&self, hub: &Hub) {
        self.is_closed.store(true, Ordering::Release);
        self.ring();
        hub.ends(self.client.bus().id());
        hub.wire.close(self.port);
        hub.forget(&self.name);
    }

    fn ring(&self) {
        // Full only if it is ringing already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// A request came.
    pub(crate) fn request(&self, hub: &Hub, caller: Caller, payload: &[u8]) {
        if lock(&self.open).len() >= MAX_OPEN {
            self.counts.failed();
            hub.wire.abandon(self.port, caller);
            return hub.problem(
                &self.name,
                "too many calls wait for their responses: one is left out",
            );
        }
        match self.client.send_cdr(payload, self.timeout) {
            Ok(pending) => {
                lock(&self.open).push((caller, pending));
                self.ring();
            }
            Err(error) => self.fail(hub, caller, error),
        }
    }

    /// Hands on responses until it is ended.
    fn work(&self, hub: &Hub) {
        while !self.is_closed.load(Ordering::Acquire) {
            let mut ended = Vec::new();
            let deadline = {
                let mut open = lock(&self.open);
                let mut waiting = Vec::with_capacity(open.len());
                for (caller, mut pending) in open.drain(..) {
                    match pending.poll() {
                        Some(end) => ended.push((caller, end)),
                        None => waiting.push((caller, pending)),
                    }
                }
                *open = waiting;
                open.iter().filter_map(|(_, p)| p.deadline()).min()
            };
            let had = !ended.is_empty();
            for (caller, end) in ended {
                let sent = end.and_then(|reply| reply.cdr()).map_err(|e| e.to_string());
                let sent = sent.and_then(|bytes| {
                    let len = bytes.len();
                    let sent = hub.wire.respond(self.port, caller, bytes);
                    sent.map(|()| len).map_err(|e| e.to_string())
                });
                match sent {
                    Ok(len) => self.counts.passed(len),
                    Err(error) => self.fail(hub, error),
                }
            }
            match self.client.bus().rearm() {
                Ok(more) if more || had => continue,
                Ok(_) => self.wait(deadline),
                Err(error) => return hub.problem(&self.name, error),
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>) {
        let left = deadline.map_or(Duration::from_secs(1), |d| {
            d.saturating_duration_since(Instant::now())
        });
        let left = Timespec::try_from(left.min(Duration::from_secs(1))).ok();
        let mut fds = [
            PollFd::new(&self.client, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        let _ = poll(&mut fds, left.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }

    /// A caller in the domain gets no answer: nothing there says that a call failed.
    fn fail(&self, hub: &Hub, caller: Caller, error: impl std::fmt::Display) {
        hub.wire.abandon(self.port, caller);
        self.counts.failed();
        hub.problem(&self.name, format_args!("a call is not answered: {error}"));
    }
}
