//! The nodes and endpoints of all contexts in a domain on this bus. Each context publishes its own.

pub(crate) mod record;

use crate::error::{Failure, Outcome};
use crate::signal::Signal;
use bridge::nodes;
use bus::{Bus, PublisherOptions, Stamp, SubscriberOptions, TopicType};
use record::{Endpoint, Kind, MAX_RECORD, NodeRecord, Participant, Record};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The graph as one context sees it.
pub(crate) struct Graph {
    own: Mutex<Own>,
    others: Mutex<BTreeMap<u64, Record>>,
    /// Endpoints that are gone, which the bus may not have noticed yet.
    departed: Mutex<VecDeque<u64>>,
    publisher: bus::Publisher,
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    version: AtomicU64,
    /// Wakes the thread.
    wake: Signal,
    is_closed: AtomicBool,
    announce_again: AtomicBool,
    /// Publishes liveliness assertions of this context's publishers; created on first use.
    assertions: OnceLock<Option<bus::Publisher>>,
    watches_assertions: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Interval at which an endpoint checks again for a peer that is in the graph but not yet connected on the bus.
const SETTLING: Duration = Duration::from_millis(5);
const SETTLINGS: u32 = 1000;
/// Maximum number of endpoints remembered as gone.
const MAX_DEPARTED: usize = 4096;

/// Receives changes of the graph.
pub(crate) trait Listener: Send + Sync {
    /// The graph has changed, or the bus may have connected endpoints of it. Returns false to be called again soon.
    fn graph_changed(&self) -> bool;

    /// Handles what has expired by `_now`. Returns when something expires next.
    fn tick(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// A publisher asserts that it is alive.
    fn asserted(&self, _publisher: u64) {}
}

/// This context's part of the graph.
struct Own {
    enclave: String,
    nodes: BTreeMap<u64, NodeRecord>,
    next: u64,
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn topic() -> TopicType {
    TopicType {
        topic: nodes::TOPIC.into(),
        type_name: nodes::TYPE.into(),
        type_hash: nodes::HASH,
        flavour: bus::Flavour::default(),
        definition: nodes::DEFINITION.into(),
    }
}

/// Topic for assertions of publishers that have to say that they are alive: a publisher's identity in eight bytes. They
/// do not leave the host.
fn assertions() -> TopicType {
    TopicType {
        topic: "/_rmw_ropewalk/alive".into(),
        type_name: "rmw_ropewalk/Alive".into(),
        type_hash: *b"rmw alive v1\0\0\0\0",
        flavour: bus::Flavour::default(),
        definition: "# A publisher of ROS 2 is alive.\n".into(),
    }
}

impl Graph {
    /// Joins the graph of a bus.
    pub(crate) fn open(bus: &Bus, enclave: &str) -> Outcome<Arc<Graph>> {
        let options = PublisherOptions::default()
            .with_history(1)
            .with_memory_limit(16 * MAX_RECORD as u64);
        let publisher = bus.publisher(topic(), options).map_err(Failure::error)?;
        let options = SubscriberOptions::default().with_depth(4).with_announcements();
        let subscriber = bus.subscriber(topic(), options).map_err(Failure::error)?;
        let graph = Arc::new(Graph {
            own: Mutex::new(Own {
                enclave: enclave.to_owned(),
                nodes: BTreeMap::new(),
                next: 1,
            }),
            others: Mutex::default(),
            departed: Mutex::default(),
            publisher,
            listeners: Mutex::default(),
            version: AtomicU64::new(0),
            wake: Signal::new().map_err(Failure::error)?,
            is_closed: AtomicBool::new(false),
            announce_again: AtomicBool::new(false),
            assertions: OnceLock::new(),
            watches_assertions: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let hearing = graph.clone();
        let thread = std::thread::Builder::new()
            .name("rmw-graph".into())
            .spawn(move || hearing.hear(&subscriber))
            .map_err(Failure::error)?;
        *lock(&graph.thread) = Some(thread);
        Ok(graph)
    }

    /// Leaves the graph. The thread ends.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.wake.set();
        // If a program does not finalize its context, the graph's own thread may hold the last entity.
        let own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        if let Some(thread) = lock(&self.thread).take().filter(|thread| !own(thread)) {
            let _ = thread.join();
        }
        lock(&self.others).clear();
    }

    /// Follows the other contexts until the graph is closed.
    fn hear(&self, subscriber: &bus::Subscriber) {
        let mut settlings = 0;
        let mut alive: Option<bus::Subscriber> = None;
        loop {
            if alive.is_none() && self.watches_assertions.load(Ordering::SeqCst) {
                alive = self.hearing();
            }
            self.heard_assertions(alive.as_ref());
            let mut changed = self.announce_again.swap(false, Ordering::SeqCst);
            loop {
                match subscriber.take() {
                    Ok(Some(message)) => changed |= self.heard(&message),
                    Ok(None) => break,
                    Err(error) => {
                        return tracing::error!(%error, "the graph is no longer followed");
                    }
                }
            }
            let there: BTreeSet<u64> = subscriber.stats().publishers.iter().map(|p| p.id).collect();
            let mut others = lock(&self.others);
            let before = others.len();
            others.retain(|id, record| {
                let stays = there.contains(id);
                if !stays {
                    self.depart(record);
                }
                stays
            });
            let ended = others.len() != before;
            drop(others);
            if ended {
                self.version.fetch_add(1, Ordering::SeqCst);
            }
            changed |= ended;
            if changed {
                settlings = SETTLINGS;
            }
            let soon = settlings > 0 && !self.changed();
            settlings = if soon { settlings - 1 } else { 0 };
            let now = Instant::now();
            let due = self.tick(now).map(|next| next.saturating_duration_since(now));
            let pause = due.into_iter().chain(soon.then_some(SETTLING)).min();
            let pause = pause.and_then(|p| Timespec::try_from(p).ok());
            let mut fds = vec![
                PollFd::new(subscriber, PollFlags::IN),
                PollFd::new(&self.wake, PollFlags::IN),
            ];
            fds.extend(alive.as_ref().map(|s| PollFd::new(s, PollFlags::IN)));
            let _ = rustix::event::poll(&mut fds, pause.as_ref());
            self.wake.take();
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    fn heard(&self, message: &bus::Message) -> bool {
        let id = message.publisher();
        if id == self.publisher.id() {
            return false;
        }
        let Some(record) = Record::decode(message.control()) else {
            static MALFORMED: clock::Quiet = clock::Quiet::new();
            if let Some(more) = MALFORMED.lets() {
                tracing::warn!(publisher = id, more, "ignoring a malformed record of the graph");
            }
            return false;
        };
        let still: BTreeSet<u64> = record.endpoints().map(|e| e.id).collect();
        let before = lock(&self.others).insert(id, record);
        self.version.fetch_add(1, Ordering::SeqCst);
        let before = before.iter().flat_map(Record::endpoints);
        before
            .filter(|e| !still.contains(&e.id))
            .for_each(|e| self.departs(e.id));
        true
    }

    fn depart(&self, record: &Record) {
        record.endpoints().for_each(|e| self.departs(e.id));
    }

    fn departs(&self, id: u64) {
        let mut departed = lock(&self.departed);
        if departed.len() >= MAX_DEPARTED {
            departed.pop_front();
        }
        departed.push_back(id);
    }

    /// Whether the endpoint is gone, even if the bus has not noticed yet.
    pub(crate) fn has_departed(&self, id: u64) -> bool {
        lock(&self.departed).contains(&id)
    }

    /// Version number of the graph; it differs after every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    fn listeners(&self) -> Vec<Arc<dyn Listener>> {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|l| l.strong_count() > 0);
        listeners.iter().filter_map(Weak::upgrade).collect()
    }

    /// Lets all listeners check the time. Returns when one of them must do so again.
    fn tick(&self, now: Instant) -> Option<Instant> {
        self.listeners().iter().filter_map(|l| l.tick(now)).min()
    }

    /// Wakes the thread, which finds out when something expires next.
    pub(crate) fn look_at_time(&self) {
        self.wake.set();
    }

    /// Starts to receive assertions.
    pub(crate) fn watch_assertions(&self) {
        if !self.watches_assertions.swap(true, Ordering::SeqCst) {
            self.wake.set();
        }
    }

    fn hearing(&self) -> Option<bus::Subscriber> {
        let options = SubscriberOptions::default().with_depth(256);
        let made = self.publisher.bus().subscriber(assertions(), options);
        made.inspect_err(|error| tracing::error!(%error, "assertions of publishers are not received"))
            .ok()
    }

    fn heard_assertions(&self, subscriber: Option<&bus::Subscriber>) {
        while let Some(Ok(Some(message))) = subscriber.map(bus::Subscriber::take) {
            let Ok(id) = message.control().try_into().map(u64::from_le_bytes) else {
                continue;
            };
            self.listeners().iter().for_each(|l| l.asserted(id));
        }
    }

    /// The publisher that sends assertions. A publisher that will assert itself requests it on creation, so that others
    /// are connected by the time it asserts.
    pub(crate) fn asserting(&self) -> Option<&bus::Publisher> {
        let publisher = self.assertions.get_or_init(|| {
            let made = self
                .publisher
                .bus()
                .publisher(assertions(), PublisherOptions::default());
            made.inspect_err(|error| tracing::error!(%error, "assertions of publishers are not sent"))
                .ok()
        });
        publisher.as_ref()
    }

    /// Announces that a publisher of this context is alive.
    pub(crate) fn assert(&self, id: u64) {
        let bytes = id.to_le_bytes();
        if let Some(publisher) = self.asserting()
            && let Ok(mut loan) = publisher.loan(bytes.len(), &[])
        {
            loan.control_mut().copy_from_slice(&bytes);
            let _ = publisher.publish(loan, Stamp::default());
        }
    }

    /// Calls all listeners. Returns false if one of them must be called again.
    fn changed(&self) -> bool {
        let listeners = self.listeners();
        // Call every listener, whatever the others return.
        let unsettled = listeners.iter().filter(|l| !l.graph_changed()).count();
        unsettled == 0
    }

    /// Calls the listener now and whenever the graph changes.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        lock(&self.listeners).push(listener.clone());
        self.look_at_time();
        if listener.upgrade().is_some_and(|l| !l.graph_changed()) {
            self.call_again();
        }
    }

    /// Adds a node and returns its key.
    pub(crate) fn add_node(&self, name: &str, namespace: &str) -> u64 {
        let mut own = lock(&self.own);
        let key = own.next;
        own.next += 1;
        let record = NodeRecord {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            endpoints: Vec::new(),
        };
        own.nodes.insert(key, record);
        self.announce(own);
        key
    }

    pub(crate) fn remove_node(&self, key: u64) {
        let mut own = lock(&self.own);
        own.nodes.remove(&key);
        self.announce(own);
    }

    pub(crate) fn add(&self, node: u64, endpoint: Endpoint) {
        let mut own = lock(&self.own);
        if let Some(node) = own.nodes.get_mut(&node) {
            node.endpoints.push(endpoint);
        }
        self.announce(own);
    }

    pub(crate) fn remove(&self, node: u64, id: u64) {
        let mut own = lock(&self.own);
        if let Some(node) = own.nodes.get_mut(&node) {
            node.endpoints.retain(|e| e.id != id);
        }
        self.departs(id);
        self.announce(own);
    }

    /// Publishes this context's part, in the order of its changes, and notifies the local listeners.
    fn announce(&self, own: MutexGuard<'_, Own>) {
        let record = Record {
            participants: vec![Participant {
                enclave: own.enclave.clone(),
                hosts: Vec::new(),
                nodes: own.nodes.values().cloned().collect(),
            }],
        };
        let bytes = record.encode();
        let sent = self.publisher.loan(bytes.len(), &[]).map_err(|e| e.to_string());
        let sent = sent.and_then(|mut loan| {
            loan.control_mut().copy_from_slice(&bytes);
            self.publisher
                .publish(loan, Stamp::default())
                .map_err(|e| e.to_string())
        });
        if let Err(error) = sent {
            tracing::error!(error, "other processes do not learn of a change of the graph");
        }
        drop(own);
        self.version.fetch_add(1, Ordering::SeqCst);
        // Call the listeners at once; the thread calls them again until the bus has connected new endpoints.
        if !self.changed() {
            self.call_again();
        }
    }

    fn call_again(&self) {
        self.announce_again.store(true, Ordering::SeqCst);
        self.wake.set();
    }

    /// Calls `f` with each node, its enclave, and whether it is on another host.
    pub(crate) fn each(&self, mut f: impl FnMut(&NodeRecord, &str, bool)) {
        let own = lock(&self.own);
        own.nodes.values().for_each(|node| f(node, &own.enclave, false));
        drop(own);
        let others = lock(&self.others);
        for participant in others.values().flat_map(|r| &r.participants) {
            let is_far = !participant.hosts.is_empty();
            participant
                .nodes
                .iter()
                .for_each(|node| f(node, &participant.enclave, is_far));
        }
    }

    /// Returns the endpoints of this name and kind, with their nodes.
    pub(crate) fn endpoints(&self, name: &str, kind: Kind) -> Vec<(NodeName, Endpoint)> {
        let mut found = Vec::new();
        self.each(|node, _, is_far| {
            let of = |e: &&Endpoint| e.kind == kind && e.name == name;
            for endpoint in node.endpoints.iter().filter(of) {
                let node = NodeName {
                    name: node.name.clone(),
                    namespace: node.namespace.clone(),
                    is_far,
                };
                found.push((node, endpoint.clone()));
            }
        });
        found
    }

    /// Returns the endpoint with this identity on the bus.
    pub(crate) fn endpoint(&self, id: u64) -> Option<Endpoint> {
        let mut found = None;
        self.each(|node, _, _| {
            if let Some(endpoint) = node.endpoints.iter().find(|e| e.id == id) {
                found = Some(endpoint.clone());
            }
        });
        found
    }

    /// Whether the endpoint belongs to this context.
    pub(crate) fn is_own(&self, id: u64) -> bool {
        let own = lock(&self.own);
        own.nodes.values().any(|n| n.endpoints.iter().any(|e| e.id == id))
    }
}

/// Name and namespace of a node, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeName {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Whether the node is on another host: the bus does not connect its endpoints.
    pub(crate) is_far: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Must be called three times until the bus has connected what it waits for.
    struct Late(AtomicU32);

    impl Listener for Late {
        fn graph_changed(&self) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst) >= 2
        }
    }

    #[test]
    fn new_listeners_are_called_until_the_bus_has_connected_all_of_the_graph() {
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::open(bus::BusConfig::new(folder.path())).unwrap();
        let graph = Graph::open(&bus, "/").unwrap();
        let late = Arc::new(Late(AtomicU32::new(0)));
        let listener: Arc<dyn Listener> = late.clone();
        graph.listen(Arc::downgrade(&listener));
        let end = Instant::now() + Duration::from_secs(60);
        while late.0.load(Ordering::SeqCst) < 3 {
            assert!(
                Instant::now() < end,
                "the graph did not change, and nobody called it again"
            );
            std::thread::yield_now();
        }
        graph.close();
    }

    /// An entity whose last reference the graph's thread drops, and with it the last one of the context.
    struct Last {
        graph: Arc<Graph>,
        heard: std::sync::mpsc::SyncSender<&'static str>,
        goes_on: Mutex<std::sync::mpsc::Receiver<()>>,
    }

    impl Listener for Last {
        fn graph_changed(&self) -> bool {
            if std::thread::current().name() == Some("rmw-graph") {
                let _ = self.heard.send("called");
                let _ = lock(&self.goes_on).recv();
            }
            true
        }
    }

    impl Drop for Last {
        fn drop(&mut self) {
            self.graph.close();
            let _ = self.heard.send("closed");
        }
    }

    #[test]
    fn the_graphs_own_thread_may_close_it() {
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::open(bus::BusConfig::new(folder.path())).unwrap();
        let graph = Graph::open(&bus, "/").unwrap();
        let (heard, hears) = std::sync::mpsc::sync_channel(8);
        let (go_on, goes_on) = std::sync::mpsc::channel();
        let last: Arc<dyn Listener> = Arc::new(Last {
            graph: graph.clone(),
            heard,
            goes_on: Mutex::new(goes_on),
        });
        graph.listen(Arc::downgrade(&last));
        graph.call_again();
        let long = Duration::from_secs(60);
        assert_eq!(hears.recv_timeout(long), Ok("called"));
        drop(last);
        drop(go_on);
        let rest = || hears.recv_timeout(long);
        assert!(
            std::iter::repeat_with(rest)
                .take(8)
                .any(|word| word == Ok("closed"))
        );
    }
}
