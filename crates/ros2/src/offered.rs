//! A service of the bus, served in the domain.

use crate::called::qos;
use crate::hub::{GRACE, Hub, lock};
use crate::types::named_service;
use crate::waiting::Waiting;
use crate::wire::{Caller, Port, WireError};
use bridge::nodes::Kind;
use bridge::{Counts, ServiceRule};
use bus::{CallError as Unanswered, ClientOptions};
use ropewalk::{CallError, Client, NodeError, Pending, Service};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of requests in progress at a server of the bus.
const UNDER_WAY: u32 = 512;
/// Interval at which a server with a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(10);

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
    /// Longest request in bytes.
    max_message: u64,
    client: Client,
    open: Mutex<Open>,
    wake: OwnedFd,
    is_closed: AtomicBool,
    /// When the bus last had a server.
    seen: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct Open {
    under_way: Vec<(Caller, Pending)>,
    /// Requests that wait until the server has room.
    waiting: Waiting,
}

impl Open {
    fn callers(&self) -> impl Iterator<Item = &Caller> + Clone {
        self.under_way.iter().map(|(caller, _)| caller)
    }
}

/// Why a service of the bus cannot be served in the domain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferedError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Bus(#[from] NodeError),
    #[error("cannot start a thread: {0}")]
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
        let options = ClientOptions::default().with_max_outstanding(UNDER_WAY);
        let client = hub.node.dynamic_client_with(&bus_name, &service, options)?;
        hub.begins(client.bus().id());
        let offered = Arc::new(Offered {
            port: hub
                .wire
                .open(Kind::Service, &named_service(&name, &service), &qos())?,
            timeout: crate::config::timeout(rule, &name),
            max_message: rule.max_message.unwrap_or(hub.config.max_message()),
            name,
            bus_name,
            service,
            counts: Counts::default(),
            client,
            open: Mutex::default(),
            wake,
            is_closed: AtomicBool::new(false),
            seen: Mutex::new(Instant::now()),
        });
        let (this, hub) = (offered.clone(), hub.clone());
        let thread = std::thread::Builder::new().name("ros2-offered".into());
        thread.spawn(move || {
            clock::nice_thread(clock::FORWARDING_NICE);
            this.work(&hub);
        })?;
        Ok(offered)
    }

    /// Whether to keep it: `is_there` says whether the bus has a server now.
    pub(crate) fn stays(&self, is_there: bool, now: Instant) -> bool {
        let mut seen = lock(&self.seen);
        if is_there {
            *seen = now;
        }
        now.saturating_duration_since(*seen) < GRACE
    }

    pub(crate) fn end(&self, hub: &Hub) {
        self.is_closed.store(true, Ordering::Release);
        self.ring();
        hub.ends(self.client.bus().id());
        hub.wire.close(self.port);
        hub.forget(&self.name);
    }

    fn ring(&self) {
        // The counter can only be full if the wake-up is pending already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Handles a request.
    pub(crate) fn request(&self, hub: &Hub, caller: Caller, payload: &[u8]) {
        let (len, most) = (payload.len() as u64, self.max_message);
        if len > most {
            let error =
                format!("a request has {len} bytes, more than the limit of {most}: raise `max_message`");
            return self.fail(hub, caller, error);
        }
        let mut open = lock(&self.open);
        if !open.waiting.has_room(caller.sender, open.callers()) {
            drop(open);
            return self.fail(hub, caller, "too many requests are unanswered");
        }
        let until = Instant::now() + self.timeout;
        if open.waiting.is_empty() {
            match self.client.send_cdr(payload, self.timeout) {
                Ok(pending) => {
                    open.under_way.push((caller, pending));
                    return self.ring();
                }
                Err(error) if !is_full(&error) => {
                    drop(open);
                    return self.fail(hub, caller, error);
                }
                Err(_) => {}
            }
        }
        let waits = open.waiting.push(&hub.budget, caller, payload, until);
        drop(open);
        if waits {
            self.ring();
        } else {
            self.fail(hub, caller, "the queued requests take too much memory");
        }
    }

    /// Sends queued requests while the server has room. Returns those that cannot be sent.
    fn send_waiting(&self, open: &mut Open) -> Vec<(Caller, Result<ropewalk::Reply, String>)> {
        let now = Instant::now();
        let late = open.waiting.late(now).into_iter();
        let mut failed: Vec<_> = late
            .map(|r| (r.caller, Err("the queue of its server stayed full".to_owned())))
            .collect();
        while let Some(next) = open.waiting.next(open.under_way.iter().map(|(caller, _)| caller)) {
            match self
                .client
                .send_cdr(&next.payload, next.until.saturating_duration_since(now))
            {
                Ok(pending) => open.under_way.push((next.caller, pending)),
                Err(error) if is_full(&error) => {
                    open.waiting.put_back(next);
                    break;
                }
                Err(error) => failed.push((next.caller, Err(error.to_string()))),
            }
        }
        failed
    }

    /// Forwards responses until it ends.
    fn work(&self, hub: &Hub) {
        while !self.is_closed.load(Ordering::Acquire) {
            let mut ended = Vec::new();
            let deadline = {
                let mut open = lock(&self.open);
                let mut left = Vec::with_capacity(open.under_way.len());
                for (caller, mut pending) in std::mem::take(&mut open.under_way) {
                    match pending.poll() {
                        Some(end) => ended.push((caller, end.map_err(|e| e.to_string()))),
                        None => left.push((caller, pending)),
                    }
                }
                open.under_way = left;
                ended.extend(self.send_waiting(&mut open));
                let again = (!open.waiting.is_empty()).then(|| Instant::now() + AGAIN);
                let deadlines = open.under_way.iter().filter_map(|(_, p)| p.deadline());
                deadlines.chain(again).min()
            };
            let had = !ended.is_empty();
            for (caller, end) in ended {
                let sent = end.and_then(|reply| reply.cdr().map_err(|e| e.to_string()));
                let sent = sent.and_then(|bytes| {
                    let len = bytes.len();
                    let sent = hub.wire.respond(self.port, caller, bytes);
                    sent.map(|()| len).map_err(|e| e.to_string())
                });
                match sent {
                    Ok(len) => self.counts.passed(len),
                    Err(error) => self.fail(hub, caller, error),
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

    /// Reports a call that gets no response: the domain has no way to say that a call failed.
    fn fail(&self, hub: &Hub, caller: Caller, error: impl std::fmt::Display) {
        hub.wire.abandon(self.port, caller);
        self.counts.failed();
        hub.problem(&self.name, format_args!("a call is not answered: {error}"));
    }
}

/// Whether a request was refused for lack of room, and not executed.
fn is_full(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Call(Unanswered::Dropped { .. } | Unanswered::TooMany { .. })
    )
}
