//! A service of the domain, offered on the bus.

use crate::hub::{Hub, lock};
use crate::types::named_service;
use crate::wire::{Call, Id, Port, WireError};
use bridge::nodes::policy::{KEEP_LAST, RELIABLE, VOLATILE};
use bridge::nodes::{Kind, Qos};
use bridge::{Counts, ServiceRule, printable};
use bus::{ServerOptions, TakeError};
use ropewalk::{NodeError, Request, Server, Service};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of unanswered calls of one service, in total and per client of the bus.
const MAX_OPEN: usize = 1024;
const MAX_OPEN_EACH: u32 = 256;

/// A service of the domain, offered on the bus.
#[derive(Debug)]
pub(crate) struct Called {
    /// Its name in ROS.
    pub(crate) name: String,
    pub(crate) bus_name: String,
    pub(crate) service: Service,
    pub(crate) port: Port,
    pub(crate) counts: Counts,
    /// Participant whose server was first.
    pub(crate) by: Id,
    timeout: Duration,
    /// Longest request in bytes.
    max_message: u64,
    server: Mutex<Option<Arc<Server>>>,
    open: Mutex<BTreeMap<Call, (Request, Instant)>>,
    is_closed: AtomicBool,
}

/// Why a service of the domain cannot be offered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalledError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Bus(#[from] NodeError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The quality of service of requests and responses (`rmw_qos_profile_services_default`).
pub(crate) fn qos() -> Qos {
    Qos {
        history: KEEP_LAST,
        depth: 100,
        reliability: RELIABLE,
        durability: VOLATILE,
        ..Qos::default()
    }
}

impl Called {
    /// Connects to the server. [`Called::offer`] offers the service once that is done.
    pub(crate) fn new(
        hub: &Hub,
        name: &str,
        bus_name: String,
        service: Service,
        rule: &ServiceRule,
        by: Id,
    ) -> Result<Arc<Called>, CalledError> {
        Ok(Arc::new(Called {
            by,
            name: name.to_owned(),
            port: hub
                .wire
                .open(Kind::Client, &named_service(name, &service), &qos())?,
            bus_name,
            service,
            counts: Counts::default(),
            timeout: crate::config::timeout(rule, name),
            max_message: rule.max_message.unwrap_or(hub.config.max_message()),
            server: Mutex::default(),
            open: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Offers the service on the bus as soon as its server is connected.
    pub(crate) fn offer(self: &Arc<Self>, hub: &Arc<Hub>) -> Result<(), CalledError> {
        let mut server = lock(&self.server);
        if server.is_some() || hub.wire.connected(self.port) == 0 {
            return Ok(());
        }
        let options = ServerOptions::default()
            .with_depth(MAX_OPEN_EACH)
            .with_max_held(MAX_OPEN_EACH);
        let made = hub
            .node
            .dynamic_server_with(&self.bus_name, &self.service, options);
        let made = Arc::new(made?);
        hub.begins(made.bus().id());
        let (this, hub, serves) = (self.clone(), hub.clone(), made.clone());
        let thread = std::thread::Builder::new().name("ros2-called".into());
        thread.spawn(move || {
            clock::nice_thread(clock::FORWARDING_NICE);
            this.work(&hub, &serves);
        })?;
        *server = Some(made);
        Ok(())
    }

    pub(crate) fn end(&self, hub: &Hub) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(server) = lock(&self.server).take() {
            hub.ends(server.bus().id());
            server.bus().interrupt().wake();
        }
        lock(&self.open).clear();
        hub.wire.close(self.port);
        hub.forget(&self.name);
    }

    fn work(&self, hub: &Hub, server: &Server) {
        while !self.is_closed.load(Ordering::Acquire) {
            match server.take_timeout(Duration::from_secs(1)) {
                Ok(Some(request)) => self.call(hub, server, request),
                Ok(None) => {}
                // This concerns one client, which has to wait for its own calls; it delays nobody else.
                Err(TakeError::HoldLimit { .. }) => {
                    let _ = server.bus().wait_takeable(Duration::from_secs(1));
                }
                Err(error) => {
                    return hub.problem(&self.name, format_args!("calls from the bus have ended: {error}"));
                }
            }
        }
    }

    fn call(&self, hub: &Hub, server: &Server, request: Request) {
        let within = self.timeout.min(request.time_left());
        let until = Instant::now() + within;
        let bytes = match request.cdr() {
            Ok(bytes) => bytes,
            Err(error) => return self.reject(server, request, &error.to_string()),
        };
        let (len, most) = (bytes.len() as u64, self.max_message);
        if len > most {
            let text = format!("a request has {len} bytes, more than the limit of {most}");
            return self.reject(server, request, &text);
        }
        let mut open = lock(&self.open);
        if open.len() >= MAX_OPEN {
            drop(open);
            return self.reject(server, request, "too many calls are unanswered");
        }
        // The response may arrive before this returns: it waits for the lock.
        match hub.wire.call(self.port, bytes, within) {
            Ok(call) => drop(open.insert(call, (request, until))),
            Err(error) => {
                drop(open);
                self.reject(server, request, &error.to_string());
            }
        }
    }

    /// Handles a response.
    pub(crate) fn respond(&self, hub: &Hub, call: Call, payload: &[u8]) {
        let Some((request, _)) = lock(&self.open).remove(&call) else {
            return;
        };
        let Some(server) = lock(&self.server).clone() else {
            return;
        };
        match server.respond_cdr(request, payload) {
            Ok(()) => self.counts.passed(payload.len()),
            Err(error) => {
                self.counts.failed();
                hub.problem(&self.name, format_args!("cannot deliver a response: {error}"));
            }
        }
    }

    /// Gives up calls whose time is over.
    pub(crate) fn sweep(&self, now: Instant) {
        let late: Vec<Request> = {
            let mut open = lock(&self.open);
            let late = open.iter().filter(|(_, (_, until))| *until <= now);
            let late: Vec<Call> = late.map(|(call, _)| *call).collect();
            late.iter()
                .filter_map(|call| open.remove(call).map(|(request, _)| request))
                .collect()
        };
        let server = lock(&self.server).clone();
        for request in late {
            if let Some(server) = &server {
                self.reject(server, request, "its server did not answer in time");
            }
        }
    }

    fn reject(&self, server: &Server, request: Request, text: &str) {
        self.counts.failed();
        if let Err(error) = server.reject(request, &printable(text)) {
            tracing::debug!(%error, service = self.name, "cannot deliver an error to a caller");
        }
    }
}
