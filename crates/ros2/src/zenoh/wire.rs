//! A session with Zenoh as a middleware of ROS 2.

use super::attachment::Attachment;
use super::ends::{End, Inbox};
use super::lock;
use super::queue::{Item, Queue, Taken};
use super::seen::Others;
use super::session::{self, SessionConfig, SessionError};
use super::shown::{Own, Tokens};
use super::token::{SPACE, enclave_of};
use crate::wire::{Call, Caller, Event, Id, Mark, Named, Picture, Port, Shown, Wire, WireError};
use bridge::nodes::{Kind, Qos};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zenoh::pubsub::Subscriber;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Session, Wait};

/// Maximum number of identities per subscription whose last message is remembered.
const MAX_HEARD: usize = 4_096;
/// Times after a change at which kept messages are requested from publishers again.
const ASKED: [Duration; 2] = [Duration::from_millis(1_500), Duration::from_secs(6)];
/// How long a router may be missing before that counts as a problem.
const PATIENCE: Duration = Duration::from_secs(3);

/// A topic, with the durability and reliability of its subscription.
type Heard = (String, u8, u8);

/// Number and time of the last message, by sender.
type Newest = BTreeMap<Id, (i64, i64)>;

/// A session with Zenoh.
pub(crate) struct Zenoh {
    session: Session,
    own: Own,
    /// Addresses of its routers, if it looks for any.
    routers: Vec<String>,
    inbox: Inbox,
    ends: Mutex<BTreeMap<Port, Arc<End>>>,
    /// Number and time of the last message by sender identity, for each topic and quality of service. A new
    /// subscription receives kept messages again, which the bus already has.
    order: Mutex<BTreeMap<Heard, Newest>>,
    next: Mutex<u64>,
    /// When to request kept messages from publishers again.
    asks: Arc<Mutex<[Option<Instant>; 2]>>,
    tokens: Mutex<Tokens>,
    /// Since when there is no router.
    alone: Mutex<Option<Instant>>,
    _watch: Subscriber<()>,
}

impl std::fmt::Debug for Zenoh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Zenoh");
        out.field("domain", &self.own.domain);
        out.field("session", &self.own.session).finish_non_exhaustive()
    }
}

impl Zenoh {
    /// Joins a domain. Others recognize the bridge by its mark.
    pub(crate) fn join(
        session_config: &SessionConfig,
        mark: Mark,
        max_message: u64,
    ) -> Result<Self, SessionError> {
        let (session, routers) = session::open(session_config, max_message)?;
        let own = Own {
            domain: session_config.domain,
            session: session.zid().to_string(),
            enclave: enclave_of(mark),
        };
        let inbox = Inbox {
            queue: Arc::new(Queue::new(max_message)),
            others: Arc::new(Mutex::new(Others::new(mark.from_bridges))),
            from_bridges: mark.from_bridges,
            max_message: usize::try_from(max_message).unwrap_or(usize::MAX),
        };
        let asks = Arc::new(Mutex::default());
        let (there, domain, name, again) = (inbox.clone(), own.domain, own.session.clone(), asks.clone());
        let watch = session
            .liveliness()
            .declare_subscriber(format!("{SPACE}/{domain}/**"))
            .history(true)
            .callback(move |sample: Sample| {
                let key = sample.key_expr().as_str();
                let mut others = lock(&there.others);
                let has_changed = match sample.kind() {
                    SampleKind::Put => others.begins(key, domain, &name),
                    SampleKind::Delete => others.ends(key),
                };
                drop(others);
                if has_changed {
                    ask(&again);
                    there.queue.change();
                }
            })
            .wait();
        let watch = watch.map_err(|error| SessionError::Open {
            problem: error.to_string(),
        })?;
        Ok(Zenoh {
            session,
            own,
            routers,
            inbox,
            ends: Mutex::default(),
            order: Mutex::default(),
            next: Mutex::default(),
            asks,
            tokens: Mutex::default(),
            alone: Mutex::new(Some(Instant::now())),
            _watch: watch,
        })
    }

    /// Requests kept messages from publishers, if that is due.
    fn follow(&self) {
        let now = Instant::now();
        // Both are taken, even if the first is due.
        let [first, second] = &mut *lock(&self.asks);
        let due = [first, second].map(|at| at.take_if(|at| *at <= now).is_some());
        let due = due.contains(&true);
        if !due {
            return;
        }
        let ends = lock(&self.ends).clone();
        for (port, end) in ends {
            if let Err(error) = end.follow(&self.session, &self.inbox, port) {
                tracing::debug!(%error, topic = end.what.name, "cannot request kept messages");
            }
        }
    }

    fn end(&self, port: Port) -> Result<Arc<End>, WireError> {
        let end = lock(&self.ends).get(&port).cloned();
        end.ok_or_else(|| WireError("the endpoint has ended".into()))
    }

    /// Whether it is connected to a router, or needs none.
    fn has_router(&self) -> bool {
        let has_router = self.routers.is_empty() || self.session.info().routers_zid().wait().next().is_some();
        let mut alone = lock(&self.alone);
        if has_router {
            *alone = None;
        } else {
            alone.get_or_insert_with(Instant::now);
        }
        has_router
    }

    fn attachment(&self, end: &End, time: u64) -> Attachment {
        Attachment {
            sequence: end.sent.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            time: i64::try_from(time).unwrap_or(i64::MAX),
            sender: *lock(&end.id),
        }
    }

    /// Whether a message arrived before, by its number and time. If not, counts the messages missing before it.
    fn came(&self, end: &End, attachment: &Attachment) -> bool {
        let mut order = lock(&self.order);
        let topic = (end.what.name.clone(), end.qos.durability, end.qos.reliability);
        let heard = order.entry(topic).or_default();
        if heard.len() >= MAX_HEARD {
            heard.clear();
        }
        let this = (attachment.sequence, attachment.time);
        let Some(last) = heard.insert(attachment.sender, this) else {
            return false;
        };
        if this.0 <= last.0 && this.1 <= last.1 {
            heard.insert(attachment.sender, last);
            return true;
        }
        drop(order);
        let lost = this.0.saturating_sub(last.0).saturating_sub(1);
        lock(&self.inbox.others).refuse_some("lost", u64::try_from(lost).unwrap_or(0));
        false
    }

    fn event(&self, port: Port, item: Item) -> Option<Event> {
        let end = self.end(port).ok()?;
        match item {
            Item::Message(attachment, payload) => {
                if self.came(&end, &attachment) {
                    return None;
                }
                let from = lock(&self.inbox.others).sender(attachment.sender, &end.what);
                Some(Event::Message {
                    port,
                    from,
                    payload,
                    time: attachment.time(),
                })
            }
            Item::Request(attachment, payload, query) => {
                let client = (attachment.sender, attachment.sequence);
                end.keep(client, query);
                let caller = Caller {
                    sender: client.0,
                    reader: client.0,
                    number: client.1,
                };
                Some(Event::Request {
                    port,
                    caller,
                    payload,
                })
            }
            Item::Response(call, payload) => Some(Event::Response { port, call, payload }),
        }
    }
}

/// Schedules requests for kept messages after a change: once the paths to publishers exist, and once more later.
fn ask(asks: &Mutex<[Option<Instant>; 2]>) {
    let now = Instant::now();
    let mut asks = lock(asks);
    asks[0].get_or_insert(now + ASKED[0]);
    asks[1] = Some(now + ASKED[1]);
}

impl Wire for Zenoh {
    fn picture(&self) -> Picture {
        let has_router = self.has_router();
        self.follow();
        let mut others = lock(&self.inbox.others);
        others.settle(has_router, Instant::now());
        let mut order = lock(&self.order);
        order.retain(|_, heard| {
            heard.retain(|id, _| others.knows(id));
            !heard.is_empty()
        });
        others.picture()
    }

    fn open(&self, kind: Kind, what: &Named, qos: &Qos) -> Result<Port, WireError> {
        let port = {
            let mut next = lock(&self.next);
            *next += 1;
            Port(*next)
        };
        let end = End::open(
            &self.session,
            &self.inbox,
            self.own.domain,
            port,
            (kind, what, qos),
        );
        match end {
            Ok(end) => {
                lock(&self.ends).insert(port, Arc::new(end));
                ask(&self.asks);
            }
            Err(error) => {
                self.inbox.queue.close(port);
                return Err(error);
            }
        }
        Ok(port)
    }

    fn close(&self, port: Port) {
        let end = lock(&self.ends).remove(&port);
        self.inbox.queue.close(port);
        // Zenoh undeclares it here, without any lock held.
        drop(end);
    }

    fn connected(&self, port: Port) -> usize {
        let Ok(end) = self.end(port) else { return 0 };
        let other = match end.kind {
            Kind::Publisher => Kind::Subscription,
            Kind::Subscription => Kind::Publisher,
            Kind::Client => Kind::Service,
            Kind::Service => Kind::Client,
        };
        lock(&self.inbox.others).count(other, &end.what, end.hash())
    }

    fn write(&self, port: Port, payload: Vec<u8>, time: u64) -> Result<(), WireError> {
        let end = self.end(port)?;
        end.put(self.attachment(&end, time), payload)
    }

    fn call(&self, port: Port, payload: Vec<u8>, within: Duration) -> Result<Call, WireError> {
        let end = self.end(port)?;
        if self.connected(port) == 0 {
            return Err(WireError("its server is not connected".into()));
        }
        let attachment = self.attachment(&end, clock::realtime().as_nanos());
        end.get(&self.session, &self.inbox, port, (attachment, payload, within))?;
        Ok(attachment.sequence)
    }

    fn respond(&self, port: Port, to: Caller, payload: Vec<u8>) -> Result<(), WireError> {
        let end = self.end(port)?;
        let query = end.asked((to.sender, to.number));
        let query = query.ok_or_else(|| WireError("no client waits for it".into()))?;
        let attachment = Attachment {
            sequence: to.number,
            time: i64::try_from(clock::realtime().as_nanos()).unwrap_or(i64::MAX),
            sender: to.sender,
        };
        end.reply(&query, attachment, payload)
    }

    fn abandon(&self, port: Port, caller: Caller) {
        let end = self.end(port).ok();
        // Dropping the request ends it: Zenoh notifies the caller.
        drop(end.and_then(|end| end.asked((caller.sender, caller.number))));
    }

    fn problem(&self) -> Option<String> {
        let is_late = lock(&self.alone).is_some_and(|since| since.elapsed() > PATIENCE);
        is_late.then(|| super::no_router(&self.routers))
    }

    fn show(&self, nodes: Vec<Shown>) {
        let ends = lock(&self.ends).clone();
        let mut tokens = lock(&self.tokens);
        if let Err(error) = tokens.show(&self.session, &self.own, &nodes, &ends) {
            tracing::warn!(%error, "cannot announce a change of the bus's nodes");
        }
    }

    fn leave(&self) {
        *lock(&self.tokens) = Tokens::default();
        let ends = std::mem::take(&mut *lock(&self.ends));
        drop(ends);
        if let Err(error) = self.session.close().wait() {
            tracing::debug!(%error, "cannot close the session with Zenoh in order");
        }
    }

    fn next(&self, timeout: Duration) -> Option<Event> {
        let until = Instant::now() + timeout;
        loop {
            match self.inbox.queue.take(until)? {
                Taken::Changed => return Some(Event::Changed),
                Taken::Item(port, item) => {
                    if let Some(event) = self.event(port, item) {
                        return Some(event);
                    }
                }
            }
        }
    }

    fn refused(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.inbox.others).refused()
    }
}
