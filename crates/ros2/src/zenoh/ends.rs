//! Endpoints of this bridge, and the Zenoh objects behind them.

use super::attachment::{Attachment, LEN};
use super::queue::{Item, Keeps, Queue};
use super::seen::{self, Others};
use super::{keys, lock};
use crate::wire::{Id, Named, Port, WireError};
use bridge::nodes::policy::{BEST_EFFORT, KEEP_ALL, TRANSIENT_LOCAL};
use bridge::nodes::{Kind, Qos};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zenoh::bytes::{Encoding, ZBytes};
use zenoh::cancellation::CancellationToken;
use zenoh::key_expr::KeyExpr;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority, Reliability};
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable, Reply, ReplyKeyExpr};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};
use zenoh_ext::{
    AdvancedPublisher, AdvancedPublisherBuilderExt, AdvancedSubscriber, AdvancedSubscriberBuilderExt,
    CacheConfig, HistoryConfig,
};

/// Maximum number of messages that a publisher keeps for late subscribers, and that are queued here.
const MAX_DEPTH: u64 = 1_024;
/// Maximum number of unanswered requests of a service.
const MAX_REQUESTS: usize = 1_024;
/// Timeout for publishers to return the messages that they keep.
const FOLLOWED: Duration = Duration::from_secs(10);
/// Longest attachment to read.
const MAX_ATTACHMENT: usize = 4 * LEN;
/// Schema of the encoding that marks messages of Ropewalk bridges.
const BRIDGED: &str = "ropewalk";

/// An endpoint of this bridge.
pub(super) struct End {
    pub(super) what: Named,
    pub(super) qos: Qos,
    pub(super) kind: Kind,
    pub(super) key: KeyExpr<'static>,
    /// Its identity: that of its token, once it has one.
    pub(super) id: Mutex<Id>,
    /// Counts the messages that it sends.
    pub(super) sent: AtomicI64,
    inner: Inner,
}

enum Inner {
    Publisher(Publisher<'static>),
    /// Keeps messages for late subscribers.
    CachingPublisher(AdvancedPublisher<'static>),
    Subscriber(#[expect(dead_code, reason = "it ends when it is dropped")] Subscriber<()>),
    /// Also receives messages that were kept.
    HistorySubscriber(#[expect(dead_code, reason = "it ends when it is dropped")] AdvancedSubscriber<()>),
    Client(CancellationToken),
    Service {
        _queryable: Queryable<()>,
        waiting: Mutex<Waiting>,
    },
}

/// Unanswered requests, by client and number, with their order of arrival.
#[derive(Default)]
struct Waiting {
    requests: BTreeMap<(Id, i64), (u64, Query)>,
    next: u64,
}

/// Destination of incoming messages.
#[derive(Clone)]
pub(super) struct Inbox {
    pub(super) queue: Arc<Queue>,
    pub(super) others: Arc<Mutex<Others>>,
    pub(super) max_message: usize,
    /// Whether this bridge carries what other bridges send.
    pub(super) from_bridges: bool,
}

/// The encoding that marks a message as sent by a Ropewalk bridge.
fn encoding() -> Encoding {
    Encoding::APPLICATION_CDR.with_schema(BRIDGED)
}

fn failed(error: zenoh::Error) -> WireError {
    WireError(error.to_string())
}

impl Inbox {
    fn refuse(&self, reason: &'static str) {
        lock(&self.others).refuse(reason);
    }

    /// Reads attachment and payload, if they are to be forwarded. By default, those sent by a Ropewalk bridge are not:
    /// they come from a bus already.
    fn read(
        &self,
        encoding: Option<&Encoding>,
        attachment: Option<&ZBytes>,
        payload: &ZBytes,
        malformed: &'static str,
    ) -> Option<(Attachment, Vec<u8>)> {
        if !self.from_bridges && encoding == Some(&self::encoding()) {
            return None;
        }
        if payload.len() > self.max_message {
            self.refuse("too_long");
            return None;
        }
        let attachment = attachment.filter(|a| a.len() <= MAX_ATTACHMENT);
        let Some(attachment) = attachment.and_then(|a| Attachment::decode(&a.to_bytes())) else {
            self.refuse(malformed);
            return None;
        };
        // Copy the bytes: they may be a small part of a large receive buffer.
        Some((attachment, payload.to_bytes().into_owned()))
    }

    fn message(&self, port: Port, sample: &Sample) {
        if sample.kind() != SampleKind::Put {
            return;
        }
        let parts = self.read(
            Some(sample.encoding()),
            sample.attachment(),
            sample.payload(),
            "malformed",
        );
        if let Some((attachment, payload)) = parts {
            // If an older message is dropped, its missing number shows that it was lost.
            self.queue.push(port, Item::Message(attachment, payload));
        }
    }

    fn request(&self, port: Port, query: Query) {
        let Some(payload) = query.payload() else {
            return self.refuse("requests");
        };
        let parts = self.read(query.encoding(), query.attachment(), payload, "requests");
        let Some((attachment, payload)) = parts else {
            return;
        };
        if !self.queue.push(port, Item::Request(attachment, payload, query)) {
            self.refuse("requests");
        }
    }

    fn response(&self, port: Port, call: i64, reply: &Reply) {
        match reply.result() {
            Ok(sample) if sample.payload().len() <= self.max_message => {
                let payload = sample.payload().to_bytes().into_owned();
                if !self.queue.push(port, Item::Response(call, payload)) {
                    self.refuse("responses");
                }
            }
            Ok(_) => self.refuse("too_long"),
            Err(error) => {
                let text = error.payload().try_to_string().unwrap_or_default();
                let text: String = text.chars().take(200).collect();
                tracing::debug!(error = bridge::printable(&text), "a call failed");
            }
        }
    }
}

impl End {
    /// Creates an endpoint.
    pub(super) fn open(
        session: &Session,
        inbox: &Inbox,
        domain: u32,
        port: Port,
        (kind, what, qos): (Kind, &Named, &Qos),
    ) -> Result<Self, WireError> {
        let hash =
            hash(kind, what).ok_or_else(|| WireError(format!("{}: its type has no hash", what.name)))?;
        let key = keys::of(domain, &what.name, &what.type_name, hash).ok_or_else(|| {
            WireError(format!(
                "{} of {} is not a valid name in ROS 2",
                what.name, what.type_name
            ))
        })?;
        let key = KeyExpr::try_from(key).map_err(failed)?;
        let depth = depth(qos);
        let is_kept = qos.durability == TRANSIENT_LOCAL;
        let inner = match kind {
            Kind::Publisher => publisher(session, &key, (qos, depth, is_kept), what.priority)?,
            Kind::Subscription => {
                inbox.queue.open(port, depth, Keeps::Newest);
                let inbox = inbox.clone();
                let builder = session
                    .declare_subscriber(key.clone())
                    .callback(move |sample| inbox.message(port, &sample))
                    .allowed_origin(Locality::Remote);
                if is_kept {
                    let history = HistoryConfig::default()
                        .detect_late_publishers()
                        .max_samples(depth);
                    let builder = builder.history(history).subscriber_detection();
                    Inner::HistorySubscriber(builder.wait().map_err(failed)?)
                } else {
                    Inner::Subscriber(builder.wait().map_err(failed)?)
                }
            }
            Kind::Client => {
                inbox.queue.open(port, MAX_REQUESTS, Keeps::Oldest);
                Inner::Client(CancellationToken::default())
            }
            Kind::Service => {
                inbox.queue.open(port, MAX_REQUESTS, Keeps::Oldest);
                let inbox = inbox.clone();
                let builder = session
                    .declare_queryable(key.clone())
                    .callback(move |query| inbox.request(port, query))
                    .allowed_origin(Locality::Remote)
                    .complete(true);
                Inner::Service {
                    _queryable: builder.wait().map_err(failed)?,
                    waiting: Mutex::default(),
                }
            }
        };
        Ok(End {
            id: Mutex::new(seen::id(&format!("{}/{}", session.zid(), port.0))),
            what: what.clone(),
            qos: *qos,
            kind,
            key,
            sent: AtomicI64::new(0),
            inner,
        })
    }

    /// The hash of the type that it sends and receives.
    pub(super) fn hash(&self) -> Option<[u8; 32]> {
        hash(self.kind, &self.what)
    }

    /// Publishes a message.
    pub(super) fn put(&self, attachment: Attachment, payload: Vec<u8>) -> Result<(), WireError> {
        let attachment = &attachment.encode()[..];
        match &self.inner {
            Inner::Publisher(publisher) => publisher.put(payload).attachment(attachment).wait(),
            Inner::CachingPublisher(publisher) => publisher.put(payload).attachment(attachment).wait(),
            _ => return Err(WireError("the endpoint is not a publisher".into())),
        }
        .map_err(failed)
    }

    /// Sends a request.
    pub(super) fn get(
        &self,
        session: &Session,
        inbox: &Inbox,
        port: Port,
        (attachment, payload, within): (Attachment, Vec<u8>, Duration),
    ) -> Result<(), WireError> {
        let Inner::Client(ends) = &self.inner else {
            return Err(WireError("the endpoint is not a client".into()));
        };
        let (inbox, call) = (inbox.clone(), attachment.sequence);
        session
            .get(&self.key)
            .payload(payload)
            .encoding(encoding())
            .attachment(&attachment.encode()[..])
            .target(QueryTarget::AllComplete)
            .consolidation(ConsolidationMode::None)
            .allowed_destination(Locality::Remote)
            .timeout(within)
            .cancellation_token(ends.clone())
            .callback(move |reply| inbox.response(port, call, &reply))
            .wait()
            .map_err(failed)
    }

    /// Requests kept messages from publishers again. Zenoh requests them once, when a publisher is declared, but the
    /// path to the publisher may only exist later.
    pub(super) fn follow(&self, session: &Session, inbox: &Inbox, port: Port) -> Result<(), WireError> {
        let Inner::HistorySubscriber(_) = &self.inner else {
            return Ok(());
        };
        let inbox = inbox.clone();
        session
            .get(format!(
                "{}/@adv/pub/**?_anyke;_max={}",
                self.key,
                depth(&self.qos)
            ))
            .target(QueryTarget::All)
            .consolidation(ConsolidationMode::None)
            .accept_replies(ReplyKeyExpr::Any)
            .allowed_destination(Locality::Remote)
            .timeout(FOLLOWED)
            .callback(move |reply| {
                if let Ok(sample) = reply.result() {
                    inbox.message(port, sample);
                }
            })
            .wait()
            .map_err(failed)
    }

    /// Keeps a request until it is answered. Beyond the limit, the oldest is dropped.
    pub(super) fn keep(&self, client: (Id, i64), query: Query) {
        let Inner::Service { waiting, .. } = &self.inner else {
            return;
        };
        let mut waiting = lock(waiting);
        waiting.next += 1;
        let number = waiting.next;
        waiting.requests.insert(client, (number, query));
        if waiting.requests.len() > MAX_REQUESTS {
            let oldest = waiting.requests.iter().min_by_key(|(_, (number, _))| *number);
            let oldest = oldest.map(|(client, _)| *client);
            oldest.and_then(|client| waiting.requests.remove(&client));
        }
    }

    /// Removes and returns an unanswered request.
    pub(super) fn asked(&self, client: (Id, i64)) -> Option<Query> {
        let Inner::Service { waiting, .. } = &self.inner else {
            return None;
        };
        lock(waiting).requests.remove(&client).map(|(_, query)| query)
    }

    /// Sends a response.
    pub(super) fn reply(
        &self,
        query: &Query,
        attachment: Attachment,
        payload: Vec<u8>,
    ) -> Result<(), WireError> {
        query
            .reply(&self.key, payload)
            .encoding(encoding())
            .attachment(&attachment.encode()[..])
            .wait()
            .map_err(failed)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Inner::Client(ends) = &self.inner
            && let Err(error) = ends.cancel().wait()
        {
            tracing::debug!(%error, "cannot cancel the calls of a client that has ended");
        }
    }
}

fn depth(qos: &Qos) -> usize {
    let depth = match qos.history {
        KEEP_ALL => MAX_DEPTH,
        _ => qos.depth.clamp(1, MAX_DEPTH),
    };
    depth as usize
}

fn hash(kind: Kind, what: &Named) -> Option<[u8; 32]> {
    match kind {
        Kind::Publisher | Kind::Subscription => what.hashes[0],
        Kind::Client | Kind::Service => what.service,
    }
}

fn publisher(
    session: &Session,
    key: &KeyExpr<'static>,
    (qos, depth, is_kept): (&Qos, usize, bool),
    priority: Option<u8>,
) -> Result<Inner, WireError> {
    let is_reliable = qos.reliability != BEST_EFFORT;
    let builder = session
        .declare_publisher(key.clone())
        .encoding(encoding())
        .priority(self::priority(priority))
        .allowed_destination(Locality::Remote)
        .reliability(if is_reliable {
            Reliability::Reliable
        } else {
            Reliability::BestEffort
        })
        // As in rmw_zenoh: only a publisher that must keep all messages blocks on congestion.
        .congestion_control(if is_reliable && qos.history == KEEP_ALL {
            CongestionControl::Block
        } else {
            CongestionControl::Drop
        });
    Ok(if is_kept {
        let builder = builder
            .cache(CacheConfig::default().max_samples(depth))
            .publisher_detection();
        Inner::CachingPublisher(builder.wait().map_err(failed)?)
    } else {
        Inner::Publisher(builder.wait().map_err(failed)?)
    })
}

/// Returns Zenoh's class for a link priority, 0 to 127. Without a priority the class is data; the middle of the link
/// priorities is data, too.
fn priority(asked: Option<u8>) -> Priority {
    match asked {
        None => Priority::Data,
        Some(112..) => Priority::RealTime,
        Some(96..) => Priority::InteractiveHigh,
        Some(80..) => Priority::InteractiveLow,
        Some(64..) => Priority::DataHigh,
        Some(48..) => Priority::Data,
        Some(24..) => Priority::DataLow,
        Some(_) => Priority::Background,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priorities_have_no_lower_class() {
        let mut last = Priority::Background as u8;
        for asked in 0..=127 {
            let class = priority(Some(asked)) as u8;
            assert!(class <= last && (1..=7).contains(&class));
            last = class;
        }
        assert_eq!(last, Priority::RealTime as u8);
        assert_eq!(priority(None), Priority::Data);
    }

    #[test]
    fn messages_of_a_bridge_are_recognized() {
        assert_ne!(encoding(), Encoding::APPLICATION_CDR);
        assert_eq!(encoding().to_string(), "application/cdr;ropewalk");
    }
}
