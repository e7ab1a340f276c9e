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

/// Most calls of one service that wait for their responses, and of them those of one client of the bus.
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
    /// Whose server came first.
    pub(crate) by: Id,
    timeout: Duration,
    /// The longest request.
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
    #[error("no thread: {0}")]
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
    /// Connects to its server. It is offered when that is done ([`Called::offer`]).
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

    /// Offers it on the bus as soon as its server is connected.
    pub(crate) fn offer(self: &Arc<Self>, hub: &Arc<Hub>) -> Result<(), CalledError> {
        let mut server = lock(&self.server);
        if server.is_some() || hub.wire.connected(self.port) == 0 {
            return Ok(());
        }
        let options = ServerOptions::default()
            .with_depth(MAX_OPEN_EACH)
            .with_max_held(MAX_OPEN_EACH);
        let made = hub.node.server_with(&self.bus_name, &self.service, options);
        let made = Arc::new(made?);
        hub.begins(made.bus().id());
        let (this, hub, serves) = (self.clone(), hub.clone(), made.clone());
        let thread = std::thread::Builder::new().name("ros2-called".into());
        thread.spawn(move || this.work(&hub, &serves))?;
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
                // One client's, who has to wait for its own: nobody else is held up.
                Err(TakeError::HoldLimit { .. }) => {
                    let _ = server.bus().wait_takeable(Duration::from_secs(1));
                }
                Err(error) => {
                    return hub.problem(
                        &self.name,
                        format_args!("no more calls come from the bus: {error}"),
                    );
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
            let text = format!("a request of {len} bytes; at most {most} cross");
            return self.reject(server, request, &text);
        }
        let mut open = lock(&self.open);
        if open.len() >= MAX_OPEN {
            drop(open);
            return self.reject(server, request, "too many calls wait for their responses");
        }
        // The response may come before this ends: it waits for the lock.
        match hub.wire.call(self.port, bytes, within) {
            Ok(call) => drop(open.insert(call, (request, until))),
            Err(error) => {
                drop(open);
                self.reject(server, request, &error.to_string());
            }
        }
    }

    /// A response came.
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
                hub.problem(&self.name, format_args!("a response does not arrive: {error}"));
            }
        }
    }

    /// Gives up the calls that waited long enough.
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
                self.reject(server, request, "its server has not answered in time");
            }
        }
    }

    fn reject(&self, server: &Server, request: Request, text: &str) {
        self.counts.failed();
        if let Err(error) = server.reject(request, &printable(text)) {
            tracing::debug!(%error, service = self.name, "a caller got no answer");
        }
    }
}
